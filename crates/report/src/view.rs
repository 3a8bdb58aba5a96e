//! What pages are made of.

pub use goodput_campaign::saved::{Circumstances, PointView};
use goodput_campaign::saved::{RunDetails, SweepDetails};
use goodput_campaign::sweep::SweepSummary;
use goodput_stats::{Audit, Details, Summary};

use goodput_document::svg::{Chart, standalone_chart};

/// A run.
#[derive(Debug, Clone, Copy)]
pub struct RunView<'a> {
    /// Its numbers.
    pub summary: &'a Summary,
    /// What its charts are drawn from.
    pub details: &'a Details,
    /// The checklist of what a result must tell.
    pub audit: &'a Audit,
    /// How to repeat it.
    pub circumstances: &'a Circumstances,
}

impl<'a> RunView<'a> {
    /// A run with what was read for its page.
    pub fn new(summary: &'a Summary, found: &'a RunDetails) -> Self {
        let RunDetails { details, audit, circumstances } = found;
        Self { summary, details, audit, circumstances }
    }
}

/// A sweep.
#[derive(Debug, Clone, Copy)]
pub struct SweepView<'a> {
    /// Its numbers.
    pub summary: &'a SweepSummary,
    /// Its points, as far as they can be read, in the order measured.
    pub points: &'a [PointView],
    /// How to repeat it.
    pub circumstances: &'a Circumstances,
    /// The checklist, of the run that stands for the sweep; none without a measured point.
    pub audit: Option<&'a Audit>,
}

impl<'a> SweepView<'a> {
    /// A sweep with what was read for its page.
    pub fn new(summary: &'a SweepSummary, found: &'a SweepDetails) -> Self {
        let SweepDetails { points, audit, circumstances } = found;
        Self { summary, points, circumstances, audit: audit.as_ref() }
    }
}

/// A chart as a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Letters, digits and dashes.
    pub name: String,
    /// The SVG.
    pub svg: String,
}

/// Charts as files of their own; those without anything to draw are left out.
pub(crate) fn to_pictures(charts: &[Chart]) -> Vec<Picture> {
    let drawn = charts.iter().filter(|chart| !chart.is_empty());
    drawn
        .map(|chart| Picture { name: chart.name.to_owned(), svg: standalone_chart(chart) })
        .collect()
}
