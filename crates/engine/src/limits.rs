//! The limit on open files, which is a limit on connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that the process needs besides connections: log, timers, terminals, the mock.
const RESERVED: u64 = 64;

/// The limit in force after raising it as far as the system allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FdLimit(pub u64);

impl FdLimit {
    /// Connections that fit below the limit.
    pub fn connections(self) -> u64 {
        self.0.saturating_sub(RESERVED)
    }
}

/// Raises the soft limit to the hard one and says what is in force.
pub fn raise_fd_limit() -> FdLimit {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if limit.current != limit.maximum && setrlimit(Resource::Nofile, raised).is_err() {
        return FdLimit(limit.current.unwrap_or(u64::MAX));
    }
    FdLimit(limit.maximum.unwrap_or(u64::MAX))
}
