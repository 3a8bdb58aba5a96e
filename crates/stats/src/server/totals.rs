//! Totals and distributions between two looks.

use std::collections::BTreeMap;

use goodput_model::{Buckets, Signal, SignalKind};

use super::looks::{Between, combine_buckets};
use crate::summary::{BucketPercentile, CounterSummary, HistogramSummary};

/// The percentiles of a distribution.
const PERCENTILES: [(&str, f64); 3] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];

fn signals_of_kind(kind: SignalKind) -> impl Iterator<Item = Signal> {
    Signal::ALL.iter().copied().filter(move |signal| signal.kind() == kind)
}

/// By how much totals grew, each endpoint between its own looks.
pub(super) fn counter_growth(between: &[&Between<'_>]) -> BTreeMap<String, CounterSummary> {
    let of = |signal: Signal| {
        let mut grown =
            between.iter().filter_map(|one| Some((one.growth_of(signal)?, one.seconds())));
        let (total, seconds) = grown.next()?;
        let first = CounterSummary { total, per_s: total / seconds };
        let sum = grown.fold(first, |sum, (total, seconds)| CounterSummary {
            total: sum.total + total,
            per_s: sum.per_s + total / seconds,
        });
        Some((signal.name().to_owned(), sum))
    };
    signals_of_kind(SignalKind::Counter).filter_map(of).collect()
}

/// What came into distributions; times in milliseconds.
pub(super) fn histogram_growth(between: &[&Between<'_>]) -> BTreeMap<String, HistogramSummary> {
    let of = |signal: Signal| {
        let each = between.iter().filter_map(|one| one.distribution_of(signal));
        let all = each
            .filter(|one| one.count > 0.0)
            .reduce(|a, b| combine_buckets(&a, &b, |a, b| a + b))?;
        let scale = if signal == Signal::StepTokens { 1.0 } else { 1e3 };
        Some((signal.name().to_owned(), histogram_summary(&all, scale)))
    };
    signals_of_kind(SignalKind::Histogram).filter_map(of).collect()
}

fn histogram_summary(all: &Buckets, scale: f64) -> HistogramSummary {
    let scaled = |found: BucketPercentile| BucketPercentile {
        value: found.value.map(|value| value * scale),
        low: found.low * scale,
        high: found.high.map(|high| high * scale),
    };
    let named = PERCENTILES.into_iter();
    let percentiles = named
        .filter_map(|(name, share)| Some((name.to_owned(), scaled(bucket_percentile(all, share)?))))
        .collect();
    HistogramSummary { n: all.count, mean: all.sum / all.count * scale, percentiles }
}

/// The bucket that holds a percentile, and a place in it as if values spread evenly there.
fn bucket_percentile(all: &Buckets, share: f64) -> Option<BucketPercentile> {
    let rank = share * all.count;
    // Times and tokens are not negative.
    let (mut low, mut below) = (0.0, 0.0);
    for (bound, up_to) in all.bounds.iter().zip(&all.cumulative) {
        if !bound.is_finite() {
            break;
        }
        if *up_to >= rank && *up_to > below {
            let low = f64::min(low, *bound);
            let value = low + (bound - low) * ((rank - below) / (up_to - below)).clamp(0.0, 1.0);
            return Some(BucketPercentile { value: Some(value), low, high: Some(*bound) });
        }
        (low, below) = (*bound, f64::max(below, *up_to));
    }
    (!all.bounds.is_empty()).then_some(BucketPercentile { value: None, low, high: None })
}
