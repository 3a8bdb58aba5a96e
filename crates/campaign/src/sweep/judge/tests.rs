//! Verdicts on figures that are written down here.

use super::*;
use crate::sweep::Bounded;
use crate::sweep::planner::script::{figures, plan};

fn missed(term: &str) -> Standing {
    Standing::Missed(Miss::Term(term.to_owned()))
}

#[test]
fn terms_are_judged_by_their_figures() {
    let plan = plan();
    assert_eq!(judge(&figures(10.0, 0.005), &plan), Standing::Met);
    assert_eq!(judge(&figures(10.0, 0.02), &plan), missed("p99 ttft < 500ms"));
    // At the limit itself `<` is not kept.
    let mut at = figures(10.0, 0.005);
    at.terms[0].value = Some(Bounded { value: 500.0, low: None, high: None });
    assert_eq!(judge(&at, &plan), missed("p99 ttft < 500ms"));
    // Beyond the time limit there is no value: the share inside the limit decides.
    for (share, standing) in [(0.991, Standing::Met), (0.989, missed("p99 ttft < 500ms"))] {
        let mut beyond = figures(10.0, 0.0);
        beyond.terms[0].value = None;
        beyond.terms[0].attainment = Some(Bounded { value: share, low: None, high: None });
        assert_eq!(judge(&beyond, &plan), standing);
    }
}

#[test]
fn a_refusal_is_the_servers_word_whatever_the_client_did() {
    let plan = plan();
    let mut spoilt = figures(10.0, 0.0);
    (spoilt.verdict, spoilt.doubts) = (Verdict::Void, vec!["schedule_slip".to_owned()]);
    assert_eq!(judge(&spoilt, &plan), Standing::Unclear(Unclear::Client));
    spoilt.errors = vec![("http_429".to_owned(), spoilt.requests / 10)];
    spoilt.failed = spoilt.requests / 10;
    assert_eq!(judge(&spoilt, &plan), Standing::Missed(Miss::RateLimited));
}

#[test]
fn what_was_given_up_is_no_failure_of_the_server() {
    let plan = plan();
    let mut given_up = figures(10.0, 0.02);
    given_up.errors = vec![("cut_off".to_owned(), given_up.requests / 4)];
    given_up.failed = given_up.requests / 4;
    given_up.ended_by = Some(EndedBy::Hopeless);
    assert_eq!(judge(&given_up, &plan), missed("p99 ttft < 500ms"));
    given_up.ended_by = Some(EndedBy::Plan);
    assert_eq!(judge(&given_up, &plan), Standing::Missed(Miss::Errors));
}

#[test]
fn requests_are_judged_together() {
    let mut plan = plan();
    plan.slo = Some("ttft < 500ms".parse().unwrap());
    let with = |share: f64| {
        let mut figures = figures(10.0, 0.0);
        figures.attainment = Some(Bounded { value: share, low: None, high: None });
        figures.terms[0].term = "ttft < 500ms".to_owned();
        figures.terms[0].value = None;
        figures
    };
    assert_eq!(judge(&with(0.99), &plan), Standing::Met);
    assert_eq!(judge(&with(0.989), &plan), Standing::Missed(Miss::Attainment));
    plan.attainment = Some(0.9);
    assert_eq!(judge(&with(0.91), &plan), Standing::Met);
    assert_eq!(judge(&with(0.89), &plan), Standing::Missed(Miss::Attainment));
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
    assert_eq!(judged(&[("http_429", 9)], 991), Standing::Met);
    assert_eq!(judged(&[("http_429", 10)], 990), Standing::Missed(Miss::RateLimited));
    assert_eq!(judged(&[("http_500", 10)], 990), Standing::Met);
    assert_eq!(judged(&[("http_500", 11)], 989), Standing::Missed(Miss::Errors));
    assert_eq!(judged(&[("connect", 500)], 500), Standing::Unclear(Unclear::ServerGone));
    assert_eq!(
        judged(&[("connect", 5), ("http_500", 5)], 0),
        Standing::Unclear(Unclear::ServerGone)
    );
    assert_eq!(judged(&[("timeout", 600)], 400), Standing::Unclear(Unclear::ServerGone));
    assert_eq!(judged(&[("local_limit", 6)], 994), Standing::Unclear(Unclear::Client));
    // Where the load is too much, late answers are no wonder.
    let mut swamped = with(&[("timeout", 600)], 400);
    swamped.over_saturated = Some(true);
    assert_eq!(judge(&swamped, &plan), Standing::Missed(Miss::OverSaturated));
    // The SLO's own term about failures counts before ours.
    let mut strict = plan.clone();
    strict.slo = Some("p99 ttft < 500ms, errors < 0.1%".parse().unwrap());
    assert_eq!(judge(&with(&[("http_500", 1)], 999), &strict), Standing::Missed(Miss::Errors));
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
    assert_eq!(void(&["schedule_slip", "errors"]), Standing::Unclear(Unclear::Client));
    assert_eq!(void(&["canary"]), Standing::Unclear(Unclear::Client));
    assert_eq!(void(&["shard_cut"]), Standing::Unclear(Unclear::Client));
    assert_eq!(void(&["never_steady", "schedule_slip"]), Standing::Met);
    for code in CLIENT {
        assert_eq!(void(&[code.name()]), Standing::Unclear(Unclear::Client));
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
    assert_eq!(ended(EndedBy::User, 0.0), Standing::Unclear(Unclear::Interrupted));
    assert_eq!(ended(EndedBy::Decided, 0.0), Standing::Met);
    assert_eq!(ended(EndedBy::Hopeless, 0.0), Standing::Missed(Miss::OverSaturated));
    assert_eq!(ended(EndedBy::Hopeless, 0.1), missed("p99 ttft < 500ms"));
    let mut over = figures(10.0, 0.0);
    over.over_saturated = Some(true);
    assert_eq!(judge(&over, &plan), Standing::Missed(Miss::OverSaturated));
    over.requests = 0;
    assert_eq!(judge(&over, &plan), Standing::Unclear(Unclear::Nothing));
    // Nothing was promised.
    let mut free = plan.clone();
    free.slo = None;
    assert_eq!(judge(&figures(10.0, 0.5), &free), Standing::Unclear(Unclear::Nothing));
}

#[test]
fn floors_under_the_throughput_do_not_turn_the_search_round() {
    let mut plan = plan();
    plan.slo = Some("p99 ttft < 500ms, rps > 20".parse().unwrap());
    let mut found = figures(10.0, 0.0);
    found.terms.push(TermFigure {
        term: "rps > 20".to_owned(),
        kind: "run".to_owned(),
        limit: 20.0,
        value: Some(Bounded { value: 10.0, low: None, high: None }),
        attainment: None,
    });
    assert_eq!(judge(&found, &plan), missed("rps > 20"));
    assert_eq!(judge_load(&found, &plan), Standing::Met);
}
