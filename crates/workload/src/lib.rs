//! *What*: the prompts of a run. Request *i* is a function of (seed, *i*) alone.
//!
//! Token counts here are estimates: the generator uses common words, of which a tokenizer makes
//! one token each. What the server counted is in the record.

mod text;

use std::sync::Arc;

use goodput_model::{Planned, Prompt, WorkloadPlan};
use goodput_random::{Domain, Stream};

/// The prompts of a run.
#[derive(Debug, Clone)]
pub struct Workload {
    class: Arc<str>,
    input: Lengths,
    output: Lengths,
    seed: u64,
}

/// How lengths are distributed, in tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Lengths {
    Fixed(u32),
    /// Log-normal with this median and sigma 0.8, clipped.
    LogNormal {
        median: f64,
        min: u32,
        max: u32,
    },
}

/// A preset that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no workload named `{name}`")]
pub struct UnknownWorkload {
    name: String,
    /// What there is.
    pub known: &'static str,
}

/// The standard deviation of the logarithm of lengths, in every preset.
const SIGMA: f64 = 0.8;

impl Workload {
    /// The workload that the plan names.
    pub fn new(plan: &WorkloadPlan, seed: u64) -> Result<Self, UnknownWorkload> {
        let (input, output) = match plan.name.as_str() {
            // Length distributions of seed 003's chat class.
            "chat" => (
                Lengths::LogNormal { median: 500.0, min: 50, max: 4000 },
                Lengths::LogNormal { median: 200.0, min: 10, max: 2000 },
            ),
            _ => return Err(UnknownWorkload { name: plan.name.clone(), known: "chat" }),
        };
        Ok(Self {
            class: Arc::from(plan.name.as_str()),
            input: plan.input_tokens.map_or(input, Lengths::Fixed),
            output: plan.max_tokens.map_or(output, Lengths::Fixed),
            seed,
        })
    }

    /// Request `index`.
    pub fn prompt(&self, index: u64) -> Prompt {
        let mut lengths = Stream::new(self.seed, Domain::Lengths, index);
        let input_tokens = self.input.draw(&mut lengths);
        let output_tokens = Some(self.output.draw(&mut lengths));
        let text = text::prompt(input_tokens, &mut Stream::new(self.seed, Domain::Text, index));
        let planned = Planned { class: Arc::clone(&self.class), input_tokens, output_tokens };
        Prompt { text, planned }
    }

    /// One line for people.
    pub fn describe(&self) -> String {
        format!(
            "{}: input {}, output {}",
            self.class,
            self.input.describe(),
            self.output.describe()
        )
    }
}

impl Lengths {
    fn draw(self, stream: &mut Stream) -> u32 {
        match self {
            Self::Fixed(tokens) => tokens,
            Self::LogNormal { median, min, max } => {
                (stream.log_normal(median, SIGMA) as u32).clamp(min, max)
            }
        }
    }

    fn describe(self) -> String {
        match self {
            Self::Fixed(tokens) => format!("{tokens} tokens"),
            Self::LogNormal { median, min, max } => {
                format!("median {median} tokens (log-normal, {min} to {max})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(input_tokens: Option<u32>, max_tokens: Option<u32>) -> Workload {
        let plan = WorkloadPlan {
            name: "chat".to_owned(),
            input_tokens,
            max_tokens,
            ignore_eos: false,
            save_text: false,
        };
        Workload::new(&plan, 42).unwrap()
    }

    #[test]
    fn a_prompt_is_a_function_of_seed_and_index() {
        let (a, b) = (chat(None, None), chat(None, None));
        assert_eq!(a.prompt(7), b.prompt(7));
        assert_ne!(a.prompt(7).text, a.prompt(8).text);
    }

    #[test]
    fn lengths_follow_the_preset() {
        let workload = chat(None, None);
        let mut inputs: Vec<_> =
            (0..4000).map(|index| workload.prompt(index).planned.input_tokens).collect();
        inputs.sort_unstable();
        // The median of 4000 draws: one standard error is 1.6 %.
        assert!((475..525).contains(&inputs[2000]), "median {}", inputs[2000]);
        assert!(inputs[0] >= 50 && inputs[3999] <= 4000);
    }

    #[test]
    fn fixed_lengths_are_fixed() {
        let workload = chat(Some(100), Some(9));
        let prompt = workload.prompt(3);
        assert_eq!(prompt.planned.output_tokens, Some(9));
        assert_eq!(prompt.planned.input_tokens, 100);
        let words = prompt.text.split_whitespace().count();
        assert!((70..=100).contains(&words), "{words} words");
    }
}
