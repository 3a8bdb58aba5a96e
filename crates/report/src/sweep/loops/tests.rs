use goodput_campaign::sweep::Level;

use super::*;
use crate::sweep::sweep_document;
use crate::sweep::tests::{point, summary};
use goodput_document::Detail;
use goodput_document::render;

/// A closed-loop point of this many users: what it completes, and its TTFT.
fn twin(number: u32, users: u32, rps: f64, ttft: [f64; 2]) -> PointSummary {
    let mut twin = point(number, rps, ttft.into(), 1.0);
    twin.point.ask.purpose = Purpose::Twin;
    twin.point.ask.level = Level::Users(users);
    twin.point.figures.offered_rps = None;
    twin
}

/// Two open loads, the second of which completes less than it is offered, and a twin of each.
fn both() -> SweepSummary {
    let mut made = summary();
    let mut saturated = point(2, 30.0, (450.0, 2500.0), 0.5);
    saturated.point.figures.requests_per_s = Some(24.0);
    made.points = vec![
        point(1, 10.0, (105.0, 280.0), 1.0),
        saturated,
        twin(3, 40, 9.0, [88.0, 120.0]),
        twin(4, 96, 22.0, [95.0, 180.0]),
    ];
    made
}

/// A series by name, tone, and places.
type DrawnSeries<'a> = (&'a str, usize, Vec<(f64, f64)>);

fn drawn(chart: &Chart) -> Vec<DrawnSeries<'_>> {
    let dots = |series: &ChartSeries| series.dots.iter().map(|dot| (dot.x, dot.y)).collect();
    chart.series.iter().map(|one| (one.name.as_str(), one.tone, dots(one))).collect()
}

#[test]
fn both_loops_stand_over_what_was_completed() {
    let charts = charts(&both());
    let names: Vec<&str> = charts.iter().map(|chart| chart.name).collect();
    assert_eq!(names, ["ttft-by-loop", "e2e-by-loop", "open-and-closed"]);
    let expected = [
        ("open loop p50", 0, vec![(10.0, 105.0), (24.0, 450.0)]),
        ("open loop p99", 0, vec![(10.0, 280.0), (24.0, 2500.0)]),
        ("closed loop p50", 1, vec![(9.0, 88.0), (22.0, 95.0)]),
        ("closed loop p99", 1, vec![(9.0, 120.0), (22.0, 180.0)]),
    ];
    assert_eq!(drawn(&charts[0]), expected);
    let says = "The highest p50 TTFT is 450.0 ms at 24.00 completed req/s in the open loop and 95.00 \
                ms at 22.00 completed req/s in the closed one.";
    assert!(charts[0].says.starts_with(says), "{}", charts[0].says);
    assert_eq!(charts[0].series[1].dots[1].note, "30.0 req/s, 24.00 completed req/s, 2500.0 ms");
}

#[test]
fn a_terminal_has_the_chart_and_its_numbers() {
    let text = render::text::render_page(&sweep_document(&both(), None), Detail::Full);
    let plot = "p50 and p99 TTFT over completed req/s, in ms (logarithmic)\n";
    assert!(text.contains(plot), "{text}");
    let legend =
        ["x open loop p50   # open loop p99   o closed loop p50\n", "  @ closed loop p99\n"];
    assert!(legend.iter().all(|part| text.contains(part)), "{text}");
    let row = |loop_name: &str| {
        let mut lines = text.lines().skip_while(|line| !line.starts_with("Both loops by load"));
        let found = lines.find(|line| line.trim_start().starts_with(loop_name));
        found.unwrap_or_default().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let open = ["open", "10.0", "10.00", "105.0", "280.0", "4000.0", "9000.0"];
    let closed = ["closed", "40", "9.00", "88.00", "120.0", "4000.0", "9000.0"];
    assert_eq!(row("open"), open);
    assert_eq!(row("closed"), closed);
}

#[test]
fn the_median_is_shown_where_a_p99_is_missing() {
    let mut made = both();
    for point in &mut made.points {
        point.point.figures.ttft_ms.p99 = None;
    }
    let charts = charts(&made);
    // Pairs are compared by p99, so they have no chart.
    assert_eq!(
        charts.iter().map(|chart| chart.name).collect::<Vec<_>>(),
        ["ttft-by-loop", "e2e-by-loop"]
    );
    let lengths: Vec<usize> = charts[0].series.iter().map(|series| series.dots.len()).collect();
    assert_eq!(lengths, [2, 0, 2, 0]);
    let text = render::text::render_page(&sweep_document(&made, None), Detail::Full);
    assert!(text.contains("Loops       The highest p50 TTFT is 450.0 ms"), "{text}");
}

#[test]
fn the_other_latency_is_the_promised_one() {
    let mut made = both();
    made.plan.slo = "p99 tpot < 50ms".parse().ok();
    assert_eq!(charts(&made)[1].name, "tpot-by-loop");
}

#[test]
fn one_loop_alone_has_no_section() {
    let mut open = both();
    open.points.truncate(2);
    assert_eq!((charts(&open), section(&open).blocks), (vec![], vec![]));
    let mut void = both();
    for point in &mut void.points[2..] {
        point.point.figures.verdict = Verdict::Void;
    }
    assert_eq!(charts(&void), vec![]);
}
