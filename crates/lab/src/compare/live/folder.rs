//! A comparison as its folder has it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use goodput_campaign::compare::{
    CompareFacts, CompareState, ComparedRun, Comparison, ComparisonContext, Design, DesignStep,
    Proof, Quantity, RunAsk, Side, SideFacts, comparable_figures, gravest_caveat, next_design_step,
};
use goodput_campaign::sweep::{GoodputState, SweepSummary};
use goodput_files::{MOST_SUMMARY, read_inside};
use goodput_model::{Caveat, CaveatCode, Severity, Verdict};
use goodput_record::{Campaign, CampaignFolder, FolderError, RunFolder};
use goodput_stats::Summary;

use super::request::CompareRequest;
use super::targets::TargetSpec;
use crate::compare::saved::goodput_figure;
use crate::compare::{machine_text, proof};
use crate::error::Failed;
use crate::events::Observer;
use crate::run::Lab;
use crate::saved as runs;
use crate::sweep::{self, SavedSweep};

/// The numbers of a saved comparison, computed again from the logs of its runs; none if the folder
/// holds no comparison.
pub fn read_comparison(path: &Path, observer: &dyn Observer) -> Option<Result<Comparison, Failed>> {
    let folder = CampaignFolder::open(Campaign::Comparison, path)?;
    let read = || {
        let request: CompareRequest = folder.read_asked().map_err(damaged_error)?;
        let RunsOnDisk { cells, .. } = read_kept_runs(&folder, &request.design, observer)?;
        if cells.is_empty() {
            let message = format!("`{}` holds no finished run yet", folder.path().display());
            return Err(Failed::usage(message).hint("continue it with `goodput compare --resume`"));
        }
        let written = written_summary(&folder);
        let proof = prove_blocks(&folder, &request.design, &cells);
        let (facts, sides, floor) = if let Some(written) = written {
            (written.comparison, written.sides, written.floor)
        } else {
            // It was killed before it could write.
            let state = CompareState::Unfinished;
            let sides = request.targets.iter().map(described_side).collect();
            (CompareFacts { state, ..CompareFacts::default() }, sides, None)
        };
        let context = ComparisonContext { proof, floor, insists: request.anyway };
        Ok(Comparison::from_paired_runs(facts, request.design, sides, cells, context))
    };
    Some(read())
}

#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` takes")]
fn damaged_error(error: FolderError) -> Failed {
    Failed::usage(error.to_string())
}

/// A side with only the requested facts.
fn described_side(one: &TargetSpec) -> Side {
    Side {
        name: one.name.clone(),
        target: one.url.clone(),
        model: one.model.clone().unwrap_or_default(),
        gpus: one.gpus,
        price_per_gpu_hour: one.price_per_gpu_hour,
        ..Side::default()
    }
}

/// The comparison as it was written last.
pub(super) fn written_summary(folder: &CampaignFolder) -> Option<Comparison> {
    let bytes = read_inside(&folder.path().join("summary.json"), MOST_SUMMARY).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// What a folder holds of a comparison.
#[derive(Default)]
pub(super) struct RunsOnDisk {
    /// Every whole run, in the order measured.
    pub(super) cells: Vec<ComparedRun>,
    /// Runs that sent something and do not count.
    pub(super) lost: Vec<RunAsk>,
    /// Seconds that the whole runs took.
    pub(super) took_s: f64,
}

/// A comparison that goes on, as its folder has it.
pub struct ResumedComparison {
    pub(super) folder: CampaignFolder,
    /// As it was written last.
    pub(super) earlier: Option<Comparison>,
    pub(super) kept: RunsOnDisk,
    is_over: bool,
}

impl ResumedComparison {
    /// What the folder holds of a comparison of this design.
    pub fn read(lab: &Lab, folder: CampaignFolder, design: &Design) -> Result<Self, Failed> {
        // Logs may be long: from here on a signal is a wish to stop.
        lab.interrupt.listen_once().map_err(|error| Failed::internal(error.to_string()))?;
        let earlier = written_summary(&folder);
        let kept = read_kept_runs(&folder, design, &*lab.observer)?;
        let is_done = matches!(next_step(design, &kept.cells, &kept.lost), DesignStep::Done(_));
        let is_over = is_done && earlier.is_some();
        Ok(Self { folder, earlier, kept, is_over })
    }

    /// Whether nothing more will be measured, so that no target need be there.
    pub fn is_over(&self) -> bool {
        self.is_over
    }
}

/// What there is; what cannot be read is named and left out.
pub(super) fn read_kept_runs(
    folder: &CampaignFolder,
    design: &Design,
    observer: &dyn Observer,
) -> Result<RunsOnDisk, Failed> {
    let paths: BTreeMap<u32, PathBuf> = folder.list_points().into_iter().collect();
    let mut kept = RunsOnDisk::default();
    for begun in folder.read_asks::<RunAsk>().map_err(damaged_error)? {
        let Some(path) = paths.get(&begun.number) else { continue };
        let whole =
            begun.took_s.map(|took_s| Ok((took_s, saved_run(design, begun.ask, path, observer)?)));
        match whole.transpose() {
            Ok(Some((took_s, cell))) => {
                kept.took_s += took_s;
                kept.cells.push(cell);
                continue;
            }
            Ok(None) => {}
            Err(failed) => {
                let failed: Failed = failed;
                observer.warn(format!("left out: {failed}"));
            }
        }
        // A search goes on where it was.
        if design.quantity == Quantity::Runs {
            kept.lost.push(begun.ask);
        }
    }
    Ok(kept)
}

/// What comes next. A block of which a run was lost is left: the server of that run may know its
/// prompts by now, and those of the other sides do not. The next block has prompts of its own.
pub(super) fn next_step(design: &Design, cells: &[ComparedRun], lost: &[RunAsk]) -> DesignStep {
    next_design_step(design, &add_lost_runs(cells, lost))
}

/// Lost runs stand for void ones.
pub(super) fn add_lost_runs(cells: &[ComparedRun], lost: &[RunAsk]) -> Vec<ComparedRun> {
    let void = |ask: &RunAsk| ComparedRun {
        ask: *ask,
        verdict: Verdict::Void,
        doubt: None,
        figures: BTreeMap::new(),
        facts: SideFacts::default(),
    };
    cells.iter().cloned().chain(lost.iter().map(void)).collect()
}

/// A run as its folder has it.
fn saved_run(
    design: &Design,
    ask: RunAsk,
    path: &Path,
    observer: &dyn Observer,
) -> Result<ComparedRun, Failed> {
    match design.quantity {
        Quantity::Runs => compared_run(ask, path, &runs::read_summary(path)?),
        Quantity::Goodput => match sweep::read_sweep(path, observer) {
            Some(Ok(SavedSweep::One(summary))) => compared_search(ask, path, &summary),
            Some(Err(failed)) => Err(failed),
            _ => Err(Failed::usage(format!("`{}` is not a search", path.display()))),
        },
    }
}

/// What a run says.
pub(super) fn compared_run(
    ask: RunAsk,
    path: &Path,
    summary: &Summary,
) -> Result<ComparedRun, Failed> {
    let folder = RunFolder::open(path).map_err(damaged_error)?;
    let (plan, manifest) = (
        folder.read_plan().map_err(damaged_error)?,
        folder.read_manifest().map_err(damaged_error)?,
    );
    Ok(ComparedRun {
        ask,
        verdict: Verdict::from_caveats_of_part(&summary.caveats),
        doubt: gravest_caveat(&summary.caveats),
        figures: comparable_figures(summary),
        facts: SideFacts::from_run(&plan, summary, machine_text(&manifest.host)),
    })
}

/// What a search says: the load that it confirmed. Its facts are those of its first run, its warm-up:
/// later ones have loads and requests of their own on each side.
pub(super) fn compared_search(
    ask: RunAsk,
    path: &Path,
    found: &SweepSummary,
) -> Result<ComparedRun, Failed> {
    let facts = match found.points.first() {
        Some(point) => {
            let path = path.join(&point.folder);
            compared_run(ask, &path, &runs::read_summary(&path)?)?.facts
        }
        None => SideFacts::default(),
    };
    let goodput = found.goodput.as_ref();
    let figure = goodput.and_then(goodput_figure);
    // Where this cannot be told, another block may.
    let is_unclear = goodput.is_none_or(|goodput| goodput.state == GoodputState::Unclear);
    let because = goodput.map_or("", |goodput| goodput.because.as_str());
    let untold = format!("its search found no goodput ({because})");
    let untold = Caveat::new(CaveatCode::NothingMeasured, Severity::Void, untold);
    Ok(ComparedRun {
        ask,
        verdict: if is_unclear { Verdict::Void } else { found.verdict },
        doubt: if is_unclear { Some(untold) } else { gravest_caveat(&found.caveats) },
        figures: figure.map(|figure| ("goodput_rps".to_owned(), figure)).into_iter().collect(),
        // Each side ends at a load of its own.
        facts: SideFacts { load: "a search".to_owned(), seed: ask.seed, window_s: 0.0, ..facts },
    })
}

/// Whether the sides of each block were sent the same.
pub(super) fn prove_blocks(
    folder: &CampaignFolder,
    design: &Design,
    cells: &[ComparedRun],
) -> Option<Proof> {
    if design.quantity == Quantity::Goodput {
        return None;
    }
    let paths: BTreeMap<u32, PathBuf> = folder.list_points().into_iter().collect();
    let mut groups: BTreeMap<(u32, u32), BTreeMap<u32, PathBuf>> = BTreeMap::new();
    for ComparedRun { ask, .. } in cells {
        if let Some(path) = paths.get(&ask.number) {
            groups.entry((ask.block, ask.level)).or_default().insert(ask.side, path.clone());
        }
    }
    let whole = groups.into_values().filter(|group| group.len() == design.sides.len());
    let groups: Vec<Vec<PathBuf>> = whole.map(|group| group.into_values().collect()).collect();
    if groups.is_empty() { None } else { proof::prove_same_requests(&groups) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Silent;

    #[test]
    fn a_block_of_which_a_run_was_lost_gives_way_to_another() {
        let sides = vec!["A".to_owned(), "B".to_owned()];
        let design = Design { sides, looks: vec![2], ..Design::default() };
        let first = |cells: &[ComparedRun], lost: &[RunAsk]| match next_step(&design, cells, lost) {
            DesignStep::Measure(asks) => asks[0],
            DesignStep::Done(stopped) => panic!("{stopped:?}"),
        };
        let begun = first(&[], &[]);
        assert_eq!((begun.number, begun.block), (1, 1));
        let whole = add_lost_runs(&[], &[begun]).into_iter();
        let whole: Vec<ComparedRun> =
            whole.map(|cell| ComparedRun { verdict: Verdict::Valid, ..cell }).collect();
        let second = first(&whole, &[]);
        assert_eq!((second.number, second.block, second.seed), (2, 1, begun.seed));
        let other = first(&whole, &[second]);
        assert_eq!((other.number, other.block), (3, 2));
        assert_ne!(other.seed, begun.seed);
    }

    #[test]
    fn what_began_and_is_not_whole_is_lost_once_it_has_a_folder() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("out");
        let folder =
            CampaignFolder::create(Campaign::Comparison, &path, &Design::default()).unwrap();
        let ask = |number| RunAsk { number, block: number, side: 0, level: 0, seed: 7 };
        for number in 1..=3 {
            folder.note_begin(number, &ask(number)).unwrap();
        }
        // Of the first nothing was sent, the second was stopped, the third is damaged.
        folder.note_end(3, 1.0).unwrap();
        for number in 2..=3 {
            std::fs::create_dir_all(folder.point_path(number, "x")).unwrap();
        }
        let found = read_kept_runs(&folder, &Design::default(), &Silent).unwrap();
        assert_eq!((found.cells.len(), found.lost), (0, vec![ask(2), ask(3)]));
    }
}
