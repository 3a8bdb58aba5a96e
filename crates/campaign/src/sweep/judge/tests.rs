//! Verdicts on figures that are written down here.

use goodput_stats::SloState;

use super::*;
use crate::sweep::planner::script::{figures, plan};
use crate::sweep::{Bounded, TermFigure};

fn missed(term: &str) -> PointStanding {
    PointStanding::Missed(Miss::Term(term.to_owned()))
}

/// As a run would say it of its first term.
fn said(mut figures: Figures, kept: Option<bool>, state: SloState) -> Figures {
    (figures.terms[0].kept, figures.terms[0].state) = (kept, Some(state));
    figures.slo_state = Some(state);
    figures
}

#[test]
fn a_point_is_what_its_run_says() {
    let plan = plan();
    assert_eq!(judge(&figures(10.0, 0.005), &plan), PointStanding::Met);
    assert_eq!(judge(&figures(10.0, 0.02), &plan), missed("p99 ttft < 500ms"));
    // A percentile of the completed requests is inside, but 3.3 % failed: the run calls it missed.
    let mut failing = figures(10.0, 0.033);
    failing.terms[0].value = Some(Bounded { value: 160.0, low: Some(150.0), high: Some(170.0) });
    failing.errors = vec![("http_500".to_owned(), 330)];
    failing.failed = 330;
    assert_eq!(judge(&failing, &plan), missed("p99 ttft < 500ms"));
    // Where the run is in doubt, what was measured decides.
    let doubtful = |kept| judge(&said(figures(10.0, 0.0), kept, SloState::Undecided), &plan);
    assert_eq!(doubtful(Some(true)), PointStanding::Met);
    assert_eq!(doubtful(Some(false)), missed("p99 ttft < 500ms"));
    assert_eq!(doubtful(None), PointStanding::Met);
    // Beyond doubt is beyond doubt.
    let sure = said(figures(10.0, 0.0), Some(true), SloState::Missed);
    assert_eq!(judge(&sure, &plan), missed("p99 ttft < 500ms"));
}

#[test]
fn a_refusal_is_the_servers_word_whatever_the_client_did() {
    let plan = plan();
    let mut spoiled = figures(10.0, 0.0);
    (spoiled.verdict, spoiled.doubts) = (Verdict::Void, vec!["schedule_slip".to_owned()]);
    assert_eq!(judge(&spoiled, &plan), PointStanding::Unclear(Unclear::Client));
    spoiled.errors = vec![("http_429".to_owned(), spoiled.requests / 10)];
    spoiled.failed = spoiled.requests / 10;
    assert_eq!(judge(&spoiled, &plan), PointStanding::Missed(Miss::RateLimited));
}

#[test]
fn a_point_that_was_given_up_names_what_was_out_of_reach() {
    let plan = plan();
    let given_up = |share: f64| {
        let mut found = figures(10.0, share);
        (found.ended_by, found.over_saturated) = (Some(EndedBy::Hopeless), None);
        found.errors = vec![("cut_off".to_owned(), found.requests / 4)];
        found.failed = found.requests / 4;
        found
    };
    assert_eq!(judge(&given_up(0.02), &plan), missed("p99 ttft < 500ms"));
    // The stop was wrong: what was measured keeps the SLO.
    assert_eq!(judge(&given_up(0.006), &plan), PointStanding::Unclear(Unclear::GivenUpTooEarly));
    // A queue grows only where the analysis of the run found that it does.
    let mut growing = given_up(0.006);
    growing.over_saturated = Some(true);
    assert_eq!(judge(&growing, &plan), PointStanding::Missed(Miss::OverSaturated));
}

#[test]
fn requests_are_judged_together() {
    let mut plan = plan();
    plan.slo = Some("ttft < 500ms".parse().unwrap());
    let with = |kept: Option<bool>| {
        let mut figures = figures(10.0, 0.0);
        figures.terms[0].term = "ttft < 500ms".to_owned();
        (figures.terms[0].value, figures.terms[0].kept) = (None, None);
        (figures.terms[0].state, figures.is_target_kept) = (Some(SloState::Reported), kept);
        figures
    };
    assert_eq!(judge(&with(Some(true)), &plan), PointStanding::Met);
    assert_eq!(judge(&with(Some(false)), &plan), PointStanding::Missed(Miss::Attainment));
}

#[test]
fn failures_have_their_causes() {
    let plan = plan();
    let with = |errors: &[(&str, u64)], ok: u64| {
        let mut figures = figures(10.0, 0.0);
        figures.failed = errors.iter().map(|(_, count)| count).sum();
        (figures.ok, figures.requests) = (ok, ok + figures.failed);
        figures.errors = errors.iter().map(|(class, n)| ((*class).to_owned(), *n)).collect();
        figures
    };
    let judged = |errors: &[(&str, u64)], ok| judge(&with(errors, ok), &plan);
    assert_eq!(judged(&[("http_429", 9)], 991), PointStanding::Met);
    assert_eq!(judged(&[("http_429", 10)], 990), PointStanding::Missed(Miss::RateLimited));
    assert_eq!(judged(&[("connect", 500)], 500), PointStanding::Unclear(Unclear::ServerGone));
    assert_eq!(
        judged(&[("connect", 5), ("http_500", 5)], 0),
        PointStanding::Unclear(Unclear::ServerGone)
    );
    assert_eq!(judged(&[("timeout", 600)], 400), PointStanding::Unclear(Unclear::ServerGone));
    assert_eq!(judged(&[("local_limit", 6)], 994), PointStanding::Unclear(Unclear::Client));
    // Where the load is too much, late answers are expected.
    let mut swamped = with(&[("timeout", 600)], 400);
    swamped.over_saturated = Some(true);
    assert_eq!(judge(&swamped, &plan), PointStanding::Missed(Miss::OverSaturated));
    // What was promised about failures, as the run has judged it.
    let mut strict = plan.clone();
    strict.slo = Some("p99 ttft < 500ms, errors < 0.1%".parse().unwrap());
    let mut failing = with(&[("http_500", 1)], 999);
    failing.terms.push(run_term("errors < 0.1%", 0.1, 0.1, false));
    assert_eq!(judge(&failing, &strict), PointStanding::Missed(Miss::Errors));
    // 2.3 % of 500s: `errors < 5%` is kept, the percentile is not, and nothing waits.
    let mut lax = plan.clone();
    lax.slo = Some("p99 ttft < 500ms, errors < 5%".parse().unwrap());
    let mut failing = figures(10.0, 0.023);
    (failing.failed, failing.ended_by) = (230, Some(EndedBy::Hopeless));
    failing.terms.push(run_term("errors < 5%", 5.0, 2.3, true));
    assert_eq!(judge(&failing, &lax), missed("p99 ttft < 500ms"));
    // A mean covers completed requests: then more than 1 % of failures are too much.
    let mut mean = plan.clone();
    mean.slo = Some("mean ttft < 500ms".parse().unwrap());
    assert_eq!(judge(&with(&[("http_500", 10)], 990), &mean), PointStanding::Met);
    let eleven = judge(&with(&[("http_500", 11)], 989), &mean);
    assert_eq!(eleven, PointStanding::Missed(Miss::Errors));
}

/// A figure of the whole run.
fn run_term(term: &str, limit: f64, value: f64, kept: bool) -> TermFigure {
    TermFigure {
        term: term.to_owned(),
        kind: "run".to_owned(),
        limit,
        value: Some(Bounded { value, low: None, high: None }),
        attainment: None,
        state: Some(if kept { SloState::Met } else { SloState::Missed }),
        kept: Some(kept),
        target_state: None,
        target_kept: None,
    }
}

#[test]
fn a_void_run_is_told_apart_by_its_first_doubt() {
    let plan = plan();
    let void = |doubts: &[&str]| {
        let mut figures = figures(10.0, 0.0);
        figures.verdict = Verdict::Void;
        figures.doubts = doubts.iter().map(|doubt| (*doubt).to_owned()).collect();
        judge(&figures, &plan)
    };
    assert_eq!(void(&["schedule_slip", "errors"]), PointStanding::Unclear(Unclear::Client));
    assert_eq!(void(&["canary"]), PointStanding::Unclear(Unclear::Client));
    assert_eq!(void(&["shard_cut"]), PointStanding::Unclear(Unclear::Client));
    assert_eq!(void(&["never_steady", "schedule_slip"]), PointStanding::Met);
    for code in LATE_CLIENT.into_iter().chain(UNUSABLE_CLIENT) {
        assert_eq!(void(&[code.name()]), PointStanding::Unclear(Unclear::Client));
    }
}

#[test]
fn the_end_of_a_run_counts() {
    let plan = plan();
    let ended = |by: EndedBy, share: f64| {
        let mut figures = figures(10.0, share);
        figures.ended_by = Some(by);
        judge(&figures, &plan)
    };
    assert_eq!(ended(EndedBy::User, 0.0), PointStanding::Unclear(Unclear::Interrupted));
    assert_eq!(ended(EndedBy::Decided, 0.0), PointStanding::Met);
    assert_eq!(ended(EndedBy::Hopeless, 0.0), PointStanding::Unclear(Unclear::GivenUpTooEarly));
    assert_eq!(ended(EndedBy::Hopeless, 0.1), missed("p99 ttft < 500ms"));
    let mut over = figures(10.0, 0.0);
    over.over_saturated = Some(true);
    assert_eq!(judge(&over, &plan), PointStanding::Missed(Miss::OverSaturated));
    over.requests = 0;
    assert_eq!(judge(&over, &plan), PointStanding::Unclear(Unclear::Nothing));
    // Nothing was promised.
    let mut free = plan.clone();
    free.slo = None;
    assert_eq!(judge(&figures(10.0, 0.5), &free), PointStanding::Unclear(Unclear::Nothing));
}

#[test]
fn floors_under_the_throughput_do_not_turn_the_search_round() {
    let mut plan = plan();
    plan.slo = Some("p99 ttft < 500ms, rps > 20".parse().unwrap());
    let mut found = figures(10.0, 0.0);
    found.terms.push(run_term("rps > 20", 20.0, 10.0, false));
    assert_eq!(judge(&found, &plan), missed("rps > 20"));
    assert_eq!(judge_load(&found, &plan), PointStanding::Met);
}
