//! What figures, sides, levels and outcomes are called, and how numbers look.

use std::collections::BTreeSet;

use goodput_campaign::compare::{
    Better, Comparison, FigureOutcome, Finding, Gate, Limit, MetricScale, Quantity, find_metric,
};
use goodput_campaign::sweep::Level;
use goodput_model::Verdict;
use unicode_width::UnicodeWidthStr;

use goodput_document::number::{cell_number, interval_text, percent, trimmed_text};
use goodput_model::escape_control;

/// Columns of a side's name in a table; where one is longer all have letters.
const NAME: usize = 16;
/// The same of the sides of `--vary`.
const VARIED: usize = 24;

/// What a page needs to know of a figure.
pub(crate) struct FigureWords {
    /// For people.
    pub(crate) title: String,
    /// Of its values; empty of a share.
    pub(crate) unit: String,
    /// Which way is good.
    pub(crate) better: Better,
    /// How values are set against each other.
    pub(crate) scale: MetricScale,
}

impl FigureWords {
    /// The figure of this name; an unknown one is shown by its name.
    pub(crate) fn new(name: &str) -> Self {
        find_metric(name).map_or_else(
            || Self {
                title: escape_control(name),
                unit: String::new(),
                better: better_direction(name),
                scale: MetricScale::Ratio,
            },
            |known| Self {
                title: known.title,
                unit: known.unit.to_owned(),
                better: known.better,
                scale: known.scale,
            },
        )
    }

    /// The title with the unit of the values.
    pub(crate) fn heading(&self) -> String {
        title_with_unit(&self.title, &self.unit)
    }

    /// The name in a sentence: the unit where it would not be clear without.
    pub(crate) fn name_in_sentence(&self) -> String {
        match self.unit.as_str() {
            "tok/s" => self.heading(),
            "/s" if self.title != "goodput" => self.heading(),
            _ => self.title.clone(),
        }
    }

    /// A value in a cell.
    pub(crate) fn value_text(&self, value: f64) -> String {
        match self.scale {
            _ if !value.is_finite() => "–".to_owned(),
            MetricScale::Difference => percent(value),
            MetricScale::Ratio => cell_number(value),
        }
    }

    /// The unit of a change.
    fn change_unit(&self) -> &'static str {
        match self.scale {
            MetricScale::Ratio => "%",
            MetricScale::Difference => "points",
        }
    }

    /// `+5.1 %`, or `-1.2 points` of a share.
    pub(crate) fn change_text(&self, change: f64) -> String {
        format!("{} {}", signed_text(change * 100.0), self.change_unit())
    }

    /// A standard deviation between blocks, on the scale of changes and margins.
    pub(crate) fn spread_text(&self, sd: f64) -> String {
        let spread = if self.scale == MetricScale::Ratio { sd.exp_m1() } else { sd };
        self.change_text(spread).trim_start_matches('+').to_owned()
    }

    /// `+5.1 % (+3.9 % to +6.2 %)`
    pub(crate) fn change_with_interval(&self, finding: &Finding) -> String {
        if finding.n == 0 {
            return "not measured on both sides".to_owned();
        }
        self.interval_text(finding.change, finding.low, finding.high)
    }

    /// The same of bare numbers.
    pub(crate) fn interval_text(&self, change: f64, low: Option<f64>, high: Option<f64>) -> String {
        self.change_text(change) + &interval_text(low, high, |end| self.change_text(end))
    }

    /// `+5.1 % (+3.9 to +6.2)`
    pub(crate) fn short_change(&self, finding: &Finding) -> String {
        if finding.n == 0 {
            return "–".to_owned();
        }
        let ends = interval_text(finding.low, finding.high, |change| signed_text(change * 100.0));
        self.change_text(finding.change) + &ends
    }

    /// `3 %`, or `3 points` of a share.
    pub(crate) fn margin_text(&self, margin: f64) -> String {
        let amount = trimmed_text(margin * 100.0);
        let unit = self.change_unit();
        let unit = if amount == "1" { unit.trim_end_matches('s') } else { unit };
        format!("{amount} {unit}")
    }
}

/// A title with the unit of its values, unless it says it itself.
pub(crate) fn title_with_unit(title: &str, unit: &str) -> String {
    let (title, per) = match title.strip_suffix(" per GPU") {
        Some(title) => (title, " per GPU"),
        None => (title, ""),
    };
    let whole = match unit {
        "" => title.to_owned(),
        unit if title.ends_with(unit) => title.to_owned(),
        "tok/s" => format!("{title} tok/s"),
        "/s" if title == "goodput" => "goodput, req/s".to_owned(),
        "/s" => format!("{title}/s"),
        unit => format!("{title}, {unit}"),
    };
    whole + per
}

/// Which way is good, by the name alone: costs, energy, times and failures are better when fewer.
fn better_direction(name: &str) -> Better {
    let fewer = ["cost", "energy", "joule", "error", "fail", "ttft", "tpot", "itl", "e2e", "_ms"];
    if fewer.iter().any(|part| name.contains(part)) { Better::Lower } else { Better::Higher }
}

/// With its sign and one decimal; what rounds to nothing has none.
pub(crate) fn signed_text(value: f64) -> String {
    match value.abs() {
        v if !v.is_finite() => "–".to_owned(),
        v if v < 0.05 => "0.0".to_owned(),
        v if v < 99.95 => format!("{value:+.1}"),
        v if v < 1e7 => format!("{value:+.0}"),
        _ => format!("{value:+.1e}"),
    }
}

/// A chance, never rounded to nothing.
pub(crate) fn p_value_text(p: Option<f64>) -> String {
    match p {
        Some(p) if p < 0.0001 => "<0.0001".to_owned(),
        Some(p) if p.is_finite() => format!("{p:.4}"),
        _ => "–".to_owned(),
    }
}

/// `1 block`, `8 blocks`
pub(crate) fn count_text(n: u32, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

/// What the runs of a figure are counted in.
pub(crate) fn count_runs_text(comparison: &Comparison, n: u32) -> String {
    count_text(n, if comparison.is_paired { "block" } else { "run" })
}

/// The word of an outcome.
pub(crate) fn outcome_word(outcome: FigureOutcome) -> &'static str {
    match outcome {
        FigureOutcome::Better => "better",
        FigureOutcome::Worse => "WORSE",
        FigureOutcome::Equivalent => "equivalent",
        FigureOutcome::Inconclusive => "inconclusive",
        FigureOutcome::NoVerdict => "no verdict",
        FigureOutcome::Described => "described",
    }
}

/// What a figure that was not tested shows of these runs, and nothing about the servers.
pub(crate) fn described_text(finding: &Finding) -> &'static str {
    match (finding.low, finding.high) {
        _ if finding.outcome == FigureOutcome::NoVerdict => "no verdict",
        (Some(low), _) if low > 0.0 => "higher",
        (_, Some(high)) if high < 0.0 => "lower",
        _ => "no clear difference",
    }
}

/// The whole in a plain word.
pub(crate) fn overall_word(comparison: &Comparison) -> &'static str {
    match (comparison.verdict, comparison.outcome) {
        (Verdict::Void, _) => "void",
        (_, FigureOutcome::Better) => "better",
        (_, FigureOutcome::Worse) => "worse",
        (_, FigureOutcome::Equivalent) => "equivalent",
        (_, FigureOutcome::Inconclusive) => "inconclusive",
        (_, FigureOutcome::NoVerdict | FigureOutcome::Described) => "no verdict",
    }
}

/// The condition of a gate without its metric: `< +5 %`.
pub(crate) fn gate_limit_text(gate: &Gate) -> String {
    let sign = match gate.limit {
        Limit::Below => "<",
        Limit::Above => ">",
    };
    let plus = if gate.change > 0.0 { "+" } else { "" };
    format!("{sign} {plus}{}", FigureWords::new(&gate.metric).margin_text(gate.change))
}

/// What every side is called: its own name where all names are short and none is twice there, else
/// a letter.
pub(crate) fn side_labels(comparison: &Comparison) -> Vec<String> {
    let names: Vec<String> = if comparison.sides.is_empty() {
        comparison.design.sides.iter().map(|name| escape_control(name)).collect()
    } else {
        comparison.sides.iter().map(|side| escape_control(&side.name)).collect()
    };
    let distinct: BTreeSet<&str> = names.iter().map(|name| name.trim()).collect();
    // Of variants the name says the setting.
    let most = if comparison.design.varied.is_empty() { NAME } else { VARIED };
    let are_short = names.iter().all(|name| !name.trim().is_empty() && name.width() <= most);
    if are_short && distinct.len() == names.len() {
        return names;
    }
    (0..names.len()).map(side_letter).collect()
}

fn side_letter(place: usize) -> String {
    match u8::try_from(place) {
        Ok(place) if place < 26 => char::from(b'A' + place).to_string(),
        _ => format!("S{}", place + 1),
    }
}

/// The name of one side, also of one that is not there.
pub(crate) fn side_label(comparison: &Comparison, side: u32) -> String {
    let known = side_labels(comparison).into_iter().nth(side as usize);
    known.unwrap_or_else(|| side_letter(side as usize))
}

/// The load of a level.
pub(crate) fn level_text(comparison: &Comparison, place: u32) -> String {
    let place = place as usize;
    let design = &comparison.design;
    let asked = design.levels.get(place).copied();
    let level = asked.or_else(|| comparison.levels.get(place).and_then(|level| level.level));
    match level {
        _ if comparison.shadow.is_some() => "live traffic".to_owned(),
        Some(Level::Rate(rate)) => format!("{} req/s", trimmed_text(rate)),
        Some(Level::Users(users)) => count_text(users, "user"),
        // A load that changes, or comes all at once, has no number.
        None if design.quantity == Quantity::Runs && design.levels.is_empty() => {
            "the same load".to_owned()
        }
        None => "goodput search".to_owned(),
    }
}

/// ` at 8 req/s` where there are several levels.
pub(crate) fn at_level_text(comparison: &Comparison, place: u32) -> String {
    let levels = comparison.design.levels.len().max(comparison.levels.len());
    if levels > 1 { format!(" at {}", level_text(comparison, place)) } else { String::new() }
}

/// The tested figures of a candidate, as they come.
pub(crate) fn tested_findings(comparison: &Comparison, side: u32) -> Vec<&Finding> {
    comparison.findings.iter().filter(|one| one.is_tested && one.side == side).collect()
}

/// Places of the candidates.
pub(crate) fn candidate_places(comparison: &Comparison) -> std::ops::Range<u32> {
    let sides = comparison.sides.len().max(comparison.design.sides.len());
    1..u32::try_from(sides).unwrap_or(u32::MAX)
}

/// Seconds that a block takes, by what was measured or else as planned; none of saved runs.
pub(crate) fn block_seconds(comparison: &Comparison) -> Option<f64> {
    let (facts, design) = (&comparison.comparison, &comparison.design);
    if !comparison.is_paired {
        return None;
    }
    if facts.blocks > 0 && facts.took_s > 0.0 {
        return Some(facts.took_s / f64::from(facts.blocks));
    }
    let runs = if design.at_once { 1 } else { design.sides.len() } * design.levels.len().max(1);
    let seconds = (design.run_s + design.burn_in_s + design.settle_s) * runs as f64;
    (seconds > 0.0).then_some(seconds)
}
