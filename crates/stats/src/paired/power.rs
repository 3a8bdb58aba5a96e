//! How many blocks a question needs.

use statrs::function::gamma::ln_gamma;

use super::looks::normal_upper_tail;
use super::quadrature::gauss_legendre_nodes;
use super::student::t_critical;

/// The chance with which a true difference should be found.
const POWER: f64 = 0.8;

/// The fewest blocks that have a spread.
const LEAST: u32 = 2;

/// Beyond this no plan goes.
const MOST: u32 = 10_000;

/// Blocks that find a difference of this size with a power of 80 %, where blocks spread with this
/// standard deviation; at most 10,000. All of them, not those still to come.
pub fn blocks_to_find(difference: f64, sd: f64, alpha: f64) -> u32 {
    let size = difference.abs();
    if let Some(known) = blocks_without_spread(size, sd) {
        return known;
    }
    let nodes = gauss_legendre_nodes(100);
    fewest_blocks(|blocks| t_test_power(size / sd, blocks, alpha, &nodes) >= POWER)
}

/// Blocks after which the interval is at most this wide to either side; at most 10,000. All of
/// them, not those still to come.
pub fn blocks_to_narrow(half_width: f64, sd: f64, alpha: f64) -> u32 {
    if let Some(known) = blocks_without_spread(half_width, sd) {
        return known;
    }
    fewest_blocks(|blocks| t_critical(alpha, blocks - 1.0) * sd / blocks.sqrt() <= half_width)
}

/// Where blocks do not spread, the fewest say it; where their spread is none, no number does.
fn blocks_without_spread(size: f64, sd: f64) -> Option<u32> {
    match sd {
        0.0 if size > 0.0 => Some(LEAST),
        sd if sd > 0.0 => None,
        _ => Some(MOST),
    }
}

/// The fewest blocks for which this holds; it goes on holding.
fn fewest_blocks(holds: impl Fn(f64) -> bool) -> u32 {
    let (mut from, mut to) = (LEAST, MOST);
    while from < to {
        let middle = u32::midpoint(from, to);
        if holds(f64::from(middle)) { to = middle } else { from = middle + 1 }
    }
    from
}

/// The chance that a t-test at this level finds a mean of this many standard deviations. Not a number
/// where one of them is none.
pub(super) fn t_test_power(size: f64, blocks: f64, alpha: f64, nodes: &[(f64, f64)]) -> f64 {
    let (degrees, shift) = (blocks - 1.0, size * blocks.sqrt());
    if !(alpha > 0.0 && alpha < 1.0 && shift.is_finite()) {
        return f64::NAN;
    }
    let limit = t_critical(alpha, degrees);
    // Over the standard deviation that happens to be seen, by its distance from the true one; it has
    // a chi distribution, whose own is about one over the root of twice the degrees.
    let reach = 8.0 / (2.0 * degrees).sqrt();
    let start = (1.0 - reach).max(0.0);
    let width = 1.0 + reach - start;
    let half = degrees / 2.0;
    let constant = std::f64::consts::LN_2 + half * half.ln() - ln_gamma(half);
    let parts = nodes.iter().map(|(x, weight)| {
        let seen = start + x * width;
        let density = (constant + (degrees - 1.0) * seen.ln() - half * seen * seen).exp();
        let found =
            normal_upper_tail(limit * seen - shift) + normal_upper_tail(limit * seen + shift);
        weight * width * density * found
    });
    parts.sum()
}
