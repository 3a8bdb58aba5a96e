//! Pages say what is in their data, and nothing from outside is markup.

use std::path::PathBuf;

use goodput_record::ArtifactKind;

use super::*;
use crate::entry::{FigureInterval, PercentileSpread, ResultCurve, ResultFigures};

const HOSTILE: &str = "</textarea></script><img src=x onerror=alert(1)>\"'&\u{202e}";

/// A result whose every text is hostile.
fn row() -> ResultRow {
    let text = || HOSTILE.to_owned();
    let shown = |value| Some(Shown { value, is_rough: false });
    let figures = ResultFigures {
        rps: Some(12.0),
        output_tps: Some(f64::NAN),
        ttft_p50_ms: shown(f64::INFINITY),
        ttft_p99_ms: None,
        tpot_p99_ms: shown(-0.0),
        goodput_rps: None,
        failed: Some(0.5),
    };
    let entry = Entry {
        id: "0123456789abcdef".to_owned(),
        path: PathBuf::new(),
        name: text(),
        kind: ArtifactKind::Run,
        started: text(),
        state: text(),
        target: text(),
        model: text(),
        workload: text(),
        load: text(),
        verdict: text(),
        says: text(),
        figures,
        notes: Notes { tags: vec![text(), "a b".to_owned()], text: format!("one\n{HOSTILE}") },
        curves: vec![ResultCurve::default()],
    };
    ResultRow { entry, is_live: true }
}

/// A curve with levels of this many runs each, whose latencies are those of the list.
fn curve(name: &str, levels: &[&[f64]]) -> OverlayCurve {
    let spread = |value| PercentileSpread {
        p99: Some(FigureInterval { value, low: Some(value - 1.0), high: Some(value + 1.0) }),
        ..PercentileSpread::default()
    };
    let point = |level: usize, latency: f64| CurvePoint {
        level: format!("{level}/s"),
        at: Some(level as f64),
        rps: Some(level as f64),
        output_tps: Some(10.0 * level as f64),
        ttft: spread(latency),
        ..CurvePoint::default()
    };
    let points = levels.iter().enumerate();
    let points =
        points.flat_map(|(level, runs)| runs.iter().map(move |run| point(level + 1, *run)));
    OverlayCurve {
        id: "ab".to_owned(),
        name: name.to_owned(),
        about: HOSTILE.to_owned(),
        points: points.collect(),
    }
}

fn overlay(curves: Vec<OverlayCurve>) -> Overlay {
    let ids = vec![HOSTILE.to_owned()];
    Overlay { curves, ids, metric: "ttft", percentile: "p99", left_out: 1 }
}

#[test]
fn nothing_from_outside_is_markup_and_nothing_breaks_the_policy() {
    let text = || HOSTILE.to_owned();
    let list = ResultList {
        folder: text(),
        rows: vec![row()],
        total: 500,
        skip: 100,
        most: 100,
        words: text(),
        kind: text(),
        verdict: text(),
    };
    let run = RunPage {
        row: row(),
        mark: text(),
        key: text(),
        problem: Some(text()),
        theirs: Some(Notes { tags: vec![text()], text: text() }),
    };
    let pages = [
        list_page(&list),
        run_page(&run),
        overlay_page(&overlay(vec![curve(HOSTILE, &[&[1.0], &[2.0]])])),
        message_page(HOSTILE, HOSTILE),
        token_page(),
    ];
    for page in pages {
        assert!(!page.contains("<img"), "{page}");
        // Only what is typed on is kept as it is: notes and tags in their form.
        let turns = if page.contains("<textarea") { 2 } else { 0 };
        assert_eq!(page.matches('\u{202e}').count(), turns, "{page}");
        // The policy allows files of ours alone: no script, style or handler in the page.
        let scripts = page.matches("<script").count();
        assert_eq!((scripts, page.matches("<script src=\"/").count()), (2, 2), "{page}");
        assert!(!page.contains("<style") && !page.contains(" style=\""), "{page}");
        for part in page.split('<').map(|part| part.split('>').next().unwrap_or_default()) {
            let names = part.split(['"']).step_by(2).flat_map(str::split_whitespace);
            let is_handler = |name: &str| name.starts_with("on") && name.ends_with('=');
            assert!(!names.into_iter().any(is_handler), "{part}");
        }
        let areas = (page.matches("<textarea").count(), page.matches("</textarea>").count());
        assert_eq!(areas.0, areas.1, "{page}");
    }
}

#[test]
fn a_list_keeps_what_was_looked_for_and_leads_on() {
    let list = ResultList {
        rows: vec![row(), row()],
        total: 250,
        skip: 100,
        most: 100,
        words: "a&b".to_owned(),
        kind: "sweep".to_owned(),
        ..ResultList::default()
    };
    let page = list_page(&list);
    assert_eq!(page.matches("type=\"checkbox\"").count(), 2);
    assert!(page.contains("101–102 of 250"), "{page}");
    assert!(page.contains("<option value=\"sweep\" selected=\"\">"), "{page}");
    assert!(page.contains("value=\"a&amp;b\""), "{page}");
    assert!(page.contains("/?q=a%26b&amp;kind=sweep&amp;verdict=&amp;skip=0"), "{page}");
    assert!(page.contains("skip=200"), "{page}");
    assert!(page.contains("href=\"/?q=a%20b\""), "{page}");
    assert!(list_page(&ResultList::default()).contains("No results yet"));
}

#[test]
fn every_curve_has_a_point_for_every_level() {
    let page = overlay_page(&overlay(vec![
        curve("one", &[&[5.0], &[7.0, 9.0, 8.0], &[30.0]]),
        curve("two", &[&[6.0], &[6.5]]),
    ]));
    // Two charts with 3 and 2 points; the third has nothing to draw.
    assert_eq!(page.matches("class=\"dot\"").count(), 10, "{page}");
    assert_eq!(page.matches("class=\"chart\"").count(), 2);
    assert_eq!(
        page.matches("one: 2/s · 8.00 ms · 20.00 tokens/s · the median of 3 runs").count(),
        2
    );
    // All runs stand in the table.
    let table = page.split(">Points</h2>").nth(1).unwrap_or_default();
    assert_eq!(table.matches("<th scope=\"row\"").count(), 7, "{page}");
    assert!(page.contains("1 more curves are not shown"), "{page}");
    assert!(page.contains("metric=tpot&amp;at=p99"), "{page}");
    assert!(overlay_page(&Overlay::default()).contains("id=\"none\""));
}

#[test]
fn open_and_closed_loops_share_a_chart_over_what_was_completed() {
    let mut curves =
        vec![curve("rates", &[&[105.0], &[450.0]]), curve("users", &[&[88.0], &[95.0]])];
    for point in curves.iter_mut().flat_map(|curve| &mut curve.points) {
        point.completed_rps = point.rps.map(|rps| 0.75 * rps);
        point.ttft.p50 = point.ttft.p99.map(|p99| FigureInterval { value: p99.value / 2.0, ..p99 });
    }
    let alike = overlay_page(&overlay(curves.clone()));
    assert!(!alike.contains("latency-loops"), "{alike}");
    for point in &mut curves[1].points {
        point.is_closed_loop = true;
    }
    let page = overlay_page(&overlay(curves));
    let chart =
        page.split("id=\"latency-loops-t\"").nth(1).unwrap().split("</svg>").next().unwrap();
    // p50 and p99 of two points of each; a curve has one tone, and its p99 is hollow.
    assert_eq!(chart.matches("class=\"dot\"").count(), 8, "{chart}");
    assert_eq!(chart.matches("class=\"t0 ring\"").count(), 2, "{chart}");
    assert_eq!(chart.matches("class=\"t1 mark\"").count(), 2, "{chart}");
    assert!(chart.contains("users p99: 2/s · 95.00 ms · 20.00 tokens/s"), "{chart}");
    assert!(chart.contains(">completed requests per second</text>"), "{chart}");
}

#[test]
fn a_run_has_a_live_part_only_while_it_goes_on() {
    let mut run = RunPage { row: row(), ..RunPage::default() };
    run.row.entry.notes.text = "one\n\ntwo".to_owned();
    let page = run_page(&run);
    assert!(page.contains("data-live=\"/run/0123456789abcdef/live\""), "{page}");
    assert!(page.contains("\none\n\ntwo</textarea>"), "{page}");
    run.row.is_live = false;
    assert!(!run_page(&run).contains("data-live"));
}

#[test]
fn a_rough_figure_has_its_mark() {
    let shown = |is_rough: bool| {
        let mut row = ResultRow::default();
        row.entry.figures.ttft_p99_ms = Some(Shown { value: 51.5, is_rough });
        list_page(&ResultList { rows: vec![row], total: 1, most: 1, ..ResultList::default() })
    };
    assert!(shown(true).contains(">~51.50<"), "{}", shown(true));
    assert!(shown(false).contains(">51.50<"));
}
