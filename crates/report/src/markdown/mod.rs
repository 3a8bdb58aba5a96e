//! Results in Markdown, for a pull request or the summary of a job.

mod repeats;
mod run;
mod sweep;
#[cfg(test)]
pub(crate) mod tests;

pub use repeats::repeats_markdown;
pub use run::run_markdown;
pub use sweep::{sweep_markdown, sweeps_markdown};

use std::fmt::{Error, Write};

use goodput_model::{Caveat, Severity, Verdict};

use crate::audit::escaped;

/// Rows under a heading; the first and the last column stand at the left.
pub(crate) fn table(
    page: &mut String,
    title: &str,
    head: &[impl AsRef<str>],
    rows: &[Vec<String>],
) -> Result<(), Error> {
    writeln!(page, "\n### {}\n", text(title))?;
    let head: Vec<String> = head.iter().map(|name| text(name.as_ref())).collect();
    writeln!(page, "| {} |", head.join(" | "))?;
    let last = head.len().saturating_sub(1);
    let rule = |place: usize| if place == 0 || place == last { "---" } else { "---:" };
    let rules: Vec<&str> = (0..head.len()).map(rule).collect();
    writeln!(page, "|{}|", rules.join("|"))?;
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| text(cell)).collect();
        writeln!(page, "| {} |", cells.join(" | "))?;
    }
    Ok(())
}

/// Labels and texts, one a line; those without a label go on with the one before.
pub(crate) fn list(page: &mut String, all: &[(&str, String)]) -> Result<(), Error> {
    for (label, prose) in all {
        let label = if label.is_empty() { String::new() } else { format!("{label}: ") };
        writeln!(page, "- {label}{}", text(prose))?;
    }
    Ok(())
}

/// Whether to believe it, and why not.
pub(crate) fn judgement(
    page: &mut String,
    verdict: Verdict,
    caveats: &[Caveat],
) -> Result<(), Error> {
    writeln!(page, "- Verdict: **{}**", verdict.name())?;
    for caveat in caveats {
        let mark = match caveat.severity {
            Severity::Info => "note",
            Severity::Warn => "warning",
            Severity::Void => "void",
        };
        let advice = caveat.advice.as_ref().map_or(String::new(), |advice| format!("; {advice}"));
        writeln!(page, "  - **{mark}** {}", text(&format!("{}{advice}", caveat.message)))?;
    }
    Ok(())
}

/// Text that may hold foreign words: nothing in it ends a cell, starts a tag, a link or a code span,
/// and nobody is called by it: models are named `@cf/…`, and a mention would reach somebody. Between
/// two dollars GitHub sees mathematics, escaped or not.
pub(crate) fn text(text: &str) -> String {
    escaped(text).replace('@', "@&#8203;").replace('~', "\\~").replace('$', "&#36;")
}
