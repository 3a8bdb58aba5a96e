//! `goodput cold-start`: a server from nothing to its first token, and back to nothing.

use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use goodput_clock::now;
use goodput_model::{Plan, Scrape, Signal, SignalValue};
use serde_json::json;

use super::{Command, Place, Server};
use crate::args::{Arguments, ColdStartArgs, Verb};
use crate::error::{Failed, exit};
use crate::{output, plan, signals};
use goodput_lab::Silent;
use goodput_lab::emptying::wait_empty;
use goodput_lab::server::ServerWatch;

/// How long the server has to become empty.
const EMPTY_LIMIT: Duration = Duration::from_secs(30);

/// Starts the server, waits until it answers, and stops it; each step is said in a line of JSON.
pub(crate) fn cold_start(args: &ColdStartArgs) -> Result<ExitCode, Failed> {
    let mut plan = plan(args)?;
    let place = Place::of(&plan)?;
    let values = args.value.iter().cloned().collect();
    let command = Command::read(&args.serve, &values, &place.offered())?;
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
