//! Where the time to the first token went.

use crate::document::Cell;
use crate::markup::Html;
use crate::number::{cell, count};
use crate::render::pieces::{remark, stack as draw, table};
use crate::run::facts::{bands, step_ms, steps};
use crate::svg::Stack;
use crate::view::RunView;

/// Steps in full words, by their names in the summary.
const WORDS: [(&str, &str); 10] = [
    ("held", "held by the cap"),
    ("slip", "client late"),
    ("blocked", "waiting for a connection"),
    ("dns", "name lookup"),
    ("connect", "connecting"),
    ("tls", "TLS"),
    ("send", "sending"),
    ("wait", "waiting for the answer"),
    ("header_to_byte", "headers to first byte"),
    ("byte_to_token", "first byte to token"),
];

pub(super) fn fill(html: &mut Html, view: &RunView<'_>) {
    let Some(waterfall) = &view.summary.waterfall else { return };
    if let Some(stack) = stack(view) {
        draw(html, &stack);
    }
    let shown = steps(waterfall);
    let mut head = vec!["ms"];
    head.extend(shown.iter().map(|(_, heading)| *heading));
    head.extend(["= TTFT", "requests"]);
    let rows = bands(waterfall).map(|(label, band)| {
        let mut row = vec![Cell::from(label)];
        row.extend(shown.iter().map(|(name, _)| Cell::from(cell(step_ms(band, name)))));
        row.extend([cell(band.ttft_ms), count(band.n)].map(Cell::from));
        row
    });
    table(html, "TTFT by step: means over the same requests, so that they add up", &head, &rows);
    remark(
        html,
        "The middle tenth are the requests around the median. TTFT counts from the instant at which a \
         request was due.",
    );
}

pub(super) fn stack(view: &RunView<'_>) -> Option<Stack> {
    let waterfall = view.summary.waterfall.as_ref()?;
    let shown = steps(waterfall);
    let word =
        |name: &str| WORDS.iter().find(|(step, _)| *step == name).map_or("", |(_, word)| word);
    let bars = bands(waterfall).map(|(label, band)| {
        let parts = shown.iter().map(|(name, _)| step_ms(band, name)).collect();
        (format!("{label}: {} ms", cell(band.ttft_ms)), parts)
    });
    let largest = bands(waterfall).map(|(label, band)| {
        let part = band.parts.iter().max_by(|a, b| a.ms.total_cmp(&b.ms));
        part.map_or(String::new(), |part| {
            format!(
                "{label}: {} takes {} of {} ms.",
                word(&part.name),
                cell(part.ms),
                cell(band.ttft_ms)
            )
        })
    });
    Some(Stack {
        name: "ttft-steps",
        title: "Where the time to the first token went".to_owned(),
        says: largest.join(" "),
        unit: "ms",
        parts: shown.iter().map(|(name, _)| word(name).to_owned()).collect(),
        bars: bars.to_vec(),
    })
}
