//! What pages have in common: sections, charts, tables, the verdict and its reasons.

use goodput_model::{Caveat, Severity};

use crate::document::{Cell, SeverityMark, Tone};
use crate::markup::Html;
use crate::number::cell_number;
use crate::svg::{Chart, Dot, Key, Stack, inline_chart, inline_stack, key_svg};

/// A section that the navigation can lead to.
pub fn write_section(html: &mut Html, id: &'static str, title: &str, fill: impl FnOnce(&mut Html)) {
    html.element("section", &[("id", id)], |html| {
        html.text_element("h2", &[], title);
        fill(html);
    });
}

/// Rows of the table of a chart's numbers.
const ROWS: usize = 24;

/// A chart with its title, its legend, what it says in words, and its numbers for who wants them;
/// nothing if there is nothing to draw.
pub fn write_chart(html: &mut Html, chart: &Chart) {
    if chart.is_empty() {
        return;
    }
    html.element("figure", &[("id", chart.name)], |html| {
        html.text_element("h3", &[], &chart.title);
        write_legend(html, &chart.legend_keys());
        html.trusted(&inline_chart(chart));
        html.text_element("figcaption", &[], &chart.says);
        write_points_table(html, chart);
    });
}

/// Bars of parts likewise; their numbers are in a table next to them.
pub fn write_stack(html: &mut Html, stack: &Stack) {
    if stack.is_empty() {
        return;
    }
    html.element("figure", &[("id", stack.name)], |html| {
        html.text_element("h3", &[], &stack.title);
        write_legend(html, &stack.legend_keys());
        html.trusted(&inline_stack(stack));
        html.text_element("figcaption", &[], &stack.says);
    });
}

/// Charts side by side, where there is room; one alone is as wide as any other.
pub fn write_charts(html: &mut Html, charts: &[Chart]) {
    let all = |html: &mut Html| charts.iter().for_each(|chart| write_chart(html, chart));
    if charts.iter().filter(|chart| !chart.is_empty()).count() < 2 {
        return all(html);
    }
    html.element("div", &[("class", "charts")], all);
}

fn write_legend(html: &mut Html, keys: &[Key<'_>]) {
    if keys.is_empty() {
        return;
    }
    html.element("ul", &[("class", "legend")], |html| {
        for one in keys {
            html.element("li", &[], |html| {
                let size = [("width", "26"), ("height", "14"), ("aria-hidden", "true")];
                html.element("svg", &size, |html| {
                    html.trusted(&key_svg(one));
                });
                html.text(one.name);
            });
        }
    });
}

/// The points of a chart as a table, evenly thinned where there are many.
fn write_points_table(html: &mut Html, chart: &Chart) {
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
            let ends = ends.map_or(String::new(), |(low, high)| {
                format!("{}–{}", cell_number(low), cell_number(high))
            });
            let name = if series.name.is_empty() { &chart.title } else { &series.name };
            rows.push(
                [name.clone(), cell_number(dot.x), cell_number(dot.y), ends]
                    .map(Cell::from)
                    .to_vec(),
            );
        }
    }
    let has_ends = rows.iter().any(|row| row.last().is_some_and(|cell| !cell.text.is_empty()));
    let head = ["series", &chart.x.label, &chart.y.label, "95 %"];
    let columns = if has_ends { 4 } else { 3 };
    for row in &mut rows {
        row.truncate(columns);
    }
    html.element("details", &[], |html| {
        html.text_element("summary", &[], "Numbers");
        let caption = format!("{} of {} points", rows.len(), total);
        write_simple_table(html, &caption, &head[..columns], &rows);
    });
}

/// A table whose first column names its rows. Wide ones scroll by themselves.
pub fn write_simple_table(html: &mut Html, caption: &str, head: &[&str], rows: &[Vec<Cell>]) {
    write_grid(html, "", caption, head, |html| {
        for row in rows {
            let cells = |html: &mut Html| {
                row.iter().enumerate().for_each(|(place, cell)| write_cell(html, place, cell));
            };
            html.element("tr", &[], cells);
        }
    });
}

/// A table whose rows are filled by hand.
pub fn write_grid(
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
            html.text_element("caption", &[], caption);
            write_table_parts(html, heads, rows);
        });
    });
}

/// A table whose rows lead on. Wide ones scroll by themselves.
pub fn write_linked_table(
    html: &mut Html,
    caption: &str,
    heads: &[&str],
    rows: impl FnOnce(&mut Html),
) {
    // Next to the table and not in it: it is as wide as the page.
    html.text_element("p", &[("class", "advice")], caption);
    html.element("div", &[("class", "scroll"), ("tabindex", "0")], |html| {
        html.element("table", &[("aria-label", caption)], |html| {
            write_table_parts(html, heads, rows);
        });
    });
}

/// Headings and rows.
fn write_table_parts(html: &mut Html, heads: &[&str], rows: impl FnOnce(&mut Html)) {
    html.element("thead", &[], |html| {
        html.element("tr", &[], |html| {
            for head in heads {
                html.text_element("th", &[("scope", "col")], head);
            }
        });
    });
    html.element("tbody", &[], rows);
}

/// A cell at this place of its row; the first one names the row, and may lead to its page.
pub fn write_cell(html: &mut Html, place: usize, cell: &Cell) {
    let mut attributes = vec![("class", tone_class(cell.tone))];
    if !cell.hint.is_empty() {
        attributes.push(("title", &cell.hint));
    }
    let inside = |html: &mut Html| {
        match &cell.href {
            Some(href) => html.text_element("a", &[("href", href)], &cell.text),
            None => html.text(&cell.text),
        };
        if !cell.note.is_empty() {
            html.text_element("small", &[], &cell.note);
        }
    };
    if place == 0 {
        attributes.insert(0, ("scope", "row"));
    }
    html.element(if place == 0 { "th" } else { "td" }, &attributes, inside);
}

/// What the style sheet calls a tone.
pub fn tone_class(tone: Tone) -> &'static str {
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
pub fn write_cards(html: &mut Html, cards: &[Card]) {
    if cards.is_empty() {
        return;
    }
    html.element("dl", &[("class", "cards")], |html| {
        for Card { name, figure, note } in cards {
            html.element("div", &[], |html| {
                html.text_element("dt", &[], name);
                html.text_element("dd", &[("class", "figure")], figure);
                if !note.is_empty() {
                    html.text_element("dd", &[("class", "note")], note);
                }
            });
        }
    });
}

/// Why not, and what to know; the worst first.
pub fn write_caveats(html: &mut Html, caveats: &[Caveat]) {
    if caveats.is_empty() {
        html.text_element("p", &[], "Nothing found that affects how to read this.");
        return;
    }
    html.element("ul", &[("class", "caveats")], |html| {
        let mut worst: Vec<&Caveat> = caveats.iter().collect();
        worst.sort_by_key(|caveat| std::cmp::Reverse(caveat.severity));
        for caveat in worst {
            html.element("li", &[("class", severity_class(caveat.severity))], |html| {
                html.text_element(
                    "strong",
                    &[],
                    SeverityMark::severity_word(caveat.severity).trim(),
                )
                .text(" ");
                html.element("div", &[], |html| {
                    html.text(&caveat.message).text(" ");
                    html.text_element("code", &[], caveat.code.name());
                    if let Some(advice) = &caveat.advice {
                        html.text_element("span", &[("class", "advice")], &format!("→ {advice}"));
                    }
                });
            });
        }
    });
}
