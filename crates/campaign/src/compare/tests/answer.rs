use super::{against_100, blocks, design, joined};
use crate::compare::*;

fn close(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 1e-9, "{actual} is not {expected}");
}

fn below(metric: &str, change: f64) -> Gate {
    Gate { metric: metric.to_owned(), limit: Limit::Below, change }
}

fn one(design: &Design, done: &[ComparedRun]) -> Finding {
    let all = findings(design, done);
    assert_eq!(all.len(), 1);
    all[0].clone()
}

#[test]
fn a_ratio_is_the_mean_of_its_logarithms() {
    // Twice and half as much in turn, and four times: the mean logarithm is that of two.
    let found =
        one(&design(&[3]), &blocks("ttft_p50", &[&[10.0, 20.0], &[20.0, 20.0], &[5.0, 20.0]]));
    close(found.reference, 10.0);
    close(found.candidate, 20.0);
    close(found.change, 1.0);
    close(found.hodges_lehmann.unwrap(), 1.0);
    close(found.sd.unwrap(), 2f64.ln());
    // t with two degrees of freedom at 95 %: 4.302653.
    let half = 4.302_652_729_911_275 * 2f64.ln() / 3f64.sqrt();
    close(found.low.unwrap(), (2f64.ln() - half).exp() - 1.0);
    close(found.high.unwrap(), (2f64.ln() + half).exp() - 1.0);
    close(found.confidence, 0.95);
    assert_eq!((found.n, found.is_tested, found.outcome), (3, true, FigureOutcome::Inconclusive));
}

#[test]
fn a_share_is_set_against_by_its_difference() {
    let found = one(&design(&[3]), &blocks("attainment", &[&[0.9, 0.5], &[1.0, 0.6], &[0.8, 0.4]]));
    close(found.change, -0.4);
    close(found.reference, 0.9);
    assert_eq!(found.outcome, FigureOutcome::Worse);
}

#[test]
fn the_interval_against_the_margin_decides() {
    let say = |metric: &str, percents: &[f64]| one(&design(&[6]), &against_100(metric, percents));
    let up = [110.0, 111.0, 110.5, 109.5, 110.0, 111.0];
    assert_eq!(say("ttft_p99", &up).outcome, FigureOutcome::Worse);
    assert_eq!(say("output_tokens_per_s", &up).outcome, FigureOutcome::Better);
    let down = up.map(|percent| 10_000.0 / percent);
    assert_eq!(say("ttft_p99", &down).outcome, FigureOutcome::Better);
    assert_eq!(say("output_tokens_per_s", &down).outcome, FigureOutcome::Worse);
    // Plainly more, and plainly by less than matters.
    let little = [101.0, 101.1, 100.9, 101.0, 101.1, 100.9];
    let found = say("ttft_p99", &little);
    assert!(found.low.unwrap() > 0.0);
    assert_eq!((found.outcome, found.further_blocks), (FigureOutcome::Equivalent, None));
    let wide = [95.0, 105.0, 96.0, 104.0, 95.0, 105.0];
    let found = say("ttft_p99", &wide);
    assert_eq!(found.outcome, FigureOutcome::Inconclusive);
    assert!((10..100).contains(&found.further_blocks.unwrap()), "{:?}", found.further_blocks);
    // Who is the reference does not matter: 2.95 % more lies inside 3 %, and so does its inverse.
    let edge = [102.95; 6];
    assert_eq!(say("ttft_p99", &edge).outcome, FigureOutcome::Equivalent);
    assert_eq!(
        say("ttft_p99", &edge.map(|percent| 10_000.0 / percent)).outcome,
        FigureOutcome::Equivalent
    );
    let beyond = [103.05; 6].map(|percent| 10_000.0 / percent);
    assert_eq!(say("ttft_p99", &beyond).outcome, FigureOutcome::Better);
}

#[test]
fn two_blocks_say_nothing() {
    let found = one(&design(&[2]), &against_100("ttft_p50", &[110.0, 111.0]));
    assert_eq!(
        (found.outcome, found.low, found.p, found.n),
        (FigureOutcome::NoVerdict, None, None, 2)
    );
    assert!(findings(&design(&[2]), &[]).is_empty());
}

/// A rate of zero has no logarithm, and is the worst there is.
#[test]
fn nothing_at_all_is_worse_and_not_missing() {
    let done = blocks("goodput_rps", &[&[5.0, 0.0], &[6.0, 0.0], &[5.5, 0.0]]);
    let found = one(&design(&[3]), &done);
    assert_eq!(
        (found.outcome, found.is_tested, found.candidate),
        (FigureOutcome::Worse, true, 0.0)
    );
    let none = blocks("goodput_rps", &[&[0.0, 0.0], &[0.0, 0.0], &[0.0, 0.0]]);
    assert_eq!(one(&design(&[3]), &none).outcome, FigureOutcome::Equivalent);
}

/// The runs that have it are a selection, so no verdict is given; and nothing is told of the whole
/// without it.
#[test]
fn a_figure_that_a_run_lacks_stays_in_the_family() {
    let values = [110.0, 111.0, 110.0, 111.0];
    let both = joined(against_100("ttft_p50", &values), &against_100("ttft_p99", &values));
    let told = |lacks: &[usize]| -> Vec<_> {
        let mut done = both.clone();
        for place in lacks {
            done[*place].figures.remove("ttft_p99");
        }
        let all = findings(&design(&[4]), &done);
        close(all[0].confidence, 0.975);
        assert_eq!(next_design_step(&design(&[3, 4]), &done), DesignStep::Done(Stopped::LastLook));
        all.into_iter()
            .map(|found| (found.metric, found.n, found.is_tested, found.outcome))
            .collect()
    };
    let p50 = ("ttft_p50".to_owned(), 4, true, FigureOutcome::Worse);
    let p99 = |n| ("ttft_p99".to_owned(), n, true, FigureOutcome::NoVerdict);
    assert_eq!(told(&[3]), [p50.clone(), p99(3)]);
    // No run of the candidate has it, and some of the reference.
    assert_eq!(told(&[1, 3, 4, 5, 7]), [p50.clone(), p99(0)]);
}

/// The tail is beyond the time limit in three of eight blocks, and equal in the others.
#[test]
fn a_gate_is_not_judged_by_the_blocks_that_survived() {
    let mut done = against_100("ttft_p99", &[100.0, 100.1, 99.9, 100.0, 100.1, 99.9, 100.0, 100.0]);
    for place in [1, 3, 5] {
        done[place].figures.remove("ttft_p99");
    }
    let gates = vec![below("ttft_p99", 0.05)];
    let design = Design { gates, ..design(&[6, 8]) };
    let judged = judge_gates(&design.gates, &findings(&design, &done));
    assert_eq!(judged[0].outcome, FigureOutcome::NoVerdict);
    assert_eq!(next_design_step(&design, &done), DesignStep::Done(Stopped::LastLook));
}

#[test]
fn each_metric_has_its_margin() {
    let little = [102.0, 102.1, 101.9, 102.0, 102.1, 101.9];
    let mut design = design(&[6]);
    let say = |design: &Design, metric: &str| {
        let found = one(design, &against_100(metric, &little));
        (found.margin, found.outcome)
    };
    assert_eq!(say(&design, "ttft_p99"), (0.03, FigureOutcome::Equivalent));
    design.margins.insert("ttft_p99".to_owned(), 0.01);
    assert_eq!(say(&design, "ttft_p99"), (0.01, FigureOutcome::Worse));
    assert_eq!(say(&design, "ttft_p50"), (0.03, FigureOutcome::Equivalent));
    assert_eq!((design.margin_of("error_share"), design.margin_of("attainment")), (0.01, 0.03));
}

/// Who turns work away is quick about the rest.
#[test]
fn errors_are_in_the_family() {
    let shares: Vec<[f64; 2]> = [0.040, 0.041, 0.039, 0.040, 0.041, 0.039].map(|b| [0.0, b]).into();
    let errors =
        blocks("error_share", &shares.iter().map(<[f64; 2]>::as_slice).collect::<Vec<_>>());
    let faster = against_100("ttft_p50", &[90.0, 90.1, 89.9, 90.0, 90.1, 89.9]);
    let all = findings(&design(&[6]), &joined(faster, &errors));
    let told: Vec<_> =
        all.iter().map(|found| (found.metric.as_str(), found.is_tested, found.outcome)).collect();
    let expected =
        [("ttft_p50", true, FigureOutcome::Better), ("error_share", true, FigureOutcome::Worse)];
    assert_eq!(told, expected);
}

/// Intervals hold together, so each has its part of the 5 %, however sure the others are.
#[test]
fn figures_and_looks_share_the_chance() {
    let sure = against_100("ttft_p50", &[120.0, 120.1, 120.0, 120.1, 120.0, 120.1]);
    let less = against_100("tpot_p50", &[95.0, 105.0, 96.0, 104.0, 95.0, 105.0]);
    let other = against_100("e2e_p50", &[95.0, 105.0, 96.0, 104.0, 95.0, 105.0]);
    let done = joined(joined(sure, &less), &other);
    let all = findings(&design(&[6]), &done);
    let told: Vec<_> = all.iter().map(|found| (found.metric.as_str(), found.is_tested)).collect();
    assert_eq!(told, [("ttft_p50", true), ("tpot_p50", true), ("e2e_p50", false)]);
    close(all[0].confidence, 0.975);
    close(all[1].confidence, 0.975);
    close(all[2].confidence, 0.95);
    // Four looks leave about a third of it.
    let all = findings(&design(&[6, 8, 12, 16]), &done);
    assert!((0.0070..0.0095).contains(&(1.0 - all[0].confidence)), "{}", all[0].confidence);
    assert_eq!(all[0].confidence, all[1].confidence);
    assert!((0.017..0.021).contains(&(1.0 - all[2].confidence)), "{}", all[2].confidence);
}

/// Next to a sure one, the second of two has three quarters of 5 % to differ at: half of its own part
/// stays with the first, which may yet be called equivalent.
#[test]
fn what_is_sure_leaves_chance_to_the_rest() {
    // p = 0.03: more than 5 % / 2, less than three quarters of 5 %.
    let own = [96.0, 98.0, 99.0, 92.0, 99.0, 93.0];
    let word = |other: [f64; 6]| {
        let done = joined(against_100("ttft_p50", &own), &against_100("tpot_p50", &other));
        let all = findings(&design(&[6]), &done);
        assert!((0.025..0.0375).contains(&all[0].p.unwrap()), "{:?}", all[0].p);
        close(all[0].confidence, 0.975);
        assert!(all[0].high.unwrap() > 0.0, "the interval is that of the family");
        all[0].outcome
    };
    assert_eq!(word([120.0, 120.1, 120.0, 120.1, 120.0, 120.1]), FigureOutcome::Better);
    assert_eq!(word([95.0, 105.0, 96.0, 104.0, 95.0, 105.0]), FigureOutcome::Inconclusive);
}

/// What is not tested has an interval, and no word about the servers.
#[test]
fn what_is_not_tested_is_described() {
    let told = against_100("ttft_p50", &[120.0, 120.1, 120.0, 120.1, 120.0, 120.1]);
    let other = against_100("e2e_p50", &[120.0, 120.1, 120.0, 120.1, 120.0, 120.1]);
    let all = findings(&design(&[6]), &joined(told, &other));
    assert_eq!((all[0].is_tested, all[0].outcome), (true, FigureOutcome::Worse));
    assert_eq!((all[1].is_tested, all[1].outcome), (false, FigureOutcome::Described));
    assert!(all[1].low.unwrap() > 0.19);
    let one = findings(&design(&[2]), &against_100("e2e_p50", &[120.0, 120.1]));
    assert_eq!(one[0].outcome, FigureOutcome::NoVerdict, "two blocks do not describe either");
}

/// Runs of this many requests each, none of which failed or missed.
fn clean(blocks: u32, requests: u64) -> Vec<ComparedRun> {
    let shares: Vec<ComparedRun> = joined(
        super::blocks("error_share", &vec![&[0.0, 0.0][..]; blocks as usize]),
        &super::blocks("attainment", &vec![&[1.0, 1.0][..]; blocks as usize]),
    );
    let facts = SideFacts { requests, judged: requests, ..SideFacts::default() };
    shares.into_iter().map(|cell| ComparedRun { facts: facts.clone(), ..cell }).collect()
}

/// Sixty requests without a failure allow one in twenty: no run differs, and yet little is known.
#[test]
fn a_share_is_no_surer_than_its_counts() {
    let say = |requests: u64| -> Vec<(String, FigureOutcome)> {
        let all = findings(&design(&[3]), &clean(3, requests));
        all.into_iter().map(|found| (found.metric, found.outcome)).collect()
    };
    let both = |one, other| vec![("attainment".to_owned(), one), ("error_share".to_owned(), other)];
    assert_eq!(say(20), both(FigureOutcome::Inconclusive, FigureOutcome::Inconclusive));
    // Three points of attainment are told before one of errors.
    assert_eq!(say(100), both(FigureOutcome::Equivalent, FigureOutcome::Inconclusive));
    assert_eq!(say(2_000), both(FigureOutcome::Equivalent, FigureOutcome::Equivalent));
    let found = &findings(&design(&[3]), &clean(3, 20))[1];
    // None of 60 on either side, at half of 5 %.
    let end = 1.0 - 0.0125f64.powf(1.0 / 60.0);
    assert!((found.high.unwrap() - end).abs() < 1e-6, "{found:?}");
    assert!((found.low.unwrap() + end).abs() < 1e-6, "{found:?}");
    assert_eq!((found.change, found.p), (0.0, Some(1.0)));
    // 436 on each side rule a point out: 1 - 0.99^436 is above 98.75 %. Some 22 runs of 20.
    assert!((19..=22).contains(&found.further_blocks.unwrap()), "{:?}", found.further_blocks);
    // One that does not say how many there were.
    let mut silent = clean(3, 20);
    silent[0].facts.requests = 0;
    assert_eq!(findings(&design(&[3]), &silent)[1].outcome, FigureOutcome::Equivalent);
}

#[test]
fn a_gate_on_a_share_needs_the_counts() {
    let say = |requests: u64| {
        let design = Design { gates: vec![below("error_share", 0.01)], ..design(&[3]) };
        let all = findings(&design, &clean(3, requests));
        judge_gates(&design.gates, &all)[0].outcome
    };
    assert_eq!(say(20), FigureOutcome::Inconclusive);
    assert_eq!(say(2_000), FigureOutcome::Equivalent);
}

/// A gate has the interval that is printed, whatever the others say.
#[test]
fn gates_are_the_family_and_share_the_chance() {
    // One is up by just about its limit; the other has hardly changed.
    let near = against_100("e2e_p99", &[105.0, 105.5, 104.5, 105.0, 105.5, 104.5]);
    let calm = against_100("ttft_p50", &[100.0, 100.5, 99.5, 100.0, 100.5, 99.5]);
    let gates = vec![below("e2e_p99", 0.05), below("ttft_p50", 0.05)];
    let all = findings(&Design { gates, ..design(&[6]) }, &joined(near, &calm));
    let told: Vec<_> = all.iter().map(|found| (found.metric.as_str(), found.is_tested)).collect();
    assert_eq!(told, [("e2e_p99", true), ("ttft_p50", true)]);
    assert!(all[0].p.unwrap() < 1e-4 && all[1].p.unwrap() > 0.5);
    close(all[0].confidence, 0.975);
    close(all[1].confidence, 0.975);
}

/// The word of a gated figure goes by the interval of the family: a gate asks about its limit.
#[test]
fn the_word_of_a_gated_figure_is_as_sure_as_the_family() {
    // Plainly below its limit, and below zero with p = 0.03: less than 5 %, more than half of that.
    let word = |gates: &[&str]| {
        let own = against_100("ttft_p50", &[96.0, 98.0, 99.0, 92.0, 99.0, 93.0]);
        let gates = gates.iter().map(|metric| below(metric, 0.5)).collect();
        let other = against_100("tpot_p50", &[100.0, 100.1, 99.9, 100.0, 100.1, 99.9]);
        let design = Design { gates, ..design(&[6]) };
        let all = findings(&design, &joined(own, &other));
        let found = all.iter().find(|found| found.metric == "ttft_p50").unwrap();
        assert!((0.025..0.05).contains(&found.p.unwrap()), "{found:?}");
        let judged = judge_gates(&design.gates, &all);
        assert!(
            judged.iter().all(|result| result.outcome == FigureOutcome::Equivalent),
            "{judged:?}"
        );
        found.outcome
    };
    assert_eq!(word(&["ttft_p50"]), FigureOutcome::Better);
    assert_eq!(word(&["ttft_p50", "tpot_p50"]), FigureOutcome::Inconclusive);
}

/// What a gate waits for is that the change is told from its limit, not from zero.
#[test]
fn further_blocks_of_a_gated_figure_are_those_of_its_limit() {
    let values = [108.0, 101.0, 107.0, 102.0, 108.0, 101.0];
    let done = against_100("ttft_p50", &values);
    let more = |limits: &[f64]| {
        let gates = limits.iter().map(|limit| below("ttft_p50", *limit)).collect();
        one(&Design { gates, ..design(&[6]) }, &done).further_blocks
    };
    let own: Vec<f64> = values.iter().map(|percent| (percent / 100.0).ln()).collect();
    let mean = own.iter().sum::<f64>() / 6.0;
    let sd = (own.iter().map(|own| (own - mean).powi(2)).sum::<f64>() / 5.0).sqrt();
    let needed = |limit: f64| {
        let apart = (mean - limit.ln_1p()).abs();
        goodput_stats::paired::blocks_to_find(apart, sd, 0.05) - 6
    };
    assert!(needed(0.06) > needed(0.07) && needed(0.07) > 5, "{}", needed(0.07));
    assert_eq!(more(&[0.07]), Some(needed(0.07)));
    assert_eq!(more(&[0.07, 0.06]), Some(needed(0.06)));
    // It holds, although it is unclear whether there is a change at all.
    assert_eq!(more(&[0.5]), None);
}

#[test]
fn one_wild_block_is_said() {
    let calm = [110.0, 110.5, 109.5, 110.2, 110.4, 109.7, 110.1, 110.3];
    let mut wild = calm;
    wild[3] = 40.0;
    assert!(!one(&design(&[8]), &against_100("ttft_p50", &calm)).is_doubtful);
    let found = one(&design(&[8]), &against_100("ttft_p50", &wild));
    assert!(found.is_doubtful, "{found:?}");
}

#[test]
fn ranks_have_ties() {
    let metric = "output_tokens_per_s";
    let rows: Vec<Vec<f64>> = [0.0, 0.4, -0.3, 0.2, -0.1, 0.1]
        .iter()
        .zip([0.1, -0.3, 0.3, 0.0, -0.2, 0.2])
        .map(|(one, other)| vec![100.0 + one, 100.2 + other, 120.0 + one, 150.0 - other])
        .collect();
    let done = blocks(metric, &rows.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let mut design = design(&[6]);
    design.sides.extend(["c".to_owned(), "d".to_owned()]);
    let told = |spoiled: &[Difference]| -> Vec<_> {
        let found = findings(&design, &done);
        rank_sides(&design, &done, &found, spoiled)
            .iter()
            .map(|rank| (rank.side, rank.rank))
            .collect()
    };
    assert_eq!(told(&[]), [(3, 1), (2, 2), (1, 3), (0, 3)]);
    // One that cannot be compared by this figure has no place by it, and takes none from others.
    let other = |spoils: &str, matter| Difference {
        code: "output_length".to_owned(),
        matter,
        side: 3,
        message: String::new(),
        advice: String::new(),
        spoils: vec![spoils.to_owned()],
    };
    assert_eq!(told(&[other(metric, Matter::Refuse)]), [(2, 1), (1, 2), (0, 2)]);
    assert_eq!(told(&[other(metric, Matter::Warn)]).len(), 4);
    assert_eq!(told(&[other("e2e", Matter::Refuse)]).len(), 4);
    design.sides.truncate(2);
    assert!(rank_sides(&design, &done, &findings(&design, &done), &[]).is_empty());
}

/// Alone each pair is sure to 5 %; among all that is tested it is not, and no place may say more than
/// the verdict.
#[test]
fn no_place_claims_more_than_its_finding() {
    let same = [100.0, 100.1, 99.9, 100.0, 100.1, 99.9];
    let slower = [102.6, 111.6, 100.6, 108.6, 112.6, 103.6];
    let of = |metric: &str, last: [f64; 6]| {
        let rows: Vec<[f64; 3]> = same.iter().zip(last).map(|(b, c)| [100.0, *b, c]).collect();
        blocks(metric, &rows.iter().map(<[f64; 3]>::as_slice).collect::<Vec<_>>())
    };
    let mut design = design(&[6]);
    design.sides.push("c".to_owned());
    let places = |done: &[ComparedRun]| {
        let all = findings(&design, done);
        let last = all.iter().find(|one| (&*one.metric, one.side) == ("ttft_p99", 2)).unwrap();
        let ranks = rank_sides(&design, done, &all, &[]);
        let own = |side: u32| {
            let mut own = ranks.iter().filter(|rank| rank.metric == "ttft_p99");
            let own = own.find(|rank| rank.side == side).unwrap();
            (own.rank, own.behind.clone(), own.like.clone())
        };
        (last.outcome, [0, 1, 2].map(own))
    };
    let tie = [(1, vec![], vec![1]), (1, vec![], vec![0]), (1, vec![], vec![])];
    let mut done = of("ttft_p99", slower);
    // Alone it is told from the reference by the first step (p = 0.02 is below 0.05 / 2), and not
    // from the other side, one of three pairs.
    let (outcome, ranks) = places(&done);
    assert_eq!(outcome, FigureOutcome::Worse);
    assert_eq!(ranks[2], (2, vec![0], vec![]));
    // With three more of them in the family nothing is told of it at all.
    for metric in ["ttft_p50", "tpot_p50", "tpot_p99"] {
        done = joined(done, &of(metric, slower));
    }
    assert_eq!(places(&done), (FigureOutcome::Inconclusive, tie));
    // What is plain is told of all.
    let plain = of("ttft_p99", same.map(|value| value + 20.0));
    assert_eq!(places(&plain).1[2], (3, vec![0, 1], vec![]));
}

#[test]
fn the_floor_is_the_largest_spread_over_levels() {
    let mut done = against_100("ttft_p50", &[110.0, 100.0, 110.0, 100.0]);
    let mut calm = against_100("ttft_p50", &[101.0, 100.0, 101.0, 100.0]);
    for cell in &mut calm {
        cell.ask.level = 1;
    }
    done.extend(calm);
    let design = Design { levels: vec![Level::Rate(1.0), Level::Rate(2.0)], ..design(&[4]) };
    let sd = measure_noise_floor(&design, &done)["ttft_p50"];
    // Two at ln 1.1 and two at 0: half of it, times the square root of 4/3.
    close(sd, 1.1f64.ln() / 3f64.sqrt());
}

#[test]
fn names_and_directions() {
    let of = |name: &str| {
        find_metric(name).map(|found| (found.title, found.unit, found.better, found.scale))
    };
    assert_eq!(
        of("ttft_p99.9").unwrap(),
        ("p99.9 TTFT".to_owned(), "ms", Better::Lower, MetricScale::Ratio)
    );
    assert_eq!(of("goodput_rps").unwrap().2, Better::Higher);
    assert_eq!(of("attainment").unwrap().3, MetricScale::Difference);
    let mean = of("ttft_mean").unwrap();
    assert_eq!((mean.0.as_str(), mean.1), ("mean TTFT", "ms"), "{mean:?}");
    let tail = of("ttft_p99_over_p50").unwrap();
    assert_eq!((tail.0.as_str(), tail.1, tail.3), ("p99/p50 TTFT", "", MetricScale::Ratio));
    let errors = of("error_share").unwrap();
    assert_eq!((errors.2, errors.3), (Better::Lower, MetricScale::Difference));
    for name in [
        "ttft",
        "ttft_p",
        "ttft_p0",
        "ttft_p100",
        "ttft_pinf",
        "ttfa_p50",
        "",
        "ttft_p-5",
        "ttft_p+5",
    ] {
        assert_eq!(of(name), None, "{name}");
    }
}
