//! The page of a result file that another tool wrote.

use std::path::Path;

use goodput_exchange::{ImportError, UNDERSTOOD, read_results};
use goodput_files::{MOST_SUMMARY, read};
use goodput_model::Reported;
use goodput_report::{Detail, plain, reported_markdown, reported_text};
use goodput_stats::{Audit, Summary, audit_reported};
use serde::Serialize;

use super::json;
use crate::args::Format;
use crate::error::Failed;

/// What a file states, and what the audit found.
#[derive(Serialize)]
struct Page {
    schema: &'static str,
    reported: Reported,
    audit: Audit,
}

/// What a file has to say, in words.
pub(super) fn page(path: &Path, format: Format, detail: Detail) -> Result<String, Failed> {
    if !matches!(format, Format::Text | Format::Json | Format::Markdown) {
        return Err(Failed::usage("of a file of another tool there is no page of that kind")
            .hint("text, json and markdown go with files; the others need a run's folder"));
    }
    let results = match read_results(path) {
        Ok(results) => results,
        Err(ImportError::Unknown { .. }) if let Some(summary) = summary_of(path) => {
            return own(&summary, format, detail);
        }
        Err(error) => {
            let hint = format!("understood are folders of goodput, and {UNDERSTOOD}");
            return Err(Failed::usage(error.to_string()).hint(hint));
        }
    };
    let pages: Vec<Page> = results.into_iter().map(|run| of(path, run)).collect();
    let all = |page: fn(&Reported, &Audit) -> String| -> String {
        let pages = pages.iter().map(|one| page(&one.reported, &one.audit));
        pages.collect::<Vec<_>>().join("\n")
    };
    Ok(match format {
        Format::Json => json(&pages),
        Format::Markdown => all(reported_markdown),
        _ => all(reported_text),
    })
}

fn of(path: &Path, mut reported: Reported) -> Page {
    let mut audit = audit_reported(&reported);
    let label = plain(&reported.label);
    let label = if label.is_empty() { label } else { format!(" ({label})") };
    audit.subject = format!("{}{label}", path.display());
    // The requests themselves stand in the file.
    reported.details = None;
    Page { schema: "goodput.reported/1", reported, audit }
}

/// A summary of ours without its folder.
fn summary_of(path: &Path) -> Option<Summary> {
    let summary: Summary = serde_json::from_slice(&read(path, MOST_SUMMARY).ok()?).ok()?;
    (summary.schema == Summary::SCHEMA).then_some(summary)
}

fn own(summary: &Summary, format: Format, detail: Detail) -> Result<String, Failed> {
    match format {
        Format::Text => Ok(goodput_report::text(summary, detail)),
        Format::Json => Ok(json(summary)),
        _ => Err(Failed::usage("a summary alone has no page of that kind")
            .hint("name the folder of the run")),
    }
}
