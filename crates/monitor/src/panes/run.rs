//! A run at a glance.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Sparkline};

use super::health;
use super::ink::{Ink, framed_block, name_value_line, strong_style};
use crate::view::{LiveRunView, OfferedView, Percentiles};
use crate::words::{amount_text, count_text, ms_text};

/// Columns of the block about load.
const LOAD: u16 = 30;
/// Rows of sparklines from which on there are two.
const TWO: u16 = 12;

pub(super) fn draw_run(ink: Ink, run: &LiveRunView, frame: &mut Frame, area: Rect) {
    let [top, middle, bottom] =
        Layout::vertical([Constraint::Length(8), Constraint::Min(0), Constraint::Length(6)])
            .areas(area);
    let [left, right] =
        Layout::horizontal([Constraint::Length(LOAD), Constraint::Min(0)]).areas(top);
    draw_load(ink, run, frame, left);
    draw_table(run, frame, right);
    if middle.height < TWO {
        draw_tokens(run, frame, middle);
    } else {
        let [upper, lower] = Layout::vertical([Constraint::Fill(1); 2]).areas(middle);
        draw_tokens(run, frame, upper);
        let title = format!("in flight: {}", count_text(run.in_flight));
        draw_sparkline(&title, &run.under_way, frame, lower);
    }
    let [left, right] =
        Layout::horizontal([Constraint::Length(LOAD), Constraint::Min(0)]).areas(bottom);
    health::draw_errors(ink, run, frame, left);
    draw_client_and_server(ink, run, frame, right);
}

/// What the plan asks for, in words.
pub(super) fn offered_text(run: &LiveRunView) -> String {
    match run.offered {
        OfferedView::PerSecond(rate) => format!("{}/s", amount_text(Some(rate))),
        OfferedView::Users(users) => format!("{users} users"),
        OfferedView::Otherwise => "as planned".to_owned(),
    }
}

fn draw_load(ink: Ink, run: &LiveRunView, frame: &mut Frame, area: Rect) {
    let per_s = |rate: Option<f64>| format!("{}/s", amount_text(rate));
    let plain = Style::new();
    let columns = area.width.saturating_sub(3);
    let lines = vec![
        name_value_line(" offered", &offered_text(run), columns, plain),
        name_value_line(" sent", &per_s(run.sent_per_s), columns, plain),
        name_value_line(" answered", &per_s(run.ok_per_s), columns, strong_style()),
        name_value_line(" in flight", &count_text(run.in_flight), columns, plain),
        name_value_line(" completed", &count_text(run.ok), columns, plain),
        name_value_line(
            " failed",
            &count_text(run.failed),
            columns,
            ink.zero_is_good_style(run.failed),
        ),
    ];
    frame.render_widget(Paragraph::new(lines).block(framed_block("load")), area);
}

/// Percentiles lately and so far.
fn draw_table(run: &LiveRunView, frame: &mut Frame, area: Rect) {
    let three = |p: &Percentiles| {
        [p.p50, p.p95, p.p99].map(|value| format!("{:>7}", ms_text(value))).concat()
    };
    let mut lines = vec![
        Line::styled(format!(" {:<4}{:^21}{:^21}", "", "last 10 s", "so far"), strong_style()),
        Line::from(format!(
            " {:<4}{:>7}{:>7}{:>7}{:>7}{:>7}{:>7}",
            "", "p50", "p95", "p99", "p50", "p95", "p99"
        )),
    ];
    for latency in &run.latencies {
        lines.push(Line::from(format!(
            " {:<4}{}{}",
            latency.name,
            three(&latency.now),
            three(&latency.so_far)
        )));
    }
    frame.render_widget(Paragraph::new(lines).block(framed_block("latency, ms, within 2 %")), area);
}

fn draw_tokens(run: &LiveRunView, frame: &mut Frame, area: Rect) {
    let most = run.tokens.iter().max().copied().unwrap_or(0);
    let title = format!(
        "output tokens/s of ended answers: {} now, {} at most",
        amount_text(run.tokens_per_s),
        amount_text(Some(most as f64))
    );
    draw_sparkline(&title, &run.tokens, frame, area);
}

/// The latest values that fit, the last at the right.
pub(super) fn draw_sparkline(title: &str, values: &[u64], frame: &mut Frame, area: Rect) {
    let block = framed_block(title);
    let columns = usize::from(block.inner(area).width);
    let shown = values.get(values.len().saturating_sub(columns)..).unwrap_or_default();
    let pad = columns.saturating_sub(shown.len());
    let data: Vec<u64> = std::iter::repeat_n(0, pad).chain(shown.iter().copied()).collect();
    frame.render_widget(Sparkline::default().data(data).block(block), area);
}

/// The client and the server, in four lines.
fn draw_client_and_server(ink: Ink, run: &LiveRunView, frame: &mut Frame, area: Rect) {
    let client = &run.client;
    let mut lines = vec![
        health::lateness_line("slip", &client.slip, &client.slip_now),
        health::lateness_line("loop lag", &client.lag, &client.lag_now),
    ];
    lines.extend(health::server_lines(run, "server   "));
    if client.lost > 0 {
        let lost = format!(" {} records lost: the disk is too slow", count_text(client.lost));
        lines.insert(0, Line::styled(lost, ink.bad_style()));
    }
    frame.render_widget(Paragraph::new(lines).block(framed_block("client, ms, and server")), area);
}
