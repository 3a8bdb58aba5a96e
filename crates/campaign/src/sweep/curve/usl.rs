//! The universal scalability law (Gunther) through throughput over the number in flight.
//!
//! Answers are counts: a throughput X over T seconds has a variance of X/T, and weighs its inverse.
//! Contention and coherence are not negative. Points under which the server falls behind are left
//! out: there the number in flight says how long the point was.

use goodput_model::EndedBy;

use super::{Usl, bootstrap, by_level, knee::is_lost, positive};
use crate::sweep::PointSummary;

/// Fewer levels than twice the unknowns say little.
const FEWEST: usize = 6;
const ROUNDS: usize = 100;
/// A peak beyond this many times the requests in flight is a rounding of β, not an observation.
const REACH: f64 = 10.0;

/// Number in flight, throughput, weight.
#[derive(Debug, Clone, Copy)]
struct UslPoint {
    n: f64,
    x: f64,
    weight: f64,
}

/// γ, α, β.
type Law = [f64; 3];

pub(super) fn usl(points: &[&PointSummary]) -> Option<Usl> {
    let used: Vec<&PointSummary> =
        points.iter().copied().filter(|point| seen(point).is_some()).collect();
    if by_level(&used).len() < FEWEST {
        return None;
    }
    let all: Vec<UslPoint> = used.iter().filter_map(|point| seen(point)).collect();
    let law = fit(&all)?;
    let most = all.iter().map(|seen| seen.n).fold(0.0, f64::max);
    let again = |points: &[&PointSummary]| {
        let drawn: Vec<UslPoint> = points.iter().filter_map(|point| seen(point)).collect();
        // A law without a peak has it at infinity.
        Some(peak(fit(&drawn)?, most).unwrap_or(f64::INFINITY))
    };
    let peak = peak(law, most).map(|at| bootstrap::interval(&used, at, again));
    let [gamma, alpha, beta] = law;
    Some(Usl { gamma, alpha, beta, peak, points: all.len() as u32, r2: explained(law, &all)? })
}

fn seen(point: &PointSummary) -> Option<UslPoint> {
    let figures = &point.point.figures;
    if is_lost(point) || figures.ended_by == Some(EndedBy::Hopeless) {
        return None;
    }
    let (n, x) = (positive(figures.in_flight)?, positive(figures.requests_per_s)?);
    Some(UslPoint { n, x, weight: positive(Some(figures.window_s / x))? })
}

/// Where throughput is highest; none if it rises forever, or as far as can be told.
fn peak([_, alpha, beta]: Law, most: f64) -> Option<f64> {
    let at = (beta > 0.0 && alpha < 1.0).then(|| ((1.0 - alpha) / beta).sqrt())?;
    (at <= REACH * most).then_some(at)
}

/// The law with the least weighted squares among those without negative parts.
fn fit(seen: &[UslPoint]) -> Option<Law> {
    let is_allowed = |law: &Law| law[0] > 0.0 && law[1] >= 0.0 && law[2] >= 0.0;
    let all = descend(seen, [true, true, true]).filter(is_allowed);
    // Else the best one lies on an edge.
    all.or_else(|| {
        [[true, true, false], [true, false, true], [true, false, false]]
            .into_iter()
            .filter_map(|free| descend(seen, free).filter(is_allowed))
            .min_by(|a, b| squares(*a, seen).total_cmp(&squares(*b, seen)))
    })
}

/// Levenberg–Marquardt over the free ones of the parameters; the others are 0.
fn descend(seen: &[UslPoint], free: [bool; 3]) -> Option<Law> {
    let mut law = start(seen, free)?;
    let mut error = squares(law, seen);
    let mut damping = 1e-3;
    for _ in 0..ROUNDS {
        let (matrix, vector) = normal(law, seen, free);
        let step = solve(damped(matrix, damping), vector)?;
        let next = [law[0] + step[0], law[1] + step[1], law[2] + step[2]];
        let after = squares(next, seen);
        if after < error {
            let is_there = error - after <= 1e-15 * error;
            (law, error, damping) = (next, after, (damping * 0.1).max(1e-12));
            if is_there {
                break;
            }
        } else if damping > 1e12 {
            break;
        } else {
            damping *= 10.0;
        }
    }
    error.is_finite().then_some(law)
}

/// N/X is linear in 1/γ, α/γ and β/γ: close, but with other weights.
fn start(seen: &[UslPoint], free: [bool; 3]) -> Option<Law> {
    let (mut matrix, mut vector) = ([[0.0; 3]; 3], [0.0; 3]);
    for UslPoint { n, x, weight } in seen {
        let basis = masked([1.0, n - 1.0, n * (n - 1.0)], free);
        let weight = weight * x.powi(4) / (n * n);
        gather(&mut matrix, &mut vector, basis, weight, n / x);
    }
    let [a, b, c] = solve(fill(matrix, free), vector)?;
    let law = [1.0 / a, b / a, c / a];
    if law[0] > 0.0 && squares(law, seen).is_finite() {
        return Some(law);
    }
    // Noise beyond sense: start from a server that does not slow down.
    let mean = seen.iter().map(|seen| seen.x / seen.n).sum::<f64>() / seen.len() as f64;
    Some([positive(Some(mean))?, 0.0, 0.0])
}

fn divisor([_, alpha, beta]: Law, n: f64) -> f64 {
    1.0 + alpha * (n - 1.0) + beta * n * (n - 1.0)
}

/// Infinite where the law is none.
fn squares(law: Law, seen: &[UslPoint]) -> f64 {
    let square = |UslPoint { n, x, weight }: &UslPoint| {
        let below = divisor(law, *n);
        if below > 0.0 { weight * (x - law[0] * n / below).powi(2) } else { f64::INFINITY }
    };
    let sum: f64 = seen.iter().map(square).sum();
    if sum.is_nan() { f64::INFINITY } else { sum }
}

/// The normal equations of a step.
fn normal(law: Law, seen: &[UslPoint], free: [bool; 3]) -> ([[f64; 3]; 3], [f64; 3]) {
    let (mut matrix, mut vector) = ([[0.0; 3]; 3], [0.0; 3]);
    for UslPoint { n, x, weight } in seen {
        let below = divisor(law, *n);
        let model = law[0] * n / below;
        let slope = [n / below, -model * (n - 1.0) / below, -model * n * (n - 1.0) / below];
        gather(&mut matrix, &mut vector, masked(slope, free), *weight, x - model);
    }
    (fill(matrix, free), vector)
}

fn masked(values: [f64; 3], free: [bool; 3]) -> [f64; 3] {
    std::array::from_fn(|i| if free[i] { values[i] } else { 0.0 })
}

fn gather(
    matrix: &mut [[f64; 3]; 3],
    vector: &mut [f64; 3],
    basis: [f64; 3],
    weight: f64,
    target: f64,
) {
    for i in 0..3 {
        for j in 0..3 {
            matrix[i][j] += weight * basis[i] * basis[j];
        }
        vector[i] += weight * basis[i] * target;
    }
}

/// Parameters that are not free have an equation of their own: they stay.
fn fill(mut matrix: [[f64; 3]; 3], free: [bool; 3]) -> [[f64; 3]; 3] {
    for i in 0..3 {
        if !free[i] {
            matrix[i][i] = 1.0;
        }
    }
    matrix
}

fn damped(mut matrix: [[f64; 3]; 3], damping: f64) -> [[f64; 3]; 3] {
    for (i, row) in matrix.iter_mut().enumerate() {
        row[i] *= 1.0 + damping;
    }
    matrix
}

/// Elimination with the unknowns brought to one scale; none if the equations say the same twice.
fn solve(matrix: [[f64; 3]; 3], vector: [f64; 3]) -> Option<[f64; 3]> {
    let scale: [f64; 3] = std::array::from_fn(|i| matrix[i][i].sqrt());
    if scale.iter().any(|s| !s.is_finite() || *s <= 0.0) {
        return None;
    }
    let mut rows: [[f64; 4]; 3] = std::array::from_fn(|i| {
        std::array::from_fn(|j| match j {
            3 => vector[i] / scale[i],
            j => matrix[i][j] / (scale[i] * scale[j]),
        })
    });
    for column in 0..3 {
        let pivot =
            (column..3).max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()))?;
        rows.swap(column, pivot);
        let chosen = rows[column];
        if chosen[column].is_nan() || chosen[column].abs() <= 1e-13 {
            return None;
        }
        for (_, row) in rows.iter_mut().enumerate().filter(|(place, _)| *place != column) {
            let times = row[column] / chosen[column];
            for (value, of) in row.iter_mut().zip(chosen) {
                *value -= times * of;
            }
        }
    }
    let found = std::array::from_fn(|i| rows[i][3] / rows[i][i] / scale[i]);
    found.iter().all(|v: &f64| v.is_finite()).then_some(found)
}

/// The share of the weighted variance that the law explains.
fn explained(law: Law, seen: &[UslPoint]) -> Option<f64> {
    let weight: f64 = seen.iter().map(|seen| seen.weight).sum();
    let mean = seen.iter().map(|seen| seen.weight * seen.x).sum::<f64>() / weight;
    let around: f64 = seen.iter().map(|seen| seen.weight * (seen.x - mean).powi(2)).sum();
    positive(Some(around)).map(|around| 1.0 - squares(law, seen) / around)
}
