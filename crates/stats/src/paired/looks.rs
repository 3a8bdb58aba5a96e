//! Several looks at blocks that add up: Pocock's constant for looks at any distances.

use super::quadrature::gauss_legendre_nodes;
use super::student::{normal_critical, normal_two_sided_p};

/// The level for each of several looks so that all together are wrong with a chance of `alpha`
/// (Pocock's constant for looks after this many blocks). Of one look it is `alpha` itself.
///
/// Pocock's constant is one of normal variables, and a t of few blocks is more often led astray: its
/// standard deviation changes from look to look too. Counting two blocks fewer at each look sets
/// that right (`tests/study.rs`: looks after 6, 8, 12 and 16 blocks are wrong in 5.4 % without it,
/// in 5.05 % with it). Looks after one block find nothing and cost nothing.
///
/// A family has [`simultaneous_alpha`].
pub fn nominal_alpha(looks: &[u32], alpha: f64) -> f64 {
    let mut looks: Vec<u32> = looks.iter().copied().filter(|blocks| *blocks > 1).collect();
    looks.sort_unstable();
    looks.dedup();
    let information: Vec<f64> =
        looks.iter().map(|blocks| (f64::from(*blocks) - 2.0).max(0.5)).collect();
    alpha_for_information(&information, alpha)
}

/// The level of each of this many tests, at each of several looks, so that all of their intervals hold
/// together with a chance of 1 − `alpha`, however they hang together.
///
/// `alpha` is divided first, and looks take their part of what is left: the smaller α is, the less of
/// it looks may have. The other way round m tests would be wrong together in up to 5.9 % (7 tests,
/// `tests/study.rs`), against 5.3 % this way.
pub fn simultaneous_alpha(looks: &[u32], alpha: f64, tests: usize) -> f64 {
    stepped_alpha(looks, alpha, tests, 0)
}

/// The level at which the next of this many tests may be called different, where the surest ones,
/// `told` of them, are so already. Words by it are wrong with a chance of `alpha` at most, also where
/// what lies inside a margin by its [`simultaneous_alpha`] interval is called equivalent.
///
/// Holm's next step has `alpha / (tests - told)`. But one that differs can still be called equivalent
/// where it is not, with half the chance of its interval, as only one end can do that; so as much
/// stays with each that is told.
pub fn stepped_alpha(looks: &[u32], alpha: f64, tests: usize, told: usize) -> f64 {
    let (tests, told) = (tests.max(1) as f64, told as f64);
    nominal_alpha(looks, alpha * (1.0 - told / (2.0 * tests)) / (tests - told).max(1.0))
}

/// [`nominal_alpha`] of normal variables, at looks with so much information each, which rises; `alpha`
/// itself where it is outside (0, 1).
pub(super) fn alpha_for_information(information: &[f64], alpha: f64) -> f64 {
    if information.len() < 2 || alpha.is_nan() || alpha <= 0.0 || alpha >= 1.0 {
        return alpha;
    }
    // As if the looks were one, and as if they had nothing to do with one another.
    let mut from = normal_critical(alpha);
    let mut to = normal_critical(alpha / information.len() as f64);
    let nodes = gauss_legendre_nodes(nodes_needed(information, to));
    for _ in 0..30 {
        let middle = f64::midpoint(from, to);
        let is_too_near = 1.0 - stay_probability(information, middle, &nodes) > alpha;
        if is_too_near { from = middle } else { to = middle }
    }
    normal_two_sided_p(f64::midpoint(from, to))
}

/// Nodes that leave no structure between them: the density of a look is as fine as the step to its
/// neighbor is short.
fn nodes_needed(information: &[f64], critical: f64) -> u32 {
    let ratios = information.windows(2).map(|pair| match pair {
        [before, after] => (after / (after - before)).sqrt(),
        _ => 0.0,
    });
    let finest = critical * ratios.fold(1.0, f64::max);
    (14.0 + 2.0 * finest).min(400.0) as u32
}

/// The chance that a Brownian motion is within `critical` of its standard deviations at every look.
///
/// Forwards from look to look: the density of its distance from zero among those that are still
/// within, by its values at the nodes of an integral.
fn stay_probability(information: &[f64], critical: f64, nodes: &[(f64, f64)]) -> f64 {
    let Some((first, rest)) = information.split_first() else { return 1.0 };
    let Some((last, rest)) = rest.split_last() else { return 1.0 - normal_two_sided_p(critical) };
    let spread = first.sqrt();
    let limit = critical * spread;
    let mut within: Vec<(f64, f64)> = nodes
        .iter()
        .map(|(x, weight)| {
            (x * limit, weight * limit * 2.0 * normal_density(x * critical) / spread)
        })
        .collect();
    let mut before = *first;
    for now in rest {
        let (limit, spread) = (critical * now.sqrt(), (now - before).sqrt());
        let density = |at: f64| -> f64 {
            let steps = within.iter().map(|(from, mass)| {
                // The distance was on the same side of zero, or on the other.
                mass * (normal_density((at - from) / spread) + normal_density((at + from) / spread))
            });
            steps.sum::<f64>() / spread
        };
        let next = nodes.iter().map(|(x, weight)| (x * limit, weight * limit * density(x * limit)));
        within = next.collect();
        before = *now;
    }
    let (limit, spread) = (critical * last.sqrt(), (last - before).sqrt());
    // The limit may be on either side of where it was.
    let out = |from: f64| {
        normal_upper_tail((limit - from) / spread) + normal_upper_tail((limit + from) / spread)
    };
    within.iter().map(|(from, mass)| mass * (1.0 - out(*from))).sum()
}

/// The density of the standard normal distribution.
fn normal_density(z: f64) -> f64 {
    (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

/// The chance that a standard normal variable exceeds this.
pub(super) fn normal_upper_tail(z: f64) -> f64 {
    statrs::function::erf::erfc(z / std::f64::consts::SQRT_2) / 2.0
}
