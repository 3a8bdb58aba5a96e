//! A sweep or a comparison, with its current run.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::curve;
use super::ink::{Ink, faint, framed, strong};
use super::run::offered;
use crate::view::{ComparisonView, LivePointView, LiveRunView, LiveSweepView};
use crate::words::{amount, count, ms};

/// From here on curve and points stand side by side.
const WIDE: u16 = 110;
/// Columns of the points.
const POINTS: u16 = 64;

pub(super) fn sweep(
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
        curve::draw(ink, sweep, frame, left);
        points(ink, sweep, frame, right);
    } else {
        let rows = (above.height / 3).clamp(4, 12);
        let [upper, lower] =
            Layout::vertical([Constraint::Min(0), Constraint::Length(rows)]).areas(above);
        curve::draw(ink, sweep, frame, upper);
        points(ink, sweep, frame, lower);
    }
    strip(ink, run, frame, below);
}

/// The latest points, and what is known of the answer.
fn points(ink: Ink, sweep: &LiveSweepView, frame: &mut Frame, area: Rect) {
    let title = match sweep.answer.as_str() {
        "" => format!("{} points", sweep.points.len()),
        answer => answer.to_owned(),
    };
    let block = framed(title);
    let rows = usize::from(block.inner(area).height).saturating_sub(1);
    let heads = [&sweep.unit, "p50", "p99", "ok/s", "tok/s"].map(|head| format!("{head:>7}"));
    let mut lines = vec![Line::styled(format!(" {:>3}{}", "", heads.concat()), strong())];
    let from = sweep.points.len().saturating_sub(rows);
    lines.extend(sweep.points.iter().skip(from).map(|point| row(ink, point)));
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn row(ink: Ink, point: &LivePointView) -> Line<'static> {
    let cells = [
        amount(Some(point.level)),
        ms(point.p50),
        ms(point.p99),
        amount(point.ok_per_s),
        amount(point.tokens_per_s),
    ]
    .map(|cell| format!("{cell:>7}"));
    Line::from(vec![
        Span::raw(format!(" {:>3}{} ", point.number, cells.concat())),
        Span::styled(point.words.clone(), ink.standing(point.standing)),
    ])
}

pub(super) fn comparison(
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
        lines.push(Line::styled(format!(" {}", level.title), strong()));
        for one in &level.differences {
            lines.push(Line::from(vec![
                Span::raw(format!(
                    " {:<14}{:>10}{:>10}  {:<24}",
                    one.figure, one.reference, one.candidate, one.change
                )),
                Span::styled(one.words.clone(), ink.standing(one.standing)),
            ]));
        }
    }
    if lines.is_empty() {
        lines.push(Line::styled(" no block is complete yet", faint()));
    }
    frame.render_widget(Paragraph::new(lines).block(framed(title)), above);
    strip(ink, run, frame, below);
}

/// The current run in two lines.
fn strip(ink: Ink, run: Option<&LiveRunView>, frame: &mut Frame, area: Rect) {
    let Some(run) = run else { return };
    let now = |name: &str| run.latencies.iter().find(|latency| latency.name == name);
    let mut second = Vec::new();
    for name in ["TTFT", "ITL", "E2E"] {
        if let Some(latency) = now(name).filter(|latency| latency.so_far.n > 0) {
            let found = &latency.now;
            second.push(format!("{name} p50 {} p99 {}", ms(found.p50), ms(found.p99)));
        }
    }
    let lines = vec![
        Line::from(vec![
            Span::raw(format!(
                " offered {} · sent {}/s · answered {}/s · {} in flight · ",
                offered(run),
                amount(run.sent_per_s),
                amount(run.ok_per_s),
                count(run.in_flight)
            )),
            Span::styled(format!("{} failed", count(run.failed)), ink.none(run.failed)),
        ]),
        Line::from(format!(" {} ms", second.join(" · "))),
    ];
    let title = if run.label.is_empty() { "now" } else { run.label.as_str() };
    frame.render_widget(Paragraph::new(lines).block(framed(title)), area);
}
