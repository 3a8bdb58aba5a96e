//! The charts of a sweep.

use goodput_campaign::sweep::{
    Axis, Figures, Goodput, PointSpread, PointSummary, SweepPlan, SweepSummary,
};
use goodput_model::{MetricName, Slo, SloMetric, SloStatistic, SloTerm};

use super::browser::{load, server, users};
use super::{axis_unit, level_value_text, points_on_curve};
use goodput_document::TextPlot;
use goodput_document::number::amount;
use goodput_document::svg::{Chart, Rule};
use goodput_model::escape_control;

/// Rows of a chart of the page.
const ROWS: usize = 12;
/// Levels that span more than this stand on a logarithmic axis.
const WIDE: f64 = 20.0;

/// The latency that a chart shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Latency {
    Ttft,
    Tpot,
    Itl,
    E2e,
}

impl Latency {
    pub(crate) const ALL: [Self; 4] = [Self::Ttft, Self::Tpot, Self::Itl, Self::E2e];

    /// The first that was promised and measured, else the first that was measured.
    pub(crate) fn choose(slo: Option<&Slo>, points: &[&PointSummary]) -> Self {
        let is_seen = |latency: &Self| {
            points.iter().any(|point| latency.spread_of(&point.point.figures).p50.is_some())
        };
        let promised = Self::ALL.into_iter().filter(|latency| latency.slo_line(slo).is_some());
        promised.chain(Self::ALL).find(is_seen).unwrap_or(Self::Ttft)
    }

    pub(crate) fn spread_of(self, figures: &Figures) -> PointSpread {
        match self {
            Self::Ttft => figures.ttft_ms,
            Self::Tpot => figures.tpot_ms,
            Self::Itl => figures.itl_ms,
            Self::E2e => figures.e2e_ms,
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Ttft => "TTFT",
            Self::Tpot => "TPOT",
            Self::Itl => "ITL",
            Self::E2e => "E2E",
        }
    }

    /// Its chart's name.
    pub(crate) fn chart_name(self) -> &'static str {
        match self {
            Self::Ttft => "ttft-over-load",
            Self::Tpot => "tpot-over-load",
            Self::Itl => "itl-over-load",
            Self::E2e => "e2e-over-load",
        }
    }

    /// That of the chart over throughput.
    pub(crate) fn throughput_chart_name(self) -> &'static str {
        match self {
            Self::Ttft => "ttft-over-throughput",
            Self::Tpot => "tpot-over-throughput",
            Self::Itl => "itl-over-throughput",
            Self::E2e => "e2e-over-throughput",
        }
    }

    /// That of the chart of open and closed loops over what the server completes.
    pub(crate) fn loops_chart(self) -> &'static str {
        match self {
            Self::Ttft => "ttft-by-loop",
            Self::Tpot => "tpot-by-loop",
            Self::Itl => "itl-by-loop",
            Self::E2e => "e2e-by-loop",
        }
    }

    /// The limit on it, that of the 99th percentile before others.
    pub(crate) fn slo_line(self, slo: Option<&Slo>) -> Option<(f64, String)> {
        let about = self.slo_terms(slo);
        let p99 = about.iter().find(|term| term.statistic == SloStatistic::Percentile(99.0));
        let term = p99.or(about.first())?;
        Some((term.limit.base, format!("SLO {}", escape_control(&term.to_string()))))
    }

    /// The limits on it, in their order; those that grow with the prompt are left out.
    pub(crate) fn slo_terms(self, slo: Option<&Slo>) -> Vec<&SloTerm> {
        let metric = SloMetric::Request(match self {
            Self::Ttft => MetricName::Ttft,
            Self::Tpot => MetricName::Tpot,
            Self::Itl => MetricName::Itl,
            Self::E2e => MetricName::E2e,
        });
        let is_line = |term: &&SloTerm| {
            term.metric == metric && !term.relation.is_floor() && !term.limit.is_linear()
        };
        slo.map_or(Vec::new(), |slo| slo.terms.iter().filter(is_line).collect())
    }
}

/// What stands on the horizontal axis, and whether it is logarithmic.
pub(crate) fn level_axis(axis: Axis, points: &[&PointSummary]) -> (&'static str, bool) {
    let levels = || points.iter().map(|point| point.point.ask.level.value()).filter(|v| *v > 0.0);
    let (low, high) = (levels().min_by(f64::total_cmp), levels().max_by(f64::total_cmp));
    let is_wide = low.zip(high).is_some_and(|(low, high)| high / low > WIDE);
    match axis {
        Axis::Rate => ("offered req/s", is_wide),
        Axis::Concurrency => ("users", is_wide),
    }
}

/// Latency over load with the promise and the answer, on this many rows of a terminal.
pub(super) fn latency_plot(
    points: &[&PointSummary],
    plan: &SweepPlan,
    goodput: Option<&Goodput>,
    rows: usize,
) -> TextPlot {
    let latency = Latency::choose(plan.slo.as_ref(), points);
    let place = goodput.and_then(|goodput| {
        let confirmed = goodput.level()?;
        let text = format!("goodput {}", level_value_text(goodput.axis, confirmed));
        Some(Rule::Place(confirmed, text))
    });
    let line = latency.slo_line(plan.slo.as_ref()).map(|(at, text)| Rule::Height(at, text));
    let rules = line.into_iter().chain(place).collect();
    let chart = Chart { rules, ..load::latency_chart(points, plan.axis, latency) };
    let over = level_axis(plan.axis, points).0;
    TextPlot { title: format!("{} in ms (logarithmic) over {over}", latency.title()), rows, chart }
}

/// Latency over load, as the page has it.
pub(super) fn latency_over_load(summary: &SweepSummary) -> Option<TextPlot> {
    let points = points_on_curve(&summary.points);
    let goodput = summary.goodput.as_ref();
    (!points.is_empty()).then(|| latency_plot(&points, &summary.plan, goodput, ROWS))
}

/// Those answered, and the good ones.
pub(super) fn goodput_plot(summary: &SweepSummary) -> Option<TextPlot> {
    let mut chart = load::goodput_charts(summary).into_iter().next()?;
    // The peak is a place here, and no series.
    chart.series.truncate(2);
    chart.series.iter_mut().skip(1).for_each(|good| good.tone = 0);
    chart.rules =
        peak_goodput(summary).map(|(at, text)| Rule::Place(at, text)).into_iter().collect();
    let over = level_axis(summary.plan.axis, &points_on_curve(&summary.points)).0;
    let title = format!("Requests per second over {over}: those answered, and the good ones");
    Some(TextPlot { title, rows: ROWS, chart })
}

/// The level with the most good requests per second, and so in words.
pub(crate) fn peak_goodput(summary: &SweepSummary) -> Option<(f64, String)> {
    let point = &summary.points.get(summary.curve.peak?)?.point;
    let (at, good) = (point.ask.level.value(), point.figures.goodput_rps?.value);
    let text = format!(
        "peak {} good req/s at {} {}",
        amount(good),
        level_value_text(summary.plan.axis, at),
        axis_unit(summary.plan.axis)
    );
    Some((at, text))
}

/// Whose output it is: that of a GPU, where anybody said how many there are.
pub(crate) fn gpus_and_label(summary: &SweepSummary) -> (f64, String) {
    match summary.sweep.gpus.filter(|gpus| *gpus > 0) {
        Some(gpus) => (f64::from(gpus), format!("per GPU (of {gpus})")),
        None => (1.0, "of the server (GPU count not given)".to_owned()),
    }
}

/// What a user gets (median) and what a GPU gives at each of these points, in output tok/s.
pub(crate) fn user_speeds<'a>(
    points: &[&'a PointSummary],
    gpus: f64,
) -> Vec<(f64, f64, &'a PointSummary)> {
    let dot = |point: &&'a PointSummary| {
        let figures = &point.point.figures;
        Some((figures.user_tps.p50?.value, figures.output_tps? / gpus, *point))
    };
    points.iter().filter_map(dot).collect()
}

/// A chart of the browser on a terminal, where it has something to show.
pub(super) fn to_text_plot(chart: Chart, title: &str) -> Option<TextPlot> {
    (!chart.is_empty()).then(|| TextPlot { title: title.to_owned(), rows: ROWS - 2, chart })
}

/// What a user gets against what a GPU gives.
pub(super) fn user_speed_plot(summary: &SweepSummary) -> Option<TextPlot> {
    let chart = users::user_speed_chart(summary);
    let title = chart.title.clone();
    to_text_plot(chart, &title)
}

/// The batch, where the server tells it, and the median of this at each point.
pub(crate) fn batch_medians(points: &[&PointSummary], latency: Latency) -> Vec<(f64, f64)> {
    let dot = |point: &&PointSummary| {
        let figures = &point.point.figures;
        Some((figures.batch?, latency.spread_of(figures).p50?.value))
    };
    points.iter().filter_map(dot).collect()
}

/// TTFT and TPOT over the batch, where the server tells it.
pub(super) fn batch_plot(summary: &SweepSummary) -> Option<TextPlot> {
    to_text_plot(
        server::batch_chart(summary),
        "Medians in ms (logarithmic) over the server's batch size",
    )
}
