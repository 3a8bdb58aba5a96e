//! Messages one after another, cut into turns.

use crate::pass::EntryNotes;

/// Who speaks, as far as turns go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// The user, or a tool that answers.
    Asking,
    Answering,
    /// The operator.
    Other,
}

/// A question with what stands before it, and its answer.
pub(crate) struct QuestionAndAnswer<M> {
    pub(crate) asked: Vec<M>,
    pub(crate) reply: Option<M>,
}

/// A conversation that is being cut. `M` is a message, or nothing if none is built.
pub(crate) struct Conversation<M> {
    pairs: Vec<QuestionAndAnswer<M>>,
    open: Vec<M>,
    is_asking: bool,
}

impl<M> Conversation<M> {
    pub(crate) fn new() -> Self {
        Self { pairs: Vec::new(), open: Vec::new(), is_asking: false }
    }

    /// The next message. A second answer in a row goes before the next question.
    pub(crate) fn add_message(&mut self, side: Speaker, message: M) {
        match side {
            Speaker::Answering if self.is_asking => {
                let asked = std::mem::take(&mut self.open);
                self.pairs.push(QuestionAndAnswer { asked, reply: Some(message) });
                self.is_asking = false;
            }
            Speaker::Asking => {
                self.open.push(message);
                self.is_asking = true;
            }
            Speaker::Answering | Speaker::Other => self.open.push(message),
        }
    }

    /// The turns. A last question without an answer is one of them where `keeps_open`.
    pub(crate) fn finish(
        mut self,
        keeps_open: bool,
        notes: &mut EntryNotes,
    ) -> Vec<QuestionAndAnswer<M>> {
        if self.is_asking && keeps_open {
            self.pairs.push(QuestionAndAnswer { asked: self.open, reply: None });
        } else if self.is_asking {
            notes.add("last question left out: it has no answer");
        } else if !self.open.is_empty() {
            notes.add("messages after the last answer left out");
        }
        self.pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns of a conversation of letters: `u`ser, `a`ssistant, `s`ystem.
    fn turns(said: &str, keeps_open: bool) -> Vec<String> {
        let mut talk = Conversation::new();
        for letter in said.chars() {
            let side = match letter {
                'u' => Speaker::Asking,
                'a' => Speaker::Answering,
                _ => Speaker::Other,
            };
            talk.add_message(side, letter);
        }
        let turn = |pair: &QuestionAndAnswer<char>| {
            let asked: String = pair.asked.iter().collect();
            format!("{asked}:{}", pair.reply.map(String::from).unwrap_or_default())
        };
        talk.finish(keeps_open, &mut EntryNotes::default()).iter().map(turn).collect()
    }

    #[test]
    fn every_message_goes_to_the_turn_it_was_said_before() {
        assert_eq!(turns("suaua", true), ["su:a", "u:a"]);
        assert_eq!(turns("uua", true), ["uu:a"]);
        assert_eq!(turns("uaau", true), ["u:a", "au:"]);
        assert_eq!(turns("uasua", true), ["u:a", "su:a"]);
        assert_eq!(turns("usa", true), ["us:a"]);
        assert_eq!(turns("auas", true), ["au:a"]);
        assert_eq!(turns("uau", false), ["u:a"]);
        assert_eq!(turns("s", true), Vec::<String>::new());
        assert_eq!(turns("", true), Vec::<String>::new());
    }
}
