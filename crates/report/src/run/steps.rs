//! Where the time to the first token went.

use goodput_model::NameLookup;
use goodput_stats::{Summary, Waterfall, WaterfallBand};

use super::HTML;
use goodput_document::markup::Html;
use goodput_document::number::{cell_number, count};
use goodput_document::render::pieces;
use goodput_document::svg::Stack;
use goodput_document::{Block, Column, Formats, Section, Table};

/// A step on the way to the first token.
struct FirstTokenStep {
    /// In the summary.
    name: &'static str,
    heading: &'static str,
    words: &'static str,
    /// Whether it is shown though it took no time.
    is_usual: bool,
}

const fn first_token_step(
    name: &'static str,
    heading: &'static str,
    words: &'static str,
) -> FirstTokenStep {
    FirstTokenStep { name, heading, words, is_usual: true }
}

const STEPS: [FirstTokenStep; 10] = [
    FirstTokenStep { is_usual: false, ..first_token_step("held", "held", "held by the cap") },
    first_token_step("slip", "slip", "client late"),
    FirstTokenStep {
        is_usual: false,
        ..first_token_step("blocked", "pool", "waiting for a connection")
    },
    // No run has it: names are resolved once, before the run, which `name_lookup` tells.
    FirstTokenStep { is_usual: false, ..first_token_step("dns", "dns", "name lookup") },
    first_token_step("connect", "conn", "connecting"),
    first_token_step("tls", "tls", "TLS"),
    first_token_step("send", "send", "sending"),
    first_token_step("wait", "wait", "waiting for the answer"),
    first_token_step("header_to_byte", "→byte", "headers to first byte"),
    first_token_step("byte_to_token", "→token", "first byte to token"),
];

fn step_ms(band: &WaterfallBand, name: &str) -> f64 {
    band.parts.iter().find(|part| part.name == name).map_or(0.0, |part| part.ms)
}

/// The steps that are shown.
fn shown_steps(waterfall: &Waterfall) -> Vec<&'static FirstTokenStep> {
    let is_some = |name: &str| {
        [&waterfall.median, &waterfall.slowest].iter().any(|band| step_ms(band, name) > 0.0)
    };
    STEPS.iter().filter(|step| step.is_usual || is_some(step.name)).collect()
}

/// The requests that a waterfall is of.
fn waterfall_bands(waterfall: &Waterfall) -> [(&'static str, &WaterfallBand); 2] {
    [("middle tenth", &waterfall.median), ("slowest 1 %", &waterfall.slowest)]
}

pub(super) fn waterfall_section(summary: &Summary) -> Section {
    let section = Section::with_name("steps", "Steps", "TTFT by step");
    let Some(waterfall) = &summary.waterfall else { return section };
    let lookup = summary.run.lookup.as_ref().map(name_lookup);
    let drawn = waterfall_stack(summary)
        .map(|stack| Html::from_fn(|html| pieces::write_stack(html, &stack)));
    let caption = "TTFT by step: means over the same requests, so that they add up";
    let table = Table::from_subjects("TTFT by step", caption, waterfall_bands(waterfall))
        .with(Column::left("ms", 16).short("TTFT by step, ms"), |(label, _)| *label)
        .each(
            shown_steps(waterfall),
            |step| Column::right(step.heading, 7),
            |(_, band), step| cell_number(step_ms(band, step.name)),
        )
        .right("= TTFT", 8, |(_, band)| cell_number(band.ttft_ms))
        .with(Column::right("requests", 0).on(HTML), |(_, band)| count(band.n))
        .table;
    let remark = "The middle tenth are the requests around the median. TTFT counts from the \
                  scheduled instant of a request.";
    section
        .with_some(HTML, drawn.map(Block::Widget))
        .with_on(Formats::LONG, Block::Table(table))
        .with_some(Formats::LONG, lookup.map(|text| Block::fact("Name lookup", text)))
        .with_on(HTML, Block::remark_note(remark))
}

/// What it took to find the target's addresses.
fn name_lookup(lookup: &NameLookup) -> String {
    match lookup.ms {
        Some(ms) => format!(
            "{} ms once, before the first request, for {} address{}; no TTFT contains it",
            cell_number(ms),
            count(lookup.addresses),
            if lookup.addresses == 1 { "" } else { "es" }
        ),
        None => "no name to resolve: the URL has an address".to_owned(),
    }
}

pub(super) fn waterfall_stack(summary: &Summary) -> Option<Stack> {
    let waterfall = summary.waterfall.as_ref()?;
    let shown = shown_steps(waterfall);
    let word =
        |name: &str| STEPS.iter().find(|step| step.name == name).map_or("", |step| step.words);
    let bars = waterfall_bands(waterfall).map(|(label, band)| {
        let parts = shown.iter().map(|step| step_ms(band, step.name)).collect();
        (format!("{label}: {} ms", cell_number(band.ttft_ms)), parts)
    });
    let largest = waterfall_bands(waterfall).map(|(label, band)| {
        let part = band.parts.iter().max_by(|a, b| a.ms.total_cmp(&b.ms));
        part.map_or(String::new(), |part| {
            format!(
                "{label}: {} takes {} of {} ms.",
                word(&part.name),
                cell_number(part.ms),
                cell_number(band.ttft_ms)
            )
        })
    });
    Some(Stack {
        name: "ttft-steps",
        title: "Where the time to the first token went".to_owned(),
        says: largest.join(" "),
        unit: "ms",
        parts: shown.iter().map(|step| step.words.to_owned()).collect(),
        bars: bars.to_vec(),
    })
}
