//! A document for a browser.

use goodput_model::Verdict;

use crate::document::{
    Answer, Block, Document, Fact, FailureLog, Formats, Lines, List, NoteKind, SeverityMark,
    Standing, Table, TableStyle,
};
use crate::markup::Html;
use crate::render::page::Page;
use crate::render::pieces::{
    severity_class, write_caveats, write_cell, write_charts, write_grid, write_linked_table,
    write_section,
};

/// Last lines of what failed.
const LAST: usize = 40;

/// The page.
pub fn render_page(document: &Document) -> String {
    let mut body = Html::default();
    let mut sections = Vec::new();
    if let Some(answer) = &document.answer {
        write_answer(&mut body, answer);
        sections.push(("answer", "Answer"));
    }
    for part in &document.sections {
        let inside = Html::from_fn(|html| {
            for (on, block) in &part.blocks {
                if on.includes(Formats::HTML) {
                    write_block(html, block);
                }
            }
        });
        if inside.is_empty() {
            continue;
        }
        if part.id.is_empty() {
            body.add(&inside);
            continue;
        }
        sections.push((part.id, part.name));
        write_section(&mut body, part.id, part.title, |html| {
            html.add(&inside);
        });
    }
    let (title, about) = (&document.title, &document.about);
    Page { title, about, sections: &sections, body }.into_string()
}

fn write_answer(html: &mut Html, answer: &Answer) {
    let (class, word) = match answer.standing {
        Standing::Verdict(Verdict::Void) if answer.more.is_empty() => {
            ("void", "void: not to be used")
        }
        Standing::Verdict(verdict) => (verdict.name(), verdict.name()),
        Standing::Words(words) => ("suspect", words),
    };
    let sentence = |html: &mut Html, element: &'static str, sentence: &str| {
        html.text_element(element, &[("class", "sentence")], sentence);
    };
    html.element("div", &[("id", "answer"), ("class", class)], |html| {
        if answer.more.is_empty() {
            sentence(html, "p", &answer.sentence);
        } else {
            html.element("ul", &[("class", "several")], |html| {
                let all = std::iter::once(&answer.sentence).chain(&answer.more);
                all.for_each(|one| sentence(html, "li", one));
            });
        }
        html.text_element("p", &[("class", "verdict")], word);
    });
    if let Some(doubt) = &answer.doubt {
        html.element("p", &[("class", "doubt")], |html| {
            html.text(&doubt.text);
            html.text_element("a", &[("href", &format!("#{}", doubt.id))], doubt.name).text(".");
        });
    }
}

fn write_block(html: &mut Html, block: &Block) {
    match block {
        Block::Facts(all) => write_facts(html, all),
        Block::Table(table) => write_table(html, table),
        Block::Charts(charts) => write_charts(html, charts),
        Block::Note(note) => {
            let class: &[_] = match note.kind {
                NoteKind::Plain => &[],
                NoteKind::About => &[("class", "about")],
                NoteKind::Remark => &[("class", "remark")],
            };
            html.text_element("p", class, &note.text);
        }
        Block::List(List { title, items }) => {
            html.text_element("h3", &[], title);
            html.element("ul", &[("class", "kinds")], |html| {
                for item in items {
                    html.text_element("li", &[], item);
                }
            });
        }
        Block::Strong(text) => {
            html.text_element("p", &[], text);
        }
        Block::Heading(text) => {
            html.text_element("h3", &[], text);
        }
        Block::Caveats(caveats) => write_caveats(html, caveats),
        Block::Failure(failure) => write_failure(html, failure),
        Block::Lines(found) => write_lines(html, found),
        Block::Marks(marks) => write_marks(html, marks),
        Block::Folded(folded) => {
            html.element("details", &[], |html| {
                html.text_element("summary", &[], &folded.title);
                folded.blocks.iter().for_each(|block| write_block(html, block));
            });
        }
        Block::Widget(widget) => {
            html.add(widget);
        }
        // Lines are for a terminal; the answer has its verdict.
        Block::Plot(_) | Block::Judgement(_) | Block::Gap => {}
    }
}

fn write_facts(html: &mut Html, all: &[Fact]) {
    let shown = || all.iter().filter(|fact| fact.on.includes(Formats::HTML));
    if shown().next().is_none() {
        return;
    }
    html.element("dl", &[("class", "facts")], |html| {
        for fact in shown() {
            if !fact.label.is_empty() {
                html.text_element("dt", &[], &fact.label);
            }
            html.text_element("dd", &[], &fact.text);
        }
    });
}

fn write_failure(html: &mut Html, failure: &FailureLog) {
    html.text_element("h3", &[], &failure.name);
    html.text_element("p", &[], &failure.why);
    if failure.log.is_empty() {
        return;
    }
    let (skipped, rest) = failure.last_lines(LAST);
    html.element("pre", &[("tabindex", "0")], |html| {
        if skipped > 0 {
            html.text(&format!("… {skipped} lines left out")).trusted("\n");
        }
        for line in rest {
            html.text(line).trusted("\n");
        }
    });
}

fn write_table(html: &mut Html, table: &Table) {
    let columns = table.shown_columns(Formats::HTML);
    let heads: Vec<&str> = columns.iter().map(|(_, column)| column.head.as_str()).collect();
    let rows = |html: &mut Html| {
        for row in &table.rows {
            html.element("tr", &[], |html| {
                let cells = columns.iter().filter_map(|(place, _)| row.get(*place));
                cells.enumerate().for_each(|(place, cell)| write_cell(html, place, cell));
            });
        }
    };
    match table.look {
        TableStyle::Numbers => write_grid(html, "", &table.caption, &heads, rows),
        TableStyle::Words => write_grid(html, "words", &table.caption, &heads, rows),
        TableStyle::Links => write_linked_table(html, &table.caption, &heads, rows),
    }
}

fn write_marks(html: &mut Html, marks: &[SeverityMark]) {
    if marks.is_empty() {
        return;
    }
    html.element("ul", &[("class", "caveats")], |html| {
        for mark in marks {
            html.element("li", &[("class", severity_class(mark.severity))], |html| {
                html.text_element("strong", &[], mark.word.trim()).text(" ").text(&mark.text);
            });
        }
    });
}

fn write_lines(html: &mut Html, found: &Lines) {
    let pre = |html: &mut Html| {
        let around = [("tabindex", "0"), ("aria-label", found.title.as_str())];
        html.element("pre", &around, |html| {
            for line in found.text.lines() {
                html.text(line).trusted("\n");
            }
        });
    };
    if found.is_folded {
        html.element("details", &[], |html| {
            html.text_element("summary", &[], &found.title);
            pre(html);
        });
    } else {
        html.text_element("h3", &[], &found.title);
        pre(html);
    }
}
