//! Run folders of shards, made one run folder, exactly.

mod check;
mod health;
mod progress;
mod whole;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use goodput_model::Plan;
use goodput_record::{
    Draft, FolderError, Logs, Manifest, MergeError, MergePart, RunFolder, merge_logs,
};
use goodput_stats::Summary;

use crate::error::{Failed, folder_failed};
use crate::events::Observer;
use crate::saved;
use check::ShardFolder;

/// Run folders that are the shards of one run, in the order of their ranks.
pub struct Shards(Vec<ShardFolder>);

impl Shards {
    /// Opens the folders. `force` lets pass what may differ for a reason.
    pub fn open(folders: &[PathBuf], force: bool, observer: &dyn Observer) -> Result<Self, Failed> {
        let ranks = check::open_shards(folders)?;
        check::check_agreement(&ranks, None, force, observer)?;
        Ok(Self(ranks))
    }

    /// The plan of all of them.
    pub fn plan(&self) -> &Plan {
        &self.0[0].plan
    }

    /// Makes one run folder at `out` of them.
    pub fn merge_into(&self, out: &Path, observer: &dyn Observer) -> Result<Summary, Failed> {
        merge_shards(&self.0, out, observer)
    }
}

/// Makes one run folder at `out` of those of shards, whose number, where it is known, is `expected`.
/// Shards that are missing are named in the result.
pub fn merge_folders(
    folders: &[PathBuf],
    out: &Path,
    expected: Option<u32>,
    observer: &dyn Observer,
) -> Result<Summary, Failed> {
    let ranks = check::open_shards(folders)?;
    // They were brought together by one who led: what differs then was meant.
    check::check_agreement(&ranks, expected, true, observer)?;
    merge_shards(&ranks, out, observer)
}

/// The same of folders that belong together, in the order of their ranks.
fn merge_shards(
    ranks: &[ShardFolder],
    out: &Path,
    observer: &dyn Observer,
) -> Result<Summary, Failed> {
    let Some(first) = ranks.first() else { return Err(check::no_folder_error()) };
    let begun = whole::initial_manifest(ranks);
    // A merge that is stopped leaves no folder that could pass for a run: the shards still have everything.
    let draft = Draft::begin(out).map_err(|error| folder_failed(&error))?;
    let (folder, logs) = RunFolder::create(draft.path(), &first.plan, &begun)
        .map_err(|error| folder_failed(&error))?;
    let merged = AtomicBool::new(false);
    let summary = std::thread::scope(|scope| {
        let _progress = progress::report_progress(scope, ranks, draft.path(), &merged, observer);
        write_merged(&folder, logs, ranks, begun, &merged)
    })?;
    observer.saved(draft.path(), &summary);
    draft.finish().map_err(|error| folder_failed(&error))?;
    Ok(summary)
}

/// Logs, circumstances and numbers of all.
fn write_merged(
    folder: &RunFolder,
    logs: Logs,
    ranks: &[ShardFolder],
    begun: Manifest,
    is_merged: &AtomicBool,
) -> Result<Summary, Failed> {
    let found = merge_logs(&merge_parts(ranks), logs, folder.path())
        .map_err(|error| merge_failure(&error))?;
    is_merged.store(true, Ordering::Relaxed);
    let plan = &ranks[0].plan;
    let ranks: Vec<_> = ranks.iter().zip(&found).collect();
    let shards = health::describe_shards(&ranks)?;
    let manifest = whole::final_manifest(&ranks, begun, shards);
    let summary = saved::summarize_run(folder, plan, &manifest, 0)?;
    folder.write_manifest(&manifest).map_err(|error| folder_failed(&error))?;
    folder.write_summary(&summary).map_err(|error| folder_failed(&error))?;
    Ok(summary)
}

fn merge_failure(error: &MergeError) -> Failed {
    let failed = Failed::usage(error.to_string());
    match error {
        MergeError::Folder(FolderError::Io { action: "read", .. }) => {
            failed.hint("merging opens one file for each shard; raise the limit with `ulimit -n`")
        }
        MergeError::Folder(_) => {
            failed.hint("make room, or name a folder on another disk with --out")
        }
        MergeError::Twice { .. } => {
            failed.hint("these are not the shards of one run; name each folder once")
        }
    }
}

/// The logs to be merged. Workers are numbered on; the server is seen by the first rank that saw it
/// to its end, for all look at the same one.
fn merge_parts(ranks: &[ShardFolder]) -> Vec<MergePart<'_>> {
    let watcher = whole::server_watch_rank(ranks);
    let mut first_worker = 0u32;
    let part = |(place, rank): (usize, &'_ ShardFolder)| {
        let part = (first_worker, watcher == Some(place));
        first_worker = first_worker.saturating_add(rank.plan.load.workers.max(1));
        part
    };
    let numbers: Vec<_> = ranks.iter().enumerate().map(part).collect();
    ranks
        .iter()
        .zip(numbers)
        .map(|(rank, (first_worker, sees_server))| MergePart {
            folder: &rank.folder,
            first_worker,
            sees_server,
        })
        .collect()
}
