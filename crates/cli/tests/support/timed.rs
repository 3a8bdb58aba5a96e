//! Tests that look at time.

use std::cell::Cell;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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

/// One line for each retry of every test binary; `cargo xtask test` counts them.
const RETRIES: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/retries.log");

thread_local! {
    static IS_ABOUT_TIME: Cell<bool> = const { Cell::new(false) };
}

/// A test whose bounds hold on a machine that nothing else holds up. It runs alone.
pub(crate) fn timed(test: impl Fn()) {
    let _alone = alone();
    undisturbed(test);
}

/// The same while other tests run. A failure inside [`about_time`] while a thread that only sleeps
/// was woken late is looked at again; every other failure, of counts above all, stands at once.
pub(crate) fn undisturbed(test: impl Fn()) {
    retried(&test, watched, count);
}

/// Assertions that a machine which is held up can break: durations, and what follows from them.
pub(crate) fn about_time<T>(assertions: impl FnOnce() -> T) -> T {
    IS_ABOUT_TIME.set(true);
    let found = assertions();
    IS_ABOUT_TIME.set(false);
    found
}

/// How one try of a test went, and how late a sleeping thread was woken during it.
pub(crate) type Try = (std::thread::Result<()>, Nanos);

/// Tries a test as often as it fails about time on a machine that was held up.
pub(crate) fn retried(test: &dyn Fn(), watched: impl Fn(&dyn Fn()) -> Try, again: impl Fn(Nanos)) {
    for is_last in (1..=TRIES).map(|tried| tried == TRIES) {
        IS_ABOUT_TIME.set(false);
        let (outcome, late) = watched(test);
        let is_about_time = IS_ABOUT_TIME.replace(false);
        match outcome {
            Ok(()) => return,
            Err(failure) if is_last || late <= QUIET || !is_about_time => resume_unwind(failure),
            Err(_) => again(late),
        }
    }
}

#[expect(clippy::print_stderr, reason = "who reads the test's output should know")]
fn count(late: Nanos) {
    static SO_FAR: AtomicUsize = AtomicUsize::new(0);
    let so_far = SO_FAR.fetch_add(1, Ordering::Relaxed) + 1;
    eprintln!("again: this machine was held up for {late:?}; retries of this binary: {so_far}");
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("{} {test}: held up for {late:?}\n", env!("CARGO_CRATE_NAME"));
    // One write to a file that is open for appending: lines of several processes stay whole.
    let file = OpenOptions::new().create(true).append(true).open(RETRIES);
    file.and_then(|mut file| file.write_all(line.as_bytes())).unwrap();
}

fn watched(test: &dyn Fn()) -> Try {
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
