//! Whether a point of a sweep may end early.
//!
//! *Hopeless*: the queue grows, more requests fail than the SLO allows beyond chance, requests
//! hang, or the SLO is missed even if all that is still to come were good. *Decided*: a sequential
//! test on the shares of good requests says yes or no ([`decide`]).
//!
//! Nothing here rests on which requests have ended first. A miss is a miss whenever it ends; errors
//! are counted against all that were due; and the sequential test looks at all that were due up to
//! some instant, with those of them that have not ended as misses when it says yes, and as good when
//! it says no. Requests of the burn-in never count.

mod decide;
mod part;

#[cfg(test)]
mod study;
#[cfg(test)]
mod tests;

use goodput_model::{
    EndedBy, MetricName, Nanos, Phase, Plan, RequestRecord, SloMetric, SloStatistic, SloTerm,
    StopEarly,
};

use super::growth::{Tick, Ticks};
use crate::cuts::Cuts;
use crate::estimate::binomial_cdf;
use crate::request::{Latencies, LatencyValue};
use crate::slo::Judge;
use decide::{EndedRequest, ShareSeries, TestVerdict};
use part::Part;

/// Errors that are rarer than this by chance have a cause.
const CHANCE: f64 = 0.001;

/// Of fewer requests no error share is told.
const FEWEST: u64 = 20;

/// The share of failed requests that an SLO without a word about them allows.
const ERRORS: f64 = 0.01;

/// Requests that take this many times the longest answer hang, but never before [`PATIENCE`].
const HANGS: u64 = 3;
const PATIENCE: Nanos = Nanos::from_millis(10_000);

/// Ticks in a row in which the queue grows before that is believed, where the SLO is kept so far: one
/// alone may be chance when one looks every second.
const GROWS: u32 = 10;

/// A request is let go a little before it is due.
const EARLY: Nanos = Nanos::from_millis(100);

/// Shares that are watched at most: a bit for each.
const MOST: usize = 64;

/// A share of requests that must keep something.
#[derive(Debug)]
struct Share {
    of: Of,
    /// That share, in (0, 1].
    needed: f64,
    misses: u64,
    /// What is in flight for longer than this has missed it.
    late: Option<Nanos>,
}

/// What they must keep.
#[derive(Debug, Clone, Copy)]
enum Of {
    /// All that was promised about single requests.
    All,
    /// The limit of a percentile.
    Term(SloTerm),
    /// Nothing but to end well.
    Success,
}

/// Watches a point of a sweep.
#[derive(Debug)]
pub(super) struct Probe {
    stops: StopEarly,
    judge: Judge,
    shares: Vec<Share>,
    /// Whether the shares are all that was promised: means and figures of the run are not.
    is_whole: bool,
    /// The share of requests that may fail.
    errors: f64,
    stream: bool,
    part: Part,
    /// Requests of the measured part that have ended, nearly in the order in which they were due.
    ended: Vec<EndedRequest>,
    failed: u64,
    /// Sum and number of what good answers took, in seconds.
    took: (f64, u64),
    /// The longest that a good answer took, of the burn-in too.
    longest: Nanos,
    /// Requests in flight at the last tick.
    under_way: u64,
    /// The measured part by itself: before that a server fills up.
    ticks: Ticks,
    /// Ticks in a row in which the queue grew.
    growing: u32,
    end: Option<EndedBy>,
}

impl Probe {
    /// None if the plan does not let it end early, or promises nothing.
    pub(super) fn new(plan: &Plan) -> Option<Self> {
        let (stops, judge) = (plan.measure.stop_early?, Judge::new(plan)?);
        let slo = plan.measure.slo.as_ref()?;
        let shares = slo_shares(plan, &judge, &slo.terms);
        let has_share = |term: &SloTerm| match term.statistic {
            SloStatistic::Mean => false,
            SloStatistic::Percentile(_) => true,
            // Those about single requests are in the share of good ones, where one is asked for.
            SloStatistic::Plain => !matches!(term.metric, SloMetric::Rps | SloMetric::OutputTps),
        };
        let error_limit = slo.terms.iter().find(|term| term.metric == SloMetric::Errors);
        Some(Self {
            stops,
            is_whole: slo.terms.iter().all(has_share) && shares.len() < MOST,
            errors: error_limit.map_or(ERRORS, |term| term.limit.base / 100.0).clamp(0.0, 1.0),
            judge,
            shares,
            stream: plan.target.stream,
            part: Part::from_load(&plan.load),
            ended: Vec::new(),
            failed: 0,
            took: (0.0, 0),
            longest: Nanos::ZERO,
            under_way: 0,
            ticks: Ticks::default(),
            growing: 0,
            end: None,
        })
    }

    /// A request has ended.
    pub(super) fn add(&mut self, record: &RequestRecord) {
        let took = record.end() - record.scheduled;
        if record.is_ok() {
            self.longest = self.longest.max(took);
        }
        if record.phase != Phase::Measured {
            self.part.ended_outside(record.phase);
            return;
        }
        if record.is_ok() {
            self.took = (self.took.0 + took.as_secs(), self.took.1 + 1);
        }
        self.failed += u64::from(!record.is_ok());
        let cuts = Cuts::default();
        let judged = self.judge.look_at_all(record, &cuts);
        let mut kept = 0u64;
        for (place, share) in self.shares.iter_mut().enumerate() {
            let is_kept = match share.of {
                Of::All => self.judge.judge_request(&judged) != Some(false),
                Of::Term(term) => judged.is_kept(&term),
                Of::Success => record.is_ok(),
            };
            share.misses += u64::from(!is_kept);
            kept |= u64::from(is_kept) << place;
        }
        let first = if self.stream { MetricName::Ttft } else { MetricName::E2e };
        let wait_ms = match Latencies::new(record, self.stream, &cuts).get(first) {
            LatencyValue::Value(wait) => Some(wait as f32),
            LatencyValue::Beyond | LatencyValue::FailedAfter(_) | LatencyValue::Nothing => None,
        };
        self.ended.push(EndedRequest { due: record.scheduled, kept, wait_ms });
    }

    /// About once a second.
    pub(super) fn tick(&mut self, at: Nanos, tick: Tick) {
        self.under_way = tick.in_flight as u64;
        if self.part.tick(at, tick.started as u64) {
            self.ticks.push(tick);
            let grows = self.part.is_open && self.ticks.queue_growth().is_some();
            self.growing = if grows { self.growing + 1 } else { 0 };
        }
    }

    /// Why the point may end at this instant. Once said, it stays so.
    pub(super) fn end_reason(&mut self, at: Nanos) -> Option<EndedBy> {
        if self.end.is_some() || !self.part.is_running(at) {
            return self.end;
        }
        // Nearly in order already: requests end about as they begin.
        self.ended.sort_by_key(|ended| ended.due);
        let is_decided = || self.stops == StopEarly::Decided && self.verdict(at).is_some();
        self.end = if self.is_hopeless(at) {
            Some(EndedBy::Hopeless)
        } else {
            is_decided().then_some(EndedBy::Decided)
        };
        self.end
    }

    fn is_hopeless(&self, at: Nanos) -> bool {
        self.is_overloaded()
            || self.has_too_many_errors()
            || self.is_hanging(at)
            || self.is_out_of_reach(at)
    }

    /// The queue grows, and a share is missed by what has ended, or it has grown for long.
    fn is_overloaded(&self) -> bool {
        let n = self.ended.len() as f64;
        let is_missed = |share: &Share| share.misses as f64 > (1.0 - share.needed) * n;
        self.growing >= GROWS || (self.growing > 0 && self.shares.iter().any(is_missed))
    }

    /// Beyond chance. What is in flight counts as good: requests that are refused end first.
    fn has_too_many_errors(&self) -> bool {
        let n = self.part.released_requests().max(self.ended.len() as u64);
        let Some(fewer) = self.failed.checked_sub(1).filter(|_| n >= FEWEST) else { return false };
        1.0 - binomial_cdf(fewer, n, self.errors) < CHANCE
    }

    /// Many requests are in flight for far longer than any answer took.
    fn is_hanging(&self, at: Nanos) -> bool {
        let long = Nanos(self.longest.0.saturating_mul(HANGS)).max(PATIENCE);
        self.longest > Nanos::ZERO && self.unfinished_since(at - long) >= FEWEST
    }

    /// Whether a share is missed even if all that is still to come keeps it.
    fn is_out_of_reach(&self, at: Nanos) -> bool {
        let Some(total) = self.part.most_requests(at) else { return false };
        self.shares.iter().any(|share| {
            let late = share.late.map_or(0, |late| self.unfinished_since(at - late - EARLY));
            (share.misses + late) as f64 > (1.0 - share.needed) * total + 1e-9
        })
    }

    /// Measured requests that were let go before this instant and have not ended, at least.
    fn unfinished_since(&self, before: Nanos) -> u64 {
        let Some((from, to)) = self.part.release_span(before) else { return 0 };
        let until = |at: Nanos| self.ended.partition_point(|ended| ended.due <= at);
        let ended = until(to.at).saturating_sub(until(from.at)) as u64;
        to.started.saturating_sub(from.started).saturating_sub(ended)
    }

    /// What the sequential tests say together: one that rejects is enough, all must accept.
    fn verdict(&self, at: Nanos) -> Option<TestVerdict> {
        let mean_s = self.took.0 / self.took.1.max(1) as f64;
        let is_early = self.ended.len() < decide::FEWEST
            || (at - self.part.began_at()?).as_secs() < decide::ANSWERS * mean_s;
        if is_early || self.part.is_capped {
            return None;
        }
        let prefixes = self.part.prefixes(&self.ended);
        let (ended, under_way) = (self.ended.as_slice(), self.under_way);
        let decide = |(place, share): (usize, &Share)| {
            ShareSeries { ended, place, prefixes: &prefixes, under_way }.decide(share.needed)
        };
        let verdicts: Vec<Option<TestVerdict>> =
            self.shares.iter().enumerate().map(decide).collect();
        if verdicts.contains(&Some(TestVerdict::Missed)) {
            return Some(TestVerdict::Missed);
        }
        let all_kept = verdicts.iter().all(|verdict| *verdict == Some(TestVerdict::Kept));
        (all_kept && self.is_whole && !verdicts.is_empty()).then_some(TestVerdict::Kept)
    }
}

/// Every share that the SLO is about.
fn slo_shares(plan: &Plan, judge: &Judge, terms: &[SloTerm]) -> Vec<Share> {
    let late = |terms: &[SloTerm]| terms.iter().filter_map(latest_duration).min();
    let share = |of, needed, late| Share { of, needed, misses: 0, late };
    let target = plan.measure.attainment.filter(|target| *target > 0.0 && *target <= 1.0);
    let all = target.map(|target| share(Of::All, target, late(judge.slo_terms())));
    let each = terms.iter().filter_map(|term| match (term.metric, term.statistic) {
        (SloMetric::Errors, _) => {
            Some(share(Of::Success, 1.0 - (term.limit.base / 100.0).clamp(0.0, 1.0), None))
        }
        (metric, SloStatistic::Percentile(percent)) if !metric.is_run_wide() => {
            let q = percent / 100.0;
            let needed = if term.relation.is_floor() { 1.0 - q } else { q };
            Some(share(Of::Term(*term), needed, late(&[*term])))
        }
        _ => None,
    });
    all.into_iter().chain(each).take(MOST).collect()
}

/// A request that takes longer than this has missed the term, whatever comes of it.
fn latest_duration(term: &SloTerm) -> Option<Nanos> {
    let is_end = term.metric == SloMetric::Request(MetricName::E2e);
    (is_end && !term.relation.is_floor() && !term.limit.is_linear())
        .then(|| Nanos::from_secs_f64(term.limit.base / 1e3))
}
