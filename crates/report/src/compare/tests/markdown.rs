//! Markdown: tables that stay tables, and foreign text that stays text.

use goodput_campaign::compare::{Comparison, FigureOutcome};
use goodput_model::Verdict;

use super::fixtures::*;
use crate::compare::compare_markdown;

#[test]
fn the_verdict_comes_first() {
    let page = compare_markdown(&two());
    let first =
        "## Comparison: worse\n\n**B is slower: p50 TPOT +5.1 % (+3.9 % to +6.2 %); 8 blocks";
    assert!(page.starts_with(first), "{page}");
    has(
        &page,
        "| p50 TPOT, ms | 20.00 | 21.02 | +5.1 % (+3.9 to +6.2) | +1.02 (+0.79 to +1.25) | 8 | \
                99.5 % | &lt;0.0001 | 0.0078 | +5.1 % | 1.2 % | 3 % | WORSE |\n",
    );
    has(&page, "| output tok/s per GPU | 420.0 | 400.0 | lower in these runs |\n");
    has(&page, "<details><summary>Other figures</summary>\n\n### B against A, 8 req/s: described");
    let order =
        ["## Comparison", "- Sides", "tested together", "All axes", "- Differs", "- Requests"];
    let order = order.into_iter().chain(["- Noise", "- Verdict", "<details>"]);
    let places: Vec<usize> = order.map(|part| page.find(part).expect(part)).collect();
    assert!(places.is_sorted(), "{places:?}\n{page}");
    has(&compare_markdown(&three()), "### Ranking\n\n- p50 TPOT, ms: 1. C (18.00); 2. tie of A");
    let refused = compare_markdown(&refused());
    has(&refused, "## Comparison: no verdict\n\n**B cannot be compared with A: ");
    has(&refused, "  - **refused** B (output\\_length): answers have");
    let void = Comparison { verdict: Verdict::Void, outcome: FigureOutcome::Better, ..two() };
    has(&compare_markdown(&void), "## Comparison: void\n\n**NOT SHOWN");
}

/// Every row of a table has as many bars as its heading, whatever names and messages hold.
#[test]
fn foreign_text_stays_text() {
    let page = compare_markdown(&hostile());
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    let tables = page.split("\n\n").filter(|part| part.starts_with('|'));
    let mut rows = 0;
    for table in tables {
        let expected = bars(table.lines().next().unwrap());
        for line in table.lines() {
            assert_eq!(bars(line), expected, "{line}");
            rows += 1;
        }
    }
    assert!(rows > 10, "{page}");
    for raw in ["<script", "<!--", "[x](", "`c`", "@team", "\x1b", "\r", "**bold**"] {
        assert!(!page.contains(raw), "{raw:?} is in\n{page}");
    }
    // Between two dollars GitHub sees mathematics.
    let dear = compare_markdown(&changed(|c| c.sides[0].target = "$a$".to_owned()));
    assert!(dear.contains("&#36;a&#36;") && !dear.contains('$'), "{dear}");
    // Ours are the only tags.
    let tags: Vec<&str> = page.match_indices('<').map(|(at, _)| &page[at..at + 5]).collect();
    assert!(tags.iter().all(|tag| ["<deta", "<summ", "</det", "</sum"].contains(tag)), "{tags:?}");
}
