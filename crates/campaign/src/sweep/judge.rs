//! Whether a point keeps the SLO.

use goodput_model::{CaveatCode, EndedBy, SloMetric, SloRelation, SloStatistic, SloTerm, Verdict};
use serde::{Deserialize, Serialize};

use super::{Figures, SweepPlan, TermFigure};

/// Share of refusals from which a server's limit is its capacity.
const REFUSED: f64 = 0.01;
/// Share of failures that is too much where the SLO says nothing about them.
const FAILED: f64 = 0.01;
/// Share of good requests that is asked for where the plan says nothing.
pub(crate) const ATTAINMENT: f64 = 0.99;

/// Doubts that are about this client and its record. The first doubt of a void run made it void.
const CLIENT: [CaveatCode; 15] = [
    CaveatCode::ScheduleSlip,
    CaveatCode::ClientStarved,
    CaveatCode::ClientStalled,
    CaveatCode::ClientLag,
    CaveatCode::TokensMerged,
    CaveatCode::CpuThrottled,
    CaveatCode::Canary,
    CaveatCode::ClientLimited,
    CaveatCode::ClockSuspicious,
    CaveatCode::NotDelivered,
    CaveatCode::RecordsLost,
    CaveatCode::ShardMissing,
    CaveatCode::ShardCut,
    CaveatCode::ShardSick,
    CaveatCode::ShardsApart,
];

/// What came of a point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "because")]
pub enum Standing {
    /// It keeps the SLO, by what was seen.
    Met,
    /// It does not.
    Missed(Miss),
    /// The point says nothing.
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
    /// More is asked than answered.
    OverSaturated,
    /// The server turns requests away (429, 503): its limit is its capacity.
    RateLimited,
    /// Too many requests failed.
    Errors,
}

/// Why a point says nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unclear {
    /// This client was the bottleneck.
    Client,
    /// The server was gone for part of it.
    ServerGone,
    /// It was stopped.
    Interrupted,
    /// Nothing was measured, or nothing was promised.
    Nothing,
}

/// Whether these figures keep the SLO of the plan, by what was seen: intervals are for the search.
pub fn judge(figures: &Figures, plan: &SweepPlan) -> Standing {
    judge_by(figures, plan, |_| true)
}

/// As [`judge`], without the floors under the throughput of a run: those are missed by too little
/// load, and would turn a search for the highest one round.
pub(crate) fn judge_load(figures: &Figures, plan: &SweepPlan) -> Standing {
    judge_by(figures, plan, |term| !is_throughput(term))
}

/// Whether a term asks for throughput of the whole run.
pub(crate) fn is_throughput(term: &SloTerm) -> bool {
    matches!(term.metric, SloMetric::Rps | SloMetric::OutputTps)
}

fn judge_by(figures: &Figures, plan: &SweepPlan, counts: fn(&SloTerm) -> bool) -> Standing {
    // A server's refusal is its own word, whatever the client was doing.
    if is_refusing(figures) {
        return Standing::Missed(Miss::RateLimited);
    }
    if is_client(figures) {
        return Standing::Unclear(Unclear::Client);
    }
    if is_gone(figures) {
        return Standing::Unclear(Unclear::ServerGone);
    }
    if figures.ended_by == Some(EndedBy::User) || !figures.is_complete {
        return Standing::Unclear(Unclear::Interrupted);
    }
    if figures.requests == 0 {
        return Standing::Unclear(Unclear::Nothing);
    }
    if let Some(miss) = failures(figures, plan) {
        return Standing::Missed(miss);
    }
    if figures.over_saturated == Some(true) {
        return Standing::Missed(Miss::OverSaturated);
    }
    let miss = missed_term(figures, plan, counts);
    match (miss, &plan.slo) {
        (Some(miss), _) => Standing::Missed(miss),
        // It was given up for a reason, though the part that was seen keeps the terms.
        (None, _) if is_hopeless(figures) => Standing::Missed(Miss::OverSaturated),
        (None, Some(_)) => Standing::Met,
        (None, None) => Standing::Unclear(Unclear::Nothing),
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

fn is_client(figures: &Figures) -> bool {
    let first = figures.doubts.first();
    let is_ours = |doubt: &String| CLIENT.iter().any(|code| code.name() == doubt);
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

fn failures(figures: &Figures, plan: &SweepPlan) -> Option<Miss> {
    // What was under way when a point was given up did not fail by itself.
    let given_up = if is_hopeless(figures) { count(figures, &["cut_off"]) } else { 0.0 };
    let failed = figures.failed as f64 - given_up;
    if !exceeds(failed / figures.requests as f64, allowed_failures(plan)) {
        return None;
    }
    let late = count(figures, &["timeout", "cut_off"]) - given_up;
    let is_swamped = figures.over_saturated == Some(true) || is_hopeless(figures);
    let is_late = is_swamped && late > 0.5 * failed;
    Some(if is_late { Miss::OverSaturated } else { Miss::Errors })
}

fn exceeds(share: f64, (relation, limit): (SloRelation, f64)) -> bool {
    !relation.holds(share, limit)
}

/// The share of requests that may fail.
pub(crate) fn allowed_failures(plan: &SweepPlan) -> (SloRelation, f64) {
    let terms = plan.slo.iter().flat_map(|slo| &slo.terms);
    terms
        .filter(|term| term.metric == SloMetric::Errors)
        .map(|term| (term.relation, term.limit.base / 100.0))
        .next()
        .unwrap_or((SloRelation::AtMost, FAILED))
}

/// The first term that is not kept.
fn missed_term(figures: &Figures, plan: &SweepPlan, counts: fn(&SloTerm) -> bool) -> Option<Miss> {
    let slo = plan.slo.as_ref()?;
    let terms = slo.terms.iter().filter(|term| counts(term));
    let all_ended = count(figures, &["timeout", "cut_off"]) == 0.0;
    for term in terms.filter(|term| term.metric != SloMetric::Errors) {
        let found = figures.terms.iter().find(|found| found.term == term.to_string());
        if found.is_some_and(|found| !is_kept(term, found, all_ended)) {
            return Some(Miss::Term(term.to_string()));
        }
    }
    let (target, each) = (target(plan), slo.terms.iter().any(SloTerm::is_of_each_request));
    let share = figures.attainment.filter(|_| each || plan.attainment.is_some());
    share.filter(|share| share.value < target).map(|_| Miss::Attainment)
}

/// The share of requests that must keep the promises about single requests.
pub(crate) fn target(plan: &SweepPlan) -> f64 {
    let asked = plan.attainment.filter(|share| share.is_finite());
    asked.unwrap_or(ATTAINMENT).clamp(0.0, 1.0)
}

fn is_kept(term: &SloTerm, found: &TermFigure, all_ended: bool) -> bool {
    let holds = |value: f64| term.relation.holds(value, term.limit.base);
    match term.statistic {
        // All of them together are judged by the attainment.
        SloStatistic::Plain if term.is_of_each_request() => true,
        SloStatistic::Plain => found.value.is_none_or(|found| holds(found.value)),
        // Where some ran into the time limit there is no mean, and it would be large.
        SloStatistic::Mean => found.value.map_or(all_ended, |found| holds(found.value)),
        SloStatistic::Percentile(_) => match (found.value, found.attainment, allowed(term)) {
            (Some(found), _, _) if found.value.is_finite() => holds(found.value),
            (_, Some(share), Some(allowed)) => 1.0 - share.value <= allowed,
            _ => true,
        },
    }
}

/// The share of requests that may lie beyond the limit of a percentile.
pub(crate) fn allowed(term: &SloTerm) -> Option<f64> {
    let SloStatistic::Percentile(percent) = term.statistic else { return None };
    let below = (percent / 100.0).clamp(0.0, 1.0);
    Some(if term.relation.is_floor() { below } else { 1.0 - below })
}

#[cfg(test)]
mod tests;
