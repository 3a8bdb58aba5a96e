//! What a workload needs in addition to its plan: a tokenizer and files, gathered before the target is
//! asked anything.

use std::path::Path;

use goodput_dataset::DatasetTurn;
use goodput_model::{Keep, Load, LoadExtent, Mode, Nanos, Rate, SourcePlan, WorkloadPlan};
use goodput_tokens::Tokenizer;
use goodput_workload::{Material, Setting, Workload, WorkloadError};

use crate::Failed;
use crate::hub::Hub;

/// Entries of a file that are kept at most, where the plan does not say how many.
const MOST_ENTRIES: u64 = 100_000;

/// Entries that are kept where the number of requests is unknown.
const SOME_ENTRIES: u64 = 10_000;

/// A tokenizer and files.
pub struct WorkloadInputs {
    /// Counts prompts, where one was named.
    pub tokenizer: Option<Tokenizer>,
    setting: Setting,
    loaded: Vec<Material>,
}

impl WorkloadInputs {
    /// Reads what the plan names, and writes the files' hashes into it.
    pub fn gather(plan: &mut WorkloadPlan, setting: Setting, hub: &Hub) -> Result<Self, Failed> {
        let tokenizer = plan.tokenizer.as_deref().map(|name| hub.tokenizer(name)).transpose()?;
        let mut local = plan.clone();
        for class in &mut local.classes {
            let file = match &mut class.source {
                SourcePlan::Dataset(data) => &mut data.file,
                SourcePlan::Trace(trace) => &mut trace.file,
                SourcePlan::Pairs { file } | SourcePlan::Frozen { file, .. } => file,
                SourcePlan::Synthetic { .. } => continue,
            };
            *file = hub.dataset(file)?.to_string_lossy().into_owned();
        }
        let loaded = Workload::load_materials(&local, &setting, tokenizer.as_ref())
            .map_err(workload_failure)?;
        for (class, material) in plan.classes.iter_mut().zip(&loaded) {
            match (&mut class.source, material) {
                (SourcePlan::Dataset(data), Material::Entries(loaded)) => {
                    data.sha256.get_or_insert(loaded.sha256.clone());
                }
                (SourcePlan::Trace(trace), Material::Entries(loaded)) => {
                    trace.sha256.get_or_insert(loaded.sha256.clone());
                }
                (SourcePlan::Frozen { file, sha256 }, _) => {
                    check_frozen_hash(&hub.dataset(file)?, sha256)?;
                }
                _ => {}
            }
        }
        Ok(Self { tokenizer, setting, loaded })
    }

    /// Turns of a recorded trace.
    pub fn recorded_turns(&self) -> impl Iterator<Item = &DatasetTurn> {
        let entries = self.loaded.iter().filter_map(|material| match material {
            Material::Entries(loaded) => Some(&loaded.entries),
            _ => None,
        });
        let turns = entries.flatten().flat_map(|entry| &entry.turns);
        turns.filter(|turn| turn.served.is_some())
    }

    /// The workload, once it is known what its words cost.
    pub fn build_workload(self, plan: &WorkloadPlan) -> Result<Workload, Failed> {
        Workload::build(plan, &self.setting, self.loaded).map_err(workload_failure)
    }
}

/// A frozen file is that of the plan, where the plan knows it.
fn check_frozen_hash(path: &Path, planned: &mut Option<String>) -> Result<(), Failed> {
    let found =
        goodput_dataset::file_sha256(path).map_err(|error| Failed::usage(error.to_string()))?;
    let file = path.display();
    match planned {
        Some(planned) if *planned != found => Err(Failed::usage(format!(
            "`{file}` is not the file that the plan was made with: its hash is {found}"
        ))
        .hint(format!("the plan was made with {planned}"))),
        _ => {
            *planned = Some(found);
            Ok(())
        }
    }
}

fn workload_failure(error: WorkloadError) -> Failed {
    let failed = Failed::usage(error.to_string());
    if error.hint.is_empty() { failed } else { failed.hint(error.hint) }
}

/// What a workload must know of this load.
pub fn load_setting(load: &Load) -> Setting {
    let (keep, time_scale) = match load.mode {
        Mode::Replay { keep, time_scale, .. } => (keep, time_scale),
        _ => (Keep::Timestamps, 1.0),
    };
    Setting { seed: load.seed, keep, time_scale, requests: requests_needed(load) }
}

/// Requests that the load will need, about.
fn requests_needed(load: &Load) -> u64 {
    let (before, time) = match load.warmup {
        LoadExtent::Requests(requests) => (requests, Nanos::ZERO),
        LoadExtent::Time(time) => (0, Nanos::from(time)),
        LoadExtent::Auto => (0, Nanos::ZERO),
    };
    let by_count = load.num_requests.map(|requests| requests.saturating_add(before));
    let length = load.duration.map(|length| time + length.into() + load.cooldown.into());
    let by_time = length.and_then(|length| match &load.mode {
        Mode::Open { rate: Rate::PerSecond(rate), .. } => Some(rate * length.as_secs()),
        Mode::Shaped { shape, .. } => Some(shape.expected_arrivals(Nanos::ZERO, length)),
        _ => None,
    });
    // Room for chance: arrivals are random.
    let by_time =
        by_time.map(|mean| ((mean + 4.0 * mean.sqrt()).ceil() as u64).saturating_add(before));
    by_count.into_iter().chain(by_time).min().unwrap_or(SOME_ENTRIES).min(MOST_ENTRIES)
}
