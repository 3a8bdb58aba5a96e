//! The verbs around a server of our own: `goodput cold-start` takes one from nothing to its first token
//! and back to nothing, `goodput supervise` runs one for another goodput.

use std::io::Read;
use std::process::ExitCode;

use clap::Parser;
use goodput_lab::serve::{ColdStartStep, ColdStartTrial, Exit};
use goodput_model::Plan;
use serde_json::json;

use crate::args::{Arguments, ColdStartArgs, SuperviseArgs, Verb};
use crate::error::{Failed, exit};
use crate::{output, plan, signals};

/// Starts the server, waits until it answers, and stops it; each step is said in a line of JSON.
pub(crate) fn cold_start(args: &ColdStartArgs) -> Result<ExitCode, Failed> {
    let trial = ColdStartTrial {
        plan: cold_start_plan(args)?,
        command: &args.serve,
        values: args.value.iter().cloned().collect(),
        log: &args.log,
        within: args.serve_timeout,
        grace: args.grace,
        // An end of stdin is all that is waited for.
        hold: args.hold.then_some(&|| {
            let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        }),
    };
    let say = |step: &ColdStartStep| output::print_data(format!("{}\n", json!(step)).as_bytes());
    trial.measure_cold_start(&signals::interrupt_on_signals(), say)?;
    Ok(ExitCode::from(exit::OK))
}

/// That of a run with these flags.
fn cold_start_plan(args: &ColdStartArgs) -> Result<Plan, Failed> {
    let words = ["goodput", "run", &args.target, "--rate", "1"].into_iter();
    let words = words.chain(args.run.iter().map(String::as_str));
    match Arguments::try_parse_from(words).map(|arguments| arguments.verb) {
        Ok(Verb::Run(args)) => plan::resolve_plan(&args),
        Ok(_) => Err(Failed::internal("the arguments do not describe a run")),
        Err(error) => Err(Failed::usage(error.to_string())),
    }
}

/// Exit code where the server could not be started, as shells have it.
const NOT_STARTED: u8 = 127;

/// Runs a server for another goodput; ends with its status.
pub(crate) fn supervise(args: &SuperviseArgs) -> Result<ExitCode, Failed> {
    let mut out = std::io::stdout().lock();
    let exit =
        goodput_lab::serve::supervise_server(&args.command, &args.log, args.grace, &mut out)?;
    Ok(ExitCode::from(match exit {
        None => NOT_STARTED,
        Some(Exit::Code(code)) => u8::try_from(code).unwrap_or(1),
        Some(Exit::Signal(signal)) => u8::try_from(signal).unwrap_or(0).saturating_add(128),
        Some(Exit::Lost) => 1,
    }))
}
