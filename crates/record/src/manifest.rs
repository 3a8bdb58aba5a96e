//! `manifest.json`: the circumstances of a run.

use goodput_model::{
    Ceiling, EndedBy, NameLookup, Nanos, Repeat, ShardFacts, ShardPart, SystemFacts,
};
use serde::{Deserialize, Serialize};

/// The circumstances of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// `goodput.manifest/1`
    pub schema: String,
    /// Version of goodput.
    pub version: String,
    /// What that version was built from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildFacts>,
    /// How far the run has come.
    pub state: State,
    /// When it began (RFC 3339, UTC).
    pub started: String,
    /// When its last answer came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// When sending was stopped before its planned end, in seconds since the first instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_s: Option<f64>,
    /// What ended the sending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<EndedBy>,
    /// The command that began it, or the sweep or comparison that it is part of, without secrets;
    /// empty in folders of older versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Which of several runs of one plan this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Repeat>,
    /// Which of several ranks of one plan this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardFacts>,
    /// The ranks whose records were merged into this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<ShardPart>,
    /// The machine that sent; of merged records, that of the first.
    pub host: Host,
    /// The server that answered.
    pub target: TargetFacts,
    /// How instants in the log relate to the clocks.
    pub clocks: Clocks,
    /// The same at the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks_end: Option<Clocks>,
    /// `CLOCK_MONOTONIC` at the first instant of the log, in nanoseconds; absent while the run is
    /// in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch_ns: Option<u64>,
    /// A nonce that makes the IDs of its traces unique, in hexadecimal, if requests were traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_nonce: Option<String>,
    /// What this client carries on this machine, if `goodput calibrate` has measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
    /// Records in its log when that was closed; a log with fewer was cut off later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// Records that were measured and lost because the sink or the disk could not keep up.
    #[serde(default)]
    pub lost_records: u64,
    /// What was sent.
    #[serde(default)]
    pub workload: WorkloadFacts,
    /// The server's side, as far as it is known.
    #[serde(default)]
    pub system: SystemFacts,
}

impl Manifest {
    /// The format this version writes.
    pub const SCHEMA: &'static str = "goodput.manifest/1";

    /// Unix time of an instant of the log, in nanoseconds. Without the first instant, which a run that
    /// was killed does not leave behind, that of the manifest stands in for it.
    pub fn unix_ns(&self, since_epoch: Nanos) -> u64 {
        let Clocks { monotonic_ns, unix_ns } = self.clocks;
        let begun = self.epoch_ns.unwrap_or(monotonic_ns);
        let at = i128::from(unix_ns) + i128::from(begun) - i128::from(monotonic_ns)
            + i128::from(since_epoch.0);
        u64::try_from(at).unwrap_or_default()
    }

    /// By how much the wall clock moved against the monotonic one between start and end.
    pub fn clock_step_ms(&self) -> Option<f64> {
        let (start, end) = (self.clocks, self.clocks_end?);
        let moved = |from: u64, to: u64| i128::from(to) - i128::from(from);
        let wall = moved(start.unix_ns, end.unix_ns);
        let monotonic = moved(start.monotonic_ns, end.monotonic_ns);
        Some((wall - monotonic) as f64 / 1e6)
    }
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Running, or killed.
    Running,
    /// Ended as planned.
    Complete,
    /// Stopped by the user.
    Interrupted,
}

/// What a program was built from; empty if unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildFacts {
    /// The commit, abbreviated.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub commit: String,
    /// The day of the commit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub committed: String,
    /// The target triple.
    pub target: String,
    /// The Cargo features that it has.
    pub features: Vec<String>,
}

/// The machine that sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Its name, if it is one of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Operating system and kernel.
    pub system: String,
    /// Processor.
    pub cpu: String,
    /// Processors available to the process.
    pub cpus: u64,
    /// Open files allowed.
    pub fd_limit: u64,
    /// CPU limit of the container, in processors; none means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_quota: Option<f64>,
}

/// What was learned about the server before the run.
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
    /// What it took to find its addresses; absent from folders of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookup: Option<NameLookup>,
}

/// What was learned about the workload before the run and at its end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkloadFacts {
    /// Hash of everything that the plan sends; the same on every machine. Empty if it was not
    /// computed.
    pub hash: String,
    /// What a reader should know: entries left out, prompts that repeat, lengths that were cut.
    pub notes: Vec<String>,
    /// What counted the tokens of the built-in words, and the result, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<String>,
    /// Requests of unfinished sessions that were not sent because the run ended.
    pub cut_requests: u64,
    /// Prompt tokens that the server looked up in its prefix cache during the run and found there,
    /// by its own counters.
    #[serde(default)]
    pub cache_counters: Option<(u64, u64)>,
    /// Whether the workload ended before the run.
    #[serde(default)]
    pub ended_early: bool,
}

/// Both clocks at one instant, to align the log with other logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    /// `CLOCK_MONOTONIC` when the manifest was written, in nanoseconds.
    pub monotonic_ns: u64,
    /// Unix time at the same instant, in nanoseconds.
    pub unix_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_manifest_still_reads() {
        let old = r#"{"schema": "goodput.manifest/1", "version": "0.2.0", "state": "complete",
            "started": "2026-01-01T00:00:00Z",
            "host": {"system": "-", "cpu": "-", "cpus": 2, "fd_limit": 1024},
            "target": {"url": "-", "route": "-", "address": "-", "model": "-"},
            "clocks": {"monotonic_ns": 1, "unix_ns": 2}}"#;
        let mut manifest: Manifest = serde_json::from_str(old).unwrap();
        assert_eq!(manifest.workload, WorkloadFacts::default());
        manifest.workload = WorkloadFacts {
            hash: "ab".to_owned(),
            notes: vec!["3 entries left out".to_owned()],
            calibration: Some("tokenizer".to_owned()),
            cut_requests: 4,
            cache_counters: Some((500, 160)),
            ended_early: true,
        };
        assert_eq!((manifest.clocks_end, manifest.clock_step_ms()), (None, None));
        // 3 s on the wall, 1 s by the other; and back by as much.
        let at = |monotonic_ns, unix_ns| Clocks { monotonic_ns, unix_ns };
        manifest.clocks = at(1_000_000_000, 5_000_000_000);
        manifest.clocks_end = Some(at(2_000_000_000, 8_000_000_000));
        assert_eq!(manifest.clock_step_ms(), Some(2000.0));
        manifest.clocks_end = Some(at(2_000_000_000, 4_000_000_000));
        assert_eq!(manifest.clock_step_ms(), Some(-2000.0));
        // 5 s on the wall at 1 s of the clock, which stood at 1.5 s when the run began.
        assert_eq!(manifest.unix_ns(Nanos(7)), 5_000_000_007);
        manifest.epoch_ns = Some(1_500_000_000);
        assert_eq!(manifest.unix_ns(Nanos(7)), 5_500_000_007);
        manifest.trace_nonce = Some("ab".to_owned());
        manifest.stopped_s = Some(12.345_678);
        manifest.ended_by = Some(EndedBy::Until);
        manifest.repeat = Some(Repeat { number: 2, of: 5 });
        let text = serde_json::to_string(&manifest).unwrap();
        assert_eq!(serde_json::from_str::<Manifest>(&text).unwrap(), manifest);
    }
}
