//! A sweep over a simulated engine, in simulated time: what `goodput sweep` would have written.

use std::sync::Arc;

use goodput_model::random::{Domain, RandomStream};
use goodput_model::{Clip, EndedBy, LengthDistribution, Nanos, Slo, StopEarly, Verdict};
use goodput_sim::{JobArrival, JobOutcome, Profile, SimEngine, SimJob, simulate};

use super::campaign::curve::Curve;
use super::campaign::sweep::{
    Axis, Bounded, Figures, Goodput, GoodputState, Level, Miss, Point, PointAsk, PointSpread,
    PointStanding, PointSummary, Purpose, SweepFacts, SweepPlan, SweepState, SweepSummary,
};

/// A small engine with a known limit of sequences, prefill and step times.
pub(crate) const ENGINE: &str = r#"
model = "small"
max_model_len = 10000
default_tokens = 16

[scheduler]
max_num_seqs = 48
max_num_batched_tokens = 8192
frontend = "2ms"

[kv]
blocks = 100000

[step]
base_ms = 10.0
overlap = 0.0
decode_ms = [[1, 10.0], [16, 12.0], [64, 24.0]]
prefill_ms = [[100, 12.0]]
"#;

/// Lengths of short questions and answers.
pub(crate) fn sizes() -> Vec<(u32, u32)> {
    let input = LengthDistribution::LogNormal(100.0, 0.8, Clip { low: 10, high: 1000 });
    let output = LengthDistribution::LogNormal(20.0, 0.8, Clip { low: 2, high: 200 });
    (0..2000)
        .map(|index| {
            let mut stream = RandomStream::new(3, Domain::Lengths, index);
            (input.draw(&mut stream), output.draw(&mut stream))
        })
        .collect()
}

/// What became of `count` requests at a rate, without those of the first tenth.
pub(crate) fn outcomes(profile: &Profile, rps: f64, count: u64) -> Vec<JobOutcome> {
    let sizes = sizes();
    let mut gaps = RandomStream::new(11, Domain::Arrivals, 0);
    let mut at = 0.0;
    let arrivals = (0..count).map(|id| {
        at += gaps.draw_exponential() / rps;
        let (input, output) = sizes[(id as usize * 7) % sizes.len()];
        // Prompts that share nothing, so that no cache is in the way.
        let prompt: Arc<[u32]> = vec![id as u32; input as usize].into();
        let job = SimJob { id, prompt, output_tokens: output, answer_seed: id };
        JobArrival { at: Nanos::from_secs_f64(at), job }
    });
    let mut engine = SimEngine::new(profile, 1, |seed, index| {
        (seed as u32).wrapping_mul(1009).wrapping_add(index)
    });
    let mut all = simulate(&mut engine, arrivals);
    all.drain(..count as usize / 10);
    all
}

fn bounded(value: f64) -> Bounded {
    Bounded { value, low: Some(value * 0.97), high: Some(value * 1.03) }
}

fn spread(mut values: Vec<f64>) -> PointSpread {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| bounded(values[((values.len() - 1) as f64 * share).round() as usize]);
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    PointSpread { p50: Some(at(0.5)), p90: Some(at(0.9)), p99: Some(at(0.99)), mean: Some(mean) }
}

/// The figures of a run at a rate.
pub(crate) fn figures(rps: f64, outcomes: &[JobOutcome], limit_ms: f64) -> Figures {
    let n = outcomes.len() as u64;
    let ttft = |o: &JobOutcome| (o.first_token.unwrap() - o.arrived).as_ms();
    let e2e = |o: &JobOutcome| (o.finished.unwrap() - o.arrived).as_ms();
    let tpot = |o: &JobOutcome| {
        (o.output_tokens > 1).then(|| (e2e(o) - ttft(o)) / f64::from(o.output_tokens - 1))
    };
    let mean = |f: &dyn Fn(&JobOutcome) -> f64| outcomes.iter().map(f).sum::<f64>() / n as f64;
    let input = mean(&|o| f64::from(o.prompt_tokens));
    let output = mean(&|o| f64::from(o.output_tokens));
    let good = mean(&|o| f64::from(u8::from(ttft(o) < limit_ms)));
    Figures {
        is_complete: true,
        ended_by: Some(EndedBy::Plan),
        window_s: n as f64 / rps,
        requests: n,
        ok: n,
        offered_rps: Some(rps),
        scheduled_rps: Some(rps),
        requests_per_s: Some(rps),
        output_tps: Some(rps * output),
        total_tps: Some(rps * (input + output)),
        in_flight: Some(rps * mean(&|o| e2e(o)) / 1e3),
        ttft_ms: spread(outcomes.iter().map(ttft).collect()),
        tpot_ms: spread(outcomes.iter().filter_map(tpot).collect()),
        e2e_ms: spread(outcomes.iter().map(e2e).collect()),
        input_tokens: Some(input),
        output_tokens: Some(output),
        over_saturated: Some(false),
        queue_limited: Some(false),
        balance: Some(1.0),
        is_steady: Some(true),
        attainment: Some(bounded(good)),
        n_eff: Some(n as f64),
        goodput_rps: Some(bounded(rps * good)),
        goodput_output_tps: Some(rps * output * good),
        ..Figures::default()
    }
}

/// A point of an open loop.
pub(crate) fn point(number: u32, rps: f64, figures: Figures, met: bool) -> PointSummary {
    let ask = PointAsk {
        number,
        purpose: Purpose::Grid,
        level: Level::Rate(rps),
        burn_in_s: 10.0,
        seconds: 60.0,
        requests: None,
        seed: u64::from(number),
        stops: Some(StopEarly::Hopeless),
    };
    let missed = PointStanding::Missed(Miss::Term("p99 ttft < 500ms".to_owned()));
    PointSummary {
        folder: format!("points/{number:03}"),
        point: Point { ask, figures },
        standing: if met { PointStanding::Met } else { missed },
    }
}

/// A sweep of these points with this answer.
pub(crate) fn sweep(points: Vec<PointSummary>, confirmed: f64, rejected: f64) -> SweepSummary {
    let slo: Slo = "p99 ttft < 500ms".parse().unwrap();
    SweepSummary {
        schema: SweepSummary::SCHEMA.to_owned(),
        verdict: Verdict::Valid,
        caveats: Vec::new(),
        sweep: SweepFacts {
            version: "0.1.0".to_owned(),
            started: "2026-11-15T10:00:00Z".to_owned(),
            state: SweepState::Complete,
            target: "http://localhost:8000/".to_owned(),
            model: "llama-70b".to_owned(),
            workload: "chat".to_owned(),
            gpus: Some(8),
            estimated: None,
            took_s: 1200.0,
            ..SweepFacts::default()
        },
        plan: SweepPlan { settle_s: 2.0, slo: Some(slo.clone()), ..SweepPlan::default() },
        goodput: Some(Goodput {
            state: GoodputState::Found,
            because: String::new(),
            slo: slo.to_string(),
            axis: Axis::Rate,
            confirmed: Some(confirmed),
            rejected: Some(rejected),
            confirmed_rps: Some(confirmed),
            rejected_rps: Some(rejected),
            measured: None,
            measured_rps: None,
            attainment: Some(0.995),
            seen_attainment: Some(0.995),
            attainment_low: Some(0.99),
            attainment_high: Some(0.999),
            crossing: None,
            runs: 2,
            requests: 3000,
            over_claim_risk: Some(0.07),
        }),
        kept_loads: Vec::new(),
        figures: Vec::new(),
        measured_with: None,
        sustained: None,
        curve: Curve::default(),
        points,
    }
}

/// A sweep of a profile at these rates.
pub(crate) fn simulated(
    profile: &Profile,
    rates: &[f64],
    confirmed: f64,
    rejected: f64,
) -> SweepSummary {
    let points = (1..).zip(rates).map(|(number, rps)| {
        let seen = outcomes(profile, *rps, 4000);
        point(number, *rps, figures(*rps, &seen, 500.0), *rps <= confirmed)
    });
    sweep(points.collect(), confirmed, rejected)
}
