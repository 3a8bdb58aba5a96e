//! Does the server keep up with what is asked of it?

pub use crate::summary::Saturation;

use crate::series::Series;
use crate::steady::{MOST_POINTS, average_neighbors, least_squares, median_of, theil_sen};
use crate::summary::Slope;

/// Shorter windows say nothing.
const SHORTEST_S: f64 = 30.0;
/// Completions per arrival below which a server falls behind.
const BALANCE: f64 = 0.97;
/// Growth of the number in flight over the window, as a share of its median.
const PRACTICAL: f64 = 0.10;
/// The same in standard deviations of the difference of two counts of as many as were in flight at
/// first: so much comes and goes in a server that keeps up.
const BEYOND: f64 = 3.0;
/// A number in flight that stays within this share of its median is at a ceiling.
const FLAT: f64 = 0.10;
/// By how much it has risen before that, and how many times the wait has grown.
const RISEN: f64 = 1.5;
const LONGER: f64 = 3.0;
/// Refusals above chance, as a share of arrivals.
pub(crate) const REFUSED: f64 = 0.01;

/// Judges the window; `None` below 30 s. Cheap enough to be asked every second of a running load.
pub fn judge_saturation(series: &Series) -> Option<Saturation> {
    if series.seconds() < SHORTEST_S || series.len() < 10 {
        return None;
    }
    let per_s = 1.0 / series.bin.as_secs();
    let slope = |values: &[f64]| {
        let Slope { value, low, high } = least_squares(values)?;
        Some(Slope { value: value * per_s, low: low * per_s, high: high * per_s })
    };
    let in_flight_slope = slope(&series.in_flight)?;
    let ttft_slope = slope(&series.ttft.values);
    let (points, step) = average_neighbors(&series.in_flight, MOST_POINTS);
    let backlog_growth_per_s = theil_sen(&points)? * per_s / step as f64;
    let middle = series.len() / 2;
    let late = |counts: &[u32]| sum_counts(counts.get(middle..).unwrap_or_default());
    let balance = share_of(late(&series.completions), late(&series.arrivals));
    let balance_all = share_of(sum_counts(&series.completions), sum_counts(&series.arrivals));
    let refused_share = share_of(late(&series.refused), late(&series.arrivals)).unwrap_or(0.0);
    let level = median_of(&series.in_flight)?;
    let at_first = series.in_flight.get(..series.len() / 4).and_then(median_of)?;
    let least = (BEYOND * (2.0 * at_first).sqrt()).max(PRACTICAL * level);
    let rises = |slope: Slope| slope.low > 0.0;
    let is_short = |balance: Option<f64>| balance.is_some_and(|balance| balance < BALANCE);
    // One half has few completions: chance hides the shortfall of a load just beyond capacity.
    let falls_short = is_short(balance) || is_short(balance_all);
    let over_saturated = rises(in_flight_slope)
        && ttft_slope.is_some_and(rises)
        && falls_short
        && backlog_growth_per_s * series.seconds() >= least;
    Some(Saturation {
        over_saturated,
        queue_limited: refused_share >= REFUSED || (!over_saturated && is_queue_full(series)),
        backlog_growth_per_s,
        balance,
        balance_all,
        refused_share,
        in_flight_slope,
        ttft_slope,
    })
}

fn sum_counts(counts: &[u32]) -> f64 {
    counts.iter().map(|count| f64::from(*count)).sum()
}

fn share_of(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// The second half lies flat at a level that the beginning had not reached, and waits have grown.
fn is_queue_full(series: &Series) -> bool {
    let (first, middle) = (series.len().div_ceil(20).max(2), series.len() / 2);
    let late = series.in_flight.get(middle..).unwrap_or_default();
    let early = |values: &[f64]| values.get(..first).and_then(median_of);
    let Some(level) = median_of(late).filter(|level| *level > 0.0) else { return false };
    let mut sorted = late.to_vec();
    sorted.sort_by(f64::total_cmp);
    // All but a tenth at either end.
    let tenth = sorted.len() / 10;
    let core = sorted.get(tenth..sorted.len() - tenth).unwrap_or_default();
    let is_flat = core.iter().all(|value| (value - level).abs() <= FLAT * level);
    let has_risen = early(&series.in_flight).is_some_and(|early| level >= RISEN * early);
    let waits = &series.ttft.values;
    let late_wait = waits.get(middle..).and_then(median_of);
    let waits_grew =
        early(waits).zip(late_wait).is_some_and(|(early, late)| late >= LONGER * early);
    is_flat && has_risen && waits_grew
}

#[cfg(test)]
mod tests;
