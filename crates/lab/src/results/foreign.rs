//! Files: the result of another tool, or a summary of ours without its folder.

use std::path::Path;

use goodput_campaign::saved::{ReportedResult, SavedResult};
use goodput_exchange::{ImportError, UNDERSTOOD, read_results};
use goodput_files::{MOST_SUMMARY, read as read_file};
use goodput_model::{Reported, escape_control};
use goodput_stats::{Summary, audit_reported};

use crate::error::Failed;

/// What a file states.
pub(crate) fn read_foreign_file(path: &Path) -> Result<SavedResult, Failed> {
    let results = match read_results(path) {
        Ok(results) => results,
        Err(ImportError::Unknown { .. }) if let Some(summary) = read_own_summary(path) => {
            return Ok(SavedResult::Run(Box::new(summary)));
        }
        Err(error) => {
            let hint = format!("supported: goodput run folders, and {UNDERSTOOD}");
            return Err(Failed::usage(error.to_string()).hint(hint));
        }
    };
    Ok(SavedResult::Reported(
        results.into_iter().map(|run| to_reported_result(path, run)).collect(),
    ))
}

fn to_reported_result(path: &Path, mut reported: Reported) -> ReportedResult {
    let mut audit = audit_reported(&reported);
    let label = escape_control(&reported.label);
    let label = if label.is_empty() { label } else { format!(" ({label})") };
    audit.subject = format!("{}{label}", path.display());
    // The requests themselves stand in the file.
    reported.details = None;
    ReportedResult { schema: ReportedResult::SCHEMA, reported, audit }
}

/// A summary of ours without its folder.
fn read_own_summary(path: &Path) -> Option<Summary> {
    let summary: Summary = serde_json::from_slice(&read_file(path, MOST_SUMMARY).ok()?).ok()?;
    (summary.schema == Summary::SCHEMA).then_some(summary)
}
