//! Every check once silent and once speaking, on a result in which all is well.

use std::sync::LazyLock;

use goodput_model::{
    LengthRange, Reported, ReportedGoodput, ReportedLoad, ReportedMetric, ReportedMode,
    ReportedRequest, ReportedSetup, ReportedWarmup, Severity, SourceTool, Verdict,
};

use super::*;

/// Sums of gaps that are the quantiles of an exponential distribution, for turns of 100.
static STARTS: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let gap = |k: u32| -(1.0 - (f64::from(k) + 0.5) / 100.0).ln() / 20.0;
    (0..=100).map(|n| (0..n).map(gap).sum()).collect()
});

/// Uneven but fixed: request `i` waits 50 to 59 ms and gets 10 to 14 tokens, 10 ms apart.
fn request(i: u64) -> ReportedRequest {
    // No two are alike to the last digit.
    let (ttft, tokens) = (50.0 + (i % 10) as f64 + i as f64 * 1e-7, 10 + i % 5);
    let start_s = (i / 100) as f64 * STARTS[100] + STARTS[i as usize % 100];
    let gaps = vec![10.0; tokens as usize - 1];
    ReportedRequest {
        start_s: Some(start_s),
        ttft_ms: Some(ttft),
        e2e_ms: Some(ttft + 10.0 * gaps.len() as f64),
        gaps_ms: Some(gaps),
        input_tokens: Some(100 + i % 7),
        output_tokens: Some(tokens),
        is_failed: false,
    }
}

fn stated(mut samples: Vec<f64>) -> ReportedMetric {
    samples.sort_by(f64::total_cmp);
    let at = |q: f64| samples[((samples.len() as f64 * q).ceil() as usize).max(1) - 1];
    let mean = samples.iter().sum::<f64>() / samples.len() as f64;
    let square = |x: &f64| (x - mean) * (x - mean);
    ReportedMetric {
        n: Some(samples.len() as u64),
        mean: Some(mean),
        std: Some((samples.iter().map(square).sum::<f64>() / samples.len() as f64).sqrt()),
        median: None,
        min: samples.first().copied(),
        max: samples.last().copied(),
        percentiles: vec![(50.0, at(0.5)), (99.0, at(0.99)), (99.9, at(0.999))],
    }
}

/// 100,000 requests at 20/s: nothing is missing and nothing is doubtful but what is so of every
/// result of this tool.
fn clean() -> Reported {
    static CLEAN: LazyLock<Reported> =
        LazyLock::new(|| Reported { details: None, ..result(100_000) });
    CLEAN.clone()
}

/// A file that holds its requests; too few for p99.9, which is left out.
fn detailed() -> Reported {
    let mut run = result(1_400);
    run.metrics.values_mut().for_each(|metric| metric.percentiles.truncate(2));
    run
}

fn result(n: u64) -> Reported {
    let requests: Vec<_> = (0..n).map(request).collect();
    let all = |value: fn(&ReportedRequest) -> f64| requests.iter().map(value).collect::<Vec<_>>();
    let mut run = Reported::new(SourceTool::VllmPython);
    run.metrics = [
        ("ttft", stated(all(|r| r.ttft_ms.unwrap()))),
        ("e2e", stated(all(|r| r.e2e_ms.unwrap()))),
        ("tpot", stated(vec![10.0; n as usize])),
        ("itl", stated(requests.iter().flat_map(|r| r.gaps_ms.clone().unwrap()).collect())),
    ]
    .map(|(name, metric)| (name.to_owned(), metric))
    .into();
    let duration = n as f64 / 20.0;
    run.model = Some("m".to_owned());
    run.backend = Some("openai".to_owned());
    run.duration_s = Some(duration);
    run.siblings = 3;
    run.load = ReportedLoad {
        mode: ReportedMode::Open,
        rate_rps: Some(20.0),
        arrivals: Some("poisson".to_owned()),
        burstiness: Some(1.0),
        ..ReportedLoad::default()
    };
    run.warmup = ReportedWarmup { requests: Some(50), seconds: None };
    (run.asked, run.ok, run.failed) = (Some(n), Some(n), Some(0));
    let sum =
        |value: fn(&ReportedRequest) -> Option<u64>| requests.iter().filter_map(value).sum::<u64>();
    let (input, output) = (sum(|r| r.input_tokens), sum(|r| r.output_tokens));
    (run.input_tokens, run.output_tokens) = (Some(input), Some(output));
    run.requests_per_s = Some(20.0);
    run.output_tokens_per_s = Some(output as f64 / duration);
    run.total_tokens_per_s = Some((input + output) as f64 / duration);
    run.token_source = Some("usage".to_owned());
    run.input_lengths = Some(LengthRange { min: 100.0, max: 106.0 });
    run.output_lengths = Some(LengthRange { min: 10.0, max: 14.0 });
    (run.seed, run.streaming, run.repeats) = (Some(1), Some(true), Some(5));
    let terms = "ttft:200".to_owned();
    run.goodput = Some(ReportedGoodput { terms, requests_per_s: Some(19.0), share: Some(0.95) });
    let fact = |text: &str| Some(text.to_owned());
    run.setup = ReportedSetup {
        hardware: fact("H200"),
        gpus: Some(8),
        interconnect: fact("NVLink"),
        precision: fact("fp8"),
        engine: fact("vllm 0.30"),
        flags: fact("--tensor-parallel-size 8"),
        utilisation: fact("GPU 90 %"),
        driver: fact("570.1"),
        parallelism: fact("TP 8"),
        limits: fact("max_model_len 4096"),
        prefix_caching: fact("off"),
        utilisation_lacks: None,
        model_revision: fact("0e9e39f"),
        batch_limit: fact("sequences 256"),
        queue_limit: fact("none"),
        batch: fact("3.3 on average"),
        attention_backend: fact("flashinfer"),
        scheduling: fact("fcfs"),
        network: fact("25GbE"),
        storage: fact("NVMe"),
        logging: fact("level info"),
    };
    run.details = Some(requests);
    run
}

fn of<'a>(audit: &'a Audit, check: &str) -> Option<&'a Item> {
    audit.items.iter().find(|item| item.check == check)
}

/// A check, what is done to the clean result, and what then is said.
type Case = (&'static str, fn(&mut Reported), Status, Severity);

fn metric<'a>(run: &'a mut Reported, name: &str) -> &'a mut ReportedMetric {
    run.metrics.get_mut(name).unwrap()
}

fn first(run: &mut Reported) -> &mut ReportedRequest {
    &mut run.details.as_mut().unwrap()[0]
}

fn each(run: &mut Reported, change: impl Fn(usize, &mut ReportedRequest)) {
    let requests = run.details.as_mut().unwrap().iter_mut();
    requests.enumerate().for_each(|(place, request)| change(place, request));
}

/// These requests wait ten times as long.
fn slow(run: &mut Reported, which: impl Fn(usize) -> bool) {
    each(run, |place, request| {
        let times = if which(place) { 10.0 } else { 1.0 };
        request.ttft_ms = request.ttft_ms.map(|ttft| times * ttft);
    });
}

fn cut(metric: &mut ReportedMetric) {
    metric.percentiles = vec![(50.0, 150.0), (95.0, 190.0), (99.0, 190.0)];
    metric.max = Some(190.0);
}

fn same(metric: &mut ReportedMetric) {
    (metric.mean, metric.std) = (Some(50.0), Some(0.0));
    metric.percentiles.iter_mut().for_each(|(_, value)| *value = 50.0);
}

fn closed(run: &mut Reported, users: u64) {
    run.load.mode = ReportedMode::Closed;
    run.load.concurrency = Some(users);
}

use Severity::{Info, Void, Warn};
use Status::{Doubtful, Missing, Wrong};

const LOAD: [Case; 22] = [
    ("warmup", |r| r.warmup.requests = None, Missing, Info),
    ("warmup", |r| r.warmup.requests = Some(0), Doubtful, Warn),
    ("warmup", |r| r.warmup.requests = Some(49), Doubtful, Warn),
    ("open_loop", |r| closed(r, 4), Doubtful, Warn),
    ("open_loop", |r| r.load.mode = ReportedMode::Burst, Doubtful, Warn),
    ("open_loop", |r| r.load.mode = ReportedMode::Capped, Doubtful, Warn),
    ("open_loop", |r| r.load.mode = ReportedMode::Unknown, Missing, Info),
    ("arrivals", |r| r.load.arrivals = None, Missing, Info),
    ("arrivals", |r| r.load.arrivals = Some("constant".to_owned()), Doubtful, Info),
    ("arrivals", |r| r.tool = SourceTool::Guidellm, Doubtful, Warn),
    ("delivered_rate", |r| r.load.rate_rps = Some(40.0), Doubtful, Warn),
    ("delivered_rate", |r| r.load.rate_rps = Some(10.0), Doubtful, Warn),
    ("sweep", |r| r.siblings = 0, Missing, Info),
    ("drain", |r| closed(r, 10_000), Doubtful, Warn),
    ("drain", |r| r.load.mode = ReportedMode::Burst, Doubtful, Warn),
    ("drain", |r| r.duration_s = Some(0.5), Doubtful, Warn),
    ("latency_origin", |r| r.load.mode = ReportedMode::Capped, Doubtful, Warn),
    ("latency_origin", |_| {}, Doubtful, Info),
    ("failures", |r| r.failed = None, Status::Ok, Info),
    ("failures", |r| (r.failed, r.asked) = (None, None), Missing, Info),
    ("failures", |r| r.failed = Some(5000), Doubtful, Warn),
    ("failures", |r| (r.ok, r.failed) = (Some(0), Some(5)), Wrong, Void),
];

const SAMPLE: [Case; 24] = [
    ("tail_percentiles", |r| metric(r, "ttft").percentiles.truncate(2), Missing, Info),
    ("tail_percentiles", |r| drop(r.metrics.remove("e2e")), Missing, Info),
    ("p99_samples", |r| r.ok = Some(999), Doubtful, Warn),
    ("p999_samples", |r| r.ok = Some(99_999), Doubtful, Warn),
    ("request_count", |r| (r.asked, r.ok) = (None, None), Missing, Info),
    ("request_count", |r| (r.asked, r.ok) = (Some(0), Some(0)), Wrong, Void),
    ("duration", |r| r.duration_s = Some(59.9), Doubtful, Warn),
    ("duration", |r| (r.duration_s, r.ok) = (None, None), Missing, Info),
    ("duration_vs_latency", |r| r.duration_s = Some(0.5), Doubtful, Warn),
    ("both_phases", |r| drop(r.metrics.remove("ttft")), Missing, Info),
    ("latency_bound", |r| r.goodput = None, Missing, Info),
    ("latency_bound", |r| r.metrics.clear(), Doubtful, Warn),
    ("latency_bound", |r| r.goodput.as_mut().unwrap().terms.clear(), Doubtful, Info),
    ("latency_bound", |r| r.requests_per_s = Some(5.0), Wrong, Void),
    ("prompt_lengths", |r| r.input_lengths.as_mut().unwrap().min = 106.0, Doubtful, Warn),
    ("prompt_lengths", |r| r.input_lengths = None, Missing, Info),
    ("output_lengths", |r| r.output_lengths.as_mut().unwrap().max = 10.0, Doubtful, Info),
    ("output_lengths", |r| r.output_lengths = None, Missing, Info),
    ("repeats", |r| r.repeats = None, Missing, Info),
    ("model", |r| r.model = None, Missing, Info),
    ("hardware", |r| r.setup.interconnect = None, Missing, Info),
    ("hardware", |r| r.setup = ReportedSetup::default(), Missing, Info),
    ("precision", |r| r.setup.precision = None, Missing, Info),
    ("engine", |r| r.setup.engine = None, Missing, Info),
];

const SETUP: [Case; 12] = [
    ("model_revision", |r| r.setup.model_revision = None, Missing, Info),
    ("batch_limit", |r| (r.setup.batch_limit, r.setup.flags) = (None, None), Missing, Info),
    ("batch_size", |r| r.setup.batch = None, Status::Ok, Info),
    ("batch_size", |r| (r.setup.batch, r.requests_per_s) = (None, None), Missing, Info),
    ("queue_limit", |r| (r.setup.queue_limit, r.setup.flags) = (None, None), Missing, Info),
    (
        "attention_backend",
        |r| (r.setup.attention_backend, r.setup.flags) = (None, None),
        Missing,
        Info,
    ),
    ("scheduling", |r| (r.setup.scheduling, r.setup.flags) = (None, None), Missing, Info),
    ("network", |r| r.setup.network = None, Missing, Info),
    ("storage", |r| r.setup.storage = None, Missing, Info),
    ("logging", |r| (r.setup.logging, r.setup.flags) = (None, None), Missing, Info),
    ("logging", |r| r.setup.logging = Some("level DEBUG".to_owned()), Doubtful, Warn),
    ("utilisation", |r| r.setup.utilisation_lacks = Some("KV cache".to_owned()), Missing, Info),
];

const TOOL: [Case; 25] = [
    ("engine_flags", |r| r.setup.flags = None, Missing, Info),
    ("driver", |r| r.setup.driver = None, Missing, Info),
    ("parallelism", |r| (r.setup.parallelism, r.setup.flags) = (None, None), Missing, Info),
    ("max_lengths", |r| (r.setup.limits, r.setup.flags) = (None, None), Missing, Info),
    ("prefix_caching", |r| (r.setup.prefix_caching, r.setup.flags) = (None, None), Missing, Info),
    ("hardware", |r| (r.setup.hardware, r.setup.gpus) = (None, Some(0)), Missing, Info),
    ("hardware", |r| (r.setup.interconnect, r.setup.gpus) = (None, Some(0)), Status::Ok, Info),
    ("per_gpu_throughput", |r| r.setup.gpus = None, Missing, Info),
    ("utilisation", |r| r.setup.utilisation = None, Missing, Info),
    ("seed", |r| r.seed = None, Missing, Info),
    ("first_token", |r| r.backend = Some("openai-chat".to_owned()), Doubtful, Info),
    (
        "first_token",
        |r| {
            r.backend = Some("openai-chat".to_owned());
            metric(r, "itl").mean = Some(9.0);
        },
        Doubtful,
        Warn,
    ),
    ("connection_setup", |r| r.tool = SourceTool::Sglang, Doubtful, Info),
    ("tpot_definition", |r| r.tool = SourceTool::Guidellm, Doubtful, Info),
    ("tpot_definition", |r| r.tool = SourceTool::Aiperf, Doubtful, Info),
    ("token_counts", |r| r.recounted_tokens = Some(600_000), Doubtful, Warn),
    ("token_counts", |r| r.token_source = None, Missing, Info),
    (
        "token_counts",
        |r| r.token_source = Some("usage, else one for each chunk".to_owned()),
        Doubtful,
        Info,
    ),
    ("streaming", |r| r.streaming = Some(false), Doubtful, Warn),
    ("streaming", |r| r.streaming = None, Missing, Info),
    ("retries", |r| r.tool = SourceTool::VllmRust, Doubtful, Info),
    ("client_health", |_| {}, Missing, Info),
    ("own_remarks", |r| r.remarks.push("late".to_owned()), Doubtful, Warn),
    ("tokenizer_time", |_| {}, Status::Ok, Info),
    ("not_finite", |r| r.not_finite = 2, Doubtful, Warn),
];

const ARITHMETIC: [Case; 40] = [
    ("percentile_order", |r| metric(r, "ttft").percentiles[0].1 = 80.0, Wrong, Void),
    ("percentile_order", |r| metric(r, "ttft").max = Some(51.0), Wrong, Void),
    ("percentile_order", |r| metric(r, "ttft").median = Some(52.0), Wrong, Void),
    ("mean_in_range", |r| metric(r, "e2e").mean = Some(1e6), Wrong, Void),
    ("mean_in_range", |r| metric(r, "e2e").mean = Some(1.0), Wrong, Void),
    ("mean_in_range", |r| metric(r, "e2e").std = Some(-1.0), Wrong, Void),
    ("mean_in_range", |r| metric(r, "ttft").mean = Some(58.9), Wrong, Void),
    ("latency_sign", |r| metric(r, "ttft").min = Some(-1.0), Wrong, Void),
    ("latency_sign", |r| metric(r, "ttft").min = Some(0.0), Wrong, Void),
    ("latency_sign", |r| r.duration_s = Some(0.0), Wrong, Void),
    ("ttft_below_e2e", |r| metric(r, "ttft").mean = Some(500.0), Wrong, Void),
    ("ttft_below_e2e", |r| metric(r, "ttft").percentiles[1].1 = 500.0, Wrong, Void),
    ("phases_add_up", |r| metric(r, "tpot").mean = Some(1.0), Wrong, Void),
    ("littles_law", |r| r.load.concurrency = Some(1), Wrong, Void),
    ("request_sum", |r| r.ok = Some(99_000), Doubtful, Warn),
    ("request_sum", |r| r.failed = Some(3), Wrong, Void),
    ("request_rate", |r| r.requests_per_s = Some(20.2), Wrong, Void),
    ("token_rate", |r| r.output_tokens_per_s = Some(1000.0), Wrong, Void),
    ("token_rate", |r| r.total_tokens_per_s = Some(1.0), Wrong, Void),
    ("littles_law", |r| closed(r, 1), Wrong, Void),
    ("littles_law", |r| closed(r, 50), Doubtful, Warn),
    // 3.3 are in flight on average.
    ("littles_law", |r| r.load.peak_concurrency = Some(3.0), Wrong, Void),
    ("littles_law", |r| r.load.peak_concurrency = Some(100_001.0), Wrong, Void),
    ("littles_law", |r| r.load.mean_concurrency = Some(4.0), Wrong, Void),
    // Eleven tokens after the first take 110 ms.
    ("phases_add_up", |r| metric(r, "tpot").mean = Some(4.0), Wrong, Void),
    ("phases_add_up", |r| r.output_tokens = Some(1_380_000), Wrong, Void),
    ("coalesced_chunks", |r| metric(r, "itl").mean = Some(30.0), Doubtful, Warn),
    ("phases_add_up", |r| metric(r, "itl").mean = Some(3.3), Doubtful, Warn),
    (
        "phases_add_up",
        |r| {
            r.metrics.remove("e2e");
            metric(r, "tpot").mean = Some(30.0);
        },
        Doubtful,
        Warn,
    ),
    (
        "phases_add_up",
        |r| {
            metric(r, "tpot").std = Some(5.0);
            r.output_tokens = Some(1_380_000);
        },
        Wrong,
        Void,
    ),
    (
        "mean_in_range",
        |r| (metric(r, "ttft").max, metric(r, "ttft").mean) = (None, Some(88.5)),
        Wrong,
        Void,
    ),
    (
        "mean_in_range",
        |r| {
            let ttft = metric(r, "ttft");
            (ttft.max, ttft.std, ttft.mean) = (None, None, Some(88.5));
        },
        Doubtful,
        Warn,
    ),
    ("within_duration", |r| metric(r, "e2e").max = Some(5.1e6), Wrong, Void),
    // The mean is 54.5 and half of them are 54 or more.
    ("mean_in_range", |r| metric(r, "ttft").percentiles[0].1 = 58.0, Wrong, Void),
    ("mean_in_range", |r| metric(r, "ttft").std = Some(9.0), Wrong, Void),
    ("stated_twice", |r| r.conflicts.push("`a` is 1, `b` 2".to_owned()), Wrong, Void),
    ("clipped_tail", |r| cut(metric(r, "e2e")), Doubtful, Warn),
    ("identical_latencies", |r| same(metric(r, "ttft")), Wrong, Void),
    ("sample_counts", |r| metric(r, "ttft").n = Some(75_000), Doubtful, Warn),
    ("sample_counts", |r| metric(r, "e2e").n = Some(100_001), Wrong, Void),
];

/// Of files that hold their requests.
const DETAILED: [Case; 28] = [
    (
        "first_token",
        |r| {
            r.backend = Some("openai-chat".to_owned());
            let gaps = r.details.iter_mut().flatten().filter_map(|r| r.gaps_ms.as_mut());
            gaps.for_each(|gaps| gaps[0] = 0.01);
        },
        Doubtful,
        Warn,
    ),
    (
        "first_token",
        |r| {
            r.backend = Some("openai-chat".to_owned());
            let gaps = r.details.iter_mut().flatten().filter_map(|r| r.gaps_ms.as_mut());
            gaps.for_each(|gaps| gaps[0] = 50.0);
        },
        Doubtful,
        Warn,
    ),
    (
        "arrival_gaps",
        |r| {
            let each = r.details.as_mut().unwrap().iter_mut().enumerate();
            each.for_each(|(i, r)| r.start_s = Some(i as f64 * 0.05));
        },
        Doubtful,
        Warn,
    ),
    ("within_duration", |r| r.duration_s = Some(35.0), Wrong, Void),
    (
        "clipped_tail",
        |r| each(r, |i, request| request.e2e_ms = Some(1800.0_f64.min(500.0 + i as f64))),
        Doubtful,
        Warn,
    ),
    ("littles_law", |r| r.load.peak_concurrency = Some(90.0), Wrong, Void),
    ("recomputed_statistics", |r| metric(r, "ttft").std = Some(2.0), Wrong, Void),
    (
        "open_loop",
        // Each waits for the one before it.
        |r| {
            let mut now = 0.0;
            for request in r.details.iter_mut().flatten() {
                request.start_s = Some(now);
                now += request.e2e_ms.unwrap() / 1e3;
            }
        },
        Doubtful,
        Warn,
    ),
    ("within_duration", |r| r.duration_s = Some(140.0), Doubtful, Warn),
    (
        "copied_requests",
        |r| {
            let requests = r.details.as_mut().unwrap();
            for place in 700..720 {
                let start_s = requests[place].start_s;
                requests[place] = ReportedRequest { start_s, ..requests[place - 700].clone() };
            }
        },
        Wrong,
        Void,
    ),
    ("empty_answers", |r| first(r).output_tokens = Some(0), Wrong, Void),
    ("empty_answers", |r| first(r).ttft_ms = Some(0.0), Wrong, Void),
    ("one_token_answers", |r| first(r).output_tokens = Some(1), Doubtful, Info),
    ("tail_interval", |r| slow(r, |i| (700..721).contains(&i)), Doubtful, Info),
    ("cold_requests", |r| slow(r, |i| i < 100), Doubtful, Warn),
    (
        "latency_trend",
        |r| each(r, |i, request| request.ttft_ms = Some(50.0 + i as f64)),
        Doubtful,
        Warn,
    ),
    ("two_groups", |r| slow(r, |i| i % 5 == 0), Doubtful, Info),
    (
        "coalesced_chunks",
        |r| r.details.iter_mut().flatten().for_each(|r| r.gaps_ms = Some(vec![10.0; 4])),
        Doubtful,
        Warn,
    ),
    ("recomputed_statistics", |r| metric(r, "ttft").mean = Some(54.6), Wrong, Void),
    ("recomputed_statistics", |r| metric(r, "e2e").percentiles[1].1 += 1.0, Wrong, Void),
    ("recomputed_statistics", |r| metric(r, "itl").percentiles[0].1 = 9.0, Wrong, Void),
    ("recomputed_totals", |r| r.output_tokens = Some(1), Wrong, Void),
    ("recomputed_totals", |r| r.input_tokens = Some(140_000), Wrong, Void),
    ("recomputed_totals", |r| first(r).is_failed = true, Wrong, Void),
    ("request_latencies", |r| first(r).ttft_ms = Some(1000.0), Wrong, Void),
    ("request_latencies", |r| first(r).e2e_ms = Some(-1.0), Wrong, Void),
    ("request_latencies", |r| first(r).gaps_ms = Some(vec![900.0]), Wrong, Void),
    (
        "identical_latencies",
        |r| r.details.iter_mut().flatten().for_each(|r| r.ttft_ms = Some(50.0)),
        Wrong,
        Void,
    ),
];

#[test]
fn a_clean_result_has_nothing_against_it() {
    let audit = audit_reported(&clean());
    let bad: Vec<_> = audit.items.iter().filter(|item| item.severity > Info).collect();
    assert!(bad.is_empty(), "{bad:#?}");
    assert_eq!(audit.verdict, Verdict::Valid);
    let missing: Vec<_> = audit.items.iter().filter(|i| i.status == Missing).collect();
    assert_eq!(missing.len(), 1, "{missing:#?}");
    assert_eq!(missing[0].check, "client_health");
    assert_eq!(audit.with_missing_doubtful().verdict, Verdict::Suspect);
    let audit = audit_reported(&detailed());
    let bad: Vec<_> = audit.items.iter().filter(|item| item.severity > Info).collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

fn each_speaks(clean: &Reported, cases: &[Case]) {
    let quiet = audit_reported(clean);
    for (check, change, status, severity) in cases {
        let mut run = clean.clone();
        change(&mut run);
        let audit = audit_reported(&run);
        let item = of(&audit, check).unwrap_or_else(|| panic!("{check} says nothing"));
        assert_eq!((item.status, item.severity), (*status, *severity), "{item:#?}");
        assert!(!item.evidence.is_empty(), "{check}");
        assert_eq!(item.advice.is_empty(), item.status == Status::Ok, "{item:#?}");
        // Silent, or at least milder, before the change.
        let before = of(&quiet, check).map_or(Info, |item| item.severity);
        assert!(before == Info, "{check} speaks of a clean result");
    }
}

#[test]
fn every_check_speaks_when_it_should() {
    let cases = [&LOAD[..], &SAMPLE, &SETUP, &TOOL, &ARITHMETIC].concat();
    each_speaks(&clean(), &cases);
    each_speaks(&detailed(), &DETAILED);
    for check in all_checks() {
        let mut all = cases.iter().chain(&DETAILED);
        assert!(all.any(|case| case.0 == check.code), "{} has no case", check.code);
    }
}

#[test]
fn codes_are_unique_and_documented() {
    let document = include_str!("../../../../docs/audit.md");
    let mut codes: Vec<_> = all_checks().iter().map(|check| check.code).collect();
    for code in &codes {
        assert!(document.contains(&format!("| `{code}` |")), "docs/audit.md lacks {code}");
    }
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), all_checks().len());
}

#[test]
fn a_rate_within_chance_is_no_fault() {
    let mut run = clean();
    run.tool = SourceTool::Aiperf;
    (run.asked, run.ok) = (Some(100), Some(100));
    run.duration_s = Some(100.0 / 24.5);
    let rate = |run: &Reported| of(&audit_reported(run), "delivered_rate").unwrap().severity;
    assert_eq!(
        rate(&run),
        Info,
        "100 arrivals at 25.5/s for 20/s are within three standard deviations"
    );
    run.tool = SourceTool::VllmPython;
    assert_eq!(rate(&run), Warn, "vLLM leaves the count to no chance");
    (run.tool, run.duration_s) = (SourceTool::Aiperf, Some(100.0 / 28.0));
    assert_eq!(rate(&run), Warn);
}

#[test]
fn requests_of_the_warm_up_do_not_lower_the_rate() {
    let mut run = detailed();
    run.tool = SourceTool::Guidellm;
    // Half of the requests in the file are in the figures.
    (run.asked, run.ok, run.duration_s) = (Some(700), Some(700), Some(35.0));
    let audit = audit_reported(&run);
    for check in ["delivered_rate", "recomputed_totals"] {
        assert_eq!(of(&audit, check).unwrap().status, Status::Ok, "{check}");
    }
    assert!(of(&audit, "recomputed_statistics").is_none());
}

#[test]
fn every_check_speaks_once() {
    let audit = audit_reported(&detailed());
    let mut codes: Vec<_> = audit.items.iter().map(|item| &item.check).collect();
    codes.sort_unstable();
    let all = codes.len();
    codes.dedup();
    assert_eq!(codes.len(), all);
}

#[test]
fn goodput_by_due_instants_may_exceed_completions() {
    let mut run = clean();
    run.goodput.as_mut().unwrap().requests_per_s = Some(21.0);
    assert_eq!(of(&audit_reported(&run), "latency_bound").unwrap().status, Wrong);
    run.tool = SourceTool::Goodput;
    assert_eq!(of(&audit_reported(&run), "latency_bound").unwrap().status, Status::Ok);
}

#[test]
fn percentiles_are_numpys_or_nearest_rank() {
    // numpy.percentile([1, 2, 3, 4], 50) is 2.5; the nearest rank is 2, and 3 is next to it.
    let run = |p50: f64| {
        let mut run = Reported::new(SourceTool::Sglang);
        let request = |ttft: f64| ReportedRequest { ttft_ms: Some(ttft), ..Default::default() };
        run.details = Some([4.0, 2.0, 1.0, 3.0].map(request).to_vec());
        let percentiles = vec![(50.0, p50)];
        run.metrics.insert("ttft".to_owned(), ReportedMetric { percentiles, ..Default::default() });
        of(&audit_reported(&run), "recomputed_statistics").unwrap().status
    };
    assert_eq!([run(2.5), run(2.0), run(3.0)], [Status::Ok; 3]);
    assert_eq!([run(2.4), run(1.0), run(4.0)], [Wrong; 3]);
}

#[test]
fn nothing_known_is_no_panic_and_huge_numbers_neither() {
    for tool in [
        SourceTool::Goodput,
        SourceTool::VllmPython,
        SourceTool::VllmRust,
        SourceTool::Sglang,
        SourceTool::Aiperf,
        SourceTool::GenaiPerf,
        SourceTool::Guidellm,
    ] {
        let mut run = Reported::new(tool);
        audit_reported(&run);
        (run.asked, run.ok, run.failed) = (Some(u64::MAX), Some(u64::MAX), Some(u64::MAX));
        (run.input_tokens, run.output_tokens) = (Some(u64::MAX), Some(u64::MAX));
        (run.duration_s, run.requests_per_s) = (Some(f64::MIN_POSITIVE), Some(f64::MAX));
        run.load.concurrency = Some(u64::MAX);
        let huge =
            ReportedMetric { mean: Some(f64::MAX), std: Some(f64::MAX), ..Default::default() };
        run.metrics.insert("e2e".to_owned(), huge);
        run.details =
            Some(vec![ReportedRequest { output_tokens: Some(u64::MAX), ..Default::default() }; 3]);
        for mode in [ReportedMode::Closed, ReportedMode::Open, ReportedMode::Burst] {
            run.load.mode = mode;
            audit_reported(&run);
        }
    }
}
