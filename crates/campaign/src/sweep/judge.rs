//! Whether a point keeps the SLO.
//!
//! The run itself has judged it: every term, and the share of good requests. A sweep adds only what a
//! run alone does not ask: whether the server turned requests away, whether a queue grew, and whether
//! the point says anything about the server at all.

use goodput_model::{CaveatCode, EndedBy, SloMetric, SloStatistic, SloTerm, Verdict};
use serde::{Deserialize, Serialize};

use super::{Figures, SweepPlan};

/// Share of refusals from which a server's limit is its capacity.
const REFUSED: f64 = 0.01;
/// Share of failures that is too much where nothing that was promised counts them.
const FAILED: f64 = 0.01;
/// Share of good requests that is asked for where the plan says nothing.
pub(crate) const ATTAINMENT: f64 = 0.99;

/// Doubts about a client that was late, which can only make latencies longer.
const LATE_CLIENT: [CaveatCode; 7] = [
    CaveatCode::ScheduleSlip,
    CaveatCode::ClientStarved,
    CaveatCode::ClientStalled,
    CaveatCode::ClientLag,
    CaveatCode::TokensMerged,
    CaveatCode::CpuThrottled,
    CaveatCode::Canary,
];

/// The other doubts about this client and its record: they can hide anything.
const UNUSABLE_CLIENT: [CaveatCode; 8] = [
    CaveatCode::ClientLimited,
    CaveatCode::ClockSuspicious,
    CaveatCode::NotDelivered,
    CaveatCode::RecordsLost,
    CaveatCode::ShardMissing,
    CaveatCode::ShardCut,
    CaveatCode::ShardSick,
    CaveatCode::ShardsApart,
];

/// The outcome of a point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "because")]
pub enum PointStanding {
    /// It keeps the SLO.
    Met,
    /// It does not.
    Missed(Miss),
    /// The point has no usable figures.
    Unclear(Unclear),
}

/// Why a point does not keep the SLO.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Miss {
    /// This term of the SLO.
    Term(String),
    /// Too few requests were good.
    Attainment,
    /// More requests arrive than complete.
    OverSaturated,
    /// The server rejects requests (429, 503): its configured limit is its capacity.
    RateLimited,
    /// Too many requests failed.
    Errors,
}

/// Why a point has no usable figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unclear {
    /// This client was the bottleneck.
    Client,
    /// The server was unreachable for part of it.
    ServerGone,
    /// It was stopped.
    Interrupted,
    /// It ended early, but the measured part keeps the SLO.
    GivenUpTooEarly,
    /// Nothing was measured, or no SLO was given.
    Nothing,
}

/// Whether these figures keep the SLO of the plan, as the run says: beyond doubt, or else by what was
/// measured.
pub fn judge(figures: &Figures, plan: &SweepPlan) -> PointStanding {
    judge_by(figures, plan, |_| true)
}

/// As [`judge`], without the floors under the throughput of a run: those are missed by too little
/// load, and would turn a search for the highest one round.
pub(crate) fn judge_load(figures: &Figures, plan: &SweepPlan) -> PointStanding {
    judge_by(figures, plan, |term| !is_throughput(term))
}

/// As [`judge_load`], whatever the client was doing.
pub(crate) fn judge_despite_client(figures: &Figures, plan: &SweepPlan) -> PointStanding {
    judge_server(figures, plan, |term| !is_throughput(term))
}

/// Whether a term asks for throughput of the whole run.
pub(crate) fn is_throughput(term: &SloTerm) -> bool {
    matches!(term.metric, SloMetric::Rps | SloMetric::OutputTps)
}

fn judge_by(figures: &Figures, plan: &SweepPlan, counts: fn(&SloTerm) -> bool) -> PointStanding {
    // A server's refusal is its own word, whatever the client was doing.
    if is_refusing(figures) {
        return PointStanding::Missed(Miss::RateLimited);
    }
    if is_client(figures) {
        return PointStanding::Unclear(Unclear::Client);
    }
    judge_server(figures, plan, counts)
}

fn judge_server(
    figures: &Figures,
    plan: &SweepPlan,
    counts: fn(&SloTerm) -> bool,
) -> PointStanding {
    if is_gone(figures) {
        return PointStanding::Unclear(Unclear::ServerGone);
    }
    if figures.ended_by == Some(EndedBy::User) || !figures.is_complete {
        return PointStanding::Unclear(Unclear::Interrupted);
    }
    if figures.requests == 0 {
        return PointStanding::Unclear(Unclear::Nothing);
    }
    match (miss(figures, plan, counts), &plan.slo) {
        (Some(miss), _) => PointStanding::Missed(miss),
        // The stop was a prediction; what was measured does not bear it out.
        (None, _) if is_hopeless(figures) => PointStanding::Unclear(Unclear::GivenUpTooEarly),
        (None, Some(_)) => PointStanding::Met,
        (None, None) => PointStanding::Unclear(Unclear::Nothing),
    }
}

fn is_hopeless(figures: &Figures) -> bool {
    figures.ended_by == Some(EndedBy::Hopeless)
}

fn count(figures: &Figures, classes: &[&str]) -> f64 {
    let of = |(class, count): &(String, u64)| {
        if classes.contains(&class.as_str()) { *count as f64 } else { 0.0 }
    };
    figures.errors.iter().map(of).sum()
}

fn is_refusing(figures: &Figures) -> bool {
    // Nothing but 503 is what a proxy says whose server is gone.
    let busy = if figures.ok > 0 { count(figures, &["http_503"]) } else { 0.0 };
    let refused = count(figures, &["http_429"]) + busy;
    refused > 0.0 && refused >= REFUSED * figures.requests as f64
}

/// Whether a doubt of this name is about a client that was late.
pub(super) fn is_late_client(doubt: &str) -> bool {
    LATE_CLIENT.iter().any(|code| code.name() == doubt)
}

/// The first doubt of a void run made it void.
fn is_client(figures: &Figures) -> bool {
    let first = figures.doubts.first();
    let is_ours = |doubt: &String| {
        is_late_client(doubt) || UNUSABLE_CLIENT.iter().any(|code| code.name() == doubt)
    };
    let limited = count(figures, &["local_limit"]);
    (figures.verdict == Verdict::Void && first.is_some_and(is_ours))
        || (limited > 0.0 && limited >= 0.5 * figures.failed as f64)
}

/// The server did not answer at all, or from some instant on, or most connections came to nothing.
fn is_gone(figures: &Figures) -> bool {
    let (requests, failed) = (figures.requests as f64, figures.failed as f64);
    let lost = count(figures, &["dns", "connect", "tls", "closed", "cut"]);
    let late = count(figures, &["timeout", "cut_off"]);
    let is_lost = requests > 0.0 && lost > 0.0 && (lost >= 0.5 * requests || figures.ok == 0);
    // What a load that is too much looks like: then it is a miss.
    let is_swamped = figures.over_saturated == Some(true) || is_hopeless(figures);
    let hangs = requests > 0.0 && late >= 0.5 * requests && !is_swamped;
    let by_errors = figures.doubts.first().is_some_and(|doubt| doubt == "errors");
    // Fewer than half failed and yet it is void: all of the last ones did.
    let died = figures.verdict == Verdict::Void && by_errors && failed <= 0.5 * requests;
    let was_dropped = is_hopeless(figures) && lost > 0.5 * failed && lost >= FAILED * requests;
    is_lost || hangs || (died && lost + late > 0.5 * failed) || was_dropped
}

/// What speaks against it, the gravest first.
fn miss(figures: &Figures, plan: &SweepPlan, counts: fn(&SloTerm) -> bool) -> Option<Miss> {
    let terms = || plan.slo.iter().flat_map(|slo| &slo.terms).filter(|term| counts(term));
    let is_missed = |term: &&SloTerm| {
        let text = term.to_string();
        figures.terms.iter().any(|found| found.term == text && found.is_missed())
    };
    let is_of_errors = |term: &&SloTerm| term.metric == SloMetric::Errors;
    if terms().filter(is_of_errors).any(|term| is_missed(&term)) || fails_unasked(figures, plan) {
        return Some(Miss::Errors);
    }
    if figures.over_saturated == Some(true) {
        return Some(Miss::OverSaturated);
    }
    if let Some(term) = terms().find(is_missed) {
        return Some(Miss::Term(term.to_string()));
    }
    (figures.is_target_kept == Some(false)).then_some(Miss::Attainment)
}

/// Too many requests failed, and nothing that was promised counts failures: means and rates are of
/// completed requests.
fn fails_unasked(figures: &Figures, plan: &SweepPlan) -> bool {
    let counts = |term: &SloTerm| {
        term.metric == SloMetric::Errors
            || term.is_per_request()
            || matches!(term.statistic, SloStatistic::Percentile(_))
    };
    let is_asked =
        plan.attainment.is_some() || plan.slo.iter().flat_map(|slo| &slo.terms).any(counts);
    // Requests in flight when a point was given up did not fail by themselves.
    let given_up = if is_hopeless(figures) { count(figures, &["cut_off"]) } else { 0.0 };
    !is_asked && figures.failed as f64 - given_up > FAILED * figures.requests as f64
}

/// The share of requests that may fail before that proves something.
pub(crate) fn allowed_failures(plan: &SweepPlan) -> f64 {
    let terms = plan.slo.iter().flat_map(|slo| &slo.terms);
    let errors = terms.filter(|term| term.metric == SloMetric::Errors);
    errors.map(|term| term.limit.base / 100.0).next().unwrap_or(FAILED)
}

/// The share of requests that must keep the promises about single requests.
pub(crate) fn target(plan: &SweepPlan) -> f64 {
    let asked = plan.attainment.filter(|share| share.is_finite());
    asked.unwrap_or(ATTAINMENT).clamp(0.0, 1.0)
}

/// The share of requests that may lie beyond the limit of a percentile.
pub(crate) fn allowed(term: &SloTerm) -> Option<f64> {
    let SloStatistic::Percentile(percent) = term.statistic else { return None };
    let below = (percent / 100.0).clamp(0.0, 1.0);
    Some(if term.relation.is_floor() { below } else { 1.0 - below })
}

#[cfg(test)]
mod tests;
