//! Plain text for a terminal.

use goodput_model::Verdict;
use unicode_width::UnicodeWidthStr;

use crate::chart::draw;
use crate::clip::{fit, left, right};
use crate::document::{
    Align, Block, Cell, Column, Document, Fact, Failure, Formats, List, SeverityMark, Table,
};
use crate::wrap::wrap;
use goodput_model::plain;

/// Columns of the page.
pub const WIDTH: usize = 80;
/// Columns of the labels at the left.
pub const LABEL: usize = 10;
/// Columns that the first column of a table keeps where there is too little room.
const LEAST: usize = 18;
/// Blanks between columns that are as wide as their cells.
const GAP: usize = 2;
/// Last lines of what failed.
const LAST: usize = 12;

/// The page. Foreign words may be longer than a line: those are cut.
pub fn page(document: &Document) -> String {
    let mut page = String::new();
    for line in &document.head {
        if document.keeps_long_lines {
            page.extend([&plain(line), "\n"]);
        } else {
            lines(&mut page, line);
        }
    }
    for section in &document.sections {
        let mut inside = String::new();
        for (on, block) in &section.blocks {
            if on.has(Formats::TEXT) {
                write(&mut inside, block);
            }
        }
        if !inside.is_empty() && !page.is_empty() {
            page.push('\n');
        }
        page.push_str(&inside);
    }
    if document.keeps_long_lines { page } else { fit(&page, WIDTH) }
}

fn write(page: &mut String, block: &Block) {
    match block {
        Block::Facts(facts) => write_facts(page, facts),
        Block::Table(table) => write_tables(page, table),
        Block::Marks(marks) => write_marks(page, marks),
        Block::Folded(folded) => folded.blocks.iter().for_each(|block| write(page, block)),
        Block::Plot(plot) => page.push_str(&draw(plot)),
        Block::Note(note) => lines(page, &note.text),
        Block::List(List { title, items }) => {
            lines(page, title);
            for item in items {
                field(page, "", &plain(item));
            }
        }
        Block::Strong(text) | Block::Heading(text) => lines(page, text),
        Block::Judgement(found) => {
            field(page, "Verdict", &verdict_line(found.verdict));
            write_marks(page, &found.marks);
        }
        Block::Failure(failure) => write_failure(page, failure),
        Block::Lines(found) => {
            for line in found.text.lines() {
                page.extend([&plain(line), "\n"]);
            }
        }
        Block::Gap => page.push('\n'),
        // These are drawn, or said by the judgement.
        Block::Charts(_) | Block::Caveats(_) | Block::Widget(_) => {}
    }
}

fn lines(page: &mut String, text: &str) {
    for line in wrap(&plain(text), WIDTH) {
        page.push_str(&line);
        page.push('\n');
    }
}

fn write_facts(page: &mut String, facts: &[Fact]) {
    for fact in facts.iter().filter(|fact| fact.on.has(Formats::TEXT)) {
        field(page, &fact.label, &plain(&fact.text));
    }
}

fn write_marks(page: &mut String, marks: &[SeverityMark]) {
    for mark in marks {
        field(page, mark.word, &plain(&mark.text));
    }
}

/// Whether to believe a result.
pub fn verdict_line(verdict: Verdict) -> String {
    let advice = match verdict {
        Verdict::Valid => "",
        Verdict::Suspect => ": read the caveats before using these numbers",
        Verdict::Void => ": do not use these numbers as a result",
    };
    format!("{}{advice}", verdict.name().to_uppercase())
}

/// Whether to believe figures that another tool states.
pub fn figures_verdict_line(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Valid => "VALID: nothing found that speaks against these figures",
        Verdict::Suspect => "SUSPECT: read what is doubtful before using these figures",
        Verdict::Void => "VOID: do not use these figures as a result",
    }
}

fn write_failure(page: &mut String, failure: &Failure) {
    if !page.is_empty() {
        page.push('\n');
    }
    let (skipped, rest) = failure.tail(LAST);
    let left_out = (skipped > 0).then(|| format!("… {skipped} lines left out"));
    page.extend([&plain(&failure.name), " failed:\n"]);
    for line in std::iter::once(&failure.why).chain(&left_out).chain(rest) {
        page.extend(["  ", &plain(line), "\n"]);
    }
}

/// The table, cut where it has to be.
fn write_tables(page: &mut String, table: &Table) {
    for (place, way) in table.ways.iter().enumerate() {
        let tables: Vec<Table> = way.iter().map(|cut| table.cut(cut)).collect();
        if place + 1 == table.ways.len() || tables.iter().all(fits) {
            return tables.iter().for_each(|table| write_natural(page, table));
        }
    }
    if table.is_natural { write_natural(page, table) } else { write_table(page, table) }
}

/// Columns of a table that is as wide as its cells.
fn widths(table: &Table) -> Vec<usize> {
    let width = |place: usize| {
        let cells = table.rows.iter().filter_map(|row| row.get(place)).map(|cell| &cell.text);
        let head = table.columns.get(place).map(|column| &column.head);
        cells.chain(head).map(|text| plain(text).width()).max().unwrap_or(0)
    };
    (0..table.columns.len()).map(width).collect()
}

/// What a table takes, with gaps between its columns.
fn whole(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Whether it fits the page, if the first column gives way.
fn fits(table: &Table) -> bool {
    let widths = widths(table);
    let first = widths.first().copied().unwrap_or(0);
    whole(&widths) <= WIDTH + first.saturating_sub(LEAST)
}

/// A table whose columns are as wide as their cells. What is too wide costs the first column.
fn write_natural(page: &mut String, table: &Table) {
    if !page.is_empty() {
        page.push('\n');
    }
    lines(page, &table.above);
    let mut widths = widths(table);
    let over = whole(&widths).saturating_sub(WIDTH);
    if let Some(first) = widths.first_mut() {
        *first = first.saturating_sub(over).max(LEAST.min(*first));
    }
    let heads = table.columns.iter().map(|column| plain(&column.head)).collect();
    let rows = table.rows.iter().map(|row| row.iter().map(|cell| plain(&cell.text)).collect());
    for row in std::iter::once(heads).chain(rows) {
        let row: Vec<String> = row;
        let cell = |((text, width), column): ((&String, &usize), &Column)| match column.align {
            Align::Left => left(text, *width),
            Align::Right => right(text, *width),
        };
        let cells: Vec<String> = row.iter().zip(&widths).zip(&table.columns).map(cell).collect();
        page.push_str(cells.join(&" ".repeat(GAP)).trim_end());
        page.push('\n');
    }
}

/// Headings, one line above the other where they are short of room, and rows.
fn write_table(page: &mut String, table: &Table) {
    let columns = table.shown(Formats::TEXT);
    if !table.above.is_empty() {
        lines(page, &table.above);
    }
    let heads: Vec<Vec<&str>> = columns
        .iter()
        .map(|(_, column)| column.short.as_ref().unwrap_or(&column.head).split('\n').collect())
        .collect();
    let deepest = heads.iter().map(Vec::len).max().unwrap_or(0);
    for line in 0..deepest {
        let head = |head: &Vec<&str>| {
            let place = (line + head.len()).checked_sub(deepest);
            place.and_then(|place| head.get(place)).map_or(String::new(), |head| plain(head))
        };
        write_row(page, &columns, heads.iter().map(head));
    }
    for row in &table.rows {
        let text = |(place, _): &(usize, &Column)| row.get(*place).map_or(String::new(), shown);
        write_row(page, &columns, columns.iter().map(text));
    }
}

/// What a terminal shows of a cell. Line breaks in a short text are ours.
fn shown(cell: &Cell) -> String {
    match &cell.short {
        Some(short) => short.split('\n').map(plain).collect::<Vec<_>>().join("\n"),
        None => plain(&cell.text),
    }
}

fn write_row(page: &mut String, columns: &[(usize, &Column)], cells: impl Iterator<Item = String>) {
    let mut line = String::new();
    for ((_, column), text) in columns.iter().zip(cells) {
        if column.is_prose {
            let before = line.width() + column.gap;
            let (room, below) = (WIDTH.saturating_sub(before), format!("\n{:before$}", ""));
            let lines: Vec<String> = text.split('\n').flat_map(|line| wrap(line, room)).collect();
            line.extend([" ".repeat(column.gap), lines.join(&below)]);
            continue;
        }
        let pad = " ".repeat(column.width.saturating_sub(text.width()));
        line.extend(std::iter::repeat_n(' ', column.gap));
        match column.align {
            Align::Left => line.extend([text, pad]),
            Align::Right => line.extend([pad, text]),
        }
    }
    for line in line.split('\n') {
        page.extend([line.trim_end(), "\n"]);
    }
}

/// A label and prose next to it, wrapped. Prose without a label goes on with what is above it.
pub fn field(page: &mut String, label: &str, prose: &str) {
    for (index, line) in wrap(prose, WIDTH - LABEL - 2).iter().enumerate() {
        let label = if index == 0 { label } else { "" };
        let pad = (LABEL + 2).saturating_sub(label.width());
        page.push_str(label);
        page.extend(std::iter::repeat_n(' ', pad));
        page.push_str(line);
        page.push('\n');
    }
}
