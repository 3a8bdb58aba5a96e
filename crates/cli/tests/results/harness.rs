//! What these tests take for a failure.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use goodput_model::{CaveatCode, Nanos};

use crate::support::{Outcome, Session, Try, about_time, retried};

fn is_refused(assertion: impl Fn()) -> bool {
    catch_unwind(AssertUnwindSafe(assertion)).is_err()
}

#[test]
fn a_run_that_is_void_for_another_reason_is_refused() {
    let session = Session::new();
    let load = ["run", "mock:ttft=5ms,fault=500:75%", "--concurrency", "2", "--num-requests", "60"];
    let quiet = ["--max-tokens", "2", "--no-probe", "--quiet", "--out", "out"];
    let outcome = session.run(&[&load[..], &quiet].concat());
    assert_eq!(outcome.code, Some(5), "{}", outcome.stderr);
    assert!(outcome.void_by.contains(&CaveatCode::Errors), "{:?}", outcome.void_by);
    assert!(is_refused(|| outcome.assert_finished("most fail")));
    outcome.assert_finished_despite(&[CaveatCode::Errors], "most fail");
}

#[test]
fn only_what_a_busy_machine_does_makes_a_run_void() {
    let ended = |code, void_by: &[CaveatCode]| Outcome {
        code: Some(code),
        stdout: String::new(),
        stderr: String::new(),
        void_by: void_by.to_vec(),
        is_undecided: false,
    };
    let (late, lost) = (CaveatCode::ScheduleSlip, CaveatCode::RecordsLost);
    ended(0, &[]).assert_finished("");
    ended(5, &[late]).assert_finished("");
    for (code, void_by) in [(5, &[late, lost][..]), (5, &[lost]), (5, &[]), (4, &[]), (3, &[late])]
    {
        let outcome = ended(code, void_by);
        assert!(is_refused(|| outcome.assert_finished("")), "{code} {void_by:?}");
    }
}

/// How often a test is tried that fails like this on a machine that was held up so long.
fn tries(late: Nanos, test: impl Fn()) -> u32 {
    let tried = Cell::new(0);
    let watched = |test: &dyn Fn()| -> Try {
        tried.set(tried.get() + 1);
        (catch_unwind(AssertUnwindSafe(test)), late)
    };
    assert!(is_refused(|| retried(&test, watched, |_| {})));
    tried.get()
}

#[test]
fn counts_are_never_looked_at_again() {
    let (quiet, busy) = (Nanos::from_millis(1), Nanos::from_millis(50));
    let about_counts = || {
        about_time(|| {});
        panic!("a count")
    };
    assert_eq!(tries(busy, about_counts), 1);
    assert_eq!(tries(quiet, || about_time(|| panic!("a time"))), 1);
    assert_eq!(tries(busy, || about_time(|| panic!("a time"))), 4);
}
