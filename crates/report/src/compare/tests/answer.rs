//! What is said in words.

use goodput_campaign::compare::{Comparison, Figure, FigureOutcome, Finding, Limit, Stopped};
use goodput_campaign::sweep::Level;
use goodput_model::{Caveat, CaveatCode, Severity, Verdict};

use super::fixtures::*;
use crate::compare::{compare_block_line, compare_junit, compare_markdown, compare_text};

#[test]
fn every_kind_of_answer() {
    let both = changed(|c| {
        c.findings = vec![
            finding("tpot_p50", (20.0, 19.0), 0.01, FigureOutcome::Better),
            finding("output_tokens_per_s", (3000.0, 2700.0), 0.02, FigureOutcome::Worse),
        ];
    });
    assert_eq!(
        answer(&both),
        "Answer B is a trade-off: worse by output tok/s -10.0 % (-12.0 % to -8.0 %); better by p50 \
         TPOT -5.0 % (-6.0 % to -4.0 %); 8 blocks"
    );
    let same = changed(|c| {
        c.findings.retain(|one| one.outcome == FigureOutcome::Equivalent);
    });
    assert_eq!(
        answer(&same),
        "Answer no difference between B and A larger than 3 % in any of 3 tested figures; 8 blocks"
    );
    let open = |c: &mut Comparison| {
        c.findings = vec![finding("ttft_p50", (100.0, 102.0), 0.04, FigureOutcome::Inconclusive)];
    };
    // 592 s for 8 blocks: 74 s each.
    assert_eq!(
        answer(&changed(open)),
        "Answer B is inconclusive: about 6 more blocks (7 min) for p50 TTFT +2.0 % (-2.0 % to +6.0 \
         %)"
    );
    let last = changed(|c| {
        open(c);
        c.comparison.stopped = Some(Stopped::LastLook);
    });
    assert_eq!(
        answer(&last),
        "Answer B is inconclusive: about 6 more blocks (7 min; a new comparison with --blocks 14) \
         for p50 TTFT +2.0 % (-2.0 % to +6.0 %)"
    );
    let unknown = changed(|c| {
        open(c);
        c.findings[0].further_blocks = None;
        c.findings.push(finding("tpot_p50", (20.0, 20.0), 0.01, FigureOutcome::Equivalent));
    });
    assert_eq!(
        answer(&unknown),
        "Answer B is inconclusive: more data is needed for p50 TTFT +2.0 % (-2.0 % to +6.0 %); 1 \
         of 2 differ by less than 3 %"
    );
    let partly = changed(|c| {
        c.findings[0].outcome = FigureOutcome::Inconclusive;
        c.findings[0].further_blocks = Some(1);
        c.findings[1].outcome = FigureOutcome::NoVerdict;
    });
    assert_eq!(
        answer(&partly),
        "Answer B is slower: p50 TPOT +5.1 % (+3.9 % to +6.2 %); 8 blocks; 1 of 4 differ by less \
         than 3 %; inconclusive: p50 TTFT (about 1 more block, 74 s); no verdict on p99 TTFT"
    );
    assert_eq!(
        answer(&search()),
        "Answer B carries more load within the SLO: goodput +8.0 % (+5.0 % to +11.0 %); 8 blocks"
    );
    let few = changed(|c| {
        c.findings.retain(|one| one.is_tested);
        c.findings.iter_mut().for_each(|one| (one.outcome, one.n) = (FigureOutcome::NoVerdict, 2));
    });
    assert_eq!(answer(&few), "Answer no verdict on B from 2 blocks: at least 3 are needed");
    let nothing = changed(|c| c.findings.clear());
    let expected = "Answer no verdict on B: no figure measured on both sides can be tested";
    assert_eq!(answer(&nothing), expected);
}

/// A figure that a side lacks is bad news: it is said first, with the side.
#[test]
fn what_a_side_lacks_is_said() {
    use FigureOutcome::{Better, Equivalent, NoVerdict, Worse};

    let lacks = |outcomes: [FigureOutcome; 3], n: u32| {
        changed(|c| {
            c.runs = runs("ttft_p99", &[true, true, true, false, false, false, false, false]);
            c.findings.truncate(3);
            for (finding, outcome) in c.findings.iter_mut().zip(outcomes) {
                finding.outcome = outcome;
            }
            c.findings[1].n = n;
            // All that the others need is there.
            for cell in &mut c.runs {
                let figure = Figure { value: 1.0, low: None, high: None };
                for name in ["ttft_p50", "tpot_p50"] {
                    cell.figures.insert(name.to_owned(), figure);
                }
            }
        })
    };
    assert_eq!(
        answer(&lacks([Equivalent, NoVerdict, Equivalent], 3)),
        "Answer no verdict on B as a whole, for lack of p99 TTFT (B has it in 3 of 8 runs); for \
         the rest: no difference between B and A larger than 3 % in p50 TTFT, p50 TPOT; 8 blocks"
    );
    let better = answer(&lacks([Equivalent, NoVerdict, Better], 3));
    let expected = "no verdict on B as a whole, for lack of p99 TTFT (B has it in 3 of 8 runs); \
                    for the rest: B is faster: p50 TPOT";
    assert!(better.contains(expected), "{better}");
    let worse = answer(&lacks([Equivalent, NoVerdict, Worse], 3));
    assert!(worse.starts_with("Answer B is slower: p50 TPOT"), "{worse}");
    assert!(worse.ends_with("; no verdict on p99 TTFT (B has it in 3 of 8 runs)"), "{worse}");
    let mut only = lacks([Equivalent, NoVerdict, Equivalent], 0);
    only.findings = vec![only.findings[1].clone()];
    let expected = "Answer no verdict on B, for lack of p99 TTFT (B has it in 3 of 8 runs)";
    assert_eq!(answer(&only), expected);
    // Of saved runs too: chance is known there.
    (only.is_paired, only.floor) = (false, None);
    assert_eq!(answer(&only), expected);
    // A void run of a block takes the whole block.
    only.is_paired = true;
    only.runs[14].verdict = Verdict::Void;
    assert!(answer(&only).ends_with("(B has it in 3 of 7 runs)"), "{}", answer(&only));
    // Without a pair values are missing.
    let page = compare_text(&only, crate::Detail::Full);
    has(&page, "p99 TTFT, ms  –  –       –  no verdict\n");
    assert_eq!(compare_block_line(&only, 0.0), "block 8 of at most 16");
    // Nor of a gate.
    let mut gated = lacks([Equivalent, NoVerdict, Equivalent], 0);
    gated.gates = vec![gate("ttft_p99", Limit::Below, 0.05, NoVerdict)];
    let holds = gate("goodput_rps", Limit::Above, -0.03, Equivalent);
    gated.gates.push(holds);
    assert_eq!(
        answer(&gated),
        "Answer 1 of 2 gates cannot be judged: no verdict on B, for lack of p99 TTFT (B has it in \
         3 of 8 runs)"
    );
    has(
        &compare_text(&gated, crate::Detail::Full),
        "B  8 req/s                           –  no verdict\n",
    );
    // Both sides have it, and one of them in a single run.
    let mut single = saved();
    single.runs = runs("ttft_p99", &[true, true]);
    single.runs[1].verdict = Verdict::Void;
    single.gates = vec![gate("ttft_p99", Limit::Below, 0.05, NoVerdict)];
    single.gates.push(gate("goodput_rps", Limit::Above, -0.03, FigureOutcome::Inconclusive));
    let said = "1 cannot be judged: p99 TTFT (2 usable runs of A, 1 usable run of B, and no noise";
    assert!(answer(&single).contains(said), "{}", answer(&single));
    has(&compare_junit(&single), "1 usable run of B, and no noise floor for it");
    let case = "p99 TTFT not measured, allowed &lt; +5 %; 0 blocks; B has it in 3 of 8 runs";
    has(&compare_junit(&gated), case);
}

/// A side that failed is named, and not only that something is void.
#[test]
fn why_it_is_void_is_said() {
    let void = |c: &mut Comparison| {
        c.verdict = Verdict::Void;
        let message = "B failed most of its requests in 8 of 16 blocks";
        c.caveats = vec![Caveat::new(CaveatCode::DoubtfulRuns, Severity::Void, message)];
    };
    // No news follows, neither good nor bad, nor how many more such blocks would bring some.
    let expected = "Answer NOT SHOWN: these numbers are void (B failed most of its requests in 8 \
                    of 16 blocks)";
    assert_eq!(answer(&changed(void)), expected);
    let open = changed(|c| {
        void(c);
        c.findings.truncate(1);
        c.findings[0].outcome = FigureOutcome::Inconclusive;
        c.findings[0].further_blocks = Some(6);
    });
    assert_eq!(answer(&open), expected);
    assert!(!compare_junit(&open).contains("more needed"));
    let gated = changed(|c| {
        void(c);
        c.gates = vec![gate("ttft_p99", Limit::Below, 0.05, FigureOutcome::Worse)];
    });
    assert_eq!(answer(&gated), expected);
    // Of all candidates alike, so once; what makes sides incomparable is a reason too.
    let mut several = three();
    void(&mut several);
    several.caveats[0].code = CaveatCode::NotComparable;
    assert_eq!(answer(&several), expected);
    assert_eq!(compare_markdown(&several).matches("NOT SHOWN").count(), 1);
    let nothing = changed(|c| {
        void(c);
        c.findings.clear();
    });
    let expected = "Answer no verdict on B: B failed most of its requests in 8 of 16 blocks";
    assert_eq!(answer(&nothing), expected);
}

#[test]
fn margins_of_single_figures_are_said() {
    let own = changed(|c| {
        c.design.margins.insert("ttft_p99".to_owned(), 0.05);
        c.findings.retain(|one| one.outcome == FigureOutcome::Equivalent);
        c.findings[1].margin = 0.05;
    });
    let said = answer(&own);
    let expected = "no difference between B and A larger than the margins (3 % to 5 %) in any of 3";
    assert!(said.contains(expected), "{said}");
    let page =
        compare_text(&own, crate::Detail::Full).split_whitespace().collect::<Vec<_>>().join(" ");
    has(&page, "changes below 3 % do not matter (p99 TTFT 5 %)");
}

/// A tail is said to be one only where its median is known to be the same.
#[test]
fn only_the_tail() {
    let tail = |median: FigureOutcome| {
        answer(&changed(|c| {
            c.findings = vec![
                finding("ttft_p50", (100.0, 100.5), 0.01, median),
                finding("ttft_p99", (200.0, 280.0), 0.05, FigureOutcome::Worse),
                finding("tpot_p50", (20.0, 20.0), 0.01, FigureOutcome::Equivalent),
            ];
        }))
    };
    assert_eq!(
        tail(FigureOutcome::Equivalent),
        "Answer B is worse, but only the tail differs: p99 TTFT +40.0 % (+35.0 % to +45.0 %), p50 \
         TTFT within 3 %; 8 blocks; no other tested figure differs by more than 3 %"
    );
    assert!(
        !tail(FigureOutcome::Inconclusive).contains("tail"),
        "{}",
        tail(FigureOutcome::Inconclusive)
    );
    assert!(!tail(FigureOutcome::Worse).contains("tail"), "{}", tail(FigureOutcome::Worse));
    // Nor where anything but a tail is open.
    let open = |metric: &str| {
        answer(&changed(|c| {
            c.findings = vec![
                finding("ttft_p50", (100.0, 100.5), 0.01, FigureOutcome::Equivalent),
                finding("ttft_p99", (200.0, 280.0), 0.05, FigureOutcome::Worse),
                finding(metric, (20.0, 20.5), 0.05, FigureOutcome::Inconclusive),
            ];
        }))
    };
    assert!(!open("tpot_p50").contains("tail"), "{}", open("tpot_p50"));
    assert!(open("tpot_p99").contains("only the tail"), "{}", open("tpot_p99"));
    // Of a level with another: the median at the same level counts.
    let levels = changed(|c| {
        c.design.levels = vec![Level::Rate(4.0), Level::Users(16)];
        c.findings = vec![
            finding("ttft_p50", (100.0, 100.5), 0.01, FigureOutcome::Equivalent),
            Finding { level: 1, ..finding("ttft_p99", (200.0, 280.0), 0.05, FigureOutcome::Worse) },
        ];
    });
    let said = answer(&levels);
    let expected =
        "Answer B is slower: p99 TTFT at 16 users +40.0 % (+35.0 % to +45.0 %); 8 blocks";
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn gates_are_judged_one_by_one() {
    let fails = gate("ttft_p99", Limit::Below, 0.05, FigureOutcome::Worse);
    let holds = gate("goodput_rps", Limit::Above, -0.03, FigureOutcome::Better);
    let both = gated(vec![fails.clone(), holds.clone()]);
    let expected =
        "Answer B fails 1 of 2 gates: p99 TTFT +8.0 % (+6.1 % to +10.2 %), allowed < +5 %";
    assert_eq!(answer(&both), expected);
    let page = compare_text(&both, crate::Detail::Full);
    has(&page, "p99 TTFT < +5 %          B  8 req/s  +8.0 % (+6.1 % to +10.2 %)  NO\n");
    has(&page, "goodput > -3 %           B  8 req/s  +8.0 % (+6.1 % to +10.2 %)  yes\n");
    assert_eq!(
        answer(&gated(vec![holds.clone()])),
        "Answer B passes 1 gate: goodput +8.0 % (+6.1 % to +10.2 %), allowed > -3 %"
    );
    let mut open =
        gated(vec![gate("tpot_p50", Limit::Below, 0.05, FigureOutcome::Inconclusive), holds]);
    open.findings[2].further_blocks = Some(4);
    assert_eq!(
        answer(&open),
        "Answer B is inconclusive for 1 of 2 gates: p50 TPOT +8.0 % (+6.1 % to +10.2 %), allowed < \
         +5 % (about 4 more blocks, 5 min)"
    );
    // What no run has was asked all the same.
    let mut unjudged = gated(vec![fails]);
    unjudged.gates.clear();
    let said = answer(&unjudged);
    assert!(said.starts_with("Answer 1 of 1 gate cannot be judged: no verdict on B"), "{said}");
    let shares = gated(vec![gate("attainment", Limit::Above, -0.01, FigureOutcome::Equivalent)]);
    has(&compare_text(&shares, crate::Detail::Full), "attainment > -1 points ");
}
