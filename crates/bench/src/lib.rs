//! What the programs of the self-benchmark share. They are as light as their task allows and share
//! no code with the client under test.

mod folder;

pub use folder::{new_manifest, plan_for_load};

use goodput_model::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// The value after `--name`, parsed, or a default.
pub fn flag_or_default<T: std::str::FromStr>(name: &str, default: T) -> T {
    optional_flag(name).unwrap_or(default)
}

/// The value after `--name`, parsed, if there is one.
pub fn optional_flag<T: std::str::FromStr>(name: &str) -> Option<T> {
    let mut args = std::env::args();
    let found = args.find(|arg| arg == name).and_then(|_| args.next());
    found.and_then(|value| value.parse().ok())
}

/// CPU time of this process so far.
pub fn cpu_time() -> Nanos {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Makes room for many descriptors at once, before there is a second thread. In a process with
/// several threads the kernel stops each thread that opens a descriptor for some 10 ms each time the table
/// has to grow, which it does at 64 and at every doubling from 256 on.
pub fn reserve_descriptors() {
    for number in [16_384, 4_096, 1_024] {
        // The copy is closed again at once; the table keeps its size. Refused above the limit on
        // open files, so the next smaller one is tried.
        if rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), number - 1).is_ok() {
            return;
        }
    }
}
