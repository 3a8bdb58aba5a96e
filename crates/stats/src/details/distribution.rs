//! Distributions to be drawn.

use goodput_model::Plan;

use super::Distribution;
use super::counts::NumberCounts;
use crate::sample::{Sample, rank_of_percentile};

/// Shares of which a distribution has the values, in percent: every one, and the ends more finely.
fn drawn_percents(plan: &Plan) -> Vec<f64> {
    let ends = [0.1, 0.2, 0.5, 99.1, 99.2, 99.3, 99.4, 99.5, 99.6, 99.7, 99.8, 99.9];
    let far = [99.95, 99.99, 99.999];
    // The plan's own, so that the figures of the table lie on the curve; a plan file may hold anything.
    let asked = plan.measure.percentiles.iter().copied().take(MOST_ASKED);
    let is_one = |percent: &f64| (0.0..=100.0).contains(percent);
    let all = (0..=100).map(f64::from).chain(ends).chain(far).chain(asked);
    let mut percents: Vec<f64> = all.filter(is_one).collect();
    percents.sort_by(f64::total_cmp);
    percents.dedup();
    percents
}

/// Percentiles of a plan that are drawn.
const MOST_ASKED: usize = 40;

/// Of values that are all there.
pub(super) fn distribution_from_sample(mut sample: Sample, plan: &Plan) -> Distribution {
    sample.sort();
    let n = sample.len();
    let values = sample.some_sorted(usize::MAX);
    let reached = values.len() as u64;
    let mut quantiles: Vec<(f64, f64)> = drawn_percents(plan)
        .into_iter()
        .filter_map(|percent| Some((percent / 100.0, sample.percentile(percent)?)))
        .collect();
    if let Some(largest) = values.last().filter(|_| reached < n) {
        quantiles.push((reached as f64 / n as f64, *largest));
    }
    quantiles.dedup();
    let histogram = histogram_bins(&quantiles, values.iter().map(|value| (*value, 1)), reached);
    Distribution { n, censored: n - reached, quantiles, histogram }
}

/// Of values in microseconds that were counted; drawn in milliseconds.
pub(super) fn distribution_from_counts(counts: &NumberCounts, plan: &Plan) -> Distribution {
    let n = counts.len();
    let percents = drawn_percents(plan);
    let found =
        counts.values_at_ranks(percents.iter().map(|percent| rank_of_percentile(n, *percent)));
    let with_value = |(percent, us): (f64, Option<u64>)| Some((percent / 100.0, us? as f64 / 1e3));
    let quantiles: Vec<(f64, f64)> =
        percents.into_iter().zip(found).filter_map(with_value).collect();
    let values = counts.iter().map(|(us, count)| (us as f64 / 1e3, count));
    let histogram = histogram_bins(&quantiles, values, n);
    Distribution { n, censored: 0, quantiles, histogram }
}

/// Bins for each decade, from fine to coarse.
const PER_DECADE: [u32; 8] = [200, 100, 50, 20, 10, 5, 2, 1];

/// As many bins as this many values can fill (Rice's rule), and a chart can show.
fn most_bins(n: u64) -> usize {
    ((2.0 * (n as f64).cbrt()) as usize).clamp(10, 60)
}

/// What is this much smaller than the median is drawn with the smallest bin: a gap of zero has no
/// place on a scale of ratios.
const SMALLEST: f64 = 1e-2;

/// Values between the ends of the quantiles in bins of equal ratio.
fn histogram_bins(
    quantiles: &[(f64, f64)],
    values: impl Iterator<Item = (f64, u64)>,
    n: u64,
) -> Vec<(f64, u64)> {
    let Some((first, last)) = quantiles.first().zip(quantiles.last()) else { return Vec::new() };
    let median = quantiles.iter().find(|(share, _)| *share >= 0.5).unwrap_or(last).1;
    let low = first.1.max(median * SMALLEST).max(1e-6);
    let high = last.1.max(low);
    let place =
        |value: f64, per_decade: u32| (value.log10() * f64::from(per_decade)).floor() as i64;
    let bins = |per: u32| (place(high, per) - place(low, per)) as usize + 1;
    let most = most_bins(n);
    let per_decade = PER_DECADE.into_iter().find(|per| bins(*per) <= most).unwrap_or(1);
    let begin = place(low, per_decade);
    let mut counts = vec![0u64; bins(per_decade)];
    let top = counts.len() - 1;
    for (value, count) in values {
        // The logarithm of zero is below everything.
        let bin = usize::try_from(place(value, per_decade).saturating_sub(begin)).unwrap_or(0);
        counts[bin.min(top)] += count;
    }
    let edge = |bin: i64| 10f64.powf(bin as f64 / f64::from(per_decade));
    let ends = (begin..).map(edge);
    ends.zip(counts.into_iter().chain([0])).collect()
}
