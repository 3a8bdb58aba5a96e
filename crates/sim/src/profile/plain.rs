//! The profile that needs no file.

use std::time::Duration;

use super::{Delays, EngineProfile, Profile};
use goodput_model::Delay;

/// The profile named `default`.
impl Default for Profile {
    fn default() -> Self {
        let fixed = |ms| Delay::Fixed(Duration::from_millis(ms));
        Self {
            about: "fixed delays: 50 ms to the first token, 10 ms between tokens, 128 at once"
                .to_owned(),
            model: "mock".to_owned(),
            max_model_len: 131_072,
            default_tokens: 128,
            answer: None,
            image_tokens: super::image_tokens(),
            engine: EngineProfile::Delays(Delays {
                ttft: fixed(50),
                itl: fixed(10),
                slots: 128,
                max_queue: None,
            }),
        }
    }
}

impl Profile {
    /// Tokens of prompt and answer together that a request may have: the model's limit, or what
    /// fits into an empty cache where that is less.
    pub fn longest_request(&self) -> u32 {
        let cache = match &self.engine {
            EngineProfile::Delays(_) => u32::MAX,
            EngineProfile::Batching(batching) => {
                batching.kv_blocks().saturating_mul(batching.kv.block_tokens)
            }
        };
        self.max_model_len.min(cache)
    }

    /// What it does, in its own numbers.
    pub fn describe(&self) -> String {
        match &self.engine {
            EngineProfile::Delays(Delays { ttft, itl, slots, .. }) => {
                format!("TTFT {ttft}, ITL {itl}, {slots} at once")
            }
            EngineProfile::Batching(batching) => format!(
                "continuous batching, {} sequences, {} tokens per step, {} KV blocks",
                batching.scheduler.max_num_seqs,
                batching.scheduler.max_num_batched_tokens,
                batching.kv_blocks()
            ),
        }
    }

    /// Whether its tokens have instants of their own: without delays all are due at once, and late
    /// by as much as writing them takes.
    pub fn has_delays(&self) -> bool {
        let none = Delay::Fixed(Duration::ZERO);
        let is_free = |delays: &Delays| delays.ttft == none && delays.itl == none;
        !matches!(&self.engine, EngineProfile::Delays(delays) if is_free(delays))
    }

    /// Tokens in a block of the KV cache; 16 without a cache.
    pub fn block_tokens(&self) -> u32 {
        match &self.engine {
            EngineProfile::Delays(_) => super::block_tokens(),
            EngineProfile::Batching(batching) => batching.kv.block_tokens,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plain_profile_is_the_default_one() {
        assert_eq!(Profile::builtin("default"), Some(Profile::default()));
    }

    #[test]
    fn a_request_must_fit_into_the_cache() {
        let mut profile = Profile::builtin("llama-8b-1xh200").unwrap();
        assert_eq!(profile.longest_request(), profile.max_model_len);
        profile.set("kv_blocks", "10").unwrap();
        assert_eq!(profile.longest_request(), 160);
    }
}
