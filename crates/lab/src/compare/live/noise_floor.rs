//! A server compared with itself: the noise floor of this rig.

use goodput_campaign::compare::{ComparedRun, Floor, floor as floor_of};
use goodput_model::Verdict;

use super::run::CompareRun;
use crate::compare::floor;
use crate::events::CompareProgress;
use crate::{calibrate, host};

/// Blocks that a noise floor takes.
const FEWEST: u32 = 3;

impl CompareRun<'_> {
    /// Runs of blocks that count, and that are suspect.
    fn suspect_runs(&self) -> u32 {
        let spoilt = |block: u32| {
            let mut own = self.cells.iter().filter(|cell| cell.ask.block == block);
            own.any(|cell| cell.verdict == Verdict::Void)
        };
        let is_it =
            |cell: &&ComparedRun| cell.verdict == Verdict::Suspect && !spoilt(cell.ask.block);
        u32::try_from(self.cells.iter().filter(is_it).count()).unwrap_or(u32::MAX)
    }

    /// What a server compared with itself says about this rig.
    pub(super) fn keep_floor(&mut self) {
        let design = &self.request.design;
        let sd = floor_of(design, &self.cells);
        let is_known = self.blocks() >= FEWEST && !sd.is_empty();
        let Some(reference) = self.who().into_iter().next().filter(|_| is_known) else {
            let unknown = "too few valid blocks to know the noise floor of this rig";
            return self.say(unknown.to_owned());
        };
        let found = Floor {
            schema: Floor::SCHEMA.to_owned(),
            date: host::timestamp(),
            machine: calibrate::machine(),
            target: reference.target,
            model: reference.model,
            load: floor::loads(&design.levels),
            workload: self.facts.workload.clone(),
            blocks: self.blocks(),
            run_s: design.run_s,
            suspect_runs: self.suspect_runs(),
            sd,
        };
        match floor::keep(&found) {
            Ok(path) => {
                self.lab.observer.comparison(&CompareProgress::Floor(&found));
                self.say(format!(
                    "saved for later comparisons of this target in {}; delete the file to discard it",
                    path.display()
                ));
            }
            Err(failed) => self.lab.observer.warn(failed.to_string()),
        }
        self.floor = Some(found);
    }
}
