//! Did the run take place as planned, and did the server answer?

use goodput_model::{Caveat, CaveatCode, EndedBy, Severity};

use super::{Evidence, advice};
use crate::share::shard_load;
use crate::summary::{CUT_OFF, Requests, RunState};

/// A stopped run must have come so far, in requests and in shares of its plan.
const FEWEST: u64 = 10;
const LEAST_SHARE: f64 = 0.1;
/// A server has died when it answers nothing for this last share of the window.
const DEAD_SHARE: f64 = 0.2;
/// Failures in a row that are rarer than this by chance have a cause.
const CHANCE: f64 = 0.001;

pub(super) fn check_nothing_measured(e: &Evidence<'_>) -> Option<Caveat> {
    let (message, advice) = match (e.requests.scheduled, e.requests.ok) {
        (0, _) => (
            "no request fell into the measured window".to_owned(),
            format!("{}, or shorten --warmup", advice::longer_run_flags(e, 60.0)),
        ),
        (n, 0) if e.run.gave_up() && e.requests.cut_off_count() == n => {
            let message =
                format!("none of {n} measured requests had ended when the point was given up");
            return Some(Caveat::new(CaveatCode::NothingMeasured, Severity::Warn, message));
        }
        (n, 0) => (
            format!("all {n} measured requests failed"),
            "check the error classes; `goodput run --num-requests 1` sends a single request"
                .to_owned(),
        ),
        _ => return None,
    };
    Some(Caveat::new(CaveatCode::NothingMeasured, Severity::Void, message).advise(advice))
}

pub(super) fn check_not_sent(e: &Evidence<'_>) -> Option<Caveat> {
    // Requests that could not connect were not sent either; those have their own class.
    let unsent = e.requests.errors_by_stage.get("connect").copied().unwrap_or(0);
    let share = e.load.delivered_share? + unsent as f64 / e.requests.scheduled.max(1) as f64;
    (share < 0.99 && e.run.is_complete()).then(|| {
        let severity = if share < 0.95 { Severity::Void } else { Severity::Warn };
        let message = format!("only {:.1} % of the scheduled requests were sent", share * 100.0);
        Caveat::new(CaveatCode::NotDelivered, severity, message).advise(advice::more_cpu_advice(e))
    })
}

pub(super) fn check_lost_records(e: &Evidence<'_>) -> Option<Caveat> {
    let (message, advice) = match (e.run.lost_records, e.run.unwritten_records, e.run.log_damaged) {
        (0, 0, false) => return None,
        (0, 0, true) => (
            "the request log ends in a damaged frame; records after it are lost".to_owned(),
            "copy the run folder again, or run again",
        ),
        (0, n, _) => (
            format!("{n} records could not be written: they are in this report but not on disk"),
            "free disk space, or choose a folder on another disk with --out",
        ),
        (n, _, _) => (
            format!("{n} requests were measured but could not be recorded (disk full or slow)"),
            "choose a folder on a faster disk with --out",
        ),
    };
    // Of a run that was killed the last frame is damaged by nature.
    let is_void = e.run.log_damaged && e.run.state != RunState::Unfinished;
    let severity = if is_void { Severity::Void } else { Severity::Warn };
    Some(Caveat::new(CaveatCode::RecordsLost, severity, message).advise(advice))
}

pub(super) fn check_failures(e: &Evidence<'_>) -> Option<Caveat> {
    let Requests { scheduled, ok, .. } = *e.requests;
    let failed = e.requests.failed_count(e.run);
    let share = failed as f64 / scheduled.max(1) as f64;
    if ok == 0 || failed == 0 {
        return None;
    }
    if let Some(caveat) = check_server_death(e) {
        return Some(caveat);
    }
    (share > 0.01).then(|| {
        let message = format!(
            "{failed} of {scheduled} requests failed ({:.1} %); latencies describe only the \
             others and those that timed out",
            share * 100.0
        );
        let severity = if share > 0.5 { Severity::Void } else { Severity::Warn };
        Caveat::new(CaveatCode::Errors, severity, message).advise(failures_text(e, share))
    })
}

/// By the most frequent class of failure; where many fail, that is the result.
fn failures_text(e: &Evidence<'_>, share: f64) -> String {
    let is_ours = |class: &str| class == CUT_OFF && e.run.gave_up();
    let classes = e.requests.errors.iter().filter(|(class, _)| !is_ours(class));
    let most = classes.max_by_key(|(_, count)| **count);
    let class = most.map_or("", |(class, _)| class.as_str());
    let cause = match class {
        "timeout" => format!(
            "raise --timeout above {} if such answers count, or {}",
            advice::timeout_text(e.plan.target.timeout),
            advice::half_load_flag(e)
        ),
        CUT_OFF => format!("raise --drain above {}", advice::timeout_text(e.plan.load.drain)),
        "http_429" | "http_503" => {
            format!("the server refuses load: {}", advice::half_load_flag(e))
        }
        class if class.starts_with("http_4") => {
            "the server rejects these requests: read its message under Errors".to_owned()
        }
        _ => format!("most are `{class}`: check the server's log"),
    };
    if share > 0.1 {
        format!("do not compare these latencies; {cause}, and run again")
    } else {
        cause
    }
}

/// From some instant on every request failed, for longer than chance explains.
fn check_server_death(e: &Evidence<'_>) -> Option<Caveat> {
    let last = e.tally.last_good?;
    let silent = (e.window.end - last).as_secs() / e.window.seconds().max(1e-9);
    let is_planned = e.run.state == RunState::Complete && !e.window.is_makespan();
    if !is_planned || silent < DEAD_SHARE {
        return None;
    }
    let after = e.tally.failed_due.iter().filter(|due| **due > last).count();
    let before = e.tally.failed_due.len() - after;
    let usual = (before + 1) as f64 / (before as f64 + e.requests.ok as f64 + 2.0);
    let chance = usual.powi(i32::try_from(after).unwrap_or(i32::MAX));
    (after > 0 && chance < CHANCE).then(|| {
        let message = format!(
            "the server stopped answering: the last completed request ended at {:.1} s, and all \
             {after} requests scheduled in the {:.1} s from then to the end of the window failed",
            last.as_secs(),
            (e.window.end - last).as_secs()
        );
        let advice = "check the server's log at that instant, restart it, and run again";
        Caveat::new(CaveatCode::Errors, Severity::Void, message).advise(advice)
    })
}

pub(super) fn check_capped(e: &Evidence<'_>) -> Option<Caveat> {
    let cap = e.load.max_concurrency.filter(|_| e.load.delayed > 0)?;
    let share = e.load.delayed as f64 / e.requests.scheduled.max(1) as f64 * 100.0;
    let message = format!(
        "the cap of {cap} delayed {} requests ({share:.1} %): this is not an open loop",
        e.load.delayed
    );
    let advice = format!("remove --max-concurrency, or {}", advice::half_load_flag(e));
    Some(Caveat::new(CaveatCode::Capped, Severity::Info, message).advise(advice))
}

pub(super) fn check_incomplete(e: &Evidence<'_>) -> Option<Caveat> {
    let caveat =
        |severity, message: String| Caveat::new(CaveatCode::NotComplete, severity, message);
    match e.run.state {
        RunState::Complete => {
            let message = match e.run.ended_by {
                Some(EndedBy::Hopeless) => format!(
                    "ended early: hopeless; the load could no longer meet the SLO, and the {} \
                     requests in flight were canceled and count as missed",
                    e.requests.cut_off_count()
                ),
                Some(EndedBy::Decided) => format!(
                    "ended early: decided; {} measured requests were enough to tell whether the \
                     SLO is met",
                    e.requests.scheduled
                ),
                Some(EndedBy::Plan | EndedBy::Until | EndedBy::User) | None => return None,
            };
            Some(caveat(Severity::Info, message))
        }
        RunState::Interrupted => {
            let share = completed_share(e);
            let is_hardly_begun =
                e.requests.scheduled < FEWEST || share.is_some_and(|share| share < LEAST_SHARE);
            let severity = if is_hardly_begun { Severity::Warn } else { Severity::Info };
            let part = share.map_or(String::new(), |share| {
                format!(" after {:.0} % of it", share.min(1.0) * 100.0)
            });
            let message = format!(
                "the run was stopped before its planned end{part}, with {} measured requests",
                e.requests.scheduled
            );
            Some(caveat(severity, message).advise("let it run to its end"))
        }
        RunState::Unfinished => {
            let message = "the run was killed or is still running: requests in flight are not in \
                           the log, and those are the slow ones";
            let advice = "wait for it to finish; stop a run with Ctrl-C instead of killing it";
            Some(caveat(Severity::Warn, message.to_owned()).advise(advice))
        }
    }
}

/// How much of the planned measured part took place, where the plan says.
fn completed_share(e: &Evidence<'_>) -> Option<f64> {
    let load = shard_load(&e.plan.load, e.run);
    let measured = e.window.seconds() + e.course.cut_s();
    let by_time = load.duration.map(|planned| measured / planned.as_secs_f64().max(1e-9));
    let sent = if e.course.has_cut() { e.requests.warmup } else { 0 } + e.requests.scheduled;
    let by_count = load.num_requests.map(|planned| sent as f64 / planned.max(1) as f64);
    // The limit that comes first ends a run.
    by_time.into_iter().chain(by_count).max_by(f64::total_cmp)
}
