//! Time itself: the one monotonic clock of a run, and two ways to wait for an instant exactly.
//!
//! - [`wait_until`] on a thread: sleep to shortly before the instant, then spin. Used by the pacer.
//! - [`Timer`] on a current-thread runtime: one timerfd for any number of sleepers. Used where many
//!   tasks wait (think times, the simulated engine).
//!
//! The runtime's own timer is not used for either: its grain is one millisecond and it rounds up.
//! Never the wall clock: an NTP step would move a whole schedule.

mod timer;
mod wait;

pub use timer::{Sleep, Timer};
pub use wait::{pause, use_fine_timer_slack, wait_until};

use goodput_model::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// The present instant on `CLOCK_MONOTONIC`.
pub fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
