//! The terminal page: what was run, then how it went, then how far to believe it.

use std::fmt::{Error, Write};

use goodput_model::EndedBy;
use goodput_stats::steady::{State as Steady, Steadiness};
use goodput_stats::{
    ErrorDetail, GoalSummary, Quick, RunFacts, RunState, Summary, UntilSummary, Waterfall,
    WaterfallBand,
};

use super::{breakdown, clients, gpu, latency, server, slo, workload};
use crate::number::{amount, cell, count};
use crate::render::text::{Fields, field, judgement};
use goodput_model::plain;

/// The page of one run.
pub fn text(summary: &Summary) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, summary);
    page
}

fn write_page(page: &mut String, summary: &Summary) -> Result<(), Error> {
    head(page, summary)?;
    facts(page, summary);
    latency::table(page, summary)?;
    waterfall(page, summary)?;
    breakdown::tables(page, summary)?;
    server::block(page, summary)?;
    gpu::block(page, summary)?;
    page.push('\n');
    rates(page, summary);
    slo::block(page, summary);
    client(page, summary);
    clients::block(page, summary);
    errors(page, summary);
    judgement(page, summary.verdict, &summary.caveats);
    Ok(())
}

fn head(page: &mut String, summary: &Summary) -> Result<(), Error> {
    writeln!(page, "{}", plain(&summary.run.target))?;
    writeln!(page, "{}\n", about(&summary.run, streaming(summary)))
}

/// What was asked, when, by which version.
pub(crate) fn about(run: &RunFacts, streaming: &str) -> String {
    format!(
        "model {} · {}, {streaming} · {} · goodput {} · seed {}",
        plain(&run.model),
        run.api,
        run.started,
        run.version,
        run.seed
    )
}

/// How answers were asked for, and how they came.
pub(crate) fn streaming(summary: &Summary) -> &'static str {
    match &summary.requests {
        _ if !summary.run.stream => "not streaming",
        requests if requests.is_whole() => "streaming asked for, answers came whole",
        requests if requests.is_partly_whole() => "streaming asked for, some answers came whole",
        _ => "streaming",
    }
}

/// What was run.
pub(crate) fn facts(page: &mut impl Fields, summary: &Summary) {
    clients::shard(page, &summary.run);
    field(page, "Workload", &workload::name(&summary.run));
    field(page, "Load", &load(summary));
    field(page, "Window", &window(summary));
    steadiness(page, summary);
    field(page, "Requests", &requests(summary));
    if let Some(until) = &summary.until {
        field(page, "Until", &until_text(until));
    }
    field(page, "Tokens", &tokens(summary));
    workload::facts(page, summary);
    server::system(page, &summary.run);
}

/// What became of the measured requests, and how many others there were.
pub(crate) fn requests(summary: &Summary) -> String {
    let requests = &summary.requests;
    let mut sample = format!(
        "{} due, {} ok, {} failed",
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

pub(crate) fn load(summary: &Summary) -> String {
    let load = &summary.load;
    let rate = |rate: Option<f64>| rate.map_or("–".to_owned(), amount);
    let arrivals = load.arrivals.as_deref().unwrap_or_default();
    match load.mode.as_str() {
        "closed" => format!(
            "closed loop, {} users; {} req/s sent",
            load.concurrency.unwrap_or(0),
            rate(load.delivered_rps)
        ),
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
                     {due} req/s due, {sent} sent"
                ),
                (_, Some(_)) => {
                    format!("{kind}, the instants of a trace; {due} req/s due, {sent} sent")
                }
                _ if load.offered_rps.is_none() => format!("{kind}, all due at once"),
                _ => format!(
                    "{kind}, {arrivals} arrivals, {offered} {unit} offered; {due} {}due, {sent} sent{cv}",
                    if summary.sessions.is_some() { "req/s " } else { "" }
                ),
            }
        }
    }
}

pub(crate) fn window(summary: &Summary) -> String {
    let seconds = summary.window.end_s - summary.window.start_s;
    let state = match summary.run.state {
        RunState::Complete if summary.run.ended_by == Some(EndedBy::Until) => {
            "; ended by --until: enough was known"
        }
        RunState::Complete => match summary.run.ended_by {
            Some(EndedBy::Hopeless) => "; ended early: the SLO was out of reach",
            Some(EndedBy::Decided) => "; ended early: clear enough",
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
            format!("{:.1} s that differ from it (MSER-5)", cut.cut_s)
        }
        ("auto", Some(_)) if !is_too_short(summary) => {
            "an automatic warm-up that cut nothing".to_owned()
        }
        ("auto", _) => "no warm-up: nothing that could be judged".to_owned(),
        ("0s" | "0", _) if is_between_cohorts(summary) => {
            let users = count(summary.load.concurrency.unwrap_or(0).into());
            return format!(
                "{seconds:.1} s from the end of the first {users} answers to that of the last but \
                 {users}{state}"
            );
        }
        ("0s" | "0", _) => "no warm-up".to_owned(),
        (n, _) if n.bytes().all(|b| b.is_ascii_digit()) => format!("a warm-up of {n} requests"),
        (time, _) => format!("a warm-up of {time}"),
    };
    format!("{seconds:.1} s after {warmup}{state}")
}

/// What was asked for, and how well it is known.
fn until_text(until: &UntilSummary) -> String {
    let goal = |goal: &GoalSummary| {
        let within = goal.within.map_or("no interval".to_owned(), |within| {
            format!("known to ±{:.1} %", within * 100.0)
        });
        let (n, n_eff) = (count(goal.n), count(goal.n_eff as u64));
        format!("{}: {within} from {n} requests (as good as {n_eff} independent ones)", goal.rule)
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

/// Whether the window was one state, where somebody can say.
fn steadiness(page: &mut impl Fields, summary: &Summary) {
    let Some(Steadiness { state, trend, cut, .. }) = &summary.steadiness else { return };
    let drift = trend.as_ref().map_or(String::new(), |trend| {
        format!("; {} {:+.1} % from begin to end", trend.metric, trend.drift_share * 100.0)
    });
    let text = match state {
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
        Steady::NotApplicable => return,
    };
    field(page, "Steady", &text);
}

pub(crate) fn tokens(summary: &Summary) -> String {
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

/// Columns of the waterfall: name in the summary, heading, and whether it is shown though zero.
const STEPS: [(&str, &str, bool); 10] = [
    ("held", "held", false),
    ("slip", "slip", true),
    ("blocked", "pool", false),
    ("dns", "dns", true),
    ("connect", "conn", true),
    ("tls", "tls", true),
    ("send", "send", true),
    ("wait", "wait", true),
    ("header_to_byte", "→byte", true),
    ("byte_to_token", "→token", true),
];

/// How long a step took.
pub(crate) fn step_ms(band: &WaterfallBand, name: &str) -> f64 {
    band.parts.iter().find(|part| part.name == name).map_or(0.0, |part| part.ms)
}

/// The steps that are shown: name in the summary, and heading.
pub(crate) fn steps(waterfall: &Waterfall) -> Vec<(&'static str, &'static str)> {
    let is_some = |name: &str| {
        [&waterfall.median, &waterfall.slowest].iter().any(|band| step_ms(band, name) > 0.0)
    };
    let shown = STEPS.iter().filter(|(name, _, always)| *always || is_some(name));
    shown.map(|(name, heading, _)| (*name, *heading)).collect()
}

/// The requests that a waterfall is of.
pub(crate) fn bands(waterfall: &Waterfall) -> [(&'static str, &WaterfallBand); 2] {
    [("middle tenth", &waterfall.median), ("slowest 1 %", &waterfall.slowest)]
}

fn waterfall(page: &mut String, summary: &Summary) -> Result<(), Error> {
    let Some(waterfall) = &summary.waterfall else { return Ok(()) };
    let shown = steps(waterfall);
    write!(page, "\n{:<16}", "TTFT by step, ms")?;
    for (_, heading) in &shown {
        write!(page, "{heading:>7}")?;
    }
    writeln!(page, "{:>8}", "= TTFT")?;
    for (label, band) in bands(waterfall) {
        write!(page, "{label:<16}")?;
        for (name, _) in &shown {
            write!(page, "{:>7}", cell(step_ms(band, name)))?;
        }
        writeln!(page, "{:>8}", cell(band.ttft_ms))?;
    }
    Ok(())
}

/// Rates in the window, and of the whole run.
pub(crate) fn throughput(summary: &Summary) -> String {
    let rate = |rate: Option<f64>| rate.map_or("–".to_owned(), amount);
    let (inside, whole) = (&summary.throughput, &summary.whole_run);
    format!(
        "{} req/s · {} output tok/s · {} total tok/s (whole run with drain: {} req/s, {} output tok/s)",
        rate(inside.requests_per_s),
        rate(inside.output_tokens_per_s),
        rate(inside.total_tokens_per_s),
        rate(whole.requests_per_s),
        rate(whole.output_tokens_per_s)
    )
}

/// Rates, and latencies with what lies outside the window.
pub(crate) fn rates(page: &mut impl Fields, summary: &Summary) {
    field(page, "Throughput", &throughput(summary));
    whole_latency(page, summary);
    workload::recount(page, summary);
}

/// Latencies with warm-up and cooldown, where there were such.
fn whole_latency(page: &mut impl Fields, summary: &Summary) {
    if summary.requests.warmup == 0 && summary.requests.cooldown == 0 {
        return;
    }
    let value = |value: Option<f64>| value.map_or("–".to_owned(), cell);
    let one = |(name, label): (&str, &str)| {
        let spread = summary.whole_run_latency_ms.get(name).filter(|spread| spread.n > 0)?;
        Some(format!("{label} p50 {}, p90 {}", value(spread.p50), value(spread.p90)))
    };
    let all: Vec<_> =
        [("ttft", "TTFT"), ("tpot", "TPOT"), ("e2e", "E2E")].into_iter().filter_map(one).collect();
    if !all.is_empty() {
        field(page, "", &format!("with warm-up and cooldown, ms: {}", all.join("; ")));
    }
}

fn three(quick: &Quick) -> String {
    let ms = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3} ms"));
    format!("p50 {}, p99 {}, max {}", ms(quick.p50), ms(quick.p99), ms(quick.max))
}

/// How the client fared, in the order in which a doubter would ask.
fn client(page: &mut impl Fields, summary: &Summary) {
    field(page, "Client", &format!("schedule slip {}", three(&summary.load.slip_ms)));
    client_rest(page, summary);
}

/// Beyond its own slip.
pub(crate) fn client_rest(page: &mut impl Fields, summary: &Summary) {
    let (client, load) = (&summary.client, &summary.load);
    let stamps = match client.stamps.as_str() {
        "kernel" => "arrivals stamped by the kernel; read later by",
        "mixed" => "arrivals stamped by the kernel where it does; read later by",
        _ => "arrivals stamped when read; the kernel does not say how much later:",
    };
    field(page, "", &format!("{stamps} {}", three(&client.lag_ms)));
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let workers = || client.threads.iter().filter(|(name, _)| name.starts_with("worker-"));
    let busiest = workers().map(|(_, thread)| thread.cpu_share).max_by(f64::total_cmp);
    let waited = workers().map(|(_, thread)| thread.waited_share).max_by(f64::total_cmp);
    if let (Some(busiest), Some(waited)) = (busiest, waited) {
        let text = format!(
            "busiest worker {} of a core, {} waiting for one; loop called late by {}",
            percent(busiest),
            percent(waited),
            three(&client.loop_lag_ms)
        );
        field(page, "", &text);
    }
    let tcp = &client.tcp;
    let text = format!(
        "{} connections opened on demand, {} reused, {} reopened; {} segments sent again; in flight {} on \
         average, {} at the end",
        count(tcp.opened),
        count(tcp.reused),
        count(summary.requests.reconnects),
        count(tcp.retransmits),
        load.in_flight_mean.map_or("–".to_owned(), amount),
        count(load.in_flight_end)
    );
    field(page, "", &text);
    if let Some(test) = load.sent_gaps {
        let text = format!(
            "gaps between sends against Poisson: Kolmogorov–Smirnov distance {:.3}, p {:.2}",
            test.distance, test.p
        );
        field(page, "", &text);
    }
}

fn errors(page: &mut impl Fields, summary: &Summary) {
    for (index, detail) in summary.requests.error_details.iter().enumerate() {
        let label = if index == 0 { "Errors" } else { "" };
        field(page, label, &error(detail));
    }
}

/// How often, what, and what was said.
pub(crate) fn error(detail: &ErrorDetail) -> String {
    let ErrorDetail { class, stage, message, .. } = detail;
    format!("{} × {class} ({stage}): {}", count(detail.count), plain(message))
}
