use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

use super::*;
use crate::svg::{ChartAxis, Shape};

fn dot(x: f64, y: f64) -> Dot {
    Dot::new(x, y)
}

fn chart(series: Vec<Vec<Dot>>) -> TextPlot {
    let series = series
        .into_iter()
        .zip(MARKS)
        .enumerate()
        .map(|(tone, (dots, mark))| {
            ChartSeries::new(format!("series {mark}"), Shape::Points, tone, dots)
        })
        .collect();
    let (x, y) = (ChartAxis::linear("x"), ChartAxis::linear("y"));
    let (title, says, rules) = (String::new(), String::new(), Vec::new());
    let chart = Chart { name: "chart", title, says, x, y, series, rules };
    TextPlot { title: "y over x".to_owned(), rows: 9, chart }
}

/// The same over a logarithmic height.
fn log_chart(dots: Vec<Dot>) -> TextPlot {
    let mut plot = chart(vec![dots]);
    plot.chart.y.is_log = true;
    plot
}

/// Row and column of each cell of the plot that shows this.
fn places(page: &str, mark: char) -> Vec<(usize, usize)> {
    let plot = page.lines().skip(1).take_while(|line| !line.contains('└')).enumerate();
    plot.flat_map(|(row, line)| {
        let cells = line.chars().skip(GUTTER + 1).enumerate();
        cells.filter(|(_, c)| *c == mark).map(move |(column, _)| (row, column)).collect::<Vec<_>>()
    })
    .collect()
}

#[test]
fn points_stand_where_they_belong() {
    let page =
        draw_text_plot(&chart(vec![vec![dot(0.0, 0.0), dot(50.0, 50.0), dot(100.0, 100.0)]]));
    assert_eq!(places(&page, 'x'), [(0, COLUMNS - 1), (4, COLUMNS / 2), (8, 0)], "{page}");
    assert!(page.contains("     100┤"), "{page}");
    assert!(page.lines().last().unwrap().trim() == "x series x", "{page}");
    // Joined: something lies between the marks in every row.
    assert!(page.lines().skip(1).take(9).all(|line| line.trim().len() > 4), "{page}");
}

#[test]
fn rings_have_a_mark_of_their_own() {
    let mut plot = chart(vec![vec![dot(0.0, 0.0)], vec![dot(50.0, 50.0)], vec![dot(100.0, 100.0)]]);
    plot.chart.series[1].tone = 0;
    plot.chart.series[1].shape = Shape::Rings;
    let page = draw_text_plot(&plot);
    assert_eq!(places(&page, 'x'), [(8, 0)], "{page}");
    assert_eq!(places(&page, '#'), [(4, COLUMNS / 2)], "{page}");
    assert!(page.contains("# series o"), "{page}");
}

#[test]
fn a_logarithmic_axis_has_equal_decades() {
    let dots = vec![dot(1.0, 10.0), dot(2.0, 100.0), dot(3.0, 1000.0)];
    let page = draw_text_plot(&log_chart(dots));
    let rows: Vec<usize> = places(&page, 'x').iter().map(|place| place.0).collect();
    assert_eq!(rows, [0, 4, 8], "{page}");
    for label in ["   1,000┤", "     100┤", "      10┤"] {
        assert!(page.contains(label), "{label:?} is not in\n{page}");
    }
}

#[test]
fn lines_places_and_intervals() {
    let spread = dot(5.0, 50.0).with_interval(Some(25.0), Some(75.0));
    let mut chart = chart(vec![vec![dot(0.0, 0.0), spread, dot(10.0, 100.0)]]);
    chart.chart.rules =
        vec![Rule::Height(75.0, "SLO".to_owned()), Rule::Place(7.5, "answer 7.5".to_owned())];
    let page = draw_text_plot(&chart);
    let bar = places(&page, '│');
    assert_eq!(bar, [(2, 35), (3, 35), (5, 35), (6, 35)], "{page}");
    assert!(places(&page, '╌').iter().all(|place| place.0 == 2), "{page}");
    assert!(places(&page, '╌').len() > 55, "{page}");
    assert!(places(&page, '┊').iter().all(|place| place.1 == 52), "{page}");
    assert!(page.ends_with("x series x   ╌ SLO   ┊ answer 7.5\n"), "{page}");
}

#[test]
fn little_or_nothing_to_show() {
    assert_eq!(draw_text_plot(&chart(Vec::new())), "y over x\n        nothing to draw\n");
    let nan = draw_text_plot(&chart(vec![vec![dot(f64::NAN, 1.0), dot(1.0, f64::INFINITY)]]));
    assert!(nan.contains("nothing to draw"), "{nan}");
    let one = draw_text_plot(&chart(vec![vec![dot(3.0, 7.0)]]));
    assert_eq!(places(&one, 'x'), [(4, COLUMNS / 2)], "{one}");
    // On a logarithmic axis nothing is at zero.
    let zero = draw_text_plot(&log_chart(vec![dot(1.0, 0.0), dot(2.0, 5.0)]));
    assert_eq!(places(&zero, 'x').len(), 1, "{zero}");
}

#[test]
fn ticks_are_round() {
    let ticks = |low: f64, high: f64, log: bool, about: usize| -> Vec<String> {
        let scale = Scale::from_values([low, high].into_iter(), log).unwrap();
        scale.ticks(about).into_iter().map(|(_, text)| text).collect()
    };
    assert_eq!(ticks(0.0, 52.0, false, 6), ["0", "10", "20", "30", "40", "50"]);
    assert_eq!(ticks(20.1, 20.9, false, 4), ["20.2", "20.4", "20.6", "20.8"]);
    assert_eq!(ticks(-1e6, 1e6, false, 4), ["-1,000,000", "-500,000", "0", "500,000", "1,000,000"]);
    assert_eq!(ticks(80.0, 900.0, true, 4), ["100", "200", "500"]);
    assert_eq!(ticks(1e-300, 1e300, true, 4), ["1e-300", "1e-150", "1", "1e150", "1e300"]);
    assert_eq!(ticks(0.001, 0.9, true, 4), ["0.001", "0.01", "0.1"]);
}

#[test]
fn a_difference_of_nothing_does_not_fill_a_chart() {
    let ends = |low: f64, high: f64, log: bool| {
        let scale = Scale::from_values([low, high].into_iter(), log).unwrap().with_room();
        (scale.ends().0, scale.ends().1)
    };
    let (low, high) = ends(2.0, 2.01, true);
    assert!((high / low - 1.5).abs() < 1e-9 && low < 1.7 && high > 2.4, "{low} {high}");
    // The middle stays where it was.
    assert!((low * high - 2.0 * 2.01).abs() < 1e-9);
    assert_eq!(ends(2.0, 3.1, true), (2.0, 3.1));
    assert_eq!(ends(20.1, 20.9, false), (20.1, 20.9));
}

fn wild() -> impl Strategy<Value = f64> {
    let odd = [0.0, -0.0, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, f64::NAN, f64::INFINITY];
    prop_oneof![
        3 => 0.0f64..1e4,
        1 => proptest::num::f64::ANY,
        1 => proptest::sample::select(odd.to_vec())
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn no_number_breaks_a_chart(
        all in proptest::collection::vec((wild(), wild(), wild(), wild()), 0..8),
        logs in (any::<bool>(), any::<bool>()),
        (line, place, rows) in (wild(), wild(), 0usize..60),
    ) {
        let dots = all.iter().map(|(x, y, low, high)| dot(*x, *y).with_interval(Some(*low), Some(*high)));
        let mut chart = TextPlot { rows, ..chart(vec![dots.collect(), vec![dot(1.0, 2.0)]]) };
        (chart.chart.x.is_log, chart.chart.y.is_log) = logs;
        chart.chart.rules = vec![
            Rule::Height(line, "日本語のSLO".to_owned()),
            Rule::Place(place, "here".to_owned()),
        ];
        for row in draw_text_plot(&chart).lines() {
            prop_assert!(row.width() <= WIDTH, "{row}");
        }
    }
}
