//! Signed ranks: Wilcoxon's test, exactly, and the estimate that belongs to it.

use super::student::normal_two_sided_p;

/// Up to this many differences the distribution is counted out.
const EXACT: usize = 100;

/// The chance of ranks so one-sided, were every sign as likely as the other. Zeros are left out,
/// equal sizes share the mean of their ranks. None if nothing is left.
pub(super) fn p_value(differences: &[f64]) -> Option<f64> {
    let mut left: Vec<f64> = differences.iter().copied().filter(|value| *value != 0.0).collect();
    left.sort_unstable_by(|a, b| a.abs().total_cmp(&b.abs()));
    if left.is_empty() {
        return None;
    }
    let ranks = doubled_ranks(&left);
    let sum = |is_up: bool| -> usize {
        let of_sign = left.iter().zip(&ranks).filter(|(value, _)| (**value > 0.0) == is_up);
        of_sign.map(|(_, rank)| rank).sum()
    };
    let smaller = sum(true).min(sum(false));
    let one_sided = if left.len() <= EXACT {
        rank_sum_cdf(smaller, &ranks)
    } else {
        // The sum of independent terms that are a rank or zero.
        let (total, squares) = ranks
            .iter()
            .map(|rank| *rank as f64)
            .fold((0.0, 0.0), |(total, squares), rank| (total + rank, squares + rank * rank));
        normal_two_sided_p((total / 2.0 - smaller as f64) / (squares / 4.0).sqrt()) / 2.0
    };
    Some((2.0 * one_sided).min(1.0))
}

/// Twice the rank of each by size, which is a whole number for ties too.
fn doubled_ranks(by_size: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(by_size.len());
    for tied in by_size.chunk_by(|a, b| a.abs() == b.abs()) {
        // The first of them has rank `len + 1`, the last `len + tied`.
        let doubled = 2 * ranks.len() + tied.len() + 1;
        ranks.extend(tied.iter().map(|_| doubled));
    }
    ranks
}

/// The chance that the ranks with a positive sign sum to at most this, each sign a fair coin.
fn rank_sum_cdf(limit: usize, ranks: &[usize]) -> f64 {
    let mut chances = vec![0.0; limit + 1];
    chances[0] = 1.0;
    for rank in ranks {
        for sum in (0..=limit).rev() {
            let with = sum.checked_sub(*rank).map_or(0.0, |before| chances[before]);
            chances[sum] = f64::midpoint(chances[sum], with);
        }
    }
    chances.iter().sum()
}

/// The median of the means of all pairs, each value paired with itself too; none of no values.
pub(super) fn hodges_lehmann(values: &[f64]) -> Option<f64> {
    let pairs = values.iter().enumerate().flat_map(|(place, first)| {
        values.iter().skip(place).map(move |second| f64::midpoint(*first, *second))
    });
    let mut means: Vec<f64> = pairs.collect();
    let middle = means.len() / 2;
    let is_even = means.len().is_multiple_of(2);
    if means.is_empty() {
        return None;
    }
    let (below, upper, _) = means.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().max_by(f64::total_cmp).filter(|_| is_even);
    Some(lower.map_or(*upper, |lower| f64::midpoint(lower, *upper)))
}
