//! Pages of several configurations.

use std::collections::BTreeMap;

use goodput_campaign::curve::best_configuration;
use goodput_campaign::sweep::ColdStart;

use super::*;
use crate::sweep::tests::{found, near, plan, point, summary};

/// The sweep of `summary` at another speed.
pub(crate) fn configuration(value: &str, speed: f64) -> Configuration {
    let mut sweep = summary();
    let mut goodput = found();
    for rate in [&mut goodput.confirmed, &mut goodput.rejected] {
        *rate = rate.map(|rate| rate * speed);
    }
    (goodput.confirmed_rps, goodput.rejected_rps) = (goodput.confirmed, goodput.rejected);
    sweep.goodput = Some(goodput);
    for point in &mut sweep.points {
        let level = point.point.ask.level;
        let faster = Axis::Rate == level.axis();
        let speed = if faster { speed } else { 1.0 };
        point.point.ask.level =
            goodput_campaign::sweep::Level::from_value(level.axis(), level.value() * speed);
    }
    sweep.curve.knee = goodput_campaign::curve::fit_curve(&sweep.points).knee;
    Configuration {
        values: BTreeMap::from([("x".to_owned(), value.to_owned())]),
        folder: value.to_owned(),
        start: Some(ColdStart { ready_s: 42.31, first_token_ms: Some(812.0) }),
        failed: None,
        sweep: Some(sweep),
    }
}

pub(crate) fn failed(value: &str, why: &str) -> Configuration {
    let one = configuration(value, 1.0);
    Configuration { start: None, sweep: None, failed: Some(why.to_owned()), ..one }
}

pub(crate) fn page(configurations: Vec<Configuration>) -> String {
    let (best, because) = best_configuration(&configurations);
    let verdict = Verdict::Valid;
    let page = sweeps_text(
        &Sweeps { schema: Sweeps::SCHEMA.to_owned(), verdict, configurations, best, because },
        Detail::Full,
    );
    assert!(page.lines().all(|line| line.width() <= 80), "{page}");
    page
}

fn has(page: &str, line: &str) {
    assert!(page.contains(line), "{line:?} is not in\n{page}");
}

#[test]
fn the_best_one_comes_first() {
    let log: Vec<String> = (1..=20).map(|n| format!("line {n} \x1b[2J")).collect();
    let page = page(vec![
        configuration("2048", 0.9),
        configuration("4096", 1.0),
        failed("8192", &format!("the server ended with 1 before it was ready\n{}", log.join("\n"))),
    ]);
    has(&page, "Varied      3 configurations: 2 measured, 1 failed\n");
    has(
        &page,
        "Best        x=4096, 22.4–23.1 req/s with p99 ttft < 500ms: beats x=2048 by 11 %:\n",
    );
    has(
        &page,
        " 1 x=2048                  42.3 s 812.0 ms    20.2–20.8  99.3 %    3,584    22.5\n",
    );
    has(
        &page,
        " 2 x=4096                  42.3 s 812.0 ms    22.4–23.1  99.3 %    3,584    25.0\n",
    );
    has(&page, " 3 x=8192                       –        –       failed\n");
    has(&page, "p99 TTFT in ms (logarithmic) over offered req/s\n");
    has(&page, "x x=2048   o x=4096   ╌ SLO p99 ttft < 500ms\n");
    has(
        &page,
        "x=8192 failed:\n  the server ended with 1 before it was ready\n  … 8 lines left out\n",
    );
    has(&page, "  line 9 \\u{1b}[2J\n");
    assert!(page.ends_with("  line 20 \\u{1b}[2J\n") && !page.contains('\x1b'), "{page}");
}

#[test]
fn a_given_load_is_a_table_over_its_values() {
    let one = |value: &str, p99: f64| {
        let mut one = configuration(value, 1.0);
        let sweep = one.sweep.as_mut().unwrap();
        (sweep.goodput, sweep.plan) = (None, plan(None));
        sweep.points = vec![point(1, 10.0, (90.0, p99), 1.0)];
        sweep.points[0].point.figures.tpot_ms.p50 = Some(near(31.5));
        one
    };
    let short = one("512", 120.0);
    let mut long = one("8192", 900.0);
    long.values.insert("another.rather.long.name".to_owned(), "日本語".to_owned());
    let fixed = page(vec![short.clone(), long]);
    has(&fixed, " 1 x=512                     10.0    600    90.00    120.0   31.50  1600.0\n");
    has(&fixed, "2           another.rather.long.name=日本語 x=8192\n");
    assert!(!fixed.contains('┤'), "{fixed}");
    has(&fixed, "Best        none: the sweep did not search for a goodput\n");
    // With a promise each row says whether it was kept.
    let mut judged = short;
    judged.sweep.as_mut().unwrap().plan = plan(Some("p99 ttft < 500ms"));
    has(&page(vec![judged]), "   31.50  1600.0  kept\n");
}

#[test]
fn answers_of_all_kinds_and_many_configurations() {
    let with = |state: GoodputState| {
        let mut one = configuration("1", 1.0);
        one.sweep.as_mut().unwrap().goodput.as_mut().unwrap().state = state;
        one
    };
    let page = page(
        [GoodputState::AtLeast, GoodputState::Unreachable, GoodputState::Unclear]
            .into_iter()
            .cycle()
            .take(12)
            .map(with)
            .collect(),
    );
    for text in
        ["       ≥ 22.4", "         none", "      unclear", "of the first 8 configurations only"]
    {
        has(&page, text);
    }
    let none = sweeps_text(
        &Sweeps {
            schema: Sweeps::SCHEMA.to_owned(),
            verdict: Verdict::Valid,
            configurations: Vec::new(),
            best: Some(7),
            because: String::new(),
        },
        Detail::Full,
    );
    assert!(none.contains("Best        none\n"), "{none}");
}
