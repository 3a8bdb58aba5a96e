//! Pages for a browser, and their charts as files.

mod circumstances;

use std::fs;
use std::path::{Path, PathBuf};

use goodput_campaign::compare::Comparison;
use goodput_campaign::sweep::{PointSummary, Purpose, Standing, SweepSummary, Sweeps};
use goodput_model::Plan;
use goodput_record::{FolderError, Manifest, RunFolder, SeriesFolder};
use goodput_report::{
    Circumstances, Picture, PointView, RunView, SweepView, compare_charts, repeats_html,
    run_charts, run_html, sweep_charts, sweep_html, sweeps_html,
};
use goodput_stats::{Audit, Details, Repeats, Summary, audit_run, completed, details, repeats};

use super::Read;
use super::export;
use crate::error::Failed;
use crate::printer::Printer;
use crate::{output, shadow_page};
use goodput_lab::saved::read_series;
use goodput_lab::sweep::{self, SavedSweep};

/// What a page is called in its folder.
pub(crate) const PAGE: &str = "report.html";

/// The page of whatever lies in a folder: a run, several, a sweep, sweeps, a comparison.
pub(super) fn page(folder: &Path) -> Result<String, Failed> {
    Ok(match Found::in_folder(folder)? {
        Found::Comparison(comparison) if comparison.shadow.is_some() => {
            shadow_page::html(folder, &comparison)
        }
        Found::Comparison(comparison) => super::comparison::html(folder, &comparison),
        Found::Sweep(summary) => sweep_html(&Swept::read(folder, &summary).view(&summary)),
        Found::Sweeps(sweeps) => sweeps_html(&sweeps),
        Found::Series(series) => {
            repeats_html(&repeats(&read_series(&series, &Printer::new(false))))
        }
        Found::Run => {
            let Read { plan, manifest, summary } = super::read_as(folder, |_| Ok(()))?;
            let ran = Ran::read(folder, &plan, &manifest, &summary)?;
            run_html(&ran.view(&summary))
        }
    })
}

/// What a folder holds.
enum Found {
    Comparison(Box<Comparison>),
    Sweep(Box<SweepSummary>),
    Sweeps(Sweeps),
    Series(SeriesFolder),
    Run,
}

impl Found {
    fn in_folder(folder: &Path) -> Result<Self, Failed> {
        if let Some(saved) = super::comparison::read(folder) {
            return Ok(Self::Comparison(Box::new(saved?)));
        }
        if let Some(saved) = sweep::read(folder, &Printer::new(false)) {
            return Ok(match saved? {
                SavedSweep::One(summary) => Self::Sweep(summary),
                SavedSweep::Many(sweeps) => Self::Sweeps(sweeps),
            });
        }
        // A run may lie in a folder with any name beside it.
        let series = SeriesFolder::open(folder).filter(|_| RunFolder::open(folder).is_err());
        Ok(series.map_or(Self::Run, Self::Series))
    }
}

/// What the page of a run takes beside its numbers.
struct Ran {
    details: Details,
    audit: Audit,
    circumstances: Circumstances,
}

impl Ran {
    fn read(
        path: &Path,
        plan: &Plan,
        manifest: &Manifest,
        summary: &Summary,
    ) -> Result<Self, Failed> {
        Ok(Self {
            details: details_of(path, plan, summary)?,
            audit: audit_run(summary, Some(plan)),
            circumstances: circumstances::of_run(path, manifest),
        })
    }

    fn view<'a>(&'a self, summary: &'a Summary) -> RunView<'a> {
        let Self { details, audit, circumstances } = self;
        RunView { summary, details, audit, circumstances }
    }
}

/// What the charts of a run are drawn from.
fn details_of(path: &Path, plan: &Plan, summary: &Summary) -> Result<Details, Failed> {
    let folder = RunFolder::open(path).map_err(unreadable)?;
    let samples: Vec<_> = folder.samples().collect();
    let records = completed(folder.records().map_err(unreadable)?.ahead(), folder.judgements());
    Ok(details(plan, summary, records, &samples))
}

#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` takes")]
fn unreadable(error: FolderError) -> Failed {
    Failed::usage(error.to_string())
}

/// What the page of a sweep takes beside its numbers.
struct Swept {
    points: Vec<PointView>,
    audit: Option<Audit>,
    circumstances: Circumstances,
}

impl Swept {
    /// A point whose folder cannot be read any more is named and left out.
    fn read(path: &Path, summary: &SweepSummary) -> Self {
        let answer = rests_on(summary);
        let mut swept = Self {
            points: Vec::new(),
            audit: None,
            circumstances: circumstances::of_sweep(path, None),
        };
        for point in &summary.points {
            let folder = &point.folder;
            match read_point(path, folder) {
                Ok((read, view)) => {
                    let is_answer = answer.is_some_and(|answer| answer.folder == *folder);
                    if is_answer {
                        swept.audit = Some(audit_run(&read.summary, Some(&read.plan)));
                    }
                    // Without an answer the first stands for all.
                    if is_answer || swept.points.is_empty() {
                        let point = Some((folder.as_str(), &read.manifest));
                        swept.circumstances = circumstances::of_sweep(path, point);
                    }
                    swept.points.push(view);
                }
                Err(failed) => output::note(&format!("warning: left out: {failed}")),
            }
        }
        swept
    }

    fn view<'a>(&'a self, summary: &'a SweepSummary) -> SweepView<'a> {
        let Self { points, audit, circumstances } = self;
        SweepView { summary, points, circumstances, audit: audit.as_ref() }
    }
}

/// A point as its folder has it.
fn read_point(sweep: &Path, folder: &str) -> Result<(Read, PointView), Failed> {
    let path = sweep.join(folder);
    let read = super::read_as(&path, |_| Ok(()))?;
    let details = details_of(&path, &read.plan, &read.summary)?;
    let view = PointView { folder: folder.to_owned(), summary: read.summary.clone(), details };
    Ok((read, view))
}

/// The last of the runs that confirmed the answer.
fn rests_on(summary: &SweepSummary) -> Option<&PointSummary> {
    let confirmed = summary.goodput.as_ref()?.confirmed?;
    let is_it = |PointSummary { point, standing, .. }: &&PointSummary| {
        matches!(point.ask.purpose, Purpose::Confirm | Purpose::Sustain)
            && point.ask.level.value() == confirmed
            && *standing == Standing::Met
    };
    summary.points.iter().rfind(is_it)
}

/// Charts of whatever lies in a folder, each a file of another. Those of several runs or sweeps lie in
/// folders below it.
pub(super) fn pictures(folder: &Path, to: Option<&Path>) -> Result<(), Failed> {
    let to = to.map_or_else(|| folder.join("charts"), Path::to_owned);
    let count = draw(folder, &to)?;
    if count == 0 {
        return Err(Failed::usage(format!("`{}` holds nothing to draw", folder.display()))
            .hint("`goodput report` without --format says what there is"));
    }
    output::note(&format!(
        "{count} charts in {}",
        goodput_report::plain(&to.display().to_string())
    ));
    Ok(())
}

/// How many there were.
fn draw(folder: &Path, to: &Path) -> Result<usize, Failed> {
    match Found::in_folder(folder)? {
        Found::Comparison(comparison) => write_all(to, &compare_charts(&comparison)),
        Found::Sweep(summary) => {
            write_all(to, &sweep_charts(&Swept::read(folder, &summary).view(&summary)))
        }
        Found::Sweeps(sweeps) => {
            let swept = sweeps.configurations.iter().filter(|one| one.sweep.is_some());
            draw_each(swept.map(|one| folder.join(&one.folder)), to)
        }
        Found::Series(series) => {
            draw_each(series.numbers().into_iter().map(|number| series.run(number)), to)
        }
        Found::Run => {
            let Read { plan, manifest, summary } = super::read_as(folder, |_| Ok(()))?;
            let ran = Ran::read(folder, &plan, &manifest, &summary)?;
            write_all(to, &run_charts(&ran.view(&summary)))
        }
    }
}

fn draw_each(folders: impl Iterator<Item = PathBuf>, to: &Path) -> Result<usize, Failed> {
    let each = |folder: PathBuf| draw(&folder, &to.join(folder.file_name().unwrap_or_default()));
    folders.map(each).sum()
}

fn write_all(to: &Path, pictures: &[Picture]) -> Result<usize, Failed> {
    if pictures.is_empty() {
        return Ok(0);
    }
    fs::create_dir_all(to).map_err(|error| {
        Failed::usage(format!("cannot make the folder `{}`: {error}", to.display()))
            .hint("--output names another")
    })?;
    for Picture { name, svg } in pictures {
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
        let name: String = name.chars().filter(is_plain).collect();
        export::replace(&to.join(format!("{name}.svg")), svg.as_bytes())?;
    }
    Ok(pictures.len())
}

/// Leaves `report.html` in the folder of a run that is over.
pub(crate) fn keep_run(folder: &Path, summary: &Summary) {
    let page = || {
        let run = RunFolder::open(folder).map_err(unreadable)?;
        let (plan, manifest) =
            (run.plan().map_err(unreadable)?, run.manifest().map_err(unreadable)?);
        let ran = Ran::read(folder, &plan, &manifest, summary)?;
        Ok(run_html(&ran.view(summary)))
    };
    keep(folder, page());
}

/// The same of several runs of one plan.
pub(crate) fn keep_repeats(folder: &Path, found: &Repeats) {
    keep(folder, Ok(repeats_html(found)));
}

/// The same of a sweep.
pub(crate) fn keep_sweep(folder: &Path, summary: &SweepSummary) {
    keep(folder, Ok(sweep_html(&Swept::read(folder, summary).view(summary))));
}

/// The same of sweeps under several configurations.
pub(crate) fn keep_sweeps(folder: &Path, sweeps: &Sweeps) {
    keep(folder, Ok(sweeps_html(sweeps)));
}

/// The same of a comparison.
pub(crate) fn keep_comparison(folder: &Path, comparison: &Comparison) {
    keep(folder, Ok(super::comparison::html(folder, comparison)));
}

/// The same of a shadow.
pub(crate) fn keep_shadow(folder: &Path, comparison: &Comparison) {
    keep(folder, Ok(shadow_page::html(folder, comparison)));
}

/// A page that cannot be written must not spoil a result: it can be made again.
fn keep(folder: &Path, page: Result<String, Failed>) {
    let path = folder.join(PAGE);
    let kept = page.and_then(|page| {
        // A link in a folder of results would lead out of it.
        goodput_files::check_inside(&path).map_err(|error| {
            Failed::usage(format!("cannot write `{}`: {error}", path.display()))
        })?;
        export::replace(&path, page.as_bytes())
    });
    if let Err(failed) = kept {
        output::note(&format!("warning: no page: {failed}"));
    }
}
