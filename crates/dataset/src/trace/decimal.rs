//! Times as files write them: decimal numbers and calendar instants, read without rounding.

use goodput_model::Nanos;

use crate::error::EntryError;

/// The latest instant that is taken for one, in seconds: the year 2286.
const LATEST_S: u64 = 10_000_000_000;

/// A decimal number of units of 10^`digits` nanoseconds, cut to nanoseconds.
pub(crate) fn parse_nanos(text: &str, digits: u32) -> Option<Nanos> {
    let text = text.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let found = if !whole.is_empty() && is_digits(whole) && is_digits(fraction) {
        let unit = 10u64.checked_pow(digits)?;
        let kept: String =
            fraction.chars().chain(std::iter::repeat('0')).take(digits as usize).collect();
        let below: u64 = if kept.is_empty() { 0 } else { kept.parse().ok()? };
        whole.parse::<u64>().ok()?.checked_mul(unit)?.checked_add(below)?
    } else {
        // Exponents: rare, and not worth exactness.
        let number: f64 = text.parse().ok()?;
        let nanos = number * 10f64.powi(digits.cast_signed());
        if !(0.0..1e19).contains(&nanos) {
            return None;
        }
        nanos.round() as u64
    };
    (found <= LATEST_S * 1_000_000_000).then_some(Nanos(found))
}

/// A time in a field, in seconds (9 digits) or milliseconds (6).
pub(super) fn parse_time_field(name: &str, text: &str, digits: u32) -> Result<Nanos, EntryError> {
    let unit = if digits == 9 { "seconds" } else { "milliseconds" };
    parse_nanos(text, digits).ok_or_else(|| {
        EntryError::field(name, text, &format!("a number of {unit} from 0, below the year 2286"))
    })
}

/// Nanoseconds as decimal seconds, as short as they can be.
pub(crate) fn seconds_text(nanos: Nanos) -> String {
    let (whole, below) = (nanos.0 / 1_000_000_000, nanos.0 % 1_000_000_000);
    let text = format!("{whole}.{below:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// An instant like `2023-11-16 18:15:46.6805900` with an optional time zone, or decimal seconds.
pub(super) fn parse_instant(name: &str, text: &str) -> Result<Nanos, EntryError> {
    let found = parse_nanos(text, 9).or_else(|| parse_calendar(text.trim()));
    found.ok_or_else(|| {
        EntryError::field(
            name,
            text,
            "an instant like `2023-11-16 18:15:46.6805900`, or seconds from 0",
        )
    })
}

/// An instant of the calendar, of UTC where it names no zone.
pub(super) fn parse_calendar(text: &str) -> Option<Nanos> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let mut date = date.split('-');
    let year = parse_digits(date.next()?, 4)?;
    let (month, day) = (parse_digits(date.next()?, 2)?, parse_digits(date.next()?, 2)?);
    if date.next().is_some() || !(1970..2286).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    if day < 1 || day > month_days(year, month) {
        return None;
    }
    let (clock, zone) = split_zone(rest.trim())?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut clock = clock.split(':');
    let (hour, minute) = (parse_digits(clock.next()?, 2)?, parse_digits(clock.next()?, 2)?);
    let second = clock.next().map_or(Some(0), |text| parse_digits(text, 2))?;
    if clock.next().is_some() || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds =
        days_since_epoch(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - zone;
    let seconds = u64::try_from(seconds).ok()?;
    parse_nanos(&format!("{seconds}.{fraction}"), 9)
}

/// The time of day, and the seconds that its zone is ahead.
fn split_zone(text: &str) -> Option<(&str, i64)> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Some((clock.trim_end(), 0));
    }
    let Some(at) = text.rfind(['+', '-']) else { return Some((text, 0)) };
    let (clock, zone) = text.split_at_checked(at)?;
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let digits: String = zone.chars().skip(1).filter(|c| *c != ':').collect();
    let digits = if digits.len() == 2 { format!("{digits}00") } else { digits };
    let number = parse_digits(&digits, 4)?;
    let (hours, minutes) = (number / 100, number % 100);
    (hours < 24 && minutes < 60)
        .then_some((clock.trim_end(), sign * (hours * 3_600 + minutes * 60)))
}

fn parse_digits(text: &str, digits: usize) -> Option<i64> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

fn is_leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

fn month_days(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let before = year - 1;
    let leaps = |year: i64| year / 4 - year / 100 + year / 400;
    let years = (year - 1970) * 365 + leaps(before) - leaps(1969);
    let months: i64 = (1..month).map(|month| month_days(year, month)).sum();
    years + months + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(parse_nanos("0.1", 9), Some(Nanos(100_000_000)));
        assert_eq!(parse_nanos("1700000000.123456789", 9), Some(Nanos(1_700_000_000_123_456_789)));
        assert_eq!(parse_nanos("27.5", 6), Some(Nanos(27_500_000)));
        assert_eq!(parse_nanos("1e3", 9), Some(Nanos(1_000_000_000_000)));
        for wrong in ["NaN", "-1", "inf", "", ".", "1.2.3", "1e300", "99999999999", "abc", "-0.5"] {
            assert_eq!(parse_nanos(wrong, 9), None, "{wrong}");
        }
        assert_eq!(seconds_text(Nanos(1_500_000_000)), "1.5");
        assert_eq!(seconds_text(Nanos(0)), "0");
        assert_eq!(seconds_text(Nanos(100_000_000_000)), "100");
        assert_eq!(
            parse_nanos(&seconds_text(Nanos(1_700_000_000_123_456_789)), 9),
            Some(Nanos(1_700_000_000_123_456_789))
        );
    }

    #[test]
    fn instants_of_the_calendar() {
        let at = |text: &str| parse_instant("t", text).ok().map(|at| at.0);
        assert_eq!(at("1970-01-01 00:00:00"), Some(0));
        // date -u -d '2023-11-16 18:15:46' +%s
        assert_eq!(at("2023-11-16 18:15:46.6805900"), Some(1_700_158_546_680_590_000));
        assert_eq!(at("2024-05-10 00:00:00.009930+00:00"), Some(1_715_299_200_009_930_000));
        assert_eq!(at("2024-05-10T02:00:00+02:00"), Some(1_715_299_200_000_000_000));
        assert_eq!(at("2024-05-09T17:00:00-0700"), Some(1_715_299_200_000_000_000));
        assert_eq!(at("2024-02-29T00:00:00Z"), Some(1_709_164_800_000_000_000));
        for wrong in
            ["2023-02-29 00:00:00", "2023-13-01 00:00:00", "2023-11-16", "2023-11-16 24:00:00", "x"]
        {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }
}
