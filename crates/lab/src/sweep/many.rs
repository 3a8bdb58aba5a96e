//! Sweeps of several configurations: a value of the plan that varies, a server that is started
//! again with each setting, or both.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use goodput_campaign::curve::best_configuration;
use goodput_campaign::sweep::{ColdStart, Configuration, SweepState, SweepSummary, Sweeps};
use goodput_files::{MOST_SMALL, check_inside, read_inside, read_text_inside};
use goodput_model::{SloQuestion, Verdict};
use goodput_record::{Campaign, CampaignFolder, vary};

use super::request::{ServerRequest, SweepRequest};
use super::{SweepTarget, create_or_resume, one, saved};
use crate::campaign::{Next, Outcome, Planner, measure_until_done};
use crate::checks::check_plan;
use crate::error::Failed;
use crate::events::{Observer, SweepProgress};
use crate::run::{Lab, prepare_run};
use crate::serve::{Command, ServerPlace, StartedServer};

/// The values of one configuration, in the order given.
type Values = Vec<(String, String)>;

/// How long a server has to end by itself.
const GRACE: Duration = Duration::from_secs(10);

/// For one whose limit cannot be read.
const LONGEST_START: Duration = Duration::from_mins(10);

/// What a server of ours says.
const LOG: &str = "server.log";

/// How the server started, and why a sweep is missing, kept for later reports.
const START: &str = "start.json";
const FAILED: &str = "failed.txt";

/// What cannot be request for is found before anything is measured.
pub fn check_request(request: &SweepRequest) -> Result<(), Failed> {
    for values in &expand_configurations(request)? {
        let (own, filled) = configuration_request(request, values)?;
        if let Some(serve) = &request.serve {
            server_command(serve, &filled, &ServerPlace::from_plan(&own.plan)?)?;
        }
    }
    Ok(())
}

fn server_command(
    serve: &ServerRequest,
    filled: &Values,
    place: &ServerPlace,
) -> Result<Command, Failed> {
    Command::parse(&serve.command, &filled.iter().cloned().collect(), &place.placeholder_values())
}

/// Sweeps each configuration that is not done yet.
pub fn sweep_configurations(
    lab: &Lab,
    request: &SweepRequest,
    folder: &CampaignFolder,
) -> Result<Sweeps, Failed> {
    let all = expand_configurations(request)?;
    let mut settings = ConfigurationQueue { lab, request, folder, all, done: Vec::new() };
    measure_until_done(&mut settings, &lab.interrupt)?;
    settings.skip_done();
    // One that could never begin is an error like any other.
    match settings.done.as_slice() {
        [Configuration { failed: Some(why), sweep: None, .. }] => Err(Failed::target(why.clone())),
        _ => Ok(compare_configurations(settings.done)),
    }
}

/// Configurations, one after the other.
struct ConfigurationQueue<'a> {
    lab: &'a Lab,
    request: &'a SweepRequest,
    folder: &'a CampaignFolder,
    all: Vec<Values>,
    done: Vec<Configuration>,
}

impl ConfigurationQueue<'_> {
    /// The number, the values and the folder of the next configuration.
    fn next_configuration(&self) -> Option<(u32, Values, PathBuf)> {
        let values = self.all.get(self.done.len())?.clone();
        let number = u32::try_from(self.done.len()).unwrap_or(u32::MAX).saturating_add(1);
        let path = self.folder.configuration_path(number, &values);
        Some((number, values, path))
    }

    /// Takes over what was measured before, up to the first configuration that is not done.
    fn skip_done(&mut self) {
        while let Some((_, values, path)) = self.next_configuration() {
            let configuration =
                read_configuration(&path, &values, &measured_slo(), &*self.lab.observer);
            if !is_done(&configuration) {
                return;
            }
            self.keep_configuration(configuration);
        }
    }

    fn keep_configuration(&mut self, configuration: Configuration) {
        self.done.push(configuration);
        let sweeps = compare_configurations(self.done.clone());
        // A full disk must not end a sweep.
        if let Err(error) = self.folder.write_summary(&sweeps) {
            self.lab.observer.warn(error.to_string());
        }
        self.lab.observer.sweep(&SweepProgress::AllSaved(self.folder, &sweeps));
    }
}

impl Planner for ConfigurationQueue<'_> {
    type Step = (u32, Values, PathBuf);
    type End = ();

    fn next(&mut self) -> Next<Self::Step, ()> {
        self.skip_done();
        self.next_configuration().map_or(Next::Over(()), Next::Measure)
    }

    fn measure(&mut self, (number, values, path): &Self::Step) -> Result<Outcome, Failed> {
        let (number, of, name) = (*number, self.all.len(), &*values_text(values));
        let observer = &self.lab.observer;
        observer.sweep(&SweepProgress::Configuration { number, of, name });
        let _ = std::fs::remove_file(path.join(FAILED));
        if let Err(failed) = measure_configuration(self.lab, self.request, values, path) {
            observer.sweep(&SweepProgress::ConfigurationFailed(&failed));
            write_note(&path.join(FAILED), failed.lines().as_bytes());
        }
        self.keep_configuration(read_configuration(
            path,
            values,
            &measured_slo(),
            &*self.lab.observer,
        ));
        Ok(Outcome::Measured)
    }

    fn end_on_interrupt(&self) {}

    fn end_on_lost_target(&self) {}
}

/// Whether every configuration is done: then nothing is started any more.
pub fn are_all_done(
    request: &SweepRequest,
    folder: &CampaignFolder,
    observer: &dyn Observer,
) -> Result<bool, Failed> {
    let all = expand_configurations(request)?;
    let is_done = |(number, values): (u32, &Values)| {
        let path = folder.configuration_path(number, values);
        is_done(&read_configuration(&path, values, &measured_slo(), observer))
    };
    Ok((1..).zip(&all).all(is_done))
}

/// Sweeps that are there already.
pub(super) fn read_sweeps(
    folder: &CampaignFolder,
    request: &SweepRequest,
    slo: &SloQuestion,
    observer: &dyn Observer,
) -> Result<Sweeps, Failed> {
    let all = expand_configurations(request)?;
    let paths =
        (1..).zip(&all).map(|(number, values)| (folder.configuration_path(number, values), values));
    let begun = paths.filter(|(path, _)| path.is_dir());
    let read =
        |(path, values): (PathBuf, &Values)| read_configuration(&path, values, slo, observer);
    Ok(compare_configurations(begun.map(read).collect()))
}

/// Every configuration in order; a server without anything that varies is one.
fn expand_configurations(request: &SweepRequest) -> Result<Vec<Values>, Failed> {
    let varied = request.variations()?;
    vary::all_configurations(&varied).map_err(|error| Failed::usage(error.to_string()))
}

fn values_text(values: &Values) -> String {
    let pairs: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if pairs.is_empty() { "the server as it is".to_owned() } else { pairs.join(", ") }
}

/// What is request of this configuration, and what fills the placeholders of its server's command.
fn configuration_request(
    request: &SweepRequest,
    values: &Values,
) -> Result<(SweepRequest, Values), Failed> {
    let mut own = SweepRequest { vary: Vec::new(), serve: None, ..request.clone() };
    let mut filled = Values::new();
    let command = request
        .serve
        .as_ref()
        .map(|serve| Command::placeholder_names(&serve.command))
        .transpose()?;
    let placeholders = command.unwrap_or_default();
    for (name, value) in values {
        if placeholders.contains(name) {
            filled.push((name.clone(), value.clone()));
            continue;
        }
        own.plan = vary::set_value(&own.plan, name, value).map_err(|error| {
            let failed = Failed::usage(error.to_string());
            match &request.serve {
                Some(_) => failed.hint(format!("`{{{name}}}` in --serve has the same name")),
                None => failed.hint("use the paths of a plan.toml, such as one in a run folder"),
            }
        })?;
    }
    let (load, base) = (&own.plan.load, &request.plan.load);
    if (&load.mode, load.duration, load.num_requests)
        != (&base.mode, base.duration, base.num_requests)
    {
        let names: Vec<&str> = values.iter().map(|(name, _)| name.as_str()).collect();
        let message = format!("the sweep sets the load of each point itself: {}", names.join(", "));
        return Err(Failed::usage(message)
            .hint("use --rates, --concurrency, --duration, and --num-requests"));
    }
    check_plan(&own.plan)?;
    own.sweep.slo.clone_from(&own.plan.measure.slo);
    own.sweep.attainment = own.plan.measure.attainment;
    own.sweep.seed = own.plan.load.seed;
    Ok((own, filled))
}

/// Sweeps one configuration, with a server of its own where that was request for.
fn measure_configuration(
    lab: &Lab,
    request: &SweepRequest,
    values: &Values,
    path: &Path,
) -> Result<(), Failed> {
    let (own, filled) = configuration_request(request, values)?;
    let folder = create_or_resume(path, &own)?;
    match &request.serve {
        None => {
            let prepared = prepare_run(lab, own.plan.clone())?;
            one::sweep_target(lab, &own, folder, prepared.into()).map(drop)
        }
        Some(serve) => sweep_own_server(lab, &own, folder, serve, &filled),
    }
}

fn sweep_own_server(
    lab: &Lab,
    own: &SweepRequest,
    folder: CampaignFolder,
    serve: &ServerRequest,
    filled: &Values,
) -> Result<(), Failed> {
    let mut plan = own.plan.clone();
    let place = ServerPlace::from_plan(&plan)?;
    let command = server_command(serve, filled, &place)?;
    let path = folder.path().to_owned();
    let log = path.join(LOG);
    check_inside(&log).map_err(|error| {
        Failed::usage(format!("cannot write the server's log `{}`: {error}", log.display()))
    })?;
    let server = StartedServer::start(&command, &log, &place, GRACE)?;
    let within = Duration::try_from_secs_f64(serve.timeout_s).unwrap_or(LONGEST_START);
    let (ready, start) = server.wait_ready(&mut plan, within, &*lab.observer)?;
    write_note(&path.join(START), &serde_json::to_vec(&start).unwrap_or_default());
    lab.observer.note(format!("the server was ready after {:.1} s", start.ready_s));
    let target = SweepTarget { plan, ready: Arc::new(ready) };
    let outcome = one::sweep_own_server(lab, own, folder, target, &|| server.crash_error());
    let crash = server.crash_error();
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
fn write_note(path: &Path, bytes: &[u8]) {
    let _ = check_inside(path).and_then(|()| std::fs::write(path, bytes));
}

/// What a sweep was measured with.
fn measured_slo() -> SloQuestion {
    SloQuestion::default()
}

/// What a configuration's folder holds.
fn read_configuration(
    path: &Path,
    values: &Values,
    slo: &SloQuestion,
    observer: &dyn Observer,
) -> Configuration {
    let sweep = CampaignFolder::open(Campaign::Sweep, path).and_then(|folder| {
        let request: SweepRequest = folder.read_asked().ok()?;
        saved::read_summary(&folder, &request, slo, observer).ok()
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
fn compare_configurations(configurations: Vec<Configuration>) -> Sweeps {
    let (best, because) = best_configuration(&configurations);
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
