//! Are the minutes of the window alike?
//!
//! Requests of one minute wait in one queue and are not independent, so they are not what is
//! compared. Each minute is cut into blocks, and the medians of blocks (of token rates, the rates)
//! are compared between minutes by their ranks: Kruskal and Wallis' H, divided by what the
//! correlation of neighboring blocks inside a minute adds to it.

use goodput_model::{
    Caveat, CaveatCode, MetricName, Mode, Nanos, Phase, Plan, Rate, RequestRecord, Severity,
};

use super::Evidence;
use crate::cuts::Cuts;
use crate::request::{Latencies, LatencyValue};
use crate::sample::Sample;
use crate::window::Window;
use crate::workload::Minutes;

/// Blocks of a minute.
const BLOCKS: usize = 12;
/// Requests in a block, on average, that make its median a value.
const FEWEST: f64 = 4.0;
/// Quantile of the normal distribution that is exceeded once in a thousand times.
const Z: f64 = 3.09;
/// The extreme minutes must differ by this share to matter, and by that one to be suspect.
const NOTABLE: f64 = 0.1;
const LARGE: f64 = 0.25;

/// Two minutes that differ by more than chance.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Unlike {
    what: &'static str,
    unit: &'static str,
    slowest: (String, f64),
    fastest: (String, f64),
}

/// Blocks of the minutes of a window, in order of time.
#[derive(Debug)]
pub(crate) struct MinuteTally {
    minutes: Minutes,
    window: Window,
    stream: bool,
    ttft: Vec<Sample>,
    tpot: Vec<Sample>,
    tokens: Vec<f64>,
}

impl MinuteTally {
    /// None if the load changes by intention, or there is less than two minutes of it.
    pub(crate) fn new(plan: &Plan, window: Window) -> Option<Self> {
        let is_constant = matches!(
            plan.load.mode,
            Mode::Open { rate: Rate::PerSecond(_), .. } | Mode::Closed { .. }
        );
        let minutes =
            Minutes::from_window(window).filter(|_| is_constant && !window.is_makespan())?;
        let blocks = minutes.count() as usize * BLOCKS;
        Some(Self {
            minutes,
            window,
            stream: plan.target.stream,
            ttft: vec![Sample::default(); blocks],
            tpot: vec![Sample::default(); blocks],
            tokens: vec![0.0; blocks],
        })
    }

    fn block_index(&self, at: Nanos) -> usize {
        ((at - self.window.start).0 / (self.minutes.part_length().0 / BLOCKS as u64).max(1))
            as usize
    }

    pub(crate) fn add(&mut self, record: &RequestRecord, cuts: &Cuts) {
        let exchange = &record.exchange;
        let total = exchange.output_tokens.map_or(exchange.chunks.len() as f64, |n| f64::from(n.n));
        let each = total / exchange.chunks.len().max(1) as f64;
        let whole = exchange.stamps.last_token.filter(|_| exchange.chunks.is_empty());
        for at in exchange.chunks.iter().map(|chunk| chunk.at).chain(whole) {
            let block = self.block_index(at);
            if let Some(tokens) = self.tokens.get_mut(block).filter(|_| self.window.contains(at)) {
                *tokens += if exchange.chunks.is_empty() { total } else { each };
            }
        }
        if record.phase != Phase::Measured || !self.window.contains(record.scheduled) {
            return;
        }
        let latencies = Latencies::new(record, self.stream, cuts);
        let block = self.block_index(record.scheduled);
        let put = |sample: Option<&mut Sample>, metric| match (sample, latencies.get(metric)) {
            (Some(sample), LatencyValue::Value(ms)) => sample.push(ms),
            (Some(sample), LatencyValue::Beyond) => sample.push_censored(),
            _ => {}
        };
        put(self.ttft.get_mut(block), MetricName::Ttft);
        put(self.tpot.get_mut(block), MetricName::Tpot);
    }

    /// The largest difference that chance does not explain.
    pub(crate) fn finish(self) -> Option<Unlike> {
        // A last minute that is cut short has too few blocks to be compared.
        let whole = (self.window.end - self.window.start).0 / self.minutes.part_length().0.max(1);
        let blocks = whole as usize * BLOCKS;
        let length_s = self.minutes.part_length().as_secs() / BLOCKS as f64;
        let rates: Vec<_> =
            self.tokens.iter().take(blocks).map(|tokens| Some(tokens / length_s)).collect();
        let found = [
            self.find_unlike("the median TTFT", "ms", block_medians(&self.ttft, blocks)),
            self.find_unlike("the median TPOT", "ms", block_medians(&self.tpot, blocks)),
            self.find_unlike("the output rate", "tok/s", Some(rates)),
        ];
        let found = found.into_iter().flatten();
        found.max_by(|a, b| a.level_difference().total_cmp(&b.level_difference()))
    }

    fn find_unlike(
        &self,
        what: &'static str,
        unit: &'static str,
        blocks: Option<Vec<Option<f64>>>,
    ) -> Option<Unlike> {
        let blocks = blocks?;
        if !minutes_differ(&blocks) {
            return None;
        }
        let level = |minute: &[Option<f64>]| {
            let mut values: Sample = minute.iter().flatten().copied().collect();
            values.sort();
            values.percentile(50.0)
        };
        let levels = blocks.chunks(BLOCKS).enumerate();
        let levels: Vec<_> = levels
            .filter_map(|(place, minute)| Some((self.minutes.label(place as u64), level(minute)?)))
            .collect();
        let low = levels.iter().min_by(|a, b| a.1.total_cmp(&b.1))?.clone();
        let high = levels.iter().max_by(|a, b| a.1.total_cmp(&b.1))?.clone();
        let is_rate = unit == "tok/s";
        let (slowest, fastest) = if is_rate { (low, high) } else { (high, low) };
        let unlike = Unlike { what, unit, slowest, fastest };
        (unlike.level_difference() >= NOTABLE).then_some(unlike)
    }
}

impl Unlike {
    /// Of the larger level to the smaller.
    fn level_difference(&self) -> f64 {
        let (a, b) = (self.slowest.1, self.fastest.1);
        if a.min(b) > 0.0 { a.max(b) / a.min(b) - 1.0 } else { f64::INFINITY }
    }
}

/// The median of each block, where blocks hold enough to have one. A median among the censored is
/// longer than any other.
fn block_medians(samples: &[Sample], blocks: usize) -> Option<Vec<Option<f64>>> {
    let samples = samples.get(..blocks)?;
    let n: u64 = samples.iter().map(Sample::len).sum();
    (n as f64 >= FEWEST * blocks as f64).then(|| {
        let median = |sample: &Sample| {
            let mut sample = sample.clone();
            sample.sort();
            (!sample.is_empty()).then(|| sample.percentile(50.0).unwrap_or(f64::MAX))
        };
        samples.iter().map(median).collect()
    })
}

/// Whether minutes of [`BLOCKS`] blocks each differ by more than chance, once in a thousand times.
fn minutes_differ(blocks: &[Option<f64>]) -> bool {
    let ranks = mean_ranks(blocks);
    let n = ranks.iter().flatten().count() as f64;
    let middle = f64::midpoint(n, 1.0);
    let squares = |minute: &[Option<f64>], center: f64| -> f64 {
        minute.iter().flatten().map(|rank| (rank - center).powi(2)).sum()
    };
    let total = squares(&ranks, middle);
    let (mut between, mut within, mut neighbors, mut minutes) = (0.0, 0.0, 0.0, 0.0);
    for minute in ranks.chunks(BLOCKS) {
        let count = minute.iter().flatten().count() as f64;
        if count == 0.0 {
            continue;
        }
        let mean = minute.iter().flatten().sum::<f64>() / count;
        minutes += 1.0;
        between += count * (mean - middle).powi(2);
        within += squares(minute, mean);
        let pairs = minute.windows(2).filter_map(|pair| pair[0].zip(pair[1]));
        neighbors += pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    }
    if minutes < 2.0 || total <= 0.0 {
        return false;
    }
    // Ties are in the total, so this is H with their correction.
    let h = (n - 1.0) * between / total;
    h / variance_inflation(neighbors, within) > chi_squared_limit(minutes - 1.0)
}

/// By how much the mean of a minute's blocks varies more than that of independent ones. The
/// correlation of neighbors is estimated inside minutes, less the bias of twelve values around
/// their own mean.
fn variance_inflation(neighbors: f64, within: f64) -> f64 {
    if within <= 0.0 {
        return 1.0;
    }
    let n = BLOCKS as f64;
    let correlation = (neighbors / within + 1.0 / n) / (1.0 - 3.0 / n);
    let correlation = correlation.clamp(0.0, 0.95);
    (1.0 + correlation) / (1.0 - correlation)
}

/// What a chi-squared variable exceeds once in a thousand times, by Wilson and Hilferty.
fn chi_squared_limit(degrees: f64) -> f64 {
    let spread = 2.0 / (9.0 * degrees);
    degrees * (1.0 - spread + Z * spread.sqrt()).powi(3)
}

/// Ranks from 1; equal values share the mean of theirs.
fn mean_ranks(values: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(f64, usize)> =
        values.iter().enumerate().filter_map(|(place, value)| Some(((*value)?, place))).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut ranks = vec![None; values.len()];
    let mut before = 0;
    for equal in order.chunk_by(|a, b| a.0 == b.0) {
        let rank = before as f64 + f64::midpoint(equal.len() as f64, 1.0);
        for (_, place) in equal {
            ranks[*place] = Some(rank);
        }
        before += equal.len();
    }
    ranks
}

pub(super) fn check_minutes(e: &Evidence<'_>) -> Option<Caveat> {
    let unlike = e.tally.unlike.as_ref()?;
    let Unlike { what, unit, slowest, fastest } = unlike;
    let severity = if unlike.level_difference() >= LARGE { Severity::Warn } else { Severity::Info };
    let message = format!(
        "the minutes of the window differ by more than chance: {what} is {:.1} {unit} in minute {}, \
         the slowest, and {:.1} {unit} in minute {}, the fastest",
        slowest.1, slowest.0, fastest.1, fastest.0
    );
    let advice = "read the breakdown by minute; check what happened at the server then, or warm \
                  it up longer if the first minutes differ";
    Some(Caveat::new(CaveatCode::MinutesDiffer, severity, message).advise(advice))
}

#[cfg(test)]
mod tests {
    use goodput_model::random::{Domain, RandomStream};

    use super::*;

    #[test]
    fn equal_values_share_their_rank() {
        let ranks = mean_ranks(&[Some(3.0), None, Some(1.0), Some(3.0), Some(2.0)]);
        assert_eq!(ranks, [Some(3.5), None, Some(1.0), Some(3.5), Some(2.0)]);
    }

    /// Tables of the chi-squared distribution; the approximation is 2.3 % high for two degrees, and closer above.
    #[test]
    fn limits_are_those_of_the_tables() {
        for (degrees, limit) in [(2.0, 13.816), (10.0, 29.588), (100.0, 149.449)] {
            let ratio = chi_squared_limit(degrees) / limit;
            assert!((1.0 - 1e-3..1.023).contains(&ratio), "{degrees}: {ratio}");
        }
    }

    /// Without correlation the inflation is one; blocks that all lie together are one value.
    #[test]
    fn correlation_of_neighbors_weakens_the_evidence() {
        assert_eq!(variance_inflation(0.0, 0.0), 1.0);
        // The mean of a correlation of twelve independent values is minus a twelfth.
        assert!((variance_inflation(-1.0, 12.0) - 1.0).abs() < 1e-12);
        assert!((variance_inflation(0.75 * 0.5 - 1.0 / 12.0, 1.0) - 3.0).abs() < 1e-9);
        assert!((variance_inflation(1.0, 1.0) - 39.0).abs() < 1e-9);
    }

    #[test]
    fn alike_and_unlike_minutes_are_told_apart() {
        let run = |seed: u64, carry: f64, shift: f64| {
            let mut stream = RandomStream::new(seed, Domain::Service, 0);
            let mut value = 0.0;
            let block = |place: usize| {
                value = carry * value + (1.0 - carry * carry).sqrt() * stream.draw_normal();
                Some(100.0 + value + if place / BLOCKS == 1 { shift } else { 0.0 })
            };
            minutes_differ(&(0..3 * BLOCKS).map(block).collect::<Vec<_>>())
        };
        let share = |carry: f64, shift: f64| (0..1000).filter(|s| run(*s, carry, shift)).count();
        // One in a thousand by construction; with correlated blocks at most one in a hundred.
        assert!(share(0.0, 0.0) <= 4, "{}", share(0.0, 0.0));
        assert!(share(0.5, 0.0) <= 10, "{}", share(0.5, 0.0));
        assert!(share(0.0, 3.0) >= 800, "{}", share(0.0, 3.0));
    }
}
