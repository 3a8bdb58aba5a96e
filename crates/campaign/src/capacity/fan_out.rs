//! Steps that make several calls at once and wait for the slowest.
//!
//! With n independent calls, P(all within x) = F(x)^n: the step's percentile q is the single call's
//! percentile q^(1/n).

use serde::{Deserialize, Serialize};

use super::Expected;

/// A step of several calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FanOut {
    /// Calls of a step.
    pub calls: u32,
    /// Rate of the replica at which this holds.
    pub at_rps: f64,
    /// By metric: `e2e`, `ttft`.
    pub metrics: Vec<FanFigure>,
}

/// What a step waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FanFigure {
    /// `e2e`: the step has ended; `ttft`: all of its calls have begun to answer.
    pub metric: String,
    /// Median of a single call.
    pub single_p50_ms: Option<f64>,
    /// 99th percentile of a single call.
    pub single_p99_ms: Option<f64>,
    /// Median of a step.
    pub p50: StepLatency,
    /// 99th percentile of a step.
    pub p99: StepLatency,
}

/// A percentile of a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepLatency {
    /// The percentile of a single call that it equals.
    pub single_percentile: f64,
    /// Its value; none if too few requests were measured to know it.
    pub ms: Option<f64>,
    /// Whether it lies on a line between two percentiles that are known.
    pub interpolated: bool,
}

/// Shares of single calls that are needed for the median and the 99th percentile of a step.
pub fn single_call_shares(calls: u32) -> [f64; 2] {
    let root = 1.0 / f64::from(calls.max(1));
    [0.5f64.powf(root), 0.99f64.powf(root)]
}

impl FanOut {
    /// From percentiles of single calls by metric, as (share, ms), ascending.
    pub fn new(calls: u32, at_rps: f64, known: &[(&str, Vec<(f64, f64)>)]) -> Self {
        let figure = |(metric, known): &(&str, Vec<(f64, f64)>)| {
            let at = |share: f64| quantile(known, share);
            let step = |share: f64| {
                let found = at(share);
                StepLatency {
                    single_percentile: share * 100.0,
                    ms: found.map(|(ms, _)| ms),
                    interpolated: found.is_some_and(|(_, exact)| !exact),
                }
            };
            let [p50, p99] = single_call_shares(calls).map(step);
            FanFigure {
                metric: (*metric).to_owned(),
                single_p50_ms: at(0.5).map(|(ms, _)| ms),
                single_p99_ms: at(0.99).map(|(ms, _)| ms),
                p50,
                p99,
            }
        };
        Self { calls, at_rps, metrics: known.iter().map(figure).collect() }
    }

    /// The percentiles of E2E and TTFT that an expectation has.
    pub fn from_expected(calls: u32, here: &Expected) -> Self {
        let listed = |points: [(f64, Option<f64>); 3]| {
            points.into_iter().filter_map(|(share, ms)| ms.map(|ms| (share, ms))).collect()
        };
        let e2e = listed([(0.5, here.e2e_p50_ms), (0.9, here.e2e_p90_ms), (0.99, here.e2e_p99_ms)]);
        let ttft = listed([(0.5, here.ttft_p50_ms), (0.9, None), (0.99, here.ttft_p99_ms)]);
        Self::new(calls, here.at_rps, &[("e2e", e2e), ("ttft", ttft)])
    }
}

/// The value at a share and whether it is known exactly; between two known ones on a line over
/// -log(1 - share), on which an exponential tail is straight. Never beyond the last.
fn quantile(known: &[(f64, f64)], share: f64) -> Option<(f64, bool)> {
    const SAME: f64 = 1e-6;
    if let Some((_, ms)) = known.iter().find(|(at, _)| (at - share).abs() < SAME) {
        return Some((*ms, true));
    }
    let above = known.iter().position(|(at, _)| *at > share)?;
    let (low, high) = (known.get(above.checked_sub(1)?)?, known.get(above)?);
    let depth = |share: f64| -(1.0 - share).ln();
    let part = (depth(share) - depth(low.0)) / (depth(high.0) - depth(low.0));
    Some((low.1 + (high.1 - low.1) * part, false))
}
