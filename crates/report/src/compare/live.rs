//! While a comparison goes on: what it will take, and a line after each block.

use goodput_campaign::compare::{
    Comparison, Design, FigureOutcome, Finding, Gate, Quantity, tested_metrics,
};
use goodput_campaign::sweep::Level;

use super::notes::{looks_text, order_text};
use super::tables::{CandidateAtLevel, candidates_by_level};
use super::words::{
    FigureWords, at_level_text, candidate_places, count_text, gate_limit_text, outcome_word,
    side_label, tested_findings,
};
use goodput_document::clip::clip;
use goodput_document::number::trimmed_text;

use crate::estimate::guessed_duration;
use goodput_document::render::text::write_field;
use goodput_model::escape_control;
use unicode_width::UnicodeWidthStr;

/// Columns of the line of a block, as of every line of progress.
const WIDTH: usize = 100;
/// Figures in it at most.
const FIGURES: usize = 3;

/// The figures that are shown first if not all fit.
const FIRST: [&str; 4] = ["tpot_p50", "ttft_p99", "goodput_rps", "ttft_p50"];

/// How long a comparison will take: to its first look, and at most.
pub fn compare_estimate(
    design: &Design,
    seconds_to_first_look: f64,
    seconds_at_most: f64,
) -> String {
    let runs = design.sides.len().saturating_mul(design.levels.len().max(1));
    let runs = u32::try_from(runs).unwrap_or(u32::MAX);
    let each = match design.quantity {
        Quantity::Goodput => count_text(runs, "search").replace("searchs", "searches"),
        Quantity::Runs => {
            let time = [design.run_s, design.burn_in_s].map(trimmed_text);
            format!("{} ({} s after {} s of load)", count_text(runs, "run"), time[0], time[1])
        }
    };
    let most = guessed_duration(seconds_at_most);
    let time = match design.looks.as_slice() {
        [] | [_] => format!("about {most}"),
        _ => {
            format!(
                "about {} to the first test, {most} at most",
                guessed_duration(seconds_to_first_look)
            )
        }
    };
    let blocks = design.looks.last().copied().unwrap_or(0);
    format!("{time}: up to {} of {each}; {}", count_text(blocks, "block"), looks_text(design))
}

/// Everything that a comparison would do, before it does anything; seconds to its first look, and at
/// most.
pub fn compare_design_text(design: &Design, slo: &str, (first_s, most_s): (f64, f64)) -> String {
    let mut page = String::new();
    let names: Vec<String> = design.sides.iter().map(|name| escape_control(name)).collect();
    write_field(&mut page, "Sides", &format!("{}; the first is the reference", names.join(", ")));
    let level = |level: &Level| match level {
        Level::Rate(rate) => format!("{} req/s", trimmed_text(*rate)),
        Level::Users(users) => count_text(*users, "user"),
    };
    let levels: Vec<String> = design.levels.iter().map(level).collect();
    let load = match design.quantity {
        Quantity::Goodput => "the highest load that keeps the SLO, searched for again in each run",
        Quantity::Runs if levels.is_empty() => "half of what the reference carries with 16 users",
        Quantity::Runs => &levels.join(", "),
    };
    write_field(&mut page, "Load", load);
    if !slo.is_empty() {
        write_field(&mut page, "SLO", &escape_control(slo));
    }
    let order = order_text(design);
    let pause = trimmed_text(design.settle_s);
    write_field(&mut page, "Order", &format!("{order}, {pause} s pause after each run"));
    write_field(&mut page, "Blocks", &compare_estimate(design, first_s, most_s));
    let is_there =
        |name: &&String| !slo.is_empty() || !["goodput_rps", "attainment"].contains(&name.as_str());
    let tested = tested_metrics(design);
    let margin = |name: &String| {
        let known = FigureWords::new(name);
        format!("{} {}", known.name_in_sentence(), known.margin_text(design.margin_of(name)))
    };
    let tested: Vec<String> = tested.iter().filter(is_there).map(margin).collect();
    let sure = trimmed_text((1.0 - design.alpha) * 100.0);
    let text = format!("{} (margins); {sure} % confidence for all together", tested.join(", "));
    write_field(&mut page, "Tested", &text);
    let gate = |gate: &Gate| {
        format!("{} {}", FigureWords::new(&gate.metric).name_in_sentence(), gate_limit_text(gate))
    };
    let gates: Vec<String> = design.gates.iter().map(gate).collect();
    if !gates.is_empty() {
        write_field(&mut page, "Gates", &gates.join(", "));
    }
    page
}

/// One line after a block: the tested figures so far, as many as there is room for, and seconds to
/// the next look.
pub fn compare_block_line(comparison: &Comparison, left_s: f64) -> String {
    let (blocks, looks) = (comparison.comparison.blocks, &comparison.design.looks);
    let most = looks.last().filter(|_| comparison.shadow.is_none());
    let most = most.map_or(String::new(), |most| format!(" of at most {most}"));
    let sides: Vec<u32> = candidate_places(comparison).collect();
    let room = (FIGURES / sides.len().max(1)).max(1);
    let mut parts = Vec::new();
    for side in &sides {
        let mut findings = tested_findings(comparison, *side);
        findings.retain(|finding| finding.n > 0);
        findings.sort_by_key(|finding| finding_order(finding));
        let name =
            if sides.len() > 1 { side_label(comparison, *side) + " " } else { String::new() };
        for finding in findings.iter().take(room) {
            let known = FigureWords::new(&finding.metric);
            let level = at_level_text(comparison, finding.level);
            parts.push(format!(
                "{name}{}{level} {}",
                known.name_in_sentence(),
                known.short_change(finding)
            ));
        }
    }
    let left = if left_s > 0.0 {
        format!(" · {} to the next test", guessed_duration(left_s))
    } else {
        String::new()
    };
    let room = WIDTH.saturating_sub(left.width());
    let mut line = format!("block {blocks}{most}");
    for (place, part) in parts.iter().enumerate() {
        let before = if place == 0 { ": " } else { " · " };
        if place > 0 && line.width() + before.width() + part.width() > room {
            break;
        }
        line.push_str(before);
        line.push_str(part);
    }
    clip(&line, room) + &left
}

/// What differs so far between a candidate and the reference at one load.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareLevel {
    /// Who against whom, and at which load.
    pub title: String,
    /// The tested figures.
    pub rows: Vec<CompareRow>,
}

/// One figure of two sides.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareRow {
    /// Its name.
    pub figure: String,
    /// The reference's value.
    pub reference: String,
    /// The candidate's.
    pub candidate: String,
    /// The change with its interval.
    pub change: String,
    /// What can be said, in words.
    pub words: &'static str,
    /// The same.
    pub outcome: FigureOutcome,
}

/// The tested figures so far, for a screen.
pub fn compare_so_far(comparison: &Comparison) -> Vec<CompareLevel> {
    let level = |pair: CandidateAtLevel| {
        let own = tested_findings(comparison, pair.side).into_iter();
        let own = own.filter(|finding| pair.is_about(finding) && finding.n > 0);
        let row = |finding: &Finding| {
            let known = FigureWords::new(&finding.metric);
            CompareRow {
                figure: known.name_in_sentence(),
                reference: known.value_text(finding.reference),
                candidate: known.value_text(finding.candidate),
                change: known.short_change(finding),
                words: outcome_word(finding.outcome),
                outcome: finding.outcome,
            }
        };
        let rows: Vec<CompareRow> = own.map(row).collect();
        let title = pair.title(comparison);
        (!rows.is_empty()).then_some(CompareLevel { title, rows })
    };
    candidates_by_level(comparison).into_iter().filter_map(level).collect()
}

fn finding_order(finding: &Finding) -> (u32, usize) {
    let place = FIRST.iter().position(|name| *name == finding.metric);
    (finding.level, place.unwrap_or(FIRST.len()))
}
