//! The server's own account, beside what the client saw.

use crate::document::Cell;
use crate::markup::Html;
use crate::render::pieces::{fields, remark, table};
use crate::render::text::Fields;
use crate::run::server::{
    LEVEL_HEADS, OUTSIDE, both_rows, endpoints, level_rows, marks, queue_row, queue_source,
    queue_text, shares,
};
use crate::view::RunView;

pub(super) fn fill(html: &mut Html, view: &RunView<'_>) {
    let Some(server) = &view.summary.server else { return };
    let both = server.against_client.as_ref().map(both_rows).unwrap_or_default();
    if !both.is_empty() {
        let rows: Vec<_> = both.into_iter().map(|(name, cells)| row(name, &cells)).collect();
        let head = ["", "client", "server", "difference", "of the server's"];
        table(html, "Counted by both", &head, &rows);
        remark(html, OUTSIDE);
    }
    let levels = level_rows(server);
    if !levels.is_empty() {
        let rows: Vec<_> = levels.into_iter().map(|(name, cells)| row(name, &cells)).collect();
        let mut head = vec![""];
        head.extend(LEVEL_HEADS);
        table(html, "By the server's page, over the window", &head, &rows);
    }
    if let Some(by_queue) = server.ttft_by_queue.as_ref().filter(|found| !found.bands.is_empty()) {
        let rows: Vec<_> =
            by_queue.bands.iter().map(|band| queue_row(band).map(Cell::from).to_vec()).collect();
        table(html, "TTFT by queue, ms", &["queue", "n", "p50", "p99"], &rows);
        remark(html, &queue_source(by_queue));
    }
    fields(html, |found| {
        endpoints(found, &server.endpoints);
        if let Some(queue) = &server.queue {
            let is_growing =
                view.summary.saturation.as_ref().is_some_and(|found| found.over_saturated);
            found.field("Queue", &queue_text(queue, is_growing));
        }
        let work = shares(server);
        if !work.is_empty() {
            found.field("Work", &work.join("; "));
        }
        marks(found, &server.marks);
    });
}

fn row(name: &str, cells: &[String]) -> Vec<Cell> {
    let mut row = vec![Cell::from(name)];
    row.extend(cells.iter().map(|text| Cell::from(text.as_str())));
    row
}
