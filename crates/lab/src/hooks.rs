//! Actions around the load of a run that are not measured: a user's own commands,
//! the server's profiler, and traces, which are written once all is over.

mod commands;
mod otlp;
mod profile;
mod spans;
mod traces;

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use goodput_campaign::sweep::Level;
use goodput_model::{Mode, Plan, Rate, Tracer};
use goodput_record::{Artifact, Manifest};

use crate::error::Failed;
use crate::events::Observer;
use crate::interrupt::Interrupt;
use crate::readiness::Ready;
use commands::RunNames;
pub use traces::Destination;
use traces::{SpanDelivery, Wait};

/// What was asked to happen around every run.
#[derive(Debug, Default)]
pub struct Hooks {
    traces: Option<Destination>,
    before: Option<String>,
    after: Option<String>,
    /// Whether the server profiles itself.
    pub profile: bool,
    /// Whether it was said that nothing is traced.
    is_said: AtomicBool,
}

impl Hooks {
    /// Commands before and after the load, the server's profiler, and where traces go: what cannot be
    /// done is an error before any load.
    pub fn new(
        before: Option<String>,
        after: Option<String>,
        profile: bool,
        traces: Option<&str>,
    ) -> Result<Self, Failed> {
        let traces = traces.map(Destination::new).transpose()?;
        Ok(Self { traces, before, after, profile, is_said: AtomicBool::new(false) })
    }
}

/// Which requests of a run are traced. The manifest keeps what makes their ids this run's own.
pub(crate) fn new_tracer(plan: &Plan, manifest: &mut Manifest) -> Option<Tracer> {
    let share = plan.observe.trace_share?;
    // The system's randomness, and the time in case it has little.
    let nonce = RandomState::new().hash_one((manifest.clocks.unix_ns, std::process::id()));
    manifest.trace_nonce = Some(format!("{nonce:016x}"));
    Some(Tracer::new(plan.load.seed, nonce, share))
}

/// The run that hooks are for.
#[derive(Clone, Copy)]
pub(crate) struct HookedRun<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) ready: &'a Ready,
    pub(crate) folder: &'a Path,
    /// What it is called among others.
    pub(crate) label: &'a str,
}

/// What happens around one run.
pub(crate) struct RunHooks<'a> {
    hooks: &'a Hooks,
    observer: &'a dyn Observer,
    interrupt: &'a Interrupt,
    run: HookedRun<'a>,
    names: RunNames,
}

impl<'a> RunHooks<'a> {
    /// A run that is about to begin.
    pub(crate) fn new(
        hooks: &'a Hooks,
        observer: &'a dyn Observer,
        interrupt: &'a Interrupt,
        run: HookedRun<'a>,
    ) -> Self {
        let absolute = std::path::absolute(run.folder).unwrap_or_else(|_| run.folder.to_owned());
        let mock = run.ready.mock.as_ref().map(|mock| format!("http://{}", mock.address()));
        let names = RunNames {
            folder: absolute.display().to_string(),
            target: mock.unwrap_or_else(|| run.ready.shown.clone()),
            label: run_label(run.plan, run.label),
        };
        Self { hooks, observer, interrupt, run, names }
    }

    /// Before anything is looked at.
    pub(crate) fn run_before_command(&self) -> Result<(), Failed> {
        match &self.hooks.before {
            Some(command) => {
                commands::run_before_command(command, &self.names, self.observer, self.interrupt)
            }
            None => Ok(()),
        }
    }

    /// Right before the load.
    pub(crate) fn start_profiler(&self) -> Result<(), Failed> {
        if !self.hooks.profile {
            return Ok(());
        }
        self.undo_on_failure(profile::start_profile(self.run.ready, self.interrupt))
    }

    /// Passes an outcome on. After a failure no load is sent, and what the first command did is
    /// undone.
    pub(crate) fn undo_on_failure<T>(&self, outcome: Result<T, Failed>) -> Result<T, Failed> {
        if outcome.is_err() {
            self.run_after_command();
        }
        outcome
    }

    /// Right after the last answer, however the load went.
    pub(crate) fn stop_profiler(&self) {
        if self.hooks.profile {
            profile::stop_profile(self.run.ready, self.observer, self.interrupt);
        }
        self.run_after_command();
    }

    fn run_after_command(&self) {
        if let Some(command) = &self.hooks.after {
            commands::run_after_command(command, &self.names, self.observer, self.interrupt);
        }
    }

    /// Once the record is closed. A collector that fails costs no result.
    pub(crate) fn export_traces(&self) {
        let Some(to) = &self.hooks.traces else { return };
        let wait = match to {
            // Where a pipe has no reader, the second signal leaves.
            Destination::File(_) => Wait::unhurried(),
            Destination::Collector(_) => Wait::after_run(self.interrupt),
        };
        match traces::export_spans(self.run.folder, to, &wait) {
            Ok(Some(sent)) => {
                sent.note_delivery(to, self.observer);
                if let Some(failed) = sent.cut {
                    let again = format!("goodput report {} --traces …", self.names.folder);
                    self.observer.warn(format!(
                        "traces: {failed}; `{again}` sends all of them again, with the same ids"
                    ));
                }
            }
            // Of many runs it is true of all.
            Ok(None) if self.hooks.is_said.swap(true, Ordering::Relaxed) => {}
            Ok(None) => self.observer.warn(format!("traces: {UNTRACED}")),
            Err(error) => self.observer.warn(format!("traces: {error}")),
        }
    }
}

/// Why spans are missing.
const UNTRACED: &str = "no request was traced: the run had neither --trace-share nor --traces";

/// Writes the traces of a saved run, or of every run of a folder of several.
pub fn export_saved(folder: &Path, to: &str, observer: &dyn Observer) -> Result<(), Failed> {
    let to = Destination::new(to)?;
    let runs = run_folders(folder);
    if runs.is_empty() {
        return Err(Failed::usage(format!("`{}` contains no run", folder.display()))
            .hint("--traces needs a run folder, or a result with runs in it"));
    }
    let mut all: Option<SpanDelivery> = None;
    for run in runs {
        let sent = traces::export_spans(&run, &to, &Wait::unhurried())
            .map_err(|error| Failed::usage(error.to_string()))?;
        let Some(sent) = sent else { continue };
        let all = all.get_or_insert_default();
        all.add(sent);
        if let Some(failed) = all.cut.take() {
            all.note_delivery(&to, observer);
            return Err(failed);
        }
    }
    let all = all.ok_or_else(|| {
        Failed::usage(UNTRACED).hint("measure again with --traces or --trace-share")
    })?;
    all.note_delivery(&to, observer);
    Ok(())
}

/// The runs of a folder, whichever verb wrote it, in their order. What was set aside and what only
/// warmed up is not among them.
fn run_folders(path: &Path) -> Vec<PathBuf> {
    match Artifact::open(path) {
        Ok(Artifact::Run(folder) | Artifact::Shard(folder)) => vec![folder.path().to_owned()],
        Ok(several) => several.part_folders().iter().flat_map(|path| run_folders(path)).collect(),
        Err(_) => Vec::new(),
    }
}

/// Which of several runs it is; of one alone, its load.
fn run_label(plan: &Plan, label: &str) -> String {
    let among_others = label.split(" · ").next().unwrap_or_default();
    if !among_others.is_empty() {
        return among_others.to_owned();
    }
    match &plan.load.mode {
        Mode::Open { rate: Rate::PerSecond(rate), .. } => Level::Rate(*rate).to_string(),
        Mode::Closed { concurrency, .. } => Level::Users(*concurrency).to_string(),
        _ => "run".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_in_the_folders_of_all_verbs() {
        let root = tempfile::tempdir().unwrap();
        let run = |name: &str| {
            let path = root.path().join(name);
            std::fs::create_dir_all(&path).unwrap();
            for file in ["plan.toml", "manifest.json", "requests.log"] {
                std::fs::write(path.join(file), "").unwrap();
            }
        };
        let all = [
            "one",
            "many/repeat-2",
            "many/repeat-10",
            "sweep/points/001-users-2",
            "sweeps/configurations/01-a/points/001-users-2",
            "compare/points/001-b01-A",
            "search/points/001-b01-A/points/001-rate-1",
        ];
        all.into_iter().for_each(run);
        run("sweep/points/002-users-4.unfinished-1");
        run("compare/warm-up/001-A");
        for file in [
            "sweep/sweep.toml",
            "sweeps/sweep.toml",
            "sweeps/configurations/01-a/sweep.toml",
            "compare/compare.toml",
            "search/compare.toml",
            "search/points/001-b01-A/sweep.toml",
        ] {
            std::fs::write(root.path().join(file), "").unwrap();
        }
        let folders = ["one", "many", "sweep", "sweeps", "compare", "search"];
        let found: Vec<_> =
            folders.iter().flat_map(|name| run_folders(&root.path().join(name))).collect();
        assert_eq!(found, all.map(|name| root.path().join(name)));
        assert!(run_folders(root.path()).is_empty());
    }
}
