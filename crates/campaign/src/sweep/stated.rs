//! The figures that a sweep is quoted by, each with the condition it was measured under.

use serde::{Deserialize, Serialize};

use super::curve::{has_fallen_behind, is_on_curve};
use super::planner::weighted_mean;
use super::{
    Axis, Bounded, Figures, Goodput, KeptLoad, KeptSupport, Level, PointSpread, PointSummary,
    SweepFacts, SweepPlan,
};

/// A metric, its value, and the condition it was measured under.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatedFigure {
    /// `TTFT p99`, `output tokens`, `max load (p99 ttft < 500ms)`.
    pub metric: String,
    /// The figure with its interval; none if no measured load has it.
    pub value: Option<Bounded>,
    /// Its unit.
    pub unit: String,
    /// Load, workload and number of requests; for a highest load what was measured there.
    pub condition: String,
}

impl StatedFigure {
    fn new(metric: String, unit: &str, value: Option<Bounded>, condition: String) -> Self {
        Self { metric, value, unit: unit.to_owned(), condition }
    }
}

/// Latency and throughput at the answer, or without one at the highest load that the server keeps up
/// with; then the highest load for each term of the SLO.
pub(super) fn stated(
    facts: &SweepFacts,
    plan: &SweepPlan,
    points: &[PointSummary],
    goodput: Option<&Goodput>,
    kept: &[KeptLoad],
) -> Vec<StatedFigure> {
    let is_of_axis =
        |point: &&PointSummary| is_on_curve(point) && point.point.ask.level.axis() == plan.axis;
    let keeps_up = points.iter().filter(is_of_axis).filter(|point| !has_fallen_behind(point));
    let highest = || keeps_up.map(|point| point.point.ask.level.value()).max_by(f64::total_cmp);
    let Some(level) = goodput.and_then(Goodput::level).or_else(highest) else {
        return Vec::new();
    };
    let is_there = |point: &&PointSummary| {
        is_of_axis(point) && (point.point.ask.level.value() - level).abs() <= 1e-6 * level
    };
    let there: Vec<&Figures> =
        points.iter().filter(is_there).map(|point| &point.point.figures).collect();
    let condition = condition(facts, plan, &there, level);
    let mut all = latencies(&there, &condition);
    all.extend(speeds(&there, &condition));
    all.extend(goodput.into_iter().flat_map(|found| in_tokens(facts, found, &there)));
    all.extend(kept.iter().filter_map(|load| highest_load(plan, load)));
    all
}

/// A latency of a point.
type SpreadOf = fn(&Figures) -> PointSpread;

/// A percentile of a latency.
type PercentileOf = fn(PointSpread) -> Option<Bounded>;

fn latencies(there: &[&Figures], condition: &str) -> Vec<StatedFigure> {
    let figure = |metric: String, unit: &str, value| {
        StatedFigure::new(metric, unit, value, condition.to_owned())
    };
    let spreads: [(&str, SpreadOf); 3] = [
        ("TTFT", |figures| figures.ttft_ms),
        ("ITL", |figures| figures.itl_ms),
        ("TPOT", |figures| figures.tpot_ms),
    ];
    let percentiles: [(&str, PercentileOf); 2] =
        [("p50", |spread| spread.p50), ("p99", |spread| spread.p99)];
    let mut all = Vec::new();
    for (name, spread) in spreads {
        for (percent, of) in percentiles {
            let value = pooled(there, |figures| of(spread(figures)));
            all.push(figure(format!("{name} {percent}"), "ms", value));
        }
    }
    let tps = pooled(there, |figures| figures.output_tps.map(Bounded::bare));
    all.push(figure("output tokens".to_owned(), "tok/s", tps));
    all
}

/// How fast one answer is decoded, and how fast a prompt is taken in: estimates from the medians.
fn speeds(there: &[&Figures], condition: &str) -> Vec<StatedFigure> {
    // The longer the time, the lower the speed.
    let per = |tokens: f64, time: Bounded| {
        let speed = |ms: f64| (ms > 0.0).then(|| tokens * 1e3 / ms);
        let (low, high) = (time.high.and_then(speed), time.low.and_then(speed));
        Some(Bounded { value: speed(time.value)?, low, high })
    };
    let decode = pooled(there, |figures| per(1.0, figures.tpot_ms.p50?));
    let prefill = pooled(there, |figures| per(figures.input_tokens?, figures.ttft_ms.p50?));
    let stated = |metric: &str, value, how: &str| {
        StatedFigure::new(metric.to_owned(), "tok/s", value, format!("{how}; {condition}"))
    };
    vec![
        stated("decode speed", decode, "of one answer: 1 / TPOT p50"),
        stated("prefill speed", prefill, "of one prompt, queueing included: its tokens / TTFT p50"),
    ]
}

/// The answer in output tokens per second, of the server and of each of its GPUs.
fn in_tokens(facts: &SweepFacts, goodput: &Goodput, there: &[&Figures]) -> Vec<StatedFigure> {
    let tps = pooled(there, |figures| figures.output_tps.map(Bounded::bare));
    let (Some(tps), Some(level)) = (tps, goodput.level()) else { return Vec::new() };
    let how = if goodput.confirmed.is_some() { "confirmed" } else { "as measured" };
    let stated = |metric: &str, value: f64| {
        let condition = format!(
            "{}; {}, {how}",
            goodput.slo,
            Level::from_value(goodput.axis, level).with_unit()
        );
        StatedFigure::new(metric.to_owned(), "tok/s", Some(Bounded::bare(value)), condition)
    };
    let gpus = facts.gpus.filter(|gpus| *gpus > 0).map(f64::from);
    let each = gpus.map(|gpus| stated("goodput per GPU", tps.value / gpus));
    std::iter::once(stated("goodput", tps.value)).chain(each).collect()
}

/// The mean of a figure over the points that have it.
fn pooled(there: &[&Figures], of: impl Fn(&Figures) -> Option<Bounded>) -> Option<Bounded> {
    weighted_mean(there.iter().filter_map(|figures| Some((of(figures)?, figures.requests))))
}

/// `open loop, 20 req/s, chat, 1200 requests`
fn condition(facts: &SweepFacts, plan: &SweepPlan, there: &[&Figures], level: f64) -> String {
    let requests: u64 = there.iter().map(|figures| figures.requests).sum();
    let load = match plan.axis {
        Axis::Rate => "open loop",
        Axis::Concurrency => "closed loop",
    };
    format!(
        "{load}, {}, {}, {requests} requests",
        Level::from_value(plan.axis, level).with_unit(),
        facts.workload
    )
}

/// The highest load for a term, and what it costs to go by it.
fn highest_load(plan: &SweepPlan, load: &KeptLoad) -> Option<StatedFigure> {
    let term = load.term.as_ref()?;
    let how = match load.support {
        KeptSupport::Confirmed => "confirmed by independent runs",
        KeptSupport::Measured => "as measured",
        KeptSupport::Missed => "missed by every measured load",
        KeptSupport::Unknown => "no measured load has usable figures",
    };
    let over = load.missed.map_or_else(
        || "no measured load above it misses".to_owned(),
        |missed| format!("missed at {}", Level::from_value(plan.axis, missed).with_unit()),
    );
    let unit = match plan.axis {
        Axis::Rate => "req/s",
        Axis::Concurrency => "users",
    };
    let value = load.level.map(Bounded::bare);
    let condition =
        if value.is_some() { format!("{term}; {how}; {over}") } else { format!("{term}; {how}") };
    Some(StatedFigure::new("max load".to_owned(), unit, value, condition))
}
