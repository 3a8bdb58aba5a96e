//! What to know before saved runs are believed.

use std::collections::{BTreeMap, BTreeSet};

use goodput_model::{Caveat, CaveatCode, Severity, Verdict};

use super::Saved;
use crate::compare::doubts::common_cause;
use crate::compare::metric::tested_metrics;
use crate::compare::{RunAsk, find_metric};

impl Saved<'_> {
    /// All of them.
    pub(super) fn caveats(&self) -> Vec<Caveat> {
        let mut all = vec![
            Caveat::new(
                CaveatCode::NotInterleaved,
                Severity::Info,
                "the runs were not measured in turn: every difference includes whatever else \
                 changed between them",
            )
            .advise("run `goodput compare` with both servers up to measure them in turn"),
        ];
        all.extend(self.doubtful_run_caveats());
        let (mut empty, mut single) = (BTreeMap::new(), BTreeMap::new());
        for level in 0..self.level_count() {
            for side in 0..self.run_count() {
                match self.usable_runs(level, side).len() {
                    0 => drop(
                        empty.entry(self.side_name(side)).or_insert_with(|| self.level_text(level)),
                    ),
                    1 => {
                        let fits = self
                            .floor
                            .is_some_and(|floor| self.is_floor_of(floor, level, &[0, side]));
                        let names: &mut BTreeSet<&str> = single.entry(fits).or_default();
                        names.insert(self.side_name(side));
                    }
                    _ => {}
                }
            }
        }
        for (side, place) in empty {
            let message = format!("{place}{side} has no usable run");
            all.push(Caveat::new(CaveatCode::NothingMeasured, Severity::Void, message));
        }
        for (fits, names) in single {
            let names: Vec<&str> = names.into_iter().collect();
            all.push(self.single_run_caveat(&names.join(", "), fits));
        }
        all.extend(self.missing_figure_caveats());
        all
    }

    /// Figures that would be tested, and that some runs lack while others have them: a tail beyond
    /// the time limit has no value, which must be stated.
    fn missing_figure_caveats(&self) -> Vec<Caveat> {
        let mut all = Vec::new();
        for level in 0..self.level_count() {
            for metric in tested_metrics(self.design).iter().filter_map(|name| find_metric(name)) {
                let sides = 0..self.run_count();
                let has = |side: u32| !self.figures_of_side(&metric.name, level, side).is_empty();
                if !sides.clone().any(has) {
                    continue;
                }
                let lacks = |side: u32| {
                    let has_place = self.can_have(&metric.name, level, side);
                    self.incomplete_runs(&metric.name, level, side).filter(|_| has_place)
                };
                for (side, (found, runs)) in sides.filter_map(|side| Some((side, lacks(side)?))) {
                    let message = format!(
                        "{}no verdict on {}: {} has it in {found} of {runs} runs (beyond the time \
                         limit, or nothing to measure)",
                        self.level_text(level),
                        metric.title,
                        self.side_name(side)
                    );
                    all.push(Caveat::new(CaveatCode::FigureMissing, Severity::Warn, message));
                }
            }
        }
        all
    }

    fn single_run_caveat(&self, names: &str, fits: bool) -> Caveat {
        let advice = "measure each side several times (`goodput run --repeat 5`), or both in turn";
        let (severity, rest) = match self.floor {
            None => (
                Severity::Warn,
                "its intervals show how requests vary, but not how much runs differ by chance, so \
                 no verdict is given"
                    .to_owned(),
            ),
            Some(floor) if !fits => (
                Severity::Warn,
                format!(
                    "the noise floor of this rig was measured on something else ({}, {}, runs of \
                     {} s), so how much these runs differ by chance is unknown, and no verdict is \
                     given",
                    floor.workload, floor.load, floor.run_s
                ),
            ),
            Some(floor) => (
                Severity::Info,
                format!(
                    "how much runs differ by chance is taken from the noise floor of this rig ({} \
                     blocks of {} s, measured in turn); runs on different days may differ by more",
                    floor.blocks, floor.run_s
                ),
            ),
        };
        let message = format!("a single run of {names}: {rest}");
        Caveat::new(CaveatCode::FewSamples, severity, message).advise(advice)
    }

    fn doubtful_run_caveats(&self) -> Vec<Caveat> {
        let cells = super::runs_of_sides(self.sides.to_vec());
        let count = |verdict: Verdict| cells.iter().filter(|cell| cell.verdict == verdict).count();
        let n = cells.len();
        let of = |count: usize, what: &str| {
            let message = format!("{count} of {n} runs are {what}");
            (count > 0).then(|| {
                Caveat::new(CaveatCode::DoubtfulRuns, Severity::Warn, message)
                    .advise("run `goodput report` on its folder for details")
            })
        };
        let why = |verdict| {
            let run = |ask: &RunAsk| format!("run {} of {}", ask.block, self.side_name(ask.side));
            common_cause(&cells, verdict, run)
        };
        let void = format!("void and left out{}", why(Verdict::Void));
        let suspect = format!("suspect{}", why(Verdict::Suspect));
        let void = of(count(Verdict::Void), &void);
        void.into_iter().chain(of(count(Verdict::Suspect), &suspect)).collect()
    }
}
