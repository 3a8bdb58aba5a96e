//! A sweep as its folder has it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use goodput_campaign::sweep::{
    Figures, Point, PointAsk, SweepFacts, SweepState, SweepSummary, Sweeps,
};
use goodput_model::SystemContext;
use goodput_record::{Artifact, CampaignFolder, FolderError};

use super::many;
use super::request::SweepRequest;
use crate::error::Failed;
use crate::events::Observer;
use crate::saved as runs;

/// A sweep, or several.
pub enum SavedSweep {
    /// Of one configuration.
    One(Box<SweepSummary>),
    /// Of several.
    Many(Sweeps),
}

/// The numbers of a saved sweep, computed again from the logs of its points; none if the folder
/// holds no sweep.
pub fn read(path: &Path, observer: &dyn Observer) -> Option<Result<SavedSweep, Failed>> {
    match Artifact::open(path) {
        Ok(Artifact::Sweep(folder) | Artifact::Sweeps(folder)) => {
            Some(read_folder(&folder, observer))
        }
        _ => None,
    }
}

/// The same of a folder that is open.
pub fn read_folder(folder: &CampaignFolder, observer: &dyn Observer) -> Result<SavedSweep, Failed> {
    let request: SweepRequest =
        folder.asked().map_err(|error: FolderError| Failed::usage(error.to_string()))?;
    if request.is_one() {
        Ok(SavedSweep::One(Box::new(summary(folder, &request, observer)?)))
    } else {
        many::read(folder, &request, observer).map(SavedSweep::Many)
    }
}

/// The numbers of a sweep of one configuration.
pub(super) fn summary(
    folder: &CampaignFolder,
    request: &SweepRequest,
    observer: &dyn Observer,
) -> Result<SweepSummary, Failed> {
    let kept = points(folder, observer)?;
    let written = written(folder).map(|summary| summary.sweep);
    let facts = written.or_else(|| facts(folder, request)).ok_or_else(|| {
        Failed::usage(format!("`{}` holds no finished point yet", folder.path().display()))
            .hint("continue it with `goodput sweep --resume`")
    })?;
    Ok(SweepSummary::new(
        facts,
        request.sweep.clone(),
        kept.into_iter().map(SavedPoint::named).collect(),
    ))
}

/// The summary as it was written last.
pub(super) fn written(folder: &CampaignFolder) -> Option<SweepSummary> {
    folder.summary()
}

/// Without a summary: what the first point says.
fn facts(folder: &CampaignFolder, request: &SweepRequest) -> Option<SweepFacts> {
    let (_, first) = folder.points().into_iter().next()?;
    let run = runs::read(&first).ok()?.run;
    Some(SweepFacts {
        version: run.version,
        started: run.started,
        state: SweepState::Unfinished,
        target: run.target,
        model: run.model.clone(),
        workload: run.workload,
        gpus: request.gpus,
        estimated: None,
        took_s: 0.0,
        settings: run.system.settings(),
        system: SystemContext::new(&run.model, &run.system.settings()),
        ..SweepFacts::default()
    })
}

/// A point with its folder's name.
pub(super) struct SavedPoint {
    pub(super) folder: String,
    pub(super) point: Point,
    /// How long it took.
    pub(super) took_s: f64,
}

impl SavedPoint {
    pub(super) fn named(self) -> (String, Point) {
        (self.folder, self.point)
    }
}

/// Every whole point, in the order measured; what cannot be read is named and left out.
pub(super) fn points(
    folder: &CampaignFolder,
    observer: &dyn Observer,
) -> Result<Vec<SavedPoint>, Failed> {
    let damaged = |error: FolderError| Failed::usage(error.to_string());
    let paths: BTreeMap<u32, PathBuf> = folder.points().into_iter().collect();
    let read = |begun: goodput_record::BegunPoint<PointAsk>| {
        let (took_s, path) = begun.took_s.zip(paths.get(&begun.number))?;
        match runs::read(path) {
            Ok(summary) => Some(SavedPoint {
                folder: name(path),
                point: Point { ask: begun.ask, figures: Figures::from_summary(&summary) },
                took_s,
            }),
            Err(failed) => {
                observer.warn(format!("left out: {failed}"));
                None
            }
        }
    };
    Ok(folder.asks().map_err(damaged)?.into_iter().filter_map(read).collect())
}

/// The name of a point's folder, within that of the sweep.
pub(super) fn name(path: &Path) -> String {
    let last = path.file_name().map(|name| name.to_string_lossy().into_owned());
    format!("points/{}", last.unwrap_or_default())
}
