//! `--repeat`: the same plan several times, each time with a seed of its own.

use std::path::Path;
use std::process::ExitCode;

use goodput_model::{Plan, Repeat};
use goodput_record::SeriesFolder;
use goodput_stats::{Repeats, Summary, repeats};

use goodput_lab::campaign::{Next, Outcome, Planner, carry_out};
use goodput_lab::run::prepare;
use goodput_lab::{RunContext, folder_failed};

use super::{Setup, code, say_what_it_takes};
use crate::error::{Failed, exit};
use crate::report;

/// Runs of one plan, as far as they came.
pub(super) struct Series<'a> {
    setup: &'a Setup,
    folder: SeriesFolder,
    plan: Plan,
    of: u32,
    summaries: Vec<Summary>,
    /// Why there are fewer than asked for.
    failed: Option<Failed>,
}

/// Measures the plan several times. What is there is on disk after each run; the first that cannot
/// be carried out, or is stopped, is the last.
pub(super) fn measure<'a>(
    setup: &'a Setup,
    plan: &Plan,
    path: &Path,
    of: u32,
) -> Result<Series<'a>, Failed> {
    let folder = SeriesFolder::create(path).map_err(|error| folder_failed(&error))?;
    let (plan, summaries) = (plan.clone(), Vec::new());
    let mut series = Series { setup, folder, plan, of, summaries, failed: None };
    match carry_out(&mut series, &setup.interrupt) {
        // Without a single run there is nothing to report but this.
        Err(failed) if series.summaries.is_empty() => return Err(failed),
        Err(failed) => series.failed = Some(failed),
        Ok(()) => {}
    }
    Ok(series)
}

impl Planner for Series<'_> {
    type Step = Repeat;
    type End = ();

    fn next(&mut self) -> Next<Repeat, ()> {
        let number = u32::try_from(self.summaries.len()).unwrap_or(u32::MAX).saturating_add(1);
        let repeat = Repeat { number, of: self.of };
        if number > self.of { Next::Over(()) } else { Next::Measure(repeat) }
    }

    fn measure(&mut self, repeat: &Repeat) -> Result<Outcome, Failed> {
        let Repeat { number, of } = *repeat;
        let setup = self.setup;
        let mut own = self.plan.clone();
        own.load.seed = seed(self.plan.load.seed, number);
        setup.observer.note(format!("repeat {number} of {of}, seed {}", own.load.seed));
        let prepared = prepare(setup, own)?;
        if number == 1 {
            say_what_it_takes(&prepared.plan, setup.quiet);
        }
        if setup.interrupt.is_interrupted() {
            return Ok(Outcome::CutShort);
        }
        // Words cost what they cost: the runs shall differ in their seeds alone.
        self.plan.workload.calibration.clone_from(&prepared.plan.workload.calibration);
        let label = format!("repeat {number} of {of} · ");
        let context = RunContext { repeat: Some(*repeat), label, ..RunContext::default() };
        let path = self.folder.run(number);
        let summary = prepared.run(setup, &path, context)?;
        report::keep_run(&path, &summary);
        self.summaries.push(summary);
        if let Err(error) = self.folder.write_summary(&self.repeats()) {
            setup.observer.warn(error.to_string());
        }
        Ok(Outcome::Measured)
    }

    fn interrupted(&self) {}

    fn target_lost(&self) {}
}

/// Seeds follow each other. Streams of neighbouring seeds are independent: every (seed, domain)
/// makes a key of its own.
fn seed(first: u64, number: u32) -> u64 {
    let last = i64::MAX.cast_unsigned();
    first.wrapping_add(u64::from(number) - 1) & last
}

impl Series<'_> {
    /// What the runs say together.
    pub(super) fn repeats(&self) -> Repeats {
        repeats(&self.summaries)
    }

    /// The worst of the runs decides.
    pub(super) fn code(self) -> Result<ExitCode, Failed> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        let stopped = self.setup.interrupt.is_interrupted().then_some(exit::INTERRUPTED);
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
