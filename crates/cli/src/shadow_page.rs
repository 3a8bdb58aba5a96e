//! A saved shadow: its numbers, and its page for a browser.

use std::path::Path;

use goodput_campaign::compare::Comparison;
use goodput_files::{MOST_SMALL, read_text_inside};
use goodput_report::{Circumstances, CompareView, compare_html};

use crate::error::Failed;

/// The numbers of a saved shadow; none where the folder holds none.
pub(crate) fn read(path: &Path) -> Option<Result<Comparison, Failed>> {
    let read = goodput_live::shadow::read(path)?;
    Some(read.map_err(|error| Failed::usage(error.to_string())))
}

/// The page for a browser, with what was asked at its end.
pub(crate) fn html(path: &Path, comparison: &Comparison) -> String {
    // It holds no secrets: they were left out when it was written.
    let plan = read_text_inside(&path.join("shadow.toml"), MOST_SMALL).unwrap_or_default();
    let circumstances = Circumstances { facts: Vec::new(), plan, command: String::new() };
    compare_html(CompareView { comparison, folders: &[], circumstances: Some(&circumstances) })
}
