//! MSER-5: where the warm-up ends, by the smallest standard error of the mean of the rest.

/// Observations in a batch.
pub(crate) const BATCH: usize = 5;
/// Two values whose ratio differs by no more than rounding are a tie.
const ROUNDING: f64 = 1e-12;

/// What MSER-5 found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Mser {
    /// Observations to leave out at the beginning: whole batches.
    pub cut: usize,
    /// Number of whole batches; values left over at the end are ignored.
    pub batches: usize,
    /// The cut is the largest allowed, half of the batches: the series is too short for a cut.
    pub at_limit: bool,
}

/// Means of five observations each; the last batch only if it is whole.
pub(crate) fn batch_means(values: &[f64]) -> Vec<f64> {
    values.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect()
}

/// The number d of batches to cut, at most half of all, for which the sum of squares of the rest
/// about its mean, divided by the square of its length, is smallest; the first of equals.
/// `None` without a whole batch.
pub fn mser5(values: &[f64]) -> Option<Mser> {
    let means = batch_means(values);
    let (batches, limit) = (means.len(), means.len() / 2);
    let largest = means.iter().fold(0.0f64, |largest, mean| largest.max(mean.abs()));
    // From the last batch back, each joins the rest by Welford's update: no sum of squares is ever
    // taken from another, so nothing cancels.
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0f64);
    let (mut best, mut cut) = (f64::INFINITY, 0);
    for (index, value) in means.iter().enumerate().rev() {
        count += 1.0;
        let before = value - mean;
        mean += before / count;
        squares += before * (value - mean);
        if index > limit {
            continue;
        }
        let noise = count * (ROUNDING * largest).powi(2);
        let statistic = if squares <= noise { 0.0 } else { squares / (count * count) };
        if statistic <= best * (1.0 + ROUNDING) {
            (best, cut) = (statistic.min(best), index);
        }
    }
    let at_limit = limit > 0 && cut == limit;
    (batches > 0).then_some(Mser { cut: cut * BATCH, batches, at_limit })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, word for word.
    fn statistic(means: &[f64], cut: usize) -> f64 {
        let rest = &means[cut..];
        let n = rest.len() as f64;
        let mean = rest.iter().sum::<f64>() / n;
        rest.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n * n)
    }

    fn brute(values: &[f64]) -> usize {
        let means = batch_means(values);
        let mut best = 0;
        for cut in 1..=means.len() / 2 {
            if statistic(&means, cut) < statistic(&means, best) {
                best = cut;
            }
        }
        best * BATCH
    }

    #[test]
    fn a_step_is_cut_where_it_is() {
        let mut values = vec![9.0; 10];
        values.extend(vec![3.0; 40]);
        assert_eq!(mser5(&values), Some(Mser { cut: 10, batches: 10, at_limit: false }));
        // Four more observations make no batch.
        values.extend([1e9; 4]);
        assert_eq!(mser5(&values), Some(Mser { cut: 10, batches: 10, at_limit: false }));
    }

    #[test]
    fn equals_are_cut_least() {
        assert_eq!(mser5(&[0.1; 55]), Some(Mser { cut: 0, batches: 11, at_limit: false }));
        // The rest is constant from the second batch on: every later cut is as good.
        let mut values = vec![5.0; 5];
        values.extend(vec![0.3; 45]);
        assert_eq!(mser5(&values).unwrap().cut, 5);
    }

    #[test]
    fn a_slope_is_cut_at_the_limit() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(mser5(&values), Some(Mser { cut: 50, batches: 20, at_limit: true }));
        assert_eq!(mser5(&values[..54]), Some(Mser { cut: 25, batches: 10, at_limit: true }));
    }

    #[test]
    fn few_observations() {
        assert_eq!(mser5(&[1.0; 4]), None);
        assert_eq!(mser5(&[1.0; 9]), Some(Mser { cut: 0, batches: 1, at_limit: false }));
    }

    proptest! {
        /// On whole numbers, also far from zero, where differences of large sums would lose all.
        #[test]
        fn as_by_brute_force(
            values in prop::collection::vec(-1000i32..1000, 5..200),
            offset in prop::sample::select(vec![0.0, 1e6, 1e9]),
            begin in 0.0f64..2000.0,
        ) {
            let exact: Vec<f64> = values.iter().enumerate()
                .map(|(index, value)| f64::from(*value) + if index < 20 { begin.floor() } else { 0.0 })
                .collect();
            let moved: Vec<f64> = exact.iter().map(|value| value + offset).collect();
            let (cut, expected) = (mser5(&moved).unwrap().cut, brute(&exact));
            // Equal to the last bits is a tie that rounding may decide either way.
            let means = batch_means(&exact);
            let (ours, best) = (statistic(&means, cut / BATCH), statistic(&means, expected / BATCH));
            prop_assert!(cut == expected || (ours - best).abs() <= 1e-6 * best, "{cut} {expected}");
        }
    }
}
