//! Time itself: the one monotonic clock of a run, and two ways to wait for an instant exactly.
//!
//! - [`sleep_until`] on a thread: as exact as the system wakes it.
//! - [`Timer`] on a current-thread runtime: one timerfd for any number of sleepers. Used where many
//!   tasks wait (think times, the simulated engine).
//!
//! The runtime's own timer is not used for either: its grain is one millisecond and it rounds up. It
//! is good enough for limits: [`run_until`] ends work that may keep the runtime busy.
//! Never the wall clock: an NTP step would move a whole schedule.

mod limit;
mod priority;
mod timer;
mod wait;

pub use limit::{run_until, wait_until};
pub use priority::{lower_priority, request_prompt_wakeups};
pub use timer::{Sleep, Timer};
pub use wait::{allowed_cpus, pause, pin_to, sleep_until};

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use goodput_model::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// The present instant on `CLOCK_MONOTONIC`.
pub fn now() -> Nanos {
    read_clock(ClockId::Monotonic)
}

/// The time of day in RFC 3339, to the second. A machine that believes in a year before 1970 or after 9999
/// gets the nearest one that can be written.
pub fn time_of_day() -> String {
    to_rfc3339(SystemTime::now())
}

fn to_rfc3339(time: SystemTime) -> String {
    let last = UNIX_EPOCH + Duration::from_secs(253_402_300_799);
    humantime::format_rfc3339_seconds(time.clamp(UNIX_EPOCH, last)).to_string()
}

/// The present on both clocks: `CLOCK_MONOTONIC`, and Unix time, in which the kernel stamps packets.
pub fn now_and_unix() -> (Nanos, Nanos) {
    let look = || {
        let both = (now(), read_clock(ClockId::Realtime));
        (now() - both.0, both)
    };
    let mut best = look();
    // A thread that loses its core between the readings would see clocks that disagree.
    for _ in 0..3 {
        if best.0 < TOGETHER {
            break;
        }
        best = best.min(look());
    }
    best.1
}

/// Two readings of the clocks within this time are taken for one instant.
const TOGETHER: Nanos = Nanos::from_micros(1);

fn read_clock(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_that_cannot_be_written_is_the_nearest_that_can() {
        let at = |seconds| to_rfc3339(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(1_000_000_000), "2001-09-09T01:46:40Z");
        assert_eq!(to_rfc3339(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00Z");
        assert_eq!(at(253_402_300_800), "9999-12-31T23:59:59Z");
    }
}
