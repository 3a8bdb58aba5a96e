//! `manifest.json`: the circumstances of a run.

use goodput_model::Ceiling;
use serde::{Deserialize, Serialize};

/// The circumstances of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// `goodput.manifest/1`
    pub schema: String,
    /// Version of goodput.
    pub version: String,
    /// How far the run has come.
    pub state: State,
    /// When it began (RFC 3339, UTC).
    pub started: String,
    /// When its last answer came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The machine that sent.
    pub host: Host,
    /// The server that answered.
    pub target: TargetFacts,
    /// How instants in the log relate to the clocks.
    pub clocks: Clocks,
    /// What this client carries on this machine, where `goodput calibrate` has found that out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
    /// Records that were measured and lost: the sink or the disk could not take them.
    #[serde(default)]
    pub lost_records: u64,
}

impl Manifest {
    /// The format this version writes.
    pub const SCHEMA: &'static str = "goodput.manifest/1";
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Going on, or killed.
    Running,
    /// Ended as planned.
    Complete,
    /// Stopped by the user.
    Interrupted,
}

/// The machine that sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Operating system and kernel.
    pub system: String,
    /// Processor.
    pub cpu: String,
    /// Processors available to the process.
    pub cpus: u64,
    /// Open files allowed.
    pub fd_limit: u64,
    /// Processors' worth of time that the container allows; none is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_quota: Option<f64>,
}

/// What was found out about the server before the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetFacts {
    /// URL without secrets.
    pub url: String,
    /// Path of the requests.
    pub route: String,
    /// Address in use.
    pub address: String,
    /// Model asked for.
    pub model: String,
    /// How long the readiness check took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_ms: Option<f64>,
}

/// Both clocks at one instant, to align the log with other logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    /// `CLOCK_MONOTONIC` when the manifest was written, in nanoseconds.
    pub monotonic_ns: u64,
    /// Unix time at the same instant, in nanoseconds.
    pub unix_ns: u64,
}
