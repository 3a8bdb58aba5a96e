//! The points so far, as the search sees them.

use goodput_model::{EndedBy, SloTerm};

use super::super::judge::{allowed, allowed_failures, judge_load, target};
use super::super::{
    Axis, Bounded, Figures, Level, Miss, Point, PointStanding, Purpose, SweepPlan, Unclear,
};
use super::disturbance::{SpoiltPoints, is_met_all_the_same};
use super::effort::EffortMeasures;
use super::{AGAIN, Wish, may_be_transient};

/// Levels nearer to each other than this are the same.
const SAME: f64 = 1e-6;
/// A miss this far below a level that is kept contradicts it.
const BELOW: f64 = 1.03;

/// A miss is plain where the lower end of its share is this many times what may miss: intervals of
/// dependent requests are too narrow.
const PLAINLY: f64 = 2.0;

/// And this many failures may be chance.
const SOME_FAILURES: f64 = 3.0;

/// A point on the axis of the sweep.
#[derive(Debug, Clone)]
pub(super) struct SeenPoint<'a> {
    /// Its place in the list of points.
    pub(super) place: usize,
    pub(super) level: f64,
    pub(super) purpose: Purpose,
    pub(super) standing: PointStanding,
    /// Whether chance is not likely to have decided.
    pub(super) is_clear: bool,
    pub(super) figures: &'a Figures,
}

/// A level that was missed below one that was kept, and what came of a second look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Conflict {
    pub(super) missed: f64,
    pub(super) kept: f64,
    /// Place of the later one of the two.
    pub(super) place: usize,
    /// Whether that is the one that kept the SLO.
    pub(super) is_better: bool,
    /// None before the second look.
    pub(super) again: Option<bool>,
}

pub(super) struct CurveView<'a> {
    pub(super) plan: &'a SweepPlan,
    pub(super) points: &'a [Point],
    pub(super) pace: EffortMeasures,
    /// The warm-up, once it has told how fast the server is.
    pub(super) warm: Option<&'a Figures>,
    pub(super) spoiled_points: SpoiltPoints,
    /// Points on the axis that hold, in the order measured; those before a change of the server do
    /// not.
    pub(super) seen: Vec<SeenPoint<'a>>,
    pub(super) conflicts: Vec<Conflict>,
    /// Points before this place are of a server that has changed since.
    pub(super) changed: Option<usize>,
    /// A level that was missed twice though a higher one was kept: the answer lies below.
    pub(super) shadow: Option<f64>,
}

impl<'a> CurveView<'a> {
    pub(super) fn new(plan: &'a SweepPlan, points: &'a [Point]) -> Self {
        let warm = points
            .iter()
            .find(|point| point.ask.purpose == Purpose::WarmUp && point.figures.ok > 0)
            .map(|point| &point.figures);
        let spoiled_points = SpoiltPoints::new(plan, points);
        let is_lasting = spoiled_points.is_lasting();
        let seen = points.iter().enumerate();
        let seen = seen.filter_map(|(place, point)| judge_point(plan, place, point, is_lasting));
        let mut view = Self {
            plan,
            points,
            pace: EffortMeasures::from_effort(plan.effort),
            warm,
            spoiled_points,
            seen: seen.collect(),
            conflicts: Vec::new(),
            changed: None,
            shadow: None,
        };
        view.forgive_transients();
        view.resolve_conflicts();
        view
    }

    /// How often a point that was spoiled is measured again.
    pub(super) fn allowed_repeats(&self) -> usize {
        if self.spoiled_points.is_lasting() { 0 } else { AGAIN }
    }

    /// Others may have had this machine for a moment: what says nothing counts against a level only
    /// when it said nothing each time.
    fn forgive_transients(&mut self) {
        let levels = |is_unclear: bool| -> Vec<f64> {
            let of = |seen: &&SeenPoint<'_>| seen.is_unclear() == is_unclear;
            self.seen.iter().filter(of).map(|seen| seen.level).collect()
        };
        let (spoiled, clear) = (levels(true), levels(false));
        let times = |levels: &[f64], level: f64| {
            levels.iter().filter(|other| is_same_level(**other, level)).count()
        };
        let repeats = self.allowed_repeats();
        let is_lasting = self.spoiled_points.is_lasting();
        self.seen.retain(|seen| {
            let is_cleared = is_lasting && times(&clear, seen.level) > 0;
            !seen.is_unclear() || (times(&spoiled, seen.level) > repeats && !is_cleared)
        });
    }

    /// How many of the last points, all at one level, this client spoiled, or gave up too early.
    pub(super) fn spoiled_in_a_row(&self) -> usize {
        let Some(last) = self.points.last() else { return 0 };
        let is_spoiled = |point: &&Point| {
            point.ask.level == last.ask.level
                && point.ask.purpose == last.ask.purpose
                && !matches!(point.ask.purpose, Purpose::WarmUp | Purpose::Twin)
                && matches!(
                    judge_load(&point.figures, self.plan),
                    PointStanding::Unclear(Unclear::Client | Unclear::GivenUpTooEarly)
                )
        };
        self.points.iter().rev().take_while(is_spoiled).count()
    }

    /// Whether a point of this kind was given up though what was measured of it keeps the SLO.
    pub(super) fn was_given_up(&self, wish: Wish) -> bool {
        self.points.iter().any(|point| {
            point.ask.level == wish.level
                && point.ask.purpose == wish.purpose
                && judge_load(&point.figures, self.plan)
                    == PointStanding::Unclear(Unclear::GivenUpTooEarly)
        })
    }

    /// Finds contradictions and what second looks made of them.
    fn resolve_conflicts(&mut self) {
        while let Some(conflict) = self.lowest_conflict() {
            self.conflicts.push(conflict);
            match conflict.again {
                None => break,
                Some(true) if conflict.is_better => {
                    self.changed = Some(conflict.place);
                    self.seen.retain(|seen| seen.place >= conflict.place);
                }
                // It was a moment's weakness.
                Some(true) => self.seen.retain(|seen| seen.place != conflict.place),
                Some(false) => {
                    let shadow =
                        self.shadow.map_or(conflict.missed, |old| old.min(conflict.missed));
                    self.shadow = Some(shadow);
                }
            }
        }
    }

    /// The lowest level that was plainly missed though a higher one was plainly kept.
    fn lowest_conflict(&self) -> Option<Conflict> {
        let below_shadow =
            |level: f64| self.shadow.is_none_or(|shadow| level < shadow * (1.0 - SAME));
        let clear = |is_over: bool| {
            self.seen
                .iter()
                .filter(move |seen| {
                    seen.is_clear && seen.is_over() == is_over && !seen.is_unclear()
                })
                .filter(move |seen| below_shadow(seen.level))
        };
        // Runs near the limit miss by chance.
        let missed = clear(true).filter(|seen| seen.is_coarse());
        let missed = missed.min_by(|a, b| a.level.total_cmp(&b.level))?;
        // The first that shows it, so that later points do not open the question again.
        let kept = clear(false).find(|kept| kept.level > missed.level * BELOW)?;
        let later = missed.place.max(kept.place);
        let again = self
            .seen
            .iter()
            .find(|seen| seen.place > later && is_same_level(seen.level, missed.level))
            .map(|seen| !seen.is_over());
        let is_better = missed.place < kept.place;
        Some(Conflict { missed: missed.level, kept: kept.level, place: later, is_better, again })
    }

    /// Whether a point must be measured again.
    pub(super) fn must_repeat(&self, point: &Point) -> bool {
        if point.ask.purpose == Purpose::WarmUp {
            return point.figures.ok == 0;
        }
        match judge_load(&point.figures, self.plan) {
            PointStanding::Unclear(Unclear::Nothing) => {
                self.plan.slo.is_some() || point.figures.requests == 0
            }
            PointStanding::Unclear(unclear) => may_be_transient(&unclear),
            PointStanding::Met | PointStanding::Missed(_) => false,
        }
    }

    /// How many of the last points said nothing.
    pub(super) fn unclear_in_a_row(&self) -> usize {
        self.points.iter().rev().take_while(|point| self.must_repeat(point)).count()
    }

    /// The highest level that is kept, by coarse points.
    pub(super) fn highest_kept(&self) -> Option<f64> {
        let below = |level: f64| self.shadow.is_none_or(|shadow| level < shadow * (1.0 - SAME));
        let kept = self.coarse_points().filter(|seen| !seen.is_over() && below(seen.level));
        kept.map(|seen| seen.level).max_by(f64::total_cmp)
    }

    /// The lowest level that is too much, by coarse points.
    pub(super) fn lowest_missed(&self) -> Option<f64> {
        self.coarse_points()
            .filter(|seen| seen.is_over())
            .map(|seen| seen.level)
            .min_by(f64::total_cmp)
    }

    fn coarse_points(&self) -> impl Iterator<Item = &SeenPoint<'a>> {
        self.seen.iter().filter(|seen| seen.is_coarse())
    }

    /// The lowest level at which this client was the limit.
    pub(super) fn client_limit(&self) -> Option<f64> {
        let of = |seen: &&SeenPoint<'_>| seen.standing == PointStanding::Unclear(Unclear::Client);
        self.seen.iter().filter(of).map(|seen| seen.level).min_by(f64::total_cmp)
    }

    /// The points of one purpose.
    pub(super) fn points_for(&self, purpose: Purpose) -> impl Iterator<Item = &SeenPoint<'a>> {
        self.seen.iter().filter(move |seen| seen.purpose == purpose)
    }

    /// Inside the bounds of the plan, and a level that there is.
    pub(super) fn clamp_level(&self, level: f64) -> f64 {
        let positive = |bound: &f64| bound.is_finite() && *bound > 0.0;
        let least = self.plan.least.filter(positive).unwrap_or(match self.plan.axis {
            Axis::Rate => 1e-4,
            Axis::Concurrency => 1.0,
        });
        let most = self.plan.most.filter(positive).unwrap_or(match self.plan.axis {
            Axis::Rate => 1e6,
            Axis::Concurrency => 1e5,
        });
        let level = if level.is_finite() { level } else { least };
        let level = level.max(least).min(most.max(least));
        match self.plan.axis {
            // Four digits: what is said is what was sent.
            Axis::Rate => round_level(level).clamp(least.min(level), most.max(level)),
            Axis::Concurrency => Level::from_value(Axis::Concurrency, level).value(),
        }
    }

    pub(super) fn wish_at(&self, purpose: Purpose, level: f64) -> Wish {
        Wish { purpose, level: Level::from_value(self.plan.axis, self.clamp_level(level)) }
    }

    /// Mean and p99 of E2E in seconds, by the warm-up.
    pub(super) fn e2e_s(&self) -> (f64, f64) {
        self.warm.map_or((1.0, 4.0), e2e_s)
    }

    /// Of the nearest point that was not too much.
    fn e2e_near(&self, level: Level) -> (f64, f64) {
        let distance = |seen: &&SeenPoint<'_>| (seen.level / level.value()).ln().abs();
        let good = self.seen.iter().filter(|seen| !seen.is_over() && seen.figures.ok > 0);
        let near = good
            .filter(|_| level.axis() == self.plan.axis)
            .min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let (mean, p99) = self.e2e_s();
        // Bounded by what the stated time was made of.
        near.map_or((mean, p99), |seen| {
            let (near_mean, near_p99) = e2e_s(seen.figures);
            (near_mean.clamp(mean, 2.0 * mean), near_p99.clamp(p99, 1.5 * p99))
        })
    }

    /// Load before the measured part.
    pub(super) fn burn_in_s(&self, level: Level) -> f64 {
        let asked = self.plan.burn_in_s.filter(|seconds| seconds.is_finite());
        let (mean, _) = self.e2e_near(level);
        let seconds = (self.pace.times_mean * mean).min(self.pace.longest_burn_s);
        round_seconds(asked.unwrap_or(seconds).clamp(0.0, 86_400.0))
    }

    /// Measured seconds at most.
    pub(super) fn measured_s(&self, wish: Wish) -> f64 {
        if wish.purpose == Purpose::Sustain {
            return self.pace.sustained_s(self.plan);
        }
        let (mean, p99) = self.e2e_near(wish.level);
        let rate = match wish.level {
            Level::Rate(rate) => rate,
            Level::Users(users) => f64::from(users) / mean.max(1e-3),
        };
        round_seconds(self.point_length_s(wish.purpose, rate.max(1e-6), p99))
    }

    /// Measured seconds of a point at this rate.
    pub(super) fn point_length_s(&self, purpose: Purpose, rate: f64, p99: f64) -> f64 {
        let pace = self.pace;
        let asked = self.plan.point_s.filter(|seconds| seconds.is_finite() && *seconds > 0.0);
        let by_p99 = (pace.times_p99 * p99).min(pace.longest_s);
        let base = asked.unwrap_or(by_p99.max(pace.least_s));
        let by_count = match (self.plan.point_requests, asked) {
            (Some(requests), _) => requests as f64 / rate,
            // Far from the limit the time will do.
            (None, None) if purpose != Purpose::Bracket => {
                (pace.requests_for(purpose) / rate).min(pace.longest_s)
            }
            (None, _) => 0.0,
        };
        base.max(by_count).clamp(1.0, 86_400.0)
    }
}

impl SeenPoint<'_> {
    /// Whether the search goes lower from here.
    pub(super) fn is_over(&self) -> bool {
        !matches!(self.standing, PointStanding::Met)
    }

    /// Whether it belongs to bracket and curve.
    pub(super) fn is_coarse(&self) -> bool {
        !matches!(self.purpose, Purpose::Focus | Purpose::Confirm | Purpose::Sustain)
    }

    /// Whether it says nothing about the server.
    pub(super) fn is_unclear(&self) -> bool {
        matches!(self.standing, PointStanding::Unclear(_))
    }

    /// Whether it ran to its end: what stopped early stopped because of what it had seen.
    pub(super) fn is_whole(&self) -> bool {
        !matches!(self.figures.ended_by, Some(EndedBy::Hopeless | EndedBy::Decided))
    }

    /// Whether more than a term of the SLO speaks against it.
    pub(super) fn is_wall(&self) -> bool {
        matches!(
            self.standing,
            PointStanding::Missed(Miss::OverSaturated | Miss::RateLimited | Miss::Errors)
        )
    }
}

fn judge_point<'a>(
    plan: &SweepPlan,
    place: usize,
    point: &'a Point,
    is_disturbed: bool,
) -> Option<SeenPoint<'a>> {
    let Point { ask, figures } = point;
    let is_aside = matches!(ask.purpose, Purpose::WarmUp | Purpose::Twin);
    let level = ask.level.value();
    if is_aside || ask.level.axis() != plan.axis || !level.is_finite() || level <= 0.0 {
        return None;
    }
    let standing = match judge_load(figures, plan) {
        // Nothing was promised, and the server keeps up.
        PointStanding::Unclear(Unclear::Nothing) if plan.slo.is_none() && figures.requests > 0 => {
            PointStanding::Met
        }
        PointStanding::Unclear(unclear) if may_be_transient(&unclear) => return None,
        PointStanding::Unclear(Unclear::Client)
            if is_disturbed && is_met_all_the_same(figures, plan) =>
        {
            PointStanding::Met
        }
        standing => standing,
    };
    let is_clear = is_clear(plan, figures, &standing);
    Some(SeenPoint { place, level, purpose: ask.purpose, standing, is_clear, figures })
}

/// Whether the interval of what decided lies on one side, or it was given up.
fn is_clear(plan: &SweepPlan, figures: &Figures, standing: &PointStanding) -> bool {
    let is_kept = match standing {
        PointStanding::Met => true,
        PointStanding::Missed(Miss::Term(_) | Miss::Attainment) => false,
        // One failure of thirty requests proves nothing.
        PointStanding::Missed(Miss::RateLimited | Miss::Errors) => {
            let allowed = allowed_failures(plan);
            let least = PLAINLY * allowed * figures.requests as f64 + SOME_FAILURES;
            return figures.failed as f64 > least;
        }
        PointStanding::Missed(Miss::OverSaturated) => return true,
        PointStanding::Unclear(_) => return false,
    };
    if figures.ended_by == Some(EndedBy::Hopeless) {
        return true;
    }
    let misses = |share: Bounded| (1.0 - share.high.unwrap_or(1.0), 1.0 - share.low.unwrap_or(0.0));
    let decided = |(low, high): (f64, f64), allowed: f64| {
        if is_kept { high <= allowed } else { low > PLAINLY * allowed }
    };
    let mut found =
        good_shares(plan, figures).map(|(share, allowed)| decided(misses(share), allowed));
    if is_kept { found.all(|is| is) } else { found.any(|is| is) }
}

/// Shares of good requests, each with the share that may miss.
pub(super) fn good_shares<'a>(
    plan: &'a SweepPlan,
    figures: &'a Figures,
) -> impl Iterator<Item = (Bounded, f64)> + 'a {
    let terms = plan.slo.iter().flat_map(|slo| &slo.terms);
    let of = |term: &SloTerm| {
        let found = figures.terms.iter().find(|found| found.term == term.to_string());
        found.and_then(|found| found.attainment).zip(allowed(term))
    };
    let each = plan.slo.iter().any(|slo| slo.terms.iter().any(SloTerm::is_per_request));
    let together = figures.attainment.filter(|_| each || plan.attainment.is_some());
    terms.filter_map(of).chain(together.map(|share| (share, 1.0 - target(plan))))
}

/// Mean and p99 of E2E in seconds, by what is known of it.
pub(super) fn e2e_s(figures: &Figures) -> (f64, f64) {
    let spread = figures.e2e_ms;
    let value = |found: Option<Bounded>| found.map(|found| found.value / 1e3);
    let (p50, p90, p99) = (value(spread.p50), value(spread.p90), value(spread.p99));
    let mean = spread.mean.map(|mean| mean / 1e3).or(p50).unwrap_or(1.0);
    let mean = if mean.is_finite() { mean.clamp(1e-3, 3_600.0) } else { 1.0 };
    let p99 = p99.or(p90.map(|p90| 1.8 * p90)).unwrap_or(4.0 * mean);
    let p99 = if p99.is_finite() { p99 } else { 4.0 * mean };
    (mean, p99.clamp(mean, 7_200.0))
}

pub(super) fn is_same_level(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < SAME
}

/// Four significant digits.
fn round_level(value: f64) -> f64 {
    let scale = 10f64.powi(3 - value.abs().log10().floor().clamp(-300.0, 300.0) as i32);
    (value * scale).round() / scale
}

/// Whole seconds from ten on, tenths below.
fn round_seconds(seconds: f64) -> f64 {
    if seconds >= 10.0 { seconds.ceil() } else { (seconds * 10.0).ceil() / 10.0 }
}
