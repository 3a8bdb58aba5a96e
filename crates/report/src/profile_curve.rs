//! The curve of a profile of the simulated engine, a line for each rate.

use goodput_campaign::ProfilePoint;

/// What stands above the lines.
pub const PROFILE_CURVE_HEAD: &str =
    "   rate/s  requests  refused  TTFT p50   p99 ms  TPOT p50   p99 ms    tokens/s\n";

/// The line of one rate.
pub fn profile_curve_line(point: &ProfilePoint) -> String {
    let ms = |value: Option<f64>| value.map_or("–".to_owned(), |ms| format!("{ms:.1}"));
    format!(
        "{:>9} {:>9} {:>8} {:>9} {:>8} {:>9} {:>8} {:>11.0}{}\n",
        point.rate,
        point.requests,
        point.refused,
        ms(point.ttft_ms.p50),
        ms(point.ttft_ms.p99),
        ms(point.tpot_ms.p50),
        ms(point.tpot_ms.p99),
        point.tokens_per_s,
        if point.is_saturated { "  saturated" } else { "" }
    )
}
