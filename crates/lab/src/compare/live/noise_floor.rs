//! A server compared with itself: the noise floor of this rig.

use goodput_campaign::compare::{ComparedRun, Floor, measure_noise_floor as floor_of};
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
        let spoiled = |block: u32| {
            let mut own = self.cells.iter().filter(|cell| cell.ask.block == block);
            own.any(|cell| cell.verdict == Verdict::Void)
        };
        let is_it =
            |cell: &&ComparedRun| cell.verdict == Verdict::Suspect && !spoiled(cell.ask.block);
        u32::try_from(self.cells.iter().filter(is_it).count()).unwrap_or(u32::MAX)
    }

    /// What a server compared with itself says about this rig.
    pub(super) fn keep_floor(&mut self) {
        let design = &self.request.design;
        let sd = floor_of(design, &self.cells);
        let is_known = self.count_blocks() >= FEWEST && !sd.is_empty();
        let Some(reference) = self.described_sides().into_iter().next().filter(|_| is_known) else {
            let unknown = "too few valid blocks to know the noise floor of this rig";
            return self.note(unknown.to_owned());
        };
        let found = Floor {
            schema: Floor::SCHEMA.to_owned(),
            date: host::timestamp(),
            machine: calibrate::machine_text(),
            target: reference.target,
            model: reference.model,
            load: floor::loads_text(&design.levels),
            workload: self.facts.workload.clone(),
            blocks: self.count_blocks(),
            run_s: design.run_s,
            suspect_runs: self.suspect_runs(),
            sd,
        };
        match floor::save_floor(&found) {
            Ok(path) => {
                self.lab.observer.comparison(&CompareProgress::Floor(&found));
                self.note(format!(
                    "saved for later comparisons of this target in {}; delete the file to discard it",
                    path.display()
                ));
            }
            Err(failed) => self.lab.observer.warn(failed.to_string()),
        }
        self.floor = Some(found);
    }
}
