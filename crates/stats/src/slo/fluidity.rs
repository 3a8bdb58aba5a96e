//! The fluidity index and the fluid token rate.
//!
//! The first token has a deadline, and each next one another after it. Who is early gains slack for
//! later tokens; who is late misses as many deadlines as passed meanwhile, and starts again.

use goodput_model::RequestRecord;

use crate::sample::Sample;
use crate::summary::FluiditySummary;

/// An answer with this index or more is fluid.
pub(crate) const FLUID: f64 = 0.9;

/// How closely the smallest deadline is looked for, as a share of the longest wait.
const CLOSE: f64 = 1e-6;

/// The tokens of an answer as they came.
#[derive(Debug, Default)]
pub(crate) struct Pacing {
    /// Wait for the first token and its deadline, where it has one.
    pub(crate) first: Option<(f64, f64)>,
    /// Further tokens in the first chunk.
    pub(crate) extra_first: f64,
    /// Wait for each further chunk, and its tokens after the first.
    pub(crate) chunks: Vec<(f64, f64)>,
}

impl Pacing {
    /// The chunks of a request's first answer.
    pub(crate) fn from_record(record: &RequestRecord, first: Option<(f64, f64)>) -> Self {
        let mut pacing = Self { first, ..Self::default() };
        let chunks = &record.exchange.chunks;
        let Some(choice) = chunks.first().map(|chunk| chunk.choice) else { return pacing };
        let mut before = None;
        for chunk in chunks.iter().filter(|chunk| chunk.choice == choice) {
            let extra = f64::from(chunk.tokens.unwrap_or(1).saturating_sub(1));
            match before.replace(chunk.at) {
                None => pacing.extra_first = extra,
                Some(before) => pacing.chunks.push(((chunk.at - before).as_ms(), extra)),
            }
        }
        pacing
    }

    /// The index for this deadline of each next token; none without a token to judge.
    pub(crate) fn fluidity_index(&self, each_ms: f64) -> Option<f64> {
        let mut slack = 0.0;
        let (mut kept, mut missed) = (0.0, 0.0);
        let mut take = |wait: f64, deadline: f64, extra: f64| {
            if wait <= deadline + slack {
                slack += deadline - wait;
                kept += 1.0;
            } else {
                missed += ((wait - slack - deadline) / each_ms).floor() + 1.0;
                slack = 0.0;
            }
            // Tokens that came along came at once.
            slack += extra * each_ms;
            kept += extra;
        };
        match self.first {
            Some((wait, deadline)) => take(wait, deadline, self.extra_first),
            None if self.extra_first > 0.0 => take(0.0, each_ms, self.extra_first - 1.0),
            None => {}
        }
        for (wait, extra) in &self.chunks {
            take(*wait, each_ms, *extra);
        }
        let total = kept + missed;
        (total > 0.0).then(|| 1.0 - missed / total)
    }

    /// Whether the chunks after the first, of this many tokens, are fluid with this deadline: as
    /// [`Self::fluidity_index`], but it ends as soon as nothing can help any more, which is soon where the
    /// deadline is far too small.
    fn is_fluid(&self, each_ms: f64, tokens: f64) -> bool {
        let (mut slack, mut kept, mut missed, mut left) = (0.0, 0.0, 0.0, tokens);
        for (wait, extra) in &self.chunks {
            if *wait <= each_ms + slack {
                slack += each_ms - wait;
                kept += 1.0;
            } else {
                missed += ((wait - slack - each_ms) / each_ms).floor() + 1.0;
                slack = 0.0;
                // Even if all that is left came in time; with room for rounding.
                if missed > (1.0 - FLUID) * (kept + missed + left) + 1e-6 {
                    return false;
                }
            }
            slack += extra * each_ms;
            kept += extra;
            left -= 1.0 + extra;
        }
        1.0 - missed / (kept + missed) >= FLUID
    }

    /// Where the smallest deadline lies, and how many tokens came after the first chunk.
    ///
    /// From above: with the longest mean wait of any beginning every token is in time. From below: all
    /// waits together are no longer than the deadlines that were kept, those that were missed, and
    /// one more for each late token; of a fluid answer's deadlines a tenth at most are missed.
    fn deadline_bounds(&self) -> (f64, f64, f64) {
        let (mut waits, mut tokens, mut most) = (0.0, 0.0, 0.0f64);
        for (wait, extra) in &self.chunks {
            (waits, tokens) = (waits + wait, tokens + 1.0);
            most = most.max(waits / tokens);
            tokens += extra;
        }
        let missed = (1.0 - FLUID) / FLUID;
        let least = waits / (tokens * (1.0 + 2.0 * missed));
        // With room for rounding.
        (least * (1.0 - 1e-9), most * (1.0 + 1e-9), tokens)
    }

    /// The smallest deadline of each next token with which the answer is fluid; none of a single
    /// token. The index never falls when the deadline grows.
    ///
    /// The first token is not judged here: what it came too early would hide the pace of a short
    /// answer.
    pub(crate) fn smallest_deadline(&self) -> Option<f64> {
        let longest = self.chunks.iter().map(|chunk| chunk.0).fold(0.0, f64::max);
        // If everything came at once, the pace is unknown.
        if longest <= 0.0 {
            return None;
        }
        let (mut too_small, mut enough, tokens) = self.deadline_bounds();
        while enough - too_small > longest * CLOSE {
            let middle = f64::midpoint(too_small, enough);
            if self.is_fluid(middle, tokens) {
                enough = middle;
            } else {
                too_small = middle;
            }
        }
        Some(enough)
    }
}

/// Indexes of all requests.
#[derive(Debug)]
pub(crate) struct FluidityTally {
    each_ms: f64,
    indexes: Sample,
    deadlines: Sample,
    fluid: u64,
}

impl FluidityTally {
    pub(crate) fn new(each_ms: f64) -> Self {
        Self { each_ms, indexes: Sample::default(), deadlines: Sample::default(), fluid: 0 }
    }

    /// The index of a request and how its tokens came; none came of a failure.
    pub(crate) fn add(&mut self, pacing: Option<&Pacing>, index: f64) {
        self.indexes.push(index);
        self.fluid += u64::from(index >= FLUID);
        match pacing.map(Pacing::smallest_deadline) {
            Some(Some(deadline)) => self.deadlines.push(deadline),
            // Nothing came.
            None => self.deadlines.push(f64::INFINITY),
            // A single token has no pace.
            Some(None) => {}
        }
    }

    pub(crate) fn finish(mut self) -> Option<FluiditySummary> {
        self.indexes.sort();
        self.deadlines.sort();
        let n = self.indexes.len();
        let index = |percent: f64| self.indexes.percentile(percent);
        Some(FluiditySummary {
            n,
            token_deadline_ms: self.each_ms,
            fluid_share: self.fluid as f64 / n as f64,
            p1: index(1.0)?,
            p10: index(10.0)?,
            p50: index(50.0)?,
            fluid_token_rate: self.deadlines.percentile(99.0).map(|deadline| 1e3 / deadline),
        })
    }
}
