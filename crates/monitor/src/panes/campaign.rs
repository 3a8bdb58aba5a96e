//! A sweep or a comparison, with its current run.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::curve;
use super::ink::{Ink, faint_style, framed_block, strong_style};
use super::run::offered_text;
use crate::view::{ComparisonView, LivePointView, LiveRunView, LiveSweepView};
use crate::words::{amount_text, count_text, ms_text};

/// From here on curve and points stand side by side.
const WIDE: u16 = 110;
/// Columns of the points.
const POINTS: u16 = 64;

pub(super) fn draw_sweep(
    ink: Ink,
    sweep: &LiveSweepView,
    run: Option<&LiveRunView>,
    frame: &mut Frame,
    area: Rect,
) {
    let [above, below] = Layout::vertical([Constraint::Min(0), Constraint::Length(4)]).areas(area);
    if area.width >= WIDE {
        let [left, right] =
            Layout::horizontal([Constraint::Min(0), Constraint::Length(POINTS)]).areas(above);
        curve::draw_curve(ink, sweep, frame, left);
        draw_points(ink, sweep, frame, right);
    } else {
        let rows = (above.height / 3).clamp(4, 12);
        let [upper, lower] =
            Layout::vertical([Constraint::Min(0), Constraint::Length(rows)]).areas(above);
        curve::draw_curve(ink, sweep, frame, upper);
        draw_points(ink, sweep, frame, lower);
    }
    draw_run_strip(ink, run, frame, below);
}

/// The latest points, and what is known of the answer.
fn draw_points(ink: Ink, sweep: &LiveSweepView, frame: &mut Frame, area: Rect) {
    let title = match sweep.answer.as_str() {
        "" => format!("{} points", sweep.points.len()),
        answer => answer.to_owned(),
    };
    let block = framed_block(title);
    let rows = usize::from(block.inner(area).height).saturating_sub(1);
    let heads = [&sweep.unit, "p50", "p99", "ok/s", "tok/s"].map(|head| format!("{head:>7}"));
    let mut lines = vec![Line::styled(format!(" {:>3}{}", "", heads.concat()), strong_style())];
    let from = sweep.points.len().saturating_sub(rows);
    lines.extend(sweep.points.iter().skip(from).map(|point| point_row(ink, point)));
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn point_row(ink: Ink, point: &LivePointView) -> Line<'static> {
    let cells = [
        amount_text(Some(point.level)),
        ms_text(point.p50),
        ms_text(point.p99),
        amount_text(point.ok_per_s),
        amount_text(point.tokens_per_s),
    ]
    .map(|cell| format!("{cell:>7}"));
    Line::from(vec![
        Span::raw(format!(" {:>3}{} ", point.number, cells.concat())),
        Span::styled(point.words.clone(), ink.status_style(point.standing)),
    ])
}

pub(super) fn draw_comparison(
    ink: Ink,
    compared: &ComparisonView,
    run: Option<&LiveRunView>,
    frame: &mut Frame,
    area: Rect,
) {
    let [above, below] = Layout::vertical([Constraint::Min(0), Constraint::Length(4)]).areas(area);
    let most = compared.most.map_or(String::new(), |most| format!(" of at most {most}"));
    let title = format!("{} · {} blocks{most}", compared.sides.join(", "), compared.blocks);
    let mut lines = Vec::new();
    for level in &compared.levels {
        lines.push(Line::styled(format!(" {}", level.title), strong_style()));
        for one in &level.differences {
            lines.push(Line::from(vec![
                Span::raw(format!(
                    " {:<14}{:>10}{:>10}  {:<24}",
                    one.figure, one.reference, one.candidate, one.change
                )),
                Span::styled(one.words.clone(), ink.status_style(one.standing)),
            ]));
        }
    }
    if lines.is_empty() {
        lines.push(Line::styled(" no block is complete yet", faint_style()));
    }
    frame.render_widget(Paragraph::new(lines).block(framed_block(title)), above);
    draw_run_strip(ink, run, frame, below);
}

/// The current run in two lines.
fn draw_run_strip(ink: Ink, run: Option<&LiveRunView>, frame: &mut Frame, area: Rect) {
    let Some(run) = run else { return };
    let now = |name: &str| run.latencies.iter().find(|latency| latency.name == name);
    let mut second = Vec::new();
    for name in ["TTFT", "ITL", "E2E"] {
        if let Some(latency) = now(name).filter(|latency| latency.so_far.n > 0) {
            let found = &latency.now;
            second.push(format!("{name} p50 {} p99 {}", ms_text(found.p50), ms_text(found.p99)));
        }
    }
    let lines = vec![
        Line::from(vec![
            Span::raw(format!(
                " offered {} · sent {}/s · answered {}/s · {} in flight · ",
                offered_text(run),
                amount_text(run.sent_per_s),
                amount_text(run.ok_per_s),
                count_text(run.in_flight)
            )),
            Span::styled(
                format!("{} failed", count_text(run.failed)),
                ink.zero_is_good_style(run.failed),
            ),
        ]),
        Line::from(format!(" {} ms", second.join(" · "))),
    ];
    let title = if run.label.is_empty() { "now" } else { run.label.as_str() };
    frame.render_widget(Paragraph::new(lines).block(framed_block(title)), area);
}
