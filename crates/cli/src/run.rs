//! `goodput run`: one load level, measured once or several times, recorded, reported.

mod series;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use goodput_lab::fleet::alone;
use goodput_lab::hooks::Hooks;
use goodput_lab::run::prepare;
use goodput_lab::{Lab, RunContext, host};
use goodput_model::{EndedBy, Mode, Plan, Rate, Verdict};
use goodput_record::CampaignFolder;
use goodput_stats::{RunState, SloState, Summary};

use crate::args::{EndpointArgs, OutputArgs, RunArgs};
use crate::error::{Failed, exit};
use crate::fleet::{self, Part};
use crate::printer::Printer;
use crate::screen::Progress;
use crate::{listen, output, plan, report, signals, typed, workload};

/// A lab whose observer is this terminal.
pub(crate) struct Setup {
    /// Neither progress nor notes.
    pub(crate) quiet: bool,
    pub(crate) lab: Lab,
    printer: Arc<Printer>,
}

impl Deref for Setup {
    type Target = Lab;

    fn deref(&self) -> &Lab {
        &self.lab
    }
}

impl Setup {
    /// Ready to run.
    pub(crate) fn new(quiet: bool, may_ask: bool) -> Self {
        let printer = Arc::new(Printer::new(quiet));
        let lab = Lab::new(printer.clone(), signals::interrupt());
        Self { quiet, lab: Lab { may_ask, ..lab }, printer }
    }

    /// The same, with progress shown as it was asked for.
    pub(crate) fn showing(self, args: &OutputArgs, verb: &'static str) -> Self {
        let progress = Progress::of(args.screen, self.quiet, verb, &self.lab.interrupt);
        let _ = self.printer.progress.set(progress);
        self
    }

    /// How runs show how far they are.
    pub(crate) fn progress(&self) -> &Progress {
        self.printer.progress.get().unwrap_or(&Progress::None)
    }

    /// The same, with what happens around every run.
    pub(crate) fn hooked(mut self, args: &EndpointArgs) -> Result<Self, Failed> {
        let args = &args.beside;
        let (before, after) = (args.before_cmd.clone(), args.after_cmd.clone());
        self.lab.hooks = Hooks::new(before, after, args.profile, args.traces.as_deref())?;
        Ok(self)
    }

    /// The same, shown while it goes on, where that was asked for. A dry run is not.
    pub(crate) fn listening(self, args: &EndpointArgs) -> Result<Self, Failed> {
        if let Some(address) = args.beside.metrics_listen {
            let _ = self.printer.listen.set(listen::start(address, self.quiet)?);
        }
        Ok(self)
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
    setup.lab.shard = part.shard();
    if let Part::Other(other) = part {
        return fleet::follow(&other, setup.lab, &plan, &path);
    }
    let setup = setup.hooked(&args.endpoint)?;
    if args.output.dry_run {
        let code = workload::dry_run(plan.clone(), &setup.hub, args.output.json)?;
        say_what_it_takes(&plan, args.output.quiet);
        return Ok(code);
    }
    let mut setup = setup.listening(&args.endpoint)?.showing(&args.output, "run");
    let mut context = RunContext::default();
    match part {
        Part::Whole | Part::Other(_) => {}
        Part::Alone(_) if args.repeat.is_some() => {
            return Err(Failed::usage("several runs of several clients need one that leads").hint(
                "--rendezvous HOST:PORT of client 0, or --shard auto, brings them together",
            ));
        }
        Part::Alone(shard) => context.shard = Some(alone(shard, &plan)?),
        Part::First(first) => {
            setup.lab.runner = Box::new(first.gather(&setup, &plan, args.repeat.is_some())?);
        }
    }
    match args.repeat {
        None => {
            let prepared = prepare(&setup, plan)?;
            say_what_it_takes(&prepared.plan, setup.quiet);
            let summary = prepared.run(&setup, &path, context)?;
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
            series.code()
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
        show_folder(path);
    }
    Ok(())
}

/// Says where a result is kept.
pub(crate) fn show_folder(path: &Path) {
    output::note(&format!("\nrun folder: {}", shown(path)));
    let pages = [CampaignFolder::REPORT, report::PAGE].map(|name| path.join(name));
    for page in pages.into_iter().filter(|page| page.is_file()) {
        output::note(&format!("report: {}", shown(&page)));
    }
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
