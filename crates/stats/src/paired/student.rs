//! Student's t with any degrees of freedom, and the test of a mean against zero.

use statrs::function::beta::checked_beta_reg;
use statrs::function::erf::erfc;
use statrs::function::gamma::ln_gamma;

use crate::estimate::normal_quantile;

/// From here on the normal distribution is as good, and the incomplete beta function is not.
const NORMAL_DEGREES: f64 = 1e5;

/// What a test of a mean says.
pub(super) struct Test {
    /// Two-sided.
    pub(super) p: f64,
    /// From the mean to either end of its interval.
    pub(super) margin: f64,
}

/// The test of a mean with this standard error; none for an `alpha` outside (0, 1), or where the
/// mean is not finite.
pub(super) fn test_mean(mean: f64, error: f64, degrees: f64, alpha: f64) -> Option<Test> {
    let is_meant = alpha > 0.0 && alpha < 1.0 && mean.is_finite() && error.is_finite();
    if !is_meant {
        return None;
    }
    if error == 0.0 {
        return Some(Test { p: if mean == 0.0 { 1.0 } else { 0.0 }, margin: 0.0 });
    }
    Some(Test { p: two_sided_p(mean / error, degrees), margin: t_critical(alpha, degrees) * error })
}

/// The chance of a t at least so far from zero, on either side.
pub(super) fn two_sided_p(t: f64, degrees: f64) -> f64 {
    if degrees > NORMAL_DEGREES {
        return normal_two_sided_p(t);
    }
    let x = degrees / (degrees + t * t);
    checked_beta_reg(degrees / 2.0, 0.5, x).unwrap_or(f64::NAN)
}

/// The chance of a normal variable at least so far from zero, on either side.
pub(super) fn normal_two_sided_p(z: f64) -> f64 {
    erfc(z.abs() / std::f64::consts::SQRT_2)
}

/// The standard normal variable that is exceeded, on either side, with this chance.
pub(super) fn normal_critical(alpha: f64) -> f64 {
    -normal_quantile(alpha / 2.0)
}

/// The t that is exceeded, on either side, with this chance: the inverse of [`two_sided_p`].
///
/// Newton's method on the logarithm of the chance over that of t, which bends down everywhere: from
/// the second step on it comes from above and does not overshoot. Infinite where no number has a
/// chance so small.
pub(super) fn t_critical(alpha: f64, degrees: f64) -> f64 {
    let mut t = normal_critical(alpha);
    if degrees > NORMAL_DEGREES {
        return t;
    }
    let wanted = alpha.ln();
    for _ in 0..100 {
        let p = two_sided_p(t, degrees);
        let slope = -2.0 * t_density(t, degrees) * t / p;
        let next = t * ((wanted - p.ln()) / slope).exp();
        if !next.is_finite() {
            return f64::INFINITY;
        }
        let is_there = (next / t - 1.0).abs() < 1e-13;
        t = next;
        if is_there {
            break;
        }
    }
    t
}

fn t_density(t: f64, degrees: f64) -> f64 {
    let half = degrees / 2.0;
    let constant =
        ln_gamma(half + 0.5) - ln_gamma(half) - 0.5 * (degrees * std::f64::consts::PI).ln();
    (constant - (half + 0.5) * (t * t / degrees).ln_1p()).exp()
}
