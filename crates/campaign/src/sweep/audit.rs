//! How far to trust a sweep: the checklist over all of its points. A single run of it can neither
//! show that there were several loads nor that its figures repeat, and its first one is a warm-up.

use goodput_model::{EndedBy, Severity};
use goodput_stats::{Audit, Item, Status, own_items};

use super::curve::{by_level, is_on_curve};
use super::{Level, PointSummary, Purpose, SweepSummary};

/// Requests, or seconds of load, that make a warm-up of a point.
const WARM_REQUESTS: f64 = 50.0;
const WARM_S: f64 = 30.0;

/// Measured seconds at a load. A window may end a little before its time.
const LEVEL_S: f64 = 60.0 * 0.99;

/// The point that stands for a sweep where one run must: the last that confirmed the goodput.
/// Without one, the point with most requests among those that the server kept up with.
pub fn representative(summary: &SweepSummary) -> Option<&PointSummary> {
    let is_it = |point: &&PointSummary| {
        summary.goodput.as_ref().is_some_and(|goodput| goodput.rests_on(&summary.plan, point))
    };
    let kept_up = |one: &&PointSummary| one.point.figures.over_saturated != Some(true);
    let most = |points: &mut dyn Iterator<Item = &'_ PointSummary>| {
        points.max_by_key(|one| one.point.figures.ok).map(|one| one.point.ask.number)
    };
    let curve = || summary.points.iter().filter(|point| is_on_curve(point));
    let fallback = most(&mut curve().filter(kept_up)).or_else(|| most(&mut curve()));
    let by_number = || summary.points.iter().find(|one| Some(one.point.ask.number) == fallback);
    summary.points.iter().rfind(is_it).or_else(by_number)
}

/// What a sweep is worth. `run`: the audit of the run that stands for it ([`representative`]).
pub fn sweep_audit(summary: &SweepSummary, run: &Audit) -> Audit {
    let points: Vec<&PointSummary> =
        summary.points.iter().filter(|point| is_on_curve(point)).collect();
    let levels = by_level(&points);
    let mut items = own_items(summary.verdict, &summary.caveats, "sweep");
    let is_own = |item: &Item| item.check == "own_verdict" || item.check.starts_with("caveat_");
    items.extend(run.items.iter().filter(|item| !is_own(item)).cloned());
    let found = [
        ("sweep", loads(&levels)),
        ("repeats", repeats(summary, &levels)),
        ("warmup", warm_up(summary, &points)),
        ("duration", duration(&levels)),
    ];
    for (check, finding) in found {
        let Some(finding) = finding else { continue };
        if let Some(item) = items.iter_mut().find(|item| item.check == check) {
            (item.status, item.severity) = if finding.is_ok {
                (Status::Ok, Severity::Info)
            } else {
                (Status::Doubtful, Severity::Warn)
            };
            (item.evidence, item.advice) = (finding.evidence, finding.advice.to_owned());
        }
    }
    let about = match levels.len() {
        1 => "sweep of 1 load".to_owned(),
        n => format!("sweep of {n} loads, {} runs", points.len()),
    };
    Audit { run: format!("{about}; {}", run.run), items, ..run.clone() }.with_settled_verdict()
}

/// What is known of a whole sweep about one check.
struct SweepFinding {
    is_ok: bool,
    evidence: String,
    advice: &'static str,
}

impl SweepFinding {
    fn ok(evidence: String) -> Self {
        Self { is_ok: true, evidence, advice: "" }
    }
}

/// Points at one load, and the load.
type AtLevel<'a> = (f64, Vec<&'a PointSummary>);

fn loads(levels: &[AtLevel<'_>]) -> Option<SweepFinding> {
    let level = |at: Option<&AtLevel<'_>>| Some(at?.1.first()?.point.ask.level);
    let (low, high) = level(levels.first()).zip(level(levels.last()))?;
    (levels.len() > 1).then(|| {
        let n = levels.len();
        SweepFinding::ok(format!("{n} loads, from {} to {}", low.with_unit(), high.with_unit()))
    })
}

fn repeats(summary: &SweepSummary, levels: &[AtLevel<'_>]) -> Option<SweepFinding> {
    let confirming = summary.goodput.as_ref().map_or(0, |goodput| goodput.runs);
    if confirming > 1 {
        return Some(SweepFinding::ok(format!("{confirming} runs confirm the goodput")));
    }
    let again = levels.iter().filter(|(_, runs)| runs.len() > 1).count();
    let of = levels.len();
    (again > 0).then(|| SweepFinding::ok(format!("{again} of {of} loads were measured again")))
}

/// What the sweep sent before its first point, and the load before each point, by its length and by
/// the requests that it sent, about. A server that was warmed up once only has to reach each load.
fn warm_up(summary: &SweepSummary, points: &[&PointSummary]) -> Option<SweepFinding> {
    let first = summary.points.iter().filter(|point| point.point.ask.purpose == Purpose::WarmUp);
    let first: u64 = first.map(|point| point.point.figures.ok).sum();
    let is_first_enough = first as f64 >= WARM_REQUESTS;
    let seconds = |point: &&PointSummary| point.point.ask.burn_in_s;
    let requests = |point: &&PointSummary| {
        let figures = &point.point.figures;
        let rate = figures.offered_rps.or(figures.requests_per_s).unwrap_or(0.0);
        (rate * point.point.ask.burn_in_s).round()
    };
    let least = |of: &dyn Fn(&&PointSummary) -> f64| points.iter().map(of).reduce(f64::min);
    let (least_s, fewest) = least(&seconds).zip(least(&requests))?;
    let is_warm = |point: &&PointSummary| {
        let own = seconds(point) >= WARM_S || requests(point) >= WARM_REQUESTS;
        own || (is_first_enough && seconds(point) > 0.0)
    };
    let evidence = format!(
        "{first} requests before the first point, and before each of {} points at least \
         {least_s:.1} s of its load, about {fewest} requests",
        points.len()
    );
    let cold = points.iter().filter(|point| !is_warm(point)).count();
    Some(if cold == 0 {
        SweepFinding::ok(evidence)
    } else {
        SweepFinding {
            is_ok: false,
            evidence: format!("{evidence}: too little before {cold} of them"),
            advice: "send at least 50 requests, or 30 s of load, before each point (--warmup)",
        }
    })
}

/// How long each load was measured in all. A run that ended early because its outcome was clear is
/// as long as it had to be.
fn duration(levels: &[AtLevel<'_>]) -> Option<SweepFinding> {
    let is_cut = |point: &&PointSummary| {
        matches!(point.point.figures.ended_by, Some(EndedBy::Hopeless | EndedBy::Decided))
    };
    let whole = levels.iter().filter(|(_, runs)| !runs.iter().all(is_cut));
    let sum =
        |runs: &[&PointSummary]| runs.iter().map(|run| run.point.figures.window_s).sum::<f64>();
    let all: Vec<(Level, f64)> =
        whole.filter_map(|(_, runs)| Some((runs.first()?.point.ask.level, sum(runs)))).collect();
    let short = all.iter().filter(|(_, seconds)| *seconds < LEVEL_S).count();
    let (level, least) = all.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let evidence = format!("each load {least:.0} s or more");
    Some(if short == 0 {
        SweepFinding::ok(evidence)
    } else {
        let n = all.len();
        SweepFinding {
            is_ok: false,
            evidence: format!(
                "{short} of {n} loads below 60 s: {least:.0} s at {}",
                level.with_unit()
            ),
            advice: "measure at least 60 s at each load (--duration 60s)",
        }
    })
}

#[cfg(test)]
mod tests {
    use goodput_model::{Reported, SourceTool, Verdict};
    use goodput_stats::audit_reported;

    use super::*;
    use crate::sweep::planner::script::{figures, plan, point};
    use crate::sweep::{Point, SweepFacts};

    /// A warm-up, two loads, and one of them again, each after ten seconds of load.
    fn sweep(change: impl Fn(&mut Point)) -> SweepSummary {
        let mut points = vec![
            point(1, Purpose::WarmUp, 16.0, figures(8.0, 0.0)),
            point(2, Purpose::Grid, 10.0, figures(10.0, 0.0)),
            point(3, Purpose::Grid, 20.0, figures(20.0, 0.5)),
            point(4, Purpose::Grid, 10.0, figures(10.0, 0.0)),
        ];
        for point in points.iter_mut().skip(1) {
            point.ask.burn_in_s = 10.0;
            change(point);
        }
        let named = points.into_iter().map(|point| (point.ask.number.to_string(), point));
        SweepSummary::new(SweepFacts::default(), plan(), named.collect())
    }

    fn item<'a>(audit: &'a Audit, check: &str) -> &'a Item {
        audit.items.iter().find(|item| item.check == check).unwrap()
    }

    #[test]
    fn all_points_together_are_judged() {
        let run = audit_reported(&Reported::new(SourceTool::Goodput));
        assert_eq!(item(&run, "sweep").status, Status::Missing);
        let audit = sweep_audit(&sweep(|_| {}), &run);
        let said =
            |check: &str| (item(&audit, check).status, item(&audit, check).evidence.as_str());
        assert_eq!(said("sweep"), (Status::Ok, "2 loads, from 10 req/s to 20 req/s"));
        assert_eq!(said("repeats"), (Status::Ok, "1 of 2 loads were measured again"));
        let warm = "10000 requests before the first point, and before each of 3 points at least \
                    10.0 s of its load, about 100 requests";
        assert_eq!(said("warmup"), (Status::Ok, warm));
        assert_eq!(said("duration"), (Status::Ok, "each load 60 s or more"));
        assert_eq!(item(&audit, "own_verdict").title, "the sweep's verdict");
        assert!(audit.run.starts_with("sweep of 2 loads, 3 runs; "), "{}", audit.run);
    }

    #[test]
    fn a_cold_or_short_load_casts_doubt() {
        let run = audit_reported(&Reported::new(SourceTool::Goodput));
        let audit = sweep_audit(
            &sweep(|point| {
                if point.ask.number == 3 {
                    (point.ask.burn_in_s, point.figures.window_s) = (0.0, 20.0);
                }
            }),
            &run,
        );
        for check in ["warmup", "duration"] {
            assert_eq!(item(&audit, check).status, Status::Doubtful, "{check}");
        }
        assert_eq!(item(&audit, "duration").evidence, "1 of 2 loads below 60 s: 20 s at 20 req/s");
        assert_ne!(audit.verdict, Verdict::Valid);
        // One that ended early because it was hopeless is as long as it had to be.
        let audit = sweep_audit(
            &sweep(|point| {
                if point.ask.number == 3 {
                    point.figures.window_s = 20.0;
                    point.figures.ended_by = Some(EndedBy::Hopeless);
                }
            }),
            &run,
        );
        assert_eq!(item(&audit, "duration").status, Status::Ok);
    }

    #[test]
    fn the_warm_up_never_stands_for_a_sweep() {
        let stands = |sweep: &SweepSummary| representative(sweep).map(|one| one.folder.clone());
        assert_eq!(stands(&sweep(|_| {})), Some("4".to_owned()));
        let mostly_lost = sweep(|point| {
            if point.ask.number != 2 {
                point.figures.over_saturated = Some(true);
            }
        });
        assert_eq!(stands(&mostly_lost), Some("2".to_owned()));
    }
}
