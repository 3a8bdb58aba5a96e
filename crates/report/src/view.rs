//! What pages are made of.

use goodput_campaign::sweep::SweepSummary;
use goodput_stats::{Audit, Details, Summary};

use goodput_document::svg::{Chart, standalone};

/// What it takes to measure the same again, next to the numbers. All of it may be foreign text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Circumstances {
    /// What kind of machine sent, versions, addresses: names and values.
    pub facts: Vec<(String, String)>,
    /// The plan as its file has it, without secrets.
    pub plan: String,
    /// The command that repeats it.
    pub command: String,
}

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

/// A point of a sweep. One whose folder cannot be read any more has none.
#[derive(Debug, Clone)]
pub struct PointView {
    /// Its folder, within that of the sweep.
    pub folder: String,
    /// Its numbers.
    pub summary: Summary,
    /// What its charts are drawn from.
    pub details: Details,
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
    /// The checklist, of the run that the answer rests on; none without an answer.
    pub audit: Option<&'a Audit>,
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
pub(crate) fn pictures(charts: &[Chart]) -> Vec<Picture> {
    let drawn = charts.iter().filter(|chart| !chart.is_empty());
    drawn.map(|chart| Picture { name: chart.name.to_owned(), svg: standalone(chart) }).collect()
}
