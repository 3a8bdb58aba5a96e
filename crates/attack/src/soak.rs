//! `soak`: run, mock, record, shadow and ui together for hours, watched from outside.
//!
//! A stack is six processes: `run` sends through `shadow`, which mirrors to a second mock, through
//! `record`, to the first mock; `ui` shows the growing results. Memory, descriptors and threads of
//! each are sampled. [`trend`] decides whether one of them grows.

mod stack;
mod trend;

use std::path::PathBuf;

use goodput_clock::{now, pause};
use goodput_model::Nanos;

use crate::program::{Binary, ScratchFolder, seconds_to_nanos};
use stack::{ProcessStack, VARIANTS};

/// Time between two samples.
const EVERY: Nanos = Nanos::from_millis(5_000);

/// Runs the stacks and judges every series; true if nothing grows and every process succeeds.
#[expect(clippy::print_stdout, reason = "the table is the result")]
pub(crate) fn run_soak(words: &[String]) -> Result<bool, String> {
    let goodput = Binary { path: crate::goodput_binary(words)? };
    let hours: f64 = parse_number_flag(words, "--hours", 1.0)?;
    let stacks = parse_number_flag(words, "--stacks", 1.0)? as usize;
    let scratch = ScratchFolder::new().map_err(|error| error.to_string())?;
    let folder =
        crate::flag_value(words, "--out").map_or_else(|| scratch.path().to_owned(), PathBuf::from);
    let failed = |error: std::io::Error| error.to_string();

    let duration_s = hours * 3600.0;
    let mut running = Vec::new();
    for number in 0..stacks {
        let variant = &VARIANTS[number % VARIANTS.len()];
        let folder = folder.join(format!("stack-{number}"));
        running.push(ProcessStack::start(&goodput, &folder, variant, duration_s).map_err(failed)?);
    }
    let (begin, end) = (now(), now() + seconds_to_nanos(duration_s));
    let mut next_line = begin;
    while now() < end && running.iter_mut().any(ProcessStack::is_running) {
        for stack in &mut running {
            stack.sample((now().0 - begin.0) as f64 / 3.6e12);
        }
        if now() >= next_line {
            for stack in &running {
                println!("{:6.2} h  {}", (now().0 - begin.0) as f64 / 3.6e12, stack.status_line());
            }
            next_line = now() + Nanos::from_millis(60_000);
        }
        pause(EVERY);
    }
    let mut is_well = true;
    for stack in running {
        is_well &= stack.finish().map_err(failed)?;
    }
    println!("{}", if is_well { "1 passed, 0 failed" } else { "0 passed, 1 failed" });
    Ok(is_well)
}

fn parse_number_flag(words: &[String], flag: &str, default: f64) -> Result<f64, String> {
    let Some(text) = crate::flag_value(words, flag) else { return Ok(default) };
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 => Ok(value),
        _ => Err(format!("{flag} takes a positive number, not `{text}`")),
    }
}
