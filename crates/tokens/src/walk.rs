//! A text from its beginning to its end, in time that grows with its length alone.
//!
//! Vocabularies take time by the square of a word's length, and a hostile text is one word. So texts
//! are cut first: where a vocabulary would cut too, or where a word is longer than any.

use crate::approximate;
use crate::tokenizer::Tokenizer;

/// Bytes of a piece from which on it ends before the next word, and those it never exceeds.
const SOON: usize = 512;
const LONGEST: usize = 1_024;

/// Characters of a run that are taken at once.
const SLICE: usize = 8;

/// A bit of a text, as a tokenizer sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextUnit<'a> {
    /// A token.
    Id(u32),
    /// Text, and what it costs in hundredths of a token by the estimate.
    Run(&'a str, u64),
}

impl TextUnit<'_> {
    /// What it costs in hundredths of a token.
    pub fn cost_hundredths(self) -> u64 {
        match self {
            Self::Id(_) => approximate::TOKEN,
            Self::Run(_, cost) => cost,
        }
    }
}

impl Tokenizer {
    /// Takes a text unit by unit until it ends or `take` says no; returns the bytes that it came
    /// through. Texts that begin alike give units that begin alike. What the tokenizer refuses is
    /// estimated.
    pub fn walk_units(&self, text: &str, mut take: impl FnMut(TextUnit<'_>) -> bool) -> usize {
        let mut done = 0;
        while let Some(rest) = text.get(done..).filter(|rest| !rest.is_empty()) {
            let piece = rest.get(..first_piece_end(rest)).unwrap_or(rest);
            // Every unit of a piece is taken, so that what came through is whole.
            let mut goes_on = true;
            let mut each = |unit: TextUnit<'_>| goes_on &= take(unit);
            match self.encode(piece) {
                Ok(ids) => ids.into_iter().for_each(|id| each(TextUnit::Id(id))),
                Err(_) => walk_estimated(piece, each),
            }
            done += piece.len();
            if !goes_on {
                break;
            }
        }
        done
    }
}

/// Tokens of this text, about.
pub fn estimate_tokens(text: &str) -> u32 {
    approximate::estimate_tokens(text)
}

/// Where the first piece of a text ends.
fn first_piece_end(text: &str) -> usize {
    if text.len() <= SOON {
        return text.len();
    }
    let mut before = None;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        if at >= LONGEST {
            return at;
        }
        let next = characters.peek().map(|(_, next)| *next);
        let is_word = character == ' ' && next.is_some_and(char::is_alphabetic);
        if at >= SOON && is_word && before.is_some_and(|before: char| !before.is_whitespace()) {
            return at;
        }
        before = Some(character);
    }
    text.len()
}

fn walk_estimated(piece: &str, mut take: impl FnMut(TextUnit<'_>)) {
    approximate::for_each_run(piece, |run, cost| {
        let length = run.chars().count() as u64;
        let (mut rest, mut done) = (run, 0);
        while !rest.is_empty() {
            let cut = rest.char_indices().nth(SLICE).map_or(rest.len(), |(at, _)| at);
            let (slice, after) = rest.split_at(cut);
            let until = done + slice.chars().count() as u64;
            let part = cost * until / length.max(1) - cost * done / length.max(1);
            take(TextUnit::Run(slice, part));
            (rest, done) = (after, until);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROSE: &str = "The harbour master counted 1,204 crates, signed the list (twice!) and went \
                         home; no one had asked him why the crane\u{2019}s lamp was still burning. ";

    fn tokenizer(name: &str) -> Tokenizer {
        Tokenizer::builtin(name).unwrap()
    }

    fn cost(tokenizer: &Tokenizer, text: &str) -> u64 {
        let mut cost = 0;
        assert_eq!(
            tokenizer.walk_units(text, |unit| (cost += unit.cost_hundredths(), true).1),
            text.len()
        );
        cost
    }

    #[test]
    fn prose_costs_what_it_counts() {
        let text = PROSE.repeat(40);
        for name in crate::BUILTIN {
            let tokenizer = tokenizer(name);
            let counted = u64::from(tokenizer.count(&text).unwrap());
            assert_eq!(cost(&tokenizer, &text).div_ceil(100), counted, "{name}");
        }
    }

    #[test]
    fn texts_that_begin_alike_give_units_that_begin_alike() {
        let common = PROSE.repeat(9);
        for name in ["o200k_base", "approximate"] {
            let tokenizer = tokenizer(name);
            let units = |text: &str| {
                let mut units = Vec::new();
                tokenizer.walk_units(text, |unit| (units.push(format!("{unit:?}")), true).1);
                units
            };
            let (one, other) =
                (units(&(common.clone() + "And then")), units(&(common.clone() + "但是")));
            let same = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
            // All but what stands at the very end of what they share.
            assert!(same + 2 >= units(&common).len(), "{name}: {same}");
            assert_ne!(one, other);
        }
    }

    #[test]
    fn a_word_without_end_is_cut() {
        let word = "é".repeat(100_000);
        let mut most = 0;
        let mut done = 0;
        let tokenizer = tokenizer("o200k_base");
        // 1,024 bytes hold 512 of them: after the first piece, no more.
        let came = tokenizer.walk_units(&word, |_| (done += 1, false).1);
        assert_eq!(came, 1_024);
        assert!(done > 0);
        tokenizer.walk_units(&word, |unit| (most = most.max(unit.cost_hundredths()), true).1);
        assert_eq!(most, 100);
        assert_eq!(first_piece_end("x"), 1);
    }
}
