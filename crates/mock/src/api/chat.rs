//! Turning messages and prompts into tokens.
//!
//! The chat template is plain: each message is the token of its role, its content and an end of
//! turn. What was generated stands in the next turn's prompt token by token, so a conversation
//! finds its own past in a prefix cache.

use serde_json::{Map, Value};

use super::fields::{type_name, wrong_type_error};
use super::refusal::ApiRefusal;
use super::tokenizer::{self, encode_text};

/// The key under which a generated tool call has its words.
pub(crate) const ARGUMENT: &str = "query";

/// Tokens of a prompt under construction.
pub(crate) struct Render {
    pub(crate) ids: Vec<u32>,
    image_tokens: u32,
    /// Tokens of media so far.
    pub(crate) media_tokens: u32,
    /// Where media stop being added: a short body can name more of them than memory holds.
    most: usize,
}

impl Render {
    pub(crate) fn new(image_tokens: u32, most: usize) -> Self {
        Self { ids: vec![tokenizer::BOS], image_tokens, media_tokens: 0, most }
    }

    /// The tools on offer stand before the conversation.
    pub(crate) fn add_tools(&mut self, tools: &[Value]) {
        if !tools.is_empty() {
            self.ids.push(tokenizer::TOOLS);
            for tool in tools {
                encode_text(&tool.to_string(), &mut self.ids);
            }
            self.ids.push(tokenizer::END_OF_TURN);
        }
    }

    pub(crate) fn add_messages(&mut self, messages: &[Value]) -> Result<(), ApiRefusal> {
        if messages.is_empty() {
            return Err(ApiRefusal::bad_field(
                "messages",
                "`messages` must hold at least one message",
            ));
        }
        for (at, message) in messages.iter().enumerate() {
            let Value::Object(message) = message else {
                return Err(wrong_type_error(format!("messages[{at}]"), "an object", message));
            };
            self.add_message(at, message)?;
        }
        Ok(())
    }

    /// The header after which the answer begins.
    pub(crate) fn add_answer_header(&mut self) {
        self.ids.push(tokenizer::ASSISTANT);
    }

    fn add_message(&mut self, at: usize, message: &Map<String, Value>) -> Result<(), ApiRefusal> {
        let role = match message.get("role") {
            Some(Value::String(role)) => role.as_str(),
            Some(other) => {
                return Err(wrong_type_error(format!("messages[{at}].role"), "a string", other));
            }
            None => {
                let message = format!("`messages[{at}].role` is missing");
                return Err(ApiRefusal::bad_field(format!("messages[{at}].role"), message));
            }
        };
        let header = match role {
            "system" | "developer" => tokenizer::SYSTEM,
            "user" => tokenizer::USER,
            "assistant" => tokenizer::ASSISTANT,
            "tool" | "function" => tokenizer::TOOL,
            other => {
                let message = format!(
                    "`messages[{at}].role` is `{other}`; it must be one of system, developer, user, assistant, tool"
                );
                return Err(ApiRefusal::bad_field(format!("messages[{at}].role"), message));
            }
        };
        self.ids.push(header);
        for field in ["reasoning_content", "reasoning"] {
            if let Some(Value::String(text)) = message.get(field) {
                encode_text(text, &mut self.ids);
            }
        }
        if let Some(content) = message.get("content") {
            self.add_content(at, content)?;
        }
        if let Some(calls) = message.get("tool_calls").filter(|calls| !calls.is_null()) {
            self.add_calls(at, calls)?;
        }
        self.ids.push(tokenizer::END_OF_TURN);
        Ok(())
    }

    fn add_content(&mut self, at: usize, content: &Value) -> Result<(), ApiRefusal> {
        match content {
            Value::Null => Ok(()),
            Value::String(text) => {
                encode_text(text, &mut self.ids);
                Ok(())
            }
            Value::Array(parts) => parts.iter().try_for_each(|part| self.add_part(at, part)),
            other => Err(wrong_type_error(
                format!("messages[{at}].content"),
                "a string or a list of parts",
                other,
            )),
        }
    }

    fn add_part(&mut self, at: usize, part: &Value) -> Result<(), ApiRefusal> {
        let name = || format!("messages[{at}].content");
        let part = match part {
            Value::String(text) => {
                encode_text(text, &mut self.ids);
                return Ok(());
            }
            Value::Object(part) => part,
            other => {
                let message =
                    format!("a part of `{}` must be an object, not {}", name(), type_name(other));
                return Err(ApiRefusal::bad_field(name(), message));
            }
        };
        let part_kind = part.get("type").and_then(Value::as_str).unwrap_or("text");
        let missing = |what: &str| {
            let message = format!("a `{part_kind}` part of `{}` has no {what}", name());
            ApiRefusal::bad_field(name(), message)
        };
        match part_kind {
            "text" | "input_text" | "output_text" | "refusal" | "thinking" => {
                let field =
                    if matches!(part_kind, "refusal" | "thinking") { part_kind } else { "text" };
                let text = part.get(field).and_then(Value::as_str);
                encode_text(text.ok_or_else(|| missing("text"))?, &mut self.ids);
                Ok(())
            }
            "image_url" | "input_image" | "audio_url" | "video_url" | "input_audio" | "file" => {
                let field = if part_kind == "input_image" { "image_url" } else { part_kind };
                let data = part.get(field).and_then(media_data);
                self.add_media(data.ok_or_else(|| missing("address or data"))?)
            }
            other => {
                let message = format!("`{other}` is not a type of part in `{}`", name());
                Err(ApiRefusal::bad_field(name(), message))
            }
        }
    }

    fn add_media(&mut self, data: &str) -> Result<(), ApiRefusal> {
        let length = self.ids.len().saturating_add(self.image_tokens as usize);
        if length > self.most {
            let message = format!(
                "the messages have {length} tokens or more with their images; at most {} fit",
                self.most
            );
            return Err(ApiRefusal::too_long("messages", message));
        }
        self.ids.resize(length, tokenizer::media_token(data));
        self.media_tokens = self.media_tokens.saturating_add(self.image_tokens);
        Ok(())
    }

    fn add_calls(&mut self, at: usize, calls: &Value) -> Result<(), ApiRefusal> {
        let Value::Array(calls) = calls else {
            return Err(wrong_type_error(format!("messages[{at}].tool_calls"), "a list", calls));
        };
        for call in calls {
            let function = call.get("function");
            let text = |field| function.and_then(|function| function.get(field)?.as_str());
            let arguments = text("arguments").unwrap_or_default();
            // Only the words of a generated call cost tokens, so only they come back as tokens.
            if let Some(words) = generated_words(arguments) {
                encode_text(&words, &mut self.ids);
            } else {
                self.ids.push(tokenizer::CALL);
                encode_text(text("name").unwrap_or_default(), &mut self.ids);
                encode_text(arguments, &mut self.ids);
            }
        }
        Ok(())
    }
}

fn generated_words(arguments: &str) -> Option<String> {
    let Value::Object(mut arguments) = serde_json::from_str(arguments).ok()? else { return None };
    match (arguments.remove(ARGUMENT), arguments.is_empty()) {
        (Some(Value::String(words)), true) => Some(words),
        _ => None,
    }
}

fn media_data(value: &Value) -> Option<&str> {
    match value {
        Value::String(data) => Some(data),
        Value::Object(fields) => ["url", "data", "file_data", "file_id"]
            .iter()
            .find_map(|name| fields.get(*name)?.as_str()),
        _ => None,
    }
}

/// Prompts in the four forms that completions and embeddings take them.
pub(crate) fn parse_prompts(
    name: &'static str,
    value: &Value,
) -> Result<Vec<Vec<u32>>, ApiRefusal> {
    const FORMS: &str = "a string, a list of strings, a list of token IDs or a list of such lists";
    let refuse = || ApiRefusal::bad_field(name, format!("`{name}` must be {FORMS}"));
    match value {
        Value::String(text) => Ok(vec![tokens_of_text(text, true)]),
        Value::Array(items) => match items.first() {
            Some(Value::Number(_)) => Ok(vec![parse_token_ids(name, items)?]),
            Some(Value::String(_)) => items
                .iter()
                .map(|item| item.as_str().map(|text| tokens_of_text(text, true)).ok_or_else(refuse))
                .collect(),
            Some(Value::Array(_)) => items
                .iter()
                .map(|item| parse_token_ids(name, item.as_array().ok_or_else(refuse)?))
                .collect(),
            Some(_) => Err(refuse()),
            None => Err(ApiRefusal::bad_field(name, format!("`{name}` must not be empty"))),
        },
        _ => Err(refuse()),
    }
}

/// The tokens of a text on its own.
pub(crate) fn tokens_of_text(text: &str, has_start: bool) -> Vec<u32> {
    let mut ids = Vec::with_capacity(text.len() / 4 + 1);
    if has_start {
        ids.push(tokenizer::BOS);
    }
    encode_text(text, &mut ids);
    ids
}

/// A list of token ids, each of the vocabulary.
pub(crate) fn parse_token_ids(name: &'static str, items: &[Value]) -> Result<Vec<u32>, ApiRefusal> {
    if items.is_empty() {
        return Err(ApiRefusal::bad_field(
            name,
            format!("`{name}` must not be an empty list of tokens"),
        ));
    }
    let id = |item: &Value| {
        let id = item.as_u64().and_then(|id| u32::try_from(id).ok());
        id.filter(|id| *id < tokenizer::VOCABULARY).ok_or_else(|| {
            let message = format!("`{name}` has {} that is not a token ID", type_name(item));
            ApiRefusal::bad_field(name, message)
        })
    };
    items.iter().map(id).collect()
}
