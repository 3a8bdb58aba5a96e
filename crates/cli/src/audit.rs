//! `goodput audit`: what a result of any tool is worth.

use std::process::ExitCode;

use goodput_model::Verdict;
use goodput_report::{audit_markdown, audit_text};
use goodput_stats::Audit;

use crate::args::{AuditArgs, AuditFormat};
use crate::error::{Failed, exit};
use crate::{output, plan, report};

/// Runs the verb. What cannot be read does not keep the others from being judged.
pub(crate) fn audit(args: &AuditArgs) -> Result<ExitCode, Failed> {
    let slo = plan::slo_question(&args.slo)?;
    let (mut audits, mut unreadable) = (Vec::new(), Vec::new());
    for found in args.results.iter().flat_map(|path| goodput_lab::audit::audit(path, &slo)) {
        match found {
            Ok(audit) if args.strict => audits.push(audit.strict()),
            Ok(audit) => audits.push(audit),
            Err(failed) => unreadable.push(failed),
        }
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
        AuditFormat::Json => report::json(&audits),
    }
}
