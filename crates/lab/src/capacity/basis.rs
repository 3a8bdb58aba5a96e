//! What one replica carries, read from a run or a sweep.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use goodput_campaign::capacity::{
    Basis, Expected, FanOut, MeasuredLevel, Refused, Sizes, fan_out_shares,
};
use goodput_campaign::sweep::{Configuration, SweepSummary, Sweeps};
use goodput_exchange::read_results;
use goodput_model::{Phase, RequestRecord, SloQuestion};
use goodput_record::{Artifact, FolderError, RunFolder};
use goodput_stats::{Metric, Summary};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::foreign::basis_of_reported;
use super::refusal_error;
use crate::error::Failed;
use crate::events::Observer;
use crate::results::{self, SavedResult, can_judge};
use crate::saved::summarize_run;

const HINT: &str = "name the folder or the summary.json of `goodput sweep`, or of a `goodput run` \
                    that kept its SLO; or give a figure with --goodput-rps";

/// What one replica carries, and where that was measured.
pub struct CapacityBasis {
    /// The figures.
    pub basis: Basis,
    /// The folder that the points' folders lie in.
    root: Option<PathBuf>,
}

impl CapacityBasis {
    /// A figure from elsewhere.
    pub fn from_rates(goodput_rps: f64, rejected_rps: Option<f64>) -> Result<Self, Failed> {
        let basis = Basis::from_rates(goodput_rps, rejected_rps).map_err(refusal_error)?;
        Ok(Self { basis, root: None })
    }

    /// No path was named.
    pub fn missing_error() -> Failed {
        Failed::usage("no run").hint(HINT)
    }

    /// From the numbers as they were written last, or from the logs as judged by this SLO; of several
    /// configurations from that with the `wanted` values, or from the best.
    pub fn read(
        path: &Path,
        wanted: &[(String, String)],
        slo: &SloQuestion,
        observer: &dyn Observer,
    ) -> Result<Self, Failed> {
        let (artifact, file) = match Artifact::open(path) {
            Ok(artifact) => {
                let file = artifact.summary_path();
                (Some(artifact), file)
            }
            Err(error) if path.is_dir() => return Err(unreadable_error(error)),
            // Its reader says what is wrong with a file.
            Err(_) => (None, path.to_owned()),
        };
        let root = file.parent().map(Path::to_owned);
        let mut found = match artifact {
            Some(artifact) if !slo.is_empty() && can_judge(&artifact) => basis_of_result(
                results::read_result(&artifact, slo, observer)?,
                path,
                root,
                wanted,
            )?,
            // A run that was killed has a log all the same.
            Some(artifact) if !file.exists() => {
                Self { basis: basis_of_run(&summary_from_log(artifact.path())?)?, root }
            }
            Some(Artifact::File(_)) | None => match read_results(&file) {
                Ok(results) => Self { basis: basis_of_reported(&file, &results, slo)?, root: None },
                Err(_) => of_summary(&file, root, wanted, slo)?,
            },
            // In a folder it is a summary, as large as one may be.
            Some(_) => of_summary(&file, root, wanted, slo)?,
        };
        found.basis.path = path.display().to_string();
        Ok(found)
    }

    /// Lengths of prompts and answers: of the log nearest to the confirmed rate, or assumed.
    pub fn prompt_and_answer_sizes(&self, here: &Expected) -> Option<Sizes> {
        let seen = self.nearest_run_folder().and_then(|folder| {
            let pairs: Vec<(u32, u32)> =
                folder.read_records().ok()?.filter_map(|r| prompt_and_answer(&r)).collect();
            Sizes::from_pairs(&pairs, format!("{} requests in the log", pairs.len()))
        });
        let assumed = || Sizes::from_means(here.input_tokens?, here.output_tokens?);
        seen.or_else(assumed)
    }

    /// From the log nearest to the confirmed rate, with just the percentiles that are needed.
    pub fn fan_out(&self, calls: u32) -> Option<FanOut> {
        let folder = self.nearest_run_folder()?;
        let (mut plan, manifest) = (folder.read_plan().ok()?, folder.read_manifest().ok()?);
        let shares = fan_out_shares(calls);
        plan.measure.percentiles = [0.5, 0.99].iter().chain(&shares).map(|q| q * 100.0).collect();
        let summary = summarize_run(&folder, &plan, &manifest, 0).ok()?;
        let known =
            |name: &str| summary.metrics.get(name).map(reliable_percentiles).unwrap_or_default();
        let all = [("e2e", known("e2e")), ("ttft", known("ttft"))];
        Some(FanOut::new(calls, self.basis.confirmed_rps, &all))
    }

    /// The run nearest to the confirmed rate, if its folder is there.
    fn nearest_run_folder(&self) -> Option<RunFolder> {
        let root = self.root.as_deref()?;
        let distance = |level: &&MeasuredLevel| (level.rps / self.basis.confirmed_rps).ln().abs();
        let nearest =
            self.basis.levels.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        let folder = Path::new(&nearest.folder);
        // The name comes from a file: nothing outside of the sweep is opened.
        let is_inside = folder.components().all(|part| matches!(part, Component::Normal(_)));
        is_inside.then(|| RunFolder::open(&root.join(folder)).ok()).flatten()
    }
}

/// Percentiles that enough samples carry, ascending.
fn reliable_percentiles(metric: &Metric) -> Vec<(f64, f64)> {
    let mut known: Vec<(f64, f64)> = metric
        .percentiles
        .iter()
        .filter(|(_, found)| found.quality.has_interval())
        .filter_map(|(percent, found)| Some((percent.parse::<f64>().ok()? / 100.0, found.value?)))
        .collect();
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    known
}

fn prompt_and_answer(record: &RequestRecord) -> Option<(u32, u32)> {
    if record.phase != Phase::Measured || !record.is_ok() {
        return None;
    }
    let input = record.exchange.input_tokens.map_or(record.planned.input_tokens, |count| count.n);
    let output = record.exchange.output_tokens.map(|count| count.n);
    Some((input, output.or(record.planned.output_tokens)?))
}

fn basis_of_run(summary: &Summary) -> Result<Basis, Failed> {
    Basis::from_run(summary).map_err(refusal_error)
}

fn basis_of_sweep(summary: &SweepSummary) -> Result<Basis, Failed> {
    Basis::from_sweep(summary).map_err(refusal_error)
}

fn summary_from_log(path: &Path) -> Result<Summary, Failed> {
    let folder = RunFolder::open(path).map_err(unreadable_error)?;
    let plan = folder.read_plan().map_err(unreadable_error)?;
    let manifest = folder.read_manifest().map_err(unreadable_error)?;
    summarize_run(&folder, &plan, &manifest, 0)
}

#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` takes")]
fn unreadable_error(error: FolderError) -> Failed {
    Failed::usage(error.to_string()).hint(HINT)
}

/// Of a result that was judged anew.
fn basis_of_result(
    result: SavedResult,
    path: &Path,
    root: Option<PathBuf>,
    wanted: &[(String, String)],
) -> Result<CapacityBasis, Failed> {
    if !wanted.is_empty() && !matches!(result, SavedResult::Sweeps(_)) {
        return Err(single_result_error(path));
    }
    match result {
        SavedResult::Run(run) => Ok(CapacityBasis { basis: basis_of_run(&run)?, root }),
        SavedResult::Sweep(sweep) => Ok(CapacityBasis { basis: basis_of_sweep(&sweep)?, root }),
        SavedResult::Sweeps(sweeps) => basis_of_sweeps(&sweeps, root, wanted),
        _ => {
            let shown = path.display();
            Err(Failed::usage(format!("`{shown}` holds several runs of one load")).hint(HINT))
        }
    }
}

fn single_result_error(path: &Path) -> Failed {
    Failed::usage(format!("`{}` holds only one configuration", path.display()))
        .hint("remove --configuration")
}

/// By the schema that a file names.
fn of_summary(
    file: &Path,
    root: Option<PathBuf>,
    wanted: &[(String, String)],
    slo: &SloQuestion,
) -> Result<CapacityBasis, Failed> {
    let shown = file.display();
    let unreadable = |error: std::io::Error| {
        Failed::usage(format!("`{shown}` cannot be read: {error}")).hint(HINT)
    };
    let bytes = goodput_files::read(file, goodput_files::MOST_SUMMARY).map_err(unreadable)?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
        Failed::usage(format!("`{shown}` is not valid JSON: {error}"))
            .hint("the file may be cut off; `goodput report` rebuilds a run's summary from its log")
    })?;
    let schema = value.get("schema").and_then(Value::as_str).unwrap_or("").to_owned();
    if !wanted.is_empty() && schema != Sweeps::SCHEMA {
        return Err(single_result_error(file));
    }
    if !slo.is_empty() {
        let what = format!("`{shown}` has no request log, so it cannot be judged by another SLO");
        return Err(
            Failed::usage(what).hint("name the folder of the run or sweep, not its summary")
        );
    }
    match schema.as_str() {
        SweepSummary::SCHEMA => {
            Ok(CapacityBasis { basis: basis_of_sweep(&deserialize(value, file)?)?, root })
        }
        Summary::SCHEMA => {
            Ok(CapacityBasis { basis: basis_of_run(&deserialize(value, file)?)?, root })
        }
        Sweeps::SCHEMA => basis_of_sweeps(&deserialize(value, file)?, root, wanted),
        "" => Err(Failed::usage(format!(
            "`{shown}` is not a goodput summary: it has no `schema` field"
        ))
        .hint(HINT)),
        other => {
            let other: String = other.chars().take(60).collect();
            Err(Failed::usage(format!(
                "`{shown}` holds `{other}`, which cannot be used for a capacity plan"
            ))
            .hint(HINT))
        }
    }
}

fn deserialize<T: DeserializeOwned>(value: Value, file: &Path) -> Result<T, Failed> {
    serde_json::from_value(value).map_err(|error| {
        Failed::usage(format!("`{}` cannot be used: {error}", file.display()))
            .hint("another version of goodput may have written it, or it was edited by hand")
    })
}

/// The best configuration, or the one that was asked for.
fn basis_of_sweeps(
    sweeps: &Sweeps,
    root: Option<PathBuf>,
    wanted: &[(String, String)],
) -> Result<CapacityBasis, Failed> {
    let names = || {
        let all: Vec<String> =
            sweeps.configurations.iter().map(|one| values_text(&one.values)).collect();
        format!("the configurations are: {}", all.join("; "))
    };
    let has = |one: &&Configuration| {
        wanted.iter().all(|(name, value)| one.values.get(name) == Some(value))
    };
    let found = if wanted.is_empty() {
        sweeps.best.and_then(|best| sweeps.configurations.get(best)).ok_or_else(|| {
            Failed::usage("no configuration has a goodput, so none is best")
                .hint(format!("choose one with --configuration; {}", names()))
        })?
    } else {
        let mut all = sweeps.configurations.iter().filter(has);
        match (all.next(), all.next()) {
            (Some(one), None) => one,
            (None, _) => {
                return Err(Failed::usage("no such configuration").hint(names()));
            }
            (Some(_), Some(_)) => {
                return Err(Failed::usage("several configurations have these values").hint(names()));
            }
        }
    };
    let Some(sweep) = &found.sweep else {
        let because = found.failed.as_deref().unwrap_or("it was not measured");
        let what =
            format!("the configuration {} has no sweep: {because}", values_text(&found.values));
        return Err(refusal_error(Refused::new(what).hint(names())));
    };
    let mut basis = basis_of_sweep(sweep)?;
    basis.about = format!("{} · {}", basis.about, values_text(&found.values));
    let inside = Path::new(&found.folder);
    let is_inside = inside.components().all(|part| matches!(part, Component::Normal(_)));
    let root = root.filter(|_| is_inside).map(|root| root.join(inside));
    Ok(CapacityBasis { basis, root })
}

fn values_text(values: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(" ")
}
