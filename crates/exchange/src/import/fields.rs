//! One object of a result file: its fields are kept as text and read one by one, so that unused fields
//! cost nothing and a value of the wrong type is named by its path.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use goodput_model::safe_excerpt;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("field `{path}` is not {expected}: {found}")]
pub struct FieldError {
    path: String,
    expected: &'static str,
    found: String,
}

/// The fields of an object.
#[derive(Debug, Clone)]
pub(super) struct ImportFields<'a> {
    path: String,
    values: BTreeMap<String, &'a RawValue>,
    /// Figures that were asked for and are infinite, of the whole file.
    infinite: Rc<RefCell<BTreeSet<String>>>,
}

impl<'a> ImportFields<'a> {
    /// The object that `raw` holds; `path` is where it stands.
    pub(super) fn parse(raw: &'a RawValue, path: &str) -> Result<Self, FieldError> {
        match serde_json::from_str(raw.get()) {
            Ok(values) => Ok(Self { path: path.to_owned(), values, infinite: Rc::default() }),
            Err(_) => Err(wrong_type_error(path, "an object", raw)),
        }
    }

    /// An object below this one.
    fn child(&self, raw: &'a RawValue, path: &str) -> Result<Self, FieldError> {
        Ok(Self { infinite: Rc::clone(&self.infinite), ..Self::parse(raw, path)? })
    }

    /// How many of the figures that were asked for are infinite, here and below.
    pub(super) fn infinite_count(&self) -> u64 {
        self.infinite.borrow().len() as u64
    }

    /// The object below `name`; an empty one where it is missing or null.
    pub(super) fn object(&self, name: &str) -> Result<Self, FieldError> {
        match self.raw(name) {
            Some(raw) => self.child(raw, &self.path_of(name)),
            None => Ok(self.empty_object(name)),
        }
    }

    /// The same where it may be something else, as in fields that changed their form.
    pub(super) fn maybe_object(&self, name: &str) -> Self {
        self.object(name).unwrap_or_else(|_| self.empty_object(name))
    }

    /// The objects of a list; none if it is missing.
    pub(super) fn objects(&self, name: &str) -> Result<Vec<Self>, FieldError> {
        let Some(raw) = self.raw(name) else { return Ok(Vec::new()) };
        let path = self.path_of(name);
        let list: Vec<&RawValue> = serde_json::from_str(raw.get())
            .map_err(|_| wrong_type_error(&path, "a list of objects", raw))?;
        let each = list.into_iter().enumerate();
        each.map(|(index, raw)| self.child(raw, &format!("{path}[{index}]"))).collect()
    }

    /// A value by any of its types; none if it is missing or null.
    pub(super) fn value<T: DeserializeOwned>(
        &self,
        name: &str,
        expected: &'static str,
    ) -> Result<Option<T>, FieldError> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        let value = serde_json::from_str(raw.get());
        value.map(Some).map_err(|_| wrong_type_error(&self.path_of(name), expected, raw))
    }

    /// A finite number, or infinity; what is not a number (NaN) is missing.
    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, FieldError> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        match serde_json::from_str::<f64>(raw.get()) {
            Ok(number) => Ok(Some(number)),
            Err(_) => match raw.get().trim_matches('"').to_ascii_lowercase().as_str() {
                "inf" | "infinity" => Ok(Some(f64::INFINITY)),
                "-inf" | "-infinity" | "nan" => Ok(None),
                _ => Err(wrong_type_error(&self.path_of(name), "a number", raw)),
            },
        }
    }

    /// The same, only if finite.
    pub(super) fn finite(&self, name: &str) -> Result<Option<f64>, FieldError> {
        let number = self.number(name)?;
        if number.is_some_and(f64::is_infinite) {
            self.infinite.borrow_mut().insert(self.path_of(name));
        }
        Ok(number.filter(|number| number.is_finite()))
    }

    /// A whole number, also where it is written with a point or is a sum of rounded parts.
    pub(super) fn count(&self, name: &str) -> Result<Option<u64>, FieldError> {
        let Some(number) = self.number(name)? else { return Ok(None) };
        let whole = number.round();
        // Above 2^53 neighboring integers share a value, so such counts are invalid.
        if (0.0..=9.0e15).contains(&whole) && (number - whole).abs() <= 1e-9 * whole.max(1.0) {
            return Ok(Some(whole as u64));
        }
        let raw = self.raw(name).map_or("", RawValue::get);
        let expected = "a whole number that is not negative";
        Err(FieldError { path: self.path_of(name), expected, found: safe_excerpt(raw) })
    }

    /// A text.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, FieldError> {
        self.value(name, "a text")
    }

    /// A scalar as text, whatever its type; none for lists and objects.
    pub(super) fn scalar(&self, name: &str) -> Option<String> {
        let raw = self.raw(name)?.get();
        let text = serde_json::from_str::<String>(raw).ok();
        let is_plain = !raw.starts_with(['{', '[', '"']);
        text.or_else(|| is_plain.then(|| raw.to_owned()))
            .map(|text| text.chars().take(200).collect())
    }

    /// Yes or no.
    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, FieldError> {
        self.value(name, "true or false")
    }

    /// Whether it is there and not null.
    pub(super) fn has_value(&self, name: &str) -> bool {
        self.raw(name).is_some()
    }

    /// Whether it is there and an object.
    pub(super) fn has_object(&self, name: &str) -> bool {
        self.raw(name).is_some_and(|raw| raw.get().starts_with('{'))
    }

    /// The names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.values.get(name).copied().filter(|raw| raw.get() != "null")
    }

    fn empty_object(&self, name: &str) -> Self {
        let infinite = Rc::clone(&self.infinite);
        Self { path: self.path_of(name), values: BTreeMap::new(), infinite }
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

fn wrong_type_error(path: &str, expected: &'static str, raw: &RawValue) -> FieldError {
    FieldError { path: safe_excerpt(path), expected, found: safe_excerpt(raw.get()) }
}

/// Figures that are quotients or sums of others may be rounded.
const ROUNDED: f64 = 0.005;

/// What to say of a figure that stands in two places of a file; nothing if they agree or one of
/// them is missing.
pub(super) fn conflict_text(
    name: &str,
    stated: Option<f64>,
    other: &str,
    again: Option<f64>,
) -> Option<String> {
    let (stated, again) = (stated?, again?);
    let differs = (stated - again).abs() > ROUNDED * stated.abs().max(again.abs());
    differs.then(|| format!("`{name}` is {stated}, {other} {again}"))
}
