//! What the server says of itself, and whether it speaks of the same load.

use goodput_model::{Caveat, CaveatCode, Nanos, Severity, TokenSource};

use super::{Check, Evidence, advice};
use crate::server::KV_FULL;
use crate::share::shard_of_run;
use crate::summary::{EndpointSummary, Mark, Reconciled, RunState, ServerSummary};

/// The server may have generated so much more than the client received, as a share and in tokens.
const MORE_BY_SERVER: f64 = 0.02;
const MORE_TOKENS: f64 = 50.0;
/// The client may have counted so much more than the server.
const MORE_BY_CLIENT: f64 = 0.005;
/// Requests that had to leave the batch, as a share of the measured ones.
const PREEMPTED: f64 = 0.01;
/// Looks at which a full batch kept others waiting.
const AT_LIMIT: f64 = 0.2;
/// What TTFT may lose on the way, as a share and in milliseconds.
const ON_THE_WAY: f64 = 0.2;
const ON_THE_WAY_MS: f64 = 5.0;
/// Intervals without an answer that leave a gap.
const GAP: u64 = 3;

/// All of these.
pub(super) const CHECKS: [Check; 9] = [
    check_shared_server,
    check_token_counts,
    check_restart,
    check_several_servers,
    check_preemptions,
    check_queue_limit,
    check_kv_pressure,
    check_gateway_time,
    check_lost_metrics,
];

/// Output tokens of the whole run by both, where both counted the same requests.
fn reconciled_output(e: &Evidence<'_>) -> Option<(Reconciled, Option<f64>)> {
    let server = e.server.filter(|server| !has_restarted(server))?;
    let against = server.against_client.as_ref().filter(|against| against.covers_run)?;
    // A client that takes chunks for tokens, or has lost records, does not know its own count.
    let is_known = !e.is_counted_by_chunks
        && e.tokens.output_source != TokenSource::Events.name()
        && e.tokens.uncounted == 0
        && e.run.lost_records == 0
        && !e.run.log_damaged
        && e.run.state != RunState::Unfinished;
    Some((against.output_tokens.filter(|_| is_known)?, against.unseen_tokens))
}

/// What a server counted between the last look and a new start is lost, and what another one behind
/// the same address ever counted may stand there instead.
fn has_restarted(server: &ServerSummary) -> bool {
    server.endpoints.iter().any(|endpoint| endpoint.resets > 0 || endpoint.several_servers)
}

fn check_shared_server(e: &Evidence<'_>) -> Option<Caveat> {
    let (tokens, unseen) = reconciled_output(e)?;
    let is_much = |more: f64| more > MORE_BY_SERVER * tokens.client && more > MORE_TOKENS;
    let more = -tokens.difference;
    if !is_much(more) {
        return None;
    }
    let share = more / tokens.client.max(1.0) * 100.0;
    let message = format!(
        "the server generated {:.0} tokens during the run, {more:.0} more ({share:.1} %) than this \
         client received",
        tokens.server
    );
    // Of answers that were cut the server may have made the rest.
    let may_be_ours = unseen.is_none_or(|unseen| !is_much(more - unseen));
    Some(if may_be_ours {
        let message = format!("{message}: answers that were cut can explain it");
        Caveat::new(CaveatCode::ServerShared, Severity::Info, message)
    } else {
        let message = format!("{message}: other clients use it");
        Caveat::new(CaveatCode::ServerShared, Severity::Warn, message).advise(
            "measure a server without other clients, or read its figures as those of all \
                     clients together",
        )
    })
}

fn check_token_counts(e: &Evidence<'_>) -> Option<Caveat> {
    let (tokens, _) = reconciled_output(e)?;
    (tokens.difference > (MORE_BY_CLIENT * tokens.server).max(1.0)).then(|| {
        let message = format!(
            "the client counts {:.0} output tokens, the server only {:.0}: its metrics do not \
             cover all of this load",
            tokens.client, tokens.server
        );
        Caveat::new(CaveatCode::ServerCountsDiffer, Severity::Warn, message)
            .advise("pass the metrics page of every replica with --metrics-url")
    })
}

fn check_restart(e: &Evidence<'_>) -> Option<Caveat> {
    let server = e.server?;
    let first = marks_of_kind(server, "restart").next()?;
    let more = marks_of_kind(server, "restart").count() - 1;
    let more = if more > 0 { format!(", and {more} times after that") } else { String::new() };
    let message = format!(
        "the server's counters restarted at {:.1} s{more}: the server was restarted during the \
         run, or another one answered",
        first.start_s
    );
    let advice = "check its log at that instant, and run again";
    Some(Caveat::new(CaveatCode::ServerRestarted, Severity::Warn, message).advise(advice))
}

fn check_several_servers(e: &Evidence<'_>) -> Option<Caveat> {
    let one = e.server?.endpoints.iter().find(|endpoint| endpoint.several_servers)?;
    let message = format!(
        "several servers answer at {} in turn: gauges show one of them at a time, and totals and \
         distributions are left out",
        one.url
    );
    let advice = "pass the page of each with --metrics-url, bypassing the load balancer";
    Some(Caveat::new(CaveatCode::SeveralServers, Severity::Warn, message).advise(advice))
}

fn check_lost_metrics(e: &Evidence<'_>) -> Option<Caveat> {
    let endpoints = &e.server?.endpoints;
    // An optional page that does not exist is not a loss.
    let is_asked =
        |one: &&EndpointSummary| one.answers > 0 || !e.plan.observe.metrics_urls.is_empty();
    let worst = |a: &&EndpointSummary, b: &&EndpointSummary| {
        (a.failures, a.longest_gap_s)
            .partial_cmp(&(b.failures, b.longest_gap_s))
            .unwrap_or(std::cmp::Ordering::Equal)
    };
    let gap = Nanos(Nanos::from(e.plan.observe.interval).0.saturating_mul(GAP)).as_secs();
    let is_lost =
        |one: &&EndpointSummary| one.failures > 0 || one.longest_gap_s > gap || one.looks < 2;
    let one = endpoints.iter().filter(is_asked).filter(is_lost).max_by(worst)?;
    let mut lost = Vec::new();
    if one.failures > 0 {
        let asked = one.answers + one.failures;
        let share = one.failures as f64 / asked as f64 * 100.0;
        let reason = one.last_failure.as_deref().unwrap_or_default();
        lost.push(format!(
            "{} of {asked} scrapes of the server's metrics failed ({share:.1} %), the last one \
             with: {reason}",
            one.failures
        ));
    }
    if one.longest_gap_s > gap {
        lost.push(format!("{:.1} s of the window have no scrape of the server", one.longest_gap_s));
    }
    if one.looks < 2 {
        lost.push(format!(
            "scrapes inside the window: {}; rates and distributions need two",
            one.looks
        ));
    }
    let message = lost.join("; ");
    Some(Caveat::new(CaveatCode::MetricsLost, Severity::Info, message))
}

fn check_preemptions(e: &Evidence<'_>) -> Option<Caveat> {
    let total = e.server?.counters.get("preemptions")?.total;
    // The server counts those of all clients.
    let clients = f64::from(shard_of_run(e.run).count());
    let share = total / clients / e.requests.scheduled.max(1) as f64;
    (total > 0.0).then(|| {
        let severity = if share > PREEMPTED { Severity::Warn } else { Severity::Info };
        let message = format!(
            "preempted requests in the window: {total:.0} ({:.1} % of the measured ones); the \
             server computes their prompts again",
            share * 100.0
        );
        let advice = format!("give the KV cache more memory, or {}", advice::half_load_flag(e));
        Caveat::new(CaveatCode::Preemptions, severity, message).advise(advice)
    })
}

fn check_kv_pressure(e: &Evidence<'_>) -> Option<Caveat> {
    let server = e.server?;
    let (start, end) = (e.window.start.as_secs(), e.window.end.as_secs());
    let inside = marks_of_kind(server, "kv_pressure")
        .filter(|mark| mark.start_s <= end && mark.end_s >= start);
    // One look may have met the instant before a request ended.
    let lasted = inside.clone().any(|mark| mark.end_s > mark.start_s) || inside.clone().count() > 1;
    let highest = inside.clone().map(|mark| mark.value).max_by(f64::total_cmp)?;
    let first = inside.map(|mark| mark.start_s).next().filter(|_| lasted)?;
    let message = format!(
        "the server's KV cache was up to {:.0} % full: above {:.0} %, which it reached at \
         {first:.1} s, new requests may wait for space",
        highest * 100.0,
        KV_FULL * 100.0
    );
    Some(Caveat::new(CaveatCode::KvPressure, Severity::Info, message))
}

fn check_queue_limit(e: &Evidence<'_>) -> Option<Caveat> {
    let queue = e.server?.queue.as_ref()?;
    let (limit, share) = (queue.batch_limit?, queue.held_up_share?);
    (share > AT_LIMIT).then(|| {
        let message = format!(
            "the server's batch was at its limit of {limit:.0} requests in {:.0} % of the \
             scrapes, with up to {:.0} waiting: additional requests only wait longer",
            share * 100.0,
            queue.waiting_max
        );
        Caveat::new(CaveatCode::QueueAtLimit, Severity::Info, message)
    })
}

fn check_gateway_time(e: &Evidence<'_>) -> Option<Caveat> {
    // Then the server's mean is not of this client's requests.
    let server = e.server.filter(|server| !has_restarted(server))?;
    if check_shared_server(e).is_some_and(|shared| shared.severity >= Severity::Warn) {
        return None;
    }
    let ttft = server.against_client.as_ref()?.ttft_mean_ms?;
    let share = ttft.share?;
    (share > ON_THE_WAY && ttft.difference > ON_THE_WAY_MS).then(|| {
        let message = format!(
            "TTFT is {:.1} ms on average for the client and {:.1} ms for the server: {:.1} ms are \
             spent outside the server's own measurement: network, gateway, reading and tokenizing \
             the prompt",
            ttft.client, ttft.server, ttft.difference
        );
        Caveat::new(CaveatCode::GatewayTime, Severity::Info, message)
    })
}

fn marks_of_kind<'a>(
    server: &'a ServerSummary,
    kind: &'a str,
) -> impl Iterator<Item = &'a Mark> + Clone {
    server.marks.iter().filter(move |mark| mark.kind == kind)
}
