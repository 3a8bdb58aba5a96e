//! A comparison that goes on: the next runs, and again, until everything is known.

use goodput_campaign::compare::{
    CompareFacts, CompareState, ComparedRun, Comparison, ComparisonContext, Design, DesignStep,
    Floor, Quantity, RunAsk, Side, Stopped, count_blocks, estimate_remaining_s,
};
use goodput_clock::{now, pause};
use goodput_model::{Nanos, Verdict};
use goodput_record::CampaignFolder;

use super::folder::{self, RunsOnDisk};
use super::request::CompareRequest;
use super::round::{FinishedRun, StepOutcome};
use super::sides::ReadyTarget;
use super::switch::SwitchCommand;
use crate::campaign::{Next, Outcome, Planner, measure_until_done};
use crate::error::Failed;
use crate::events::CompareProgress;
use crate::host;
use crate::idle::{IdleSignal, wait_idle};
use crate::run::Lab;
use crate::sweep::{ABSENCE, IDLE_LIMIT, minutes_text, time_limit_s, unwritable_error};

/// What a quick search takes, about, before one has been seen.
const SEARCH_S: f64 = 180.0;

/// What a run takes around its load: connections, answers, numbers.
const AROUND_S: f64 = 1.0;

/// A comparison that goes on.
pub(super) struct CompareRun<'a> {
    pub(super) lab: &'a Lab,
    pub(super) request: CompareRequest,
    pub(super) folder: CampaignFolder,
    pub(super) sides: Vec<ReadyTarget>,
    pub(super) switch: Option<SwitchCommand>,
    pub(super) cells: Vec<ComparedRun>,
    /// Runs that sent something and do not count.
    lost: Vec<RunAsk>,
    pub(super) facts: CompareFacts,
    /// Who it was before it went on.
    earlier: Vec<Side>,
    pub(super) floor: Option<Floor>,
    /// When it began, or went on.
    began: Nanos,
    /// What it took before.
    took_s: f64,
    /// What answers take after the last request of a run, about.
    pub(super) drain_s: f64,
    /// Sides whose target went away in this step.
    gone: Vec<u32>,
    /// Steps that were measured since it began or went on.
    steps: u32,
}

/// How a comparison ended, and which rule ended it where one did.
type End = (CompareState, Option<Stopped>);

impl Planner for CompareRun<'_> {
    /// One run, or those of all sides at once.
    type Step = Vec<RunAsk>;
    type End = End;

    fn next(&mut self) -> Next<Vec<RunAsk>, End> {
        match self.next_step() {
            DesignStep::Measure(asks) => Next::Measure(asks),
            DesignStep::Done(stopped) => Next::Over((CompareState::Complete, Some(stopped))),
        }
    }

    fn measure(&mut self, asks: &Vec<RunAsk>) -> Result<Outcome, Failed> {
        let outcomes = match self.prepare_sides(asks) {
            // After a warm-up that was stopped nothing more is sent.
            Ok(()) if self.lab.interrupt.is_interrupted() => Vec::new(),
            Ok(()) => self.measure_sides(asks),
            Err((side, failed)) => vec![StepOutcome { side, run: Err(failed) }],
        };
        if self.lab.interrupt.is_interrupted() {
            return Ok(Outcome::CutShort);
        }
        self.gone.clear();
        let mut done = Vec::new();
        for StepOutcome { side, run } in outcomes {
            match run {
                Ok(run) if run.is_gone => self.gone.push(side),
                Ok(run) => done.push(run),
                Err(failed) if failed.is_target_fault() => {
                    self.lab.observer.comparison(&CompareProgress::TargetFailed(&failed));
                    self.gone.push(side);
                }
                Err(failed) => return Err(failed),
            }
        }
        if self.gone.is_empty() {
            done.into_iter().try_for_each(|run| self.keep_run(run))?;
            self.steps = self.steps.saturating_add(1);
            return Ok(Outcome::Measured);
        }
        self.mark_lost(asks);
        Ok(Outcome::TargetGone)
    }

    fn wait_for_target(&mut self, _: &Vec<RunAsk>) -> bool {
        let gone = std::mem::take(&mut self.gone);
        let count = u32::try_from(gone.len()).unwrap_or(u32::MAX);
        let is_back = gone.into_iter().all(|side| self.wait_for_side_back(side));
        let is_again = is_back && !self.lab.interrupt.is_interrupted();
        if is_again {
            self.facts.repeats = self.facts.repeats.saturating_add(count);
        }
        is_again
    }

    fn wait_until_idle(&mut self, asks: &Vec<RunAsk>) {
        self.wait_for_idle_sides(asks);
        self.end_block(asks);
    }

    fn has_time(&self, asks: &Vec<RunAsk>) -> bool {
        let step_s = self.run_length_s() * if self.steps > 0 { 1.0 } else { asks.len() as f64 };
        self.time_limit_s().is_none_or(|most_s| self.elapsed_s() + step_s <= most_s)
    }

    fn end_on_timeout(&self) -> End {
        let most = self.time_limit_s().map(minutes_text).unwrap_or_default();
        self.lab.observer.warn(format!(
            "the comparison ends here: {most} are over, and it says what is known so far; \
             continue it with --resume and a longer --max-time"
        ));
        (CompareState::TimeUp, None)
    }

    fn end_on_interrupt(&self) -> End {
        (CompareState::Interrupted, None)
    }

    fn end_on_lost_target(&self) -> End {
        (CompareState::TargetLost, None)
    }
}

/// What a run takes, about, without its answers.
pub(super) fn planned_run_s(design: &Design) -> f64 {
    match design.quantity {
        Quantity::Goodput => SEARCH_S,
        Quantity::Runs => design.burn_in_s + design.run_s + design.settle_s + AROUND_S,
    }
}

impl<'a> CompareRun<'a> {
    pub(super) fn new(
        lab: &'a Lab,
        request: CompareRequest,
        folder: CampaignFolder,
        RunsOnDisk { cells, lost, took_s }: RunsOnDisk,
    ) -> Self {
        let facts = CompareFacts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: host::timestamp(),
            state: CompareState::Unfinished,
            workload: goodput_workload::describe_workload(&request.plan.workload),
            slo: request.slo_text(),
            command: lab.redacted_command(),
            ..CompareFacts::default()
        };
        Self {
            lab,
            request,
            folder,
            sides: Vec::new(),
            switch: None,
            cells,
            lost,
            facts,
            earlier: Vec::new(),
            floor: None,
            began: now(),
            took_s,
            drain_s: 0.0,
            gone: Vec::new(),
            steps: 0,
        }
    }

    /// With sides to measure; without any it can only be concluded.
    pub(super) fn with_sides(self, sides: Vec<ReadyTarget>, switch: Option<SwitchCommand>) -> Self {
        Self { sides, switch, ..self }
    }

    /// Measures, and says what came of it.
    pub(super) fn measure_and_conclude(
        mut self,
        earlier: Option<Comparison>,
        floor: Option<Floor>,
    ) -> Result<Comparison, Failed> {
        self.floor = floor;
        if let Some(earlier) = earlier {
            self.took_s = self.took_s.max(earlier.comparison.took_s);
            let state = CompareState::Unfinished;
            self.facts = CompareFacts { state, stopped: None, ..earlier.comparison };
            self.earlier = earlier.sides;
        }
        self.note_sides();
        let (state, stopped) = self.measure_all()?;
        (self.facts.state, self.facts.stopped) = (state, stopped);
        let is_new = self.request.design.same_target && self.floor.is_none();
        if state == CompareState::Complete && is_new {
            self.keep_floor();
        }
        Ok(self.write_summary(true))
    }

    pub(super) fn described_sides(&self) -> Vec<Side> {
        if self.sides.is_empty() {
            return self.earlier.clone();
        }
        self.sides.iter().map(ReadyTarget::side).collect()
    }

    fn next_step(&self) -> DesignStep {
        folder::next_step(&self.request.design, &self.cells, &self.lost)
    }

    /// Seconds to the next look, and to the end at most.
    fn time_left_s(&self) -> (f64, f64) {
        let cells = folder::add_lost_runs(&self.cells, &self.lost);
        estimate_remaining_s(&self.request.design, &cells, self.run_length_s())
    }

    pub(super) fn note(&self, line: String) {
        self.lab.observer.note(line);
    }

    fn note_sides(&self) {
        let path = self.folder.path().display();
        let done = self.cells.len();
        match done {
            0 => self.note(format!("comparison into {path}")),
            _ => self.note(format!("resuming {path}: {done} runs are complete")),
        }
        for Side { name, target, model, .. } in self.described_sides() {
            self.note(format!("  {name}: {target} ({model})"));
        }
        if !self.facts.slo.is_empty() {
            self.note(format!("  SLO: {}", self.facts.slo));
        }
    }

    /// Run after run.
    fn measure_all(&mut self) -> Result<End, Failed> {
        if let DesignStep::Done(stopped) = self.next_step() {
            let over = "this comparison is complete; start a new one to measure more";
            self.note(over.to_owned());
            return Ok((CompareState::Complete, Some(stopped)));
        }
        if let Some(state) = self.warm_all()? {
            return Ok((state, None));
        }
        self.note_estimate();
        self.show_blocks(false);
        let interrupt = self.lab.interrupt.clone();
        measure_until_done(self, &interrupt)
    }

    pub(super) fn is_search(&self) -> bool {
        self.request.design.quantity == Quantity::Goodput
    }

    fn note_estimate(&mut self) {
        let (next_look_s, most_s) = self.time_left_s();
        let design = &self.request.design;
        let estimated = CompareProgress::Estimated { design, next_look_s, most_s };
        self.lab.observer.comparison(&estimated);
        let so_far = self.elapsed_s();
        self.facts.estimated_s.get_or_insert(most_s + so_far);
    }

    /// What a run takes, with everything around it.
    fn run_length_s(&self) -> f64 {
        let design = &self.request.design;
        if self.steps > 0 {
            return (now() - self.began).as_secs() / f64::from(self.steps);
        }
        planned_run_s(design) + self.drain_s
    }

    /// How many seconds it may take in all; none before it is known how long it should.
    fn time_limit_s(&self) -> Option<f64> {
        let overtime = || Some(time_limit_s(self.facts.estimated_s?));
        self.request.max_s.or_else(overtime)
    }

    fn elapsed_s(&self) -> f64 {
        self.took_s + (now() - self.began).as_secs()
    }

    /// Adds a run that is whole.
    fn keep_run(&mut self, run: FinishedRun) -> Result<(), Failed> {
        let RunAsk { number, block, .. } = run.cell.ask;
        self.folder.note_end(number, run.took.as_secs()).map_err(unwritable_error)?;
        if run.cell.verdict == Verdict::Void {
            let why = run.why_void.map_or_else(String::new, |why| format!(": {why}"));
            self.note(format!("block {block} is left out: run {number} is void{why}"));
        }
        self.cells.push(run.cell);
        Ok(())
    }

    /// Runs that are not to be kept: those that sent something are lost.
    fn mark_lost(&mut self, asks: &[RunAsk]) {
        if self.is_search() {
            return;
        }
        let there = self.folder.list_points();
        let is_there = |ask: &&RunAsk| there.iter().any(|point| point.0 == ask.number);
        self.lost.extend(asks.iter().filter(is_there));
    }

    /// Makes the sides of these runs ready; or which one is not, and why.
    fn prepare_sides(&mut self, asks: &[RunAsk]) -> Result<(), (u32, Failed)> {
        for ask in asks {
            let begun = self.folder.note_begin(ask.number, ask).map_err(unwritable_error);
            let ready = begun.and_then(|()| self.prepare_side(ask.side as usize));
            ready.map_err(|failed| (ask.side, failed))?;
        }
        Ok(())
    }

    /// Whether a side answers again before long.
    fn wait_for_side_back(&mut self, place: u32) -> bool {
        let Some(side) = self.sides.get(place as usize) else { return false };
        // The engine inside the process does not go away, and its successor would be another. Where
        // engines take turns, the next turn starts it.
        if side.ready.mock.is_some() || self.switch.is_some() {
            return true;
        }
        let (name, most_s) = (&side.spec.name, ABSENCE.as_secs());
        self.note(format!(
            "{name} stopped answering during a run: waiting up to {most_s} s for it"
        ));
        match self.wait_for_side(place as usize, ABSENCE) {
            Ok(()) => true,
            Err(failed) => {
                self.note(format!("warning: {failed}"));
                false
            }
        }
    }

    /// Lets the servers come to rest.
    fn wait_for_idle_sides(&self, asks: &[RunAsk]) {
        pause(Nanos::from_secs_f64(self.request.design.settle_s.clamp(0.0, 3600.0)));
        for side in asks.iter().filter_map(|ask| self.sides.get(ask.side as usize)) {
            let emptied = wait_idle(&side.plan, &side.ready, IDLE_LIMIT, &|| {
                self.lab.interrupt.is_interrupted()
            });
            if let IdleSignal::Unknown(why) = emptied.by
                && side.plan.target.probe
            {
                let (name, seconds) = (&side.spec.name, emptied.after_s);
                self.note(format!(
                    "warning: could not tell whether {name} had drained after {seconds:.0} s: {why}"
                ));
            }
        }
    }

    /// After the last run of a block: writes what is known, and says it.
    fn end_block(&mut self, asks: &[RunAsk]) {
        let Some(block) = asks.first().map(|ask| ask.block) else { return };
        let design = &self.request.design;
        let runs = design.sides.len() * design.levels.len().max(1);
        if self.cells.iter().filter(|cell| cell.ask.block == block).count() < runs {
            return;
        }
        self.show_blocks(true);
    }

    /// Writes what is known, and shows it; the last block was measured just now, or all before.
    fn show_blocks(&mut self, is_new: bool) {
        let (comparison, left_s) = (self.write_summary(false), self.time_left_s().0);
        let blocks = CompareProgress::Blocks { comparison: &comparison, left_s, is_new };
        self.lab.observer.comparison(&blocks);
    }

    /// Blocks of which every run is there, and none is void.
    pub(super) fn count_blocks(&self) -> u32 {
        count_blocks(&self.request.design, &self.cells)
    }

    /// Writes the numbers so far. A full disk must not end a comparison.
    fn write_summary(&mut self, is_last: bool) -> Comparison {
        self.facts.took_s = self.elapsed_s();
        self.facts.blocks = self.count_blocks();
        let design = &self.request.design;
        // Every log is read for it.
        let proof =
            if is_last { folder::prove_blocks(&self.folder, design, &self.cells) } else { None };
        let context =
            ComparisonContext { proof, floor: self.floor.clone(), insists: self.request.anyway };
        let (facts, cells) = (self.facts.clone(), self.cells.clone());
        let comparison = Comparison::from_paired_runs(
            facts,
            design.clone(),
            self.described_sides(),
            cells,
            context,
        );
        if let Err(error) = self.folder.write_summary(&comparison) {
            self.lab.observer.warn(error.to_string());
        }
        self.lab.observer.comparison(&CompareProgress::Saved(&self.folder, &comparison));
        comparison
    }
}
