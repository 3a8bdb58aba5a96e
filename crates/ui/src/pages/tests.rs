//! Pages say what is in their data, and nothing from outside is markup.

use super::*;

const HOSTILE: &str = "</textarea></script><img src=x onerror=alert(1)>\"'&\u{202e}";

/// A result whose every text is hostile.
fn row() -> UiRow {
    let text = || HOSTILE.to_owned();
    UiRow {
        id: "0123456789abcdef".to_owned(),
        name: text(),
        kind: text(),
        started: text(),
        state: text(),
        target: text(),
        model: text(),
        workload: text(),
        load: text(),
        verdict: text(),
        says: text(),
        figures: [
            Some(12.0),
            Some(f64::NAN),
            Some(f64::INFINITY),
            None,
            Some(-0.0),
            None,
            Some(0.5),
        ]
        .map(|value| value.map(UiFigure::from)),
        tags: vec![text(), "a b".to_owned()],
        is_live: true,
    }
}

/// A curve with levels of so many runs each, whose latencies are those of the list.
fn curve(name: &str, levels: &[&[f64]]) -> UiCurve {
    let point = |level: usize, latency: f64| UiPoint {
        level: format!("{level}/s"),
        at: Some(level as f64),
        rps: Some(level as f64),
        output_tps: Some(10.0 * level as f64),
        latency: Some((latency, Some(latency - 1.0), Some(latency + 1.0))),
        ..UiPoint::default()
    };
    let points = levels.iter().enumerate();
    let points =
        points.flat_map(|(level, runs)| runs.iter().map(move |run| point(level + 1, *run)));
    UiCurve {
        id: "ab".to_owned(),
        name: name.to_owned(),
        about: HOSTILE.to_owned(),
        points: points.collect(),
    }
}

fn overlay(curves: Vec<UiCurve>) -> UiOverlay {
    let (metric, percentile) = ("ttft".to_owned(), "p99".to_owned());
    UiOverlay { curves, ids: vec![HOSTILE.to_owned()], metric, percentile, left_out: 1 }
}

#[test]
fn nothing_from_outside_is_markup_and_nothing_breaks_the_policy() {
    let text = || HOSTILE.to_owned();
    let list = UiList {
        folder: text(),
        rows: vec![row()],
        total: 500,
        skip: 100,
        most: 100,
        words: text(),
        kind: text(),
        verdict: text(),
        note: Some(text()),
    };
    let run = UiRun {
        row: row(),
        notes: format!("one\n{HOSTILE}"),
        mark: text(),
        key: text(),
        problem: Some(text()),
        theirs: Some((vec![text()], text())),
        has_curve: true,
    };
    let pages = [
        ui_list(&list),
        ui_run(&run),
        ui_overlay(&overlay(vec![curve(HOSTILE, &[&[1.0], &[2.0]])])),
        ui_message(HOSTILE, HOSTILE),
        ui_token(),
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
    let list = UiList {
        rows: vec![row(), row()],
        total: 250,
        skip: 100,
        most: 100,
        words: "a&b".to_owned(),
        kind: "sweep".to_owned(),
        ..UiList::default()
    };
    let page = ui_list(&list);
    assert_eq!(page.matches("type=\"checkbox\"").count(), 2);
    assert!(page.contains("101–102 of 250"), "{page}");
    assert!(page.contains("<option value=\"sweep\" selected=\"\">"), "{page}");
    assert!(page.contains("value=\"a&amp;b\""), "{page}");
    assert!(page.contains("/?q=a%26b&amp;kind=sweep&amp;verdict=&amp;skip=0"), "{page}");
    assert!(page.contains("skip=200"), "{page}");
    assert!(page.contains("href=\"/?q=a%20b\""), "{page}");
    assert!(ui_list(&UiList::default()).contains("Nothing is here yet"));
}

#[test]
fn every_curve_has_a_point_for_every_level() {
    let page = ui_overlay(&overlay(vec![
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
    assert!(page.contains("1 more curves found no place"), "{page}");
    assert!(page.contains("metric=tpot&amp;at=p99"), "{page}");
    assert!(ui_overlay(&UiOverlay::default()).contains("id=\"none\""));
}

#[test]
fn a_run_has_a_live_part_only_while_it_goes_on() {
    let mut run = UiRun { row: row(), notes: "one\n\ntwo".to_owned(), ..UiRun::default() };
    let page = ui_run(&run);
    assert!(page.contains("data-live=\"/run/0123456789abcdef/live\""), "{page}");
    assert!(page.contains("\none\n\ntwo</textarea>"), "{page}");
    run.row.is_live = false;
    assert!(!ui_run(&run).contains("data-live"));
}

#[test]
fn a_rough_figure_has_its_mark() {
    let shown = |is_rough: bool| {
        let mut row = UiRow::default();
        row.figures[3] = Some(UiFigure { value: 51.5, is_rough });
        ui_list(&UiList { rows: vec![row], total: 1, most: 1, ..UiList::default() })
    };
    assert!(shown(true).contains(">~51.50<"), "{}", shown(true));
    assert!(shown(false).contains(">51.50<"));
}
