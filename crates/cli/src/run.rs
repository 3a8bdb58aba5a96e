//! `goodput run`: one load level, measured once or several times, recorded, reported.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use goodput_lab::fleet::alone;
use goodput_lab::hooks::Hooks;
use goodput_lab::run::prepare;
use goodput_lab::series::{Series, repeat};
use goodput_lab::{Lab, RunContext, host};
use goodput_model::{EndedBy, Plan, ShardFacts, Verdict};
use goodput_record::CampaignFolder;
use goodput_stats::{RunState, SloState, Summary, repeats};

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

/// Runs the verb: a plan by what was typed, the part of it that this client sends, and one run of it or
/// several.
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
        return dry_run(&setup, &plan, args.output.json);
    }
    let mut setup = setup.listening(&args.endpoint)?.showing(&args.output, "run");
    let shard = take_part(&mut setup, part, &plan, args.repeat.is_some())?;
    match args.repeat {
        None => once(&setup, plan, &path, shard, &args.output),
        Some(repeats) => repeatedly(&setup, &plan, &path, repeats, &args.output),
    }
}

/// What would be sent, and how long it takes to be sure.
fn dry_run(setup: &Setup, plan: &Plan, json: bool) -> Result<ExitCode, Failed> {
    let code = workload::dry_run(plan.clone(), &setup.hub, json)?;
    setup.observer.prepared(plan);
    Ok(code)
}

/// Takes this client's place among others: the one that leads gathers them; one that is alone says which
/// shard it sends.
fn take_part(
    setup: &mut Setup,
    part: Part,
    plan: &Plan,
    is_repeated: bool,
) -> Result<Option<ShardFacts>, Failed> {
    match part {
        Part::Whole | Part::Other(_) => Ok(None),
        Part::Alone(_) if is_repeated => {
            Err(Failed::usage("several runs of several clients need one that leads")
                .hint("--rendezvous HOST:PORT of client 0, or --shard auto, brings them together"))
        }
        Part::Alone(shard) => Ok(Some(alone(shard, plan)?)),
        Part::First(first) => {
            setup.lab.runner = Box::new(first.gather(setup, plan, is_repeated)?);
            Ok(None)
        }
    }
}

/// Measures the plan once, and shows what came of it.
fn once(
    setup: &Setup,
    plan: Plan,
    path: &Path,
    shard: Option<ShardFacts>,
    output: &OutputArgs,
) -> Result<ExitCode, Failed> {
    let prepared = prepare(setup, plan)?;
    setup.observer.prepared(&prepared.plan);
    let summary = prepared.run(setup, path, RunContext { shard, ..RunContext::default() })?;
    report::keep_run(path, &summary);
    show(output, path, &report::json(&summary), || {
        goodput_report::text(&summary, output.detail())
    })?;
    Ok(ExitCode::from(code(&summary)))
}

/// Measures the plan several times, and shows what the runs say together. The worst of them decides.
fn repeatedly(
    setup: &Setup,
    plan: &Plan,
    path: &Path,
    times: u32,
    output: &OutputArgs,
) -> Result<ExitCode, Failed> {
    let Series { summaries, failed } = repeat(setup, plan, path, times)?;
    let found = repeats(&summaries);
    report::keep_repeats(path, &found);
    show(output, path, &report::json(&found), || {
        goodput_report::repeats_text(&found, output.detail())
    })?;
    if let Some(failed) = failed {
        return Err(failed);
    }
    let stopped = setup.interrupt.is_interrupted().then_some(exit::INTERRUPTED);
    let codes = summaries.iter().map(code).chain(stopped);
    Ok(ExitCode::from(codes.max_by_key(|code| weight(*code)).unwrap_or(exit::OK)))
}

/// How bad an exit code is: stopped, target gone, void, anything else, good.
fn weight(code: u8) -> u8 {
    match code {
        exit::INTERRUPTED => 4,
        exit::TARGET => 3,
        exit::VOID => 2,
        exit::OK => 0,
        _ => 1,
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
    } else if !path.as_os_str().is_empty() {
        output::data((shown(path) + "\n").as_bytes())?;
    }
    if !args.quiet && !path.as_os_str().is_empty() {
        show_folder(path);
        if !args.json && !args.verbose {
            output::note(&format!("everything: goodput report -v {}", shown(path)));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_code_weighs_most() {
        let mut codes = [0, 5, 130, 4, 3];
        codes.sort_by_key(|code| weight(*code));
        assert_eq!(codes, [0, 4, 5, 3, 130]);
    }
}
