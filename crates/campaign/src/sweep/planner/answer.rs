//! The answer, in numbers and words.

use goodput_stats::SloState;

use super::super::judge::is_throughput;
use super::super::{
    Axis, Bounded, Figures, Goodput, GoodputState, Miss, Point, PointStanding, Purpose, SweepPlan,
    Unclear,
};
use super::view::{CurveView, SeenPoint, is_same_level};
use super::{fit, kept, search};

/// A claim that is too high by no more than this share is none.
const OVER_CLAIM: f64 = 1.03;

/// The answer, as far as it is known: what the search confirmed, or without one the highest load that
/// was measured to keep the SLO; none without an SLO.
pub fn answer(plan: &SweepPlan, points: &[Point]) -> Option<Goodput> {
    let slo = plan.slo.as_ref()?;
    let view = CurveView::new(plan, points);
    if !plan.search {
        return Some(kept::answer(&view, slo));
    }
    let confirmed = search::confirmed_level(&view).filter(|level| below_shadow(&view, *level));
    let rejected = rejected(&view, confirmed);
    let runs: Vec<&SeenPoint<'_>> = confirmed
        .map(|level| search::runs_at(&view, Purpose::Confirm, level).collect())
        .unwrap_or_default();
    let seen = pooled(&runs);
    let belief = fit::crossing_belief(&view, search::lowest_wall(&view));
    let crossing = belief.as_ref().map(super::belief::Belief::crossing).or_else(|| {
        search::estimated_limit(&view).map(|limit| fit::mean_crossing_interval(&view, limit))
    });
    let fitted = confirmed
        .and_then(|level| fit::attainment_belief(&view).map(|curve| curve.attainment_at(level)));
    let attainment = fitted.or(seen);
    let risk =
        belief.zip(confirmed).map(|(belief, level)| belief.probability_below(level / OVER_CLAIM));
    let (state, because) = words(&view, confirmed, rejected);
    Some(Goodput {
        state,
        because,
        slo: slo.to_string(),
        axis: plan.axis,
        confirmed,
        rejected: rejected.map(|seen| seen.level),
        confirmed_rps: mean(runs.iter().filter_map(|seen| rps(plan, seen))),
        rejected_rps: rejected.and_then(|seen| rps(plan, seen)),
        measured: None,
        measured_rps: None,
        attainment: attainment.map(|share| share.value),
        attainment_low: attainment.and_then(|share| share.low),
        attainment_high: attainment.and_then(|share| share.high),
        seen_attainment: seen.map(|share| share.value),
        crossing,
        runs: u32::try_from(runs.len()).unwrap_or(u32::MAX),
        requests: runs.iter().map(|seen| seen.figures.requests).sum(),
        over_claim_risk: risk,
    })
}

fn below_shadow(view: &CurveView<'_>, level: f64) -> bool {
    view.shadow.is_none_or(|shadow| level < shadow)
}

/// Requests per second at a point.
pub(super) fn rps(plan: &SweepPlan, seen: &SeenPoint<'_>) -> Option<f64> {
    match plan.axis {
        Axis::Rate => Some(seen.level * requests_each(seen.figures)),
        Axis::Concurrency => seen.figures.requests_per_s,
    }
}

/// Requests of an arrival: one, unless sessions arrive.
fn requests_each(figures: &Figures) -> f64 {
    let each = figures.scheduled_rps.zip(figures.offered_rps).map(|(all, offered)| all / offered);
    // A little more or less is chance.
    each.filter(|each| each.is_finite() && *each > 1.5).unwrap_or(1.0)
}

/// None of nothing.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    (n > 0.0).then(|| sum / n)
}

/// The lowest level above the confirmed one at which a run to its end did not keep the SLO beyond
/// doubt. A probe that was stopped rejects nothing.
pub(super) fn rejected<'b, 'a>(
    view: &'b CurveView<'a>,
    confirmed: Option<f64>,
) -> Option<&'b SeenPoint<'a>> {
    missed(view, confirmed, |seen| {
        let is_sure = seen.figures.slo_state == Some(SloState::Missed) || seen.is_wall();
        is_sure && seen.is_whole()
    })
}

/// The lowest level above the confirmed one that was missed in this way.
pub(super) fn missed<'b, 'a>(
    view: &'b CurveView<'a>,
    confirmed: Option<f64>,
    is: impl Fn(&SeenPoint<'_>) -> bool,
) -> Option<&'b SeenPoint<'a>> {
    view.seen
        .iter()
        .filter(|seen| matches!(seen.standing, PointStanding::Missed(_)) && is(seen))
        .filter(|seen| {
            confirmed.is_none_or(|level| seen.level > level && !is_same_level(seen.level, level))
        })
        .min_by(|a, b| a.level.total_cmp(&b.level))
}

/// The share of good requests over several runs, with Wilson's interval on as many requests as say
/// as much.
pub(super) fn pooled(runs: &[&SeenPoint<'_>]) -> Option<Bounded> {
    let (mut good, mut all, mut worth) = (0.0, 0.0, 0.0);
    for seen in runs {
        let n = seen.figures.requests as f64;
        let share = seen.figures.attainment.map(|share| share.value);
        good += share.filter(|share| (0.0..=1.0).contains(share))? * n;
        all += n;
        worth += seen.figures.n_eff.filter(|n| *n > 0.0).unwrap_or(n).min(n);
    }
    if all <= 0.0 || worth <= 0.0 {
        return None;
    }
    let (p, n, z) = (good / all, worth, 1.96);
    let center = p + z * z / (2.0 * n);
    let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    let low = ((center - half) / scale).clamp(0.0, p);
    let high = ((center + half) / scale).clamp(p, 1.0);
    Some(Bounded { value: p, low: Some(low), high: Some(high) })
}

fn words(
    view: &CurveView<'_>,
    confirmed: Option<f64>,
    rejected: Option<&SeenPoint<'_>>,
) -> (GoodputState, String) {
    let unit = unit(view.plan);
    if let Some(level) = confirmed {
        if let Some((term, value)) = floor(view, level) {
            let text = format!(
                "the highest load that meets the other terms is {} {unit}, which reaches only \
                 {value:.1}: `{term}` is out of reach",
                short(level)
            );
            return (GoodputState::Unreachable, text);
        }
        if search::is_client_limited(view) {
            let text = "above it, the client was the limit, so results there do not count; run \
                        goodput on a larger machine, or on more cores";
            return (GoodputState::AtLeast, text.to_owned());
        }
        let Some(seen) = rejected.or_else(|| missed(view, confirmed, |_| true)) else {
            let text = "no load in the range of the sweep was over the limit".to_owned();
            return (GoodputState::AtLeast, text);
        };
        let how = match () {
            () if rejected.is_some() => "",
            () if seen.is_whole() => ", in a suspect run",
            () => ", in a run that was stopped early",
        };
        return (GoodputState::Found, format!("{}{how}{}", limits(seen), aside(view)));
    }
    unanswered(view)
}

/// What a miss says about the server.
pub(super) fn limits(seen: &SeenPoint<'_>) -> String {
    let level = short(seen.level);
    match &seen.standing {
        PointStanding::Missed(Miss::Term(term)) => {
            let found = seen.figures.terms.iter().find(|found| found.term == *term);
            // Failures are outside of every limit, and a percentile of the rest does not show them.
            let share = found.and_then(|found| found.attainment).map(|share| {
                format!(" ({:.2} % of the requests are within it)", share.value * 100.0)
            });
            let value = || {
                let value = found.and_then(|found| found.value)?;
                Some(format!(" ({})", short(value.value)))
            };
            format!("`{term}` is missed at {level}{}", share.or_else(value).unwrap_or_default())
        }
        PointStanding::Missed(Miss::Attainment) => {
            let share = seen.figures.attainment.map_or(0.0, |share| share.value);
            format!("only {:.2} % of the requests are good at {level}", share * 100.0)
        }
        PointStanding::Missed(Miss::OverSaturated) => {
            format!("a queue grows at {level}: more requests arrive than complete")
        }
        PointStanding::Missed(Miss::RateLimited) => {
            format!(
                "the server rejects requests at {level} (429, 503): its configured limit is its \
                 capacity"
            )
        }
        PointStanding::Missed(Miss::Errors) => {
            let share = seen.figures.failed as f64 / seen.figures.requests.max(1) as f64;
            format!("{:.1} % of the requests fail at {level}", share * 100.0)
        }
        PointStanding::Met | PointStanding::Unclear(_) => String::new(),
    }
}

/// What else to know.
fn aside(view: &CurveView<'_>) -> String {
    match (view.shadow, view.changed) {
        (Some(shadow), _) => format!(
            "; levels above {} met the SLO although it missed twice: no single level separates met \
             from missed",
            short(shadow)
        ),
        (None, Some(_)) => {
            "; the server changed during the sweep, and only later points count".to_owned()
        }
        (None, None) => String::new(),
    }
}

/// A floor under the throughput that the confirmed level does not reach.
fn floor(view: &CurveView<'_>, level: f64) -> Option<(String, f64)> {
    let terms = &view.plan.slo.as_ref()?.terms;
    let run = search::runs_at(view, Purpose::Confirm, level).last()?;
    terms.iter().filter(|term| is_throughput(term)).find_map(|term| {
        let text = term.to_string();
        let found = run.figures.terms.iter().find(|found| found.term == text)?;
        let value = found.value?.value;
        (!term.relation.holds(value, term.limit.base)).then_some((text, value))
    })
}

fn unanswered(view: &CurveView<'_>) -> (GoodputState, String) {
    let unit = unit(view.plan);
    let lowest = view.seen.iter().min_by(|a, b| a.level.total_cmp(&b.level));
    let last = view.points.last();
    if last.is_some_and(|last| view.must_repeat(last)) {
        let most = last.and_then(|last| last.figures.errors.first());
        let why = most.map_or(String::new(), |(class, _)| format!(" (mostly `{class}`)"));
        let times = view.unclear_in_a_row();
        let text = format!("no usable result{why}: {times} points in a row have no usable figures");
        return (GoodputState::Unclear, text);
    }
    if view.shadow.is_some() {
        let text =
            format!("the SLO was missed at some loads and met at higher ones{}", aside(view));
        return (GoodputState::Unclear, text);
    }
    match lowest {
        None => (GoodputState::Unclear, "nothing has been measured yet".to_owned()),
        Some(seen) if seen.standing == PointStanding::Unclear(Unclear::Client) => {
            let text = "the client is the limit: even the lowest load shows nothing about the \
                        server"
                .to_owned();
            (GoodputState::Unclear, text)
        }
        Some(seen) if seen.is_unclear() => {
            let text = "every run at the lowest load was stopped early, although the measured \
                        part meets the SLO";
            (GoodputState::Unclear, text.to_owned())
        }
        Some(seen) if view.highest_kept().is_none() => {
            let text = format!("missed even at {} {unit}: {}", short(seen.level), limits(seen));
            (GoodputState::Unreachable, text)
        }
        Some(_) => {
            let tried = search::tried_levels(view);
            let text = match tried.last() {
                Some(level) => format!(
                    "no tested level down to {} {unit} met it in every confirming run",
                    short(*level)
                ),
                None => "the search did not finish".to_owned(),
            };
            (GoodputState::Unclear, text)
        }
    }
}

pub(super) fn unit(plan: &SweepPlan) -> &'static str {
    match plan.axis {
        Axis::Rate => "req/s",
        Axis::Concurrency => "users",
    }
}

/// In a few digits.
pub(super) fn short(value: f64) -> String {
    let digits = match value.abs() {
        v if v < 1.0 => 3,
        v if v < 10.0 => 2,
        v if v < 1000.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}
