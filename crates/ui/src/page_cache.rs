//! Pages that were made of results, kept as long as nothing changes in their folders.
//!
//! A page that lies in a folder is never shown. It may be a stranger's, and a sandbox does not hold it:
//! `<meta http-equiv=refresh>` and links lead the reader away. A hash of it in the same folder proves
//! nothing, since a process that can write the one can write the other. What is shown is always made here, from data.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Bytes of all pages that are kept.
const MOST: usize = 64 << 20;

/// A page, and the state of the folder that it was made of.
struct CachedPage {
    folder: PathBuf,
    mark: u64,
    text: String,
}

/// The pages that were asked for last, the newest at the end.
#[derive(Default)]
pub(crate) struct PageCache(Mutex<Vec<CachedPage>>);

impl PageCache {
    /// The page of a folder in this state, where it was made already.
    pub(crate) fn get(&self, folder: &Path, mark: u64) -> Option<String> {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = pages.iter().position(|page| page.folder == folder && page.mark == mark)?;
        let page = pages.remove(place);
        let text = page.text.clone();
        pages.push(page);
        Some(text)
    }

    /// Keeps a page, instead of an older one of the same folder; those asked for longest ago make room.
    pub(crate) fn keep(&self, folder: &Path, mark: u64, text: &str) {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.retain(|page| page.folder != folder);
        pages.push(CachedPage { folder: folder.to_owned(), mark, text: text.to_owned() });
        let mut bytes: usize = pages.iter().map(|page| page.text.len()).sum();
        while bytes > MOST {
            bytes -= pages.remove(0).text.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_asked_for_last_are_kept() {
        let pages = PageCache::default();
        let quarter = "x".repeat(MOST / 4);
        let at = |name: &str| PathBuf::from(name);
        for name in ["a", "b", "c", "d"] {
            pages.keep(&at(name), 1, &quarter);
        }
        assert!(pages.get(&at("a"), 1).is_some());
        assert!(pages.get(&at("a"), 2).is_none(), "its folder has changed");
        pages.keep(&at("e"), 1, "more than fits");
        let kept = |name: &str| pages.get(&at(name), 1).is_some();
        assert_eq!(["a", "b", "c", "d", "e"].map(kept), [true, false, true, true, true]);
        pages.keep(&at("a"), 2, "new");
        assert!(!kept("a") && pages.get(&at("a"), 2).as_deref() == Some("new"));
        // One that is larger than all room is not kept, and nothing breaks.
        pages.keep(&at("large"), 1, &"x".repeat(MOST + 1));
        assert!(!kept("large") && pages.0.lock().unwrap().is_empty());
    }
}
