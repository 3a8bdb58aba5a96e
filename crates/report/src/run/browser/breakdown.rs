//! Requests by what they have in common.

use crate::document::Cell;
use crate::markup::Html;
use crate::number::count;
use crate::render::pieces::table;
use crate::run::breakdown::{Table, shown};
use crate::view::RunView;

pub(super) fn fill(html: &mut Html, view: &RunView<'_>) {
    for Table { dimension, slices, has_failed, columns } in shown(view.summary) {
        let dimension = dimension.replace('_', " ");
        let mut head = vec![dimension.clone(), "n".to_owned()];
        head.extend(has_failed.then(|| "failed".to_owned()));
        head.extend(columns.iter().map(|(above, below, _)| format!("{above} {below}")));
        let head: Vec<_> = head.iter().map(String::as_str).collect();
        let rows: Vec<_> = slices
            .iter()
            .map(|(value, slice)| {
                let mut row = vec![Cell::from(value.as_str()), count(slice.scheduled).into()];
                row.extend(has_failed.then(|| Cell::from(count(slice.failed))));
                row.extend(columns.iter().map(|(_, _, text)| Cell::from(text(slice))));
                row
            })
            .collect();
        let caption = format!("By {dimension}: latencies in ms, lengths in tokens");
        table(html, &caption, &head, &rows);
    }
}
