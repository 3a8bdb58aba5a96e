//! What our words cost in the server's tokens, found with few requests.
//!
//! Words hang on a carrier, so whatever is added to every text (a chat template, a first token)
//! cancels out. A group of words that costs as many tokens as it has words is all ones, and one
//! question settles it; another group is halved, and the second half is known by subtraction.

use goodput_model::random::{Domain, RandomStream};

use crate::WorkloadError;
use crate::lexicon::{Lexicon, SentencePart};

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calibrated {
    /// One digit for each unit, for [`Lexicon::from_costs`].
    pub costs: String,
    /// Tokens that every text has in addition to its own. A tokenizer that makes two of the word
    /// `The` at the start of a text has one of them counted here.
    pub overhead: u32,
    /// Questions asked.
    pub calls: usize,
    /// Units whose cost is known.
    pub resolved: usize,
}

/// Why the costs are unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CalibrateError<E> {
    /// Who counts could not.
    #[error("{0}")]
    Oracle(E),
    /// The tokens of a text are not the sum over its units.
    #[error("a text of {expected} tokens by its words has {found}: the counts do not add up")]
    NotAdditive {
        /// By the costs.
        expected: u32,
        /// By the oracle.
        found: u32,
    },
    /// What was found makes no vocabulary.
    #[error("{0}")]
    Unusable(WorkloadError),
}

/// Lengths of the texts that the costs are checked with.
const PROOFS: [u32; 3] = [40, 150, 600];

/// A cost has one digit.
const DEAREST: u32 = 9;

/// Asks for the cost of every unit, with at most `budget` questions; 14 are enough when every unit
/// is one token, and about as many as there are units when most are not. Units that are still
/// unknown then become unusable.
pub fn calibrate<E>(
    oracle: &mut dyn FnMut(&str) -> Result<u32, E>,
    budget: usize,
) -> Result<Calibrated, CalibrateError<E>> {
    let mut search = Search::new(oracle, budget.saturating_sub(PROOFS.len() + 1));
    let overhead = search.find_opener_cost()?;
    search.find_word_costs()?;
    let costs: String =
        search.costs.iter().filter_map(|cost| char::from_digit(cost.unwrap_or(0), 10)).collect();
    let resolved = search.costs.iter().flatten().count();
    let lexicon = Lexicon::from_costs(&costs).map_err(CalibrateError::Unusable)?;
    let mut calls = search.calls;
    for (number, tokens) in (0u64..).zip(PROOFS) {
        let text = lexicon.generate_text(tokens, &mut RandomStream::new(0, Domain::Text, number));
        let found = oracle(&text).map_err(CalibrateError::Oracle)?;
        calls += 1;
        let expected = overhead.saturating_add(tokens);
        if found != expected {
            return Err(CalibrateError::NotAdditive { expected, found });
        }
    }
    Ok(Calibrated { costs, overhead, calls, resolved })
}

struct Search<'a, E> {
    oracle: &'a mut dyn FnMut(&str) -> Result<u32, E>,
    costs: Vec<Option<u32>>,
    /// Tokens of the bare carrier.
    bare: u32,
    budget: usize,
    calls: usize,
}

/// Units that are known to cost so much together.
struct UnitGroup {
    units: Vec<usize>,
    tokens: u32,
}

impl<'a, E> Search<'a, E> {
    fn new(oracle: &'a mut dyn FnMut(&str) -> Result<u32, E>, budget: usize) -> Self {
        let costs = vec![None; Lexicon::unit_texts().len()];
        Self { oracle, costs, bare: 0, budget, calls: 0 }
    }

    fn count_tokens(&mut self, text: &str) -> Result<u32, CalibrateError<E>> {
        self.calls += 1;
        (self.oracle)(text).map_err(CalibrateError::Oracle)
    }

    /// The first words of messages: the first of them is the carrier, and one token by definition.
    /// Returns the tokens that every text has in addition to its own.
    fn find_opener_cost(&mut self) -> Result<u32, CalibrateError<E>> {
        let openers =
            Lexicon::unit_parts().iter().take_while(|part| **part == SentencePart::Opener).count();
        for (index, opener) in Lexicon::unit_texts().iter().take(openers).enumerate() {
            if index == 0 {
                self.bare = self.count_tokens(opener)?;
                self.costs[0] = Some(1);
            } else if self.calls < self.budget {
                let found = self.count_tokens(opener)?;
                let cost = i64::from(found) - i64::from(self.bare) + 1;
                // Cheaper than one would make the carrier dearer; such an opener is not used.
                let cost = u32::try_from(cost).ok().filter(|cost| (1..=DEAREST).contains(cost));
                self.costs[index] = Some(cost.unwrap_or(0));
            }
        }
        Ok(self.bare.saturating_sub(1))
    }

    /// Everything but the openers.
    fn find_word_costs(&mut self) -> Result<(), CalibrateError<E>> {
        let is = |wanted: fn(SentencePart) -> bool| {
            let parts = Lexicon::unit_parts().iter().enumerate();
            parts.filter(|(_, part)| wanted(**part)).map(|(unit, _)| unit).collect::<Vec<_>>()
        };
        let marks = is(|part| matches!(part, SentencePart::Stop | SentencePart::Comma));
        let words = is(|part| {
            !matches!(part, SentencePart::Opener | SentencePart::Stop | SentencePart::Comma)
        });
        let mut groups = Vec::new();
        for units in [words, marks] {
            if self.calls < self.budget {
                let tokens = self.cost_of(&units)?;
                groups.push(UnitGroup { units, tokens });
            }
        }
        // The group that is nearest to all ones first: it settles the most units for a question.
        while let Some(group) = take_cheapest(&mut groups) {
            let size = group.units.len() as u32;
            if group.tokens < size {
                let (expected, found) = (size, group.tokens);
                return Err(CalibrateError::NotAdditive { expected, found });
            }
            if group.tokens == size || size == 1 {
                let cost = group.tokens / size;
                let cost = if cost > DEAREST { 0 } else { cost };
                for unit in group.units {
                    self.costs[unit] = Some(cost);
                }
            } else if self.calls < self.budget {
                groups.extend(self.split_group(group)?);
            }
        }
        Ok(())
    }

    fn split_group(&mut self, group: UnitGroup) -> Result<[UnitGroup; 2], CalibrateError<E>> {
        let mut units = group.units;
        let back = units.split_off(units.len() / 2);
        let tokens = self.cost_of(&units)?;
        let Some(rest) = group.tokens.checked_sub(tokens) else {
            let (expected, found) = (group.tokens, tokens);
            return Err(CalibrateError::NotAdditive { expected, found });
        };
        Ok([UnitGroup { units, tokens }, UnitGroup { units: back, tokens: rest }])
    }

    /// Tokens of these units together. Marks stand behind words, whose cost is known by then or
    /// cancels out.
    fn cost_of(&mut self, units: &[usize]) -> Result<u32, CalibrateError<E>> {
        let all = Lexicon::unit_texts();
        let is_mark = |unit: usize| !all[unit].starts_with(' ');
        let has_marks = units.iter().any(|unit| is_mark(*unit));
        let carrier = all[0];
        let [mut with, mut without] = [carrier.to_owned(), carrier.to_owned()];
        for &unit in units {
            if is_mark(unit) {
                with.push_str(MARKED);
                without.push_str(MARKED);
            }
            with.push_str(all[unit]);
        }
        let without = if has_marks { self.count_tokens(&without)? } else { self.bare };
        let with = self.count_tokens(&with)?;
        Ok(with.saturating_sub(without))
    }
}

/// The word before a mark.
const MARKED: &str = " time";

/// Takes the group with the lowest mean cost out of the list.
fn take_cheapest(groups: &mut Vec<UnitGroup>) -> Option<UnitGroup> {
    let mean = |group: &UnitGroup| f64::from(group.tokens) / group.units.len() as f64;
    let best = (0..groups.len()).min_by(|a, b| mean(&groups[*a]).total_cmp(&mean(&groups[*b])))?;
    Some(groups.swap_remove(best))
}

#[cfg(test)]
mod tests;
