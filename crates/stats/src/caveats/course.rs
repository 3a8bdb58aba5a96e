//! Was it one state that was measured, and did the server keep up?

use goodput_model::{Caveat, CaveatCode, Mode, Severity};

use super::{Evidence, advice};
use crate::flow::Balance;
use crate::saturation::REFUSED;
use crate::summary::steady::{SeriesCut, SteadyAnswer};

/// A series by the name that a reader knows.
fn series_title(metric: &str) -> &str {
    match metric {
        "in_flight" => "the number of requests in flight",
        "output_tokens_per_s" => "the token rate",
        "ttft" => "TTFT",
        "tpot" => "TPOT",
        other => other,
    }
}

fn signed_percent(share: f64) -> String {
    format!("{:+.0} %", share * 100.0)
}

/// No steady part was found: whatever the window shows depends on where it begins and ends.
pub(super) fn check_never_steady(e: &Evidence<'_>) -> Option<Caveat> {
    let steadiness =
        e.course.steadiness.as_ref().filter(|s| s.state == SteadyAnswer::NeverSteady)?;
    let stuck = steadiness.cut.series.iter().find(|(_, cut)| cut.is_stuck());
    let (metric, difference) =
        stuck.map_or(("the load", 0.0), |(name, cut)| (series_title(name), cut.difference()));
    let message = format!(
        "never steady: up to the middle of the run {metric} differs from the rest ({} on \
         average), so no part stands for the whole run",
        signed_percent(difference)
    );
    // Who asked for a steady part to be found gets none; who set the window keeps it, with a doubt.
    let severity = if e.course.cut.is_some() { Severity::Void } else { Severity::Warn };
    let advice =
        format!("{}, or a longer --warmup", advice::longer_run_flags(e, 3.0 * e.window.seconds()));
    Some(Caveat::new(CaveatCode::NeverSteady, severity, message).advise(advice))
}

pub(super) fn check_drift(e: &Evidence<'_>) -> Option<Caveat> {
    let steadiness = e.course.steadiness.as_ref().filter(|s| s.state == SteadyAnswer::Drifting)?;
    let trend = steadiness.trend.as_ref()?;
    let message = format!(
        "{} drifts by {} from the start to the end of the window (Mann–Kendall, p {:.4}): its \
         figures depend on how long the run was",
        series_title(&trend.metric),
        signed_percent(trend.drift_share),
        trend.p
    );
    let advice = format!(
        "{} to see where it leads, after a longer --warmup",
        advice::longer_run_flags(e, 3.0 * e.window.seconds())
    );
    Some(Caveat::new(CaveatCode::Drifting, Severity::Warn, message).advise(advice))
}

pub(super) fn check_level_shift(e: &Evidence<'_>) -> Option<Caveat> {
    let steadiness = e.course.steadiness.as_ref().filter(|s| s.state == SteadyAnswer::Shifted)?;
    let shift = steadiness.shift.as_ref()?;
    let message = format!(
        "{} changes its level at {:.0} s: from {:.1} to {:.1} (Pettitt, p {:.4}), so one figure over \
         both describes neither",
        series_title(&shift.metric),
        shift.at_s,
        shift.before,
        shift.after,
        shift.p
    );
    let advice = "find out what happened on the server then; measure the two states separately";
    Some(Caveat::new(CaveatCode::LevelShift, Severity::Warn, message).advise(advice))
}

/// The beginning of the window differs, though it is past the warm-up that was asked for.
pub(super) fn check_cold_start(e: &Evidence<'_>) -> Option<Caveat> {
    if e.course.cut.is_some() {
        return None;
    }
    let steadiness = e.course.steadiness.as_ref()?;
    let cut_s = Some(steadiness.cut.cut_s).filter(|cut_s| *cut_s > 0.0)?;
    let clear = || steadiness.cut.series.iter().filter(|(_, cut)| cut.cut_s > 0.0);
    let is_latency = |name: &str| name == "ttft" || name == "tpot";
    let (name, cut) = clear().max_by(|a, b| cut_severity(a).total_cmp(&cut_severity(b)))?;
    // A server that fills up changes rates; one that is cold changes what users see.
    let is_slow = clear().any(|(name, _)| is_latency(name));
    let severity = if is_slow { Severity::Warn } else { Severity::Info };
    let message = format!(
        "the first {cut_s:.0} s of the window differ from the rest: {} is {:.1} on average, then {:.1}",
        series_title(name),
        cut.before,
        cut.after
    );
    let start_s = e.window.start.as_secs();
    let advice = format!(
        "--warmup auto cuts it, or --warmup {}",
        advice::duration_flag(start_s + cut_s + 5.0)
    );
    Some(Caveat::new(CaveatCode::ColdStart, severity, message).advise(advice))
}

/// Latencies before rates, then the larger difference.
fn cut_severity((name, cut): &(&String, &SeriesCut)) -> f64 {
    let is_latency = *name == "ttft" || *name == "tpot";
    cut.difference().abs() + if is_latency { 1e6 } else { 0.0 }
}

/// The saturation tests if the window is long enough for them; below that the second half decides:
/// the server answered clearly less than it was asked, more requests piled up than chance explains
/// (the difference of two Poisson counts, three standard deviations), and the wait for an answer
/// grew. Where the rate itself changes, all of that is to be expected of a server that keeps up.
pub(super) fn check_overload(e: &Evidence<'_>) -> Option<Caveat> {
    let is_open = matches!(e.plan.load.mode, Mode::Open { max_concurrency: None, .. })
        && !e.window.is_makespan();
    let per_s = match e.course.saturation {
        Some(saturation) => saturation.over_saturated.then_some(saturation.backlog_growth_per_s),
        None => short_window_backlog(e),
    };
    per_s.filter(|_| is_open).map(|per_s| {
        let message = format!(
            "the server cannot keep up: {:.1} req/s offered, {:.1} req/s answered, and the queue \
             grows by {per_s:.1} req/s, so every latency here depends on how long the run was",
            e.load.scheduled_rps.or(e.load.offered_rps).unwrap_or_default(),
            e.completions_per_s.unwrap_or_default(),
        );
        Caveat::new(CaveatCode::OverSaturated, Severity::Warn, message)
            .advise(advice::half_load_flag(e))
    })
}

fn short_window_backlog(e: &Evidence<'_>) -> Option<f64> {
    let Balance { arrivals, completions, in_flight_middle, in_flight_end, .. } = *e.balance;
    let growth = in_flight_end.saturating_sub(in_flight_middle) as f64;
    let chance = (3.0 * (2.0 * in_flight_middle as f64).sqrt()).max(5.0);
    let falls_behind = (completions as f64) < 0.97 * arrivals as f64
        && growth > chance
        && e.balance.wait_growth().is_none_or(|growth| growth > 1.1);
    falls_behind.then(|| growth / (e.window.seconds() / 2.0))
}

/// A queue that has filled up: how many met it full depends on how long the run was.
pub(super) fn check_full_queue(e: &Evidence<'_>) -> Option<Caveat> {
    let saturation = e.course.saturation.filter(|found| found.queue_limited)?;
    // Who is turned away by a full queue and who by a limit of the rate get the same answer.
    let message = if saturation.refused_share >= REFUSED {
        format!(
            "the server turned {:.1} % of the requests away (429, 503): its queue is full or it \
             limits the rate, so the latencies describe only the requests that it accepted",
            saturation.refused_share * 100.0
        )
    } else {
        "the server's queue is full: the number of requests in flight has reached a ceiling and \
         waits have grown with it, so the figures depend on how much of the run came before that"
            .to_owned()
    };
    let caveat = Caveat::new(CaveatCode::QueueSaturated, Severity::Warn, message);
    Some(caveat.advise(advice::half_load_flag(e)))
}

/// One percentile over two kinds of requests. Where classes explain it, they are named instead.
pub(super) fn check_two_groups(e: &Evidence<'_>) -> Option<Caveat> {
    if super::workload::check_bimodal_mix(e).is_some() {
        return None;
    }
    let (name, modes) = e.key.modes.first()?;
    let message = format!(
        "{name} has two groups: {:.0} % around {:.1} ms and {:.0} % around {:.1} ms, so a percentile over \
         both depends on their shares",
        modes.low_share * 100.0,
        modes.low_median,
        (1.0 - modes.low_share) * 100.0,
        modes.high_median
    );
    let advice = if *name == "TTFT" {
        "near its capacity, some requests find the server free and others wait; otherwise read \
         the breakdowns by length, turn, and class"
    } else {
        "read the breakdowns by length, turn, and class; split the workload into classes"
    };
    Some(Caveat::new(CaveatCode::Bimodal, Severity::Info, message).advise(advice))
}

/// Nagle's algorithm on the server, or on a proxy before it.
pub(super) fn check_nagle(e: &Evidence<'_>) -> Option<Caveat> {
    let share = e.key.delayed_ack_share?;
    let message = format!(
        "{:.1} % of the gaps between chunks are 40 ms long while the usual gap is far shorter: a \
         sender waits for acknowledgments (Nagle's algorithm)",
        share * 100.0
    );
    let advice = "set TCP_NODELAY on the server and on every proxy in front of it";
    Some(Caveat::new(CaveatCode::NagleDelay, Severity::Warn, message).advise(advice))
}
