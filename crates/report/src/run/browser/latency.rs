//! All percentiles with their intervals.

use goodput_stats::Metric;

use crate::markup::Html;
use crate::number::{cell, count};
use crate::render::pieces::{Grid, fields, grid};
use crate::run::facts::rates;
use crate::run::latency::{figure, interval, largest, notes, percents, rows};
use crate::view::RunView;

pub(super) fn fill(html: &mut Html, view: &RunView<'_>) {
    let summary = view.summary;
    let shown = rows(summary);
    if let Some((_, _, first)) = shown.first() {
        let percents = percents(first);
        let mut head = vec!["metric".to_owned(), "n".to_owned(), "mean".to_owned()];
        head.extend(percents.iter().map(|percent| format!("p{percent}")));
        head.push("max".to_owned());
        let head: Vec<_> = head.iter().map(String::as_str).collect();
        let caption = "Milliseconds from the due instant; below each figure its 95 % interval";
        grid(html, Grid { class: "", caption, heads: &head }, |html| {
            for (name, label, metric) in &shown {
                let label = label.trim();
                let base = name.strip_suffix("_sent").map(str::to_uppercase);
                let label = base.map_or(label.to_owned(), |base| format!("{base} {label}"));
                row(html, &label, metric, &percents);
            }
        });
        fields(html, |found| notes(found, summary));
    }
    if summary.requests.scheduled > 0 {
        fields(html, |found| rates(found, summary));
    }
}

fn row(html: &mut Html, label: &str, metric: &Metric, percents: &[&String]) {
    html.element("tr", &[], |html| {
        html.leaf("th", &[("scope", "row")], label);
        let n = match metric.censored {
            0 => String::new(),
            n => format!("{} > limit", count(n)),
        };
        cell_of(html, &count(metric.n), &n);
        let mean = metric.mean.map_or("–".to_owned(), cell);
        cell_of(html, &mean, &interval(metric.mean_low, metric.mean_high, false));
        for percent in percents {
            let Some(found) = metric.percentiles.get(*percent) else {
                cell_of(html, "–", "");
                continue;
            };
            let ends = interval(found.low, found.high, found.high_is_censored);
            let ends = match found.completed {
                Some(completed) => format!("{ends} completed {}", cell(completed)),
                None => ends,
            };
            cell_of(html, &figure(found), &ends);
        }
        cell_of(html, &largest(metric), "");
    });
}

fn cell_of(html: &mut Html, text: &str, note: &str) {
    html.element("td", &[], |html| {
        html.text(text);
        if !note.is_empty() {
            html.leaf("small", &[], note);
        }
    });
}
