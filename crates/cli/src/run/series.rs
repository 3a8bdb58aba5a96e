//! `--repeat`: the same plan several times, each time with a seed of its own.

use std::path::Path;
use std::process::ExitCode;

use goodput_model::{Plan, Repeat};
use goodput_record::SeriesFolder;
use goodput_stats::{Repeats, Summary, repeats};

use goodput_lab::run::prepare;
use goodput_lab::{RunContext, folder_failed};

use super::{Setup, code, say_what_it_takes};
use crate::error::{Failed, exit};
use crate::{output, report};

/// Runs of one plan, as far as they came.
pub(super) struct Series {
    summaries: Vec<Summary>,
    /// Why there are fewer than asked for.
    failed: Option<Failed>,
}

/// Measures the plan several times. What is there is on disk after each run; the first that cannot
/// be carried out, or is stopped, is the last.
pub(super) fn measure(setup: &Setup, plan: &Plan, path: &Path, of: u32) -> Result<Series, Failed> {
    let folder = SeriesFolder::create(path).map_err(|error| folder_failed(&error))?;
    let mut series = Series { summaries: Vec::new(), failed: None };
    let mut plan = plan.clone();
    for number in 1..=of {
        let repeat = Repeat { number, of };
        match measure_one(setup, &mut plan, &folder, repeat) {
            Ok(Some(summary)) => series.summaries.push(summary),
            Ok(None) => break,
            // Without a single run there is nothing to report but this.
            Err(failed) if series.summaries.is_empty() => return Err(failed),
            Err(failed) => {
                series.failed = Some(failed);
                break;
            }
        }
        if let Err(error) = folder.write_summary(&series.repeats()) {
            output::note(&format!("warning: {error}"));
        }
        if setup.interrupt.is_interrupted() {
            break;
        }
    }
    Ok(series)
}

/// None where the user has stopped the series before this run began.
fn measure_one(
    setup: &Setup,
    plan: &mut Plan,
    folder: &SeriesFolder,
    repeat: Repeat,
) -> Result<Option<Summary>, Failed> {
    let mut own = plan.clone();
    own.load.seed = seed(plan.load.seed, repeat.number);
    if !setup.quiet {
        let Repeat { number, of } = repeat;
        output::note(&format!("repeat {number} of {of}, seed {}", own.load.seed));
    }
    let prepared = prepare(setup, own)?;
    if repeat.number == 1 {
        say_what_it_takes(&prepared.plan, setup.quiet);
    }
    if setup.interrupt.is_interrupted() {
        return Ok(None);
    }
    // Words cost what they cost: the runs shall differ in their seeds alone.
    plan.workload.calibration.clone_from(&prepared.plan.workload.calibration);
    let label = format!("repeat {} of {} · ", repeat.number, repeat.of);
    let context = RunContext { repeat: Some(repeat), label, ..RunContext::default() };
    let path = folder.run(repeat.number);
    let summary = prepared.run(setup, &path, context)?;
    report::keep_run(&path, &summary);
    Ok(Some(summary))
}

/// Seeds follow each other. Streams of neighbouring seeds are independent: every (seed, domain)
/// makes a key of its own.
fn seed(first: u64, number: u32) -> u64 {
    let last = i64::MAX.cast_unsigned();
    first.wrapping_add(u64::from(number) - 1) & last
}

impl Series {
    /// What the runs say together.
    pub(super) fn repeats(&self) -> Repeats {
        repeats(&self.summaries)
    }

    /// The worst of the runs decides.
    pub(super) fn code(self, setup: &Setup) -> Result<ExitCode, Failed> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        let stopped = setup.interrupt.is_interrupted().then_some(exit::INTERRUPTED);
        let codes = self.summaries.iter().map(code).chain(stopped);
        Ok(ExitCode::from(codes.max_by_key(|code| weight(*code)).unwrap_or(exit::OK)))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_follow_each_other_and_stay_within_a_plan_file() {
        assert_eq!([1, 2, 3].map(|number| seed(42, number)), [42, 43, 44]);
        let last = i64::MAX.cast_unsigned();
        assert_eq!([1, 2].map(|number| seed(last, number)), [last, 0]);
    }

    #[test]
    fn the_worst_code_weighs_most() {
        let mut codes = [0, 5, 130, 4, 3];
        codes.sort_by_key(|code| weight(*code));
        assert_eq!(codes, [0, 4, 5, 3, 130]);
    }
}
