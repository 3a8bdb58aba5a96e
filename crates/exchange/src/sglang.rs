//! What SGLang's `bench_serving` appends to its file: one line, with its names and by its definitions.

use std::io::Write;

use goodput_model::{Api, RequestRecord};
use serde_json::Value;

use crate::converted::{ConvertedRun, RateWord, View};
use crate::error::ExchangeError;
use crate::flat::{self, RunTotals};
use crate::json::{Fields, Object};
use crate::numbers::Ranked;

/// Percentiles that it knows.
const PERCENTILES: [f64; 3] = [90.0, 95.0, 99.0];

/// The line, with every request where `detailed` (`--output-details`). `records` is called several
/// times and must give the same records, complete, each time. What comes back is worth a note.
pub fn write_sglang<I: Iterator<Item = RequestRecord>>(
    out: &mut dyn Write,
    run: &ConvertedRun<'_>,
    records: &impl Fn() -> I,
    detailed: bool,
) -> Result<Vec<String>, ExchangeError> {
    let totals = RunTotals::from_records(run, View::Sglang, records);
    let mut object = Object::new(out)?;
    write_head(&mut object, run)?;
    object.fields(&result_fields(run, &totals))?;
    if detailed {
        flat::write_details(&mut object, run, View::Sglang, records)?;
    }
    object.close_object()?;
    // The tool has no goodput at all, so a note on it is not needed.
    let mut notes = run.notes();
    notes.retain(|note| !note.ends_with("no goodput in the file"));
    if totals.completed == 0 {
        notes.push("no request completed: the file has no latencies".to_owned());
    }
    Ok(notes)
}

/// What was asked.
fn write_head(object: &mut Object<'_>, run: &ConvertedRun<'_>) -> Result<(), ExchangeError> {
    let facts = &run.summary.run;
    let mut fields = Fields::default();
    fields.insert("tag", format!("goodput {}", facts.version));
    let backend = match run.plan.target.api {
        Api::Chat => "sglang-oai-chat",
        Api::Completions => "sglang-oai",
    };
    fields.insert("backend", backend);
    fields.insert("dataset_name", facts.workload.as_str());
    object.fields(&fields)?;
    let load = run.load_words();
    match load.rate {
        RateWord::PerSecond(rate) => object.field("request_rate", &rate)?,
        // As Python writes it: what reads these files expects no text here.
        RateWord::Infinite => object.raw_field("request_rate", "Infinity")?,
        RateWord::Trace => object.field("request_rate", &"trace")?,
    }
    let mut fields = Fields::default();
    fields.insert("max_concurrency", load.cap);
    for name in
        ["sharegpt_output_len", "random_input_len", "random_output_len", "random_range_ratio"]
    {
        fields.insert(name, Value::Null);
    }
    fields.insert("server_info", server_info_json(run));
    object.fields(&fields)
}

/// What is known about the server, under the names of its own settings where they are the same.
fn server_info_json(run: &ConvertedRun<'_>) -> Value {
    let facts = &run.summary.run;
    let model = ("served_model_name".to_owned(), Value::from(facts.model.as_str()));
    let known = facts.system.found.iter().chain(&facts.system.said);
    let known = known.map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    let verdict = ("goodput_verdict".to_owned(), Value::from(run.summary.verdict.name()));
    Value::Object(std::iter::once(model).chain(known).chain([verdict]).collect())
}

/// The figures.
fn result_fields(run: &ConvertedRun<'_>, totals: &RunTotals) -> Fields {
    let rate = |amount: u64| totals.per_second(amount as f64);
    let recounted = run.summary.recount.as_ref().map(|recount| recount.output_tokens);
    let mut fields = Fields::default();
    fields.insert("duration", totals.duration_s);
    fields.insert("completed", totals.completed);
    fields.insert("total_input_tokens", totals.input);
    fields.insert("total_input_text_tokens", totals.input.saturating_sub(totals.image));
    fields.insert("total_input_vision_tokens", totals.image);
    fields.insert("total_output_tokens", totals.output);
    fields.insert("total_output_tokens_retokenized", recounted);
    fields.insert("request_throughput", rate(totals.completed));
    fields.insert("input_throughput", rate(totals.input));
    fields.insert("output_throughput", rate(totals.output));
    fields.insert("total_throughput", rate(totals.input + totals.output));
    flat::add_metric(&mut fields, "e2e_latency", &totals.e2e, &PERCENTILES);
    flat::add_metric(&mut fields, "ttft", &totals.ttft, &PERCENTILES);
    flat::add_metric(&mut fields, "tpot", &totals.tpot, &PERCENTILES);
    flat::add_metric(&mut fields, "itl", &totals.itl, &PERCENTILES);
    fields.insert("concurrency", totals.per_second(totals.e2e.sum() / 1e3));
    fields.insert("accept_length", Value::Null);
    fields.insert("max_output_tokens_per_s", totals.peak_events as f64);
    fields.insert("max_concurrent_requests", totals.peak_requests);
    fields
}
