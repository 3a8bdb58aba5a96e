//! What is asked of servers that follow a script.

use goodput_model::{CaveatCode, EndedBy, StopEarly, Verdict};
use proptest::prelude::*;

use super::script::{asked, figures, levels, plan, point, server, sweep};
use super::*;
use crate::sweep::{
    Axis, Bounded, Effort, Figures, Goodput, GoodputState, answer, estimate_time, sweep_caveats,
};

fn state(goodput: &Goodput) -> GoodputState {
    goodput.state
}

fn answered(plan: &SweepPlan, points: &[Point]) -> Goodput {
    answer(plan, points).unwrap()
}

fn lost(mut figures: Figures) -> Figures {
    figures.failed = figures.requests;
    figures.ok = 0;
    figures.errors = vec![("connect".to_owned(), figures.requests)];
    figures
}

fn void_by_client(mut figures: Figures) -> Figures {
    figures.verdict = Verdict::Void;
    figures.doubts = vec!["schedule_slip".to_owned()];
    figures
}

/// A server that keeps nothing.
fn hopeless(ask: &PointAsk) -> Figures {
    let is_warm_up = ask.purpose == Purpose::WarmUp;
    if is_warm_up { figures(8.0, 0.0) } else { figures(ask.level.value(), 0.5) }
}

#[test]
fn a_search_goes_from_warm_up_to_anchor() {
    let plan = plan();
    let points = sweep(&plan, server(20.0));
    let purposes: Vec<Purpose> = asked(&points).iter().map(|(purpose, _)| *purpose).collect();
    // 0.4 of 8, then twice as much each time: 25.6 is too much.
    assert_eq!(
        asked(&points)[..5],
        [
            (Purpose::WarmUp, 16.0),
            (Purpose::Bracket, 3.2),
            (Purpose::Bracket, 6.4),
            (Purpose::Bracket, 12.8),
            (Purpose::Bracket, 25.6),
        ]
    );
    let order = [
        Purpose::WarmUp,
        Purpose::Bracket,
        Purpose::Bisect,
        Purpose::Focus,
        Purpose::Confirm,
        Purpose::Sustain,
        Purpose::Anchor,
    ];
    let mut seen = purposes.clone();
    seen.dedup();
    assert_eq!(seen, order);
    let goodput = answered(&plan, &points);
    assert_eq!(state(&goodput), GoodputState::Found);
    let confirmed = goodput.confirmed.unwrap();
    // Without chance the answer lies its margin below the limit.
    assert!((19.4..=19.9).contains(&confirmed), "{confirmed}");
    assert!(goodput.rejected.unwrap() >= 20.0 && goodput.rejected.unwrap() < 21.5);
    let crossing = goodput.crossing.unwrap();
    // Points of thirty answers may be too kind by up to 4 %, and here they are not.
    assert!((19.2..=20.0).contains(&crossing.value), "{crossing:?}");
    assert!(crossing.low.unwrap() < 20.0 && crossing.high.unwrap() > 20.0, "{crossing:?}");
    assert!(goodput.because.contains("p99 ttft < 500ms"), "{}", goodput.because);
    assert_eq!(goodput.runs, 2);
    // It lies 0.8 % below the limit, and runs of thirty answers may be too kind by more than that.
    assert!(goodput.over_claim_risk.is_some_and(|risk| risk > 0.0 && risk < 0.3), "{goodput:?}");
    assert_eq!(goodput.requests, 20_000);
    assert_eq!(levels(&points, Purpose::Sustain), [confirmed]);
    let stops: Vec<Option<StopEarly>> = points.iter().map(|point| point.ask.stops).collect();
    assert_eq!(stops[1], Some(StopEarly::Decided));
    assert_eq!(stops[points.len() - 2], Some(StopEarly::Hopeless));
    assert!(sweep_caveats(&plan, &points).is_empty());
}

#[test]
fn every_prefix_of_the_points_asks_for_the_same() {
    let plan = plan();
    let points = sweep(&plan, server(33.0));
    for (place, point) in points.iter().enumerate() {
        assert_eq!(next_sweep_step(&plan, &points[..place]), SweepStep::Measure(point.ask));
    }
    assert_eq!(next_sweep_step(&plan, &points), SweepStep::Done);
    let mut seeds: Vec<u64> = points.iter().map(|point| point.ask.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), points.len());
    let numbers: Vec<u32> = points.iter().map(|point| point.ask.number).collect();
    assert_eq!(numbers, (1..=points.len() as u32).collect::<Vec<_>>());
}

#[test]
fn levels_alternate_and_the_middle_one_comes_again() {
    let mut plan = plan();
    plan.search = false;
    plan.levels = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
    let points = sweep(&plan, server(20.0));
    let grid = [1.0, 3.0, 5.0, 7.0, 6.0, 4.0, 2.0];
    assert_eq!(levels(&points, Purpose::Grid), grid);
    // Once when the grid is done: nothing follows that a second one would stand behind.
    assert_eq!(levels(&points, Purpose::Anchor), [4.0]);
    plan.search = true;
    let points = sweep(&plan, server(20.0));
    let grid = &asked(&points)[1..9];
    assert_eq!(grid.last(), Some(&(Purpose::Anchor, 4.0)));
    assert_eq!(points.last().map(|point| point.ask.purpose), Some(Purpose::Anchor));
}

#[test]
fn far_beyond_saturation_nothing_is_measured() {
    let mut plan = plan();
    plan.search = false;
    plan.levels = vec![10.0, 20.0, 30.0, 40.0, 46.0, 60.0, 80.0];
    let points = sweep(&plan, server(20.0));
    // 30 saturates as soon as it is measured: 45 and more are left out.
    assert_eq!(levels(&points, Purpose::Grid), [10.0, 30.0, 40.0, 20.0]);
}

#[test]
fn bounds_are_kept_and_at_least_is_said() {
    let mut plan = plan();
    (plan.least, plan.most) = (Some(2.0), Some(10.0));
    let points = sweep(&plan, server(20.0));
    assert!(asked(&points)[1..].iter().all(|(_, level)| (2.0..=10.0).contains(level)));
    let goodput = answered(&plan, &points);
    assert_eq!((state(&goodput), goodput.confirmed), (GoodputState::AtLeast, Some(10.0)));
    assert_eq!(goodput.rejected, None);
}

#[test]
fn an_slo_that_no_load_keeps_is_unreachable() {
    let plan = plan();
    let points = sweep(&plan, hopeless);
    let bracket = levels(&points, Purpose::Bracket);
    assert_eq!(bracket[..3], [3.2, 1.6, 0.8]);
    // Requests last 2 s: below 0.05 requests/s fewer than 0.1 are in flight.
    assert!(bracket.last().is_some_and(|last| (0.025..0.05).contains(last)), "{bracket:?}");
    let goodput = answered(&plan, &points);
    assert_eq!((state(&goodput), goodput.confirmed), (GoodputState::Unreachable, None));
    assert!(goodput.because.starts_with("missed even at 0.025 req/s"), "{}", goodput.because);
    let mut bounded = plan.clone();
    bounded.least = Some(1.0);
    let points = sweep(&bounded, hopeless);
    assert_eq!(levels(&points, Purpose::Bracket), [3.2, 1.6, 1.0]);
}

#[test]
fn a_point_that_others_spoiled_is_measured_again() {
    let plan = plan();
    let mut spoiled = 0;
    let points = sweep(&plan, |ask: &PointAsk| {
        let found = server(20.0)(ask);
        let is_busy = ask.level.value() == 6.4 && spoiled < 2;
        spoiled += u32::from(is_busy);
        if is_busy { void_by_client(found) } else { found }
    });
    assert_eq!(levels(&points, Purpose::Bracket), [3.2, 6.4, 6.4, 6.4, 12.8, 25.6]);
    assert_eq!(state(&answered(&plan, &points)), GoodputState::Found);
    assert!(sweep_caveats(&plan, &points).iter().all(|caveat| !caveat.message.contains("client")));
}

/// Every second point is spoiled by other programs, and misses the SLO where it is above this level.
fn crowded(capacity: f64, missed_above: f64) -> impl FnMut(&PointAsk) -> Figures {
    let mut count = 0;
    move |ask| {
        let found = server(capacity)(ask);
        count += u32::from(ask.purpose != Purpose::WarmUp);
        if ask.purpose == Purpose::WarmUp || count % 2 == 0 {
            return found;
        }
        let level = ask.level.value();
        let late = if level > missed_above { figures(level, 0.5) } else { found };
        Figures { others_cpu: Some(0.94), ..void_by_client(late) }
    }
}

#[test]
fn after_the_third_spoiled_point_nothing_is_repeated_and_the_cause_is_named_once() {
    let plan = plan();
    // What is late and keeps the SLO all the same counts.
    let points = sweep(&plan, crowded(20.0, 1e9));
    let quiet = sweep(&plan, server(20.0)).len();
    assert!(points.len() <= quiet + 3, "{} for {quiet}", points.len());
    let answer = answered(&plan, &points);
    assert!(answer.confirmed.is_some_and(|level| (18.0..=20.2).contains(&level)), "{answer:?}");
    let caveats = sweep_caveats(&plan, &points);
    let named: Vec<_> = caveats.iter().filter(|one| one.message.contains("94 %")).collect();
    assert_eq!((caveats.len(), named.len()), (1, 1), "{caveats:?}");
    assert_eq!(named[0].severity, goodput_model::Severity::Warn);
    assert!(named[0].message.contains(" points were spoiled because other programs used 94 %"));
    // What is late and misses it may be the client's fault: the search ends below, and says so.
    let points = sweep(&plan, crowded(20.0, 9.0));
    assert!(points.len() <= quiet + 3, "{} for {quiet}", points.len());
    let answer = answered(&plan, &points);
    assert!(answer.confirmed.is_none_or(|level| level <= 20.2), "{answer:?}");
    // Records that are missing can hide misses.
    let lossy = |ask: &PointAsk| {
        let mut found = crowded(20.0, 1e9)(ask);
        found.doubts = vec!["records_lost".to_owned()];
        found
    };
    let points = sweep(&plan, lossy);
    assert_eq!(answered(&plan, &points).confirmed, None);
}

/// A server that is found wanting live, though what was measured keeps the SLO.
fn given_up(mut found: Figures) -> Figures {
    (found.ended_by, found.over_saturated) = (Some(EndedBy::Hopeless), None);
    found
}

#[test]
fn a_point_that_was_given_up_too_early_is_measured_again_to_its_end() {
    let plan = plan();
    let points = sweep(&plan, |ask: &PointAsk| {
        let found = server(20.0)(ask);
        let is_wrong = ask.level.value() == 6.4 && ask.stops.is_some();
        if is_wrong { given_up(figures(6.4, 0.006)) } else { found }
    });
    assert_eq!(levels(&points, Purpose::Bracket), [3.2, 6.4, 6.4, 12.8, 25.6]);
    let stops: Vec<_> = points[2..4].iter().map(|point| point.ask.stops).collect();
    assert_eq!(stops, [Some(StopEarly::Decided), None]);
    let goodput = answered(&plan, &points);
    assert_eq!(state(&goodput), GoodputState::Found);
    assert!(goodput.confirmed.is_some_and(|level| level > 19.0), "{goodput:?}");
    // Again and again: it is left, and lower levels are tried.
    let points = sweep(&plan, |ask: &PointAsk| {
        let level = ask.level.value();
        if level > 15.0 && ask.purpose != Purpose::WarmUp {
            given_up(figures(level, 0.006))
        } else {
            server(20.0)(ask)
        }
    });
    let again = points.iter().filter(|point| point.ask.level.value() == 25.6).count();
    assert_eq!(again, 1 + AGAIN);
    assert!(answered(&plan, &points).confirmed.is_none_or(|level| level <= 15.0));
}

#[test]
fn a_probe_that_was_stopped_is_not_rejected_and_bounds_nothing() {
    // Everything above the limit is given up.
    let plan = plan();
    let points = sweep(&plan, |ask: &PointAsk| {
        let mut found = server(20.0)(ask);
        if ask.level.value() > 20.0 && ask.purpose != Purpose::WarmUp {
            found.ended_by = Some(EndedBy::Hopeless);
        }
        found
    });
    let goodput = answered(&plan, &points);
    assert_eq!((state(&goodput), goodput.rejected), (GoodputState::Found, None));
    assert!(goodput.because.contains("stopped early"), "{}", goodput.because);
    // One unlucky short probe, 2 of 182, far below the limit: the crossing may still lie above it.
    let mut short = figures(13.1, 2.0 / 182.0);
    (short.requests, short.ok, short.n_eff) = (182, 182, Some(182.0));
    short.ended_by = Some(EndedBy::Hopeless);
    let unlucky = [
        point(1, Purpose::WarmUp, 16.0, figures(8.0, 0.0)),
        point(2, Purpose::Bracket, 4.0, figures(4.0, 0.0)),
        point(3, Purpose::Bracket, 13.1, short),
        point(4, Purpose::Focus, 12.9, figures(12.9, 0.005)),
        point(5, Purpose::Confirm, 12.9, figures(12.9, 0.005)),
        point(6, Purpose::Confirm, 12.9, figures(12.9, 0.005)),
    ];
    let goodput = answered(&plan, &unlucky);
    assert_eq!((goodput.confirmed, goodput.rejected), (Some(12.9), None));
    let crossing = goodput.crossing.unwrap();
    assert!(crossing.high.is_none_or(|high| high > 14.7), "{crossing:?}");
}

#[test]
fn attainment_is_that_of_the_fit_and_not_of_the_lucky() {
    // Runs at one level differ, and the last two of five passed.
    let plan = plan();
    let mut points = vec![
        point(1, Purpose::WarmUp, 16.0, figures(8.0, 0.0)),
        point(2, Purpose::Bracket, 4.0, figures(4.0, 0.0)),
        point(3, Purpose::Bracket, 30.0, figures(30.0, 0.9)),
    ];
    for (number, share) in [(4, 0.03), (5, 0.03), (6, 0.03)] {
        points.push(point(number, Purpose::Focus, 20.0, figures(20.0, share)));
    }
    for number in [7, 8] {
        points.push(point(number, Purpose::Confirm, 20.0, figures(20.0, 0.005)));
    }
    let goodput = answered(&plan, &points);
    assert_eq!(goodput.confirmed, Some(20.0));
    assert!(goodput.seen_attainment.is_some_and(|share| (share - 0.995).abs() < 1e-9));
    // Two in a hundred missed over all five.
    let (low, high) = (goodput.attainment_low.unwrap(), goodput.attainment_high.unwrap());
    assert!(goodput.attainment.is_some_and(|share| share < 0.99), "{goodput:?}");
    assert!(low < 0.98 && high > 0.98, "{low} {high}");
    assert!(goodput.over_claim_risk.is_some_and(|risk| risk > 0.3), "{goodput:?}");
}

#[test]
fn where_the_client_ends_the_answer_is_at_least() {
    let plan = plan();
    let points = sweep(&plan, |ask: &PointAsk| {
        let found = server(100.0)(ask);
        if ask.level.value() > 30.0 { void_by_client(found) } else { found }
    });
    let goodput = answered(&plan, &points);
    assert_eq!(state(&goodput), GoodputState::AtLeast);
    assert!(goodput.because.contains("the client"), "{}", goodput.because);
    let confirmed = goodput.confirmed.unwrap();
    assert!((27.0..=30.0).contains(&confirmed), "{confirmed}");
    // 25.6 is kept and 51.2 says nothing: nothing higher is asked for.
    assert!(asked(&points).iter().all(|(_, level)| *level <= 51.2));
    let codes: Vec<_> = sweep_caveats(&plan, &points).iter().map(|caveat| caveat.code).collect();
    assert_eq!(codes, [CaveatCode::NearCeiling]);
}

#[test]
fn a_rate_limit_is_a_capacity_and_named() {
    let plan = plan();
    let points = sweep(&plan, |ask: &PointAsk| {
        let rate = ask.level.value();
        let mut found = figures(rate, 0.0);
        if ask.purpose != Purpose::WarmUp && rate > 15.0 {
            let refused = ((1.0 - 15.0 / rate) * 10_000.0) as u64;
            (found.failed, found.ok) = (refused, 10_000 - refused);
            found.errors = vec![("http_429".to_owned(), refused)];
        }
        found
    });
    let goodput = answered(&plan, &points);
    assert_eq!(state(&goodput), GoodputState::Found);
    assert!(goodput.because.contains("rejects requests"), "{}", goodput.because);
    let confirmed = goodput.confirmed.unwrap();
    assert!((14.0..=15.2).contains(&confirmed), "{confirmed}");
    let codes: Vec<_> = sweep_caveats(&plan, &points).iter().map(|caveat| caveat.code).collect();
    assert_eq!(codes, [CaveatCode::RateLimited]);
}

#[test]
fn a_server_that_is_gone_is_asked_again() {
    let plan = plan();
    // Gone twice at the third point, then back: the sweep goes on as if nothing had been.
    let steady = sweep(&plan, server(20.0));
    let points = sweep(&plan, |ask: &PointAsk| {
        let found = server(20.0)(ask);
        if matches!(ask.number, 4 | 5) { lost(found) } else { found }
    });
    assert_eq!(asked(&points)[3..6], [(Purpose::Bracket, 12.8); 3]);
    // Time was lost, so there are fewer runs near the limit.
    assert_eq!(asked(&points)[6..13], asked(&steady)[4..11]);
    assert_eq!(state(&answered(&plan, &points)), GoodputState::Found);
    // Gone for good.
    let points = sweep(&plan, |ask: &PointAsk| {
        let found = server(20.0)(ask);
        if ask.number > 3 { lost(found) } else { found }
    });
    assert_eq!(points.len(), 6);
    let goodput = answered(&plan, &points);
    assert_eq!(state(&goodput), GoodputState::Unclear);
    assert!(goodput.because.contains("no usable result"), "{}", goodput.because);
    // Never there.
    assert_eq!(sweep(&plan, |_: &PointAsk| lost(figures(1.0, 0.0))).len(), 3);
}

#[test]
fn a_server_that_grew_is_searched_anew() {
    let mut plan = plan();
    plan.levels = vec![5.0, 10.0, 15.0, 20.0, 25.0, 30.0];
    // Twice the server from the fifth point on: 25 was lost at the fourth, 30 is kept after it.
    let points =
        sweep(&plan, |ask: &PointAsk| server(if ask.number < 5 { 17.0 } else { 40.0 })(ask));
    let again = (Purpose::Anchor, 25.0);
    assert!(asked(&points).contains(&again), "{:?}", asked(&points));
    let goodput = answered(&plan, &points);
    let confirmed = goodput.confirmed.unwrap();
    assert!((38.0..=40.0).contains(&confirmed), "{confirmed}");
    assert!(goodput.because.contains("changed"), "{}", goodput.because);
    let codes: Vec<_> = sweep_caveats(&plan, &points).iter().map(|caveat| caveat.code).collect();
    assert_eq!(codes, [CaveatCode::CapacityChanged]);
}

#[test]
fn an_slo_that_is_lost_and_found_again_is_answered_below() {
    let mut plan = plan();
    plan.levels = vec![5.0, 10.0, 15.0, 20.0];
    // Something is wrong from 9 to 12.
    let points = sweep(&plan, |ask: &PointAsk| {
        let level = ask.level.value();
        let is_bad = ask.purpose != Purpose::WarmUp && (9.0..12.0).contains(&level);
        if is_bad { figures(level, 0.3) } else { server(30.0)(ask) }
    });
    let goodput = answered(&plan, &points);
    let confirmed = goodput.confirmed.unwrap();
    assert!((8.0..9.0).contains(&confirmed), "{confirmed}");
    assert!(goodput.because.contains("missed twice"), "{}", goodput.because);
    let found = sweep_caveats(&plan, &points);
    assert!(found.iter().any(|caveat| caveat.code == CaveatCode::NotMonotone), "{found:?}");
}

#[test]
fn a_confirmation_that_fails_steps_down() {
    let plan = plan();
    let mut confirms = 0;
    let points = sweep(&plan, |ask: &PointAsk| {
        confirms += usize::from(ask.purpose == Purpose::Confirm);
        let is_first = ask.purpose == Purpose::Confirm && confirms == 1;
        if is_first { figures(ask.level.value(), 0.011) } else { server(20.0)(ask) }
    });
    let levels = levels(&points, Purpose::Confirm);
    assert_eq!(levels.len(), 3);
    assert!((0.97..0.991).contains(&(levels[1] / levels[0])), "{levels:?}");
    assert_eq!(levels[1], levels[2]);
    // A server that never keeps it twice ends without an answer.
    let points = sweep(&plan, |ask: &PointAsk| {
        let is_bad = ask.purpose == Purpose::Confirm;
        if is_bad { figures(ask.level.value(), 0.011) } else { server(20.0)(ask) }
    });
    let goodput = answered(&plan, &points);
    assert_eq!((state(&goodput), goodput.confirmed), (GoodputState::Unclear, None));
    assert!(goodput.because.contains("confirming"), "{}", goodput.because);
}

#[test]
fn users_are_whole() {
    let mut plan = plan();
    plan.axis = Axis::Concurrency;
    let points = sweep(&plan, server(21.0));
    assert_eq!(levels(&points, Purpose::Bracket), [8.0, 16.0, 32.0]);
    let goodput = answered(&plan, &points);
    assert!(matches!(goodput.confirmed, Some(20.0 | 21.0)), "{goodput:?}");
    assert!(points.iter().all(|point| matches!(point.ask.level, Level::Users(_))));
    // One user is too much.
    let points = sweep(&plan, hopeless);
    assert_eq!(levels(&points, Purpose::Bracket), [8.0, 4.0, 2.0, 1.0]);
    assert_eq!(state(&answered(&plan, &points)), GoodputState::Unreachable);
}

#[test]
fn twins_follow_their_points() {
    let mut plan = plan();
    plan.twins = true;
    let points = sweep(&plan, server(20.0));
    for pair in points.windows(2) {
        let is_twin = pair[1].ask.purpose == Purpose::Twin;
        let has_twin =
            matches!(pair[0].ask.purpose, Purpose::Bracket | Purpose::Bisect | Purpose::Confirm);
        assert_eq!(is_twin, has_twin, "{:?}", pair[1].ask);
        if is_twin {
            // Two seconds each at the rate of the point before.
            let users = (2.0 * pair[0].ask.level.value()).round();
            assert_eq!(pair[1].ask.level, Level::Users(users as u32));
        }
    }
}

#[test]
fn without_an_slo_the_knee_is_looked_for() {
    let mut plan = plan();
    plan.slo = None;
    let points = sweep(&plan, server(20.0));
    assert!(answer(&plan, &points).is_none());
    // Saturation begins at 24.
    let bisect = levels(&points, Purpose::Bisect);
    let last = bisect.last().unwrap();
    assert!((21.0..=27.0).contains(last), "{bisect:?}");
}

#[test]
fn times_follow_the_server_and_what_was_asked() {
    let seconds = |plan: &SweepPlan, e2e_s: f64| {
        let mut warm = figures(8.0, 0.0);
        warm.e2e_ms.mean = Some(1e3 * e2e_s);
        warm.e2e_ms.p99 = Some(Bounded { value: 4e3 * e2e_s, low: None, high: None });
        let SweepStep::Measure(ask) =
            next_sweep_step(plan, &[point(1, Purpose::WarmUp, 16.0, warm)])
        else {
            panic!("it ended")
        };
        (ask.burn_in_s, ask.seconds)
    };
    let mut plan = plan();
    // Five means, and a minute or five times p99.
    assert_eq!(seconds(&plan, 2.0), (10.0, 60.0));
    assert_eq!(seconds(&plan, 8.0), (40.0, 160.0));
    // A minute for an answer: bounded.
    assert_eq!(seconds(&plan, 60.0), (300.0, 600.0));
    plan.effort = Effort::Quick;
    assert_eq!(seconds(&plan, 2.0), (6.0, 16.0));
    assert_eq!(seconds(&plan, 60.0), (90.0, 90.0));
    plan.effort = Effort::Certified;
    assert_eq!(seconds(&plan, 2.0), (10.0, 600.0));
    (plan.point_s, plan.burn_in_s) = (Some(7.0), Some(2.0));
    assert_eq!(seconds(&plan, 60.0), (2.0, 7.0));
}

#[test]
fn the_estimate_counts_down() {
    let plan = plan();
    let points = sweep(&plan, server(20.0));
    assert_eq!(estimate_time(&plan, &[], None), None);
    let stated = estimate_time(&plan, &points[..1], None).unwrap();
    let sum: f64 = stated.parts.iter().map(|(_, seconds)| seconds).sum();
    assert!((sum - stated.seconds).abs() < 5.0, "{stated:?}");
    let mut last = stated.seconds;
    for place in 2..points.len() {
        let left = estimate_time(&plan, &points[..place], None).unwrap().seconds;
        assert!(left <= last, "{left} after {last}");
        last = left;
    }
    assert_eq!(estimate_time(&plan, &points, None).unwrap().seconds, 0.0);
}

#[test]
fn what_is_left_follows_from_what_is_missing() {
    let plan = plan();
    let points = sweep(&plan, server(20.0));
    let first = points.iter().position(|point| point.ask.purpose == Purpose::Confirm).unwrap();
    let left = |points: &[Point], took_s| estimate_time(&plan, points, took_s).unwrap();
    // One confirming run less is one confirming run less.
    let (before, after) = (left(&points[..first], None), left(&points[..=first], None));
    let run = next_step_s(&plan, &points[..first], &points[first].ask);
    assert!(after.seconds < before.seconds - 0.8 * run, "{before:?} {after:?}");
    // A level that missed leaves both runs of the next one to do, however much was spent.
    let mut missed = points[..=first].to_vec();
    missed[first].figures = figures(points[first].ask.level.value(), 0.5);
    assert!(left(&missed, None).seconds > after.seconds + 0.8 * run);
    // Everything took twice as long by the clock, and will.
    let told: f64 = points[..=first].iter().map(|point| point.figures.window_s).sum();
    let slow = left(&points[..=first], Some(4.0 * told));
    assert!(slow.seconds > 1.5 * after.seconds, "{slow:?} {after:?}");
    // A range where points were spoiled; none where none was.
    assert_eq!(after.most_seconds, None);
    let mut spoiled = points[..=first].to_vec();
    spoiled[1].figures = void_by_client(spoiled[1].figures.clone());
    let range = left(&spoiled, None);
    // One of so many, and as much again as if two of four more were: both ends are whole seconds.
    let measured = spoiled.iter().filter(|point| point.ask.purpose != Purpose::WarmUp).count();
    let share = 2.0 / (measured as f64 + 4.0);
    let most = range.most_seconds.unwrap();
    assert!((most - range.seconds / (1.0 - share)).abs() <= 1.5, "{range:?}");
}

#[test]
fn an_anchor_that_moved_is_found() {
    let plan = plan();
    let mut points = sweep(&plan, server(20.0));
    let last = points.last_mut().unwrap();
    assert_eq!(last.ask.purpose, Purpose::Anchor);
    last.figures.tpot_ms.p50 = Some(Bounded { value: 22.1, low: Some(21.9), high: Some(22.3) });
    let found = sweep_caveats(&plan, &points);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].code, CaveatCode::CapacityChanged);
    assert!(found[0].message.contains("median TPOT"), "{}", found[0].message);
    // Less than a tenth.
    let last = points.last_mut().unwrap();
    last.figures.tpot_ms.p50 = Some(Bounded { value: 21.9, low: Some(21.8), high: Some(22.0) });
    assert!(sweep_caveats(&plan, &points).is_empty());
}

/// Figures of any kind.
fn any_figures() -> impl Strategy<Value = Figures> {
    let share = prop_oneof![Just(0.0), Just(0.005), Just(0.02), Just(0.5), Just(1.0), 0.0..1.0];
    let odd = prop_oneof![Just(0.0), Just(f64::NAN), Just(f64::INFINITY), Just(-1.0), Just(1e300)];
    (share, 0..12u8, odd, 0..4u8).prop_map(|(share, kind, odd, saturated)| {
        let mut found = figures(10.0, share);
        found.over_saturated = [None, Some(true), Some(false), Some(false)][saturated as usize];
        match kind {
            0 => lost(found),
            1 => void_by_client(found),
            2 => {
                found.ended_by = Some(EndedBy::User);
                found
            }
            3 => {
                (found.requests, found.ok) = (0, 0);
                found
            }
            4 => {
                found.e2e_ms.mean = Some(odd);
                found.window_s = odd;
                found.requests_per_s = Some(odd);
                found.scheduled_rps = Some(odd);
                found.n_eff = Some(odd);
                found.in_flight = Some(odd);
                found
            }
            5 => {
                found.attainment = Some(Bounded { value: odd, low: None, high: Some(odd) });
                found.terms.clear();
                found
            }
            6 => {
                found.ended_by = Some(EndedBy::Hopeless);
                found
            }
            _ => found,
        }
    })
}

fn any_plan() -> impl Strategy<Value = SweepPlan> {
    let bound = || prop_oneof![Just(None), (0.01..1e4).prop_map(Some)];
    let levels = prop::collection::vec(0.01..1e4, 0..8);
    (levels, bound(), bound(), 0..3u8, any::<[bool; 4]>()).prop_map(
        |(mut levels, least, most, effort, [search, twins, users, has_slo])| {
            levels.sort_by(f64::total_cmp);
            let mut plan = plan();
            plan.effort = [Effort::Quick, Effort::Standard, Effort::Certified][effort as usize];
            plan.axis = if users { Axis::Concurrency } else { Axis::Rate };
            (plan.levels, plan.search, plan.twins) = (levels, search, twins);
            plan.least = least.filter(|least| most.is_none_or(|most| *least <= most));
            plan.most = most;
            if !has_slo {
                plan.slo = None;
            }
            plan
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_server_is_done_with(plan in any_plan(), seen in prop::collection::vec(any_figures(), 1..40)) {
        let mut place = 0;
        let points = sweep(&plan, |ask: &PointAsk| {
            place += 1;
            assert!(ask.seconds > 0.0 && ask.seconds <= 86_400.0);
            assert!(ask.burn_in_s >= 0.0 && ask.burn_in_s <= 86_400.0);
            let level = ask.level.value();
            assert!(level.is_finite() && level > 0.0);
            if !matches!(ask.purpose, Purpose::WarmUp | Purpose::Twin) {
                assert_eq!(ask.level.axis(), plan.axis);
                // Half a user is none.
                let slack = if plan.axis == Axis::Concurrency { 0.5 } else { 0.0 };
                assert!(plan.least.is_none_or(|least| level >= least - slack), "{level} {plan:?}");
                assert!(plan.most.is_none_or(|most| level <= (most + slack).max(1.0)), "{level} {plan:?}");
            }
            seen[place % seen.len()].clone()
        });
        let twins = points.iter().filter(|point| point.ask.purpose == Purpose::Twin).count();
        prop_assert!(points.len() <= MOST_POINTS + 2 * plan.levels.len() + twins + 1);
        let _ = (answer(&plan, &points), sweep_caveats(&plan, &points));
        for place in [0, 1, points.len() / 2, points.len()] {
            if let Some(found) = estimate_time(&plan, &points[..place], None) {
                prop_assert!(found.seconds.is_finite() && found.seconds >= 0.0);
            }
        }
    }
}
