//! The list of results.

use super::frame::wrap_page;
use super::{ResultList, ResultRow, encode_query, figure_text, verdict_class};
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
        write_search(html, list);
        if list.rows.is_empty() {
            let is_asked =
                [&list.words, &list.kind, &list.verdict].iter().any(|asked| !asked.is_empty());
            let words = if is_asked {
                "No results match."
            } else {
                "No results yet. `goodput run mock --rate 20 --duration 20s` makes a first run."
            };
            html.text_element("p", &[("id", "none")], words);
            return;
        }
        html.element("form", &[("method", "get"), ("action", "/overlay")], |html| {
            write_rows(html, list);
            html.element("p", &[("class", "choose")], |html| {
                html.text_element("button", &[("type", "submit")], "Overlay selected");
                html.text_element("span", &[("class", "advice")], " Up to eight curves are drawn.");
            });
        });
        write_page_links(html, list);
    });
    wrap_page("Results", &list.folder, &body)
}

fn write_search(html: &mut Html, list: &ResultList) {
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
        write_choice(
            html,
            ("Kind ", "kind"),
            &ArtifactKind::ALL.map(ArtifactKind::name),
            &list.kind,
        );
        write_choice(html, ("Verdict ", "verdict"), &VERDICTS, &list.verdict);
        html.text_element("button", &[("type", "submit")], "Find");
    });
}

fn write_choice(html: &mut Html, (label, name): (&str, &str), words: &[&str], chosen: &str) {
    html.element("label", &[], |html| {
        html.text(label);
        html.element("select", &[("name", name)], |html| {
            html.text_element("option", &[("value", "")], "any");
            for word in words {
                let plain = [("value", *word)];
                let marked = [("value", *word), ("selected", "")];
                let attributes = if *word == chosen { &marked[..] } else { &plain[..] };
                html.text_element("option", attributes, word);
            }
        });
    });
}

fn write_rows(html: &mut Html, list: &ResultList) {
    html.element("div", &[("class", "scroll"), ("tabindex", "0")], |html| {
        html.element("table", &[("class", "list")], |html| {
            html.text_element("caption", &[], &shown_range(list));
            html.element("thead", &[], |html| {
                html.element("tr", &[], |html| {
                    let names = ["Result", "", "Target", "Load"].into_iter();
                    let figures = COLUMNS.iter().map(|(name, _)| *name);
                    for name in names.chain(figures).chain(["Verdict", "Tags"]) {
                        html.text_element("th", &[("scope", "col")], name);
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
    let figures = entry.figures.all_figures();
    html.element("tr", &[("data-id", &entry.id)], |html| {
        html.element("th", &[("scope", "row")], |html| {
            html.text_element("a", &[("href", &format!("/run/{}", entry.id))], started_at(entry));
            html.text(" ");
            html.text_element("span", &[("class", "kind")], entry.kind.name());
            write_state(html, row);
            html.text_element("span", &[("class", "small")], &entry.name);
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
            html.text_element("span", &[("class", "small")], &entry.model);
        });
        html.element("td", &[("class", "words"), ("data-name", "Load")], |html| {
            html.text(&entry.load);
            html.text_element("span", &[("class", "small")], &entry.workload);
        });
        for (name, place) in COLUMNS {
            let figure = figures.get(place).copied().flatten();
            html.text_element(
                "td",
                &[("data-name", name)],
                &figure.map_or_else(String::new, figure_text),
            );
        }
        html.element("td", &[("class", "words brief"), ("data-name", "Verdict")], |html| {
            html.text_element("span", &[("class", verdict_class(&entry.verdict))], &entry.verdict);
            html.text_element("span", &[("class", "small")], &entry.says);
        });
        html.element("td", &[("class", "words brief"), ("data-name", "Tags")], |html| {
            write_tags(html, &entry.notes.tags);
        });
    });
}

/// When it began, as much as is needed to find it.
fn started_at(entry: &Entry) -> &str {
    if entry.started.is_empty() { "unknown time" } else { &entry.started }
}

/// A word on what is not simply over.
pub(super) fn write_state(html: &mut Html, row: &ResultRow) {
    let (word, class) = match (row.is_live, row.entry.state.as_str()) {
        (true, _) => ("running", "live"),
        (_, "running") => ("unfinished", "doubt"),
        (_, "complete" | "") => return,
        (_, other) => (other, "doubt"),
    };
    html.text(" ").text_element("span", &[("class", class)], &word.replace('_', " "));
}

/// Tags that lead to what else has them.
pub(super) fn write_tags(html: &mut Html, tags: &[String]) {
    for tag in tags {
        let address = format!("/?q={}", encode_query(tag));
        html.text_element("a", &[("class", "tag"), ("href", &address)], tag).text(" ");
    }
}

fn write_page_links(html: &mut Html, list: &ResultList) {
    let address = |skip: usize| {
        let (words, kind, verdict) =
            (encode_query(&list.words), encode_query(&list.kind), encode_query(&list.verdict));
        format!("/?q={words}&kind={kind}&verdict={verdict}&skip={skip}")
    };
    let (before, after) = (list.skip > 0, list.skip + list.rows.len() < list.total);
    if !before && !after {
        return;
    }
    html.element("nav", &[("aria-label", "Pages")], |html| {
        if before {
            let skip = list.skip.saturating_sub(list.most);
            html.text_element("a", &[("href", &address(skip)), ("rel", "prev")], "Newer");
        }
        if after {
            html.text_element(
                "a",
                &[("href", &address(list.skip + list.most)), ("rel", "next")],
                "Older",
            );
        }
    });
}
