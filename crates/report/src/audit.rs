//! What an audit found, as a document.

use goodput_model::{Severity, escape_control};
use goodput_stats::{Audit, Item, Status};

use goodput_document::render;
use goodput_document::{
    Block, Cell, Column, Detail, Document, Formats, Section, Table, TableStyle, Tone,
};

/// What an audit found in one result, for a terminal.
pub fn audit_text(audit: &Audit) -> String {
    render::text::render_page(&audit_document(audit), Detail::Full)
}

/// The same, for a pull request or a job summary.
pub fn audit_markdown(audit: &Audit) -> String {
    render::markdown::render_page(&audit_document(audit))
}

fn audit_document(audit: &Audit) -> Document {
    let about = format!("{} · {}", audit.tool, audit.run);
    let verdict = render::text::figures_verdict_line(audit.verdict);
    let (text, markdown) = (Formats::TEXT, Formats::MARKDOWN);
    Document {
        head: vec![audit.subject.clone(), about.clone()],
        heading: audit.subject.clone(),
        sections: vec![
            Section::untitled()
                .with_on(markdown, Block::note(about))
                .with_on(markdown, Block::Strong(format!("{verdict} ({})", counts_text(audit))))
                .with(Block::Table(checks_table(audit))),
            Section::untitled()
                .with_on(text, Block::note(verdict))
                .with_on(text, Block::note(counts_text(audit))),
        ],
        ..Document::default()
    }
}

/// Every check with what the result says: the same rows on the page of an audit, of a run and of a sweep.
pub(crate) fn checks_table(audit: &Audit) -> Table {
    let (text, markdown, html) = (Formats::TEXT, Formats::MARKDOWN, Formats::HTML);
    let table = Table::from_subjects("", "What a result must state", &audit.items)
        .with(Column::left("status", 10).short("").on(Formats::FLAT), |item| item_mark(item))
        .with(Column::left("check", 24).on(text), |item| item.title.clone())
        .with(Column::left("check", 0).on(markdown), |item| {
            format!("{} ({})", item.title, item.check)
        })
        .with(Column::left("check", 0).on(html), |item| item.title.clone())
        .with(Column::left("status", 0).on(html), |item| {
            Cell::from(item_mark(item).to_lowercase()).tone(item_tone(item))
        })
        .with(Column::prose("what the result says", 1), |item| match item_advice(item) {
            "" => Cell::from(item.evidence.clone()),
            advice => {
                let short =
                    format!("{}\n→ {}", escape_control(&item.evidence), escape_control(advice));
                Cell::from(item.evidence.clone()).short(short)
            }
        })
        .with(Column::left("what to do", 0).on(Formats::WIDE), |item| item_advice(item).to_owned())
        .with(Column::left("required by", 0).on(markdown), |item| item.source.name())
        .table;
    Table { look: TableStyle::Words, ..table }
}

fn item_tone(item: &Item) -> Tone {
    match (item.status, item.severity) {
        (Status::Ok, _) => Tone::Good,
        (Status::Wrong, _) => Tone::Bad,
        (Status::Doubtful, Severity::Info) => Tone::Plain,
        (Status::Doubtful | Status::Missing, _) => Tone::Doubt,
    }
}

/// What to do about an item; nothing if all is well.
fn item_advice(item: &Item) -> &str {
    if item.status == Status::Ok { "" } else { &item.advice }
}

/// The word at the left: what is doubtful without weight is a note.
fn item_mark(item: &Item) -> &'static str {
    match (item.status, item.severity) {
        (Status::Doubtful, Severity::Info) => "note",
        (Status::Wrong, _) => "WRONG",
        (status, _) => status.name(),
    }
}

/// How many of each.
pub(crate) fn counts_text(audit: &Audit) -> String {
    let marked = |word: &str| audit.items.iter().filter(|item| item_mark(item) == word).count();
    let each = |word: &str| format!("{} {}", marked(word), word.to_lowercase());
    ["WRONG", "doubtful", "note", "missing", "ok"].map(each).join(", ")
}

#[cfg(test)]
mod tests {
    use goodput_stats::Source;
    use unicode_width::UnicodeWidthStr;

    use goodput_model::Verdict;

    use super::*;
    use goodput_document::render::text::WIDTH;

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
