//! *The other side*: what can be seen of the machine that measures, and of the server's own counters.
//!
//! The machine is read from `/proc` and the control groups. What a system does not show is absent
//! or zero, never an error: an observer must not end a run.

mod cgroup;
mod host;
mod prefix_cache;
mod queue;

pub use cgroup::cpu_quota;
pub use host::Host;
pub use prefix_cache::PrefixCache;
pub use queue::Queue;
