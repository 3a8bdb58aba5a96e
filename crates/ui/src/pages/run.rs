//! The page of one result: what it is, what people wrote about it, how it goes on.

use super::frame::wrap_page;
use super::list::{write_state, write_tags};
use super::{RunPage, figure_text, verdict_class};
use goodput_document::markup::Html;
use goodput_document::number::percent;
use goodput_document::render::pieces::write_section;

/// Figures, in the order of a row.
const FIGURES: [&str; 6] = [
    "Requests per second",
    "Output tokens per second",
    "TTFT p50 (ms)",
    "TTFT p99 (ms)",
    "TPOT p99 (ms)",
    "Good requests per second",
];

/// What the script fills during a run, by the names of its messages.
const LIVE: [(&str, &str); 10] = [
    ("point", "Run"),
    ("at_s", "Seconds since the start"),
    ("ended", "Requests that ended"),
    ("failed", "Requests that failed"),
    ("rate", "Ended per second"),
    ("output_tps", "Output tokens per second"),
    ("in_flight", "In flight, about"),
    ("server", "Running and waiting on the server"),
    ("ttft", "TTFT p50 and p99 (ms)"),
    ("tpot", "TPOT p50 and p99 (ms)"),
];

/// The page of one result.
pub(crate) fn run_page(run: &RunPage) -> String {
    let entry = &run.row.entry;
    let body = Html::from_fn(|html| {
        html.element("nav", &[("aria-label", "This result")], |html| {
            html.text_element("a", &[("href", "/")], "All results");
            html.text_element("a", &[("href", &format!("/run/{}/report", entry.id))], "Report");
            if !entry.curves.is_empty() {
                html.text_element("a", &[("href", &format!("/overlay?id={}", entry.id))], "Curves");
            }
        });
        if run.row.is_live {
            write_live(html, run);
        }
        write_facts(html, run);
        write_notes_form(html, run);
    });
    let about = format!("{} · {}", entry.kind.name(), entry.started);
    wrap_page(&entry.name, &about, &body)
}

fn write_facts(html: &mut Html, run: &RunPage) {
    let entry = &run.row.entry;
    write_section(html, "facts", "Details", |html| {
        html.element("dl", &[], |html| {
            if !entry.verdict.is_empty() {
                html.text_element("dt", &[], "Verdict");
                html.text_element(
                    "dd",
                    &[("class", verdict_class(&entry.verdict))],
                    &entry.verdict,
                );
            }
            let texts = [
                ("Result", &entry.says),
                ("State", &entry.state),
                ("Target", &entry.target),
                ("Model", &entry.model),
                ("Workload", &entry.workload),
                ("Load", &entry.load),
            ];
            for (name, text) in texts.iter().filter(|(_, text)| !text.is_empty()) {
                html.text_element("dt", &[], name);
                html.text_element("dd", &[], text);
            }
            for (name, value) in FIGURES.iter().zip(entry.figures.all_figures()) {
                if let Some(value) = value {
                    html.text_element("dt", &[], name);
                    html.text_element("dd", &[], &figure_text(value));
                }
            }
            if let Some(share) = entry.figures.failed {
                html.text_element("dt", &[], "Failed");
                html.text_element("dd", &[], &percent(share));
            }
        });
    });
}

fn write_live(html: &mut Html, run: &RunPage) {
    let address = format!("/run/{}/live", run.row.entry.id);
    let place = [("id", "live"), ("data-live", address.as_str())];
    html.element("section", &place, |html| {
        html.element("h2", &[], |html| {
            html.text("Now ");
            write_state(html, &run.row);
        });
        let says = [("id", "live-says"), ("role", "status")];
        html.text_element("p", &says, "Without JavaScript, reload this page to update it.");
        html.element("dl", &[], |html| {
            for (name, title) in LIVE {
                html.text_element("dt", &[], title);
                html.text_element("dd", &[("id", &format!("live-{name}"))], "–");
            }
        });
        for (name, title) in [("rate", "Ended per second"), ("ttft", "TTFT p50 (ms)")] {
            html.element("figure", &[("class", "spark")], |html| {
                html.text_element("figcaption", &[], title);
                html.text_element("div", &[("id", &format!("spark-{name}"))], "");
            });
        }
    });
}

fn write_notes_form(html: &mut Html, run: &RunPage) {
    let entry = &run.row.entry;
    write_section(html, "notes", "Tags and notes", |html| {
        if let Some(problem) = &run.problem {
            html.text_element(
                "p",
                &[("class", "bad"), ("role", "alert")],
                &format!("Not saved: {problem}."),
            );
        }
        if let Some(theirs) = &run.theirs {
            html.text_element("h3", &[], "Saved now");
            html.element("p", &[], |html| write_tags(html, &theirs.tags));
            html.element("pre", &[("id", "theirs")], |html| {
                for line in theirs.text.split('\n') {
                    html.text(line).trusted("\n");
                }
            });
            let words = "Your text is below. Save replaces the saved notes with it.";
            html.text_element("p", &[("class", "advice")], words);
        } else {
            html.element("p", &[], |html| write_tags(html, &entry.notes.tags));
        }
        let action = format!("/run/{}/notes", entry.id);
        let form = [("method", "post"), ("action", action.as_str()), ("class", "notes")];
        html.element("form", &form, |html| {
            for (name, value) in [("key", &run.key), ("mark", &run.mark)] {
                html.open("input", &[("type", "hidden"), ("name", name), ("value", value)]);
            }
            html.element("label", &[], |html| {
                html.text("Tags, separated by commas");
                let typed = entry.notes.tags.join(", ");
                html.field("tags", &typed);
            });
            html.element("label", &[], |html| {
                html.text("Notes");
                html.element("textarea", &[("name", "notes"), ("rows", "8")], |html| {
                    // A line end that stands first would be left out.
                    html.trusted("\n").typed(&entry.notes.text);
                });
            });
            html.text_element("button", &[("type", "submit")], "Save");
        });
        let where_kept = "Saved in the result's folder, in notes.json.";
        html.text_element("p", &[("class", "advice")], where_kept);
    });
}
