use goodput_model::EndedBy;
use goodput_stats::SloState;

use super::super::super::{Purpose, answer};
use super::super::script::{figures, plan, point};
use super::*;
use crate::sweep::TermFigure;

/// A list of rates, each with the share of its requests that miss the limit of 500 ms.
fn list(rates: &[(f64, f64)]) -> Vec<Point> {
    let one = |(number, (rate, share)): (u32, &(f64, f64))| {
        point(number, Purpose::Grid, *rate, figures(*rate, *share))
    };
    (1..).zip(rates).map(one).collect()
}

fn unsearched() -> SweepPlan {
    SweepPlan { search: false, ..plan() }
}

#[test]
fn a_list_has_the_highest_level_below_the_first_that_misses() {
    let points = list(&[(10.0, 0.0), (20.0, 0.01), (40.0, 0.02), (80.0, 0.5)]);
    let all = kept_loads(&unsearched(), &points);
    let [whole, term] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((whole.support, whole.level), (KeptSupport::Measured, Some(20.0)));
    assert_eq!((whole.missed, whole.kept_above), (Some(40.0), None));
    assert_eq!((whole.runs, whole.requests, whole.rps), (1, 10_000, Some(20.0)));
    assert_eq!(whole.attainment.unwrap().value, 0.99);
    assert_eq!(whole.output_tps, Some(2000.0));
    assert_eq!((term.term.as_deref(), term.level), (Some("p99 ttft < 500ms"), Some(20.0)));
    assert_eq!(term.value.unwrap().value, 400.0);

    let found = answer(&unsearched(), &points).unwrap();
    assert_eq!(
        (found.state, found.measured, found.confirmed),
        (GoodputState::Measured, Some(20.0), None)
    );
    assert_eq!((found.measured_rps, found.rejected), (Some(20.0), Some(40.0)));
    assert!(found.because.contains("is missed at 40"), "{}", found.because);
}

#[test]
fn independent_runs_to_their_end_confirm() {
    let mut points = list(&[(10.0, 0.0), (20.0, 0.0), (20.0, 0.01), (40.0, 0.02)]);
    let support = |points: &[Point]| kept_loads(&unsearched(), points)[0].support;
    assert_eq!(support(&points), KeptSupport::Confirmed);
    let found = answer(&unsearched(), &points).unwrap();
    assert_eq!((found.state, found.confirmed, found.runs), (GoodputState::Found, Some(20.0), 2));
    // Of 20,000 requests 100 missed.
    assert!((found.attainment.unwrap() - 0.995).abs() < 1e-9, "{found:?}");
    points[1].figures.ended_by = Some(EndedBy::Decided);
    assert_eq!(support(&points), KeptSupport::Measured, "it stopped because of what it had seen");
    points[1].figures = figures(20.0, 0.03);
    assert_eq!(kept_loads(&unsearched(), &points)[0].level, Some(10.0), "one of two misses");
}

#[test]
fn levels_above_the_first_miss_do_not_count_and_are_named() {
    let points = list(&[(10.0, 0.0), (20.0, 0.011), (40.0, 0.0)]);
    let whole = &kept_loads(&unsearched(), &points)[0];
    assert_eq!((whole.level, whole.missed, whole.kept_above), (Some(10.0), Some(20.0), Some(40.0)));
    let none = list(&[(10.0, 0.2), (20.0, 0.5)]);
    let whole = &kept_loads(&unsearched(), &none)[0];
    assert_eq!((whole.support, whole.level, whole.missed), (KeptSupport::Missed, None, Some(10.0)));
    assert_eq!(answer(&unsearched(), &none).unwrap().state, GoodputState::Unreachable);
    assert_eq!(kept_loads(&unsearched(), &[])[0].support, KeptSupport::Unknown);
    assert_eq!(kept_loads(&SweepPlan { slo: None, ..unsearched() }, &none), []);
}

/// Each term by itself may keep more than all of them together.
#[test]
fn terms_by_themselves() {
    let slo: Slo = "p99 ttft < 500ms, tpot < 50ms, rps > 15".parse().unwrap();
    let plan = SweepPlan { slo: Some(slo), attainment: Some(0.99), ..unsearched() };
    let of = |term: &str, kind: &str| TermFigure {
        term: term.to_owned(),
        kind: kind.to_owned(),
        limit: 50.0,
        value: None,
        attainment: None,
        state: Some(SloState::Reported),
        kept: None,
        target_state: None,
        target_kept: None,
    };
    let mut points = list(&[(10.0, 0.0), (20.0, 0.0), (40.0, 0.02), (80.0, 0.5)]);
    for point in &mut points {
        let rate = point.ask.level.value();
        let is_kept = rate < 60.0;
        point.figures.terms.push(TermFigure {
            target_state: Some(if is_kept { SloState::Met } else { SloState::Missed }),
            target_kept: Some(is_kept),
            ..of("tpot < 50ms", "request")
        });
        point.figures.terms.push(TermFigure { kept: Some(rate > 15.0), ..of("rps > 15", "run") });
    }
    let levels: Vec<_> = kept_loads(&plan, &points).iter().map(|load| load.level).collect();
    // A floor is missed by too little load, and that bounds nothing.
    assert_eq!(levels, [Some(20.0), Some(20.0), Some(40.0), Some(80.0)]);
    // Where nothing is known of a term, nothing is said.
    for point in &mut points {
        point.figures.terms.retain(|term| term.term != "tpot < 50ms");
    }
    assert_eq!(kept_loads(&plan, &points)[2].support, KeptSupport::Unknown);
}
