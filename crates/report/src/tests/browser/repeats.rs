//! The page of several runs.

use std::collections::BTreeMap;

use goodput_model::{Caveat, CaveatCode, Severity, Verdict};
use goodput_stats::{Headline, OneRun, Repeats, RunState};

use crate::repeats_html;

/// Three runs, the last of them stopped early.
pub(crate) fn three() -> Repeats {
    let run = |number: u32, is_used| OneRun {
        number,
        seed: 41 + u64::from(number),
        state: if is_used { RunState::Complete } else { RunState::Interrupted },
        verdict: Verdict::Valid,
        is_used,
        window_s: 60.0,
        scheduled: 1200,
        ok: 1199,
        figures: BTreeMap::from([
            ("ttft_p99".to_owned(), 171.7 + 28.3 * f64::from(number)),
            ("requests_per_s".to_owned(), 19.9),
        ]),
    };
    let figure = |mean: f64| Headline {
        n: 2,
        mean,
        sd: Some(mean / 5.0),
        cv: Some(0.2),
        low: Some(mean * 0.8),
        high: Some(mean * 1.2),
        min: mean * 0.9,
        max: mean * 1.1,
        within_sd: Some(mean / 20.0),
        ratio: Some(4.0),
        differs: true,
    };
    Repeats {
        schema: Repeats::SCHEMA.to_owned(),
        verdict: Verdict::Suspect,
        caveats: vec![Caveat::new(CaveatCode::RunsDiffer, Severity::Warn, "<b>ttft_p99\u{1b}")],
        asked: 3,
        used: 2,
        run: None,
        load: "open loop, <i>20 offered".to_owned(),
        runs: vec![run(1, true), run(2, true), run(3, false)],
        headlines: BTreeMap::from([
            ("ttft_p99".to_owned(), figure(200.0)),
            ("requests_per_s".to_owned(), figure(20.0)),
        ]),
    }
}

#[test]
fn the_page_of_several_runs() {
    let page = repeats_html(&three());
    let has = |part: &str| assert!(page.contains(part), "{part:?} is not in\n{page}");
    has("20.00 req/s (16.00–24.00), TTFT p99 200.0 ms (160.0–240.0); means over 2 runs");
    has("2 of 3 requested runs are in these figures");
    for id in ["answer", "caveats", "figures", "charts", "spread", "runs"] {
        has(&format!("href=\"#{id}\""));
        has(&format!("id=\"{id}\""));
    }
    // A mark for each run in both charts.
    assert_eq!(page.matches("class=\"dot\"").count(), 2 * 3);
    has("<td class=\"doubt\">differ</td>");
    has("valid, not used: stopped early");
    assert!(!page.contains("<b>") && !page.contains("<i>") && !page.contains('\u{1b}'));
}

#[test]
fn void_runs_have_no_headline() {
    let mut void = three();
    void.verdict = Verdict::Void;
    let page = repeats_html(&void);
    let sentence = page.split("class=\"sentence\">").nth(1).unwrap();
    assert!(sentence.starts_with("No result: these numbers are void<"), "{sentence}");
    let mut empty = three();
    empty.headlines.clear();
    let page = repeats_html(&empty);
    assert!(page.contains("Nothing to compare") && !page.contains("id=\"figures\""));
}
