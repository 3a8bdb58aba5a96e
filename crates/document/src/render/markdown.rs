//! Markdown, for a pull request or the summary of a job.

use std::fmt::{Error, Write};

use crate::document::{Align, Block, Cell, Document, Fact, Formats, List, SeverityMark, Table};
use goodput_model::escape_control;

/// The page, for a pull request or a job summary.
pub fn render_page(document: &Document) -> String {
    let mut page = format!("## {}\n\n", escape_markdown(&document.heading));
    for section in &document.sections {
        for (on, block) in &section.blocks {
            if on.includes(Formats::MARKDOWN) {
                // Writing to a string cannot fail.
                let _ = write_block(&mut page, block);
            }
        }
    }
    page
}

fn write_block(page: &mut String, block: &Block) -> Result<(), Error> {
    match block {
        Block::Facts(facts) => write_facts(page, facts),
        Block::Table(found) => write_table(page, found),
        Block::Note(note) => writeln!(blank_line(page), "{}", escape_markdown(&note.text)),
        Block::List(List { title, items }) => {
            writeln!(blank_line(page), "### {}\n", escape_markdown(title))?;
            items.iter().try_for_each(|item| writeln!(page, "- {}", escape_markdown(item)))
        }
        Block::Strong(prose) => writeln!(blank_line(page), "**{}**\n", escape_markdown(prose)),
        Block::Heading(title) => writeln!(blank_line(page), "### {}\n", escape_markdown(title)),
        Block::Judgement(found) => {
            writeln!(page, "- Verdict: **{}**", found.verdict.name())?;
            write_marks(page, &found.marks)
        }
        Block::Failure(failure) => {
            let (name, why) = (escape_markdown(&failure.name), escape_markdown(&failure.why));
            writeln!(page, "\n- **failed** {name}: {why}")
        }
        Block::Marks(marks) => write_marks(page, marks),
        Block::Folded(folded) => {
            writeln!(page, "\n<details><summary>{}</summary>", escape_markdown(&folded.title))?;
            folded.blocks.iter().try_for_each(|block| write_block(page, block))?;
            writeln!(page, "\n</details>")
        }
        Block::Charts(_)
        | Block::Plot(_)
        | Block::Caveats(_)
        | Block::Lines(_)
        | Block::Widget(_) => Ok(()),
        Block::Gap => writeln!(page),
    }
}

/// The page, with an empty line at its end.
fn blank_line(page: &mut String) -> &mut String {
    if !page.ends_with("\n\n") {
        page.push('\n');
    }
    page
}

fn write_facts(page: &mut String, facts: &[Fact]) -> Result<(), Error> {
    for fact in facts.iter().filter(|fact| fact.on.includes(Formats::MARKDOWN)) {
        let label = match fact.label.as_str() {
            "" => String::new(),
            label => format!("{}: ", escape_markdown(label)),
        };
        writeln!(page, "- {label}{}", escape_markdown(&fact.text))?;
    }
    Ok(())
}

fn write_table(page: &mut String, table: &Table) -> Result<(), Error> {
    let columns = table.shown_columns(Formats::MARKDOWN);
    if !table.title.is_empty() {
        writeln!(blank_line(page), "### {}", escape_markdown(&table.title))?;
    }
    blank_line(page);
    let heads: Vec<String> =
        columns.iter().map(|(_, column)| escape_markdown(&column.head)).collect();
    writeln!(page, "| {} |", heads.join(" | "))?;
    let rule = |align: Align| if align == Align::Left { "---" } else { "---:" };
    let rules: Vec<&str> = columns.iter().map(|(_, column)| rule(column.align)).collect();
    writeln!(page, "|{}|", rules.join("|"))?;
    for row in &table.rows {
        let cells = columns.iter().filter_map(|(place, _)| row.get(*place));
        let cells: Vec<String> = cells.map(write_cell).collect();
        writeln!(page, "| {} |", cells.join(" | "))?;
    }
    Ok(())
}

fn write_cell(cell: &Cell) -> String {
    match cell.note.as_str() {
        "" => escape_markdown(&cell.text),
        note => escape_markdown(&format!("{} ({note})", cell.text)),
    }
}

fn write_marks(page: &mut String, marks: &[SeverityMark]) -> Result<(), Error> {
    let mut all = marks.iter();
    all.try_for_each(|mark| {
        writeln!(page, "  - **{}** {}", mark.word.trim(), escape_markdown(&mark.text))
    })
}

/// Text that may hold foreign words: nothing in it ends a cell, starts a tag, a link or a code span,
/// and it mentions no user: models are named `@cf/…`, and GitHub would notify the account of that name. Between
/// two dollars GitHub sees mathematics, escaped or not.
fn escape_markdown(text: &str) -> String {
    let mut out = String::new();
    for c in escape_control(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '$' => out.push_str("&#36;"),
            '@' => out.push_str("@&#8203;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '!' | '~' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}
