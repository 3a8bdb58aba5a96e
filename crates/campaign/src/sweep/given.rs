//! Levels that the user names.

use super::{Axis, Level};

/// This many levels from one to the other, each larger than the one before by the same ratio.
pub fn geometric_levels(from: f64, to: f64, points: u32) -> impl Iterator<Item = f64> {
    let steps = points.saturating_sub(1);
    let ratio = (to / from).ln() / f64::from(steps.max(1));
    (0..points)
        .map(move |step| if step == steps { to } else { from * (ratio * f64::from(step)).exp() })
}

/// As they are measured: ascending, each once; rates that were computed with three digits.
pub fn sorted_levels(axis: Axis, levels: &[f64], is_computed: bool) -> Vec<f64> {
    let rounded = |level: &f64| match Level::from_value(axis, *level) {
        // Three digits say what a rate is; more only look exact.
        Level::Rate(rate) if is_computed => round_to_three_digits(rate),
        level => level.value(),
    };
    let mut settled: Vec<f64> = levels.iter().map(rounded).collect();
    settled.sort_by(f64::total_cmp);
    settled.dedup();
    settled
}

fn round_to_three_digits(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}
