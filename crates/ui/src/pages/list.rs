//! The list of results.

use super::frame::frame;
use super::{ResultList, ResultRow, figure_text, query, verdict_class};
use crate::entry::Entry;
use goodput_document::markup::Html;
use goodput_document::number::count;
use goodput_record::ArtifactKind;

const VERDICTS: [&str; 3] = ["valid", "suspect", "void"];

/// Names of the columns with figures, and their place among a row's figures.
const COLUMNS: [(&str, usize); 5] =
    [("req/s", 0), ("out tok/s", 1), ("TTFT p99 ms", 3), ("TPOT p99 ms", 4), ("Goodput req/s", 5)];

/// The page with the list.
pub(crate) fn list_page(list: &ResultList) -> String {
    let body = Html::from_fn(|html| {
        search(html, list);
        if list.rows.is_empty() {
            let is_asked =
                [&list.words, &list.kind, &list.verdict].iter().any(|asked| !asked.is_empty());
            let words = if is_asked {
                "No results match."
            } else {
                "No results yet. `goodput run mock --rate 20 --duration 20s` makes a first run."
            };
            html.leaf("p", &[("id", "none")], words);
            return;
        }
        html.element("form", &[("method", "get"), ("action", "/overlay")], |html| {
            rows(html, list);
            html.element("p", &[("class", "choose")], |html| {
                html.leaf("button", &[("type", "submit")], "Overlay selected");
                html.leaf("span", &[("class", "advice")], " Up to eight curves are drawn.");
            });
        });
        pages(html, list);
    });
    frame("Results", &list.folder, &body)
}

fn search(html: &mut Html, list: &ResultList) {
    let form = [("method", "get"), ("action", "/"), ("class", "find"), ("role", "search")];
    html.element("form", &form, |html| {
        html.element("label", &[], |html| {
            html.text("Search ");
            let input = [
                ("type", "search"),
                ("name", "q"),
                ("value", list.words.as_str()),
                ("placeholder", "target, model, workload, tag, note"),
            ];
            html.open("input", &input);
        });
        choice(html, ("Kind ", "kind"), &ArtifactKind::ALL.map(ArtifactKind::name), &list.kind);
        choice(html, ("Verdict ", "verdict"), &VERDICTS, &list.verdict);
        html.leaf("button", &[("type", "submit")], "Find");
    });
}

fn choice(html: &mut Html, (label, name): (&str, &str), words: &[&str], chosen: &str) {
    html.element("label", &[], |html| {
        html.text(label);
        html.element("select", &[("name", name)], |html| {
            html.leaf("option", &[("value", "")], "any");
            for word in words {
                let plain = [("value", *word)];
                let marked = [("value", *word), ("selected", "")];
                let attributes = if *word == chosen { &marked[..] } else { &plain[..] };
                html.leaf("option", attributes, word);
            }
        });
    });
}

fn rows(html: &mut Html, list: &ResultList) {
    html.element("div", &[("class", "scroll"), ("tabindex", "0")], |html| {
        html.element("table", &[("class", "list")], |html| {
            html.leaf("caption", &[], &shown_range(list));
            html.element("thead", &[], |html| {
                html.element("tr", &[], |html| {
                    let names = ["Result", "", "Target", "Load"].into_iter();
                    let figures = COLUMNS.iter().map(|(name, _)| *name);
                    for name in names.chain(figures).chain(["Verdict", "Tags"]) {
                        html.leaf("th", &[("scope", "col")], name);
                    }
                });
            });
            html.element("tbody", &[], |html| {
                for row in &list.rows {
                    write_row(html, row);
                }
            });
        });
    });
}

fn shown_range(list: &ResultList) -> String {
    let (from, to) = (list.skip + 1, list.skip + list.rows.len());
    let total = count(list.total as u64);
    if to - list.skip == list.total {
        format!("{total} in total, newest first")
    } else {
        format!("{from}–{to} of {total}, newest first")
    }
}

fn write_row(html: &mut Html, row: &ResultRow) {
    let entry = &row.entry;
    let figures = entry.figures.in_order();
    html.element("tr", &[("data-id", &entry.id)], |html| {
        html.element("th", &[("scope", "row")], |html| {
            html.leaf("a", &[("href", &format!("/run/{}", entry.id))], started_at(entry));
            html.text(" ");
            html.leaf("span", &[("class", "kind")], entry.kind.name());
            state(html, row);
            html.leaf("span", &[("class", "small")], &entry.name);
        });
        html.element("td", &[], |html| {
            let label = format!("select {}", entry.name);
            let input = [
                ("type", "checkbox"),
                ("name", "id"),
                ("value", &entry.id),
                ("aria-label", &label),
            ];
            html.open("input", &input.map(|(name, value)| (name, value)));
        });
        html.element("td", &[("class", "words"), ("data-name", "Target")], |html| {
            html.text(&entry.target);
            html.leaf("span", &[("class", "small")], &entry.model);
        });
        html.element("td", &[("class", "words"), ("data-name", "Load")], |html| {
            html.text(&entry.load);
            html.leaf("span", &[("class", "small")], &entry.workload);
        });
        for (name, place) in COLUMNS {
            let figure = figures.get(place).copied().flatten();
            html.leaf("td", &[("data-name", name)], &figure.map_or_else(String::new, figure_text));
        }
        html.element("td", &[("class", "words brief"), ("data-name", "Verdict")], |html| {
            html.leaf("span", &[("class", verdict_class(&entry.verdict))], &entry.verdict);
            html.leaf("span", &[("class", "small")], &entry.says);
        });
        html.element("td", &[("class", "words brief"), ("data-name", "Tags")], |html| {
            tags(html, &entry.notes.tags);
        });
    });
}

/// When it began, as much as is needed to find it.
fn started_at(entry: &Entry) -> &str {
    if entry.started.is_empty() { "unknown time" } else { &entry.started }
}

/// A word on what is not simply over.
pub(super) fn state(html: &mut Html, row: &ResultRow) {
    let (word, class) = match (row.is_live, row.entry.state.as_str()) {
        (true, _) => ("running", "live"),
        (_, "running") => ("unfinished", "doubt"),
        (_, "complete" | "") => return,
        (_, other) => (other, "doubt"),
    };
    html.text(" ").leaf("span", &[("class", class)], &word.replace('_', " "));
}

/// Tags that lead to what else has them.
pub(super) fn tags(html: &mut Html, tags: &[String]) {
    for tag in tags {
        let address = format!("/?q={}", query(tag));
        html.leaf("a", &[("class", "tag"), ("href", &address)], tag).text(" ");
    }
}

fn pages(html: &mut Html, list: &ResultList) {
    let address = |skip: usize| {
        let (words, kind, verdict) = (query(&list.words), query(&list.kind), query(&list.verdict));
        format!("/?q={words}&kind={kind}&verdict={verdict}&skip={skip}")
    };
    let (before, after) = (list.skip > 0, list.skip + list.rows.len() < list.total);
    if !before && !after {
        return;
    }
    html.element("nav", &[("aria-label", "Pages")], |html| {
        if before {
            let skip = list.skip.saturating_sub(list.most);
            html.leaf("a", &[("href", &address(skip)), ("rel", "prev")], "Newer");
        }
        if after {
            html.leaf("a", &[("href", &address(list.skip + list.most)), ("rel", "next")], "Older");
        }
    });
}
