//! A prompt as names of blocks: equal beginnings are equal names, and nothing else can be told.

use goodput_tokens::{TextUnit, Tokenizer, estimate_tokens};
use sha2::{Digest, Sha256};

use crate::rows::salted::{Key, Salt, Use, number_from_key};

/// Hundredths of a token, as estimates count.
const TOKEN: u64 = 100;

/// Blocks of a prompt that are named; what stands behind them is counted by estimate.
pub(crate) const MOST_BLOCKS: usize = 65_536;

/// Cuts a prompt into blocks, from its beginning to its end.
pub(crate) struct Cutter<'a> {
    tokenizer: &'a Tokenizer,
    salt: Salt,
    /// What a block costs.
    size: u64,
    /// The block that is being filled, and what it costs so far.
    open: Sha256,
    cost: u64,
    total: u64,
    blocks: Vec<u64>,
}

/// What units are, so that none passes for another.
enum UnitKind {
    Id,
    Run,
    Mark,
    Thing,
}

impl<'a> Cutter<'a> {
    /// For a prompt behind this beginning: prompts of other models share nothing.
    pub(crate) fn new(tokenizer: &'a Tokenizer, block: u32, salt: Salt, beginning: &Key) -> Self {
        let size = u64::from(block.max(1)) * TOKEN;
        let open = start_block_hash(salt, beginning);
        Self { tokenizer, salt, size, open, cost: 0, total: 0, blocks: Vec::new() }
    }

    /// Text.
    pub(crate) fn add_text(&mut self, text: &str) {
        let tokenizer = self.tokenizer;
        let done =
            if self.is_full() { 0 } else { tokenizer.walk_units(text, |unit| self.add_unit(unit)) };
        let rest = text.get(done..).unwrap_or_default();
        self.total += u64::from(estimate_tokens(rest)) * TOKEN;
    }

    /// A token counted by the server.
    pub(crate) fn add_token_id(&mut self, id: u32) {
        self.add_unit(TextUnit::Id(id));
    }

    /// A token of the form around the text: who speaks, where a message ends.
    pub(crate) fn add_marker(&mut self, what: &str) {
        self.add(UnitKind::Mark, what.as_bytes(), TOKEN);
    }

    /// Content other than text, such as an image, by its hash. It counts as one token: what it
    /// costs is the server's to say.
    pub(crate) fn add_non_text(&mut self, key: &Key) {
        self.add(UnitKind::Thing, key, TOKEN);
    }

    /// Tokens of the prompt, and its blocks. The last block need not be full.
    pub(crate) fn finish(mut self) -> (u32, Vec<u64>) {
        if self.cost > 0 {
            self.close_block();
        }
        (u32::try_from(self.total.div_ceil(TOKEN)).unwrap_or(u32::MAX), self.blocks)
    }

    fn is_full(&self) -> bool {
        self.blocks.len() >= MOST_BLOCKS
    }

    fn add_unit(&mut self, unit: TextUnit<'_>) -> bool {
        match unit {
            TextUnit::Id(id) => self.add(UnitKind::Id, &id.to_le_bytes(), unit.cost_hundredths()),
            TextUnit::Run(text, cost) => self.add(UnitKind::Run, text.as_bytes(), cost),
        }
        !self.is_full()
    }

    fn add(&mut self, kind: UnitKind, bytes: &[u8], cost: u64) {
        self.open.update([kind as u8]);
        self.open.update((bytes.len() as u32).to_le_bytes());
        self.open.update(bytes);
        self.cost += cost;
        self.total += cost;
        while self.cost >= self.size {
            self.cost -= self.size;
            self.close_block();
        }
    }

    fn close_block(&mut self) {
        let key: Key = self.open.finalize_reset().into();
        if !self.is_full() {
            self.blocks.push(number_from_key(&key));
        }
        self.open = start_block_hash(self.salt, &key);
    }
}

/// The hash of a block begins with that of the block before it.
fn start_block_hash(salt: Salt, before: &Key) -> Sha256 {
    salt.new_hash(Use::Block).chain_update(before)
}
