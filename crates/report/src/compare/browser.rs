//! What a browser shows of a comparison: its charts, its runs, and how to repeat it.

pub(super) mod blocks;
pub(super) mod forest;
pub(super) mod repeat;
pub(super) mod runs;
pub(super) mod sides;
#[cfg(test)]
pub(crate) mod tests;

use goodput_campaign::compare::Comparison;
use goodput_campaign::saved::ComparisonDetails;

use crate::view::{Circumstances, Picture, to_pictures};
use goodput_document::svg::Chart;

/// A comparison, and what lies next to it.
#[derive(Debug, Clone, Copy)]
pub struct CompareView<'a> {
    /// Its numbers.
    pub comparison: &'a Comparison,
    /// The folder of each run that has one, by its number: relative to that of the page.
    pub folders: &'a [(u32, String)],
    /// How to repeat it, where that is known.
    pub circumstances: Option<&'a Circumstances>,
}

impl<'a> CompareView<'a> {
    /// Both together.
    pub fn new(comparison: &'a Comparison, found: &'a ComparisonDetails) -> Self {
        let ComparisonDetails { folders, circumstances } = found;
        Self { comparison, folders, circumstances: Some(circumstances) }
    }
}

/// Numbers alone, without a folder.
impl<'a> From<&'a Comparison> for CompareView<'a> {
    fn from(comparison: &'a Comparison) -> Self {
        Self { comparison, folders: &[], circumstances: None }
    }
}

/// Its charts as files.
pub fn compare_charts(comparison: &Comparison) -> Vec<Picture> {
    let forest = forest::forest_plot(comparison);
    let first = (!forest.is_empty())
        .then(|| Picture { name: forest.name.to_owned(), svg: forest.standalone_svg() });
    let charts: Vec<Chart> =
        blocks::figure_charts(comparison).into_iter().flat_map(|f| f.charts).collect();
    first.into_iter().chain(to_pictures(&charts)).collect()
}
