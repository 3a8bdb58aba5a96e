//! Live traffic on every page.

use std::collections::BTreeMap;

use goodput_campaign::compare::{CompareState, Comparison, FigureOutcome};
use goodput_campaign::shadow::{Count, LikenessSummary, OverBlocks, ShadowFacts, ShadowReport};
use unicode_width::UnicodeWidthStr;

use super::fixtures::*;
use crate::compare::{compare_block_line, compare_junit, compare_markdown, compare_text};
use crate::compare_html;

#[test]
fn all_pages_say_what_live_traffic_showed() {
    let found = shadow();
    let html = compare_html(&found);
    let facts = [
        "20,000 requests; 1,000 chosen (5.0 % requested), 990 sent to the candidate",
        "480, of which 470 completed on both sides",
        "TTFT 70.0 % (65.0 % to 75.0 %), E2E 60.0 %",
        "TTFT ×1.100 (1.090 to 1.110)",
        "54.30 and 55.00 tokens per answer; ×1.013",
        "for the same reason on both sides in 460 of 470 pairs",
        "byte-identical in 25.0 % of 468 pairs",
    ];
    let text = compare_text(&found, crate::Detail::Full);
    let words = |page: &str| page.split_whitespace().collect::<Vec<_>>().join(" ");
    for fact in facts {
        assert!(words(&text).contains(fact), "{fact}\n{text}");
        assert!(html.contains(fact), "{fact}");
        assert!(words(&compare_markdown(&found)).contains(fact), "{fact}");
    }
    for page in [&text, &html, &compare_markdown(&found)] {
        assert!(page.contains("http_503") || page.contains("http\\_503"));
        assert!(!page.contains("--resume") && !page.contains("--aa"), "{page}");
    }
    assert!(text.lines().all(|line| line.width() <= 80));
    assert!(html.contains("<title>Shadow: worse"), "{}", &html[..300]);
    let junit = compare_junit(&found);
    assert!(junit.contains("goodput shadow") && junit.contains("shadow.B"), "{junit}");
    assert!(compare_block_line(&found, 0.0).starts_with("block 8: "));
}

#[test]
fn a_shadow_that_goes_on_says_so() {
    let mut found = shadow();
    assert!(!compare_text(&found, crate::Detail::Full).contains("so far"));
    found.comparison.state = CompareState::Unfinished;
    assert!(compare_text(&found, crate::Detail::Full).contains("these are the figures so far"));
    found.comparison.state = CompareState::Interrupted;
    assert!(compare_text(&found, crate::Detail::Full).contains("stopped early"));
    found.comparison.state = CompareState::TargetLost;
    let page = compare_text(&found, crate::Detail::Full);
    assert!(page.contains("a thread of the proxy failed") && !page.contains("went away"));
}

#[test]
fn nothing_of_a_server_is_markup() {
    let mut found = shadow();
    let report = found.shadow.as_mut().unwrap();
    report.finishes[0].name = "<b>stop\u{1b}[31m".to_owned();
    report.facts.dropped = BTreeMap::from([("<i>queue".to_owned(), 3)]);
    report.facts.ended = Some("<u>done\nVerdict     VALID".to_owned());
    let html = compare_html(&found);
    assert!(!html.contains("<b>stop") && !html.contains("<i>queue") && !html.contains("<u>done"));
    assert!(!compare_text(&found, crate::Detail::Full).contains('\u{1b}'));
}

/// The figures of [`two`], of live traffic.
pub(crate) fn shadow() -> Comparison {
    let mut found = two();
    let count = |name: &str, counts| Count { name: name.to_owned(), counts };
    let over = |value: f64, half: f64| {
        let ends = |sign: f64| (half > 0.0).then_some(value + sign * half);
        OverBlocks { value, low: ends(-1.0), high: ends(1.0) }
    };
    let named = |name: &str, over| (name.to_owned(), over);
    found.shadow = Some(ShadowReport {
        facts: ShadowFacts {
            share: 0.05,
            passed: 20_000,
            chosen: 1_000,
            mirrored: 990,
            pairs: 480,
            dropped: BTreeMap::from([("queue_full".to_owned(), 7), ("rate_cap".to_owned(), 3)]),
            ended: None,
        },
        pairs: 480,
        good: 470,
        block_pairs: [51, 73],
        slower: BTreeMap::from([named("ttft", over(0.7, 0.05)), named("e2e", over(0.6, 0.0))]),
        ratios: BTreeMap::from([named("ttft", over(1.1, 0.01)), named("e2e", over(1.02, 0.01))]),
        output_tokens: Some([54.3, 55.0]),
        output_ratio: Some(over(1.013, 0.004)),
        finishes: vec![count("stop", [470, 460]), count("length", [10, 10])],
        same_finish: 460,
        statuses: vec![count("200", [480, 470]), count("503", [0, 10])],
        failures: vec![count("http_503", [0, 10])],
        likeness: Some(LikenessSummary {
            pairs: 468,
            exact: 117,
            prefix_share: Some(0.4),
            length_ratio: Some(1.01),
            characters: [210.0, 212.0],
        }),
    });
    found.comparison.stopped = None;
    found.comparison.workload = String::new();
    found.design.levels.clear();
    found.design.looks = vec![8];
    found.design.run_s = 60.0;
    found.outcome = FigureOutcome::Worse;
    found.proof = None;
    found.floor = None;
    found
}
