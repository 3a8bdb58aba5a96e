//! The few statistics of the truth, written apart from the ones they check.

use goodput_model::Nanos;
use serde::Serialize;

/// Most values that one distribution keeps: a minute at 100,000 a second, or 64 MiB.
const KEPT: usize = 8 << 20;

/// Values in nanoseconds. Past a limit they are counted, but no longer kept.
#[derive(Debug, Default)]
pub struct BoundedValues {
    kept: Vec<u64>,
    n: u64,
}

/// A distribution in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Quantiles {
    /// Number of values.
    pub n: u64,
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

impl BoundedValues {
    /// Adds a value.
    pub fn push(&mut self, value: Nanos) {
        self.n += 1;
        if self.kept.len() < KEPT {
            self.kept.push(value.0);
        }
    }

    /// Number, quantiles and maximum. Selects instead of sorting: its cost is part of what the
    /// floor client is charged with.
    pub fn quantiles(&mut self) -> Quantiles {
        let mut quantile = |q: f64| {
            let rank = (self.kept.len() as f64 * q).ceil().max(1.0) as usize;
            let (_, value, _) = self
                .kept
                .get_mut(..)
                .filter(|kept| rank <= kept.len())?
                .select_nth_unstable(rank - 1);
            Some(*value as f64 / 1e6)
        };
        Quantiles { p50: quantile(0.5), p99: quantile(0.99), max: quantile(1.0), n: self.n }
    }
}

/// What the server really did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Answers begun.
    pub requests: u64,
    /// Tokens written.
    pub events: u64,
    /// Tokens per second, from the first arrival to the last write.
    pub events_per_s: Option<f64>,
    /// Rate from the first arrival to the last; none below two arrivals.
    pub arrivals_per_s: Option<f64>,
    /// Distance of the gaps between arrivals from the exponential of the same mean.
    pub ks_exponential: Option<f64>,
    /// From a request's arrival to the write of its first token.
    pub ttft_ms: Quantiles,
    /// Between the writes of tokens of one answer.
    pub itl_ms: Quantiles,
    /// From a token's scheduled instant to its write.
    pub write_lateness_ms: Quantiles,
    /// The first arrival on the monotonic clock, in nanoseconds.
    pub first_arrival: Option<Nanos>,
}

/// The instants behind a [`Report`].
#[derive(Debug, Default)]
pub(crate) struct Truth {
    pub(crate) requests: u64,
    pub(crate) events: u64,
    pub(crate) ttft: BoundedValues,
    pub(crate) itl: BoundedValues,
    pub(crate) lateness: BoundedValues,
    pub(crate) last_write: Nanos,
    arrivals: Vec<u64>,
}

impl Truth {
    pub(crate) fn add_arrival(&mut self, at: Nanos) {
        self.requests += 1;
        if self.arrivals.len() < KEPT {
            self.arrivals.push(at.0);
        }
    }

    pub(crate) fn report(mut self) -> Report {
        self.arrivals.sort_unstable();
        let ends = self.arrivals.first().zip(self.arrivals.last());
        let span = ends.map_or(0, |(first, last)| last - first);
        let gaps = self.arrivals.len().saturating_sub(1);
        let per_second = |n: u64, span: u64| (span > 0).then(|| n as f64 * 1e9 / span as f64);
        let writing = ends.map_or(0, |(first, _)| self.last_write.0.saturating_sub(*first));
        Report {
            requests: self.requests,
            events: self.events,
            events_per_s: per_second(self.events, writing),
            arrivals_per_s: per_second(gaps as u64, span),
            ks_exponential: exponential_distance(&self.arrivals),
            ttft_ms: self.ttft.quantiles(),
            itl_ms: self.itl.quantiles(),
            write_lateness_ms: self.lateness.quantiles(),
            first_arrival: self.arrivals.first().copied().map(Nanos),
        }
    }
}

/// Kolmogorov–Smirnov distance of the gaps between instants from the exponential of the same mean.
pub fn exponential_distance(sorted_instants: &[u64]) -> Option<f64> {
    let mut gaps: Vec<f64> =
        sorted_instants.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    gaps.sort_by(f64::total_cmp);
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    (gaps.len() > 1).then(|| {
        gaps.iter().enumerate().fold(0.0, |worst: f64, (i, gap)| {
            let cdf = 1.0 - (-gap / mean).exp();
            worst.max((cdf - i as f64 / n).abs()).max((cdf - (i + 1) as f64 / n).abs())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_order_statistics() {
        let mut values = BoundedValues::default();
        for ms in (1..=100).rev() {
            values.push(Nanos::from_millis(ms));
        }
        let expected = Quantiles { n: 100, p50: Some(50.0), p99: Some(99.0), max: Some(100.0) };
        assert_eq!(values.quantiles(), expected);
        assert_eq!(BoundedValues::default().quantiles(), Quantiles::default());
    }

    #[test]
    fn even_gaps_are_far_from_exponential() {
        // The exponential has 1 - 1/e of its mass below its mean, even gaps have none.
        let even: Vec<u64> = (0..100).map(|i| i * 1000).collect();
        let distance = exponential_distance(&even).unwrap();
        assert!((distance - (1.0 - (-1.0f64).exp())).abs() < 1e-9, "{distance}");
        assert_eq!(exponential_distance(&[5]), None);
    }
}
