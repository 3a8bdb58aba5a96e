//! The runs of a saved baseline once more, on servers that answer now.

use std::path::Path;

use goodput_campaign::compare::CompareState;
use goodput_model::{Plan, Repeat};
use goodput_record::SeriesFolder;
use goodput_stats::{Summary, repeats};

use super::folders::{Lens, Run, Taken};
use crate::args::CompareArgs;
use crate::error::Failed;
use crate::run::Setup;
use crate::{output, plan};
use goodput_lab::run::prepare;
use goodput_lab::{RunContext, folder_failed};

/// A server, and its place among the sides.
pub(super) struct Live<'a> {
    pub(super) side: usize,
    pub(super) name: &'a str,
    pub(super) url: &'a str,
}

/// What came of it: the runs of each server, and how it ended.
pub(super) struct Measured {
    pub(super) sides: Vec<Taken>,
    pub(super) state: CompareState,
}

/// Runs the baseline's plans in their order, each on every server in turn, into folders below `out`:
/// what drifts meanwhile meets all of them.
pub(super) fn measure(
    setup: &Setup,
    args: &CompareArgs,
    (baseline, lens): (&Taken, &Lens<'_>),
    servers: &[Live<'_>],
    out: &Path,
) -> Result<Measured, Failed> {
    if baseline.has_sweep {
        return Err(Failed::usage(
            "a sweep is no baseline: what it measures depends on the server",
        )
        .hint("measure one with `goodput run --repeat 8`, at one load"));
    }
    // All that can be refused without a request is refused before the first.
    for run in &baseline.runs {
        for server in servers {
            planned(run, server, args)?;
        }
    }
    let mut bench = Bench { setup, args, lens, servers, out, of: baseline.runs.len(), all: None };
    let mut measured = Measured {
        sides: servers.iter().map(|_| Taken::default()).collect(),
        state: CompareState::Complete,
    };
    for (index, run) in baseline.runs.iter().enumerate() {
        for (server, taken) in servers.iter().zip(&mut measured.sides) {
            match bench.measure(run, server, index + 1, taken) {
                Ok(()) => {}
                // Without a single run there is nothing to report but this.
                Err(failed) if bench.all.is_none() || !failed.is_of_target() => return Err(failed),
                Err(failed) => {
                    output::note(&format!("warning: {}", failed.lines()));
                    measured.state = CompareState::TargetLost;
                    return Ok(measured);
                }
            }
            if setup.interrupt.is_interrupted() {
                measured.state = CompareState::Interrupted;
                return Ok(measured);
            }
        }
    }
    Ok(measured)
}

struct Bench<'a> {
    setup: &'a Setup,
    args: &'a CompareArgs,
    lens: &'a Lens<'a>,
    servers: &'a [Live<'a>],
    out: &'a Path,
    /// Runs of the baseline.
    of: usize,
    /// The folder of each server, once the first of them has answered.
    all: Option<Vec<SeriesFolder>>,
}

impl Bench<'_> {
    /// One run of the baseline on one server.
    fn measure(
        &mut self,
        run: &Run,
        server: &Live<'_>,
        number: usize,
        taken: &mut Taken,
    ) -> Result<(), Failed> {
        let plan = planned(run, server, self.args)?;
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let repeat = Repeat { number: count(number), of: count(self.of) };
        if !self.setup.quiet {
            let name = goodput_report::plain(server.name);
            output::note(&format!("{name}: run {number} of {}, seed {}", self.of, plan.load.seed));
        }
        let prepared = prepare(self.setup, plan)?;
        same_workload(run, &prepared.workload_hash())?;
        if self.setup.interrupt.is_interrupted() {
            return Ok(());
        }
        let folder = self.folder(server)?;
        let path = folder.run(repeat.number);
        let label = format!("{} {} of {} · ", server.name, repeat.number, repeat.of);
        let place = RunContext { repeat: Some(repeat), label, ..RunContext::default() };
        prepared.run(self.setup, &path, place)?;
        taken.runs.push(Run::read(&path, self.lens)?);
        let summaries: Vec<Summary> = taken.runs.iter().map(|run| run.summary.clone()).collect();
        if let Err(error) = self.folder(server)?.write_summary(&repeats(&summaries)) {
            output::note(&format!("warning: {error}"));
        }
        Ok(())
    }

    /// A target that is not there leaves no folder behind.
    fn folder(&mut self, server: &Live<'_>) -> Result<&SeriesFolder, Failed> {
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

/// The plan of a run of the baseline, for this server.
fn planned(run: &Run, server: &Live<'_>, args: &CompareArgs) -> Result<Plan, Failed> {
    let mut plan = run.plan.clone();
    let endpoint = &args.endpoint;
    let target = &mut plan.target;
    server.url.clone_into(&mut target.url);
    if endpoint.model.is_some() {
        target.model.clone_from(&endpoint.model);
    }
    if let Some(name) = &endpoint.api_key_env {
        target.api_key_env.clone_from(name);
    }
    if endpoint.cacert.is_some() {
        target.cacert.clone_from(&endpoint.cacert);
    }
    target.insecure |= endpoint.insecure;
    target.probe &= !endpoint.no_probe;
    target.wait_ready = target.wait_ready.max(endpoint.wait_ready);
    plan.workload.save_text |= args.output.save_text;
    plan::complete_headers(&mut plan, endpoint)?;
    plan::check(&plan)?;
    Ok(plan)
}

/// What is sent must be what was sent.
fn same_workload(run: &Run, found: &str) -> Result<(), Failed> {
    let was = &run.manifest.workload.hash;
    if was.is_empty() || was == found {
        return Ok(());
    }
    let path = run.path.display();
    let message = format!(
        "the plan of `{path}` does not make the same requests any more: their hash was {was}, and is \
         {found}"
    );
    let made = &run.manifest.version;
    let hint = format!("goodput {made} measured it; measure the baseline again with this version");
    Err(Failed::usage(message).hint(hint))
}
