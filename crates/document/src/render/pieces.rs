//! What pages have in common: sections, charts, tables, the verdict and its reasons.

use goodput_model::{Caveat, Severity};

use crate::document::{Cell, SeverityMark, Tone};
use crate::markup::Html;
use crate::number::cell;
use crate::svg::{Chart, Dot, Key, Stack, inline, inline_stack, key};

/// A section that the navigation can lead to.
pub fn section(html: &mut Html, id: &'static str, title: &str, fill: impl FnOnce(&mut Html)) {
    html.element("section", &[("id", id)], |html| {
        html.leaf("h2", &[], title);
        fill(html);
    });
}

/// Rows of the table of a chart's numbers.
const ROWS: usize = 24;

/// A chart with its title, its legend, what it says in words, and its numbers for who wants them;
/// nothing if there is nothing to draw.
pub fn figure(html: &mut Html, chart: &Chart) {
    if chart.is_empty() {
        return;
    }
    html.element("figure", &[("id", chart.name)], |html| {
        html.leaf("h3", &[], &chart.title);
        legend(html, &chart.keys());
        html.ours(&inline(chart));
        html.leaf("figcaption", &[], &chart.says);
        numbers(html, chart);
    });
}

/// Bars of parts likewise; their numbers are in a table next to them.
pub fn stack(html: &mut Html, stack: &Stack) {
    if stack.is_empty() {
        return;
    }
    html.element("figure", &[("id", stack.name)], |html| {
        html.leaf("h3", &[], &stack.title);
        legend(html, &stack.keys());
        html.ours(&inline_stack(stack));
        html.leaf("figcaption", &[], &stack.says);
    });
}

/// Charts side by side, where there is room; one alone is as wide as any other.
pub fn figures(html: &mut Html, charts: &[Chart]) {
    let all = |html: &mut Html| charts.iter().for_each(|chart| figure(html, chart));
    if charts.iter().filter(|chart| !chart.is_empty()).count() < 2 {
        return all(html);
    }
    html.element("div", &[("class", "charts")], all);
}

fn legend(html: &mut Html, keys: &[Key<'_>]) {
    if keys.is_empty() {
        return;
    }
    html.element("ul", &[("class", "legend")], |html| {
        for one in keys {
            html.element("li", &[], |html| {
                let size = [("width", "26"), ("height", "14"), ("aria-hidden", "true")];
                html.element("svg", &size, |html| {
                    html.ours(&key(one));
                });
                html.text(one.name);
            });
        }
    });
}

/// The points of a chart as a table, evenly thinned where there are many.
fn numbers(html: &mut Html, chart: &Chart) {
    let is_shown = |dot: &&Dot| dot.x.is_finite() && dot.y.is_finite();
    let total: usize = chart.series.iter().map(|s| s.dots.iter().filter(is_shown).count()).sum();
    let most = (ROWS / chart.series.len().max(1)).max(4);
    let mut rows = Vec::new();
    for series in &chart.series {
        let dots: Vec<_> = series.dots.iter().filter(is_shown).collect();
        let take = most.min(dots.len());
        for step in 0..take {
            let place = if take < 2 { 0 } else { step * (dots.len() - 1) / (take - 1) };
            let Some(dot) = dots.get(place) else { continue };
            let ends = dot.low.zip(dot.high);
            let ends =
                ends.map_or(String::new(), |(low, high)| format!("{}–{}", cell(low), cell(high)));
            let name = if series.name.is_empty() { &chart.title } else { &series.name };
            rows.push([name.clone(), cell(dot.x), cell(dot.y), ends].map(Cell::from).to_vec());
        }
    }
    let has_ends = rows.iter().any(|row| row.last().is_some_and(|cell| !cell.text.is_empty()));
    let head = ["series", &chart.x.label, &chart.y.label, "95 %"];
    let columns = if has_ends { 4 } else { 3 };
    for row in &mut rows {
        row.truncate(columns);
    }
    html.element("details", &[], |html| {
        html.leaf("summary", &[], "Numbers");
        let caption = format!("{} of {} points", rows.len(), total);
        table(html, &caption, &head[..columns], &rows);
    });
}

/// A table whose first column names its rows. Wide ones scroll by themselves.
pub fn table(html: &mut Html, caption: &str, head: &[&str], rows: &[Vec<Cell>]) {
    grid(html, "", caption, head, |html| {
        for row in rows {
            let cells = |html: &mut Html| {
                row.iter().enumerate().for_each(|(place, cell)| write_cell(html, place, cell));
            };
            html.element("tr", &[], cells);
        }
    });
}

/// A table whose rows are filled by hand.
pub fn grid(
    html: &mut Html,
    class: &'static str,
    caption: &str,
    heads: &[&str],
    rows: impl FnOnce(&mut Html),
) {
    let around =
        [("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", caption)];
    html.element("div", &around, |html| {
        html.element("table", &[("class", class)], |html| {
            html.leaf("caption", &[], caption);
            table_parts(html, heads, rows);
        });
    });
}

/// A table whose rows lead on. Wide ones scroll by themselves.
pub fn linked(html: &mut Html, caption: &str, heads: &[&str], rows: impl FnOnce(&mut Html)) {
    // Next to the table and not in it: it is as wide as the page.
    html.leaf("p", &[("class", "advice")], caption);
    html.element("div", &[("class", "scroll"), ("tabindex", "0")], |html| {
        html.element("table", &[("aria-label", caption)], |html| table_parts(html, heads, rows));
    });
}

/// Headings and rows.
fn table_parts(html: &mut Html, heads: &[&str], rows: impl FnOnce(&mut Html)) {
    html.element("thead", &[], |html| {
        html.element("tr", &[], |html| {
            for head in heads {
                html.leaf("th", &[("scope", "col")], head);
            }
        });
    });
    html.element("tbody", &[], rows);
}

/// A cell at this place of its row; the first one names the row, and may lead to its page.
pub fn write_cell(html: &mut Html, place: usize, cell: &Cell) {
    let mut attributes = vec![("class", class(cell.tone))];
    if !cell.hint.is_empty() {
        attributes.push(("title", &cell.hint));
    }
    let inside = |html: &mut Html| {
        match &cell.href {
            Some(href) => html.leaf("a", &[("href", href)], &cell.text),
            None => html.text(&cell.text),
        };
        if !cell.note.is_empty() {
            html.leaf("small", &[], &cell.note);
        }
    };
    if place == 0 {
        attributes.insert(0, ("scope", "row"));
    }
    html.element(if place == 0 { "th" } else { "td" }, &attributes, inside);
}

/// What the style sheet calls a tone.
pub fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Good => "good",
        Tone::Doubt => "doubt",
        Tone::Bad => "bad",
        Tone::Best => "best",
        Tone::Words => "words",
    }
}

/// What the style sheet calls how much something matters.
pub fn severity_class(severity: Severity) -> &'static str {
    match severity {
        Severity::Void => "void",
        Severity::Warn => "warn",
        Severity::Info => "info",
    }
}

/// A figure that stands out, and what is to be known of it.
pub struct Card {
    /// What it is.
    pub name: String,
    /// The number, with its unit.
    pub figure: String,
    /// In small type below.
    pub note: String,
}

/// A few figures that stand out.
pub fn cards(html: &mut Html, cards: &[Card]) {
    if cards.is_empty() {
        return;
    }
    html.element("dl", &[("class", "cards")], |html| {
        for Card { name, figure, note } in cards {
            html.element("div", &[], |html| {
                html.leaf("dt", &[], name);
                html.leaf("dd", &[("class", "figure")], figure);
                if !note.is_empty() {
                    html.leaf("dd", &[("class", "note")], note);
                }
            });
        }
    });
}

/// Why not, and what to know; the worst first.
pub fn caveat_list(html: &mut Html, caveats: &[Caveat]) {
    if caveats.is_empty() {
        html.leaf("p", &[], "Nothing found that affects how to read this.");
        return;
    }
    html.element("ul", &[("class", "caveats")], |html| {
        let mut worst: Vec<&Caveat> = caveats.iter().collect();
        worst.sort_by_key(|caveat| std::cmp::Reverse(caveat.severity));
        for caveat in worst {
            html.element("li", &[("class", severity_class(caveat.severity))], |html| {
                html.leaf("strong", &[], SeverityMark::word(caveat.severity).trim()).text(" ");
                html.element("div", &[], |html| {
                    html.text(&caveat.message).text(" ");
                    html.leaf("code", &[], caveat.code.name());
                    if let Some(advice) = &caveat.advice {
                        html.leaf("span", &[("class", "advice")], &format!("→ {advice}"));
                    }
                });
            });
        }
    });
}
