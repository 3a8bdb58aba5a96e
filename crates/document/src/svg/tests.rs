#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;

fn chart() -> Chart {
    let dots = [(1.0, 10.0), (2.0, 20.0), (4.0, 80.0)];
    let dots = dots.map(|(x, y)| Dot { low: Some(y * 0.9), high: Some(y * 1.1), ..Dot::new(x, y) });
    let series = |name: &str, shape, tone| ChartSeries::new(name, shape, tone, dots.to_vec());
    Chart {
        name: "latency",
        title: "TTFT <over> load".to_owned(),
        says: "It rises.".to_owned(),
        x: ChartAxis::linear("req/s"),
        y: ChartAxis::log("ms"),
        series: vec![series("p50 & more", Shape::Points, 0), series("p99", Shape::Line, 1)],
        rules: vec![Rule::Height(50.0, "SLO".to_owned()), Rule::Place(2.0, "answer".to_owned())],
    }
}

#[test]
fn every_point_is_there_and_foreign_text_is_text() {
    let page = inline_chart(&chart());
    assert_eq!(page.matches("class=\"dot\"").count(), 3, "{page}");
    assert!(page.contains("TTFT &lt;over&gt; load") && page.contains("p50 &amp; more"));
    assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    assert!(standalone_chart(&chart()).contains("<style>"));
}

#[test]
fn what_cannot_be_shown_leaves_a_gap() {
    let mut broken = chart();
    broken.series.truncate(1);
    for (place, value) in [(0, f64::NAN), (1, f64::INFINITY), (2, -1.0)] {
        broken.series[0].dots[place].y = value;
    }
    let page = inline_chart(&broken);
    assert_eq!(page.matches("class=\"dot\"").count(), 0, "{page}");
    assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    broken.series[0].dots.clear();
    assert!(inline_chart(&broken).contains("nothing to draw"));
}

#[test]
fn rings_have_the_tone_of_their_points_and_no_filling() {
    let series = |name: &str, shape| {
        ChartSeries::new(name, shape, 1, vec![Dot::new(1.0, 10.0), Dot::new(2.0, 20.0)])
    };
    let both = [series("p50", Shape::Points), series("p99", Shape::Rings)];
    let chart = Chart { series: both.to_vec(), ..chart() };
    let page = inline_chart(&chart);
    assert_eq!(page.matches("class=\"t1 mark\"").count(), 2, "{page}");
    assert_eq!(page.matches("class=\"t1 ring\"").count(), 2, "{page}");
    // Both are joined by a line of their tone, and a legend shows both signs.
    assert_eq!(page.matches("class=\"t1 join\"").count(), 2, "{page}");
    let keys: Vec<String> = chart.legend_keys().iter().map(key_svg).collect();
    assert!(keys[0].contains("t1 mark") && keys[1].contains("t1 ring"), "{keys:?}");
}

fn stack() -> Stack {
    Stack {
        name: "steps",
        title: "Steps".to_owned(),
        says: "Mostly waiting.".to_owned(),
        unit: "ms",
        parts: ["send", "<wait>", "never"].map(str::to_owned).to_vec(),
        bars: vec![
            ("middle".to_owned(), vec![10.0, 30.0, 0.0]),
            ("slow & odd".to_owned(), vec![20.0, 60.0, f64::NAN]),
        ],
    }
}

/// How wide the parts are, in the order drawn, without the gap between them.
fn widths(page: &str) -> Vec<f64> {
    let parts = page.split("<g class=\"part\">").skip(1);
    let width = |part: &str| {
        part.split("width=\"").nth(1)?.split('"').next()?.parse::<f64>().ok().map(|w| w + 1.0)
    };
    parts.filter_map(width).collect()
}

#[test]
fn parts_are_as_wide_as_they_are_large() {
    let page = inline_stack(&stack());
    // The longer bar takes all of the room between the sides.
    assert_eq!(widths(&page), [71.5, 214.5, 143.0, 429.0]);
    assert!(page.contains("&lt;wait&gt;: 60.00 ms (75.0 %)") && page.contains("slow &amp; odd"));
    assert!(!page.contains("NaN"), "{page}");
    let keys: Vec<_> = stack().legend_keys().iter().map(|key| key.name.to_owned()).collect();
    assert_eq!(keys, ["send", "<wait>"]);
    assert!(standalone_stack(&stack()).contains("&lt;wait&gt;</text>"));
    let empty = Stack { bars: vec![("none".to_owned(), vec![0.0, f64::INFINITY])], ..stack() };
    assert!(empty.is_empty() && widths(&inline_stack(&empty)).is_empty());
}

#[test]
fn names_of_places_stand_above_the_axes() {
    let page = inline_chart(&chart());
    let height = |page: &str| {
        page.split("viewBox=\"0 0 600 ").nth(1).unwrap().split('"').next().map(str::to_owned)
    };
    assert_eq!(height(&page).as_deref(), Some("307"));
    let mut plain = chart();
    plain.rules.clear();
    assert_eq!(height(&inline_chart(&plain)).as_deref(), Some("290"));
    // A line tells its name to the script, points tell their own; one alone needs no dashes.
    assert!(page.contains("data-name=\"p99\"") && page.contains("data-name=\"\""), "{page}");
    plain.series.truncate(1);
    assert!(!page.contains("solid") && inline_chart(&plain).contains("join solid"));
}

#[test]
fn a_logarithmic_axis_has_no_place_for_zero() {
    let mut zero = chart();
    assert!(!zero.is_empty());
    for dot in zero.series.iter_mut().flat_map(|series| &mut series.dots) {
        dot.y = 0.0;
    }
    assert!(zero.is_empty());
    zero.y = ChartAxis::linear("ms");
    assert!(!zero.is_empty());
}
