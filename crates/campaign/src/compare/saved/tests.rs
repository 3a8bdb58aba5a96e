//! Runs whose every value is written down here. Expected values are SciPy 1.18's
//! (`ttest_ind(equal_var=False)` on logarithms, `t.ppf`) where they are not worked out by hand.

use std::collections::BTreeMap;

use goodput_model::{Caveat, CaveatCode, Severity};

use super::*;
use crate::compare::{Matter, RunAsk};

/// Both libraries are good to about this; values are of the order of 0.1.
const CLOSE: f64 = 1e-9;

fn close(actual: Option<f64>, expected: f64) -> bool {
    actual.is_some_and(|actual| (actual - expected).abs() < CLOSE)
}

fn cell(level: u32, block: u32, figures: &[(&str, f64)]) -> ComparedRun {
    let figure = |value| Figure { value, low: None, high: None };
    ComparedRun {
        ask: RunAsk { number: 9, block, side: 9, level, seed: 1 },
        verdict: Verdict::Valid,
        doubt: None,
        figures: figures.iter().map(|(name, value)| ((*name).to_owned(), figure(*value))).collect(),
        facts: SideFacts {
            workload: "chat".to_owned(),
            workload_hash: "aaaa".to_owned(),
            window_s: 30.0,
            ..SideFacts::default()
        },
    }
}

fn of_cells(name: &str, runs: Vec<ComparedRun>) -> SavedSide {
    SavedSide { side: Side { name: name.to_owned(), ..Side::default() }, runs }
}

/// A side with these values of one figure, one run each.
fn side(name: &str, figure: &str, values: &[f64]) -> SavedSide {
    let runs = (1u32..).zip(values).map(|(block, value)| cell(0, block, &[(figure, *value)]));
    of_cells(name, runs.collect())
}

fn compared(sides: Vec<SavedSide>) -> Comparison {
    compare_saved(CompareFacts::default(), Design::default(), sides, None, false)
}

fn floor() -> Floor {
    Floor {
        schema: Floor::SCHEMA.to_owned(),
        date: String::new(),
        machine: String::new(),
        target: String::new(),
        model: String::new(),
        load: "4/s, 8/s".to_owned(),
        workload: "chat".to_owned(),
        blocks: 8,
        run_s: 30.0,
        suspect_runs: 0,
        sd: BTreeMap::from([("ttft_p50".to_owned(), 0.02)]),
    }
}

/// What the floor is of.
fn at_eight() -> Design {
    Design { levels: vec![Level::Rate(8.0)], ..Design::default() }
}

const OLD: [f64; 5] = [100.0, 102.0, 98.0, 101.0, 99.0];
const SLOW: [f64; 5] = [110.0, 113.0, 107.0, 112.0, 108.0];

#[test]
fn several_runs_are_compared_by_welch_on_logarithms() {
    let found = compared(vec![side("old", "ttft_p50", &OLD), side("new", "ttft_p50", &SLOW)]);
    assert!(!found.is_paired && found.proof.is_none());
    assert_eq!(found.outcome, FigureOutcome::Worse);
    assert_eq!(found.design.sides, ["old", "new"]);
    let [finding] = &found.findings[..] else { panic!("{:?}", found.findings) };
    assert_eq!((finding.n, finding.is_tested, finding.outcome), (5, true, FigureOutcome::Worse));
    assert!(close(Some(finding.change), 0.099_873_589_422_051_34), "{}", finding.change);
    assert!(close(finding.low, 0.067_767_884_354_123_22), "{:?}", finding.low);
    assert!(close(finding.high, 0.132_944_650_643_702_23), "{:?}", finding.high);
    assert!(close(finding.p, 0.000_122_424_806_694_898_3), "{:?}", finding.p);
    assert!(close(finding.sd, 0.028_062_458_844_598_62), "{:?}", finding.sd);
    assert!(close(Some(finding.confidence), 0.95));
    assert!(close(Some(finding.reference), 99.989_998_799_719_97));
    assert_eq!((finding.wilcoxon_p, finding.hodges_lehmann), (None, None), "nothing is paired");
    let places: Vec<_> = found.runs.iter().map(|run| (run.ask.number, run.ask.side)).collect();
    assert_eq!(places[0], (1, 0));
    assert_eq!(places[9], (10, 1));
    let values = [Some(finding.reference), Some(finding.candidate)];
    assert_eq!(found.levels[0].rows[0].values, values, "one figure has one value");
    assert_eq!(found.verdict, Verdict::Valid);
    assert_eq!(found.caveats[0].code, CaveatCode::NotInterleaved);
}

#[test]
fn figures_share_the_chance_of_a_wrong_word() {
    let met = [0.99, 0.98, 0.97, 0.99, 0.98];
    let missed = [0.95, 0.96, 0.94, 0.95, 0.93];
    let both = |name, times: &[f64], shares: &[f64]| {
        let runs = (1u32..).zip(times.iter().zip(shares)).map(|(block, (time, share))| {
            cell(0, block, &[("ttft_p50", *time), ("attainment", *share), ("e2e_p50", *time)])
        });
        of_cells(name, runs.collect())
    };
    let found = compared(vec![both("old", &OLD, &met), both("new", &SLOW, &missed)]);
    let [ttft, attainment, e2e] = &found.findings[..] else { panic!("{:?}", found.findings) };
    // Each at half the chance: their intervals hold together.
    assert!(close(ttft.low, 0.061_429_132_297_388_26), "{:?}", ttft.low);
    assert!(close(ttft.high, 0.139_710_486_454_983_32) && close(Some(ttft.confidence), 0.975));
    assert!(close(attainment.low, -0.053_756_070_199_561_62), "{:?}", attainment.low);
    assert!(close(attainment.high, -0.018_243_929_800_438_42));
    assert!(
        close(Some(attainment.change), -0.036) && close(attainment.p, 0.000_626_144_061_981_307_3)
    );
    assert_eq!(attainment.outcome, FigureOutcome::Worse, "a share is compared by its difference");
    // One that is not tested is described for itself.
    assert!(!e2e.is_tested && close(e2e.low, 0.067_767_884_354_123_22));
}

#[test]
fn single_runs_have_no_verdict() {
    let one = |name, value: f64, low: f64, high: f64| {
        let mut side = side(name, "ttft_p50", &[value]);
        let figure = Figure { value, low: Some(low), high: Some(high) };
        side.runs[0].figures.insert("ttft_p50".to_owned(), figure);
        side
    };
    let sides = || vec![one("old", 100.0, 90.0, 110.0), one("new", 120.0, 100.0, 140.0)];
    let found = compared(sides());
    assert_eq!(
        (found.outcome, found.findings[0].outcome),
        (FigureOutcome::NoVerdict, FigureOutcome::NoVerdict)
    );
    // Distances of ln 1.2 and ln 1.1 below, of ln 1.1667 and ln 1.1111 above.
    let (low, high) = (1.2_f64.ln().hypot(1.1_f64.ln()), (7.0_f64 / 6.0).ln().hypot(0.9_f64.ln()));
    assert!(close(found.findings[0].low, 1.2 * (-low).exp() - 1.0), "{:?}", found.findings[0].low);
    assert!(close(found.findings[0].high, 1.2 * high.exp() - 1.0));
    assert_eq!((found.findings[0].p, found.findings[0].sd), (None, None));
    let few = found.caveats.iter().find(|caveat| caveat.code == CaveatCode::FewSamples).unwrap();
    assert!(few.message.contains("a single run of new, old: "), "{}", few.message);
    assert_eq!(found.verdict, Verdict::Suspect);
    // An unknown fact cannot be required.
    let insisted = compare_saved(CompareFacts::default(), Design::default(), sides(), None, true);
    assert_eq!(insisted.outcome, FigureOutcome::NoVerdict);
    // A run without an interval of its own has none.
    let bare = compared(vec![side("old", "ttft_p50", &[1.0]), side("new", "ttft_p50", &[2.0])]);
    assert_eq!(
        (bare.findings[0].low, bare.findings[0].change.to_bits()),
        (None, 1.0_f64.to_bits())
    );
    // Nor have several runs against a single one a verdict.
    let mixed = compared(vec![side("old", "ttft_p50", &OLD), side("new", "ttft_p50", &[120.0])]);
    assert_eq!(mixed.outcome, FigureOutcome::NoVerdict);
}

#[test]
fn the_floor_says_how_single_runs_spread() {
    let against = |values: &[f64], value: f64| {
        let sides = vec![side("old", "ttft_p50", values), side("new", "ttft_p50", &[value])];
        compare_saved(CompareFacts::default(), at_eight(), sides, Some(floor()), false)
    };
    let found = against(&[100.0], 110.0);
    let finding = &found.findings[0];
    assert!(close(finding.low, 0.049_189_220_324_749_14), "{:?}", finding.low);
    assert!(close(finding.high, 0.153_271_475_306_881_48), "{:?}", finding.high);
    assert!(close(finding.p, 0.002_046_344_948_642_843), "{:?}", finding.p);
    assert!(close(finding.sd, 0.02));
    assert_eq!((found.outcome, found.verdict), (FigureOutcome::Worse, Verdict::Valid));
    let few = found.caveats.iter().find(|caveat| caveat.code == CaveatCode::FewSamples).unwrap();
    assert!(few.message.contains("8 blocks of 30 s"), "{}", few.message);
    let open = &against(&[100.0], 102.0).findings[0];
    assert_eq!(open.outcome, FigureOutcome::Inconclusive);
    assert!(
        close(open.low, -0.027_115_450_244_323_578) && close(open.high, 0.069_397_186_193_653_69)
    );
    assert!(open.further_blocks.is_some_and(|runs| runs >= 1));
    // Five runs on one side: the error is that of their mean.
    let five = &against(&[100.0; 5], 110.0).findings[0];
    assert!(close(five.low, 0.060_433_279_040_298_6), "{:?}", five.low);
    // A floor that says nothing of this figure does not help.
    let other = |name, value| side(name, "tpot_p50", &[value]);
    let sides = vec![other("old", 1.0), other("new", 2.0)];
    let found = compare_saved(CompareFacts::default(), at_eight(), sides, Some(floor()), false);
    assert_eq!(found.outcome, FigureOutcome::NoVerdict);
}

#[test]
fn a_floor_of_something_else_does_not_help() {
    let found = |design: Design, floor: Floor, window_s: f64| {
        let mut sides = vec![side("old", "ttft_p50", &[100.0]), side("new", "ttft_p50", &[110.0])];
        for side in &mut sides {
            side.runs[0].facts.window_s = window_s;
        }
        compare_saved(CompareFacts::default(), design, sides, Some(floor), false)
    };
    let users = || Design { levels: vec![Level::Users(8)], ..Design::default() };
    let of = |load: &str| Floor { load: load.to_owned(), ..floor() };
    let known = [
        found(at_eight(), floor(), 30.0),
        found(at_eight(), of("8.001/s"), 29.9),
        found(at_eight(), floor(), 300.0),
        found(users(), of("8 users"), 30.0),
    ];
    for known in &known {
        assert_eq!((known.outcome, known.verdict), (FigureOutcome::Worse, Verdict::Valid));
    }
    let other = [
        found(at_eight(), of("16/s"), 30.0),
        found(at_eight(), of("8 users"), 30.0),
        found(users(), of("8/s"), 30.0),
        found(Design::default(), of(""), 30.0),
        found(at_eight(), Floor { workload: "code".to_owned(), ..floor() }, 30.0),
        // Shorter runs than those of the floor differ by more.
        found(at_eight(), floor(), 20.0),
    ];
    for other in &other {
        assert_eq!((other.outcome, other.verdict), (FigureOutcome::NoVerdict, Verdict::Suspect));
        let few = other.caveats.iter().find(|one| one.code == CaveatCode::FewSamples).unwrap();
        assert!(few.message.contains("was measured on something else"), "{}", few.message);
        assert!(other.floor.is_some(), "it is shown all the same");
    }
}

#[test]
fn another_workload_is_refused_unless_the_user_insists() {
    let mut other = side("new", "ttft_p50", &SLOW);
    for run in &mut other.runs {
        run.facts.workload_hash = "bbbb".to_owned();
    }
    let sides = vec![side("old", "ttft_p50", &OLD), other];
    let design = Design {
        gates: vec!["p50 ttft < +5%".to_owned().try_into().unwrap()],
        ..Design::default()
    };
    let run = |insists| {
        compare_saved(CompareFacts::default(), design.clone(), sides.clone(), None, insists)
    };
    let refused = run(false);
    assert_eq!((refused.outcome, refused.verdict), (FigureOutcome::NoVerdict, Verdict::Void));
    assert_eq!(refused.findings[0].outcome, FigureOutcome::NoVerdict);
    assert_eq!(refused.gates[0].outcome, FigureOutcome::NoVerdict);
    assert!(refused.findings[0].low.is_some(), "what was measured is shown all the same");
    assert_eq!(refused.differences[0].code, "workload_hash");
    assert_eq!(refused.differences[0].matter, Matter::Refuse);
    let insisted = run(true);
    assert_eq!((insisted.outcome, insisted.verdict), (FigureOutcome::Worse, Verdict::Suspect));
    assert_eq!(insisted.gates[0].outcome, FigureOutcome::Worse);
    assert_eq!(insisted.caveats[0].code, CaveatCode::NotComparable);
}

/// The interval of a gated figure has the level of its gate's step; its word against zero that of the
/// first step, and the runs that are missing are those until the gate can be told.
#[test]
fn a_gate_has_a_level_and_runs_of_its_own() {
    let near: Vec<f64> = OLD.iter().map(|value| value * 1.0256).collect();
    let both = |name, times: &[f64]| {
        let runs = (1u32..).zip(times.iter().zip(OLD)).map(|(block, (time, same))| {
            cell(0, block, &[("ttft_p50", *time), ("tpot_p50", same)])
        });
        of_cells(name, runs.collect())
    };
    let gated = |gates: &[&str]| {
        let gates = gates.iter().map(|gate| (*gate).to_owned().try_into().unwrap()).collect();
        let design = Design { gates, ..Design::default() };
        let sides = vec![both("old", &OLD), both("new", &near)];
        compare_saved(CompareFacts::default(), design, sides, None, false)
    };
    let found = gated(&["p50 ttft < +50%", "p50 tpot < +50%"]);
    let ttft = &found.findings[0];
    // p is between 2.5 and 5 percent: alone it would differ.
    assert!(ttft.low.is_some_and(|low| low < 0.0) && close(Some(ttft.confidence), 0.975));
    assert!(ttft.p.is_some_and(|p| p < 0.05));
    assert_eq!(
        (ttft.outcome, found.gates[0].outcome),
        (FigureOutcome::Inconclusive, FigureOutcome::Equivalent)
    );
    assert_eq!((ttft.further_blocks, found.outcome), (None, FigureOutcome::Equivalent));
    let found = gated(&["p50 ttft < +3%"]);
    let ttft = &found.findings[0];
    assert_eq!(found.gates[0].outcome, FigureOutcome::Inconclusive);
    let room = 1.03_f64.ln() - 1.0256_f64.ln();
    let needed = goodput_stats::paired::blocks_to_find(room, ttft.sd.unwrap(), 0.05);
    assert_eq!(ttft.further_blocks, Some(needed - 5));
}

#[test]
fn three_sides_have_an_order_with_ties() {
    let alike: Vec<f64> = OLD.iter().map(|value| value * 1.001).collect();
    let found = compared(vec![
        side("slow", "ttft_p50", &SLOW),
        side("alike", "ttft_p50", &alike),
        side("old", "ttft_p50", &OLD),
    ]);
    let order: Vec<_> = found.ranking.iter().map(|rank| (rank.side, rank.rank)).collect();
    assert_eq!(order, [(2, 1), (1, 1), (0, 3)]);
    let outcomes: Vec<_> = found.findings.iter().map(|one| (one.side, one.outcome)).collect();
    assert_eq!(outcomes, [(1, FigureOutcome::Better), (2, FigureOutcome::Better)]);
    assert_eq!(found.levels[0].rows[0].values.len(), 3);
    // More is better: the order turns round.
    let rates = compared(vec![
        side("slow", "output_tokens_per_s", &OLD),
        side("fast", "output_tokens_per_s", &SLOW),
        side("same", "output_tokens_per_s", &SLOW),
    ]);
    let order: Vec<_> = rates.ranking.iter().map(|rank| (rank.side, rank.rank)).collect();
    assert_eq!(order, [(1, 1), (2, 1), (0, 3)]);
    // One that cannot be compared has no place; the others have theirs.
    let mut other = side("other", "ttft_p50", &OLD);
    for run in &mut other.runs {
        run.facts.workload_hash = "bbbb".to_owned();
    }
    let found = compared(vec![side("a", "ttft_p50", &OLD), side("b", "ttft_p50", &SLOW), other]);
    let order: Vec<_> = found.ranking.iter().map(|rank| (rank.side, rank.rank)).collect();
    assert_eq!(order, [(0, 1), (1, 2)]);
    assert_eq!(found.findings[0].outcome, FigureOutcome::Worse, "the others are compared");
    assert_eq!(found.findings[1].outcome, FigureOutcome::NoVerdict);
    assert!(found.caveats[0].message.starts_with("other: "), "{}", found.caveats[0].message);
}

#[test]
fn levels_are_compared_each_for_itself() {
    let design = Design { levels: vec![Level::Rate(4.0), Level::Users(8)], ..Design::default() };
    let both = |name, first: &[f64], second: &[f64], load: &str| {
        let at = |level, values: &[f64]| -> Vec<ComparedRun> {
            let runs =
                (1u32..).zip(values).map(|(k, value)| cell(level, k, &[("ttft_p50", *value)]));
            runs.collect()
        };
        let (mut runs, mut more) = (at(0, first), at(1, second));
        for run in &mut more {
            run.facts.load = load.to_owned();
        }
        runs.extend(more);
        of_cells(name, runs)
    };
    let sides = vec![both("old", &OLD, &OLD, "eight"), both("new", &OLD, &SLOW, "nine")];
    let found = compare_saved(CompareFacts::default(), design, sides, None, true);
    let outcomes: Vec<_> = found.findings.iter().map(|one| (one.level, one.outcome)).collect();
    assert_eq!(outcomes, [(0, FigureOutcome::Equivalent), (1, FigureOutcome::Worse)]);
    assert_eq!(found.findings[0].change.to_bits(), 0.0_f64.to_bits());
    assert_eq!(found.levels.len(), 2);
    assert_eq!(found.differences.len(), 1);
    assert!(found.differences[0].message.starts_with("with 8 users: the loads differ"));
}

#[test]
fn void_runs_are_left_out() {
    let mut old = side("old", "ttft_p50", &[100.0, 102.0, 98.0, 101.0, 99.0, 1e6]);
    old.runs[5].verdict = Verdict::Void;
    old.runs[5].facts.workload_hash = "bbbb".to_owned();
    let found = compared(vec![old.clone(), side("new", "ttft_p50", &SLOW)]);
    assert!(close(found.findings[0].low, 0.067_767_884_354_123_22));
    assert_eq!((found.verdict, found.differences.len()), (Verdict::Suspect, 0));
    // A side that failed so often that nothing is left of a run is not as good as its other runs.
    old.runs[5].facts.failed_share = 0.6;
    let failed = compared(vec![old.clone(), side("new", "ttft_p50", &SLOW)]);
    assert_eq!(failed.verdict, Verdict::Void);
    let void = failed.caveats.iter().find(|caveat| caveat.severity == Severity::Void).unwrap();
    assert!(void.message.starts_with("old failed more than half of its requests"));
    for run in &mut old.runs {
        run.verdict = Verdict::Void;
    }
    let nothing = compared(vec![old, side("new", "ttft_p50", &SLOW)]);
    assert_eq!((nothing.outcome, nothing.verdict), (FigureOutcome::NoVerdict, Verdict::Void));
    assert!(nothing.findings.is_empty());
}

#[test]
fn a_tested_figure_that_a_run_lacks_has_no_verdict() {
    let both = |name, values: &[f64]| {
        let runs = (1u32..).zip(values).map(|(block, value)| {
            cell(0, block, &[("ttft_p50", 1.0), ("ttft_p99", *value), ("e2e_p99", *value)])
        });
        of_cells(name, runs.collect())
    };
    // The candidate's tail is as good, where it has one.
    for whole in [4, 0] {
        let mut new = both("new", &OLD);
        for run in new.runs.iter_mut().skip(whole) {
            run.figures.remove("ttft_p99");
            run.figures.remove("e2e_p99");
        }
        let mut sides = vec![both("old", &OLD), new];
        let found = compared(sides.clone());
        let of = |name: &str| found.findings.iter().find(|finding| finding.metric == name);
        let tail = of("ttft_p99").unwrap();
        assert_eq!((tail.n as usize, tail.is_tested), (whole, true));
        assert_eq!(
            (tail.outcome, found.outcome),
            (FigureOutcome::NoVerdict, FigureOutcome::NoVerdict)
        );
        assert_eq!(of("ttft_p50").unwrap().outcome, FigureOutcome::Equivalent);
        // An untested figure is described by the data there is.
        assert_eq!(of("e2e_p99").is_some(), whole > 0);
        let missing = found.caveats.iter().find(|one| one.code == CaveatCode::FigureMissing);
        let expected = format!("no verdict on p99 TTFT: new has it in {whole} of 5 runs");
        let message = &missing.unwrap().message;
        assert!(message.starts_with(&expected), "{message}");
        // Nor is anybody ranked by it.
        sides.push(both("third", &OLD));
        let ranked: BTreeSet<String> =
            compared(sides).ranking.into_iter().map(|rank| rank.metric).collect();
        assert_eq!(ranked, BTreeSet::from(["ttft_p50".to_owned()]));
    }
}

#[test]
fn without_an_slo_nothing_of_it_is_missing() {
    let with = |name, slo: &str| {
        let mut side = side(name, "ttft_p50", &OLD);
        for run in side.runs.iter_mut().filter(|_| !slo.is_empty()) {
            run.facts.slo = slo.to_owned();
            run.figures.insert("attainment".into(), Figure { value: 1.0, low: None, high: None });
        }
        side
    };
    let found = compared(vec![with("old", ""), with("new", "p99 ttft < 1s")]);
    let tested: Vec<&str> = found.findings.iter().map(|one| one.metric.as_str()).collect();
    assert_eq!((tested, found.outcome), (vec!["ttft_p50"], FigureOutcome::Equivalent));
}

#[test]
fn odd_values_do_no_harm() {
    let rates = |values: &[f64]| side("x", "output_tokens_per_s", values);
    // Nothing at all is a hundredth of the most there was.
    let found = compared(vec![rates(&[50.0, 51.0, 49.0]), rates(&[0.0, 0.0, 0.0])]);
    assert_eq!(found.outcome, FigureOutcome::Worse);
    assert_eq!(
        compared(vec![rates(&[0.0, 0.0]), rates(&[0.0, 0.0])]).outcome,
        FigureOutcome::Equivalent
    );
    for values in [[f64::NAN, 1.0], [f64::INFINITY, f64::MAX], [-1.0, 0.0], [5e-324, 1e308]] {
        let found = compared(vec![rates(&values), rates(&[1.0, 2.0])]);
        let text = serde_json::to_string(&found.findings).unwrap();
        assert!(text.contains("output_tokens_per_s"), "{text}");
    }
    let odd =
        Floor { sd: BTreeMap::from([("ttft_p50".to_owned(), f64::NAN)]), blocks: 0, ..floor() };
    let sides = vec![side("a", "ttft_p50", &[1.0]), side("b", "ttft_p50", &[2.0])];
    let found = compare_saved(CompareFacts::default(), Design::default(), sides, Some(odd), false);
    assert_eq!(found.outcome, FigureOutcome::NoVerdict);
    assert_eq!(compared(Vec::new()).outcome, FigureOutcome::NoVerdict);
    assert_eq!(compared(vec![rates(&[])]).outcome, FigureOutcome::NoVerdict);
    let found = compared(vec![side("old", "ttft_p50", &OLD), side("new", "ttft_p50", &SLOW)]);
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Comparison>(&text).unwrap().gates, found.gates);
}

#[test]
fn what_sweeps_found_stands_behind_the_levels() {
    let side = |name, values: [f64; 2]| {
        of_cells(
            name,
            vec![
                cell(0, 1, &[("ttft_p50", 9.0)]),
                cell(1, 1, &[("goodput_rps", values[0])]),
                cell(1, 2, &[("goodput_rps", values[1])]),
            ],
        )
    };
    let design = Design { levels: vec![Level::Rate(8.0)], ..Design::default() };
    let sides = vec![side("old", [20.0, 20.0]), side("new", [25.0, 25.0])];
    let found = compare_saved(CompareFacts::default(), design, sides, None, false);
    let goodput = found.findings.iter().find(|found| found.metric == "goodput_rps").unwrap();
    assert_eq!((goodput.level, goodput.n, goodput.is_tested), (1, 2, true));
    assert!((goodput.change - 0.25).abs() < CLOSE, "{}", goodput.change);
    let levels: Vec<Option<Level>> = found.levels.iter().map(|level| level.level).collect();
    assert_eq!(levels, [Some(Level::Rate(8.0)), None]);
}

/// The baseline's plans were measured again, and the first of them was void: it was sent all the same.
#[test]
fn a_void_run_has_the_seed_that_it_had() {
    let seeded = |name: &str, seeds: [u64; 4]| {
        let mut side = side(name, "ttft_p50", &[100.0, 101.0, 99.0, 100.0]);
        for (cell, seed) in side.runs.iter_mut().zip(seeds) {
            (cell.facts.seed, cell.facts.workload_hash) = (seed, format!("{seed:04}"));
        }
        side
    };
    let codes = |seeds: [u64; 4]| -> Vec<String> {
        let mut live = seeded("live", seeds);
        live.runs[0].verdict = Verdict::Void;
        live.runs[0].doubt =
            Some(Caveat::new(CaveatCode::NothingMeasured, Severity::Void, "nothing came"));
        let found = compared(vec![seeded("base", [42, 43, 44, 45]), live]);
        let void = found.caveats.iter().find(|caveat| caveat.code == CaveatCode::DoubtfulRuns);
        let said = &void.unwrap().message;
        assert!(said.ends_with("and left out: nothing came (e.g. run 1 of live)"), "{said}");
        found.differences.into_iter().map(|found| found.code).collect()
    };
    assert_eq!(codes([42, 43, 44, 45]), [""; 0]);
    assert_eq!(codes([52, 53, 54, 55]), ["seed"]);
}

/// Three runs of 20 requests a side, none of which failed: 60 allow one in twenty.
#[test]
fn a_share_of_saved_runs_is_no_surer_than_its_counts() {
    let say = |requests: u64| {
        let clean = |name| {
            let mut side = side(name, "error_share", &[0.0; 3]);
            for run in &mut side.runs {
                run.facts.requests = requests;
            }
            side
        };
        compared(vec![clean("old"), clean("new")]).findings[0].clone()
    };
    let few = say(20);
    assert_eq!(few.outcome, FigureOutcome::Inconclusive);
    let end = 1.0 - 0.025f64.powf(1.0 / 60.0);
    assert!((few.high.unwrap() - end).abs() < 1e-6 && (few.low.unwrap() + end).abs() < 1e-6);
    // 368 on each side rule a point out: some 19 runs of 20.
    assert!((16..=18).contains(&few.further_blocks.unwrap()), "{:?}", few.further_blocks);
    assert_eq!(say(2_000).outcome, FigureOutcome::Equivalent);
}
