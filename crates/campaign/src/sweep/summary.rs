//! The shape of a sweep's `summary.json`.

use std::collections::BTreeMap;

use goodput_model::{Caveat, CaveatCode, Severity, SystemContext, SystemFacts, Verdict};
use serde::{Deserialize, Serialize};

use super::curve::{Curve, fit_curve};
use super::stated::{StatedFigure, stated};
use super::{
    Axis, Bounded, KeptLoad, Point, PointStanding, Purpose, SweepPlan, TimeEstimate, Unclear,
    answer, judge, kept_loads, sweep_caveats,
};

/// How a sweep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepState {
    /// Everything was measured.
    Complete,
    /// The user stopped it; `--resume` continues.
    Interrupted,
    /// The target became unreachable and did not come back; `--resume` continues.
    TargetLost,
    /// The target answered, but no request completed; `--resume` continues.
    NoGoodAnswer,
    /// The time for it was over (`--max-time`); `--resume` continues.
    TimeUp,
    /// It is still running, or was killed; `--resume` continues.
    #[default]
    Unfinished,
}

/// What was swept, for the head of a report.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SweepFacts {
    /// Version of goodput that measured.
    pub version: String,
    /// When it began (RFC 3339).
    pub started: String,
    /// How it ended.
    pub state: SweepState,
    /// URL without secrets.
    pub target: String,
    /// Model asked for.
    pub model: String,
    /// The workload in one line.
    pub workload: String,
    /// GPUs behind the target, if given.
    pub gpus: Option<u32>,
    /// Estimate of its time before the first point.
    pub estimated: Option<TimeEstimate>,
    /// How long it took, in seconds; stops in between are not counted.
    pub took_s: f64,
    /// Hardware, model, precision, engine, and parallelism, as far as they are stated.
    #[serde(default, skip_serializing_if = "SystemContext::is_empty")]
    pub system: SystemContext,
    /// Everything that is known to decide the server's speed, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// The command that began it, without secrets; empty in files of older versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
}

impl SweepFacts {
    /// Takes over what a run knows of the system, as far as nothing is known yet: it is the same
    /// for all points.
    pub fn add_system_facts(&mut self, system: &SystemFacts) {
        if self.settings.is_empty() {
            self.settings = system.settings();
        }
        self.system = SystemContext::new(&self.model, &self.settings);
    }
}

/// A sweep in numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepSummary {
    /// `goodput.sweep/1`
    pub schema: String,
    /// Whether to believe it.
    pub verdict: Verdict,
    /// Reasons to doubt it, and what to know.
    pub caveats: Vec<Caveat>,
    /// What was swept.
    pub sweep: SweepFacts,
    /// What was asked.
    pub plan: SweepPlan,
    /// The goodput; none without an SLO, and in files of older versions if none was searched for.
    pub goodput: Option<Goodput>,
    /// The highest measured load that keeps the whole SLO, then for each term by itself; nothing
    /// without an SLO, and in files of older versions.
    #[serde(default)]
    pub kept_loads: Vec<KeptLoad>,
    /// Metric, value and condition of what the sweep is quoted by; nothing in files of older versions.
    #[serde(default)]
    pub figures: Vec<StatedFigure>,
    /// The SLO it was measured with, or `none`, where it is judged by another one afterwards.
    #[serde(default)]
    pub measured_with: Option<String>,
    /// The sustained run at the goodput.
    pub sustained: Option<Sustained>,
    /// What the points show together.
    pub curve: Curve,
    /// Every point, in the order measured.
    pub points: Vec<PointSummary>,
}

impl SweepSummary {
    /// The format this version writes.
    pub const SCHEMA: &'static str = "goodput.sweep/1";

    /// What these points say together, in the order measured, each with its folder.
    pub fn new(facts: SweepFacts, plan: SweepPlan, measured: Vec<(String, Point)>) -> Self {
        let points: Vec<Point> = measured.iter().map(|(_, point)| point.clone()).collect();
        let (goodput, kept) = (answer(&plan, &points), kept_loads(&plan, &points));
        let mut caveats = sweep_caveats(&plan, &points);
        let summarized = |(folder, point): (String, Point)| {
            let standing = judge(&point.figures, &plan);
            PointSummary { folder, point, standing }
        };
        let points: Vec<PointSummary> = measured.into_iter().map(summarized).collect();
        caveats.extend(answer_caveats(&points, &plan, goodput.as_ref()));
        caveats.extend(no_information_caveat(&points));
        caveats.sort_by_key(|caveat| std::cmp::Reverse(caveat.severity));
        let verdict = Verdict::from_caveats(&caveats);
        Self {
            schema: Self::SCHEMA.to_owned(),
            verdict,
            caveats,
            sustained: last_sustained(&points),
            figures: stated(&facts, &plan, &points, goodput.as_ref(), &kept),
            kept_loads: kept,
            measured_with: None,
            curve: fit_curve(&points),
            sweep: facts,
            goodput,
            points,
            plan,
        }
    }
}

/// That no point says anything: nothing may be concluded from such a sweep.
fn no_information_caveat(points: &[PointSummary]) -> Option<Caveat> {
    let is_warm_up = |point: &&PointSummary| point.point.ask.purpose == Purpose::WarmUp;
    let later: Vec<_> = points.iter().filter(|point| !is_warm_up(point)).collect();
    let measured = if later.is_empty() { points.iter().collect() } else { later };
    let says = |PointSummary { point, standing, .. }: &PointSummary| {
        let is_spoiled = !matches!(standing, PointStanding::Unclear(Unclear::Nothing))
            && matches!(standing, PointStanding::Unclear(_));
        point.figures.ok > 0 && !is_spoiled
    };
    if measured.is_empty() || measured.iter().any(|point| says(point)) {
        return None;
    }
    let is_of_client =
        |point: &&&PointSummary| point.standing == PointStanding::Unclear(Unclear::Client);
    let by_client = measured.iter().filter(is_of_client).count();
    let (code, why) = if 2 * by_client > measured.len() {
        (CaveatCode::ClientLimited, "the client was the limit".to_owned())
    } else {
        let mut errors: BTreeMap<&str, u64> = BTreeMap::new();
        for (class, count) in measured.iter().flat_map(|point| &point.point.figures.errors) {
            *errors.entry(class).or_default() += count;
        }
        let most = errors.into_iter().max_by_key(|(_, count)| *count);
        let class = most.map_or(String::new(), |(class, _)| format!(" (mostly `{class}`)"));
        let ok: u64 = measured.iter().map(|point| point.point.figures.ok).sum();
        let what = if ok == 0 { "no request completed" } else { "requests failed" };
        (CaveatCode::Errors, format!("{what}{class}"))
    };
    let message = format!("no point of this sweep shows anything about the server: {why}");
    Some(Caveat::new(code, Severity::Void, message).advise(
        "run `goodput report` on a point for \
                                                            details",
    ))
}

/// What makes the runs doubtful that the answer rests on: those that kept the SLO there. What was
/// spoiled was measured again.
fn answer_caveats(
    points: &[PointSummary],
    plan: &SweepPlan,
    goodput: Option<&Goodput>,
) -> Vec<Caveat> {
    let rests_on = |point: &&PointSummary| goodput.is_some_and(|found| found.rests_on(plan, point));
    let of = |PointSummary { folder, point, .. }: &PointSummary| {
        let severity = match point.figures.verdict {
            Verdict::Valid => return None,
            Verdict::Suspect => Severity::Warn,
            Verdict::Void => Severity::Void,
        };
        let first = point.figures.doubts.first()?;
        let code = CaveatCode::ALL.iter().find(|code| code.name() == first)?;
        let all = point.figures.doubts.join(", ");
        let message = format!("the goodput rests on {folder}, which is suspect: {all}");
        Some(Caveat::new(*code, severity, message).advise("run `goodput report` on it for details"))
    };
    points.iter().filter(rests_on).filter_map(of).collect()
}

/// The last of the long runs.
fn last_sustained(points: &[PointSummary]) -> Option<Sustained> {
    let is_long = |point: &&PointSummary| point.point.ask.purpose == Purpose::Sustain;
    let PointSummary { point, standing, .. } = points.iter().rfind(is_long)?;
    Some(Sustained {
        level: point.ask.level.value(),
        seconds: point.figures.window_s,
        standing: standing.clone(),
        drift: point.figures.drift.clone(),
    })
}

/// A point of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PointSummary {
    /// Its folder, within that of the sweep.
    pub folder: String,
    /// What was asked and seen.
    #[serde(flatten)]
    pub point: Point,
    /// Whether it keeps the SLO.
    pub standing: PointStanding,
}

/// The highest load that keeps the SLO.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Goodput {
    /// `found`; `at_least` if no allowed load was over the limit; `measured` if the answer is a
    /// measured load that too few independent runs confirm; `unreachable` if no load keeps the
    /// SLO; `unclear`, with the reason in `because`.
    pub state: GoodputState,
    /// Why it is unknown, or what limits it, in words.
    pub because: String,
    /// The SLO.
    pub slo: String,
    /// What was raised.
    pub axis: Axis,
    /// The highest level that independent runs confirmed, on the axis.
    pub confirmed: Option<f64>,
    /// The lowest level above it at which a complete run clearly missed the SLO, on the axis; none
    /// without such a run.
    pub rejected: Option<f64>,
    /// Requests per second at the confirmed level: offered in an open loop, completed in a closed
    /// one.
    pub confirmed_rps: Option<f64>,
    /// Requests per second at the rejected level.
    pub rejected_rps: Option<f64>,
    /// Without a search for this SLO: the highest measured level that keeps it, below the lowest that
    /// misses it, on the axis; none after a search, and if no level keeps it.
    #[serde(default)]
    pub measured: Option<f64>,
    /// Requests per second at the measured level.
    #[serde(default)]
    pub measured_rps: Option<f64>,
    /// Share of good requests at the confirmed level, by the fit through all points near it; that
    /// of the confirming runs without a fit.
    pub attainment: Option<f64>,
    /// Lower end of its interval.
    pub attainment_low: Option<f64>,
    /// Upper end.
    pub attainment_high: Option<f64>,
    /// Share of good requests in the confirming runs only: these passed, so it is optimistic.
    #[serde(default)]
    pub seen_attainment: Option<f64>,
    /// Where the fit crosses the SLO, with its 95 % interval; an unbounded end is none.
    pub crossing: Option<Bounded>,
    /// Confirming runs.
    pub runs: u32,
    /// Measured requests of the confirming runs.
    pub requests: u64,
    /// Probability that the true limit is more than 3 % below the confirmed level, by the fit; none
    /// if the fit shows too little.
    pub over_claim_risk: Option<f64>,
}

impl Goodput {
    /// The level of the answer, on the axis: confirmed, or else as measured.
    pub fn level(&self) -> Option<f64> {
        self.confirmed.or(self.measured)
    }

    /// Requests per second there.
    pub fn rps(&self) -> Option<f64> {
        self.confirmed_rps.or(self.measured_rps)
    }

    /// Whether it rests on this point: on the runs that confirmed it, or without a search on every run
    /// at its level.
    pub fn rests_on(&self, plan: &SweepPlan, point: &PointSummary) -> bool {
        let ask = &point.point.ask;
        let is_proof = match ask.purpose {
            Purpose::Confirm | Purpose::Sustain => true,
            Purpose::WarmUp | Purpose::Twin => false,
            _ => !plan.search,
        };
        is_proof
            && self.level() == Some(ask.level.value())
            && ask.level.axis() == plan.axis
            && point.standing == PointStanding::Met
    }

    /// Whether a load is known that keeps the SLO.
    pub fn is_known(&self) -> bool {
        match self.state {
            GoodputState::Found | GoodputState::AtLeast | GoodputState::Measured => true,
            GoodputState::Unreachable | GoodputState::Unclear => false,
        }
    }
}

/// Whether a goodput was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoodputState {
    /// Confirmed, with a higher load over the limit.
    Found,
    /// Confirmed, and no allowed load was over the limit.
    AtLeast,
    /// Measured to keep the SLO, by fewer independent runs than a search asks for.
    Measured,
    /// No load keeps the SLO.
    Unreachable,
    /// Unknown.
    Unclear,
}

/// The sustained run at the goodput.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sustained {
    /// Its level on the axis.
    pub level: f64,
    /// Its length in seconds.
    pub seconds: f64,
    /// Whether it kept the SLO.
    pub standing: PointStanding,
    /// What drifted, in words; empty if nothing did.
    pub drift: Vec<String>,
}

/// Sweeps of one target under several configurations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sweeps {
    /// `goodput.sweeps/1`
    pub schema: String,
    /// The worst of the sweeps.
    pub verdict: Verdict,
    /// Each configuration, in the order measured.
    pub configurations: Vec<Configuration>,
    /// Place of the best configuration in the list, if one has a goodput.
    pub best: Option<usize>,
    /// How certain that is, in words.
    pub because: String,
}

impl Sweeps {
    /// The format this version writes.
    pub const SCHEMA: &'static str = "goodput.sweeps/1";
}

/// One configuration and its sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// What was varied, by name.
    pub values: BTreeMap<String, String>,
    /// Its folder, within that of all.
    pub folder: String,
    /// How the server started, if goodput started it.
    pub start: Option<ColdStart>,
    /// Why the sweep failed.
    pub failed: Option<String>,
    /// Its sweep.
    pub sweep: Option<SweepSummary>,
}

/// How long a server takes to start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ColdStart {
    /// From its start until it answered a first small request, in seconds.
    pub ready_s: f64,
    /// Time to the first token of that first request, in milliseconds.
    pub first_token_ms: Option<f64>,
}

#[cfg(test)]
mod tests;
