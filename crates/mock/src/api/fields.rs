//! Typed access to the fields of a JSON object; `null` is as good as absent.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::refusal::ApiRefusal;

/// The object of a body.
pub(crate) fn parse_object(body: &[u8]) -> Result<Map<String, Value>, ApiRefusal> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(other) => Err(ApiRefusal::bad_request(format!(
            "the body must be a JSON object, not {}",
            type_name(&other)
        ))),
        Err(error) => Err(ApiRefusal::bad_request(format!("the body is not valid JSON: {error}"))),
    }
}

/// What a value is, for messages.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A refusal for a field of the wrong type.
pub(crate) fn wrong_type_error(
    name: impl Into<Cow<'static, str>>,
    wanted: &str,
    value: &Value,
) -> ApiRefusal {
    let name = name.into();
    let message = format!("`{name}` must be {wanted}, not {}", type_name(value));
    ApiRefusal::bad_field(name, message)
}

/// The fields of an object, with the name of the object for messages.
#[derive(Clone, Copy)]
pub(crate) struct ObjectFields<'a> {
    map: &'a Map<String, Value>,
    within: Option<&'static str>,
}

impl<'a> ObjectFields<'a> {
    pub(crate) fn new(map: &'a Map<String, Value>) -> Self {
        Self { map, within: None }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    fn full_name(&self, name: &'static str) -> Cow<'static, str> {
        match self.within {
            Some(outer) => Cow::Owned(format!("{outer}.{name}")),
            None => Cow::Borrowed(name),
        }
    }

    fn wrong_type(&self, name: &'static str, wanted: &str, value: &Value) -> ApiRefusal {
        wrong_type_error(self.full_name(name), wanted, value)
    }

    pub(crate) fn flag(&self, name: &'static str) -> Result<bool, ApiRefusal> {
        Ok(self.boolean(name)?.unwrap_or(false))
    }

    pub(crate) fn boolean(&self, name: &'static str) -> Result<Option<bool>, ApiRefusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(other) => Err(self.wrong_type(name, "true or false", other)),
        }
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<Option<&'a str>, ApiRefusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(value)) => Ok(Some(value)),
            Some(other) => Err(self.wrong_type(name, "a string", other)),
        }
    }

    pub(crate) fn list(&self, name: &'static str) -> Result<Option<&'a [Value]>, ApiRefusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Array(value)) => Ok(Some(value)),
            Some(other) => Err(self.wrong_type(name, "a list", other)),
        }
    }

    pub(crate) fn object(&self, name: &'static str) -> Result<Option<Self>, ApiRefusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Self { map, within: Some(name) })),
            Some(other) => Err(self.wrong_type(name, "an object", other)),
        }
    }

    /// An integer within a range; `4.0` is one too.
    pub(crate) fn integer(
        &self,
        name: &'static str,
        range: RangeInclusive<i64>,
    ) -> Result<Option<i64>, ApiRefusal> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let Value::Number(number) = value else {
            return Err(self.wrong_type(name, "an integer", value));
        };
        match whole_number(number) {
            Some(value) if range.contains(&value) => Ok(Some(value)),
            Some(_) => Err(self.out_of_range(name, &range_text(&range), value)),
            None => Err(self.out_of_range(name, "a 64-bit integer", value)),
        }
    }

    /// A number that fits a rule, which the message puts into words.
    pub(crate) fn number(
        &self,
        name: &'static str,
        rule: &str,
        fits: impl Fn(f64) -> bool,
    ) -> Result<Option<f64>, ApiRefusal> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.as_f64() {
            Some(number) if fits(number) => Ok(Some(number)),
            Some(_) => Err(self.out_of_range(name, rule, value)),
            None => Err(self.wrong_type(name, "a number", value)),
        }
    }

    fn out_of_range(&self, name: &'static str, wanted: &str, value: &Value) -> ApiRefusal {
        let name = self.full_name(name);
        let message = format!("`{name}` must be {wanted}; it is {value}");
        ApiRefusal::bad_field(name, message)
    }
}

fn range_text(range: &RangeInclusive<i64>) -> String {
    match (*range.start(), *range.end()) {
        (low, i64::MAX) => format!("at least {low}"),
        (low, high) => format!("from {low} to {high}"),
    }
}

/// The value of a number without a fraction; nothing for those that 64 bits cannot hold.
fn whole_number(number: &serde_json::Number) -> Option<i64> {
    const EXACT: f64 = (1u64 << 53) as f64;
    number.as_i64().or_else(|| {
        let value = number.as_f64()?;
        (value.fract() == 0.0 && value.abs() < EXACT).then_some(value as i64)
    })
}
