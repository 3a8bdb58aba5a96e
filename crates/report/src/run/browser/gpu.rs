//! What GPUs did, and what a token cost in energy.

use crate::document::Cell;
use crate::markup::Html;
use crate::render::pieces::{facts, fields, table};
use crate::run::gpu::{absent, columns, held, title, value};
use crate::view::RunView;

pub(super) fn fill(html: &mut Html, view: &RunView<'_>) {
    let summary = view.summary;
    let Some(gpu) = &summary.gpu else {
        if let Some(why) = absent(summary) {
            facts(html, &[("GPU".to_owned(), why)]);
        }
        return;
    };
    html.leaf("p", &[], &title(summary, gpu));
    let columns = columns(gpu);
    if !columns.is_empty() {
        let mut head = vec!["GPU".to_owned()];
        head.extend(columns.iter().map(|(above, below, ..)| format!("{above} {below}")));
        let head: Vec<_> = head.iter().map(String::as_str).collect();
        let row = |(place, device)| {
            let mut row = vec![Cell::from(format!("GPU {place}"))];
            row.extend(columns.iter().map(|column| Cell::from(value(device, column))));
            row
        };
        let rows: Vec<_> = gpu.devices.iter().enumerate().map(row).collect();
        table(html, "Over the window", &head, &rows);
    }
    fields(html, |found| held(found, gpu));
}
