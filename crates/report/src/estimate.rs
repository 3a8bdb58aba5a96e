//! Lengths of time that are estimates.

/// A length of time that was guessed, without the word `about`.
pub(crate) fn guessed_duration(seconds: f64) -> String {
    if seconds.is_finite() && seconds >= 0.0 {
        goodput_stats::rough_duration(seconds).trim_start_matches("about ").to_owned()
    } else {
        "–".to_owned()
    }
}
