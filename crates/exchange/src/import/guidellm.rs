//! GuideLLM's `benchmarks.json`: several runs in one file.

use goodput_model::{
    LengthRange, Reported, ReportedGoodput, ReportedLoad, ReportedMetric, ReportedMode,
    ReportedRequest, SourceTool,
};

use super::aiperf::sum_conflict;
use super::fields::{FieldError, ImportFields, conflict_text};

const MS: f64 = 1e3;
/// From here on a cap bounds nothing: it is the tool's own limit.
const NO_CAP: u64 = 10_240;

pub(super) fn read_runs(fields: &ImportFields<'_>) -> Result<Vec<Reported>, FieldError> {
    let version = fields.maybe_object("metadata").scalar("guidellm_version");
    let benchmarks = fields.objects("benchmarks")?;
    let spec = fields.maybe_object("config").maybe_object("spec");
    let seed = spec.maybe_object("seed").count("value").unwrap_or_default();
    let each = benchmarks.iter().map(|benchmark| {
        let mut run = read_benchmark(benchmark)?;
        run.version.clone_from(&version);
        run.seed = run.seed.or(seed);
        Ok(run)
    });
    each.collect()
}

fn read_benchmark(benchmark: &ImportFields<'_>) -> Result<Reported, FieldError> {
    let mut run = Reported::new(SourceTool::Guidellm);
    let config = benchmark.maybe_object("config");
    let args = benchmark.maybe_object("args");
    let strategy = if config.has_value("strategy") { &config } else { &args }.object("strategy")?;
    run.load = read_load(&strategy)?;
    run.label = load_label(&run.load, &strategy);
    run.seed = strategy.count("random_seed")?;
    let backend = config.maybe_object("backend");
    run.model = backend.scalar("model");
    run.backend = backend.scalar("request_format").or_else(|| backend.scalar("kind"));
    run.streaming = backend.flag("stream")?;
    run.started = benchmark.scalar("start_time");
    run.duration_s = benchmark.finite("duration")?;
    run.warmup.seconds = benchmark.finite("warmup_duration")?;
    let metrics = benchmark.object("metrics")?;
    let totals = metrics.maybe_object("request_totals");
    run.ok = totals.count("successful")?;
    run.asked = totals.count("total")?;
    let [errored, incomplete] = [totals.count("errored")?, totals.count("incomplete")?];
    run.failed = errored.map(|n| n.saturating_add(incomplete.unwrap_or(0)));
    if let Some(n) = incomplete.filter(|n| *n > 0) {
        run.remarks.push(format!("{n} requests were cut off at the end"));
    }
    run.requests_per_s = successful_part(&metrics, "requests_per_second")?.finite("mean")?;
    run.output_tokens_per_s =
        successful_part(&metrics, "output_tokens_per_second")?.finite("mean")?;
    run.total_tokens_per_s = successful_part(&metrics, "tokens_per_second")?.finite("mean")?;
    let (prompts, outputs) = (
        successful_part(&metrics, "prompt_token_count")?,
        successful_part(&metrics, "output_token_count")?,
    );
    run.input_tokens = prompts.count("total_sum")?;
    run.output_tokens = outputs.count("total_sum")?;
    (run.input_lengths, run.output_lengths) = (read_range(&prompts)?, read_range(&outputs)?);
    run.token_source = match config.flag("prefer_response_metrics")? {
        Some(false) => None,
        _ => Some("usage, else one for each event".to_owned()),
    };
    for (ours, theirs, unit) in [
        ("ttft", "time_to_first_token_ms", 1.0),
        ("tpot", "time_per_output_token_ms", 1.0),
        ("itl", "inter_token_latency_ms", 1.0),
        ("e2e", "request_latency", MS),
        ("e2e_sched", "request_scheduled_latency", MS),
    ] {
        let stated = successful_part(&metrics, theirs)?;
        run.conflicts.extend(sum_conflict(theirs, &stated, "mean", "total_sum")?);
        let metric = read_metric(&stated, unit)?;
        if metric.n.is_none_or(|n| n > 0) && !metric.is_empty() {
            run.metrics.insert(ours.to_owned(), metric);
        }
    }
    // Requests left out at either end were in flight too.
    let cooldown = benchmark.finite("cooldown_duration")?;
    if [run.warmup.seconds, cooldown].into_iter().flatten().all(|seconds| seconds <= 0.0) {
        let under_way = successful_part(&metrics, "request_concurrency")?;
        run.load.mean_concurrency = under_way.finite("mean")?;
        run.load.peak_concurrency = under_way.finite("max")?;
        check_totals(benchmark, &totals, &mut run)?;
    }
    run.goodput = read_goodput(&config, &metrics);
    for warning in benchmark.objects("warnings").unwrap_or_default() {
        run.remarks.extend(warning.scalar("message"));
    }
    run.details = read_details(benchmark, &mut run.conflicts)?;
    Ok(run)
}

/// Duration and requests of a run of which nothing was left out.
fn check_totals(
    benchmark: &ImportFields<'_>,
    totals: &ImportFields<'_>,
    run: &mut Reported,
) -> Result<(), FieldError> {
    // Instants are numbers or texts.
    let instant = |name: &str| benchmark.finite(name).unwrap_or_default();
    let span = instant("start_time").zip(instant("end_time")).map(|(start, end)| end - start);
    run.conflicts.extend(conflict_text(
        "duration",
        run.duration_s,
        "from `start_time` to `end_time` it is",
        span,
    ));
    let made = benchmark.maybe_object("scheduler_metrics").maybe_object("requests_made");
    for name in ["successful", "errored", "incomplete"] {
        run.conflicts.extend(conflict_text(
            &format!("request_totals.{name}"),
            totals.finite(name)?,
            "of those made it is",
            made.finite(name)?,
        ));
    }
    Ok(())
}

/// The part of a distribution that covers completed requests.
fn successful_part<'a>(
    metrics: &ImportFields<'a>,
    name: &str,
) -> Result<ImportFields<'a>, FieldError> {
    metrics.object(name)?.object("successful")
}

fn read_load(strategy: &ImportFields<'_>) -> Result<ReportedLoad, FieldError> {
    let kind = strategy.scalar("type_").or_else(|| strategy.scalar("type")).unwrap_or_default();
    let cap = strategy.count("max_concurrency")?.filter(|cap| *cap < NO_CAP);
    let rate_rps = strategy.number("rate")?.filter(|rate| rate.is_finite());
    let mode = match (kind.as_str(), cap) {
        ("synchronous" | "concurrent", _) | ("throughput", Some(_)) => ReportedMode::Closed,
        ("throughput", None) => ReportedMode::Burst,
        ("constant" | "poisson" | "async" | "replay", None) => ReportedMode::Open,
        ("constant" | "poisson" | "async" | "replay", Some(_)) => ReportedMode::Capped,
        _ => ReportedMode::Unknown,
    };
    let concurrency = match kind.as_str() {
        "synchronous" => Some(1),
        _ => strategy.count("streams")?.or(cap),
    };
    let arrivals = matches!(mode, ReportedMode::Open | ReportedMode::Capped).then_some(kind);
    Ok(ReportedLoad { mode, rate_rps, arrivals, concurrency, ..ReportedLoad::default() })
}

fn load_label(load: &ReportedLoad, strategy: &ImportFields<'_>) -> String {
    let kind = strategy.scalar("type_").or_else(|| strategy.scalar("type")).unwrap_or_default();
    match (load.rate_rps, load.concurrency) {
        (Some(rate), _) => format!("{kind} {rate}/s"),
        (None, Some(streams)) => format!("{kind} {streams}"),
        (None, None) => kind,
    }
}

fn read_metric(fields: &ImportFields<'_>, unit: f64) -> Result<ReportedMetric, FieldError> {
    let stated = |name: &str| Ok(fields.finite(name)?.map(|value| value * unit));
    let named = fields.maybe_object("percentiles");
    let mut percentiles = Vec::new();
    for name in named.names() {
        // `p05` is 5 %, `p999` is 99.9 %, `p001` is 0.1 %.
        let Some(digits) = name.strip_prefix('p') else { continue };
        let percent = match (digits.parse::<f64>(), digits.len()) {
            (Ok(number), 3) => number / 10.0,
            (Ok(number), _) => number,
            (Err(_), _) => continue,
        };
        if let Some(value) = named.finite(name)? {
            percentiles.push((percent, value * unit));
        }
    }
    percentiles.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(ReportedMetric {
        n: fields.count("count")?,
        mean: stated("mean")?,
        std: stated("std_dev")?,
        median: stated("median")?,
        min: stated("min")?,
        max: stated("max")?,
        percentiles,
    })
}

fn read_range(fields: &ImportFields<'_>) -> Result<Option<LengthRange>, FieldError> {
    let range = fields.finite("min")?.zip(fields.finite("max")?);
    Ok(range.map(|(min, max)| LengthRange { min, max }))
}

fn read_goodput(config: &ImportFields<'_>, metrics: &ImportFields<'_>) -> Option<ReportedGoodput> {
    if !config.has_value("slo") {
        return None;
    }
    let slo = config.maybe_object("slo");
    let term = |name: &str| slo.scalar(name).map(|limit| format!("{name}:{limit}"));
    let terms: Vec<_> = slo.names().filter_map(term).collect();
    Some(ReportedGoodput {
        terms: terms.join(" "),
        requests_per_s: metrics.finite("request_goodput").unwrap_or_default(),
        share: metrics.finite("slo_attainment").unwrap_or_default(),
    })
}

/// Every request, where the file holds them all.
fn read_details(
    benchmark: &ImportFields<'_>,
    conflicts: &mut Vec<String>,
) -> Result<Option<Vec<ReportedRequest>>, FieldError> {
    let requests = benchmark.maybe_object("requests");
    let (mut all, mut apart) = (Vec::new(), 0_usize);
    for (status, is_failed) in [("successful", false), ("errored", true), ("incomplete", true)] {
        for request in requests.objects(status)? {
            let start = request.finite("request_start_time")?;
            let end = request.finite("request_end_time").unwrap_or_default();
            let latency = request.finite("request_latency")?.filter(|_| !is_failed);
            // Instants are seconds since 1970, with a microsecond in their last digit.
            let differs = |((start, end), latency): ((f64, f64), f64)| {
                (end - start - latency).abs() > 1e-3 + latency.abs() * 1e-3
            };
            apart += usize::from(start.zip(end).zip(latency).is_some_and(differs));
            all.push(ReportedRequest {
                start_s: start,
                ttft_ms: request.finite("time_to_first_token_ms")?,
                e2e_ms: request.finite("request_latency")?.map(|seconds| seconds * MS),
                gaps_ms: None,
                input_tokens: request.count("prompt_tokens")?,
                output_tokens: request.count("output_tokens")?,
                is_failed,
            });
        }
    }
    if apart > 0 {
        conflicts.push(format!(
            "the latency of {apart} requests does not run from their start to their end"
        ));
    }
    all.sort_by(|a, b| {
        a.start_s.unwrap_or(f64::INFINITY).total_cmp(&b.start_s.unwrap_or(f64::INFINITY))
    });
    Ok((!all.is_empty()).then_some(all))
}
