//! Curves of several results over each other.

use super::frame::wrap_page;
use super::{Overlay, OverlayCurve, encode_query, verdict_tone};
use crate::entry::{CurvePoint, FigureInterval};
use goodput_document::Cell;
use goodput_document::markup::Html;
use goodput_document::number::cell_number;
use goodput_document::render::pieces::{write_chart, write_simple_table};
use goodput_document::svg::{Chart, ChartAxis, ChartSeries, Dot, Shape};

const METRICS: [(&str, &str); 3] = [("ttft", "TTFT"), ("tpot", "TPOT"), ("e2e", "E2E")];
const PERCENTILES: [&str; 3] = ["p50", "p90", "p99"];

/// A chart whose values differ by more than this has a logarithmic axis.
const WIDE: f64 = 20.0;

/// The page with the charts.
pub(crate) fn overlay_page(overlay: &Overlay) -> String {
    let body = Html::from_fn(|html| {
        html.element("nav", &[("aria-label", "Elsewhere")], |html| {
            html.text_element("a", &[("href", "/")], "All results");
        });
        if overlay.curves.is_empty() {
            let words = "Select results with measured points in the list of all results.";
            html.text_element("p", &[("id", "none")], words);
            return;
        }
        if overlay.left_out > 0 {
            let words = format!("{} more curves are not shown.", overlay.left_out);
            html.text_element("p", &[("class", "doubt")], &words);
        }
        write_choices(html, overlay);
        write_toggles(html, overlay);
        html.element("div", &[("id", "curves")], |html| {
            for chart in &overlay_charts(overlay) {
                write_chart(html, chart);
            }
        });
        write_legend(html, overlay);
        write_points(html, overlay);
    });
    wrap_page("Overlay", "Curves of several results", &body)
}

/// Which latency is drawn.
fn write_choices(html: &mut Html, overlay: &Overlay) {
    let ids: Vec<String> =
        overlay.ids.iter().map(|id| format!("id={}", encode_query(id))).collect();
    let ids = ids.join("&");
    html.element("nav", &[("aria-label", "Latency")], |html| {
        let mut link = |metric: &str, percentile: &str, word: &str, chosen: bool| {
            let address = format!("/overlay?{ids}&metric={metric}&at={percentile}");
            let plain = [("href", address.as_str())];
            let marked = [("href", address.as_str()), ("aria-current", "true")];
            html.text_element("a", if chosen { &marked[..] } else { &plain[..] }, word);
        };
        for (metric, word) in METRICS {
            link(metric, overlay.percentile, word, metric == overlay.metric);
        }
        for percentile in PERCENTILES {
            link(overlay.metric, percentile, percentile, percentile == overlay.percentile);
        }
    });
}

/// Names of the curves, to hide them with; for the script.
fn write_toggles(html: &mut Html, overlay: &Overlay) {
    html.element("fieldset", &[("id", "toggles"), ("hidden", "")], |html| {
        html.text_element("legend", &[], "Shown");
        for (tone, curve) in overlay.curves.iter().enumerate() {
            html.element("label", &[], |html| {
                let tone = tone.to_string();
                html.open("input", &[("type", "checkbox"), ("checked", ""), ("data-tone", &tone)]);
                html.text(" ").text(&curve.name);
            });
        }
    });
}

fn overlay_charts(overlay: &Overlay) -> Vec<Chart> {
    let metric = METRICS.iter().find(|(name, _)| *name == overlay.metric);
    let metric = metric.map_or("latency", |(_, word)| word);
    let latency = format!("{metric} {} (ms)", overlay.percentile);
    let over = |x: fn(&CurvePoint) -> Option<f64>| {
        chart_series(&overlay.curves, move |point| {
            let latency = overlay.chosen_latency(point)?;
            let (y, low, high) = (latency.value, latency.low, latency.high);
            Some(Dot { x: x(point)?, y, low, high, note: overlay.tooltip(point) })
        })
    };
    let good = chart_series(&overlay.curves, |point| {
        let dot = Dot::new(point.rps?, point.goodput_rps?);
        Some(Dot { note: overlay.tooltip(point), ..dot })
    });
    let names: Vec<&str> = overlay.curves.iter().map(|curve| curve.name.as_str()).collect();
    let names = names.join("; ");
    let chart = |name, title: String, x: &str, y: ChartAxis, series| Chart {
        name,
        says: format!(
            "{title}, of {names}. Several runs at one load level are drawn as their median; bars \
             are 95 % intervals."
        ),
        title,
        x: ChartAxis::linear(x),
        y,
        series,
        rules: Vec::new(),
    };
    let loops = has_both_loops(&overlay.curves).then(|| {
        let title = format!("{metric} p50 and p99 over completed requests per second");
        let series = loops(overlay);
        let chart = chart(
            "latency-loops",
            title,
            "completed requests per second",
            chart_axis(&format!("{metric} (ms)"), &series),
            series,
        );
        let says = format!("{} Filled marks are the p50, hollow ones the p99.", chart.says);
        Chart { says, ..chart }
    });
    let by_load = over(|point| point.rps);
    let by_tokens = over(|point| point.output_tps);
    let axis = chart_axis(&latency, &by_load);
    let (load, tokens) = ("requests per second", "output tokens per second");
    let rest = [
        chart("latency-load", format!("{latency} over load"), load, axis.clone(), by_load),
        chart("latency-tokens", format!("{latency} over throughput"), tokens, axis, by_tokens),
        chart(
            "goodput-load",
            "Good requests per second over load".to_owned(),
            load,
            ChartAxis::linear("good requests per second"),
            good,
        ),
    ];
    loops.into_iter().chain(rest).collect()
}

/// Whether some of these curves are of an open loop and others of a closed one: over offered load
/// there is nothing to compare them by.
fn has_both_loops(curves: &[OverlayCurve]) -> bool {
    let mut points = curves.iter().flat_map(|curve| &curve.points);
    let first = points.next().map(|point| point.is_closed_loop);
    points.any(|point| Some(point.is_closed_loop) != first)
}

/// Median and 99th percentile of each curve, in its tone, over what the server completes.
fn loops(overlay: &Overlay) -> Vec<ChartSeries> {
    let of = |percentile: &'static str, shape| {
        let chosen = Overlay { percentile, ..overlay.clone() };
        let all = chart_series(&overlay.curves, |point| {
            let FigureInterval { value, low, high } = chosen.chosen_latency(point)?;
            let note = chosen.tooltip(point);
            Some(Dot { x: point.completed_rps?, y: value, low, high, note })
        });
        let named = all.into_iter().map(move |one| {
            let name = format!("{} {percentile}", one.name);
            ChartSeries { name, shape, ..one }
        });
        named.collect::<Vec<_>>()
    };
    let pairs = of("p50", Shape::Points).into_iter().zip(of("p99", Shape::Rings));
    pairs.flat_map(|(p50, p99)| [p50, p99]).collect()
}

fn chart_series(
    curves: &[OverlayCurve],
    dot: impl Fn(&CurvePoint) -> Option<Dot>,
) -> Vec<ChartSeries> {
    let of = |(tone, curve): (usize, &OverlayCurve)| ChartSeries {
        name: curve.name.clone(),
        shape: Shape::Points,
        tone,
        dots: group_by_level(&curve.points).filter_map(|level| median_dot(level, &dot)).collect(),
    };
    curves.iter().enumerate().map(of).collect()
}

/// Points of one level together: they are drawn next to each other.
fn group_by_level(points: &[CurvePoint]) -> impl Iterator<Item = &[CurvePoint]> {
    points.chunk_by(|a, b| match a.at.zip(b.at) {
        // A different last digit is the same level.
        Some((a, b)) => (a - b).abs() <= 1e-9 * a.abs(),
        None => a.level == b.level && !a.level.is_empty(),
    })
}

/// The median run of a level: a line through all of them would say nothing.
fn median_dot(level: &[CurvePoint], dot: impl Fn(&CurvePoint) -> Option<Dot>) -> Option<Dot> {
    let mut dots: Vec<Dot> = level.iter().filter_map(dot).collect();
    dots.sort_by(|a, b| a.y.total_cmp(&b.y));
    let count = dots.len();
    let mut dot = dots.into_iter().nth(count.saturating_sub(1) / 2)?;
    if count > 1 {
        dot.note = format!("{} · the median of {count} runs", dot.note);
    }
    Some(dot)
}

fn chart_axis(label: &str, series: &[ChartSeries]) -> ChartAxis {
    let values = || series.iter().flat_map(|series| series.dots.iter().map(|dot| dot.y));
    let low = values().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    let high = values().fold(0.0, f64::max);
    if high > WIDE * low { ChartAxis::log(label) } else { ChartAxis::linear(label) }
}

impl Overlay {
    fn chosen_latency(&self, point: &CurvePoint) -> Option<FigureInterval> {
        let spread = match self.metric {
            "tpot" => &point.tpot,
            "e2e" => &point.e2e,
            _ => &point.ttft,
        };
        match self.percentile {
            "p50" => spread.p50,
            "p90" => spread.p90,
            _ => spread.p99,
        }
    }

    /// The tooltip of a point.
    fn tooltip(&self, point: &CurvePoint) -> String {
        let latency =
            self.chosen_latency(point).map(|latency| format!("{} ms", cell_number(latency.value)));
        let tokens = point.output_tps.map(|value| format!("{} tokens/s", cell_number(value)));
        let parts = [Some(point.level.clone()), latency, tokens, Some(point.verdict.clone())];
        let parts: Vec<String> =
            parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        parts.join(" · ")
    }
}

/// Which curve is of which result.
fn write_legend(html: &mut Html, overlay: &Overlay) {
    html.text_element("h2", &[], "Results");
    html.element("ul", &[("class", "sides")], |html| {
        for curve in &overlay.curves {
            html.element("li", &[], |html| {
                html.text_element(
                    "a",
                    &[("href", &format!("/run/{}", encode_query(&curve.id)))],
                    &curve.name,
                );
                html.text_element("span", &[("class", "small")], &curve.about);
            });
        }
    });
}

fn write_points(html: &mut Html, overlay: &Overlay) {
    let number = |value: Option<f64>| Cell::from(value.map_or_else(|| "–".to_owned(), cell_number));
    let rows: Vec<Vec<Cell>> = overlay
        .curves
        .iter()
        .flat_map(|curve| curve.points.iter().map(move |point| (curve, point)))
        .map(|(curve, point)| {
            vec![
                curve.name.clone().into(),
                point.level.clone().into(),
                number(point.rps),
                number(point.output_tps),
                number(overlay.chosen_latency(point).map(|latency| latency.value)),
                number(point.goodput_rps),
                Cell::from(point.verdict.clone()).tone(verdict_tone(&point.verdict)),
            ]
        })
        .collect();
    let latency = format!("{} {} ms", overlay.metric.to_uppercase(), overlay.percentile);
    let head =
        ["Result", "Load", "req/s", "out tok/s", latency.as_str(), "Goodput req/s", "Verdict"];
    html.text_element("h2", &[], "Points");
    write_simple_table(html, "All points of the charts", &head, &rows);
}
