//! What a run, or several of one side, have that must be the same on the other side.

use std::collections::{BTreeMap, BTreeSet};

use goodput_model::{Http, Mode, Plan, Rate, SourcePlan, TokenCalibration, WorkloadPlan};
use goodput_stats::{RunFacts, SloSummary, Summary};

use super::SideFacts;

/// Between the values of runs of one side that differ.
pub(super) const BETWEEN: &str = " | ";

/// Before the fingerprint of a calibration's words.
pub(super) const WORDS: &str = ", words ";

impl SideFacts {
    /// The facts of one run. `host` says what measured it.
    pub fn from_run(plan: &Plan, summary: &Summary, host: String) -> Self {
        let (run, requests, tokens) = (&summary.run, &summary.requests, &summary.tokens);
        let target = &plan.target;
        let each = |sum: u64, n: u64| (n > 0).then(|| sum as f64 / n as f64);
        let input = summary.lengths.input.as_ref();
        let output = summary.lengths.output.as_ref();
        let recount = summary.recount.as_ref();
        let judged = |slo: &SloSummary| slo.scheduled.saturating_sub(slo.undetermined);
        let streamed = if target.stream { "streamed" } else { "not streamed" };
        let http = if target.http == Http::Http1 { "HTTP/1.1" } else { "HTTP/2" };
        let share = |attainment| format!(" for {} of requests", percent_text(attainment));
        let slo = plan.measure.slo.as_ref().map(ToString::to_string).unwrap_or_default();
        let reset = "cleared before the run";
        Self {
            version: run.version.clone(),
            host,
            model: run.model.clone(),
            api: format!("{}, {streamed}", target.api.name()),
            transport: format!("{http}, connections {}", target.connections.name()),
            workload: run.workload.clone(),
            workload_hash: run.workload_hash.clone(),
            shape: workload_text(&plan.workload),
            calibration: plan
                .workload
                .calibration
                .as_ref()
                .map(calibration_text)
                .unwrap_or_default(),
            load: load_text(&plan.load.mode) + &shard_text(run),
            seed: run.seed,
            window_s: summary.window.end_s - summary.window.start_s,
            warmup: plan.load.warmup.to_string(),
            slo: slo + &plan.measure.attainment.map(share).unwrap_or_default(),
            extra_body: target.extra_body.clone().unwrap_or_default(),
            cache: if plan.workload.reset_cache { reset } else { "not cleared" }.to_owned(),
            requests: requests.scheduled,
            judged: summary.slo.as_ref().map_or(0, judged),
            ok: requests.ok,
            failed_share: each(requests.failed, requests.scheduled).unwrap_or(0.0),
            output_source: tokens.output_source.clone(),
            input_mean: match (input, tokens.input_source.as_str()) {
                (Some(input), _) => Some(input.actual_mean),
                (None, "usage") => each(tokens.input, requests.ok),
                _ => None,
            },
            planned_input_mean: input.map(|input| input.planned_mean),
            output_mean: match output {
                Some(output) => Some(output.actual_mean),
                None => each(tokens.output, requests.ok.saturating_sub(tokens.uncounted)),
            },
            planned_output_mean: output.map(|output| output.planned_mean),
            characters_mean: recount.and_then(|recount| each(recount.characters, recount.n)),
            cached_share: summary.cache.as_ref().and_then(|cache| cache.observed),
            count_with: recount.map(|recount| recount.tokenizer.clone()),
            min_rtt_ms: summary.client.tcp.min_rtt_ms,
            ttft_ms: summary.metrics.get("ttft").and_then(|ttft| ttft.percentiles.get("50")?.value),
            server: run.system.settings(),
        }
    }

    /// Several runs of one side together: means weighted by the requests that they rest on, texts
    /// that differ side by side.
    #[must_use]
    pub fn merge(runs: &[&Self]) -> Self {
        let texts = |of: fn(&Self) -> &str| {
            // Those of runs that were merged before are several already. In order, so that sides
            // that have the same ones are the same, whichever came first.
            let found: BTreeSet<&str> =
                runs.iter().flat_map(|run| of(run).split(BETWEEN)).collect();
            let found: Vec<&str> = found.into_iter().filter(|text| !text.is_empty()).collect();
            found.join(BETWEEN)
        };
        let means = |of: fn(&Self) -> Option<f64>| {
            weighted_mean(runs.iter().filter_map(|run| Some((of(run)?, run.ok))))
        };
        let counted = texts(|run| run.count_with.as_deref().unwrap_or_default());
        let rtts = runs.iter().filter_map(|run| run.min_rtt_ms);
        let shares = runs.iter().map(|run| (run.failed_share, run.requests.max(run.ok)));
        Self {
            version: texts(|run| &run.version),
            host: texts(|run| &run.host),
            model: texts(|run| &run.model),
            api: texts(|run| &run.api),
            transport: texts(|run| &run.transport),
            workload: texts(|run| &run.workload),
            workload_hash: texts(|run| &run.workload_hash),
            shape: texts(|run| &run.shape),
            calibration: texts(|run| &run.calibration),
            load: texts(|run| &run.load),
            seed: runs.iter().map(|run| run.seed).min().unwrap_or_default(),
            window_s: weighted_mean(runs.iter().map(|run| (run.window_s, 1))).unwrap_or_default(),
            warmup: texts(|run| &run.warmup),
            slo: texts(|run| &run.slo),
            extra_body: texts(|run| &run.extra_body),
            cache: texts(|run| &run.cache),
            requests: runs.iter().fold(0, |sum, run| sum.saturating_add(run.requests)),
            judged: runs.iter().fold(0, |sum, run| sum.saturating_add(run.judged)),
            ok: runs.iter().fold(0, |sum, run| sum.saturating_add(run.ok)),
            failed_share: weighted_mean(shares).unwrap_or_default(),
            output_source: texts(|run| &run.output_source),
            input_mean: means(|run| run.input_mean),
            planned_input_mean: means(|run| run.planned_input_mean),
            output_mean: means(|run| run.output_mean),
            planned_output_mean: means(|run| run.planned_output_mean),
            characters_mean: means(|run| run.characters_mean),
            cached_share: means(|run| run.cached_share),
            count_with: Some(counted).filter(|counted| !counted.is_empty()),
            min_rtt_ms: rtts.min_by(f64::total_cmp),
            ttft_ms: means(|run| run.ttft_ms),
            server: merge_server_settings(runs),
        }
    }
}

/// The settings of a server over several runs; values that differ stand side by side.
fn merge_server_settings(runs: &[&SideFacts]) -> BTreeMap<String, String> {
    let mut all: BTreeMap<&String, BTreeSet<&str>> = BTreeMap::new();
    for (name, value) in runs.iter().flat_map(|run| &run.server) {
        all.entry(name).or_default().extend(value.split(BETWEEN));
    }
    let joined = |values: BTreeSet<&str>| values.into_iter().collect::<Vec<_>>().join(BETWEEN);
    all.into_iter().map(|(name, values)| (name.clone(), joined(values))).collect()
}

/// Of values with their weights; where all weights are zero, each counts as much.
fn weighted_mean(values: impl Iterator<Item = (f64, u64)>) -> Option<f64> {
    let values: Vec<(f64, u64)> = values.collect();
    let weighted = |weight: fn(u64) -> f64| {
        let all: f64 = values.iter().map(|(_, n)| weight(*n)).sum();
        let sum: f64 = values.iter().map(|(value, n)| value * weight(*n)).sum();
        (all > 0.0).then(|| sum / all)
    };
    weighted(|n| n as f64).or_else(|| weighted(|_| 1.0))
}

pub(super) fn percent_text(share: f64) -> String {
    format!("{}%", (share * 1e3).round() / 10.0)
}

/// A part of a load is another load; which of equal parts does not matter.
fn shard_text(run: &RunFacts) -> String {
    let part = run.shard.as_ref().filter(|facts| facts.shard.is_part());
    part.map(|facts| format!(", one of {} shards", facts.shard.count())).unwrap_or_default()
}

fn load_text(mode: &Mode) -> String {
    let cap =
        mode.most_in_flight().map(|cap| format!(", at most {cap} in flight")).unwrap_or_default();
    match mode {
        Mode::Open { rate: Rate::Infinite, .. } => format!("all at once{cap}"),
        Mode::Open { rate, arrivals, .. } => format!("open loop, {rate}, {arrivals}{cap}"),
        Mode::Shaped { shape, arrivals, .. } => format!("open loop, {shape}, {arrivals}{cap}"),
        Mode::Replay { time_scale, keep, .. } => {
            let keep = format!("{keep:?}").to_lowercase();
            format!("replay, time x{time_scale}, {keep}{cap}")
        }
        Mode::Closed { concurrency, think_time, pause_first } => {
            let pause = if think_time.is_zero() {
                String::new()
            } else {
                format!(", {} s between requests", think_time.as_secs_f64())
            };
            let first = if *pause_first { ", first too" } else { "" };
            format!("closed loop, {concurrency} users{pause}{first}")
        }
    }
}

/// What is sent, regardless of tokenizer and file locations.
fn workload_text(plan: &WorkloadPlan) -> String {
    let mut plan = plan.clone();
    plan.name.clear();
    plan.calibration = None;
    plan.tokenizer = None;
    plan.count_with = None;
    plan.save_text = false;
    plan.reset_cache = false;
    for class in &mut plan.classes {
        match &mut class.source {
            SourcePlan::Dataset(data) if data.sha256.is_some() => data.file.clear(),
            SourcePlan::Trace(trace) if trace.sha256.is_some() => trace.file.clear(),
            SourcePlan::Frozen { file, sha256: Some(_) } => file.clear(),
            _ => {}
        }
    }
    text_fingerprint(&format!("{plan:?}"))
}

fn calibration_text(found: &TokenCalibration) -> String {
    let TokenCalibration { source, template_tokens, message_tokens, costs } = found;
    let costs = text_fingerprint(costs);
    format!("{}, template {template_tokens}+{message_tokens}{WORDS}{costs}", source.name())
}

/// FNV-1a: tells texts apart; it is not a cryptographic hash.
pub fn text_fingerprint(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}
