//! Waiting for an instant on a thread of its own.

use goodput_model::Nanos;
use rustix::thread::{CpuSet, clock_nanosleep_absolute, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, Timespec};

use crate::now;

/// Longest single sleep, so that a stop request is seen in time.
const SLICE: Nanos = Nanos::from_millis(50);

/// Keeps the current thread on one processor.
pub fn pin_to(cpu: usize) -> std::io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

/// The processors that this process may use.
pub fn allowed_cpus() -> Vec<usize> {
    sched_getaffinity(None).map_or_else(
        |_| Vec::new(),
        |set| (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect(),
    )
}

/// Sleeps until `instant`: returns as soon after it as the system wakes this thread, never before
/// it, or early with `false` once `stopped` says so.
pub fn sleep_until(instant: Nanos, stopped: impl Fn() -> bool) -> bool {
    loop {
        if stopped() {
            return false;
        }
        let present = now();
        if present >= instant {
            return true;
        }
        sleep_kernel((present + SLICE).min(instant));
    }
}

/// Sleeps for about this long. For control loops only.
pub fn pause(length: Nanos) {
    sleep_kernel(now() + length);
}

fn sleep_kernel(instant: Nanos) {
    let time = Timespec {
        tv_sec: (instant.0 / 1_000_000_000).cast_signed(),
        tv_nsec: (instant.0 % 1_000_000_000).cast_signed(),
    };
    // An interrupting signal ends the sleep early; the caller looks at the clock again anyway.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_returns_before_the_instant() {
        for ahead_us in [0, 10, 200, 3_000] {
            let instant = now() + Nanos::from_micros(ahead_us);
            assert!(sleep_until(instant, || false));
            assert!(now() >= instant);
        }
    }

    #[test]
    fn a_stop_ends_a_long_wait() {
        let instant = now() + Nanos::from_millis(3_600_000);
        let begin = now();
        assert!(!sleep_until(instant, || now() - begin > Nanos::from_millis(20)));
    }
}
