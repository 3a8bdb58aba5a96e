//! Are these values of one kind?
//!
//! A percentile over two kinds of requests describes neither. Two kinds show as two separate peaks
//! in the density of the logarithm of a latency.

use serde::{Deserialize, Serialize};

/// Fewer values show peaks that chance made.
const FEWEST: usize = 100;
/// More add nothing to the shape: every so manieth of the sorted values is taken.
const MOST: usize = 50_000;
/// Points at which the density is computed.
const GRID: usize = 512;
/// Each kind has at least this share of the values.
const SHARE: f64 = 0.05;
/// Medians of the kinds are at least this factor apart.
const APART: f64 = 1.5;
/// The valley is at most this share of the lower peak.
const VALLEY: f64 = 0.6;
/// What rises above its lowest point by no more than this share of the lower peak is valley too.
const VALLEY_FLOOR: f64 = 0.1;
/// Standard deviations between the counts around the lower peak and around the valley.
const BEYOND: f64 = 2.6;

/// Two kinds of values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TwoModes {
    /// Median of the smaller values.
    pub low_median: f64,
    /// Median of the larger ones.
    pub high_median: f64,
    /// Share of the smaller ones among all.
    pub low_share: f64,
    /// The value between them.
    pub split: f64,
}

/// Two clearly separate groups in sorted values, of which those above zero are looked at.
pub fn find_two_modes(sorted: &[f64]) -> Option<TwoModes> {
    let begin = sorted.partition_point(|value| *value <= 0.0);
    let end = sorted.partition_point(|value| value.is_finite() && *value < f64::MAX);
    let positive = sorted.get(begin..end).filter(|values| values.len() >= FEWEST)?;
    let step = positive.len().div_ceil(MOST);
    let thinned: Vec<f64> = positive.iter().copied().skip(step / 2).step_by(step).collect();
    let logs: Vec<f64> = spread_rounded(&thinned).iter().map(|value| value.ln()).collect();
    let split = find_valley(&logs)?.exp();
    let (low, high) = positive.split_at(positive.partition_point(|value| *value < split));
    let low_share = low.len() as f64 / positive.len() as f64;
    let (low_median, high_median) = (median_of_sorted(low)?, median_of_sorted(high)?);
    let is_mixed = (SHARE..=1.0 - SHARE).contains(&low_share);
    (is_mixed && high_median >= APART * low_median).then_some(TwoModes {
        low_median,
        high_median,
        low_share,
        split,
    })
}

fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

/// Values that were rounded (to whole milliseconds, say) stand in heaps; each heap is spread evenly
/// over what rounds to it, or it would be a peak of its own.
fn spread_rounded(sorted: &[f64]) -> Vec<f64> {
    let quantum = rounding_step(sorted);
    let heap = |heap: &[f64]| {
        let (count, value) = (heap.len() as f64, heap.first().copied().unwrap_or_default());
        let place = move |index: usize| (index as f64 + 0.5) / count - 0.5;
        // Half a quantum of the smallest value would reach zero.
        (0..heap.len())
            .map(move |index| value + place(index) * quantum.min(value))
            .collect::<Vec<_>>()
    };
    sorted.chunk_by(|a, b| a == b).flat_map(heap).collect()
}

/// The largest power of ten, from ten down to a millionth, of which all are multiples.
fn rounding_step(values: &[f64]) -> f64 {
    let is_multiple = |value: f64, unit: f64| {
        let count = value / unit;
        (count - count.round()).abs() <= 1e-6 * count.abs().clamp(1.0, 1e3)
    };
    let powers = (-6..=1).rev().map(|power| 10f64.powi(power));
    let fits = |unit: &f64| values.iter().all(|value| is_multiple(*value, *unit));
    powers.into_iter().find(fits).unwrap_or(0.0)
}

/// Where sorted logarithms have a valley that is clearly below the peaks on both of its sides.
fn find_valley(logs: &[f64]) -> Option<f64> {
    let (low, high) = (*logs.first()?, *logs.last()?);
    let width = kernel_bandwidth(logs);
    if width <= 0.0 || high <= low {
        return None;
    }
    let (start, step) = (low - width, (high - low + 2.0 * width) / (GRID - 1) as f64);
    let density = kernel_density(logs, start, step, width);
    let at = |index: usize| start + index as f64 * step;
    let n = logs.len() as f64;
    let count = |middle: f64, half: f64| {
        let below = |x: f64| logs.partition_point(|value| *value < x);
        (below(middle + half) - below(middle - half)) as f64
    };
    let highest = |part: &[f64]| {
        part.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map(|(index, _)| index)
    };
    let mut best: Option<(f64, f64)> = None;
    for (index, window) in density.windows(3).enumerate() {
        let [left, here, right] = window else { continue };
        if !(here <= left && here < right) {
            continue;
        }
        let (before, after) = density.split_at(index + 1);
        let (Some(left), Some(right)) = (highest(before), highest(after)) else { continue };
        let right = right + index + 1;
        let lower = if density[left] < density[right] { left } else { right };
        let share = logs.partition_point(|value| *value < at(index + 1)) as f64 / n;
        if *here > VALLEY * density[lower] || !(SHARE..=1.0 - SHARE).contains(&share) {
            continue;
        }
        // A valley may be wide: its middle counts.
        let floor = here + VALLEY_FLOOR * density[lower];
        let (before, after) = density.split_at(index + 1);
        let reach_left = before.iter().rev().take_while(|value| **value <= floor).count();
        let reach_right = after.iter().take_while(|value| **value <= floor).count();
        let place = at(index + 1) + (reach_right as f64 - reach_left as f64) / 2.0 * step;
        let half = (at(right) - at(left)) / 10.0;
        let (peak, gap) = (count(at(lower), half), count(place, half));
        let score = (peak - gap) / (peak + gap).max(1.0).sqrt();
        if score >= BEYOND && best.is_none_or(|(found, _)| score > found) {
            best = Some((score, place));
        }
    }
    best.map(|(_, place)| place)
}

/// Silverman's rule of thumb, by the smaller of standard deviation and spread of the middle half.
fn kernel_bandwidth(sorted: &[f64]) -> f64 {
    let n = sorted.len() as f64;
    let mean = sorted.iter().sum::<f64>() / n;
    let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / n).sqrt();
    let quartile = |k: usize| sorted.get(sorted.len() * k / 4).copied().unwrap_or(mean);
    let middle_half = (quartile(3) - quartile(1)) / 1.349;
    let spread = if middle_half > 0.0 { deviation.min(middle_half) } else { deviation };
    0.7 * spread * n.powf(-0.2)
}

/// A Gaussian kernel over counts on the grid.
fn kernel_density(logs: &[f64], start: f64, step: f64, width: f64) -> Vec<f64> {
    let mut counts = vec![0.0; GRID];
    for value in logs {
        let place = ((value - start) / step).round() as usize;
        counts[place.min(GRID - 1)] += 1.0;
    }
    let reach = ((4.0 * width / step).ceil() as usize).min(GRID);
    let kernel: Vec<f64> =
        (0..=reach).map(|gap| (-0.5 * (gap as f64 * step / width).powi(2)).exp()).collect();
    (0..GRID)
        .map(|at| {
            let from = at.saturating_sub(reach);
            let near = counts.iter().enumerate().skip(from).take(at + reach + 1 - from);
            near.map(|(place, count)| count * kernel[place.abs_diff(at)]).sum()
        })
        .collect()
}

/// The share of gaps near 40 ms, where Nagle's algorithm on one side waits for the delayed
/// acknowledgment of the other: many more than just around it, and far more than the usual gap.
pub fn delayed_ack_share(sorted_gaps_ms: &[f64]) -> Option<f64> {
    let n = sorted_gaps_ms.len();
    let below = |ms: f64| sorted_gaps_ms.partition_point(|gap| *gap < ms);
    let between = |from: f64, to: f64| (below(to) - below(from)) as f64;
    let usual = median_of_sorted(sorted_gaps_ms).filter(|_| n >= FEWEST)?;
    let found = between(38.0, 46.0);
    // What as wide a span on either side holds; the fuller one counts.
    let around = between(30.0, 38.0).max(between(46.0, 54.0));
    let share = found / n as f64;
    let is_peak = found >= 3.0 * around && found - around >= 4.0 * (found + around).sqrt();
    (usual <= 20.0 && share >= 0.01 && is_peak).then_some(share)
}

#[cfg(test)]
mod tests;
