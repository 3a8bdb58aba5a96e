//! The universal scalability law (Gunther) through throughput over the number in flight.
//!
//! Answers are counts: a throughput X over T seconds has a variance of X/T, and weighs its inverse.
//! Contention and coherence are not negative. Points under which the server falls behind are left
//! out: there the number in flight says how long the point was.

use goodput_model::EndedBy;

use super::{Usl, bootstrap, by_level, knee::has_fallen_behind, positive_value};
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

pub(super) fn fit_usl(points: &[&PointSummary]) -> Option<Usl> {
    let used: Vec<&PointSummary> =
        points.iter().copied().filter(|point| usl_point(point).is_some()).collect();
    if by_level(&used).len() < FEWEST {
        return None;
    }
    let all: Vec<UslPoint> = used.iter().filter_map(|point| usl_point(point)).collect();
    let law = fit_law(&all)?;
    let most = all.iter().map(|seen| seen.n).fold(0.0, f64::max);
    let again = |points: &[&PointSummary]| {
        let drawn: Vec<UslPoint> = points.iter().filter_map(|point| usl_point(point)).collect();
        // A law without a peak has it at infinity.
        Some(throughput_peak(fit_law(&drawn)?, most).unwrap_or(f64::INFINITY))
    };
    let peak = throughput_peak(law, most).map(|at| bootstrap::bootstrap_interval(&used, at, again));
    let [gamma, alpha, beta] = law;
    Some(Usl {
        gamma,
        alpha,
        beta,
        peak,
        points: all.len() as u32,
        r2: explained_share(law, &all)?,
    })
}

fn usl_point(point: &PointSummary) -> Option<UslPoint> {
    let figures = &point.point.figures;
    if has_fallen_behind(point) || figures.ended_by == Some(EndedBy::Hopeless) {
        return None;
    }
    let (n, x) = (positive_value(figures.in_flight)?, positive_value(figures.requests_per_s)?);
    Some(UslPoint { n, x, weight: positive_value(Some(figures.window_s / x))? })
}

/// Where throughput is highest; none if it rises forever, or as far as can be told.
fn throughput_peak([_, alpha, beta]: Law, most: f64) -> Option<f64> {
    let at = (beta > 0.0 && alpha < 1.0).then(|| ((1.0 - alpha) / beta).sqrt())?;
    (at <= REACH * most).then_some(at)
}

/// The law with the least weighted squares among those without negative parts.
fn fit_law(seen: &[UslPoint]) -> Option<Law> {
    let is_allowed = |law: &Law| law[0] > 0.0 && law[1] >= 0.0 && law[2] >= 0.0;
    let all = levenberg_marquardt(seen, [true, true, true]).filter(is_allowed);
    // Else the best one lies on an edge.
    all.or_else(|| {
        [[true, true, false], [true, false, true], [true, false, false]]
            .into_iter()
            .filter_map(|free| levenberg_marquardt(seen, free).filter(is_allowed))
            .min_by(|a, b| weighted_squares(*a, seen).total_cmp(&weighted_squares(*b, seen)))
    })
}

/// Levenberg–Marquardt over the free ones of the parameters; the others are 0.
fn levenberg_marquardt(seen: &[UslPoint], free: [bool; 3]) -> Option<Law> {
    let mut law = linear_start(seen, free)?;
    let mut error = weighted_squares(law, seen);
    let mut damping = 1e-3;
    for _ in 0..ROUNDS {
        let (matrix, vector) = normal_equations(law, seen, free);
        let step = solve_linear(damp_diagonal(matrix, damping), vector)?;
        let next = [law[0] + step[0], law[1] + step[1], law[2] + step[2]];
        let after = weighted_squares(next, seen);
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
fn linear_start(seen: &[UslPoint], free: [bool; 3]) -> Option<Law> {
    let (mut matrix, mut vector) = ([[0.0; 3]; 3], [0.0; 3]);
    for UslPoint { n, x, weight } in seen {
        let basis = mask_fixed([1.0, n - 1.0, n * (n - 1.0)], free);
        let weight = weight * x.powi(4) / (n * n);
        add_equation(&mut matrix, &mut vector, basis, weight, n / x);
    }
    let [a, b, c] = solve_linear(fix_parameters(matrix, free), vector)?;
    let law = [1.0 / a, b / a, c / a];
    if law[0] > 0.0 && weighted_squares(law, seen).is_finite() {
        return Some(law);
    }
    // Noise beyond sense: start from a server that does not slow down.
    let mean = seen.iter().map(|seen| seen.x / seen.n).sum::<f64>() / seen.len() as f64;
    Some([positive_value(Some(mean))?, 0.0, 0.0])
}

fn law_denominator([_, alpha, beta]: Law, n: f64) -> f64 {
    1.0 + alpha * (n - 1.0) + beta * n * (n - 1.0)
}

/// Infinite where the law is none.
fn weighted_squares(law: Law, seen: &[UslPoint]) -> f64 {
    let square = |UslPoint { n, x, weight }: &UslPoint| {
        let below = law_denominator(law, *n);
        if below > 0.0 { weight * (x - law[0] * n / below).powi(2) } else { f64::INFINITY }
    };
    let sum: f64 = seen.iter().map(square).sum();
    if sum.is_nan() { f64::INFINITY } else { sum }
}

/// The normal equations of a step.
fn normal_equations(law: Law, seen: &[UslPoint], free: [bool; 3]) -> ([[f64; 3]; 3], [f64; 3]) {
    let (mut matrix, mut vector) = ([[0.0; 3]; 3], [0.0; 3]);
    for UslPoint { n, x, weight } in seen {
        let below = law_denominator(law, *n);
        let model = law[0] * n / below;
        let slope = [n / below, -model * (n - 1.0) / below, -model * n * (n - 1.0) / below];
        add_equation(&mut matrix, &mut vector, mask_fixed(slope, free), *weight, x - model);
    }
    (fix_parameters(matrix, free), vector)
}

fn mask_fixed(values: [f64; 3], free: [bool; 3]) -> [f64; 3] {
    std::array::from_fn(|i| if free[i] { values[i] } else { 0.0 })
}

fn add_equation(
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
fn fix_parameters(mut matrix: [[f64; 3]; 3], free: [bool; 3]) -> [[f64; 3]; 3] {
    for i in 0..3 {
        if !free[i] {
            matrix[i][i] = 1.0;
        }
    }
    matrix
}

fn damp_diagonal(mut matrix: [[f64; 3]; 3], damping: f64) -> [[f64; 3]; 3] {
    for (i, row) in matrix.iter_mut().enumerate() {
        row[i] *= 1.0 + damping;
    }
    matrix
}

/// Elimination with the unknowns brought to one scale; none if the equations say the same twice.
fn solve_linear(matrix: [[f64; 3]; 3], vector: [f64; 3]) -> Option<[f64; 3]> {
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
fn explained_share(law: Law, seen: &[UslPoint]) -> Option<f64> {
    let weight: f64 = seen.iter().map(|seen| seen.weight).sum();
    let mean = seen.iter().map(|seen| seen.weight * seen.x).sum::<f64>() / weight;
    let around: f64 = seen.iter().map(|seen| seen.weight * (seen.x - mean).powi(2)).sum();
    positive_value(Some(around)).map(|around| 1.0 - weighted_squares(law, seen) / around)
}
