use goodput_campaign::compare::{Gate, Limit};
use goodput_campaign::sweep::Level;

use super::*;
use crate::compare::tests::fixtures::{finding, has, three};
use crate::compare::{compare_html, compare_markdown, compare_text};
use goodput_document::Detail;

/// Two settings, each with an effect on some figures.
fn varied() -> Comparison {
    let mut made = three();
    made.design.varied = ["", "precision=fp8", "chunked_prefill=off"].map(str::to_owned).to_vec();
    made.design.sides =
        ["baseline", "precision=fp8", "chunked_prefill=off"].map(str::to_owned).to_vec();
    for (side, name) in made.sides.iter_mut().zip(&made.design.sides) {
        side.name.clone_from(name);
    }
    let of =
        |side, metric, values, outcome| Finding { side, ..finding(metric, values, 0.01, outcome) };
    made.findings = vec![
        of(1, "ttft_p50", (100.0, 60.0), FigureOutcome::Better),
        of(1, "tpot_p50", (20.0, 12.0), FigureOutcome::Better),
        of(1, "error_share", (0.0, 0.0), FigureOutcome::Equivalent),
        of(2, "ttft_p50", (100.0, 99.0), FigureOutcome::Inconclusive),
        of(2, "tpot_p50", (20.0, 25.0), FigureOutcome::Worse),
        of(2, "error_share", (0.0, 0.0), FigureOutcome::Equivalent),
        // Described alone: no column of the table.
        Finding { is_tested: false, ..of(1, "ttft_p99", (1.0, 2.0), FigureOutcome::Described) },
    ];
    made
}

#[test]
fn every_setting_has_a_row_and_every_tested_figure_a_column() {
    let text = compare_text(&varied(), Detail::Full);
    has(&text, "Effect of each setting against the baseline\n");
    let head = text.lines().skip_while(|line| !line.starts_with("Effect of each")).nth(2);
    let words: Vec<&str> = head.unwrap().split_whitespace().collect();
    assert_eq!(words, ["setting", "TTFT", "TPOT", "errors"], "{text}");
    let row = |setting: &str| -> Vec<String> {
        let mut lines = text.lines().skip_while(|line| !line.starts_with("Effect of each"));
        let line = lines.find(|line| line.starts_with(setting)).unwrap();
        line.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(row("precision=fp8"), ["precision=fp8", "-40.0", "✓", "-40.0", "✓", "0.0", "="]);
    let off = ["chunked_prefill=off", "-1.0", "?", "+25.0", "✗", "0.0", "="];
    assert_eq!(row("chunked_prefill=off"), off);
    assert!(text.lines().all(|line| unicode_width::UnicodeWidthStr::width(line) <= 80), "{text}");
}

#[test]
fn it_says_that_several_settings_are_tested_at_once() {
    let text =
        compare_text(&varied(), Detail::Full).split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "6 figures of 2 settings are tested at once: the intervals hold together, and better \
                and WORSE are told step by step (after Holm): the chance of any wrong verdict in \
                this table is 5 % at most";
    assert!(text.contains(said), "{text}");
    let mut gated = varied();
    gated.design.gates =
        vec![Gate { metric: "ttft_p50".to_owned(), limit: Limit::Below, change: 0.05 }];
    let text = compare_text(&gated, Detail::Full);
    assert!(!text.contains("Holm") && text.contains("are tested at once"), "{text}");
}

#[test]
fn wide_pages_have_intervals_and_words() {
    let page = compare_markdown(&varied());
    has(
        &page,
        "| precision=fp8 | -40.0 % (-41.0 to -39.0) better | -40.0 % (-41.0 to -39.0) better |",
    );
    assert!(!page.contains('✓') && page.contains("are tested at once"), "{page}");
    let html = compare_html(&varied());
    assert!(html.contains("id=\"effects\""), "{html}");
    assert!(html.contains("+25.0 % (+24.0 to +26.0) WORSE"), "{html}");
}

#[test]
fn each_level_has_its_rows_and_a_void_table_has_no_verdict() {
    let mut made = varied();
    made.design.levels = vec![Level::Rate(8.0), Level::Rate(16.0)];
    made.findings.push(Finding { level: 1, ..made.findings[0].clone() });
    made.verdict = Verdict::Void;
    let page = compare_markdown(&made);
    has(&page, "| precision=fp8, 16 req/s | -40.0 % (-41.0 to -39.0) void |");
    assert!(!page.contains(") better |"), "{page}");
}

#[test]
fn a_comparison_without_variants_has_no_such_table() {
    assert_eq!(section(&three()).blocks, vec![]);
}
