//! A case for everything that was asked to hold, in XML that is well formed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use goodput_campaign::sweep::{GoodputState, Miss, PointStanding, Sweeps, Unclear};
use goodput_model::{Caveat, CaveatCode, Severity, Verdict};
use serde_json::json;

use crate::compare::tests::junit::{elements, values};
use crate::sweep::tests::summary as swept;
use crate::tests::markdown::{EVIL, run};
use crate::{run_junit, sweep_junit, sweeps_junit};

#[test]
fn a_case_for_each_term() {
    let page = run_junit(&run(|_| {}));
    let names = ["p99 ttft &lt; 500ms", "p50 tpot &lt; 50ms", "p99 e2e &lt; 2s", "attainment"];
    assert_eq!(values(&page, "testcase", "name"), names);
    let message = "p99 ttft &lt; 500ms: 800.0 ms (no interval)";
    assert_eq!(values(&page, "failure", "message"), [message]);
    assert_eq!(values(&page, "error", "type"), ["undecided"; 2]);
    let counts = ["tests", "failures", "errors", "time"];
    let counts = counts.map(|name| values(&page, "testsuites", name).concat());
    assert_eq!(counts, ["4", "1", "2", "2.000"]);
    assert_eq!(values(&page, "testsuite", "timestamp"), ["2026-01-01T00:00:00"]);
    // Two terms of one text are two cases.
    let twice = run_junit(&run(|summary| {
        summary["slo"]["terms"][1] = summary["slo"]["terms"][0].clone();
    }));
    assert_eq!(values(&twice, "testcase", "name")[1], "p99 ttft &lt; 500ms (2)");
}

/// A file without a case, or one whose cases all pass, would be taken for good news.
#[test]
fn void_runs_and_runs_without_a_promise() {
    let void = run_junit(&run(|summary| {
        summary["verdict"] = json!("void");
        summary["caveats"] =
            json!([{"code": "nothing_measured", "severity": "void", "message": "no <answers>"}]);
    }));
    assert_eq!(values(&void, "error", "type"), ["void"; 5]);
    assert_eq!(values(&void, "error", "message")[4], "void: no &lt;answers&gt;");
    let plain = run_junit(&run(|summary| summary["slo"] = json!(null)));
    assert_eq!(values(&plain, "testsuites", "tests"), ["1"]);
    assert_eq!(values(&plain, "testsuites", "errors"), ["0"]);
}

#[test]
fn a_case_for_each_point() {
    let mut sweep = swept();
    let page = sweep_junit(&sweep);
    // The answer, the long run, and ten points.
    assert_eq!(values(&page, "testcase", "name").len(), 12);
    assert_eq!(values(&page, "testcase", "name")[6], "point 5 · 25.0 req/s · grid");
    // Those above the answer miss the SLO, which is what the sweep looked for.
    assert_eq!(values(&page, "testsuites", "failures"), ["0"]);
    assert!(page.contains("missed: queue grows; above the confirmed load"), "{page}");
    sweep.points[3].standing = PointStanding::Missed(Miss::Errors);
    sweep.points[5].standing = PointStanding::Unclear(Unclear::Client);
    let page = sweep_junit(&sweep);
    assert_eq!(values(&page, "failure", "message"), ["missed: errors"]);
    assert_eq!(values(&page, "error", "message"), ["unclear: the client was the limit"]);
    let goodput = sweep.goodput.as_mut().unwrap();
    (goodput.state, goodput.confirmed) = (GoodputState::Unreachable, None);
    let page = sweep_junit(&sweep);
    assert_eq!(values(&page, "failure", "type")[0], "unreachable");
    // Without an answer every miss counts: 30, 25 and 23.1 too.
    assert_eq!(values(&page, "testsuites", "failures"), ["5"]);
    sweep.verdict = Verdict::Void;
    sweep.caveats = vec![Caveat::new(CaveatCode::Drifting, Severity::Void, "no")];
    assert_eq!(values(&sweep_junit(&sweep), "error", "type"), ["void"; 13]);
}

#[test]
fn everything_is_well_formed() {
    let mut evil = swept();
    for text in [&mut evil.sweep.target, &mut evil.sweep.workload, &mut evil.sweep.started] {
        EVIL.clone_into(text);
    }
    evil.points[2].standing = PointStanding::Missed(Miss::Term(EVIL.to_owned()));
    elements(&sweep_junit(&evil)).unwrap();
    let evil_run = run_junit(&run(|summary| {
        summary["run"]["target"] = json!(EVIL);
        summary["slo"]["terms"][0]["term"] = json!(EVIL);
    }));
    elements(&evil_run).unwrap();
    let configuration = |failed: Option<&str>| goodput_campaign::sweep::Configuration {
        values: [("batch".to_owned(), EVIL.to_owned())].into(),
        folder: "x".to_owned(),
        start: None,
        failed: failed.map(str::to_owned),
        sweep: failed.is_none().then(swept),
    };
    let sweeps = Sweeps {
        schema: Sweeps::SCHEMA.to_owned(),
        verdict: Verdict::Valid,
        configurations: vec![configuration(None), configuration(Some(EVIL))],
        best: Some(0),
        because: EVIL.to_owned(),
    };
    let page = sweeps_junit(&sweeps);
    assert_eq!(values(&page, "testsuites", "tests"), ["13"]);
    assert_eq!(values(&page, "error", "type"), ["failed"]);
    crate::tests::markdown::check(&crate::sweeps_markdown(&sweeps));
}
