//! Sweeps of several configurations: a value of the plan that varies, a server that is started anew
//! with each setting, or both.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use goodput_campaign::curve::best;
use goodput_campaign::sweep::{ColdStart, Configuration, SweepState, SweepSummary, Sweeps};
use goodput_files::{MOST_SMALL, check_inside, read_inside, read_text_inside};
use goodput_model::Verdict;
use goodput_record::{Campaign, CampaignFolder, vary};

use super::asked::{Asked, Serve};
use super::{code as code_of, one, saved};
use crate::error::{Failed, exit};
use crate::run::Setup;
use crate::serve::{self, Command, Server};
use crate::{output, plan};
use goodput_lab::campaign::{Next, Outcome, Planner, carry_out};
use goodput_lab::folder_failed;
use goodput_lab::run::prepare;

/// The values of one configuration, in the order given.
type Values = Vec<(String, String)>;

/// How long a server has to end by itself.
const GRACE: Duration = Duration::from_secs(10);

/// For one whose limit cannot be read.
const LONGEST_START: Duration = Duration::from_mins(10);

/// What a server of ours says.
const LOG: &str = "server.log";

/// How it started, and why there is no sweep, kept for a report that is made anew.
const START: &str = "start.json";
const FAILED: &str = "failed.txt";

/// What cannot be asked for is found before anything is measured.
pub(super) fn check(asked: &Asked) -> Result<(), Failed> {
    for values in &configurations(asked)? {
        let (own, filled) = own(asked, values)?;
        if let Some(serve) = &asked.serve {
            command(serve, &filled, &serve::Place::of(&own.plan)?)?;
        }
    }
    Ok(())
}

fn command(serve: &Serve, filled: &Values, place: &serve::Place) -> Result<Command, Failed> {
    Command::read(&serve.command, &filled.iter().cloned().collect(), &place.offered())
}

/// Sweeps each configuration that is not done yet.
pub(super) fn sweep(
    setup: &Setup,
    asked: &Asked,
    folder: &CampaignFolder,
) -> Result<Sweeps, Failed> {
    let all = configurations(asked)?;
    let mut settings = Settings { setup, asked, folder, all, done: Vec::new() };
    carry_out(&mut settings, &setup.interrupt)?;
    settings.take_done();
    // One that could never begin is an error like any other.
    match settings.done.as_slice() {
        [Configuration { failed: Some(why), sweep: None, .. }] => Err(Failed::target(why.clone())),
        _ => Ok(together(settings.done)),
    }
}

/// Configurations, one after the other.
struct Settings<'a> {
    setup: &'a Setup,
    asked: &'a Asked,
    folder: &'a CampaignFolder,
    all: Vec<Values>,
    done: Vec<Configuration>,
}

impl Settings<'_> {
    /// The number, the values and the folder of the next configuration.
    fn following(&self) -> Option<(u32, Values, PathBuf)> {
        let values = self.all.get(self.done.len())?.clone();
        let number = u32::try_from(self.done.len()).unwrap_or(u32::MAX).saturating_add(1);
        let path = self.folder.configuration(number, &values);
        Some((number, values, path))
    }

    /// Takes over what was measured before, up to the first configuration that is not done.
    fn take_done(&mut self) {
        while let Some((_, values, path)) = self.following() {
            let configuration = read_one(&path, &values);
            if !is_done(&configuration) {
                return;
            }
            self.keep(configuration);
        }
    }

    fn keep(&mut self, configuration: Configuration) {
        self.done.push(configuration);
        write(self.folder, &together(self.done.clone()));
    }
}

impl Planner for Settings<'_> {
    type Step = (u32, Values, PathBuf);
    type End = ();

    fn next(&mut self) -> Next<Self::Step, ()> {
        self.take_done();
        self.following().map_or(Next::Over(()), Next::Measure)
    }

    fn measure(&mut self, (number, values, path): &Self::Step) -> Result<Outcome, Failed> {
        let (shown, of) = (said(values), self.all.len());
        if !self.setup.quiet {
            let shown = goodput_report::plain(&shown);
            output::note(&format!("\nconfiguration {number} of {of}: {shown}"));
        }
        let _ = std::fs::remove_file(path.join(FAILED));
        if let Err(failed) = measure(self.setup, self.asked, values, path) {
            let why = failed.lines();
            output::note(&format!("warning: {why}"));
            keep(&path.join(FAILED), why.as_bytes());
        }
        self.keep(read_one(path, values));
        Ok(Outcome::Measured)
    }

    fn interrupted(&self) {}

    fn target_lost(&self) {}
}

/// Whether every configuration is done: then nothing is started any more.
pub(super) fn is_over(asked: &Asked, folder: &CampaignFolder) -> Result<bool, Failed> {
    let all = configurations(asked)?;
    let is_done = |(number, values): (u32, &Values)| {
        is_done(&read_one(&folder.configuration(number, values), values))
    };
    Ok((1..).zip(&all).all(is_done))
}

/// Sweeps that are there already.
pub(super) fn read(folder: &CampaignFolder, asked: &Asked) -> Result<Sweeps, Failed> {
    let all = configurations(asked)?;
    let paths =
        (1..).zip(&all).map(|(number, values)| (folder.configuration(number, values), values));
    let begun = paths.filter(|(path, _)| path.is_dir());
    Ok(together(begun.map(|(path, values)| read_one(&path, values)).collect()))
}

/// The exit code: of the best one, unless the user stopped, or there is none.
pub(super) fn code(sweeps: &Sweeps) -> u8 {
    let all = || sweeps.configurations.iter();
    let best = sweeps.best.and_then(|place| sweeps.configurations.get(place));
    let is_stopped = |one: &Configuration| {
        one.sweep.as_ref().is_some_and(|sweep| sweep.sweep.state == SweepState::Interrupted)
    };
    if all().any(is_stopped) {
        return exit::INTERRUPTED;
    }
    match best.and_then(|best| best.sweep.as_ref()) {
        Some(sweep) => code_of(sweep),
        None if all().all(|one| one.failed.is_some()) => exit::TARGET,
        // The mildest: one that reaches its end says that the others could have.
        None => all().filter_map(|one| one.sweep.as_ref()).map(code_of).min().unwrap_or(exit::VOID),
    }
}

/// Every configuration in order; a server without anything that varies is one.
fn configurations(asked: &Asked) -> Result<Vec<Values>, Failed> {
    let varied = asked.variations()?;
    vary::configurations(&varied).map_err(|error| Failed::usage(error.to_string()))
}

fn said(values: &Values) -> String {
    let pairs: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if pairs.is_empty() { "the server as it is".to_owned() } else { pairs.join(", ") }
}

/// What is asked of this configuration, and what fills the placeholders of its server's command.
fn own(asked: &Asked, values: &Values) -> Result<(Asked, Values), Failed> {
    let mut own = Asked { vary: Vec::new(), serve: None, ..asked.clone() };
    let mut filled = Values::new();
    let command = asked.serve.as_ref().map(|serve| Command::names(&serve.command)).transpose()?;
    let placeholders = command.unwrap_or_default();
    for (name, value) in values {
        if placeholders.contains(name) {
            filled.push((name.clone(), value.clone()));
            continue;
        }
        own.plan = vary::set(&own.plan, name, value).map_err(|error| {
            let failed = Failed::usage(error.to_string());
            match &asked.serve {
                Some(_) => failed.hint(format!("`{{{name}}}` in --serve would take it as well")),
                None => {
                    failed.hint("paths are those of plan.toml: `goodput run --dry-run` shows one")
                }
            }
        })?;
    }
    let (load, base) = (&own.plan.load, &asked.plan.load);
    if (&load.mode, load.duration, load.num_requests)
        != (&base.mode, base.duration, base.num_requests)
    {
        let names: Vec<&str> = values.iter().map(|(name, _)| name.as_str()).collect();
        let message = format!("the sweep itself sets the load of each point: {}", names.join(", "));
        return Err(Failed::usage(message)
            .hint("--rates, --concurrency, --duration and --num-requests say how"));
    }
    plan::check(&own.plan)?;
    own.sweep.slo.clone_from(&own.plan.measure.slo);
    own.sweep.attainment = own.plan.measure.attainment;
    own.sweep.seed = own.plan.load.seed;
    Ok((own, filled))
}

/// Sweeps one configuration, with a server of its own where that was asked for.
fn measure(setup: &Setup, asked: &Asked, values: &Values, path: &Path) -> Result<(), Failed> {
    let (own, filled) = own(asked, values)?;
    let folder = match CampaignFolder::open(Campaign::Sweep, path) {
        Some(_) => CampaignFolder::resume(Campaign::Sweep, path),
        None => CampaignFolder::create(Campaign::Sweep, path, &own),
    };
    let folder = folder.map_err(|error| folder_failed(&error))?;
    match &asked.serve {
        None => {
            let prepared = prepare(setup, own.plan.clone())?;
            one::sweep(setup, &own, folder, (prepared.plan, prepared.ready)).map(drop)
        }
        Some(serve) => with_server(setup, &own, folder, (serve, &filled)),
    }
}

fn with_server(
    setup: &Setup,
    own: &Asked,
    folder: CampaignFolder,
    (serve, filled): (&Serve, &Values),
) -> Result<(), Failed> {
    let mut plan = own.plan.clone();
    let place = serve::Place::of(&plan)?;
    let command = command(serve, filled, &place)?;
    let path = folder.path().to_owned();
    let log = path.join(LOG);
    check_inside(&log).map_err(|error| {
        Failed::usage(format!("cannot write the server's log `{}`: {error}", log.display()))
    })?;
    let server = Server::start(&command, &log, &place, GRACE)?;
    let within = Duration::try_from_secs_f64(serve.timeout_s).unwrap_or(LONGEST_START);
    let (ready, start) = server.wait_ready(&mut plan, within, &*setup.observer)?;
    keep(&path.join(START), &serde_json::to_vec(&start).unwrap_or_default());
    if !setup.quiet {
        output::note(&format!("the server was ready after {:.1} s", start.ready_s));
    }
    let outcome = one::sweep_on(setup, own, folder, (plan, Arc::new(ready)), &|| server.crash());
    let crash = server.crash();
    server.stop()?;
    match (outcome, crash) {
        (Ok(summary), None)
            if !matches!(
                summary.sweep.state,
                SweepState::TargetLost | SweepState::NoGoodAnswer
            ) =>
        {
            Ok(())
        }
        (Ok(_), None) => Err(Failed::target("the server no longer answers")),
        (_, Some(failed)) | (Err(failed), None) => Err(failed),
    }
}

/// Keeps a note in a configuration's folder, where it can. A link would lead out of it.
fn keep(path: &Path, bytes: &[u8]) {
    let _ = check_inside(path).and_then(|()| std::fs::write(path, bytes));
}

/// What a configuration's folder holds.
fn read_one(path: &Path, values: &Values) -> Configuration {
    let sweep = CampaignFolder::open(Campaign::Sweep, path).and_then(|folder| {
        let asked: Asked = folder.asked().ok()?;
        saved::summary(&folder, &asked).ok()
    });
    let start: Option<ColdStart> = read_inside(&path.join(START), MOST_SMALL)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let folder = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Configuration {
        values: values.iter().cloned().collect(),
        folder: format!("configurations/{}", folder.unwrap_or_default()),
        start,
        failed: read_text_inside(&path.join(FAILED), MOST_SMALL).ok(),
        sweep,
    }
}

fn is_done(configuration: &Configuration) -> bool {
    let is_complete = |sweep: &SweepSummary| sweep.sweep.state == SweepState::Complete;
    configuration.sweep.as_ref().is_some_and(is_complete)
}

/// What they say together.
fn together(configurations: Vec<Configuration>) -> Sweeps {
    let (best, because) = best(&configurations);
    let verdicts =
        configurations.iter().filter_map(|one| one.sweep.as_ref()).map(|sweep| sweep.verdict);
    Sweeps {
        schema: Sweeps::SCHEMA.to_owned(),
        verdict: verdicts.max().unwrap_or(Verdict::Void),
        configurations,
        best,
        because,
    }
}

/// A full disk must not end a sweep.
fn write(folder: &CampaignFolder, sweeps: &Sweeps) {
    let page = goodput_report::sweeps_text(sweeps);
    for outcome in [folder.write_summary(sweeps), folder.write_report(&page)] {
        if let Err(error) = outcome {
            output::note(&format!("warning: {error}"));
        }
    }
}
