//! What to take from a dataset.

use goodput_model::DatasetPlan;

use crate::format::{DatasetFormat, UnknownFormat};

/// What to take from a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DatasetOptions {
    /// Its form; found out by name and content when absent.
    pub format: Option<DatasetFormat>,
    /// Column or field of the prompt.
    pub prompt_column: Option<String>,
    /// Column or field of the answer's length, or of the answer.
    pub output_column: Option<String>,
    /// Entries to keep at most.
    pub sample: u64,
    /// Seed of the sample.
    pub seed: u64,
    /// The first entries of the file instead of a random sample.
    pub in_order: bool,
    /// Shortest prompt, in tokens.
    pub min_input: Option<u32>,
    /// Longest prompt, in tokens, with the turns before it.
    pub max_input: Option<u32>,
    /// Shortest answer, in tokens.
    pub min_output: Option<u32>,
    /// Longest prompt and answer together, in tokens.
    pub max_total: Option<u32>,
    /// Turns of a conversation to keep; all when absent.
    pub turns: Option<u32>,
    /// Whether entries that cannot be read are left out and counted.
    pub skip_invalid: bool,
}

impl DatasetOptions {
    /// What a plan asks for: `needed` entries where it does not say how many.
    pub fn from_plan(
        plan: &DatasetPlan,
        seed: u64,
        needed: u64,
        skip_invalid: bool,
    ) -> Result<Self, UnknownFormat> {
        Ok(Self {
            format: plan.format.as_deref().map(str::parse).transpose()?,
            prompt_column: plan.prompt_column.clone(),
            output_column: plan.output_column.clone(),
            sample: plan.sample.unwrap_or(needed),
            seed,
            in_order: plan.in_order,
            min_input: plan.min_input,
            max_input: plan.max_input,
            min_output: plan.min_output,
            max_total: plan.max_total,
            turns: plan.turns,
            skip_invalid,
        })
    }
}
