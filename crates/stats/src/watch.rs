//! [`Watch`]: what is known of a run while it runs, and whether it is enough.
//!
//! Fed with requests as they end and asked about once a second. Looks are rare and cheap: a full one
//! at most once a second and once every two percent more values, with eight bytes kept for each
//! request and rule, and four for each request.

mod estimate;
mod growth;
mod probe;

#[cfg(test)]
mod tests;

use goodput_model::{EndedBy, Goal, MetricName, Nanos, Phase, Plan, RequestRecord, StopFigure};

pub(crate) use estimate::{Estimate, estimate_figure, fewest_values};
use growth::{Tick, Ticks};
use probe::Probe;

use crate::cuts::Cuts;
use crate::request::{Latencies, LatencyValue};

/// A full look waits for this many more values than the last one had, in proportion.
const MORE: f64 = 1.02;

/// Time between full looks, a little less than the second between calls.
const APART: Nanos = Nanos::from_millis(900);

/// Looks in a row that must hold before the run ends: one alone may be luck.
const IN_A_ROW: u32 = 3;

/// What is asked of a run that was not asked anything: ±10 %.
const USUAL: f64 = 0.1;

/// What a run should know: the rules of `--until`, or p95 TTFT to ±10 % (E2E where answers come in
/// one piece).
pub fn watch_goals(plan: &Plan) -> Vec<Goal> {
    let metric = if plan.target.stream { MetricName::Ttft } else { MetricName::E2e };
    let usual = Goal { figure: StopFigure::Percentile(95.0), metric, within: USUAL };
    plan.measure.until.as_ref().map_or_else(|| vec![usual], |until| until.0.clone())
}

/// What is known of a run while it runs.
#[derive(Debug)]
pub struct Watch {
    series: Vec<RuleSeries>,
    /// Whether the rules end the run.
    may_stop: bool,
    stream: bool,
    floor: Nanos,
    first_due: Option<Nanos>,
    /// The longest that a good answer took, from the instant it was due.
    longest: Nanos,
    /// How long each good answer took, in seconds.
    took: Vec<f32>,
    ticks: Ticks,
    /// Sum and number of waits for a first token since the last tick.
    waits: (f64, u32),
    /// Of a point of a sweep.
    probe: Option<Probe>,
    looked: Nanos,
    in_a_row: u32,
    look: Look,
}

/// One look at a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Look {
    /// The figures that are asked for.
    pub figures: Vec<LiveFigure>,
    /// By how many requests per second the queue grows, where it clearly does.
    pub backlog_per_s: Option<f64>,
    /// Whether enough is known: the run may end.
    pub is_enough: bool,
    /// Why a point of a sweep may end before its time.
    pub end: Option<EndedBy>,
}

/// A figure and how well it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LiveFigure {
    /// What is asked for.
    pub goal: Goal,
    /// Its value so far; none if there is none, or where it lies beyond the time limit.
    pub value: Option<f64>,
    /// The farther end of its interval in proportion to it; none if it cannot be told.
    pub within: Option<f64>,
    /// Values that it rests on.
    pub n: u64,
    /// The number of independent values that would be worth as much.
    pub n_eff: f64,
    /// Whether requests wait for one another: a tail is then less sure than its interval says.
    pub is_queueing: bool,
    /// About how much longer it takes to be known as well as asked; none if it cannot be known.
    pub left_s: Option<f64>,
}

/// The values of one rule, each with its scheduled instant.
#[derive(Debug)]
struct RuleSeries {
    goal: Goal,
    /// Milliseconds since the first instant, and the value.
    points: Vec<(u32, f32)>,
    /// Values at the last full look.
    seen: usize,
}

impl Watch {
    /// A watch over a run of this plan.
    pub fn new(plan: &Plan) -> Self {
        let series = |goal| RuleSeries { goal, points: Vec::new(), seen: 0 };
        Self {
            series: watch_goals(plan).into_iter().map(series).collect(),
            may_stop: plan.measure.until.is_some(),
            stream: plan.target.stream,
            floor: plan.measure.min_duration.map_or(Nanos::ZERO, Nanos::from),
            first_due: None,
            longest: Nanos::ZERO,
            took: Vec::new(),
            ticks: Ticks::default(),
            waits: (0.0, 0),
            probe: Probe::new(plan),
            looked: Nanos::ZERO,
            in_a_row: 0,
            look: Look::default(),
        }
    }

    /// A request has ended.
    pub fn add(&mut self, record: &RequestRecord) {
        let cuts = Cuts::default();
        let latencies = Latencies::new(record, self.stream, &cuts);
        let first = if self.stream { MetricName::Ttft } else { MetricName::E2e };
        if let LatencyValue::Value(wait) = latencies.get(first) {
            self.waits = (self.waits.0 + wait, self.waits.1 + 1);
        }
        if let Some(probe) = &mut self.probe {
            probe.add(record);
        }
        if record.phase != Phase::Measured {
            return;
        }
        let due = record.scheduled;
        self.first_due = Some(self.first_due.map_or(due, |first| first.min(due)));
        if record.is_ok() {
            self.longest = self.longest.max(record.end() - due);
            self.took.push((record.end() - due).as_secs() as f32);
        }
        let due_ms = u32::try_from(due.0 / 1_000_000).unwrap_or(u32::MAX);
        for series in &mut self.series {
            match latencies.get(series.goal.metric) {
                LatencyValue::Value(value) => series.points.push((due_ms, value as f32)),
                LatencyValue::Beyond => series.points.push((due_ms, f32::INFINITY)),
                LatencyValue::FailedAfter(_) | LatencyValue::Nothing => {}
            }
        }
    }

    /// About once a second: how many requests have been sent, and how many are in flight.
    pub fn tick(&mut self, at: Nanos, started: u64, in_flight: u64) {
        let (sum, count) = std::mem::take(&mut self.waits);
        let ttft_ms = (count > 0).then(|| sum / f64::from(count));
        let (in_flight, started) = (in_flight as f64, started as f64);
        let tick = Tick { at_s: at.as_secs(), in_flight, started, ttft_ms };
        self.ticks.push(tick);
        if let Some(probe) = &mut self.probe {
            probe.tick(at, tick);
        }
        self.look.backlog_per_s = self.ticks.queue_growth();
    }

    /// What is known at this instant.
    pub fn look(&mut self, at: Nanos) -> &Look {
        if at - self.looked >= APART && self.series.iter().any(RuleSeries::has_more) {
            self.looked = at;
            self.refresh_look(at);
        }
        self.look.end = self.probe.as_mut().and_then(|probe| probe.end_reason(at));
        &self.look
    }

    fn refresh_look(&mut self, at: Nanos) {
        // What was due later and has ended is what was fast: it would flatter.
        let horizon = at - self.longest;
        let elapsed = horizon - self.first_due.unwrap_or(horizon);
        let horizon_ms = u32::try_from(horizon.0 / 1_000_000).unwrap_or(u32::MAX);
        let hanging = self.ticks.in_flight_since(horizon.as_secs());
        let figure =
            |series: &mut RuleSeries| series.live_figure(horizon_ms, elapsed.as_secs(), hanging);
        self.look.figures = self.series.iter_mut().map(figure).collect();
        let holds = self.look.figures.iter().all(LiveFigure::is_enough);
        self.in_a_row = if holds { self.in_a_row + 1 } else { 0 };
        let is_time = at - self.first_due.unwrap_or(at) >= self.floor.max(self.five_answer_times());
        let is_calm = self.look.backlog_per_s.is_none();
        self.look.is_enough = self.may_stop && is_time && is_calm && self.in_a_row >= IN_A_ROW;
    }

    /// Five times p99 of what an answer takes: before that a queue has not shown what it can do.
    fn five_answer_times(&mut self) -> Nanos {
        let rank = (self.took.len() as f64 * 0.99).ceil() as usize;
        let Some(place) = rank.checked_sub(1) else { return Nanos::ZERO };
        let p99 = *self.took.select_nth_unstable_by(place, f32::total_cmp).1;
        Nanos::from_secs_f64(5.0 * f64::from(p99))
    }
}

impl LiveFigure {
    /// Whether it is known as well as asked, from as many values as it needs to stand for itself.
    pub fn is_enough(&self) -> bool {
        self.is_narrow() && self.n >= self.fewest_values() && !self.is_queueing
    }

    /// Whether its interval is as narrow as asked.
    pub fn is_narrow(&self) -> bool {
        self.within.is_some_and(|within| within <= self.goal.within)
    }

    /// The fewest values from which it stands for itself.
    pub fn fewest_values(&self) -> u64 {
        fewest_values(self.goal.figure)
    }
}

/// What comes in after a stop may widen an interval by so much.
const EXPLAINED: f64 = 1.5;

impl LiveFigure {
    /// Whether it is known less well than asked, and than what came in after a stop explains.
    pub(crate) fn is_far(&self) -> bool {
        let limit = EXPLAINED * self.goal.within;
        !self.is_enough() && self.within.is_none_or(|within| within > limit)
    }
}

impl RuleSeries {
    fn has_more(&self) -> bool {
        self.points.len() as f64 >= (self.seen as f64 * MORE).max(1.0)
    }

    /// Requests that should have ended by now and hang count as never reached.
    fn live_figure(&mut self, horizon_ms: u32, elapsed_s: f64, hanging: u64) -> LiveFigure {
        self.seen = self.points.len();
        // Nearly in order already: requests end about as they begin.
        self.points.sort_by_key(|point| point.0);
        let settled = self.points.partition_point(|point| point.0 <= horizon_ms);
        let hanging = std::iter::repeat_n(f64::INFINITY, hanging as usize);
        let values: Vec<f64> =
            self.points[..settled].iter().map(|point| point.1.into()).chain(hanging).collect();
        to_live_figure(self.goal, estimate_figure(self.goal.figure, &values), elapsed_s)
    }
}

/// What an estimate says, and how much longer it takes at the present rate.
pub(crate) fn to_live_figure(goal: Goal, found: Option<Estimate>, elapsed_s: f64) -> LiveFigure {
    let Some(found) = found else {
        return LiveFigure {
            goal,
            value: None,
            within: None,
            n: 0,
            n_eff: 0.0,
            is_queueing: false,
            left_s: None,
        };
    };
    let Estimate { value, n, n_eff, is_queueing, .. } = found;
    let within = found.relative_half_width();
    let by_width = found.sample_size_factor(goal.within);
    let by_count = fewest_values(goal.figure) as f64 / n as f64;
    let more = by_width.map(|by_width| by_width.max(by_count));
    // More of the same does not help where requests wait for one another.
    let more = more.filter(|_| !is_queueing);
    let left_s = more.map(|more| elapsed_s * (more - 1.0).max(0.0));
    LiveFigure { goal, value, within, n, n_eff, is_queueing, left_s }
}
