//! Texts that many requests have in common, kept so that each is one allocation.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Bytes kept; beyond them the shelf is emptied, and texts are made again when they are needed.
const MOST_BYTES: usize = 64 << 20;

/// Texts by their number. What is on it never changes what is sent, only how fast.
#[derive(Debug, Default)]
pub(crate) struct TextCache(Mutex<CachedTexts>);

#[derive(Debug, Default)]
struct CachedTexts {
    texts: HashMap<(u64, bool), Arc<str>>,
    bytes: usize,
}

impl TextCache {
    /// The text of this key, made if it is not there.
    pub(crate) fn get(&self, key: (u64, bool), make: impl FnOnce() -> String) -> Arc<str> {
        // What is behind the lock is only remembered: after a panic elsewhere it is still right.
        let lock = || self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(text) = lock().texts.get(&key) {
            return Arc::clone(text);
        }
        let text: Arc<str> = make().into();
        let mut kept = lock();
        if kept.bytes + text.len() > MOST_BYTES {
            *kept = CachedTexts::default();
        }
        if kept.texts.insert(key, Arc::clone(&text)).is_none() {
            kept.bytes += text.len();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_made_once_until_the_shelf_is_full() {
        let shelf = TextCache::default();
        let first = shelf.get((1, true), || "one".to_owned());
        let again = shelf.get((1, true), || unreachable!());
        assert!(Arc::ptr_eq(&first, &again));
        shelf.get((2, true), || "x".repeat(MOST_BYTES));
        let made = shelf.get((1, true), || "one".to_owned());
        assert!(!Arc::ptr_eq(&first, &made));
    }
}
