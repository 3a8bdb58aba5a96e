//! Tables of a comparison.

use std::collections::BTreeSet;

use goodput_campaign::compare::{
    AxisRow, Comparison, Difference, FigureOutcome, Finding, LevelComparison, Matter, MetricScale,
    Rank,
};
use goodput_model::Verdict;
use unicode_width::UnicodeWidthStr;

use super::answer::gate_change;
use super::words::{
    FigureWords, at_level_text, described_text, gate_limit_text, level_text, outcome_word,
    p_value_text, side_label, side_labels, title_with_unit,
};
use goodput_document::number::{cell_number, interval_text, known_or_dash, percent};
use goodput_document::{Align, Cell, Column, Rows, Table, TableCut, Tone};
use goodput_model::escape_control;

/// As wide as its cells on a terminal; the first and the last column stand at the left. Words that say
/// how something went have their tone.
pub(super) fn natural_width_table<T>(rows: Rows<T>) -> Table {
    let mut table = rows.table;
    for cell in table.rows.iter_mut().flatten() {
        cell.tone = outcome_tone(&cell.text);
    }
    let last = table.columns.len().saturating_sub(1);
    for (place, column) in table.columns.iter_mut().enumerate() {
        column.align = if place == 0 || place == last { Align::Left } else { Align::Right };
    }
    Table { above: table.title.clone(), is_natural: true, ..table }
}

fn outcome_tone(text: &str) -> Tone {
    match text.trim_end_matches(" ?") {
        "better" | "yes" => Tone::Good,
        "WORSE" | "NO" | "void" => Tone::Bad,
        "inconclusive" => Tone::Doubt,
        _ => Tone::Plain,
    }
}

/// Places in [`figures_table`]: what the change is, and how sure.
pub(crate) const CHANGE: [usize; 6] = [0, 1, 2, 3, 4, 12];
pub(crate) const SHORT: [usize; 5] = [0, 1, 2, 3, 12];
pub(crate) const BARE: [usize; 3] = [0, 3, 12];
pub(crate) const VALUES: (&str, [usize; 3]) = ("Values", [0, 1, 2]);
pub(crate) const UNITS: [usize; 2] = [0, 4];
pub(crate) const SURE: [usize; 8] = [0, 5, 6, 7, 8, 9, 10, 11];
/// The same for narrow pages: the estimate next to the test stands with the units.
pub(crate) const LESS_SURE: [usize; 7] = [0, 5, 6, 7, 8, 10, 11];
pub(crate) const NEXT_TO_TEST: [usize; 3] = [0, 4, 9];

/// The figures of one candidate at one level: those that are tested, or the others.
pub(crate) fn figures_table(
    comparison: &Comparison,
    pair: CandidateAtLevel,
    are_tested: bool,
) -> Option<Table> {
    let (name, reference) = (side_label(comparison, pair.side), side_label(comparison, 0));
    let kind = if are_tested { "tested together" } else { "described individually" };
    let title = format!("{}: {kind}", pair.title(comparison));
    let all = comparison.findings.iter();
    let own = all.filter(|one| pair.is_about(one) && one.is_tested == are_tested);
    // Of what is not tested the axes of the table below are enough; the file has every percentile.
    let axes = || comparison.levels.iter().flat_map(|level| &level.rows);
    let is_axis = |one: &&Finding| are_tested || axes().any(|row| row.figure == one.metric);
    let own = own.filter(is_axis).map(|one| (FigureWords::new(&one.metric), one));
    let value = |of: fn(&Finding) -> f64| {
        move |(known, one): &(FigureWords, &Finding)| match one.n {
            0 => "–".to_owned(),
            _ => known.value_text(of(one)),
        }
    };
    let rows = Table::from_subjects(title.clone(), title, own)
        .left("", 0, |(known, _)| known.heading())
        .left(reference, 0, value(|one| one.reference))
        .left(name, 0, value(|one| one.candidate))
        .left("change", 0, |(known, one)| known.short_change(one))
        .left("in units", 0, change_in_units)
        .left(if comparison.is_paired { "blocks" } else { "runs" }, 0, |(_, one)| one.n.to_string())
        .left("confidence", 0, |(_, one)| confidence_text(one.confidence))
        .left("p", 0, |(_, one)| p_value_text(one.p))
        .left("signed ranks", 0, |(_, one)| p_value_text(one.wilcoxon_p))
        .left("Hodges–Lehmann", 0, |(of, one)| {
            known_or_dash(one.hodges_lehmann, |shift| of.change_text(shift))
        })
        .left("SD", 0, |(of, one)| known_or_dash(one.sd, |sd| of.spread_text(sd)))
        .left("margin", 0, |(known, one)| known.margin_text(one.margin))
        .left(if are_tested { "verdict" } else { "in these runs" }, 0, |(_, one)| {
            let doubt = if one.is_doubtful { " ?" } else { "" };
            match one.is_tested {
                // Of a comparison that is void no word is a result.
                _ if comparison.verdict == Verdict::Void => "void".to_owned(),
                true => format!("{}{doubt}", outcome_word(one.outcome)),
                false => format!("{}{doubt}", described_text(one)),
            }
        });
    let table = natural_width_table(rows);
    (!table.rows.is_empty()).then_some(table)
}

/// The change of a ratio in the unit of its figure. Points of a share are its unit already; without
/// a pair the change is missing.
fn change_in_units((known, finding): &(FigureWords, &Finding)) -> String {
    if finding.n == 0 || known.scale == MetricScale::Difference {
        return String::new();
    }
    let units = |share: f64| amount_text(share * finding.reference);
    units(finding.change) + &interval_text(finding.low, finding.high, units)
}

/// What repeated looks and other tests leave is close to all: never rounded to it.
fn confidence_text(share: f64) -> String {
    match share {
        share if !share.is_finite() => "–".to_owned(),
        share if share > 0.9995 => ">99.9 %".to_owned(),
        share => percent(share),
    }
}

/// A change in units, with its sign.
fn amount_text(value: f64) -> String {
    match value {
        _ if !value.is_finite() => "–".to_owned(),
        value if cell_number(value).trim_start_matches('-') == "0.00" => "0.00".to_owned(),
        value if value > 0.0 => format!("+{}", cell_number(value)),
        value => cell_number(value),
    }
}

/// A candidate at a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CandidateAtLevel {
    pub(crate) side: u32,
    pub(crate) level: u32,
}

impl CandidateAtLevel {
    /// Whether a finding is about it.
    pub(crate) fn is_about(self, finding: &Finding) -> bool {
        (finding.side, finding.level) == (self.side, self.level)
    }

    /// Who against whom, and at which load.
    pub(crate) fn title(self, comparison: &Comparison) -> String {
        let (name, reference) = (side_label(comparison, self.side), side_label(comparison, 0));
        format!("{name} against {reference}, {}", level_text(comparison, self.level))
    }
}

/// Every candidate at every level that something is said of.
pub(crate) fn candidates_by_level(comparison: &Comparison) -> BTreeSet<CandidateAtLevel> {
    comparison
        .findings
        .iter()
        .map(|one| CandidateAtLevel { side: one.side, level: one.level })
        .collect()
}

/// What the tables of figures need said below them.
pub(crate) fn table_remarks(comparison: &Comparison) -> Vec<&'static str> {
    let tables = candidates_by_level(comparison).into_iter().flat_map(|pair| {
        [true, false].into_iter().filter_map(move |tested| figures_table(comparison, pair, tested))
    });
    let mut rows = tables.flat_map(|table| table.rows);
    let is_doubted = |row: Vec<Cell>| row.last().is_some_and(|word| word.text.ends_with(" ?"));
    let doubtful = rows.any(is_doubted).then_some(DOUBTFUL);
    let is_void = comparison.verdict == Verdict::Void;
    let stepped = comparison.findings.iter().any(is_by_step) && !is_void;
    doubtful.into_iter().chain(stepped.then_some(STEPPED)).collect()
}

/// Marked with `?` in a table.
const DOUBTFUL: &str =
    "?: the signed-rank test and the t-test disagree: an outlier, or blocks that differ";

/// Next to a word whose interval does not say it.
const STEPPED: &str = "better or WORSE with an interval that includes zero: intervals cover all \
                       tested figures together; the step-down test of p decides whether a figure \
                       differs, with the same confidence";

/// Whether a figure is told to differ by a later step than that of its interval.
fn is_by_step(finding: &Finding) -> bool {
    let holds_zero =
        finding.low.is_some_and(|low| low <= 0.0) && finding.high.is_some_and(|high| high >= 0.0);
    finding.is_tested
        && matches!(finding.outcome, FigureOutcome::Better | FigureOutcome::Worse)
        && holds_zero
}

/// What was asked to hold.
pub(crate) fn gates_table(comparison: &Comparison) -> Option<Table> {
    let rows = Table::from_subjects("Gates", "Gates", &comparison.gates)
        .left("gate", 0, |gate| {
            format!(
                "{} {}",
                FigureWords::new(&gate.gate.metric).name_in_sentence(),
                gate_limit_text(&gate.gate)
            )
        })
        .left("candidate", 0, |gate| side_label(comparison, gate.side))
        .left("level", 0, |gate| level_text(comparison, gate.level))
        .left("change", 0, |gate| known_or_dash(gate_change(comparison, gate), |change| change))
        .left("holds", 0, |gate| match gate.outcome {
            _ if comparison.verdict == Verdict::Void => "void",
            FigureOutcome::Better | FigureOutcome::Equivalent => "yes",
            FigureOutcome::Worse => "NO",
            FigureOutcome::Inconclusive => "inconclusive",
            FigureOutcome::NoVerdict | FigureOutcome::Described => "no verdict",
        });
    let ways = vec![
        vec![TableCut::new("Gates", &[0, 1, 2, 3, 4])],
        vec![TableCut::new("Gates", &[0, 1, 2, 4]), TableCut::new("Changes", &[0, 1, 2, 3])],
    ];
    (!comparison.gates.is_empty()).then(|| Table { ways, ..natural_width_table(rows) })
}

/// What the marks of the last column mean.
pub(crate) const BETTER: &str = "a name: better by the findings above; same: within the margin; \
                                 tie, ?: inconclusive; in these runs: described, not tested, the \
                                 second side against the first";

/// All axes of all sides at every level; several tables where there are too many sides for one.
pub(crate) fn axes_tables(comparison: &Comparison, columns: Option<usize>) -> Vec<Table> {
    let names = side_labels(comparison);
    let widest = names.iter().map(|name| name.width()).max().unwrap_or(0).max(9);
    // The reference stands in each of the tables, between the titles and who is better.
    let room = columns.map(|columns| columns.saturating_sub(36) / (widest + 2));
    let at_once = room.map_or(names.len(), |room| room.saturating_sub(1).max(1)).max(1);
    let mut tables = Vec::new();
    for (place, level) in comparison.levels.iter().enumerate() {
        let candidates: Vec<usize> = (1..names.len()).collect();
        let parts: Vec<&[usize]> = candidates.chunks(at_once).collect();
        for part in if parts.is_empty() { vec![&[][..]] } else { parts } {
            let sides: Vec<usize> = std::iter::once(0).chain(part.iter().copied()).collect();
            tables.extend(axes_table(comparison, place as u32, level, &sides));
        }
    }
    tables
}

fn axes_table(
    comparison: &Comparison,
    place: u32,
    summary: &LevelComparison,
    sides: &[usize],
) -> Option<Table> {
    let title = format!("All axes, {}", level_text(comparison, place));
    let rows = Table::from_subjects(title.clone(), title, &summary.rows)
        .left("", 0, |row| title_with_unit(&escape_control(&row.title), &escape_control(&row.unit)))
        .each(
            sides,
            |side| Column::left(side_label(comparison, **side as u32), 0),
            |row, side| {
                let value = row.values.get(**side).copied().flatten();
                known_or_dash(value, |value| axis_value(row, value))
            },
        )
        .left("better", 0, |row| better_sides_text(comparison, place, row));
    let mut table = natural_width_table(rows);
    for row in &mut table.rows {
        highlight_best(row, &table.columns);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The best one of a row is named at its end, and stands out; what was not tested does not.
fn highlight_best(row: &mut [Cell], columns: &[Column]) {
    let Some((best, cells)) = row.split_last_mut() else { return };
    best.tone = Tone::Plain;
    for (cell, Column { head, .. }) in cells.iter_mut().zip(columns) {
        let is_best = !head.is_empty() && best.text.split(", ").any(|best| best == head);
        cell.tone = if is_best { Tone::Best } else { Tone::Plain };
    }
}

fn axis_value(row: &AxisRow, value: f64) -> String {
    let is_money = row.figure.starts_with("cost");
    if is_money && value.abs() < 100.0 {
        return format!("{value:.4}");
    }
    FigureWords::new(&row.figure).value_text(value)
}

/// Who is better by this row, and how that is known.
fn better_sides_text(comparison: &Comparison, place: u32, row: &AxisRow) -> String {
    if comparison.verdict == Verdict::Void {
        return "void".to_owned();
    }
    let is_it = |metric: &str, level: u32| metric == row.figure && level == place;
    let own = comparison.findings.iter().filter(|one| is_it(&one.metric, one.level));
    let own: Vec<&Finding> = own.collect();
    let sides = side_labels(comparison).len();
    if let ([finding], 2) = (own.as_slice(), sides) {
        return match finding.outcome {
            FigureOutcome::NoVerdict => "?".to_owned(),
            _ if !finding.is_tested => match described_text(finding) {
                word @ ("higher" | "lower") => in_these_runs(word),
                word => word.to_owned(),
            },
            FigureOutcome::Better => side_label(comparison, finding.side),
            FigureOutcome::Worse => side_label(comparison, 0),
            FigureOutcome::Equivalent => "same".to_owned(),
            FigureOutcome::Inconclusive | FigureOutcome::Described => "?".to_owned(),
        };
    }
    let ranks = comparison.ranking.iter().filter(|rank| is_it(&rank.metric, rank.level));
    let ranks: Vec<&Rank> = ranks.collect();
    // Costs and the like hang on what they are computed from.
    let figure = row.figure.strip_suffix("_per_gpu").unwrap_or(&row.figure);
    let figure = if figure.starts_with("cost") { "output_tokens_per_s" } else { figure };
    let spoils = |one: &Difference| one.matter == Matter::Refuse && one.affects_metric(figure);
    match ranks.len() {
        n if n > 0 && n == sides => leaders_text(comparison, &ranks),
        // A side without a place, or without a verdict, may be the best of all, or no match at all.
        0 if !own.iter().any(|one| one.is_tested) && !comparison.differences.iter().any(spoils) => {
            untested_text(row)
        }
        _ => "?".to_owned(),
    }
}

/// Those that are better than all the others; where only some pairs are told, these pairs.
fn leaders_text(comparison: &Comparison, ranks: &[&Rank]) -> String {
    let (first, others): (Vec<&Rank>, Vec<&Rank>) = ranks.iter().partition(|rank| rank.rank == 1);
    if others.is_empty() {
        let are_like = ranks.iter().all(|rank| rank.like.len() + 1 == ranks.len());
        return if are_like { "same" } else { "tie" }.to_owned();
    }
    let name = |rank: &Rank| side_label(comparison, rank.side);
    let is_ahead = |rank: &Rank| others.iter().all(|other| other.behind.contains(&rank.side));
    if first.iter().all(|rank| is_ahead(rank)) {
        return first.iter().map(|rank| name(rank)).collect::<Vec<_>>().join(", ");
    }
    let pairs = others.iter().flat_map(|other| {
        let better = other.behind.iter().map(|side| side_label(comparison, *side));
        better.map(|better| format!("{better} > {}", name(other)))
    });
    pairs.take(PAIRS).collect::<Vec<_>>().join(", ")
}

/// Pairs in a cell at most; the ranking has them all.
const PAIRS: usize = 2;

/// What the values show where no test was made: no side is called better.
fn untested_text(row: &AxisRow) -> String {
    let finite = |value: &Option<f64>| value.filter(|value| value.is_finite());
    let values: Vec<f64> = row.values.iter().filter_map(finite).collect();
    match (values.as_slice(), row.values.len()) {
        ([] | [_], _) => String::new(),
        ([a, b], 2) if a == b => in_these_runs("equal"),
        ([a, b], 2) => in_these_runs(if a < b { "higher" } else { "lower" }),
        _ => "not tested".to_owned(),
    }
}

fn in_these_runs(word: &str) -> String {
    format!("{word} in these runs")
}

/// The order of more than two sides by each tested figure, best first.
pub(crate) fn ranking_rows(comparison: &Comparison) -> Vec<(String, String)> {
    if comparison.verdict == Verdict::Void {
        return Vec::new();
    }
    let mut seen: Vec<(&str, u32)> = Vec::new();
    let mut out = Vec::new();
    for first in &comparison.ranking {
        let key = (first.metric.as_str(), first.level);
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let mut ranks: Vec<&Rank> = comparison
            .ranking
            .iter()
            .filter(|rank| (rank.metric.as_str(), rank.level) == key)
            .collect();
        ranks.sort_by_key(|rank| (rank.rank, rank.side));
        let known = FigureWords::new(&first.metric);
        let groups: Vec<String> = ranks
            .chunk_by(|a, b| a.rank == b.rank)
            .map(|group| {
                let before = ranks.iter().filter(|r| Some(r.rank) < group.first().map(|r| r.rank));
                let before = before.count();
                let one = |r: &&Rank| {
                    // Not everybody before it is better beyond chance.
                    let better = r.behind.iter().map(|side| side_label(comparison, *side));
                    let better = better.collect::<Vec<_>>().join(" and ");
                    let is_partly = r.behind.len() < before;
                    let only =
                        if is_partly { format!(", behind {better} only") } else { String::new() };
                    format!(
                        "{} ({}{only})",
                        side_label(comparison, r.side),
                        known.value_text(r.value)
                    )
                };
                let all: Vec<String> = group.iter().map(one).collect();
                let tie = if group.len() > 1 { "tie of " } else { "" };
                let place = group.first().map_or(0, |rank| rank.rank);
                format!("{place}. {tie}{}", all.join(", "))
            })
            .collect();
        let title = known.heading() + &at_level_text(comparison, first.level);
        out.push((title, groups.join("; ")));
    }
    out
}
