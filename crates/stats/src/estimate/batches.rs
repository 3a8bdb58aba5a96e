//! How much less than independent values dependent ones say: contiguous batches of time.
//!
//! While a queue is long, all requests are slow; what counts is how often that happened, not how
//! many requests saw it. Shares and means of batches vary by as much as that.

use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::{TAIL, normal_quantile, student_quantile};

/// Batches that the window is cut into.
pub(crate) const BATCHES: u8 = 20;

/// With fewer batches that hold anything, their spread says too little.
const FEWEST: usize = 10;

/// A ratio of two sums over all batches (a share, or a mean), and its variance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) value: f64,
    /// Of the ratio, by the spread of the batches around it.
    pub(crate) variance: f64,
    /// Batches that held anything.
    pub(crate) batches: u64,
}

impl Ratio {
    /// Of batches with these (numbers of values, sums); None if too few hold anything.
    ///
    /// `v = K/(K-1) · Σ (n_b/n)² (x_b - x)²`: for batches of one size it is the variance of their
    /// means over `K`.
    pub(crate) fn from_batches(batches: impl Iterator<Item = (u64, f64)> + Clone) -> Option<Self> {
        let filled = batches.filter(|batch| batch.0 > 0);
        let count = filled.clone().count();
        let n: u64 = filled.clone().map(|batch| batch.0).sum();
        let ratio = filled.clone().map(|batch| batch.1).sum::<f64>() / n as f64;
        let square = |(size, sum): (u64, f64)| ((sum - ratio * size as f64) / n as f64).powi(2);
        let squares: f64 = filled.map(square).sum();
        let k = count as f64;
        (count >= FEWEST).then(|| Self {
            value: ratio,
            variance: k / (k - 1.0) * squares,
            batches: count as u64,
        })
    }

    /// Its 95 % interval.
    pub(crate) fn confidence_interval(self) -> (f64, f64) {
        let half =
            student_quantile(1.0 - TAIL, self.batches.saturating_sub(1)) * self.variance.sqrt();
        (self.value - half, self.value + half)
    }
}

/// What dependent values say about a quantile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Effective {
    /// As many independent values would say as much; at most as many as there are.
    pub(crate) n: f64,
    /// Degrees of freedom of that estimate; none if independence is taken for granted.
    pub(crate) degrees: Option<u64>,
}

impl Effective {
    /// Of values that are taken for independent.
    pub(crate) fn independent(n: u64) -> Self {
        Self { n: n as f64, degrees: None }
    }

    /// From the (numbers of values, numbers of those beyond the quantile) of each batch; None if
    /// too few hold anything.
    ///
    /// The share `p` beyond it is taken from the values themselves, in the numerator too: where
    /// many are equal to the quantile, fewer than `1 - q` are larger, and `p(1-p)` is the variance
    /// that independent values would have had. Where the share varies no more than chance makes it,
    /// nothing speaks for dependence.
    pub(crate) fn from_batches(batches: impl Iterator<Item = (u64, u64)> + Clone) -> Option<Self> {
        let n: u64 = batches.clone().map(|batch| batch.0).sum();
        let share = Ratio::from_batches(batches.map(|(size, beyond)| (size, beyond as f64)))?;
        let (n, independent) = (n as f64, share.value * (1.0 - share.value));
        let degrees = share.batches - 1;
        let factor = if independent > 0.0 { share.variance * n / independent } else { 1.0 };
        let n = if factor > chance_variance_factor(degrees) { n / factor } else { n };
        Some(Self { n, degrees: Some(degrees) })
    }

    /// The same where the values are known to vary by this factor more than independent ones.
    pub(crate) fn limited_to(self, n: u64, factor: f64) -> Self {
        Self { n: self.n.min((n as f64 / factor.max(1.0)).max(1.0)), ..self }
    }

    /// This many independent values have as wide an interval: what they are worth is an estimate
    /// itself, and t is wider than the normal distribution.
    pub(crate) fn independent_worth(self) -> f64 {
        let narrow = |degrees| normal_quantile(1.0 - TAIL) / student_quantile(1.0 - TAIL, degrees);
        self.n * self.degrees.map_or(1.0, |degrees| narrow(degrees).powi(2))
    }
}

/// One time in ten the shares of batches of independent values vary by more than this factor of what
/// they should.
fn chance_variance_factor(degrees: u64) -> f64 {
    let degrees = degrees.max(1) as f64;
    ChiSquared::new(degrees).map_or(1.0, |known| known.inverse_cdf(0.9) / degrees)
}

/// How much a value tells about the next one: autocorrelation at lag 1, of values in order of time.
/// None of fewer than three, or where none differ.
pub(crate) fn lag1_correlation(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let n = values.clone().count();
    let mean = values.clone().sum::<f64>() / n as f64;
    let squares: f64 = values.clone().map(|value| (value - mean).powi(2)).sum();
    let pairs = values.clone().zip(values.skip(1));
    let products: f64 = pairs.map(|(one, next)| (one - mean) * (next - mean)).sum();
    (n > 2 && squares > 0.0).then(|| products / squares)
}
