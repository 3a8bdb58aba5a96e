//! What the programs of the self-benchmark share. They are as light as their task allows and share
//! no code with the client under test.

use goodput_model::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// The value after `--name`, parsed, or a default.
pub fn flag<T: std::str::FromStr>(name: &str, default: T) -> T {
    optional(name).unwrap_or(default)
}

/// The value after `--name`, parsed, if there is one.
pub fn optional<T: std::str::FromStr>(name: &str) -> Option<T> {
    let mut args = std::env::args();
    let found = args.find(|arg| arg == name).and_then(|_| args.next());
    found.and_then(|value| value.parse().ok())
}

/// CPU time of this process so far.
pub fn cpu_time() -> Nanos {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
