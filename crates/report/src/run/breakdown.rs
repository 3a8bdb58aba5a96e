//! One table for each thing in which requests differ.

use std::fmt::{Error, Write};

use goodput_stats::{Slice, Slices, Spread, Summary, minimum_for_figure};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::number::cell;
use crate::render::text::WIDTH;
use goodput_model::plain;

/// Columns of a number.
const CELL: usize = 7;

/// Minutes that a page has room for.
const MINUTES: usize = 12;
/// Workers whose medians differ by less are alike.
const ALIKE: f64 = 0.2;

/// A column: its heading in two lines, and what stands in it.
pub(crate) type Column = (&'static str, &'static str, fn(&Slice) -> String);

const COLUMNS: [Column; 9] = [
    ("mean", "in", |slice| number(slice.input_tokens_mean)),
    ("mean", "out", |slice| number(slice.output_tokens_mean)),
    ("TTFT", "p50", |slice| median(&slice.ttft_ms)),
    ("TTFT", "p90", |slice| tail(&slice.ttft_ms)),
    ("TPOT", "p50", |slice| median(&slice.tpot_ms)),
    E2E_P50,
    ("E2E", "p90", |slice| tail(&slice.e2e_ms)),
    ("output", "tok/s", |slice| number(slice.output_tps)),
    GOOD,
];

/// Requests inside every limit of the SLO; it takes the place of a column that says less then.
const GOOD: Column = ("good", "%", |slice| number(slice.attainment.map(|share| share * 100.0)));
const E2E_P50: Column = ("E2E", "p50", |slice| median(&slice.e2e_ms));

fn number(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), cell)
}

fn median(spread: &Spread) -> String {
    figure(spread.n, 0.5, spread.p50)
}

/// Slices are small: p99 would seldom be more than their largest value.
fn tail(spread: &Spread) -> String {
    figure(spread.n, 0.9, spread.p90)
}

/// A percentile with the marks of the large table, as far as the number of samples decides them.
fn figure(n: u64, q: f64, value: Option<f64>) -> String {
    let is_few = minimum_for_figure(q).is_none_or(|minimum| n < minimum);
    // Less than one of them is expected beyond it.
    let is_none = (n as f64) * (1.0 - q) < 1.0 - 1e-9;
    match value {
        Some(_) if is_none => "n/e".to_owned(),
        // A column stays free between numbers.
        Some(value) if is_few && value >= 1000.0 => format!("~{value:.0}"),
        Some(value) if is_few => format!("~{}", cell(value)),
        value => number(value),
    }
}

/// All tables of a page; none where requests do not differ.
pub(crate) fn tables(page: &mut String, summary: &Summary) -> Result<(), Error> {
    for Table { dimension, slices, has_failed, columns } in shown(summary) {
        let numbers = columns.len() + 1 + usize::from(has_failed);
        let room = WIDTH.saturating_sub(CELL * numbers);
        let failed = |text: &str| if has_failed { format!("{text:>CELL$}") } else { String::new() };
        write!(page, "\n{:<room$}{:>CELL$}{}", "tokens, ms", "", failed(""))?;
        row(page, &columns, |(above, _, _)| (*above).to_owned())?;
        let heading = label(&format!("by {}", heading(dimension)), room);
        write!(page, "{heading}{:>CELL$}{}", "n", failed("failed"))?;
        row(page, &columns, |(_, below, _)| (*below).to_owned())?;
        for (value, slice) in slices {
            let failures = failed(&slice.failed.to_string());
            write!(page, "{}{:>CELL$}{failures}", label(value, room), slice.scheduled)?;
            row(page, &columns, |(_, _, text)| text(slice))?;
        }
    }
    Ok(())
}

/// Requests by one thing in which they differ.
pub(crate) struct Table<'a> {
    pub(crate) dimension: &'a str,
    pub(crate) slices: Vec<(&'a String, &'a Slice)>,
    pub(crate) has_failed: bool,
    pub(crate) columns: Vec<&'static Column>,
}

/// The tables that say something.
pub(crate) fn shown(summary: &Summary) -> Vec<Table<'_>> {
    let shown = summary.breakdown.iter().filter(|(dimension, slices)| is_shown(dimension, slices));
    shown.map(|(dimension, slices)| table(dimension, slices)).collect()
}

fn table<'a>(dimension: &'a str, all: &'a Slices) -> Table<'a> {
    let mut slices: Vec<_> = all.iter().collect();
    slices.sort_by_key(|(value, _)| rank(value));
    let is_judged = slices.iter().any(|(_, slice)| slice.attainment.is_some());
    let left_out = if is_judged { E2E_P50 } else { GOOD };
    let titles = |column: &Column| (column.0, column.1);
    let columns = COLUMNS.iter().filter(|column| titles(column) != titles(&left_out)).collect();
    let has_failed = slices.iter().any(|(_, slice)| slice.failed > 0);
    Table { dimension, slices, has_failed, columns }
}

/// Whether a table says something; `summary.json` has all of them.
fn is_shown(dimension: &str, slices: &Slices) -> bool {
    match dimension {
        "input_tokens" | "output_tokens" => slices.len() > 1,
        "minute" => slices.len() <= MINUTES,
        "worker" => {
            let median: [fn(&Slice) -> Option<f64>; 3] =
                [|slice| slice.ttft_ms.p50, |slice| slice.tpot_ms.p50, |slice| slice.e2e_ms.p50];
            median.into_iter().any(|median| {
                let medians = || slices.iter().filter_map(|(_, slice)| median(slice));
                let low = medians().min_by(f64::total_cmp);
                let high = medians().max_by(f64::total_cmp);
                low.zip(high).is_some_and(|(low, high)| high > (1.0 + ALIKE) * low)
            })
        }
        _ => true,
    }
}

/// A dimension in the room of a heading.
fn heading(dimension: &str) -> &str {
    match dimension {
        "input_tokens" => "input",
        "output_tokens" => "output",
        other => other,
    }
}

fn row(
    page: &mut String,
    columns: &[&Column],
    text: impl Fn(&Column) -> String,
) -> Result<(), Error> {
    for column in columns {
        write!(page, "{:>CELL$}", text(column))?;
    }
    writeln!(page)
}

/// Numbers in their order, then names in theirs.
fn rank(value: &str) -> (u64, String) {
    let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
    (digits.parse().unwrap_or(u64::MAX), value.to_owned())
}

/// Foreign text in exactly so many columns.
fn label(text: &str, room: usize) -> String {
    let text = plain(text);
    let mut out = String::new();
    let mut width = 0;
    let is_long = text.width() > room.saturating_sub(1);
    // One column stays free, and one is for the mark of what was cut.
    let limit = room.saturating_sub(if is_long { 2 } else { 1 });
    for c in text.chars() {
        let more = c.width().unwrap_or(0);
        if width + more > limit {
            break;
        }
        width += more;
        out.push(c);
    }
    if is_long {
        out.push('…');
        width += 1;
    }
    out.extend(std::iter::repeat_n(' ', room.saturating_sub(width)));
    out
}
