//! [`Timer`]: exact sleeping for many tasks of one current-thread runtime, on a single timerfd.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use goodput_model::Nanos;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::now;

/// Wakes tasks at absolute instants. Cheap to clone; stays on its thread.
#[derive(Clone)]
pub struct Timer {
    shared: Rc<Shared>,
}

struct Shared {
    fd: AsyncFd<OwnedFd>,
    queue: RefCell<Queue>,
}

#[derive(Default)]
struct Queue {
    /// Earliest first; the number keeps equal instants in order of registration.
    sleepers: BinaryHeap<Reverse<(Nanos, u64)>>,
    wakers: std::collections::HashMap<u64, Waker>,
    next_id: u64,
}

impl Timer {
    /// Must be called inside a current-thread runtime with a local task set.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let fd = register(fd)?;
        let shared = Rc::new(Shared { fd, queue: RefCell::default() });
        let weak = Rc::downgrade(&shared);
        tokio::task::spawn_local(async move {
            while let Some(shared) = weak.upgrade() {
                if shared.wait_for_expiry().await.is_err() {
                    return;
                }
                shared.wake_due();
            }
        });
        Ok(Self { shared })
    }

    /// Sleeps until `instant`; returns at once when it has passed.
    pub fn sleep_until(&self, instant: Nanos) -> Sleep {
        Sleep { shared: Rc::clone(&self.shared), instant, id: None }
    }
}

#[expect(unsafe_code, reason = "tokio asks for a promise about the descriptor, given below")]
fn register(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open for as long as it lives, always names the same descriptor, and
    // is owned by the `AsyncFd` from here on; nothing hands it out.
    unsafe { AsyncFd::register(fd) }.map_err(io::Error::from)
}

impl Shared {
    async fn wait_for_expiry(&self) -> io::Result<()> {
        let mut ready = self.fd.readable().await?;
        let mut expirations = [0u8; 8];
        let _ = ready.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut expirations)?));
        ready.clear_ready();
        Ok(())
    }

    fn wake_due(&self) {
        let mut queue = self.queue.borrow_mut();
        let present = now();
        while let Some(&Reverse((instant, id))) = queue.sleepers.peek() {
            if instant > present {
                self.arm(instant);
                return;
            }
            queue.sleepers.pop();
            if let Some(waker) = queue.wakers.remove(&id) {
                waker.wake();
            }
        }
    }

    fn arm(&self, instant: Nanos) {
        let value = Timespec {
            tv_sec: (instant.0 / 1_000_000_000).cast_signed(),
            // Zero would disarm the timer; instant 0 is long past and never armed.
            tv_nsec: (instant.0 % 1_000_000_000).cast_signed(),
        };
        let interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let spec = Itimerspec { it_interval: interval, it_value: value };
        // A valid descriptor with a valid absolute time cannot be refused.
        let _ = timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::ABSTIME, &spec);
    }

    fn register(&self, instant: Nanos, waker: &Waker) -> u64 {
        let mut queue = self.queue.borrow_mut();
        let id = queue.next_id;
        queue.next_id += 1;
        let earliest = queue.sleepers.peek().is_none_or(|Reverse((first, _))| instant < *first);
        queue.sleepers.push(Reverse((instant, id)));
        queue.wakers.insert(id, waker.clone());
        if earliest {
            self.arm(instant);
        }
        id
    }
}

/// A pending sleep.
pub struct Sleep {
    shared: Rc<Shared>,
    instant: Nanos,
    id: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if now() >= self.instant {
            return Poll::Ready(());
        }
        match self.id {
            Some(id) => {
                let mut queue = self.shared.queue.borrow_mut();
                queue.wakers.insert(id, cx.waker().clone());
            }
            None => self.id = Some(self.shared.register(self.instant, cx.waker())),
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.shared.queue.borrow_mut().wakers.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleepers_wake_in_order_and_never_early() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let order = Rc::new(RefCell::new(Vec::new()));
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let timer = Timer::new().unwrap();
            let begin = now();
            let tasks: Vec<_> = [7u64, 2, 5, 2, 0]
                .into_iter()
                .map(|ms| {
                    let (timer, order) = (timer.clone(), Rc::clone(&order));
                    tokio::task::spawn_local(async move {
                        let due = begin + Nanos::from_millis(ms);
                        timer.sleep_until(due).await;
                        assert!(now() >= due);
                        order.borrow_mut().push(ms);
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
        assert_eq!(*order.borrow(), [0, 2, 2, 5, 7]);
    }
}
