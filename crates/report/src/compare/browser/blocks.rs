//! Every tested figure block by block: the sides, and the change.

use goodput_campaign::compare::{ComparedRun, Comparison, Finding, MetricScale};
use goodput_model::Verdict;

use super::forest::margin_percent;
use crate::compare::words::{FigureWords, count_text, level_text, side_label, side_labels};
use goodput_document::markup::Html;
use goodput_document::render::pieces::write_chart;
use goodput_document::svg::{Chart, ChartAxis, ChartSeries, Dot, Rule, Shape};

/// Names of charts, which are ids in the page: as many as are drawn at most.
macro_rules! names {
    ($kind:literal: $($number:literal)*) => { [$(concat!($kind, "-", $number)),*] };
}
const SIDES: [&str; 24] =
    names!("blocks": 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24);
const CHANGES: [&str; 24] =
    names!("changes": 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24);
/// How far sides of a block stand apart in a chart.
const APART: f64 = 0.12;
/// The tone of marks that belong to no side.
const PLAIN: usize = 7;

/// The charts of one figure at one level.
pub(super) struct FigureCharts {
    title: String,
    pub(super) charts: Vec<Chart>,
}

/// All of them, for a page.
pub(crate) fn write_block_charts(html: &mut Html, comparison: &Comparison) {
    let all = figure_charts(comparison);
    for one in &all {
        html.element("div", &[("class", "pair")], |html| {
            html.text_element("h4", &[], &one.title);
            for chart in &one.charts {
                write_chart(html, chart);
            }
        });
    }
    let left = tested_figures(comparison).len().saturating_sub(SIDES.len());
    if left > 0 {
        let more = format!("{left} more figures are not drawn; the table of runs has them.");
        html.text_element("p", &[], &more);
    }
}

/// Name and level of each tested figure.
fn tested_figures(comparison: &Comparison) -> Vec<(&str, u32)> {
    let mut all: Vec<(&str, u32)> = Vec::new();
    for one in comparison.findings.iter().filter(|one| one.is_tested) {
        let key = (one.metric.as_str(), one.level);
        if !all.contains(&key) {
            all.push(key);
        }
    }
    all
}

/// Charts of the tested figures, as far as runs have them.
pub(super) fn figure_charts(comparison: &Comparison) -> Vec<FigureCharts> {
    let names = SIDES.iter().zip(CHANGES);
    let one =
        |((metric, place), (sides, changes)): ((&str, u32), (&&'static str, &'static str))| {
            let known = FigureWords::new(metric);
            let figure =
                FigureByBlock { comparison, metric, place, known, names: side_labels(comparison) };
            let all = [figure.sides_chart(sides), figure.changes_chart(changes)];
            let charts: Vec<Chart> = all.into_iter().filter(|chart| !chart.is_empty()).collect();
            let title = format!("{}, {}", figure.known.heading(), level_text(comparison, place));
            (!charts.is_empty()).then_some(FigureCharts { title, charts })
        };
    tested_figures(comparison).into_iter().zip(names).filter_map(one).collect()
}

/// One figure at one level.
struct FigureByBlock<'a> {
    comparison: &'a Comparison,
    metric: &'a str,
    place: u32,
    known: FigureWords,
    names: Vec<String>,
}

impl FigureByBlock<'_> {
    fn runs_of_side(&self, side: u32) -> impl Iterator<Item = &ComparedRun> {
        let is_own =
            move |cell: &&ComparedRun| (cell.ask.side, cell.ask.level) == (side, self.place);
        self.comparison.runs.iter().filter(is_own)
    }

    fn all_sides(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.names.len()).unwrap_or(u32::MAX)
    }

    fn value_unit(&self) -> &'static str {
        if self.comparison.is_paired { "block" } else { "run" }
    }

    /// Values as they are drawn: shares in percent.
    fn display_value(&self, value: f64) -> f64 {
        if self.known.scale == MetricScale::Difference { value * 100.0 } else { value }
    }

    fn block_axis(&self) -> ChartAxis {
        ChartAxis::between(self.value_unit())
    }

    /// Every side, block by block.
    fn sides_chart(&self, name: &'static str) -> Chart {
        let middle = (self.names.len().saturating_sub(1)) as f64 / 2.0;
        let dot = |cell: &ComparedRun| {
            let found = cell.figures.get(self.metric)?;
            let void = if cell.verdict == Verdict::Void { ", void" } else { "" };
            let end = |end: Option<f64>| end.map(|end| self.display_value(end));
            Some(Dot {
                x: f64::from(cell.ask.block) + (f64::from(cell.ask.side) - middle) * APART,
                y: self.display_value(found.value),
                low: end(found.low),
                high: end(found.high),
                note: format!(
                    "{} {}: {}{void}",
                    self.value_unit(),
                    cell.ask.block,
                    self.known.value_text(found.value)
                ),
            })
        };
        let one = |side: u32| {
            ChartSeries::new(
                side_label(self.comparison, side),
                Shape::Points,
                side as usize,
                self.runs_of_side(side).filter_map(dot).collect(),
            )
        };
        let series: Vec<ChartSeries> = self.all_sides().map(one).collect();
        let unit = if self.known.unit.is_empty() { "%" } else { &self.known.unit };
        Chart::new(name, format!("Each side, {} by {}", self.value_unit(), self.value_unit()))
            .with_caption(self.ranges_text(&series))
            .with_axes(self.block_axis(), ChartAxis::between(unit))
            .with_series(series)
    }

    /// `A 98.00 to 103.2 in 8 blocks`
    fn ranges_text(&self, series: &[ChartSeries]) -> String {
        let back = if self.known.scale == MetricScale::Difference { 0.01 } else { 1.0 };
        let one = |series: &ChartSeries| {
            let values = || series.dots.iter().map(|dot| dot.y * back).filter(|v| v.is_finite());
            let (low, high) = (values().min_by(f64::total_cmp)?, values().max_by(f64::total_cmp)?);
            let n = count_text(series.dots.len() as u32, self.value_unit());
            let (low, high) = (self.known.value_text(low), self.known.value_text(high));
            Some(format!("{} from {low} to {high} in {n}", series.name))
        };
        let all: Vec<String> = series.iter().filter_map(one).collect();
        let ends = "bars are each run's own 95 % interval";
        let has_ends = series.iter().flat_map(|one| &one.dots).any(|dot| dot.low.is_some());
        format!("{}{}.", all.join("; "), if has_ends { format!("; {ends}") } else { String::new() })
    }

    /// The change of each candidate in each block, and over all of them.
    fn changes_chart(&self, name: &'static str) -> Chart {
        let is_own = |one: &&Finding| one.metric == self.metric && one.level == self.place;
        let findings: Vec<&Finding> =
            self.comparison.findings.iter().filter(is_own).filter(|one| one.is_tested).collect();
        let mut series = Vec::new();
        let mut said = Vec::new();
        for finding in findings.iter().filter(|_| self.comparison.is_paired) {
            let dots = self.change_dots(finding.side);
            if dots.is_empty() {
                continue;
            }
            let (first, last) = (1.0, dots.iter().map(|dot| dot.x).fold(1.0, f64::max));
            let percent = |end: Option<f64>| end.map(|end| end * 100.0);
            let all = |x: f64| {
                let dot = Dot::new(x, finding.change * 100.0);
                dot.with_interval(percent(finding.low), percent(finding.high))
            };
            let name = side_label(self.comparison, finding.side);
            let tone = finding.side as usize;
            said.push(format!("{name} {}", self.known.change_with_interval(finding)));
            let overall = ChartSeries::new(
                format!("{name}, all blocks"),
                Shape::Line,
                tone,
                vec![all(first - 0.4), all(last + 0.4)],
            );
            series.push(overall);
            series.push(ChartSeries::new(name, Shape::Marks, tone, dots));
        }
        let ends = |dots: &[ChartSeries]| {
            let all = || dots.iter().flat_map(|one| one.dots.iter().map(|dot| dot.x));
            all().min_by(f64::total_cmp).zip(all().max_by(f64::total_cmp))
        };
        if let Some((from, to)) = ends(&series) {
            let dots = vec![Dot::new(from, 0.0), Dot::new(to, 0.0)];
            let name = "no change".to_owned();
            series.push(ChartSeries::new(name, Shape::Line, PLAIN, dots));
        }
        let rules = findings.first().map_or_else(Vec::new, |one| self.margin_rules(one));
        Chart::new(
            name,
            format!("Change against {}, block by block", side_label(self.comparison, 0)),
        )
        .with_caption(format!("Over all blocks: {}.", said.join("; ")))
        .with_axes(self.block_axis(), self.change_unit())
        .with_series(series)
        .with_rules(rules)
    }

    fn change_unit(&self) -> &'static str {
        if self.known.scale == MetricScale::Ratio { "change, %" } else { "change, points" }
    }

    fn margin_rules(&self, finding: &Finding) -> Vec<Rule> {
        let (low, high) = margin_percent(finding, &self.known);
        let one = |value: f64| Rule::Height(value, format!("margin {value:+.1}"));
        [low, high].into_iter().filter(|end| end.is_finite()).map(one).collect()
    }

    /// The change in each block that has both, and where neither is void.
    fn change_dots(&self, side: u32) -> Vec<Dot> {
        let value = |cell: &ComparedRun| {
            let found = cell.figures.get(self.metric).map(|figure| figure.value);
            found.filter(|value| value.is_finite() && cell.verdict != Verdict::Void)
        };
        let dot = |cell: &ComparedRun| {
            let block = cell.ask.block;
            let other = self.runs_of_side(0).find(|other| other.ask.block == block)?;
            let (reference, candidate) = (value(other)?, value(cell)?);
            let change = match self.known.scale {
                MetricScale::Ratio if reference > 0.0 => candidate / reference - 1.0,
                MetricScale::Ratio => return None,
                MetricScale::Difference => candidate - reference,
            };
            let note = format!(
                "block {block}: {} ({} against {})",
                self.known.change_text(change),
                self.known.value_text(candidate),
                self.known.value_text(reference)
            );
            Some(Dot::with_note(f64::from(block), change * 100.0, note))
        };
        self.runs_of_side(side).filter_map(dot).collect()
    }
}
