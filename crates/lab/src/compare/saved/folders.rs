//! Runs from their folders: of one run, of a series, of a sweep.

use std::path::{Path, PathBuf};

use goodput_campaign::compare::{Comparison, Figure, SideFacts};
use goodput_campaign::sweep::{Axis, Goodput, GoodputState, Level, Purpose, SweepSummary};
use goodput_model::{Mode, Plan, Rate, Slo, SloQuestion};
use goodput_record::{Artifact, Manifest};
use goodput_stats::Summary;

use crate::compare::machine_text;
use crate::error::Failed;
use crate::events::Observer;
use crate::saved::{SavedRun, read_run_as, unreadable_error};
use crate::sweep::{self, SavedSweep};

/// What is asked of every run, whatever was asked when it was measured.
pub(super) struct Lens<'a> {
    /// An SLO in the place of theirs.
    pub(super) slo: Option<&'a Slo>,
    /// And the share of requests that must keep it.
    pub(super) attainment: Option<f64>,
    /// Percentiles that are looked at.
    pub(super) percentiles: Vec<f64>,
    /// Hears what is left out.
    pub(super) observer: &'a dyn Observer,
}

impl Lens<'_> {
    fn apply_slo(&self, plan: &mut Plan) -> Result<(), Failed> {
        let measure = &mut plan.measure;
        measure.slo = self.slo.cloned().or(measure.slo.take());
        measure.attainment = self.attainment.or(measure.attainment);
        if measure.slo.is_none() && measure.attainment.is_some() {
            return Err(Failed::usage("--attainment needs an SLO, and one of the runs has none")
                .hint("add --slo 'ttft < 500ms, tpot < 50ms'"));
        }
        measure.percentiles.extend(&self.percentiles);
        measure.percentiles.sort_by(f64::total_cmp);
        measure.percentiles.dedup();
        Ok(())
    }

    /// Whether the SLO is another than that of the runs, or may be.
    fn has_slo(&self) -> bool {
        self.slo.is_some() || self.attainment.is_some()
    }
}

/// A run of a side.
pub(super) struct SideRun {
    pub(super) path: PathBuf,
    pub(super) plan: Plan,
    pub(super) manifest: Manifest,
    pub(super) summary: Summary,
}

impl SideRun {
    /// From its folder.
    pub(super) fn read(path: &Path, lens: &Lens<'_>) -> Result<Self, Failed> {
        let SavedRun { plan, manifest, summary } = read_run_as(path, |plan| lens.apply_slo(plan))?;
        Ok(Self { path: path.to_owned(), plan, manifest, summary })
    }

    /// What should be the same on all sides.
    pub(super) fn side_facts(&self) -> SideFacts {
        SideFacts::from_run(&self.plan, &self.summary, machine_text(&self.manifest.host))
    }

    /// Its load, where that is one number.
    pub(super) fn load_level(&self) -> Option<Level> {
        match self.plan.load.mode {
            Mode::Open { rate: Rate::PerSecond(rate), .. } => Some(Level::Rate(rate)),
            Mode::Closed { concurrency, .. } => Some(Level::Users(concurrency)),
            Mode::Open { .. } | Mode::Shaped { .. } | Mode::Replay { .. } => None,
        }
    }
}

/// What the folders of one side hold.
#[derive(Default)]
pub(super) struct SideResults {
    pub(super) runs: Vec<SideRun>,
    /// The highest load that keeps the SLO, one of each sweep; none if it is not known. A sweep
    /// without an answer counts: what is left would be a choice.
    pub(super) answers: Vec<Option<Figure>>,
    /// As a sweep was told.
    pub(super) gpus: Option<u32>,
    /// Whether any of it is a sweep.
    pub(super) has_sweep: bool,
}

impl SideResults {
    /// Everything in these folders.
    pub(super) fn read_folders(folders: &[PathBuf], lens: &Lens<'_>) -> Result<Self, Failed> {
        let mut taken = Self::default();
        for folder in folders {
            taken.add_folder(folder, lens)?;
        }
        Ok(taken)
    }

    fn add_folder(&mut self, path: &Path, lens: &Lens<'_>) -> Result<(), Failed> {
        let series = match Artifact::open(path) {
            Ok(Artifact::Comparison(_) | Artifact::Shadow(_)) => {
                return Err(is_comparison_error(path));
            }
            Ok(Artifact::Summary(folder)) if folder.read_schema() == Comparison::SCHEMA => {
                return Err(is_comparison_error(path));
            }
            Ok(Artifact::Sweep(folder) | Artifact::Sweeps(folder)) => {
                return match sweep::read_sweep_folder(
                    &folder,
                    &SloQuestion::default(),
                    lens.observer,
                )? {
                    SavedSweep::One(sweep) => self.add_sweep(path, &sweep, lens),
                    SavedSweep::Many(_) => Err(several_sweeps_error(path)),
                };
            }
            Ok(Artifact::Repeats(series)) => series,
            Err(error) => return Err(unreadable_error(error)),
            Ok(_) => {
                self.runs.push(SideRun::read(path, lens)?);
                return Ok(());
            }
        };
        let numbers = series.run_numbers();
        let (before, mut first) = (self.runs.len(), None);
        for number in &numbers {
            match SideRun::read(&series.run_path(*number), lens) {
                Ok(run) => self.runs.push(run),
                Err(failed) => {
                    lens.observer.warn(format!("left out: {failed}"));
                    first.get_or_insert(failed);
                }
            }
        }
        // An unreadable series is not a side.
        match first {
            Some(failed) if self.runs.len() == before => Err(failed),
            _ => Ok(()),
        }
    }

    /// Its points, without those that are of another kind, and its answer.
    fn add_sweep(
        &mut self,
        path: &Path,
        sweep: &SweepSummary,
        lens: &Lens<'_>,
    ) -> Result<(), Failed> {
        let is_of_curve = |purpose| !matches!(purpose, Purpose::WarmUp | Purpose::Twin);
        for point in sweep.points.iter().filter(|point| is_of_curve(point.point.ask.purpose)) {
            self.runs.push(SideRun::read(&path.join(&point.folder), lens)?);
        }
        self.has_sweep = true;
        self.gpus = self.gpus.or(sweep.sweep.gpus);
        // The answer holds for the SLO that was searched with.
        let is_searched = sweep.plan.search && !lens.has_slo();
        if let Some(goodput) = sweep.goodput.as_ref().filter(|_| is_searched) {
            let answer = goodput_figure(goodput);
            if answer.is_none() {
                let (path, why) = (path.display(), &goodput.because);
                let line = format!("{path} has no goodput to compare: {why}");
                lens.observer.notice(line);
            }
            self.answers.push(answer);
        }
        Ok(())
    }
}

/// The goodput of a sweep, in requests per second. A bound is not a value: where this client was the limit,
/// both sides would seem the same.
pub fn goodput_figure(goodput: &Goodput) -> Option<Figure> {
    let value = match goodput.state {
        GoodputState::Found => goodput.confirmed_rps?,
        GoodputState::Unreachable => return Some(Figure { value: 0.0, low: None, high: None }),
        GoodputState::AtLeast | GoodputState::Measured | GoodputState::Unclear => return None,
    };
    // The crossing is on the axis: users are not requests per second.
    let crossing = goodput.crossing.filter(|_| goodput.axis == Axis::Rate);
    let low = crossing.and_then(|crossing| crossing.low).filter(|low| *low <= value);
    let high = crossing.and_then(|crossing| crossing.high).filter(|high| *high >= value);
    Some(Figure { value, low, high })
}

fn is_comparison_error(path: &Path) -> Failed {
    Failed::usage(format!("`{}` is a comparison", path.display()))
        .hint("name the run folders inside it; `goodput report` shows its result")
}

fn several_sweeps_error(path: &Path) -> Failed {
    Failed::usage(format!("`{}` holds sweeps of several configurations", path.display()))
        .hint("name two folders inside its `configurations`")
}

#[cfg(test)]
mod tests {
    use goodput_campaign::sweep::Bounded;

    use super::*;

    #[test]
    fn a_bound_is_no_value_and_no_load_at_all_is_one() {
        let goodput = |state| Goodput {
            state,
            because: String::new(),
            slo: String::new(),
            axis: Axis::Rate,
            confirmed: Some(8.0),
            rejected: None,
            confirmed_rps: Some(8.0),
            rejected_rps: None,
            measured: None,
            measured_rps: None,
            attainment: None,
            attainment_low: None,
            attainment_high: None,
            crossing: Some(Bounded { value: 8.2, low: Some(7.5), high: Some(9.0) }),
            runs: 3,
            requests: 100,
            seen_attainment: None,
            over_claim_risk: None,
        };
        let found = Figure { value: 8.0, low: Some(7.5), high: Some(9.0) };
        let nothing = Figure { value: 0.0, low: None, high: None };
        for (state, expected) in [
            (GoodputState::Found, Some(found)),
            (GoodputState::AtLeast, None),
            (GoodputState::Unreachable, Some(nothing)),
            (GoodputState::Unclear, None),
        ] {
            assert_eq!(goodput_figure(&goodput(state)), expected, "{state:?}");
        }
    }
}
