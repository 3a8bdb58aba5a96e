//! The tables of a sweep: throughput against latency, loops, and every point.

use goodput_campaign::curve::{delivered_share, is_on_curve};
use goodput_campaign::sweep::{
    Bounded, Figures, Goodput, Miss, PointSpread, PointStanding, PointSummary, SweepSummary,
    Unclear,
};
use goodput_model::Verdict;
use goodput_stats::SloState;

use super::browser::named_level;
use super::charts::{Latency, gpus_and_label};
use super::{
    axis_unit, bare_percent, level_on_axis_text, level_text, level_value_text, points_on_curve,
    pool_by_level, purpose_text, without_interval,
};
use goodput_document::number::{cell_number, count, range_in_brackets};
use goodput_document::{Cell, Column, Formats, Rows, Table, TableStyle, Tone};
use goodput_model::escape_control;

/// A figure in a cell; `~` where its interval is not known to both ends.
pub(crate) fn marked_value(figure: Option<Bounded>) -> String {
    match figure {
        Some(Bounded { value, low: Some(_), high: Some(_) }) => cell_number(value),
        Some(Bounded { value, .. }) => format!("~{}", cell_number(value)),
        None => "–".to_owned(),
    }
}

/// Half of an interval, in percent of its figure.
pub(crate) fn half_interval_percent(figure: Option<Bounded>) -> String {
    match figure {
        Some(Bounded { value, low: Some(low), high: Some(high) }) if value > 0.0 => {
            format!("±{:.0}%", (high - low) / 2.0 / value * 100.0)
        }
        _ => String::new(),
    }
}

/// Whether a point keeps the SLO, and why not.
pub(crate) fn standing_text(standing: &PointStanding) -> String {
    match standing {
        PointStanding::Met => "kept".to_owned(),
        PointStanding::Missed(Miss::Term(term)) => format!("missed: {}", escape_control(term)),
        PointStanding::Missed(Miss::Attainment) => "missed: too few were good".to_owned(),
        PointStanding::Missed(Miss::OverSaturated) => "missed: queue grows".to_owned(),
        PointStanding::Missed(Miss::RateLimited) => "missed: rejected (429, 503)".to_owned(),
        PointStanding::Missed(Miss::Errors) => "missed: errors".to_owned(),
        PointStanding::Unclear(Unclear::Client) => "unclear: the client was the limit".to_owned(),
        PointStanding::Unclear(Unclear::ServerGone) => "unclear: server unreachable".to_owned(),
        PointStanding::Unclear(Unclear::Interrupted) => "unclear: stopped".to_owned(),
        PointStanding::Unclear(Unclear::GivenUpTooEarly) => {
            "unclear: stopped early, but what was measured keeps the SLO: measured again".to_owned()
        }
        PointStanding::Unclear(Unclear::Nothing) => "nothing to judge".to_owned(),
    }
}

/// The same of a point: where its run is in doubt, what was measured decides, and that is said.
pub(crate) fn point_standing_text(point: &PointSummary) -> String {
    let is_open = point.point.figures.slo_state == Some(SloState::Undecided);
    match &point.standing {
        PointStanding::Met if is_open => "kept (undecided)".to_owned(),
        PointStanding::Missed(Miss::Term(term)) if is_open => {
            format!("missed (undecided): {}", escape_control(term))
        }
        PointStanding::Missed(Miss::Attainment) if is_open => {
            "missed (undecided): too few were good".to_owned()
        }
        other => standing_text(other),
    }
}

/// A figure with its interval.
fn value_with_interval(figure: Option<Bounded>) -> String {
    let ends = figure.map_or(String::new(), |found| match (found.low, found.high) {
        (Some(_), Some(_)) => range_in_brackets(found.low, found.high, cell_number),
        _ => String::new(),
    });
    marked_value(figure) + &ends
}
/// What the front is.
pub(crate) fn front_text(summary: &SweepSummary) -> String {
    format!(
        "on the front: no other load that is delivered has both more output tok/s and less {}",
        summary.curve.front.title()
    )
}

/// Share of good requests in percent, with its interval.
fn good_share_text(figures: &Figures) -> String {
    figures.attainment.map_or("–".to_owned(), |share| {
        format!(
            "{}{}",
            bare_percent(share.value),
            range_in_brackets(share.low, share.high, bare_percent)
        )
    })
}

/// Throughput against latency, with the front.
pub(super) fn throughput_table(summary: &SweepSummary) -> Table {
    let mut points: Vec<(usize, &PointSummary)> =
        summary.points.iter().enumerate().filter(|(_, point)| is_on_curve(point)).collect();
    points.sort_by(|a, b| a.1.point.ask.level.value().total_cmp(&b.1.point.ask.level.value()));
    let (gpus, per) = gpus_and_label(summary);
    let is_known = summary.sweep.gpus.is_some_and(|gpus| gpus > 0);
    let (each, short) =
        if is_known { ("per GPU", "tok/s\nper GPU") } else { ("of the server", "tok/s\nserver") };
    let tokens = |of: fn(&Figures) -> Option<f64>| {
        move |(_, point): &(usize, &PointSummary)| {
            Cell::number(of(&point.point.figures), cell_number)
        }
    };
    let median = |of: fn(&Figures) -> PointSpread| {
        move |(_, point): &(usize, &PointSummary)| {
            Cell::number(of(&point.point.figures).p50, |p50| cell_number(p50.value))
        }
    };
    let caption = format!(
        "What each load gives, in tok/s: output, output {per}, prompts and output together, and output \
         of one user (median); medians of latencies in ms"
    );
    let two = |head: &str, width: usize| Column::right(head, width).short(head.replace(' ', "\n"));
    Table::from_subjects("Throughput against latency", caption, points)
        .with(Column::right("load", 9).short(axis_unit(summary.plan.axis)), |(_, point)| {
            let at = point.point.ask.level;
            Cell::from(named_level(at)).short(level_text(at))
        })
        .with(Column::right("answered/s", 9).short("answered"), tokens(|of| of.requests_per_s))
        .with(two("in flight", 10), tokens(|of| of.in_flight))
        .with(two("output tok/s", 10), tokens(|of| of.output_tps))
        .with(Column::right(each, 10).short(short), |(_, point)| {
            Cell::number(point.point.figures.output_tps, |tps| cell_number(tps / gpus))
        })
        .with(Column::right("with prompts", 10).on(Formats::HTML), tokens(|of| of.total_tps))
        .with(Column::right("per user", 10).short("tok/s\nper user"), median(|of| of.user_tps))
        .with(two("TPOT p50", 9), median(|of| of.tpot_ms))
        .with(two("E2E p50", 10), median(|of| of.e2e_ms))
        .with(Column::right("front", 2).short(""), |(place, _)| {
            let is_on = summary.curve.pareto.contains(place);
            if is_on { Cell::from("yes").short("*").tone(Tone::Best) } else { Cell::default() }
        })
        .table
}

/// A percentile of a latency.
type PercentileOf = fn(PointSpread) -> Option<Bounded>;

/// Percentiles of TTFT, TPOT and ITL by load, each load with what it gives.
pub(super) fn percentiles_table(summary: &SweepSummary) -> Table {
    let points = points_on_curve(&summary.points);
    let axis = summary.plan.axis;
    let value = |level: f64, of: &dyn Fn(&Figures) -> Option<Bounded>| {
        let all = pool_by_level(&points, |point| of(&point.point.figures));
        all.into_iter().find(|(at, _)| *at == level).map(|(_, found)| found.value)
    };
    let load =
        pool_by_level(&points, |point| without_interval(Some(point.point.ask.level.value())));
    let title = format!("TTFT, TPOT and ITL in ms over load ({}) and throughput", axis_unit(axis));
    let caption = "Percentiles of each load; runs at one load are combined.";
    let levels = load.iter().map(|(level, _)| *level);
    let mut table = Table::from_subjects(title.clone(), caption, levels)
        .right(axis_unit(axis), 7, |level| level_value_text(axis, *level))
        .with(Column::stacked("output", "tok/s", 8), |level| {
            Cell::number(
                value(*level, &|figures| without_interval(figures.output_tps)),
                cell_number,
            )
        });
    for latency in [Latency::Ttft, Latency::Tpot, Latency::Itl] {
        let percentiles: [(&str, PercentileOf); 3] =
            [("p50", |of| of.p50), ("p90", |of| of.p90), ("p99", |of| of.p99)];
        for (percent, of) in percentiles {
            table = table.with(Column::stacked(latency.title(), percent, 7), |level| {
                Cell::number(value(*level, &|figures| of(latency.spread_of(figures))), cell_number)
            });
        }
    }
    Table { above: title, ..table.table }
}

fn delivered_cell(point: &PointSummary) -> Cell {
    Cell::number(delivered_share(&point.point.figures), |share| format!("{:.1}", share * 100.0))
}

fn good_rate_cell(point: &PointSummary) -> Cell {
    Cell::number(point.point.figures.goodput_rps, |rate| cell_number(rate.value))
}

fn stands_cell(point: &PointSummary) -> Cell {
    Cell::from(point_standing_text(point)).tone(standing_tone(&point.standing))
}

/// Which point, at which load, and what for, as a terminal has room for it.
fn points_on_terminal(summary: &SweepSummary) -> Rows<&PointSummary> {
    let axis = summary.plan.axis;
    Table::from_subjects("", "", &summary.points)
        .right("#", 3, |point| point.point.ask.number.to_string())
        .right(axis_unit(axis), 8, move |point| level_on_axis_text(axis, point.point.ask.level))
        .with(Column::left("for", 8).gap(1), |point| purpose_text(point.point.ask.purpose))
}

/// Every point, in the order measured, as a terminal has room for it: what was seen.
pub(super) fn points_seen_table(summary: &SweepSummary) -> Table {
    points_on_terminal(summary)
        .right("n", 7, |point| count(point.point.figures.requests))
        .right("deliv-\nered, %", 8, |point| delivered_cell(point))
        .right("TTFT\np50", 8, |point| marked_value(point.point.figures.ttft_ms.p50))
        .right("TTFT\np99", 8, |point| marked_value(point.point.figures.ttft_ms.p99))
        .right("", 6, |point| half_interval_percent(point.point.figures.ttft_ms.p99))
        .right("TPOT\np50", 7, |point| marked_value(point.point.figures.tpot_ms.p50))
        .right("TPOT\np99", 7, |point| marked_value(point.point.figures.tpot_ms.p99))
        .right("output\ntok/s", 8, |point| {
            Cell::number(point.point.figures.output_tps, cell_number)
        })
        .table
}

/// What is read first of every point. A short page shows those next to the answer.
pub(super) fn short_points_table(summary: &SweepSummary) -> Table {
    let table = points_on_terminal(summary)
        .right("TTFT p50", 10, |point| marked_value(point.point.figures.ttft_ms.p50))
        .right("TTFT p99", 10, |point| marked_value(point.point.figures.ttft_ms.p99))
        .right("TPOT p99", 10, |point| marked_value(point.point.figures.tpot_ms.p99))
        .right("out tok/s", 11, |point| Cell::number(point.point.figures.output_tps, cell_number));
    let table = match summary.plan.slo {
        Some(_) => table.with(Column::words("the SLO", 2), |point| stands_cell(point)),
        None => table,
    };
    Table { first: nearest_to_answer(summary), ..table.table }
}

/// Points by how near they are to the answer.
fn nearest_to_answer(summary: &SweepSummary) -> Vec<usize> {
    let Some(answer) = summary.goodput.as_ref().and_then(Goodput::level) else {
        return Vec::new();
    };
    let far = |place: &usize| {
        let point = summary.points.get(*place);
        point.map_or(f64::INFINITY, |point| (point.point.ask.level.value() - answer).abs())
    };
    let mut places: Vec<usize> = (0..summary.points.len())
        .filter(|place| summary.points.get(*place).is_some_and(is_on_curve))
        .collect();
    places.sort_by(|a, b| far(a).total_cmp(&far(b)));
    places
}

/// The same: what came of it. Reasons go on below themselves.
pub(super) fn points_judged_table(summary: &SweepSummary) -> Table {
    points_on_terminal(summary)
        .right("good, %", 17, |point| good_share_text(&point.point.figures))
        .right("good/s", 8, |point| good_rate_cell(point))
        .with(Column::prose("the SLO", 2), |point| stands_cell(point))
        .table
}

/// Every point, in the order measured, each with a way to its own page where that can be read.
pub(super) fn points_table(
    summary: &SweepSummary,
    has_page: impl Fn(&PointSummary) -> bool,
) -> Table {
    let axis = summary.plan.axis;
    let [html, markdown] = [Formats::HTML, Formats::MARKDOWN];
    let judged = |on: Formats| if summary.plan.slo.is_some() { on } else { Formats::NONE };
    let right = |head: &str, on: Formats| Column::right(head, 0).on(on);
    let left = |head: &str, on: Formats| Column::left(head, 0).on(on);
    let title = format!("Every point (levels in {}, ms)", axis_unit(axis));
    let caption = "In the order measured, each with a link to its own page; latencies in ms, ± \
                   half of the 95 % interval, ~ where that is unknown. Cn is a closed loop of n \
                   users.";
    let all = summary.points.iter().enumerate();
    let all = all.map(|(place, point)| (point, &point.point.figures, place));
    let table = Table::from_subjects(title, caption, all)
        .with(left("#", markdown), |(point, ..)| point.point.ask.number.to_string())
        .with(left("point", html), |(point, ..)| {
            let folder = has_page(point).then_some(point.folder.as_str());
            Cell::from(point.folder.clone()).with_link(folder)
        })
        .right(format!("load, {}", axis_unit(axis)), 0, |(point, ..)| {
            level_on_axis_text(axis, point.point.ask.level)
        })
        // The browser's table is wide: what matters most stands first.
        .with(left("the SLO", judged(html)), |(point, ..)| stands_cell(point))
        .with(right("good, %", judged(html)), |(_, figures, _)| good_share_text(figures))
        .with(right("good/s", judged(html)), |(point, ..)| good_rate_cell(point))
        .with(left("verdict", html), |(_, figures, _)| {
            verdict_cell(figures.verdict, &figures.doubts)
        })
        .left("for", 0, |(point, ..)| purpose_text(point.point.ask.purpose))
        .with(right("n", markdown), |(_, figures, _)| count(figures.requests))
        .with(right("delivered, %", markdown), |(point, ..)| delivered_cell(point))
        .right("TTFT p50", 0, |(_, figures, _)| marked_value(figures.ttft_ms.p50))
        .with(right("TTFT p99", html), |(_, figures, _)| {
            format!(
                "{} {}",
                marked_value(figures.ttft_ms.p99),
                half_interval_percent(figures.ttft_ms.p99)
            )
        })
        .with(right("TTFT p99", markdown), |(_, figures, _)| {
            value_with_interval(figures.ttft_ms.p99)
        })
        .right("TPOT p50", 0, |(_, figures, _)| marked_value(figures.tpot_ms.p50))
        .with(right("TPOT p99", html), |(_, figures, _)| marked_value(figures.tpot_ms.p99))
        .with(right("TPOT p99", markdown), |(_, figures, _)| {
            value_with_interval(figures.tpot_ms.p99)
        })
        .with(right("E2E p99", html), |(_, figures, _)| marked_value(figures.e2e_ms.p99))
        .right("output tok/s", 0, |(_, figures, _)| Cell::number(figures.output_tps, cell_number))
        .with(right("requests", html), |(_, figures, _)| count(figures.requests))
        .with(right("failed", html), |(_, figures, _)| count(figures.failed))
        .with(right("delivered, %", html), |(point, ..)| delivered_cell(point))
        .with(right("good, %", markdown), |(_, figures, _)| good_share_text(figures))
        .with(right("good/s", markdown), |(point, ..)| good_rate_cell(point))
        .with(
            right("front", markdown),
            |(_, _, place)| {
                if summary.curve.pareto.contains(place) { "*" } else { "" }
            },
        )
        .with(left("the SLO", judged(markdown)), |(point, ..)| stands_cell(point))
        .table;
    Table { look: TableStyle::Links, ..table }
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

fn standing_tone(standing: &PointStanding) -> Tone {
    match standing {
        PointStanding::Met => Tone::Good,
        PointStanding::Missed(_) => Tone::Bad,
        PointStanding::Unclear(_) => Tone::Doubt,
    }
}

/// Whether to believe a point, and what speaks against it.
fn verdict_cell(verdict: Verdict, doubts: &[String]) -> Cell {
    let why = if doubts.is_empty() { String::new() } else { format!(": {}", doubts.join(", ")) };
    Cell::from(format!("{}{why}", verdict.name())).tone(verdict.into())
}
