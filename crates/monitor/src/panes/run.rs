//! A run at a glance.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Sparkline};

use super::health;
use super::ink::{Ink, framed, pair, strong};
use crate::view::{LiveRunView, OfferedView, Percentiles};
use crate::words::{amount, count, ms};

/// Columns of the block about load.
const LOAD: u16 = 30;
/// Rows of sparklines from which on there are two.
const TWO: u16 = 12;

pub(super) fn draw(ink: Ink, run: &LiveRunView, frame: &mut Frame, area: Rect) {
    let [top, middle, bottom] =
        Layout::vertical([Constraint::Length(8), Constraint::Min(0), Constraint::Length(6)])
            .areas(area);
    let [left, right] =
        Layout::horizontal([Constraint::Length(LOAD), Constraint::Min(0)]).areas(top);
    load(ink, run, frame, left);
    table(run, frame, right);
    if middle.height < TWO {
        tokens(run, frame, middle);
    } else {
        let [upper, lower] = Layout::vertical([Constraint::Fill(1); 2]).areas(middle);
        tokens(run, frame, upper);
        let title = format!("in flight: {}", count(run.in_flight));
        spark(&title, &run.under_way, frame, lower);
    }
    let [left, right] =
        Layout::horizontal([Constraint::Length(LOAD), Constraint::Min(0)]).areas(bottom);
    health::errors(ink, run, frame, left);
    client_and_server(ink, run, frame, right);
}

/// What the plan asks for, in words.
pub(super) fn offered(run: &LiveRunView) -> String {
    match run.offered {
        OfferedView::PerSecond(rate) => format!("{}/s", amount(Some(rate))),
        OfferedView::Users(users) => format!("{users} users"),
        OfferedView::Otherwise => "as planned".to_owned(),
    }
}

fn load(ink: Ink, run: &LiveRunView, frame: &mut Frame, area: Rect) {
    let per_s = |rate: Option<f64>| format!("{}/s", amount(rate));
    let plain = Style::new();
    let columns = area.width.saturating_sub(3);
    let lines = vec![
        pair(" offered", &offered(run), columns, plain),
        pair(" sent", &per_s(run.sent_per_s), columns, plain),
        pair(" answered", &per_s(run.ok_per_s), columns, strong()),
        pair(" in flight", &count(run.in_flight), columns, plain),
        pair(" completed", &count(run.ok), columns, plain),
        pair(" failed", &count(run.failed), columns, ink.none(run.failed)),
    ];
    frame.render_widget(Paragraph::new(lines).block(framed("load")), area);
}

/// Percentiles lately and so far.
fn table(run: &LiveRunView, frame: &mut Frame, area: Rect) {
    let three =
        |p: &Percentiles| [p.p50, p.p95, p.p99].map(|value| format!("{:>7}", ms(value))).concat();
    let mut lines = vec![
        Line::styled(format!(" {:<4}{:^21}{:^21}", "", "last 10 s", "so far"), strong()),
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
    frame.render_widget(Paragraph::new(lines).block(framed("latency, ms, within 2 %")), area);
}

fn tokens(run: &LiveRunView, frame: &mut Frame, area: Rect) {
    let most = run.tokens.iter().max().copied().unwrap_or(0);
    let title = format!(
        "output tokens/s of ended answers: {} now, {} at most",
        amount(run.tokens_per_s),
        amount(Some(most as f64))
    );
    spark(&title, &run.tokens, frame, area);
}

/// The latest values that fit, the last at the right.
pub(super) fn spark(title: &str, values: &[u64], frame: &mut Frame, area: Rect) {
    let block = framed(title);
    let columns = usize::from(block.inner(area).width);
    let shown = values.get(values.len().saturating_sub(columns)..).unwrap_or_default();
    let pad = columns.saturating_sub(shown.len());
    let data: Vec<u64> = std::iter::repeat_n(0, pad).chain(shown.iter().copied()).collect();
    frame.render_widget(Sparkline::default().data(data).block(block), area);
}

/// The client and the server, in four lines.
fn client_and_server(ink: Ink, run: &LiveRunView, frame: &mut Frame, area: Rect) {
    let client = &run.client;
    let mut lines = vec![
        health::late("slip", &client.slip, &client.slip_now),
        health::late("loop lag", &client.lag, &client.lag_now),
    ];
    lines.extend(health::server_lines(run, "server   "));
    if client.lost > 0 {
        let lost = format!(" {} records lost: the disk is too slow", count(client.lost));
        lines.insert(0, Line::styled(lost, ink.bad()));
    }
    frame.render_widget(Paragraph::new(lines).block(framed("client, ms, and server")), area);
}
