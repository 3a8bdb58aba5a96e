//! A terminal with little room: the same in lines, the most important first.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::frame::elapsed_text;
use super::ink::{Ink, faint_style, strong_style};
use super::run::offered_text;
use crate::view::{CampaignView, LiveRunView, Pane, ScreenView};
use crate::words::{amount_text, count_text, ms_text};

pub(super) fn draw_small(view: &ScreenView, frame: &mut Frame, area: Rect) {
    let ink = Ink(view.color);
    let mut lines = vec![Line::styled(view.title.clone(), strong_style())];
    if view.pane == Pane::Notes {
        lines.extend(view.notes.iter().rev().map(|note| Line::from(note.clone())));
    } else if let Some(run) = &view.run {
        lines.extend(run_lines(ink, run));
        lines.extend(campaign_lines(view, run));
        lines.extend(latency_lines(run));
        lines.extend(view.notes.last().map(|last| Line::styled(last.clone(), faint_style())));
    }
    let room = usize::from(area.height).saturating_sub(1);
    lines.truncate(room);
    lines.push(Line::styled("q stop  ? help  4 notes  1 back", faint_style()));
    frame.render_widget(Paragraph::new(lines), area);
}

fn run_lines(ink: Ink, run: &LiveRunView) -> Vec<Line<'static>> {
    vec![
        Line::from(vec![
            Span::styled(format!("{} ", run.phase.name()), ink.phase_style(run.phase)),
            Span::raw(elapsed_text(run)),
        ]),
        Line::from(format!(
            "{} offered, {}/s answered",
            offered_text(run),
            amount_text(run.ok_per_s)
        )),
        Line::from(vec![
            Span::raw(format!(
                "{} in flight, {} ok, ",
                count_text(run.in_flight),
                count_text(run.ok)
            )),
            Span::styled(
                format!("{} failed", count_text(run.failed)),
                ink.zero_is_good_style(run.failed),
            ),
        ]),
    ]
}

fn latency_lines(run: &LiveRunView) -> impl Iterator<Item = Line<'static>> {
    let own = run.latencies.iter().filter(|latency| latency.so_far.n > 0);
    own.map(|latency| {
        let (p50, p95) = (ms_text(latency.now.p50), ms_text(latency.now.p95));
        Line::from(format!("{:<5}p50 {p50} p95 {p95} ms", latency.name))
    })
}

/// What it is a part of.
fn campaign_lines(view: &ScreenView, run: &LiveRunView) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if !run.label.is_empty() {
        lines.push(Line::from(run.label.clone()));
    }
    match &view.campaign {
        Some(CampaignView::Sweep(sweep)) => {
            let answer = Some(&sweep.answer).filter(|answer| !answer.is_empty());
            let points = format!("{} points", sweep.points.len());
            lines.push(Line::from(answer.cloned().unwrap_or(points)));
        }
        Some(CampaignView::Comparison(compared)) => {
            lines.push(Line::from(format!("{} blocks", compared.blocks)));
        }
        None => {}
    }
    lines
}
