//! The verbs around a server of our own: `goodput cold-start` takes one from nothing to its first token
//! and back to nothing, `goodput supervise` runs one for another goodput.

use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;

pub(crate) use goodput_lab::serve::{LAST_LINES, is_secret, last_lines, without_secrets};

use clap::Parser;
use goodput_clock::now;
use goodput_model::{Plan, Scrape, Signal, SignalValue};
use serde_json::json;

use crate::args::{Arguments, ColdStartArgs, SuperviseArgs, Verb};
use crate::error::{Failed, exit};
use crate::{output, plan, signals};
use goodput_lab::Silent;
use goodput_lab::emptying::wait_empty;
use goodput_lab::serve::{Command, Exit, Place, Server};
use goodput_lab::server::ServerWatch;

/// How long the server has to become empty.
const EMPTY_LIMIT: Duration = Duration::from_secs(30);

/// Starts the server, waits until it answers, and stops it; each step is said in a line of JSON.
pub(crate) fn cold_start(args: &ColdStartArgs) -> Result<ExitCode, Failed> {
    let mut plan = plan(args)?;
    let place = Place::from_plan(&plan)?;
    let values = args.value.iter().cloned().collect();
    let command = Command::parse(&args.serve, &values, &place.offered())?;
    let server = Server::start(&command, &args.log, &place, args.grace)?;
    say(&json!({"group": server.group()}))?;
    let (ready, start) = server.wait_ready(&mut plan, args.serve_timeout, &Silent)?;
    say(&json!({"start": start}))?;
    if args.hold {
        let interrupt = signals::interrupt();
        let (from, watch) = (now(), ServerWatch::start(&plan, &ready, &Silent, &interrupt)?);
        // An end of stdin is all that is waited for.
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        say(&json!({"batch": batch(&watch.finish(&plan, false, &Silent).scrapes(from))}))?;
        if let Some(failed) = server.crash() {
            return Err(failed);
        }
        say(
            &json!({"empty": wait_empty(&plan, &ready, EMPTY_LIMIT, &|| interrupt.is_interrupted())}),
        )?;
    }
    let exit = server.stop()?;
    say(&json!({"end": exit.to_string()}))?;
    Ok(ExitCode::from(exit::OK))
}

/// What the server said about its batch and its queue; null where it said nothing.
fn batch(scrapes: &[Scrape]) -> serde_json::Value {
    let levels = scrapes.iter().filter_map(|scrape| {
        let reading = scrape.outcome.as_ref().ok()?;
        let level = |signal| match reading.values.get(&signal) {
            Some(SignalValue::Number(number)) => Some(*number),
            _ => None,
        };
        Some((level(Signal::Running)?, level(Signal::Waiting)?))
    });
    let (running, waiting): (Vec<f64>, Vec<f64>) = levels.unzip();
    if running.is_empty() {
        return serde_json::Value::Null;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let max = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    json!({
        "running_mean": mean(&running),
        "running_max": max(&running),
        "waiting_mean": mean(&waiting),
        "waiting_max": max(&waiting),
        "samples": running.len(),
    })
}

/// That of a run with these flags.
fn plan(args: &ColdStartArgs) -> Result<Plan, Failed> {
    let words = ["goodput", "run", &args.target, "--rate", "1"].into_iter();
    let words = words.chain(args.run.iter().map(String::as_str));
    match Arguments::try_parse_from(words).map(|arguments| arguments.verb) {
        Ok(Verb::Run(args)) => plan::resolve(&args),
        Ok(_) => Err(Failed::internal("this is not a run")),
        Err(error) => Err(Failed::usage(error.to_string())),
    }
}

fn say(line: &serde_json::Value) -> Result<(), Failed> {
    output::data(format!("{line}\n").as_bytes())
}

/// Exit code where the server could not be started, as shells have it.
const NOT_STARTED: u8 = 127;

/// Runs a server for another goodput; ends with its status.
pub(crate) fn supervise(args: &SuperviseArgs) -> Result<ExitCode, Failed> {
    let mut out = std::io::stdout().lock();
    let exit = goodput_lab::serve::supervise(&args.command, &args.log, args.grace, &mut out)?;
    Ok(ExitCode::from(match exit {
        None => NOT_STARTED,
        Some(Exit::Code(code)) => u8::try_from(code).unwrap_or(1),
        Some(Exit::Signal(signal)) => u8::try_from(signal).unwrap_or(0).saturating_add(128),
        Some(Exit::Lost) => 1,
    }))
}
