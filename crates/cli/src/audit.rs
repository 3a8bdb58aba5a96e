//! `goodput audit`: how far a result of any tool can be trusted.

use std::process::ExitCode;

use goodput_model::Verdict;
use goodput_report::{audit_markdown, audit_text};
use goodput_stats::Audit;

use crate::args::{AuditArgs, AuditFormat};
use crate::error::{Failed, exit};
use crate::{output, plan, report};

/// Runs the verb. A result that cannot be read does not stop the audit of the others.
pub(crate) fn audit(args: &AuditArgs) -> Result<ExitCode, Failed> {
    let slo = plan::slo_question(&args.slo)?;
    let (mut audits, mut unreadable) = (Vec::new(), Vec::new());
    for found in args.results.iter().flat_map(|path| goodput_lab::audit::audit(path, &slo)) {
        match found {
            Ok(audit) if args.strict => audits.push(audit.with_missing_doubtful()),
            Ok(audit) => audits.push(audit),
            Err(failed) => unreadable.push(failed),
        }
    }
    let format = if args.json { AuditFormat::Json } else { args.format };
    if !audits.is_empty() {
        let page = render_audits(&audits, format);
        match format {
            AuditFormat::Text => output::print_page(&page)?,
            AuditFormat::Md | AuditFormat::Json => output::print_data(page.as_bytes())?,
        }
    }
    let mut code = audits.iter().map(|audit| exit_code(audit.verdict)).max().unwrap_or(exit::OK);
    for failed in unreadable {
        crate::error::show_failure(&failed);
        code = exit::USAGE;
    }
    Ok(ExitCode::from(code))
}

fn exit_code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Valid => exit::OK,
        Verdict::Suspect => exit::MISSED,
        Verdict::Void => exit::VOID,
    }
}

fn render_audits(audits: &[Audit], format: AuditFormat) -> String {
    match format {
        AuditFormat::Text => audits.iter().map(audit_text).collect::<Vec<_>>().join("\n\n"),
        AuditFormat::Md => audits.iter().map(audit_markdown).collect::<Vec<_>>().join("\n"),
        AuditFormat::Json => report::to_json(&audits),
    }
}
