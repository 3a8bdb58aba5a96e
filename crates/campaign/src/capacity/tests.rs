//! The plan against figures known by construction.

mod fixture;

use fixture::{ENGINE, figures, outcomes, point, simulated, sizes, sweep};
use goodput_sim::Profile;

use super::*;
use crate as campaign;
use crate::sweep::{Figures, GoodputState, Miss, PointStanding, Sustained};

fn question(target_rps: f64) -> Question {
    Question {
        target_rps,
        headroom: 0.2,
        gpus_per_replica: Some(8),
        price_per_gpu_hour: Some(2.5),
        replicas: None,
    }
}

/// Figures of a point with these medians.
fn flat(rps: f64, ttft: f64, tpot: f64) -> Figures {
    let profile = Profile::parse(ENGINE).unwrap();
    let mut figures = figures(rps, &outcomes(&profile, 1.0, 20), 500.0);
    let at = |value: f64| Some(campaign::sweep::Bounded { value, low: None, high: None });
    figures.ttft_ms.p50 = at(ttft);
    figures.ttft_ms.p99 = at(3.0 * ttft);
    figures.tpot_ms.p50 = at(tpot);
    figures.tpot_ms.p99 = at(2.0 * tpot);
    figures.input_tokens = Some(500.0);
    figures.output_tokens = Some(200.0);
    figures.output_tps = Some(rps * 200.0);
    figures.goodput_output_tps = Some(rps * 200.0 * 0.8);
    figures
}

/// A replica that was measured at 5, 10, 20 and 25 requests/s; 20 is confirmed, 25 rejected.
fn measured() -> Basis {
    let rows = [(5.0, 80.0, 40.0), (10.0, 100.0, 42.0), (20.0, 140.0, 50.0), (25.0, 900.0, 60.0)];
    let points = (1..)
        .zip(rows)
        .map(|(number, (rps, ttft, tpot))| point(number, rps, flat(rps, ttft, tpot), rps < 25.0));
    Basis::from_sweep(&sweep(points.collect(), 20.0, 25.0)).unwrap()
}

#[test]
fn the_seed_s_example() {
    let plan = plan_capacity(Basis::from_rates(22.0, None).unwrap(), question(100.0)).unwrap();
    let counts = |fleet: &Fleet| (fleet.replicas, fleet.gpus);
    assert_eq!(counts(&plan.fleets.bare), (5, Some(40)));
    assert_eq!(counts(&plan.fleets.with_headroom), (6, Some(48)));
    assert_eq!(counts(&plan.fleets.with_spare), (6, Some(48)));
    assert_eq!(plan.fleets.bare.utilisation, 100.0 / 110.0);
    assert_eq!(plan.fleets.bare.one_lost, Some(100.0 / 88.0));
    assert_eq!(plan.fleets.with_spare.one_lost, Some(100.0 / 110.0));
    assert_eq!(plan.fleets.bare.best_case, None);
    assert_eq!(plan.fleets.with_headroom.cost_per_month, Some(48.0 * 2.5 * 730.0));
}

#[test]
fn a_rounding_error_is_no_replica() {
    // 100 × 1.1 is a little more than 110 in binary.
    let tenth = Question { headroom: 0.1, ..question(100.0) };
    let plan = |basis: Basis, question| plan_capacity(basis, question).unwrap().fleets;
    assert_eq!(plan(Basis::from_rates(22.0, None).unwrap(), tenth).with_headroom.replicas, 5);
    for n in 1..400u32 {
        let basis = Basis::from_rates(0.1, None).unwrap();
        let exact = Question { headroom: 0.0, ..question(0.1 * f64::from(n)) };
        assert_eq!(plan(basis, exact).bare.replicas, u64::from(n), "{n}");
    }
    // But a thousandth of a request more is one.
    let more = question(110.001);
    assert_eq!(plan(Basis::from_rates(22.0, None).unwrap(), more).bare.replicas, 6);
}

#[test]
fn the_best_case_is_by_the_rejected_rate() {
    let basis = Basis::from_rates(20.0, Some(25.0)).unwrap();
    let fleets =
        plan_capacity(basis, Question { replicas: Some(4), ..question(100.0) }).unwrap().fleets;
    assert_eq!(fleets.bare.replicas, 5);
    assert_eq!(fleets.bare.best_case, Some(BestCase { replicas: 4, gpus: Some(32) }));
    assert_eq!(fleets.with_headroom.best_case.map(|best| best.replicas), Some(5));
    assert_eq!(fleets.asked.map(|fleet| fleet.utilisation), Some(1.25));
}

#[test]
fn the_interval_of_the_limit_is_a_range_of_replicas() {
    let with = |low, high, risk| {
        let mut summary = sweep(Vec::new(), 20.0, 25.0);
        let goodput = summary.goodput.as_mut().unwrap();
        goodput.crossing = Some(campaign::sweep::Bounded { value: 21.0, low, high });
        goodput.over_claim_risk = risk;
        plan_capacity(Basis::from_sweep(&summary).unwrap(), question(100.0)).unwrap()
    };
    let ends = |fleet: Fleet| (fleet.best_case, fleet.worst_case);
    let count = |case: Option<BestCase>| case.map(|case| case.replicas);
    // 100 at 16, 20 and 34 each: 7, 5 and 3.
    let found = with(Some(16.0), Some(34.0), Some(0.3));
    let (best, worst) = ends(found.fleets.bare);
    assert_eq!((count(best), found.fleets.bare.replicas, count(worst)), (Some(3), 5, Some(7)));
    let (best, worst) = ends(found.fleets.with_spare);
    assert_eq!((count(best), count(worst)), (Some(4), Some(8)));
    assert!(found.notes.iter().any(|note| note.text.contains("a probability of about 30 %")));
    // An open end is none, and what a run to its end rejected bounds it then.
    let open = with(Some(22.0), None, None);
    let (best, worst) = ends(open.fleets.bare);
    // The limit may lie above all that was confirmed: then that counts.
    assert_eq!((count(best), count(worst)), (Some(4), Some(5)));
    assert!(open.notes.iter().any(|note| note.text.contains("is unknown")));
}

#[test]
fn runs_without_a_percentile_do_not_drop_out_in_silence() {
    let mut slow = flat(20.0, 140.0, 50.0);
    slow.ttft_ms.p99 = None;
    let points = vec![
        point(1, 20.0, flat(20.0, 140.0, 50.0), true),
        point(2, 20.0, slow, true),
        point(3, 25.0, flat(25.0, 900.0, 60.0), false),
    ];
    let plan =
        plan_capacity(Basis::from_sweep(&sweep(points, 20.0, 25.0)).unwrap(), question(20.0))
            .unwrap();
    assert_eq!(plan.expected[0].partial, ["TTFT p99"]);
    let is_said =
        |note: &PlanNote| note.text.contains("not every run at the confirmed rate has TTFT p99");
    assert!(plan.notes.iter().any(is_said), "{:?}", plan.notes);
}

#[test]
fn costs_follow_the_formula() {
    let cost = plan_capacity(measured(), question(50.0)).unwrap().cost.unwrap();
    let near = |price: Option<Price>, value: f64, best: f64| {
        let price = price.unwrap();
        assert!((price.value / value - 1.0).abs() < 1e-12, "{price:?} {value}");
        assert!((price.best_case.unwrap() / best - 1.0).abs() < 1e-12, "{price:?} {best}");
    };
    // 20 an hour; 4000 output tokens/s at 20 requests/s, 5000 at 25.
    let per_million = |hour: f64, tps: f64| hour / (tps * 3600.0) * 1e6;
    near(cost.full_use.per_million_output, per_million(20.0, 4e3), per_million(20.0, 5e3));
    near(cost.full_use.per_million_input, per_million(20.0, 1e4), per_million(20.0, 12.5e3));
    near(cost.full_use.per_million_total, per_million(20.0, 14e3), per_million(20.0, 17.5e3));
    // Four of five output tokens are those of good requests.
    near(cost.full_use.per_million_good_output, per_million(20.0, 3200.0), per_million(20.0, 4e3));
    // 50 × 1.2 / 20: three replicas at 60 an hour; at best 60 / 25: three too.
    assert_eq!(cost.at_target.per_hour, 60.0);
    near(Some(cost.at_target.per_1000_requests), 60.0 / 180.0, 60.0 / 180.0);
}

/// [`measured_level`], with 1000 W at rest and 100 W more for each request a second.
fn watched() -> Basis {
    let mut basis = measured();
    for level in &mut basis.levels {
        level.figures.gpu_power_w = Some(1000.0 + 100.0 * level.rps);
    }
    basis
}

#[test]
fn energy_is_power_over_tokens() {
    let plan = |basis: Basis, target: f64| plan_capacity(basis, question(target)).unwrap();
    let near = |value: f64, expected: f64| {
        assert!((value / expected - 1.0).abs() < 1e-12, "{value} is not {expected}");
    };
    let at_50 = plan(watched(), 50.0);
    let energy = at_50.energy.unwrap();
    // 3000 W for 4000 output tokens a second.
    near(energy.full_use.gpu_power_w, 3000.0);
    near(energy.full_use.joules_per_output_token.unwrap(), 0.75);
    near(energy.full_use.kwh_per_million_output.unwrap(), 0.75 / 3.6);
    near(energy.full_use.kwh_per_day, 72.0);
    assert_eq!(at_50.energy_j_per_output_token, energy.full_use.joules_per_output_token);
    // Three replicas at 16.7 requests/s, between 10 and 20: idle power is paid three times.
    let target = energy.at_target.unwrap();
    near(target.gpu_power_w, 3.0 * 1000.0 + 50.0 * 100.0);
    near(target.joules_per_output_token.unwrap(), 8000.0 / 10_000.0);
    // Below all that was measured, no more than at the lowest.
    near(plan(watched(), 1.0).energy.unwrap().at_target.unwrap().gpu_power_w, 1500.0);
    let said = |plan: &Capacity, kind, part: &str| {
        plan.notes.iter().any(|note| note.kind == kind && note.text.contains(part))
    };
    assert!(said(&at_50, PlanNoteKind::Assumed, "energy covers the GPUs only"));
    // No measurement, or only at loads below the confirmed one.
    let unknown = plan(measured(), 50.0);
    assert_eq!((unknown.energy, unknown.energy_j_per_output_token), (None, None));
    assert!(said(&unknown, PlanNoteKind::Missing, "energy was not measured"));
    let mut part = watched();
    part.levels.retain(|level| level.rps < 20.0);
    assert_eq!(plan(part, 50.0).energy, None);
}

#[test]
fn expectations_never_leave_the_measured_range_in_silence() {
    let levels = measured().levels;
    let at = |rps| expect_at(&levels, rps, "x");
    assert_eq!((at(20.0).footing, at(20.0).ttft_p50_ms), (Footing::Measured, Some(140.0)));
    let middle = at(15.0);
    assert_eq!((middle.footing, middle.points_rps), (Footing::Interpolated, vec![10.0, 20.0]));
    assert_eq!((middle.ttft_p50_ms, middle.ttft_p99_ms), (Some(120.0), Some(360.0)));
    assert_eq!((middle.tpot_p50_ms, middle.tpot_p99_ms), (Some(46.0), Some(92.0)));
    assert_eq!((at(2.0).footing, at(2.0).ttft_p50_ms), (Footing::BelowMeasured, Some(80.0)));
    let above = at(30.0);
    assert_eq!((above.footing, above.has_latency()), (Footing::AboveMeasured, false));
    assert_eq!(above.input_tokens, Some(500.0));
    assert_eq!(expect_at(&[], 1.0, "x").footing, Footing::Nothing);
}

#[test]
fn points_at_one_rate_count_by_their_requests() {
    let mut levels = measured().levels;
    let mut again = levels[2].clone();
    again.figures.ok = levels[2].figures.ok * 3;
    again.figures.ttft_ms.p50.as_mut().unwrap().value = 180.0;
    levels.push(again);
    assert_eq!(expect_at(&levels, 20.0, "x").ttft_p50_ms, Some(170.0));
}

#[test]
fn a_step_waits_for_its_slowest_call() {
    let [p50, p99] = fan_out_shares(10);
    assert!((p50 - 0.933_033).abs() < 1e-6 && (p99 - 0.998_995_5).abs() < 1e-6);
    // Of an exponential distribution with mean 100: its quantiles are on the line.
    let at = |share: f64| -100.0 * (1.0 - share).ln();
    let known: Vec<_> = [0.5, 0.9, 0.99].map(|share| (share, at(share))).into();
    let step = FanOut::new(10, 20.0, &[("e2e", known)]);
    let found = &step.metrics[0];
    assert!((found.p50.ms.unwrap() / at(p50) - 1.0).abs() < 1e-12 && found.p50.interpolated);
    // p99.9 of a single call is not known from its p99.
    assert_eq!(found.p99.ms, None);
}

#[test]
fn traffic_in_stretches() {
    let day = Traffic::diurnal(100.0, 20.0, 14.0).unwrap();
    assert_eq!((day.slots.len(), day.hours().len()), (288, 24));
    assert!((day.mean_rps() - 60.0).abs() < 1e-9);
    let peak = day.slots.iter().max_by(|a, b| a.rps.total_cmp(&b.rps)).unwrap();
    assert!((13.9..=14.0).contains(&(peak.start_s / 3600.0)), "{peak:?}");
    assert!(day.peak_rps() < 100.0 && day.peak_rps() > 99.99);
    // A minute at 10, the rest of an hour at 4, then 6: the last lasts as long as the one before.
    let rates = Traffic::from_rates(&[(0.0, 10.0), (60.0, 4.0), (3600.0, 6.0)]).unwrap();
    assert_eq!(rates.slots[0].rps, (60.0 * 10.0 + 240.0 * 4.0) / 300.0);
    assert_eq!((rates.slots[1].rps, rates.slots[12].rps), (4.0, 6.0));
    assert_eq!(rates.seconds(), 7140.0);
    // Ten minutes of a request every two seconds, then one every second for five.
    let instants: Vec<f64> =
        (0..300).map(|n| f64::from(n) * 2.0).chain((0..=300).map(|n| f64::from(600 + n))).collect();
    let trace = Traffic::from_arrivals(&instants).unwrap();
    let rates: Vec<f64> = trace.slots.iter().map(|slot| slot.rps).collect();
    assert_eq!(rates, [0.5, 0.5, 301.0 / 300.0]);
}

#[test]
fn bad_traffic_is_refused() {
    let rates = |rows: &[(f64, f64)]| Traffic::from_rates(rows).unwrap_err().what;
    assert!(rates(&[]).contains("no rates"));
    assert!(rates(&[(0.0, 1.0), (0.0, 1.0)]).contains("row 2"));
    assert!(rates(&[(10.0, 1.0), (5.0, 1.0)]).contains("row 2"));
    assert!(rates(&[(0.0, -1.0)]).contains("row 1"));
    assert!(rates(&[(0.0, f64::INFINITY)]).contains("row 1"));
    assert!(rates(&[(f64::NAN, 1.0)]).contains("row 1"));
    assert!(rates(&[(0.0, 0.0), (60.0, 0.0)]).contains("no load"));
    assert!(rates(&[(0.0, 1.0), (1e9, 1.0)]).contains("one month"));
    assert!(Traffic::from_arrivals(&[]).is_err() && Traffic::from_arrivals(&[0.0, 1.0]).is_err());
    for (peak, trough, hour) in [
        (10.0, 20.0, 1.0),
        (0.0, 0.0, 1.0),
        (f64::NAN, 1.0, 1.0),
        (1.0, -1.0, 1.0),
        (2.0, 1.0, 25.0),
    ] {
        assert!(Traffic::diurnal(peak, trough, hour).is_err(), "{peak} {trough} {hour}");
    }
}

#[test]
fn hours_are_held_against_both_ends() {
    use HourState::{AtRisk, Fine, Misses};
    let basis = measured();
    // On two replicas 40 is confirmed and 50 rejected.
    let rows = [(0.0, 40.0), (3600.0, 40.1), (7200.0, 50.0), (10_800.0, 50.1)];
    let traffic = Traffic::from_rates(&rows).unwrap();
    let nothing = Simulation::refused("not asked", "");
    let plan = plan_for_traffic(&basis, &question(60.0), &traffic, 2, nothing);
    let states: Vec<_> = plan.hours.iter().map(|hour| hour.state).collect();
    assert_eq!(states, [Fine, AtRisk, AtRisk, Misses]);
    assert_eq!(plan.counts, Hours { all: 4, at_risk: 3, missing: 1 });
    let needs: Vec<_> = plan.hours.iter().map(|hour| hour.replicas_needed).collect();
    assert_eq!(needs, [2, 3, 3, 3]);
    assert_eq!(plan.enough.replicas, 3);
    assert_eq!((plan.enough.fixed_replica_hours, plan.enough.scaled_replica_hours), (12.0, 11.0));
    assert_eq!(plan.enough.scaled_cost, Some(11.0 * 20.0));
}

#[test]
fn chances_are_read_off_the_levels() {
    let level = |rps: f64, missed: u64| LevelRisk {
        rps,
        stretches: 12,
        stretch_s: 300.0,
        missed,
        good_share: 1.0 - missed as f64 / 100.0,
    };
    let mut simulation = Simulation::refused("", "");
    simulation.refused = None;
    simulation.levels = vec![level(18.0, 0), level(22.0, 6), level(24.0, 3), level(25.0, 9)];
    let rows = [(0.0, 10.0), (3600.0, 20.0), (7200.0, 24.0), (10_800.0, 26.0)];
    let traffic = Traffic::from_rates(&rows).unwrap();
    let plan = plan_for_traffic(&measured(), &question(60.0), &traffic, 1, simulation);
    let chances: Vec<_> = plan.hours.iter().map(|hour| hour.p_miss.unwrap()).collect();
    // Half way from 0 to 6 of 12; 24 is taken to be no better than 22; 26 was rejected.
    assert_eq!(chances, [0.0, 0.25, 0.5, 1.0]);
    assert_eq!(plan.hours[1].good_share, Some(0.97));
    assert_eq!(plan.hours[3].good_share, None);
}

#[test]
fn only_loads_that_occur_and_matter_are_simulated() {
    let basis = measured();
    let traffic = Traffic::from_rates(&[(0.0, 4.0), (3600.0, 60.0)]).unwrap();
    // Twelve on each of five: nothing below half of the confirmed rate.
    let found = rates_to_simulate(&basis, &traffic, 5);
    assert!(found.len() <= 20 && found.is_sorted(), "{found:?}");
    assert_eq!((found[0], *found.last().unwrap()), (10.0, 12.0));
    // Sixty on one is above the rejected rate: only the four are left.
    assert_eq!(rates_to_simulate(&basis, &traffic, 1), [10.0]);
}

#[test]
fn sweeps_without_an_answer_are_refused() {
    let with = |change: &dyn Fn(&mut campaign::sweep::SweepSummary)| {
        let mut summary = sweep(Vec::new(), 20.0, 25.0);
        change(&mut summary);
        Basis::from_sweep(&summary)
    };
    let state = |state: GoodputState| {
        with(&move |summary| {
            let goodput = summary.goodput.as_mut().unwrap();
            goodput.state = state;
            goodput.because = "the points disagree".to_owned();
        })
    };
    let without = with(&|summary| (summary.goodput, summary.plan.slo) = (None, None));
    assert!(without.unwrap_err().what.contains("no SLO"));
    assert!(state(GoodputState::Unclear).unwrap_err().what.contains("the points disagree"));
    assert!(state(GoodputState::Unreachable).unwrap_err().what.contains("p99 ttft < 500ms"));
    let void = with(&|summary| summary.verdict = goodput_model::Verdict::Void);
    assert!(void.unwrap_err().what.contains("void"));
    // Nothing was too much: the rejected end is not known.
    assert_eq!(state(GoodputState::AtLeast).unwrap().rejected_rps, None);
    let long = with(&|summary| {
        let standing = PointStanding::Missed(Miss::Attainment);
        let drift = Vec::new();
        summary.sustained = Some(Sustained { level: 20.0, seconds: 300.0, standing, drift });
    });
    assert_eq!(long.unwrap().notes[0].kind, PlanNoteKind::Doubt);
}

/// A file of an older version has no answer to a list of rates, though its points have been judged.
#[test]
fn a_list_of_rates_is_a_basis_as_measured() {
    let mut summary = sweep(Vec::new(), 20.0, 25.0);
    summary.plan.search = false;
    summary.goodput = None;
    summary.points = (1..)
        .zip([(10.0, true), (20.0, true), (40.0, false)])
        .map(|(number, (rate, kept))| {
            let term = campaign::sweep::TermFigure {
                term: "p99 ttft < 500ms".to_owned(),
                kind: "percentile".to_owned(),
                limit: 500.0,
                value: None,
                attainment: None,
                state: None,
                kept: Some(kept),
                target_state: None,
                target_kept: None,
            };
            let figures = Figures {
                slo_state: Some(goodput_stats::SloState::Missed).filter(|_| !kept),
                terms: vec![term],
                ..flat(rate, 100.0, 40.0)
            };
            point(number, rate, figures, kept)
        })
        .collect();
    let basis = Basis::from_sweep(&summary).unwrap();
    assert_eq!((basis.confirmed_rps, basis.rejected_rps), (20.0, Some(40.0)));
    assert!(basis.is_measured_only, "one run each");
    assert!(basis.notes.iter().any(|note| note.text.contains("as measured, in 1 run")));
}

#[test]
fn bad_numbers_are_refused() {
    for rps in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(Basis::from_rates(rps, None).is_err(), "{rps}");
        assert!(
            plan_capacity(Basis::from_rates(1.0, None).unwrap(), question(rps)).is_err(),
            "{rps}"
        );
    }
    assert!(Basis::from_rates(20.0, Some(19.0)).is_err());
    let refused = |question: Question| {
        plan_capacity(Basis::from_rates(1.0, None).unwrap(), question).is_err()
    };
    assert!(refused(Question { headroom: 10.0, ..question(1.0) }));
    assert!(refused(Question { headroom: f64::NAN, ..question(1.0) }));
    assert!(refused(Question { price_per_gpu_hour: Some(-1.0), ..question(1.0) }));
    assert!(refused(Question { gpus_per_replica: None, ..question(1.0) }));
    assert!(refused(question(1e7)) && refused(question(f64::MAX)));
}

#[test]
fn a_plan_reads_back_what_it_writes() {
    for basis in [measured(), watched()] {
        let mut plan = plan_capacity(basis, question(50.0)).unwrap();
        plan.basis.levels.clear();
        plan.basis.notes.clear();
        let value = serde_json::to_value(&plan).unwrap();
        assert_eq!(value["schema"], "goodput.capacity/1");
        assert_eq!(value["energy_j_per_output_token"].as_f64(), plan.energy.map(|_| 0.75));
        assert_eq!(serde_json::from_value::<Capacity>(value).unwrap(), plan);
    }
}

/// The engine of the fixture crosses p99 TTFT = 500 ms at 67.0 requests/s (200,000 requests a rate).
fn small_sweep() -> campaign::sweep::SweepSummary {
    let profile = Profile::parse(ENGINE).unwrap();
    simulated(&profile, &[5.0, 20.0, 40.0, 60.0, 66.0, 68.0], 66.0, 68.0)
}

#[test]
fn the_model_finds_the_engine_behind_the_points() {
    let basis = Basis::from_sweep(&small_sweep()).unwrap();
    let fitted = calibrate_model(&basis, &Sizes::from_pairs(&sizes(), "all").unwrap()).unwrap();
    // 20 µs a prefill token, 48 sequences.
    assert!((0.016..0.024).contains(&fitted.prefill_ms_per_token), "{fitted:?}");
    assert!((38..60).contains(&fitted.max_num_seqs), "{fitted:?}");
    let [ttft_p50, _, tpot_p50] = fitted.errors;
    assert!(ttft_p50.unwrap() < 0.1 && tpot_p50.unwrap() < 0.05, "{:?}", fitted.errors);
    let missed = |rps: f64| (0..4).filter(|n| fitted.play(rps, *n).missed).count();
    assert_eq!((missed(63.0), missed(71.0)), (0, 4));
    // And it is a profile that can be run.
    assert!(Profile::parse(&fitted.profile_toml().unwrap()).is_ok());
}

#[test]
fn a_bad_fit_is_not_used() {
    let sizes = Sizes::from_means(136.0, 27.0).unwrap();
    let refused = |change: &dyn Fn(&mut Basis)| {
        let mut basis = Basis::from_sweep(&small_sweep()).unwrap();
        change(&mut basis);
        calibrate_model(&basis, &sizes).err().unwrap_or_default()
    };
    assert!(refused(&|basis| basis.levels.truncate(2)).contains("a fit needs 3"));
    assert!(refused(&|basis| drop(basis.levels.drain(..3))).contains("too close"));
    assert!(
        refused(&|basis| (basis.rejected_rps, basis.crossing_high_rps) = (None, None))
            .contains("no upper limit")
    );
    assert!(refused(&|basis| basis.slo = None).contains("no SLO"));
    assert!(refused(&|basis| basis.slo = Some("itl < 50ms".to_owned())).contains("`itl < 50ms`"));
    // A server that gets faster under load is none of this kind.
    let strange = refused(&|basis| {
        for (place, level) in basis.levels.iter_mut().enumerate() {
            let p50 = level.figures.ttft_ms.p50.as_mut().unwrap();
            p50.value = 4000.0 / (place + 1) as f64;
        }
    });
    assert!(!strange.is_empty());
    // Nor one whose limit lies elsewhere.
    let elsewhere = refused(&|basis| {
        basis.levels.retain(|level| level.rps < 50.0);
        (basis.confirmed_rps, basis.rejected_rps) = (200.0, Some(210.0));
    });
    assert!(!elsewhere.is_empty());
}
