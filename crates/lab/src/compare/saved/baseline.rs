//! The runs of a saved baseline once more, on servers that answer now.

use std::path::Path;

use goodput_campaign::compare::CompareState;
use goodput_model::{Plan, Repeat};
use goodput_record::SeriesFolder;
use goodput_stats::{Summary, summarize_repeats};

use super::folders::{Lens, SideResults, SideRun};
use crate::campaign::{Next, Outcome, Planner, measure_until_done};
use crate::error::{Failed, folder_failed};
use crate::run::{Lab, RunContext, prepare_run};

/// The plan of a run of the baseline, for the server at this URL.
pub type Replan<'a> = dyn Fn(&Plan, &str) -> Result<Plan, Failed> + 'a;

/// How runs are measured again.
#[derive(Clone, Copy)]
pub(super) struct Again<'a> {
    pub(super) replan: &'a Replan<'a>,
    pub(super) lens: &'a Lens<'a>,
    /// Where they are kept.
    pub(super) out: &'a Path,
}

/// A server, and its place among the sides.
pub(super) struct Live<'a> {
    pub(super) side: usize,
    pub(super) name: &'a str,
    pub(super) url: &'a str,
}

/// What came of it: the runs of each server, and how it ended.
pub(super) struct Measured {
    pub(super) sides: Vec<SideResults>,
    pub(super) state: CompareState,
}

/// Runs the baseline's plans in their order, each on every server in turn, into folders below `out`:
/// what drifts meanwhile meets all of them.
pub(super) fn measure_baseline(
    lab: &Lab,
    baseline: &SideResults,
    servers: &[Live<'_>],
    again: &Again<'_>,
) -> Result<Measured, Failed> {
    let Again { replan, lens, out } = *again;
    if baseline.has_sweep {
        return Err(Failed::usage(
            "a sweep cannot be a baseline: its load levels depend on the server",
        )
        .hint("measure a baseline with `goodput run --repeat 8`, at one load"));
    }
    // All that can be refused without a request is refused before the first.
    for run in &baseline.runs {
        for server in servers {
            replan(&run.plan, server.url)?;
        }
    }
    let sides = servers.iter().map(|_| SideResults::default()).collect();
    let runs = &baseline.runs;
    let mut bench =
        BaselineBench { lab, replan, lens, servers, out, runs, sides, done: 0, all: None };
    let state = measure_until_done(&mut bench, &lab.interrupt)?;
    Ok(Measured { sides: bench.sides, state })
}

struct BaselineBench<'a> {
    lab: &'a Lab,
    replan: &'a Replan<'a>,
    lens: &'a Lens<'a>,
    servers: &'a [Live<'a>],
    out: &'a Path,
    /// Those of the baseline.
    runs: &'a [SideRun],
    /// What each server has measured of them.
    sides: Vec<SideResults>,
    /// Steps that are measured.
    done: usize,
    /// The folder of each server, once the first of them has answered.
    all: Option<Vec<SeriesFolder>>,
}

/// One run of the baseline on one server.
struct Turn<'a> {
    run: &'a SideRun,
    server: &'a Live<'a>,
    /// The server's place among those that are measured.
    place: usize,
    number: usize,
}

impl<'a> Planner for BaselineBench<'a> {
    type Step = Turn<'a>;
    type End = CompareState;

    fn next(&mut self) -> Next<Turn<'a>, CompareState> {
        let count = self.servers.len().max(1);
        let (index, place) = (self.done / count, self.done % count);
        match (self.runs.get(index), self.servers.get(place)) {
            (Some(run), Some(server)) => {
                Next::Measure(Turn { run, server, place, number: index + 1 })
            }
            _ => Next::Over(CompareState::Complete),
        }
    }

    fn measure(&mut self, turn: &Turn<'a>) -> Result<Outcome, Failed> {
        match self.measure_turn(turn) {
            Ok(()) => {
                self.done += 1;
                Ok(Outcome::Measured)
            }
            // Without a single run there is nothing to report but this.
            Err(failed) if self.all.is_none() || !failed.is_target_fault() => Err(failed),
            Err(failed) => {
                self.lab.observer.warn(failed.lines());
                Ok(Outcome::TargetGone)
            }
        }
    }

    fn end_on_interrupt(&self) -> CompareState {
        CompareState::Interrupted
    }

    fn end_on_lost_target(&self) -> CompareState {
        CompareState::TargetLost
    }
}

impl BaselineBench<'_> {
    fn measure_turn(&mut self, turn: &Turn<'_>) -> Result<(), Failed> {
        let Turn { run, server, place, number } = *turn;
        let plan = (self.replan)(&run.plan, server.url)?;
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let repeat = Repeat { number: count(number), of: count(self.runs.len()) };
        let (name, seed) = (server.name, plan.load.seed);
        self.lab.observer.note(format!("{name}: run {number} of {}, seed {seed}", repeat.of));
        let prepared = prepare_run(self.lab, plan)?;
        check_same_workload(run, &prepared.workload_hash())?;
        if self.lab.interrupt.is_interrupted() {
            return Ok(());
        }
        let path = self.server_folder(server)?.run_path(repeat.number);
        let label = format!("{name} {} of {} · ", repeat.number, repeat.of);
        let context = RunContext { repeat: Some(repeat), label, ..RunContext::default() };
        prepared.run(self.lab, &path, context)?;
        let read = SideRun::read(&path, self.lens)?;
        let Some(taken) = self.sides.get_mut(place) else { return Ok(()) };
        taken.runs.push(read);
        let summaries: Vec<Summary> = taken.runs.iter().map(|run| run.summary.clone()).collect();
        if let Err(error) =
            self.server_folder(server)?.write_summary(&summarize_repeats(&summaries))
        {
            self.lab.observer.warn(error.to_string());
        }
        Ok(())
    }

    /// A target that is not there leaves no folder behind.
    fn server_folder(&mut self, server: &Live<'_>) -> Result<&SeriesFolder, Failed> {
        if self.all.is_none() {
            let create = |server: &Live<'_>| {
                let path = self.out.join(format!("side-{}", server.side + 1));
                SeriesFolder::create(&path).map_err(|error| folder_failed(&error))
            };
            let all: Result<Vec<_>, Failed> = self.servers.iter().map(create).collect();
            self.all = Some(all?);
        }
        let place = self.servers.iter().position(|other| other.side == server.side);
        let folder = self.all.as_ref().zip(place).and_then(|(all, place)| all.get(place));
        folder.ok_or_else(|| Failed::internal("a server without a folder"))
    }
}

/// What is sent must be what was sent.
fn check_same_workload(run: &SideRun, found: &str) -> Result<(), Failed> {
    let was = &run.manifest.workload.hash;
    if was.is_empty() || was == found {
        return Ok(());
    }
    let path = run.path.display();
    let message = format!(
        "the plan of `{path}` no longer makes the same requests: their hash was {was} and is now {found}"
    );
    let made = &run.manifest.version;
    let hint =
        format!("goodput {made} measured that run; measure the baseline again with this version");
    Err(Failed::usage(message).hint(hint))
}
