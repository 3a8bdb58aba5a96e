//! SGLang `bench_serving`: one line for each run.

use goodput_model::{LengthRange, Reported, SourceTool};

use super::fields::{FieldError, ImportFields, conflict_text};
use super::{flat, setup};

pub(super) fn read_run(fields: &ImportFields<'_>) -> Result<Reported, FieldError> {
    let mut run = Reported::new(SourceTool::Sglang);
    flat::read_totals(fields, &mut run)?;
    run.label = fields.text("tag")?.unwrap_or_default();
    run.total_tokens_per_s = fields.finite("total_throughput")?;
    let parts = fields.finite("input_throughput")?.zip(run.output_tokens_per_s);
    run.conflicts.extend(conflict_text(
        "total_throughput",
        run.total_tokens_per_s,
        "that of input and output is",
        parts.map(|(input, output)| input + output),
    ));
    run.workload = fields.text("dataset_name")?;
    run.recounted_tokens = fields.count("total_output_tokens_retokenized")?;
    let peak = run.load.peak_concurrency;
    run.load = flat::read_load(fields)?;
    run.load.peak_concurrency = peak;
    run.load.mean_concurrency = fields.finite("concurrency")?;
    for (ours, theirs) in
        [("ttft", "ttft"), ("tpot", "tpot"), ("itl", "itl"), ("e2e", "e2e_latency")]
    {
        let metric = flat::read_metric(fields, theirs)?;
        if !metric.is_empty() {
            run.metrics.insert(ours.to_owned(), metric);
        }
    }
    run.details = flat::read_details(fields, &mut run.conflicts)?;
    // With speculative decoding its ITL is of tokens, and its list of events.
    if fields.finite("accept_length")?.is_some_and(|length| length > 1.0) {
        run.details.iter_mut().flatten().for_each(|request| request.gaps_ms = None);
    }
    run.input_lengths = flat::length_range(run.details.as_ref(), |request| request.input_tokens);
    run.output_lengths = flat::length_range(run.details.as_ref(), |request| request.output_tokens);
    if run.input_lengths.is_none() {
        run.input_lengths = asked_lengths(fields, "random_input_len")?;
        run.output_lengths = asked_lengths(fields, "random_output_len")?;
    }
    if let Some(details) = &run.details {
        run.asked = Some(details.len() as u64);
        run.failed = Some(details.iter().filter(|request| request.is_failed).count() as u64);
    }
    // The native API counts for itself; the OpenAI one is not asked to.
    run.token_source = match run.backend.as_deref() {
        Some("sglang" | "sglang-native") => Some("the server".to_owned()),
        Some(backend) if backend.contains("oai") || backend.contains("openai") => {
            Some("the length asked for, unless the server volunteers usage".to_owned())
        }
        _ => None,
    };
    let server = fields.maybe_object("server_info");
    run.model = server.scalar("served_model_name").or_else(|| server.scalar("model_path"));
    run.setup = setup::read_setup(&server);
    if server.names().next().is_some() {
        run.setup.flags = Some("the file holds the server's settings".to_owned());
    }
    Ok(run)
}

/// The range that was drawn from: `range_ratio` is the lower end as a share of the upper one.
fn asked_lengths(fields: &ImportFields<'_>, name: &str) -> Result<Option<LengthRange>, FieldError> {
    if fields.scalar("dataset_name").is_none_or(|name| !name.starts_with("random")) {
        return Ok(None);
    }
    let ratio = fields.finite("random_range_ratio")?;
    let (Some(longest), Some(ratio)) = (fields.finite(name)?, ratio) else { return Ok(None) };
    Ok(Some(LengthRange { min: (longest * ratio).max(1.0).min(longest), max: longest }))
}
