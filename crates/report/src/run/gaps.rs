//! Gaps between tokens: by their place in the answer, and the longest over time.

use goodput_stats::PositionBand;

use super::{HTML, outside_window_rules};
use crate::view::RunView;
use goodput_document::number::{cell_number, count};
use goodput_document::svg::{Chart, ChartAxis, ChartSeries, Dot, Rule, Shape};
use goodput_document::{Block, Section};

pub(super) fn gaps_section(view: &RunView<'_>) -> Section {
    let section = Section::new("stalls", "Stalls");
    let found = &view.details.stalls;
    if found.threshold_ms <= 0.0 {
        return section;
    }
    let text = format!(
        "{} gaps of {} ms or more (ten times the median gap, and at least 100 ms) in {} requests.",
        count(found.count),
        cell_number(found.threshold_ms),
        count(found.requests)
    );
    let drawn = found.longest.len() as u64;
    let left_out = Block::remark_note(format!("The {} longest are drawn.", count(drawn)));
    section
        .with_on(HTML, Block::note(text))
        .with_on(HTML, Block::Charts(stall_charts(view)))
        .with_some(HTML, (drawn != found.count).then_some(left_out))
}

/// The longest, when they began.
pub(super) fn stall_charts(view: &RunView<'_>) -> Vec<Chart> {
    let stalls = &view.details.stalls;
    let longest = stalls.longest.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((at, most)) = longest else { return Vec::new() };
    let dots = stalls.longest.iter().map(|(at, ms)| Dot {
        note: format!("{} ms from {at:.1} s on", cell_number(*ms)),
        ..Dot::new(*at, *ms)
    });
    let end = stalls.longest.iter().map(|(at, _)| *at).fold(view.summary.window.end_s, f64::max);
    let mut rules = outside_window_rules(view.summary, end);
    rules.push(Rule::Height(
        stalls.threshold_ms,
        format!("{} ms", cell_number(stalls.threshold_ms)),
    ));
    vec![
        Chart::new("stalls", "Longest gaps between tokens, by when they began")
            .with_caption(format!("The longest, {} ms, began at {at:.1} s.", cell_number(most)))
            .with_axes("s since the first instant", ChartAxis::log("ms"))
            .with_series([ChartSeries::new("gap", Shape::Marks, 1, dots.collect())])
            .with_rules(rules),
    ]
}

/// A figure of a band, where it is known.
type BandFigure = fn(&PositionBand) -> Option<f64>;

/// By their place in the answer.
pub(super) fn position_charts(view: &RunView<'_>) -> Vec<Chart> {
    let bands = &view.details.positions;
    let (Some(first), Some(last)) = (bands.first(), bands.last()) else { return Vec::new() };
    let figures: [(&str, BandFigure); 3] =
        [("p50", |band| Some(band.p50)), ("p90", |band| Some(band.p90)), ("p99", |band| band.p99)];
    let series = figures.into_iter().enumerate().map(|(tone, (name, figure))| {
        let dots = bands.iter().filter_map(|band| {
            let value = figure(band)?;
            let note = format!(
                "{} ms at tokens {} to {} ({} gaps)",
                cell_number(value),
                count(band.from),
                count(band.to),
                count(band.n)
            );
            Some(Dot::with_note(band_middle(band), value, note))
        });
        ChartSeries::new(name, Shape::Points, tone, dots.collect())
    });
    vec![
        Chart::new("itl-position", "Gap before a token, by its position in the answer")
            .with_caption(format!(
                "The median gap is {} ms at the beginning of answers and {} ms at position {}.",
                cell_number(first.p50),
                cell_number(last.p50),
                count(last.to)
            ))
            .with_axes(ChartAxis::log("token of the answer"), "ms")
            .with_series(series),
    ]
}

fn band_middle(band: &PositionBand) -> f64 {
    (band.from.max(1) as f64 * band.to.max(1) as f64).sqrt()
}
