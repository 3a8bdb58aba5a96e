//! The paged KV cache: blocks with reference counts, found again by what is in them.
//!
//! A full block's hash is a chain over its parent's hash and its own tokens, so equal hashes mean
//! equal prefixes. A block without a holder stays findable until it is taken for something else,
//! the longest unused first; a sequence gives its blocks back from the last to the first, so the
//! end of a prefix goes before its beginning.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// No block.
const NONE: u32 = u32::MAX;

/// Hash of what comes before the first block.
pub(crate) const ROOT: u64 = 0x6a09_e667_f3bc_c908;

/// The hash of a block from its parent's and its tokens'.
pub(crate) fn chained_hash(parent: u64, tokens: impl Iterator<Item = u32>) -> u64 {
    let mut state = parent;
    for token in tokens {
        state = (state.rotate_left(23) ^ u64::from(token)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    state = (state ^ (state >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    state ^ (state >> 32)
}

/// Hashes are mixed already.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = chained_hash(self.0, bytes.iter().map(|byte| u32::from(*byte)));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

#[derive(Clone, Copy)]
struct KvBlock {
    refs: u32,
    /// Neighbors in the free list while it has no holder.
    previous: u32,
    next: u32,
    hash: Option<u64>,
}

/// The blocks of one worker.
pub(crate) struct KvPool {
    total: u32,
    caching: bool,
    /// Blocks that have been used at least once; the others are `blocks.len()..total`.
    blocks: Vec<KvBlock>,
    /// Of the blocks in the list: the one unused for longest, and the one given back last.
    oldest: u32,
    newest: u32,
    held: u32,
    by_hash: HashMap<u64, u32, BuildHasherDefault<Mixed>>,
}

impl KvPool {
    pub(crate) fn new(total: u32, caching: bool) -> Self {
        Self {
            total,
            caching,
            blocks: Vec::new(),
            oldest: NONE,
            newest: NONE,
            held: 0,
            by_hash: HashMap::default(),
        }
    }

    pub(crate) fn total(&self) -> u32 {
        self.total
    }

    pub(crate) fn used(&self) -> u32 {
        self.held
    }

    pub(crate) fn free(&self) -> u32 {
        self.total - self.held
    }

    pub(crate) fn caching(&self) -> bool {
        self.caching
    }

    /// Blocks of these hashes that are there, from the first on without a gap; and how many of
    /// them have no holder.
    pub(crate) fn find(&self, hashes: &[u64], found: &mut Vec<u32>) -> u32 {
        let mut idle = 0;
        for hash in hashes {
            let Some(&block) = self.by_hash.get(hash) else { break };
            idle += u32::from(self.blocks[block as usize].refs == 0);
            found.push(block);
        }
        idle
    }

    /// One more holder of a block that was found.
    pub(crate) fn add_holder(&mut self, block: u32) {
        if self.blocks[block as usize].refs == 0 {
            self.unlink_free(block);
            self.held += 1;
        }
        self.blocks[block as usize].refs += 1;
    }

    /// A block for new tokens, unless all are held.
    pub(crate) fn allocate(&mut self) -> Option<u32> {
        // Blocks that were never used come before those that may be found again.
        if self.blocks.len() < self.total as usize {
            let block = self.blocks.len() as u32;
            self.blocks.push(KvBlock { refs: 1, previous: NONE, next: NONE, hash: None });
            self.held += 1;
            return Some(block);
        }
        let block = self.oldest;
        if block == NONE {
            return None;
        }
        self.unlink_free(block);
        if let Some(hash) = self.blocks[block as usize].hash.take() {
            self.by_hash.remove(&hash);
        }
        self.blocks[block as usize].refs = 1;
        self.held += 1;
        Some(block)
    }

    /// Makes a full block findable, unless another with the same content already is.
    pub(crate) fn index_block(&mut self, block: u32, hash: u64) {
        if self.caching && self.blocks[block as usize].hash.is_none() {
            let entry = self.by_hash.entry(hash);
            if let std::collections::hash_map::Entry::Vacant(vacant) = entry {
                vacant.insert(block);
                self.blocks[block as usize].hash = Some(hash);
            }
        }
    }

    /// A sequence gives back its blocks, the last one first.
    pub(crate) fn release(&mut self, blocks: &mut Vec<u32>) {
        while let Some(block) = blocks.pop() {
            let entry = &mut self.blocks[block as usize];
            entry.refs = entry.refs.saturating_sub(1);
            if entry.refs == 0 {
                self.held = self.held.saturating_sub(1);
                self.link_free(block);
            }
        }
    }

    /// Nothing can be found any more.
    pub(crate) fn clear_index(&mut self) {
        self.by_hash.clear();
        for block in &mut self.blocks {
            block.hash = None;
        }
    }

    fn link_free(&mut self, block: u32) {
        let newest = self.newest;
        self.blocks[block as usize].previous = newest;
        self.blocks[block as usize].next = NONE;
        match self.blocks.get_mut(newest as usize) {
            Some(last) => last.next = block,
            None => self.oldest = block,
        }
        self.newest = block;
    }

    fn unlink_free(&mut self, block: u32) {
        let KvBlock { previous, next, .. } = self.blocks[block as usize];
        match self.blocks.get_mut(previous as usize) {
            Some(before) => before.next = next,
            None => self.oldest = next,
        }
        match self.blocks.get_mut(next as usize) {
            Some(after) => after.previous = previous,
            None => self.newest = previous,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_goes_first_and_the_end_before_the_beginning() {
        let mut pool = KvPool::new(4, true);
        let mut first: Vec<u32> = (0..2).filter_map(|_| pool.allocate()).collect();
        let mut second: Vec<u32> = (0..2).filter_map(|_| pool.allocate()).collect();
        for (block, hash) in first.iter().chain(&second).zip([10, 11, 20, 21]) {
            pool.index_block(*block, hash);
        }
        assert_eq!(pool.allocate(), None);
        pool.release(&mut first);
        pool.release(&mut second);
        assert_eq!((pool.used(), pool.free()), (0, 4));
        let seen = |pool: &KvPool, hashes: &[u64]| pool.find(hashes, &mut Vec::new());
        assert_eq!(seen(&pool, &[10, 11]), 2);
        // The end of the first sequence goes, then its beginning.
        pool.allocate();
        assert_eq!((seen(&pool, &[10, 11]), seen(&pool, &[20, 21])), (1, 2));
        pool.allocate();
        assert_eq!((seen(&pool, &[10, 11]), seen(&pool, &[20, 21])), (0, 2));
        pool.clear_index();
        assert_eq!(seen(&pool, &[20]), 0);
    }

    #[test]
    fn a_block_held_twice_is_free_after_the_second() {
        let mut pool = KvPool::new(2, true);
        let block = pool.allocate().unwrap();
        pool.index_block(block, 7);
        pool.add_holder(block);
        pool.release(&mut vec![block]);
        assert_eq!(pool.used(), 1);
        pool.release(&mut vec![block]);
        assert_eq!(pool.used(), 0);
        let mut found = Vec::new();
        assert_eq!((pool.find(&[7, 8], &mut found), found), (1, vec![block]));
        pool.add_holder(block);
        assert_eq!((pool.used(), pool.allocate().is_some(), pool.allocate()), (1, true, None));
    }

    #[test]
    fn the_chain_depends_on_everything_before() {
        let hash = |parent, tokens: &[u32]| chained_hash(parent, tokens.iter().copied());
        assert_ne!(hash(ROOT, &[1, 2]), hash(ROOT, &[2, 1]));
        assert_ne!(hash(hash(ROOT, &[1]), &[5]), hash(hash(ROOT, &[2]), &[5]));
        assert_eq!(hash(ROOT, &[1, 2]), hash(ROOT, &[1, 2]));
    }
}
