//! Lengths of generated prompts and answers.

use goodput_model::LengthDistribution;
use goodput_model::random::{Domain, RandomStream};

/// Where the lengths of a prompt and its answer are from.
pub(crate) enum LengthSource {
    /// Drawn one by one.
    Drawn { input: LengthDistribution, output: LengthDistribution },
    /// Drawn together.
    Pairs(Vec<(u32, u32)>),
}

impl LengthSource {
    /// Prompt and answer length.
    pub(crate) fn draw(&self, lengths: &mut RandomStream) -> (u32, u32) {
        match self {
            Self::Drawn { input, output } => {
                let input = input.draw(lengths);
                (input, output.draw(lengths))
            }
            Self::Pairs(pairs) => {
                let index = lengths.next_below(pairs.len() as u64) as usize;
                pairs.get(index).copied().unwrap_or((1, 1))
            }
        }
    }

    /// The prompt length of session `number`, whichever session is being made.
    pub(crate) fn input_of(&self, seed: u64, number: u64) -> Option<u32> {
        let mut lengths = RandomStream::new(seed, Domain::Lengths, number);
        match self {
            Self::Drawn { input, .. } => Some(input.draw(&mut lengths)),
            Self::Pairs(pairs) => {
                let index = lengths.next_below(pairs.len() as u64) as usize;
                pairs.get(index).map(|(input, _)| *input)
            }
        }
    }
}
