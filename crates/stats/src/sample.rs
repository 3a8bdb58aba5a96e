//! [`Sample`]: values of one metric, some of which are known only to be larger than anything seen.

use std::iter::repeat_n;

use crate::estimate::{
    self, BATCHES, Effective, Quality, Ratio, early_stopping_rank, minimum_for_estimate,
    minimum_for_figure,
};
use crate::request::Seen;
use crate::summary::{Metric, Percentile, Quick};
use crate::workload::Spread;

/// What is to be said about a metric.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) percentiles: &'a [f64],
    /// MLPerf's bound beside each.
    pub(crate) early_stopping: bool,
}

impl<'a> Wanted<'a> {
    pub(crate) fn of(percentiles: &'a [f64]) -> Self {
        Self { percentiles, early_stopping: false }
    }
}

/// The values of a metric. All are kept; nothing is binned.
///
/// Values that come with their batch of time ([`Sample::push_in`]) tell how dependent they are, and
/// intervals account for it. Those without one are taken for independent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// By batch; a single one where nobody gave batches.
    parts: Vec<Part>,
    is_batched: bool,
    is_sorted: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Part {
    values: Vec<f64>,
    /// Where each value stands for all that equal it: how many there are up to it. Empty where each
    /// stands for itself.
    up_to: Vec<u64>,
    censored: u64,
}

impl Part {
    fn len(&self) -> u64 {
        self.reached() + self.censored
    }

    /// Number of values that were reached.
    fn reached(&self) -> u64 {
        self.before(self.values.len())
    }

    /// How many there are before this place.
    fn before(&self, place: usize) -> u64 {
        if self.up_to.is_empty() {
            return place as u64;
        }
        place.checked_sub(1).and_then(|last| self.up_to.get(last)).copied().unwrap_or(0)
    }

    /// Each value, and how many it stands for.
    fn counted(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let count = |place: usize| self.before(place + 1) - self.before(place);
        self.values.iter().enumerate().map(move |(place, value)| (*value, count(place)))
    }

    /// The value of this rank (from 1) of sorted values.
    fn at_rank(&self, rank: u64) -> Option<f64> {
        let place = if self.up_to.is_empty() {
            usize::try_from(rank).ok()?.checked_sub(1)?
        } else {
            self.up_to.partition_point(|count| *count < rank)
        };
        self.values.get(place).copied()
    }

    /// Sum without the rounding errors of long sums (Neumaier).
    fn sum(&self) -> f64 {
        let (mut sum, mut lost) = (0.0f64, 0.0);
        for (value, count) in self.counted() {
            let value = value * count as f64;
            let next = sum + value;
            lost +=
                if sum.abs() >= value.abs() { (sum - next) + value } else { (value - next) + sum };
            sum = next;
        }
        // Of an infinite sum nothing is lost but sense.
        if sum.is_finite() { sum + lost } else { sum }
    }
}

impl Sample {
    /// Values in order of time, in batches of as equal a number as can be. Infinite ones were never
    /// reached.
    pub fn from_series(values: &[f64]) -> Self {
        let mut sample = Self::default();
        for (index, value) in values.iter().enumerate() {
            let batch = (index * usize::from(BATCHES) / values.len()) as u8;
            if *value == f64::INFINITY {
                sample.push_censored_in(batch);
            } else {
                sample.push_in(*value, batch);
            }
        }
        sample
    }

    /// Adds a value.
    pub fn push(&mut self, value: f64) {
        self.put(None, value);
    }

    /// Adds a value that was never reached: the request ran into a time limit first.
    pub fn push_censored(&mut self) {
        self.put_censored(None);
    }

    /// Adds a value of this batch of time, one of `0..20`. All values of a sample come with their
    /// batch, or none.
    pub fn push_in(&mut self, value: f64, batch: u8) {
        self.put(Some(batch), value);
    }

    /// Adds a value of this batch that was never reached.
    pub fn push_censored_in(&mut self, batch: u8) {
        self.put_censored(Some(batch));
    }

    pub(crate) fn put(&mut self, batch: Option<u8>, value: f64) {
        self.part(batch).values.push(value);
    }

    /// Takes what a request says.
    pub(crate) fn take(&mut self, batch: Option<u8>, seen: Seen) {
        match seen {
            Seen::Value(value) => self.put(batch, value),
            Seen::Beyond => self.put_censored(batch),
            Seen::Nothing => {}
        }
    }

    /// Adds values of a batch that has none yet, each with how many there are of it.
    pub(crate) fn put_counted(&mut self, batch: Option<u8>, mut counted: Vec<(f64, u64)>) {
        counted.sort_by(|one, other| one.0.total_cmp(&other.0));
        let part = self.part(batch);
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

    pub(crate) fn put_censored(&mut self, batch: Option<u8>) {
        self.part(batch).censored += 1;
    }

    fn part(&mut self, batch: Option<u8>) -> &mut Part {
        self.is_sorted = false;
        self.is_batched |= batch.is_some();
        let batch = usize::from(batch.unwrap_or(0).min(BATCHES - 1));
        if self.parts.len() <= batch {
            self.parts.resize_with(batch + 1, Part::default);
        }
        &mut self.parts[batch]
    }

    /// Number of values, censored ones included.
    pub fn len(&self) -> u64 {
        self.parts.iter().map(Part::len).sum()
    }

    /// Whether there is no value at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn censored(&self) -> u64 {
        self.parts.iter().map(|part| part.censored).sum()
    }

    /// Number of values that were reached.
    fn reached(&self) -> u64 {
        self.parts.iter().map(Part::reached).sum()
    }

    /// Sorts the values, once, before quantiles are asked for.
    pub(crate) fn sort(&mut self) {
        if !self.is_sorted {
            // Stable, not for its own sake: it finds out what is in order already. What is counted is.
            let plain = self.parts.iter_mut().filter(|part| part.up_to.is_empty());
            plain.for_each(|part| part.values.sort_by(f64::total_cmp));
            self.is_sorted = true;
        }
    }

    /// The value of this rank (from 1) of sorted values; none beyond the last that was reached.
    fn at_rank(&self, rank: u64) -> Option<f64> {
        if let [part] = self.parts.as_slice() {
            return part.at_rank(rank);
        }
        if rank == 0 || rank > self.reached() {
            return None;
        }
        // Halving the range of all numbers takes 64 steps, whatever the values are; merging the
        // parts would take as many as there are values.
        let (mut from, mut to) = (0, u64::MAX);
        while from < to {
            let middle = u64::midpoint(from, to);
            let counts = self.parts.iter().map(|part| reached_by(part, middle));
            if counts.sum::<u64>() >= rank { to = middle } else { from = middle + 1 }
        }
        Some(of_key(from))
    }

    /// The values that were reached in order, or every so manieth of more than `most`.
    pub(crate) fn some_sorted(&self, most: usize) -> Vec<f64> {
        let step = (self.reached() as usize).div_ceil(most.max(1)).max(1);
        // From sorted parts, so that each keeps its shape.
        let all = |part: &Part| {
            let each = part.counted().flat_map(|(value, count)| repeat_n(value, count as usize));
            each.skip(step / 2).step_by(step).collect::<Vec<f64>>()
        };
        let mut some: Vec<f64> = self.parts.iter().flat_map(all).collect();
        some.sort_by(f64::total_cmp);
        some
    }

    /// The nearest-rank percentile of sorted values; `None` when there are no values, or when it
    /// falls among the censored ones.
    pub(crate) fn percentile(&self, percent: f64) -> Option<f64> {
        let exact = self.len() as f64 * percent / 100.0;
        // 99.9 % of 1000 is 999, whatever binary fractions make of it.
        let rank = (exact - (exact * 1e-15).max(1e-9)).ceil().max(1.0);
        self.at_rank(rank as u64)
    }

    /// What the batches say about this quantile, by the values beyond it.
    fn effective(&self, value: Option<f64>) -> Option<Effective> {
        let larger = |part: &Part| {
            // Beyond one that was never reached nothing is known.
            let at_most = |at| part.values.partition_point(|other| other.total_cmp(&at).is_le());
            value.map_or(0, |at| part.len() - part.before(at_most(at)))
        };
        let as_large = |part: &Part| {
            let below = |at| part.values.partition_point(|other| other.total_cmp(&at).is_lt());
            value.map_or(part.censored, |at| part.len() - part.before(below(at)))
        };
        // Where it equals the largest, those that reach it can still come together.
        if self.parts.iter().any(|part| larger(part) > 0) {
            Effective::of(self.parts.iter().map(|part| (part.len(), larger(part))))
        } else {
            Effective::of(self.parts.iter().map(|part| (part.len(), as_large(part))))
        }
    }

    /// The nearest-rank percentile with its 95 % interval and what they are worth.
    pub fn estimate(&mut self, percent: f64) -> Percentile {
        self.sort();
        self.estimate_sorted(percent)
    }

    fn estimate_sorted(&self, percent: f64) -> Percentile {
        let (n, q) = (self.len(), percent / 100.0);
        let value = self.percentile(percent);
        let independent = Some(Effective::independent(n));
        let effective = if self.is_batched { self.effective(value) } else { independent };
        let ranks = effective.and_then(|effective| estimate::ranks(n, effective, q));
        let (low, high) = ranks.map_or((None, None), |(low, high)| (Some(low), Some(high)));
        let quality = match (minimum_for_estimate(q), minimum_for_figure(q)) {
            (Some(any), _) if n < any => Quality::NotEstimable,
            (Some(_), Some(_)) if ranks.is_none() => Quality::Rough,
            (Some(_), Some(alone)) if n >= alone => Quality::Ok,
            (Some(_), Some(_)) => Quality::Few,
            _ => Quality::NotEstimable,
        };
        Percentile {
            value,
            low: low.and_then(|rank| self.at_rank(rank)),
            high: high.and_then(|rank| self.at_rank(rank)),
            is_censored: value.is_none() && self.censored() > 0,
            high_is_censored: high.is_some_and(|rank| rank > self.reached()),
            n_eff: effective.filter(|_| self.is_batched).map(|effective| effective.n),
            quality,
            early_stopping: None,
        }
    }

    /// MLPerf's early-stopping estimate of a percentile of sorted values.
    pub(crate) fn early_stopping(&self, percent: f64) -> Option<f64> {
        let rank = early_stopping_rank(self.len(), percent / 100.0)?;
        self.at_rank(rank)
    }

    /// Mean of the values that were reached.
    pub(crate) fn mean(&self) -> Option<f64> {
        let sum: f64 = self.parts.iter().map(Part::sum).sum();
        (self.reached() > 0).then(|| sum / self.reached() as f64)
    }

    pub(crate) fn standard_deviation(&self) -> Option<f64> {
        let mean = self.mean()?;
        let values = self.parts.iter().flat_map(Part::counted);
        let squares: f64 = values.map(|(value, count)| (value - mean).powi(2) * count as f64).sum();
        (self.reached() > 1).then(|| (squares / (self.reached() - 1) as f64).sqrt())
    }

    /// The mean and its variance by batch means, where all values were reached.
    fn mean_ratio(&self) -> Option<Ratio> {
        if self.censored() > 0 {
            return None;
        }
        if self.is_batched {
            let sums: Vec<_> = self.parts.iter().map(|part| (part.len(), part.sum())).collect();
            return Ratio::of(sums.into_iter());
        }
        // Each value is a batch of its own.
        let n = self.reached();
        let variance = self.standard_deviation()?.powi(2) / n as f64;
        Some(Ratio { value: self.mean()?, variance, batches: n })
    }

    /// The mean's 95 % interval.
    pub(crate) fn mean_interval(&self) -> Option<(f64, f64)> {
        self.mean_ratio().map(Ratio::interval)
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
        let third = self.at_rank(self.reached().checked_sub(2)?)?;
        self.percentile(99.0).map(|p99| p99.min(third))
    }

    /// The distribution in three numbers.
    pub fn quick(mut self) -> Quick {
        self.sort();
        Quick {
            p50: self.percentile(50.0),
            p99: self.percentile(99.0),
            max: self.percentile(100.0),
        }
    }

    /// The distribution of a slice.
    pub(crate) fn spread(mut self) -> Spread {
        self.sort();
        Spread {
            n: self.len(),
            mean: self.mean().filter(|_| self.censored() == 0),
            p50: self.percentile(50.0),
            p90: self.percentile(90.0),
            p99: self.percentile(99.0),
        }
    }

    /// Everything about the metric, with these percentiles.
    pub(crate) fn metric(mut self, unit: &str, wanted: Wanted<'_>) -> Metric {
        self.sort();
        let percentile = |percent: &f64| {
            let mut estimate = self.estimate_sorted(*percent);
            if wanted.early_stopping {
                estimate.early_stopping = self.early_stopping(*percent);
            }
            (percent.to_string(), estimate)
        };
        // Of those that ended alone they would flatter the rest.
        let is_whole = self.censored() == 0;
        let mean_interval = self.mean_interval();
        let median = self.percentile(50.0).filter(|median| *median > 0.0);
        Metric {
            unit: unit.to_owned(),
            n: self.len(),
            censored: self.censored(),
            mean: self.mean().filter(|_| is_whole),
            mean_low: mean_interval.map(|interval| interval.0),
            mean_high: mean_interval.map(|interval| interval.1),
            std: self.standard_deviation().filter(|_| is_whole),
            min: self.at_rank(1),
            max: self.at_rank(self.reached()).filter(|_| is_whole),
            percentiles: wanted.percentiles.iter().map(percentile).collect(),
            tail_ratio: self.percentile(99.0).zip(median).map(|(p99, median)| p99 / median),
            lag1: None,
        }
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let part = Part { values: values.into_iter().collect(), ..Part::default() };
        Self { parts: vec![part], ..Self::default() }
    }
}

/// Numbers as whole ones of the same order as `total_cmp`'s.
fn key(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn of_key(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 { key ^ 1 << 63 } else { !key })
}

/// How many of these sorted values are at most the value of this key.
fn reached_by(part: &Part, limit: u64) -> u64 {
    part.before(part.values.partition_point(|value| key(*value) <= limit))
}

#[cfg(test)]
mod tests;
