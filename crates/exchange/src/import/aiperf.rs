//! AIPerf's summary, and GenAI-Perf's, whose shape it kept: one object for each metric.

use goodput_model::{
    LengthRange, Reported, ReportedGoodput, ReportedLoad, ReportedMetric, ReportedMode, SourceTool,
};

use super::fields::{FieldError, ImportFields, conflict_text};

pub(super) fn read_run(
    fields: &ImportFields<'_>,
    tool: SourceTool,
) -> Result<Reported, FieldError> {
    let mut run = Reported::new(tool);
    run.version = fields.text("aiperf_version")?;
    run.started = fields.text("start_time")?;
    run.ok = read_total(fields, "request_count")?;
    run.failed = read_total(fields, "error_request_count")?;
    run.requests_per_s = read_average(fields, "request_throughput")?;
    run.output_tokens_per_s = read_average(fields, "output_token_throughput")?;
    run.total_tokens_per_s = read_average(fields, "total_token_throughput")?;
    read_time(fields, &mut run)?;
    let ok = run.ok;
    let mut tokens = |name: &str, total_name: &str| -> Result<Option<u64>, FieldError> {
        let lengths = fields.object(name)?;
        let mean = lengths.finite("avg")?.zip(ok).map(|(mean, ok)| mean * ok as f64);
        let sum = lengths.finite("sum")?;
        let stated = read_total(fields, total_name)?;
        let (by_name, sums) = (stated.map(|stated| stated as f64), format!("`{name}` sums to"));
        run.conflicts.extend(conflict_text(total_name, by_name, &sums, sum));
        let sum = sum.or(mean).filter(|sum| *sum >= 0.0);
        Ok(stated.or(sum.map(|sum| sum.round() as u64)))
    };
    run.input_tokens = tokens("input_sequence_length", "total_isl")?;
    run.output_tokens = tokens("output_sequence_length", "total_osl")?;
    let ended = ok.map(|ok| ok.saturating_add(run.failed.unwrap_or(0)) as f64);
    run.conflicts.extend(conflict_text(
        "completed_request_count",
        read_average(fields, "completed_request_count")?,
        "requests and errors are",
        ended,
    ));
    run.input_lengths = read_lengths(fields, "input_sequence_length")?;
    run.output_lengths = read_lengths(fields, "output_sequence_length")?;
    // What both call inter-token latency is the mean of each request, which is TPOT.
    for (ours, theirs) in [
        ("ttft", "time_to_first_token"),
        ("tpot", "inter_token_latency"),
        ("itl", "inter_chunk_latency"),
        ("e2e", "request_latency"),
    ] {
        let stated = fields.object(theirs)?;
        run.conflicts.extend(sum_conflict(theirs, &stated, "avg", "sum")?);
        let metric = read_metric(&stated)?;
        if !metric.is_empty() {
            run.metrics.insert(ours.to_owned(), metric);
        }
    }
    run.seed = fields.maybe_object("run_info").count("random_seed")?;
    read_config(&fields.maybe_object("input_config"), &mut run)?;
    let good = read_average(fields, "goodput")?.or(read_average(fields, "request_goodput")?);
    if let Some(rate) = good {
        run.goodput.get_or_insert_default().requests_per_s = Some(rate);
        let share = read_average(fields, "good_request_fraction")?;
        run.goodput.get_or_insert_default().share = share;
    }
    if run.asked.is_none() {
        run.asked = read_total(fields, "completed_request_count")?;
    }
    if fields.flag("was_cancelled")? == Some(true) {
        run.remarks.push("the run was canceled".to_owned());
    }
    if fields.flag("is_complete")? == Some(false) {
        let reason = fields.text("incomplete_reason")?.unwrap_or_default();
        run.remarks.push(format!("the run is not complete: {reason}"));
    }
    for error in fields.objects("error_summary").unwrap_or_default() {
        let details = error.maybe_object("error_details");
        let what = details.scalar("type").or_else(|| details.scalar("message"));
        let count = error.scalar("count").unwrap_or_default();
        run.remarks.push(format!("{count} × {}", what.unwrap_or_default()));
    }
    read_telemetry(fields, &mut run);
    Ok(run)
}

/// Seconds of an instant such as `2026-01-31T09:30:00.25`, whatever its zone: two of one run differ by
/// the right amount.
fn parse_seconds(instant: &str) -> Option<f64> {
    let (date, time) = instant.split_once(['T', ' '])?;
    let whole = |text: &str| text.parse::<u32>().ok();
    let mut date = date.split('-').map(whole);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || year > 9999 {
        return None;
    }
    let time = time.trim_end_matches('Z').split(['+', '-']).next()?;
    let mut time = time.split(':');
    let (hour, minute) = (whole(time.next()?)?, whole(time.next()?)?);
    let second: f64 = time.next()?.parse().ok()?;
    // Days since the year 0, with the year beginning in March.
    let (year, month) =
        if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    let minutes = f64::from(days) * 1440.0 + f64::from(hour) * 60.0 + f64::from(minute);
    Some(minutes * 60.0 + second)
}

/// Rates are over the phase; `benchmark_duration` is from the first request to the last answer.
fn read_time(fields: &ImportFields<'_>, run: &mut Reported) -> Result<(), FieldError> {
    let start = run.started.as_deref().and_then(parse_seconds);
    let end = fields.text("end_time")?.as_deref().and_then(parse_seconds);
    let phase = start.zip(end).map(|(start, end)| end - start);
    let measured = read_average(fields, "benchmark_duration")?;
    run.duration_s = phase.filter(|seconds| *seconds > 0.0).or(measured);
    match phase.zip(measured) {
        Some((phase, _)) if phase < 0.0 => {
            run.conflicts.push(format!("`end_time` is {} s before `start_time`", -phase));
        }
        Some((phase, measured)) if measured > phase => run.conflicts.extend(conflict_text(
            "benchmark_duration",
            Some(measured),
            "from `start_time` to `end_time` it is",
            Some(phase),
        )),
        _ => {}
    }
    Ok(())
}

/// A mean that is not the sum over the count.
pub(super) fn sum_conflict(
    metric: &str,
    fields: &ImportFields<'_>,
    mean: &str,
    sum: &str,
) -> Result<Option<String>, FieldError> {
    let count = fields.finite("count")?.filter(|count| *count > 0.0);
    let again = fields.finite(sum)?.zip(count).map(|(sum, count)| sum / count);
    let name = format!("{metric}.{mean}");
    Ok(conflict_text(&name, fields.finite(mean)?, "sum over count is", again))
}

fn read_average(fields: &ImportFields<'_>, name: &str) -> Result<Option<f64>, FieldError> {
    fields.object(name)?.finite("avg")
}

fn read_total(fields: &ImportFields<'_>, name: &str) -> Result<Option<u64>, FieldError> {
    fields.object(name)?.count("avg")
}

fn read_lengths(fields: &ImportFields<'_>, name: &str) -> Result<Option<LengthRange>, FieldError> {
    let length = fields.object(name)?;
    let range = length.finite("min")?.zip(length.finite("max")?);
    Ok(range.map(|(min, max)| LengthRange { min, max }))
}

/// How many milliseconds the unit of a metric has.
fn unit_in_ms(fields: &ImportFields<'_>) -> f64 {
    match fields.scalar("unit").as_deref() {
        Some("s" | "sec" | "seconds") => 1e3,
        Some("us" | "µs" | "microseconds") => 1e-3,
        Some("ns" | "nanoseconds") => 1e-6,
        _ => 1.0,
    }
}

fn read_metric(fields: &ImportFields<'_>) -> Result<ReportedMetric, FieldError> {
    let mut percentiles = Vec::new();
    let unit = unit_in_ms(fields);
    let stated = |name: &str| Ok(fields.finite(name)?.map(|value| value * unit));
    for name in fields.names() {
        let percent = name.strip_prefix('p').and_then(|percent| percent.parse::<f64>().ok());
        if let Some(percent) = percent
            && let Some(value) = fields.finite(name)?
        {
            percentiles.push((percent, value * unit));
        }
    }
    percentiles.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(ReportedMetric {
        n: fields.count("count")?,
        mean: stated("avg")?,
        std: stated("std")?,
        median: None,
        min: stated("min")?,
        max: stated("max")?,
        percentiles,
    })
}

/// The settings, whose form has changed with the versions.
fn read_config(config: &ImportFields<'_>, run: &mut Reported) -> Result<(), FieldError> {
    let endpoint = config.maybe_object("endpoint");
    run.streaming = endpoint.flag("streaming")?.or(config.flag("streaming")?);
    run.backend = endpoint.scalar("type").or_else(|| config.scalar("endpoint_type"));
    run.model = read_model(config);
    run.seed = run.seed.or(config.count("random_seed")?);
    let by_server = endpoint.flag("use_server_token_count")?;
    run.token_source = match (run.tool, by_server) {
        (SourceTool::Aiperf, Some(true)) => Some("usage".to_owned()),
        _ => Some("the tool's tokenizer".to_owned()),
    };
    let slos = config.maybe_object("slos");
    let terms: Vec<_> =
        slos.names().map(|n| format!("{n}:{}", slos.scalar(n).unwrap_or_default())).collect();
    let terms = if terms.is_empty() { read_objectives(config) } else { terms };
    if !terms.is_empty() {
        run.goodput = Some(ReportedGoodput { terms: terms.join(" "), ..Default::default() });
    }
    let phases = config.objects("phases").unwrap_or_default();
    if phases.is_empty() {
        return read_older_load(config, run);
    }
    run.warmup.requests = Some(0);
    run.asked = Some(0);
    for phase in &phases {
        if phase.scalar("kind").as_deref() == Some("warmup") {
            run.warmup.requests = phase.count("requests")?;
            run.warmup.seconds = phase.finite("duration").unwrap_or_default();
            continue;
        }
        run.asked = run.asked.zip(phase.count("requests")?).map(|(a, b)| a.saturating_add(b));
        let (rate, concurrency) = (phase.number("rate")?, phase.count("concurrency")?);
        run.load = reported_load(rate, concurrency, phase.scalar("type"));
    }
    Ok(())
}

/// Bounds on latency as the older versions wrote them.
fn read_objectives(config: &ImportFields<'_>) -> Vec<String> {
    let goodput = config.maybe_object("goodput");
    let of_input = config.maybe_object("input").maybe_object("goodput");
    let of = |fields: &ImportFields<'_>| -> Vec<String> {
        let term = |name| format!("{name}:{}", fields.scalar(name).unwrap_or_default());
        fields.names().map(term).collect()
    };
    [of(&goodput), of(&of_input)].concat()
}

fn read_model(config: &ImportFields<'_>) -> Option<String> {
    let items = config.maybe_object("models").objects("items").unwrap_or_default();
    let listed = |fields: &ImportFields<'_>, name: &str| {
        let list = fields.value::<Vec<String>>(name, "a list of texts").ok().flatten();
        list.and_then(|list| list.into_iter().next()).or_else(|| fields.scalar(name))
    };
    let endpoint = config.maybe_object("endpoint");
    (items.first().and_then(|item| item.scalar("name")))
        .or_else(|| listed(config, "model_names"))
        .or_else(|| listed(config, "model"))
        .or_else(|| listed(&endpoint, "model_names"))
}

/// Before phases: AIPerf's `loadgen`, GenAI-Perf's `perf_analyzer`, or settings at the top.
fn read_older_load(config: &ImportFields<'_>, run: &mut Reported) -> Result<(), FieldError> {
    let loadgen = config.maybe_object("loadgen");
    let analyzer = config.maybe_object("perf_analyzer");
    let stimulus = analyzer.maybe_object("stimulus");
    let places = [config, &loadgen, &analyzer, &stimulus];
    let count = |name: &str| -> Result<Option<u64>, FieldError> {
        Ok(places.iter().map(|place| place.count(name)).collect::<Result<Vec<_>, _>>()?)
            .map(|found| found.into_iter().flatten().next())
    };
    let rate = places.iter().find_map(|place| place.number("request_rate").ok().flatten());
    let arrivals = places.iter().find_map(|place| place.scalar("request_rate_mode"));
    let concurrency = count("concurrency")?;
    run.load = reported_load(rate, concurrency, arrivals);
    run.warmup.requests = count("warmup_request_count")?;
    run.asked = count("request_count")?.filter(|asked| *asked > 0);
    Ok(())
}

fn reported_load(
    rate: Option<f64>,
    concurrency: Option<u64>,
    kind: Option<String>,
) -> ReportedLoad {
    // At an infinite rate nothing arrives by any process: all are sent at once, or as users get free.
    let is_at_once = rate.is_some_and(f64::is_infinite);
    let rate = rate.filter(|rate| rate.is_finite());
    let mode = match (rate, concurrency) {
        (None, None) if is_at_once => ReportedMode::Burst,
        (Some(_), None) => ReportedMode::Open,
        (Some(_), Some(_)) => ReportedMode::Capped,
        (None, Some(_)) => ReportedMode::Closed,
        (None, None) if kind.as_deref() == Some("fixed_schedule") => ReportedMode::Open,
        (None, None) => ReportedMode::Unknown,
    };
    let arrivals = kind.filter(|_| rate.is_some());
    ReportedLoad { mode, rate_rps: rate, arrivals, concurrency, ..ReportedLoad::default() }
}

/// The accelerators, where they were watched.
fn read_telemetry(fields: &ImportFields<'_>, run: &mut Reported) {
    let endpoints = fields.maybe_object("telemetry_data").maybe_object("endpoints");
    let mut names = Vec::new();
    for endpoint in endpoints.names() {
        let gpus = endpoints.maybe_object(endpoint).maybe_object("gpus");
        for gpu in gpus.names() {
            names.extend(gpus.maybe_object(gpu).scalar("gpu_name"));
        }
    }
    if !names.is_empty() {
        run.setup.gpus = Some(names.len() as u64);
        run.setup.hardware = names.into_iter().next();
        run.setup.utilisation = Some("the file holds accelerator readings".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_differ_by_the_right_amount() {
        let apart = |a: &str, b: &str| parse_seconds(b).zip(parse_seconds(a)).map(|(b, a)| b - a);
        assert_eq!(apart("2026-11-15T16:55:59.5", "2026-11-15T16:56:01.75"), Some(2.25));
        assert_eq!(apart("2024-02-28T23:59:59Z", "2024-03-01T00:00:00Z"), Some(86_401.0));
        assert_eq!(apart("2025-12-31 23:59:00", "2026-01-01 00:01:00+00:00"), Some(120.0));
        for odd in
            ["", "T", "2026-13-01T00:00:00", "0-1-1T0:0:0", "9-9-9T9", "4294967295-1-1T1:1:1"]
        {
            assert_eq!(parse_seconds(odd), None, "{odd}");
        }
    }
}
