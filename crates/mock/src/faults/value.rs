//! Values of faults: times, sizes, counts.

use goodput_model::Nanos;

/// Longer than any run, and short enough for every sum of instants.
const LONGEST: Nanos = Nanos(30 * 24 * 3_600 * 1_000_000_000);

/// More tokens, events or writes than this are a slip of the finger.
const MOST: u32 = 1_000_000;

/// The units of sizes, largest first.
const UNITS: [(&str, u32); 7] = [
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

const LARGEST: u32 = 1 << 30;

pub(super) fn parse_time(text: &str) -> Result<Nanos, String> {
    let wrong = || format!("`{text}` is not a time: write `2s` or `500ms`");
    let time = Nanos::from(humantime::parse_duration(text).map_err(|_| wrong())?);
    if time > LONGEST { Err(format!("`{text}` is longer than 30 days")) } else { Ok(time) }
}

pub(crate) fn parse_positive_time(text: &str) -> Result<Nanos, String> {
    let time = parse_time(text)?;
    if time == Nanos::ZERO { Err("expected a time above zero".to_owned()) } else { Ok(time) }
}

/// Without the spaces that people like and command lines do not.
pub(super) fn time_text(time: Nanos) -> String {
    humantime::format_duration(time.into()).to_string().replace(' ', "")
}

/// A whole number from `least` up.
pub(super) fn parse_count(text: &str, least: u32) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (least..=MOST).contains(number));
    number.ok_or_else(|| format!("`{text}` is not a whole number from {least} to {MOST}"))
}

/// `A/B`
pub(super) fn split_pair(text: &str) -> Result<(&str, &str), String> {
    text.split_once('/').ok_or_else(|| format!("`{text}` has no `/`"))
}

/// `8MB`, `64KiB`, `1000`
pub(crate) fn parse_size(text: &str) -> Result<u32, String> {
    let wrong = || format!("`{text}` is not a size from 1B to 1GiB: write `8MB` or `64KiB`");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "" => 1,
        _ => UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?.1,
    };
    let number: u32 = number.parse().map_err(|_| wrong())?;
    let bytes = number.checked_mul(factor).filter(|bytes| (1..=LARGEST).contains(bytes));
    bytes.ok_or_else(wrong)
}

/// In the largest unit that divides it.
pub(super) fn size_text(bytes: u32) -> String {
    let unit = UNITS.iter().find(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor));
    unit.map_or_else(|| bytes.to_string(), |(name, factor)| format!("{}{name}", bytes / factor))
}
