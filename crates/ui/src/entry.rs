//! What the index says about a folder.

use std::path::PathBuf;

use goodput_record::ArtifactKind;
use serde::{Deserialize, Serialize};

use crate::notes::Notes;

/// A folder of results. All of its texts may be foreign.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Made from its place on the shelf: sixteen hexadecimal digits.
    pub(crate) id: String,
    /// Its place, from the folder of runs. Not saved, as it need not be text.
    #[serde(skip)]
    pub(crate) path: PathBuf,
    /// Its place, for people.
    pub(crate) name: String,
    /// What it holds.
    pub(crate) kind: ArtifactKind,
    /// When it began (RFC 3339); empty if unknown.
    pub(crate) started: String,
    /// `running` (or killed), `complete`, `interrupted`, `target_lost`; empty where unknown.
    pub(crate) state: String,
    /// Who was asked, without secrets.
    pub(crate) target: String,
    /// For which model.
    pub(crate) model: String,
    /// What was sent, in one line.
    pub(crate) workload: String,
    /// How much of it, in a few words.
    pub(crate) load: String,
    /// `valid`, `suspect`, `void`; empty without a result yet.
    pub(crate) verdict: String,
    /// What came of it, in a few words, where figures do not say it.
    pub(crate) says: String,
    /// Its main figures.
    pub(crate) figures: ResultFigures,
    /// What people wrote about it.
    pub(crate) notes: Notes,
    /// Its curves, one for each thing that was measured.
    pub(crate) curves: Vec<ResultCurve>,
}

/// The main figures of a result. Of a sweep: those at its answer; the most that was seen where it was
/// not asked for one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ResultFigures {
    /// Completed requests per second.
    pub(crate) rps: Option<f64>,
    /// Output tokens per second.
    pub(crate) output_tps: Option<f64>,
    /// Time to the first token in milliseconds: median.
    pub(crate) ttft_p50_ms: Option<Shown>,
    /// And 99th percentile.
    pub(crate) ttft_p99_ms: Option<Shown>,
    /// Time per output token in milliseconds, 99th percentile.
    pub(crate) tpot_p99_ms: Option<Shown>,
    /// Requests per second that keep the SLO.
    pub(crate) goodput_rps: Option<f64>,
    /// Share of requests that failed.
    pub(crate) failed: Option<f64>,
}

impl ResultFigures {
    /// All of them, in the order in which they are declared.
    pub(crate) fn all_figures(&self) -> [Option<Shown>; 7] {
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
pub(crate) struct Shown {
    /// The value.
    pub(crate) value: f64,
    /// Whether it has no interval to both sides: shown with a mark.
    pub(crate) is_rough: bool,
}

/// What was measured at rising load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ResultCurve {
    /// What tells it from others of the same folder; empty if there is one only.
    pub(crate) name: String,
    /// Its points, by rising load.
    pub(crate) points: Vec<CurvePoint>,
}

/// One load level.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CurvePoint {
    /// The load in words.
    pub(crate) level: String,
    /// The load as a number, in requests per second or users: what is of one level has one number.
    pub(crate) at: Option<f64>,
    /// Requests per second: offered, or delivered in a closed loop.
    pub(crate) rps: Option<f64>,
    /// Completed requests per second.
    pub(crate) completed_rps: Option<f64>,
    /// Whether users who wait for answers made it, and no schedule.
    pub(crate) is_closed_loop: bool,
    /// Output tokens per second.
    pub(crate) output_tps: Option<f64>,
    /// Good requests per second.
    pub(crate) goodput_rps: Option<f64>,
    /// Whether to believe it.
    pub(crate) verdict: String,
    /// Time to the first token in milliseconds.
    pub(crate) ttft: PercentileSpread,
    /// Time per output token in milliseconds.
    pub(crate) tpot: PercentileSpread,
    /// Time of a whole answer in milliseconds.
    pub(crate) e2e: PercentileSpread,
}

/// A distribution in three percentiles.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PercentileSpread {
    /// Median.
    pub(crate) p50: Option<FigureInterval>,
    /// 90th percentile.
    pub(crate) p90: Option<FigureInterval>,
    /// 99th percentile.
    pub(crate) p99: Option<FigureInterval>,
}

/// A figure and its 95 % interval, where that is known.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct FigureInterval {
    /// The figure.
    pub(crate) value: f64,
    /// Lower end.
    pub(crate) low: Option<f64>,
    /// Upper end.
    pub(crate) high: Option<f64>,
}
