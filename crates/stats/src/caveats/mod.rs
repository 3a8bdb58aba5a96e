//! What may make these numbers untrustworthy: each check with its evidence and its advice.

mod advice;
mod client;
mod clocks;
mod method;
mod minutes;
mod outcome;
mod stream;
mod tally;
mod workload;

use goodput_model::{Caveat, CaveatCode, Mode, Plan, Severity};

use crate::flow::Balance;
use crate::summary::{ClientSummary, LoadSummary, Requests, RunFacts, Tokens};
use crate::window::Window;
use crate::workload::Figures;

pub(crate) use tally::{CaveatTally, Counted};

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
    pub(crate) e2e_p99_ms: Option<f64>,
    /// Correlation of the TTFT of neighbours in order of due instants.
    pub(crate) ttft_lag1: Option<f64>,
    pub(crate) tally: &'a Counted,
    /// The end of the last answer.
    pub(crate) run_end_s: f64,
    pub(crate) completions_per_s: Option<f64>,
}

/// Everything found, worst first.
pub(crate) fn find(evidence: &Evidence<'_>) -> Vec<Caveat> {
    let checks = [
        outcome::nothing_measured,
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
        clocks::suspicious,
        outcome::not_sent,
        outcome::lost_records,
        overloaded,
        outcome::failures,
        outcome::capped,
        outcome::not_complete,
        minutes::differ_caveat,
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
        stream::tokens_by_chunks,
        stream::tokens_uncounted,
        stream::token_counts_disagree,
        stream::several_tokens_a_chunk,
        stream::chunks_coalesced,
        method::connect_in_ttft,
        method::no_warmup,
        method::closed_loop,
        method::short_window,
        method::few_samples,
        method::tail_unreliable,
    ];
    let mut found: Vec<_> = checks.iter().filter_map(|check| check(evidence)).collect();
    found.sort_by_key(|caveat| std::cmp::Reverse(caveat.severity));
    found
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
             grows by {per_s:.1} req/s, so every latency here depends on how long the run was",
            e.load.scheduled_rps.or(e.load.offered_rps).unwrap_or_default(),
            e.completions_per_s.unwrap_or_default(),
        );
        Caveat::new(CaveatCode::OverSaturated, Severity::Warn, message).advise(advice::less_load(e))
    })
}
