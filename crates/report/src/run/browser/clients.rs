//! The clients of a merged run.

use crate::document::Cell;
use crate::markup::Html;
use crate::render::pieces::{remark, table};
use crate::run::clients::{Cells, HEAD, cells};
use crate::view::RunView;

pub(super) fn fill(html: &mut Html, view: &RunView<'_>) {
    let Some(Cells { rows, more }) = cells(view.summary) else { return };
    let row = |row: Vec<String>| row.into_iter().map(Cell::from).collect::<Vec<_>>();
    let rows: Vec<_> = rows.into_iter().map(row).collect();
    table(html, "The machines that sent this load together, those in trouble first", &HEAD, &rows);
    let text = "Late: how long after the first client it began, and by how much that may be wrong. Wall \
                clock: against that of rank 0; no figure depends on it. All samples of all clients are \
                in every figure of this page.";
    remark(html, text);
    if let Some(more) = more {
        remark(html, &more);
    }
}
