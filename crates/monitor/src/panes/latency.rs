//! Percentiles of every latency.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::ink::{Ink, faint_style, framed_block, strong_style};
use crate::view::{LiveRunView, Percentiles};
use crate::words::{count_text, ms_text};

/// Rows from which on groups stand apart.
const ROOMY: u16 = 19;

pub(super) fn draw_latency(_: Ink, run: &LiveRunView, frame: &mut Frame, area: Rect) {
    let is_roomy = area.height >= ROOMY;
    let mut lines = vec![Line::styled(
        format!(
            " {:<17}{:>9}{:>8}{:>8}{:>8}{:>8}{:>8}",
            "", "n", "p50", "p90", "p95", "p99", "max"
        ),
        strong_style(),
    )];
    for latency in &run.latencies {
        for (when, found) in [("last 10 s", &latency.now), ("so far", &latency.so_far)] {
            lines.push(latency_row(&latency.name, when, found));
        }
        if is_roomy {
            lines.push(Line::default());
        }
    }
    let client = &run.client;
    let own = [
        ("slip", "last 10 s", &client.slip_now),
        ("slip", "so far", &client.slip),
        ("lag", "last 10 s", &client.lag_now),
        ("lag", "so far", &client.lag),
    ];
    for (name, when, found) in own {
        lines.push(latency_row(name, when, found));
    }
    let block = framed_block("latency from the scheduled instant, ms").title_bottom(Line::styled(
        " of all that ended, within 2 %; the report is exact ",
        faint_style(),
    ));
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn latency_row(name: &str, when: &str, found: &Percentiles) -> Line<'static> {
    let values = [found.p50, found.p90, found.p95, found.p99, found.max]
        .map(|value| format!("{:>8}", ms_text(value)))
        .concat();
    Line::from(format!(" {name:<6}{when:<11}{:>9}{values}", count_text(found.n)))
}
