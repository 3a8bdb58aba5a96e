//! `goodput merge`: run folders of shards, made one run folder, exactly.

mod check;
mod health;
mod progress;
mod whole;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use goodput_model::Plan;
use goodput_record::{
    Draft, FolderError, Logs, Manifest, MergeError, MergePart, RunFolder, merge_logs,
};
use goodput_stats::Summary;

use crate::args::MergeArgs;
use crate::error::Failed;
use crate::run::{self, folder_failed};
use crate::{output, report};
use check::Client;
use progress::Telling;

/// Runs the verb.
pub(crate) fn verb(args: &MergeArgs) -> Result<ExitCode, Failed> {
    // One file of each shard is open at a time.
    goodput_engine::raise_fd_limit();
    let clients = check::open(&args.folders)?;
    check::agree(&clients, None, args.force)?;
    let plan = clients.first().map(|client| &client.plan);
    let out = plan.map(|plan| run::folder_path(args.out.as_deref(), plan, "merge"));
    let out = out.unwrap_or_default();
    let summary = merge_clients(&clients, &out, false)?;
    if args.json {
        output::data(report::json(&summary).as_bytes())?;
    } else {
        output::page(&goodput_report::text(&summary))?;
    }
    let shown = |path: &Path| goodput_report::plain(&path.display().to_string());
    output::note(&format!("\nrun folder: {}", shown(&out)));
    output::note(&format!("report: {}", shown(&out.join(report::PAGE))));
    Ok(ExitCode::from(run::code(&summary)))
}

/// Makes one run folder at `out` of those of shards, whose number, where it is known, is `expected`.
/// Shards that are missing are named in the result.
pub(crate) fn merge(
    folders: &[PathBuf],
    out: &Path,
    expected: Option<u32>,
    is_quiet: bool,
) -> Result<Summary, Failed> {
    let clients = check::open(folders)?;
    // They were brought together by one who led: what differs then was meant.
    check::agree(&clients, expected, true)?;
    merge_clients(&clients, out, is_quiet)
}

/// The same of folders that belong together, in the order of their ranks.
fn merge_clients(clients: &[Client], out: &Path, is_quiet: bool) -> Result<Summary, Failed> {
    let Some(first) = clients.first() else { return Err(check::nothing()) };
    let begun = whole::begin(clients);
    // A merge that is stopped leaves no folder that could pass for a run: the shards still have everything.
    let draft = Draft::begin(out).map_err(|error| folder_failed(&error))?;
    let (folder, logs) = RunFolder::create(draft.path(), &first.plan, &begun)
        .map_err(|error| folder_failed(&error))?;
    let telling = (!is_quiet).then(|| Telling::start(clients, draft.path()));
    let summary = fill((&folder, logs), &first.plan, clients, begun, telling.as_ref())?;
    drop(telling);
    report::keep_run(draft.path(), &summary);
    draft.finish().map_err(|error| folder_failed(&error))?;
    Ok(summary)
}

/// Logs, circumstances and numbers of all.
fn fill(
    (folder, logs): (&RunFolder, Logs),
    plan: &Plan,
    clients: &[Client],
    begun: Manifest,
    telling: Option<&Telling>,
) -> Result<Summary, Failed> {
    let found = merge_logs(&parts(clients), logs, folder.path()).map_err(|error| failed(&error))?;
    telling.inspect(|telling| telling.merged());
    let clients: Vec<_> = clients.iter().zip(&found).collect();
    let shards = health::of_all(&clients)?;
    let manifest = whole::end(&clients, begun, shards);
    let summary = report::summarise(folder, plan, &manifest, 0)?;
    folder.write_manifest(&manifest).map_err(|error| folder_failed(&error))?;
    folder.write_summary(&summary).map_err(|error| folder_failed(&error))?;
    Ok(summary)
}

fn failed(error: &MergeError) -> Failed {
    let failed = Failed::usage(error.to_string());
    match error {
        MergeError::Folder(FolderError::Io { action: "read", .. }) => {
            failed.hint("`ulimit -n` says how many files may be open: one of each shard is")
        }
        MergeError::Folder(_) => {
            failed.hint("make room, or name a folder on another disk with --out")
        }
        MergeError::Twice { .. } => {
            failed.hint("these are not the shards of one run: name each folder once")
        }
    }
}

/// The logs to be merged. Workers are numbered on; the server is seen by the first client that saw it
/// to its end, for all look at the same one.
fn parts(clients: &[Client]) -> Vec<MergePart<'_>> {
    let watcher = whole::watcher(clients);
    let mut first_worker = 0u32;
    let part = |(place, client): (usize, &'_ Client)| {
        let part = (first_worker, watcher == Some(place));
        first_worker = first_worker.saturating_add(client.plan.load.workers.max(1));
        part
    };
    let numbers: Vec<_> = clients.iter().enumerate().map(part).collect();
    clients
        .iter()
        .zip(numbers)
        .map(|(client, (first_worker, sees_server))| MergePart {
            folder: &client.folder,
            first_worker,
            sees_server,
        })
        .collect()
}
