//! Times as people write them.

use std::time::Duration;

/// The longest time that a number without a unit can mean, in seconds: about 30 years.
const MOST_SECONDS: f64 = 1e9;

/// Reads a time such as `90s`, `2m` or `500ms`. A number without a unit is seconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=MOST_SECONDS).contains(&seconds) => {
            Ok(Duration::from_secs_f64(seconds))
        }
        Ok(_) => Err(format!("`{text}` is not a time")),
        Err(_) => humantime::parse_duration(text).map_err(|_| format!("`{text}` is not a time")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_unit_is_seconds() {
        for (text, milliseconds) in [("10", 10_000), ("0", 0), (" 1.5 ", 1_500), ("2m", 120_000)] {
            assert_eq!(parse_duration(text).unwrap(), Duration::from_millis(milliseconds));
        }
        for text in ["", "-1", "nan", "inf", "1e99", "ten", "5 apples"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
