//! What may make these numbers untrustworthy: each check with its evidence and its advice.

mod client;
mod workload;

use goodput_model::{Caveat, CaveatCode, Mode, Plan, Severity};

use crate::flow::Balance;
use crate::summary::{ClientSummary, LoadSummary, Requests, RunFacts, RunState, Tokens};
use crate::window::Window;
use crate::workload::Figures;

/// What the checks look at.
pub(crate) struct Evidence<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) run: &'a RunFacts,
    pub(crate) load: &'a LoadSummary,
    pub(crate) requests: &'a Requests,
    pub(crate) tokens: &'a Tokens,
    /// Whether chunks were taken for tokens in any answer.
    pub(crate) is_counted_by_chunks: bool,
    pub(crate) window: Window,
    pub(crate) balance: &'a Balance,
    pub(crate) client: &'a ClientSummary,
    pub(crate) figures: &'a Figures,
    pub(crate) ttft_p50_ms: Option<f64>,
    pub(crate) itl_p50_ms: Option<f64>,
    /// The end of the last answer.
    pub(crate) run_end_s: f64,
    pub(crate) completions_per_s: Option<f64>,
}

/// Everything found, worst first.
pub(crate) fn find(evidence: &Evidence<'_>) -> Vec<Caveat> {
    let checks = [
        nothing_measured,
        client::schedule_slip,
        client::starved,
        client::stalled,
        client::lag,
        client::merged,
        client::contended,
        client::crowded,
        client::busy,
        client::throttled,
        client::stolen,
        client::canary,
        client::not_observed,
        client::near_ceiling,
        client::not_poisson,
        client::littles_law,
        client::local_limit,
        not_sent,
        lost_records,
        overloaded,
        failures,
        capped,
        not_complete,
        client::slow_reader,
        client::lossy,
        workload::output_length,
        workload::input_length,
        workload::cache_differs,
        workload::cache_unplanned,
        workload::cache_unseen,
        workload::structured_invalid,
        workload::bimodal_mix,
        workload::sessions_cut,
        tokens_by_chunks,
        tokens_uncounted,
        several_tokens_a_chunk,
        no_warmup,
        short_window,
        few_samples,
    ];
    let mut found: Vec<_> = checks.iter().filter_map(|check| check(evidence)).collect();
    found.sort_by_key(|caveat| std::cmp::Reverse(caveat.severity));
    found
}

fn nothing_measured(e: &Evidence<'_>) -> Option<Caveat> {
    let message = match (e.requests.scheduled, e.requests.ok) {
        (0, _) => "no request fell into the measured window; make the run longer".to_owned(),
        (n, 0) => format!("all {n} measured requests failed; the error classes say how"),
        _ => return None,
    };
    Some(Caveat::new(CaveatCode::NothingMeasured, Severity::Void, message))
}

fn not_sent(e: &Evidence<'_>) -> Option<Caveat> {
    // Requests that could not connect were not sent either; those have their own class.
    let unsent = e.requests.errors_by_stage.get("connect").copied().unwrap_or(0);
    let share = e.load.delivered_share? + unsent as f64 / e.requests.scheduled.max(1) as f64;
    (share < 0.99 && e.run.is_complete()).then(|| {
        let severity = if share < 0.95 { Severity::Void } else { Severity::Warn };
        let message = format!("only {:.1} % of the due requests were sent", share * 100.0);
        Caveat::new(CaveatCode::NotDelivered, severity, message)
    })
}

fn lost_records(e: &Evidence<'_>) -> Option<Caveat> {
    let message = match (e.run.lost_records, e.run.unwritten_records, e.run.log_damaged) {
        (0, 0, false) => return None,
        (0, 0, true) => "the log ends in a damaged frame; what follows it is lost".to_owned(),
        (0, n, _) => format!("the disk refused {n} records: they are in this report, not on disk"),
        (n, _, _) => {
            format!("{n} requests were measured but could not be recorded (disk full or slow)")
        }
    };
    Some(Caveat::new(CaveatCode::RecordsLost, Severity::Warn, message))
}

/// In the second half of the window the server answered clearly less than it was asked, more
/// requests piled up than chance explains (the difference of two Poisson counts, three standard
/// deviations), and the wait for an answer grew. Where the rate itself changes, all of that is to be
/// expected of a server that keeps up.
fn overloaded(e: &Evidence<'_>) -> Option<Caveat> {
    let Balance { arrivals, completions, in_flight_middle, in_flight_end, .. } = *e.balance;
    let is_open = matches!(e.plan.load.mode, Mode::Open { max_concurrency: None, .. })
        && !e.window.is_makespan();
    let growth = in_flight_end.saturating_sub(in_flight_middle) as f64;
    let chance = (3.0 * (2.0 * in_flight_middle as f64).sqrt()).max(5.0);
    let falls_behind = (completions as f64) < 0.97 * arrivals as f64
        && growth > chance
        && e.balance.wait_growth().is_none_or(|growth| growth > 1.1);
    (is_open && falls_behind).then(|| {
        let per_s = growth / (e.window.seconds() / 2.0);
        let message = format!(
            "the server cannot keep up: {:.1} req/s offered, {:.1} req/s answered, and the queue \
             grows by {per_s:.1} req/s, so every latency here depends on how long the run was; \
             offer less",
            e.load.scheduled_rps.or(e.load.offered_rps).unwrap_or_default(),
            e.completions_per_s.unwrap_or_default(),
        );
        Caveat::new(CaveatCode::OverSaturated, Severity::Warn, message)
    })
}

fn failures(e: &Evidence<'_>) -> Option<Caveat> {
    let Requests { scheduled, failed, ok, .. } = *e.requests;
    let share = failed as f64 / scheduled.max(1) as f64;
    (share > 0.01 && ok > 0).then(|| {
        let message = format!(
            "{failed} of {scheduled} requests failed ({:.1} %); the latencies speak of the rest, and of \
             those that ran into a time limit",
            share * 100.0
        );
        let severity = if share > 0.5 { Severity::Void } else { Severity::Warn };
        Caveat::new(CaveatCode::Errors, severity, message)
    })
}

fn capped(e: &Evidence<'_>) -> Option<Caveat> {
    let cap = e.load.max_concurrency.filter(|_| e.load.delayed > 0)?;
    let share = e.load.delayed as f64 / e.requests.scheduled.max(1) as f64 * 100.0;
    let message = format!(
        "the cap of {cap} held back {} requests ({share:.1} %): this is not an open loop",
        e.load.delayed
    );
    Some(Caveat::new(CaveatCode::Capped, Severity::Info, message))
}

fn not_complete(e: &Evidence<'_>) -> Option<Caveat> {
    let (severity, message) = match e.run.state {
        RunState::Complete => return None,
        RunState::Interrupted => (Severity::Info, "the run was stopped before its planned end"),
        RunState::Unfinished => (
            Severity::Warn,
            "the run was killed or is still going: requests under way are not in the record, and \
             those are the slow ones",
        ),
    };
    Some(Caveat::new(CaveatCode::NotComplete, severity, message))
}

fn tokens_by_chunks(e: &Evidence<'_>) -> Option<Caveat> {
    (e.is_counted_by_chunks && e.tokens.output > 0).then(|| {
        let message = "the server did not report token usage for every answer: tokens are counted \
                       as chunks, which may hold several";
        Caveat::new(CaveatCode::TokensByChunks, Severity::Info, message)
    })
}

fn tokens_uncounted(e: &Evidence<'_>) -> Option<Caveat> {
    let uncounted = e.tokens.uncounted;
    (uncounted > 0).then(|| {
        let message = format!(
            "{uncounted} good answers came without a count of their tokens: token figures leave \
             them out"
        );
        Caveat::new(CaveatCode::TokensUncounted, Severity::Warn, message)
    })
}

fn several_tokens_a_chunk(e: &Evidence<'_>) -> Option<Caveat> {
    // Up to one token an answer ends it and is in no chunk.
    let shown = e.tokens.output.saturating_sub(e.requests.ok) as f64;
    let ratio = shown / e.tokens.chunks.max(1) as f64;
    (e.tokens.chunks > 0 && ratio > 1.2).then(|| {
        let message = format!(
            "chunks hold {ratio:.1} tokens on average: ITL is the gap between chunks, TPOT the time \
             per token"
        );
        Caveat::new(CaveatCode::SeveralTokensAChunk, Severity::Info, message)
    })
}

fn no_warmup(e: &Evidence<'_>) -> Option<Caveat> {
    e.plan.load.warmup.is_none().then(|| {
        let message = "no warm-up: the first requests may have met a cold server; add --warmup 10s";
        Caveat::new(CaveatCode::NoWarmup, Severity::Info, message)
    })
}

fn short_window(e: &Evidence<'_>) -> Option<Caveat> {
    let seconds = e.window.seconds();
    (seconds < 60.0 && e.requests.scheduled > 0).then(|| {
        let message = format!("{seconds:.1} s measured; 60 s or more settle queues and caches");
        Caveat::new(CaveatCode::ShortWindow, Severity::Info, message)
    })
}

/// A percentile rests on few samples when fewer than ten lie beyond it.
fn few_samples(e: &Evidence<'_>) -> Option<Caveat> {
    let n = e.requests.ok as f64;
    let thin = |percent: &&f64| n * (100.0 - **percent) / 100.0 < 10.0;
    let first = e.plan.measure.percentiles.iter().find(thin)?;
    let needed = (1000.0 / (100.0 - first)).round();
    (e.requests.ok > 0).then(|| {
        let message = format!(
            "percentiles from p{first} up rest on fewer than ten slower requests; p{first} needs \
             about {needed} requests"
        );
        Caveat::new(CaveatCode::FewSamples, Severity::Info, message)
    })
}
