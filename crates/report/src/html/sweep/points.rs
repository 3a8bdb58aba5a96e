//! The table of all points, each with a way to its own page.

use goodput_campaign::curve::delivered;
use goodput_campaign::sweep::{PointSummary, Standing};
use goodput_model::Verdict;

use super::super::markup::Html;
use super::super::pieces::Cell;
use super::super::view::SweepView;
use super::found;
use crate::number::{cell, count};
use crate::sweep::{good_share, level_on, marked, number, purpose, stands, unit, within};

/// A row of a table whose name leads to the page of what is in it.
pub(in super::super) struct Row {
    pub(in super::super) name: String,
    pub(in super::super) cells: Vec<Cell>,
    /// Its folder below this page, and whether there is a page in it.
    pub(in super::super) folder: String,
    pub(in super::super) has_page: bool,
}

/// Every point, in the order measured.
pub(super) fn fill(html: &mut Html, view: &SweepView<'_>) {
    let summary = view.summary;
    if summary.points.is_empty() {
        return;
    }
    let is_judged = summary.plan.slo.is_some();
    let load = format!("load, {}", unit(summary.plan.axis));
    let mut heads = vec!["point", load.as_str()];
    if is_judged {
        heads.extend(["the SLO", "good, %", "good/s"]);
    }
    heads.extend(["verdict", "for"]);
    heads.extend(["TTFT p50", "TTFT p99", "TPOT p50", "TPOT p99", "E2E p99", "output tok/s"]);
    heads.extend(["requests", "failed", "delivered, %"]);
    let row = |point: &PointSummary| {
        let (ask, figures) = (&point.point.ask, &point.point.figures);
        let mut cells: Vec<Cell> = vec![level_on(summary.plan.axis, ask.level).into()];
        if is_judged {
            cells.push(Cell { text: stands(point), class: class(&point.standing) });
            cells.push(good_share(figures).into());
            let rate = figures.goodput_rps;
            cells.push(rate.map_or("–".to_owned(), |rate| cell(rate.value)).into());
        }
        cells.push(verdict(figures.verdict, &figures.doubts));
        cells.push(purpose(ask.purpose).into());
        let (ttft, tpot) = (figures.ttft_ms, figures.tpot_ms);
        let p99 = format!("{} {}", marked(ttft.p99), within(ttft.p99));
        let latencies = [marked(ttft.p50), p99, marked(tpot.p50), marked(tpot.p99)];
        cells.extend(latencies.map(Cell::from));
        cells.extend([marked(figures.e2e_ms.p99), number(figures.output_tps)].map(Cell::from));
        let share = delivered(figures).map(|share| format!("{:.1}", share * 100.0));
        let counts = [count(figures.requests), count(figures.failed)];
        cells.extend(counts.into_iter().chain([share.unwrap_or("–".to_owned())]).map(Cell::from));
        let (name, folder) = (point.folder.clone(), point.folder.clone());
        Row { name, cells, folder, has_page: found(view, point).is_some() }
    };
    let rows: Vec<Row> = summary.points.iter().map(row).collect();
    let caption = "In the order measured, each with a way to its own page; latencies in ms, ± half of \
                   the 95 % interval, ~ where it is not known. Cn is a closed loop of n users.";
    linked(html, caption, &heads, &rows);
}

fn class(standing: &Standing) -> &'static str {
    match standing {
        Standing::Met => "good",
        Standing::Missed(_) => "bad",
        Standing::Unclear(_) => "doubt",
    }
}

/// Whether to believe a point, and what speaks against it.
fn verdict(verdict: Verdict, doubts: &[String]) -> Cell {
    let (word, class) = match verdict {
        Verdict::Valid => ("valid", "good"),
        Verdict::Suspect => ("suspect", "doubt"),
        Verdict::Void => ("void", "bad"),
    };
    let why = if doubts.is_empty() { String::new() } else { format!(": {}", doubts.join(", ")) };
    Cell { text: format!("{word}{why}"), class }
}

/// A table whose rows lead on. Wide ones scroll by themselves.
pub(in super::super) fn linked(html: &mut Html, caption: &str, heads: &[&str], rows: &[Row]) {
    // Beside the table and not in it: it is as wide as the page.
    html.leaf("p", &[("class", "advice")], caption);
    html.element("div", &[("class", "scroll"), ("tabindex", "0")], |html| {
        html.element("table", &[("aria-label", caption)], |html| {
            html.element("thead", &[], |html| {
                html.element("tr", &[], |html| {
                    for head in heads {
                        html.leaf("th", &[("scope", "col")], head);
                    }
                });
            });
            html.element("tbody", &[], |html| {
                for row in rows {
                    html.element("tr", &[], |html| cells(html, row));
                }
            });
        });
    });
}

fn cells(html: &mut Html, row: &Row) {
    html.element("th", &[("scope", "row")], |html| {
        if row.has_page && is_below(&row.folder) {
            let page = format!("{}/report.html", row.folder);
            html.leaf("a", &[("href", &page)], &row.name);
        } else {
            html.text(&row.name);
        }
    });
    for cell in &row.cells {
        html.leaf("td", &[("class", cell.class)], &cell.text);
    }
}

/// Whether this is a folder below this one, and nothing else to a browser.
fn is_below(folder: &str) -> bool {
    let is_name = |name: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '=');
        !name.is_empty() && name != "." && name != ".." && name.chars().all(is_plain)
    };
    folder.split('/').all(is_name)
}
