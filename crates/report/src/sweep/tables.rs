//! The tables of a sweep: throughput against latency, loops, and every point.

use goodput_campaign::curve::{delivered, is_on_curve};
use goodput_campaign::sweep::{
    Bounded, Figures, Miss, PointSummary, Standing, SweepSummary, Unclear,
};
use goodput_model::Verdict;
use goodput_stats::SloState;

use super::browser::named_level;
use super::charts::{Pair, per_gpu};
use super::{bare_percent, level, level_on, purpose, unit};
use crate::document::{Cell, Column, Formats, Look, Table, Tone};
use crate::number::{cell, count, range};
use crate::render::text::WIDTH;
use crate::wrap::wrap;
use goodput_model::plain;

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

/// A figure with its interval.
fn with_ends(figure: Option<Bounded>) -> String {
    let ends = figure.map_or(String::new(), |found| match (found.low, found.high) {
        (Some(_), Some(_)) => range(found.low, found.high, cell),
        _ => String::new(),
    });
    marked(figure) + &ends
}
/// What the front is.
pub(crate) fn front() -> &'static str {
    "on the front: no other point has both more output tok/s and less latency (TPOT, or E2E where there \
     is none)"
}

/// Share of good requests in percent, with its interval.
fn good_share(figures: &Figures) -> String {
    figures.attainment.map_or("–".to_owned(), |share| {
        format!("{}{}", bare_percent(share.value), range(share.low, share.high, bare_percent))
    })
}

/// Throughput against latency, with the front.
pub(super) fn throughput(summary: &SweepSummary) -> Table {
    let mut points: Vec<(usize, &PointSummary)> =
        summary.points.iter().enumerate().filter(|(_, point)| is_on_curve(point)).collect();
    points.sort_by(|a, b| a.1.point.ask.level.value().total_cmp(&b.1.point.ask.level.value()));
    let (gpus, per) = per_gpu(summary);
    let is_known = summary.sweep.gpus.is_some_and(|gpus| gpus > 0);
    let (each, short) =
        if is_known { ("per GPU", "tok/s\nper GPU") } else { ("of the server", "tok/s\nserver") };
    let columns = vec![
        Column::right("load", 9).short(unit(summary.plan.axis)),
        Column::right("answered/s", 9).short("answered"),
        Column::right("under way", 10).short("under\nway"),
        Column::right("output tok/s", 10).short("output\ntok/s"),
        Column::right(each, 10).short(short),
        Column::right("with prompts", 10).on(Formats::HTML),
        Column::right("per user", 10).short("tok/s\nper user"),
        Column::right("TPOT p50", 9).short("TPOT\np50"),
        Column::right("E2E p50", 10).short("E2E\np50"),
        Column::right("front", 2).short(""),
    ];
    let row = |(place, point): (usize, &PointSummary)| {
        let (at, figures) = (point.point.ask.level, &point.point.figures);
        let each = figures.output_tps.map(|tps| tps / gpus);
        let means = [
            figures.requests_per_s,
            figures.in_flight,
            figures.output_tps,
            each,
            figures.total_tps,
        ];
        let medians = [figures.user_tps, figures.tpot_ms, figures.e2e_ms]
            .map(|spread| spread.p50.map(|p50| p50.value));
        let mut cells = vec![Cell::from(named_level(at)).short(level(at))];
        cells.extend(means.into_iter().chain(medians).map(|value| Cell::number(value, cell)));
        cells.push(if summary.curve.pareto.contains(&place) {
            Cell::from("yes").short("*").tone(Tone::Best)
        } else {
            Cell::default()
        });
        cells
    };
    let caption = format!(
        "What each load gives, in tok/s: output, output {per}, prompts and output together, and output \
         of one user (median); medians of latencies in ms"
    );
    let rows = points.into_iter().map(row).collect();
    Table::new("Throughput against latency", caption, columns).with_rows(rows)
}

/// Closed-loop points and their partners.
pub(super) fn loops(pairs: &[Pair]) -> Table {
    let columns = vec![
        Column::right("users", 7),
        Column::right("open: under way", 17),
        Column::right("p99 TTFT, ms", 10).short("p99 TTFT"),
        Column::right("closed: under way", 19),
        Column::right("p99 TTFT, ms", 10).short("p99 TTFT"),
        Column::right("ratio", 7),
    ];
    let row = |pair: &Pair| {
        let numbers = [pair.open.0, pair.open.1, pair.closed.0, pair.closed.1, pair.ratio()];
        let users = Cell::from(format!("{:.0}", pair.users));
        std::iter::once(users).chain(numbers.map(|value| Cell::from(cell(value)))).collect()
    };
    let caption = "Closed-loop points and the open-loop ones with as many under way";
    let rows = pairs.iter().map(row).collect();
    Table::new("Open and closed loops", caption, columns).with_rows(rows)
}

/// What every table of points is made of.
struct Row<'a> {
    point: &'a PointSummary,
    number: Cell,
    load: Cell,
    purpose: Cell,
    requests: Cell,
    delivered: Cell,
    ttft_p50: Cell,
    tpot_p50: Cell,
    output: Cell,
    good: Cell,
    good_rps: Cell,
    stands: Cell,
}

impl<'a> Row<'a> {
    fn new(summary: &SweepSummary, point: &'a PointSummary) -> Self {
        let (ask, figures) = (&point.point.ask, &point.point.figures);
        Self {
            point,
            number: ask.number.to_string().into(),
            load: level_on(summary.plan.axis, ask.level).into(),
            purpose: purpose(ask.purpose).into(),
            requests: count(figures.requests).into(),
            delivered: Cell::number(delivered(figures), |share| format!("{:.1}", share * 100.0)),
            ttft_p50: marked(figures.ttft_ms.p50).into(),
            tpot_p50: marked(figures.tpot_ms.p50).into(),
            output: Cell::number(figures.output_tps, cell),
            good: good_share(figures).into(),
            good_rps: Cell::number(figures.goodput_rps, |rate| cell(rate.value)),
            stands: Cell::from(stands(point)).tone(tone(&point.standing)),
        }
    }
}

fn rows(summary: &SweepSummary) -> Vec<Row<'_>> {
    summary.points.iter().map(|point| Row::new(summary, point)).collect()
}

/// Every point, in the order measured, as a terminal has room for it: what was seen.
pub(super) fn seen(summary: &SweepSummary) -> Table {
    let columns = vec![
        Column::right("#", 3),
        Column::right(unit(summary.plan.axis), 8),
        Column::left("for", 8).gap(1),
        Column::right("n", 7),
        Column::right("deliv-\nered, %", 8).short("deliv-\nered, %"),
        Column::right("TTFT\np50", 8),
        Column::right("TTFT\np99", 8),
        Column::right("", 6),
        Column::right("TPOT\np50", 7),
        Column::right("TPOT\np99", 7),
        Column::right("output\ntok/s", 8),
    ];
    let row = |row: Row<'_>| {
        let figures = &row.point.point.figures;
        let p99 = figures.ttft_ms.p99;
        let first = vec![row.number, row.load, row.purpose, row.requests, row.delivered];
        let ttft = [row.ttft_p50, marked(p99).into(), within(p99).into()];
        let tpot = [row.tpot_p50, marked(figures.tpot_ms.p99).into(), row.output];
        first.into_iter().chain(ttft).chain(tpot).collect()
    };
    Table::new("", "", columns).with_rows(rows(summary).into_iter().map(row).collect())
}

/// The same: what came of it. Reasons go on below themselves.
pub(super) fn judged(summary: &SweepSummary) -> Table {
    let columns = vec![
        Column::right("#", 3),
        Column::right(unit(summary.plan.axis), 8),
        Column::left("for", 8).gap(1),
        Column::right("good, %", 17),
        Column::right("good/s", 8),
        Column::words("the SLO", 2),
    ];
    let before: usize = columns.iter().map(|column| column.gap + column.width).sum();
    let below = format!("\n{:before$}", "");
    let row = |row: Row<'_>| {
        let reason = wrap(&plain(&row.stands.text), WIDTH - before).join(&below);
        let last = row.stands.short(reason);
        vec![row.number, row.load, row.purpose, row.good, row.good_rps, last]
    };
    Table::new("", "", columns).with_rows(rows(summary).into_iter().map(row).collect())
}

fn point_columns(summary: &SweepSummary) -> Vec<Column> {
    let is_judged = summary.plan.slo.is_some();
    let [html, markdown] = [Formats::HTML, Formats::MARKDOWN];
    let judged = |on: Formats| if is_judged { on } else { Formats::NONE };
    let right = |head: &str| Column::right(head, 0);
    vec![
        Column::left("#", 0).on(markdown),
        Column::left("point", 0).on(html),
        right(&format!("load, {}", unit(summary.plan.axis))),
        // The browser's table is wide: what matters most stands first.
        Column::left("the SLO", 0).on(judged(html)),
        right("good, %").on(judged(html)),
        right("good/s").on(judged(html)),
        Column::left("verdict", 0).on(html),
        Column::left("for", 0),
        right("n").on(markdown),
        right("delivered, %").on(markdown),
        right("TTFT p50"),
        right("TTFT p99").on(html),
        right("TTFT p99").on(markdown),
        right("TPOT p50"),
        right("TPOT p99").on(html),
        right("TPOT p99").on(markdown),
        right("E2E p99").on(html),
        right("output tok/s"),
        right("requests").on(html),
        right("failed").on(html),
        right("delivered, %").on(html),
        right("good, %").on(markdown),
        right("good/s").on(markdown),
        right("front").on(markdown),
        Column::left("the SLO", 0).on(judged(markdown)),
    ]
}

/// Every point, in the order measured, each with a way to its own page where that can be read.
pub(super) fn points(summary: &SweepSummary, has_page: impl Fn(&PointSummary) -> bool) -> Table {
    let row = |(place, row): (usize, Row<'_>)| {
        let (point, figures) = (row.point, &row.point.point.figures);
        let (ttft, tpot) = (figures.ttft_ms.p99, figures.tpot_ms.p99);
        let folder = has_page(point).then_some(point.folder.as_str());
        let front = if summary.curve.pareto.contains(&place) { "*" } else { "" };
        vec![
            row.number,
            Cell::from(point.folder.clone()).leads_to(folder),
            row.load,
            row.stands.clone(),
            row.good.clone(),
            row.good_rps.clone(),
            verdict(figures.verdict, &figures.doubts),
            row.purpose,
            row.requests.clone(),
            row.delivered.clone(),
            row.ttft_p50,
            format!("{} {}", marked(ttft), within(ttft)).into(),
            with_ends(ttft).into(),
            row.tpot_p50,
            marked(tpot).into(),
            with_ends(tpot).into(),
            marked(figures.e2e_ms.p99).into(),
            row.output,
            row.requests,
            count(figures.failed).into(),
            row.delivered,
            row.good,
            row.good_rps,
            front.into(),
            row.stands,
        ]
    };
    let rows = rows(summary).into_iter().enumerate().map(row).collect();
    let title = format!("Every point (levels in {}, ms)", unit(summary.plan.axis));
    let caption = "In the order measured, each with a way to its own page; latencies in ms, ± half of \
                   the 95 % interval, ~ where it is not known. Cn is a closed loop of n users.";
    Table {
        look: Look::Links,
        ..Table::new(title, caption, point_columns(summary)).with_rows(rows)
    }
}

/// Whether a figure in the tables has no interval to both ends.
pub(super) fn has_open_ends(summary: &SweepSummary) -> bool {
    let mut figures = summary.points.iter().map(|point| &point.point.figures);
    figures.any(|figures| {
        [figures.ttft_ms, figures.tpot_ms]
            .iter()
            .flat_map(|spread| [spread.p50, spread.p99])
            .flatten()
            .any(|figure| figure.low.is_none() || figure.high.is_none())
    })
}

fn tone(standing: &Standing) -> Tone {
    match standing {
        Standing::Met => Tone::Good,
        Standing::Missed(_) => Tone::Bad,
        Standing::Unclear(_) => Tone::Doubt,
    }
}

/// Whether to believe a point, and what speaks against it.
fn verdict(verdict: Verdict, doubts: &[String]) -> Cell {
    let (word, tone) = match verdict {
        Verdict::Valid => ("valid", Tone::Good),
        Verdict::Suspect => ("suspect", Tone::Doubt),
        Verdict::Void => ("void", Tone::Bad),
    };
    let why = if doubts.is_empty() { String::new() } else { format!(": {}", doubts.join(", ")) };
    Cell::from(format!("{word}{why}")).tone(tone)
}
