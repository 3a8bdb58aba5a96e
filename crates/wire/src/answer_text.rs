//! The text of an answer, for who keeps or compares it.

use serde::Deserialize;

use crate::json::{self, Maybe, Reason};

/// A chunk of a stream, or a whole answer; only its text is copied.
#[derive(Default, Deserialize)]
struct Spoken {
    #[serde(default)]
    choices: Option<Vec<ChoiceText>>,
}

#[derive(Deserialize)]
struct ChoiceText {
    #[serde(default)]
    delta: Maybe<TextPart>,
    #[serde(default)]
    message: Maybe<TextPart>,
    /// `/v1/completions` has neither.
    #[serde(default)]
    text: Reason,
}

#[derive(Default, Deserialize)]
struct TextPart {
    #[serde(default)]
    reasoning_content: Reason,
    #[serde(default)]
    reasoning: Reason,
    #[serde(default)]
    content: Reason,
}

/// The text of all answers in a chunk or a whole answer.
pub(crate) fn answer_text(data: &[u8]) -> String {
    let spoken: Spoken = json::parse_body_as(data).unwrap_or_default();
    let mut text = String::new();
    for choice in spoken.choices.into_iter().flatten() {
        let part = choice.delta.0.or(choice.message.0).unwrap_or_default();
        // Some servers send reasoning under both names.
        let reasoning = part.reasoning_content.0.or(part.reasoning.0);
        let said = part.content.0.or(choice.text.0);
        text.extend(reasoning.into_iter().chain(said));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_every_shape() {
        let cases = [
            (r#"{"choices":[{"delta":{"content":"n\u00e9"}}]}"#, "né"),
            (r#"{"choices":[{"delta":{"content":"a"}},{"message":{"content":"b"}}]}"#, "ab"),
            (r#"{"choices":[{"text":"abc"}],"usage":{"prompt_tokens":1}}"#, "abc"),
            (r#"{"choices":[{"delta":{"reasoning":"x","reasoning_content":"x"}}]}"#, "x"),
            (r#"{"choices":[{"message":{"reasoning":"why","content":"so"}}]}"#, "whyso"),
            (r#"{"choices":[{"delta":{"content":null,"tool_calls":[{"id":"a"}]}}]}"#, ""),
            (r#"{"choices":[{"delta":{"content":"a"},"logprobs":{"x":NaN}}]}"#, "a"),
            (r#"{"choices":null}"#, ""),
            (r#"{"choices":{}}"#, ""),
            ("[1]", ""),
            ("no JSON", ""),
        ];
        for (json, expected) in cases {
            assert_eq!(answer_text(json.as_bytes()), expected, "{json}");
        }
    }
}
