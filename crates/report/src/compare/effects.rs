//! The effect of each setting against the baseline, in one table (`--vary`).

#[cfg(test)]
mod tests;

use goodput_campaign::compare::{Comparison, FigureOutcome, Finding, MetricScale};
use goodput_model::{Verdict, escape_control};

use super::tables::{CandidateAtLevel, candidates_by_level};
use super::words::{FigureWords, count_text, level_text, outcome_word, signed_text};
use goodput_document::clip::clip;
use goodput_document::number::trimmed_text;
use goodput_document::{Block, Cell, Column, Formats, Section, Table, Tone};

/// Figures of the table, as far as they are tested.
const FIGURES: [&str; 7] = [
    "ttft_p50",
    "ttft_p99",
    "tpot_p50",
    "tpot_p99",
    "output_tokens_per_s",
    "goodput_rps",
    "error_share",
];

/// Columns of a setting, and of a figure, on a terminal.
const SETTING: usize = 22;
const FIGURE: usize = 8;

/// The table, with what its marks mean; nothing where no settings are varied.
pub(super) fn section(comparison: &Comparison) -> Section {
    let section = Section::new("effects", "Effect of each setting");
    let Some(table) = table(comparison) else { return section };
    section
        .with_on(Formats::ALL.with_short(), Block::Table(table))
        .with_on(Formats::TEXT.with_short(), Block::reading_note(marks(comparison)))
        .with_on(Formats::ALL.with_short(), Block::reading_note(remark(comparison)))
}

fn table(comparison: &Comparison) -> Option<Table> {
    if comparison.design.varied.is_empty() {
        return None;
    }
    let tested =
        |name: &&&str| comparison.findings.iter().any(|one| one.is_tested && one.metric == **name);
    let figures: Vec<&str> = FIGURES.iter().filter(tested).copied().collect();
    let levels = candidates_by_level(comparison).iter().any(|pair| pair.level > 0);
    let title = "Effect of each setting against the baseline";
    let caption = "Change of each figure with its simultaneous interval, and what it means";
    let setting = |pair: &CandidateAtLevel| {
        let varied = comparison.design.varied.get(pair.side as usize);
        let varied = varied.map_or_else(String::new, |varied| escape_control(varied));
        let at = if levels {
            format!(", {}", level_text(comparison, pair.level))
        } else {
            String::new()
        };
        let whole = format!("{varied}{at}");
        Cell::from(whole.clone()).short(clip(&whole, SETTING))
    };
    let rows = Table::from_subjects(title, caption, candidates_by_level(comparison))
        .with(Column::left("setting", SETTING), setting)
        .each(
            figures,
            |name| {
                let known = FigureWords::new(name);
                Column::right(known.name_in_sentence(), FIGURE)
                    .short(known.name_in_sentence().replacen(' ', "\n", 1))
            },
            |pair, name| {
                let mut own = comparison.findings.iter().filter(|one| pair.is_about(one));
                own.find(|one| one.metric == **name)
                    .map_or_else(|| Cell::from("–"), |one| effect(comparison, one))
            },
        );
    let table = Table { above: title.to_owned(), ..rows.table };
    (!table.rows.is_empty()).then_some(table)
}

/// `-40.1 % (-41.0 to -39.2) better`; on a terminal `-40.1 ✓`.
fn effect(comparison: &Comparison, finding: &Finding) -> Cell {
    let known = FigureWords::new(&finding.metric);
    if finding.n == 0 {
        return Cell::from("–");
    }
    let is_void = comparison.verdict == Verdict::Void;
    let word = if is_void { "void" } else { outcome_word(finding.outcome) };
    let (mark, tone) = match finding.outcome {
        _ if is_void => ("!", Tone::Bad),
        FigureOutcome::Better => ("✓", Tone::Good),
        FigureOutcome::Worse => ("✗", Tone::Bad),
        FigureOutcome::Equivalent => ("=", Tone::Plain),
        FigureOutcome::Inconclusive => ("?", Tone::Doubt),
        FigureOutcome::NoVerdict | FigureOutcome::Described => ("–", Tone::Plain),
    };
    let short = format!("{} {mark}", signed_text(finding.change * 100.0));
    Cell::from(format!("{} {word}", known.short_change(finding))).short(short).tone(tone)
}

/// What the marks of a terminal mean.
fn marks(comparison: &Comparison) -> String {
    let mut tested = comparison.findings.iter().filter(|one| one.is_tested);
    let is_share = |one: &Finding| FigureWords::new(&one.metric).scale == MetricScale::Difference;
    let unit = if tested.any(is_share) { "in %, of shares in points" } else { "in %" };
    let void = if comparison.verdict == Verdict::Void { ", ! void" } else { "" };
    format!("Change {unit}; ✓ better, ✗ WORSE, = equivalent, ? inconclusive, – no verdict{void}")
}

/// That several settings are tested at once, and what is done about it.
fn remark(comparison: &Comparison) -> String {
    let design = &comparison.design;
    let tested = comparison.findings.iter().filter(|one| one.is_tested).count();
    let settings = design.varied.iter().filter(|varied| !varied.is_empty()).count();
    let steps = if design.gates.is_empty() {
        ", and better and WORSE are told step by step (after Holm)"
    } else {
        ""
    };
    format!(
        "{} of {} are tested at once: the intervals hold together{steps}: the chance of any wrong \
         verdict in this table is {} % at most",
        count_text(tested as u32, "figure"),
        count_text(settings as u32, "setting"),
        trimmed_text(design.alpha * 100.0)
    )
}
