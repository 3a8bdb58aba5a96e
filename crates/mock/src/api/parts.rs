//! Pieces of JSON that streams and whole answers share.

use std::io::Write;
use std::ops::Range;

use super::ask::AnswerKind;
use super::plan::AnswerPlan;
use super::tokenizer::{self, BOS};
use crate::faults::Quirks;

/// On the last event of a stream, and on whole answers.
pub(crate) const FINGERPRINT: &str =
    concat!(",\"system_fingerprint\":\"goodput-mock-", env!("CARGO_PKG_VERSION"), "\"");

/// What every event of an answer begins with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventHead<'a> {
    pub(crate) id: u64,
    /// Seconds since 1970.
    pub(crate) created: u64,
    pub(crate) model: &'a str,
}

impl EventHead<'_> {
    /// From the brace to `"model"`.
    pub(crate) fn push_head(&self, out: &mut Vec<u8>, kind: AnswerKind, is_stream: bool) {
        let (prefix, object) = match (kind, is_stream) {
            (AnswerKind::Chat, true) => ("chatcmpl", "chat.completion.chunk"),
            (AnswerKind::Chat, false) => ("chatcmpl", "chat.completion"),
            (AnswerKind::Completion, _) => ("cmpl", "text_completion"),
            (AnswerKind::Embedding, _) => ("embd", "list"),
        };
        push_formatted(
            out,
            format_args!(
                r#"{{"id":"{prefix}-{:016x}","object":"{object}","created":{},"model":"#,
                self.id, self.created
            ),
        );
        push_quoted(out, self.model);
    }
}

/// Appends formatted text.
pub(crate) fn push_formatted(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector cannot fail.
    let _ = out.write_fmt(text);
}

/// Appends a JSON string, quotes included.
pub(crate) fn push_quoted(out: &mut Vec<u8>, text: &str) {
    // Writing a string to a vector cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// Appends a JSON string without its quotes.
pub(crate) fn push_escaped(out: &mut Vec<u8>, text: &str) {
    let start = out.len();
    push_quoted(out, text);
    out.pop();
    if start < out.len() {
        out.remove(start);
    }
}

/// Appends a list of numbers.
pub(crate) fn push_numbers(out: &mut Vec<u8>, ids: impl IntoIterator<Item = u32>) {
    push_list(out, ids, |out, id| push_formatted(out, format_args!("{id}")));
}

/// Appends a list.
pub(crate) fn push_list<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut item: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (at, value) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        item(out, value);
    }
    out.push(b']');
}

/// Tokens of a request and its answers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AnswerUsage {
    pub(crate) prompt: u32,
    pub(crate) cached: u32,
    /// Part of the prompt; said only where there is any.
    pub(crate) media: u32,
    pub(crate) completion: u64,
    /// Part of the completion; none without any reasoning.
    pub(crate) reasoning: Option<u64>,
}

impl AnswerUsage {
    /// The counts of a tokenizer that makes this many tokens of one of ours.
    pub(crate) fn scaled_by(self, factor: f64) -> Self {
        let times = |count: f64| (count * factor).round();
        let few = |count: u32| times(f64::from(count)) as u32;
        let many = |count: u64| times(count as f64) as u64;
        Self {
            prompt: few(self.prompt),
            cached: few(self.cached),
            media: few(self.media),
            completion: many(self.completion),
            reasoning: self.reasoning.map(many),
        }
    }

    /// Appends `,"usage":{…}`.
    pub(crate) fn push_usage(self, out: &mut Vec<u8>, quirks: &Quirks) {
        let right = self.completion;
        let completion = if quirks.wrong_usage { right * 2 + 7 } else { right };
        push_formatted(
            out,
            format_args!(
                r#","usage":{{"prompt_tokens":{},"total_tokens":{},"completion_tokens":{completion},"prompt_tokens_details":{{"cached_tokens":{}"#,
                self.prompt,
                u64::from(self.prompt) + completion,
                self.cached,
            ),
        );
        if self.media > 0 {
            push_formatted(out, format_args!(r#","image_tokens":{}"#, self.media));
        }
        out.push(b'}');
        if let Some(reasoning) = self.reasoning {
            let details = r#","completion_tokens_details":{"reasoning_tokens":"#;
            push_formatted(out, format_args!("{details}{reasoning}}}"));
        }
        out.push(b'}');
    }
}

/// The logarithm of a word's probability: the chosen one is likely, each next one less so.
fn word_logprob(plan: &AnswerPlan, index: u32, rank: u8) -> f64 {
    let drawn = super::mix_bits(plan.seed ^ (u64::from(index) << 8)) & 0xffff;
    -0.01 - drawn as f64 / 65_536.0 - f64::from(rank) * 0.75
}

/// Tokens of an answer, from one up to another that is not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenSpan {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

impl TokenSpan {
    pub(crate) fn new(from: u32, to: u32) -> Self {
        Self { from, to }
    }

    pub(crate) fn index_range(self) -> Range<u32> {
        self.from..self.to
    }
}

/// Appends the logprobs of tokens as chat answers have them.
pub(crate) fn push_chat_logprobs(out: &mut Vec<u8>, plan: &AnswerPlan, tokens: TokenSpan, top: u8) {
    let entry = |out: &mut Vec<u8>, index: u32, rank: u8| {
        let word = plan.alternative_text(index, rank);
        let value = word_logprob(plan, index, rank);
        push_formatted(out, format_args!(r#"{{"token":"{word}","logprob":{value:.6},"bytes":"#));
        push_numbers(out, word.bytes().map(u32::from));
    };
    out.extend_from_slice(br#"{"content":"#);
    push_list(out, tokens.index_range(), |out, index| {
        entry(out, index, 0);
        out.extend_from_slice(br#","top_logprobs":"#);
        push_list(out, 0..top, |out, rank| {
            entry(out, index, rank);
            out.push(b'}');
        });
        out.push(b'}');
    });
    out.push(b'}');
}

/// A token of a completion with logprobs: of the echoed prompt or of the answer.
struct Scored {
    text: String,
    characters: usize,
    /// None for the first token of a prompt, which follows nothing.
    score: Option<f64>,
    others: Vec<(&'static str, f64)>,
}

/// Which logprobs of a completion are asked for.
pub(crate) struct CompletionLogprobs<'a> {
    /// The prompt, where it is echoed.
    pub(crate) echo: &'a [u32],
    pub(crate) tokens: TokenSpan,
    /// Alternatives for each token.
    pub(crate) top: u8,
    /// Characters of the text before them.
    pub(crate) offset: usize,
}

/// Appends the logprobs of tokens as completions have them, after those of the prompt where it
/// is echoed.
pub(crate) fn push_completion_logprobs(
    out: &mut Vec<u8>,
    plan: &AnswerPlan,
    asked: &CompletionLogprobs<'_>,
) {
    let CompletionLogprobs { echo, tokens, top, offset } = *asked;
    let mut scored = Vec::new();
    for (at, id) in without_start_token(echo).iter().enumerate() {
        let index = at as u32;
        let score = (at > 0).then(|| word_logprob(plan, index, 1));
        let text = tokenizer::decode_tokens(&[*id]);
        scored.push(Scored {
            text,
            characters: count_characters(&[*id]),
            score,
            others: Vec::new(),
        });
    }
    for index in tokens.index_range() {
        let other = |rank| (plan.alternative_text(index, rank), word_logprob(plan, index, rank));
        scored.push(Scored {
            text: plan.token_text(index).to_owned(),
            characters: plan.token_text(index).chars().count(),
            score: Some(word_logprob(plan, index, 0)),
            others: (0..top).map(other).collect(),
        });
    }
    let mut at = offset;
    out.extend_from_slice(br#"{"text_offset":"#);
    push_list(out, &scored, |out, token| {
        push_formatted(out, format_args!("{at}"));
        at += token.characters;
    });
    out.extend_from_slice(br#","token_logprobs":"#);
    push_list(out, &scored, |out, token| match token.score {
        Some(score) => push_formatted(out, format_args!("{score:.6}")),
        None => out.extend_from_slice(b"null"),
    });
    out.extend_from_slice(br#","tokens":"#);
    push_list(out, &scored, |out, token| push_quoted(out, &token.text));
    out.extend_from_slice(br#","top_logprobs":"#);
    push_list(out, &scored, |out, token| {
        if token.score.is_none() {
            return out.extend_from_slice(b"null");
        }
        out.push(b'{');
        for (at, (word, score)) in token.others.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            push_formatted(out, format_args!(r#"{comma}"{word}":{score:.6}"#));
        }
        out.push(b'}');
    });
    out.push(b'}');
}

/// Characters that begin in these tokens; a token may be the middle of one.
pub(crate) fn count_characters(ids: &[u32]) -> usize {
    let begins = |byte: &&u8| **byte & 0xc0 != 0x80;
    let count = |piece: tokenizer::TokenBytes| piece.as_bytes().iter().filter(begins).count();
    ids.iter().filter_map(|id| tokenizer::token_bytes(*id)).map(count).sum()
}

/// A prompt as it is echoed: without the token that texts begin with.
pub(crate) fn without_start_token(prompt: &[u32]) -> &[u32] {
    prompt.strip_prefix(&[BOS]).unwrap_or(prompt)
}

/// The id of the one tool call of an answer.
pub(crate) fn push_call_id(out: &mut Vec<u8>, plan: &AnswerPlan) {
    push_formatted(out, format_args!("call_{:016x}", super::mix_bits(plan.seed ^ 0x7003)));
}
