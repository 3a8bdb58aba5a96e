//! The run over time, by the client, the server and the GPUs.

use goodput_stats::{Timeline, TimelinePoint};

use super::{HTML, outside_window_rules};
use crate::view::RunView;
use goodput_document::number::{amount, cell_number, count};
use goodput_document::svg::{Chart, ChartSeries, Dot, Rule, Shape};
use goodput_document::{Block, Section};

const TIME: &str = "s since the first instant";

pub(super) fn timeline_section(view: &RunView<'_>) -> Section {
    let charts = timeline_charts(view);
    let is_shaded = charts.iter().any(|chart| !chart.rules.is_empty());
    let remark = Block::remark_note("Shaded parts lie outside the measured window.");
    Section::with_name("timeline", "Timeline", "The run over time")
        .with_some(HTML, is_shaded.then_some(remark))
        .with_on(HTML, Block::Charts(charts))
}

pub(super) fn timeline_charts(view: &RunView<'_>) -> Vec<Chart> {
    let look = TimelineCharts::new(view);
    let all = [
        look.in_flight_chart(),
        look.tokens_chart(),
        look.flow_chart(),
        look.ttft_chart(),
        look.errors_chart(),
        look.kv_cache_chart(),
        look.gpu_busy_chart(),
        look.gpu_power_chart(),
    ];
    all.into_iter().filter(|chart| !chart.is_empty()).collect()
}

/// Everything that is drawn over time.
struct TimelineCharts<'a> {
    client: &'a Timeline,
    server: &'a [TimelinePoint],
    rules: Vec<Rule>,
}

impl<'a> TimelineCharts<'a> {
    fn new(view: &RunView<'a>) -> Self {
        let client = &view.details.timeline;
        let server = view.summary.server.as_ref().map_or(&[][..], |server| &server.timeline);
        let bins = client.in_flight.len().max(client.tokens_per_s.len());
        let end = (bins as f64 * client.bin_s).max(view.summary.window.end_s);
        Self { client, server, rules: outside_window_rules(view.summary, end) }
    }

    /// A line by the client: the middle of each bin.
    fn client_series(
        &self,
        name: &str,
        tone: usize,
        values: impl Iterator<Item = f64>,
    ) -> ChartSeries {
        let at =
            |(bin, value): (usize, f64)| Dot::new((bin as f64 + 0.5) * self.client.bin_s, value);
        let dots = values.enumerate().map(at).collect();
        ChartSeries::new(name, Shape::Line, tone, dots)
    }

    /// A level by the server, look by look; empty if it tells nothing.
    fn server_series(
        &self,
        name: &str,
        tone: usize,
        level: fn(&TimelinePoint) -> Option<f64>,
    ) -> ChartSeries {
        let dots = self.server.iter().filter_map(|point| Some(Dot::new(point.at_s, level(point)?)));
        ChartSeries::new(name, Shape::Line, tone, dots.collect())
    }

    fn chart(
        &self,
        name: &'static str,
        title: &str,
        unit: &str,
        series: Vec<ChartSeries>,
    ) -> Chart {
        let highest = series.iter().filter_map(|series| {
            let shown = series.dots.iter().filter(|dot| dot.y.is_finite());
            let most = shown.clone().max_by(|a, b| a.y.total_cmp(&b.y))?;
            // A line that never changes has no highest place.
            shown.clone().any(|dot| dot.y != most.y).then_some(())?;
            Some(format!("{} is highest at {:.0} s: {}", series.name, most.x, figure_text(most.y)))
        });
        let highest: Vec<_> = highest.collect();
        // A chart without words has no name for a screen reader.
        let level = |series: &ChartSeries| {
            series
                .dots
                .first()
                .map(|dot| format!("{} stays at {}", series.name, figure_text(dot.y)))
        };
        let level: Vec<_> = series.iter().filter_map(level).collect();
        let words = if highest.is_empty() { level } else { highest };
        Chart::new(name, title)
            .with_caption(words.join("; ") + ".")
            .with_axes(TIME, unit)
            .with_series(series.into_iter().filter(|series| !series.dots.is_empty()))
            .with_rules(self.rules.clone())
    }

    fn in_flight_chart(&self) -> Chart {
        let in_flight = self.client.in_flight.iter().copied();
        let series = vec![
            self.client_series("in flight, by the client", 0, in_flight),
            as_steps(self.server_series("running, by the server", 2, |point| point.running)),
            as_steps(self.server_series("waiting, by the server", 1, |point| point.waiting)),
        ];
        self.chart("timeline-requests", "Requests in flight", "requests", series)
    }

    fn tokens_chart(&self) -> Chart {
        let rate = self.client.tokens_per_s.iter().copied();
        let series = vec![
            self.client_series("by the client", 0, rate),
            self.server_series("by the server", 1, |point| point.generation_per_s),
        ];
        self.chart("timeline-tokens", "Output tokens per second", "tok/s", series)
    }

    fn flow_chart(&self) -> Chart {
        let Timeline { arrivals_per_s, completions_per_s, .. } = self.client;
        let series = vec![
            self.client_series("scheduled", 0, arrivals_per_s.iter().copied()),
            self.client_series("completed", 1, completions_per_s.iter().copied()),
        ];
        self.chart("timeline-flow", "Requests scheduled and completed", "req/s", series)
    }

    fn ttft_chart(&self) -> Chart {
        let values = &self.client.ttft_p50_ms;
        // What is not known leaves a gap.
        let is_known = values.iter().any(Option::is_some);
        let known = values.iter().filter(|_| is_known).map(|value| value.unwrap_or(f64::NAN));
        let series = vec![self.client_series("TTFT p50", 0, known)];
        self.chart(
            "timeline-ttft",
            "TTFT by the instant at which requests were scheduled",
            "ms",
            series,
        )
    }

    fn errors_chart(&self) -> Chart {
        let errors = &self.client.errors;
        let total: u64 = errors.iter().sum();
        let dot = |(bin, n): (usize, &u64)| {
            let at = bin as f64 * self.client.bin_s;
            Dot::with_note(at, *n as f64, format!("{} from {at:.0} s on", count(*n)))
        };
        let dots =
            if total == 0 { Vec::new() } else { errors.iter().enumerate().map(dot).collect() };
        let series = vec![ChartSeries::new("failures", Shape::Bars, 5, dots)];
        let title = format!("Failures, {} in all", count(total));
        self.chart("timeline-errors", &title, &format!("per {} s", self.client.bin_s), series)
    }

    fn kv_cache_chart(&self) -> Chart {
        let series = vec![
            self.server_series("KV cache", 3, |point| point.kv_usage.map(|share| share * 100.0)),
        ];
        self.chart("timeline-kv", "KV cache in use", "%", series)
    }

    fn gpu_busy_chart(&self) -> Chart {
        let busy = self.client.gpu.iter().filter_map(|(at, busy, _)| Some((*at, (*busy)? * 100.0)));
        let series = vec![sample_series("utilisation", 4, busy)];
        self.chart("timeline-gpu", "GPU utilization, mean of all", "%", series)
    }

    fn gpu_power_chart(&self) -> Chart {
        let power: Vec<_> =
            self.client.gpu.iter().filter_map(|(at, _, watts)| Some((*at, (*watts)?))).collect();
        let series = if power.is_empty() {
            self.server_series("power", 6, |point| point.power_w)
        } else {
            sample_series("power", 6, power.into_iter())
        };
        self.chart("timeline-power", "Power of all GPUs", "W", vec![series])
    }
}

/// Requests come and go one by one.
fn as_steps(series: ChartSeries) -> ChartSeries {
    ChartSeries { shape: Shape::Steps, ..series }
}

fn sample_series(name: &str, tone: usize, values: impl Iterator<Item = (f64, f64)>) -> ChartSeries {
    let dots = values.map(|(at, value)| Dot::new(at, value)).collect();
    ChartSeries::new(name, Shape::Line, tone, dots)
}

fn figure_text(value: f64) -> String {
    if value < 100.0 { cell_number(value) } else { amount(value) }
}
