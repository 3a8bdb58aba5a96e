//! Epoll with a deadline in nanoseconds.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use goodput_clock::now;
use goodput_model::Nanos;
use rustix::event::{Timespec, epoll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// How long before a deadline the sleep ends and the polling begins: a sleeping thread wakes some
/// 40 µs late even on an idle machine.
const SPIN: Nanos = Nanos::from_micros(60);

/// The timer's number; callers use smaller ones.
const TIMER: u64 = u64::MAX;

/// A socket that can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadySocket {
    /// The number it was added under.
    pub number: u64,
    /// There is something to read, also the end or an error.
    pub readable: bool,
    /// It takes bytes again.
    pub writable: bool,
}

/// Readiness of sockets, by number. The deadline is a timerfd in the set, because the timeout of
/// the call itself has a grain of a millisecond on older kernels.
pub struct Poller {
    fd: OwnedFd,
    timer: OwnedFd,
    armed: Nanos,
    events: Vec<epoll::Event>,
}

impl Poller {
    /// An empty set.
    pub fn new() -> io::Result<Self> {
        let fd = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // By edges, so that an expiry needs no read.
        let edges = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&fd, &timer, epoll::EventData::new_u64(TIMER), edges)?;
        Ok(Self { fd, timer, armed: Nanos::ZERO, events: Vec::with_capacity(1024) })
    }

    /// Watches for reading.
    pub fn add(&self, socket: impl AsFd, number: u64) -> io::Result<()> {
        let data = epoll::EventData::new_u64(number);
        Ok(epoll::add(&self.fd, socket, data, epoll::EventFlags::IN)?)
    }

    /// Begins or ends to watch for writing too.
    pub fn watch_writes(&self, socket: impl AsFd, number: u64, watch: bool) -> io::Result<()> {
        let writes = if watch { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
        let data = epoll::EventData::new_u64(number);
        Ok(epoll::modify(&self.fd, socket, data, epoll::EventFlags::IN | writes)?)
    }

    /// Watches no longer.
    pub fn remove(&self, socket: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.fd, socket)?)
    }

    /// Waits until something is ready or `deadline` has come, and fills `ready`. The last bit
    /// before the deadline is spent polling, so that sockets are seen all the time.
    pub fn wait(
        &mut self,
        deadline: Option<Nanos>,
        ready: &mut Vec<ReadySocket>,
    ) -> io::Result<()> {
        ready.clear();
        loop {
            let ahead = deadline.map(|deadline| deadline - now());
            match deadline.zip(ahead) {
                None => self.collect(true, ready)?,
                Some((deadline, ahead)) if ahead > SPIN => {
                    self.arm(deadline - SPIN)?;
                    self.collect(true, ready)?;
                }
                Some(_) => self.collect(false, ready)?,
            }
            if !ready.is_empty() || deadline.is_some_and(|deadline| now() >= deadline) {
                return Ok(());
            }
        }
    }

    fn arm(&mut self, instant: Nanos) -> io::Result<()> {
        if self.armed == instant {
            return Ok(());
        }
        self.armed = instant;
        let it_value = Timespec {
            tv_sec: (instant.0 / 1_000_000_000).cast_signed(),
            tv_nsec: (instant.0 % 1_000_000_000).cast_signed(),
        };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = Itimerspec { it_interval, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting)?;
        Ok(())
    }

    fn collect(&mut self, block: bool, ready: &mut Vec<ReadySocket>) -> io::Result<()> {
        let timeout = (!block).then_some(Timespec { tv_sec: 0, tv_nsec: 0 });
        self.events.clear();
        let room = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.fd, room, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let sockets = self.events.iter().filter(|event| event.data.u64() != TIMER);
        ready.extend(sockets.map(|event| {
            let flags = event.flags;
            ReadySocket {
                number: event.data.u64(),
                readable: flags.intersects(!epoll::EventFlags::OUT),
                writable: flags.contains(epoll::EventFlags::OUT),
            }
        }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_kept_and_never_early() {
        let mut poller = Poller::new().unwrap();
        let mut ready = Vec::new();
        for ahead_us in [0, 30, 300, 2_500, 100] {
            let deadline = now() + Nanos::from_micros(ahead_us);
            poller.wait(Some(deadline), &mut ready).unwrap();
            assert!(now() >= deadline);
            assert!(ready.is_empty());
        }
    }
}
