//! Writing an answer in one piece.

use super::ask::{AnswerKind, CheckedRequest};
use super::chat::ARGUMENT;
use super::parts::{
    AnswerUsage, CompletionLogprobs, EventHead, FINGERPRINT, TokenSpan, chat_logprobs,
    completion_logprobs, escaped, list, numbers, push, push_call_id, quoted, without_start,
};
use super::plan::{AnswerBehavior, AnswerPlan};
use super::tokenizer::decode;

/// The answer to a chat or a completion, one choice for each plan; `cached` tokens of the
/// prompts came from the cache.
pub(crate) fn whole(
    head: &EventHead<'_>,
    ask: &CheckedRequest,
    plans: &[AnswerPlan],
    behavior: &AnswerBehavior,
    cached: u32,
) -> Vec<u8> {
    let sum = |count: fn(&AnswerPlan) -> u32| plans.iter().map(|plan| u64::from(count(plan))).sum();
    let tokens: u64 = sum(|plan| plan.tokens);
    // A guess for common answers; a request must not reserve memory by a large limit.
    let mut out = Vec::with_capacity(512 + tokens.min(1 << 16) as usize * 6);
    head.push(&mut out, ask.kind, false);
    out.extend_from_slice(br#","choices":"#);
    list(&mut out, (0u32..).zip(plans), |out, (index, plan)| {
        push(out, format_args!(r#"{{"index":{index},"#));
        if ask.kind == AnswerKind::Chat {
            message(out, ask, plan, behavior.reasoning_field);
        } else {
            completion(out, ask, index, plan);
        }
        let reason = plan.finish.name();
        if behavior.quirks.no_finish {
            out.extend_from_slice(br#","finish_reason":null,"stop_reason":"#);
        } else {
            push(out, format_args!(r#","finish_reason":"{reason}","stop_reason":"#));
        }
        match &plan.stopped_by {
            Some(stop) => quoted(out, stop),
            None => out.extend_from_slice(b"null"),
        }
        if ask.kind == AnswerKind::Completion {
            prompt_ids(out, ask, index);
        }
        out.extend_from_slice(br#","token_ids":"#);
        if ask.return_token_ids {
            numbers(out, (0..plan.tokens).map(|index| plan.token(index)));
        } else {
            out.extend_from_slice(b"null");
        }
        out.push(b'}');
    });
    if !behavior.quirks.no_usage {
        let thinks = plans.iter().any(|plan| plan.reasoning_tokens > 0);
        let usage = AnswerUsage {
            prompt: ask.prompt_tokens(),
            cached,
            media: ask.media_tokens,
            completion: tokens,
            reasoning: thinks.then(|| sum(|plan| plan.reasoning_tokens)),
        };
        usage.times(behavior.token_factor).push(&mut out, &behavior.quirks);
    }
    out.extend_from_slice(FINGERPRINT.as_bytes());
    if ask.kind == AnswerKind::Chat {
        prompt_ids(&mut out, ask, 0);
    }
    out.push(b'}');
    out
}

fn message(out: &mut Vec<u8>, ask: &CheckedRequest, plan: &AnswerPlan, reasoning_field: &str) {
    let thought = plan.reasoning_tokens;
    out.extend_from_slice(br#""message":{"role":"assistant","content":"#);
    if plan.tool.is_some() || (thought > 0 && thought == plan.tokens) {
        out.extend_from_slice(b"null");
    } else {
        out.push(b'"');
        pieces(out, plan.content(thought, plan.tokens, 0));
        out.push(b'"');
    }
    if thought > 0 {
        push(out, format_args!(r#","{reasoning_field}":""#));
        pieces(out, (0..thought).map(|index| plan.piece(index)));
        out.push(b'"');
    }
    if let Some(name) = &plan.tool {
        out.extend_from_slice(br#","tool_calls":[{"id":""#);
        push_call_id(out, plan);
        out.extend_from_slice(br#"","type":"function","function":{"name":"#);
        quoted(out, name);
        push(out, format_args!(r#","arguments":"{{\"{ARGUMENT}\":\""#));
        pieces(out, (thought..plan.tokens).map(|index| plan.piece(index)));
        out.extend_from_slice(br#"\"}"}}]"#);
    }
    out.extend_from_slice(br#"},"logprobs":"#);
    match ask.logprobs {
        Some(top) => chat_logprobs(out, plan, TokenSpan::new(0, plan.tokens), top),
        None => out.extend_from_slice(b"null"),
    }
}

fn completion(out: &mut Vec<u8>, ask: &CheckedRequest, index: u32, plan: &AnswerPlan) {
    let prompt = ask.prompt_of(index).map_or(&[][..], |prompt| prompt);
    let echo = if ask.echo { prompt } else { &[] };
    out.extend_from_slice(br#""text":""#);
    escaped(out, &decode(without_start(echo)));
    pieces(out, plan.content(0, plan.tokens, 0));
    out.extend_from_slice(br#"","logprobs":"#);
    match ask.logprobs {
        Some(top) => {
            let tokens = TokenSpan::new(0, plan.tokens);
            let asked = CompletionLogprobs { echo, tokens, top, offset: 0 };
            completion_logprobs(out, plan, &asked);
        }
        None => out.extend_from_slice(b"null"),
    }
}

fn prompt_ids(out: &mut Vec<u8>, ask: &CheckedRequest, choice: u32) {
    out.extend_from_slice(br#","prompt_token_ids":"#);
    match ask.prompt_of(choice) {
        Some(prompt) if ask.return_token_ids => numbers(out, prompt.iter().copied()),
        _ => out.extend_from_slice(b"null"),
    }
}

/// Generated words never need escaping.
fn pieces(out: &mut Vec<u8>, words: impl Iterator<Item = &'static str>) {
    for word in words {
        out.extend_from_slice(word.as_bytes());
    }
}
