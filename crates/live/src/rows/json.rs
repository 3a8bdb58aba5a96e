//! Foreign JSON read without copying it: one level at a time, in time and memory that its length bounds.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Some fields of an object, as text.
pub(crate) struct JsonFields<'a> {
    names: &'static [&'static str],
    values: Vec<Option<&'a RawValue>>,
}

impl<'a> JsonFields<'a> {
    /// The fields with these names, the last of each; none if the text is not an object.
    pub(crate) fn parse(json: &'a str, names: &'static [&'static str]) -> Option<Self> {
        let mut reader = serde_json::Deserializer::from_str(json);
        let found = Pick(names).deserialize(&mut reader).ok()?;
        reader.end().ok()?;
        Some(found)
    }

    /// A field that is there and not `null`.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        let place = self.names.iter().position(|known| *known == name)?;
        let raw = self.values.get(place).copied().flatten()?;
        Some(raw.get()).filter(|json| *json != "null")
    }

    /// A field's text.
    pub(crate) fn get_text(&self, name: &str) -> Option<Cow<'a, str>> {
        parse_text(self.get(name)?)
    }
}

/// A JSON text, borrowed where nothing in it is escaped.
#[derive(serde::Deserialize)]
struct RowText<'a>(#[serde(borrow)] Cow<'a, str>);

/// What a JSON text says; none of other values.
pub(crate) fn parse_text(json: &str) -> Option<Cow<'_, str>> {
    json.starts_with('"')
        .then(|| serde_json::from_str::<RowText<'_>>(json).ok())?
        .map(|text| text.0)
}

/// Takes the items of an array one after another; false if the text is none.
pub(crate) fn for_each_element<'a>(json: &'a str, take: impl FnMut(&'a str)) -> bool {
    let mut reader = serde_json::Deserializer::from_str(json);
    json.starts_with('[') && EachElement(take).deserialize(&mut reader).is_ok()
}

struct Pick(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Pick {
    type Value = JsonFields<'de>;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<JsonFields<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Pick {
    type Value = JsonFields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonFields<'de>, A::Error> {
        let mut values = vec![None; self.0.len()];
        while let Some(RowText(key)) = map.next_key::<RowText<'de>>()? {
            let place = self.0.iter().position(|name| *name == key);
            match place.and_then(|place| values.get_mut(place)) {
                Some(value) => *value = Some(map.next_value::<&'de RawValue>()?),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(JsonFields { names: self.0, values })
    }
}

struct EachElement<F>(F);

impl<'de, F: FnMut(&'de str)> DeserializeSeed<'de> for EachElement<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(&'de str)> Visitor<'de> for EachElement<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<&'de RawValue>()? {
            (self.0)(item.get());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_and_the_last_of_a_name_counts() {
        let json = r#" {"a": [1, {"b": 2}], "x": null, "b": "q\"", "a": 7, "rest": {}} "#;
        let fields = JsonFields::parse(json, &["a", "b", "x", "none"]).unwrap();
        assert_eq!((fields.get("a"), fields.get("x"), fields.get("none")), (Some("7"), None, None));
        assert_eq!(fields.get_text("b").as_deref(), Some("q\""));
        assert_eq!(fields.get_text("a"), None);
        for wrong in ["", "[]", "{", "{} x", "7", r#"{"a":}"#] {
            assert!(JsonFields::parse(wrong, &["a"]).is_none(), "{wrong}");
        }
    }

    #[test]
    fn nesting_without_end_is_passed_over() {
        let deep = format!("{{\"a\":{}{},\"b\":1}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(JsonFields::parse(&deep, &["b"]).unwrap().get("b"), Some("1"));
        let mut items = 0;
        assert!(for_each_element("[1,[2],\"x\"]", |_| items += 1));
        assert_eq!(items, 3);
        assert!(!for_each_element("{}", |_| {}));
    }
}
