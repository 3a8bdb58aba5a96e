//! Python writes `NaN` and `Infinity` into JSON, which has neither.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

const WORDS: [(&[u8], &[u8]); 3] =
    [(b"NaN", b"null"), (b"-Infinity", b"null"), (b"Infinity", b"\"inf\"")];

/// The same text with those words replaced, and how many of them are not values: a rate may well be
/// infinite.
pub(super) fn repair_json(text: &[u8]) -> (Cow<'_, [u8]>, u64) {
    let mut out: Vec<u8> = Vec::new();
    let (mut copied, mut count, mut replaced) = (0, 0, false);
    let (mut in_string, mut at) = (false, 0);
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' if in_string => at += 1,
            b'"' => in_string = !in_string,
            b'N' | b'I' | b'-' if !in_string => {
                let rest = text.get(at..).unwrap_or_default();
                if let Some((word, instead)) = WORDS.iter().find(|(w, _)| rest.starts_with(w)) {
                    out.extend(text.get(copied..at).unwrap_or_default());
                    out.extend(*instead);
                    at += word.len();
                    copied = at;
                    replaced = true;
                    count += u64::from(*instead == b"null");
                    continue;
                }
            }
            _ => {}
        }
        at += 1;
    }
    if !replaced {
        return (Cow::Borrowed(text), 0);
    }
    out.extend(text.get(copied..).unwrap_or_default());
    (Cow::Owned(out), count)
}

/// A number in a list; none if it is missing or not finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ListedNumber(pub(super) Option<f64>);

impl<'de> Deserialize<'de> for ListedNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListedVisitor)
    }
}

struct ListedVisitor;

impl Visitor<'_> for ListedVisitor {
    type Value = ListedNumber;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<ListedNumber, E> {
        Ok(ListedNumber(Some(value)))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<ListedNumber, E> {
        Ok(ListedNumber(Some(value as f64)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<ListedNumber, E> {
        Ok(ListedNumber(Some(value as f64)))
    }

    fn visit_unit<E: Error>(self) -> Result<ListedNumber, E> {
        Ok(ListedNumber(None))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<ListedNumber, E> {
        // What stands for `Infinity`.
        if value == "inf" { Ok(ListedNumber(None)) } else { Err(E::custom("not a number")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_may_hold_what_is_not_finite() {
        let (text, _) = repair_json(b"[1, -2, 0.5, null, NaN, Infinity]");
        let list: Vec<ListedNumber> = serde_json::from_slice(&text).unwrap();
        let values: Vec<_> = list.into_iter().map(|listed| listed.0).collect();
        assert_eq!(values, [Some(1.0), Some(-2.0), Some(0.5), None, None, None]);
        assert!(serde_json::from_str::<Vec<ListedNumber>>("[\"x\"]").is_err());
    }

    #[test]
    fn only_bare_words_are_replaced() {
        let text = br#"{"a": NaN, "b": [-Infinity, Infinity], "c": "NaN \" Infinity", "d": -1}"#;
        let (repaired, count) = repair_json(text);
        let expected = r#"{"a": null, "b": [null, "inf"], "c": "NaN \" Infinity", "d": -1}"#;
        assert_eq!((std::str::from_utf8(&repaired).unwrap(), count), (expected, 2));
        assert!(matches!(repair_json(b"[1]"), (Cow::Borrowed(_), 0)));
        for odd in [&b"\""[..], b"\"\\", b"-", b"NaN", b"Infinit", b"\"NaN"] {
            repair_json(odd);
        }
    }
}
