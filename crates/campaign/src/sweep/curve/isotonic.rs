//! Attainment over load, made monotone: more load is not better for users, so rises are chance and
//! are pooled (Ayer and others 1955; pool adjacent violators).

use super::{by_level, positive_value};
use crate::sweep::PointSummary;

/// Level and share, falling; each point weighs as many independent requests as it is worth.
pub(super) fn monotone_attainment(points: &[&PointSummary]) -> Vec<(f64, f64)> {
    let mean = |(level, points): (f64, Vec<&PointSummary>)| {
        let runs = points.iter().filter_map(|point| {
            let figures = &point.point.figures;
            let share = figures.attainment?.value;
            let weight =
                positive_value(figures.n_eff).or(positive_value(Some(figures.requests as f64)))?;
            // No more than was sent: foreign files hold anything.
            let weight = weight.min(figures.requests.max(1) as f64);
            (0.0..=1.0).contains(&share).then_some((share * weight, weight))
        });
        let (good, weight) = runs.fold((0.0, 0.0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
        positive_value(Some(weight)).map(|weight| (level, good / weight, weight))
    };
    let levels: Vec<(f64, f64, f64)> = by_level(points).into_iter().filter_map(mean).collect();
    let weighed: Vec<(f64, f64)> =
        levels.iter().map(|(_, share, weight)| (*share, *weight)).collect();
    levels.iter().map(|(level, ..)| *level).zip(pool_falling(&weighed)).collect()
}

/// The falling sequence closest to these values by weighted squares.
pub(super) fn pool_falling(values: &[(f64, f64)]) -> Vec<f64> {
    // Blocks: mean, weight, and how many values they replace.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    for (value, weight) in values {
        let mut block = (*value, *weight, 1);
        while let Some(last) = blocks.last().copied()
            && last.0 < block.0
        {
            blocks.pop();
            let weight = last.1 + block.1;
            let mean = (last.0 * last.1 + block.0 * block.1) / weight;
            block = (mean, weight, last.2 + block.2);
        }
        blocks.push(block);
    }
    blocks.iter().flat_map(|(mean, _, n)| std::iter::repeat_n(*mean, *n)).collect()
}
