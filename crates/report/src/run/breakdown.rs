//! One table for each thing in which requests differ.

use goodput_model::escape_control;
use goodput_stats::{Slice, Slices, Spread, Summary, minimum_for_figure};

use super::TEXT;
use goodput_document::clip::clip;
use goodput_document::number::{cell_number, count, known_or_dash};
use goodput_document::render::text::WIDTH;
use goodput_document::{Block, Cell, Column, Formats, Section, Table};

/// Columns of a number.
const CELL: usize = 7;

/// Minutes that a page has room for.
const MINUTES: usize = 12;
/// Workers whose medians differ by less are alike.
const ALIKE: f64 = 0.2;

/// A figure of a slice: its heading in two lines, and how it is shown.
type SliceColumn = (&'static str, &'static str, fn(&Slice) -> String);

const FIGURES: [SliceColumn; 9] = [
    ("mean", "in", |slice| known_or_dash(slice.input_tokens_mean, cell_number)),
    ("mean", "out", |slice| known_or_dash(slice.output_tokens_mean, cell_number)),
    ("TTFT", "p50", |slice| median_text(&slice.ttft_ms)),
    ("TTFT", "p90", |slice| tail_text(&slice.ttft_ms)),
    ("TPOT", "p50", |slice| median_text(&slice.tpot_ms)),
    E2E_P50,
    ("E2E", "p90", |slice| tail_text(&slice.e2e_ms)),
    ("output", "tok/s", |slice| known_or_dash(slice.output_tps, cell_number)),
    GOOD,
];

/// Requests inside every limit of the SLO; it takes the place of a column that says less then.
const GOOD: SliceColumn =
    ("good", "%", |slice| known_or_dash(slice.attainment.map(|share| share * 100.0), cell_number));
const E2E_P50: SliceColumn = ("E2E", "p50", |slice| median_text(&slice.e2e_ms));

fn median_text(spread: &Spread) -> String {
    percentile_text(spread.n, 0.5, spread.p50)
}

/// Slices are small: p99 would seldom be more than their largest value.
fn tail_text(spread: &Spread) -> String {
    percentile_text(spread.n, 0.9, spread.p90)
}

/// A percentile with the marks of the large table, as far as the number of samples decides them.
fn percentile_text(n: u64, q: f64, value: Option<f64>) -> String {
    let is_few = minimum_for_figure(q).is_none_or(|minimum| n < minimum);
    // Less than one of them is expected beyond it.
    let is_none = (n as f64) * (1.0 - q) < 1.0 - 1e-9;
    match value {
        Some(_) if is_none => "n/e".to_owned(),
        // A column stays free between numbers.
        Some(value) if is_few && value >= 1000.0 => format!("~{value:.0}"),
        Some(value) if is_few => format!("~{}", cell_number(value)),
        value => known_or_dash(value, cell_number),
    }
}

/// A table for each of them that says something.
pub(super) fn breakdown_section(summary: &Summary) -> Section {
    let mut section = Section::new("breakdowns", "Breakdowns");
    let shown = summary.breakdown.iter().filter(|(dimension, slices)| is_shown(dimension, slices));
    for (dimension, slices) in shown {
        let gap = (!section.blocks.is_empty()).then_some(Block::Gap);
        let table = Block::Table(slices_table(dimension, slices));
        section = section.with_some(TEXT, gap).with_on(Formats::LONG, table);
    }
    section
}

fn slices_table(dimension: &str, all: &Slices) -> Table {
    let mut slices: Vec<_> = all.iter().collect();
    slices.sort_by_key(|(value, _)| value_order(value));
    let is_judged = slices.iter().any(|(_, slice)| slice.attainment.is_some());
    let left_out = if is_judged { E2E_P50 } else { GOOD };
    let titles = |figure: &SliceColumn| (figure.0, figure.1);
    let is_shown = |figure: &&SliceColumn| titles(figure) != titles(&left_out);
    let figures: Vec<_> = FIGURES.iter().filter(is_shown).collect();
    let failed =
        if slices.iter().any(|(_, slice)| slice.failed > 0) { Formats::ALL } else { Formats::NONE };
    let numbers = figures.len() + 1 + usize::from(failed == Formats::ALL);
    let room = WIDTH.saturating_sub(CELL * numbers);
    // One column stays free.
    let label = |text: &str| clip(&escape_control(text), room.saturating_sub(1));
    let name = dimension.replace('_', " ");
    let heading = label(&format!("by {}", dimension_heading(dimension)));
    let number = |n: u64| Cell::from(count(n)).short(n.to_string());
    let caption = format!("By {name}: latencies in ms, lengths in tokens");
    Table::from_subjects("", caption, slices)
        .with(
            Column::left(name.as_str(), room).short(format!("tokens, ms\n{heading}")),
            |(value, _)| Cell::from(value.as_str()).short(label(value)),
        )
        .right("n", CELL, |(_, slice)| number(slice.scheduled))
        .with(Column::right("failed", CELL).on(failed), |(_, slice)| number(slice.failed))
        .each(
            figures,
            |(above, below, _)| Column::stacked(above, below, CELL),
            |(_, slice), (_, _, text)| text(slice),
        )
        .table
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
fn dimension_heading(dimension: &str) -> &str {
    match dimension {
        "input_tokens" => "input",
        "output_tokens" => "output",
        other => other,
    }
}

/// Numbers in their order, then names in theirs.
fn value_order(value: &str) -> (u64, String) {
    let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
    (digits.parse().unwrap_or(u64::MAX), value.to_owned())
}
