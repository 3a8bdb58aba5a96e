//! The server's side, the client's health, and what failed.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::ink::{Ink, faint_style, framed_block};
use super::run::draw_sparkline;
use crate::view::{LiveRunView, Percentiles, ServerView};
use crate::words::{NONE, count_text, ms_text};

pub(super) fn draw_health(ink: Ink, run: &LiveRunView, frame: &mut Frame, area: Rect) {
    let [top, middle, bottom] =
        Layout::vertical([Constraint::Length(6), Constraint::Min(0), Constraint::Length(7)])
            .areas(area);
    let [left, right] = Layout::horizontal([Constraint::Fill(1); 2]).areas(top);
    frame.render_widget(Paragraph::new(server_lines(run, "")).block(framed_block("server")), left);
    draw_client(ink, run, frame, right);
    let empty = ServerView::default();
    let server = run.server.as_ref().unwrap_or(&empty);
    let [left, right] = Layout::horizontal([Constraint::Fill(1); 2]).areas(middle);
    draw_sparkline(&format!("queue: {}", whole_text(server.waiting)), &server.queue, frame, left);
    draw_sparkline(&format!("KV cache: {}", percent_text(server.kv)), &server.kvs, frame, right);
    draw_errors(ink, run, frame, bottom);
}

fn draw_client(ink: Ink, run: &LiveRunView, frame: &mut Frame, area: Rect) {
    let client = &run.client;
    let lost = if client.lost > 0 { ink.bad_style() } else { faint_style() };
    let lines = vec![
        lateness_line("slip", &client.slip, &client.slip_now),
        lateness_line("loop lag", &client.lag, &client.lag_now),
        Line::styled(format!(" {} records lost", count_text(client.lost)), lost),
    ];
    frame.render_widget(Paragraph::new(lines).block(framed_block("client, ms")), area);
}

/// How late something of the client's was: the tail, the worst, and the worst of the last seconds.
pub(super) fn lateness_line(name: &str, all: &Percentiles, now: &Percentiles) -> Line<'static> {
    let [p99, max, lately] = [all.p99, all.max, now.max].map(ms_text);
    Line::from(format!(" {name:<9}p99 {p99}, max {max}, now {lately}"))
}

/// What the server says, in two lines, with a name before the first.
pub(super) fn server_lines(run: &LiveRunView, name: &str) -> Vec<Line<'static>> {
    let Some(server) = &run.server else {
        return vec![Line::styled(" unknown (no server metrics were found)", faint_style())];
    };
    let mut lines = vec![Line::from(format!(
        " {name}{} waiting, {} running, KV {}",
        whole_text(server.waiting),
        whole_text(server.running),
        percent_text(server.kv)
    ))];
    if server.gpu.is_some() || server.watts.is_some() {
        let watts = server.watts.map_or(String::new(), |watts| format!(", {watts:.0} W"));
        lines.push(Line::from(format!(" GPUs {} busy{watts}", percent_text(server.gpu))));
    }
    let (silent, of) = server.silent;
    if silent > 0 {
        lines.push(Line::from(format!(" {silent} of {of} metrics pages did not answer")));
    }
    lines
}

fn whole_text(value: Option<f64>) -> String {
    value
        .filter(|value| value.is_finite())
        .map_or(NONE.to_owned(), |value| count_text(value as u64))
}

fn percent_text(share: Option<f64>) -> String {
    match share.filter(|share| share.is_finite()) {
        Some(share) => format!("{:.0} %", share * 100.0),
        None => NONE.to_owned(),
    }
}

/// Failures by class, as many as fit.
pub(super) fn draw_errors(ink: Ink, run: &LiveRunView, frame: &mut Frame, area: Rect) {
    let block = framed_block(format!("failed: {}", count_text(run.failed)));
    let rows = usize::from(block.inner(area).height);
    let mut lines: Vec<Line> = run
        .errors
        .iter()
        .take(rows)
        .map(|(class, n)| Line::styled(format!(" {} × {class}", count_text(*n)), ink.bad_style()))
        .collect();
    if lines.is_empty() {
        lines.push(Line::styled(" none", faint_style()));
    }
    frame.render_widget(Paragraph::new(lines).block(block), area);
}
