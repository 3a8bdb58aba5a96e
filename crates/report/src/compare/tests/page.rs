//! The page, what is said in words, and the lines while it runs.

use goodput_campaign::compare::{
    CompareState, Comparison, Difference, FigureOutcome, Finding, Quantity,
};
use goodput_campaign::sweep::Level;
use goodput_model::{Caveat, CaveatCode, Severity, Verdict};
use unicode_width::UnicodeWidthStr;

use super::fixtures::*;
use crate::compare::{
    compare_block_line, compare_estimate, compare_junit, compare_markdown, compare_text,
};

#[test]
fn the_page_of_two_sides() {
    let expected = "\
Answer      B is slower: p50 TPOT +5.1 % (+3.9 % to +6.2 %); 8 blocks; no other
            tested figure differs by more than 3 %

Sides       A: http://127.0.0.1:8000 · model llama-70b · 8 GPUs at 2.5 per hour
            each · the reference
            B: http://127.0.0.1:8001 · model llama-70b · 8 GPUs at 2.5 per hour
            each
Workload    chat
Load        8 req/s
Blocks      8 of at most 16, each run 30 s after 5 s of load, every second block
            in reverse order, 9.9 min in all; ended early: every tested figure
            is decided
Test        95 % for all 4 tested figures together, the run as the unit; tested
            after 6, 8, 12 and 16 blocks; changes below 3 % do not matter

B against A, 8 req/s: tested together
                   A       B                      change  verdict
p50 TTFT, ms   100.0   100.4       +0.4 % (-0.6 to +1.4)  equivalent
p99 TTFT, ms   200.0   201.0       +0.5 % (-1.5 to +2.5)  equivalent
p50 TPOT, ms   20.00   21.02       +5.1 % (+3.9 to +6.2)  WORSE
attainment    99.2 %  97.0 %  -2.2 points (-2.6 to -1.8)  equivalent

How certain
              blocks  confidence        p  signed ranks          SD  margin
p50 TTFT, ms       8      99.5 %   0.4211        0.3828       1.0 %  3 %
p99 TTFT, ms       8      99.5 %   0.4211        0.3828       2.0 %  3 %
p50 TPOT, ms       8      99.5 %  <0.0001        0.0078       1.2 %  3 %
attainment         8      99.5 %  <0.0001        0.0078  0.4 points  3 points

In units, and the change by ranks
                            in units  Hodges–Lehmann
p50 TTFT, ms  +0.40 (-0.60 to +1.40)  +0.4 %
p99 TTFT, ms  +1.00 (-3.00 to +5.00)  +0.5 %
p50 TPOT, ms  +1.02 (+0.79 to +1.25)  +5.1 %
attainment                            -2.2 points

B against A, 8 req/s: described individually
                  A       B                 change  in these runs
p50 E2E, ms  5000.0  5200.0  +4.0 % (+2.8 to +5.2)  higher

In units
             in units
p50 E2E, ms  +200.0 (+140.0 to +260.0)

All axes, 8 req/s
                             A       B  better
output tok/s            3360.0  3200.0  lower in these runs
output tok/s per GPU     420.0   400.0  lower in these runs
p50 TTFT, ms             100.0   105.0  same
p50 TPOT, ms             20.00   21.00  A
p50 E2E, ms             5000.0  5250.0  higher in these runs
attainment              99.2 %  94.5 %  same
cost of 1M good tokens       –  1.7361
a name: better by the findings above; same: within the margin; tie, ?:
inconclusive; in these runs: described, not tested, the second side against the
first

Differs     no differences found in what should be the same
Requests    3,840 sent to every side, byte-identical, scheduled at the same
            instants; SHA-256
            5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f
Noise       two runs of one server differ by chance with an SD of attainment
            0.4 points, p50 TPOT 1.2 % (8 blocks of 30 s on
            http://127.0.0.1:8000, 8 req/s, 2026-11-14T09:00:00Z)
Verdict     VALID
";
    let page = compare_text(&two(), crate::Detail::Full);
    assert!(page == expected, "{page}");
}

/// What was not tested is described, whatever word its file has, and no page names who is ahead by it.
#[test]
fn what_is_described_has_no_winner() {
    for (change, word, axis) in [
        (0.04, "higher", "higher in these runs"),
        (-0.04, "lower", "lower in these runs"),
        (0.004, "no clear difference", "no clear difference"),
    ] {
        let page = |outcome: FigureOutcome| {
            let other = finding("e2e_p50", (5000.0, 5000.0 * (1.0 + change)), 0.012, outcome);
            let comparison = changed(|c| {
                c.findings[4] = Finding { is_tested: false, ..other };
                c.verdict = Verdict::Valid;
            });
            [compare_text(&comparison, crate::Detail::Full), compare_markdown(&comparison)]
        };
        let [text, markdown] = page(FigureOutcome::Described);
        has(&text, &format!("  {word}\n"));
        has(&text, &format!("p50 E2E, ms             5000.0  5250.0  {axis}\n"));
        has(&markdown, &format!(" | {word} |\n"));
        has(&markdown, &format!("| p50 E2E, ms | 5000.0 | 5250.0 | {axis} |\n"));
        assert_eq!(page(FigureOutcome::Worse), [text, markdown], "as older files have it");
    }
}

/// A word that its interval does not say is explained.
#[test]
fn a_word_by_a_step_is_explained() {
    let remark = "better or WORSE with an interval that includes zero";
    assert!(!compare_text(&two(), crate::Detail::Full).contains(remark));
    let stepped = changed(|c| c.findings[2].low = Some(-0.001));
    has(&compare_text(&stepped, crate::Detail::Full), remark);
    has(&compare_markdown(&stepped), remark);
}

#[test]
fn several_sides_are_ranked() {
    let page = compare_text(&three(), crate::Detail::Full);
    has(&page, "Answer      no difference between B and A larger than 3 % in p50 TPOT; 8 blocks\n");
    has(&page, "            C is faster: p50 TPOT -10.0 % (-11.0 % to -9.0 %); 8 blocks\n");
    has(&page, "Ranking     p50 TPOT, ms: 1. C (18.00); 2. tie of A (20.00), B (20.10)\n");
    has(&page, "p50 TPOT, ms             20.00   20.10    18.00  C\n");
    // This one was not tested between all of them.
    has(&page, "p50 TTFT, ms             100.0   100.5    90.00  not tested\n");
    // One that cannot be compared has no place, and may be the best: no side is named.
    let mut other = three();
    other.ranking.retain(|rank| rank.side != 2);
    let spoils = ["tpot_p50", "output_tokens_per_s"].map(str::to_owned).to_vec();
    other.differences = vec![Difference { side: 2, spoils, ..refused().differences[2].clone() }];
    let page = compare_text(&other, crate::Detail::Full);
    has(&page, "Ranking     p50 TPOT, ms: 2. tie of A (20.00), B (20.10)\n");
    has(&page, "p50 TPOT, ms             20.00   20.10    18.00  ?\n");
    has(&page, "output tok/s per GPU     420.0   417.9    466.7  ?\n");
    has(&page, "p50 TTFT, ms             100.0   100.5    90.00  not tested\n");
    // Nor is anybody where one has no value.
    other.ranking.clear();
    other.differences.clear();
    has(
        &compare_text(&other, crate::Detail::Full),
        "p50 TPOT, ms             20.00   20.10    18.00  ?\n",
    );
    let mut tied = three();
    tied.ranking.iter_mut().for_each(|rank| rank.rank = 1);
    has(
        &compare_text(&tied, crate::Detail::Full),
        "p50 TPOT, ms             20.00   20.10    18.00  tie\n",
    );
    // Each is known to be as good as each.
    let like = |side: u32| (0..3).filter(|other| *other != side).collect();
    tied.ranking.iter_mut().for_each(|rank| rank.like = like(rank.side));
    has(
        &compare_text(&tied, crate::Detail::Full),
        "p50 TPOT, ms             20.00   20.10    18.00  same\n",
    );
    // C is known to be better than A, and nothing is known about B.
    let mut partly = three();
    let b = partly.ranking.iter_mut().find(|rank| rank.side == 1).unwrap();
    (b.rank, b.behind) = (1, Vec::new());
    let page = compare_text(&partly, crate::Detail::Full);
    has(&page, "p50 TPOT, ms             20.00   20.10    18.00  C > A\n");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    has(&page, "1. tie of B (20.10), C (18.00); 2. A (20.00, behind C only) Differs");
}

/// Twelve sides with long names: letters instead, and several tables, each with the reference.
#[test]
fn many_sides_and_long_names_fit() {
    let many = changed(|c| {
        let name = |place: u32| format!("a-very-long-name-of-a-provider-with-version-{place}");
        c.design.sides = (0..12).map(name).collect();
        c.sides = (0..12).map(|place| side(&name(place), 8000 + place)).collect();
        c.findings = (1..12)
            .map(|side| Finding {
                side,
                ..finding("goodput_tokens_per_s", (123_456.0, 1e12), 1e6, FigureOutcome::Worse)
            })
            .collect();
        let slower: Vec<f64> = (0..12).map(|place| 1.0 + f64::from(place)).collect();
        c.levels[0].rows = rows(&slower);
    });
    let page = compare_text(&many, crate::Detail::Full);
    assert!(page.lines().all(|line| line.width() <= 80), "{page}");
    has(&page, "            L: a-very-long-name-of-a-provider-with-version-11 ·\n");
    assert_eq!(page.matches("All axes, 8 req/s\n").count(), 4, "{page}");
    let heads: Vec<&str> = page.lines().filter(|line| line.ends_with("  better")).collect();
    let letters = |line: &str| line.split_whitespace().collect::<String>();
    let heads: Vec<String> = heads.into_iter().map(letters).collect();
    assert_eq!(heads, ["ABCDbetter", "AEFGbetter", "AHIJbetter", "AKLbetter"]);
    // No verdict is lost to the edge of the page.
    assert_eq!(page.matches("  WORSE\n").count(), 11, "{page}");
    // Two of one name cannot be told apart by it.
    let twins = changed(|c| c.sides[0].name = "B".to_owned());
    has(&compare_text(&twins, crate::Detail::Full), "Sides       A: B · http://127.0.0.1:8000");
}

/// A long heading, long names and large numbers: units go to a table of their own.
#[test]
fn wide_tables_are_split() {
    let wide = changed(|c| {
        c.sides[0].name = "sixteen-letters-".to_owned();
        c.sides[1].name = "sixteen-letters+".to_owned();
        let big = (3_000_000.0, 2_000_000.0);
        c.findings = vec![finding("goodput_tokens_per_s", big, 0.11, FigureOutcome::Worse)];
    });
    let page = compare_text(&wide, crate::Detail::Full);
    assert!(page.lines().all(|line| line.width() <= 80), "{page}");
    has(&page, "-33.3 % (-44.3 to -22.3)  WORSE\n");
    has(&page, "\nIn units, and the change by ranks\n");
    has(&page, "output of good requests tok/s  -1000000 (-1330000 to -670000)  -33.3 %\n");
}

#[test]
fn what_differs_is_said_by_severity() {
    let mut refused = refused();
    refused.verdict = Verdict::Void;
    let about = |code, severity, text: &str| Caveat::new(code, severity, text);
    refused.caveats = vec![
        about(CaveatCode::NotComparable, Severity::Void, "answers have 210 and 160 tokens"),
        about(CaveatCode::FewSamples, Severity::Info, "few blocks"),
    ];
    let page = compare_text(&refused, crate::Detail::Full);
    has(&page, "Answer      B cannot be compared with A: answers have 210 and 160 tokens\n");
    has(
        &page,
        "Differs     1 makes figures incomparable, 1 may distort them, 1 is worth knowing\n",
    );
    let marks = [
        "  refused   B (output_length): ",
        "  warning   B (path_rtt): ",
        "  note      B (version): ",
    ];
    let places: Vec<usize> = marks.iter().map(|mark| page.find(mark).expect(mark)).collect();
    assert!(places.is_sorted(), "{page}");
    has(&page, "[affects every");
    has(&page, "[affects p50 TTFT, E2E]");
    // Said once.
    assert_eq!(page.matches("answers have 210 and 160 tokens").count(), 2, "{page}");
    has(&page, "Verdict     VOID: do not use these numbers as a result\n  note      few blocks\n");
    // No news from void numbers that do say something; they stand in the table.
    let void = changed(|c| c.verdict = Verdict::Void);
    let said = answer(&void);
    assert_eq!(said, "Answer NOT SHOWN: these numbers are void");
    let page = compare_text(&void, crate::Detail::Full);
    for word in ["WORSE", "equivalent\n", "  same\n", "Ranking"] {
        assert!(!page.contains(word), "{word}: {page}");
    }
    let row = page.lines().find(|line| line.starts_with("p50 TPOT, ms")).unwrap();
    assert!(row.contains(" +5.1 % ") && row.ends_with("  void"), "{row}");
    let suspect = answer(&changed(|c| c.verdict = Verdict::Suspect));
    assert!(suspect.ends_with("(suspect: read the caveats)"), "{suspect}");
}

#[test]
fn saved_runs_say_what_they_can() {
    let page = compare_text(&saved(), crate::Detail::Full);
    has(&page, "Answer      no verdict on B: how much such runs differ by chance is unknown.");
    has(&page, "Runs        saved runs, not interleaved");
    has(&page, "Requests    not verified to be the same: hashes of what was sent are missing\n");
    has(&page, "Noise       unknown: measure it once per rig with");
    assert!(!page.contains("How certain") && !page.contains("Blocks"), "{page}");
    let mut known = saved();
    known.findings = vec![finding("tpot_p50", (20.0, 22.0), 0.02, FigureOutcome::Worse)];
    let expected = "Answer B is slower: p50 TPOT +10.0 % (+8.0 % to +12.0 %); 8 runs";
    assert_eq!(answer(&known), expected);
}

#[test]
fn a_target_against_itself() {
    let aa = changed(|c| {
        c.design.same_target = true;
        c.findings.retain(|one| one.outcome == FigureOutcome::Equivalent);
    });
    assert_eq!(
        answer(&aa),
        "Answer the target against itself: no difference was found, as expected; 8 blocks"
    );
    // What cannot be told is neither a difference nor a proof that there is none.
    let open = changed(|c| {
        c.design.same_target = true;
        c.findings = vec![finding("ttft_p99", (100.0, 102.0), 0.04, FigureOutcome::Inconclusive)];
    });
    assert_eq!(
        answer(&open),
        "Answer the target against itself: no difference was found, as expected (p99 TTFT vary too \
         much to show a smaller difference); 8 blocks"
    );
    let few = changed(|c| {
        c.comparison.slo = "ttft < 500ms (preset, the default of --search)".to_owned();
        let floor = c.floor.as_mut().unwrap();
        // e^0.0305 - 1 is 3.1 %.
        floor.sd.insert("tpot_p50".to_owned(), 0.0305);
        (floor.blocks, floor.suspect_runs) = (3, 2);
    });
    let page =
        compare_text(&few, crate::Detail::Full).split_whitespace().collect::<Vec<_>>().join(" ");
    has(&page, "p50 TPOT 3.1 % (3 blocks of 30 s (few) on http");
    has(&page, "2 of its runs are suspect");
    has(&page, "SLO ttft < 500ms (preset, the default of --search) Blocks");
    let alarm = answer(&changed(|c| c.design.same_target = true));
    let expected = "Answer the target against itself, and yet it differs: p50 TPOT +5.1 %";
    assert!(alarm.starts_with(expected), "{alarm}");
    assert!(alarm.ends_with("one of the 5 in 100 cases that chance produces"), "{alarm}");
}

#[test]
fn what_was_sent() {
    let said = |change: fn(&mut goodput_campaign::compare::Proof)| {
        let page =
            compare_text(&changed(|c| change(c.proof.as_mut().unwrap())), crate::Detail::Full);
        let from = page.find("Requests").unwrap();
        let text: String = page.get(from..page.find("Noise").unwrap()).unwrap().to_owned();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let differ = "Requests NOT THE SAME: 3 of 3,840 requests differ between the sides";
    assert_eq!(said(|proof| proof.identical = 3837), differ);
    let closed = said(|proof| (proof.same_instant, proof.without_model) = (None, true));
    let expected = "byte-identical except for the model's name, each sent after";
    assert!(closed.contains(expected), "{closed}");
    let late = said(|proof| proof.same_instant = Some(10));
    assert!(late.contains(", only 10 of them scheduled at the same instants"), "{late}");
    let none = said(|proof| proof.compared = 0);
    assert!(none.contains("no request was sent to every side"), "{none}");
}

#[test]
fn nothing_measured_and_odd_numbers() {
    let empty = compare_text(&Comparison::default(), crate::Detail::Full);
    has(&empty, "Answer      nothing was compared\n");
    let stopped = changed(|c| c.comparison.state = CompareState::Interrupted);
    has(
        &compare_text(&stopped, crate::Detail::Full),
        "State       stopped by the user: this is what was measured so far",
    );
    for odd in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300, -1e300] {
        let comparison = changed(|c| {
            for one in &mut c.findings {
                (one.reference, one.candidate, one.change) = (odd, odd, odd);
                (one.low, one.high, one.sd) = (Some(odd), Some(odd), Some(odd));
                (one.p, one.wilcoxon_p, one.hodges_lehmann) = (Some(odd), Some(odd), Some(odd));
                (one.margin, one.confidence, one.level) = (odd, odd, u32::MAX);
                (one.side, one.n, one.further_blocks) = (u32::MAX, u32::MAX, Some(u32::MAX));
            }
            let mut more = c.findings.clone();
            for one in &mut more {
                (one.side, one.outcome) = (1, FigureOutcome::Inconclusive);
            }
            c.findings.extend(more);
            c.levels[0].rows[0].values = vec![Some(odd), None, Some(odd)];
            c.levels[0].level = Some(Level::Rate(odd));
            c.design.levels = vec![Level::Rate(odd); 2];
            (c.design.margin, c.design.alpha, c.design.run_s) = (odd, odd, odd);
            (c.comparison.took_s, c.comparison.blocks) = (odd, u32::MAX);
            c.floor.as_mut().unwrap().run_s = odd;
            c.sides[0].price_per_gpu_hour = Some(odd);
        });
        let page = compare_text(&comparison, crate::Detail::Full);
        assert!(page.lines().all(|line| line.width() <= 80), "{page}");
        for text in [page, compare_markdown(&comparison), compare_junit(&comparison)] {
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        }
        compare_estimate(&comparison.design, odd, odd);
        assert!(compare_block_line(&comparison, 60.0).width() <= 100);
    }
}

/// Control codes of foreign text are shown and not obeyed, and no line is longer than the page.
#[test]
fn hostile_text_is_shown_and_not_obeyed() {
    let page = compare_text(&hostile(), crate::Detail::Full);
    assert!(!page.contains('\x1b') && !page.contains('\u{202e}') && !page.contains('\r'), "{page}");
    has(&page, "\\u{1b}[2J");
    assert!(page.lines().all(|line| line.width() <= 80), "{page}");
    let step = compare_block_line(&hostile(), 0.0);
    assert!(!step.contains('\x1b') && step.width() <= 100, "{step}");
}

#[test]
fn before_and_while_it_goes_on() {
    let mut design = two().design;
    assert_eq!(
        compare_estimate(&design, 432.0, 1152.0),
        "about 7 min to the first test, 19 min at most: up to 16 blocks of 2 runs (30 s after 5 s \
         of load); tested after 6, 8, 12 and 16 blocks"
    );
    (design.looks, design.quantity) = (vec![8], Quantity::Goodput);
    design.levels.clear();
    assert_eq!(
        compare_estimate(&design, 5400.0, 5400.0),
        "about 2 h: up to 8 blocks of 2 searches; tested once, after 8 blocks"
    );
    assert_eq!(
        compare_block_line(&two(), 0.0),
        "block 8 of at most 16: p50 TPOT +5.1 % (+3.9 to +6.2) · p99 TTFT +0.5 % (-1.5 to +2.5)"
    );
    assert_eq!(
        compare_block_line(&three(), 0.0),
        "block 8 of at most 16: B p50 TPOT +0.5 % (-0.5 to +1.5) · C p50 TPOT -10.0 % (-11.0 to -9.0)"
    );
    assert_eq!(compare_block_line(&Comparison::default(), 0.0), "block 0 of at most 16");
}
