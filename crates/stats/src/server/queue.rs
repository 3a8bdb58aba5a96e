//! The queue: how long it was, and what requests paid that found it so.

use goodput_model::{Nanos, Phase, RequestRecord, Signal};

use super::points::CombinedPoint;
use crate::request::LatencyValue;
use crate::sample::Sample;
use crate::summary::{HistogramSummary, QueueBand, QueueSummary, TtftByQueue};

/// A batch is at its limit where it was seen there so often, with others waiting.
const SEEN: usize = 3;
/// A look says this many intervals later how many wait.
const FRESH: u64 = 2;
/// Below this many requests a band has no p99.
const LEAST_FOR_P99: u64 = 100;

/// The queue over some points; none if the number of waiting requests is unknown. In a closed loop
/// with its users.
pub(super) fn queue_summary(points: &[&CombinedPoint], users: Option<u32>) -> Option<QueueSummary> {
    let level = |point: &CombinedPoint, signal| point.levels.get(&signal).copied();
    let waits = points.iter().filter_map(|point| Some((point.at, level(point, Signal::Waiting)?)));
    let waits: Vec<(Nanos, f64)> = waits.collect();
    // The first of those where as many waited.
    let (at, waiting_max) = waits.iter().rev().max_by(|a, b| a.1.total_cmp(&b.1)).copied()?;
    let waiting = waits.iter().filter(|(_, waiting)| *waiting > 0.0).count();
    let both = |point: &&CombinedPoint| {
        Some((level(point, Signal::Running)?, level(point, Signal::Waiting)?))
    };
    let both: Vec<(f64, f64)> = points.iter().filter_map(both).collect();
    let crowded = || both.iter().filter(|(_, waiting)| *waiting > 0.0).map(|(running, _)| *running);
    let batch_limit = batch_limit(&both, users);
    let share = |count: usize| count as f64 / both.len() as f64;
    let at_limit = |limit: f64| both.iter().filter(|(running, _)| *running >= limit).count();
    Some(QueueSummary {
        waiting_max,
        waiting_max_at_s: at.as_secs(),
        waiting_share: waiting as f64 / waits.len() as f64,
        batch_limit,
        at_limit_share: batch_limit.map(|limit| share(at_limit(limit))),
        held_up_share: batch_limit
            .map(|limit| share(crowded().filter(|running| *running >= limit).count())),
        wait_mean_ms: None,
        wait_share_of_ttft: None,
    })
}

/// The most that ran while others waited, where nothing speaks against a limit there.
fn batch_limit(looks: &[(f64, f64)], users: Option<u32>) -> Option<f64> {
    let crowded = || looks.iter().filter(|(_, waiting)| *waiting > 0.0);
    let limit = crowded().map(|(running, _)| *running).max_by(f64::total_cmp)?;
    let is_exceeded = looks.iter().any(|(running, _)| *running > limit);
    // The next request of a user, on its way into a batch that the others are in.
    let is_passing = users.is_some_and(|users| {
        crowded().all(|(running, waiting)| *waiting <= 1.0 && running + waiting <= f64::from(users))
    });
    let seen = crowded().filter(|(running, _)| *running >= limit).count();
    (seen >= SEEN && !is_exceeded && !is_passing).then_some(limit)
}

impl QueueSummary {
    /// With the waits that the server counted itself.
    pub(super) fn with_server_waits(
        self,
        wait: Option<&HistogramSummary>,
        ttft: Option<&HistogramSummary>,
    ) -> Self {
        let wait_mean_ms = wait.map(|wait| wait.mean);
        let ttft = ttft.map(|ttft| ttft.mean).filter(|mean| *mean > 0.0);
        let wait_share_of_ttft = wait_mean_ms.zip(ttft).map(|(wait, ttft)| wait / ttft);
        Self { wait_mean_ms, wait_share_of_ttft, ..self }
    }
}

/// When requests were sent and answered, and what the measured ones waited for their first token.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    sent: Vec<Nanos>,
    /// First tokens, or ends without one.
    answered: Vec<Nanos>,
    /// When measured requests were sent, and their TTFT; infinite beyond a time limit.
    measured: Vec<(Nanos, f64)>,
}

impl Arrivals {
    pub(super) fn add(&mut self, record: &RequestRecord, ttft: LatencyValue) {
        let stamps = &record.exchange.stamps;
        let Some(sent) = stamps.sent_first else { return };
        self.sent.push(sent);
        self.answered.push(stamps.first_token.unwrap_or_else(|| record.end()).max(sent));
        let ttft = match ttft {
            LatencyValue::Value(ttft) => ttft,
            LatencyValue::Beyond => f64::INFINITY,
            LatencyValue::FailedAfter(_) | LatencyValue::Nothing => return,
        };
        if record.phase == Phase::Measured {
            self.measured.push((sent, ttft));
        }
    }

    /// By the server's word where it saw the queue change, else by requests without a first token.
    pub(super) fn ttft_by_queue(
        mut self,
        points: &[CombinedPoint],
        interval: Nanos,
    ) -> Option<TtftByQueue> {
        let told = self.depths_by_server(points, interval);
        let first = told.first().map(|(depth, _)| *depth);
        if told.iter().any(|(depth, _)| Some(*depth) != first) {
            return ttft_by_depth("server", &told);
        }
        ttft_by_depth("inferred", &self.depths_by_requests())
    }

    /// Depth and TTFT by the last look before each request.
    fn depths_by_server(&self, points: &[CombinedPoint], interval: Nanos) -> Vec<(u64, f64)> {
        let waiting =
            |point: &CombinedPoint| Some((point.at, *point.levels.get(&Signal::Waiting)?));
        let looks: Vec<(Nanos, f64)> = points.iter().filter_map(waiting).collect();
        let fresh = Nanos(interval.0.saturating_mul(FRESH));
        let depth = |sent: Nanos| {
            let before = looks.partition_point(|(at, _)| *at <= sent).checked_sub(1)?;
            let (_, waiting) = looks.get(before).filter(|(at, _)| sent - *at <= fresh)?;
            Some(waiting.round().max(0.0) as u64)
        };
        let each = self.measured.iter();
        each.filter_map(|(sent, ttft)| Some((depth(*sent)?, *ttft))).collect()
    }

    /// Depth and TTFT by requests that had been sent and had no first token.
    fn depths_by_requests(&mut self) -> Vec<(u64, f64)> {
        self.sent.sort_unstable();
        self.answered.sort_unstable();
        let each = self.measured.iter().map(|(at, ttft)| {
            let earlier = self.sent.partition_point(|sent| sent < at);
            let answered = self.answered.partition_point(|answered| answered <= at);
            (earlier.saturating_sub(answered) as u64, *ttft)
        });
        each.collect()
    }
}

fn ttft_by_depth(source: &str, depths: &[(u64, f64)]) -> Option<TtftByQueue> {
    let mut sorted = depths.to_vec();
    sorted.sort_by_key(|(depth, _)| *depth);
    let bands = sorted.chunk_by(|a, b| depth_band(a.0) == depth_band(b.0)).filter_map(|requests| {
        let (from, to) = depth_band(requests.first()?.0);
        let mut sample = Sample::default();
        for (_, ttft) in requests {
            if ttft.is_finite() { sample.push(*ttft) } else { sample.push_censored() }
        }
        sample.sort();
        Some(QueueBand {
            from: from as f64,
            to: to as f64,
            n: sample.len(),
            ttft_p50_ms: sample.percentile(50.0),
            ttft_p99_ms: sample.percentile(99.0).filter(|_| sample.len() >= LEAST_FOR_P99),
        })
    });
    let bands: Vec<QueueBand> = bands.collect();
    (!bands.is_empty()).then(|| TtftByQueue {
        source: source.to_owned(),
        bands,
        rank_correlation: rank_correlation(depths),
    })
}

/// 0, 1–2, 3–5, 6–10, 11–20, 21–50 and so on.
fn depth_band(depth: u64) -> (u64, u64) {
    let (mut from, mut to) = (0, 0);
    let mut decade: u64 = 1;
    for step in [2, 5, 10].into_iter().cycle() {
        if depth <= to {
            break;
        }
        (from, to) = (to + 1, decade.saturating_mul(step));
        decade = if step == 10 { decade.saturating_mul(10) } else { decade };
    }
    (from, to)
}

/// Spearman's: the correlation of ranks, where equals share the mean of theirs.
fn rank_correlation(pairs: &[(u64, f64)]) -> Option<f64> {
    let depths = mean_ranks(pairs.iter().map(|(depth, _)| *depth as f64).collect());
    let ttfts = mean_ranks(pairs.iter().map(|(_, ttft)| *ttft).collect());
    let mean = f64::midpoint(pairs.len() as f64, 1.0);
    let (mut both, mut of_depths, mut of_ttfts) = (0.0, 0.0, 0.0);
    for (depth, ttft) in depths.iter().zip(&ttfts) {
        let (depth, ttft) = (depth - mean, ttft - mean);
        both += depth * ttft;
        of_depths += depth * depth;
        of_ttfts += ttft * ttft;
    }
    (of_depths > 0.0 && of_ttfts > 0.0).then(|| both / (of_depths * of_ttfts).sqrt())
}

fn mean_ranks(values: Vec<f64>) -> Vec<f64> {
    let mut order: Vec<(usize, f64)> = values.into_iter().enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut ranked: Vec<(usize, f64)> = Vec::with_capacity(order.len());
    for equal in order.chunk_by(|a, b| a.1 == b.1) {
        let rank = ranked.len() as f64 + f64::midpoint(equal.len() as f64, 1.0);
        ranked.extend(equal.iter().map(|(place, _)| (*place, rank)));
    }
    ranked.sort_by_key(|(place, _)| *place);
    ranked.into_iter().map(|(_, rank)| rank).collect()
}
