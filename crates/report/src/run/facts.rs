//! What was run, and at which rates.

use std::fmt::Write;

use goodput_model::EndedBy;
use goodput_stats::steady::{Steadiness, SteadyAnswer as Steady};
use goodput_stats::{GoalSummary, LoadSummary, Quick, RunFacts, RunState, Summary, UntilSummary};

use super::{MARKDOWN, TEXT, ranks, server, workload};
use goodput_document::number::{amount, cell_number, count, known_or_dash, plural};
use goodput_document::{Fact, Formats};

/// What was asked, when, by which version.
pub(crate) fn about_line(run: &RunFacts, streaming: &str) -> String {
    format!(
        "model {} · {}, {streaming} · {} · goodput {} · seed {}",
        run.model, run.api, run.started, run.version, run.seed
    )
}

/// How answers were asked for, and how they came.
pub(super) fn streaming_text(summary: &Summary) -> &'static str {
    match &summary.requests {
        _ if !summary.run.stream => "not streaming",
        requests if requests.is_whole() => "streaming requested, answers came whole",
        requests if requests.is_partly_whole() => "streaming requested, some answers came whole",
        _ => "streaming",
    }
}

/// What was run.
pub(super) fn run_facts(summary: &Summary) -> Vec<Fact> {
    let run = &summary.run;
    let made = format!("goodput {}, seed {}, {}", run.version, run.seed, run.started);
    let model = format!("{} · {}, {}", run.model, run.api, streaming_text(summary));
    let mut all = Vec::new();
    all.extend(ranks::shard_fact(run));
    all.extend([
        // Elsewhere they are at the head of the page.
        Fact::new("Target", run.target.clone()).on(MARKDOWN),
        Fact::new("Model", model).on(MARKDOWN),
        Fact::new("Workload", workload::workload_name(run)),
        Fact::new("Load", load_text(summary)),
        Fact::new("Window", window_text(summary)),
    ]);
    all.extend(steadiness_text(summary).map(|text| Fact::new("Steady", text).on(Formats::LONG)));
    all.push(Fact::new("Requests", requests_text(summary)));
    let until = summary.until.as_ref();
    all.extend(until.map(|until| Fact::new("Until", until_text(until)).on(TEXT)));
    all.push(Fact::new("Tokens", tokens_text(summary)).on(Formats::FLAT));
    let more = workload::workload_facts(summary).into_iter().chain(server::system_facts(run));
    all.extend(more.map(|fact| fact.on(TEXT)));
    all.push(Fact::new("Throughput", throughput_text(summary)).on(MARKDOWN));
    all.push(Fact::new("Measured with", made).on(MARKDOWN));
    all
}

/// What became of the measured requests, and how many others there were.
fn requests_text(summary: &Summary) -> String {
    let requests = &summary.requests;
    let mut sample = format!(
        "{} scheduled, {} completed, {} failed",
        count(requests.scheduled),
        count(requests.ok),
        count(requests.failed)
    );
    for (n, phase) in [(requests.warmup, "warm-up"), (requests.cooldown, "cooldown")] {
        if n > 0 {
            // Writing to a string cannot fail.
            let _ = write!(sample, "; {} in {phase}", count(n));
        }
    }
    sample
}

/// A closed loop in words. One user is a batch of one; a cold start test has no load.
fn closed_loop_text(load: &LoadSummary) -> String {
    match (load.idle_s, load.concurrency.unwrap_or(0)) {
        (Some(idle), _) => format!("cold start test, {} s idle before each request", amount(idle)),
        (None, 1) => "closed loop, 1 user (a batch of 1)".to_owned(),
        (None, users) => format!("closed loop, {users} users"),
    }
}

fn load_text(summary: &Summary) -> String {
    let load = &summary.load;
    let rate = |rate: Option<f64>| known_or_dash(rate, amount);
    let arrivals = load.arrivals.as_deref().unwrap_or_default();
    match load.mode.as_str() {
        "closed" => format!("{}; {} req/s sent", closed_loop_text(load), rate(load.delivered_rps)),
        "burst" => format!("burst: {} requests at once", count(summary.requests.scheduled)),
        mode => {
            let kind = match load.max_concurrency {
                Some(cap) => format!(
                    "{mode}: open loop held to {cap} at once, {} requests delayed",
                    count(load.delayed)
                ),
                None => "open loop".to_owned(),
            };
            let cv = load.gap_cv.map_or(String::new(), |cv| format!(", gap CV {cv:.2}"));
            let [offered, due, sent] =
                [load.offered_rps, load.scheduled_rps, load.delivered_rps].map(rate);
            let unit = if summary.sessions.is_some() { "sessions/s" } else { "req/s" };
            match (&load.shape, &summary.replay) {
                (Some(shape), _) => format!(
                    "{kind}, {arrivals} arrivals over {shape}, {offered} {unit} offered on average; \
                     {due} req/s scheduled, {sent} sent"
                ),
                (_, Some(_)) => {
                    format!(
                        "{kind}, at the instants of a trace; {due} req/s scheduled, {sent} sent"
                    )
                }
                _ if load.offered_rps.is_none() => format!("{kind}, all scheduled at once"),
                _ => format!(
                    "{kind}, {arrivals} arrivals, {offered} {unit} offered; {due} {}scheduled, {sent} sent{cv}",
                    if summary.sessions.is_some() { "req/s " } else { "" }
                ),
            }
        }
    }
}

fn window_text(summary: &Summary) -> String {
    let seconds = summary.window.end_s - summary.window.start_s;
    let state = match summary.run.state {
        RunState::Complete if summary.run.ended_by == Some(EndedBy::Until) => {
            "; ended by --until: the figures were known well enough"
        }
        RunState::Complete => match summary.run.ended_by {
            Some(EndedBy::Hopeless) => "; ended early: the SLO was out of reach",
            Some(EndedBy::Decided) => "; ended early: the outcome was clear",
            _ => "",
        },
        RunState::Interrupted => "; stopped early",
        RunState::Unfinished => "; killed or still running",
    };
    if summary.requests.scheduled == 0 {
        return format!("nothing was measured{state}");
    }
    if summary.window.kind == "makespan" {
        return format!("{seconds:.1} s, first request to last answer (makespan){state}");
    }
    let warmup = match (summary.run.warmup.as_str(), &summary.window.cut) {
        (_, Some(cut)) if cut.cut_s > 0.0 => {
            format!("after a start of {:.1} s that differs from it (MSER-5)", cut.cut_s)
        }
        ("auto", Some(_)) if !is_too_short(summary) => {
            "after an automatic warm-up that cut nothing".to_owned()
        }
        ("auto", _) => "without warm-up: too little to judge one".to_owned(),
        ("0s" | "0", _) if is_between_cohorts(summary) => {
            let users = count(summary.load.concurrency.unwrap_or(0).into());
            return format!(
                "{seconds:.1} s from the end of the first {users} answers to that of the last but \
                 {users}{state}"
            );
        }
        ("0s" | "0", _) => "without warm-up".to_owned(),
        (n, _) if n.bytes().all(|b| b.is_ascii_digit()) => {
            format!("after a warm-up of {n} requests")
        }
        (time, _) => format!("after a warm-up of {time}"),
    };
    format!("{seconds:.1} s {warmup}{state}")
}

/// What was asked for, and how well it is known.
fn until_text(until: &UntilSummary) -> String {
    let goal = |goal: &GoalSummary| {
        let within = goal.within.map_or("no interval".to_owned(), |within| {
            format!("known to ±{:.1} %", within * 100.0)
        });
        let (n, n_eff) = (count(goal.n), count(goal.n_eff as u64));
        format!("{}: {within} from {n} requests (worth {n_eff} independent ones)", goal.rule)
    };
    until.goals.iter().map(goal).collect::<Vec<_>>().join("; ")
}

fn is_too_short(summary: &Summary) -> bool {
    summary.steadiness.as_ref().is_some_and(|found| found.state == Steady::TooShort)
}

/// A closed loop that ends by count leaves out the users who start together and those who leave.
fn is_between_cohorts(summary: &Summary) -> bool {
    summary.load.mode == "closed" && summary.window.start_s > 0.0
}

/// Whether the window was one state, where that can be told.
fn steadiness_text(summary: &Summary) -> Option<String> {
    let Steadiness { state, trend, cut, .. } = summary.steadiness.as_ref()?;
    let drift = trend.as_ref().map_or(String::new(), |trend| {
        format!("; {} {:+.1} % from beginning to end", trend.metric, trend.drift_share * 100.0)
    });
    Some(match state {
        Steady::Steady => {
            let from = match cut.cut_s {
                cut_s if cut_s > 0.0 => format!(", after its first {cut_s:.0} s"),
                _ => String::new(),
            };
            format!("yes{from}: no trend and no shift beyond chance{drift}")
        }
        Steady::TooShort => "too short to tell".to_owned(),
        Steady::Drifting => format!("no, it drifts{drift}"),
        Steady::Shifted => "no, its level changes".to_owned(),
        Steady::NeverSteady => "never".to_owned(),
        Steady::NotApplicable => return None,
    })
}

fn tokens_text(summary: &Summary) -> String {
    let tokens = &summary.tokens;
    let cached = tokens.cached.map_or(String::new(), |n| format!(", {} of them cached", count(n)));
    let images = tokens.image.map_or(String::new(), |n| format!(", {} of images", count(n)));
    format!(
        "{} in (by {}){cached}{images}; {} out (by {})",
        count(tokens.input),
        tokens.input_source,
        count(tokens.output),
        tokens.output_source
    )
}

/// The load in a few words: what was offered.
pub(super) fn offered_text(summary: &Summary) -> String {
    let load = &summary.load;
    match (load.mode.as_str(), load.offered_rps) {
        ("closed", _) => plural(load.concurrency.unwrap_or(0).into(), "user"),
        (_, Some(rate)) if summary.sessions.is_some() => {
            format!("{} sessions/s offered", amount(rate))
        }
        (_, Some(rate)) => format!("{} req/s offered", amount(rate)),
        _ if summary.replay.is_some() => "a trace".to_owned(),
        _ => "all at once".to_owned(),
    }
}

/// How requests were sent, and for how long they were measured.
pub(super) fn load_in_short(summary: &Summary) -> String {
    let load = &summary.load;
    let how = match (load.mode.as_str(), load.offered_rps) {
        ("closed", _) => closed_loop_text(load),
        ("burst", _) => "burst: all at once".to_owned(),
        (_, Some(rate)) => {
            let unit = if summary.sessions.is_some() { "sessions/s" } else { "req/s" };
            let arrivals = load.arrivals.as_deref().unwrap_or_default();
            format!("open loop, {} {unit} offered, {arrivals} arrivals", amount(rate))
        }
        _ if summary.replay.is_some() => "open loop, at the instants of a trace".to_owned(),
        _ => "open loop, all at once".to_owned(),
    };
    format!("{how}; {:.1} s measured", summary.window.end_s - summary.window.start_s)
}

/// Rates in the window.
pub(super) fn rates_in_window(summary: &Summary) -> String {
    let rate = |rate: Option<f64>| known_or_dash(rate, amount);
    let inside = &summary.throughput;
    format!(
        "{} req/s · {} output tok/s · {} total tok/s",
        rate(inside.requests_per_s),
        rate(inside.output_tokens_per_s),
        rate(inside.total_tokens_per_s)
    )
}

/// Rates in the window, and of the whole run.
pub(super) fn throughput_text(summary: &Summary) -> String {
    let rate = |rate: Option<f64>| known_or_dash(rate, amount);
    let whole = &summary.whole_run;
    format!(
        "{} (whole run with drain: {} req/s, {} output tok/s)",
        rates_in_window(summary),
        rate(whole.requests_per_s),
        rate(whole.output_tokens_per_s)
    )
}

/// Rates, and latencies with what lies outside the window.
pub(super) fn rate_facts(summary: &Summary) -> Vec<Fact> {
    let mut all = vec![Fact::new("Throughput", throughput_text(summary))];
    all.extend(whole_run_latency(summary).map(|text| Fact::new("", text)));
    all.extend(workload::recount_text(summary).map(|text| Fact::new("Recount", text)));
    all
}

/// Latencies with warm-up and cooldown, where there were such.
fn whole_run_latency(summary: &Summary) -> Option<String> {
    if summary.requests.warmup == 0 && summary.requests.cooldown == 0 {
        return None;
    }
    let value = |value: Option<f64>| known_or_dash(value, cell_number);
    let one = |(name, label): (&str, &str)| {
        let spread = summary.whole_run_latency_ms.get(name).filter(|spread| spread.n > 0)?;
        Some(format!("{label} p50 {}, p90 {}", value(spread.p50), value(spread.p90)))
    };
    let all: Vec<_> =
        [("ttft", "TTFT"), ("tpot", "TPOT"), ("e2e", "E2E")].into_iter().filter_map(one).collect();
    (!all.is_empty()).then(|| format!("with warm-up and cooldown, ms: {}", all.join("; ")))
}

/// Three figures of a time.
pub(super) fn three_figures(quick: &Quick) -> String {
    let ms = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3} ms"));
    format!("p50 {}, p99 {}, max {}", ms(quick.p50), ms(quick.p99), ms(quick.max))
}
