//! *The API of the engine*: requests read into what they ask, answers written as bytes.
//!
//! Everything here is a function of its arguments: no clock, no socket, no state that is shared.
//! A request becomes an [`CheckedRequest`], each of its choices a [`AnswerPlan`], and the plans are
//! written as a stream of events ([`StreamWriter`]) or in one piece ([`whole_answer`]); both carry the
//! same text.

mod ask;
mod bodies;
mod chat;
mod embedding;
mod fields;
mod parts;
mod plan;
mod refusal;
mod text;
mod tokenizer;
mod whole;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use ask::{AnswerKind, CheckedRequest, MOST_TOKENS, RequestRules};
pub(crate) use bodies::{
    detokenize_response, models_response, server_info_response, tokenize_response, version_response,
};
pub(crate) use embedding::embeddings_response;
pub(crate) use parts::EventHead;
pub(crate) use plan::{AnswerBehavior, AnswerPlan, Finish, plan_answer};
pub(crate) use refusal::ApiRefusal;
pub(crate) use text::token_at;
pub(crate) use whole::whole_answer;
pub(crate) use writer::StreamWriter;

/// Spreads every bit of `value` over all 64 (the finalizer of `SplitMix64`).
const fn mix_bits(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// One number for a sequence of them; depends on their order.
fn hash_bytes(values: impl IntoIterator<Item = u64>) -> u64 {
    let sum = values.into_iter().fold(0x5bd1_e995_u64, |sum, value| {
        (sum ^ value).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23)
    });
    mix_bits(sum)
}
