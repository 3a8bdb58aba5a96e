//! A JSON object whose values are still text, with its fields in the order of the file.

use std::borrow::Cow;
use std::fmt;

use goodput_model::safe_excerpt;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::{EntryError, name_list};

/// The longest length that is taken for one.
pub(crate) const MOST_TOKENS: u32 = 10_000_000;

/// An object, one level deep.
pub(crate) struct JsonObject<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> JsonObject<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self, EntryError> {
        serde_json::from_str(text).map_err(|error| json_fault(text, &error))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// A field that is there and not `null`.
    pub(crate) fn non_null(&self, name: &str) -> Option<&'a RawValue> {
        self.get(name).filter(|value| value.get() != "null")
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_ref())
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), *value))
    }

    /// A field that must be there.
    pub(crate) fn required(&self, name: &str, expected: &str) -> Result<&'a RawValue, EntryError> {
        self.get(name).ok_or_else(|| EntryError::missing(name, self.names(), expected))
    }

    /// A length in tokens, where there is one.
    pub(crate) fn tokens(&self, name: &str) -> Result<Option<u32>, EntryError> {
        self.non_null(name).map(|value| parse_tokens(name, value.get())).transpose()
    }

    /// A length in tokens that must be there.
    pub(crate) fn required_tokens(&self, name: &str) -> Result<u32, EntryError> {
        parse_tokens(name, self.required(name, TOKENS)?.get())
    }

    /// A text or a number as text, where there is one.
    pub(crate) fn label(&self, name: &str) -> Option<String> {
        let raw = self.non_null(name)?.get();
        Some(serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned()))
    }
}

/// The form of a length.
pub(crate) const TOKENS: &str = "a number of tokens from 1 to 10000000";

/// A length in tokens.
pub(crate) fn parse_tokens(name: &str, text: &str) -> Result<u32, EntryError> {
    let wrong = || EntryError::field(name, text, TOKENS);
    let digits = text.trim();
    // Tables that once had gaps write whole numbers as `12.0`.
    let digits = digits.strip_suffix(".0").unwrap_or(digits);
    let number: u32 = digits.parse().map_err(|_| wrong())?;
    if (1..=MOST_TOKENS).contains(&number) { Ok(number) } else { Err(wrong()) }
}

/// A JSON text, borrowed where nothing in it is escaped.
#[derive(serde::Deserialize)]
struct JsonText<'a>(#[serde(borrow)] Cow<'a, str>);

/// A field's text.
pub(crate) fn parse_string<'a>(
    name: &str,
    raw: &'a RawValue,
    expected: &str,
) -> Result<Cow<'a, str>, EntryError> {
    serde_json::from_str::<JsonText<'a>>(raw.get())
        .map(|text| text.0)
        .map_err(|_| EntryError::field(name, raw.get(), expected))
}

/// What is wrong with a JSON text.
pub(crate) fn json_fault(text: &str, error: &serde_json::Error) -> EntryError {
    let shown = safe_excerpt(text.trim_start());
    if error.is_eof() {
        return EntryError::with_hint(
            format!("JSON ends too early in `{shown}`"),
            "is the file truncated? One object on each line is expected, or an array of objects",
        );
    }
    if error.is_data() {
        return EntryError::from(format!("expected a JSON object: `{shown}`"));
    }
    if let Some(fault) = invalid_number_error(text, error.line(), error.column()) {
        return fault;
    }
    EntryError::from(format!("invalid JSON at column {}: `{shown}`", error.column()))
}

/// `NaN` and infinities, which some writers take for JSON: the field that has one.
pub(crate) fn invalid_number_error(text: &str, line: usize, column: usize) -> Option<EntryError> {
    let line = text.split('\n').nth(line.checked_sub(1)?)?;
    // The column is that of the byte where the reader gave up: within the word.
    let until = line.get(..column.min(line.len()))?;
    let (before, word) = until.rsplit_once(':')?;
    let word = word.trim_start();
    let full = ["NaN", "Infinity", "-Infinity"]
        .into_iter()
        .find(|full| !word.is_empty() && full.starts_with(word))?;
    let (_, name) = before.trim_end().strip_suffix('"')?.rsplit_once('"')?;
    Some(EntryError::field(name, full, "a finite number"))
}

/// Fields that a reader knows nothing of.
pub(crate) fn unknown_field(name: &str, known: &[&str]) -> EntryError {
    let name = safe_excerpt(name);
    EntryError::from(format!(
        "unknown field `{name}`, expected one of {}",
        name_list(known.iter().copied())
    ))
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldIter;
        impl<'de> Visitor<'de> for FieldIter {
            type Value = JsonObject<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((JsonText(key), value)) =
                    map.next_entry::<JsonText<'de>, &'de RawValue>()?
                {
                    fields.push((key, value));
                }
                Ok(JsonObject(fields))
            }
        }
        deserializer.deserialize_map(FieldIter)
    }
}
