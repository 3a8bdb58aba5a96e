//! What the points of a sweep say about the server in addition to the answer.

use goodput_model::{Caveat, CaveatCode, Severity};

use super::super::judge::judge_load;
use super::super::{Bounded, Figures, Miss, Point, PointStanding, Purpose, SweepPlan, Unclear};
use super::disturbance::{MUCH_CPU, SpoiltPoints};
use super::view::{CurveView, is_same_level};

/// A figure of the anchor that moved by this share has moved.
const MOVED: f64 = 0.10;

/// And both points have this many requests.
const COMPARABLE: u64 = 300;

/// What to know about a sweep: servers that changed on the way, limits that are not the server's.
pub fn sweep_caveats(plan: &SweepPlan, points: &[Point]) -> Vec<Caveat> {
    let view = CurveView::new(plan, points);
    let mut found = conflict_caveats(&view);
    found.extend(moved_caveat(points.get(view.changed.unwrap_or(0)..).unwrap_or_default()));
    found.extend(refused_caveat(&view));
    found.extend(client_caveat(&view));
    found.extend(lost_server_caveat(plan, points));
    found.sort_by_key(|caveat| std::cmp::Reverse(caveat.severity));
    found
}

fn conflict_caveats(view: &CurveView<'_>) -> Vec<Caveat> {
    let of = |conflict: &super::view::Conflict| {
        let (missed, kept) = (conflict.missed, conflict.kept);
        match conflict.again? {
            true if conflict.is_better => Some(
                Caveat::new(
                    CaveatCode::CapacityChanged,
                    Severity::Warn,
                    format!(
                        "the server carries more than before: {missed} missed the SLO, then \
                         {kept} and {missed} met it; earlier points do not count"
                    ),
                )
                .advise("check for added replicas or warmed caches, and sweep again"),
            ),
            true => Some(Caveat::new(
                CaveatCode::CapacityChanged,
                Severity::Warn,
                format!(
                    "{missed} missed the SLO once and met it when measured again: something \
                     disturbed the first run"
                ),
            )),
            false => Some(
                Caveat::new(
                    CaveatCode::NotMonotone,
                    Severity::Warn,
                    format!(
                        "{missed} missed the SLO twice although {kept} met it: the goodput stays \
                         below {missed}"
                    ),
                )
                .advise("find out what the server does differently at that load, and sweep again"),
            ),
        }
    };
    view.conflicts.iter().filter_map(of).collect()
}

/// A figure of a point.
type Of = fn(&Figures) -> Option<Bounded>;

/// Levels that were measured again, first against last.
fn moved_caveat(points: &[Point]) -> Option<Caveat> {
    let last = points.iter().rev().find(|point| point.ask.purpose == Purpose::Anchor)?;
    let same = |point: &&Point| {
        point.ask.level.axis() == last.ask.level.axis()
            && is_same_level(point.ask.level.value(), last.ask.level.value())
            && !matches!(point.ask.purpose, Purpose::WarmUp | Purpose::Twin)
    };
    let first = points.iter().find(same).filter(|first| first.ask.number < last.ask.number)?;
    // Short points differ by the requests that happened to come.
    if first.figures.requests.min(last.figures.requests) < COMPARABLE {
        return None;
    }
    let figures: [(&str, Of); 3] = [
        ("median TTFT", |figures| figures.ttft_ms.p50),
        ("median TPOT", |figures| figures.tpot_ms.p50),
        ("the share of good requests", |figures| figures.attainment),
    ];
    let (name, before, after) = figures.into_iter().find_map(|(name, of)| {
        let (before, after) = (of(&first.figures)?, of(&last.figures)?);
        has_moved(before, after).then_some((name, before.value, after.value))
    })?;
    let message = format!(
        "{} was measured at the start and again later, and {name} went from {before:.3} to \
         {after:.3}: the server changed",
        last.ask.level.value()
    );
    let caveat = Caveat::new(CaveatCode::CapacityChanged, Severity::Warn, message);
    Some(caveat.advise("warm the server up longer, and check what else runs on it"))
}

/// Outside of both intervals, and by much.
fn has_moved(before: Bounded, after: Bounded) -> bool {
    let is_out = |value: f64, of: Bounded| {
        of.low.is_some_and(|low| value < low) || of.high.is_some_and(|high| value > high)
    };
    let change = (after.value / before.value - 1.0).abs();
    change > MOVED && is_out(after.value, before) && is_out(before.value, after)
}

fn refused_caveat(view: &CurveView<'_>) -> Option<Caveat> {
    let is_refused =
        |standing: &PointStanding| matches!(standing, PointStanding::Missed(Miss::RateLimited));
    let levels = view.seen.iter().filter(|seen| is_refused(&seen.standing)).map(|seen| seen.level);
    let level = levels.min_by(f64::total_cmp)?;
    let message = format!(
        "from {level} on, the server rejects requests (429, 503): its configured limit is its \
         capacity, even if the machine could do more"
    );
    Some(Caveat::new(CaveatCode::RateLimited, Severity::Info, message))
}

/// One caveat for all spoiled points, with what spoiled them.
fn disturbed_caveat(view: &CurveView<'_>) -> Caveat {
    let SpoiltPoints { spoilt: spoiled, measured, others_cpu } = view.spoiled_points;
    let (code, why) = match others_cpu.filter(|share| *share > MUCH_CPU) {
        Some(share) => {
            let share = share * 100.0;
            let why = format!("other programs used {share:.0} % of the client's processors");
            (CaveatCode::CpuCrowded, why)
        }
        None => (CaveatCode::NearCeiling, "the client was late".to_owned()),
    };
    let message = format!(
        "{spoiled} of {measured} points were spoiled because {why}: no point was measured again after \
         the third, spoiled points count only where they met the SLO, and the goodput may be higher"
    );
    Caveat::new(code, Severity::Warn, message)
        .advise("stop what else runs, or give the client its own cores, and sweep again")
}

fn client_caveat(view: &CurveView<'_>) -> Option<Caveat> {
    if view.spoiled_points.is_lasting() {
        return Some(disturbed_caveat(view));
    }
    let level = view.client_limit()?;
    let message = format!(
        "at {level}, the client was the bottleneck: that point shows nothing about the server"
    );
    let caveat = Caveat::new(CaveatCode::NearCeiling, Severity::Warn, message);
    Some(caveat.advise("give the client more cores or its own machine"))
}

fn lost_server_caveat(plan: &SweepPlan, points: &[Point]) -> Option<Caveat> {
    let is_gone = |point: &&Point| {
        judge_load(&point.figures, plan) == PointStanding::Unclear(Unclear::ServerGone)
    };
    let count = points.iter().filter(is_gone).count();
    (count > 0).then(|| {
        let message = format!("the server was unreachable in {count} of {} points", points.len());
        Caveat::new(CaveatCode::Errors, Severity::Warn, message)
            .advise("check the server's log at that time")
    })
}
