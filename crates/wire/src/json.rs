//! The shape of answers in the OpenAI dialects, read as leniently as real servers demand.
//!
//! One set of types serves chunks and whole answers, chat and completions. Texts are only
//! measured, not copied; fields may be absent, null or of an unexpected type; unknown fields are
//! skipped. Only text that is not JSON at all is an error.

use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A chunk of a stream, or a whole answer.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ApiBody {
    #[serde(default)]
    pub(crate) choices: Choices,
    #[serde(default)]
    pub(crate) usage: Maybe<ApiUsage>,
    /// `{"error": {…}}` or `{"error": "text"}`.
    pub(crate) error: Option<serde_json::Value>,
    /// `{"object": "error", "message": …}`, an older way to say it.
    #[serde(default)]
    pub(crate) object: IsError,
    #[serde(default)]
    pub(crate) message: Option<serde_json::Value>,
}

impl ApiBody {
    /// Bytes of text, where that is all the body says: one answer, its content, and no count.
    pub(crate) fn plain_text(&self) -> Option<u32> {
        let choice = self.choices.first.as_ref().filter(|_| self.choices.others.is_empty())?;
        let is_plain = self.usage.0.is_none()
            && choice.finish_reason.0.is_none()
            && choice.reasoning_bytes() == 0
            && choice.listed_tokens().is_none();
        let content = choice.delta.0.as_ref().map_or(0, |delta| delta.content.bytes);
        let bytes = choice.answer_bytes();
        let is_one = content == bytes || choice.text.bytes == bytes;
        (is_plain && is_one && bytes > 0).then_some(bytes)
    }
}

/// The answers in a body: almost always one, kept without an allocation.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    first: Option<ApiChoice>,
    others: Vec<ApiChoice>,
}

impl Choices {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ApiChoice> {
        self.first.iter().chain(&self.others)
    }
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct ApiChoice {
    #[serde(default)]
    pub(crate) index: Number,
    #[serde(default)]
    delta: Maybe<Delta>,
    /// A whole answer has this instead.
    #[serde(default)]
    message: Maybe<Delta>,
    /// `/v1/completions`.
    #[serde(default)]
    text: TextSize,
    #[serde(default)]
    pub(crate) finish_reason: Reason,
    #[serde(default)]
    token_ids: ArrayLength,
    #[serde(default)]
    logprobs: Maybe<LogProbs>,
}

impl ApiChoice {
    fn delta(&self) -> Option<&Delta> {
        self.delta.0.as_ref().or(self.message.0.as_ref())
    }

    /// Bytes of the answer itself, tool calls included.
    pub(crate) fn answer_bytes(&self) -> u32 {
        let delta = self.delta();
        self.text.bytes
            + delta.map_or(0, |d| d.content.bytes + d.refusal.bytes + d.tool_calls.bytes)
    }

    /// Bytes of reasoning. Some servers send it under two names at once.
    pub(crate) fn reasoning_bytes(&self) -> u32 {
        self.delta().map_or(0, |d| d.reasoning.bytes.max(d.reasoning_content.bytes))
    }

    /// A token without text, in the middle of an answer: a special token, or half a character.
    pub(crate) fn is_silent_token(&self) -> bool {
        let is_empty_text = self.delta().map_or(self.text.is_there, |d| d.content.is_there);
        is_empty_text && !self.has_text() && self.finish_reason.0.is_none()
    }

    /// Tokens in this chunk, where the server lists them.
    pub(crate) fn listed_tokens(&self) -> Option<u32> {
        let listed = self.logprobs.0.as_ref().map_or(0, |l| l.content.0.max(l.tokens.0));
        Some(self.token_ids.0.max(listed)).filter(|n| *n > 0)
    }

    /// Whether it carries a token of any channel.
    pub(crate) fn has_text(&self) -> bool {
        self.answer_bytes() > 0 || self.reasoning_bytes() > 0
    }
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Delta {
    #[serde(default)]
    content: TextSize,
    #[serde(default)]
    refusal: TextSize,
    #[serde(default)]
    reasoning: TextSize,
    #[serde(default)]
    reasoning_content: TextSize,
    #[serde(default)]
    tool_calls: TextSize,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct LogProbs {
    #[serde(default)]
    content: ArrayLength,
    #[serde(default)]
    tokens: ArrayLength,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
pub(crate) struct ApiUsage {
    #[serde(default)]
    pub(crate) prompt_tokens: Number,
    #[serde(default)]
    pub(crate) completion_tokens: Number,
    #[serde(default)]
    pub(crate) prompt_tokens_details: Maybe<PromptDetails>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
pub(crate) struct PromptDetails {
    #[serde(default)]
    pub(crate) cached_tokens: Number,
    #[serde(default)]
    pub(crate) image_tokens: Number,
}

/// Bytes of text in a string, or in the strings that matter below an array or object.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct TextSize {
    bytes: u32,
    /// Whether there was a text at all, even an empty one.
    is_there: bool,
}

/// Number of elements of an array.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct ArrayLength(pub(crate) u32);

/// A count, however it is written.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Number(pub(crate) Option<u32>);

/// A finish reason: any text but an empty one, which some servers send until the end.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Reason(pub(crate) Option<String>);

/// An object, or nothing if something else stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Maybe<T>(pub(crate) Option<T>);

impl<T> Default for Maybe<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// Whether a string is `error`.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct IsError(pub(crate) bool);

/// Implements `Deserialize` for a type that takes any JSON value and makes the best of it.
/// The given methods override the default, which is the type's own default.
macro_rules! lenient {
    ($type:ty { $($methods:tt)* }) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Lenient;
                impl<'de> Visitor<'de> for Lenient {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("any JSON value")
                    }
                    $($methods)*
                }
                deserializer.deserialize_any(Lenient)
            }
        }
    };
}

/// Default answers for the kinds of value a [`lenient!`] type does not care about.
macro_rules! ignore {
    (null) => {
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Default::default())
        }
    };
    (bool) => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Default::default())
        }
    };
    (numbers) => {
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Default::default())
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(Default::default())
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Default::default())
        }
    };
    (string) => {
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok(Default::default())
        }
    };
    (array) => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(Default::default())
        }
    };
    (object) => {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(Default::default())
        }
    };
}

lenient!(TextSize {
    ignore!(null);
    ignore!(bool);
    ignore!(numbers);
    fn visit_str<E>(self, text: &str) -> Result<TextSize, E> {
        Ok(TextSize { bytes: text.len() as u32, is_there: true })
    }
    /// Tool calls, and content in parts.
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<TextSize, A::Error> {
        let mut bytes = 0;
        while let Some(part) = seq.next_element::<TextSize>()? {
            bytes += part.bytes;
        }
        Ok(TextSize { bytes, is_there: true })
    }
    /// `{"function": {"name", "arguments"}}` or `{"type": "text", "text"}`; IDs and types are not
    /// text.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TextSize, A::Error> {
        let mut bytes = 0;
        while let Some(key) = map.next_key::<TextKey>()? {
            match key {
                TextKey::Text => bytes += map.next_value::<TextSize>()?.bytes,
                TextKey::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(TextSize { bytes, is_there: true })
    }
});

#[derive(Deserialize)]
enum TextKey {
    #[serde(rename = "function", alias = "name", alias = "arguments", alias = "text")]
    Text,
    #[serde(other)]
    Other,
}

lenient!(ArrayLength {
    ignore!(null);
    ignore!(bool);
    ignore!(numbers);
    ignore!(string);
    ignore!(object);
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ArrayLength, A::Error> {
        let mut length = 0;
        while seq.next_element::<IgnoredAny>()?.is_some() {
            length += 1;
        }
        Ok(ArrayLength(length))
    }
});

lenient!(Number {
    ignore!(null);
    ignore!(bool);
    ignore!(string);
    ignore!(array);
    ignore!(object);
    fn visit_u64<E>(self, value: u64) -> Result<Number, E> {
        Ok(Number(u32::try_from(value).ok()))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Number, E> {
        Ok(Number(u32::try_from(value).ok()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Number, E> {
        Ok(Number((value >= 0.0 && value <= f64::from(u32::MAX)).then_some(value as u32)))
    }
});

lenient!(Reason {
    ignore!(null);
    ignore!(bool);
    ignore!(numbers);
    ignore!(array);
    ignore!(object);
    fn visit_str<E>(self, text: &str) -> Result<Reason, E> {
        Ok(Reason(Some(text.to_owned()).filter(|text| !text.is_empty())))
    }
});

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MaybeVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for MaybeVisitor<T> {
            type Value = Maybe<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any JSON value")
            }
            ignore!(null);
            ignore!(bool);
            ignore!(numbers);
            ignore!(string);
            ignore!(array);
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Maybe<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|value| Maybe(Some(value)))
            }
        }
        deserializer.deserialize_any(MaybeVisitor(std::marker::PhantomData))
    }
}

lenient!(IsError {
    ignore!(null);
    ignore!(bool);
    ignore!(numbers);
    ignore!(array);
    ignore!(object);
    fn visit_str<E>(self, text: &str) -> Result<IsError, E> {
        Ok(IsError(text == "error"))
    }
});

lenient!(Choices {
    ignore!(null);
    ignore!(bool);
    ignore!(numbers);
    ignore!(string);
    ignore!(object);
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Choices, A::Error> {
        let mut choices = Choices { first: seq.next_element()?, others: Vec::new() };
        while let Some(choice) = seq.next_element()? {
            choices.others.push(choice);
        }
        Ok(choices)
    }
});

/// Reads a body. Python servers write `NaN` and `Infinity`, which are not JSON: such a body is read
/// again with those words replaced.
pub(crate) fn parse_body(bytes: &[u8]) -> Result<ApiBody, serde_json::Error> {
    parse_body_as(bytes)
}

/// As [`parse_body`], in another shape.
pub(crate) fn parse_body_as<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(bytes).or_else(|error| match without_python_floats(bytes) {
        Some(cleaned) => serde_json::from_slice(&cleaned),
        None => Err(error),
    })
}

/// `bytes` with `NaN`, `Infinity` and `-Infinity` outside strings replaced by `null`, or `None`
/// where there are none.
fn without_python_floats(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut cleaned = Vec::with_capacity(bytes.len());
    let (mut in_string, mut escaped, mut changed) = (false, false, false);
    let mut rest = bytes;
    while let [byte, tail @ ..] = rest {
        if !in_string {
            let word =
                [&b"-Infinity"[..], b"Infinity", b"NaN"].into_iter().find(|w| rest.starts_with(w));
            if let Some(word) = word {
                cleaned.extend_from_slice(b"null");
                rest = &rest[word.len()..];
                changed = true;
                continue;
            }
        }
        in_string ^= *byte == b'"' && !escaped;
        escaped = in_string && *byte == b'\\' && !escaped;
        cleaned.push(*byte);
        rest = tail;
    }
    changed.then_some(cleaned)
}

/// What an `error` value says, in its own words.
pub(crate) fn error_text(error: &serde_json::Value) -> String {
    let inner = error.get("message").or_else(|| error.get("detail")).unwrap_or(error);
    inner.as_str().map_or_else(|| inner.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_every_kind_of_text() {
        let cases = [
            (r#"{"choices":[{"delta":{"content":"né"}}]}"#, 3, 0),
            (r#"{"choices":[{"delta":{"content":"a\nb"}}]}"#, 3, 0),
            (r#"{"choices":[{"delta":{"content":null,"role":"assistant"}}]}"#, 0, 0),
            (r#"{"choices":[{"delta":{"content":""}}]}"#, 0, 0),
            (r#"{"choices":[{"text":"abc"}]}"#, 3, 0),
            (r#"{"choices":[{"message":{"content":"abcd"}}]}"#, 4, 0),
            (r#"{"choices":[{"delta":{"reasoning":"ab","reasoning_content":"ab"}}]}"#, 0, 2),
            (
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_123","function":{"name":"f","arguments":""}}]}}]}"#,
                1,
                0,
            ),
            (r#"{"choices":[{"delta":{"content":[{"type":"text","text":"xyz"}]}}]}"#, 3, 0),
            (r#"{"choices":[{"delta":null}]}"#, 0, 0),
        ];
        for (json, answer, reasoning) in cases {
            let body = parse_body(json.as_bytes()).unwrap();
            let choice = body.choices.iter().next().unwrap();
            assert_eq!(
                (choice.answer_bytes(), choice.reasoning_bytes()),
                (answer, reasoning),
                "{json}"
            );
        }
    }

    #[test]
    fn odd_types_are_not_fatal() {
        for json in [
            r#"{"choices":null,"usage":null,"error":null}"#,
            r#"{"choices":{},"object":7}"#,
            r#"{"choices":[{"index":null,"delta":{"content":5,"tool_calls":null}}],"usage":{"prompt_tokens":"x","completion_tokens":3.0}}"#,
            r#"{"choices":[{"delta":{"content":"a"},"message":null,"finish_reason":7,"logprobs":"x"}],"usage":[1]}"#,
            r#"{"choices":[{"delta":"text","finish_reason":""}],"usage":{"prompt_tokens_details":3}}"#,
        ] {
            let body = parse_body(json.as_bytes()).unwrap();
            assert!(body.error.is_none() && !body.object.0, "{json}");
        }
    }

    #[test]
    fn python_floats_are_read_but_only_outside_strings() {
        let json = br#"{"choices":[{"delta":{"content":"NaN \"Infinity"},"logprobs":{"content":[{"logprob":-Infinity}]},"x":NaN}]}"#;
        let body = parse_body(json).unwrap();
        assert_eq!(body.choices.iter().next().unwrap().answer_bytes(), 13);
        assert!(parse_body(b"not json").is_err());
        assert!(parse_body(b"<html>NaN").is_err());
    }
}
