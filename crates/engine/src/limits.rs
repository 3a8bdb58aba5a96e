//! The limit on open files, which is a limit on connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that the process needs besides connections: log, timers, terminals, the mock.
const RESERVED: u64 = 64;

/// Descriptors that the kernel's table is made for: 128 KiB of memory.
const TABLE: u64 = 16_384;

/// The limit in force after raising it as far as the system allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FdLimit(pub u64);

impl FdLimit {
    /// Connections that fit below the limit.
    pub fn connections(self) -> u64 {
        self.0.saturating_sub(RESERVED)
    }
}

/// Raises the soft limit to the hard one and says what is in force. To be called while there is but
/// one thread.
pub fn raise_fd_limit() -> FdLimit {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let is_raised = limit.current == limit.maximum || setrlimit(Resource::Nofile, raised).is_ok();
    let in_force = if is_raised { limit.maximum } else { limit.current };
    let in_force = FdLimit(in_force.unwrap_or(u64::MAX));
    reserve_descriptors(in_force);
    in_force
}

/// Lets the kernel make its table of descriptors large at once. In a process with several threads it
/// blocks the thread that opens a descriptor for some 10 ms each time the table has to grow (at
/// 256, and at every doubling), and that would be in the first requests.
fn reserve_descriptors(limit: FdLimit) {
    let last = limit.0.min(TABLE).saturating_sub(1);
    let last = i32::try_from(last).unwrap_or(i32::MAX);
    // The copy is closed again at once; the table keeps its size.
    drop(rustix::io::fcntl_dupfd_cloexec(std::io::stderr(), last));
}
