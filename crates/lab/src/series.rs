//! `--repeat`: the same plan several times, each time with a seed of its own.

use std::path::Path;

use goodput_model::{Plan, Repeat};
use goodput_record::SeriesFolder;
use goodput_stats::{Summary, summarize_repeats};

use crate::campaign::{Next, Outcome, Planner, measure_until_done};
use crate::error::{Failed, folder_failed};
use crate::run::{Lab, RunContext, prepare_run};

/// Runs of one plan, as far as they came.
pub struct RunSeries {
    /// At least one.
    pub summaries: Vec<Summary>,
    /// Why there are fewer than asked for.
    pub failed: Option<Failed>,
}

/// Measures the plan several times. What is there is on disk after each run; the first that cannot
/// be carried out, or is stopped, is the last.
pub fn measure_repeats(lab: &Lab, plan: &Plan, path: &Path, of: u32) -> Result<RunSeries, Failed> {
    let folder = SeriesFolder::create(path).map_err(|error| folder_failed(&error))?;
    let (plan, summaries) = (plan.clone(), Vec::new());
    let mut repeats = RepeatPlanner { lab, folder, plan, of, summaries };
    match (measure_until_done(&mut repeats, &lab.interrupt), repeats.summaries) {
        // Without a single run there is nothing to report but this.
        (Err(failed), summaries) if summaries.is_empty() => Err(failed),
        (outcome, summaries) => Ok(RunSeries { summaries, failed: outcome.err() }),
    }
}

/// The same plan, one seed after the other.
struct RepeatPlanner<'a> {
    lab: &'a Lab,
    folder: SeriesFolder,
    plan: Plan,
    of: u32,
    summaries: Vec<Summary>,
}

impl Planner for RepeatPlanner<'_> {
    type Step = Repeat;
    type End = ();

    fn next(&mut self) -> Next<Repeat, ()> {
        let number = u32::try_from(self.summaries.len()).unwrap_or(u32::MAX).saturating_add(1);
        let repeat = Repeat { number, of: self.of };
        if number > self.of { Next::Over(()) } else { Next::Measure(repeat) }
    }

    fn measure(&mut self, repeat: &Repeat) -> Result<Outcome, Failed> {
        let Repeat { number, of } = *repeat;
        let lab = self.lab;
        let mut own = self.plan.clone();
        own.load.seed = repeat_seed(self.plan.load.seed, number);
        lab.observer.note(format!("repeat {number} of {of}, seed {}", own.load.seed));
        let prepared = prepare_run(lab, own)?;
        if number == 1 {
            lab.observer.prepared(&prepared.plan);
        }
        if lab.interrupt.is_interrupted() {
            return Ok(Outcome::CutShort);
        }
        // Words cost what they cost: the runs should differ in their seeds alone.
        self.plan.workload.calibration.clone_from(&prepared.plan.workload.calibration);
        let label = format!("repeat {number} of {of} · ");
        let context = RunContext { repeat: Some(*repeat), label, ..RunContext::default() };
        let path = self.folder.run_path(number);
        let summary = prepared.run(lab, &path, context)?;
        lab.observer.saved(&path, &summary);
        self.summaries.push(summary);
        if let Err(error) = self.folder.write_summary(&summarize_repeats(&self.summaries)) {
            lab.observer.warn(error.to_string());
        }
        Ok(Outcome::Measured)
    }

    fn end_on_interrupt(&self) {}

    fn end_on_lost_target(&self) {}
}

/// Seeds follow each other. Streams of neighboring seeds are independent: every (seed, domain)
/// makes a key of its own.
fn repeat_seed(first: u64, number: u32) -> u64 {
    let last = i64::MAX.cast_unsigned();
    first.wrapping_add(u64::from(number) - 1) & last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_follow_each_other_and_stay_within_a_plan_file() {
        assert_eq!([1, 2, 3].map(|number| repeat_seed(42, number)), [42, 43, 44]);
        let last = i64::MAX.cast_unsigned();
        assert_eq!([1, 2].map(|number| repeat_seed(last, number)), [last, 0]);
    }
}
