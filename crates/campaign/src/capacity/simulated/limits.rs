//! What the SLO says about simulated requests.

use goodput_model::{MetricName, Slo, SloMetric, SloRelation, SloStatistic, SloTerm};
use goodput_sim::JobOutcome;

/// The share of good requests where limits of single requests have none.
const TARGET: f64 = 0.99;

/// How the SLO is judged here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::capacity) struct StretchLimits {
    /// Share of requests that must keep the limits of single requests.
    pub(in crate::capacity) target: f64,
}

/// What came of a stretch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::capacity) struct JudgedStretch {
    /// How far the worst figure lies from its limit, as a factor: above 1 the SLO is missed.
    pub(in crate::capacity) excess: f64,
    /// Share of requests inside all limits.
    pub(in crate::capacity) good_share: f64,
}

impl StretchLimits {
    /// Says which term the model has nothing to say about.
    pub(in crate::capacity) fn from_slo(
        slo: &Slo,
        attainment: Option<f64>,
    ) -> Result<Self, String> {
        use MetricName::{Itl, MaxGap};
        let silent = slo.terms.iter().find(|term| {
            matches!(term.metric, SloMetric::Request(Itl | MaxGap) | SloMetric::Fluidity)
        });
        if let Some(term) = silent {
            return Err(format!(
                "the simulation does not keep single token intervals, so it cannot judge `{term}`"
            ));
        }
        let speaks = |term: &SloTerm| {
            matches!(term.metric, SloMetric::Request(_)) && term.limit.base.is_finite()
        };
        if !slo.terms.iter().any(speaks) {
            return Err("the SLO has no latency term".to_owned());
        }
        Ok(Self { target: attainment.unwrap_or(TARGET) })
    }

    pub(in crate::capacity) fn judge(self, outcomes: &[JobOutcome], slo: &Slo) -> JudgedStretch {
        let mut excess: f64 = 0.0;
        // Of each request, the worst of its limits: those of statistics count as limits of single
        // requests for the share of good ones only.
        let mut worst_of_each = vec![0.0f64; outcomes.len()];
        let mut worst_of_all = vec![0.0f64; outcomes.len()];
        let mut has_single = false;
        for term in &slo.terms {
            let SloMetric::Request(metric) = term.metric else { continue };
            let ratios: Vec<Option<f64>> =
                outcomes.iter().map(|each| limit_ratio(each, metric, term)).collect();
            let worsen = |worst: &mut [f64]| {
                for (worst, ratio) in worst.iter_mut().zip(&ratios) {
                    *worst = worst.max(ratio.unwrap_or(0.0));
                }
            };
            worsen(&mut worst_of_all);
            match term.statistic {
                SloStatistic::Plain => {
                    has_single = true;
                    worsen(&mut worst_of_each);
                }
                SloStatistic::Mean => excess = excess.max(mean_ratio(outcomes, metric, term)),
                SloStatistic::Percentile(percent) => {
                    // The slow end of a floor is the low one; its ratios are turned round already.
                    let share = if term.relation.is_floor() { 100.0 - percent } else { percent };
                    let known = ratios.into_iter().flatten().collect();
                    excess = excess.max(quantile(known, share / 100.0));
                }
            }
        }
        if has_single {
            excess = excess.max(quantile(worst_of_each.clone(), self.target));
        }
        let judged = if has_single { &worst_of_each } else { &worst_of_all };
        let good = judged.iter().filter(|worst| **worst <= 1.0).count();
        JudgedStretch { excess, good_share: good as f64 / judged.len().max(1) as f64 }
    }
}

/// A value over its limit, or a limit that is a floor over its value; none if the metric says
/// nothing, as TPOT of a single token.
fn limit_ratio(outcome: &JobOutcome, metric: MetricName, term: &SloTerm) -> Option<f64> {
    let Some(value) = outcome_value(outcome, metric) else {
        // An answer that never came is as late as can be.
        return outcome.finished.is_none().then_some(f64::INFINITY);
    };
    Some(ratio_to_limit(value, term.limit.limit_for(outcome.prompt_tokens), term.relation))
}

fn ratio_to_limit(value: f64, limit: f64, relation: SloRelation) -> f64 {
    let ratio = if relation.is_floor() { limit / value } else { value / limit };
    if ratio.is_nan() { f64::INFINITY } else { ratio }
}

/// Of the mean, less what the limit allows for prompts.
fn mean_ratio(outcomes: &[JobOutcome], metric: MetricName, term: &SloTerm) -> f64 {
    let allowed = |prompt: u32| term.limit.per_token * f64::from(prompt);
    let known: Vec<f64> = outcomes
        .iter()
        .filter_map(|each| Some(outcome_value(each, metric)? - allowed(each.prompt_tokens)))
        .collect();
    let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
    ratio_to_limit(mean, term.limit.base, term.relation)
}

/// A metric of a simulated request.
pub(super) fn outcome_value(outcome: &JobOutcome, metric: MetricName) -> Option<f64> {
    let first = (outcome.first_token? - outcome.arrived).as_ms();
    let whole = (outcome.finished? - outcome.arrived).as_ms();
    let tokens = f64::from(outcome.output_tokens);
    match metric {
        MetricName::Ttft | MetricName::Ttfa => Some(first),
        MetricName::E2e => Some(whole),
        MetricName::Tpot => (tokens > 1.0).then(|| (whole - first) / (tokens - 1.0)),
        MetricName::NormalizedLatency => (tokens > 0.0).then(|| whole / tokens),
        MetricName::TokensPerS => (whole > 0.0).then(|| tokens / whole * 1e3),
        MetricName::Itl | MetricName::MaxGap => None,
    }
}

/// The order statistic at a share: the smallest value that this many do not exceed.
pub(super) fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    let rank = (share * values.len() as f64 - 1e-9).ceil().max(1.0) as usize;
    let place = rank.min(values.len()).saturating_sub(1);
    if place >= values.len() {
        return 0.0;
    }
    *values.select_nth_unstable_by(place, f64::total_cmp).1
}
