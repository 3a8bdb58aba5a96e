//! The few statistics the benchmark needs, written apart from the ones under test.

use serde_json::{Value, json};

/// Values in nanoseconds.
#[derive(Debug, Default)]
pub struct Distribution(Vec<u64>);

impl Distribution {
    /// Adds a value.
    pub fn push(&mut self, nanos: u64) {
        self.0.push(nanos);
    }

    /// Number, quantiles and extremes in milliseconds.
    pub fn summary(&mut self) -> Value {
        self.0.sort_unstable();
        let quantile = |q: f64| {
            let rank = (self.0.len() as f64 * q).ceil().max(1.0) as usize;
            self.0.get(rank - 1).map(|nanos| *nanos as f64 / 1e6)
        };
        json!({
            "n": self.0.len(), "p50": quantile(0.5), "p99": quantile(0.99), "max": quantile(1.0),
        })
    }
}

/// Kolmogorov–Smirnov distance of gaps between instants from the exponential of the same mean.
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
