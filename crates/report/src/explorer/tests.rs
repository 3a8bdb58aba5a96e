//! What the explorer holds and shows is what was counted.

use serde_json::Value;

use goodput_stats::SloGrid;

use super::*;
use crate::sweep::browser::tests::fixture::{Made, grid, requests};

const ASKED: SloLimits =
    SloLimits { ttft_ms: Some(500.0), tpot_ms: Some(50.0), percent: Some(99.0) };

/// Each point is a load of its own.
fn page(points: &[(String, &SloGrid)], asked: SloLimits) -> String {
    let one = |(place, (name, grid)): (usize, &(String, _))| (place as f64, name.clone(), *grid);
    let points: Vec<(f64, String, &SloGrid)> = points.iter().enumerate().map(one).collect();
    at_levels(&points, asked)
}

fn grids<'a>(points: &[(f64, String, &'a SloGrid)]) -> Vec<LoadGrid<'a>> {
    let one = |(level, label, grid): &(f64, String, &'a SloGrid)| LoadGrid {
        level: *level,
        label: label.clone(),
        grid,
    };
    points.iter().map(one).collect()
}

fn at_levels(points: &[(f64, String, &SloGrid)], asked: SloLimits) -> String {
    Html::from_fn(|html| write_explorer(html, &grids(points), Some(8), asked, None)).into_string()
}

/// The numbers for the script.
fn data(page: &str) -> Value {
    let json = page.split("id=\"slo-data\">").nth(1).and_then(|rest| rest.split('<').next());
    serde_json::from_str(json.unwrap()).unwrap()
}

/// What a reader of the data counts below two limits: requests and tokens.
fn counted(data: &Value, point: usize, ttft: f64, tpot: f64) -> (u64, u64) {
    let place = |name: &str, limit: f64| {
        let stops = data[name].as_array().unwrap();
        stops.iter().position(|stop| stop.as_f64() == Some(limit)).unwrap() as u64
    };
    let (row, column) = (place("ttft", ttft), place("tpot", tpot));
    let cells: Vec<u64> = data["points"][point]["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell.as_u64().unwrap())
        .collect();
    let kept = cells.chunks_exact(4).filter(|cell| cell[0] <= row && cell[1] <= column);
    kept.fold((0, 0), |sum, cell| (sum.0 + cell[2], sum.1 + cell[3]))
}

fn really(made: &[Made], ttft: f64, tpot: f64) -> (u64, u64) {
    let kept = made.iter().filter(|one| one.ttft < ttft && one.tpot < tpot);
    kept.fold((0, 0), |sum, one| (sum.0 + 1, sum.1 + one.tokens))
}

#[test]
fn counts_are_exact_at_every_stop() {
    let (low, high) = (requests(10.0, 1), requests(25.0, 2));
    let again = requests(25.0, 3);
    let grids = [grid(&low, 0), grid(&high, 7), grid(&again, 0)];
    // The names of two loads may be the same.
    let at = |level: f64, place: usize| (level, "10 req/s".to_owned(), &grids[place]);
    let data = data(&at_levels(&[at(10.04, 0), at(10.12, 1), at(10.12, 2)], ASKED));
    assert_eq!(data["points"].as_array().unwrap().len(), 2);
    // Runs at one load are counted together, failures as well.
    let both: Vec<Made> = high.iter().chain(&again).copied().collect();
    assert_eq!(data["points"][1]["requests"], both.len() as u64 + 7);
    assert_eq!(data["points"][1]["seconds"], 120.0);
    for ttft in data["ttft"].as_array().unwrap().iter().filter_map(Value::as_f64) {
        for tpot in [18.0, 33.0, 50.0, 10_000.0] {
            assert_eq!(counted(&data, 0, ttft, tpot), really(&low, ttft, tpot), "{ttft} {tpot}");
            assert_eq!(counted(&data, 1, ttft, tpot), really(&both, ttft, tpot), "{ttft} {tpot}");
        }
    }
    assert_eq!(data["ttft"][data["start"]["ttft"].as_u64().unwrap() as usize], 500.0);
    assert_eq!(data["tpot"][data["start"]["tpot"].as_u64().unwrap() as usize], 50.0);
}

/// Cells by place: TTFT, TPOT, requests, tokens.
fn small(ttft_ms: &[f64], cells: &[(u16, u16, u64, u64)], requests: u64) -> SloGrid {
    SloGrid {
        ttft_ms: ttft_ms.to_vec(),
        tpot_ms: vec![50.0],
        cells: cells.to_vec(),
        requests,
        window_s: 10.0,
    }
}

#[test]
fn only_limits_that_all_runs_know_can_be_chosen() {
    let one = small(&[100.0, 200.0, 400.0], &[(1, 0, 5, 50), (2, 0, 1, 9)], 6);
    let two = small(&[50.0, 100.0, 150.0, 300.0, 400.0], &[(3, 0, 4, 40)], 4);
    let data = data(&page(&[("1".to_owned(), &one), ("2".to_owned(), &two)], ASKED));
    let stops: Vec<f64> =
        data["ttft"].as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    // Five of the first lie between 100 and 200, and one above; four of the second between 150 and 300.
    // Below 50 the first has none, though it does not know that limit.
    assert_eq!(stops, [50.0, 100.0, 400.0]);
    assert_eq!(
        [counted(&data, 0, 400.0, 50.0), counted(&data, 1, 400.0, 50.0)],
        [(6, 59), (4, 40)]
    );
    assert_eq!([counted(&data, 0, 100.0, 50.0), counted(&data, 1, 100.0, 50.0)], [(0, 0); 2]);
}

#[test]
fn without_a_script_the_table_stands_at_what_was_asked() {
    // 99 of 100 are good, and 95 of 100; 1,000 and 950 tokens in 10 s.
    let kept = small(&[500.0], &[(0, 0, 99, 1000), (1, 0, 1, 10)], 100);
    let missed = small(&[500.0], &[(0, 0, 95, 950), (1, 1, 5, 0)], 100);
    let named = |names: [&str; 2]| names.map(str::to_owned);
    let [low, high] = named(["5 req/s", "9 req/s"]);
    let both = page(&[(low.clone(), &kept), (high.clone(), &missed)], ASKED);
    for cell in [
        ">5 req/s</th><td>100</td>",
        ">99.0 %</td><td class=\"good\">yes</td><td>9.9</td><td>100.0</td><td>–</td>",
        ">95.0 %</td><td class=\"bad\">no</td><td>9.5</td><td>95.0</td><td>–</td>",
        "TTFT below 500 ms and TPOT below 50 ms for at least 99 %: up to 5 req/s every load keeps it (as \
         measured, not confirmed); 9.9 good req/s and 100.0 good output tok/s.",
        "id=\"slo-set\" class=\"slo-set\" hidden=\"\"",
    ] {
        assert!(both.contains(cell), "{cell}\n{both}");
    }
    let turned = page(&[(low, &missed), (high, &kept)], ASKED);
    // What keeps it above one that misses it is not an answer.
    assert!(
        turned.contains(": 5 req/s, the lowest load that was measured, misses it."),
        "{turned}"
    );
    let one = page(&[("x".to_owned(), &missed)], ASKED);
    assert!(one.contains("missed, 95.0 % are good; 9.5 good req/s"), "{one}");
    let none = SloLimits { percent: Some(99.5), ..ASKED };
    let none = page(&[("a".to_owned(), &missed), ("b".to_owned(), &kept)], none);
    assert!(
        none.contains("for at least 99.5 %: a, the lowest load that was measured, misses it."),
        "{none}"
    );
    // Nothing was counted: nothing to explore.
    assert_eq!(page(&[("x".to_owned(), &SloGrid::default())], ASKED), "");
}

#[test]
fn it_begins_where_the_plan_asked() {
    let asked = |slo: &str, share| SloLimits::from_slo(Some(&slo.parse().unwrap()), share);
    let both = SloLimits { ttft_ms: Some(500.0), tpot_ms: Some(50.0), percent: Some(99.0) };
    assert_eq!(asked("p99 ttft < 500ms, p90 tpot < 50ms", None), both);
    let each = SloLimits { ttft_ms: Some(300.0), tpot_ms: None, percent: Some(95.0) };
    assert_eq!(asked("ttft < 300ms, errors < 1%", Some(0.95)), each);
    // A limit that grows with the prompt is none of these.
    assert_eq!(asked("ttft < 300ms + 1ms/token", None), SloLimits::default());
    let grid = small(&[100.0, 400.0, 900.0], &[(0, 0, 1, 1)], 1);
    let start = |asked: SloLimits| data(&page(&[(String::new(), &grid)], asked))["start"].clone();
    assert_eq!(start(SloLimits::default())["ttft"], 2);
    assert_eq!(start(SloLimits::default())["percent"], 99.0);
    // Between stops the stricter one is taken.
    assert_eq!(start(ASKED)["ttft"], 1);
}

/// As many cells as there can be.
pub(in super::super) fn full(n: u16) -> SloGrid {
    let edges = |first: f64| (0..n).map(|place| first * 1.2f64.powi(i32::from(place))).collect();
    let row = |row: u16| (0..=n).map(move |column| (row, column, 1234, 567_890));
    SloGrid {
        ttft_ms: edges(1.0),
        tpot_ms: edges(0.1),
        cells: (0..=n).flat_map(row).collect(),
        requests: 1234 * u64::from(n + 1).pow(2),
        window_s: 60.0,
    }
}

#[test]
fn many_cells_lose_stops_and_no_counts() {
    let grid = full(200);
    let loads: Vec<(String, &SloGrid)> = (0..4).map(|load| (load.to_string(), &grid)).collect();
    let asked = SloLimits { ttft_ms: Some(grid.ttft_ms[77]), ..ASKED };
    let page = page(&loads, asked);
    assert!(page.len() < 1_000_000, "{}", page.len());
    let data = data(&page);
    let (ttft, tpot) = (grid.ttft_ms[77], data["tpot"][9].as_f64().unwrap());
    let below = grid.tpot_ms.iter().filter(|edge| **edge <= tpot).count() as u64;
    assert_eq!(counted(&data, 3, ttft, tpot).0, 1234 * 78 * below);
}

#[test]
fn hostile_names_are_text() {
    let grid = small(&[100.0], &[(0, 0, 1, 1)], 1);
    let evil = "</script><img src=x onerror=alert(1)>\u{202e}\"";
    let page = page(&[(evil.to_owned(), &grid)], ASKED);
    assert!(!page.contains("<img") && !page.contains('\u{202e}'), "{page}");
    assert_eq!(page.matches("</script>").count(), 1, "{page}");
}

#[test]
fn limits_have_no_more_digits_than_they_need() {
    let texts = [0.15, 47.0, 1500.0, 100_000.0, 0.1 + 0.2].map(limit_text);
    assert_eq!(texts, ["0.15 ms", "47 ms", "1.5 s", "100 s", "0.3 ms"]);
}

/// Headline and explorer give one answer while the limits are those that were asked for.
#[test]
fn the_answer_of_the_page_stands_until_the_limits_are_moved() {
    // By these counts 50 and 57 keep it; confirmed was 46.
    let kept = small(&[500.0], &[(0, 0, 99, 1000), (1, 0, 1, 10)], 100);
    let points = [46.0, 50.0, 57.0].map(|level| (level, format!("{level} req/s"), &kept));
    let shown = |answer: Option<&StatedAnswer>| {
        Html::from_fn(|html| write_explorer(html, &grids(&points), None, ASKED, answer))
            .into_string()
    };
    let text = "46 req/s (45–48) with p99 TTFT < 500 ms".to_owned();
    let page = shown(Some(&StatedAnswer { level: Some(46.0 + 1e-9), text: text.clone() }));
    assert!(
        page.contains(
            "As asked: 46 req/s (45–48) with p99 TTFT &lt; 500 ms; 9.9 good req/s and 100.0 good \
             output tok/s."
        ),
        "{page}"
    );
    assert_eq!(data(&page)["answer"]["row"], 0);
    assert!(!page.contains("every load keeps it"), "{page}");
    // A sweep of which one load can be counted has its answer from all of them.
    let lone = Html::from_fn(|html| {
        let answer = StatedAnswer { level: Some(46.0), text: text.clone() };
        write_explorer(html, &grids(&points[1..2]), None, ASKED, Some(&answer));
    });
    assert!(lone.into_string().contains("As asked: 46 req/s (45–48) with p99 TTFT &lt; 500 ms."));
    // An answer at a load that is not among these has no figures of its own.
    let page = shown(Some(&StatedAnswer { level: None, text }));
    assert!(page.contains("p99 TTFT &lt; 500 ms.<"), "{page}");
    assert_eq!(data(&page)["answer"]["row"], Value::Null);
    assert_eq!(data(&shown(None))["answer"], Value::Null);
}
