//! The figures that the search looks at, without the rest of the analysis: it takes most of the time
//! in a build for tests. That they are the same is tested.

use goodput_campaign::sweep::{
    Bounded, Figures, Level, PointAsk, PointSpread, SweepPlan, TermFigure,
};
use goodput_model::EndedBy;

use super::Server;
use super::load::{PointTrace, Request};

/// Batches of a window.
const BATCHES: usize = 20;

pub fn figures(server: &Server, plan: &SweepPlan, ask: &PointAsk, seen: &PointTrace) -> Figures {
    let is_lost = seen.ended_by == EndedBy::Hopeless;
    let counts = |request: &&Request| {
        let promised = server.promised(request.first, request.last);
        let is_known =
            promised.is_some_and(|at| at <= seen.end) || seen.end - request.at >= server.limit;
        request.at >= seen.burn_in && (!is_lost || is_known)
    };
    let measured: Vec<&Request> = seen.requests.iter().filter(counts).collect();
    let window_s = (seen.end - seen.burn_in).as_secs();
    let is_good = |request: &Request| server.keeps(request.at, request.first, request.last);
    let mut batches = [(0.0, 0.0); BATCHES];
    for request in &measured {
        let part = (request.at - seen.burn_in).as_secs() / window_s;
        let batch = &mut batches[((part * BATCHES as f64) as usize).min(BATCHES - 1)];
        *batch = (batch.0 + f64::from(u8::from(is_good(request))), batch.1 + 1.0);
    }
    let n = measured.len() as f64;
    let good: f64 = batches.iter().map(|batch| batch.0).sum();
    let share = good / n.max(1.0);
    let n_eff = n_eff(&batches, share, n);
    let attainment = Some(interval(share, n_eff));
    let e2e = times(&measured, |request| request.last.map(|last| (last - request.at).as_ms()));
    let ttft = times(&measured, |request| request.first.map(|first| (first - request.at).as_ms()));
    let percent = ttft.get(((server.percent / 100.0 * n).ceil() as usize).max(1) - 1).copied();
    let ended = seen.requests.iter().filter_map(|request| request.last);
    let ended = ended.filter(|at| *at >= seen.burn_in && *at < seen.end).count() as f64;
    let rate = match ask.level {
        Level::Rate(rate) => Some(rate),
        Level::Users(_) => None,
    };
    let under_way: f64 = e2e.iter().sum::<f64>() / 1e3 / window_s;
    Figures {
        is_complete: true,
        ended_by: Some(seen.ended_by),
        window_s,
        requests: measured.len() as u64,
        ok: measured.len() as u64,
        offered_rps: rate,
        scheduled_rps: rate.map(|_| n / window_s),
        requests_per_s: Some(ended / window_s),
        in_flight: Some(under_way),
        ttft_ms: spread(&ttft),
        e2e_ms: spread(&e2e),
        attainment,
        n_eff: Some(n_eff),
        terms: vec![TermFigure {
            term: plan.slo.as_ref().map(ToString::to_string).unwrap_or_default(),
            kind: "percentile".to_owned(),
            limit: server.limit.as_ms(),
            value: percent.map(|value| Bounded { value, low: None, high: None }),
            attainment,
            state: None,
            kept: Some(share >= server.percent / 100.0 - 1e-9),
            target_state: None,
            target_kept: None,
        }],
        ..Figures::default()
    }
}

fn n_eff(batches: &[(f64, f64)], share: f64, n: f64) -> f64 {
    let filled: Vec<_> = batches.iter().filter(|batch| batch.1 > 0.0).collect();
    let k = filled.len() as f64;
    let squares: f64 =
        filled.iter().map(|(good, of)| (of / n).powi(2) * (good / of - share).powi(2)).sum();
    let variance = squares * k / (k - 1.0).max(1.0);
    if variance > 0.0 { (share * (1.0 - share) / variance).min(n) } else { n }
}

/// Wilson's interval.
fn interval(p: f64, n: f64) -> Bounded {
    let (z, n) = (1.96, 0.877 * n.max(1.0));
    let center = p + z * z / (2.0 * n);
    let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    Bounded { value: p, low: Some((center - half) / scale), high: Some((center + half) / scale) }
}

fn times(measured: &[&Request], of: impl Fn(&Request) -> Option<f64>) -> Vec<f64> {
    let mut times: Vec<f64> = measured.iter().filter_map(|request| of(request)).collect();
    times.sort_unstable_by(f64::total_cmp);
    times
}

fn spread(sorted: &[f64]) -> PointSpread {
    let at = |q: f64, least: usize| {
        let place = ((q * sorted.len() as f64).ceil() as usize).max(1) - 1;
        let value = *sorted.get(place)?;
        (sorted.len() >= least).then_some(Bounded { value, low: None, high: None })
    };
    PointSpread {
        p50: at(0.5, 6),
        p90: at(0.9, 36),
        p99: at(0.99, 368),
        mean: (!sorted.is_empty()).then(|| sorted.iter().sum::<f64>() / sorted.len() as f64),
    }
}
