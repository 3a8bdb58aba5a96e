//! Differences between two servers, with the run as the unit.
//!
//! Requests of one run share its luck, so a test over requests finds differences where there are
//! none. Everything here takes one number a block: the logarithm of the ratio of two runs, or their
//! difference.

mod looks;
mod power;
mod quadrature;
mod shares;
mod student;
mod wilcoxon;

#[cfg(test)]
mod tests;

pub use looks::{nominal_alpha, simultaneous_alpha, stepped_alpha};
pub use power::{blocks_to_find, blocks_to_narrow};
pub use shares::{Counts, share_interval};

/// What the differences of several blocks say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paired {
    /// Blocks.
    pub n: u32,
    /// Mean difference.
    pub mean: f64,
    /// Standard deviation of the differences between blocks.
    pub sd: f64,
    /// Lower end of the mean's interval (Student's t).
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Chance of a mean so far from zero, were the true one zero (paired t, two-sided).
    pub p: f64,
    /// The same by Wilcoxon's signed ranks, exactly (beyond 100 blocks by the normal distribution);
    /// none if every difference is zero.
    pub wilcoxon_p: Option<f64>,
    /// The median of all pairwise means, which one outlier hardly moves.
    pub hodges_lehmann: f64,
}

/// What the differences of several blocks say, with an interval of confidence 1 − `alpha`; none of
/// fewer than two blocks, where one is not a finite number (or so large that squares are not), or for
/// an `alpha` outside (0, 1).
///
/// The interval excludes zero if `p < alpha`, and only there. Blocks that are all alike have an
/// interval of no width: of shares see [`Counts`].
pub fn test_paired(differences: &[f64], alpha: f64) -> Option<Paired> {
    let moments = PairMoments::from_values(differences)?;
    let error = (moments.variance / moments.n).sqrt();
    let test = student::test_mean(moments.mean, error, moments.n - 1.0, alpha)?;
    Some(Paired {
        n: differences.len() as u32,
        mean: moments.mean,
        sd: moments.variance.sqrt(),
        low: moments.mean - test.margin,
        high: moments.mean + test.margin,
        p: test.p,
        wilcoxon_p: wilcoxon::p_value(differences),
        hodges_lehmann: wilcoxon::hodges_lehmann(differences)?,
    })
}

/// What two unpaired groups of runs say: the mean of the second less that of the first (Welch's t).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unpaired {
    /// Difference of the means.
    pub mean: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Chance of a difference so large, were the true one zero.
    pub p: f64,
    /// Standard deviation of a difference of two runs, one of each group.
    pub sd: f64,
    /// Degrees of freedom.
    pub degrees: f64,
}

/// None of fewer than two runs on a side, where one is not a finite number (or so large that squares
/// are not), or for an `alpha` outside (0, 1).
pub fn test_unpaired(reference: &[f64], candidate: &[f64], alpha: f64) -> Option<Unpaired> {
    let (spread, degrees) = welch_statistics(reference, candidate)?;
    test_with_spread(spread, degrees, alpha)
}

/// Mean, standard deviation and standard error of a difference of two groups, and its degrees of
/// freedom.
fn welch_statistics(reference: &[f64], candidate: &[f64]) -> Option<([f64; 3], f64)> {
    let (a, b) = (PairMoments::from_values(reference)?, PairMoments::from_values(candidate)?);
    let (of_a, of_b) = (a.variance / a.n, b.variance / b.n);
    let square = of_a + of_b;
    let degrees = if square > 0.0 {
        let share = of_a / square;
        1.0 / (share.powi(2) / (a.n - 1.0) + (1.0 - share).powi(2) / (b.n - 1.0))
    } else {
        a.n + b.n - 2.0
    };
    let sd = (a.variance + b.variance).sqrt();
    Some(([b.mean - a.mean, sd, square.sqrt()], degrees))
}

/// The same of a difference whose spread is known from elsewhere: `mean`, `sd` and standard `error`,
/// and how well that is known; none as above.
pub fn test_with_spread([mean, sd, error]: [f64; 3], degrees: f64, alpha: f64) -> Option<Unpaired> {
    let test = student::test_mean(mean, error, degrees, alpha)?;
    let (low, high) = (mean - test.margin, mean + test.margin);
    Some(Unpaired { mean, low, high, p: test.p, sd, degrees })
}

struct PairMoments {
    n: f64,
    mean: f64,
    variance: f64,
}

impl PairMoments {
    /// None of fewer than two values, or without finite moments.
    fn from_values(values: &[f64]) -> Option<Self> {
        let (first, rest) = values.split_first().filter(|(_, rest)| !rest.is_empty())?;
        let n = values.len() as f64;
        // Rounding must not make a spread of what has none.
        let (mean, variance) = if rest.iter().all(|value| value == first) {
            (*first, 0.0)
        } else {
            let mean = values.iter().sum::<f64>() / n;
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            (mean, squares / (n - 1.0))
        };
        (mean.is_finite() && variance.is_finite()).then_some(Self { n, mean, variance })
    }
}
