//! What an audit found: a table for the terminal, and one in Markdown.

use std::fmt::Write;

use goodput_model::{Severity, Verdict};
use goodput_stats::{Audit, Item, Status};
use unicode_width::UnicodeWidthStr;

use crate::render::markdown::escaped;
use crate::render::text::WIDTH;
use crate::wrap::wrap;
use goodput_model::plain;

/// Columns of the status, and of the check's name.
const STATUS: usize = 10;
const TITLE: usize = 25;

/// The table of one result.
pub fn audit_text(audit: &Audit) -> String {
    let mut page = String::new();
    let head = [plain(&audit.subject), format!("{} · {}", plain(&audit.tool), plain(&audit.run))];
    for line in head.iter().flat_map(|line| wrap(line, WIDTH)) {
        page.push_str(&line);
        page.push('\n');
    }
    page.push('\n');
    row(&mut page, "", "check", "what the result says");
    for item in &audit.items {
        row(&mut page, mark(item), &plain(&item.title), &plain(&item.evidence));
        if !item.advice.is_empty() && item.status != Status::Ok {
            row(&mut page, "", "", &format!("→ {}", plain(&item.advice)));
        }
    }
    page.push('\n');
    for line in [verdict(audit), &counts(audit)] {
        page.push_str(line);
        page.push('\n');
    }
    page
}

fn row(page: &mut String, status: &str, title: &str, prose: &str) {
    for (index, line) in wrap(prose, WIDTH - STATUS - TITLE).iter().enumerate() {
        let (status, title) = if index == 0 { (status, title) } else { ("", "") };
        let mut whole = String::new();
        cell(&mut whole, status, STATUS);
        cell(&mut whole, title, TITLE);
        whole.push_str(line);
        page.push_str(whole.trim_end());
        page.push('\n');
    }
}

fn cell(line: &mut String, text: &str, width: usize) {
    line.push_str(text);
    // A longer name still stands apart from what follows.
    let pad = width.saturating_sub(text.width()).max(1);
    line.extend(std::iter::repeat_n(' ', pad));
}

/// The word at the left: what is doubtful without weight is a note.
pub(crate) fn mark(item: &Item) -> &'static str {
    match (item.status, item.severity) {
        (Status::Doubtful, Severity::Info) => "note",
        (Status::Wrong, _) => "WRONG",
        (status, _) => status.name(),
    }
}

fn verdict(audit: &Audit) -> &'static str {
    match audit.verdict {
        Verdict::Valid => "VALID: nothing found that speaks against these figures",
        Verdict::Suspect => "SUSPECT: read what is doubtful before using these figures",
        Verdict::Void => "VOID: do not use these figures as a result",
    }
}

/// How many of each.
pub(crate) fn counts(audit: &Audit) -> String {
    let marked = |word: &str| audit.items.iter().filter(|item| mark(item) == word).count();
    let each = |word: &str| format!("{} {}", marked(word), word.to_lowercase());
    ["WRONG", "doubtful", "note", "missing", "ok"].map(each).join(", ")
}

/// The same in Markdown.
pub fn audit_markdown(audit: &Audit) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(page, "## {}\n", escaped(&audit.subject));
    let _ = writeln!(page, "{} · {}\n", escaped(&audit.tool), escaped(&audit.run));
    let _ = writeln!(page, "**{}** ({})\n", verdict(audit), counts(audit));
    let _ = writeln!(page, "| status | check | what the result says | what to do | asked by |");
    let _ = writeln!(page, "|---|---|---|---|---|");
    for item in &audit.items {
        let advice = if item.status == Status::Ok { "" } else { &item.advice };
        let _ = writeln!(
            page,
            "| {} | {} ({}) | {} | {} | {} |",
            mark(item),
            escaped(&item.title),
            escaped(&item.check),
            escaped(&item.evidence),
            escaped(advice),
            item.source.name()
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use goodput_stats::Source;

    use super::*;

    fn item(status: Status, severity: Severity, evidence: &str) -> Item {
        Item {
            check: "open_loop".to_owned(),
            title: "open loop".to_owned(),
            status,
            severity,
            evidence: evidence.to_owned(),
            advice: "offer a rate".to_owned(),
            source: Source::Checklist,
        }
    }

    fn audit(items: Vec<Item>) -> Audit {
        Audit {
            subject: "x|<b>\u{1b}[2J.json".to_owned(),
            tool: "vllm bench serve".to_owned(),
            run: "model `m`".to_owned(),
            verdict: Verdict::Suspect,
            items,
        }
    }

    #[test]
    fn rows_are_wrapped_and_marked() {
        let long = "closed loop ".repeat(12);
        let page = audit_text(&audit(vec![
            item(Status::Doubtful, Severity::Warn, &long),
            item(Status::Doubtful, Severity::Info, "a note"),
            item(Status::Ok, Severity::Info, "fine"),
        ]));
        assert!(page.lines().all(|line| line.width() <= WIDTH), "{page}");
        assert!(!page.contains('\u{1b}'), "{page}");
        let starts: Vec<_> = page.lines().filter_map(|line| line.split("  ").next()).collect();
        assert!(starts.contains(&"doubtful") && starts.contains(&"note"), "{page}");
        assert_eq!(page.matches("→ offer a rate").count(), 2, "{page}");
        assert!(page.contains("0 wrong, 1 doubtful, 1 note, 0 missing, 1 ok"), "{page}");
    }

    #[test]
    fn foreign_text_stays_in_its_cell() {
        let items = vec![item(Status::Wrong, Severity::Void, "a | <script> [x](y) `c` \r\n| z")];
        let page = audit_markdown(&audit(items));
        assert!(page.starts_with("## x\\|&lt;b&gt;\\\\u{1b}\\[2J.json\n"), "{page}");
        let cells = page.lines().last().unwrap();
        assert!(!cells.contains("<script>") && !cells.contains("[x]"), "{cells}");
        // Bars that are not escaped: the six of the row itself.
        let bars = cells.replace("\\|", "").matches('|').count();
        assert_eq!(bars, 6, "{cells}");
    }
}
