//! Stopping a run: by Ctrl-C once, twice, and by `kill -9`.

use std::io::Read;
use std::time::Duration;

use crate::support::{Session, about_time, at, number, signal, timed};
use goodput_clock::{now, pause};
use goodput_model::Nanos;
use serde_json::Value;

/// Waits until the log has grown past its mark.
fn wait_for_records(session: &Session, bytes: u64) {
    let deadline = now() + Nanos::from_millis(20_000);
    let size = || std::fs::metadata(session.path("out/requests.log")).map_or(0, |m| m.len());
    while size() < bytes {
        assert!(now() < deadline, "no records after 20 s");
        pause(Nanos::from_millis(20));
    }
}

fn summary(session: &Session) -> Value {
    let text = std::fs::read_to_string(session.path("out/summary.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

const LONG: [&str; 10] =
    ["--rate", "50", "--duration", "60s", "--warmup", "0s", "--max-tokens", "20", "--out", "out"];

#[test]
fn ctrl_c_drains_and_reports() {
    let session = Session::new();
    let mut child = session.spawn(&[&["run", "-v", "mock:ttft=50ms,itl=10ms"], &LONG[..]].concat());
    wait_for_records(&session, 2000);
    signal(&child, "-INT");
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    assert!(stdout.contains("stopped early"), "{stdout}");
    let summary = summary(&session);
    assert_eq!(at(&summary, "run.state"), "interrupted");
    // Drained: what was sent was answered.
    assert_eq!(number(&summary, "requests.failed"), 0.0);
    assert!(number(&summary, "requests.ok") > 5.0);
}

#[test]
fn a_second_ctrl_c_stops_at_once_and_still_reports() {
    timed(|| {
        let session = Session::new();
        // Answers of 20 s: waiting for them would take far longer than the test allows.
        let mut child = session.spawn(&[&["run", "mock:ttft=10ms,itl=1s"], &LONG[..]].concat());
        let mut quick =
            session.spawn(&["run", "mock", "--rate", "1", "--num-requests", "1", "--out", "other"]);
        quick.wait().unwrap();
        signal(&child, "-INT");
        pause(Nanos::from_millis(300));
        signal(&child, "-INT");
        let begin = now();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        about_time(|| assert!(now() - begin < Nanos::from(Duration::from_secs(10))));
        let summary = summary(&session);
        let cut_off = number(&summary, "requests.errors.cut_off");
        about_time(|| assert!(cut_off >= 1.0, "{summary}"));
        assert_eq!(cut_off, number(&summary, "requests.failed"), "{summary}");
        // Their latency is known to be longer, not unknown.
        about_time(|| assert_eq!(number(&summary, "metrics.e2e.censored"), cut_off));
    });
}

#[test]
fn the_drain_limit_cuts_off_what_never_ends() {
    let session = Session::new();
    let (outcome, summary) = session.measure(
        "mock:ttft=10ms,itl=10s",
        &["--rate", "100", "--num-requests", "5", "--max-tokens", "9", "--drain", "500ms"],
    );
    assert_eq!(number(&summary, "requests.errors.cut_off"), 5.0);
    assert_eq!(outcome.code, Some(3), "nothing completed");
}

#[test]
fn kill_9_loses_at_most_one_second() {
    let session = Session::new();
    let target = "mock:ttft=50ms,itl=10ms";
    let mut child = session.spawn(&[&["run", target], &LONG[..]].concat());
    wait_for_records(&session, 100);
    let begin = now();
    pause(Nanos::from_millis(3_000));
    child.kill().unwrap();
    let ran = (now() - begin).as_secs();
    child.wait().unwrap();
    let report = session.run(&["report", "out", "--json"]);
    assert_eq!(report.code, Some(0), "{}", report.stderr);
    let summary: Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(at(&summary, "run.state"), "unfinished");
    // 50 requests/s for `ran` seconds, less one second and what the chance of Poisson may take.
    let expected = 50.0 * (ran - 1.0);
    let ok = number(&summary, "requests.ok");
    assert!(ok > expected - 4.0 * expected.sqrt(), "{ok} of about {expected}");
    let text = session.run(&["report", "out", "-v"]);
    assert!(text.stdout.contains("killed or still running"), "{}", text.stdout);
}
