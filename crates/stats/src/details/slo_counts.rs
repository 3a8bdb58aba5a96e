//! The counts of several grids between limits that all of them know.

use std::collections::BTreeMap;

use goodput_model::{MetricName, Slo, SloMetric, SloStatistic, escape_control};
use serde::Serialize;

use super::SloGrid;
use crate::summary::SloSummary;

/// The share of good requests where none was asked for, in percent.
const USUAL: f64 = 99.0;

/// Cells of a page at most. Beyond it stops are left out; what is counted for the others stays exact.
const MOST: usize = 50_000;

/// Limits that were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SloLimits {
    /// Limit of TTFT in milliseconds; none if there is none, or it grows with the prompt.
    pub ttft_ms: Option<f64>,
    /// The same of TPOT.
    pub tpot_ms: Option<f64>,
    /// The share of requests that must be good, in percent.
    pub percent: Option<f64>,
}

impl SloLimits {
    /// What was promised, and the share that must keep it, where one was asked for.
    pub fn from_slo(slo: Option<&Slo>, share: Option<f64>) -> Self {
        let limit = |metric| {
            let limit = slo?.limit_on(metric)?;
            (!limit.is_linear()).then_some(limit.base)
        };
        let strictest = slo.and_then(|slo| {
            let terms = slo.terms.iter().filter(|term| {
                let [ttft, tpot] = [MetricName::Ttft, MetricName::Tpot].map(SloMetric::Request);
                term.metric == ttft || term.metric == tpot
            });
            let percents = terms.filter_map(|term| match term.statistic {
                SloStatistic::Percentile(percent) => Some(percent),
                _ => None,
            });
            percents.max_by(f64::total_cmp)
        });
        Self {
            ttft_ms: limit(MetricName::Ttft),
            tpot_ms: limit(MetricName::Tpot),
            percent: share.map(|share| share * 100.0).or(strictest),
        }
    }

    /// The same of a run, from what its summary says about its SLO.
    pub fn from_summary(slo: Option<&SloSummary>) -> Self {
        let promised = slo.and_then(|slo| slo.slo.parse::<Slo>().ok());
        Self::from_slo(promised.as_ref(), slo.and_then(|slo| slo.target))
    }
}

/// What a page says about the limits that were asked for, and the load that it stands at.
#[derive(Debug, Clone, PartialEq)]
pub struct StatedAnswer {
    /// The load; none if the answer names none.
    pub level: Option<f64>,
    /// In words.
    pub text: String,
}

/// The grid of a run at its load.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadGrid<'a> {
    /// The load.
    pub level: f64,
    /// Its name.
    pub label: String,
    /// What was counted.
    pub grid: &'a SloGrid,
}

/// Counts of several loads. Any of its limits can be chosen, and what is counted for it is exact.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SloCounts {
    /// Limits of TTFT that can be chosen, in milliseconds, ascending.
    pub ttft: Vec<f64>,
    /// The same of TPOT.
    pub tpot: Vec<f64>,
    /// Where the sliders stand at first.
    pub start: SloStart,
    /// GPUs behind all of it.
    pub gpus: Option<u32>,
    /// What the page says about the limits at the start.
    pub answer: Option<SloAnswer>,
    /// Loads, ascending.
    pub points: Vec<SloLoad>,
}

/// The page's own answer, and the place of its load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SloAnswer {
    /// The place of its load among the points.
    pub row: Option<usize>,
    /// In words.
    pub text: String,
}

/// Places of the limits at first, and the share of good requests, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SloStart {
    /// Place of the limit of TTFT.
    pub ttft: usize,
    /// Place of the limit of TPOT.
    pub tpot: usize,
    /// The share of requests that must be good.
    pub percent: f64,
}

/// What was measured at one load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SloLoad {
    /// Its name.
    pub label: String,
    /// Measured requests.
    pub requests: u64,
    /// The time that they stand for.
    pub seconds: f64,
    /// Four numbers for each cell that is not empty: the places of the smallest limits of TTFT and of
    /// TPOT that its requests keep, how many they are, and their output tokens.
    pub cells: Vec<u64>,
}

/// What keeps a pair of limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitTally {
    /// Measured requests.
    pub requests: u64,
    /// Those that keep both limits.
    pub good: u64,
    /// Their output tokens.
    pub tokens: u64,
    /// The time that all stand for.
    pub seconds: f64,
    /// Whether as many are good as must be.
    pub is_enough: bool,
}

impl LimitTally {
    /// Share of the good ones.
    pub fn good_share(&self) -> f64 {
        self.good as f64 / self.requests.max(1) as f64
    }

    /// Good requests per second.
    pub fn good_rps(&self) -> f64 {
        self.good as f64 / self.seconds
    }

    /// Output tokens of good requests per second.
    pub fn good_tps(&self) -> f64 {
        self.tokens as f64 / self.seconds
    }
}

impl SloCounts {
    /// None if nothing was counted.
    pub fn new(
        points: &[LoadGrid<'_>],
        gpus: Option<u32>,
        asked: SloLimits,
        answer: Option<&StatedAnswer>,
    ) -> Option<Self> {
        let mut loads: Vec<(f64, &str, Vec<&SloGrid>)> = Vec::new();
        let is_counted =
            |grid: &SloGrid| grid.requests > 0 && grid.window_s.is_finite() && grid.window_s > 0.0;
        for LoadGrid { level, label, grid } in points.iter().filter(|load| is_counted(load.grid)) {
            // Names are rounded: two loads may have the same.
            match loads.iter_mut().find(|(known, _, _)| known.total_cmp(level).is_eq()) {
                Some((_, _, together)) => together.push(grid),
                None => loads.push((*level, label, vec![grid])),
            }
        }
        let grids: Vec<&SloGrid> = loads.iter().flat_map(|(_, _, grids)| grids.clone()).collect();
        let mut ttft = limit_stops(&grids, |grid| &grid.ttft_ms, |cell| cell.0);
        let mut tpot = limit_stops(&grids, |grid| &grid.tpot_ms, |cell| cell.1);
        let points = loop {
            if ttft.is_empty() || tpot.is_empty() {
                return None;
            }
            let load = |(_, label, grids): &(f64, &str, Vec<&SloGrid>)| SloLoad {
                label: escape_control(label),
                requests: grids.iter().map(|grid| grid.requests).sum(),
                seconds: grids.iter().map(|grid| grid.window_s).sum(),
                cells: sum_cells(grids, &ttft, &tpot),
            };
            let points: Vec<SloLoad> = loads.iter().map(load).collect();
            let all: usize = points.iter().map(|load| load.cells.len() / 4).sum();
            if all <= MOST || ttft.len().max(tpot.len()) <= 2 {
                break points;
            }
            ttft = thin_stops(ttft, asked.ttft_ms);
            tpot = thin_stops(tpot, asked.tpot_ms);
        };
        let start = SloStart {
            ttft: stop_index(&ttft, asked.ttft_ms),
            tpot: stop_index(&tpot, asked.tpot_ms),
            percent: asked.percent.filter(|it| (0.0..=100.0).contains(it)).unwrap_or(USUAL),
        };
        let row = |level: f64| {
            // The answer is written by another hand than the loads.
            loads.iter().position(|(load, _, _)| (load - level).abs() <= 1e-6 * level.abs())
        };
        let answer = answer.map(|answer| SloAnswer {
            row: answer.level.and_then(row),
            text: escape_control(&answer.text),
        });
        Some(Self { ttft, tpot, start, gpus: gpus.filter(|gpus| *gpus > 0), answer, points })
    }

    /// What keeps the limits at the start.
    pub fn tally_at_start(&self, load: &SloLoad) -> LimitTally {
        let (mut good, mut tokens) = (0, 0);
        for cell in load.cells.chunks_exact(4) {
            let [ttft, tpot, n, sum] = [cell[0], cell[1], cell[2], cell[3]];
            if ttft <= self.start.ttft as u64 && tpot <= self.start.tpot as u64 {
                (good, tokens) = (good + n, tokens + sum);
            }
        }
        // A percentage has digits that binary fractions miss.
        let wanted = self.start.percent * load.requests as f64 * (1.0 - 1e-12);
        LimitTally {
            requests: load.requests,
            good,
            tokens,
            seconds: load.seconds,
            is_enough: good as f64 * 100.0 >= wanted,
        }
    }
}

type Cell = (u16, u16, u64, u64);

/// Limits for which every grid has an exact count: an edge of it, or one with no request between the
/// edges around it.
fn limit_stops<'a>(
    grids: &[&'a SloGrid],
    edges: fn(&'a SloGrid) -> &'a Vec<f64>,
    place: fn(&Cell) -> u16,
) -> Vec<f64> {
    let mut all: Vec<f64> = grids.iter().flat_map(|grid| edges(grid)).copied().collect();
    all.retain(|edge| edge.is_finite());
    all.sort_by(f64::total_cmp);
    all.dedup();
    let taken: Vec<Vec<u16>> = grids
        .iter()
        .map(|grid| {
            let mut taken: Vec<u16> = grid.cells.iter().map(place).collect();
            taken.sort_unstable();
            taken.dedup();
            taken
        })
        .collect();
    all.retain(|stop| {
        grids.iter().zip(&taken).all(|(grid, taken)| {
            let at = edges(grid).partition_point(|edge| edge < stop);
            edges(grid).get(at) == Some(stop) || taken.binary_search(&(at as u16)).is_err()
        })
    });
    all
}

/// The cells of these grids together, between these limits.
fn sum_cells(grids: &[&SloGrid], ttft: &[f64], tpot: &[f64]) -> Vec<u64> {
    // The first limit that what keeps this edge keeps too.
    let moved = |edges: &[f64], at: u16, stops: &[f64]| match edges.get(usize::from(at)) {
        Some(edge) => stops.partition_point(|stop| stop < edge),
        None => stops.len(),
    };
    let mut sums: BTreeMap<(usize, usize), (u64, u64)> = BTreeMap::new();
    for grid in grids {
        for (row, column, n, tokens) in &grid.cells {
            let at = (moved(&grid.ttft_ms, *row, ttft), moved(&grid.tpot_ms, *column, tpot));
            let sum = sums.entry(at).or_default();
            *sum = (sum.0.saturating_add(*n), sum.1.saturating_add(*tokens));
        }
    }
    let flat = |((row, column), (n, tokens)): ((usize, usize), (u64, u64))| {
        [row as u64, column as u64, n, tokens]
    };
    sums.into_iter().flat_map(flat).collect()
}

/// Every second stop, the one that was asked for, and the last.
fn thin_stops(stops: Vec<f64>, asked: Option<f64>) -> Vec<f64> {
    let last = stops.len().saturating_sub(1);
    let stays = |(place, stop): &(usize, f64)| {
        place % 2 == 0 || *place == last || asked.is_some_and(|asked| asked == *stop)
    };
    stops.into_iter().enumerate().filter(stays).map(|(_, stop)| stop).collect()
}

/// The place of the largest limit that is not above this one; the last without one.
fn stop_index(stops: &[f64], asked: Option<f64>) -> usize {
    let after = asked.map_or(stops.len(), |asked| stops.partition_point(|stop| *stop <= asked));
    after.saturating_sub(1)
}
