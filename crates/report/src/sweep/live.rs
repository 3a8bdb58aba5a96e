//! While a sweep goes on: what it will take, a line for each point, and the growing curve.

use goodput_campaign::curve::delivered_share;
use goodput_campaign::sweep::{
    Figures, Goodput, GoodputState, Point, PointSpread, PointSummary, SweepPlan, SweepStep,
    TimeEstimate, next_sweep_step,
};
use goodput_stats::rough_duration;

use super::charts::latency_plot;
use super::{
    Latency, axis_unit, level_text, level_value_text, point_standing_text, points_on_curve,
    purpose_text,
};
use goodput_document::clip::fit_page;
use goodput_document::draw_text_plot;
use goodput_document::number::{amount, percent, plural};

use crate::estimate::guessed_duration;
use goodput_document::render::text::WIDTH;
use goodput_model::escape_control;

/// Lines of the live block at most.
const LINES: usize = 20;
/// Rows of its chart, and points in words below it.
const ROWS: usize = 10;
const LATEST: usize = 3;

/// How long a sweep will take, and what for.
pub fn sweep_estimate(estimate: &TimeEstimate) -> String {
    let part = |(name, seconds): &(String, f64)| {
        format!("{} {}", escape_control(name), guessed_duration(*seconds))
    };
    let parts: Vec<String> = estimate.parts.iter().map(part).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    let points = if estimate.points == 1 { "point" } else { "points" };
    format!("{} for about {} {points}{parts}", rough_duration(estimate.seconds), estimate.points)
}

/// One line about a point that was just measured; the total where it is known.
pub fn sweep_point_line(point: &PointSummary, of: Option<u32>) -> String {
    let (ask, figures) = (&point.point.ask, &point.point.figures);
    let of = of.map_or(String::new(), |of| format!("/{}", of.max(ask.number)));
    let mut parts = Vec::new();
    if let Some(good) = figures.attainment {
        parts.push(point_standing_text(point));
        parts.push(format!("{} good", percent(good.value)));
    }
    let spread = [Latency::Ttft, Latency::E2e]
        .into_iter()
        .map(|latency| (latency, latency.spread_of(figures)))
        .find(|(_, spread)| spread.p50.is_some());
    if let Some((latency, spread)) = spread {
        let [p50, p99] = [spread.p50, spread.p99]
            .map(|figure| figure.map_or("–".to_owned(), |figure| short_ms(figure.value)));
        parts.push(format!("{} p50/p99 {p50}/{p99} ms", latency.title()));
    }
    // Without a promise there is room.
    if figures.attainment.is_none() {
        let share = delivered_share(figures).filter(|share| *share < 0.97);
        parts.extend(share.map(|share| format!("{} answered", percent(share.max(0.0)))));
        parts.extend(figures.output_tps.map(|tps| format!("{} tok/s", amount(tps))));
    }
    let line = format!(
        "{}{of} {} {} {}: {}",
        ask.number,
        level_text(ask.level),
        axis_unit(ask.level.axis()),
        purpose_text(ask.purpose),
        parts.join(" · ")
    );
    fit_page(&line, WIDTH).trim_end().to_owned()
}

fn short_ms(ms: f64) -> String {
    match ms {
        ms if !ms.is_finite() => "–".to_owned(),
        ms if ms < 9.95 => format!("{ms:.1}"),
        ms if ms < 1e7 => format!("{ms:.0}"),
        ms => format!("{ms:.0e}"),
    }
}

/// The curve so far, the latest points and what is being done, in at most 20 lines.
pub fn sweep_progress_page(
    points: &[PointSummary],
    plan: &SweepPlan,
    answer: Option<&Goodput>,
    left: &str,
) -> String {
    let measured: Vec<Point> = points.iter().map(|point| point.point.clone()).collect();
    let now = match next_sweep_step(plan, &measured) {
        SweepStep::Measure(ask) => format!(
            "measuring {} {} ({})",
            level_text(ask.level),
            axis_unit(ask.level.axis()),
            purpose_text(ask.purpose)
        ),
        SweepStep::Done => "all measured".to_owned(),
    };
    let left = if left.is_empty() { String::new() } else { format!(" · {left}") };
    let mut page = format!("{} · {now}{left}\n", plural(points.len() as u64, "point"));
    let shown = points_on_curve(points);
    if !shown.is_empty() {
        page.push_str(&draw_text_plot(&latency_plot(&shown, plan, answer, ROWS)));
    }
    for point in points.iter().skip(points.len().saturating_sub(LATEST)) {
        page.push_str(&sweep_point_line(point, None));
        page.push('\n');
    }
    page.push_str(&answer_so_far(answer, plan));
    let lines: Vec<&str> = page.lines().take(LINES).collect();
    fit_page(&lines.join("\n"), WIDTH)
}

fn answer_so_far(answer: Option<&Goodput>, plan: &SweepPlan) -> String {
    let known = sweep_so_far(answer, plan);
    match answer {
        Some(goodput) => format!("so far with {}: {known}\n", escape_control(&goodput.slo)),
        None if known.is_empty() => known,
        None => known + "\n",
    }
}

/// What is known of the answer, in a few words; nothing if none is looked for.
pub fn sweep_so_far(answer: Option<&Goodput>, plan: &SweepPlan) -> String {
    let Some(goodput) = answer else {
        return if plan.slo.is_some() { "no goodput yet" } else { "" }.to_owned();
    };
    let number = |level: f64| level_value_text(goodput.axis, level);
    let unit = axis_unit(goodput.axis);
    match (goodput.level(), goodput.rejected) {
        (Some(low), Some(high)) => {
            format!("{} {unit} kept, {} over the limit", number(low), number(high))
        }
        (Some(low), None) => format!("{} {unit} kept", number(low)),
        (None, Some(high)) => format!("{} {unit} over the limit, none kept", number(high)),
        (None, None) if goodput.state == GoodputState::Unreachable => "no load keeps it".to_owned(),
        (None, None) => "no goodput yet".to_owned(),
    }
}

/// What a curve of the points so far shows.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepAxes {
    /// Of the load: `req/s`, `users`.
    pub unit: &'static str,
    /// The latency over it: `TTFT`.
    pub latency: &'static str,
    /// The promise on it in milliseconds, and its words.
    pub limit: Option<(f64, String)>,
    of: Latency,
}

impl SweepAxes {
    /// That latency of a point.
    pub fn spread_of(&self, figures: &Figures) -> PointSpread {
        self.of.spread_of(figures)
    }
}

/// What a curve of these points shows.
pub fn sweep_axes(points: &[PointSummary], plan: &SweepPlan) -> SweepAxes {
    let of = Latency::choose(plan.slo.as_ref(), &points_on_curve(points));
    let limit = of.slo_line(plan.slo.as_ref());
    SweepAxes { unit: axis_unit(plan.axis), latency: of.title(), limit, of }
}

/// What a point was for, and whether it keeps the SLO.
pub fn point_words(point: &PointSummary) -> (&'static str, String) {
    (purpose_text(point.point.ask.purpose), point_standing_text(point))
}
