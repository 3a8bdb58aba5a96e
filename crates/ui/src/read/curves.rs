//! The curves of a result: what it measured at which load.

use std::path::Path;

use goodput_record::ArtifactKind;
use serde_json::Value;

use super::{SummaryParts, clean_text, clip_text, number_text, read_summary, shown_percentile};
use crate::entry::{CurvePoint, FigureInterval, PercentileSpread, ResultCurve};

/// Curves of one folder, points of one curve, and runs of one plan, at most.
const MOST_CURVES: usize = 32;
const MOST_POINTS: usize = 500;
const MOST_RUNS: u32 = 100;

pub(super) fn curves_from_summary(
    kind: ArtifactKind,
    folder: &Path,
    summary: &SummaryParts,
) -> Vec<ResultCurve> {
    let curves = match kind {
        ArtifactKind::Run => vec![unnamed_curve(vec![point_of_run(summary)])],
        ArtifactKind::Repeats => vec![unnamed_curve(points_of_repeats(folder))],
        ArtifactKind::Sweep => vec![unnamed_curve(curve_points(&summary.points))],
        ArtifactKind::Sweeps => {
            summary.configurations.iter().take(MOST_CURVES).map(configuration_curve).collect()
        }
        ArtifactKind::Comparison => side_curves(summary),
        ArtifactKind::Shadow => Vec::new(),
    };
    let tidy = |mut curve: ResultCurve| {
        curve.points.retain(|point| point.rps.is_some() || point.output_tps.is_some());
        let by = |point: &CurvePoint| point.rps.or(point.output_tps).unwrap_or_default();
        let at = |point: &CurvePoint| point.at.unwrap_or_else(|| by(point));
        // What a closed loop answers need not rise with its users.
        curve.points.sort_by(|a, b| at(a).total_cmp(&at(b)).then(by(a).total_cmp(&by(b))));
        curve.points.truncate(MOST_POINTS);
        curve
    };
    curves.into_iter().map(tidy).filter(|curve| !curve.points.is_empty()).collect()
}

fn unnamed_curve(points: Vec<CurvePoint>) -> ResultCurve {
    ResultCurve { name: String::new(), points }
}

fn point_of_run(summary: &SummaryParts) -> CurvePoint {
    let throughput = |name: &str| summary.throughput[name].as_f64();
    let spread = |metric: &str| {
        let all = &summary.metrics[metric]["percentiles"];
        // What the run's page does not show is not drawn either.
        let one =
            |which: &str| shown_percentile(&all[which]).and_then(|_| figure_interval(&all[which]));
        PercentileSpread { p50: one("50"), p90: one("90"), p99: one("99") }
    };
    CurvePoint {
        level: super::load_text(&summary.load),
        at: summary.load["concurrency"].as_f64().or_else(|| summary.load["offered_rps"].as_f64()),
        rps: summary.load["offered_rps"].as_f64().or_else(|| throughput("requests_per_s")),
        completed_rps: throughput("requests_per_s"),
        is_closed_loop: summary.load["concurrency"].is_number(),
        output_tps: throughput("output_tokens_per_s"),
        goodput_rps: summary.slo["goodput_rps"].as_f64(),
        verdict: clean_text(&summary.verdict),
        ttft: spread("ttft"),
        tpot: spread("tpot"),
        e2e: spread("e2e"),
    }
}

fn points_of_repeats(folder: &Path) -> Vec<CurvePoint> {
    let runs = (1..=MOST_RUNS).map(|number| folder.join(format!("repeat-{number}")));
    let mut points: Vec<CurvePoint> =
        runs.take_while(|run| run.is_dir()).map(|run| point_of_run(&read_summary(&run))).collect();
    // One plan is one level, whatever chance made of its arrivals.
    let at = points.first().and_then(|first| first.at);
    for point in &mut points {
        point.at = at;
    }
    points
}

/// Whether a point was measured for its level: those that warm up and closed-loop twins were not.
fn is_measured_level(point: &Value) -> bool {
    !["warm_up", "twin"].into_iter().any(|purpose| point["ask"]["purpose"] == purpose)
}

/// Whether a point is part of the curve, by the rule of `goodput_campaign::curve::is_on_curve`.
pub(super) fn is_on_curve(point: &Value) -> bool {
    let (figures, standing) = (&point["figures"], &point["standing"]);
    let spoils = ["client", "server_gone", "interrupted"];
    let is_spoiled = standing["state"] == "unclear"
        && spoils.into_iter().any(|reason| standing["because"] == reason);
    is_measured_level(point)
        && figures["verdict"] != "void"
        && figures["ended_by"] != "user"
        && figures["window_s"].as_f64().is_none_or(|window_s| window_s > 0.0)
        && !is_spoiled
}

fn curve_points(points: &[Value]) -> Vec<CurvePoint> {
    points.iter().filter(|point| is_on_curve(point)).map(curve_point).collect()
}

fn curve_point(point: &Value) -> CurvePoint {
    let figures = &point["figures"];
    let figure = |name: &str| figures[name].as_f64();
    let spread = |metric: &str| {
        let all = &figures[metric];
        PercentileSpread {
            p50: figure_interval(&all["p50"]),
            p90: figure_interval(&all["p90"]),
            p99: figure_interval(&all["p99"]),
        }
    };
    CurvePoint {
        level: level_text(&point["ask"]["level"]),
        at: level_number(&point["ask"]["level"]),
        rps: figure("offered_rps").or_else(|| figure("requests_per_s")),
        completed_rps: figure("requests_per_s"),
        is_closed_loop: point["ask"]["level"]["users"].is_number(),
        output_tps: figure("output_tps"),
        goodput_rps: figures["goodput_rps"]["value"].as_f64(),
        verdict: clean_text(&figures["verdict"]),
        ttft: spread("ttft_ms"),
        tpot: spread("tpot_ms"),
        e2e: spread("e2e_ms"),
    }
}

/// One configuration of several.
fn configuration_curve(configuration: &Value) -> ResultCurve {
    let points = configuration["sweep"]["points"].as_array().map(Vec::as_slice);
    ResultCurve {
        name: values_text(&configuration["values"]),
        points: curve_points(points.unwrap_or_default()),
    }
}

/// What was varied, in one line.
pub(super) fn values_text(values: &Value) -> String {
    let pairs = values.as_object().into_iter().flatten();
    let words: Vec<String> =
        pairs.map(|(name, value)| format!("{name}={}", clean_text(value))).collect();
    clip_text(&words.join(" "))
}

fn side_curves(summary: &SummaryParts) -> Vec<ResultCurve> {
    let levels = summary.design["levels"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |(side, facts): (usize, &Value)| {
        let own =
            summary.runs.iter().filter(|run| run["ask"]["side"].as_u64() == Some(side as u64));
        let points = own.map(|run| {
            let at = run["ask"]["level"].as_u64().and_then(|at| levels.get(at as usize));
            cell_point(run, at.unwrap_or(&Value::Null))
        });
        ResultCurve { name: clean_text(&facts["name"]), points: points.collect() }
    };
    summary.sides.iter().enumerate().take(MOST_CURVES).map(of).collect()
}

fn cell_point(run: &Value, asked: &Value) -> CurvePoint {
    let figures = &run["figures"];
    let figure = |name: &str| figures[name]["value"].as_f64();
    let spread = |metric: &str| {
        let one = |which: &str| figure_interval(&figures[format!("{metric}_{which}").as_str()]);
        PercentileSpread { p50: one("p50"), p90: one("p90"), p99: one("p99") }
    };
    CurvePoint {
        level: level_text(asked),
        at: level_number(asked),
        rps: asked["rate"].as_f64().or_else(|| figure("requests_per_s")),
        completed_rps: figure("requests_per_s"),
        is_closed_loop: asked["users"].is_number(),
        output_tps: figure("output_tokens_per_s"),
        goodput_rps: figure("goodput_rps"),
        verdict: clean_text(&run["verdict"]),
        ttft: spread("ttft"),
        tpot: spread("tpot"),
        e2e: spread("e2e"),
    }
}

/// A load level in words.
pub(super) fn level_text(level: &Value) -> String {
    match (level["rate"].as_f64(), level["users"].as_u64()) {
        (Some(rate), _) => format!("{}/s", number_text(rate)),
        (_, Some(users)) => format!("{users} users"),
        _ => String::new(),
    }
}

/// A load level as a number.
pub(super) fn level_number(level: &Value) -> Option<f64> {
    level["rate"].as_f64().or_else(|| level["users"].as_f64())
}

fn figure_interval(value: &Value) -> Option<FigureInterval> {
    let end = |name: &str| value[name].as_f64();
    Some(FigureInterval { value: end("value")?, low: end("low"), high: end("high") })
}
