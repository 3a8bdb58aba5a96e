//! A sweep as its folder has it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use goodput_campaign::sweep::{
    Figures, Point, PointAsk, SweepFacts, SweepPlan, SweepState, SweepSummary, Sweeps,
};
use goodput_model::{SloQuestion, SystemContext};
use goodput_record::{Artifact, CampaignFolder, FolderError};

use super::many;
use super::request::{SweepRequest, set_default_attainment};
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
pub fn read_sweep(path: &Path, observer: &dyn Observer) -> Option<Result<SavedSweep, Failed>> {
    match Artifact::open(path) {
        Ok(Artifact::Sweep(folder) | Artifact::Sweeps(folder)) => {
            Some(read_sweep_folder(&folder, &SloQuestion::default(), observer))
        }
        _ => None,
    }
}

/// The same of a folder that is open, judged by this SLO.
pub fn read_sweep_folder(
    folder: &CampaignFolder,
    slo: &SloQuestion,
    observer: &dyn Observer,
) -> Result<SavedSweep, Failed> {
    let request: SweepRequest =
        folder.read_asked().map_err(|error: FolderError| Failed::usage(error.to_string()))?;
    if request.has_one_configuration() {
        Ok(SavedSweep::One(Box::new(read_summary(folder, &request, slo, observer)?)))
    } else {
        many::read_sweeps(folder, &request, slo, observer).map(SavedSweep::Many)
    }
}

/// The numbers of a sweep of one configuration.
pub(super) fn read_summary(
    folder: &CampaignFolder,
    request: &SweepRequest,
    slo: &SloQuestion,
    observer: &dyn Observer,
) -> Result<SweepSummary, Failed> {
    let (slo, sweep) = judging_plan(request, slo)?;
    let kept = read_points(folder, &slo, observer)?;
    let written = written_summary(folder).map(|summary| summary.sweep);
    let facts = written.or_else(|| facts_of_first_point(folder, request)).ok_or_else(|| {
        Failed::usage(format!("`{}` holds no finished point yet", folder.path().display()))
            .hint("continue it with `goodput sweep --resume`")
    })?;
    let own = request.sweep.slo.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
    let is_asked = (&sweep.slo, sweep.attainment) != (&request.sweep.slo, request.sweep.attainment);
    let measured_with = is_asked.then_some(own);
    let points = kept.into_iter().map(SavedPoint::into_named).collect();
    Ok(SweepSummary { measured_with, ..SweepSummary::new(facts, sweep, points) })
}

/// What is asked of each point, and of the sweep: this SLO as if it had been asked before, with the
/// usual share of good requests. What was searched for was the other one.
fn judging_plan(
    request: &SweepRequest,
    slo: &SloQuestion,
) -> Result<(SloQuestion, SweepPlan), Failed> {
    let own = &request.sweep;
    if slo.is_empty() {
        return Ok((slo.clone(), own.clone()));
    }
    let mut plan = request.plan.clone();
    runs::apply_slo(slo)(&mut plan)?;
    set_default_attainment(&mut plan.measure);
    let (slo, attainment) = (plan.measure.slo, plan.measure.attainment);
    let is_own = slo == own.slo && attainment == own.attainment;
    let search = own.search && is_own;
    let sweep = SweepPlan { slo: slo.clone(), attainment, search, ..own.clone() };
    Ok((SloQuestion { slo, attainment }, sweep))
}

/// The summary as it was written last.
pub(super) fn written_summary(folder: &CampaignFolder) -> Option<SweepSummary> {
    folder.read_summary()
}

/// Without a summary: what the first point says.
fn facts_of_first_point(folder: &CampaignFolder, request: &SweepRequest) -> Option<SweepFacts> {
    let (_, first) = folder.list_points().into_iter().next()?;
    let run = runs::read_summary(&first).ok()?.run;
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
    pub(super) fn into_named(self) -> (String, Point) {
        (self.folder, self.point)
    }
}

/// Every whole point, in the order measured; what cannot be read is named and left out.
pub(super) fn read_points(
    folder: &CampaignFolder,
    slo: &SloQuestion,
    observer: &dyn Observer,
) -> Result<Vec<SavedPoint>, Failed> {
    let damaged = |error: FolderError| Failed::usage(error.to_string());
    let paths: BTreeMap<u32, PathBuf> = folder.list_points().into_iter().collect();
    let read = |begun: goodput_record::BegunPoint<PointAsk>| {
        let (took_s, path) = begun.took_s.zip(paths.get(&begun.number))?;
        match runs::read_summary_judged(path, slo) {
            Ok(summary) => Some(SavedPoint {
                folder: folder_name(path),
                point: Point { ask: begun.ask, figures: Figures::from_summary(&summary) },
                took_s,
            }),
            Err(failed) => {
                observer.warn(format!("left out: {failed}"));
                None
            }
        }
    };
    Ok(folder.read_asks().map_err(damaged)?.into_iter().filter_map(read).collect())
}

/// The name of a point's folder, within that of the sweep.
pub(super) fn folder_name(path: &Path) -> String {
    let last = path.file_name().map(|name| name.to_string_lossy().into_owned());
    format!("points/{}", last.unwrap_or_default())
}
