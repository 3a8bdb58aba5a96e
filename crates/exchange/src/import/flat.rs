//! What vLLM's and SGLang's files have in common: every figure a field of its own, named
//! `STATISTIC_METRIC_ms`, and lists of equal length with one place for each request.

use goodput_model::{
    LengthRange, Reported, ReportedLoad, ReportedMetric, ReportedMode, ReportedRequest,
};

use super::fields::{FieldError, ImportFields};
use super::repair::ListedNumber;

const MS: f64 = 1e3;

/// A distribution by the tool's name for it.
pub(super) fn read_metric(
    fields: &ImportFields<'_>,
    name: &str,
) -> Result<ReportedMetric, FieldError> {
    let stated = |statistic: &str| fields.finite(&format!("{statistic}_{name}_ms"));
    let mut percentiles = Vec::new();
    for field in fields.names() {
        let Some(rest) = field.strip_prefix('p') else { continue };
        let Some(percent) = rest.strip_suffix("_ms").and_then(|r| r.strip_suffix(name)) else {
            continue;
        };
        let percent = percent.strip_suffix('_').and_then(|percent| percent.parse::<f64>().ok());
        if let Some(percent) = percent.filter(|percent| (0.0..=100.0).contains(percent))
            && let Some(value) = fields.finite(field)?
        {
            percentiles.push((percent, value));
        }
    }
    percentiles.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(ReportedMetric {
        n: None,
        mean: stated("mean")?,
        std: stated("std")?,
        median: stated("median")?,
        min: stated("min")?,
        max: stated("max")?,
        percentiles,
    })
}

/// The figures that both have.
pub(super) fn read_totals(fields: &ImportFields<'_>, run: &mut Reported) -> Result<(), FieldError> {
    run.backend = fields.text("backend")?;
    run.duration_s = fields.finite("duration")?;
    run.ok = fields.count("completed")?;
    run.input_tokens = fields.count("total_input_tokens")?;
    run.output_tokens = fields.count("total_output_tokens")?;
    run.requests_per_s = fields.finite("request_throughput")?;
    run.output_tokens_per_s = fields.finite("output_throughput")?;
    run.load.peak_concurrency = fields.finite("max_concurrent_requests")?;
    Ok(())
}

/// The load by rate, cap and shape of the gaps.
pub(super) fn read_load(fields: &ImportFields<'_>) -> Result<ReportedLoad, FieldError> {
    let is_trace = fields.scalar("request_rate").as_deref() == Some("trace");
    let rate = if is_trace { None } else { fields.number("request_rate")? };
    let concurrency = fields.count("max_concurrency")?;
    let mode = match (rate, concurrency) {
        (None, None) if is_trace => ReportedMode::Open,
        (None, Some(_)) if is_trace => ReportedMode::Capped,
        (None, _) => ReportedMode::Unknown,
        (Some(rate), Some(_)) if rate.is_infinite() => ReportedMode::Closed,
        (Some(rate), None) if rate.is_infinite() => ReportedMode::Burst,
        (Some(_), Some(_)) => ReportedMode::Capped,
        (Some(_), None) => ReportedMode::Open,
    };
    let burstiness = fields.number("burstiness")?;
    let is_open = matches!(mode, ReportedMode::Open | ReportedMode::Capped);
    let arrivals = is_open.then(|| match burstiness {
        _ if is_trace => "trace".to_owned(),
        None | Some(1.0) => "poisson".to_owned(),
        Some(shape) if shape.is_infinite() => "constant".to_owned(),
        Some(shape) => format!("gamma with shape {shape}"),
    });
    let rate_rps = rate.filter(|rate| rate.is_finite());
    let burstiness = burstiness.filter(|shape| shape.is_finite());
    Ok(ReportedLoad {
        mode,
        rate_rps,
        arrivals,
        burstiness,
        concurrency,
        peak_concurrency: None,
        mean_concurrency: None,
    })
}

/// Every request, where the lists are there.
pub(super) fn read_details(
    fields: &ImportFields<'_>,
    conflicts: &mut Vec<String>,
) -> Result<Option<Vec<ReportedRequest>>, FieldError> {
    let numbers = |name| fields.value::<Vec<ListedNumber>>(name, "a list of numbers");
    let lengths = |name| fields.value::<Vec<Option<u64>>>(name, "a list of whole numbers");
    let (ttfts, latencies) = (numbers("ttfts")?, numbers("latencies")?);
    let starts = numbers("start_times")?;
    let gaps =
        fields.value::<Vec<Option<Vec<ListedNumber>>>>("itls", "a list of lists of numbers")?;
    let (inputs, outputs) = (lengths("input_lens")?, lengths("output_lens")?);
    let errors = fields.value::<Vec<Option<String>>>("errors", "a list of texts")?;
    let Some(n) = ttfts.as_ref().map(Vec::len) else { return Ok(None) };
    let lists = [
        ("latencies", latencies.as_ref().map(Vec::len)),
        ("start_times", starts.as_ref().map(Vec::len)),
        ("itls", gaps.as_ref().map(Vec::len)),
        ("input_lens", inputs.as_ref().map(Vec::len)),
        ("output_lens", outputs.as_ref().map(Vec::len)),
        ("errors", errors.as_ref().map(Vec::len)),
    ];
    let unlike = lists.into_iter().filter_map(|(name, len)| Some((name, len.filter(|l| *l != n)?)));
    conflicts.extend(
        unlike.map(|(name, length)| {
            format!("`ttfts` is a list of {n} requests, `{name}` of {length}")
        }),
    );
    let request = |index| {
        let gaps_ms: Option<Vec<f64>> =
            get_at(gaps.as_ref(), index).map(|gaps: Vec<ListedNumber>| {
                gaps.into_iter().filter_map(|gap| gap.0).map(|s| s * MS).collect()
            });
        let number = |list: &Option<Vec<ListedNumber>>| list.as_ref()?.get(index)?.0;
        let ttft_ms = number(&ttfts).map(|s| s * MS);
        let output_tokens = get_at(outputs.as_ref(), index);
        let error: Option<String> = get_at(errors.as_ref(), index);
        ReportedRequest {
            start_s: number(&starts),
            ttft_ms,
            e2e_ms: number(&latencies).map(|s| s * MS),
            gaps_ms,
            input_tokens: get_at(inputs.as_ref(), index),
            output_tokens,
            // Forks that keep no errors still count no token for what failed.
            is_failed: match error {
                Some(error) => !error.is_empty(),
                None => errors.is_none() && output_tokens == Some(0),
            },
        }
    };
    Ok(Some((0..n).map(request).collect()))
}

fn get_at<T: Clone>(list: Option<&Vec<Option<T>>>, index: usize) -> Option<T> {
    list.and_then(|list| list.get(index)).cloned().flatten()
}

/// Shortest and longest, of completed requests.
pub(super) fn length_range(
    details: Option<&Vec<ReportedRequest>>,
    length: impl Fn(&ReportedRequest) -> Option<u64>,
) -> Option<LengthRange> {
    let good = details?.iter().filter(|request| !request.is_failed);
    let (min, max) =
        good.filter_map(length).fold((u64::MAX, 0), |(min, max), n| (min.min(n), max.max(n)));
    (min <= max).then_some(LengthRange { min: min as f64, max: max as f64 })
}
