//! What a workload is made from besides its plan.

use goodput_dataset::Loaded;
use goodput_model::{ClassPlan, Keep, Nanos, Session, SourcePlan};

use crate::entries;

/// What a workload must know of the run that it is for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Seed of everything drawn.
    pub seed: u64,
    /// What is kept of a trace's time.
    pub keep: Keep,
    /// Trace time is multiplied by this.
    pub time_scale: f64,
    /// Requests that the run will need, about: this many entries of a file are kept.
    pub requests: u64,
}

impl Setting {
    /// For workloads that need neither trace nor file.
    pub fn new(seed: u64) -> Self {
        Self { seed, keep: Keep::Timestamps, time_scale: 1.0, requests: 1_000 }
    }
}

/// What a class needs in addition to its plan.
#[derive(Debug, Clone, Default)]
pub enum Material {
    /// Nothing: text is generated, lengths are drawn.
    #[default]
    Synthetic,
    /// Lengths of prompts and answers, together.
    Pairs(Vec<(u32, u32)>),
    /// Entries of a dataset or rows of a trace.
    Entries(Loaded),
    /// Sessions as they are, with their instants.
    Frozen(Vec<(Option<Nanos>, Session)>),
}

impl Material {
    /// Counts the prompts and answers of a dataset whose lengths its file does not state. Without
    /// this they are guessed.
    pub fn count_lengths(&mut self, class: &ClassPlan, count: &dyn Fn(&str) -> u32) {
        if let (Self::Entries(loaded), SourcePlan::Dataset(plan)) = (self, &class.source) {
            entries::count_entry_lengths(&mut loaded.entries, plan, count);
        }
    }
}
