//! The system under test: what it takes to repeat the run.

#![expect(clippy::unnecessary_wraps, reason = "checks have one signature")]

use goodput_model::{Reported, SourceTool};

use super::Source::{Checklist, CommonMistakes, ReportContents};
use super::words::{self, number_text};
use super::{Check, CheckFinding};

pub(super) const CHECKS: [Check; 21] = [
    Check::new(ReportContents, "model", "model", check_model),
    Check::new(ReportContents, "model_revision", "model revision", check_model_revision),
    Check::new(Checklist, "hardware", "hardware", check_hardware),
    Check::new(ReportContents, "driver", "driver", check_driver),
    Check::new(Checklist, "precision", "precision", check_precision),
    Check::new(ReportContents, "engine", "engine and version", check_engine),
    Check::new(ReportContents, "parallelism", "parallelism", check_parallelism),
    Check::new(ReportContents, "max_lengths", "limits", check_limits),
    Check::new(ReportContents, "batch_limit", "batch limit", check_batch_limit),
    Check::new(Checklist, "batch_size", "batch size", check_batch_size),
    Check::new(ReportContents, "queue_limit", "queue limit", check_queue_limit),
    Check::new(ReportContents, "attention_backend", "attention backend", check_attention_backend),
    Check::new(ReportContents, "scheduling", "scheduling policy", check_scheduling),
    Check::new(ReportContents, "network", "network", check_network),
    Check::new(ReportContents, "storage", "storage", check_storage),
    Check::new(CommonMistakes, "logging", "engine logging", check_logging),
    Check::new(ReportContents, "prefix_caching", "prefix caching", check_prefix_caching),
    Check::new(ReportContents, "engine_flags", "engine settings", check_flags),
    Check::new(CommonMistakes, "per_gpu_throughput", "throughput per GPU", check_per_gpu),
    Check::new(ReportContents, "utilisation", "resource utilization", check_utilization),
    Check::new(ReportContents, "seed", "seed", check_seed),
];

/// Stated, or missing.
fn stated_or_missing(fact: Option<&String>, advice: &str) -> CheckFinding {
    match fact {
        Some(fact) => CheckFinding::ok(fact.clone()),
        None => CheckFinding::missing("not stated", advice),
    }
}

fn check_model(run: &Reported) -> Option<CheckFinding> {
    Some(stated_or_missing(run.model.as_ref(), "state the model"))
}

/// What to do about a fact that is missing: in a run of ours there is a flag for each.
fn missing_fact_advice(run: &Reported, what: &str, flags: &str) -> String {
    match run.tool {
        SourceTool::Goodput => format!("{what}: {flags}"),
        SourceTool::VllmPython | SourceTool::VllmRust => {
            format!(
                "{what}; in vLLM with {}",
                flags.replacen("--meta ", "--metadata ", 1).replace("--meta ", "")
            )
        }
        _ => what.to_owned(),
    }
}

/// Nothing but processors: it has neither driver nor interconnect.
fn has_no_gpu(run: &Reported) -> bool {
    run.setup.gpus == Some(0)
}

/// A setting that files with all settings hold somewhere, though we do not read it there.
fn check_setting(run: &Reported, fact: Option<&String>, advice: &str) -> Option<CheckFinding> {
    let is_inside = run.setup.flags.is_some() && run.tool != SourceTool::Goodput;
    (fact.is_some() || !is_inside).then(|| stated_or_missing(fact, advice))
}

fn check_hardware(run: &Reported) -> Option<CheckFinding> {
    let setup = &run.setup;
    let advice = missing_fact_advice(
        run,
        "state GPU type, count and interconnect",
        "--meta gpu=H200 --meta gpu_count=8 --meta interconnect=NVLink",
    );
    let gpus = setup.gpus.map(|n| format!("{n} GPUs"));
    let said = [setup.hardware.clone(), gpus, setup.interconnect.clone()];
    let said: Vec<_> = said.into_iter().flatten().collect();
    Some(match (&setup.hardware, setup.gpus) {
        (Some(_), Some(0 | 1)) => CheckFinding::ok(said.join(", ")),
        (Some(_), Some(_)) if setup.interconnect.is_some() => CheckFinding::ok(said.join(", ")),
        (None, None) => CheckFinding::missing("neither GPU type nor count is stated", advice),
        _ => CheckFinding::missing(format!("only {} is stated", said.join(", ")), advice),
    })
}

fn check_driver(run: &Reported) -> Option<CheckFinding> {
    let advice =
        missing_fact_advice(run, "state the version of the driver", "--meta driver=570.86");
    (!has_no_gpu(run)).then(|| stated_or_missing(run.setup.driver.as_ref(), &advice))
}

fn check_precision(run: &Reported) -> Option<CheckFinding> {
    let what = "state number format and quantization (FP8 and BF16 differ by a factor of two)";
    let advice = missing_fact_advice(run, what, "--meta dtype=bfloat16 --meta quantization=fp8");
    Some(stated_or_missing(run.setup.precision.as_ref(), &advice))
}

fn check_engine(run: &Reported) -> Option<CheckFinding> {
    let what = "state the engine and its version";
    let advice = missing_fact_advice(run, what, "--meta engine=vllm --meta engine_version=0.30.0");
    Some(stated_or_missing(run.setup.engine.as_ref(), &advice))
}

fn check_parallelism(run: &Reported) -> Option<CheckFinding> {
    let what = "state how the model is distributed over GPUs";
    let flags = "--meta tensor_parallel=8 --meta pipeline_parallel=1";
    // One GPU leaves no choice.
    let is_one = run.setup.gpus.is_some_and(|n| n <= 1) && run.setup.parallelism.is_none();
    if is_one {
        return None;
    }
    check_setting(run, run.setup.parallelism.as_ref(), &missing_fact_advice(run, what, flags))
}

fn check_limits(run: &Reported) -> Option<CheckFinding> {
    let what = "state the longest sequence and the most sequences in a batch";
    let flags = "--meta max_model_len=32768 --meta max_num_seqs=256";
    check_setting(run, run.setup.limits.as_ref(), &missing_fact_advice(run, what, flags))
}

fn check_model_revision(run: &Reported) -> Option<CheckFinding> {
    let what = "state the revision: weights change under one name";
    let advice = missing_fact_advice(run, what, "--meta model_revision=0e9e39f");
    Some(stated_or_missing(run.setup.model_revision.as_ref(), &advice))
}

fn check_batch_limit(run: &Reported) -> Option<CheckFinding> {
    let what = "state the most sequences in a batch: it decides between latency and throughput";
    let advice = missing_fact_advice(run, what, "--meta max_num_seqs=256");
    check_setting(run, run.setup.batch_limit.as_ref(), &advice)
}

/// Of a result that does not state it, from the requests in flight: by Little's law.
fn check_batch_size(run: &Reported) -> Option<CheckFinding> {
    let in_flight = || Some(run.requests_per_s? * words::mean_e2e_s(run)?);
    let batch = run.setup.batch.clone().or_else(|| {
        let requests = run.load.mean_concurrency.or_else(in_flight)?;
        Some(format!("{} requests in flight on average: no more in a batch", number_text(requests)))
    });
    let advice = match run.tool {
        SourceTool::Goodput => "let the run read the server's metrics page (--metrics-url)",
        _ => "state how many requests the server ran at once",
    };
    Some(stated_or_missing(batch.as_ref(), advice))
}

fn check_queue_limit(run: &Reported) -> Option<CheckFinding> {
    let what = "state how many requests may wait: a longer queue hides rejections in the tail";
    let advice = missing_fact_advice(run, what, "--meta max_queue=none");
    check_setting(run, run.setup.queue_limit.as_ref(), &advice)
}

fn check_attention_backend(run: &Reported) -> Option<CheckFinding> {
    let advice = missing_fact_advice(
        run,
        "state what computes attention",
        "--meta attention_backend=FLASHINFER",
    );
    check_setting(run, run.setup.attention_backend.as_ref(), &advice)
}

fn check_scheduling(run: &Reported) -> Option<CheckFinding> {
    let what = "state the order in which requests are served";
    check_setting(
        run,
        run.setup.scheduling.as_ref(),
        &missing_fact_advice(run, what, "--meta scheduling=fcfs"),
    )
}

fn check_network(run: &Reported) -> Option<CheckFinding> {
    let what = "state the network between client and server";
    Some(stated_or_missing(
        run.setup.network.as_ref(),
        &missing_fact_advice(run, what, "--meta network=25GbE"),
    ))
}

fn check_storage(run: &Reported) -> Option<CheckFinding> {
    let what = "state where weights and offloaded caches lie";
    Some(stated_or_missing(
        run.setup.storage.as_ref(),
        &missing_fact_advice(run, what, "--meta storage=NVMe"),
    ))
}

/// Words of a level at which an engine writes lines for each request or each step.
const VERBOSE: [&str; 4] = ["debug", "trace", "verbose", "requests true"];

fn check_logging(run: &Reported) -> Option<CheckFinding> {
    let what = "state how much the engine logs: a line for each request costs processor time";
    let advice = missing_fact_advice(run, what, "--meta log_level=info --meta log_requests=false");
    let Some(stated) = &run.setup.logging else {
        return check_setting(run, None, &advice);
    };
    let small = stated.to_lowercase();
    Some(if VERBOSE.iter().any(|word| small.contains(word)) {
        CheckFinding::doubtful(
            format!("{stated}: the engine spends time on its log"),
            "measure with the log level of production, without a line for each request",
        )
    } else {
        CheckFinding::ok(stated.clone())
    })
}

fn check_prefix_caching(run: &Reported) -> Option<CheckFinding> {
    let what = "state whether the prefix cache is on: it decides what a prompt costs";
    let advice = missing_fact_advice(run, what, "--meta prefix_caching=off");
    check_setting(run, run.setup.prefix_caching.as_ref(), &advice)
}

fn check_flags(run: &Reported) -> Option<CheckFinding> {
    let what = "state the command line of the server; defaults differ between versions";
    let advice = missing_fact_advice(run, what, "--meta engine_flags='…'");
    Some(match &run.setup.flags {
        // A command line may hold a key: it is not repeated.
        Some(_) => CheckFinding::ok("the file holds settings of the server"),
        None => CheckFinding::missing("not stated", advice),
    })
}

fn check_per_gpu(run: &Reported) -> Option<CheckFinding> {
    let rate = run.output_tokens_per_s?;
    if has_no_gpu(run) {
        return None;
    }
    let advice = missing_fact_advice(run, "state throughput per GPU", "--meta gpu_count=8");
    Some(match run.setup.gpus.filter(|n| *n > 0) {
        Some(n) => CheckFinding::ok(format!(
            "{} output tokens/s on {n} GPUs: {} each",
            number_text(rate),
            number_text(rate / n as f64)
        )),
        None => {
            CheckFinding::missing("only the total is stated, and not the number of GPUs", advice)
        }
    })
}

fn check_utilization(run: &Reported) -> Option<CheckFinding> {
    let advice = match run.tool {
        SourceTool::Goodput => {
            "let the run read the server's metrics page (--metrics-url) and its GPUs (--gpu)"
        }
        _ => "watch GPU, memory bandwidth, and KV cache during the run",
    };
    Some(match (&run.setup.utilisation, &run.setup.utilisation_lacks) {
        (Some(stated), Some(lacking)) => {
            CheckFinding::missing(format!("{stated}; not stated: {lacking}"), advice)
        }
        (stated, _) => stated_or_missing(stated.as_ref(), advice),
    })
}

fn check_seed(run: &Reported) -> Option<CheckFinding> {
    Some(match run.seed {
        Some(seed) => CheckFinding::ok(format!("seed {seed}")),
        None => CheckFinding::missing("not stated", "state the seed of prompts and arrivals"),
    })
}
