//! What the self-benchmark measures against: a server whose every write is on record (`truth`), and
//! a client that only reads and counts (`floor`). Both are single loops on raw epoll, share no code
//! with the client under test, and are as light as their task allows.

mod numbers;
mod poller;

pub use numbers::{Distribution, exponential_distance};
pub use poller::{Poller, cpu_time};

/// The value after `--name`, parsed, or a default.
pub fn flag<T: std::str::FromStr>(name: &str, default: T) -> T {
    let mut args = std::env::args();
    let found = args.find(|arg| arg == name).and_then(|_| args.next());
    found.and_then(|value| value.parse().ok()).unwrap_or(default)
}
