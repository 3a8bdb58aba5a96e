//! How the client fared, in numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::metric::Quick;

/// The health of the client.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ClientSummary {
    /// How far its health samples go, in seconds since the first instant.
    pub observed_until_s: f64,
    /// What stamped the arrival of bytes: `kernel`, `read`, or `mixed`.
    pub stamps: String,
    /// How long bytes waited in the kernel to be read.
    pub lag_ms: Quick,
    /// How late workers woke up for arrivals.
    pub pacer_lag_ms: Quick,
    /// How late the workers' event loops ran.
    pub loop_lag_ms: Quick,
    /// Stalls of the client.
    pub stalls: Stalls,
    /// Threads by name.
    pub threads: BTreeMap<String, ThreadSummary>,
    /// Time for which the container's CPU limit stopped the client; none without a limit.
    pub throttled_ms: Option<f64>,
    /// Periods in which it did.
    pub throttled_periods: Option<u64>,
    /// Processors that the client may use.
    pub cpus: u32,
    /// Share of their time that the hypervisor gave to other machines.
    pub steal_share: Option<f64>,
    /// Share of time in which the processors that the client may use were idle.
    pub idle_share: Option<f64>,
    /// Share of the time of those processors that the client used itself.
    pub used_share: Option<f64>,
    /// Most files and sockets open.
    pub open_files_max: Option<u64>,
    /// What TCP had to do.
    pub tcp: TcpSummary,
    /// Little's law, as a check of the run's own figures; none if the window is a makespan.
    pub littles_law: Option<LittlesLaw>,
    /// The instrument's error on a server of known timing; none with `--canary off`.
    pub canary: Option<CanarySummary>,
    /// Streamed events per second inside the window.
    pub events_per_s: Option<f64>,
    /// Memory and network of the machine; none if the system does not report them.
    #[serde(default)]
    pub host: Option<HostSummary>,
}

/// Memory and network of the measuring machine, over the window. A gigabyte is 10⁹ bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostSummary {
    /// Memory.
    pub memory_total_gb: Option<f64>,
    /// The least that was available.
    pub memory_available_min_gb: Option<f64>,
    /// Megabytes per second over all interfaces except loopback, including other programs.
    pub network_received_mb_s: Option<f64>,
    /// Likewise.
    pub network_sent_mb_s: Option<f64>,
}

/// Stalls in which a worker did not run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Stalls {
    /// How many, on the worker with the most.
    pub count: u64,
    /// Their sum, on the worker where it was largest.
    pub total_ms: f64,
    /// The longest of all.
    pub longest_ms: Option<f64>,
    /// When that began, in seconds since the first instant.
    pub longest_at_s: Option<f64>,
    /// Measured requests scheduled or with tokens during a stall; latencies that span such instants
    /// are cut.
    pub requests: u64,
}

/// One thread, in shares of one processor over the window.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ThreadSummary {
    /// Time on a processor.
    pub cpu_share: f64,
    /// The same in its busiest second.
    pub cpu_share_max: f64,
    /// Time ready to run, without a processor.
    pub waited_share: f64,
    /// Involuntary context switches per second.
    pub preempted_per_s: f64,
}

/// What TCP had to do for the measured requests.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct TcpSummary {
    /// Connections opened for a request.
    pub opened: u64,
    /// Requests that found a connection open.
    pub reused: u64,
    /// Segments that the client retransmitted.
    pub retransmits: u64,
    /// Segments of the server that arrived out of order.
    pub out_of_order: u64,
    /// Time in which the client could not send because the server did not read, over all requests.
    pub window_limited_ms: f64,
    /// The shortest round trip seen.
    pub min_rtt_ms: Option<f64>,
}

/// L = λR, each side counted separately.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LittlesLaw {
    /// Requests in flight, averaged over the window.
    pub in_flight: f64,
    /// Arrivals per second.
    pub arrivals_per_s: f64,
    /// Mean time in flight of the measured requests, in seconds.
    pub residence_s: f64,
    /// By how much the two sides differ.
    pub residual: f64,
    /// By how much they may differ: requests that straddle the window's ends.
    pub limit: f64,
}

/// The instrument's error on a server of known timing, without sign.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CanarySummary {
    /// Number of answers.
    pub n: u64,
    /// Requests without an answer.
    pub unanswered: u64,
    /// Error of TTFT from schedule.
    pub ttft_error_ms: Quick,
    /// Its p99, or the third largest of few: the value that the verdict uses.
    pub ttft_error_beyond_chance_ms: Option<f64>,
    /// Error of the gaps between tokens.
    pub itl_error_ms: Quick,
}
