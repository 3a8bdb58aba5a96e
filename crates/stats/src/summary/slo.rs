//! The shape of `summary.slo`.

use serde::{Deserialize, Serialize};

/// How a run did against its SLO.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SloSummary {
    /// The SLO, presets written out.
    pub slo: String,
    /// The worst of its terms and of the attainment.
    pub state: SloState,
    /// Whether the figures as measured keep all of it, failures among them, whatever their intervals;
    /// none where nothing was asked or seen.
    #[serde(default)]
    pub kept: Option<bool>,
    /// Term by term.
    pub terms: Vec<SloTermSummary>,
    /// The share of good requests that was asked for.
    pub target: Option<f64>,
    /// The attainment against it.
    pub attainment_state: SloState,
    /// What a good request keeps: `request_terms`; `percentile_limits`, where the SLO has none of
    /// these; `success`, where it has neither.
    pub judged_by: String,
    /// Measured requests.
    pub scheduled: u64,
    /// Completed requests that came whole and met every limit.
    pub good: u64,
    /// Why the others are not good.
    pub misses: SloMisses,
    /// Requests that a stall of the client spoilt: they count neither way.
    pub undetermined: u64,
    /// Good requests per request that counts.
    pub attainment: Option<f64>,
    /// Lower end of its interval.
    pub attainment_low: Option<f64>,
    /// Upper end of its interval.
    pub attainment_high: Option<f64>,
    /// This many independent requests would say as much about it, by how its misses came together. What
    /// requests remember of each other besides is in the ends of its interval.
    pub n_eff: Option<f64>,
    /// Good requests per second: attainment times the rate at which requests were due.
    pub goodput_rps: Option<f64>,
    /// By the lower end of the attainment.
    pub goodput_rps_low: Option<f64>,
    /// By the upper end of the attainment.
    pub goodput_rps_high: Option<f64>,
    /// Output tokens of good requests, per second.
    pub goodput_output_tps: Option<f64>,
    /// Share of requests that failed: late requests that are dropped can flatter the rest. What a
    /// point of a sweep gave up when it ended early did not fail.
    pub failed_share: Option<f64>,
    /// 99th percentile of the largest gap of a request: delayed tokens can flatter the tail of ITL.
    pub max_gap_p99_ms: Option<f64>,
    /// How fluent answers were; none without a limit on TPOT or ITL, or without streams.
    pub fluidity: Option<FluiditySummary>,
    /// TTFT by prompt length, where lengths differ by a factor of two or more.
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
    /// The limit, of a prompt without tokens.
    pub limit: f64,
    /// Share of requests inside the limit; none for means and figures of the run.
    pub attainment: Option<f64>,
    /// Lower end of its interval.
    pub attainment_low: Option<f64>,
    /// Upper end of its interval.
    pub attainment_high: Option<f64>,
    /// The figure, less what the limit allows for the prompt's length; none for single requests.
    pub value: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// What came of it.
    pub state: SloState,
    /// Whether the figure as measured keeps the limit, whatever its interval; none where nothing was
    /// seen, and for single requests.
    #[serde(default)]
    pub kept: Option<bool>,
    /// Good answers for which it says nothing: TPOT of a single token, say.
    pub vacuous: u64,
}

/// What came of a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SloState {
    /// Kept.
    Met,
    /// Broken.
    Missed,
    /// There is too little to tell.
    Undecided,
    /// Nothing was asked of it.
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
    /// Ran into a time limit.
    pub timed_out: u64,
    /// Without a single token.
    pub empty: u64,
    /// Cut off before the length that was asked for.
    pub truncated: u64,
    /// Whole, and outside a limit.
    pub limits: u64,
}

/// How fluent answers were: METHOD 3.3.
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
    /// The highest rate at which the index of 99 % of the requests is 0.9 or more; 0 where there is
    /// none.
    pub fluid_token_rate: Option<f64>,
}

/// TTFT as a line over the prompt's length: half of all slopes between two requests are steeper.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TtftFit {
    /// Of a prompt without tokens.
    pub a_ms: f64,
    /// More for each token.
    pub b_ms_per_token: f64,
    /// Requests that it rests on.
    pub n: u64,
}
