//! The figures that a sweep is quoted by, each with the condition it was measured under.

use serde::{Deserialize, Serialize};

use super::curve::{is_lost, is_on_curve};
use super::planner::mean;
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
    let keeps_up = points.iter().filter(is_of_axis).filter(|point| !is_lost(point));
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
    let pooled = |of: &dyn Fn(&Figures) -> Option<Bounded>| {
        mean(there.iter().filter_map(|figures| Some((of(figures)?, figures.requests))))
    };
    let figure = |metric: &str, unit: &str, value| StatedFigure {
        metric: metric.to_owned(),
        value,
        unit: unit.to_owned(),
        condition: condition.to_owned(),
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
            let value = pooled(&|figures| of(spread(figures)));
            all.push(figure(&format!("{name} {percent}"), "ms", value));
        }
    }
    all.push(figure("output tokens", "tok/s", pooled(&|figures| figures.output_tps.map(bare))));
    all
}

/// How fast one answer is decoded, and how fast a prompt is taken in: estimates from the medians.
fn speeds(there: &[&Figures], condition: &str) -> Vec<StatedFigure> {
    let pooled = |of: &dyn Fn(&Figures) -> Option<Bounded>| {
        mean(there.iter().filter_map(|figures| Some((of(figures)?, figures.requests))))
    };
    // The longer the time, the lower the speed.
    let per = |tokens: f64, time: Bounded| {
        let speed = |ms: f64| (ms > 0.0).then(|| tokens * 1e3 / ms);
        let (low, high) = (time.high.and_then(speed), time.low.and_then(speed));
        Some(Bounded { value: speed(time.value)?, low, high })
    };
    let decode = pooled(&|figures| per(1.0, figures.tpot_ms.p50?));
    let prefill = pooled(&|figures| per(figures.input_tokens?, figures.ttft_ms.p50?));
    let stated = |metric: &str, value, how: &str| StatedFigure {
        metric: metric.to_owned(),
        value,
        unit: "tok/s".to_owned(),
        condition: format!("{how}; {condition}"),
    };
    vec![
        stated("decode speed", decode, "of one answer: 1 / TPOT p50"),
        stated("prefill speed", prefill, "of one prompt, queueing included: its tokens / TTFT p50"),
    ]
}

/// The answer in output tokens per second, of the server and of each of its GPUs.
fn in_tokens(facts: &SweepFacts, goodput: &Goodput, there: &[&Figures]) -> Vec<StatedFigure> {
    let tps = mean(there.iter().filter_map(|of| Some((bare(of.output_tps?), of.requests))));
    let (Some(tps), Some(level)) = (tps, goodput.level()) else { return Vec::new() };
    let how = if goodput.confirmed.is_some() { "confirmed" } else { "as measured" };
    let stated = |metric: &str, value: f64| StatedFigure {
        metric: metric.to_owned(),
        value: Some(bare(value)),
        unit: "tok/s".to_owned(),
        condition: format!("{}; {}, {how}", goodput.slo, shown(goodput.axis, level)),
    };
    let gpus = facts.gpus.filter(|gpus| *gpus > 0).map(f64::from);
    let each = gpus.map(|gpus| stated("goodput per GPU", tps.value / gpus));
    std::iter::once(stated("goodput", tps.value)).chain(each).collect()
}

fn bare(value: f64) -> Bounded {
    Bounded { value, low: None, high: None }
}

/// `open loop, 20 req/s, chat, 1200 requests`
fn condition(facts: &SweepFacts, plan: &SweepPlan, there: &[&Figures], level: f64) -> String {
    let requests: u64 = there.iter().map(|figures| figures.requests).sum();
    let load = match plan.axis {
        Axis::Rate => "open loop",
        Axis::Concurrency => "closed loop",
    };
    format!("{load}, {}, {}, {requests} requests", shown(plan.axis, level), facts.workload)
}

fn shown(axis: Axis, level: f64) -> String {
    match Level::on(axis, level) {
        Level::Rate(rate) => format!("{} req/s", (rate * 1e3).round() / 1e3),
        Level::Users(users) => format!("{users} users"),
    }
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
        |missed| format!("missed at {}", shown(plan.axis, missed)),
    );
    let unit = match plan.axis {
        Axis::Rate => "req/s",
        Axis::Concurrency => "users",
    };
    let value = load.level.map(bare);
    let condition =
        if value.is_some() { format!("{term}; {how}; {over}") } else { format!("{term}; {how}") };
    Some(StatedFigure { metric: "max load".to_owned(), value, unit: unit.to_owned(), condition })
}
