//! A sweep of one configuration: the next point, and again, until everything is known.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use goodput_campaign::sweep::{
    Figures, Point, PointAsk, PointStanding, PointSummary, Purpose, SweepFacts, SweepPlan,
    SweepState, SweepStep, SweepSummary, TimeEstimate, Unclear, answer, estimate_time, judge,
    next_step_s, next_sweep_step,
};
use goodput_clock::{now, pause};
use goodput_model::{Nanos, Plan, SloQuestion};
use goodput_record::{CampaignFolder, FolderError};
use goodput_stats::Summary;

use super::request::SweepRequest;
use super::saved::SavedPoint;
use super::{point, saved};
use crate::campaign::{Next, Outcome, Planner, measure_until_done};
use crate::error::Failed;
use crate::events::{ExpectedEnd, SweepProgress, SweepSoFar};
use crate::host;
use crate::idle::{IdleSignal, wait_idle};
use crate::readiness::{self, Ready};
use crate::run::{Lab, Prepared, RunContext, prepare_on};

/// How long a server that went away may stay away.
pub const ABSENCE: Duration = Duration::from_mins(2);

/// Load that warms a server up which has stood idle, in seconds.
const REWARM_S: f64 = 10.0;

/// How long a server may take to be empty after a point.
pub const IDLE_LIMIT: Duration = Duration::from_mins(1);

/// How long something may take that was estimated to take so many seconds, unless it is told: half
/// as much more, and a minute at least, since short runs have much around them.
pub fn time_limit_s(estimated_s: f64) -> f64 {
    (1.5 * estimated_s).max(estimated_s + 60.0)
}

/// A sweep that goes on.
struct Sweep<'a> {
    lab: &'a Lab,
    request: &'a SweepRequest,
    folder: CampaignFolder,
    /// The plan of all points, with everything settled that it left open.
    plan: Plan,
    ready: Arc<Ready>,
    points: Vec<(String, Point)>,
    facts: SweepFacts,
    /// When it began, or went on.
    began: Nanos,
    /// What it took before.
    took_s: f64,
    /// Whether a server of ours has ended.
    crash: Option<&'a dyn Fn() -> Option<Failed>>,
    /// The server has stood idle or has been started again: the next point warms it up.
    is_cold: bool,
}

/// What all points of a sweep are sent to, with the plan that they share.
pub struct SweepTarget {
    /// The plan, with everything settled that it left open.
    pub plan: Plan,
    /// The server, which answers.
    pub ready: Arc<Ready>,
}

impl From<Prepared> for SweepTarget {
    fn from(Prepared { plan, ready, .. }: Prepared) -> Self {
        Self { plan, ready }
    }
}

/// Measures until everything is known, or the user or the target ends it.
pub fn sweep_target(
    lab: &Lab,
    request: &SweepRequest,
    folder: CampaignFolder,
    target: SweepTarget,
) -> Result<SweepSummary, Failed> {
    Sweep::new(lab, request, folder, target)?.run()
}

/// The same with a server of ours, which may end.
pub(super) fn sweep_own_server(
    lab: &Lab,
    request: &SweepRequest,
    folder: CampaignFolder,
    target: SweepTarget,
    crash: &dyn Fn() -> Option<Failed>,
) -> Result<SweepSummary, Failed> {
    let prepared = prepare_on(lab, target.plan, target.ready)?;
    let mut sweep = Sweep::new(lab, request, folder, prepared.into())?;
    sweep.crash = Some(crash);
    sweep.run()
}

impl<'a> Sweep<'a> {
    fn new(
        lab: &'a Lab,
        request: &'a SweepRequest,
        folder: CampaignFolder,
        SweepTarget { plan, ready }: SweepTarget,
    ) -> Result<Self, Failed> {
        let kept = saved::read_points(&folder, &SloQuestion::default(), &*lab.observer)?;
        // Time between points counts too, as far as it was noted.
        let took_s: f64 = kept.iter().map(|kept| kept.took_s).sum();
        let points: Vec<_> = kept.into_iter().map(SavedPoint::into_named).collect();
        let earlier = saved::written_summary(&folder);
        let facts = SweepFacts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: host::timestamp(),
            state: SweepState::Unfinished,
            target: ready.shown.clone(),
            model: ready.model.clone(),
            workload: goodput_workload::describe_workload(&plan.workload),
            gpus: request.gpus,
            estimated: None,
            took_s: 0.0,
            command: lab.redacted_command(),
            ..SweepFacts::default()
        };
        let facts = match earlier.filter(|_| !points.is_empty()) {
            Some(earlier) => SweepFacts { state: SweepState::Unfinished, ..earlier.sweep },
            None => facts,
        };
        let took_s = facts.took_s.max(took_s);
        let is_cold = !points.is_empty();
        let began = now();
        Ok(Self {
            lab,
            request,
            folder,
            plan,
            ready,
            points,
            facts,
            began,
            took_s,
            crash: None,
            is_cold,
        })
    }

    fn run(mut self) -> Result<SweepSummary, Failed> {
        let shown = self.folder.path().display();
        if self.points.is_empty() {
            self.note(format!("sweep of {} into {shown}", self.facts.target));
        } else {
            let done = self.points.len();
            self.note(format!("resuming {shown}: {done} points are complete"));
        }
        let (plan, points) = (self.request.sweep.clone(), self.points.clone());
        let known = SweepSummary::new(self.facts.clone(), plan, points);
        self.show_points(&known.points, false);
        let interrupt = self.lab.interrupt.clone();
        self.facts.state = measure_until_done(&mut self, &interrupt)?;
        Ok(self.write_summary())
    }

    /// How long it takes from here; said once, before the first point that counts.
    fn note_estimate(&mut self, done: &[Point], more_s: f64) -> Option<ExpectedEnd> {
        let mut left = self.estimate(done)?;
        left.seconds += more_s;
        if self.facts.estimated.is_none() {
            let so_far = self.elapsed_s();
            let whole = TimeEstimate { seconds: left.seconds + so_far, ..left.clone() };
            self.lab.observer.sweep(&SweepProgress::Estimated(&whole));
            self.facts.estimated = Some(whole);
        }
        Some(ExpectedEnd::new(left.seconds, left.most_seconds))
    }

    fn estimate(&self, done: &[Point]) -> Option<TimeEstimate> {
        estimate_time(&self.request.sweep, done, Some(self.elapsed_s()))
    }

    /// How many seconds it may take in all; none before it is known how long it should.
    fn time_limit_s(&self) -> Option<f64> {
        let overtime = || Some(time_limit_s(self.facts.estimated.as_ref()?.seconds));
        self.request.max_s.or_else(overtime)
    }

    fn elapsed_s(&self) -> f64 {
        self.took_s + (now() - self.began).as_secs()
    }

    /// One point.
    fn measure_point(
        &mut self,
        ask: &PointAsk,
        end: Option<ExpectedEnd>,
    ) -> Result<(PathBuf, Summary), Failed> {
        self.folder.set_aside(ask.number).map_err(unwritable_error)?;
        self.folder.note_begin(ask.number, ask).map_err(unwritable_error)?;
        let path = self.folder.point_path(ask.number, &ask.level.folder_name());
        let plan = point::point_plan(&self.plan, ask);
        let prepared = prepare_on(self.lab, plan, Arc::clone(&self.ready))?;
        let place = RunContext { label: progress_label(ask), end, ..RunContext::default() };
        let summary = prepared.run(self.lab, &path, place)?;
        Ok((path, summary))
    }

    /// Adds a point, and writes what is known now.
    fn add_point(
        &mut self,
        ask: PointAsk,
        path: &Path,
        summary: &Summary,
        took: Nanos,
    ) -> Result<Outcome, Failed> {
        self.folder.note_end(ask.number, took.as_secs()).map_err(unwritable_error)?;
        self.facts.add_system_facts(&summary.run.system);
        let figures = Figures::from_summary(summary);
        let standing = judge(&figures, &self.request.sweep);
        self.points.push((saved::folder_name(path), Point { ask, figures }));
        let summary = self.write_summary();
        self.show_points(&summary.points, true);
        let is_gone = standing == PointStanding::Unclear(Unclear::ServerGone);
        Ok(if is_gone { Outcome::CutShort } else { Outcome::Measured })
    }

    /// Writes the numbers so far. A full disk must not end a sweep.
    fn write_summary(&mut self) -> SweepSummary {
        self.facts.took_s = self.elapsed_s();
        let summary =
            SweepSummary::new(self.facts.clone(), self.request.sweep.clone(), self.points.clone());
        if let Err(error) = self.folder.write_summary(&summary) {
            self.lab.observer.warn(error.to_string());
        }
        self.lab.observer.sweep(&SweepProgress::Saved(&self.folder, &summary));
        summary
    }

    /// Shows the points so far, the last of them measured just now or all of them before.
    fn show_points(&self, points: &[PointSummary], is_new: bool) {
        let (plan, done) = (&self.request.sweep, self.finished_points());
        let (answer, left) =
            if is_new { (answer(plan, &done), self.estimate(&done)) } else { (None, None) };
        let (answer, left) = (answer.as_ref(), left.as_ref());
        let view = SweepSoFar { plan, points, is_new, answer, left };
        self.lab.observer.sweep(&SweepProgress::Points(view));
    }

    fn note(&self, text: String) {
        self.lab.observer.note(text);
    }

    fn finished_points(&self) -> Vec<Point> {
        self.points.iter().map(|(_, point)| point.clone()).collect()
    }
}

impl Planner for Sweep<'_> {
    type Step = PointAsk;
    type End = SweepState;

    fn next(&mut self) -> Next<PointAsk, SweepState> {
        let done = self.finished_points();
        match next_sweep_step(&self.request.sweep, &done) {
            SweepStep::Measure(ask) => Next::Measure(ask),
            SweepStep::Done => Next::Over(end_state(&done, &self.request.sweep)),
        }
    }

    fn measure(&mut self, ask: &PointAsk) -> Result<Outcome, Failed> {
        let mut ask = *ask;
        let planned_s = ask.burn_in_s;
        if std::mem::take(&mut self.is_cold) {
            ask.burn_in_s = ask.burn_in_s.max(REWARM_S);
        }
        let end = self.note_estimate(&self.finished_points(), ask.burn_in_s - planned_s);
        let begin = now();
        let measured = self.measure_point(&ask, end);
        if self.lab.interrupt.is_interrupted() {
            return Ok(Outcome::CutShort);
        }
        match measured {
            Ok((path, summary)) => self.add_point(ask, &path, &summary, now() - begin),
            Err(failed) if failed.is_target_fault() && !self.points.is_empty() => {
                self.note(format!("warning: {failed}"));
                Ok(Outcome::TargetGone)
            }
            Err(failed) => Err(failed),
        }
    }

    fn wait_for_target(&mut self, _: &PointAsk) -> bool {
        // The engine inside the process does not go away, and its successor would be another.
        if self.ready.mock.is_some() {
            return true;
        }
        let mut plan = self.plan.clone();
        // With what a plan does not hold once it is settled: secrets of the URL.
        plan.target.url.clone_from(&self.request.plan.target.url);
        plan.target.wait_ready = plan.target.wait_ready.max(ABSENCE);
        self.note("the server stopped answering during a point: waiting for it".to_owned());
        let given_up = || {
            let crash = self.crash.and_then(|crash| crash());
            let stopped = self.lab.interrupt.is_interrupted();
            crash.or_else(|| stopped.then(|| Failed::target("stopped while waiting")))
        };
        match readiness::wait_ready_unless(&mut plan, &*self.lab.observer, &given_up) {
            Ok(ready) => {
                self.ready = Arc::new(ready);
                self.is_cold = true;
                true
            }
            Err(failed) => {
                self.note(format!("warning: {failed}"));
                false
            }
        }
    }

    fn wait_until_idle(&mut self, _: &PointAsk) {
        pause(Nanos::from_secs_f64(self.request.sweep.settle_s.clamp(0.0, 3600.0)));
        let emptied =
            wait_idle(&self.plan, &self.ready, IDLE_LIMIT, &|| self.lab.interrupt.is_interrupted());
        if let IdleSignal::Unknown(why) = emptied.by
            && self.plan.target.probe
        {
            let seconds = emptied.after_s;
            self.note(format!(
                "warning: could not tell whether the server had drained after {seconds:.0} s: {why}"
            ));
        }
    }

    fn has_time(&self, ask: &PointAsk) -> bool {
        let step_s = next_step_s(&self.request.sweep, &self.finished_points(), ask);
        self.time_limit_s().is_none_or(|most_s| self.elapsed_s() + step_s <= most_s)
    }

    fn end_on_interrupt(&self) -> SweepState {
        SweepState::Interrupted
    }

    fn end_on_timeout(&self) -> SweepState {
        let most = self.time_limit_s().map(minutes_text).unwrap_or_default();
        self.lab.observer.warn(format!(
            "the sweep ends here: {most} are over, and it says what is known so far; continue it \
             with --resume and a longer --max-time"
        ));
        SweepState::TimeUp
    }

    fn end_on_lost_target(&self) -> SweepState {
        SweepState::TargetLost
    }
}

/// How a sweep ended that wants nothing more. After a point without a good answer nothing is complete.
fn end_state(done: &[Point], plan: &SweepPlan) -> SweepState {
    let Some(last) = done.last() else { return SweepState::TargetLost };
    match judge(&last.figures, plan) {
        _ if last.figures.ok > 0 => SweepState::Complete,
        PointStanding::Unclear(Unclear::ServerGone) => SweepState::TargetLost,
        _ => SweepState::NoGoodAnswer,
    }
}

/// A time that is given to everything, such as `3.0 min`.
pub fn minutes_text(seconds: f64) -> String {
    if seconds < 90.0 { format!("{seconds:.0} s") } else { format!("{:.1} min", seconds / 60.0) }
}

/// A folder that could not be written to while something went on.
#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` takes")]
pub fn unwritable_error(error: FolderError) -> Failed {
    Failed::usage(error.to_string())
        .hint("check the free space on the disk, then continue with --resume")
}

/// What stands before the progress line.
fn progress_label(ask: &PointAsk) -> String {
    let level = ask.level;
    let why = match ask.purpose {
        Purpose::WarmUp => "warm-up",
        Purpose::Grid => "curve",
        Purpose::Anchor => "anchor",
        Purpose::Bracket | Purpose::Bisect | Purpose::Focus => "search",
        Purpose::Confirm => "confirm",
        Purpose::Sustain => "sustain",
        Purpose::Twin => "closed loop",
    };
    format!("{} {why} {level} · ", ask.number)
}
