//! What the servers behind the sides are, side by side.

use goodput_campaign::compare::{Comparison, SettingAgreement, Side};
use goodput_document::{Cell, Column, Table, Tone};
use goodput_model::{SystemContext, escape_control};

use super::notes::LabeledText;
use super::tables::natural_width_table;
use super::words::{side_label, side_labels};

/// Longest value in a column of a terminal, and of a page that is printed.
const WIDEST: [usize; 2] = [24, 40];

/// The heading, and what stands above the table.
pub(crate) const TITLE: &str = "Servers";

/// What the last column means.
pub(crate) const MARKS: &str = "settings as servers report them and --meta states them; DIFFERS: \
                                a caveat, unless --under-test names it; follows: from other \
                                settings; unknown: not stated by every side";

/// Hardware, model, precision, engine, and parallelism of each side; nothing where no side states
/// any.
pub(crate) fn system_notes(comparison: &Comparison) -> Vec<LabeledText> {
    let is_known = comparison.sides.iter().any(|side| !side.system.is_empty());
    let line = |(place, side): (usize, &Side)| {
        let first = if place == 0 { "Systems" } else { "" };
        let text =
            format!("{}: {}", side_label(comparison, place as u32), system_text(&side.system));
        (first, text)
    };
    let all = comparison.sides.iter().enumerate().map(line);
    if is_known { all.collect() } else { Vec::new() }
}

/// A system in one line; the model stands with the side.
fn system_text(context: &SystemContext) -> String {
    let mut parts: Vec<String> = Vec::new();
    let named = [
        ("", &context.hardware),
        ("model size ", &context.model_size),
        ("model revision ", &context.model_revision),
        ("", &context.precision),
        ("", &context.engine),
        ("", &context.parallelism),
        ("attention ", &context.attention_backend),
        ("scheduling ", &context.scheduling),
    ];
    parts.extend(
        named
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(word, text)| format!("{word}{}", escape_control(text))),
    );
    if parts.is_empty() { "not stated".to_owned() } else { parts.join(" · ") }
}

/// All settings; on a terminal a table for each candidate, with values cut to its width.
pub(crate) fn settings_tables(comparison: &Comparison, is_narrow: bool) -> Vec<Table> {
    let count = side_labels(comparison).len();
    let candidates: Vec<usize> = (1..count).collect();
    let parts: Vec<&[usize]> =
        candidates.chunks(if is_narrow { 1 } else { count.max(1) }).collect();
    let table = |part: &&[usize]| {
        let sides: Vec<usize> = std::iter::once(0).chain(part.iter().copied()).collect();
        settings_table(comparison, &sides, is_narrow)
    };
    if comparison.settings.is_empty() { Vec::new() } else { parts.iter().map(table).collect() }
}

fn settings_table(comparison: &Comparison, sides: &[usize], is_narrow: bool) -> Table {
    let shown = |text: &str| {
        let (text, most) = (escape_control(text), WIDEST[usize::from(!is_narrow)]);
        if text.chars().count() > most {
            return text.chars().take(most - 1).chain(['…']).collect();
        }
        text
    };
    let rows = Table::from_subjects(TITLE, TITLE, &comparison.settings)
        .left("setting", 0, |setting| shown(&setting.name))
        .each(
            sides,
            |side| Column::left(side_label(comparison, **side as u32), 0),
            |setting, side| {
                let value = setting.values.get(**side).and_then(Option::as_deref);
                Cell::from(value.map_or_else(|| "–".to_owned(), &shown))
            },
        )
        .left("", 0, |setting| agreement_mark(setting.agreement));
    let mut table = natural_width_table(rows);
    for row in &mut table.rows {
        if let Some(last) = row.last_mut() {
            last.tone = if last.text == DIFFERS { Tone::Doubt } else { Tone::Plain };
        }
    }
    table
}

const DIFFERS: &str = "DIFFERS";

fn agreement_mark(agreement: SettingAgreement) -> &'static str {
    match agreement {
        SettingAgreement::Same => "same",
        SettingAgreement::UnderTest => "under test",
        SettingAgreement::Differs => DIFFERS,
        SettingAgreement::Derived => "follows",
        SettingAgreement::Unknown => "unknown",
    }
}
