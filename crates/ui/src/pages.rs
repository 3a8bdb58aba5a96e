//! Pages of `goodput ui`: the folder of runs in a browser. Pure: from plain data to pages. All texts
//! in the data may be foreign.

mod frame;
mod list;
mod overlay;
mod run;
#[cfg(test)]
mod tests;

pub use frame::{UI_PAGE_SCRIPT, UI_PAGE_STYLE, UI_SCRIPT, UI_STYLE, ui_message, ui_token};
pub use list::ui_list;
pub use overlay::ui_overlay;
pub use run::ui_run;

use goodput_report::parts::{TONES, Tone, cell, class, policy};

/// The policy of a result's own page, as its head has it.
pub fn ui_report_policy() -> String {
    policy()
}

/// A result in a list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UiRow {
    /// Letters and digits.
    pub id: String,
    /// Where it lies.
    pub name: String,
    /// `run`, `sweep`…
    pub kind: String,
    /// When it began.
    pub started: String,
    /// How far it came.
    pub state: String,
    /// Who was asked.
    pub target: String,
    /// For which model.
    pub model: String,
    /// What was sent.
    pub workload: String,
    /// How much of it.
    pub load: String,
    /// `valid`, `suspect`, `void` or nothing.
    pub verdict: String,
    /// What came of it, in words.
    pub says: String,
    /// Main figures: requests and output tokens per second, TTFT p50 and p99 and TPOT p99 in
    /// milliseconds, good requests per second, share that failed.
    pub figures: [Option<UiFigure>; 7],
    /// Short words.
    pub tags: Vec<String>,
    /// Whether something is being measured in it now.
    pub is_live: bool,
}

/// A figure in a list.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct UiFigure {
    /// The value.
    pub value: f64,
    /// Whether it has no interval to both sides.
    pub is_rough: bool,
}

impl UiFigure {
    fn text(self) -> String {
        format!("{}{}", if self.is_rough { "~" } else { "" }, cell(self.value))
    }
}

impl From<f64> for UiFigure {
    fn from(value: f64) -> Self {
        Self { value, is_rough: false }
    }
}

/// A list of results.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UiList {
    /// The folder of runs.
    pub folder: String,
    /// One page of what was found.
    pub rows: Vec<UiRow>,
    /// How many were found.
    pub total: usize,
    /// How many come before this page.
    pub skip: usize,
    /// How many fit on a page.
    pub most: usize,
    /// What was looked for.
    pub words: String,
    /// Of which kind; empty is any.
    pub kind: String,
    /// With which verdict; empty is any.
    pub verdict: String,
    /// What to know about the list.
    pub note: Option<String>,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UiRun {
    /// Itself.
    pub row: UiRow,
    /// Notes about it.
    pub notes: String,
    /// Tells these notes from others.
    pub mark: String,
    /// Goes with what is changed, so that no other page can change it.
    pub key: String,
    /// Why the last change was not taken, with what was typed in `notes` and the tags.
    pub problem: Option<String>,
    /// Tags and notes that somebody else has kept in the meantime.
    pub theirs: Option<(Vec<String>, String)>,
    /// Whether its points can be laid over others.
    pub has_curve: bool,
}

/// A percentile of one load level, with its interval.
pub type UiValue = (f64, Option<f64>, Option<f64>);

/// One load level of a curve.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UiPoint {
    /// In words.
    pub level: String,
    /// As a number.
    pub at: Option<f64>,
    /// Requests per second.
    pub rps: Option<f64>,
    /// Output tokens per second.
    pub output_tps: Option<f64>,
    /// Good requests per second.
    pub goodput_rps: Option<f64>,
    /// Whether to believe it.
    pub verdict: String,
    /// The latency that was asked for, in milliseconds.
    pub latency: Option<UiValue>,
}

/// A curve among others.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UiCurve {
    /// The result it is of.
    pub id: String,
    /// What the legend calls it.
    pub name: String,
    /// Where it comes from.
    pub about: String,
    /// By rising load.
    pub points: Vec<UiPoint>,
}

/// Curves over each other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UiOverlay {
    /// The curves.
    pub curves: Vec<UiCurve>,
    /// The results they are of.
    pub ids: Vec<String>,
    /// `ttft`, `tpot` or `e2e`.
    pub metric: String,
    /// `p50`, `p90` or `p99`.
    pub percentile: String,
    /// Curves that found no place.
    pub left_out: usize,
}

/// How many curves one chart takes: more cannot be told apart.
pub const UI_MOST_CURVES: usize = TONES;

/// A text as part of a URL's query.
fn query(text: &str) -> String {
    use std::fmt::Write;
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

/// The class of a verdict, which its word says as well.
fn verdict_class(verdict: &str) -> &'static str {
    class(verdict_tone(verdict))
}

fn verdict_tone(verdict: &str) -> Tone {
    match verdict {
        "valid" => Tone::Good,
        "suspect" => Tone::Doubt,
        "void" => Tone::Bad,
        _ => Tone::Plain,
    }
}
