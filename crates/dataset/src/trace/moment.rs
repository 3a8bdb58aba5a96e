//! Instants as logs write them.

use goodput_model::Nanos;

use super::decimal::{parse_calendar, parse_nanos};

/// A Unix time in a unit that its size tells: seconds, milliseconds, microseconds or nanoseconds.
/// Seconds of twelve digits would be in the year 5138.
fn parse_epoch(text: &str) -> Option<Nanos> {
    let whole = text.split(['.', 'e', 'E']).next().unwrap_or_default();
    let digits = if text.contains(['e', 'E']) {
        // Few write these, and none exactly.
        text.parse::<f64>()
            .ok()
            .filter(|x| x.is_finite() && *x >= 1.0)
            .map_or(1, |x| x.log10() as usize + 1)
    } else {
        whole.trim_start_matches('0').len()
    };
    match digits {
        0..=11 => parse_nanos(text, 9),
        12..=14 => parse_nanos(text, 6),
        15..=17 => parse_nanos(text, 3),
        _ => parse_nanos(text, 0),
    }
}

/// A Unix time, or an instant of the calendar: of UTC where it names no zone.
pub(super) fn parse_moment(text: &str) -> Option<Nanos> {
    let text = text.trim();
    parse_epoch(text).or_else(|| parse_calendar(text))
}

/// An instant like `16/Nov/2026:09:09:05 +0100`.
pub(super) fn parse_local(text: &str) -> Option<Nanos> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (date, clock) = text.trim().split_once(':')?;
    let mut date = date.split('/');
    let (day, month, year) = (date.next()?, date.next()?, date.next()?);
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    match date.next() {
        None => parse_calendar(&format!("{year}-{month:02}-{day}T{clock}")),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_of_a_unix_time_is_told_by_its_size() {
        // date -u -d '2026-11-16 09:09:05.25' +%s.%N
        let expected = Some(Nanos(1_794_820_145_250_000_000));
        for text in [
            "1794820145.25",
            "1794820145250",
            "1794820145250.0",
            "1794820145250000",
            "1794820145250000000",
            "2026-11-16T09:09:05.250Z",
            "2026-11-16 09:09:05.25",
            "2026-11-16T10:09:05.250000+01:00",
        ] {
            assert_eq!(parse_moment(text), expected, "{text}");
        }
        for text in ["1.79482014525e9", "1.79482014525E12", "1.79482014525e+18"] {
            let off = parse_moment(text).unwrap().0.abs_diff(1_794_820_145_250_000_000);
            assert!(off < 1_000, "{text} is off by {off} ns");
        }
        assert_eq!(parse_moment("0"), Some(Nanos(0)));
        assert_eq!(parse_moment("12.5"), Some(Nanos(12_500_000_000)));
        assert_eq!(parse_moment("1794820145123456789"), Some(Nanos(1_794_820_145_123_456_789)));
        for text in ["", "-", "NaN", "inf", "-5", "99999999999999999999", "e", "1e400", "now"] {
            assert_eq!(parse_moment(text), None, "{text}");
        }
    }

    #[test]
    fn local_times_of_any_zone() {
        let at = |text: &str| parse_local(text).map(|at| at.0 / 1_000_000_000);
        assert_eq!(at("16/Nov/2026:09:09:05 +0000"), Some(1_794_820_145));
        assert_eq!(at("16/Nov/2026:14:39:05 +0530"), Some(1_794_820_145));
        // An hour that the clock shows twice, when summer time ends in Berlin: one hour apart.
        assert_eq!(at("25/Oct/2026:02:30:00 +0200"), Some(1_792_888_200));
        assert_eq!(at("25/Oct/2026:02:30:00 +0100"), Some(1_792_891_800));
        for wrong in [
            "",
            "16/Nov/2026",
            "16/Nov/2026/1:09:09:05 +0000",
            "16/nov/2026:09:09:05 +0000",
            "31/Feb/2026:00:00:00 +0000",
            "x/y/z:a",
        ] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }
}
