//! A saved result of whatever kind, and what its page shows in addition to its numbers.

use goodput_model::Reported;
use goodput_stats::{Audit, Details, Repeats, Summary};
use serde::Serialize;

use crate::compare::Comparison;
use crate::sweep::{SweepSummary, Sweeps};

/// The numbers of a saved result. As JSON it is the summary of its kind.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum SavedResult {
    /// One run.
    Run(Box<Summary>),
    /// Several runs of one plan.
    Repeats(Box<Repeats>),
    /// Rising load on one target.
    Sweep(Box<SweepSummary>),
    /// Sweeps of several configurations.
    Sweeps(Box<Sweeps>),
    /// The same load on several targets, or a share of live traffic on a candidate.
    Comparison(Box<Comparison>),
    /// What files of other tools state.
    Reported(Vec<ReportedResult>),
}

/// What a file of another tool states of one run, and what the audit found.
#[derive(Debug, Clone, Serialize)]
pub struct ReportedResult {
    /// `goodput.reported/1`
    pub schema: &'static str,
    /// The figures.
    pub reported: Reported,
    /// How far to believe them.
    pub audit: Audit,
}

impl ReportedResult {
    /// The format this version writes.
    pub const SCHEMA: &'static str = "goodput.reported/1";
}

/// What only a page with charts shows: it takes the logs, not the summary alone.
#[derive(Debug)]
pub enum ResultDetails {
    /// Nothing: the page is made of the summary.
    None,
    /// Of a run.
    Run(Box<RunDetails>),
    /// Of a sweep.
    Sweep(Box<SweepDetails>),
    /// Of a comparison or a shadow.
    Comparison(Box<ComparisonDetails>),
}

/// What the page of a run shows in addition to its summary.
#[derive(Debug)]
pub struct RunDetails {
    /// What its charts are drawn from.
    pub details: Details,
    /// The checklist of what a result must tell.
    pub audit: Audit,
    /// How to repeat it.
    pub circumstances: Circumstances,
}

/// What the page of a sweep shows in addition to its summary.
#[derive(Debug)]
pub struct SweepDetails {
    /// Its points, as far as they can be read, in the order measured.
    pub points: Vec<PointView>,
    /// The checklist, of the run that stands for the sweep; none without a measured point.
    pub audit: Option<Audit>,
    /// How to repeat it.
    pub circumstances: Circumstances,
}

/// What the page of a comparison shows in addition to its summary.
#[derive(Debug)]
pub struct ComparisonDetails {
    /// The runs that have a page of their own: number, and folder within that of the comparison.
    pub folders: Vec<(u32, String)>,
    /// How to repeat it.
    pub circumstances: Circumstances,
}

/// A point of a sweep. A point whose folder cannot be read has none.
#[derive(Debug, Clone)]
pub struct PointView {
    /// Its folder, within that of the sweep.
    pub folder: String,
    /// Its numbers.
    pub summary: Summary,
    /// What its charts are drawn from.
    pub details: Details,
}

/// What it takes to measure the same again. All of it may be foreign text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Circumstances {
    /// What kind of machine sent, versions, addresses: names and values.
    pub facts: Vec<(String, String)>,
    /// The plan as its file has it, without secrets.
    pub plan: String,
    /// The command that repeats it.
    pub command: String,
}
