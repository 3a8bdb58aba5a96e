//! `vllm bench serve --save-result`, and its twin in Rust.

use goodput_model::{Reported, ReportedGoodput, SourceTool};

use super::fields::{FieldError, ImportFields};
use super::{flat, setup};

pub(super) fn read_run(
    fields: &ImportFields<'_>,
    tool: SourceTool,
) -> Result<Reported, FieldError> {
    let mut run = Reported::new(tool);
    flat::read_totals(fields, &mut run)?;
    run.label = fields.text("label")?.unwrap_or_default();
    run.model = fields.text("model_id")?;
    run.backend = run.backend.or(fields.text("endpoint_type")?);
    run.started = fields.text("date")?;
    run.asked = fields.count("num_prompts")?;
    run.failed = fields.count("failed")?;
    run.total_tokens_per_s = fields.finite("total_token_throughput")?;
    let peak = run.load.peak_concurrency;
    run.load = flat::read_load(fields)?;
    run.load.peak_concurrency = peak;
    run.warmup.requests = fields.count("num_warmups")?;
    if let Some(strategy) = fields.text("ramp_up_strategy")? {
        run.load.arrivals = Some(format!("a rate that ramps up ({strategy})"));
        run.load.rate_rps = None;
    }
    for (ours, theirs) in [("ttft", "ttft"), ("tpot", "tpot"), ("itl", "itl"), ("e2e", "e2el")] {
        let metric = flat::read_metric(fields, theirs)?;
        if !metric.is_empty() {
            run.metrics.insert(ours.to_owned(), metric);
        }
    }
    // Waiting for a slot of the cap is left out of every other figure.
    let queued = flat::read_metric(fields, "e2el_including_client_queue")?;
    if !queued.is_empty() {
        run.metrics.insert("e2e_sched".to_owned(), queued);
    }
    run.details = flat::read_details(fields, &mut run.conflicts)?;
    run.input_lengths = flat::length_range(run.details.as_ref(), |request| request.input_tokens);
    run.output_lengths = flat::length_range(run.details.as_ref(), |request| request.output_tokens);
    // Chat and completions are always streamed; what is pooled has no tokens.
    run.streaming = run.metrics.contains_key("ttft").then_some(true);
    // The file says nothing, but the tool has one rule.
    run.token_source = run.output_tokens.is_some().then(|| match tool {
        SourceTool::VllmRust => "usage, else one for each chunk".to_owned(),
        _ => "usage, else the tool's tokenizer".to_owned(),
    });
    // One of its forks writes the colon.
    let goodput = fields.finite("request_goodput")?.or(fields.finite("request_goodput:")?);
    run.goodput = goodput.map(|rate| ReportedGoodput {
        terms: String::new(),
        requests_per_s: Some(rate),
        share: None,
    });
    run.setup = setup::read_setup(fields);
    Ok(run)
}
