//! The counts of all points between limits that they have in common.

use std::collections::BTreeMap;

use goodput_stats::SloGrid;
use serde::Serialize;

use super::{Answer, Asked, USUAL};
use goodput_model::plain;

/// Cells of a page at most. Beyond it stops are left out; what is counted for the others stays exact.
const MOST: usize = 50_000;

/// Everything that the script computes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Counts {
    /// Limits of TTFT that can be chosen, in milliseconds, ascending.
    pub(super) ttft: Vec<f64>,
    /// The same of TPOT.
    pub(super) tpot: Vec<f64>,
    /// Where the sliders stand at first.
    pub(super) start: Start,
    pub(super) gpus: Option<u32>,
    /// What the page says about the limits at the start.
    pub(super) answer: Option<Told>,
    /// Loads, ascending.
    pub(super) points: Vec<Load>,
}

/// The page's own answer, and the place of its load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Told {
    pub(super) row: Option<usize>,
    pub(super) text: String,
}

/// Places of the limits at first, and the share of good requests, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Start {
    pub(super) ttft: usize,
    pub(super) tpot: usize,
    pub(super) percent: f64,
}

/// What was measured at one load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Load {
    pub(super) label: String,
    pub(super) requests: u64,
    pub(super) seconds: f64,
    /// Four numbers for each cell that is not empty: the places of the smallest limits of TTFT and of
    /// TPOT that its requests keep, how many they are, and their output tokens.
    pub(super) cells: Vec<u64>,
}

/// What keeps a pair of limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Kept {
    pub(super) requests: u64,
    pub(super) good: u64,
    pub(super) tokens: u64,
    pub(super) seconds: f64,
    pub(super) is_enough: bool,
}

impl Kept {
    pub(super) fn share(&self) -> f64 {
        self.good as f64 / self.requests.max(1) as f64
    }

    pub(super) fn good_rps(&self) -> f64 {
        self.good as f64 / self.seconds
    }

    pub(super) fn good_tps(&self) -> f64 {
        self.tokens as f64 / self.seconds
    }
}

impl Counts {
    /// None where nothing was counted.
    pub(super) fn of(
        points: &[(f64, String, &SloGrid)],
        gpus: Option<u32>,
        asked: Asked,
        answer: Option<&Answer>,
    ) -> Option<Self> {
        let mut loads: Vec<(f64, &str, Vec<&SloGrid>)> = Vec::new();
        let is_counted =
            |grid: &SloGrid| grid.requests > 0 && grid.window_s.is_finite() && grid.window_s > 0.0;
        for (level, label, grid) in points.iter().filter(|(_, _, grid)| is_counted(grid)) {
            // Names are rounded: two loads may have the same.
            match loads.iter_mut().find(|(known, _, _)| known.total_cmp(level).is_eq()) {
                Some((_, _, together)) => together.push(grid),
                None => loads.push((*level, label, vec![grid])),
            }
        }
        let grids: Vec<&SloGrid> = loads.iter().flat_map(|(_, _, grids)| grids.clone()).collect();
        let mut ttft = stops(&grids, |grid| &grid.ttft_ms, |cell| cell.0);
        let mut tpot = stops(&grids, |grid| &grid.tpot_ms, |cell| cell.1);
        let points = loop {
            if ttft.is_empty() || tpot.is_empty() {
                return None;
            }
            let load = |(_, label, grids): &(f64, &str, Vec<&SloGrid>)| Load {
                label: plain(label),
                requests: grids.iter().map(|grid| grid.requests).sum(),
                seconds: grids.iter().map(|grid| grid.window_s).sum(),
                cells: cells(grids, &ttft, &tpot),
            };
            let points: Vec<Load> = loads.iter().map(load).collect();
            let all: usize = points.iter().map(|load| load.cells.len() / 4).sum();
            if all <= MOST || ttft.len().max(tpot.len()) <= 2 {
                break points;
            }
            ttft = thinned(ttft, asked.ttft_ms);
            tpot = thinned(tpot, asked.tpot_ms);
        };
        let start = Start {
            ttft: place(&ttft, asked.ttft_ms),
            tpot: place(&tpot, asked.tpot_ms),
            percent: asked.percent.filter(|it| (0.0..=100.0).contains(it)).unwrap_or(USUAL),
        };
        let row = |level: f64| {
            // The answer is written by another hand than the loads.
            loads.iter().position(|(load, _, _)| (load - level).abs() <= 1e-6 * level.abs())
        };
        let answer = answer
            .map(|answer| Told { row: answer.level.and_then(row), text: plain(&answer.text) });
        Some(Self { ttft, tpot, start, gpus: gpus.filter(|gpus| *gpus > 0), answer, points })
    }

    /// What keeps the limits at the start.
    pub(super) fn kept(&self, load: &Load) -> Kept {
        let (mut good, mut tokens) = (0, 0);
        for cell in load.cells.chunks_exact(4) {
            let [ttft, tpot, n, sum] = [cell[0], cell[1], cell[2], cell[3]];
            if ttft <= self.start.ttft as u64 && tpot <= self.start.tpot as u64 {
                (good, tokens) = (good + n, tokens + sum);
            }
        }
        // A percentage has digits that binary fractions miss.
        let wanted = self.start.percent * load.requests as f64 * (1.0 - 1e-12);
        Kept {
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
fn stops<'a>(
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
fn cells(grids: &[&SloGrid], ttft: &[f64], tpot: &[f64]) -> Vec<u64> {
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
fn thinned(stops: Vec<f64>, asked: Option<f64>) -> Vec<f64> {
    let last = stops.len().saturating_sub(1);
    let stays = |(place, stop): &(usize, f64)| {
        place % 2 == 0 || *place == last || asked.is_some_and(|asked| asked == *stop)
    };
    stops.into_iter().enumerate().filter(stays).map(|(_, stop)| stop).collect()
}

/// The place of the largest limit that is not above this one; the last without one.
fn place(stops: &[f64], asked: Option<f64>) -> usize {
    let after = asked.map_or(stops.len(), |asked| stops.partition_point(|stop| *stop <= asked));
    after.saturating_sub(1)
}
