//! The answer, in numbers and words.

use goodput_model::SloTerm;

use super::super::judge::{allowed, is_throughput};
use super::super::{
    Axis, Bounded, Effort, Figures, Goodput, GoodputState, Miss, Point, Purpose, Standing,
    SweepPlan,
};
use super::search;
use super::view::{Seen, View, is_same};

/// The answer, as far as it is known; none where none was asked for.
pub fn answer(plan: &SweepPlan, points: &[Point]) -> Option<Goodput> {
    let slo = plan.slo.as_ref().filter(|_| plan.search)?;
    let view = View::of(plan, points);
    let confirmed = search::confirmed(&view).filter(|level| below_shadow(&view, *level));
    let rejected = rejected(&view, confirmed);
    let runs: Vec<&Seen<'_>> = confirmed
        .map(|level| search::runs_at(&view, Purpose::Confirm, level).collect())
        .unwrap_or_default();
    let attainment = pooled(&runs);
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
        attainment: attainment.map(|share| share.value),
        attainment_low: attainment.and_then(|share| share.low),
        attainment_high: attainment.and_then(|share| share.high),
        crossing: search::limit(&view).map(super::fit::Crossing::bounded),
        runs: u32::try_from(runs.len()).unwrap_or(u32::MAX),
        requests: runs.iter().map(|seen| seen.figures.requests).sum(),
        over_claim_risk: risk(plan),
    })
}

/// Share of simulated sweeps that claim more than 3 % too much (docs/design/015), the worst of the
/// servers that were simulated: by effort, and by how rare misses must be.
fn risk(plan: &SweepPlan) -> f64 {
    let terms = plan.slo.iter().flat_map(|slo| &slo.terms).filter_map(allowed);
    let rarest = terms.chain(plan.attainment.map(|share| 1.0 - share)).fold(1.0, f64::min);
    let has_none = plan.attainment.is_none()
        && plan.slo.iter().flat_map(|slo| &slo.terms).any(SloTerm::is_of_each_request);
    let is_rare = rarest < RARE || has_none;
    match (plan.effort, is_rare) {
        (Effort::Quick, true) => 0.18,
        (Effort::Quick, false) => 0.02,
        (Effort::Standard | Effort::Certified, _) => 0.01,
    }
}

/// Misses that may be rarer than this are known less well.
const RARE: f64 = 0.03;

fn below_shadow(view: &View<'_>, level: f64) -> bool {
    view.shadow.is_none_or(|shadow| level < shadow)
}

/// Requests per second at a point.
fn rps(plan: &SweepPlan, seen: &Seen<'_>) -> Option<f64> {
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

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    (n > 0.0).then(|| sum / n)
}

/// The lowest level above the confirmed one that does not keep the SLO.
fn rejected<'b, 'a>(view: &'b View<'a>, confirmed: Option<f64>) -> Option<&'b Seen<'a>> {
    view.seen
        .iter()
        .filter(|seen| matches!(seen.standing, Standing::Missed(_)))
        .filter(|seen| {
            confirmed.is_none_or(|level| seen.level > level && !is_same(seen.level, level))
        })
        .min_by(|a, b| a.level.total_cmp(&b.level))
}

/// The share of good requests over several runs, with Wilson's interval on as many requests as say
/// as much.
fn pooled(runs: &[&Seen<'_>]) -> Option<Bounded> {
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
    let centre = p + z * z / (2.0 * n);
    let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    let low = ((centre - half) / scale).clamp(0.0, p);
    let high = ((centre + half) / scale).clamp(p, 1.0);
    Some(Bounded { value: p, low: Some(low), high: Some(high) })
}

fn words(
    view: &View<'_>,
    confirmed: Option<f64>,
    rejected: Option<&Seen<'_>>,
) -> (GoodputState, String) {
    let unit = unit(view.plan);
    if let Some(level) = confirmed {
        if let Some((term, value)) = floor(view, level) {
            let text = format!(
                "the highest load that keeps the other terms is {} {unit}, and it makes {value:.1}: \
                 `{term}` is out of reach",
                short(level)
            );
            return (GoodputState::Unreachable, text);
        }
        if search::is_of_client(view) {
            let text = "this client was the limit above it: its results there do not count; run \
                        it on a larger machine, or on more cores";
            return (GoodputState::AtLeast, text.to_owned());
        }
        let Some(seen) = rejected else {
            let text = "nothing that was allowed was too much for it".to_owned();
            return (GoodputState::AtLeast, text);
        };
        return (GoodputState::Found, format!("{}{}", limits(seen), aside(view)));
    }
    unanswered(view)
}

/// What a miss says about the server.
fn limits(seen: &Seen<'_>) -> String {
    let level = short(seen.level);
    match &seen.standing {
        Standing::Missed(Miss::Term(term)) => {
            let found = seen.figures.terms.iter().find(|found| found.term == *term);
            let value = found.and_then(|found| found.value).map(|value| short(value.value));
            let value = value.map_or(String::new(), |value| format!(" ({value})"));
            format!("`{term}` is missed at {level}{value}")
        }
        Standing::Missed(Miss::Attainment) => {
            let share = seen.figures.attainment.map_or(0.0, |share| share.value);
            format!("only {:.2} % of the requests are good at {level}", share * 100.0)
        }
        Standing::Missed(Miss::OverSaturated) => {
            format!("more is asked than answered at {level}")
        }
        Standing::Missed(Miss::RateLimited) => {
            format!(
                "the server turns requests away at {level} (429, 503): its limit is its capacity"
            )
        }
        Standing::Missed(Miss::Errors) => {
            let share = seen.figures.failed as f64 / seen.figures.requests.max(1) as f64;
            format!("{:.1} % of the requests fail at {level}", share * 100.0)
        }
        Standing::Met | Standing::Unclear(_) => String::new(),
    }
}

/// What else to know.
fn aside(view: &View<'_>) -> String {
    match (view.shadow, view.changed) {
        (Some(shadow), _) => format!(
            "; levels above {} were kept, and yet it was missed twice: the SLO is not lost at one level",
            short(shadow)
        ),
        (None, Some(_)) => {
            "; the server changed on the way, and only later points count".to_owned()
        }
        (None, None) => String::new(),
    }
}

/// A floor under the throughput that the confirmed level does not reach.
fn floor(view: &View<'_>, level: f64) -> Option<(String, f64)> {
    let terms = &view.plan.slo.as_ref()?.terms;
    let run = search::runs_at(view, Purpose::Confirm, level).last()?;
    terms.iter().filter(|term| is_throughput(term)).find_map(|term| {
        let text = term.to_string();
        let found = run.figures.terms.iter().find(|found| found.term == text)?;
        let value = found.value?.value;
        (!term.relation.holds(value, term.limit.base)).then_some((text, value))
    })
}

fn unanswered(view: &View<'_>) -> (GoodputState, String) {
    let unit = unit(view.plan);
    let lowest = view.seen.iter().min_by(|a, b| a.level.total_cmp(&b.level));
    let last = view.points.last();
    if last.is_some_and(|last| view.says_nothing(last)) {
        let most = last.and_then(|last| last.figures.errors.first());
        let why = most.map_or(String::new(), |(class, _)| format!(" (mostly `{class}`)"));
        let times = view.in_vain();
        let text = format!("no good answer{why}: {times} points in a row say nothing");
        return (GoodputState::Unclear, text);
    }
    if view.shadow.is_some() {
        let text = format!("the SLO is kept and missed without order{}", aside(view));
        return (GoodputState::Unclear, text);
    }
    match lowest {
        None => (GoodputState::Unclear, "nothing has been measured yet".to_owned()),
        Some(seen) if seen.is_unclear() => {
            let text = "this client is the limit: even the lowest load says nothing".to_owned();
            (GoodputState::Unclear, text)
        }
        Some(seen) if view.low().is_none() => {
            let text = format!("missed even at {} {unit}: {}", short(seen.level), limits(seen));
            (GoodputState::Unreachable, text)
        }
        Some(_) => {
            let tried = search::tried(view);
            let text = match tried.last() {
                Some(level) => format!(
                    "{} levels down to {} {unit} did not keep it in every confirming run",
                    tried.len(),
                    short(*level)
                ),
                None => "the search has not come to its end".to_owned(),
            };
            (GoodputState::Unclear, text)
        }
    }
}

fn unit(plan: &SweepPlan) -> &'static str {
    match plan.axis {
        Axis::Rate => "req/s",
        Axis::Concurrency => "users",
    }
}

/// In a few digits.
fn short(value: f64) -> String {
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
