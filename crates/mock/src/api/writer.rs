//! Writing an answer as a stream of events, in vLLM's shape.

use std::sync::Arc;

use super::ask::{AnswerKind, CheckedRequest};
use super::chat::ARGUMENT;
use super::parts::{
    AnswerUsage, CompletionLogprobs, EventHead, FINGERPRINT, TokenSpan, count_characters,
    push_call_id, push_chat_logprobs, push_completion_logprobs, push_escaped, push_formatted,
    push_numbers, push_quoted, without_start_token,
};
use super::plan::{AnswerBehavior, AnswerPlan};
use super::refusal::ApiRefusal;
use super::text::text_at;
use super::tokenizer::decode_tokens;
use crate::faults::{Quirks, RoleShape};

/// No event is padded beyond this.
const LARGEST_EVENT: usize = 64 << 20;

/// The stream of one request. Events that a quirk or the request leaves out are left out here:
/// the caller need not know, and calls for each choice [`write_role`](Self::write_role), then
/// [`write_tokens`](Self::write_tokens) until all are sent, then [`write_finish`](Self::write_finish), and at last
/// [`write_usage`](Self::write_usage) and [`write_done`](Self::write_done).
pub(crate) struct StreamWriter {
    kind: AnswerKind,
    /// From the start of an event to `"choices":[`.
    root: Vec<u8>,
    /// From the end of the text to the end of the event, for a plain one.
    suffix: &'static [u8],
    lines: Vec<ChoiceStream>,
    pub(crate) quirks: Quirks,
    reasoning_field: &'static str,
    logprobs: Option<u8>,
    has_usage: bool,
    has_continuous_usage: bool,
    has_token_ids: bool,
    prompt_tokens: u32,
    media_tokens: u32,
    /// Tokens in usage for each that there is.
    token_factor: f64,
    /// Tokens of the prompts that came from the cache, for usage.
    pub(crate) cached: u32,
    is_over: bool,
}

/// One choice.
struct ChoiceStream {
    plan: AnswerPlan,
    prompt: Arc<[u32]>,
    /// From the start of an event to the quote before the text.
    prefix: Vec<u8>,
    /// How much of the prefix goes to `"index":N,`.
    to_index: usize,
    sent: u32,
    /// Bytes of content sent, before any cut.
    bytes: usize,
    /// Characters of a completion sent, its echo among them.
    characters: usize,
    /// The text that comes before the first token.
    echo: Option<String>,
    /// Events need nothing but a prefix, the text and a suffix.
    is_plain: bool,
    has_started: bool,
}

impl StreamWriter {
    pub(crate) fn new(
        head: &EventHead<'_>,
        ask: &CheckedRequest,
        plans: Vec<AnswerPlan>,
        behavior: &AnswerBehavior,
    ) -> Self {
        let quirks = behavior.quirks;
        let mut root = Vec::with_capacity(192);
        open_event(&mut root, &quirks);
        head.push_head(&mut root, ask.kind, true);
        root.extend_from_slice(br#","choices":["#);
        let suffix: &[u8] = match (ask.kind, quirks.crlf) {
            (AnswerKind::Chat, false) => {
                b"\"},\"logprobs\":null,\"finish_reason\":null,\"token_ids\":null}]}\n\n"
            }
            (AnswerKind::Chat, true) => {
                b"\"},\"logprobs\":null,\"finish_reason\":null,\"token_ids\":null}]}\r\n\r\n"
            }
            (_, false) => {
                b"\",\"logprobs\":null,\"finish_reason\":null,\"stop_reason\":null,\"prompt_token_ids\":null,\"token_ids\":null}]}\n\n"
            }
            (_, true) => {
                b"\",\"logprobs\":null,\"finish_reason\":null,\"stop_reason\":null,\"prompt_token_ids\":null,\"token_ids\":null}]}\r\n\r\n"
            }
        };
        let mut writer = Self {
            kind: ask.kind,
            root,
            suffix,
            lines: Vec::with_capacity(plans.len()),
            quirks,
            reasoning_field: behavior.reasoning_field,
            logprobs: ask.logprobs,
            has_usage: ask.include_usage && !quirks.no_usage,
            has_continuous_usage: ask.continuous_usage && !quirks.no_usage,
            has_token_ids: ask.return_token_ids,
            prompt_tokens: ask.prompt_tokens(),
            media_tokens: ask.media_tokens,
            token_factor: behavior.token_factor,
            cached: 0,
            is_over: false,
        };
        for (at, plan) in (0u32..).zip(plans) {
            let line = writer.new_choice_stream(ask, at, plan);
            writer.lines.push(line);
        }
        writer
    }

    fn new_choice_stream(
        &self,
        ask: &CheckedRequest,
        index: u32,
        plan: AnswerPlan,
    ) -> ChoiceStream {
        let mut prefix = Vec::with_capacity(self.root.len() + 40);
        prefix.extend_from_slice(&self.root);
        push_formatted(&mut prefix, format_args!(r#"{{"index":{index},"#));
        let to_index = prefix.len();
        prefix.extend_from_slice(match self.kind {
            AnswerKind::Chat => br#""delta":{"content":""#,
            _ => br#""text":""#,
        });
        let prompt = ask.prompt_of(index).cloned().unwrap_or_default();
        let echo = ask.echo.then(|| decode_tokens(without_start_token(&prompt)));
        let quirks = &self.quirks;
        let is_plain = self.logprobs.is_none()
            && !self.has_continuous_usage
            && !self.has_token_ids
            && !quirks.cumulative
            && !quirks.utf8
            && quirks.truncated_json_at.is_none()
            && quirks.error_at.is_none()
            && plan.cut.is_none()
            && plan.tool.is_none();
        // The first event may carry more than the others.
        let has_started = echo.is_none()
            && quirks.huge_event.is_none()
            && !(self.kind == AnswerKind::Chat && quirks.role == RoleShape::WithFirst);
        ChoiceStream {
            plan,
            prompt,
            prefix,
            to_index,
            sent: 0,
            bytes: 0,
            characters: 0,
            echo,
            is_plain,
            has_started,
        }
    }

    /// Nothing more will be written: an error ended the stream.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The chunk that announces a chat answer.
    pub(crate) fn write_role(&mut self, choice: u32, out: &mut Vec<u8>) {
        let delta: &[u8] = match self.quirks.role {
            RoleShape::Empty => br#""delta":{"role":"assistant","content":""}"#,
            RoleShape::Null => br#""delta":{"role":"assistant","content":null}"#,
            RoleShape::Bare => br#""delta":{"role":"assistant"}"#,
            RoleShape::Absent | RoleShape::WithFirst => return,
        };
        let Some(line) = self.lines.get(choice as usize) else { return };
        if self.is_over || self.kind != AnswerKind::Chat {
            return;
        }
        out.extend_from_slice(&line.prefix[..line.to_index]);
        out.extend_from_slice(delta);
        out.extend_from_slice(br#","logprobs":null,"finish_reason":null}]"#);
        self.write_usage_so_far(line, 0, out);
        self.write_prompt_ids(line, out);
        out.extend_from_slice(br#","prompt_text":null"#);
        self.close_event(out);
    }

    /// One event with `count` tokens of a choice, from the token `from` on.
    pub(crate) fn write_tokens(&mut self, choice: u32, from: u32, count: u32, out: &mut Vec<u8>) {
        let Some(line) = self.lines.get_mut(choice as usize) else { return };
        let to = from.saturating_add(count).min(line.plan.tokens);
        if line.is_plain && line.has_started && from >= line.plan.reasoning_tokens && !self.is_over
        {
            if from < to {
                out.extend_from_slice(&line.prefix);
                for index in from..to {
                    out.extend_from_slice(text_at(line.plan.seed, index).as_bytes());
                }
                out.extend_from_slice(self.suffix);
                line.sent = to;
            }
            return;
        }
        self.write_unusual_tokens(choice as usize, TokenSpan::new(from, to), out);
    }

    /// Tokens whose events are not the plain ones.
    fn write_unusual_tokens(&mut self, choice: usize, tokens: TokenSpan, out: &mut Vec<u8>) {
        let TokenSpan { from, to } = tokens;
        let fails = self.quirks.error_at.filter(|at| (from..to).contains(at));
        let to = fails.unwrap_or(to);
        if self.is_over {
            return;
        }
        if from < to {
            self.write_span(choice, TokenSpan::new(from, to), out);
        }
        if fails.is_some() {
            let status = http::StatusCode::INTERNAL_SERVER_ERROR;
            let refusal =
                ApiRefusal::engine_failed(status, "the engine failed in the middle of the answer");
            self.write_error(&refusal, out);
        }
    }

    /// The events of tokens: one, but for a tool call, which stands apart and has a beginning.
    fn write_span(&mut self, choice: usize, tokens: TokenSpan, out: &mut Vec<u8>) {
        let TokenSpan { from, to } = tokens;
        let Some(line) = self.lines.get(choice) else { return };
        let mut start = out.len();
        let call = line.plan.reasoning_tokens;
        if line.plan.tool.is_some() && from <= call && call < to {
            if from < call {
                self.write_event(line, TokenSpan::new(from, call), 0, out);
            }
            self.write_call_start(line, from == 0, out);
            start = out.len();
            self.write_event(line, TokenSpan::new(call, to), 0, out);
        } else {
            self.write_event(line, tokens, 0, out);
            let wanted = self.quirks.huge_event.map_or(0, |size| size as usize).min(LARGEST_EVENT);
            let padding = wanted.saturating_sub(out.len() - start);
            if from == 0 && padding > 0 {
                out.truncate(start);
                self.write_event(line, tokens, padding, out);
            }
        }
        if self.quirks.truncated_json_at.is_some_and(|at| (from..to).contains(&at)) {
            out.truncate(start + (out.len() - start) / 2);
            out.extend_from_slice(event_end(&self.quirks));
        }
        let Some(line) = self.lines.get_mut(choice) else { return };
        let content = from.max(line.plan.reasoning_tokens)..to;
        line.bytes += content.map(|index| line.plan.token_text(index).len()).sum::<usize>();
        if line.echo.is_some() && !line.has_started {
            line.characters += count_characters(without_start_token(&line.prompt));
        }
        line.characters +=
            (from..to).map(|at| line.plan.token_text(at).chars().count()).sum::<usize>();
        line.sent = to;
        line.has_started = true;
    }

    fn write_event(
        &self,
        line: &ChoiceStream,
        tokens: TokenSpan,
        padding: usize,
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(&line.prefix[..line.to_index]);
        if self.kind == AnswerKind::Chat {
            self.write_delta(line, tokens, padding, out);
        } else {
            self.write_text(line, tokens, padding, out);
        }
        self.write_usage_so_far(line, tokens.to, out);
        // Without a chunk for the role, the first token's has what it would have had.
        let is_first = tokens.from == 0
            && matches!(self.quirks.role, RoleShape::Absent | RoleShape::WithFirst);
        if self.kind == AnswerKind::Chat && self.has_token_ids && is_first {
            self.write_prompt_ids(line, out);
        }
        self.close_event(out);
    }

    fn write_delta(
        &self,
        line: &ChoiceStream,
        tokens: TokenSpan,
        padding: usize,
        out: &mut Vec<u8>,
    ) {
        let TokenSpan { from, to } = tokens;
        let plan = &line.plan;
        out.extend_from_slice(br#""delta":{"#);
        if self.quirks.role == RoleShape::WithFirst && !line.has_started && from == 0 {
            out.extend_from_slice(br#""role":"assistant","#);
        }
        let thinks = from < plan.reasoning_tokens;
        if thinks {
            let start = if self.quirks.cumulative { 0 } else { from };
            push_formatted(out, format_args!(r#""{}":""#, self.reasoning_field));
            for index in start..to.min(plan.reasoning_tokens) {
                out.extend_from_slice(plan.token_text(index).as_bytes());
            }
            out.push(b'"');
        }
        if to > plan.reasoning_tokens {
            if thinks {
                out.push(b',');
            }
            if plan.tool.is_some() {
                out.extend_from_slice(br#""tool_calls":[{"index":0,"function":{"arguments":""#);
                push_call_fragment(out, plan, tokens);
                out.extend_from_slice(br#""}}]"#);
            } else {
                out.extend_from_slice(br#""content":""#);
                self.write_content(line, tokens, out);
                out.resize(out.len() + padding, b'x');
                out.push(b'"');
            }
        } else if padding > 0 {
            // Reasoning is padded too, inside its quotes.
            out.pop();
            out.resize(out.len() + padding, b'x');
            out.push(b'"');
        }
        out.extend_from_slice(br#"},"logprobs":"#);
        match self.logprobs {
            Some(top) => push_chat_logprobs(out, plan, tokens, top),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(br#","finish_reason":null"#);
        self.write_token_ids(plan, tokens, out);
        out.extend_from_slice(b"}]");
    }

    fn write_content(&self, line: &ChoiceStream, tokens: TokenSpan, out: &mut Vec<u8>) {
        let TokenSpan { from, to } = tokens;
        let first = line.plan.reasoning_tokens;
        let (start, offset) =
            if self.quirks.cumulative { (first, 0) } else { (from.max(first), line.bytes) };
        for piece in line.plan.content_texts(start, to, offset) {
            out.extend_from_slice(piece.as_bytes());
        }
    }

    fn write_text(
        &self,
        line: &ChoiceStream,
        tokens: TokenSpan,
        padding: usize,
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(br#""text":""#);
        self.write_echo(line, out);
        self.write_content(line, tokens, out);
        out.resize(out.len() + padding, b'x');
        out.extend_from_slice(br#"","logprobs":"#);
        match self.logprobs {
            Some(top) => {
                let is_echoed = line.echo.is_some() && !line.has_started;
                let echo = if is_echoed { &line.prompt[..] } else { &[] };
                let asked = CompletionLogprobs { echo, tokens, top, offset: line.characters };
                push_completion_logprobs(out, &line.plan, &asked);
            }
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(br#","finish_reason":null,"stop_reason":null"#);
        if tokens.from == 0 {
            self.write_prompt_ids(line, out);
        } else {
            out.extend_from_slice(br#","prompt_token_ids":null"#);
        }
        self.write_token_ids(&line.plan, tokens, out);
        out.extend_from_slice(b"}]");
    }

    /// The prompt, where it is to come before the answer and has not yet.
    fn write_echo(&self, line: &ChoiceStream, out: &mut Vec<u8>) {
        match &line.echo {
            Some(echo) if !line.has_started || self.quirks.cumulative => push_escaped(out, echo),
            _ => {}
        }
    }

    /// The event that names the function, before any argument.
    fn write_call_start(&self, line: &ChoiceStream, is_first: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(&line.prefix[..line.to_index]);
        out.extend_from_slice(br#""delta":{"#);
        if self.quirks.role == RoleShape::WithFirst && is_first {
            out.extend_from_slice(br#""role":"assistant","#);
        }
        out.extend_from_slice(br#""tool_calls":[{"index":0,"id":""#);
        push_call_id(out, &line.plan);
        out.extend_from_slice(br#"","type":"function","function":{"name":"#);
        push_quoted(out, line.plan.tool.as_deref().unwrap_or_default());
        out.extend_from_slice(
            br#","arguments":""}}]},"logprobs":null,"finish_reason":null,"token_ids":null}]"#,
        );
        self.write_usage_so_far(line, line.plan.reasoning_tokens, out);
        self.close_event(out);
    }

    /// The chunk that ends a choice.
    pub(crate) fn write_finish(&mut self, choice: u32, out: &mut Vec<u8>) {
        let Some(line) = self.lines.get(choice as usize) else { return };
        if self.is_over {
            return;
        }
        out.extend_from_slice(&line.prefix[..line.to_index]);
        let (text, rest): (&[u8], &[u8]) = match self.kind {
            AnswerKind::Chat => (br#""delta":{"content":""#, br#""}"#),
            _ => (br#""text":""#, br#"""#),
        };
        out.extend_from_slice(text);
        self.write_echo(line, out);
        if self.quirks.cumulative && line.plan.tool.is_none() {
            let tokens = TokenSpan::new(line.plan.reasoning_tokens, line.sent);
            self.write_content(line, tokens, out);
        }
        out.extend_from_slice(rest);
        let reason = line.plan.finish.name();
        push_formatted(
            out,
            format_args!(r#","logprobs":null,"finish_reason":"{reason}","stop_reason":"#),
        );
        match &line.plan.stopped_by {
            Some(stop) => push_quoted(out, stop),
            None => out.extend_from_slice(b"null"),
        }
        if self.kind == AnswerKind::Completion {
            out.extend_from_slice(br#","prompt_token_ids":null"#);
        }
        out.extend_from_slice(br#","token_ids":null}]"#);
        self.write_usage_so_far(line, line.sent, out);
        if !self.has_usage && choice as usize + 1 == self.lines.len() {
            out.extend_from_slice(FINGERPRINT.as_bytes());
        }
        self.close_event(out);
    }

    /// The chunk with usage, where it was asked for: the sum over all choices.
    pub(crate) fn write_usage(&mut self, out: &mut Vec<u8>) {
        if self.is_over || !self.has_usage {
            return;
        }
        out.extend_from_slice(&self.root);
        out.push(b']');
        let thought = |line: &ChoiceStream| u64::from(line.sent.min(line.plan.reasoning_tokens));
        let thinks = self.lines.iter().any(|line| line.plan.reasoning_tokens > 0);
        let usage = AnswerUsage {
            prompt: self.prompt_tokens,
            cached: self.cached,
            media: self.media_tokens,
            completion: self.lines.iter().map(|line| u64::from(line.sent)).sum(),
            reasoning: thinks.then(|| self.lines.iter().map(thought).sum()),
        };
        usage.scaled_by(self.token_factor).push_usage(out, &self.quirks);
        out.extend_from_slice(FINGERPRINT.as_bytes());
        self.close_event(out);
    }

    /// The end of the stream.
    pub(crate) fn write_done(&mut self, out: &mut Vec<u8>) {
        if !self.is_over && !self.quirks.no_done {
            open_event(out, &self.quirks);
            out.extend_from_slice(b"[DONE]");
            out.extend_from_slice(event_end(&self.quirks));
        }
        self.is_over = true;
    }

    /// An error in place of all that would have come.
    pub(crate) fn write_error(&mut self, refusal: &ApiRefusal, out: &mut Vec<u8>) {
        if !self.is_over {
            open_event(out, &self.quirks);
            out.extend_from_slice(&refusal.body());
            out.extend_from_slice(event_end(&self.quirks));
        }
        self.is_over = true;
    }

    fn write_token_ids(&self, plan: &AnswerPlan, tokens: TokenSpan, out: &mut Vec<u8>) {
        out.extend_from_slice(br#","token_ids":"#);
        if self.has_token_ids {
            push_numbers(out, tokens.index_range().map(|index| plan.token_id(index)));
        } else {
            out.extend_from_slice(b"null");
        }
    }

    fn write_prompt_ids(&self, line: &ChoiceStream, out: &mut Vec<u8>) {
        out.extend_from_slice(br#","prompt_token_ids":"#);
        if self.has_token_ids {
            push_numbers(out, line.prompt.iter().copied());
        } else {
            out.extend_from_slice(b"null");
        }
    }

    /// Usage of one choice so far, where every chunk has it.
    fn write_usage_so_far(&self, line: &ChoiceStream, completion: u32, out: &mut Vec<u8>) {
        if self.has_continuous_usage {
            let thinks = line.plan.reasoning_tokens > 0;
            let usage = AnswerUsage {
                prompt: u32::try_from(line.prompt.len()).unwrap_or(u32::MAX),
                cached: self.cached,
                media: self.media_tokens,
                completion: u64::from(completion),
                reasoning: thinks.then(|| completion.min(line.plan.reasoning_tokens).into()),
            };
            usage.scaled_by(self.token_factor).push_usage(out, &self.quirks);
        }
    }

    fn close_event(&self, out: &mut Vec<u8>) {
        out.push(b'}');
        out.extend_from_slice(event_end(&self.quirks));
    }
}

/// A part of the arguments of a call; all parts together are one JSON object.
fn push_call_fragment(out: &mut Vec<u8>, plan: &AnswerPlan, tokens: TokenSpan) {
    let TokenSpan { from, to } = tokens;
    let first = plan.reasoning_tokens;
    if from <= first {
        push_formatted(out, format_args!(r#"{{\"{ARGUMENT}\":\""#));
    }
    for index in from.max(first)..to {
        out.extend_from_slice(plan.token_text(index).as_bytes());
    }
    if to == plan.tokens {
        out.extend_from_slice(br#"\"}"#);
    }
}

fn open_event(out: &mut Vec<u8>, quirks: &Quirks) {
    if quirks.pings {
        out.extend_from_slice(b": ping");
        out.extend_from_slice(event_end(quirks));
    }
    out.extend_from_slice(if quirks.no_space { b"data:" } else { b"data: " });
}

fn event_end(quirks: &Quirks) -> &'static [u8] {
    if quirks.crlf { b"\r\n\r\n" } else { b"\n\n" }
}
