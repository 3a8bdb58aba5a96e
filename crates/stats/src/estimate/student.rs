//! Quantiles of the normal distribution and of Student's t.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The quantile of the standard normal distribution; not a number outside (0, 1).
pub fn normal_quantile(probability: f64) -> f64 {
    let is_inside = probability > 0.0 && probability < 1.0;
    let normal = Normal::new(0.0, 1.0).ok().filter(|_| is_inside);
    normal.map_or(f64::NAN, |normal| normal.inverse_cdf(probability))
}

/// The chance of at most this of the standard normal distribution.
pub(crate) fn normal_chance(value: f64) -> f64 {
    Normal::new(0.0, 1.0).map_or(f64::NAN, |normal| normal.cdf(value))
}

/// The quantile of Student's t with this many degrees of freedom; not a number outside (0, 1), or
/// without any degree.
pub fn student_quantile(probability: f64, degrees: u64) -> f64 {
    // The difference is below one in 10^6 from here on, and the inverse slows down.
    if degrees > 1_000_000 {
        return normal_quantile(probability);
    }
    let is_inside = probability > 0.0 && probability < 1.0;
    let student = StudentsT::new(0.0, 1.0, degrees as f64).ok().filter(|_| is_inside);
    student.map_or(f64::NAN, |student| student.inverse_cdf(probability))
}
