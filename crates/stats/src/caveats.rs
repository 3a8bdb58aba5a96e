//! What may make these numbers untrustworthy: each check with its evidence and its advice.

mod advice;
mod client;
mod clocks;
mod course;
mod fleet;
mod gpu;
mod method;
mod minutes;
mod outcome;
mod server;
mod stream;
mod tally;
mod workload;

use goodput_model::{Caveat, CaveatCode, Plan, Severity};

use crate::course::Course;
use crate::flow::Balance;
use crate::metrics::KeyFigures;
use crate::summary::{
    ClientSummary, GpuSummary, LoadSummary, Requests, RunFacts, ServerSummary, Tokens,
};
use crate::window::Window;
use crate::workload::WorkloadFigures;

pub use advice::time as flag_time;
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
    pub(crate) figures: &'a WorkloadFigures,
    pub(crate) key: &'a KeyFigures,
    pub(crate) course: &'a Course,
    pub(crate) tally: &'a Counted,
    /// The end of the last answer.
    pub(crate) run_end_s: f64,
    pub(crate) completions_per_s: Option<f64>,
    pub(crate) server: Option<&'a ServerSummary>,
    pub(crate) gpu: Option<&'a GpuSummary>,
}

/// One check.
type Check = fn(&Evidence<'_>) -> Option<Caveat>;

/// What is to be expected of a server that cannot keep up.
const EXPLAINED: [CaveatCode; 6] = [
    CaveatCode::NeverSteady,
    CaveatCode::Drifting,
    CaveatCode::LevelShift,
    CaveatCode::ColdStart,
    CaveatCode::MinutesDiffer,
    CaveatCode::ShortWindow,
];

/// Everything found, worst first.
#[expect(clippy::too_many_lines, reason = "a list")]
pub(crate) fn find(evidence: &Evidence<'_>) -> Vec<Caveat> {
    let checks: &[Check] = &[
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
        course::never_steady,
        course::overloaded,
        course::queue_saturated,
        course::level_shift,
        course::drifting,
        course::cold_start,
        outcome::failures,
        outcome::capped,
        outcome::not_complete,
        minutes::differ_caveat,
        client::slow_reader,
        client::lossy,
        stream::not_streamed,
        workload::output_length,
        workload::input_length,
        workload::cache_differs,
        workload::cache_unplanned,
        workload::cache_unseen,
        workload::structured_invalid,
        workload::bimodal_mix,
        course::bimodal,
        course::nagle,
        workload::sessions_cut,
        gpu::throttled,
        gpu::energy_by_power,
        gpu::idle,
        stream::tokens_by_chunks,
        stream::tokens_uncounted,
        stream::token_counts_disagree,
        stream::token_counts_impossible,
        stream::several_tokens_a_chunk,
        stream::chunks_coalesced,
        method::connect_in_ttft,
        method::no_warmup,
        method::closed_loop,
        method::short_window,
        method::few_samples,
        method::tail_unreliable,
        method::profiled,
    ];
    let mut found: Vec<_> =
        checks.iter().chain(&server::CHECKS).filter_map(|check| check(evidence)).collect();
    fleet::judge(evidence, &mut found);
    if found.iter().any(|caveat| caveat.code == CaveatCode::OverSaturated) {
        // What follows from it would only point elsewhere.
        found.retain(|caveat| {
            caveat.severity == Severity::Void || !EXPLAINED.contains(&caveat.code)
        });
    }
    found.sort_by_key(|caveat| std::cmp::Reverse(caveat.severity));
    found
}
