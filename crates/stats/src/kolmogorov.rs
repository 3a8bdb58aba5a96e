//! Are these gaps exponential? The Kolmogorov–Smirnov test against the rate that was asked for.

use goodput_model::Nanos;

use crate::summary::GapTest;

/// Tests the gaps between sorted instants against the exponential distribution of this rate.
pub(crate) fn test_exponential_gaps(sorted: &[Nanos], per_second: f64) -> Option<GapTest> {
    let mut gaps: Vec<f64> = sorted.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    gaps.sort_by(f64::total_cmp);
    let n = gaps.len() as f64;
    let distance = gaps.iter().enumerate().fold(0.0, |worst: f64, (index, gap)| {
        let expected = -f64::exp_m1(-gap * per_second);
        let (below, above) = (index as f64 / n, (index + 1) as f64 / n);
        worst.max((expected - below).abs()).max((above - expected).abs())
    });
    (gaps.len() >= 8).then(|| GapTest { n: gaps.len() as u64, distance, p: p_value(distance, n) })
}

/// The chance of a distance at least this large if the distribution is right (asymptotic, with
/// Stephens' correction for small samples).
fn p_value(distance: f64, n: f64) -> f64 {
    let x = (n.sqrt() + 0.12 + 0.11 / n.sqrt()) * distance;
    if x < 0.2 {
        return 1.0;
    }
    let term = |k: i32| {
        let sign = if k % 2 == 1 { 2.0 } else { -2.0 };
        sign * (-2.0 * f64::from(k * k) * x * x).exp()
    };
    (1..=100).map(term).sum::<f64>().clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Instants whose gaps are the quantiles of an exponential distribution: as exponential as a
    /// sample can be.
    fn quantiles(n: u32, per_second: f64) -> Vec<Nanos> {
        let mut at = 0.0;
        let gap = |k: u32| -(1.0 - (f64::from(k) + 0.5) / f64::from(n)).ln() / per_second;
        let instants = (0..n).map(|k| {
            at += gap(k);
            Nanos::from_secs_f64(at)
        });
        std::iter::once(Nanos::ZERO).chain(instants.collect::<Vec<_>>()).collect()
    }

    #[test]
    fn exponential_gaps_pass_and_others_do_not() {
        let good = test_exponential_gaps(&quantiles(1000, 50.0), 50.0).unwrap();
        assert!((good.distance - 0.0005).abs() < 1e-4 && good.p > 0.99, "{good:?}");
        let wrong_rate = test_exponential_gaps(&quantiles(1000, 50.0), 40.0).unwrap();
        // The largest difference of two exponentials lies at ln(50/40)/(50-40) and is 0.0819.
        assert!((wrong_rate.distance - 0.0819).abs() < 1e-3 && wrong_rate.p < 1e-5);
        let even: Vec<_> = (0..1000).map(|k| Nanos::from_millis(20 * k)).collect();
        assert!(
            (test_exponential_gaps(&even, 50.0).unwrap().distance - (1.0 - (-1.0f64).exp())).abs()
                < 1e-3
        );
        assert_eq!(test_exponential_gaps(&even[..8], 50.0), None);
    }

    #[test]
    fn p_values_of_the_tables() {
        // The 5 % and 1 % points of the limiting distribution are 1.358 and 1.628.
        assert!((p_value(1.358 / 1000.0, 1e6) - 0.05).abs() < 1e-3);
        assert!((p_value(1.628 / 1000.0, 1e6) - 0.01).abs() < 1e-3);
    }
}
