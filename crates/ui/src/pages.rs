//! Markup of the web view. Pure: from plain data to pages. All texts in the data may be foreign.

mod frame;
mod list;
mod overlay;
mod run;
#[cfg(test)]
mod tests;

pub(crate) use frame::{VIEW_SCRIPT, VIEW_STYLE, message_page, token_page};
pub(crate) use list::list_page;
pub(crate) use overlay::overlay_page;
pub(crate) use run::run_page;

use goodput_document::Tone;
use goodput_document::number::cell_number;
use goodput_document::render::pieces::tone_class;
use goodput_document::svg::TONES;

use crate::entry::{CurvePoint, Entry, Shown};
use crate::notes::Notes;

/// A result in a list.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ResultRow {
    pub(crate) entry: Entry,
    /// Whether something is being measured in it now.
    pub(crate) is_live: bool,
}

/// A list of results.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ResultList {
    /// The folder of runs.
    pub(crate) folder: String,
    /// One page of what was found.
    pub(crate) rows: Vec<ResultRow>,
    /// How many were found.
    pub(crate) total: usize,
    /// How many come before this page.
    pub(crate) skip: usize,
    /// How many fit on a page.
    pub(crate) most: usize,
    /// What was looked for.
    pub(crate) words: String,
    /// Of which kind; empty is any.
    pub(crate) kind: String,
    /// With which verdict; empty is any.
    pub(crate) verdict: String,
}

/// One result, with its notes as they are in the form.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct RunPage {
    pub(crate) row: ResultRow,
    /// Tells the notes that the reader saw from others.
    pub(crate) mark: String,
    /// Goes with what is changed, so that no other page can change it.
    pub(crate) key: String,
    /// Why the last change was not taken.
    pub(crate) problem: Option<String>,
    /// Notes that another user has kept in the meantime.
    pub(crate) theirs: Option<Notes>,
}

/// A curve among others.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct OverlayCurve {
    /// The result it is of.
    pub(crate) id: String,
    /// What the legend calls it.
    pub(crate) name: String,
    /// Where it comes from.
    pub(crate) about: String,
    /// By rising load.
    pub(crate) points: Vec<CurvePoint>,
}

/// Curves over each other.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Overlay {
    pub(crate) curves: Vec<OverlayCurve>,
    /// The results they are of.
    pub(crate) ids: Vec<String>,
    /// `ttft`, `tpot` or `e2e`.
    pub(crate) metric: &'static str,
    /// `p50`, `p90` or `p99`.
    pub(crate) percentile: &'static str,
    /// Curves that found no place.
    pub(crate) left_out: usize,
}

/// How many curves one chart takes: more cannot be told apart.
pub(crate) const MOST_CURVES: usize = TONES;

/// A figure with its mark.
fn figure_text(figure: Shown) -> String {
    format!("{}{}", if figure.is_rough { "~" } else { "" }, cell_number(figure.value))
}

/// A text as part of a URL's query.
fn encode_query(text: &str) -> String {
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
    tone_class(verdict_tone(verdict))
}

fn verdict_tone(verdict: &str) -> Tone {
    match verdict {
        "valid" => Tone::Good,
        "suspect" => Tone::Doubt,
        "void" => Tone::Bad,
        _ => Tone::Plain,
    }
}
