//! Tests that look at time.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use goodput_clock::{now, pause};
use goodput_model::Nanos;

/// One at a time.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a thread that does nothing but wake up may be late by on a machine that is ours.
const QUIET: Nanos = Nanos::from_millis(2);
const TRIES: usize = 4;

/// A test whose bounds hold on a machine that nothing else holds up. It runs alone.
pub(crate) fn timed(test: impl Fn()) {
    let _alone = alone();
    undisturbed(test);
}

/// The same beside others. What is wrong fails every time; a failure while a thread that only sleeps
/// was woken late is looked at again.
#[expect(clippy::print_stderr, reason = "who reads the test's output should know")]
pub(crate) fn undisturbed(test: impl Fn()) {
    for last in (0..TRIES).map(|tried| tried + 1 == TRIES) {
        let (outcome, late) = watched(&test);
        match outcome {
            Ok(()) => return,
            Err(failure) if last || late <= QUIET => resume_unwind(failure),
            Err(_) => eprintln!("again: this machine was held up for {late:?}"),
        }
    }
}

/// What came of it, and how late a sleeping thread was woken meanwhile.
fn watched(test: &impl Fn()) -> (std::thread::Result<()>, Nanos) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let (step, mut late) = (Nanos::from_millis(1), Nanos::ZERO);
            while !over.load(Ordering::Relaxed) {
                let due = now() + step;
                pause(step);
                late = late.max(now() - due);
            }
            late
        });
        let outcome = catch_unwind(AssertUnwindSafe(test));
        over.store(true, Ordering::Relaxed);
        (outcome, watch.join().unwrap())
    })
}
