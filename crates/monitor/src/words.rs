//! Numbers and times for a screen: short, and of a width that does not jump.

/// What is not known.
pub(crate) const NONE: &str = "–";

/// A time in milliseconds, in at most six columns.
pub(crate) fn ms_text(value: Option<f64>) -> String {
    match value {
        None => NONE.to_owned(),
        Some(value) if value.is_nan() => NONE.to_owned(),
        Some(value) if value.is_infinite() => ">limit".to_owned(),
        Some(value) if value < 9.995 => format!("{value:.2}"),
        Some(value) if value < 99.95 => format!("{value:.1}"),
        Some(value) if value < 999_999.5 => format!("{value:.0}"),
        Some(value) => format!("{value:.0e}"),
    }
}

/// An amount that may be large: `0.42`, `12.3`, `4,567`, `12.3k`, `4.6M`.
pub(crate) fn amount_text(value: Option<f64>) -> String {
    match value {
        None => NONE.to_owned(),
        Some(value) if !value.is_finite() => NONE.to_owned(),
        Some(value) if value.abs() < 9.995 => format!("{value:.2}"),
        Some(value) if value.abs() < 999.95 => format!("{value:.1}"),
        Some(value) if value.abs() < 9_999.5 => format!("{value:.0}"),
        Some(value) if value.abs() < 999_950.0 => format!("{:.1}k", value / 1e3),
        Some(value) if value.abs() < 1e12 => format!("{:.1}M", value / 1e6),
        Some(value) => format!("{value:.0e}"),
    }
}

/// A count with its thousands apart.
pub(crate) fn count_text(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A length of time.
pub(crate) fn seconds_text(value: f64) -> String {
    match value {
        value if !value.is_finite() || value < 0.0 => NONE.to_owned(),
        value if value < 99.95 => format!("{value:.1} s"),
        value if value < 5400.0 => format!("{}:{:02} min", value as u64 / 60, value as u64 % 60),
        value => format!("{:.1} h", value / 3600.0),
    }
}

/// A length of time that is guessed.
pub(crate) fn rough_seconds_text(value: f64) -> String {
    match value {
        value if !value.is_finite() || value < 0.0 => NONE.to_owned(),
        value if value < 99.5 => format!("{value:.0} s"),
        value if value < 5400.0 => format!("{:.0} min", value / 60.0),
        value => format!("{:.1} h", value / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let of = |value: f64| {
            (
                ms_text(Some(value)),
                amount_text(Some(value)),
                seconds_text(value),
                rough_seconds_text(value),
            )
        };
        let own = |a: &str, b: &str, c: &str, d: &str| {
            (a.to_owned(), b.to_owned(), c.to_owned(), d.to_owned())
        };
        assert_eq!(of(1.234), own("1.23", "1.23", "1.2 s", "1 s"));
        assert_eq!(of(12.34), own("12.3", "12.3", "12.3 s", "12 s"));
        assert_eq!(of(123.4), own("123", "123.4", "2:03 min", "2 min"));
        assert_eq!(of(12_345.6), own("12346", "12.3k", "3.4 h", "3.4 h"));
        assert_eq!(of(f64::INFINITY), own(">limit", "–", "–", "–"));
        assert_eq!(of(f64::NAN), own("–", "–", "–", "–"));
        assert_eq!(ms_text(Some(1e9)), "1e9");
        assert_eq!(amount_text(Some(4_560_000.0)), "4.6M");
        assert_eq!((ms_text(None), amount_text(None)), ("–".to_owned(), "–".to_owned()));
        assert_eq!([0, 999, 1000, 1_234_567].map(count_text), ["0", "999", "1,000", "1,234,567"]);
    }
}
