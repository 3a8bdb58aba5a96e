//! What `vllm bench serve --save-result` writes, with its names and by its definitions.

use std::io::Write;

use goodput_model::{Api, ArrivalProcess, Mode, RequestRecord};
use serde_json::Value;

use crate::converted::{ConvertedRun, RateWord, View};
use crate::error::ExchangeError;
use crate::flat::{self, RunTotals};
use crate::instant;
use crate::json::{Fields, Object};

/// The file, with every request where `detailed` (`--save-detailed`). `records` is called several
/// times and must give the same records, complete, each time. What comes back is worth a note.
pub fn write_vllm<I: Iterator<Item = RequestRecord>>(
    out: &mut dyn Write,
    run: &ConvertedRun<'_>,
    records: &impl Fn() -> I,
    detailed: bool,
) -> Result<Vec<String>, ExchangeError> {
    let totals = RunTotals::from_records(run, View::Vllm, records);
    let mut fields = head_fields(run, &totals);
    add_results(&mut fields, run, &totals);
    let mut object = Object::new(out)?;
    object.fields(&fields)?;
    if detailed {
        flat::write_details(&mut object, run, View::Vllm, records)?;
    }
    object.close_object()?;
    let mut notes = run.notes();
    if !run.plan.target.stream {
        notes.push("answers were not streamed: the file has no TTFT, TPOT, and ITL".to_owned());
    }
    Ok(notes)
}

/// What was asked.
fn head_fields(run: &ConvertedRun<'_>, totals: &RunTotals) -> Fields {
    let facts = &run.summary.run;
    let mut fields = Fields::default();
    // The date is that of the file, which is written when the last answer is there.
    let date = instant::instant_after(&facts.started, totals.duration_s).map(instant::to_compact);
    fields.insert("date", date);
    let backend = match run.plan.target.api {
        Api::Chat => "openai-chat",
        Api::Completions => "openai",
    };
    fields.insert("endpoint_type", backend);
    fields.insert("backend", backend);
    fields.insert("label", Value::Null);
    fields.insert("model_id", facts.model.as_str());
    fields.insert("tokenizer_id", facts.model.as_str());
    fields.insert("num_prompts", totals.completed + totals.failed);
    // Metadata as `--metadata KEY=VALUE` adds it.
    fields.insert("measured_by", format!("goodput {}", facts.version));
    for (name, value) in &facts.system.said {
        fields.insert(name.as_str(), value.as_str());
    }
    fields.insert("goodput_verdict", run.summary.verdict.name());
    let load = run.load_words();
    let rate = match load.rate {
        RateWord::PerSecond(rate) => Value::from(rate),
        RateWord::Infinite | RateWord::Trace => Value::from("inf"),
    };
    fields.insert("request_rate", rate);
    fields.insert("burstiness", burstiness_json(&run.plan.load.mode));
    fields.insert("max_concurrency", load.cap);
    fields
}

/// The shape of the gamma distribution of the gaps.
fn burstiness_json(mode: &Mode) -> Value {
    match mode {
        Mode::Open { arrivals, .. } | Mode::Shaped { arrivals, .. } => match arrivals {
            ArrivalProcess::Poisson => Value::from(1.0),
            ArrivalProcess::Gamma(cv) => Value::from(1.0 / (cv * cv)),
            ArrivalProcess::Constant => Value::from("inf"),
        },
        Mode::Replay { .. } | Mode::Closed { .. } => Value::from(1.0),
    }
}

/// The figures.
fn add_results(fields: &mut Fields, run: &ConvertedRun<'_>, totals: &RunTotals) {
    let rate = |amount: u64| totals.per_second(amount as f64);
    fields.insert("duration", totals.duration_s);
    fields.insert("completed", totals.completed);
    fields.insert("failed", totals.failed);
    fields.insert("total_input_tokens", totals.input);
    fields.insert("total_output_tokens", totals.output);
    fields.insert("request_throughput", rate(totals.completed));
    fields.insert("request_goodput", totals.good.and_then(rate));
    fields.insert("output_throughput", rate(totals.output));
    fields.insert("total_token_throughput", rate(totals.input + totals.output));
    fields.insert("max_output_tokens_per_s", totals.peak_events as f64);
    fields.insert("max_concurrent_requests", totals.peak_requests);
    fields.insert("rtfx", 0.0);
    let mut percentiles = run.plan.measure.percentiles.clone();
    percentiles.push(99.0);
    percentiles.sort_by(f64::total_cmp);
    percentiles.dedup();
    if run.plan.target.stream {
        flat::add_metric(fields, "ttft", &totals.ttft, &percentiles);
        flat::add_metric(fields, "tpot", &totals.tpot, &percentiles);
        flat::add_metric(fields, "itl", &totals.itl, &percentiles);
    }
    flat::add_metric(fields, "e2el", &totals.e2e, &percentiles);
}
