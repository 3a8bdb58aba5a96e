//! What to expect at a rate: from the measured points, and never beyond them in silence.

use serde::{Deserialize, Serialize};

use super::MeasuredLevel;
use crate::sweep::Bounded;

/// Rates this close are one level.
const SAME: f64 = 0.005;

/// What an expectation rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Footing {
    /// Points at exactly this rate.
    Measured,
    /// A straight line between the nearest points.
    Interpolated,
    /// The lowest point: less load than was measured is expected to be no slower.
    BelowMeasured,
    /// Nothing was measured there: only tokens per request are given, of the highest point.
    AboveMeasured,
    /// No points.
    Nothing,
}

/// What one replica does at a rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// Which rate this is: `confirmed`, `target`, `one lost`.
    pub about: String,
    /// Requests per second of the replica.
    pub at_rps: f64,
    /// What it rests on.
    pub footing: Footing,
    /// Rates of the points that it rests on.
    pub points_rps: Vec<f64>,
    /// Figures that some of the runs at this rate lack: they are means over the other runs.
    #[serde(default)]
    pub partial: Vec<String>,
    /// Milliseconds.
    pub ttft_p50_ms: Option<f64>,
    /// Milliseconds.
    pub ttft_p99_ms: Option<f64>,
    /// Milliseconds.
    pub tpot_p50_ms: Option<f64>,
    /// Milliseconds.
    pub tpot_p99_ms: Option<f64>,
    /// Milliseconds.
    pub e2e_p50_ms: Option<f64>,
    /// Milliseconds.
    pub e2e_p90_ms: Option<f64>,
    /// Milliseconds.
    pub e2e_p99_ms: Option<f64>,
    /// Tokens of a prompt.
    pub input_tokens: Option<f64>,
    /// Tokens of an answer.
    pub output_tokens: Option<f64>,
    /// Output tokens of good requests per output token.
    pub good_share: Option<f64>,
    /// Power of the replica's GPUs, in watts; with less load than was measured, no more than there.
    pub gpu_power_w: Option<f64>,
}

impl Expected {
    /// Whether it says anything about latency.
    pub fn has_latency(&self) -> bool {
        self.ttft_p50_ms.is_some() || self.tpot_p50_ms.is_some() || self.e2e_p50_ms.is_some()
    }
}

/// The figures that are interpolated, in the order of [`Expected`].
type Row = [Option<f64>; 11];

fn level_row(level: &MeasuredLevel) -> Row {
    let figures = &level.figures;
    let value = |bounded: Option<Bounded>| bounded.map(|bounded| bounded.value);
    let good = figures.goodput_output_tps.zip(figures.output_tps.filter(|rate| *rate > 0.0));
    [
        value(figures.ttft_ms.p50),
        value(figures.ttft_ms.p99),
        value(figures.tpot_ms.p50),
        value(figures.tpot_ms.p99),
        value(figures.e2e_ms.p50),
        value(figures.e2e_ms.p90),
        value(figures.e2e_ms.p99),
        figures.input_tokens,
        figures.output_tokens,
        // The two are counted over slightly different requests.
        good.map(|(good, all)| (good / all).min(1.0)),
        figures.gpu_power_w,
    ]
    .map(|value| value.filter(|value| value.is_finite()))
}

/// One level of all points at about one rate: their means, each point by its requests.
struct MergedLevel {
    rps: f64,
    row: Row,
    /// Figures that some of the points do not have.
    partial: Vec<String>,
}

/// Names of the first figures of a row.
const LATENCIES: [&str; 7] =
    ["TTFT p50", "TTFT p99", "TPOT p50", "TPOT p99", "E2E p50", "E2E p90", "E2E p99"];

fn merge_levels(levels: &[MeasuredLevel]) -> Vec<MergedLevel> {
    let mut groups: Vec<Vec<&MeasuredLevel>> = Vec::new();
    let mut sorted: Vec<&MeasuredLevel> = levels.iter().collect();
    sorted.sort_by(|a, b| a.rps.total_cmp(&b.rps));
    for level in sorted {
        let first = groups.last().and_then(|group| group.first()).map(|first| first.rps);
        match groups.last_mut() {
            Some(group) if first.is_some_and(|first| is_same_rate(first, level.rps)) => {
                group.push(level);
            }
            _ => groups.push(vec![level]),
        }
    }
    groups.iter().map(|group| merge_level_group(group)).collect()
}

fn merge_level_group(group: &[&MeasuredLevel]) -> MergedLevel {
    let rows: Vec<(f64, f64, Row)> = group
        .iter()
        .map(|level| (level.figures.ok.max(1) as f64, level.rps, level_row(level)))
        .collect();
    let weights: f64 = rows.iter().map(|(weight, ..)| weight).sum();
    let rps = rows.iter().map(|(weight, rps, _)| weight * rps).sum::<f64>() / weights;
    let mut out: Row = [None; 11];
    for (place, slot) in out.iter_mut().enumerate() {
        let known = rows.iter().filter_map(|(weight, _, row)| {
            row.get(place).copied().flatten().map(|value| (weight, value))
        });
        let (sum, weight) = known.fold((0.0, 0.0), |(sum, total), (weight, value)| {
            (sum + weight * value, total + weight)
        });
        *slot = (weight > 0.0).then(|| sum / weight);
    }
    let lacks = |place: usize| {
        rows.iter().filter(|(_, _, row)| row.get(place).copied().flatten().is_none()).count()
    };
    let is_partial = |place: usize| (1..rows.len()).contains(&lacks(place));
    let partial = LATENCIES.iter().enumerate().filter(|(place, _)| is_partial(*place));
    let partial = partial.map(|(_, name)| (*name).to_owned()).collect();
    MergedLevel { rps, row: out, partial }
}

fn is_same_rate(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME * a.abs().max(b.abs())
}

/// What one replica does at this rate.
pub fn expect_at(levels: &[MeasuredLevel], rps: f64, about: &str) -> Expected {
    let merged = merge_levels(levels);
    let exact = merged.iter().find(|level| is_same_rate(level.rps, rps));
    let below = merged.iter().rfind(|level| level.rps < rps);
    let above = merged.iter().find(|level| level.rps > rps);
    let (footing, points, row) = match (exact, below, above) {
        (Some(exact), ..) => (Footing::Measured, vec![exact.rps], exact.row),
        (None, Some(low), Some(high)) => {
            let share = (rps - low.rps) / (high.rps - low.rps);
            (
                Footing::Interpolated,
                vec![low.rps, high.rps],
                interpolate_rows(&low.row, &high.row, share),
            )
        }
        (None, None, Some(lowest)) => (Footing::BelowMeasured, vec![lowest.rps], lowest.row),
        (None, Some(highest), None) => {
            let [.., input, output, _, _] = highest.row;
            let row = [None, None, None, None, None, None, None, input, output, None, None];
            (Footing::AboveMeasured, vec![highest.rps], row)
        }
        (None, None, None) => (Footing::Nothing, Vec::new(), [None; 11]),
    };
    let [ttft50, ttft99, tpot50, tpot99, e2e50, e2e90, e2e99, input, output, good, power] = row;
    Expected {
        about: about.to_owned(),
        at_rps: rps,
        footing,
        partial: exact.map_or_else(Vec::new, |exact| exact.partial.clone()),
        points_rps: points,
        ttft_p50_ms: ttft50,
        ttft_p99_ms: ttft99,
        tpot_p50_ms: tpot50,
        tpot_p99_ms: tpot99,
        e2e_p50_ms: e2e50,
        e2e_p90_ms: e2e90,
        e2e_p99_ms: e2e99,
        input_tokens: input,
        output_tokens: output,
        good_share: good,
        gpu_power_w: power,
    }
}

fn interpolate_rows(low: &Row, high: &Row, share: f64) -> Row {
    let mut out: Row = [None; 11];
    for ((slot, low), high) in out.iter_mut().zip(low).zip(high) {
        *slot = low.zip(*high).map(|(low, high)| low + (high - low) * share);
    }
    out
}
