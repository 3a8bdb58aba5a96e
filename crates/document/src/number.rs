//! Numbers for people.

/// A value in a table cell: about four significant digits.
pub fn cell_number(value: f64) -> String {
    match value.abs() {
        v if v < 99.995 => format!("{value:.2}"),
        v if v < 9999.95 => format!("{value:.1}"),
        v if v < 9_999_999.5 => format!("{value:.0}"),
        // Wider than a column of the table.
        v if v.is_finite() => format!("{value:.1e}"),
        _ => "–".to_owned(),
    }
}

/// A dash where the value is not known.
pub fn known_or_dash<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), text)
}

/// A rate or an amount in prose, with thousands apart.
pub fn amount(value: f64) -> String {
    if value > 0.0 && value < 0.995 {
        format!("{value:.3}")
    } else if value < 999.95 {
        format!("{value:.1}")
    } else {
        count(value.round() as u64)
    }
}

/// A share in percent; what is not all is never rounded to all, nor something to nothing.
pub fn percent(share: f64) -> String {
    match share {
        1.0 => "100 %".to_owned(),
        0.0 => "0 %".to_owned(),
        most if most < 1.0 && most > 0.9995 => "99.9 %".to_owned(),
        few if few > 0.0 && few < 0.0005 => "<0.1 %".to_owned(),
        share => format!("{:.1} %", share * 100.0),
    }
}

/// At most three decimals, and none that say nothing.
pub fn trimmed_text(value: f64) -> String {
    match value.abs() {
        v if !v.is_finite() => "–".to_owned(),
        v if v < 1e7 => {
            let text = format!("{value:.3}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => format!("{value:.1e}"),
    }
}

/// A whole number with thousands apart.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number of things, such as `1 connection` and `2 connections`.
pub fn plural(n: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(n), if n == 1 { "" } else { "s" })
}

/// A length of time that was measured.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() || s < 0.0 => "–".to_owned(),
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// An interval of which both ends are known, in words; nothing if one is not.
pub fn interval_text(low: Option<f64>, high: Option<f64>, text: impl Fn(f64) -> String) -> String {
    let ends = low.zip(high);
    ends.map_or(String::new(), |(low, high)| format!(" ({} to {})", text(low), text(high)))
}

/// An interval in brackets, with a blank before it; nothing if it is not known.
pub fn range_in_brackets(
    low: Option<f64>,
    high: Option<f64>,
    text: impl Fn(f64) -> String,
) -> String {
    let end = |value: Option<f64>| value.map_or("…".to_owned(), &text);
    match (low, high) {
        (None, None) => String::new(),
        _ => format!(" ({}–{})", end(low), end(high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_size() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(amount(12.34), "12.3");
        assert_eq!(amount(1.0 / 60.0), "0.017");
        assert_eq!(amount(999.96), "1,000");
        assert_eq!(cell_number(0.123), "0.12");
        assert_eq!(cell_number(1234.56), "1234.6");
        assert_eq!(cell_number(99.999), "100.0");
        assert_eq!(cell_number(123_456.7), "123457");
        assert_eq!(cell_number(9_999_999.0), "9999999");
        assert_eq!([1e7, -1e308, f64::NAN].map(cell_number), ["1.0e7", "-1.0e308", "–"]);
        let shares = [1.0, 0.99999, 0.5, 0.00001, 0.0].map(percent);
        assert_eq!(shares, ["100 %", "99.9 %", "50.0 %", "<0.1 %", "0 %"]);
    }
}
