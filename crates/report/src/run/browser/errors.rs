//! What failed, where, and what was said.

use crate::document::Cell;
use crate::markup::Html;
use crate::number::{count, percent};
use crate::render::pieces::words;
use crate::view::RunView;

pub(super) fn fill(html: &mut Html, view: &RunView<'_>) {
    let requests = &view.summary.requests;
    if requests.error_details.is_empty() {
        return;
    }
    let text = format!(
        "{} of {} requests failed ({}). They stay in the denominator; those that ran into a time limit \
         are in the percentiles as longer than that.",
        count(requests.failed),
        count(requests.scheduled),
        percent(requests.failed as f64 / requests.scheduled.max(1) as f64)
    );
    html.leaf("p", &[], &text);
    let rows: Vec<_> = requests
        .error_details
        .iter()
        .map(|detail| {
            let n = count(detail.count);
            let cells = [&detail.class, &detail.stage, &n, &detail.message].map(String::as_str);
            cells.map(Cell::from).to_vec()
        })
        .collect();
    words(
        html,
        "By class and stage",
        &["class", "stage", "requests", "what was said first"],
        &rows,
    );
}
