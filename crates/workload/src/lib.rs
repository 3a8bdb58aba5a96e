//! *What*: the prompts of a run. Session *i* is a function of (seed, *i*) alone.
//!
//! Token counts here are estimates: the generator uses common words, of which a tokenizer makes
//! one token each. What the server counted is in the record.

mod text;

use std::sync::Arc;

use goodput_model::{
    ClassPlan, Clip, Keep, Lengths, Nanos, Planned, Request, Session, SourcePlan, WorkloadPlan,
};
use goodput_random::{Domain, Stream};

/// The prompts of a run.
#[derive(Debug, Clone)]
pub struct Workload {
    class: Arc<str>,
    input: Lengths,
    output: Lengths,
    seed: u64,
}

/// What a workload must know of the run that it is for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Seed of everything drawn.
    pub seed: u64,
    /// What is kept of a trace's time.
    pub keep: Keep,
    /// Trace time is multiplied by this.
    pub time_scale: f64,
    /// Requests that the run will need, about: so many entries of a file are kept.
    pub requests: u64,
}

impl Setting {
    /// For workloads that need neither trace nor file.
    pub fn of(seed: u64) -> Self {
        Self { seed, keep: Keep::Timestamps, time_scale: 1.0, requests: 1_000 }
    }
}

/// Why a workload cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WorkloadError {
    message: String,
    /// What to do about it.
    pub hint: String,
}

/// The standard deviation of the logarithm of lengths, in every preset.
const SIGMA: f64 = 0.8;

/// Names of the presets.
pub const PRESETS: [&str; 4] = ["chat", "code_generation", "long_context_qa", "summarization"];

/// The class of traffic that seed 003 gives this name.
pub fn preset(name: &str) -> Option<ClassPlan> {
    let ([input, input_low, input_high], [output, output_low, output_high]) = match name {
        "chat" => ([500, 50, 4_000], [200, 10, 2_000]),
        "code_generation" => ([1_500, 200, 8_000], [500, 50, 4_000]),
        "long_context_qa" => ([16_000, 2_000, 128_000], [300, 20, 2_000]),
        "summarization" => ([4_000, 500, 32_000], [150, 50, 500]),
        _ => return None,
    };
    let lengths =
        |median: u32, low, high| Lengths::LogNormal(f64::from(median), SIGMA, Clip { low, high });
    let input = lengths(input, input_low, input_high);
    Some(ClassPlan::synthetic(name, input, lengths(output, output_low, output_high)))
}

impl Workload {
    /// The workload that the plan describes.
    pub fn new(plan: &WorkloadPlan, setting: &Setting) -> Result<Self, WorkloadError> {
        let seed = setting.seed;
        let [class] = plan.classes.as_slice() else {
            return Err(WorkloadError { message: "several classes".into(), hint: String::new() });
        };
        let SourcePlan::Synthetic { input, output } = &class.source else {
            return Err(WorkloadError { message: "not synthetic".into(), hint: String::new() });
        };
        let class = Arc::from(class.name.as_str());
        Ok(Self { class, input: *input, output: *output, seed })
    }

    /// When session `number` arrives, in a workload that brings its own instants, on the run's
    /// clock; `None` past the end, and in workloads without instants.
    pub fn arrival(&self, _number: u64) -> Option<Nanos> {
        None
    }

    /// Session `number`; `None` past the end of a workload that ends.
    pub fn session(&self, number: u64) -> Option<Session> {
        let mut lengths = Stream::new(self.seed, Domain::Lengths, number);
        let input_tokens = self.input.draw(&mut lengths);
        let output_tokens = Some(self.output.draw(&mut lengths));
        let text = text::prompt(input_tokens, &mut Stream::new(self.seed, Domain::Text, number));
        let planned = Planned::new(Arc::clone(&self.class), input_tokens, output_tokens);
        Some(Session::single(Request::prompt(&text, planned)))
    }
}

/// One line for people.
pub fn describe(plan: &WorkloadPlan) -> String {
    let class = |class: &ClassPlan| match &class.source {
        SourcePlan::Synthetic { input, output } => {
            format!("{}: input {input}, output {output}", class.name)
        }
        SourcePlan::Pairs { file } => format!("{}: lengths of {file}", class.name),
        SourcePlan::Dataset(data) => format!("{}: {}", class.name, data.file),
        SourcePlan::Trace(trace) => format!("{}: {}", class.name, trace.file),
        SourcePlan::Frozen { file, .. } => format!("{}: {file}", class.name),
    };
    plan.classes.iter().map(class).collect::<Vec<_>>().join("; ")
}
