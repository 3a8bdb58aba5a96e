//! Against the summary of the same records, and against values known by construction.

use goodput_model::random::{Domain, RandomStream};
use goodput_model::{
    AnswerJudgement, ErrorClass, HealthSample, LoadExtent, LoopLag, Nanos, Phase, Plan,
    RequestRecord, TokenCount, TokenSource,
};
use proptest::prelude::*;

use super::*;
use crate::tests::{facts, fail, ms, plan, record};
use crate::{RunState, Summary, analyze_run};

const NO_WARMUP: LoadExtent = LoadExtent::Requests(0);

fn both(plan: &Plan, records: &[RequestRecord], samples: &[HealthSample]) -> (Summary, Details) {
    let facts = facts(RunState::Complete);
    let summary = analyze_run(plan, facts, || records.iter().cloned(), samples, []);
    let details = chart_details(plan, &summary, records.iter().cloned(), samples);
    (summary, details)
}

/// A request whose first token came after `ttft` ms.
fn answered(index: u64, due_ms: f64, ttft: f64, gaps: &[f64]) -> RequestRecord {
    let mut record = record(index, due_ms, gaps);
    let (stamps, late) = (&mut record.exchange.stamps, ms(ttft) - ms(100.0));
    let early = ms(100.0) - ms(ttft);
    let move_to = |at: Nanos| at + late - early;
    for at in [
        &mut stamps.first_byte,
        &mut stamps.first_token,
        &mut stamps.first_answer,
        &mut stamps.last_token,
        &mut stamps.done,
    ] {
        *at = at.map(move_to);
    }
    stamps.ended = move_to(stamps.ended);
    record.exchange.chunks.iter_mut().for_each(|chunk| chunk.at = move_to(chunk.at));
    record
}

/// Requests of all sorts over ten seconds.
fn mixed(seed: u64, count: u64) -> Vec<RequestRecord> {
    let mut stream = RandomStream::new(seed, Domain::Service, 0);
    let one = |index: u64| {
        let tokens = stream.next_below(30) as usize;
        let gaps: Vec<f64> = (0..tokens).map(|_| stream.draw_log_normal(20.0, 0.8)).collect();
        let ttft = stream.draw_log_normal(150.0, 0.7);
        let due = index as f64 * 10_000.0 / count as f64;
        let record = answered(index, due, ttft, &gaps);
        match index % 20 {
            3 => fail(record, ErrorClass::Timeout),
            7 => fail(record, ErrorClass::Http(500)),
            _ => record,
        }
    };
    (0..count).map(one).collect()
}

#[test]
fn curves_go_through_the_figures_of_the_table() {
    let mut plan = plan(Some(10), None, NO_WARMUP);
    plan.measure.percentiles = vec![12.5, 50.0, 90.0, 97.5, 99.0];
    for count in [1, 7, 150, 900] {
        let (summary, details) = both(&plan, &mixed(count, count), &[]);
        for name in ["ttft", "tpot", "e2e", "max_gap", "itl"] {
            let metric = &summary.metrics[name];
            let Some(drawn) = details.distributions.get(name) else {
                assert_eq!(metric.n, 0, "{name}");
                continue;
            };
            assert_eq!((drawn.n, drawn.censored), (metric.n, metric.censored), "{name}");
            assert!(drawn.quantiles.len() <= 200, "{}", drawn.quantiles.len());
            for (percent, figure) in &metric.percentiles {
                let share = percent.parse::<f64>().unwrap() / 100.0;
                let at = drawn.quantiles.iter().find(|point| point.0 == share);
                let value = at.map(|point| point.1);
                assert_eq!(value, figure.value, "{name} p{percent} of {count}");
            }
            let values: Vec<f64> = drawn.quantiles.iter().map(|point| point.1).collect();
            assert!(values.is_sorted(), "{name} {values:?}");
            assert_eq!(values.first().copied(), metric.min, "{name}");
            assert!(metric.max.is_none() || values.last().copied() == metric.max, "{name}");
            let counted: u64 = drawn.histogram.iter().map(|bin| bin.1).sum();
            assert_eq!(counted, drawn.n - drawn.censored, "{name}");
            let edges: Vec<f64> = drawn.histogram.iter().map(|bin| bin.0).collect();
            assert!(edges.is_sorted() && edges.len() <= 61, "{name} {edges:?}");
        }
    }
}

#[test]
fn a_histogram_counts_what_lies_between_its_edges() {
    let plan = plan(Some(10), None, NO_WARMUP);
    let waits = [10.0, 11.0, 12.0, 95.0, 99.0, 900.0];
    let records: Vec<RequestRecord> = (0..)
        .zip(waits)
        .map(|(index, wait)| answered(index, index as f64 * 100.0, wait, &[5.0]))
        .collect();
    let (_, details) = both(&plan, &records, &[]);
    let bins = &details.distributions["ttft"].histogram;
    for pair in bins.windows(2) {
        let inside = waits.iter().filter(|wait| (pair[0].0..pair[1].0).contains(*wait)).count();
        assert_eq!(pair[0].1, inside as u64, "{pair:?}");
        let ratio = bins[1].0 / bins[0].0;
        assert!((pair[1].0 / pair[0].0 / ratio - 1.0).abs() < 1e-9);
    }
    assert_eq!(bins.last().unwrap().1, 0);
}

#[test]
fn only_the_measured_part_is_drawn() {
    let mut records = mixed(3, 100);
    records[0].phase = Phase::Warmup;
    records[99].phase = Phase::Cooldown;
    let plan = plan(Some(10), None, NO_WARMUP);
    let (summary, found) = both(&plan, &records, &[]);
    assert_eq!(found.slo_grid.requests, 98);
    assert_eq!(found.distributions["e2e"].n, summary.metrics["e2e"].n);
    // What an automatic warm-up cut is not measured either.
    let mut cut = summary.clone();
    cut.window.start_s = 5.0;
    cut.window.cut = Some(crate::steady::Cut { cut_s: 5.0, ..Default::default() });
    let later = chart_details(&plan, &cut, records.iter().cloned(), &[]);
    assert_eq!(later.slo_grid.requests, 49, "requests 50 to 98");
    assert_eq!(later.timeline, found.timeline, "the course is that of the whole run");
}

#[test]
fn answers_that_we_counted_have_our_count() {
    let mut plan = plan(Some(10), None, NO_WARMUP);
    plan.measure.percentiles = vec![50.0];
    let mut one = record(0, 0.0, &[10.0; 4]);
    one.exchange.output_tokens = Some(TokenCount { n: 5, source: TokenSource::Events });
    let judged = AnswerJudgement { index: 0, output_tokens: Some(9), ..AnswerJudgement::default() };
    let facts = facts(RunState::Complete);
    let summary = analyze_run(&plan, facts, || [one.clone()].into_iter(), &[], [judged]);
    let records = complete_records([one.clone()].into_iter(), [judged]);
    let details = chart_details(&plan, &summary, records, &[]);
    // 40 ms for the eight tokens after the first.
    assert_eq!(summary.metrics["tpot"].percentiles["50"].value, Some(5.0));
    assert_eq!(details.distributions["tpot"].quantiles[0].1, 5.0);
}

#[test]
fn stalls_are_ten_times_the_median_and_at_least_a_tenth_of_a_second() {
    let plan = plan(Some(10), None, NO_WARMUP);
    let usual = [20.0; 9];
    let with = |index: u64, gap: f64| {
        let gaps: Vec<f64> = usual.iter().copied().chain([gap]).collect();
        answered(index, index as f64 * 1_000.0, 100.0, &gaps)
    };
    // Ten times the median are 200 ms.
    let records = [with(0, 199.0), with(1, 200.0), with(2, 20.0), with(3, 1_234.0)];
    let (_, found) = both(&plan, &records, &[]);
    let stalls = &found.stalls;
    // Bins are 2 µs wide there.
    assert!((stalls.threshold_ms - 200.0).abs() < 0.004, "{stalls:?}");
    assert_eq!((stalls.count, stalls.requests), (2, 2));
    // 1 s, then 100 ms to the first token and nine gaps of 20 ms.
    assert_eq!(stalls.longest, [(1.28, 200.0), (3.28, 1_234.0)]);
    let quick = [answered(0, 0.0, 100.0, &[1.0, 1.0, 1.0, 99.0, 100.0])];
    let (_, found) = both(&plan, &quick, &[]);
    assert_eq!((found.stalls.threshold_ms, found.stalls.count), (100.0, 1));
    assert_eq!((found.stalls.requests, found.stalls.longest.len()), (1, 1));
}

#[test]
fn only_the_longest_stalls_are_kept() {
    let plan = plan(Some(100), None, NO_WARMUP);
    let gaps: Vec<f64> = (0..500).map(|k| 300.0 + f64::from(k)).chain([5.0; 600]).collect();
    let (_, found) = both(&plan, &[answered(0, 0.0, 100.0, &gaps)], &[]);
    assert_eq!((found.stalls.count, found.stalls.longest.len()), (500, 200));
    assert!(found.stalls.longest.iter().all(|stall| stall.1 >= 600.0));
    assert!(found.stalls.longest.is_sorted_by(|one, next| one.0 < next.0));
}

#[test]
fn places_are_those_of_tokens() {
    let plan = plan(Some(10), None, NO_WARMUP);
    let mut one = answered(0, 0.0, 100.0, &[10.0, 20.0, 30.0]);
    // Tokens 1, 2 to 4, 5, 6.
    one.exchange.chunks[1].tokens = Some(3);
    let (_, found) = both(&plan, &[one], &[]);
    let places: Vec<(u64, u64)> = found.positions.iter().map(|band| (band.from, band.n)).collect();
    assert_eq!(places, [(2, 1), (5, 1), (6, 1)]);
}

#[test]
fn the_course_of_the_run_is_that_of_its_requests() {
    let plan = plan(Some(90), None, NO_WARMUP);
    // One a second for 90 s, each in flight for 300 ms: 100 to the first of three tokens.
    let mut records: Vec<RequestRecord> =
        (0..90).map(|k| answered(k, k as f64 * 1e3, 100.0, &[100.0, 100.0])).collect();
    records[10] = fail(records[10].clone(), ErrorClass::Http(500));
    records.remove(20);
    let (_, found) = both(&plan, &records, &[]);
    let Timeline { bin_s, ref in_flight, ref errors, .. } = found.timeline;
    assert_eq!((bin_s, in_flight.len()), (1.0, 90));
    let near = |value: f64, expected: f64| (value - expected).abs() < 1e-6;
    assert!(near(in_flight[5], 0.3) && near(in_flight[20], 0.0));
    assert!(near(found.timeline.tokens_per_s[5], 3.0));
    assert!(near(found.timeline.arrivals_per_s[5], 1.0));
    assert_eq!((found.timeline.arrivals_per_s[20], found.timeline.arrivals_per_s[89]), (0.0, 1.0));
    assert_eq!(
        (found.timeline.completions_per_s[5], found.timeline.completions_per_s[10]),
        (1.0, 0.0)
    );
    assert_eq!((errors[5], errors[10], errors.iter().sum::<u64>()), (0, 1, 1));
    assert_eq!(found.timeline.ttft_p50_ms[20], None);
    assert!(near(found.timeline.ttft_p50_ms[89].unwrap(), 100.0));
}

#[test]
fn a_stall_of_the_client_leaves_out_what_the_summary_leaves_out() {
    let mut plan = plan(Some(10), None, NO_WARMUP);
    plan.measure.slo = Some("ttft < 200ms, tpot < 25ms".parse().unwrap());
    plan.measure.percentiles = vec![50.0, 90.0];
    let beat = LoopLag { worker: 0, due: ms(4_000.0), lag: ms(500.0) };
    let samples = [HealthSample { at: ms(5_000.0), beats: vec![beat], ..HealthSample::default() }];
    let (summary, found) = both(&plan, &mixed(5, 300), &samples);
    let slo = summary.slo.as_ref().unwrap();
    assert!(slo.undetermined > 0);
    assert_eq!(found.slo_grid.requests, slo.scheduled - slo.undetermined);
    assert_eq!(good(&found.slo_grid, 200.0, 25.0).0, slo.good);
    for name in ["ttft", "itl", "max_gap"] {
        let (drawn, metric) = (&found.distributions[name], &summary.metrics[name]);
        assert_eq!(drawn.n, metric.n, "{name}");
        let middle = drawn.quantiles.iter().find(|point| point.0 == 0.5).map(|point| point.1);
        assert_eq!(middle, metric.percentiles["50"].value, "{name}");
    }
}

/// Requests and tokens inside both limits, as a page counts them.
fn good(grid: &SloGrid, ttft: f64, tpot: f64) -> (u64, u64) {
    let place = |edges: &[f64], limit: f64| {
        let at = edges.iter().position(|edge| *edge == limit);
        at.unwrap_or_else(|| panic!("{limit} is not an edge")) as u16
    };
    let (ttft, tpot) = (place(&grid.ttft_ms, ttft), place(&grid.tpot_ms, tpot));
    let inside = grid.cells.iter().filter(|cell| cell.0 <= ttft && cell.1 <= tpot);
    inside.fold((0, 0), |sum, cell| (sum.0 + cell.2, sum.1 + cell.3))
}

#[test]
fn answers_in_one_piece_are_not_counted_between_limits_of_tokens() {
    let mut plan = plan(Some(10), None, NO_WARMUP);
    assert_eq!(both(&plan, &mixed(1, 20), &[]).1.slo_grid.requests, 20);
    plan.target.stream = false;
    assert_eq!(both(&plan, &mixed(1, 20), &[]).1.slo_grid, SloGrid::default());
}

#[test]
fn edges_are_round_and_rise() {
    let mut plan = plan(Some(10), None, NO_WARMUP);
    plan.measure.slo = Some("ttft < 470ms, p99 ttft < 512.5ms, tpot < 100s".parse().unwrap());
    let (_, found) = both(&plan, &[record(0, 0.0, &[])], &[]);
    let SloGrid { ttft_ms, tpot_ms, .. } = &found.slo_grid;
    // Sixty steps and the end; one of the plan's limits is a step already.
    assert_eq!((ttft_ms.len(), tpot_ms.len()), (62, 62));
    assert_eq!((ttft_ms[0], ttft_ms[1], ttft_ms[61]), (1.0, 1.2, 100_000.0));
    assert_eq!((tpot_ms[0], tpot_ms[1], tpot_ms[60], tpot_ms[61]), (0.1, 0.12, 1e4, 1e5));
    assert!(ttft_ms.contains(&512.5) && ttft_ms.contains(&470.0));
    assert!(ttft_ms.is_sorted_by(|one, next| one < next));
    // An answer of one token keeps every limit of TPOT: 100 ms are not below 100 ms, but below 120.
    assert_eq!(ttft_ms[found.slo_grid.cells[0].0 as usize], 120.0);
    assert_eq!(found.slo_grid.cells, [(25, 0, 1, 1)]);
}

#[test]
fn a_log_that_claims_anything_is_drawn_all_the_same() {
    let plan = plan(Some(10), None, NO_WARMUP);
    let mut odd = record(0, 0.0, &[10.0; 3]);
    odd.exchange.stamps.last_token = Some(Nanos(u64::MAX));
    odd.exchange.stamps.done = Some(Nanos(u64::MAX));
    odd.exchange.chunks[3].at = Nanos(u64::MAX);
    odd.exchange.chunks[2].choice = u32::MAX;
    odd.exchange.chunks[1].tokens = Some(u32::MAX);
    let (_, found) = both(&plan, &[odd.clone(), record(1, 5.0, &[])], &[]);
    assert!(found.timeline.in_flight.len() <= 600);
    let (_, none) = both(&plan, &[], &[]);
    assert_eq!((none.timeline, none.slo_grid.window_s), (Timeline::default(), 0.0));
    let mut silent = plan;
    silent.target.stream = false;
    let (_, found) = both(&silent, &[odd], &[]);
    assert!(found.positions.is_empty() && !found.distributions.contains_key("itl"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// What the page counts at the limits of the plan is what the summary counted.
    #[test]
    fn the_grid_counts_as_the_slo_does(
        seed in 0u64..1_000,
        count in 1u64..120,
        ttft in prop::sample::select(vec![100.0, 120.0, 147.5, 300.0]),
        tpot in prop::sample::select(vec![18.0, 20.0, 23.25]),
        relation in prop::sample::select(vec!["<", "<="]),
        truncated in any::<bool>(),
    ) {
        let mut plan = plan(Some(10), None, NO_WARMUP);
        let slo = format!("ttft {relation} {ttft}ms, tpot {relation} {tpot}ms");
        plan.measure.slo = Some(slo.parse().unwrap());
        let mut records = mixed(seed, count);
        for record in records.iter_mut().step_by(5) {
            // Some lie exactly on the limit.
            let (wait, tokens) = (ttft, 4);
            *record = answered(record.index, record.scheduled.as_ms(), wait, &[tpot; 3]);
            record.exchange.output_tokens = Some(TokenCount { n: tokens, source: TokenSource::Usage });
            if truncated && record.index % 10 == 0 {
                record.exchange.finish = Some("length".to_owned());
                record.planned.output_tokens = Some(tokens + 1);
            }
        }
        let (summary, found) = both(&plan, &records, &[]);
        let slo = summary.slo.unwrap();
        let (requests, tokens) = good(&found.slo_grid, ttft, tpot);
        prop_assert_eq!(requests, slo.good);
        prop_assert_eq!(found.slo_grid.requests, slo.scheduled);
        let window_s = found.slo_grid.window_s;
        let near = |one: f64, other: f64| (one - other).abs() <= 1e-9 * other.abs().max(1.0);
        prop_assert!(near(requests as f64 / window_s, slo.goodput_rps.unwrap()));
        prop_assert!(near(tokens as f64 / window_s, slo.goodput_output_tps.unwrap()));
    }
}
