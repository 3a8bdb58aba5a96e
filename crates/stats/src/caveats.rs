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

pub use advice::duration_flag as flag_time;
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
pub(crate) fn find_caveats(evidence: &Evidence<'_>) -> Vec<Caveat> {
    let checks: &[Check] = &[
        outcome::check_nothing_measured,
        client::check_schedule_slip,
        client::check_starved_loop,
        client::check_stalls,
        client::check_loop_lag,
        client::check_merged_reads,
        client::check_contention,
        client::check_crowded_cpus,
        client::check_busy_workers,
        client::check_cpu_throttling,
        client::check_stolen_time,
        client::check_canary,
        client::check_missing_observations,
        client::check_ceiling,
        client::check_poisson,
        client::check_littles_law,
        client::check_local_limit,
        clocks::check_clocks,
        outcome::check_not_sent,
        outcome::check_lost_records,
        course::check_never_steady,
        course::check_overload,
        course::check_full_queue,
        course::check_level_shift,
        course::check_drift,
        course::check_cold_start,
        outcome::check_failures,
        outcome::check_capped,
        outcome::check_incomplete,
        minutes::check_minutes,
        client::check_slow_reader,
        client::check_packet_loss,
        stream::check_not_streamed,
        workload::check_output_length,
        workload::check_input_length,
        workload::check_cache_rate,
        workload::check_unplanned_cache,
        workload::check_unseen_cache,
        workload::check_invalid_answers,
        workload::check_bimodal_mix,
        course::check_two_groups,
        course::check_nagle,
        workload::check_cut_sessions,
        gpu::check_gpu_throttling,
        gpu::check_energy_source,
        gpu::check_idle_gpus,
        stream::check_tokens_by_chunks,
        stream::check_tokens_uncounted,
        stream::check_disagreeing_counts,
        stream::check_impossible_counts,
        stream::check_several_tokens_a_chunk,
        stream::check_coalesced_chunks,
        method::check_connects_in_ttft,
        method::check_no_warmup,
        method::check_closed_loop,
        method::check_short_window,
        method::check_few_samples,
        method::check_unreliable_tail,
        method::check_profiler,
    ];
    let mut found: Vec<_> =
        checks.iter().chain(&server::CHECKS).filter_map(|check| check(evidence)).collect();
    fleet::check_shards(evidence, &mut found);
    if found.iter().any(|caveat| caveat.code == CaveatCode::OverSaturated) {
        // What follows from it would only point elsewhere.
        found.retain(|caveat| {
            caveat.severity == Severity::Void || !EXPLAINED.contains(&caveat.code)
        });
    }
    found.sort_by_key(|caveat| std::cmp::Reverse(caveat.severity));
    found
}
