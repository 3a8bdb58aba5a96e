//! The shape of `summary.slo`.

use serde::{Deserialize, Serialize};

/// The result of a run against its SLO.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SloSummary {
    /// The SLO, presets written out.
    pub slo: String,
    /// The worst of its terms and of the attainment.
    pub state: SloState,
    /// Whether the measured figures, failures included, keep all of it regardless of intervals;
    /// none without terms or samples.
    #[serde(default)]
    pub kept: Option<bool>,
    /// Term by term.
    pub terms: Vec<SloTermSummary>,
    /// The required share of good requests.
    pub target: Option<f64>,
    /// The attainment against it.
    pub attainment_state: SloState,
    /// What makes a request good: `request_terms`; `percentile_limits`, if the SLO has no such
    /// terms; `success`, if it has neither.
    pub judged_by: String,
    /// Measured requests.
    pub scheduled: u64,
    /// Complete requests that met every limit.
    pub good: u64,
    /// Why the others are not good.
    pub misses: SloMisses,
    /// Requests distorted by a stall of the client: they count neither way.
    pub undetermined: u64,
    /// Good requests, as a share of the requests that count.
    pub attainment: Option<f64>,
    /// Lower end of its interval.
    pub attainment_low: Option<f64>,
    /// Upper end of its interval.
    pub attainment_high: Option<f64>,
    /// The number of independent requests that would be worth as much, given how its misses
    /// cluster. Other dependence between requests is in the ends of its interval.
    pub n_eff: Option<f64>,
    /// Good requests per second: attainment times the scheduled rate.
    pub goodput_rps: Option<f64>,
    /// By the lower end of the attainment.
    pub goodput_rps_low: Option<f64>,
    /// By the upper end of the attainment.
    pub goodput_rps_high: Option<f64>,
    /// Output tokens of good requests, per second.
    pub goodput_output_tps: Option<f64>,
    /// Share of requests that failed: dropping late requests can flatter the rest. Requests that a
    /// point of a sweep canceled when it ended early did not fail.
    pub failed_share: Option<f64>,
    /// 99th percentile of the largest gap of a request: delayed tokens can flatter the tail of ITL.
    pub max_gap_p99_ms: Option<f64>,
    /// How fluent answers were; none without a limit on TPOT or ITL, or without streams.
    pub fluidity: Option<FluiditySummary>,
    /// TTFT by prompt length, if lengths differ by a factor of two or more.
    pub ttft_fit: Option<TtftFit>,
}

/// One term.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SloTermSummary {
    /// Its text.
    pub term: String,
    /// `request`, `percentile`, `mean` or `run`.
    pub kind: String,
    /// Unit of `value`, `low`, `high` and `limit`.
    pub unit: String,
    /// The limit for a prompt without tokens.
    pub limit: f64,
    /// Share of requests inside the limit; none for means and figures of the run.
    pub attainment: Option<f64>,
    /// Lower end of its interval.
    pub attainment_low: Option<f64>,
    /// Upper end of its interval.
    pub attainment_high: Option<f64>,
    /// The figure, minus what the limit allows for the prompt's length; none for single requests.
    pub value: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// The outcome.
    pub state: SloState,
    /// Whether the measured figure keeps the limit regardless of its interval; none without
    /// samples, and for single requests.
    #[serde(default)]
    pub kept: Option<bool>,
    /// Of a term about single requests: its share against the required share of good requests, as if
    /// it were the only term; none for other terms, without a requirement, and in files of older
    /// versions.
    #[serde(default)]
    pub target_state: Option<SloState>,
    /// Whether that share as measured reaches the requirement, regardless of its interval.
    #[serde(default)]
    pub target_kept: Option<bool>,
    /// Completed answers to which it does not apply, such as TPOT of a single token.
    pub vacuous: u64,
}

/// The outcome of a term or an SLO.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SloState {
    /// Kept.
    Met,
    /// Broken.
    Missed,
    /// Undecided.
    Undecided,
    /// It is reported only.
    Reported,
}

impl SloState {
    /// The word in `summary.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::Undecided => "undecided",
            Self::Reported => "reported",
        }
    }

    /// Of a whole with these parts.
    pub(crate) fn worst(parts: &[Self]) -> Self {
        let order = [Self::Missed, Self::Undecided, Self::Met];
        order.into_iter().find(|state| parts.contains(state)).unwrap_or(Self::Reported)
    }
}

/// Requests that are not good, by the first reason that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SloMisses {
    /// Failed.
    pub failed: u64,
    /// Hit a time limit.
    pub timed_out: u64,
    /// Without a single token.
    pub empty: u64,
    /// Shorter than the requested length.
    pub truncated: u64,
    /// Completed, but outside a limit.
    pub limits: u64,
}

/// How fluent answers were.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FluiditySummary {
    /// Requests with an index; failures have an index of 0.
    pub n: u64,
    /// Time from one token to the next that the SLO allows.
    pub token_deadline_ms: f64,
    /// Share of requests with an index of 0.9 or more.
    pub fluid_share: f64,
    /// 1st percentile of the index.
    pub p1: f64,
    /// 10th percentile.
    pub p10: f64,
    /// Median.
    pub p50: f64,
    /// The highest rate at which the index of 99 % of the requests is 0.9 or more; 0 if no rate
    /// reaches that.
    pub fluid_token_rate: Option<f64>,
}

/// TTFT as a line over the prompt's length, by the median of all slopes between two requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TtftFit {
    /// For a prompt without tokens.
    pub a_ms: f64,
    /// Added for each token.
    pub b_ms_per_token: f64,
    /// Requests that it rests on.
    pub n: u64,
}
