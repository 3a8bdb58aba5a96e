//! [`Sample`]: values of one metric, some of which are known only to be larger than anything seen.

mod part;

use std::iter::repeat_n;

use crate::estimate::{
    self, BATCHES, Contention, Effective, Inflation, Memory, Ratio, SLICES, early_stopping_rank,
    minimum_for_estimate, minimum_for_figure,
};
use crate::request::LatencyValue;
use crate::summary::{LevelSummary, Metric, Percentile, Quality, Quick, Spread};
use part::{SlicePart, count_up_to, end_of_values, from_sort_key};

/// What is to be said about a metric.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) percentiles: &'a [f64],
    /// With MLPerf's bound for each.
    pub(crate) early_stopping: bool,
}

impl<'a> Wanted<'a> {
    pub(crate) fn new(percentiles: &'a [f64]) -> Self {
        Self { percentiles, early_stopping: false }
    }
}

/// The values of a metric. All are kept; nothing is binned.
///
/// Values that come with their slice of time tell how dependent they are, and intervals account for
/// it. Those without one are taken for independent.
///
/// A request that failed after some time would have taken longer than that. It counts for every
/// percentile below its time, and for none above it: a server that refuses at once is not slow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// By slice of time; a single one where values have no time.
    parts: Vec<SlicePart>,
    is_batched: bool,
    /// Whether all values have a slice of their own, rather than a batch.
    is_sliced: bool,
    is_sorted: bool,
    /// Whether small values are the bad ones: of a speed.
    low_is_worse: bool,
    memory: Option<Memory>,
    /// The values of all slices in order, where there are few: a rank is then found at once.
    merged: Vec<f64>,
    /// The memory of a wait that these values are made of, and the wait's variance.
    wait: Option<(Memory, f64)>,
    /// Whether these values are waits at a server that makes requests wait for one another.
    contention: Option<Contention>,
}

/// Slices in a batch.
const SLICES_A_BATCH: u16 = SLICES / BATCHES as u16;

/// As many values are kept in order a second time.
const FEW: u64 = 200_000;

/// The mean and its 95 % interval; an end that cannot be trusted is missing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MeanInterval {
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

impl Sample {
    /// Values in order of time, in slices of as equal a number as can be. Infinite ones were never
    /// reached.
    pub fn from_series(values: &[f64]) -> Self {
        let mut sample = Self::default();
        for (index, value) in values.iter().enumerate() {
            let slice = Some((index * usize::from(SLICES) / values.len()) as u16);
            let is_reached = *value != f64::INFINITY;
            sample.push_value(
                slice,
                if is_reached { LatencyValue::Value(*value) } else { LatencyValue::Beyond },
            );
        }
        sample
    }

    /// The same sample of a speed: its bad values are the small ones.
    pub(crate) fn into_speed(self) -> Self {
        Self { low_is_worse: true, ..self }
    }

    /// Adds a value.
    pub fn push(&mut self, value: f64) {
        self.push_in_slice(None, value);
    }

    /// Adds a value that was never reached: the request ran into a time limit first.
    pub fn push_censored(&mut self) {
        self.push_value(None, LatencyValue::Beyond);
    }

    /// Adds a value of this batch of time, one of `0..20`. All values of a sample come with their
    /// batch, or none.
    pub fn push_in(&mut self, value: f64, batch: u8) {
        self.slice_part(Some(first_slice_of_batch(batch))).values.push(value);
    }

    /// Adds a value of this batch that was never reached.
    pub fn push_censored_in(&mut self, batch: u8) {
        self.slice_part(Some(first_slice_of_batch(batch))).censored += 1;
    }

    pub(crate) fn push_in_slice(&mut self, slice: Option<u16>, value: f64) {
        self.push_value(slice, LatencyValue::Value(value));
    }

    /// Takes what a request of this slice of time says.
    pub(crate) fn push_value(&mut self, slice: Option<u16>, seen: LatencyValue) {
        if seen == LatencyValue::Nothing {
            return;
        }
        self.is_sliced |= slice.is_some();
        let part = self.slice_part(slice);
        match seen {
            LatencyValue::Value(value) => part.values.push(value),
            LatencyValue::Beyond => part.censored += 1,
            LatencyValue::FailedAfter(value) => part.failed.push(value),
            LatencyValue::Nothing => {}
        }
    }

    /// Adds values of a batch that has none yet, each with how many there are of it.
    pub(crate) fn push_counted(&mut self, batch: Option<u8>, mut counted: Vec<(f64, u64)>) {
        counted.sort_by(|one, other| one.0.total_cmp(&other.0));
        let part = self.slice_part(batch.map(first_slice_of_batch));
        let mut sum = 0;
        for (value, count) in counted {
            sum += count;
            match (part.values.last(), part.up_to.last_mut()) {
                (Some(last), Some(up_to)) if last.total_cmp(&value).is_eq() => *up_to = sum,
                _ => {
                    part.values.push(value);
                    part.up_to.push(sum);
                }
            }
        }
    }

    fn slice_part(&mut self, slice: Option<u16>) -> &mut SlicePart {
        self.is_sorted = false;
        self.is_batched |= slice.is_some();
        let slice = usize::from(slice.unwrap_or(0).min(SLICES - 1));
        if self.parts.len() <= slice {
            self.parts.resize_with(slice + 1, SlicePart::default);
        }
        &mut self.parts[slice]
    }

    /// What each batch of time has of something, added up over its slices.
    fn sum_by_batch<T: Copy + Default>(
        &self,
        of: impl Fn(&SlicePart) -> T,
        add: impl Fn(T, T) -> T,
    ) -> [T; BATCHES as usize] {
        let mut batches = [T::default(); BATCHES as usize];
        for (slice, part) in self.parts.iter().enumerate() {
            if let Some(batch) = batches.get_mut(slice / usize::from(SLICES_A_BATCH)) {
                *batch = add(*batch, of(part));
            }
        }
        batches
    }

    /// Number of values, censored ones included.
    pub fn len(&self) -> u64 {
        self.parts.iter().map(SlicePart::len).sum()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn censored_count(&self) -> u64 {
        self.parts.iter().map(|part| part.censored).sum()
    }

    /// Number of values that were reached.
    fn reached_count(&self) -> u64 {
        self.parts.iter().map(SlicePart::reached_count).sum()
    }

    /// Sorts the values, once, before quantiles are asked for.
    pub(crate) fn sort(&mut self) {
        if !self.is_sorted {
            // Stable, not for its own sake: it finds out what is in order already. What is counted is.
            let plain = self.parts.iter_mut().filter(|part| part.up_to.is_empty());
            plain.for_each(|part| part.values.sort_by(f64::total_cmp));
            self.parts.iter_mut().for_each(|part| part.failed.sort_by(f64::total_cmp));
            self.merged = if self.parts.len() > 1 && self.reached_count() <= FEW {
                self.some_sorted(FEW as usize)
            } else {
                Vec::new()
            };
            self.is_sorted = true;
            self.memory = self.is_sliced.then(|| self.measure_memory());
        }
    }

    /// How much its requests remember of each other; of sorted values.
    fn measure_memory(&self) -> Memory {
        let n = self.reached_count();
        let Some((mean, deviation)) = self.mean().zip(self.standard_deviation()) else {
            return Memory::none(n);
        };
        let values = self.inflation_of(SlicePart::sum, deviation * deviation);
        let beyond = |percent: f64| {
            let at = self.at_rank(((n as f64 * percent / 100.0).ceil() as u64).max(1));
            let count = |part: &SlicePart| {
                at.map_or(0, |at| part.count_before(end_of_values(part, at))) as f64
            };
            let share = self.parts.iter().map(&count).sum::<f64>() / n as f64;
            self.inflation_of(count, share * (1.0 - share))
        };
        let tail = if self.low_is_worse { 10.0 } else { 90.0 };
        let spread = deviation / mean.abs().max(f64::MIN_POSITIVE);
        let memory = Memory::new(n, spread, [values, beyond(50.0), beyond(tail)])
            .with_contention(self.contention);
        match self.wait {
            Some((wait, variance)) if deviation > 0.0 => {
                let own = deviation * deviation;
                memory.with_wait(wait, (variance / own).min(1.0), own)
            }
            _ => memory,
        }
    }

    /// How much more a sum over values that were reached varies than that of independent ones with
    /// this variance.
    fn inflation_of(&self, sum: impl Fn(&SlicePart) -> f64, variance: f64) -> Inflation {
        let sums: Vec<f64> = self.parts.iter().map(sum).collect();
        let n = self.reached_count() as f64;
        let mean = sums.iter().sum::<f64>() / n;
        let sizes = self.parts.iter().map(|part| part.reached_count() as f64);
        let deviations: Vec<f64> =
            sums.iter().zip(sizes).map(|(sum, size)| sum - mean * size).collect();
        Inflation::from_deviations(&deviations, n * variance)
    }

    /// How much its requests remember of each other, and the variance of its values; of sorted ones.
    pub(crate) fn memory(&self) -> Memory {
        self.memory.unwrap_or_else(|| Memory::none(self.len()))
    }

    /// Says that its values are waits at such a server.
    pub(crate) fn set_contention(&mut self, contention: Option<Contention>) {
        self.contention = contention;
        self.is_sorted = false;
    }

    /// Says that its values are made of a wait: what that one remembers, they do in part.
    pub(crate) fn add_wait_memory(&mut self, wait: &Self) {
        let variance = wait.standard_deviation().map(|deviation| deviation * deviation);
        self.wait = wait.memory.zip(variance);
        self.is_sorted = false;
    }

    /// The value of this rank (from 1) of sorted values; none beyond the last that was reached.
    fn at_rank(&self, rank: u64) -> Option<f64> {
        if let [part] = self.parts.as_slice() {
            return part.at_rank(rank);
        }
        if !self.merged.is_empty() {
            return self.merged.get(usize::try_from(rank).ok()?.checked_sub(1)?).copied();
        }
        if rank == 0 || rank > self.reached_count() {
            return None;
        }
        // Halving the range of all numbers takes 64 steps, whatever the values are; merging the
        // parts would take as many as there are values.
        let (mut from, mut to) = (0, u64::MAX);
        while from < to {
            let middle = u64::midpoint(from, to);
            let counts = self.parts.iter().map(|part| count_up_to(part, middle));
            if counts.sum::<u64>() >= rank { to = middle } else { from = middle + 1 }
        }
        Some(from_sort_key(from))
    }

    /// The values that were reached in order, or every so manieth of more than `most`.
    pub(crate) fn some_sorted(&self, most: usize) -> Vec<f64> {
        let step = (self.reached_count() as usize).div_ceil(most.max(1)).max(1);
        // From sorted parts, so that each keeps its shape.
        let all = |part: &SlicePart| {
            let each =
                part.counted_values().flat_map(|(value, count)| repeat_n(value, count as usize));
            each.skip(step / 2).step_by(step).collect::<Vec<f64>>()
        };
        let mut some: Vec<f64> = self.parts.iter().flat_map(all).collect();
        some.sort_by(f64::total_cmp);
        some
    }

    /// The nearest-rank percentile of sorted values; `None` without values, or when it falls among
    /// the censored ones.
    pub(crate) fn percentile(&self, percent: f64) -> Option<f64> {
        self.at_rank(self.rank_of(percent))
    }

    /// The percentile of those alone that did not fail.
    fn percentile_of_completed(&self, percent: f64) -> Option<f64> {
        self.at_rank(rank_of_percentile(self.len(), percent))
    }

    /// The rank (from 1) of the smallest value that this many percent do not exceed, failures that took
    /// longer than it among all.
    fn rank_of(&self, percent: f64) -> u64 {
        let n = self.len();
        let failed = self.parts.iter().map(|part| part.failed.len() as u64).sum::<u64>();
        let (mut from, mut to) =
            (rank_of_percentile(n, percent), rank_of_percentile(n + failed, percent));
        while from < to {
            let middle = from + (to - from) / 2;
            let among = n + self.at_rank(middle).map_or(0, |value| self.failed_beyond(value));
            if middle >= rank_of_percentile(among, percent) {
                to = middle;
            } else {
                from = middle + 1;
            }
        }
        from
    }

    /// Whether some values are only known to be longer than something.
    fn has_longer(&self) -> bool {
        self.parts.iter().any(|part| part.censored > 0 || !part.failed.is_empty())
    }

    /// Failures that took longer than this.
    fn failed_beyond(&self, value: f64) -> u64 {
        self.parts.iter().map(|part| part.failed_beyond(value)).sum()
    }

    /// What this sample says about the quantile with this value, by the values beyond it.
    fn effective_size(&self, value: Option<f64>, q: f64) -> Option<Effective> {
        let late = |part: &SlicePart| value.map_or(0, |at| part.failed_beyond(at));
        let larger = |part: &SlicePart| {
            // Beyond one that was never reached nothing is known.
            value.map_or(0, |at| part.len() - part.count_before(end_of_values(part, at)))
                + late(part)
        };
        let as_large = |part: &SlicePart| {
            let below = |at| part.values.partition_point(|other| other.total_cmp(&at).is_lt());
            value.map_or(part.censored, |at| part.len() - part.count_before(below(at))) + late(part)
        };
        // Where it equals the largest, those that reach it can still come together.
        let has_larger = self.parts.iter().any(|part| larger(part) > 0);
        let counts = |part: &SlicePart| {
            (part.len() + late(part), if has_larger { larger(part) } else { as_large(part) })
        };
        let add = |one: (u64, u64), other: (u64, u64)| (one.0 + other.0, one.1 + other.1);
        let batches = self.sum_by_batch(counts, add);
        let n: u64 = batches.iter().map(|batch| batch.0).sum();
        let effective = Effective::from_batches(batches.into_iter())?;
        let beyond = batches.iter().map(|batch| batch.1).sum::<u64>() as f64 / n as f64;
        let own = if self.is_sliced {
            let deviations: Vec<f64> = self
                .parts
                .iter()
                .map(counts)
                .map(|(size, larger)| larger as f64 - beyond * size as f64)
                .collect();
            let found = Inflation::from_deviations(&deviations, n as f64 * beyond * (1.0 - beyond));
            // It need not be as sure as what stands for all of a tail.
            if found.is_significant(1.0, 2.0) { found.factor } else { 1.0 }
        } else {
            1.0
        };
        let from_good = if self.low_is_worse { 1.0 - q } else { q };
        Some(effective.limited_to(n, own.max(self.memory().share_inflation(from_good))))
    }

    /// The nearest-rank percentile with its 95 % interval and what they are worth.
    pub fn estimate(&mut self, percent: f64) -> Percentile {
        self.sort();
        self.estimate_sorted(percent)
    }

    fn estimate_sorted(&self, percent: f64) -> Percentile {
        let q = percent / 100.0;
        let value = self.percentile(percent);
        let n = self.len() + value.map_or(0, |value| self.failed_beyond(value));
        let independent = Some(Effective::independent(n));
        let effective = if self.is_batched { self.effective_size(value, q) } else { independent };
        let from_good = if self.low_is_worse { 1.0 - q } else { q };
        let is_trusted = |found: &Effective| self.memory().trusts_quantile(from_good, found.n);
        let both =
            effective.filter(is_trusted).and_then(|found| estimate::interval_ranks(n, found, q));
        let one = effective.filter(|_| both.is_none());
        // The end on the good side alone: runs that met no queue look better than they are.
        let low = one.filter(|_| !self.low_is_worse);
        let high = one.filter(|_| self.low_is_worse);
        let low = low.and_then(|found| estimate::lower_rank(n, found, q));
        let high = high.and_then(|found| estimate::lower_rank(n, found, 1.0 - q));
        let (low, high) = match both {
            Some((low, high)) => (Some(low), Some(high)),
            None => (low, high.map(|rank| n + 1 - rank)),
        };
        let quality = match (minimum_for_estimate(q), minimum_for_figure(q)) {
            (Some(any), _) if n < any => Quality::NotEstimable,
            (Some(_), Some(_)) if both.is_none() => Quality::Rough,
            (Some(_), Some(alone)) if n >= alone => Quality::Ok,
            (Some(_), Some(_)) => Quality::Few,
            _ => Quality::NotEstimable,
        };
        let completed = self.percentile_of_completed(percent);
        Percentile {
            value,
            low: low.and_then(|rank| self.at_rank(rank)),
            high: high.and_then(|rank| self.at_rank(rank)),
            is_censored: value.is_none() && self.has_longer(),
            high_is_censored: high.is_some_and(|rank| rank > self.reached_count()),
            n_eff: effective.filter(|_| self.is_batched).map(|effective| effective.n),
            quality,
            early_stopping: None,
            completed: completed.filter(|_| completed != value),
        }
    }

    /// MLPerf's early-stopping estimate of a percentile of sorted values.
    pub(crate) fn early_stopping(&self, percent: f64) -> Option<f64> {
        let rank = early_stopping_rank(self.len(), percent / 100.0)?;
        self.at_rank(rank)
    }

    /// Mean of the values that were reached.
    pub(crate) fn mean(&self) -> Option<f64> {
        let sum: f64 = self.parts.iter().map(SlicePart::sum).sum();
        (self.reached_count() > 0).then(|| sum / self.reached_count() as f64)
    }

    /// The mean with failures that took longer than it, each as long as it took: at least so much.
    fn mean_at_least(&self) -> Option<f64> {
        let mean = self.mean()?;
        let slow = self.parts.iter().flat_map(|part| &part.failed).filter(|took| **took > mean);
        let (n, sum) = slow.fold((0u64, 0.0), |(n, sum), took| (n + 1, sum + took));
        let reached = self.reached_count() as f64;
        Some(if n == 0 { mean } else { (mean * reached + sum) / (reached + n as f64) })
    }

    pub(crate) fn standard_deviation(&self) -> Option<f64> {
        let mean = self.mean()?;
        let values = self.parts.iter().flat_map(SlicePart::counted_values);
        let squares: f64 = values.map(|(value, count)| (value - mean).powi(2) * count as f64).sum();
        (self.reached_count() > 1).then(|| (squares / (self.reached_count() - 1) as f64).sqrt())
    }

    /// The mean and its variance by batch means, where all values were reached.
    fn mean_ratio(&self) -> Option<Ratio> {
        if self.censored_count() > 0 {
            return None;
        }
        if self.is_batched {
            let add = |one: (u64, f64), other: (u64, f64)| (one.0 + other.0, one.1 + other.1);
            let sums = self.sum_by_batch(|part| (part.reached_count(), part.sum()), add);
            let found = Ratio::from_batches(sums.into_iter())?;
            let independent = self.standard_deviation()?.powi(2) / self.reached_count() as f64;
            let variance = found.variance.max(independent * self.memory().mean_inflation());
            return Some(Ratio { variance, ..found });
        }
        // Each value is a batch of its own.
        let n = self.reached_count();
        let variance = self.standard_deviation()?.powi(2) / n as f64;
        Some(Ratio { value: self.mean()?, variance, batches: n })
    }

    /// The mean's 95 % interval.
    pub(crate) fn mean_interval(&self) -> Option<MeanInterval> {
        let (low, high) = self.mean_ratio()?.confidence_interval();
        let is_whole = self.parts.iter().all(|part| part.failed_beyond(low) == 0);
        let is_trusted = !self.is_sliced || self.trusts_mean();
        let bad = |end: f64| Some(end).filter(|_| is_trusted && is_whole);
        Some(if self.low_is_worse {
            MeanInterval { low: bad(low), high: Some(high) }
        } else {
            MeanInterval { low: Some(low), high: bad(high) }
        })
    }

    /// Whether the bad end of the mean's interval can be trusted: no few values and no few batches
    /// decide how much it varies.
    fn trusts_mean(&self) -> bool {
        const FEWEST: f64 = 20.0;
        /// Batches that share in the variance; of independent ones about seven of twenty.
        const SHARING: f64 = 3.0;
        let Some(mean) = self.mean() else { return false };
        let n = self.reached_count() as f64;
        let add = |one: f64, other: f64| one + other;
        let off = self.sum_by_batch(|part| part.sum() - mean * part.reached_count() as f64, add);
        let squares: f64 = off.iter().map(|off| off.powi(2)).sum();
        let fourths: f64 = off.iter().map(|off| off.powi(4)).sum();
        let is_shared = squares == 0.0 || squares.powi(2) >= SHARING * fourths;
        let memory = self.memory();
        let worth = n / memory.mean_inflation();
        let is_worth = worth >= if memory.mean_inflation() > 1.5 { 100.0 } else { FEWEST };
        is_shared && is_worth && memory.trusts_mean() && !self.has_heavy_tail()
    }

    /// Whether the largest twentieth falls off so slowly that the variance rests on the few largest
    /// (Hill's index below 2.5).
    fn has_heavy_tail(&self) -> bool {
        const INDEX: f64 = 2.5;
        let n = self.reached_count();
        let tail = (n / 20).max(10);
        let Some(from) = n.checked_sub(tail).filter(|rank| *rank > 0) else { return false };
        let Some(from) = self.at_rank(from).filter(|from| *from > 0.0) else { return false };
        let beyond = |(value, count): (f64, u64)| {
            if value > from { (value / from).ln() * count as f64 } else { 0.0 }
        };
        let logarithms: f64 =
            self.parts.iter().flat_map(SlicePart::counted_values).map(beyond).sum();
        logarithms > tail as f64 / INDEX
    }

    /// As many independent values would say as much about the mean; at most as many as there are.
    pub(crate) fn mean_n_eff(&self) -> Option<f64> {
        let (n, variance) = (self.len() as f64, self.mean_ratio()?.variance);
        let independent = self.standard_deviation()?.powi(2);
        Some(if variance > 0.0 { (independent / variance).min(n) } else { n })
    }

    /// The 99th percentile, but never one of the two largest: a single mishap proves nothing.
    pub(crate) fn third_largest_or_p99(mut self) -> Option<f64> {
        self.sort();
        let third = self.at_rank(self.reached_count().checked_sub(2)?)?;
        self.percentile(99.0).map(|p99| p99.min(third))
    }

    /// The distribution in three numbers.
    pub fn into_quick(mut self) -> Quick {
        self.sort();
        Quick {
            p50: self.percentile(50.0),
            p99: self.percentile(99.0),
            max: self.percentile(100.0),
        }
    }

    /// The distribution of a level from looks at it; none of no looks.
    pub(crate) fn into_level(mut self) -> Option<LevelSummary> {
        self.sort();
        Some(LevelSummary {
            n: self.len(),
            mean: self.mean()?,
            min: self.percentile(0.0)?,
            p50: self.percentile(50.0)?,
            p99: self.percentile(99.0)?,
            max: self.percentile(100.0)?,
        })
    }

    /// The distribution of a slice.
    pub(crate) fn into_spread(mut self) -> Spread {
        self.sort();
        Spread {
            n: self.len(),
            mean: self.mean().filter(|_| self.censored_count() == 0),
            p50: self.percentile(50.0),
            p90: self.percentile(90.0),
            p99: self.percentile(99.0),
        }
    }

    /// Everything about the metric, with these percentiles.
    pub(crate) fn into_metric(mut self, unit: &str, wanted: Wanted<'_>) -> Metric {
        self.sort();
        let percentile = |percent: &f64| {
            let mut estimate = self.estimate_sorted(*percent);
            if wanted.early_stopping {
                estimate.early_stopping = self.early_stopping(*percent);
            }
            (percent.to_string(), estimate)
        };
        // Of those that ended alone they would flatter the rest.
        let is_whole = self.censored_count() == 0;
        let mean_interval = self.mean_interval();
        let median = self.percentile(50.0).filter(|median| *median > 0.0);
        Metric {
            unit: unit.to_owned(),
            n: self.len(),
            censored: self.censored_count(),
            mean: self.mean_at_least().filter(|_| is_whole),
            mean_low: mean_interval.and_then(|interval| interval.low),
            mean_high: mean_interval.and_then(|interval| interval.high),
            std: self.standard_deviation().filter(|_| is_whole),
            min: self.at_rank(1),
            max: self.at_rank(self.reached_count()).filter(|_| is_whole),
            percentiles: wanted.percentiles.iter().map(percentile).collect(),
            tail_ratio: self.percentile(99.0).zip(median).map(|(p99, median)| p99 / median),
            lag1: None,
        }
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let part = SlicePart { values: values.into_iter().collect(), ..SlicePart::default() };
        Self { parts: vec![part], ..Self::default() }
    }
}

/// The first slice of a batch.
fn first_slice_of_batch(batch: u8) -> u16 {
    u16::from(batch.min(BATCHES - 1)) * SLICES_A_BATCH
}

/// The rank (from 1) of this percentile of this many values.
pub(crate) fn rank_of_percentile(n: u64, percent: f64) -> u64 {
    let exact = n as f64 * percent / 100.0;
    // 99.9 % of 1000 is 999, whatever binary fractions make of it.
    (exact - (exact * 1e-15).max(1e-9)).ceil().max(1.0) as u64
}

#[cfg(test)]
mod tests;
