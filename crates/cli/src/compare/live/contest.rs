//! A comparison that goes on: the next runs, and again, until everything is known.

use goodput_campaign::compare::{
    Ask, Beside, Cell, CompareFacts, CompareState, Comparison, Design, Floor, Quantity, Side, Step,
    Stopped, blocks, estimate, floor as floor_of,
};
use goodput_campaign::sweep::{Figures, Level};
use goodput_clock::{now, pause};
use goodput_model::{Nanos, Verdict};
use goodput_record::CampaignFolder;
use goodput_stats::Summary;

use super::asked::Asked;
use super::round::{Ran, WARM_UP_USERS};
use super::saved::{self, Kept};
use super::sides::Contender;
use super::switch::Switch;
use crate::error::Failed;
use crate::run::Setup;
use crate::sweep::{ABSENCE, EMPTYING, unwritable};
use crate::{output, report};
use goodput_lab::campaign::{Next, Outcome, Planner, carry_out};
use goodput_lab::compare::floor;
use goodput_lab::emptying::{By, wait_empty};
use goodput_lab::host;

/// What a quick search takes, about, before one has been seen.
const SEARCH_S: f64 = 180.0;

/// Blocks that a noise floor takes.
const FEWEST: u32 = 3;

/// What a run takes around its load: connections, answers, numbers.
const AROUND_S: f64 = 1.0;

/// A comparison that goes on.
pub(super) struct Contest<'a> {
    pub(super) setup: &'a Setup,
    pub(super) asked: Asked,
    pub(super) folder: CampaignFolder,
    pub(super) sides: Vec<Contender>,
    pub(super) switch: Option<Switch>,
    cells: Vec<Cell>,
    /// Runs that sent something and do not count.
    lost: Vec<Ask>,
    facts: CompareFacts,
    /// Who it was before it went on.
    earlier: Vec<Side>,
    floor: Option<Floor>,
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

impl Planner for Contest<'_> {
    /// One run, or those of all sides at once.
    type Step = Vec<Ask>;
    type End = End;

    fn next(&mut self) -> Next<Vec<Ask>, End> {
        match self.following() {
            Step::Measure(asks) => Next::Measure(asks),
            Step::Done(stopped) => Next::Over((CompareState::Complete, Some(stopped))),
        }
    }

    fn measure(&mut self, asks: &Vec<Ask>) -> Result<Outcome, Failed> {
        let outcomes = match self.get_ready(asks) {
            // After a warm-up that was stopped nothing more is sent.
            Ok(()) if self.setup.interrupt.is_interrupted() => Vec::new(),
            Ok(()) => self.measure_sides(asks),
            Err((side, failed)) => vec![(side, Err(failed))],
        };
        if self.setup.interrupt.is_interrupted() {
            return Ok(Outcome::CutShort);
        }
        self.gone.clear();
        let mut done = Vec::new();
        for (side, outcome) in outcomes {
            match outcome {
                Ok(ran) if ran.is_gone => self.gone.push(side),
                Ok(ran) => done.push(ran),
                Err(failed) if failed.is_of_target() => {
                    self.say(&format!("warning: {}", failed.lines()));
                    self.gone.push(side);
                }
                Err(failed) => return Err(failed),
            }
        }
        if self.gone.is_empty() {
            done.into_iter().try_for_each(|ran| self.keep(ran))?;
            self.steps = self.steps.saturating_add(1);
            return Ok(Outcome::Measured);
        }
        self.lose(asks);
        Ok(Outcome::TargetGone)
    }

    fn is_back(&mut self, _: &Vec<Ask>) -> bool {
        let gone = std::mem::take(&mut self.gone);
        let count = u32::try_from(gone.len()).unwrap_or(u32::MAX);
        let is_back = gone.into_iter().all(|side| self.is_side_back(side));
        let is_again = is_back && !self.setup.interrupt.is_interrupted();
        if is_again {
            self.facts.repeats = self.facts.repeats.saturating_add(count);
        }
        is_again
    }

    fn settle(&mut self, asks: &Vec<Ask>) {
        self.rest(asks);
        self.end_block(asks);
    }

    fn interrupted(&self) -> End {
        (CompareState::Interrupted, None)
    }

    fn target_lost(&self) -> End {
        (CompareState::TargetLost, None)
    }
}

/// What a run takes, about, without its answers.
pub(super) fn each_s(design: &Design) -> f64 {
    match design.quantity {
        Quantity::Goodput => SEARCH_S,
        Quantity::Runs => design.burn_in_s + design.run_s + design.settle_s + AROUND_S,
    }
}

impl<'a> Contest<'a> {
    pub(super) fn new(
        setup: &'a Setup,
        asked: Asked,
        folder: CampaignFolder,
        Kept { cells, lost, took_s }: Kept,
    ) -> Self {
        let facts = CompareFacts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: host::timestamp(),
            state: CompareState::Unfinished,
            workload: goodput_workload::describe(&asked.plan.workload),
            slo: asked.slo(),
            ..CompareFacts::default()
        };
        Self {
            setup,
            asked,
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
    pub(super) fn on(self, sides: Vec<Contender>, switch: Option<Switch>) -> Self {
        Self { sides, switch, ..self }
    }

    /// Measures, and says what came of it.
    pub(super) fn run(
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
        self.say_who();
        let (state, stopped) = self.measure_all()?;
        (self.facts.state, self.facts.stopped) = (state, stopped);
        let is_new = self.asked.design.same_target && self.floor.is_none();
        if state == CompareState::Complete && is_new {
            self.keep_floor();
        }
        let comparison = self.write(true);
        report::keep_comparison(self.folder.path(), &comparison);
        Ok(comparison)
    }

    fn who(&self) -> Vec<Side> {
        if self.sides.is_empty() {
            return self.earlier.clone();
        }
        self.sides.iter().map(Contender::side).collect()
    }

    fn following(&self) -> Step {
        saved::following(&self.asked.design, &self.cells, &self.lost)
    }

    /// Seconds to the next look, and to the end at most.
    fn left(&self) -> (f64, f64) {
        let cells = saved::with_lost(&self.cells, &self.lost);
        estimate(&self.asked.design, &cells, self.each_s())
    }

    fn say(&self, line: &str) {
        if !self.setup.quiet {
            output::note(line);
        }
    }

    fn say_who(&self) {
        let path = goodput_report::plain(&self.folder.path().display().to_string());
        let done = self.cells.len();
        match done {
            0 => self.say(&format!("comparison into {path}")),
            _ => self.say(&format!("going on with {path}: {done} runs are there")),
        }
        for Side { name, target, model, .. } in self.who() {
            self.say(&goodput_report::plain(&format!("  {name}: {target} ({model})")));
        }
        if !self.facts.slo.is_empty() {
            self.say(&goodput_report::plain(&format!("  SLO: {}", self.facts.slo)));
        }
    }

    /// Run after run.
    fn measure_all(&mut self) -> Result<End, Failed> {
        if let Step::Done(stopped) = self.following() {
            self.say("this comparison has ended: nothing more is measured; more takes a new one");
            return Ok((CompareState::Complete, Some(stopped)));
        }
        if let Some(state) = self.warm_all()? {
            return Ok((state, None));
        }
        self.say_what_it_takes();
        let (comparison, left_s) = (self.write(false), self.left().0);
        if let Some(screen) = self.setup.progress().screen().filter(|_| !self.is_search()) {
            screen.compare(&comparison, left_s);
        }
        let interrupt = self.setup.interrupt.clone();
        carry_out(self, &interrupt)
    }

    /// Warms every side up before the first block, and settles how much load there shall be. How it
    /// ended, if it did.
    fn warm_all(&mut self) -> Result<Option<CompareState>, Failed> {
        let is_settled = !self.asked.design.levels.is_empty() || self.is_search();
        let mut places = 0..self.sides.len();
        // Where engines take turns each is warmed up whenever its turn comes.
        if self.is_search() || (self.switch.is_some() && is_settled) {
            places = 0..0;
        } else if self.switch.is_some() {
            places = 0..1;
        }
        for place in places {
            if self.setup.interrupt.is_interrupted() {
                return Ok(Some(CompareState::Interrupted));
            }
            // A target and itself are one.
            let is_needed = place == 0 || !self.asked.design.same_target;
            let summary = if is_needed { self.make_ready(place)? } else { None };
            let is_stopped = self.setup.interrupt.is_interrupted();
            if let Some(summary) = summary.filter(|_| place == 0 && !is_settled && !is_stopped) {
                self.choose_level(&summary)?;
            }
        }
        let is_stopped = self.setup.interrupt.is_interrupted();
        Ok(is_stopped.then_some(CompareState::Interrupted))
    }

    pub(super) fn is_search(&self) -> bool {
        self.asked.design.quantity == Quantity::Goodput
    }

    /// Half of what the reference carried.
    fn choose_level(&mut self, warm: &Summary) -> Result<(), Failed> {
        let carried = Figures::of(warm).requests_per_s.filter(|rate| *rate > 0.0);
        let rate = carried.and_then(|rate| format!("{:.1e}", rate / 2.0).parse::<f64>().ok());
        let rate = rate.filter(|rate| rate.is_finite() && *rate > 0.0).ok_or_else(|| {
            Failed::target("the warm-up does not tell how much the reference carries")
                .hint("--rate or --concurrency says how much load there shall be")
        })?;
        self.asked.design.levels = vec![Level::Rate(rate)];
        self.say(&format!(
            "load: {rate}/s, half of the {:.3}/s that the reference carried with {WARM_UP_USERS} \
             users; --rate or --concurrency names another",
            carried.unwrap_or_default()
        ));
        self.folder.write_asked(&self.asked.written()).map_err(unwritable)
    }

    fn say_what_it_takes(&mut self) {
        let takes = self.left();
        self.say(&goodput_report::compare_before(&self.asked.design, takes.0, takes.1));
        let so_far = self.took();
        self.facts.estimated_s.get_or_insert(takes.1 + so_far);
    }

    /// What a run takes, with everything around it.
    fn each_s(&self) -> f64 {
        let design = &self.asked.design;
        if self.steps > 0 {
            return (now() - self.began).as_secs() / f64::from(self.steps);
        }
        each_s(design) + self.drain_s
    }

    fn took(&self) -> f64 {
        self.took_s + (now() - self.began).as_secs()
    }

    /// Adds a run that is whole.
    fn keep(&mut self, ran: Ran) -> Result<(), Failed> {
        let Ask { number, block, .. } = ran.cell.ask;
        self.folder.end(number, ran.took.as_secs()).map_err(unwritable)?;
        if ran.cell.verdict == Verdict::Void {
            let why = ran.why_void.map_or_else(String::new, |why| format!(": {why}"));
            let line = format!("block {block} does not count: run {number} is void{why}");
            self.say(&goodput_report::plain(&line));
        }
        self.cells.push(ran.cell);
        Ok(())
    }

    /// Runs that are not to be kept: those that sent something are lost.
    fn lose(&mut self, asks: &[Ask]) {
        if self.is_search() {
            return;
        }
        let there = self.folder.points();
        let is_there = |ask: &&Ask| there.iter().any(|point| point.0 == ask.number);
        self.lost.extend(asks.iter().filter(is_there));
    }

    /// Makes the sides of these runs ready; or which one is not, and why.
    fn get_ready(&mut self, asks: &[Ask]) -> Result<(), (u32, Failed)> {
        for ask in asks {
            let begun = self.folder.begin(ask.number, ask).map_err(unwritable);
            let ready = begun.and_then(|()| self.make_ready(ask.side as usize));
            ready.map_err(|failed| (ask.side, failed))?;
        }
        Ok(())
    }

    /// Whether a side answers again before long.
    fn is_side_back(&mut self, place: u32) -> bool {
        let Some(side) = self.sides.get(place as usize) else { return false };
        // The engine inside the process does not go away, and its successor would be another. Where
        // engines take turns, the next turn starts it.
        if side.ready.mock.is_some() || self.switch.is_some() {
            return true;
        }
        let name = goodput_report::plain(&side.asked.name);
        self.say(&format!(
            "{name} went away in mid-run: waiting for it, for {} s at most",
            ABSENCE.as_secs()
        ));
        match self.arrive(place as usize, ABSENCE) {
            Ok(()) => true,
            Err(failed) => {
                self.say(&format!("warning: {failed}"));
                false
            }
        }
    }

    /// Lets the servers come to rest.
    fn rest(&self, asks: &[Ask]) {
        pause(Nanos::from_secs_f64(self.asked.design.settle_s.clamp(0.0, 3600.0)));
        for side in asks.iter().filter_map(|ask| self.sides.get(ask.side as usize)) {
            let emptied = wait_empty(&side.plan, &side.ready, EMPTYING, &|| {
                self.setup.interrupt.is_interrupted()
            });
            if let By::Unknown(why) = emptied.by
                && side.plan.target.probe
            {
                let (name, seconds) = (&side.asked.name, emptied.after_s);
                let line = format!(
                    "warning: nobody knows whether {name} is empty after {seconds:.0} s: {why}"
                );
                self.say(&goodput_report::plain(&line));
            }
        }
    }

    /// After the last run of a block: writes what is known, and says it.
    fn end_block(&mut self, asks: &[Ask]) {
        let Some(block) = asks.first().map(|ask| ask.block) else { return };
        let design = &self.asked.design;
        let runs = design.sides.len() * design.levels.len().max(1);
        if self.cells.iter().filter(|cell| cell.ask.block == block).count() < runs {
            return;
        }
        let (comparison, left_s) = (self.write(false), self.left().0);
        match self.setup.progress().screen().filter(|_| !self.is_search()) {
            Some(screen) => screen.compare(&comparison, left_s),
            None => self.say(&goodput_report::compare_step(&comparison, left_s)),
        }
    }

    /// Blocks of which every run is there, and none is void.
    fn blocks(&self) -> u32 {
        blocks(&self.asked.design, &self.cells)
    }

    /// Writes the numbers so far. A full disk must not end a comparison.
    fn write(&mut self, is_last: bool) -> Comparison {
        self.facts.took_s = self.took();
        self.facts.blocks = self.blocks();
        let design = &self.asked.design;
        // Every log is read for it.
        let proof = if is_last { saved::prove(&self.folder, design, &self.cells) } else { None };
        let beside = Beside { proof, floor: self.floor.clone(), insists: self.asked.anyway };
        let (facts, cells) = (self.facts.clone(), self.cells.clone());
        let comparison = Comparison::paired(facts, design.clone(), self.who(), cells, beside);
        let page = goodput_report::compare_text(&comparison, goodput_report::Detail::Full);
        for outcome in [self.folder.write_summary(&comparison), self.folder.write_report(&page)] {
            if let Err(error) = outcome {
                output::note(&format!("warning: {error}"));
            }
        }
        comparison
    }

    /// Runs of blocks that count, and that are suspect.
    fn suspect_runs(&self) -> u32 {
        let spoilt = |block: u32| {
            let mut own = self.cells.iter().filter(|cell| cell.ask.block == block);
            own.any(|cell| cell.verdict == Verdict::Void)
        };
        let is_it = |cell: &&Cell| cell.verdict == Verdict::Suspect && !spoilt(cell.ask.block);
        u32::try_from(self.cells.iter().filter(is_it).count()).unwrap_or(u32::MAX)
    }

    /// What a server compared with itself says about this rig.
    fn keep_floor(&mut self) {
        let design = &self.asked.design;
        let sd = floor_of(design, &self.cells);
        let is_known = self.blocks() >= FEWEST && !sd.is_empty();
        let Some(reference) = self.who().into_iter().next().filter(|_| is_known) else {
            return self.say("too few blocks count: the noise floor of this rig is not known");
        };
        let found = Floor {
            schema: Floor::SCHEMA.to_owned(),
            date: host::timestamp(),
            machine: goodput_lab::calibrate::machine(),
            target: reference.target,
            model: reference.model,
            load: floor::loads(&design.levels),
            workload: self.facts.workload.clone(),
            blocks: self.blocks(),
            run_s: design.run_s,
            suspect_runs: self.suspect_runs(),
            sd,
        };
        let kept = floor::place(&found).and_then(|path| {
            report::replace(&path, report::json(&found).as_bytes())?;
            Ok(path)
        });
        match kept {
            Ok(path) => {
                self.say(&goodput_report::compare_floor(&found));
                let path = goodput_report::plain(&path.display().to_string());
                self.say(&format!(
                    "kept for later comparisons of this target in {path}; who deletes the file \
                     forgets it"
                ));
            }
            Err(failed) => output::note(&format!("warning: {failed}")),
        }
        self.floor = Some(found);
    }
}
