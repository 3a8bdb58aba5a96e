//! What the client observes while it measures: about itself, and about the server.

use serde::{Deserialize, Serialize};

use crate::{GpuSample, Nanos, Scrape};

/// Everything observed since the previous sample. Instants count from the run's epoch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HealthSample {
    /// When it was taken.
    pub at: Nanos,
    /// This process and its machine.
    pub host: HostSample,
    /// Beats of the workers' loops.
    pub beats: Vec<LoopLag>,
    /// Answers of the canary.
    pub canary: Vec<CanaryReading>,
    /// What the server's pages of metrics said.
    pub scrapes: Vec<Scrape>,
    /// What GPUs said.
    pub gpus: Vec<GpuSample>,
}

/// One look at this process and its machine. Times and counts are totals since their beginning.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostSample {
    /// The threads of this process.
    pub threads: Vec<ThreadSample>,
    /// What the container's CPU limit has cost, where there is one.
    pub throttled: Option<Throttled>,
    /// Processors that this process may use.
    pub cpus: u32,
    /// Time that those had nothing to do, in all.
    pub idle: Nanos,
    /// Time that the hypervisor took from them for other machines, in all.
    pub steal: Nanos,
    /// Files and sockets open.
    pub open_files: u64,
    /// Memory of the machine, where the system tells.
    pub memory: Option<MachineMemory>,
    /// What its network carried, loopback left out, where the system tells.
    pub network: Option<Network>,
}

/// Memory of a machine, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MachineMemory {
    /// All there is.
    pub total: u64,
    /// What could be had without writing anything to disk.
    pub available: u64,
}

/// What a network carried since the machine started, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Network {
    /// Received.
    pub received: u64,
    /// Sent.
    pub sent: u64,
}

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadSample {
    /// Its name: `worker-0`, `collector`.
    pub name: String,
    /// Time on a processor.
    pub cpu: Nanos,
    /// Time ready to run, without a processor.
    pub waited: Nanos,
    /// Times that it lost its processor against its will.
    pub preempted: u64,
}

/// What a CPU limit has cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Throttled {
    /// Periods in which the whole group was stopped.
    pub periods: u64,
    /// For how long.
    pub time: Nanos,
}

/// A worker's loop wanted to be called at an instant, and was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopLag {
    /// Which worker.
    pub worker: u32,
    /// When it was to be called.
    pub due: Nanos,
    /// How late it was called.
    pub lag: Nanos,
}

/// One answer of the canary: what the client measured against what the server knows it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanaryReading {
    /// When the request was due.
    pub due: Nanos,
    /// How late it was sent, which TTFT from schedule contains.
    pub slip: Nanos,
    /// Stamp of the client minus instant of the server's write, of each token, in nanoseconds.
    pub errors_ns: Vec<i64>,
}

/// The most that the client carries with an error below a millisecond; none if something else was
/// the limit first.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Ceiling {
    /// Streamed events per second.
    pub events_per_s: Option<f64>,
    /// Requests per second.
    pub requests_per_s: Option<f64>,
}
