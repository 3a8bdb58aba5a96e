//! `goodput audit`: what a result is worth, whoever wrote it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use goodput_exchange::{ImportError, UNDERSTOOD, read_results};
use goodput_files::{MOST_SUMMARY, read};
use goodput_model::Verdict;
use goodput_record::{Campaign, CampaignFolder, FolderError, RunFolder, SeriesFolder};
use goodput_report::{audit_markdown, audit_text, plain};
use goodput_stats::{Audit, Summary, audit_reported, audit_run};

use crate::args::{AuditArgs, AuditFormat};
use crate::error::{Failed, exit};
use crate::{output, report};

/// Runs the verb. What cannot be read does not keep the others from being judged.
pub(crate) fn audit(args: &AuditArgs) -> Result<ExitCode, Failed> {
    let mut audits = Vec::new();
    let mut unreadable = Vec::new();
    for path in args.results.iter().flat_map(|path| runs_of(path)) {
        match one(&path) {
            Ok(found) => audits.extend(found),
            Err(failed) => unreadable.push(failed),
        }
    }
    if args.strict {
        audits = audits.into_iter().map(Audit::strict).collect();
    }
    let format = if args.json { AuditFormat::Json } else { args.format };
    if !audits.is_empty() {
        let page = page(&audits, format);
        match format {
            AuditFormat::Text => output::page(&page)?,
            AuditFormat::Md | AuditFormat::Json => output::data(page.as_bytes())?,
        }
    }
    let mut code = audits.iter().map(|audit| code_of(audit.verdict)).max().unwrap_or(exit::OK);
    for failed in unreadable {
        crate::error::show(&failed);
        code = exit::USAGE;
    }
    Ok(ExitCode::from(code))
}

fn code_of(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Valid => exit::OK,
        Verdict::Suspect => exit::MISSED,
        Verdict::Void => exit::VOID,
    }
}

fn page(audits: &[Audit], format: AuditFormat) -> String {
    match format {
        AuditFormat::Text => audits.iter().map(audit_text).collect::<Vec<_>>().join("\n\n"),
        AuditFormat::Md => audits.iter().map(audit_markdown).collect::<Vec<_>>().join("\n"),
        AuditFormat::Json => serde_json::to_string_pretty(audits).unwrap_or_default() + "\n",
    }
}

/// The runs of `--repeat` and the points of a sweep or a comparison, each by itself; or what is named.
fn runs_of(path: &Path) -> Vec<PathBuf> {
    // Their own summary stands for them.
    let folder = path.parent().filter(|_| path.ends_with("summary.json")).unwrap_or(path);
    let kinds = [Campaign::Sweep, Campaign::Comparison];
    if let Some(many) = kinds.into_iter().find_map(|kind| CampaignFolder::open(kind, folder)) {
        // A point of a comparison may be a sweep of its own.
        let all = many.points().into_iter().chain(many.configurations());
        return all.flat_map(|(_, path)| runs_of(&path)).collect();
    }
    match SeriesFolder::open(folder).filter(|_| RunFolder::open(folder).is_err()) {
        Some(series) => series.numbers().into_iter().map(|number| series.run(number)).collect(),
        None => vec![path.to_owned()],
    }
}

/// The results at a path: a run of ours, or the runs in a file of anybody.
fn one(path: &Path) -> Result<Vec<Audit>, Failed> {
    if path.is_dir() {
        return Ok(vec![ours(path)?]);
    }
    let results = match read_results(path) {
        Ok(results) => results,
        Err(ImportError::Unknown { .. }) if let Some(summary) = summary_of(path) => {
            return Ok(vec![named(audit_run(&summary, None), path, "")]);
        }
        Err(error) => {
            let hint = format!("understood are run folders of goodput, and {UNDERSTOOD}");
            return Err(Failed::usage(error.to_string()).hint(hint));
        }
    };
    Ok(results.iter().map(|run| named(audit_reported(run), path, &run.label)).collect())
}

fn named(mut audit: Audit, path: &Path, label: &str) -> Audit {
    let label = if label.is_empty() { String::new() } else { format!(" ({})", plain(label)) };
    audit.subject = format!("{}{label}", path.display());
    audit
}

fn ours(path: &Path) -> Result<Audit, Failed> {
    let unreadable = |error: FolderError| {
        Failed::usage(error.to_string()).hint(format!(
            "a run folder holds plan.toml, manifest.json and requests.log; of other tools name the \
             file: {UNDERSTOOD}"
        ))
    };
    let folder = RunFolder::open(path).map_err(unreadable)?;
    let plan = folder.plan().map_err(unreadable)?;
    let manifest = folder.manifest().map_err(unreadable)?;
    let summary = report::summarise(&folder, &plan, &manifest, 0)?;
    Ok(named(audit_run(&summary, Some(&plan)), path, ""))
}

/// A summary of ours without its folder.
fn summary_of(path: &Path) -> Option<Summary> {
    let summary: Summary = serde_json::from_slice(&read(path, MOST_SUMMARY).ok()?).ok()?;
    (summary.schema == Summary::SCHEMA).then_some(summary)
}
