//! Writing an answer in one piece.

use super::ask::{AnswerKind, CheckedRequest};
use super::chat::ARGUMENT;
use super::parts::{
    AnswerUsage, CompletionLogprobs, EventHead, FINGERPRINT, TokenSpan, push_call_id,
    push_chat_logprobs, push_completion_logprobs, push_escaped, push_formatted, push_list,
    push_numbers, push_quoted, without_start_token,
};
use super::plan::{AnswerBehavior, AnswerPlan};
use super::tokenizer::decode_tokens;

/// The answer to a chat or a completion, one choice for each plan; `cached` tokens of the
/// prompts came from the cache.
pub(crate) fn whole_answer(
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
    head.push_head(&mut out, ask.kind, false);
    out.extend_from_slice(br#","choices":"#);
    push_list(&mut out, (0u32..).zip(plans), |out, (index, plan)| {
        push_formatted(out, format_args!(r#"{{"index":{index},"#));
        if ask.kind == AnswerKind::Chat {
            push_message(out, ask, plan, behavior.reasoning_field);
        } else {
            push_completion(out, ask, index, plan);
        }
        let reason = plan.finish.name();
        if behavior.quirks.no_finish {
            out.extend_from_slice(br#","finish_reason":null,"stop_reason":"#);
        } else {
            push_formatted(out, format_args!(r#","finish_reason":"{reason}","stop_reason":"#));
        }
        match &plan.stopped_by {
            Some(stop) => push_quoted(out, stop),
            None => out.extend_from_slice(b"null"),
        }
        if ask.kind == AnswerKind::Completion {
            push_prompt_ids(out, ask, index);
        }
        out.extend_from_slice(br#","token_ids":"#);
        if ask.return_token_ids {
            push_numbers(out, (0..plan.tokens).map(|index| plan.token_id(index)));
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
        usage.scaled_by(behavior.token_factor).push_usage(&mut out, &behavior.quirks);
    }
    out.extend_from_slice(FINGERPRINT.as_bytes());
    if ask.kind == AnswerKind::Chat {
        push_prompt_ids(&mut out, ask, 0);
    }
    out.push(b'}');
    out
}

fn push_message(out: &mut Vec<u8>, ask: &CheckedRequest, plan: &AnswerPlan, reasoning_field: &str) {
    let thought = plan.reasoning_tokens;
    out.extend_from_slice(br#""message":{"role":"assistant","content":"#);
    if plan.tool.is_some() || (thought > 0 && thought == plan.tokens) {
        out.extend_from_slice(b"null");
    } else {
        out.push(b'"');
        push_words(out, plan.content_texts(thought, plan.tokens, 0));
        out.push(b'"');
    }
    if thought > 0 {
        push_formatted(out, format_args!(r#","{reasoning_field}":""#));
        push_words(out, (0..thought).map(|index| plan.token_text(index)));
        out.push(b'"');
    }
    if let Some(name) = &plan.tool {
        out.extend_from_slice(br#","tool_calls":[{"id":""#);
        push_call_id(out, plan);
        out.extend_from_slice(br#"","type":"function","function":{"name":"#);
        push_quoted(out, name);
        push_formatted(out, format_args!(r#","arguments":"{{\"{ARGUMENT}\":\""#));
        push_words(out, (thought..plan.tokens).map(|index| plan.token_text(index)));
        out.extend_from_slice(br#"\"}"}}]"#);
    }
    out.extend_from_slice(br#"},"logprobs":"#);
    match ask.logprobs {
        Some(top) => push_chat_logprobs(out, plan, TokenSpan::new(0, plan.tokens), top),
        None => out.extend_from_slice(b"null"),
    }
}

fn push_completion(out: &mut Vec<u8>, ask: &CheckedRequest, index: u32, plan: &AnswerPlan) {
    let prompt = ask.prompt_of(index).map_or(&[][..], |prompt| prompt);
    let echo = if ask.echo { prompt } else { &[] };
    out.extend_from_slice(br#""text":""#);
    push_escaped(out, &decode_tokens(without_start_token(echo)));
    push_words(out, plan.content_texts(0, plan.tokens, 0));
    out.extend_from_slice(br#"","logprobs":"#);
    match ask.logprobs {
        Some(top) => {
            let tokens = TokenSpan::new(0, plan.tokens);
            let asked = CompletionLogprobs { echo, tokens, top, offset: 0 };
            push_completion_logprobs(out, plan, &asked);
        }
        None => out.extend_from_slice(b"null"),
    }
}

fn push_prompt_ids(out: &mut Vec<u8>, ask: &CheckedRequest, choice: u32) {
    out.extend_from_slice(br#","prompt_token_ids":"#);
    match ask.prompt_of(choice) {
        Some(prompt) if ask.return_token_ids => push_numbers(out, prompt.iter().copied()),
        _ => out.extend_from_slice(b"null"),
    }
}

/// Generated words never need escaping.
fn push_words(out: &mut Vec<u8>, words: impl Iterator<Item = &'static str>) {
    for word in words {
        out.extend_from_slice(word.as_bytes());
    }
}
