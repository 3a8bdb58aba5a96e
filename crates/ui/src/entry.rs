//! What the index says about a folder.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::notes::Notes;

/// What a folder holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One run.
    #[default]
    Run,
    /// Several runs of one plan.
    Repeats,
    /// Rising load on one target.
    Sweep,
    /// Sweeps under several configurations.
    Sweeps,
    /// The same load on several targets.
    Comparison,
    /// A share of live traffic on a candidate.
    Shadow,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Run, Self::Repeats, Self::Sweep, Self::Sweeps, Self::Comparison, Self::Shadow];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Repeats => "repeats",
            Self::Sweep => "sweep",
            Self::Sweeps => "sweeps",
            Self::Comparison => "comparison",
            Self::Shadow => "shadow",
        }
    }

    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A folder of results. All of its texts may be foreign.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Entry {
    /// Made from its place on the shelf: sixteen hexadecimal digits.
    pub id: String,
    /// Its place, from the folder of runs. Kept beside the rest, as it need not be text.
    #[serde(skip)]
    pub path: PathBuf,
    /// Its place, for people.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// When it began (RFC 3339); empty where nobody said.
    pub started: String,
    /// `running` (or killed), `complete`, `interrupted`, `target_lost`; empty where nobody said.
    pub state: String,
    /// Who was asked, without secrets.
    pub target: String,
    /// For which model.
    pub model: String,
    /// What was sent, in one line.
    pub workload: String,
    /// How much of it, in a few words.
    pub load: String,
    /// `valid`, `suspect`, `void`; empty where there is no result yet.
    pub verdict: String,
    /// What came of it, in a few words, where figures do not say it.
    pub says: String,
    /// Its main figures.
    pub figures: Figures,
    /// What people wrote about it.
    pub notes: Notes,
    /// Its curves, one for each thing that was measured; kept beside the rest and only read where
    /// they are drawn.
    #[serde(skip)]
    pub curves: Vec<Curve>,
}

/// The main figures of a result. Of a sweep: those at its answer; the most that was seen where it was
/// not asked for one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// Requests that ended well, per second.
    pub rps: Option<f64>,
    /// Output tokens per second.
    pub output_tps: Option<f64>,
    /// Time to the first token in milliseconds: median.
    pub ttft_p50_ms: Option<Shown>,
    /// And 99th percentile.
    pub ttft_p99_ms: Option<Shown>,
    /// Time per output token in milliseconds, 99th percentile.
    pub tpot_p99_ms: Option<Shown>,
    /// Requests per second that keep the SLO.
    pub goodput_rps: Option<f64>,
    /// Share of requests that failed.
    pub failed: Option<f64>,
}

impl Figures {
    /// All of them, in the order in which they are declared.
    pub fn in_order(&self) -> [Option<Shown>; 7] {
        let plain = |value: Option<f64>| value.map(|value| Shown { value, is_rough: false });
        [
            plain(self.rps),
            plain(self.output_tps),
            self.ttft_p50_ms,
            self.ttft_p99_ms,
            self.tpot_p99_ms,
            plain(self.goodput_rps),
            plain(self.failed),
        ]
    }
}

/// A percentile that a result's own page shows too.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Shown {
    /// The value.
    pub value: f64,
    /// Whether it has no interval to both sides: shown with a mark.
    pub is_rough: bool,
}

/// What was measured at rising load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Curve {
    /// What tells it from others of the same folder; empty where there is one only.
    pub name: String,
    /// Its points, by rising load.
    pub points: Vec<CurvePoint>,
}

/// One load level.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CurvePoint {
    /// The load in words.
    pub level: String,
    /// The load as a number, in requests per second or users: what is of one level has one number.
    pub at: Option<f64>,
    /// Requests per second: offered, or answered where nobody offers a rate.
    pub rps: Option<f64>,
    /// Output tokens per second.
    pub output_tps: Option<f64>,
    /// Good requests per second.
    pub goodput_rps: Option<f64>,
    /// Whether to believe it.
    pub verdict: String,
    /// Time to the first token in milliseconds.
    pub ttft: Spread,
    /// Time per output token in milliseconds.
    pub tpot: Spread,
    /// Time of a whole answer in milliseconds.
    pub e2e: Spread,
}

/// A distribution in three percentiles.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spread {
    /// Median.
    pub p50: Option<Bounded>,
    /// 90th percentile.
    pub p90: Option<Bounded>,
    /// 99th percentile.
    pub p99: Option<Bounded>,
}

/// A figure and its 95 % interval, where that is known.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Bounded {
    /// The figure.
    pub value: f64,
    /// Lower end.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}
