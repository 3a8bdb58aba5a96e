//! The beginning of a session's first prompt: what it shares with others, and what is its own.
//!
//! A prompt of `input` tokens holds the server's template, the class's system prompt, the shared
//! beginning and a fresh rest that starts with a nonce. Where the shared parts leave no room, the
//! prompt grows: there are always `FRESH` tokens of its own.
//!
//! `cached_tokens` is what a warm cache would hold, in whole blocks. The template is
//! taken to stand before the text as a whole; some of it stands behind, so the shared part of a hit
//! rate ends in the middle of a block, where half a block more or less changes nothing.

use std::sync::Arc;

use goodput_model::random::{Domain, RandomStream};
use goodput_model::{Message, MessagePart, Role, SharedPlan};

use crate::maker::SessionMaker;
use crate::nonce::COMMON;
use crate::sizes::LengthSource;
use crate::text::Begin;

/// Tokens of its own that a prompt with a shared beginning has at least: the nonce and some words.
pub(crate) const FRESH: u32 = 16;

/// The first prompt of a session.
pub(crate) struct FirstPrompt {
    pub(crate) messages: Vec<Message>,
    /// Tokens of the prompt, template included.
    pub(crate) tokens: u32,
    /// Those that a warm cache holds; `None` where nothing is shared on purpose.
    pub(crate) cached: Option<u32>,
}

/// What the number of a shared text is made of, so that no two uses meet.
#[derive(Clone, Copy)]
enum PrefixUse {
    System = 1,
    Group = 2,
    Rate = 3,
    Context = 4,
    Repeat = 5,
}

/// The first prompt of a session, of this many tokens where that is possible.
pub(crate) fn first_prompt(
    maker: &mut SessionMaker,
    sizes: &LengthSource,
    input: u32,
) -> FirstPrompt {
    let system = maker.class.prefix.as_ref().map_or(0, |prefix| prefix.system_tokens);
    let before = maker.author.tokens_before_user(system);
    let shared = match maker.class.prefix.as_ref().and_then(|prefix| prefix.shared) {
        None => None,
        Some(SharedPlan::Repeat { prompts }) => {
            return repeated_prompt(maker, sizes, input, prompts);
        }
        Some(plan) => Some(shared_prefix(maker, plan, before, input)),
    };
    let mut messages = Vec::with_capacity(2);
    if system > 0 {
        messages.push(system_message(maker, system));
    }
    let (parts, shared_tokens) = match shared {
        Some((text, tokens)) if tokens > 0 => (vec![MessagePart::Text(text)], tokens),
        _ => (Vec::new(), 0),
    };
    let is_shaped = maker.class.prefix.is_some();
    let least = if is_shaped { FRESH.max(maker.author.lexicon.nonce_tokens() + 2) } else { 1 };
    let common = before.saturating_add(shared_tokens);
    let tokens = input.max(common.saturating_add(least));
    let begin = if parts.is_empty() { Begin::Message } else { Begin::Continued };
    let nonce = maker.nonce();
    let fresh = maker.author.write(tokens - common, begin, Some(nonce), &mut maker.text);
    messages.push(user_message(parts, fresh));
    let has_common = system > 0 || shared_tokens > 0;
    let cached =
        is_shaped.then(|| if has_common { maker.author.whole_block_tokens(common) } else { 0 });
    FirstPrompt { messages, tokens, cached }
}

/// The system prompt of the class: one text for all its sessions.
pub(crate) fn system_message(maker: &SessionMaker, tokens: u32) -> Message {
    let number = random_stream_number(maker, PrefixUse::System, 0);
    Message::text(Role::System, maker.author.shared_text(number, tokens, Begin::Message))
}

fn user_message(mut parts: Vec<MessagePart>, fresh: String) -> Message {
    parts.push(MessagePart::Text(fresh.into()));
    Message::Plain { role: Role::User, parts }
}

fn random_stream_number(maker: &SessionMaker, what: PrefixUse, id: u64) -> u64 {
    ((maker.class.index + 1) << 40) | ((what as u64) << 36) | (id & 0xffff_ffff)
}

/// The shared beginning of the user's message and its tokens.
fn shared_prefix(
    maker: &SessionMaker,
    plan: SharedPlan,
    before: u32,
    input: u32,
) -> (Arc<str>, u32) {
    let author = maker.author;
    let group = |groups: u32, exponent: f64| {
        RandomStream::new(author.seed, Domain::Shared, maker.number)
            .draw_zipf(groups.into(), exponent)
            - 1
    };
    let fixed = |what, id, tokens| {
        (author.shared_text(random_stream_number(maker, what, id), tokens, Begin::Message), tokens)
    };
    match plan {
        SharedPlan::Groups { groups, tokens, zipf } => {
            fixed(PrefixUse::Group, group(groups, zipf), tokens)
        }
        SharedPlan::Tiling { contexts, tokens } => {
            fixed(PrefixUse::Context, maker.local % u64::from(contexts.max(1)), tokens)
        }
        SharedPlan::HitRate { share, groups } => {
            let id = random_stream_number(maker, PrefixUse::Rate, group(groups, 0.0));
            let wanted = shared_tokens_for_rate(share, before, input, author.block);
            let mut stream = RandomStream::new(author.seed, Domain::Shared, id);
            let (text, tokens) = author.lexicon.text_beginning(wanted, &mut stream);
            (text.into(), tokens)
        }
        SharedPlan::Repeat { .. } => (Arc::from(""), 0),
    }
}

/// Shared tokens behind `before` others, so that the whole blocks among them are `share` of the
/// prompt: h = floor(P/b)·b / (P+U) with the nearest number of blocks, and half a block more, for
/// the template's sake.
fn shared_tokens_for_rate(share: f64, before: u32, input: u32, block: u32) -> u32 {
    let room = input.saturating_sub(FRESH);
    let blocks = (share * f64::from(input) / f64::from(block)).round() as u32;
    let blocks = blocks.min(room / block);
    if blocks == 0 {
        return 0;
    }
    let end = (blocks * block).saturating_add(block / 2).min(room.max(blocks * block));
    end.saturating_sub(before)
}

/// A prompt that is one of a few: text and length are those of its number among them.
fn repeated_prompt(
    maker: &mut SessionMaker,
    sizes: &LengthSource,
    input: u32,
    prompts: u32,
) -> FirstPrompt {
    let author = maker.author;
    let which = maker.local % u64::from(prompts.max(1));
    let input = sizes.input_of(author.seed, which).unwrap_or(input);
    let system = maker.class.prefix.as_ref().map_or(0, |prefix| prefix.system_tokens);
    let before = author.tokens_before_user(system);
    let tokens = input.max(before.saturating_add(1));
    let mut stream = RandomStream::new(
        author.seed,
        Domain::Shared,
        random_stream_number(maker, PrefixUse::Repeat, which),
    );
    let nonce = author.nonces.value(which, COMMON - maker.class.index);
    let text = author.write(tokens - before, Begin::Message, Some(nonce), &mut stream);
    let mut messages = Vec::with_capacity(2);
    if system > 0 {
        messages.push(system_message(maker, system));
    }
    messages.push(user_message(Vec::new(), text));
    // The last token is always computed, so a prompt of whole blocks misses one of them.
    let cached = Some(author.whole_block_tokens(tokens - 1));
    FirstPrompt { messages, tokens, cached }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shared_part_of_a_hit_rate_by_hand() {
        // 1,000 tokens at 70 %: 43.75 blocks, so 44 of them, and half a block more.
        assert_eq!(shared_tokens_for_rate(0.7, 0, 1_000, 16), 44 * 16 + 8);
        assert_eq!(shared_tokens_for_rate(0.7, 11, 1_000, 16), 44 * 16 + 8 - 11);
        // Of a prompt of 100 tokens no more than 84 can be shared: five blocks, and four tokens.
        assert_eq!(shared_tokens_for_rate(1.0, 0, 100, 16), 84);
        assert_eq!(shared_tokens_for_rate(0.0, 0, 1_000, 16), 0);
        // Less than half a block is none.
        assert_eq!(shared_tokens_for_rate(0.1, 0, 79, 16), 0);
        assert_eq!(shared_tokens_for_rate(0.1, 0, 80, 16), 16 + 8);
        assert_eq!(shared_tokens_for_rate(0.9, 0, 10, 16), 0);
    }
}
