//! What a body asks: its tokens, its blocks, and what it follows.
//!
//! The text is that of the body in one order: tools, then messages with who says them. A server's
//! template has other words around it, so what the server counts wins once it is known.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use crate::rows::blocks::Cutter;
use crate::rows::json::{JsonFields, for_each_element, parse_text};
use crate::rows::salted::{Key, Salt, Use};

/// Tokens that templates put behind a conversation, for the answer to begin: about three.
const PRIMING: u32 = 3;

/// A prompt without its text.
pub(crate) struct Prompt {
    /// Its length as we count.
    pub(crate) tokens: u32,
    /// Its blocks.
    pub(crate) blocks: Vec<u64>,
    /// Messages in it.
    pub(crate) messages: u64,
    /// Parts of it other than text.
    pub(crate) things: u64,
    /// What links a conversation.
    pub(crate) talk: Option<Talk>,
}

/// A conversation as hashes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Talk {
    /// All that was said.
    pub(crate) history: Key,
    /// All that was said by others than the model.
    pub(crate) others: Key,
    /// All that users said; none if they said nothing.
    pub(crate) users: Option<Key>,
    /// What it goes on from.
    pub(crate) follows: Option<Follows>,
}

/// An exchange before: its history and its answer, what others than the model and what users had said.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Follows {
    pub(crate) exact: Key,
    pub(crate) others: Key,
    pub(crate) users: Option<Key>,
}

/// The key of an exchange.
pub(crate) fn exchange_key(salt: Salt, history: &Key, answer: &Key) -> Key {
    salt.hash_parts(Use::Answer, &[history, answer])
}

/// The hash of what a message says: blanks around it do not count.
pub(crate) fn content_key(salt: Salt, said: &str) -> Key {
    salt.new_hash(Use::Content).chain_update(said.trim()).finalize().into()
}

/// Reads the prompt of a chat or of a completion; none if there is neither. Conversations with
/// another beginning are others.
pub(crate) fn read_prompt(
    body: &JsonFields<'_>,
    salt: Salt,
    beginning: Key,
    mut cutter: Cutter<'_>,
) -> Option<Prompt> {
    if let Some(messages) = body.get("messages") {
        for name in ["tools", "functions"] {
            if let Some(tools) = body.get(name) {
                cutter.add_marker(name);
                cutter.add_text(tools);
            }
        }
        let mut chat = Chat::new(salt, beginning, &mut cutter);
        if !for_each_element(messages, |message| chat.add_message(message)) {
            return None;
        }
        let (messages, things, talk) = (chat.messages, chat.things, chat.into_talk());
        let (tokens, blocks) = cutter.finish();
        let tokens = tokens.saturating_add(PRIMING);
        return Some(Prompt { tokens, blocks, messages, things, talk: Some(talk) });
    }
    cut_completion(body.get("prompt")?, &mut cutter);
    let (tokens, blocks) = cutter.finish();
    Some(Prompt { tokens, blocks, messages: 0, things: 0, talk: None })
}

/// A text, tokens, or a list of either.
fn cut_completion(prompt: &str, cutter: &mut Cutter<'_>) {
    if let Some(said) = parse_text(prompt) {
        return cutter.add_text(&said);
    }
    let mut is_first = true;
    for_each_element(prompt, |item| {
        if let Ok(id) = item.parse::<u32>() {
            return cutter.add_token_id(id);
        }
        if !std::mem::replace(&mut is_first, false) {
            cutter.add_marker("next");
        }
        match parse_text(item) {
            Some(said) => cutter.add_text(&said),
            None => {
                for_each_element(item, |id| cutter.add_token_id(id.parse().unwrap_or(u32::MAX)));
            }
        }
    });
}

/// A conversation that is being read.
struct Chat<'a, 'c> {
    salt: Salt,
    cutter: &'a mut Cutter<'c>,
    messages: u64,
    things: u64,
    beginning: Key,
    history: Key,
    others: Key,
    users: Option<Key>,
    /// The latest answer in it, with what stood before.
    answered: Option<Follows>,
    /// The latest answer behind which something was asked.
    follows: Option<Follows>,
}

impl<'a, 'c> Chat<'a, 'c> {
    fn new(salt: Salt, beginning: Key, cutter: &'a mut Cutter<'c>) -> Self {
        Self {
            salt,
            cutter,
            messages: 0,
            things: 0,
            beginning,
            history: [0; 32],
            others: beginning,
            users: None,
            answered: None,
            follows: None,
        }
    }

    fn into_talk(self) -> Talk {
        let Self { history, others, users, follows, .. } = self;
        Talk { history, others, users, follows }
    }

    fn add_message(&mut self, json: &str) {
        const NAMES: &[&str] = &["role", "content", "name", "tool_calls", "function_call"];
        self.messages += 1;
        let mut said = self.salt.new_hash(Use::Content);
        let Some(message) = JsonFields::parse(json, NAMES) else {
            self.cutter.add_text(json);
            return;
        };
        let role = message.get_text("role").unwrap_or_default();
        self.cutter.add_marker("message");
        self.cutter.add_marker(&role);
        if let Some(name) = message.get_text("name") {
            self.cutter.add_text(&name);
        }
        if let Some(content) = message.get("content") {
            self.add_content(content, &mut said);
        }
        for name in ["tool_calls", "function_call"] {
            if let Some(calls) = message.get(name) {
                self.cutter.add_text(calls);
            }
        }
        self.cutter.add_marker("end");
        self.note_speaker(&role, said.finalize().into());
    }

    fn add_content(&mut self, json: &str, said: &mut Sha256) {
        let is_list = for_each_element(json, |part| {
            if let Some(words) = text_of_part(part) {
                said.update(words.trim());
                return self.cutter.add_text(&words);
            }
            // Images, audio, files: what they are is their hash.
            let key = self.salt.hash_parts(Use::Thing, &[part.as_bytes()]);
            said.update(key);
            self.cutter.add_non_text(&key);
            self.things += 1;
        });
        if !is_list {
            let words = parse_text(json).unwrap_or(Cow::Borrowed(json));
            said.update(words.trim());
            self.cutter.add_text(&words);
        }
    }

    /// Notes who said something.
    fn note_speaker(&mut self, role: &str, said: Key) {
        match role {
            "assistant" => {
                let exact = exchange_key(self.salt, &self.history, &said);
                self.answered = Some(Follows { exact, others: self.others, users: self.users });
            }
            "user" | "tool" | "function" => self.follows = self.answered,
            _ => {}
        }
        if role != "assistant" {
            self.others =
                self.salt.hash_parts(Use::Others, &[&self.others, role.as_bytes(), &said]);
        }
        if role == "user" {
            let before = self.users.unwrap_or(self.beginning);
            self.users = Some(self.salt.hash_parts(Use::Users, &[&before, &said]));
        }
        self.history = self.salt.hash_parts(Use::History, &[&self.history, role.as_bytes(), &said]);
    }
}

/// The words of a part that is text.
fn text_of_part(part: &str) -> Option<Cow<'_, str>> {
    if let Some(words) = parse_text(part) {
        return Some(words);
    }
    let part = JsonFields::parse(part, &["type", "text"])?;
    let kind = part.get_text("type");
    let is_text = matches!(kind.as_deref(), None | Some("text" | "input_text" | "output_text"));
    part.get_text("text").filter(|_| is_text)
}
