//! The names of what lies in a run folder.

use std::fs;
use std::path::Path;

pub(crate) const LOG: &str = "requests.log";
pub(crate) const SAMPLES: &str = "server.log";
pub(crate) const JUDGEMENTS: &str = "judgements.log";
pub(crate) const SUMMARY: &str = "summary.json";
pub(crate) const TEXT: &str = "text.jsonl";

/// Where a folder that is made of others is written, inside its place.
pub(crate) const DRAFT: &str = ".merging";

/// Whether a place holds a draft and no run.
pub(crate) fn is_unfinished(place: &Path) -> bool {
    is_folder(&place.join(DRAFT)) && fs::symlink_metadata(place.join(LOG)).is_err()
}

pub(crate) fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir())
}
