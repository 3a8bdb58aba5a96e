//! What one replica carries, and how that is known.

use goodput_model::{Slo, Verdict};
use goodput_stats::{RunState, SloState, Summary};
use serde::{Deserialize, Serialize};

use super::{PlanNote, PlanNoteKind};
use crate::sweep::{
    Axis, Figures, Goodput, GoodputState, Level, PointStanding, PointSummary, Purpose, SweepState,
    SweepSummary, answer,
};

/// Why a plan cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Refused {
    /// Without advice.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), hint: None }
    }

    /// With advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Where the figures come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A sweep by goodput.
    Sweep,
    /// One run by goodput that kept its SLO.
    Run,
    /// The user gave it.
    Given,
}

/// One measured level.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredLevel {
    /// Requests per second: offered in an open loop, answered in a closed one.
    pub rps: f64,
    /// Whether arrivals waited for no answer.
    pub is_open: bool,
    /// Its folder, within that of the sweep.
    pub folder: String,
    /// What was seen.
    pub figures: Figures,
}

/// What one replica carries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Basis {
    /// Where it comes from.
    pub origin: Origin,
    /// Its file or folder; empty for a given figure.
    pub path: String,
    /// What was measured, in one line.
    pub about: String,
    /// Its verdict; none if goodput did not measure it.
    pub verdict: Option<Verdict>,
    /// The SLO that was kept.
    pub slo: Option<String>,
    /// The highest rate of a replica that was confirmed to keep the SLO.
    pub confirmed_rps: f64,
    /// Whether that rate is only as measured: too few independent runs confirm it.
    #[serde(default)]
    pub is_measured_only: bool,
    /// The lowest rate above it that missed the SLO.
    pub rejected_rps: Option<f64>,
    /// Where a fit through all points crosses the SLO.
    pub crossing_rps: Option<f64>,
    /// Lower end of its interval; none if nothing bounds it.
    #[serde(default)]
    pub crossing_low_rps: Option<f64>,
    /// Upper end.
    #[serde(default)]
    pub crossing_high_rps: Option<f64>,
    /// Probability that the true limit is more than 3 % below the confirmed rate; none if unknown.
    #[serde(default)]
    pub over_claim_risk: Option<f64>,
    /// Share of good requests at the confirmed rate.
    pub attainment: Option<f64>,
    /// Share of good requests that the SLO asks for.
    pub attainment_target: Option<f64>,
    /// GPUs behind the measured target, if given.
    pub gpus: Option<u32>,
    /// The points, by rate.
    #[serde(skip)]
    pub levels: Vec<MeasuredLevel>,
    /// What to know about them.
    #[serde(skip)]
    pub notes: Vec<PlanNote>,
}

impl Basis {
    /// A figure from elsewhere.
    pub fn from_rates(confirmed_rps: f64, rejected_rps: Option<f64>) -> Result<Self, Refused> {
        let basis = Self {
            origin: Origin::Given,
            path: String::new(),
            about: "a given figure, not measured here".to_owned(),
            verdict: None,
            slo: None,
            confirmed_rps,
            is_measured_only: false,
            rejected_rps,
            crossing_rps: None,
            crossing_low_rps: None,
            crossing_high_rps: None,
            over_claim_risk: None,
            attainment: None,
            attainment_target: None,
            gpus: None,
            levels: Vec::new(),
            notes: Vec::new(),
        };
        basis.check()
    }

    /// The answer of a sweep.
    pub fn from_sweep(summary: &SweepSummary) -> Result<Self, Refused> {
        const ASK: &str = "name one with --slo 'p99 ttft < 500ms': what was measured is judged by it; \
                           or give a figure with --goodput-rps";
        const AGAIN: &str = "search with `goodput sweep TARGET --slo …`, or give a figure with \
                             --goodput-rps";
        // A file of an older version has no answer to a list of loads.
        let points = || summary.points.iter().map(|point| point.point.clone()).collect::<Vec<_>>();
        let answered = || answer(&summary.plan, &points());
        let Some(goodput) = summary.goodput.clone().or_else(answered) else {
            return Err(
                Refused::new("the sweep has no SLO, so no load of it is a goodput").hint(ASK)
            );
        };
        if goodput.state == GoodputState::Unreachable {
            let what = format!("no load met the SLO `{}`", goodput.slo);
            let hint = "no number of replicas helps: relax the SLO, or change the server";
            return Err(Refused::new(what).hint(hint));
        }
        let (Some(confirmed_rps), true) = (goodput.rps(), goodput.state != GoodputState::Unclear)
        else {
            let because = if goodput.because.is_empty() { "unknown" } else { &goodput.because };
            let what = format!("the sweep found no goodput: {because}");
            let unfinished = summary.sweep.state != SweepState::Complete;
            let hint = if unfinished { "continue it with `goodput sweep --resume`" } else { AGAIN };
            return Err(Refused::new(what).hint(hint));
        };
        refuse_void(summary.verdict, "sweep")?;
        let is_rate = goodput.axis == Axis::Rate;
        let mut levels: Vec<MeasuredLevel> =
            summary.points.iter().filter_map(measured_level).collect();
        levels.sort_by(|a, b| a.rps.total_cmp(&b.rps));
        let facts = &summary.sweep;
        let mut notes = verdict_notes(summary.verdict, "sweep");
        if facts.state != SweepState::Complete {
            let text = "the sweep did not finish; its goodput is the one found so far";
            notes.push(PlanNote::new(PlanNoteKind::Doubt, text));
        }
        if goodput.state == GoodputState::Measured {
            notes.push(PlanNote::new(PlanNoteKind::Doubt, unconfirmed_text(&goodput)));
        }
        if !is_rate {
            let text = "the goodput comes from a closed loop, whose users wait: arrivals that do \
                        not wait see longer queues at the same rate";
            notes.push(PlanNote::new(PlanNoteKind::Doubt, text));
        }
        if summary.sustained.as_ref().is_some_and(|long| long.standing != PointStanding::Met) {
            let text = "the sustained run at the goodput did not meet the SLO";
            notes.push(PlanNote::new(PlanNoteKind::Doubt, text));
        }
        let found = matches!(goodput.state, GoodputState::Found | GoodputState::Measured);
        let crossing = goodput.crossing.filter(|_| is_rate && found);
        let basis = Self {
            origin: Origin::Sweep,
            path: String::new(),
            about: format!("{} · {} · {}", facts.target, facts.model, facts.workload),
            verdict: Some(summary.verdict),
            slo: Some(goodput.slo.clone()),
            confirmed_rps,
            is_measured_only: goodput.state == GoodputState::Measured,
            // A closed loop that is too much may answer less.
            rejected_rps: goodput.rejected_rps.filter(|rate| found && *rate >= confirmed_rps),
            crossing_rps: crossing.map(|at| at.value),
            crossing_low_rps: crossing.and_then(|at| at.low),
            crossing_high_rps: crossing.and_then(|at| at.high),
            over_claim_risk: goodput.over_claim_risk,
            attainment: goodput.attainment,
            attainment_target: summary.plan.attainment,
            gpus: facts.gpus,
            levels,
            notes,
        };
        basis.check()
    }

    /// A single run: what it carried, and nothing above it.
    pub fn from_run(summary: &Summary) -> Result<Self, Refused> {
        const SWEEP: &str = "`goodput sweep` finds the rate that keeps an SLO";
        let Some(slo) = &summary.slo else {
            return Err(Refused::new("the run has no SLO, so its rate is not a goodput").hint(
                "run it with --slo 'p99 ttft < 500ms', or give a figure with --goodput-rps",
            ));
        };
        if let Some(facts) = summary.run.shard.as_ref().filter(|facts| facts.shard.is_part()) {
            let what = format!("the run is one shard of a load: that of rank {}", facts.shard);
            return Err(
                Refused::new(what).hint("combine all shards into one run with `goodput merge`")
            );
        }
        if slo.state != SloState::Met {
            let what = format!("the run's SLO was {}, not met: `{}`", slo.state.name(), slo.slo);
            return Err(Refused::new(what).hint(SWEEP));
        }
        refuse_void(summary.verdict, "run")?;
        let figures = Figures::from_summary(summary);
        // The rate of an open loop is that of sessions, where there are such.
        let offered = figures.offered_rps.filter(|_| summary.sessions.is_none());
        let Some(rps) = offered.or(figures.requests_per_s) else {
            return Err(Refused::new("the run has no rate: nothing was measured").hint(SWEEP));
        };
        let mut notes = verdict_notes(summary.verdict, "run");
        if summary.run.state != RunState::Complete {
            notes.push(PlanNote::new(PlanNoteKind::Doubt, "the run did not finish"));
        }
        if offered.is_none() {
            let text = "the run's arrivals waited for answers: users who do not wait see longer \
                        queues at the same rate";
            notes.push(PlanNote::new(PlanNoteKind::Doubt, text));
        }
        let facts = &summary.run;
        let is_open = figures.offered_rps.is_some();
        let basis = Self {
            origin: Origin::Run,
            path: String::new(),
            about: format!("{} · {} · {}", facts.target, facts.model, facts.workload),
            verdict: Some(summary.verdict),
            slo: Some(slo.slo.clone()),
            confirmed_rps: rps,
            is_measured_only: false,
            rejected_rps: None,
            crossing_rps: None,
            crossing_low_rps: None,
            crossing_high_rps: None,
            over_claim_risk: None,
            attainment: slo.attainment,
            attainment_target: slo.target,
            gpus: None,
            levels: vec![MeasuredLevel { rps, is_open, folder: String::new(), figures }],
            notes,
        };
        basis.check()
    }

    /// The rate that one replica carries at most, by all that is known: the upper end of the fit's
    /// interval, else the rejected rate.
    pub fn most_rps(&self) -> Option<f64> {
        let most = self.crossing_high_rps.or(self.rejected_rps)?;
        Some(most.max(self.confirmed_rps))
    }

    /// The rate that it carries at least: the lower end, where the confirmed rate lies above it.
    pub fn least_rps(&self) -> Option<f64> {
        self.crossing_low_rps.map(|low| low.min(self.confirmed_rps))
    }

    /// The SLO, read.
    pub(super) fn parse_slo(&self) -> Option<Slo> {
        self.slo.as_deref()?.parse().ok()
    }

    fn check(self) -> Result<Self, Refused> {
        let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
        if !is_rate(self.confirmed_rps) {
            return Err(Refused::new("the goodput of a replica must be a number above zero"));
        }
        if self.rejected_rps.is_some_and(|rate| !is_rate(rate) || rate < self.confirmed_rps) {
            return Err(Refused::new(
                "the rate over the limit must not be below the confirmed one",
            ));
        }
        Ok(self)
    }
}

/// That too few runs are behind the answer, and how to get more.
fn unconfirmed_text(goodput: &Goodput) -> String {
    let (runs, requests) = (goodput.runs, goodput.requests);
    let plural = if runs == 1 { "run" } else { "runs" };
    format!(
        "the rate of a replica is as measured, in {runs} {plural} with {requests} requests: \
         independent runs do not confirm it; `goodput sweep TARGET --slo …` does"
    )
}

fn refuse_void(verdict: Verdict, what: &str) -> Result<(), Refused> {
    if verdict == Verdict::Void {
        let hint = "read its report, and measure again";
        return Err(Refused::new(format!("the {what} is void: a plan cannot use it")).hint(hint));
    }
    Ok(())
}

fn verdict_notes(verdict: Verdict, what: &str) -> Vec<PlanNote> {
    let text = format!("the {what} is suspect: see its report");
    let is_suspect = verdict == Verdict::Suspect;
    is_suspect.then(|| PlanNote::new(PlanNoteKind::Doubt, text)).into_iter().collect()
}

/// What a point says about its level; none if it does not measure a level.
fn measured_level(summary: &PointSummary) -> Option<MeasuredLevel> {
    let (ask, figures) = (&summary.point.ask, &summary.point.figures);
    if matches!(ask.purpose, Purpose::WarmUp | Purpose::Twin)
        || matches!(summary.standing, PointStanding::Unclear(_))
        || figures.ok == 0
        || figures.verdict == Verdict::Void
    {
        return None;
    }
    let (rps, is_open) = match ask.level {
        Level::Rate(rate) => (Some(rate), true),
        Level::Users(_) => (figures.requests_per_s, false),
    };
    let rps = rps.filter(|rps| rps.is_finite() && *rps > 0.0)?;
    Some(MeasuredLevel { rps, is_open, folder: summary.folder.clone(), figures: figures.clone() })
}
