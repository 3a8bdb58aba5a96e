use std::collections::BTreeMap;

use goodput_model::{Caveat, CaveatCode, Severity, Verdict};

use super::{against_100, design, joined};
use crate::compare::doubts::{clear_void_verdicts, difference_caveats};
use crate::compare::*;

fn compared(design: &Design, done: Vec<ComparedRun>) -> Comparison {
    let sides = ["a", "b"].map(|name| Side {
        name: name.to_owned(),
        gpus: Some(if name == "a" { 4 } else { 8 }),
        price_per_gpu_hour: Some(2.0),
        ..Side::default()
    });
    Comparison::from_paired_runs(
        CompareFacts::default(),
        design.clone(),
        sides.to_vec(),
        done,
        ComparisonContext::default(),
    )
}

const SAME: [f64; 6] = [100.0, 100.2, 99.8, 100.1, 99.9, 100.0];
const MORE: [f64; 6] = [110.0, 110.2, 109.8, 110.1, 109.9, 110.0];
const WILD: [f64; 6] = [90.0, 111.0, 92.0, 109.0, 93.0, 108.0];

#[test]
fn the_worst_word_is_that_of_the_whole() {
    let say = |tokens: &[f64], ttft: &[f64]| {
        let done =
            joined(against_100("output_tokens_per_s", tokens), &against_100("ttft_p50", ttft));
        compared(&design(&[6]), done).outcome
    };
    assert_eq!(say(&SAME, &SAME), FigureOutcome::Equivalent);
    assert_eq!(say(&MORE, &SAME), FigureOutcome::Better);
    assert_eq!(say(&MORE, &WILD), FigureOutcome::Inconclusive);
    assert_eq!(say(&WILD, &MORE), FigureOutcome::Worse);
    assert_eq!(compared(&design(&[6]), Vec::new()).outcome, FigureOutcome::NoVerdict);
}

#[test]
fn all_axes_stand_in_one_table_with_costs() {
    // The geometric mean, which findings have too, is 110.
    let [up, down] = [110.0 * 1.25, 110.0 / 1.25];
    let done = joined(
        against_100("output_tokens_per_s", &[up, down, 110.0, up, down, 110.0]),
        &against_100("goodput_tokens_per_s", &[50.0; 6]),
    );
    let found = compared(&design(&[6]), done);
    let rows = &found.levels[0].rows;
    let row = |name: &str| rows.iter().find(|row| row.figure == name).map(|row| row.values.clone());
    let near = |values: Option<Vec<Option<f64>>>, expected: [f64; 2]| {
        for (value, expected) in values.unwrap().into_iter().zip(expected) {
            assert!((value.unwrap() / expected - 1.0).abs() < 1e-12, "{value:?} is not {expected}");
        }
    };
    near(row("output_tokens_per_s"), [100.0, 110.0]);
    near(row("output_tokens_per_s_per_gpu"), [25.0, 13.75]);
    // Eight an hour for 360,000 tokens, sixteen for 396,000 and 180,000.
    near(row("cost_per_million_output_tokens"), [8.0 / 0.36, 16.0 / 0.396]);
    near(row("cost_per_million_good_tokens"), [8.0 / 0.36, 16.0 / 0.18]);
    assert_eq!(row("ttft_p50"), None);
    assert_eq!(found.levels[0].level, Some(Level::Rate(5.0)));
    assert_eq!(found.comparison.blocks, 6);
}

fn difference(matter: Matter, spoils: &[&str]) -> Difference {
    Difference {
        code: "output_length".to_owned(),
        matter,
        side: 1,
        message: "answers differ".to_owned(),
        advice: String::new(),
        spoils: spoils.iter().map(|name| (*name).to_owned()).collect(),
    }
}

#[test]
fn what_is_not_comparable_has_no_verdict() {
    let done = joined(against_100("output_tokens_per_s", &MORE), &against_100("ttft_p50", &MORE));
    let design = design(&[6]);
    let fresh = findings(&design, &done);
    let outcomes = |spoils: &[&str]| -> Vec<FigureOutcome> {
        let mut all = fresh.clone();
        clear_void_verdicts(&mut all, &[difference(Matter::Refuse, spoils)]);
        all.iter().map(|found| found.outcome).collect()
    };
    assert_eq!(outcomes(&[]), [FigureOutcome::NoVerdict, FigureOutcome::NoVerdict]);
    assert_eq!(
        outcomes(&["output_tokens_per_s"]),
        [FigureOutcome::Worse, FigureOutcome::NoVerdict]
    );
    let severity = |matter: Matter, spoils: &[&str], insists: bool| {
        difference_caveats(&design, &[difference(matter, spoils)], &fresh, insists)[0].severity
    };
    assert_eq!(severity(Matter::Refuse, &[], false), Severity::Void);
    assert_eq!(severity(Matter::Refuse, &[], true), Severity::Warn);
    assert_eq!(severity(Matter::Refuse, &["e2e_p50"], false), Severity::Warn);
    assert_eq!(severity(Matter::Info, &[], false), Severity::Info);
}

#[test]
fn void_runs_and_missing_tails_are_said() {
    let mut done = joined(against_100("ttft_p50", &SAME), &against_100("ttft_p99", &SAME));
    done[1].verdict = Verdict::Suspect;
    done[5].figures.remove("ttft_p99");
    let found = compared(&design(&[6]), done.clone());
    let codes: Vec<_> = found.caveats.iter().map(|caveat| caveat.code).collect();
    assert_eq!(codes, [CaveatCode::DoubtfulRuns, CaveatCode::FigureMissing]);
    assert!(found.caveats[1].message.contains("b has it in 5 of 6 runs"), "{:?}", found.caveats);
    assert_eq!((found.verdict, found.outcome), (Verdict::Suspect, FigureOutcome::NoVerdict));
    // Both sides lack it once, in blocks of their own.
    done[2].figures.remove("ttft_p99");
    let found = compared(&design(&[6]), done.clone());
    assert_eq!(
        (found.caveats[1].code, found.outcome),
        (CaveatCode::FigureMissing, FigureOutcome::NoVerdict)
    );
    for cell in &mut done {
        cell.verdict = Verdict::Void;
    }
    let found = compared(&design(&[6]), done);
    assert_eq!((found.verdict, found.outcome), (Verdict::Void, FigureOutcome::NoVerdict));
    assert_eq!(found.caveats[0].code, CaveatCode::NothingMeasured);
}

#[test]
fn margins_below_the_floor_are_said() {
    let floor = |sd: f64| Floor {
        schema: Floor::SCHEMA.to_owned(),
        date: String::new(),
        machine: String::new(),
        target: String::new(),
        model: String::new(),
        load: String::new(),
        workload: String::new(),
        blocks: 8,
        run_s: 30.0,
        suspect_runs: 0,
        sd: [("ttft_p50".to_owned(), sd)].into(),
    };
    let say = |design: &Design, sd: f64| {
        let evidence = ComparisonContext { floor: Some(floor(sd)), ..ComparisonContext::default() };
        let done = against_100("ttft_p50", &SAME);
        let facts = CompareFacts::default();
        Comparison::from_paired_runs(facts, design.clone(), Vec::new(), done, evidence).caveats
    };
    // The margin of 3 % is 0.02956 in the logarithm.
    let mut design = design(&[6]);
    assert!(say(&design, 0.0295).is_empty());
    assert_eq!(say(&design, 0.0297)[0].code, CaveatCode::BelowNoiseFloor);
    design.margins.insert("ttft_p50".to_owned(), 0.04);
    assert!(say(&design, 0.0297).is_empty());
    // With gates it is their limits that count; -5 % is as far as +5 %.
    let limit = |limit, change| Gate { metric: "ttft_p50".to_owned(), limit, change };
    for gate in [limit(Limit::Below, 0.05), limit(Limit::Above, -0.05)] {
        let design = Design { gates: vec![gate], margins: BTreeMap::new(), ..design.clone() };
        assert!(say(&design, 1.0499_f64.ln()).is_empty());
        assert_eq!(say(&design, 1.0501_f64.ln())[0].code, CaveatCode::BelowNoiseFloor);
    }
}

#[test]
fn requests_that_differ_are_said() {
    let proof = Proof { compared: 10, identical: 9, ..Proof::default() };
    let evidence = ComparisonContext { proof: Some(proof), ..ComparisonContext::default() };
    let done = against_100("ttft_p50", &SAME);
    let found = Comparison::from_paired_runs(
        CompareFacts::default(),
        design(&[6]),
        Vec::new(),
        done,
        evidence,
    );
    assert_eq!(found.caveats[0].code, CaveatCode::NotSameRequests);
    assert_eq!(found.verdict, Verdict::Suspect);
    // It can be read back.
    let text = serde_json::to_string(&found).unwrap();
    let read: Comparison = serde_json::from_str(&text).unwrap();
    assert_eq!((read.runs, read.caveats, read.design), (found.runs, found.caveats, found.design));
}

/// Two sides that warm each other's cache in turn are alike on average, and in no block.
#[test]
fn what_differs_inside_blocks_is_said_too() {
    let mut done = against_100("ttft_p50", &SAME);
    for cell in &mut done {
        let is_warm = (cell.ask.block + cell.ask.side).is_multiple_of(2);
        cell.facts.cached_share = Some(if is_warm { 0.9 } else { 0.0 });
    }
    let found = compared(&design(&[6]), done.clone());
    let cache: Vec<&Difference> =
        found.differences.iter().filter(|found| found.code == "cache_state").collect();
    assert_eq!((cache.len(), cache[0].matter, cache[0].side), (1, Matter::Refuse, 1));
    assert!(cache[0].message.starts_with("in 6 of 6 pairs of runs"), "{}", cache[0].message);
    assert_eq!((found.verdict, found.outcome), (Verdict::Void, FigureOutcome::NoVerdict));
    // Once is not a pattern.
    for cell in &mut done {
        cell.facts.cached_share = Some(if cell.ask.number == 1 { 0.1 } else { 0.0 });
    }
    let found = compared(&design(&[6]), done);
    assert!(!found.differences.iter().any(|found| found.code == "cache_state"));
}

/// A void run of block 7 and of those after it, by this side, with this share of failures.
fn voids(sides: &[u32], failed_share: f64) -> Vec<ComparedRun> {
    let mut done = against_100("ttft_p50", &SAME);
    for (block, side) in (7..).zip(sides) {
        let mut cell = done[*side as usize].clone();
        cell.ask.block = block;
        cell.verdict = Verdict::Void;
        cell.facts.requests = 100;
        cell.facts.failed_share = failed_share;
        done.push(cell);
    }
    for cell in &mut done {
        cell.facts.requests = 100;
    }
    done
}

#[test]
fn a_side_that_fails_is_not_forgotten_with_its_blocks() {
    // The client's doing, once on either side: their blocks do not count, and that is all.
    let found = compared(&design(&[6]), voids(&[0, 1], 0.0));
    assert_eq!((found.verdict, found.outcome), (Verdict::Valid, FigureOutcome::Equivalent));
    // The server's doing, once.
    let found = compared(&design(&[6]), voids(&[1], 0.6));
    assert_eq!(found.verdict, Verdict::Void);
    let grave = |found: &Comparison| -> Vec<String> {
        let grave = found.caveats.iter().filter(|caveat| caveat.severity == Severity::Void);
        grave.map(|caveat| caveat.message.clone()).collect()
    };
    let said = grave(&found);
    assert!(said.iter().any(|text| text.starts_with("b failed more than half")), "{said:?}");
    // 60 of 700 requests in all, on one side: they are in the comparison of failures too.
    assert!(found.differences.iter().any(|found| found.code == "failed_share"));
    // One side is void again and again, whatever the reason.
    let found = compared(&design(&[6]), voids(&[1; 6], 0.0));
    let said = grave(&found);
    assert!(said.iter().any(|text| text.starts_with("b has 6 void runs")), "{said:?}");
    assert_eq!(compared(&design(&[6]), voids(&[1; 5], 0.0)).verdict, Verdict::Valid);
    assert_eq!(compared(&design(&[6]), voids(&[0, 1, 0, 1, 0, 1], 0.0)).verdict, Verdict::Valid);
}

#[test]
fn what_went_wrong_on_the_way_is_said() {
    let say = |facts: CompareFacts| {
        let done = against_100("ttft_p50", &SAME);
        Comparison::from_paired_runs(
            facts,
            design(&[6]),
            Vec::new(),
            done,
            ComparisonContext::default(),
        )
        .verdict
    };
    let usual = CompareFacts::default;
    assert_eq!(say(usual()), Verdict::Valid);
    assert_eq!(say(CompareFacts { repeats: 1, ..usual() }), Verdict::Suspect);
    assert_eq!(say(CompareFacts { state: CompareState::TargetLost, ..usual() }), Verdict::Suspect);
    assert_eq!(say(CompareFacts { state: CompareState::Interrupted, ..usual() }), Verdict::Valid);
    let facts = CompareFacts { stopped: Some(Stopped::Void), ..usual() };
    let mut done = voids(&[0, 1, 0, 1], 0.0);
    // Three are void for one reason, the first of them for another.
    for (cell, place) in done.iter_mut().skip(12).zip(13..) {
        let (code, why) = match place {
            13 => (CaveatCode::NothingMeasured, "nothing came"),
            _ => (CaveatCode::ShortWindow, "too late"),
        };
        cell.ask.number = place;
        cell.doubt = Some(Caveat::new(code, Severity::Void, why));
    }
    let found = Comparison::from_paired_runs(
        facts,
        design(&[6]),
        Vec::new(),
        done,
        ComparisonContext::default(),
    );
    assert_eq!(found.verdict, Verdict::Void);
    let why = found.caveats.iter().find(|caveat| caveat.code == CaveatCode::DoubtfulRuns).unwrap();
    let said = "4 of 16 runs were void, most often: too late (e.g. run 14): their blocks do not";
    assert!(why.message.starts_with(said), "{}", why.message);
    assert!(why.advice.as_ref().unwrap().contains("start a new one"), "{why:?}");
    let none = compared(&design(&[6]), Vec::new());
    assert_eq!(none.caveats[0].message, "nothing was measured");
}

/// Answers that take as long as a run: what is at its edges makes the rates.
#[test]
fn runs_that_are_short_for_their_answers_are_said() {
    let say = |seconds: f64, level: Level| {
        let rates = against_100("output_tokens_per_s", &SAME);
        let done =
            joined(rates, &against_100("e2e_p99", &SAME.map(|value| value * seconds * 10.0)));
        let found = compared(&Design { levels: vec![level], ..design(&[6]) }, done);
        found.caveats.iter().any(|caveat| caveat.code == CaveatCode::ShortWindow)
    };
    // Runs of 30 s; SAME lies within a percent of 100.
    assert!(say(10.2, Level::Rate(5.0)));
    assert!(!say(9.8, Level::Rate(5.0)) && !say(10.2, Level::Users(5)));
}

/// Twelve pairs of runs; what fails on the candidate, in percent.
fn failing(percents: [f64; 12]) -> Vec<Difference> {
    let mut done = against_100("ttft_p50", &[100.0; 12]);
    for (pair, percent) in done.chunks_mut(2).zip(percents) {
        for cell in &mut *pair {
            cell.facts.requests = 40;
        }
        pair[usize::from(percent > 0.0)].facts.failed_share = percent.abs() / 100.0;
    }
    let found = compared(&design(&[12]), done).differences;
    found.into_iter().filter(|found| found.code == "failed_share").collect()
}

/// A quarter of the pairs must differ that much.
#[test]
fn one_pair_that_is_worst_does_not_speak_for_all() {
    // Now the one, now the other has a failure of 40, and once there are three: 1.3 % on average.
    let by_chance = [2.5, -2.5, 2.5, -2.5, 0.0, 0.0, 7.5, -2.5, 0.0, -2.5, 0.0, 0.0];
    let all = failing(by_chance);
    assert_eq!(all.iter().map(|found| found.matter).collect::<Vec<_>>(), [Matter::Warn]);
    assert!(all[0].message.starts_with("in 7 of 12 pairs of runs"), "{}", all[0].message);
    // Together it is a warning (1.9 points); inside three blocks of twelve it is more than that.
    let all = failing([7.5, 7.5, 7.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(all.iter().map(|found| found.matter).collect::<Vec<_>>(), [Matter::Refuse]);
    assert!(all[0].message.starts_with("in 3 of 12 pairs of runs"), "{}", all[0].message);
    // In two of twelve it is not.
    let all = failing([7.5, 7.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(all.iter().map(|found| found.matter).collect::<Vec<_>>(), [Matter::Warn]);
}
