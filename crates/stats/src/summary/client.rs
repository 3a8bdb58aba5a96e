//! How the client fared, in numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::metric::Quick;

/// How the client fared: METHOD 3.9.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ClientSummary {
    /// How far the record of its health goes, in seconds since the first instant.
    pub observed_until_s: f64,
    /// Who says when bytes came: `kernel`, `read`, or `mixed`.
    pub stamps: String,
    /// How long bytes waited in the kernel for our read.
    pub lag_ms: Quick,
    /// How late the pacer woke.
    pub pacer_lag_ms: Quick,
    /// How late workers' loops were called.
    pub loop_lag_ms: Quick,
    /// Times in which the client stood still.
    pub stalls: Stalls,
    /// Threads by name.
    pub threads: BTreeMap<String, ThreadSummary>,
    /// Time for which the container's CPU limit stopped us; none without a limit.
    pub throttled_ms: Option<f64>,
    /// Periods in which it did.
    pub throttled_periods: Option<u64>,
    /// Processors that we may use.
    pub cpus: u32,
    /// Share of their time that the hypervisor gave to others.
    pub steal_share: Option<f64>,
    /// Share of time in which the processors that we may use had nothing to do.
    pub idle_share: Option<f64>,
    /// Share of the time of those processors that we used ourselves.
    pub used_share: Option<f64>,
    /// Most files and sockets open.
    pub open_files_max: Option<u64>,
    /// What TCP had to do.
    pub tcp: TcpSummary,
    /// Little's law, as a check of our own accounts; none where the window is a makespan.
    pub littles_law: Option<LittlesLaw>,
    /// The instrument's error on a server of known timing; none with `--canary off`.
    pub canary: Option<CanarySummary>,
    /// Streamed events per second inside the window.
    pub events_per_s: Option<f64>,
    /// Memory and network of the machine; none where the system does not tell.
    #[serde(default)]
    pub host: Option<HostSummary>,
}

/// Memory and network of the machine that measures, over the window. A gigabyte is 10⁹ bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostSummary {
    /// Memory.
    pub memory_total_gb: Option<f64>,
    /// The least that was to be had.
    pub memory_available_min_gb: Option<f64>,
    /// Megabytes per second over all interfaces but loopback, those of other programs included.
    pub network_received_mb_s: Option<f64>,
    /// Likewise.
    pub network_sent_mb_s: Option<f64>,
}

/// Times in which a worker was not called.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Stalls {
    /// How many, on the worker that had most.
    pub count: u64,
    /// Their sum, on the worker where it was largest.
    pub total_ms: f64,
    /// The longest of all.
    pub longest_ms: Option<f64>,
    /// When that began, in seconds since the first instant.
    pub longest_at_s: Option<f64>,
    /// Measured requests that were due or had tokens in a stall; the latencies that rest on such
    /// instants are cut.
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
    /// Times per second that it lost its processor against its will.
    pub preempted_per_s: f64,
}

/// What TCP had to do for the measured requests.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct TcpSummary {
    /// Connections opened for a request.
    pub opened: u64,
    /// Requests that found a connection open.
    pub reused: u64,
    /// Segments of ours sent again.
    pub retransmits: u64,
    /// Segments of the server that came out of order.
    pub out_of_order: u64,
    /// Time in which we could not send because the server did not read, over all requests.
    pub window_limited_ms: f64,
    /// The shortest round trip seen.
    pub min_rtt_ms: Option<f64>,
}

/// L = λR, each side counted for itself.
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
    /// By how much they may: requests that straddle the window's ends.
    pub limit: f64,
}

/// The instrument's error on a server of known timing, without sign.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CanarySummary {
    /// Number of answers.
    pub n: u64,
    /// Requests to it without one.
    pub unanswered: u64,
    /// Error of TTFT from schedule.
    pub ttft_error_ms: Quick,
    /// Its p99, or the third largest of few: what the verdict looks at.
    pub ttft_error_beyond_chance_ms: Option<f64>,
    /// Error of the gaps between tokens.
    pub itl_error_ms: Quick,
}
