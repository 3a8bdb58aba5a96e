//! What the texts of all classes have in common: vocabulary, template, nonces, shared texts.

use std::sync::Arc;

use goodput_model::WorkloadPlan;
use goodput_model::random::{Domain, RandomStream};

use crate::WorkloadError;
use crate::lexicon::Lexicon;
use crate::nonce::Nonces;
use crate::text::Begin;
use crate::text_cache::TextCache;

/// Writes the texts of a run.
pub(crate) struct Author {
    pub(crate) seed: u64,
    pub(crate) lexicon: Lexicon,
    /// Tokens that the server adds to every prompt.
    pub(crate) template: u32,
    /// Tokens that it adds for each further message.
    pub(crate) message: u32,
    /// Tokens of a cache block.
    pub(crate) block: u32,
    pub(crate) nonces: Nonces,
    pub(crate) shelf: TextCache,
}

impl Author {
    pub(crate) fn new(plan: &WorkloadPlan, seed: u64) -> Result<Self, WorkloadError> {
        let lexicon = match &plan.calibration {
            Some(calibration) => Lexicon::from_costs(&calibration.costs)?,
            None => Lexicon::with_unit_costs(),
        };
        Ok(Self {
            seed,
            lexicon,
            template: plan.calibration.as_ref().map_or(0, |found| found.template_tokens),
            message: plan.calibration.as_ref().map_or(0, |found| found.message_tokens),
            block: plan.cache_block.max(1),
            nonces: Nonces::new(seed),
            shelf: TextCache::default(),
        })
    }

    /// Tokens before the user's text: the template, and a system prompt where there is one.
    pub(crate) fn tokens_before_user(&self, system: u32) -> u32 {
        let message = if system > 0 { self.message } else { 0 };
        self.template.saturating_add(system).saturating_add(message)
    }

    /// The tokens of whole cache blocks among this many.
    pub(crate) fn whole_block_tokens(&self, tokens: u32) -> u32 {
        tokens / self.block * self.block
    }

    /// Text of this many tokens.
    pub(crate) fn write(
        &self,
        tokens: u32,
        begin: Begin,
        nonce: Option<u64>,
        stream: &mut RandomStream,
    ) -> String {
        self.lexicon.write_text(tokens, begin, nonce, stream)
    }

    /// A text of this many tokens that many requests share.
    pub(crate) fn shared_text(&self, number: u64, tokens: u32, begin: Begin) -> Arc<str> {
        self.shelf
            .get((number, begin == Begin::Message), || self.common_text(number, tokens, begin))
    }

    /// The same, not kept.
    pub(crate) fn common_text(&self, number: u64, tokens: u32, begin: Begin) -> String {
        self.write(tokens, begin, None, &mut RandomStream::new(self.seed, Domain::Shared, number))
    }
}

/// Estimated tokens of a foreign text: about four bytes each.
pub(crate) fn guess_tokens(text: &str) -> u32 {
    u32::try_from(text.len().div_ceil(4)).unwrap_or(u32::MAX)
}
