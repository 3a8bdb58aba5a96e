//! Levels of all endpoints at one instant after the other.

use std::collections::{BTreeMap, BTreeSet};

use goodput_model::{Nanos, ServerReading, Signal, SignalKind};

use super::looks::{ServerLooks, valid_number};
use crate::sample::Sample;
use crate::summary::LevelSummary;

/// A look counts for this many intervals, as long as no other follows.
const CARRIED: u64 = 3;

/// What all endpoints say together.
#[derive(Debug, Default)]
pub(super) struct CombinedPoint {
    pub(super) at: Nanos,
    /// Gauges; one that an endpoint should tell, and did not of late, is absent.
    pub(super) levels: BTreeMap<Signal, f64>,
    /// The fullest KV cache among the endpoints and their engines.
    pub(super) fullest: Option<f64>,
    /// Totals since the first look.
    pub(super) totals: BTreeMap<Signal, f64>,
}

/// Levels that add up over endpoints; of others the mean is taken.
fn is_additive(signal: Signal) -> bool {
    use Signal::{BatchSize, Replicas, Running, Waiting};
    matches!(signal, Running | Waiting | BatchSize | Replicas)
}

/// The rounds of looks: each endpoint is in each of them once at most.
pub(super) fn combined_points(looks: &ServerLooks<'_>, interval: Nanos) -> Vec<CombinedPoint> {
    let said = looks.readings();
    let mut tellers: BTreeMap<Signal, BTreeSet<u32>> = BTreeMap::new();
    for (_, endpoint, reading) in &said {
        for signal in reading.values.keys() {
            tellers.entry(*signal).or_default().insert(*endpoint);
        }
    }
    let mut state = LastSaid { tellers, last: BTreeMap::new(), totals: BTreeMap::new(), interval };
    let mut points = Vec::new();
    let mut round: Vec<(Nanos, u32)> = Vec::new();
    for (at, endpoint, reading) in said {
        let begun = round.first().map(|(at, _)| *at);
        let is_next = begun.is_some_and(|begun| at - begun > Nanos(interval.0 / 2))
            || round.iter().any(|(_, other)| *other == endpoint);
        if is_next {
            points.extend(round.last().map(|(at, _)| state.combined_point(*at)));
            round.clear();
        }
        round.push((at, endpoint));
        state.add_reading(at, endpoint, reading, looks.is_mixed(endpoint));
    }
    points.extend(round.last().map(|(at, _)| state.combined_point(*at)));
    // Looks before the first request, all at zero, are as good as one.
    let early = points.iter().take_while(|point| point.at == Nanos::ZERO).count();
    points.drain(..early.saturating_sub(1));
    points
}

/// What was last said.
struct LastSaid<'a> {
    /// Who tells of a figure at all.
    tellers: BTreeMap<Signal, BTreeSet<u32>>,
    last: BTreeMap<u32, (Nanos, &'a ServerReading)>,
    totals: BTreeMap<Signal, BTreeMap<u32, f64>>,
    interval: Nanos,
}

impl<'a> LastSaid<'a> {
    fn add_reading(
        &mut self,
        at: Nanos,
        endpoint: u32,
        reading: &'a ServerReading,
        is_mixed: bool,
    ) {
        self.last.insert(endpoint, (at, reading));
        if is_mixed {
            return;
        }
        for (signal, value) in &reading.values {
            if let Some(total) =
                valid_number(value).filter(|_| signal.kind() == SignalKind::Counter)
            {
                self.totals.entry(*signal).or_default().insert(endpoint, total);
            }
        }
    }

    fn combined_point(&self, at: Nanos) -> CombinedPoint {
        let gauges = self.tellers.keys().filter(|signal| signal.kind() == SignalKind::Gauge);
        let levels = gauges
            .filter_map(|signal| Some((*signal, self.combined_level(*signal, at)?)))
            .collect();
        let fullest = self.highest_kv_usage(at);
        let totals = self.totals.iter().map(|(signal, each)| (*signal, each.values().sum()));
        CombinedPoint { at, levels, fullest, totals: totals.collect() }
    }

    /// What each endpoint that tells of it said of late.
    fn recent_values(&self, signal: Signal, at: Nanos) -> impl Iterator<Item = Option<f64>> {
        let oldest = at - Nanos(self.interval.0.saturating_mul(CARRIED));
        let tellers = self.tellers.get(&signal).into_iter().flatten();
        tellers.map(move |endpoint| {
            let (_, reading) = self.last.get(endpoint).filter(|(at, _)| *at >= oldest)?;
            valid_number(reading.values.get(&signal)?)
        })
    }

    fn highest_kv_usage(&self, at: Nanos) -> Option<f64> {
        let engines = self.recent_values(Signal::KvUsageMax, at);
        engines.chain(self.recent_values(Signal::KvUsage, at)).flatten().max_by(f64::total_cmp)
    }

    fn combined_level(&self, signal: Signal, at: Nanos) -> Option<f64> {
        if signal == Signal::KvUsageMax {
            return self.highest_kv_usage(at);
        }
        if is_additive(signal) {
            return self.recent_values(signal, at).sum();
        }
        let known: Vec<f64> = self.recent_values(signal, at).flatten().collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }
}

/// Levels over some points, by name.
pub(super) fn level_summaries<'a>(
    points: impl Iterator<Item = &'a CombinedPoint>,
) -> BTreeMap<String, LevelSummary> {
    let mut samples: BTreeMap<Signal, Sample> = BTreeMap::new();
    for (signal, level) in points.flat_map(|point| &point.levels) {
        samples.entry(*signal).or_default().push(*level);
    }
    let each = samples.into_iter();
    each.filter_map(|(signal, sample)| Some((signal.name().to_owned(), sample.into_level()?)))
        .collect()
}
