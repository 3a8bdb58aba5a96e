//! What a point says: the figures of its run that curves and search rest on.

use goodput_model::{Caveat, CaveatCode, EndedBy, Severity, Verdict};
use goodput_stats::steady::SteadyAnswer;
use goodput_stats::{Metric, RunState, SloState, SloSummary, SloTermSummary, Summary};
use serde::{Deserialize, Serialize};

/// A figure and its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bounded {
    /// The figure.
    pub value: f64,
    /// Lower end; none if unknown.
    pub low: Option<f64>,
    /// Upper end; none if unknown, or beyond the time limit.
    pub high: Option<f64>,
}

impl Bounded {
    /// A figure whose interval is unknown.
    pub fn bare(value: f64) -> Self {
        Self { value, low: None, high: None }
    }
}

/// A distribution in three percentiles; those with too few samples are missing.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PointSpread {
    /// Median.
    pub p50: Option<Bounded>,
    /// 90th percentile.
    pub p90: Option<Bounded>,
    /// 99th percentile.
    pub p99: Option<Bounded>,
    /// Mean; none if a sample lies beyond the time limit.
    pub mean: Option<f64>,
}

/// One term of the SLO at this point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TermFigure {
    /// Its text.
    pub term: String,
    /// `request`, `percentile`, `mean` or `run`.
    pub kind: String,
    /// The limit.
    pub limit: f64,
    /// The figure that it limits; none for terms about single requests, and without samples.
    pub value: Option<Bounded>,
    /// Share of requests inside the limit; none for means and figures of the run.
    pub attainment: Option<Bounded>,
    /// The run's result for it, with its interval; none in files of older versions.
    #[serde(default)]
    pub state: Option<SloState>,
    /// Whether the measured figure keeps it; none without samples, for terms about single requests,
    /// and in files of older versions.
    #[serde(default)]
    pub kept: Option<bool>,
    /// Of a term about single requests: its share against the required share, as if it were the only
    /// term; none for others, without a requirement, and in files of older versions.
    #[serde(default)]
    pub target_state: Option<SloState>,
    /// Whether that share as measured reaches it.
    #[serde(default)]
    pub target_kept: Option<bool>,
}

impl TermFigure {
    /// Whether the run speaks against it: beyond doubt, or by the figure as measured.
    pub fn is_missed(&self) -> bool {
        self.state == Some(SloState::Missed) || self.kept == Some(false)
    }
}

/// The figures of a point.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Figures {
    /// The verdict of the run.
    pub verdict: Verdict,
    /// Codes of the caveats that cast doubt on it.
    pub doubts: Vec<String>,
    /// Share of the processors that the client may use which other programs used; none if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_cpu: Option<f64>,
    /// Whether it ran to its end.
    pub is_complete: bool,
    /// What ended the sending.
    pub ended_by: Option<EndedBy>,
    /// Length of the window in seconds.
    pub window_s: f64,
    /// Measured requests that were scheduled.
    pub requests: u64,
    /// Completed requests.
    pub ok: u64,
    /// Those that failed.
    pub failed: u64,
    /// Failures by class, most frequent first.
    pub errors: Vec<(String, u64)>,
    /// Planned rate; none in a closed loop.
    pub offered_rps: Option<f64>,
    /// Rate of the scheduled instants, with the randomness of this schedule.
    pub scheduled_rps: Option<f64>,
    /// Rate of completed requests.
    pub requests_per_s: Option<f64>,
    /// Output tokens per second.
    pub output_tps: Option<f64>,
    /// Prompt and output tokens per second.
    pub total_tps: Option<f64>,
    /// Requests in flight on average.
    pub in_flight: Option<f64>,
    /// Mean number of requests in the server's batch, if it reports that.
    pub batch: Option<f64>,
    /// TTFT in milliseconds.
    pub ttft_ms: PointSpread,
    /// TPOT in milliseconds.
    pub tpot_ms: PointSpread,
    /// ITL in milliseconds; nothing in files of older versions.
    #[serde(default)]
    pub itl_ms: PointSpread,
    /// E2E in milliseconds.
    pub e2e_ms: PointSpread,
    /// Output tokens per second of one user.
    pub user_tps: PointSpread,
    /// Mean tokens per prompt of completed requests.
    pub input_tokens: Option<f64>,
    /// Mean tokens per completed answer.
    pub output_tokens: Option<f64>,
    /// The server does not keep up; none if unknown.
    pub over_saturated: Option<bool>,
    /// Its queue is full, or it rejects requests.
    pub queue_limited: Option<bool>,
    /// Completions per arrival; none if arrivals depend on answers.
    pub balance: Option<f64>,
    /// Whether the window was one state; none if unknown.
    pub is_steady: Option<bool>,
    /// What changed over the window, in words; empty if nothing did.
    pub drift: Vec<String>,
    /// Share of good requests.
    pub attainment: Option<Bounded>,
    /// The number of independent requests that would be worth as much.
    pub n_eff: Option<f64>,
    /// Good requests per second.
    pub goodput_rps: Option<Bounded>,
    /// Output tokens of good requests, per second.
    pub goodput_output_tps: Option<f64>,
    /// Mean power of the GPUs in watts, where known.
    pub gpu_power_w: Option<f64>,
    /// Energy of the GPUs for each output token, in joules.
    pub joules_per_output_token: Option<f64>,
    /// The SLO, term by term; empty without one.
    pub terms: Vec<TermFigure>,
    /// The run's result for the whole SLO, with intervals; none without one, and in files of older
    /// versions.
    #[serde(default)]
    pub slo_state: Option<SloState>,
    /// Whether the measured share of good requests reaches the required share; none without a
    /// requirement.
    #[serde(default)]
    pub is_target_kept: Option<bool>,
}

impl Figures {
    /// The figures of a run.
    pub fn from_summary(summary: &Summary) -> Self {
        let (load, requests, tokens) = (&summary.load, &summary.requests, &summary.tokens);
        let slo = summary.slo.as_ref();
        let energy = summary.gpu.as_ref().and_then(|gpu| gpu.energy.as_ref());
        let each = |sum: u64| (requests.ok > 0).then(|| sum as f64 / requests.ok as f64);
        let doubts = summary.caveats.iter();
        let doubts = doubts
            .filter(|caveat| caveat.severity > Severity::Info && !caveat.code.is_about_length());
        let mut errors: Vec<_> = requests.errors.clone().into_iter().collect();
        errors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let bounded =
            |value: Option<f64>, low, high| value.map(|value| Bounded { value, low, high });
        Self {
            verdict: Verdict::from_caveats_of_part(&summary.caveats),
            doubts: doubts.map(|caveat| caveat.code.to_string()).collect(),
            others_cpu: other_programs_cpu(summary),
            is_complete: summary.run.state == RunState::Complete,
            ended_by: summary.run.ended_by,
            window_s: summary.window.end_s - summary.window.start_s,
            requests: requests.scheduled,
            ok: requests.ok,
            failed: requests.failed,
            errors,
            offered_rps: load.offered_rps,
            scheduled_rps: load.scheduled_rps,
            requests_per_s: summary.throughput.requests_per_s,
            output_tps: summary.throughput.output_tokens_per_s,
            total_tps: summary.throughput.total_tokens_per_s,
            in_flight: load.in_flight_mean,
            batch: mean_batch(summary),
            ttft_ms: latency_spread(summary, "ttft"),
            tpot_ms: latency_spread(summary, "tpot"),
            itl_ms: latency_spread(summary, "itl"),
            e2e_ms: latency_spread(summary, "e2e"),
            user_tps: latency_spread(summary, "request_tokens_per_s"),
            input_tokens: each(tokens.input),
            output_tokens: each(tokens.output),
            over_saturated: summary.saturation.map(|found| found.over_saturated),
            queue_limited: summary.saturation.map(|found| found.queue_limited),
            balance: summary.saturation.and_then(|found| found.balance_all),
            drift: drift_caveats(&summary.caveats),
            is_steady: summary.steadiness.as_ref().and_then(|found| is_steady(found.state)),
            attainment: slo
                .and_then(|slo| bounded(slo.attainment, slo.attainment_low, slo.attainment_high)),
            n_eff: slo.and_then(|slo| slo.n_eff),
            goodput_rps: slo.and_then(|slo| {
                bounded(slo.goodput_rps, slo.goodput_rps_low, slo.goodput_rps_high)
            }),
            goodput_output_tps: slo.and_then(|slo| slo.goodput_output_tps),
            gpu_power_w: energy.map(|energy| energy.mean_w),
            joules_per_output_token: energy.and_then(|energy| energy.joules_per.output_token),
            terms: slo.map(|slo| slo.terms.iter().map(term_figure).collect()).unwrap_or_default(),
            slo_state: slo.map(|slo| slo.state),
            is_target_kept: slo.and_then(is_target_kept),
        }
    }

    /// The same point, judged by one of its terms alone.
    #[must_use]
    pub(crate) fn judged_by_term(&self, term: &TermFigure) -> Self {
        Self {
            attainment: term.attainment,
            slo_state: term.target_state.or(term.state),
            is_target_kept: term
                .target_kept
                .map(|kept| kept && term.target_state != Some(SloState::Missed)),
            terms: vec![term.clone()],
            ..self.clone()
        }
    }
}

fn is_target_kept(slo: &SloSummary) -> Option<bool> {
    // What rounding leaves just below is not below.
    let reached = slo.target.zip(slo.attainment).map(|(target, share)| share >= target - 1e-9)?;
    Some(reached && slo.attainment_state != SloState::Missed)
}

fn other_programs_cpu(summary: &Summary) -> Option<f64> {
    let (idle, used) = (summary.client.idle_share?, summary.client.used_share?);
    Some((1.0 - idle - used).clamp(0.0, 1.0))
}

/// The batch over the window, as the server tells it.
fn mean_batch(summary: &Summary) -> Option<f64> {
    Some(summary.server.as_ref()?.levels.get("running")?.mean)
}

fn is_steady(state: SteadyAnswer) -> Option<bool> {
    match state {
        SteadyAnswer::Steady => Some(true),
        SteadyAnswer::Drifting | SteadyAnswer::Shifted | SteadyAnswer::NeverSteady => Some(false),
        SteadyAnswer::TooShort | SteadyAnswer::NotApplicable => None,
    }
}

/// What says that the server changed in mid-run.
fn drift_caveats(caveats: &[Caveat]) -> Vec<String> {
    use CaveatCode::{Drifting, LevelShift, MinutesDiffer, NeverSteady};
    let is_drift = |caveat: &&Caveat| {
        matches!(caveat.code, Drifting | LevelShift | MinutesDiffer | NeverSteady)
    };
    caveats.iter().filter(is_drift).map(|caveat| caveat.message.clone()).collect()
}

fn term_figure(term: &SloTermSummary) -> TermFigure {
    let bounded = |value: Option<f64>, low, high| value.map(|value| Bounded { value, low, high });
    TermFigure {
        term: term.term.clone(),
        kind: term.kind.clone(),
        limit: term.limit,
        value: bounded(term.value, term.low, term.high),
        attainment: bounded(term.attainment, term.attainment_low, term.attainment_high),
        state: Some(term.state),
        kept: term.kept,
        target_state: term.target_state,
        target_kept: term.target_kept,
    }
}

fn latency_spread(summary: &Summary, name: &str) -> PointSpread {
    let Some(metric) = summary.metrics.get(name) else { return PointSpread::default() };
    PointSpread {
        p50: percentile_value(metric, "50"),
        p90: percentile_value(metric, "90"),
        p99: percentile_value(metric, "99"),
        mean: metric.mean,
    }
}

fn percentile_value(metric: &Metric, percent: &str) -> Option<Bounded> {
    let found = metric.percentiles.get(percent)?;
    let value = found.value.filter(|_| found.quality.has_interval())?;
    Some(Bounded { value, low: found.low, high: found.high })
}
