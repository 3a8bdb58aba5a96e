//! Exact lengths where the tokens of a text are not the sum over its units: count, mend, count
//! again. Slow, so only for tokenizers that need it.

use goodput_random::Stream;

use crate::lexicon::Lexicon;

/// Counts after which the closest text is taken.
const TRIES: u32 = 48;

impl Lexicon {
    /// Text of so many tokens by `count`, or the closest that was found, and how many it has.
    pub fn text_exact(
        &self,
        tokens: u32,
        stream: &mut Stream,
        count: &dyn Fn(&str) -> u32,
    ) -> (String, u32) {
        let text = self.text(tokens, stream);
        self.fit(text, tokens, stream, count)
    }

    /// Trims or extends the end of a text until it has so many tokens.
    pub(crate) fn fit(
        &self,
        mut text: String,
        tokens: u32,
        stream: &mut Stream,
        count: &dyn Fn(&str) -> u32,
    ) -> (String, u32) {
        let mut best: Option<(String, u32)> = None;
        for _ in 0..TRIES {
            let found = count(&text);
            let is_closer =
                best.as_ref().is_none_or(|(_, b)| found.abs_diff(tokens) < b.abs_diff(tokens));
            if is_closer {
                best = Some((text.clone(), found));
            }
            if found == tokens {
                break;
            }
            let each = (f64::from(found) / f64::from(units(&text))).max(1.0);
            let steps = (f64::from(found.abs_diff(tokens)) / each).ceil() as u32;
            if found > tokens {
                // A little more than needed, so that another end is tried each time.
                trim(&mut text, steps + stream.below(4) as u32);
            } else {
                // From below, ever closer: the last words come one by one.
                self.extend(&mut text, (steps / 2).max(1), stream);
            }
        }
        best.unwrap_or_default()
    }

    fn extend(&self, text: &mut String, units: u32, stream: &mut Stream) {
        for _ in 0..units {
            let index = stream.below(self.filler.len() as u64) as usize;
            if let Some(unit) = self.filler.get(index) {
                text.push_str(unit.text);
            }
        }
    }
}

fn units(text: &str) -> u32 {
    1 + text.matches([' ', '.', ',']).count() as u32
}

/// Takes units off the end; the first stays.
fn trim(text: &mut String, units: u32) {
    for _ in 0..units {
        let end = match text.char_indices().next_back() {
            Some((at, '.' | ',')) => Some(at),
            _ => text.rfind(' '),
        };
        match end.filter(|end| *end > 0) {
            Some(end) => text.truncate(end),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use goodput_random::Domain;

    use super::*;

    #[test]
    fn a_tokenizer_that_is_not_additive_is_met_exactly() {
        // Tokens of three letters, across words: what a unit costs depends on its place.
        let count = |text: &str| text.len().div_ceil(3) as u32;
        let lexicon = Lexicon::estimate();
        for tokens in [5, 10, 100, 1_000] {
            let mut stream = Stream::new(5, Domain::Text, u64::from(tokens));
            let (text, found) = lexicon.text_exact(tokens, &mut stream, &count);
            assert_eq!(found, count(&text));
            assert_eq!(found, tokens, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_met_comes_as_close_as_it_can() {
        // Twice the words: odd lengths do not exist.
        let count = |text: &str| 2 * text.split(' ').count() as u32;
        let mut stream = Stream::new(5, Domain::Text, 0);
        let (text, found) = Lexicon::estimate().text_exact(101, &mut stream, &count);
        assert_eq!(found, count(&text));
        assert_eq!(found.abs_diff(101), 1);
    }

    #[test]
    fn trimming_leaves_the_first_unit() {
        let mut text = "The old river ran.".to_owned();
        trim(&mut text, 2);
        assert_eq!(text, "The old river");
        trim(&mut text, 9);
        assert_eq!(text, "The");
    }
}
