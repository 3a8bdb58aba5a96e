//! The shape of `summary.run`: what was run.

use goodput_model::{Ceiling, EndedBy, NameLookup, Repeat, ShardFacts, ShardPart, SystemFacts};
use serde::{Deserialize, Serialize};

/// What was run, for the head of a report.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunFacts {
    /// Version of goodput that measured.
    pub version: String,
    /// When it began (RFC 3339).
    pub started: String,
    /// How it ended.
    pub state: RunState,
    /// URL without secrets.
    pub target: String,
    /// What it took to find the target's addresses, once before the run; null in files of older
    /// versions.
    #[serde(default)]
    pub lookup: Option<NameLookup>,
    /// Model asked for.
    pub model: String,
    /// `chat` or `completions`.
    pub api: String,
    /// Whether answers were streamed.
    pub stream: bool,
    /// The workload in one line.
    pub workload: String,
    /// Seed of arrivals and prompts.
    pub seed: u64,
    /// Warm-up as planned.
    pub warmup: String,
    /// Records that were measured and lost.
    pub lost_records: u64,
    /// Records that could not be written: in this report, but not in the folder.
    pub unwritten_records: u64,
    /// Whether the log ended in a damaged frame.
    pub log_damaged: bool,
    /// What the client carries on its machine, if `goodput calibrate` has measured it.
    #[serde(default)]
    pub ceiling: Option<Ceiling>,
    /// Hash of everything that the plan sends; empty if it was not computed.
    #[serde(default)]
    pub workload_hash: String,
    /// What a reader should know about the workload.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What counted the tokens of the built-in words, in one line.
    #[serde(default)]
    pub calibration: Option<String>,
    /// Requests of sessions that were not sent because the run ended.
    #[serde(default)]
    pub cut_requests: u64,
    /// Prompt tokens that the server looked up in its prefix cache during the run and found there,
    /// by its own counters.
    #[serde(default)]
    pub cache_counters: Option<(u64, u64)>,
    /// Whether the workload had no more sessions when the run would have gone on.
    #[serde(default)]
    pub workload_ended: bool,
    /// By how much the wall clock moved against the monotonic one during the run.
    #[serde(default)]
    pub clock_step_ms: Option<f64>,
    /// When sending was stopped before its planned end, in seconds since the first instant.
    #[serde(default)]
    pub stopped_s: Option<f64>,
    /// What ended the sending; none for a killed run.
    #[serde(default)]
    pub ended_by: Option<EndedBy>,
    /// The command that began it, or the sweep or comparison that it is part of, without secrets;
    /// empty in files of older versions.
    #[serde(default)]
    pub command: String,
    /// Which of several runs of one plan this is.
    #[serde(default)]
    pub repeat: Option<Repeat>,
    /// Which of several ranks of one plan this is.
    #[serde(default)]
    pub shard: Option<ShardFacts>,
    /// The ranks whose records were merged into this one.
    #[serde(default)]
    pub shards: Vec<ShardPart>,
    /// The server's side, as far as it is known.
    #[serde(default)]
    pub system: SystemFacts,
}

impl RunFacts {
    /// Whether the run went as far as it was planned to.
    pub(crate) fn is_complete(&self) -> bool {
        self.state == RunState::Complete
    }

    /// Whether it was a point of a sweep that gave up what was in flight.
    pub(crate) fn gave_up(&self) -> bool {
        self.ended_by == Some(EndedBy::Hopeless)
    }

    /// Whether the engine was a mock of ours, in this process or another: it has no hardware.
    pub fn is_simulated(&self) -> bool {
        self.target.starts_with("mock") || self.system.fact(&["engine"]) == Some("goodput mock")
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// As planned.
    #[default]
    Complete,
    /// By the user.
    Interrupted,
    /// Not at all: the process was killed, or is still running.
    Unfinished,
}
