//! Epoll with a deadline in nanoseconds, and the process's own CPU time.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use goodput_clock::now;
use goodput_model::Nanos;
use rustix::event::{Timespec, epoll};
use rustix::time::{ClockId, clock_gettime};

/// How long before a deadline the wait ends and the spin begins: the kernel rounds the wait to
/// milliseconds, and whoever sets deadlines here has a core of its own.
const SPIN: Nanos = Nanos::from_micros(1_100);

/// Readiness of sockets, by number.
pub struct Poller {
    fd: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Poller {
    /// An empty set.
    pub fn new() -> io::Result<Self> {
        let fd = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { fd, events: Vec::with_capacity(1024) })
    }

    /// Watches a socket for reading.
    pub fn add(&self, socket: impl AsFd, number: u64) -> io::Result<()> {
        epoll::add(&self.fd, socket, epoll::EventData::new_u64(number), epoll::EventFlags::IN)?;
        Ok(())
    }

    /// Waits until something is readable or `deadline` has come (spinning the last bit); the
    /// numbers of the readable sockets.
    pub fn wait(&mut self, deadline: Option<Nanos>) -> io::Result<Vec<u64>> {
        let left = deadline.map(|deadline| deadline - now());
        let sleep = left.map(|left| left - SPIN);
        let timeout = sleep.map(|sleep| Timespec {
            tv_sec: (sleep.0 / 1_000_000_000).cast_signed(),
            tv_nsec: (sleep.0 % 1_000_000_000).cast_signed(),
        });
        self.events.clear();
        match epoll::wait(
            &self.fd,
            rustix::buffer::spare_capacity(&mut self.events),
            timeout.as_ref(),
        ) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if self.events.is_empty()
            && let Some(deadline) = deadline
        {
            while now() < deadline && deadline - now() <= SPIN {
                std::hint::spin_loop();
            }
        }
        Ok(self.events.iter().map(|event| event.data.u64()).collect())
    }
}

/// CPU time of this process so far.
pub fn cpu_time() -> Nanos {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
