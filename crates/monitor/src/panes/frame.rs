//! What stands around every pane: head, foot, help; and the pane of notes.

use ratatui::Frame;
use ratatui::layout::{Constraint, Flex, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, LineGauge, Paragraph, Wrap};

use super::ink::{Ink, faint_style, framed_block, strong_style};
use crate::view::{CampaignView, LiveRunView, Pane, RunPhase, ScreenView};
use crate::words::{rough_seconds_text, seconds_text};

/// Columns of the help, and its lines.
const HELP: [&str; 7] = [
    "1 2 3 4   overview, latency, server and client, notes",
    "Tab       the next view",
    "q Ctrl-C  stop: no more requests, wait for answers, report",
    "          again: do not wait; a third time: exit at once",
    "?         this help; any other key closes it",
    "",
    "Nothing here changes or pauses the load.",
];

/// Three lines: what is run, how far it is, and how well its figure is known.
pub(super) fn draw_head(view: &ScreenView, frame: &mut Frame, area: Rect) {
    let ink = Ink(view.color);
    let [title, gauge, known] = Layout::vertical([Constraint::Length(1); 3]).areas(area);
    let label = view.run.as_ref().map_or("", |run| run.label.as_str());
    let whole = match label {
        "" => view.title.clone(),
        label => format!("{label} · {}", view.title),
    };
    frame.render_widget(Paragraph::new(Span::styled(format!(" {whole}"), strong_style())), title);
    let Some(run) = &view.run else { return };
    draw_progress(ink, run, frame, gauge);
    let left = match &view.campaign {
        Some(CampaignView::Sweep(sweep)) => {
            (!sweep.left.is_empty()).then(|| format!("sweep: {}", sweep.left))
        }
        Some(CampaignView::Comparison(compared)) => {
            compared.left_s.map(|left| format!("next test in about {}", rough_seconds_text(left)))
        }
        None => None,
    };
    let confidence = run.confidence.trim_start_matches([' ', '·']).to_owned();
    let parts: Vec<String> =
        [left, Some(confidence)].into_iter().flatten().filter(|part| !part.is_empty()).collect();
    frame.render_widget(Paragraph::new(format!(" {}", parts.join(" · "))), known);
}

fn draw_progress(ink: Ink, run: &LiveRunView, frame: &mut Frame, area: Rect) {
    let style = ink.phase_style(run.phase);
    let time = elapsed_text(run);
    let phase = Span::styled(format!(" {:<8}", run.phase.name()), style);
    let Some(done) = run.done.filter(|done| done.is_finite()) else {
        let line = Line::from(vec![phase, Span::raw(format!("  {time}"))]);
        return frame.render_widget(Paragraph::new(line), area);
    };
    let columns = u16::try_from(time.chars().count() + 1).unwrap_or(u16::MAX);
    let [bar, words] =
        Layout::horizontal([Constraint::Min(0), Constraint::Length(columns)]).areas(area);
    let gauge = LineGauge::default()
        .ratio(done.clamp(0.0, 1.0))
        .label(phase)
        .filled_symbol("━")
        .unfilled_symbol("─")
        .filled_style(style)
        .unfilled_style(faint_style());
    frame.render_widget(gauge, bar);
    frame.render_widget(Paragraph::new(format!(" {time}")), words);
}

/// How long it takes, and how long it will.
pub(super) fn elapsed_text(run: &LiveRunView) -> String {
    let is_sent = matches!(run.phase, RunPhase::Drain | RunPhase::Stopping | RunPhase::Ended);
    let elapsed = seconds_text(run.elapsed_s);
    let of = run.total_s.filter(|_| !is_sent);
    let of = of.map_or(String::new(), |total| format!(" of {}", seconds_text(total)));
    let left = run.left_s.filter(|_| !is_sent);
    let left =
        left.map_or(String::new(), |left| format!(" · about {} left", rough_seconds_text(left)));
    match run.phase {
        RunPhase::Drain | RunPhase::Stopping => {
            format!("{elapsed} · waiting for {} answers", run.in_flight)
        }
        _ => format!("{elapsed}{of}{left}"),
    }
}

/// The last thing that was said, and the keys.
pub(super) fn draw_foot(view: &ScreenView, frame: &mut Frame, area: Rect) {
    let [note, keys] = Layout::vertical([Constraint::Length(1); 2]).areas(area);
    if let Some(last) = view.notes.last() {
        frame.render_widget(Paragraph::new(Span::styled(format!(" {last}"), faint_style())), note);
    }
    let mut spans = Vec::new();
    for (place, (pane, name)) in Pane::ALL.iter().enumerate() {
        let style = if *pane == view.pane { strong_style() } else { faint_style() };
        spans.push(Span::styled(format!(" {} {name} ", place + 1), style));
    }
    spans.push(Span::styled("  Tab next  ? help  q stop", faint_style()));
    frame.render_widget(Paragraph::new(Line::from(spans)), keys);
}

/// The keys, on top of everything.
pub(super) fn draw_help(_: Ink, frame: &mut Frame, area: Rect) {
    let columns = HELP.iter().map(|line| line.chars().count()).max().unwrap_or(0) + 4;
    let (columns, rows) =
        (u16::try_from(columns).unwrap_or(u16::MAX), u16::try_from(HELP.len() + 2).unwrap_or(9));
    let [area] = Layout::horizontal([Constraint::Length(columns)]).flex(Flex::Center).areas(area);
    let [area] = Layout::vertical([Constraint::Length(rows)]).flex(Flex::Center).areas(area);
    frame.render_widget(Clear, area);
    let lines: Vec<Line> = HELP.iter().map(|line| Line::from(format!(" {line}"))).collect();
    frame.render_widget(Paragraph::new(lines).block(framed_block("keys")), area);
}

/// As many of the latest lines as fit.
pub(super) fn draw_notes(notes: &[String], frame: &mut Frame, area: Rect) {
    let block = framed_block("notes: printed again at the end");
    let inner = block.inner(area);
    let width = usize::from(inner.width.max(1));
    let mut room = usize::from(inner.height);
    let mut from = notes.len();
    for (place, note) in notes.iter().enumerate().rev() {
        // Wrapping at words may take a line more than the letters alone.
        let takes = note.chars().count().div_ceil(width).max(1);
        if takes > room {
            break;
        }
        (room, from) = (room - takes, place);
    }
    let lines: Vec<Line> = notes.iter().skip(from).map(|note| Line::from(note.as_str())).collect();
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }).block(block), area);
}
