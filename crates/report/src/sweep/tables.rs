//! The tables of a sweep: throughput against latency, and every point.

use std::fmt::{Error, Write};

use goodput_campaign::curve::{delivered, is_on_curve};
use goodput_campaign::sweep::{
    Bounded, Figures, Miss, PointSummary, Standing, SweepSummary, Unclear,
};
use goodput_stats::SloState;
use unicode_width::UnicodeWidthStr;

use super::{bare_percent, level, level_on, purpose, range, unit};
use crate::clip::{left, right};
use crate::number::{cell, count};
use crate::plain::plain;
use crate::text::{WIDTH, field};
use crate::wrap::wrap;

/// A figure in a cell; `~` where its interval is not known to both ends.
pub(crate) fn marked(figure: Option<Bounded>) -> String {
    match figure {
        Some(Bounded { value, low: Some(_), high: Some(_) }) => cell(value),
        Some(Bounded { value, .. }) => format!("~{}", cell(value)),
        None => "–".to_owned(),
    }
}

/// Half of an interval, in percent of its figure.
pub(crate) fn within(figure: Option<Bounded>) -> String {
    match figure {
        Some(Bounded { value, low: Some(low), high: Some(high) }) if value > 0.0 => {
            format!("±{:.0}%", (high - low) / 2.0 / value * 100.0)
        }
        _ => String::new(),
    }
}

/// A number in a cell.
pub(crate) fn number(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), cell)
}

/// Whether a point keeps the SLO, and why not.
pub(crate) fn standing(standing: &Standing) -> String {
    match standing {
        Standing::Met => "kept".to_owned(),
        Standing::Missed(Miss::Term(term)) => format!("missed: {}", plain(term)),
        Standing::Missed(Miss::Attainment) => "missed: too few were good".to_owned(),
        Standing::Missed(Miss::OverSaturated) => "missed: queue grows".to_owned(),
        Standing::Missed(Miss::RateLimited) => "missed: turned away (429, 503)".to_owned(),
        Standing::Missed(Miss::Errors) => "missed: errors".to_owned(),
        Standing::Unclear(Unclear::Client) => "unclear: the client was the limit".to_owned(),
        Standing::Unclear(Unclear::ServerGone) => "unclear: the server was gone".to_owned(),
        Standing::Unclear(Unclear::Interrupted) => "unclear: stopped".to_owned(),
        Standing::Unclear(Unclear::GivenUpTooEarly) => {
            "unclear: stopped early, but what was measured keeps the SLO: measured again".to_owned()
        }
        Standing::Unclear(Unclear::Nothing) => "nothing to judge".to_owned(),
    }
}

/// The same of a point: where its run is in doubt, what was measured decides, and that is said.
pub(crate) fn stands(point: &PointSummary) -> String {
    let is_open = point.point.figures.slo_state == Some(SloState::Undecided);
    match &point.standing {
        Standing::Met if is_open => "kept (undecided)".to_owned(),
        Standing::Missed(Miss::Term(term)) if is_open => {
            format!("missed (undecided): {}", plain(term))
        }
        Standing::Missed(Miss::Attainment) if is_open => {
            "missed (undecided): too few were good".to_owned()
        }
        other => standing(other),
    }
}

/// Throughput against latency, with the front.
pub(super) fn throughput(page: &mut String, summary: &SweepSummary) -> Result<(), Error> {
    let mut points: Vec<(usize, &PointSummary)> =
        summary.points.iter().enumerate().filter(|(_, point)| is_on_curve(point)).collect();
    if points.is_empty() {
        return Ok(());
    }
    points.sort_by(|a, b| a.1.point.ask.level.value().total_cmp(&b.1.point.ask.level.value()));
    let gpus = summary.sweep.gpus.filter(|gpus| *gpus > 0);
    let per = if gpus.is_some() { "per GPU" } else { "server" };
    let row = |cells: &[String]| {
        let widths = [9, 9, 10, 10, 10, 10, 9, 10, 2];
        let line: String = cells.iter().zip(widths).map(|(cell, n)| right(cell, n)).collect();
        line.trim_end().to_owned()
    };
    let heads = ["", "", "under", "output", "tok/s", "tok/s", "TPOT", "E2E"];
    writeln!(page, "\n{}", row(&heads.map(str::to_owned)))?;
    let first = unit(summary.plan.axis);
    let heads = [first, "answered", "way", "tok/s", per, "per user", "p50", "p50"];
    writeln!(page, "{}", row(&heads.map(str::to_owned)))?;
    for (place, point) in points {
        let figures = &point.point.figures;
        let each = figures.output_tps.map(|tps| tps / f64::from(gpus.unwrap_or(1)));
        let means = [figures.requests_per_s, figures.in_flight, figures.output_tps, each];
        let medians = [figures.user_tps, figures.tpot_ms, figures.e2e_ms]
            .map(|spread| spread.p50.map(|p50| p50.value));
        let front = if summary.curve.pareto.contains(&place) { "*" } else { "" };
        let mut cells = vec![level(point.point.ask.level)];
        cells.extend(means.into_iter().chain(medians).map(number));
        cells.push(front.to_owned());
        writeln!(page, "{}", row(&cells))?;
    }
    field(page, "*", &format!("{}; ms", front()));
    if gpus.is_none() {
        field(page, "server", "nobody said how many GPUs are behind the target");
    }
    Ok(())
}

/// What the front is.
pub(crate) fn front() -> &'static str {
    "on the front: no other point has both more output tok/s and less latency (TPOT, or E2E where there \
     is none)"
}

/// Share of good requests in percent, with its interval.
pub(crate) fn good_share(figures: &Figures) -> String {
    figures.attainment.map_or("–".to_owned(), |share| {
        format!("{}{}", bare_percent(share.value), range(share.low, share.high, bare_percent))
    })
}

/// Every point, in the order measured: what was seen, and what came of it.
pub(super) fn points(page: &mut String, summary: &SweepSummary) -> Result<(), Error> {
    if summary.points.is_empty() {
        return Ok(());
    }
    seen(page, summary)?;
    judged(page, summary)?;
    let has = |mark: fn(&PointSummary) -> bool| summary.points.iter().any(mark);
    let is_open_ended = |point: &PointSummary| {
        let figures = &point.point.figures;
        [figures.ttft_ms, figures.tpot_ms]
            .iter()
            .flat_map(|spread| [spread.p50, spread.p99])
            .flatten()
            .any(|figure| figure.low.is_none() || figure.high.is_none())
    };
    if has(is_open_ended) {
        field(page, "~", "its interval is not known to both ends");
    }
    Ok(())
}

fn seen(page: &mut String, summary: &SweepSummary) -> Result<(), Error> {
    let row = |first: [&str; 2], cells: [&str; 9]| {
        let [number, level] = first;
        let widths = [8, 7, 8, 8, 8, 6, 7, 7, 8];
        let rest: String = cells
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(i, (text, n))| if i == 0 { left(text, n) } else { right(text, n) })
            .collect();
        format!("{}{} {rest}", right(number, 3), right(level, 8)).trim_end().to_owned()
    };
    let unit = unit(summary.plan.axis);
    let heads = ["", "", "deliv-", "TTFT", "TTFT", "", "TPOT", "TPOT", "output"];
    writeln!(page, "\n{}", row(["", ""], heads))?;
    let heads = ["for", "n", "ered, %", "p50", "p99", "", "p50", "p99", "tok/s"];
    writeln!(page, "{}", row(["#", unit], heads))?;
    for point in &summary.points {
        let (ask, figures) = (&point.point.ask, &point.point.figures);
        let (ttft, tpot) = (&figures.ttft_ms, &figures.tpot_ms);
        let share =
            delivered(figures).map_or("–".to_owned(), |share| format!("{:.1}", share * 100.0));
        let line = row(
            [&ask.number.to_string(), &level_on(summary.plan.axis, ask.level)],
            [
                purpose(ask.purpose),
                &count(figures.requests),
                &share,
                &marked(ttft.p50),
                &marked(ttft.p99),
                &within(ttft.p99),
                &marked(tpot.p50),
                &marked(tpot.p99),
                &number(figures.output_tps),
            ],
        );
        writeln!(page, "{line}")?;
    }
    Ok(())
}

fn judged(page: &mut String, summary: &SweepSummary) -> Result<(), Error> {
    if summary.plan.slo.is_none() {
        return Ok(());
    }
    // Reasons go on below themselves.
    let row = |cells: [&str; 6]| {
        let [number, level, purpose, share, rate, standing] = cells;
        let first = format!(
            "{}{} {}{}{}  ",
            right(number, 3),
            right(level, 8),
            left(purpose, 8),
            right(share, 17),
            right(rate, 8)
        );
        let reason = wrap(standing, WIDTH - first.width()).join(&format!("\n{:47}", ""));
        format!("{first}{reason}")
    };
    let unit = unit(summary.plan.axis);
    writeln!(page, "\n{}", row(["#", unit, "for", "good, %", "good/s", "the SLO"]))?;
    for point in &summary.points {
        let (ask, figures) = (&point.point.ask, &point.point.figures);
        let share = good_share(figures);
        let rate = figures.goodput_rps.map_or("–".to_owned(), |rate| cell(rate.value));
        let line = row([
            &ask.number.to_string(),
            &level_on(summary.plan.axis, ask.level),
            purpose(ask.purpose),
            &share,
            &rate,
            &stands(point),
        ]);
        writeln!(page, "{line}")?;
    }
    Ok(())
}
