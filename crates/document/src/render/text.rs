//! Plain text for a terminal.

use goodput_model::Verdict;
use unicode_width::UnicodeWidthStr;

use crate::chart::draw_text_plot;
use crate::clip::{align_left, align_right, clip, fit_page};
use crate::document::{
    Align, Block, Cell, Column, Detail, Document, Fact, FailureLog, Formats, List, SeverityMark,
    Standing, Table,
};
use crate::wrap::wrap;
use goodput_model::escape_control;

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

/// Rows of a table, lines below a label, and warnings on a short page.
const SHORT_ROWS: usize = 10;
const SHORT_LINES: usize = 2;
const SHORT_MARKS: usize = 4;

/// The page. Foreign words may be longer than a line: those are cut.
pub fn render_page(document: &Document, detail: Detail) -> String {
    let mut page = String::new();
    match detail {
        Detail::Short => write_headline(&mut page, document),
        Detail::Full => write_head(&mut page, document),
    }
    for section in &document.sections {
        let mut inside = String::new();
        for (on, block) in &section.blocks {
            if on.includes(format_of_detail(detail)) {
                write_block(&mut inside, block, detail);
            }
        }
        if !inside.is_empty() && !page.is_empty() {
            page.push('\n');
        }
        page.push_str(&inside);
    }
    match detail {
        Detail::Full if document.keeps_long_lines => page,
        _ => fit_page(&page, WIDTH),
    }
}

fn format_of_detail(detail: Detail) -> Formats {
    match detail {
        Detail::Short => Formats::SHORT,
        Detail::Full => Formats::TEXT,
    }
}

fn write_head(page: &mut String, document: &Document) {
    for line in &document.head {
        if document.keeps_long_lines {
            page.extend([&escape_control(line), "\n"]);
        } else {
            write_lines(page, line);
        }
    }
}

/// The verdict, and what it is about.
fn write_headline(page: &mut String, document: &Document) {
    let standing = document.answer.as_ref().map(|answer| match answer.standing {
        Standing::Verdict(verdict) => verdict.name().to_uppercase(),
        Standing::Words(words) => words.to_owned(),
    });
    let headline = Some(escape_control(&document.headline));
    let parts: Vec<String> = standing.into_iter().chain(headline).collect();
    page.push_str(&clip(&parts.join("  "), WIDTH));
    page.push('\n');
}

fn write_block(page: &mut String, block: &Block, detail: Detail) {
    match block {
        Block::Facts(facts) => write_facts(page, facts, detail),
        Block::Table(table) => write_tables(page, table, detail),
        Block::Marks(marks) => write_marks(page, marks, detail),
        Block::Folded(folded) => {
            folded.blocks.iter().for_each(|block| write_block(page, block, detail));
        }
        Block::Plot(plot) => page.push_str(&draw_text_plot(plot)),
        Block::Note(note) => write_lines(page, &note.text),
        Block::List(List { title, items }) => {
            write_lines(page, title);
            for item in items {
                write_field(page, "", &escape_control(item));
            }
        }
        Block::Strong(text) | Block::Heading(text) => write_lines(page, text),
        Block::Judgement(found) => {
            // The first line of a short page has the verdict.
            if detail == Detail::Full {
                write_field(page, "Verdict", &verdict_line(found.verdict));
            }
            write_marks(page, &found.marks, detail);
        }
        Block::Failure(failure) => write_failure(page, failure),
        Block::Lines(found) => {
            for line in found.text.lines() {
                page.extend([&escape_control(line), "\n"]);
            }
        }
        Block::Gap => page.push('\n'),
        // These are drawn, or said by the judgement.
        Block::Charts(_) | Block::Caveats(_) | Block::Widget(_) => {}
    }
}

fn write_lines(page: &mut String, text: &str) {
    for line in wrap(&escape_control(text), WIDTH) {
        page.push_str(&line);
        page.push('\n');
    }
}

fn write_facts(page: &mut String, facts: &[Fact], detail: Detail) {
    let shown = facts.iter().filter(|fact| fact.on.includes(format_of_detail(detail)));
    if detail == Detail::Full {
        return shown.for_each(|fact| write_field(page, &fact.label, &escape_control(&fact.text)));
    }
    let shown: Vec<&Fact> = shown.collect();
    for group in shown.chunk_by(|_, next| next.label.is_empty()) {
        let texts = group.iter().map(|fact| (fact.label.as_str(), fact.text.as_str()));
        write_some(page, &texts.collect::<Vec<_>>(), 1 + SHORT_LINES);
    }
}

fn write_marks(page: &mut String, marks: &[SeverityMark], detail: Detail) {
    let texts: Vec<(&str, &str)> =
        marks.iter().map(|mark| (mark.word, mark.text.as_str())).collect();
    match detail {
        Detail::Full => {
            for (word, text) in texts {
                write_field(page, word, &escape_control(text));
            }
        }
        Detail::Short => write_some(page, &texts, SHORT_MARKS),
    }
}

/// At most this many of them, each in one line, and how many are left out.
fn write_some(page: &mut String, texts: &[(&str, &str)], most: usize) {
    // The line that counts takes no more room than what it counts.
    let most = if texts.len() == most + 1 { texts.len() } else { most };
    for (label, text) in texts.iter().take(most) {
        write_field(page, label, &clip(&escape_control(text), WIDTH - LABEL - 2));
    }
    let rest = texts.len().saturating_sub(most);
    if rest > 0 {
        write_field(page, "", &format!("and {rest} more"));
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
        Verdict::Valid => "VALID: no reason found to doubt these figures",
        Verdict::Suspect => "SUSPECT: read the doubtful checks before using these figures",
        Verdict::Void => "VOID: do not use these figures as a result",
    }
}

fn write_failure(page: &mut String, failure: &FailureLog) {
    if !page.is_empty() {
        page.push('\n');
    }
    let (skipped, rest) = failure.last_lines(LAST);
    let left_out = (skipped > 0).then(|| format!("… {skipped} lines left out"));
    page.extend([&escape_control(&failure.name), " failed:\n"]);
    for line in std::iter::once(&failure.why).chain(&left_out).chain(rest) {
        page.extend(["  ", &escape_control(line), "\n"]);
    }
}

/// The table, cut where it has to be.
fn write_tables(page: &mut String, table: &Table, detail: Detail) {
    if detail == Detail::Short && table.rows.len() > SHORT_ROWS + 1 {
        let few = few_rows(table);
        write_tables(page, &few, detail);
        let rest = table.rows.len() - few.rows.len();
        return write_lines(page, &format!("{:LABEL$}  and {rest} more", ""));
    }
    for (place, way) in table.ways.iter().enumerate() {
        let tables: Vec<Table> = way.iter().map(|cut| table.with_columns(cut)).collect();
        if place + 1 == table.ways.len() || tables.iter().all(fits_page) {
            return tables.iter().for_each(|table| write_natural(page, table));
        }
    }
    if table.is_natural { write_natural(page, table) } else { write_table(page, table) }
}

/// The same with those rows that a short page shows.
fn few_rows(table: &Table) -> Table {
    let all = || 0..table.rows.len();
    let mut places: Vec<usize> =
        table.first.iter().copied().chain(all()).take(SHORT_ROWS).collect();
    if table.first.len() >= SHORT_ROWS {
        places.sort_unstable();
    }
    let rows = places.iter().filter_map(|place| table.rows.get(*place).cloned()).collect();
    Table { rows, ..table.clone() }
}

/// Columns of a table that is as wide as its cells.
fn natural_widths(table: &Table) -> Vec<usize> {
    let width = |place: usize| {
        let cells = table.rows.iter().filter_map(|row| row.get(place)).map(|cell| &cell.text);
        let head = table.columns.get(place).map(|column| &column.head);
        cells.chain(head).map(|text| escape_control(text).width()).max().unwrap_or(0)
    };
    (0..table.columns.len()).map(width).collect()
}

/// What a table takes, with gaps between its columns.
fn total_width(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Whether it fits the page, if the first column gives way.
fn fits_page(table: &Table) -> bool {
    let widths = natural_widths(table);
    let first = widths.first().copied().unwrap_or(0);
    total_width(&widths) <= WIDTH + first.saturating_sub(LEAST)
}

/// A table whose columns are as wide as their cells. What is too wide costs the first column.
fn write_natural(page: &mut String, table: &Table) {
    if !page.is_empty() {
        page.push('\n');
    }
    write_lines(page, &table.above);
    let mut widths = natural_widths(table);
    let over = total_width(&widths).saturating_sub(WIDTH);
    if let Some(first) = widths.first_mut() {
        *first = first.saturating_sub(over).max(LEAST.min(*first));
    }
    let heads = table.columns.iter().map(|column| escape_control(&column.head)).collect();
    let rows =
        table.rows.iter().map(|row| row.iter().map(|cell| escape_control(&cell.text)).collect());
    for row in std::iter::once(heads).chain(rows) {
        let row: Vec<String> = row;
        let cell = |((text, width), column): ((&String, &usize), &Column)| match column.align {
            Align::Left => align_left(text, *width),
            Align::Right => align_right(text, *width),
        };
        let cells: Vec<String> = row.iter().zip(&widths).zip(&table.columns).map(cell).collect();
        page.push_str(cells.join(&" ".repeat(GAP)).trim_end());
        page.push('\n');
    }
}

/// Headings, one line above the other where they are short of room, and rows.
fn write_table(page: &mut String, table: &Table) {
    let columns = table.shown_columns(Formats::TEXT);
    if !table.above.is_empty() {
        write_lines(page, &table.above);
    }
    let heads: Vec<Vec<&str>> = columns
        .iter()
        .map(|(_, column)| column.short.as_ref().unwrap_or(&column.head).split('\n').collect())
        .collect();
    let deepest = heads.iter().map(Vec::len).max().unwrap_or(0);
    for line in 0..deepest {
        let head = |head: &Vec<&str>| {
            let place = (line + head.len()).checked_sub(deepest);
            place
                .and_then(|place| head.get(place))
                .map_or(String::new(), |head| escape_control(head))
        };
        write_row(page, &columns, heads.iter().map(head));
    }
    for row in &table.rows {
        let text =
            |(place, _): &(usize, &Column)| row.get(*place).map_or(String::new(), shown_cell);
        write_row(page, &columns, columns.iter().map(text));
    }
}

/// What a terminal shows of a cell. Line breaks in a short text are ours.
fn shown_cell(cell: &Cell) -> String {
    match &cell.short {
        Some(short) => short.split('\n').map(escape_control).collect::<Vec<_>>().join("\n"),
        None => escape_control(&cell.text),
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
pub fn write_field(page: &mut String, label: &str, prose: &str) {
    for (index, line) in wrap(prose, WIDTH - LABEL - 2).iter().enumerate() {
        let label = if index == 0 { label } else { "" };
        let pad = (LABEL + 2).saturating_sub(label.width());
        page.push_str(label);
        page.extend(std::iter::repeat_n(' ', pad));
        page.push_str(line);
        page.push('\n');
    }
}
