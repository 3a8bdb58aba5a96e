//! *The other side*: what can be seen of the machine that measures, and of the server's own counters.
//!
//! The machine is read from `/proc` and the control groups. What a system does not show is absent
//! or zero, never an error: an observer must not end a run.

mod cgroup;
mod dialect;
mod follow;
mod gpu;
mod host;
mod queue;
mod text;

pub use cgroup::cpu_quota;
pub use dialect::{MappedSignal, MetricsMap};
pub use follow::EndpointFollower;
pub use gpu::{GpuExporter, Nvml};
pub use host::HostSampler;
pub use queue::QueueDepth;
pub use text::{ParsedPage, ParsedSeries};
