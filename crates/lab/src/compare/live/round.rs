//! One step of a comparison: sides made ready, and their runs measured.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use goodput_campaign::compare::{CompareState, ComparedRun, RunAsk};
use goodput_campaign::sweep::{
    Figures, Level, PointStanding, SweepPlan, SweepState, Unclear, judge,
};
use goodput_clock::now;
use goodput_model::{Caveat, Nanos, Severity};
use goodput_stats::Summary;

use super::run::CompareRun;
use super::{folder, sides};
use crate::error::Failed;
use crate::idle::wait_idle;
use crate::run::{RunContext, StartBarrier, prepare_on};
use crate::sweep::{self, IDLE_LIMIT, plan_at_level, unwritable_error};

/// Users of a warm-up, its requests, and its seconds at most.
const WARM_UP_USERS: u32 = 16;
const WARM_UP_REQUESTS: u64 = 64;
const WARM_UP_S: f64 = 120.0;

/// A run that has ended.
pub(super) struct FinishedRun {
    pub(super) cell: ComparedRun,
    /// The server was gone meanwhile.
    pub(super) is_gone: bool,
    /// Why it must not be used, where it must not.
    pub(super) why_void: Option<String>,
    pub(super) took: Nanos,
}

/// How the run of one side went in a step.
pub(super) struct StepOutcome {
    pub(super) side: u32,
    pub(super) run: Result<FinishedRun, Failed>,
}

impl CompareRun<'_> {
    /// Warms every side up before the first block, and settles how much load there should be. How
    /// it ended, if it did.
    pub(super) fn warm_all(&mut self) -> Result<Option<CompareState>, Failed> {
        let is_settled = !self.request.design.levels.is_empty() || self.is_search();
        let mut places = 0..self.sides.len();
        // Where engines take turns each is warmed up whenever its turn comes.
        if self.is_search() || (self.switch.is_some() && is_settled) {
            places = 0..0;
        } else if self.switch.is_some() {
            places = 0..1;
        }
        for place in places {
            if self.lab.interrupt.is_interrupted() {
                return Ok(Some(CompareState::Interrupted));
            }
            // A target and itself are one.
            let is_needed = place == 0 || !self.request.design.same_target;
            let summary = if is_needed { self.prepare_side(place)? } else { None };
            let is_stopped = self.lab.interrupt.is_interrupted();
            if let Some(summary) = summary.filter(|_| place == 0 && !is_settled && !is_stopped) {
                self.choose_level(&summary)?;
            }
        }
        let is_stopped = self.lab.interrupt.is_interrupted();
        Ok(is_stopped.then_some(CompareState::Interrupted))
    }

    /// Half of what the reference carried.
    fn choose_level(&mut self, warm: &Summary) -> Result<(), Failed> {
        let carried = Figures::from_summary(warm).requests_per_s.filter(|rate| *rate > 0.0);
        let rate = carried.and_then(|rate| format!("{:.1e}", rate / 2.0).parse::<f64>().ok());
        let rate = rate.filter(|rate| rate.is_finite() && *rate > 0.0).ok_or_else(|| {
            Failed::target("the warm-up did not show how much load the reference carries")
                .hint("set the load with --rate or --concurrency")
        })?;
        self.request.design.levels = vec![Level::Rate(rate)];
        self.note(format!(
            "load: {rate} req/s, half of the {:.3} req/s that the reference carried with {WARM_UP_USERS} users; change it with --rate or --concurrency",
            carried.unwrap_or_default()
        ));
        self.folder.write_asked(&self.request.without_secrets()).map_err(unwritable_error)
    }

    /// Makes this side the one that runs, and warms it up where it is cold; what the warm-up says.
    pub(super) fn prepare_side(&mut self, place: usize) -> Result<Option<Summary>, Failed> {
        if self.switch.is_some() {
            self.wait_for_side(place, Duration::ZERO)?;
        }
        let is_search = self.is_search();
        let Some(side) = self.sides.get(place).filter(|side| side.is_cold && !is_search) else {
            return Ok(None);
        };
        let design = &self.request.design;
        let seed = design.seed.wrapping_sub(1) & i64::MAX.cast_unsigned();
        let level = Level::Users(WARM_UP_USERS);
        let mut plan = plan_at_level(&side.plan, level, seed, (0.0, WARM_UP_S));
        plan.load.num_requests = Some(WARM_UP_REQUESTS);
        let label = format!("warm-up {} · ", side.spec.name);
        let path = self.folder.new_warm_up_path(&side.spec.name);
        let prepared = prepare_on(self.lab, plan, Arc::clone(&side.ready))?;
        let context = RunContext { label, ..RunContext::default() };
        let summary = prepared.run(self.lab, &path, context)?;
        let figures = Figures::from_summary(&summary);
        let is_stopped = self.lab.interrupt.is_interrupted();
        if figures.ok == 0 && !is_stopped {
            let name = &side.spec.name;
            let first = figures.errors.first().map_or("no answer", |error| error.0.as_str());
            let message = format!("target `{name}` completed no request of its warm-up: {first}");
            return Err(Failed::target(message)
                .hint(format!("for details: `goodput report {}`", path.display())));
        }
        let longest = figures.e2e_ms.p99.map(|p99| p99.value).or(figures.e2e_ms.mean);
        self.drain_s = self.drain_s.max(longest.unwrap_or(0.0) / 1e3);
        wait_idle(&side.plan, &side.ready, IDLE_LIMIT, &|| self.lab.interrupt.is_interrupted());
        if let Some(side) = self.sides.get_mut(place) {
            side.is_cold = false;
        }
        Ok(Some(summary))
    }

    /// Waits for a side that was started again, so long at least.
    pub(super) fn wait_for_side(&mut self, place: usize, least: Duration) -> Result<(), Failed> {
        let Some(side) = self.sides.get_mut(place) else { return Ok(()) };
        let mut plan = side.spec.target_plan(&self.request.plan);
        plan.target.wait_ready = plan.target.wait_ready.max(least);
        plan.target.model.clone_from(&side.plan.target.model);
        let ready = sides::make_side_ready(self.lab, &mut plan, &side.spec, self.switch.as_ref())?;
        side.replace_server(&self.request.plan, &plan, ready)
    }

    /// Measures these runs, at once where there are several.
    pub(super) fn measure_sides(&self, asks: &[RunAsk]) -> Vec<StepOutcome> {
        if let [ask] = asks {
            return vec![StepOutcome { side: ask.side, run: self.measure_one(ask, None, false) }];
        }
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (place, (ask, start)) in
                asks.iter().zip(StartBarrier::for_runs(asks.len())).enumerate()
            {
                // One line shows how far all are.
                let run = move || self.measure_one(ask, Some(start), place > 0);
                threads.push((ask.side, scope.spawn(run)));
            }
            let panicked = |_| Err(Failed::internal("a run ended in a panic"));
            let joined = threads.into_iter().map(|(side, thread)| (side, thread.join()));
            let outcome = |(side, ended): (u32, std::thread::Result<_>)| StepOutcome {
                side,
                run: ended.unwrap_or_else(panicked),
            };
            joined.map(outcome).collect()
        })
    }

    fn measure_one(
        &self,
        ask: &RunAsk,
        start: Option<StartBarrier>,
        is_silent: bool,
    ) -> Result<FinishedRun, Failed> {
        let begin = now();
        let run = if self.is_search() {
            self.run_search(ask)?
        } else {
            self.run_load(ask, start, is_silent)?
        };
        Ok(FinishedRun { took: now() - begin, ..run })
    }

    /// A run at one level.
    fn run_load(
        &self,
        ask: &RunAsk,
        start: Option<StartBarrier>,
        is_silent: bool,
    ) -> Result<FinishedRun, Failed> {
        let design = &self.request.design;
        let side = self.sides.get(ask.side as usize);
        let level = design.levels.get(ask.level as usize);
        let (Some(side), Some(level)) = (side, level) else {
            return Err(Failed::internal("a run without a side or a load level"));
        };
        let plan = plan_at_level(&side.plan, *level, ask.seed, (design.burn_in_s, design.run_s));
        let prepared = prepare_on(self.lab, plan, Arc::clone(&side.ready))?;
        let who = if start.is_some() { "all at once" } else { &side.spec.name };
        let label = format!("block {} {who} {} · ", ask.block, level);
        let place = RunContext { label, is_silent, start, ..RunContext::default() };
        let path = self.run_path(ask, &level.folder_name());
        let summary = prepared.run(self.lab, &path, place)?;
        let figures = Figures::from_summary(&summary);
        let standing = judge(&figures, &SweepPlan::default());
        let is_gone = standing == PointStanding::Unclear(Unclear::ServerGone)
            || (figures.ok == 0 && figures.failed > 0);
        let cell = folder::compared_run(*ask, &path, &summary)?;
        Ok(FinishedRun {
            cell,
            is_gone,
            why_void: void_reason(&summary.caveats),
            took: Nanos::ZERO,
        })
    }

    /// A search for the highest load that keeps the SLO; its server is gone where it went for good.
    fn run_search(&self, ask: &RunAsk) -> Result<FinishedRun, Failed> {
        let Some(side) = self.sides.get(ask.side as usize) else {
            return Err(Failed::internal("a search without a side"));
        };
        let path = self.run_path(ask, "search");
        let own = side.spec.target_plan(&self.request.plan);
        let settled = (side.plan.clone(), Arc::clone(&side.ready));
        let plan = self.request.search_plan(ask.seed);
        let found = sweep::search_goodput(self.lab, &path, plan, own, settled)?;
        let is_gone =
            matches!(found.sweep.state, SweepState::TargetLost | SweepState::NoGoodAnswer);
        let cell = folder::compared_search(*ask, &path, &found)?;
        let why_void =
            void_reason(&found.caveats).or_else(|| Some("its search found no goodput".to_owned()));
        Ok(FinishedRun { cell, is_gone, why_void, took: Nanos::ZERO })
    }

    fn run_path(&self, ask: &RunAsk, level: &str) -> PathBuf {
        let side = self.request.design.sides.get(ask.side as usize).map_or("", String::as_str);
        self.folder.point_path(ask.number, &format!("b{:02}-{side}-{level}", ask.block))
    }
}

/// The first reason not to use a run.
fn void_reason(caveats: &[Caveat]) -> Option<String> {
    let first = caveats.iter().find(|caveat| caveat.severity == Severity::Void);
    first.map(|caveat| caveat.message.clone())
}
