//! Intervals of descriptions: the same again from points drawn with replacement.

use goodput_model::random::{Domain, RandomStream};

use crate::sweep::{Bounded, PointSummary};

const DRAWS: u64 = 400;
/// Shapes that fewer draws than this have carry no interval.
const ENOUGH: f64 = 0.8;
/// Fixed, so that a summary gives the same page again.
const SEED: u64 = 3_600;

/// `value` with the middle 95 % of what `again` says of drawn points. A draw may answer infinity; an
/// end there is not known.
pub(super) fn bootstrap_interval(
    points: &[&PointSummary],
    value: f64,
    again: impl Fn(&[&PointSummary]) -> Option<f64>,
) -> Bounded {
    let draw = |index: u64| {
        let mut random = RandomStream::new(SEED, Domain::Sampling, index);
        let pick = |_| points.get(random.next_below(points.len() as u64) as usize).copied();
        let drawn: Vec<&PointSummary> = (0..points.len()).filter_map(pick).collect();
        again(&drawn)
    };
    let mut found: Vec<f64> = (0..DRAWS).filter_map(draw).filter(|v| !v.is_nan()).collect();
    if (found.len() as f64) < ENOUGH * DRAWS as f64 {
        return Bounded { value, low: None, high: None };
    }
    found.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let rank = (share * (found.len() - 1) as f64).round() as usize;
        found.get(rank).copied().filter(|value| value.is_finite())
    };
    // The figure lies inside, also where the drawn ones lean to one side.
    let (low, high) = (at(0.025).map(|low| low.min(value)), at(0.975).map(|high| high.max(value)));
    Bounded { value, low, high }
}
