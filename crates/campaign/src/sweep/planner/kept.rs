//! The highest load that keeps an SLO, from whatever was measured. Nothing has to have been searched
//! for: a list of rates has an answer too, and a saved sweep has one for any SLO.
//!
//! A level keeps the SLO where every run there does. The answer is the highest such level below the
//! lowest that misses it. It is confirmed by as many independent runs to their end as a search asks
//! for; with fewer it is as measured.

use goodput_model::{Slo, SloTerm};
use serde::{Deserialize, Serialize};

use super::super::judge::judge;
use super::super::{Bounded, Goodput, GoodputState, Point, PointStanding, SweepPlan};
use super::answer::{limits, mean, missed, pooled, rejected, rps, short, unit};
use super::view::{CurveView, SeenPoint, is_same_level};

/// The highest measured load that keeps the SLO, or one of its terms by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptLoad {
    /// The term; none for the whole SLO.
    pub term: Option<String>,
    /// How well it is supported.
    pub support: KeptSupport,
    /// The level on the axis; none if no measured level keeps it.
    pub level: Option<f64>,
    /// Requests per second there: offered in an open loop, completed in a closed one.
    pub rps: Option<f64>,
    /// Runs there, all of which keep it.
    pub runs: u32,
    /// Their measured requests.
    pub requests: u64,
    /// What the term limits, as measured there; none for terms about single requests.
    pub value: Option<Bounded>,
    /// Share of requests inside the limit, or of good ones for the whole SLO; none for means and
    /// figures of the run.
    pub attainment: Option<Bounded>,
    /// Output tokens per second there.
    pub output_tps: Option<f64>,
    /// The lowest measured level above it that misses.
    pub missed: Option<f64>,
    /// The highest level above that one at which every run keeps it all the same; none as a rule.
    pub kept_above: Option<f64>,
}

/// How well a load is known to keep an SLO.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptSupport {
    /// Independent runs to their end keep it, as many as a search asks for.
    Confirmed,
    /// As measured: fewer runs.
    Measured,
    /// No measured level keeps it.
    Missed,
    /// No point has usable figures about it.
    Unknown,
}

/// The runs at one level.
struct LevelRuns<'b, 'a> {
    level: f64,
    runs: Vec<&'b SeenPoint<'a>>,
}

/// The highest load that keeps the SLO as a whole, then each of its terms by itself; nothing without
/// an SLO.
pub fn kept_loads(plan: &SweepPlan, points: &[Point]) -> Vec<KeptLoad> {
    let Some(slo) = &plan.slo else { return Vec::new() };
    let whole = of_view(&CurveView::new(plan, points));
    let alone = slo.terms.iter().map(|term| of_term(plan, points, term));
    std::iter::once(whole).chain(alone).collect()
}

/// The answer to an SLO that was not searched for.
pub(super) fn answer(view: &CurveView<'_>, slo: &Slo) -> Goodput {
    let load = of_view(view);
    let level = load.level;
    let over = rejected(view, level);
    let is_confirmed = load.support == KeptSupport::Confirmed;
    let state = match load.support {
        KeptSupport::Confirmed if load.missed.is_some() => GoodputState::Found,
        KeptSupport::Confirmed => GoodputState::AtLeast,
        KeptSupport::Measured => GoodputState::Measured,
        KeptSupport::Missed => GoodputState::Unreachable,
        KeptSupport::Unknown => GoodputState::Unclear,
    };
    let share = load.attainment;
    Goodput {
        state,
        because: because(view, &load),
        slo: slo.to_string(),
        axis: view.plan.axis,
        confirmed: level.filter(|_| is_confirmed),
        rejected: over.map(|seen| seen.level),
        confirmed_rps: load.rps.filter(|_| is_confirmed),
        rejected_rps: over.and_then(|seen| rps(view.plan, seen)),
        measured: level,
        measured_rps: load.rps,
        attainment: share.map(|share| share.value),
        attainment_low: share.and_then(|share| share.low),
        attainment_high: share.and_then(|share| share.high),
        seen_attainment: share.map(|share| share.value),
        crossing: None,
        runs: load.runs,
        requests: load.requests,
        over_claim_risk: None,
    }
}

fn because(view: &CurveView<'_>, load: &KeptLoad) -> String {
    let unit = unit(view.plan);
    let over = missed(view, load.level, |_| true).map(limits).filter(|text| !text.is_empty());
    let above = load.kept_above.map_or(String::new(), |level| {
        format!(
            "; {} {unit} met it all the same, so no single level separates met from missed",
            short(level)
        )
    });
    match (load.support, over) {
        (KeptSupport::Unknown, _) => "no measured load has usable figures".to_owned(),
        (KeptSupport::Missed, Some(over)) => format!("missed even at the lowest: {over}{above}"),
        (KeptSupport::Missed, None) => {
            "every measured load misses a floor under its throughput".to_owned()
        }
        (_, Some(over)) => over + &above,
        (_, None) => "no measured load was over the limit".to_owned(),
    }
}

/// One term, as if it were the whole SLO.
fn of_term(plan: &SweepPlan, points: &[Point], term: &SloTerm) -> KeptLoad {
    let text = term.to_string();
    let own = SweepPlan {
        slo: Some(Slo { terms: vec![*term] }),
        attainment: plan.attainment.filter(|_| term.is_per_request()),
        ..plan.clone()
    };
    let alone = |point: &Point| {
        let found = point.figures.terms.iter().find(|found| found.term == text)?;
        let is_judged = found.kept.is_some() || found.target_kept.is_some();
        is_judged.then(|| Point { ask: point.ask, figures: point.figures.judged_by_term(found) })
    };
    let points: Vec<Point> = points.iter().filter_map(alone).collect();
    let load = of_view(&CurveView::new(&own, &points));
    let value = load.level.and_then(|level| {
        let at = points.iter().filter(|point| is_same_level(point.ask.level.value(), level));
        let of =
            |point: &Point| Some((point.figures.terms.first()?.value?, point.figures.requests));
        weighted_mean(at.filter(|point| point.ask.level.axis() == plan.axis).filter_map(of))
    });
    KeptLoad { term: Some(text), value, ..load }
}

/// The highest load that keeps the SLO of this plan.
fn of_view(view: &CurveView<'_>) -> KeptLoad {
    let levels = levels(view);
    // A floor under the throughput is missed by too little load: that bounds nothing. What the client
    // spoiled, and kept the SLO all the same, is not missed.
    let keeps = |seen: &&SeenPoint<'_>| {
        let is_missed = matches!(judge(seen.figures, view.plan), PointStanding::Missed(_));
        !seen.is_over() && !is_missed
    };
    let is_kept = |at: &&LevelRuns<'_, '_>| at.runs.iter().all(&keeps);
    let is_over = |at: &&LevelRuns<'_, '_>| at.runs.iter().any(|seen| seen.is_over());
    let over = levels.iter().find(is_over).map(|at| at.level);
    let below = |at: &&LevelRuns<'_, '_>| over.is_none_or(|over| at.level < over);
    let found = levels.iter().rev().filter(below).find(is_kept);
    let level = found.map(|at| at.level);
    let above = levels.iter().filter(|at| level.is_none_or(|level| at.level > level));
    let missed = above.filter(|at| !is_kept(at)).map(|at| at.level).next();
    let kept_above = levels.iter().rev().find(is_kept).map(|at| at.level);
    let runs: &[&SeenPoint<'_>] = found.map_or(&[], |at| &at.runs);
    let whole = runs.iter().filter(|seen| seen.is_whole()).count();
    let support = match found {
        Some(_) if whole >= view.pace.confirms => KeptSupport::Confirmed,
        Some(_) => KeptSupport::Measured,
        None if levels.is_empty() => KeptSupport::Unknown,
        None => KeptSupport::Missed,
    };
    let output_tps = runs
        .iter()
        .filter_map(|seen| Some((Bounded::bare(seen.figures.output_tps?), seen.figures.requests)));
    KeptLoad {
        term: None,
        support,
        level,
        rps: mean(runs.iter().filter_map(|seen| rps(view.plan, seen))),
        runs: u32::try_from(runs.len()).unwrap_or(u32::MAX),
        requests: runs.iter().map(|seen| seen.figures.requests).sum(),
        value: None,
        attainment: match runs {
            [seen] => seen.figures.attainment,
            runs => pooled(runs),
        },
        output_tps: weighted_mean(output_tps).map(|tps| tps.value),
        missed,
        kept_above: kept_above.filter(|above| over.is_some_and(|over| *above > over)),
    }
}

/// Runs by level, ascending; those without usable figures are left out.
fn levels<'b, 'a>(view: &'b CurveView<'a>) -> Vec<LevelRuns<'b, 'a>> {
    let mut seen: Vec<&SeenPoint<'a>> =
        view.seen.iter().filter(|seen| !seen.is_unclear()).collect();
    seen.sort_by(|a, b| a.level.total_cmp(&b.level));
    let mut levels: Vec<LevelRuns<'b, 'a>> = Vec::new();
    for run in seen {
        match levels.last_mut() {
            Some(last) if is_same_level(last.level, run.level) => last.runs.push(run),
            _ => levels.push(LevelRuns { level: run.level, runs: vec![run] }),
        }
    }
    levels
}

/// The mean by requests, inside all of their intervals; none without any, and an end that is unknown
/// of one is unknown of all.
pub fn weighted_mean(figures: impl Iterator<Item = (Bounded, u64)>) -> Option<Bounded> {
    let all: Vec<(Bounded, f64)> = figures.map(|(found, n)| (found, n.max(1) as f64)).collect();
    let weight: f64 = all.iter().map(|(_, n)| n).sum();
    let end = |of: fn(&Bounded) -> Option<f64>, outer: fn(f64, f64) -> f64| {
        all.iter()
            .map(|(found, _)| of(found))
            .collect::<Option<Vec<f64>>>()?
            .into_iter()
            .reduce(outer)
    };
    (weight > 0.0).then(|| Bounded {
        value: all.iter().map(|(found, n)| found.value * n).sum::<f64>() / weight,
        low: end(|found| found.low, f64::min),
        high: end(|found| found.high, f64::max),
    })
}

#[cfg(test)]
#[path = "kept/tests.rs"]
mod tests;
