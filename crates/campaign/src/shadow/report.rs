//! What live traffic showed in addition to the figures: request by request, and in counts.

use std::collections::BTreeMap;

use super::slot::{PairSlot, RATIOS, TIMED};
use super::times::Times;
use super::{Count, LikenessSummary, OverBlocks, Pair, PairSettings, ShadowFacts, ShadowReport};
use goodput_model::{Likeness, RequestRecord};
use goodput_stats::paired::{Counts, test_paired};

/// Names of one kind at most: a server may say anything.
const MOST_NAMES: usize = 24;
/// Letters of a name.
const LONGEST: usize = 32;
/// What is beyond that.
const OTHERS: &str = "others";

/// How often each of a few names was seen on each side.
#[derive(Debug, Clone, Default)]
struct NameCounts(BTreeMap<String, [u64; 2]>);

impl NameCounts {
    fn add(&mut self, side: usize, name: &str) {
        let name: String = name.chars().take(LONGEST).collect();
        let is_new = !self.0.contains_key(&name);
        let name = if is_new && self.0.len() >= MOST_NAMES { OTHERS.to_owned() } else { name };
        if let Some(count) = self.0.entry(name).or_default().get_mut(side) {
            *count += 1;
        }
    }

    /// Most frequent first.
    fn most_frequent(&self) -> Vec<Count> {
        let one =
            |(name, counts): (&String, &[u64; 2])| Count { name: name.clone(), counts: *counts };
        let mut all: Vec<Count> = self.0.iter().map(one).collect();
        all.sort_by_key(|count| std::cmp::Reverse(count.counts.iter().sum::<u64>()));
        all
    }
}

/// Tokens of one side, as its server counts them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SideTokens {
    pub(super) sum: u64,
    pub(super) answers: u64,
}

impl SideTokens {
    fn add(&mut self, tokens: Option<u32>) {
        if let Some(tokens) = tokens {
            self.sum += u64::from(tokens);
            self.answers += 1;
        }
    }

    pub(super) fn mean(self) -> Option<f64> {
        (self.answers > 0).then(|| self.sum as f64 / self.answers as f64)
    }
}

/// One side over all pairs that completed on both.
#[derive(Debug, Clone, Default)]
pub(super) struct SideTotals {
    pub(super) failed: u64,
    pub(super) input: SideTokens,
    pub(super) output: SideTokens,
    /// Prompt tokens from a cache and all of them, of answers that say both.
    pub(super) cached: [u64; 2],
    /// Who counted output tokens, and how often.
    pub(super) sources: BTreeMap<&'static str, u64>,
    /// Shortest round trip in milliseconds.
    pub(super) rtt_ms: Option<f64>,
    pub(super) ttft: Times,
    pub(super) characters: SideTokens,
}

impl SideTotals {
    fn add(&mut self, record: &RequestRecord) {
        let exchange = &record.exchange;
        self.input.add(exchange.input_tokens.map(|count| count.n));
        self.output.add(exchange.output_tokens.map(|count| count.n));
        if let Some((cached, input)) = exchange.cached_tokens.zip(exchange.input_tokens) {
            self.cached[0] += u64::from(cached);
            self.cached[1] += u64::from(input.n);
        }
        if let Some(count) = exchange.output_tokens {
            *self.sources.entry(count.source.name()).or_default() += 1;
        }
        if let Some(tcp) = exchange.tcp {
            let rtt = tcp.min_rtt.as_ms();
            self.rtt_ms = Some(self.rtt_ms.map_or(rtt, |least| least.min(rtt)));
        }
        if let Some(first) = exchange.stamps.first_token {
            self.ttft.add((first - record.scheduled).as_ms());
        }
    }
}

/// Everything that is counted over all pairs.
#[derive(Debug, Clone, Default)]
pub(super) struct PairTotals {
    pub(super) pairs: u64,
    pub(super) good: u64,
    /// Pairs that failed on one side alone.
    only: [u64; 2],
    pub(super) sides: [SideTotals; 2],
    finishes: NameCounts,
    same_finish: u64,
    statuses: NameCounts,
    failures: NameCounts,
    exact: u64,
    prefix: Times,
    lengths: Times,
}

impl PairTotals {
    pub(super) fn add(&mut self, pair: &Pair) {
        let both = [&pair.primary, &pair.candidate];
        self.pairs += 1;
        let is_good = both.iter().all(|record| record.is_ok());
        self.good += u64::from(is_good);
        let [one, other] = both.map(RequestRecord::is_ok);
        self.only[0] += u64::from(!one && other);
        self.only[1] += u64::from(one && !other);
        for (side, record) in both.into_iter().enumerate() {
            let exchange = &record.exchange;
            let status = exchange.status.map_or_else(|| "none".to_owned(), |s| s.to_string());
            self.statuses.add(side, &status);
            if let Some(failure) = &exchange.failure {
                self.failures.add(side, &failure.class.to_string());
            } else {
                self.finishes.add(side, exchange.finish.as_deref().unwrap_or("none"));
            }
            self.sides[side].failed += u64::from(!record.is_ok());
            if is_good {
                self.sides[side].add(record);
            }
        }
        let is_same = pair.primary.exchange.finish == pair.candidate.exchange.finish;
        self.same_finish += u64::from(is_good && is_same);
        if let Some(likeness) = pair.likeness.filter(|_| is_good) {
            self.add_likeness(likeness);
        }
    }

    /// Pairs by who failed.
    pub(super) fn failed_on_one_side(&self) -> Counts {
        Counts::from_pairs(self.pairs, self.only)
    }

    fn add_likeness(&mut self, Likeness { exact, prefix, lengths }: Likeness) {
        self.exact += u64::from(exact);
        let longest = lengths[0].max(lengths[1]);
        // Two empty answers are alike.
        let share = if longest == 0 { 1.0 } else { f64::from(prefix) / f64::from(longest) };
        self.prefix.add(share.min(1.0));
        if lengths[0] > 0 {
            self.lengths.add(f64::from(lengths[1]) / f64::from(lengths[0]));
        }
        for (side, length) in lengths.into_iter().enumerate() {
            self.sides[side].characters.add(Some(length));
        }
    }

    pub(super) fn shadow_report(
        &self,
        settings: &PairSettings,
        facts: &ShadowFacts,
        blocks: &[PairSlot],
    ) -> ShadowReport {
        let mut report = ShadowReport {
            facts: ShadowFacts { pairs: self.pairs, ..facts.clone() },
            pairs: self.pairs,
            good: self.good,
            block_pairs: [
                blocks.iter().map(|block| block.pairs).min().unwrap_or_default(),
                blocks.iter().map(|block| block.pairs).max().unwrap_or_default(),
            ],
            finishes: self.finishes.most_frequent(),
            same_finish: self.same_finish,
            statuses: self.statuses.most_frequent(),
            failures: self.failures.most_frequent(),
            likeness: self.likeness_summary(),
            ..ShadowReport::default()
        };
        for (place, time) in RATIOS.iter().enumerate() {
            let Some(name) = TIMED.get(*time).map(|name| (*name).to_owned()) else { continue };
            let share = |block: &PairSlot| {
                let n = block.ratios.get(place)?.count();
                (n > 0).then(|| block.slower[place] as f64 / n as f64)
            };
            if let Some(found) = mean_over_blocks(blocks.iter().filter_map(share), settings.alpha) {
                let inside = |value: f64| value.clamp(0.0, 1.0);
                let ends = [found.low.map(inside), found.high.map(inside)];
                let found = OverBlocks { low: ends[0], high: ends[1], ..found };
                report.slower.insert(name.clone(), found);
            }
            let median = |block: &PairSlot| block.ratios.get(place)?.median();
            if let Some(found) = ratio_over_blocks(blocks.iter().filter_map(median), settings.alpha)
            {
                report.ratios.insert(name, found);
            }
        }
        let counted: u64 = blocks.iter().map(|block| block.counted).sum();
        let mean = |side: usize| {
            let sum: u64 = blocks.iter().map(|block| block.output_tokens[side]).sum();
            sum as f64 / counted as f64
        };
        report.output_tokens = (counted > 0).then(|| [mean(0), mean(1)]);
        let lengths = |block: &PairSlot| {
            let [one, other] = block.output_tokens;
            (one > 0).then(|| other as f64 / one as f64)
        };
        report.output_ratio = ratio_over_blocks(blocks.iter().filter_map(lengths), settings.alpha);
        report
    }

    fn likeness_summary(&self) -> Option<LikenessSummary> {
        let characters = [0, 1].map(|side: usize| self.sides[side].characters.mean());
        (self.prefix.count() > 0).then(|| LikenessSummary {
            pairs: self.prefix.count(),
            exact: self.exact,
            prefix_share: self.prefix.median().map(|share| share.min(1.0)),
            length_ratio: self.lengths.median(),
            characters: characters.map(Option::unwrap_or_default),
        })
    }
}

/// The mean over blocks with its interval.
fn mean_over_blocks(blocks: impl Iterator<Item = f64>, alpha: f64) -> Option<OverBlocks> {
    let values: Vec<f64> = blocks.collect();
    let value = (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)?;
    let found = test_paired(&values, alpha).filter(|found| found.n >= 3);
    Some(OverBlocks {
        value,
        low: found.map(|found| found.low),
        high: found.map(|found| found.high),
    })
}

/// The geometric mean over blocks of a ratio with its interval.
fn ratio_over_blocks(blocks: impl Iterator<Item = f64>, alpha: f64) -> Option<OverBlocks> {
    let logs = blocks.filter(|ratio| *ratio > 0.0).map(f64::ln);
    let OverBlocks { value, low, high } = mean_over_blocks(logs, alpha)?;
    Some(OverBlocks { value: value.exp(), low: low.map(f64::exp), high: high.map(f64::exp) })
}
