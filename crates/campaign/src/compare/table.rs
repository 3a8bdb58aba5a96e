//! All axes of all sides in one table, so that no trade-off hides.

use super::blocks::{Blocks, center_of_values, level_count};
use super::{AxisRow, ComparedRun, Design, LevelComparison, Side, find_metric};

/// The order of the table.
const AXES: [&str; 25] = [
    "requests_per_s",
    "output_tokens_per_s",
    "output_tokens_per_s_per_gpu",
    "total_tokens_per_s",
    "total_tokens_per_s_per_gpu",
    "recounted_tokens_per_s",
    "characters_per_s",
    "ttft_mean",
    "ttft_p50",
    "ttft_p90",
    "ttft_p99",
    "ttft_p99_over_p50",
    "tpot_p50",
    "tpot_p99",
    "itl_p99",
    "e2e_p50",
    "e2e_p99",
    "goodput_rps",
    "goodput_rps_per_gpu",
    "attainment",
    "error_share",
    "cost_per_million_output_tokens",
    "cost_per_million_total_tokens",
    "cost_per_million_good_tokens",
    "joules_per_output_token",
];

/// What the cost of a million of them is called.
const COSTS: [(&str, &str, &str); 3] = [
    ("cost_per_million_output_tokens", "output_tokens_per_s", "cost of 1M output tokens"),
    ("cost_per_million_total_tokens", "total_tokens_per_s", "cost of 1M tokens, input and output"),
    (
        "cost_per_million_good_tokens",
        "goodput_tokens_per_s",
        "cost of 1M output tokens of good requests",
    ),
];

/// The table of each level, from the runs of complete blocks.
pub(crate) fn paired_table(
    design: &Design,
    sides: &[Side],
    done: &[ComparedRun],
) -> Vec<LevelComparison> {
    let blocks = Blocks::new(design, done);
    let runs = |level: u32| -> Vec<Vec<&ComparedRun>> {
        (0u32..).zip(sides).map(|(side, _)| blocks.runs_of_side(level, side).collect()).collect()
    };
    (0..level_count(design)).map(|level| level_table(design, level, sides, &runs(level))).collect()
}

/// The table of one level; `runs` are those of each side.
pub(super) fn level_table(
    design: &Design,
    level: u32,
    sides: &[Side],
    runs: &[Vec<&ComparedRun>],
) -> LevelComparison {
    let row = |figure: &&str| {
        let value = |(side, runs): (&Side, &Vec<&ComparedRun>)| side_value(figure, side, runs);
        let values: Vec<Option<f64>> = sides.iter().zip(runs).map(value).collect();
        let (title, unit) = title_and_unit(figure)?;
        let row = AxisRow { figure: (*figure).to_owned(), title, unit, values };
        row.values.iter().any(Option::is_some).then_some(row)
    };
    LevelComparison {
        level: design.levels.get(level as usize).copied(),
        rows: AXES.iter().filter_map(row).collect(),
    }
}

/// Title and unit of a row.
fn title_and_unit(figure: &str) -> Option<(String, String)> {
    if let Some((_, _, title)) = COSTS.iter().find(|cost| cost.0 == figure) {
        return Some(((*title).to_owned(), String::new()));
    }
    let (name, suffix) = match figure.strip_suffix("_per_gpu") {
        Some(name) => (name, " per GPU"),
        None => (figure, ""),
    };
    find_metric(name).map(|metric| (format!("{}{suffix}", metric.title), metric.unit.to_owned()))
}

/// A figure over runs; of a figure per GPU and of costs, what follows from that.
fn side_value(figure: &str, side: &Side, runs: &[&ComparedRun]) -> Option<f64> {
    if let Some((_, rate, _)) = COSTS.iter().find(|cost| cost.0 == figure) {
        let hour = f64::from(side.gpus?) * side.price_per_gpu_hour?;
        let rate = mean_figure(rate, runs)?;
        return (rate > 0.0).then(|| hour / (rate * 3600.0) * 1e6).filter(|cost| cost.is_finite());
    }
    match figure.strip_suffix("_per_gpu") {
        Some(name) => {
            let gpus = side.gpus.filter(|gpus| *gpus > 0)?;
            mean_figure(name, runs).map(|mean| mean / f64::from(gpus))
        }
        None => mean_figure(figure, runs),
    }
}

/// As findings have it: one figure has one value on a page.
fn mean_figure(name: &str, runs: &[&ComparedRun]) -> Option<f64> {
    let values = runs.iter().filter_map(|cell| cell.figures.get(name)).map(|figure| figure.value);
    let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    match find_metric(name) {
        Some(metric) => center_of_values(&metric, values.iter().copied()),
        None => (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64),
    }
}
