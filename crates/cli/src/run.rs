//! `goodput run`: one load level, measured once or several times, recorded, reported.

mod once;
mod recorder;
mod series;
mod start;

pub(crate) use once::{Prepared, dry_run, prepare, prepare_on};
pub(crate) use recorder::Board;
pub(crate) use start::Start;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use goodput_engine::{Control, FdLimit, Live};
use goodput_fleet::Totals;
use goodput_model::{
    ClockOffset, EndedBy, Mode, Nanos, Plan, Rate, Repeat, Shard, ShardFacts, Verdict,
};
use goodput_record::{CampaignFolder, FolderError};
use goodput_stats::{RunState, SloState, Summary};

use crate::args::{EndpointArgs, OutputArgs, RunArgs};
use crate::beside::Beside;
use crate::error::{Failed, exit};
use crate::fleet::{self, Leading, Part};
use crate::listen::Listen;
use crate::printer::Printer;
use crate::screen::{Progress, Tally};
use crate::signals::Signals;
use crate::{output, plan, report, typed};
use goodput_lab::Observer;
use goodput_lab::host;
use goodput_lab::hub::Hub;

/// What all runs of one use of a verb share.
pub(crate) struct Setup {
    /// Neither progress nor notes.
    pub(crate) quiet: bool,
    /// Whether the target may be asked how it counts tokens.
    pub(crate) may_ask: bool,
    /// Hears what happens.
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) hub: Hub,
    pub(crate) fd_limit: FdLimit,
    pub(crate) signals: Signals,
    /// Lines that were said already.
    said: Mutex<BTreeSet<String>>,
    /// Where runs are shown while they go on.
    pub(crate) listen: Option<Listen>,
    /// What happens beside every run.
    pub(crate) beside: Beside,
    /// How runs show how far they are.
    pub(crate) progress: Progress,
    /// The part of the load that this client sends.
    pub(crate) shard: Shard,
    /// Another client leads this one.
    pub(crate) is_led: bool,
    /// The other clients, where this one leads them.
    pub(crate) fleet: Option<Leading>,
}

impl Setup {
    /// Ready to run.
    pub(crate) fn new(quiet: bool, may_ask: bool) -> Self {
        let observer: Arc<dyn Observer> = Arc::new(Printer::new(quiet));
        Self {
            quiet,
            may_ask,
            hub: Hub::new(Arc::clone(&observer)),
            observer,
            fd_limit: goodput_engine::raise_fd_limit(),
            signals: Signals::default(),
            said: Mutex::default(),
            listen: None,
            beside: Beside::default(),
            progress: Progress::None,
            shard: Shard::WHOLE,
            is_led: false,
            fleet: None,
        }
    }

    /// The same, with progress shown as it was asked for.
    pub(crate) fn showing(mut self, args: &OutputArgs, verb: &'static str) -> Self {
        self.progress = Progress::of(args.screen, self.quiet, verb, &self.signals);
        self
    }

    /// The same, with what happens beside every run.
    pub(crate) fn beside(mut self, args: &EndpointArgs) -> Result<Self, Failed> {
        self.beside = Beside::of(&args.beside)?;
        Ok(self)
    }

    /// Says something that holds for all runs, and is said for the first of them. Foreign text in it
    /// is made harmless.
    pub(crate) fn say_once(&self, line: &str) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.quiet && said.insert(line.to_owned()) {
            output::note(&goodput_report::plain(line));
        }
    }

    /// The same, shown while it goes on, where that was asked for. A dry run is not.
    pub(crate) fn listening(mut self, args: &EndpointArgs) -> Result<Self, Failed> {
        let (quiet, address) = (self.quiet, args.beside.metrics_listen);
        self.listen = address.map(|address| Listen::start(address, quiet)).transpose()?;
        Ok(self)
    }
}

/// What a run is among others.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// Which of several runs of one plan.
    pub(crate) repeat: Option<Repeat>,
    /// What stands before its progress line.
    pub(crate) label: String,
    /// Another run shows how far both are.
    pub(crate) is_silent: bool,
    /// Where it begins at the same instant as others.
    pub(crate) start: Option<Start>,
    /// Which of several clients this is.
    pub(crate) shard: Option<ShardFacts>,
    /// Gives the instant at which all clients begin, once they can.
    pub(crate) begin: Option<Common>,
    /// What another thread stops the run by, and shows what others have done.
    pub(crate) hands: Option<Hands>,
}

/// A run in the hands of somebody else.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hands {
    pub(crate) control: Control,
    pub(crate) live: Arc<Live>,
    /// What other clients have counted so far.
    pub(crate) others: Arc<Mutex<Totals>>,
    /// Somebody else decides when enough is known, and is told what was counted here.
    pub(crate) told: Option<Arc<Mutex<Tally>>>,
    /// This machine's clocks beside those of who leads, as they were when all began.
    pub(crate) clock: Arc<OnceLock<ClockOffset>>,
    /// It did not begin with the others.
    pub(crate) is_off: Arc<AtomicBool>,
}

/// Waits until all clients are ready; gives the common first instant on this machine's clock.
#[derive(Clone)]
pub(crate) struct Common(pub(crate) Arc<dyn Fn() -> Nanos + Send + Sync>);

impl std::fmt::Debug for Common {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Common")
    }
}

/// What may stand beside `--plan`.
const BESIDE_PLAN: [&str; 19] = [
    "target",
    "repeat",
    "model",
    "slo",
    "attainment",
    "goodput",
    "out",
    "percentiles",
    "early_stopping",
    "save_text",
    "dry_run",
    "metrics",
    "metrics_urls",
    "metrics_interval",
    "metrics_map",
    "gpu",
    "gpu_idle",
    "meta",
    "trace_share",
];

/// Runs the verb.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failed> {
    if args.plan.is_some() {
        typed::refuse_beside("plan", &BESIDE_PLAN)?;
    }
    let plan = plan::resolve(args)?;
    let path = folder_path(args.output.out.as_deref(), &plan, "run");
    let part = if args.output.dry_run { Part::Whole } else { Part::of(&args.shard)? };
    let mut setup = Setup::new(args.output.quiet, !args.workload.no_length_check);
    setup.shard = part.shard();
    if let Part::Other(other) = part {
        return other.follow(setup, &plan, &path);
    }
    let setup = setup.beside(&args.endpoint)?;
    if args.output.dry_run {
        let code = dry_run(plan.clone(), &setup.hub, args.output.json)?;
        say_what_it_takes(&plan, args.output.quiet);
        return Ok(code);
    }
    let mut setup = setup.listening(&args.endpoint)?.showing(&args.output, "run");
    let mut place = Place::default();
    match part {
        Part::Whole | Part::Other(_) => {}
        Part::Alone(_) if args.repeat.is_some() => {
            return Err(Failed::usage("several runs of several clients need one that leads").hint(
                "--rendezvous HOST:PORT of client 0, or --shard auto, brings them together",
            ));
        }
        Part::Alone(shard) => place.shard = Some(fleet::alone(shard, &plan)?),
        Part::First(first) => {
            setup.fleet = Some(first.gather(&setup, &plan, args.repeat.is_some())?);
        }
    }
    match args.repeat {
        None => {
            let prepared = prepare(&setup, plan)?;
            say_what_it_takes(&prepared.plan, setup.quiet);
            let summary = prepared.measure(&setup, &path, &place)?;
            report::keep_run(&path, &summary);
            show(&args.output, &path, &report::json(&summary), || goodput_report::text(&summary))?;
            Ok(ExitCode::from(code(&summary)))
        }
        Some(repeats) => {
            let series = series::measure(&setup, &plan, &path, repeats)?;
            let found = series.repeats();
            report::keep_repeats(&path, &found);
            show(&args.output, &path, &report::json(&found), || {
                goodput_report::repeats_text(&found)
            })?;
            series.code(&setup)
        }
    }
}

/// Before a run at a fixed rate: how long it takes to be sure. Said once the target has answered: before
/// an error it would be noise.
fn say_what_it_takes(plan: &Plan, is_quiet: bool) {
    let has_sessions = plan.workload.classes.iter().any(|class| class.session.is_some());
    if let Mode::Open { rate: Rate::PerSecond(rate), .. } = plan.load.mode
        && !is_quiet
        && !has_sessions
    {
        let goals = goodput_stats::goals(plan);
        output::note(&goodput_report::confidence_before(&goals, rate));
    }
}

/// `--out`, or a name under `runs/` that is still free.
pub(crate) fn folder_path(out: Option<&Path>, plan: &Plan, verb: &str) -> PathBuf {
    if let Some(out) = out {
        return out.to_owned();
    }
    let name = format!("{}-{}-{verb}", host::timestamp().replace(':', "-"), plan.workload.name);
    let first = Path::new("runs").join(&name);
    let mut others = (2..1000).map(|n| Path::new("runs").join(format!("{name}-{n}")));
    if first.exists() { others.find(|path| !path.exists()).unwrap_or(first) } else { first }
}

pub(crate) fn folder_failed(error: &FolderError) -> Failed {
    let failed = Failed::usage(error.to_string());
    match error {
        FolderError::Occupied(_) => failed.hint("name a new folder with --out"),
        _ => failed.hint("--out names another folder"),
    }
}

/// Prints the result, and where it is kept: nowhere, where the path is empty.
pub(crate) fn show(
    args: &OutputArgs,
    path: &Path,
    json: &str,
    text: impl FnOnce() -> String,
) -> Result<(), Failed> {
    if args.json {
        output::data(json.as_bytes())?;
    } else if !args.quiet {
        output::page(&text())?;
    }
    if !args.quiet && !path.as_os_str().is_empty() {
        output::note(&format!("\nrun folder: {}", shown(path)));
        let pages = [CampaignFolder::REPORT, report::PAGE].map(|name| path.join(name));
        for page in pages.into_iter().filter(|page| page.is_file()) {
            output::note(&format!("report: {}", shown(&page)));
        }
    }
    Ok(())
}

fn shown(path: &Path) -> String {
    goodput_report::plain(&path.display().to_string())
}

/// What the process ends with.
pub(crate) fn code(summary: &Summary) -> u8 {
    // What came in after a stop by the rule may widen it a little.
    let by_rule = summary.run.ended_by == Some(EndedBy::Until);
    let is_sure =
        summary.until.as_ref().is_none_or(|until| until.met || (by_rule && !until.missed));
    if summary.run.state == RunState::Interrupted {
        exit::INTERRUPTED
    } else if summary.requests.scheduled > 0 && summary.requests.ok == 0 {
        exit::TARGET
    } else if summary.verdict == Verdict::Void {
        exit::VOID
    } else if !is_sure {
        // Too few samples for what was asked.
        exit::VOID
    } else {
        match summary.slo.as_ref().map(|slo| slo.state) {
            Some(SloState::Missed) => exit::MISSED,
            Some(SloState::Undecided) => exit::VOID,
            Some(SloState::Met | SloState::Reported) | None => exit::OK,
        }
    }
}
