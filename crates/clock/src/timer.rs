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
    shared: Rc<TimerShared>,
}

struct TimerShared {
    fd: AsyncFd<OwnedFd>,
    queue: RefCell<TimerQueue>,
}

#[derive(Default)]
struct TimerQueue {
    /// Earliest first; the number keeps equal instants in order of registration.
    sleepers: BinaryHeap<Reverse<(Nanos, u64)>>,
    wakers: std::collections::HashMap<u64, Waker>,
    next_id: u64,
}

impl TimerQueue {
    /// Adds a sleeper; true when it became the earliest.
    fn push(&mut self, instant: Nanos, waker: Waker) -> (u64, bool) {
        let id = self.next_id;
        self.next_id += 1;
        let earliest = self.sleepers.peek().is_none_or(|Reverse((first, _))| instant < *first);
        self.sleepers.push(Reverse((instant, id)));
        self.wakers.insert(id, waker);
        (id, earliest)
    }

    /// Removes the earliest sleeper that is due at `present`, and wakes it unless it was dropped.
    fn wake_next(&mut self, present: Nanos) -> bool {
        match self.sleepers.peek() {
            Some(&Reverse((instant, id))) if instant <= present => {
                self.sleepers.pop();
                if let Some(waker) = self.wakers.remove(&id) {
                    waker.wake();
                }
                true
            }
            _ => false,
        }
    }
}

impl Timer {
    /// Must be called inside a current-thread runtime with a local task set.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let fd = register_fd(fd)?;
        let shared = Rc::new(TimerShared { fd, queue: RefCell::default() });
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
fn register_fd(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open for as long as it lives, always names the same descriptor, and
    // is owned by the `AsyncFd` from here on; nothing hands it out.
    unsafe { AsyncFd::register(fd) }.map_err(io::Error::from)
}

impl TimerShared {
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
        while queue.wake_next(present) {}
        if let Some(&Reverse((instant, _))) = queue.sleepers.peek() {
            self.arm(instant);
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
        let (id, earliest) = self.queue.borrow_mut().push(instant, waker.clone());
        if earliest {
            self.arm(instant);
        }
        id
    }
}

/// A pending sleep.
pub struct Sleep {
    shared: Rc<TimerShared>,
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
    use std::sync::Arc;
    use std::sync::Mutex;
    use std::task::Wake;

    use super::*;

    /// Writes its name down when it is woken.
    struct Named(u64, Arc<Mutex<Vec<u64>>>);

    impl Wake for Named {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }

    /// On instants that the test chooses: what a busy machine does between two of them is not asked.
    #[test]
    fn sleepers_are_due_in_order_and_never_early() {
        let woken = Arc::new(Mutex::new(Vec::new()));
        let mut queue = TimerQueue::default();
        let earliest: Vec<bool> = [70u64, 20, 50, 20, 0]
            .into_iter()
            .zip(1..)
            .map(|(ms, name)| {
                let waker = Waker::from(Arc::new(Named(name, Arc::clone(&woken))));
                queue.push(Nanos::from_millis(ms), waker).1
            })
            .collect();
        assert_eq!(earliest, [true, true, false, false, true]);
        for (present, expected) in
            [(0, &[5][..]), (19, &[5]), (20, &[5, 2, 4]), (69, &[5, 2, 4, 3])]
        {
            while queue.wake_next(Nanos::from_millis(present)) {}
            assert_eq!(*woken.lock().unwrap(), expected, "at {present} ms");
        }
        queue.wakers.clear();
        assert!(queue.wake_next(Nanos::from_millis(70)));
        assert!(!queue.wake_next(Nanos::from_millis(99)));
        assert_eq!(woken.lock().unwrap().len(), 4, "a sleeper that was dropped is not woken");
    }

    #[test]
    fn every_sleeper_wakes_after_its_instant() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let woken = Rc::new(RefCell::new(Vec::new()));
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let timer = Timer::new().unwrap();
            let begin = now();
            let tasks: Vec<_> = [7u64, 2, 5, 2, 0]
                .into_iter()
                .map(|ms| {
                    let (timer, woken) = (timer.clone(), Rc::clone(&woken));
                    tokio::task::spawn_local(async move {
                        let due = begin + Nanos::from_millis(ms);
                        timer.sleep_until(due).await;
                        assert!(now() >= due);
                        woken.borrow_mut().push(ms);
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
        woken.borrow_mut().sort_unstable();
        assert_eq!(*woken.borrow(), [0, 2, 2, 5, 7]);
    }
}
