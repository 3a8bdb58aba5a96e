//! One match from a saved result to its documents, and one from a document to a format.

use goodput_campaign::saved::{ReportedResult, ResultDetails, SavedResult};

use crate::compare::CompareView;
use crate::view::{Picture, RunView, SweepView};
use crate::{compare, repeats, reported, run, sweep, sweeps};
use goodput_document::render;
use goodput_document::{Detail, Document};

/// How a page is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageFormat {
    /// For a terminal.
    Text(Detail),
    /// For a pull request or a job summary.
    Markdown,
    /// For a CI system: a test case for each promise.
    Junit,
    /// For a browser.
    Html,
}

/// The page of a result; none if it has no page of that kind. A page for a browser takes the
/// details of a run or of a sweep, other pages do without.
pub fn render_page(
    result: &SavedResult,
    details: &ResultDetails,
    format: PageFormat,
) -> Option<String> {
    if !has_page(result, details, format) {
        return None;
    }
    let format = match (result, format) {
        // It has no short page: its figures are few, and all of them are shown.
        (SavedResult::Reported(_), PageFormat::Text(_)) => PageFormat::Text(Detail::Full),
        _ => format,
    };
    let pages = result_documents(result, details)
        .into_iter()
        .map(|document| render_document(&document, format));
    Some(pages.collect::<Vec<_>>().join("\n"))
}

/// The charts of a result; of several runs or sweeps each has its own.
pub fn result_charts(result: &SavedResult, details: &ResultDetails) -> Vec<Picture> {
    match (result, details) {
        (SavedResult::Run(summary), ResultDetails::Run(found)) => {
            run::run_charts(&RunView::new(summary, found))
        }
        (SavedResult::Sweep(summary), ResultDetails::Sweep(found)) => {
            sweep::sweep_charts(&SweepView::new(summary, found))
        }
        (SavedResult::Comparison(comparison), _) => compare::compare_charts(comparison),
        _ => Vec::new(),
    }
}

fn has_page(result: &SavedResult, details: &ResultDetails, format: PageFormat) -> bool {
    match result {
        SavedResult::Reported(_) => matches!(format, PageFormat::Text(_) | PageFormat::Markdown),
        SavedResult::Run(_) | SavedResult::Sweep(_) if format == PageFormat::Html => {
            !matches!(details, ResultDetails::None)
        }
        _ => true,
    }
}

/// A file of another tool may hold several results, every other artifact is one document.
fn result_documents(result: &SavedResult, details: &ResultDetails) -> Vec<Document> {
    let document = match (result, details) {
        (SavedResult::Run(summary), ResultDetails::Run(found)) => {
            run::run_document(summary, Some(&RunView::new(summary, found)))
        }
        (SavedResult::Run(summary), _) => run::run_document(summary, None),
        (SavedResult::Repeats(found), _) => repeats::repeats_document(found),
        (SavedResult::Sweep(summary), ResultDetails::Sweep(found)) => {
            sweep::sweep_document(summary, Some(&SweepView::new(summary, found)))
        }
        (SavedResult::Sweep(summary), _) => sweep::sweep_document(summary, None),
        (SavedResult::Sweeps(found), _) => sweeps::sweeps_document(found),
        (SavedResult::Comparison(comparison), ResultDetails::Comparison(found)) => {
            compare::comparison_document(CompareView::new(comparison, found))
        }
        (SavedResult::Comparison(comparison), _) => {
            compare::comparison_document((&**comparison).into())
        }
        (SavedResult::Reported(results), _) => {
            let document =
                |one: &ReportedResult| reported::reported_document(&one.reported, &one.audit);
            return results.iter().map(document).collect();
        }
    };
    vec![document]
}

fn render_document(document: &Document, format: PageFormat) -> String {
    match format {
        PageFormat::Text(detail) => render::text::render_page(document, detail),
        PageFormat::Markdown => render::markdown::render_page(document),
        PageFormat::Junit => render::junit::render_page(document),
        PageFormat::Html => render::html::render_page(document),
    }
}
