//! Instants in the forms of other tools.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use humantime::{format_rfc3339_micros, parse_rfc3339_weak};

/// The first second of the year 10000, which RFC 3339 cannot write.
const END: Duration = Duration::from_hours(70_389_528);

/// The instant some seconds after one in RFC 3339, unless the text is malformed or the sum cannot be written.
pub(crate) fn instant_after(started: &str, seconds: f64) -> Option<SystemTime> {
    let started = parse_rfc3339_weak(started).ok()?;
    let sum = started.checked_add(Duration::try_from_secs_f64(seconds.max(0.0)).ok()?)?;
    (sum < UNIX_EPOCH + END).then_some(sum)
}

/// `2026-11-15T10:22:07.250000`, as Python writes an instant without its zone.
pub(crate) fn to_isoformat(instant: SystemTime) -> String {
    format_rfc3339_micros(instant).to_string().trim_end_matches('Z').to_owned()
}

/// `20261115-102207`
pub(crate) fn to_compact(instant: SystemTime) -> String {
    let text = to_isoformat(instant);
    let seconds = text.split('.').next().unwrap_or_default();
    seconds.chars().filter(|c| !matches!(c, '-' | ':')).collect::<String>().replace('T', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_have_the_forms_of_python() {
        let at = instant_after("2026-12-31T23:59:59Z", 1.25).unwrap();
        assert_eq!(to_isoformat(at), "2027-01-01T00:00:00.250000");
        assert_eq!(to_compact(at), "20270101-000000");
        assert_eq!(instant_after("yesterday", 0.0), None);
        assert_eq!(instant_after("2026-12-31T23:59:59Z", f64::INFINITY), None);
        assert_eq!(
            instant_after("9999-12-31T23:59:59Z", 0.5).map(to_isoformat).unwrap(),
            "9999-12-31T23:59:59.500000"
        );
        assert_eq!(instant_after("9999-12-31T23:59:59Z", 1.0), None);
    }
}
