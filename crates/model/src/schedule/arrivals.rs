//! Scheduled instants of an open loop.

use crate::random::{Domain, RandomStream};
use crate::{ArrivalProcess as Process, LoadShape, Nanos, Rate};

use super::shaped::InverseRate;

/// The sequence of scheduled instants, endless unless a shape ends it. Gap *i* is a function of
/// (seed, *i*) alone; the instants are absolute, so nothing drifts, and gaps are never rescaled to
/// hit a count.
#[derive(Debug, Clone)]
pub struct ArrivalSequence {
    pace: RateCourse,
    process: Process,
    seed: u64,
    index: u64,
    last: Nanos,
}

/// How the rate goes over time.
#[derive(Debug, Clone)]
enum RateCourse {
    Even(Rate),
    /// The sum of the gaps at a rate of one, and where on the shape's course that is.
    Shaped(f64, InverseRate),
    /// This many at once, and the time to the next ones.
    Bursts(u64, Nanos),
}

impl ArrivalSequence {
    /// The arrivals of this process at this mean rate.
    pub fn new(rate: Rate, process: Process, seed: u64) -> Self {
        Self { pace: RateCourse::Even(rate), process, seed, index: 0, last: Nanos::ZERO }
    }

    /// The arrivals of this process at a rate that changes: those of a rate of one, moved to where
    /// as many are expected under the shape. Bursts come on time whatever the process.
    pub fn shaped(shape: &LoadShape, process: Process, seed: u64) -> Self {
        let pace = match shape {
            LoadShape::Stages(stages) => RateCourse::Shaped(0.0, InverseRate::stages(stages)),
            LoadShape::Sine { mean, amplitude, period } => {
                RateCourse::Shaped(0.0, InverseRate::sine(*mean, *amplitude, *period))
            }
            LoadShape::Bursts { size, every } => {
                RateCourse::Bursts(u64::from(*size).max(1), Nanos::from(*every))
            }
        };
        Self { pace, process, seed, index: 0, last: Nanos::ZERO }
    }

    /// Whether everything is due at the first instant.
    pub fn is_burst(&self) -> bool {
        matches!(self.pace, RateCourse::Even(Rate::Infinite))
    }
}

/// Gap before arrival `index` in units of the mean gap.
fn gap_before(process: Process, seed: u64, index: u64) -> f64 {
    let mut stream = RandomStream::new(seed, Domain::Arrivals, index);
    match process {
        Process::Constant => 1.0,
        Process::Poisson => stream.draw_exponential(),
        Process::Gamma(cv) => stream.draw_gamma(1.0 / (cv * cv)),
    }
}

impl Iterator for ArrivalSequence {
    type Item = Nanos;

    fn next(&mut self) -> Option<Nanos> {
        let index = self.index;
        let gap = || gap_before(self.process, self.seed, index);
        let at = match (&mut self.pace, self.process) {
            (RateCourse::Even(Rate::Infinite), _) => Nanos::ZERO,
            // Computed from the index, so that a rounded gap is never added up.
            (RateCourse::Even(Rate::PerSecond(rate)), Process::Constant) => {
                Nanos::from_secs_f64(index as f64 / *rate)
            }
            (RateCourse::Even(Rate::PerSecond(rate)), _) => {
                self.last + Nanos::from_secs_f64(gap() / *rate)
            }
            (RateCourse::Bursts(size, every), _) => Nanos(every.0.saturating_mul(index / *size)),
            (RateCourse::Shaped(_, course), Process::Constant) => {
                course.instant_of(index as f64)?
            }
            (RateCourse::Shaped(sum, course), _) => {
                *sum += gap();
                course.instant_of(*sum)?
            }
        };
        self.index += 1;
        // Two that are a fraction of a nanosecond apart may be rounded past one another.
        self.last = self.last.max(at);
        Some(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(process: Process, rate: f64, n: usize) -> Vec<f64> {
        let instants: Vec<_> =
            ArrivalSequence::new(Rate::PerSecond(rate), process, 11).take(n + 1).collect();
        instants.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect()
    }

    fn mean_and_cv(gaps: &[f64]) -> (f64, f64) {
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let var = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        (mean, var.sqrt() / mean)
    }

    #[test]
    fn constant_arrivals_fall_on_exact_multiples() {
        let instants: Vec<_> = ArrivalSequence::new(Rate::PerSecond(3.0), Process::Constant, 1)
            .take(3_000_001)
            .collect();
        assert_eq!(instants[0], Nanos::ZERO);
        assert_eq!(instants[1], Nanos(333_333_333));
        assert_eq!(instants[3_000_000], Nanos(1_000_000 * 1_000_000_000));
    }

    #[test]
    fn a_burst_is_due_at_once() {
        let mut burst = ArrivalSequence::new(Rate::Infinite, Process::Poisson, 1);
        assert!(burst.by_ref().take(100).all(|at| at == Nanos::ZERO));
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        let mut sorted = gaps(Process::Poisson, 50.0, 20_000);
        let (mean, cv) = mean_and_cv(&sorted);
        assert!((mean * 50.0 - 1.0).abs() < 0.03, "mean gap {mean}");
        assert!((cv - 1.0).abs() < 0.03, "cv {cv}");
        // Kolmogorov–Smirnov distance against the exponential; 1.63/sqrt(n) is the 1 % point.
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as f64;
        let distance = sorted.iter().enumerate().fold(0.0_f64, |worst, (i, gap)| {
            let cdf = 1.0 - (-gap * 50.0).exp();
            worst.max((cdf - i as f64 / n).abs()).max((cdf - (i + 1) as f64 / n).abs())
        });
        assert!(distance < 1.63 / n.sqrt(), "distance {distance}");
    }

    #[test]
    fn gamma_gaps_have_the_asked_variation() {
        for cv in [0.3, 2.5] {
            let (mean, actual) = mean_and_cv(&gaps(Process::Gamma(cv), 10.0, 50_000));
            assert!((mean * 10.0 - 1.0).abs() < 0.05, "mean gap {mean}");
            assert!((actual / cv - 1.0).abs() < 0.05, "cv {actual} for {cv}");
        }
    }

    #[test]
    fn the_seed_decides_and_instants_never_go_back() {
        let take = |seed| {
            ArrivalSequence::new(Rate::PerSecond(1000.0), Process::Poisson, seed)
                .take(500)
                .collect::<Vec<_>>()
        };
        assert_eq!(take(5), take(5));
        assert_ne!(take(5), take(6));
        assert!(take(5).is_sorted());
    }
}
