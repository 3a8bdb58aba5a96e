//! Where the SLO is crossed, by all points near it.
//!
//! A share of misses follows a logistic curve over the logarithm of the load; a mean follows a
//! straight line in logarithms. Each term has a crossing, and the lowest one counts. Misses come in
//! clusters, so requests weigh as much as this many independent ones.

use goodput_model::{EndedBy, SloMetric, SloStatistic, SloTerm};

use goodput_stats::student_quantile;

use super::super::judge::{allowed, target};
use super::super::{Bounded, Figures};
use super::belief::Belief;
use super::view::{CurveView, SeenPoint, e2e_s};

/// Points beyond this factor say nothing about the crossing.
const NEAR: f64 = 1.25;
/// How steep the curve is where the points do not say, and how sure that is.
const SLOPE: f64 = 20.0;
const SLOPE_SD: f64 = 15.0;
const SLOPE_BOUNDS: (f64, f64) = (2.0, 150.0);
/// Beyond this many times the allowed share, or this share, the curve bends.
const BENDS: f64 = 20.0;
const BENDS_AT: f64 = 0.4;
/// Up to this many times the allowed share, runs show the slope at the crossing.
const THROUGH: f64 = 8.0;
/// The crossing on the axis, and the standard error of its logarithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Crossing {
    pub(super) level: f64,
    pub(super) error: f64,
}

/// A point for a fit: logarithm of the load, share of misses (or logarithm of a mean over its
/// limit), weight, and a mean answer as a share of its length.
#[derive(Debug, Clone, Copy)]
pub(super) struct FitMark {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) weight: f64,
    pub(super) answers: f64,
}

/// A crossing, and what it was made of.
#[derive(Debug, Clone, Copy)]
struct Fit {
    crossing: Crossing,
    /// How many points it goes through.
    marks: usize,
    /// The share that may miss; none for means.
    allowed: Option<f64>,
    /// Which term; none for all of them together.
    term: Option<SloTerm>,
}

/// The lowest crossing of all terms; none if no point is near.
pub(super) fn lowest_crossing(view: &CurveView<'_>) -> Option<Crossing> {
    lowest_fit(view).map(|(fit, _)| fit.crossing)
}

/// How sure that crossing is, given that it does not lie above the ceiling; none if too little is
/// known.
pub(super) fn crossing_belief(view: &CurveView<'_>, ceiling: Option<f64>) -> Option<Belief> {
    let (fit, near) = lowest_fit(view)?;
    let (marks, far) = split_marks(view, &near, fit.allowed?, fit.term.as_ref());
    Belief::new(&marks, &far, fit.allowed?, ceiling)
}

/// The same of the share of good requests, whatever it must be.
pub(super) fn attainment_belief(view: &CurveView<'_>) -> Option<Belief> {
    let (fit, near) = lowest_fit(view)?;
    let (marks, far) = split_marks(view, &near, fit.allowed?, None);
    Belief::new(&marks, &far, fit.allowed?, None)
}

/// What points say about a term: those that the curve goes through, and those that are far away, were
/// stopped, or lie where it bends.
fn split_marks(
    view: &CurveView<'_>,
    near: &[&SeenPoint<'_>],
    allowed: f64,
    term: Option<&SloTerm>,
) -> (Vec<FitMark>, Vec<FitMark>) {
    let clustering = cluster_size(near);
    let counts = |seen: &&SeenPoint<'_>| !seen.is_unclear() && seen.figures.requests > 0;
    let mark = |seen: &SeenPoint<'_>| {
        let y = miss_share(seen.figures, term).filter(|y| y.is_finite())?.clamp(0.0, 1.0);
        let weight = seen.figures.requests as f64 / clustering;
        let is_through = (seen.is_whole() || !seen.is_coarse())
            && y <= THROUGH * allowed
            && near.iter().any(|near| near.place == seen.place);
        Some((
            is_through,
            FitMark { x: log_offered_load(seen), y, weight, answers: answers_per_point(seen) },
        ))
    };
    let all = view.seen.iter().filter(counts).filter_map(mark);
    let (through, off): (Vec<_>, Vec<_>) = all.partition(|(is_through, _)| *is_through);
    let marks = |of: Vec<(bool, FitMark)>| of.into_iter().map(|(_, mark)| mark).collect();
    (marks(through), marks(off))
}

/// The interval of a crossing of which only its standard error is known: that of a mean.
pub(super) fn mean_crossing_interval(view: &CurveView<'_>, crossing: Crossing) -> Bounded {
    let runs = lowest_fit(view).map_or(0, |(fit, _)| fit.marks as u64);
    let t = student_quantile(0.975, runs.saturating_sub(2).max(1));
    let at = |sign: f64| crossing.level * (sign * t * crossing.error).exp();
    Bounded { value: crossing.level, low: Some(at(-1.0)), high: Some(at(1.0)) }
}

/// The fit with the lowest crossing, and the points near it.
fn lowest_fit<'a, 'b>(view: &'b CurveView<'a>) -> Option<(Fit, Vec<&'b SeenPoint<'a>>)> {
    let mut guess = bracket_middle(view)?;
    let mut found = None;
    if points_near(view, guess).is_empty() {
        // The runs near the limit have left the bracket.
        guess = view.seen.iter().rfind(|seen| !seen.is_coarse())?.level;
    }
    for _ in 0..2 {
        let near = points_near(view, guess);
        let Some(mut fit) = lowest_term_fit(view, &near) else { break };
        // Far outside of what was measured it is a guess.
        let (low, high) = (guess / 1.15, guess * 1.15);
        guess = fit.crossing.level.clamp(low, high);
        fit.crossing.level = guess;
        found = Some((fit, near));
    }
    found
}

/// The share that misses a term, or any of them.
fn miss_share(figures: &Figures, term: Option<&SloTerm>) -> Option<f64> {
    let share = match term {
        Some(term) => find_term(figures, term)?.attainment?,
        None => figures.attainment?,
    };
    Some(1.0 - share.value)
}

/// The middle of what is kept and what is missed.
fn bracket_middle(view: &CurveView<'_>) -> Option<f64> {
    match (view.highest_kept(), view.lowest_missed()) {
        (Some(low), Some(high)) => Some((low * high).sqrt()),
        (low, high) => low.or(high),
    }
}

fn points_near<'a, 'b>(view: &'b CurveView<'a>, guess: f64) -> Vec<&'b SeenPoint<'a>> {
    let is_near = |seen: &&SeenPoint<'_>| (seen.level / guess).ln().abs() <= NEAR.ln();
    let counts = |seen: &&SeenPoint<'_>| !seen.is_unclear() && seen.figures.requests > 0;
    let near: Vec<_> = view.seen.iter().filter(is_near).filter(counts).collect();
    // A probe that ended when it seemed clear is short, and ended because of what it saw.
    let whole: Vec<_> = near
        .iter()
        .filter(|seen| seen.figures.ended_by != Some(EndedBy::Decided))
        .copied()
        .collect();
    if whole.is_empty() { near } else { whole }
}

fn lowest_term_fit(view: &CurveView<'_>, near: &[&SeenPoint<'_>]) -> Option<Fit> {
    let slo = view.plan.slo.as_ref()?;
    let each = slo.terms.iter().any(SloTerm::is_per_request);
    let together = (each || view.plan.attainment.is_some()).then(|| {
        let of = |figures: &Figures| miss_share(figures, None);
        share_crossing(
            &fit_marks(near, requests_per_independent(near), &of),
            1.0 - target(view.plan),
        )
    });
    let by_term = slo.terms.iter().map(|term| match (term.statistic, allowed(term)) {
        (SloStatistic::Percentile(_), Some(allowed)) => {
            let of = |figures: &Figures| miss_share(figures, Some(term));
            let found =
                share_crossing(&fit_marks(near, requests_per_independent(near), &of), allowed);
            found.map(|fit| Fit { term: Some(*term), ..fit })
        }
        (SloStatistic::Mean, _) if matches!(term.metric, SloMetric::Request(_)) => {
            mean_crossing(near, term)
        }
        _ => None,
    });
    let found = by_term.chain(together).flatten();
    found.min_by(|a, b| a.crossing.level.total_cmp(&b.crossing.level))
}

fn find_term<'a>(figures: &'a Figures, term: &SloTerm) -> Option<&'a super::super::TermFigure> {
    let text = term.to_string();
    figures.terms.iter().find(|found| found.term == text)
}

/// How many requests say as much as one, over all points: each point's own figure is noise.
fn requests_per_independent(near: &[&SeenPoint<'_>]) -> f64 {
    let ratio = |seen: &&SeenPoint<'_>| {
        let worth = seen.figures.n_eff.filter(|n| *n > 0.0)?;
        // Without a miss nothing is seen of it.
        let has_misses = seen.figures.attainment.is_some_and(|share| share.value < 1.0);
        has_misses.then(|| (seen.figures.requests as f64 / worth).clamp(1.0, 200.0))
    };
    let mut ratios: Vec<f64> = near.iter().filter_map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied().unwrap_or(1.0)
}

/// The same for how sure it is: as many as come together where misses are. A run without any has not
/// seen a cluster, which does not mean that there is none.
fn cluster_size(near: &[&SeenPoint<'_>]) -> f64 {
    let of = |seen: &&SeenPoint<'_>| {
        let requests = seen.figures.requests as f64;
        let worth = seen.figures.n_eff.filter(|n| *n > 0.0)?;
        let misses = (1.0 - seen.figures.attainment?.value) * requests;
        Some(((requests / worth).clamp(1.0, 200.0) * misses, misses))
    };
    let (sum, misses) = near.iter().filter_map(of).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
    if misses > 0.0 { (sum / misses).max(1.0) } else { 1.0 }
}

fn fit_marks(
    near: &[&SeenPoint<'_>],
    clustering: f64,
    share: &dyn Fn(&Figures) -> Option<f64>,
) -> Vec<FitMark> {
    let of = |seen: &&SeenPoint<'_>| {
        let y = share(seen.figures).filter(|y| y.is_finite())?;
        let weight = seen.figures.requests as f64 / clustering;
        Some(FitMark {
            x: log_offered_load(seen),
            y: y.clamp(0.0, 1.0),
            weight,
            answers: answers_per_point(seen),
        })
    };
    near.iter().filter_map(of).collect()
}

/// A mean answer as a share of the point's length.
fn answers_per_point(seen: &SeenPoint<'_>) -> f64 {
    e2e_s(seen.figures).0 / seen.figures.window_s.max(1e-3)
}

/// The logarithm of the load that was really there: the chance of the schedule is known, and need
/// not be taken for the server's.
fn log_offered_load(seen: &SeenPoint<'_>) -> f64 {
    let nominal = seen.level;
    let realized = match (seen.figures.offered_rps, seen.figures.scheduled_rps) {
        (Some(offered), Some(scheduled)) if offered > 0.0 => scheduled / offered,
        _ => 1.0,
    };
    // Chance does not go further: sessions of several requests do.
    let is_chance = (0.8..=1.25).contains(&realized);
    nominal.ln() + if is_chance { realized.ln() } else { 0.0 }
}

/// Those that say where the curve crosses: far beyond it bends.
fn informative_marks(marks: &[FitMark], allowed: f64) -> Vec<FitMark> {
    let bend = (BENDS * allowed).clamp(BENDS_AT, 0.9);
    let mut kept: Vec<FitMark> = marks.iter().filter(|mark| mark.y <= bend).copied().collect();
    let has_above = kept.iter().any(|mark| mark.y > allowed);
    if !has_above {
        // Only far misses: the lowest of them bounds the curve.
        let far = marks.iter().filter(|mark| mark.y > bend);
        kept.extend(far.min_by(|a, b| a.x.total_cmp(&b.x)));
    }
    kept
}

/// Where a logistic curve through these shares crosses the allowed one.
fn share_crossing(marks: &[FitMark], allowed: f64) -> Option<Fit> {
    let allowed = allowed.clamp(1e-4, 0.9999);
    let mut kept = informative_marks(marks, allowed);
    let total: f64 = kept.iter().map(|mark| mark.weight).sum();
    if kept.is_empty() || total <= 0.0 {
        return None;
    }
    let goal = (allowed / (1.0 - allowed)).ln();
    let center = kept.iter().map(|mark| mark.weight * mark.x).sum::<f64>() / total;
    let (a, b, _) = fit_logistic(&kept, center, goal);
    // Runs differ by more than each of them admits: misses come together.
    let spread = overdispersion(&kept, center, a, b);
    for mark in &mut kept {
        mark.weight /= spread;
    }
    let (a, b, [vaa, vab, vbb]) = fit_logistic(&kept, center, goal);
    // The logarithm of a small count is too low on average: as if half a miss more had been seen.
    let misses: f64 = kept.iter().map(|mark| mark.weight * mark.y).sum();
    let a = a + (0.5 / misses.max(0.5)).ln_1p();
    let x = (goal - a) / b;
    // The delta method, with the slope's uncertainty in it.
    let variance = (vaa + 2.0 * x * vab + x * x * vbb) / (b * b);
    let error = variance.max(0.0).sqrt().clamp(1e-4, 0.5);
    let level = (center + x).exp();
    let crossing = Crossing { level, error };
    level.is_finite().then_some(Fit {
        crossing,
        marks: kept.len(),
        allowed: Some(allowed),
        term: None,
    })
}

/// How much more runs differ from the curve than their weights explain; at least 1.
fn overdispersion(marks: &[FitMark], center: f64, a: f64, b: f64) -> f64 {
    let off = |mark: &FitMark| {
        let p = 1.0 / (1.0 + (-(a + b * (mark.x - center))).clamp(-40.0, 40.0).exp());
        mark.weight * (mark.y - p).powi(2) / (p * (1.0 - p)).max(1e-9)
    };
    let sum: f64 = marks.iter().map(off).sum();
    // One run that says 1 joins them.
    ((sum + 1.0) / (marks.len() as f64).max(1.0)).clamp(1.0, 50.0)
}

/// Height at the center, slope, and their variances. A weak prior keeps both where they make sense.
fn fit_logistic(marks: &[FitMark], center: f64, goal: f64) -> (f64, f64, [f64; 3]) {
    let (mut a, mut b) = (goal, SLOPE);
    let (prior_a, prior_b) = (0.02, 1.0 / (SLOPE_SD * SLOPE_SD));
    let mut variances = [1.0, 0.0, SLOPE_SD * SLOPE_SD];
    for _ in 0..30 {
        let (mut ga, mut gb) = (prior_a * (goal - a), prior_b * (SLOPE - b));
        let (mut haa, mut hab, mut hbb) = (prior_a, 0.0, prior_b);
        for mark in marks {
            let x = mark.x - center;
            let p = 1.0 / (1.0 + (-(a + b * x)).clamp(-40.0, 40.0).exp());
            let (slack, curve) = (mark.weight * (mark.y - p), mark.weight * p * (1.0 - p));
            (ga, gb) = (ga + slack, gb + slack * x);
            (haa, hab, hbb) = (haa + curve, hab + curve * x, hbb + curve * x * x);
        }
        let determinant = haa * hbb - hab * hab;
        if determinant <= 0.0 || !determinant.is_finite() {
            break;
        }
        let (da, db) = ((hbb * ga - hab * gb) / determinant, (haa * gb - hab * ga) / determinant);
        variances = [hbb / determinant, -hab / determinant, haa / determinant];
        a += da.clamp(-1.0, 1.0);
        b = (b + db.clamp(-10.0, 10.0)).clamp(SLOPE_BOUNDS.0, SLOPE_BOUNDS.1);
        if da.abs() < 1e-9 && db.abs() < 1e-9 {
            break;
        }
    }
    (a, b, variances)
}

/// Where a line through the logarithms of a mean crosses its limit.
fn mean_crossing(near: &[&SeenPoint<'_>], term: &SloTerm) -> Option<Fit> {
    let limit = term.limit.base;
    let sign = if term.relation.is_floor() { -1.0 } else { 1.0 };
    let of = |seen: &&SeenPoint<'_>| {
        let value = find_term(seen.figures, term)?.value?.value;
        let y = sign * (value / limit).ln();
        let weight = seen.figures.requests as f64;
        y.is_finite().then(|| FitMark { x: log_offered_load(seen), y, weight, answers: 0.0 })
    };
    let marks: Vec<FitMark> = near.iter().filter_map(of).collect();
    let total: f64 = marks.iter().map(|mark| mark.weight).sum();
    if marks.len() < 2 || total <= 0.0 {
        return None;
    }
    let mean = |of: &dyn Fn(&FitMark) -> f64| {
        marks.iter().map(|mark| mark.weight * of(mark)).sum::<f64>() / total
    };
    let (x, y) = (mean(&|mark| mark.x), mean(&|mark| mark.y));
    let sxx = mean(&|mark| (mark.x - x).powi(2));
    let sxy = mean(&|mark| (mark.x - x) * (mark.y - y));
    // As if each had one more point, with the usual slope of one.
    let slope = ((sxy + 1e-4) / (sxx + 1e-4)).clamp(0.05, SLOPE_BOUNDS.1);
    let rest = mean(&|mark| (mark.y - y - slope * (mark.x - x)).powi(2));
    let error = (rest / marks.len() as f64).sqrt() / slope;
    let level = (x - (y / slope).clamp(-1.0, 1.0)).exp();
    let crossing = Crossing { level, error: error.clamp(1e-3, 0.5) };
    level.is_finite().then_some(Fit { crossing, marks: marks.len(), allowed: None, term: None })
}
