//! What happens around the load of a run and is no part of what is measured: a user's own commands,
//! the server's profiler, and traces, which are written once all is over.

mod hooks;
mod otlp;
mod profile;
mod spans;
mod traces;

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use goodput_campaign::sweep::Level;
use goodput_model::{Mode, Plan, Rate, Tracer};
use goodput_record::{Campaign, CampaignFolder, Manifest, RunFolder, SeriesFolder};

use crate::args::BesideArgs;
use crate::error::Failed;
use crate::output;
use crate::run::{Place, Setup};
use crate::sweep;
use goodput_lab::readiness::Ready;
use hooks::Told;
pub(crate) use traces::Destination;
use traces::{Sent, Wait};

/// What was asked to happen beside every run.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    traces: Option<Destination>,
    before: Option<String>,
    after: Option<String>,
    pub(crate) profile: bool,
    /// Whether it was said that nothing is traced.
    is_said: AtomicBool,
}

impl Beside {
    /// What was typed; what cannot be done is said before any load.
    pub(crate) fn of(args: &BesideArgs) -> Result<Self, Failed> {
        let traces = args.traces.as_deref().map(Destination::new).transpose()?;
        let (before, after) = (args.before_cmd.clone(), args.after_cmd.clone());
        Ok(Self { traces, before, after, profile: args.profile, is_said: AtomicBool::new(false) })
    }
}

/// Which requests of a run are traced. The manifest keeps what makes their ids this run's own.
pub(crate) fn tracer(plan: &Plan, manifest: &mut Manifest) -> Option<Tracer> {
    let share = plan.observe.trace_share?;
    // The system's randomness, and the time in case it has little.
    let nonce = RandomState::new().hash_one((manifest.clocks.unix_ns, std::process::id()));
    manifest.trace_nonce = Some(format!("{nonce:016x}"));
    Some(Tracer::new(plan.load.seed, nonce, share))
}

/// What happens beside one run.
pub(crate) struct Around<'a> {
    setup: &'a Setup,
    ready: &'a Ready,
    folder: &'a Path,
    told: Told,
}

impl<'a> Around<'a> {
    /// A run of this plan that is about to begin in `folder`.
    pub(crate) fn new(
        setup: &'a Setup,
        (plan, ready): (&Plan, &'a Ready),
        folder: &'a Path,
        place: &Place,
    ) -> Self {
        let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let mock = ready.mock.as_ref().map(|mock| format!("http://{}", mock.address()));
        let told = Told {
            folder: absolute.display().to_string(),
            target: mock.unwrap_or_else(|| ready.shown.clone()),
            label: label(plan, place),
        };
        Self { setup, ready, folder, told }
    }

    /// Before anything is looked at.
    pub(crate) fn before(&self) -> Result<(), Failed> {
        match &self.setup.beside.before {
            Some(command) => hooks::before(command, &self.told, &self.setup.signals),
            None => Ok(()),
        }
    }

    /// Right before the load.
    pub(crate) fn start(&self) -> Result<(), Failed> {
        if !self.setup.beside.profile {
            return Ok(());
        }
        self.or_after(profile::start(self.ready, &self.setup.signals))
    }

    /// Passes an outcome on. After a failure there is no load: what the first command did is undone.
    pub(crate) fn or_after<T>(&self, outcome: Result<T, Failed>) -> Result<T, Failed> {
        if outcome.is_err() {
            self.after();
        }
        outcome
    }

    /// Right after the last answer, however the load went.
    pub(crate) fn end(&self) {
        if self.setup.beside.profile {
            profile::stop(self.ready, (&self.setup.signals, self.setup.quiet));
        }
        self.after();
    }

    fn after(&self) {
        if let Some(command) = &self.setup.beside.after {
            hooks::after(command, &self.told, &self.setup.signals);
        }
    }

    /// Once the record is closed. A collector that fails costs no result.
    pub(crate) fn export(&self) {
        let Some(to) = &self.setup.beside.traces else { return };
        let wait = match to {
            // Where a pipe has no reader, the second signal leaves.
            Destination::File(_) => Wait::patiently(),
            Destination::Collector(_) => Wait::briefly(&self.setup.signals),
        };
        match traces::export(self.folder, to, &wait) {
            Ok(Some(sent)) => {
                sent.say(to, self.setup.quiet);
                if let Some(failed) = sent.cut {
                    let again = format!("goodput report {} --traces …", self.told.folder);
                    let again = goodput_report::plain(&again);
                    output::note(&format!(
                        "warning: traces: {failed}; `{again}` sends all of them, with the same ids"
                    ));
                }
            }
            // Of many runs it is true of all.
            Ok(None) if self.setup.beside.is_said.swap(true, Ordering::Relaxed) => {}
            Ok(None) => output::note(&format!("warning: traces: {UNTRACED}")),
            Err(error) => {
                let error = goodput_report::plain(&error.to_string());
                output::note(&format!("warning: traces: {error}"));
            }
        }
    }
}

/// Why there are no spans.
const UNTRACED: &str = "no request was traced: the plan was made without --trace-share or --traces";

/// Writes the traces of a saved run, or of every run of a folder of several.
pub(crate) fn export_saved(folder: &Path, to: &str) -> Result<(), Failed> {
    let to = Destination::new(to)?;
    let runs = runs(folder);
    if runs.is_empty() {
        return Err(Failed::usage(format!("there is no run in `{}`", folder.display()))
            .hint("--traces goes with the folder of a run, or of a verb that measured some"));
    }
    let mut all: Option<Sent> = None;
    for run in runs {
        let sent = traces::export(&run, &to, &Wait::patiently())
            .map_err(|error| Failed::usage(error.to_string()))?;
        let Some(sent) = sent else { continue };
        let all = all.get_or_insert_default();
        all.add(sent);
        if let Some(failed) = all.cut.take() {
            all.say(&to, false);
            return Err(failed);
        }
    }
    let all = all.ok_or_else(|| {
        Failed::usage(UNTRACED).hint("measure again with --traces or --trace-share")
    })?;
    all.say(&to, false);
    Ok(())
}

/// The runs of a folder, whichever verb wrote it, in their order. What was set aside and what only
/// warmed up is not among them.
fn runs(folder: &Path) -> Vec<PathBuf> {
    if RunFolder::open(folder).is_ok() {
        return vec![folder.to_owned()];
    }
    let below: Vec<PathBuf> = if let Some(series) = SeriesFolder::open(folder) {
        series.numbers().into_iter().map(|number| series.run(number)).collect()
    } else {
        let kinds = [Campaign::Comparison, Campaign::Sweep];
        let campaign = kinds.into_iter().find_map(|kind| CampaignFolder::open(kind, folder));
        let parts = campaign.into_iter().flat_map(|all| [all.points(), all.configurations()]);
        parts.flatten().map(|(_, path)| path).collect()
    };
    below.iter().flat_map(|path| runs(path)).collect()
}

/// Which of several runs it is; of one alone, its load.
fn label(plan: &Plan, place: &Place) -> String {
    let among_others = place.label.split(" · ").next().unwrap_or_default();
    if !among_others.is_empty() {
        return among_others.to_owned();
    }
    match &plan.load.mode {
        Mode::Open { rate: Rate::PerSecond(rate), .. } => sweep::said(Level::Rate(*rate)),
        Mode::Closed { concurrency, .. } => sweep::said(Level::Users(*concurrency)),
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
        let found: Vec<_> = folders.iter().flat_map(|name| runs(&root.path().join(name))).collect();
        assert_eq!(found, all.map(|name| root.path().join(name)));
        assert!(runs(root.path()).is_empty());
    }
}
