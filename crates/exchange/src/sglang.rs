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
pub fn sglang<I: Iterator<Item = RequestRecord>>(
    out: &mut dyn Write,
    run: &ConvertedRun<'_>,
    records: &impl Fn() -> I,
    detailed: bool,
) -> Result<Vec<String>, ExchangeError> {
    let totals = RunTotals::from_records(run, View::Sglang, records);
    let mut object = Object::new(out)?;
    head(&mut object, run)?;
    object.fields(&results(run, &totals))?;
    if detailed {
        flat::details(&mut object, run, View::Sglang, records)?;
    }
    object.end()?;
    // The tool has no goodput at all, so a note on it is not needed.
    let mut notes = run.notes();
    notes.retain(|note| !note.ends_with("no goodput in the file"));
    if totals.completed == 0 {
        notes.push("no request completed: the file has no latencies".to_owned());
    }
    Ok(notes)
}

/// What was asked.
fn head(object: &mut Object<'_>, run: &ConvertedRun<'_>) -> Result<(), ExchangeError> {
    let facts = &run.summary.run;
    let mut fields = Fields::default();
    fields.put("tag", format!("goodput {}", facts.version));
    let backend = match run.plan.target.api {
        Api::Chat => "sglang-oai-chat",
        Api::Completions => "sglang-oai",
    };
    fields.put("backend", backend);
    fields.put("dataset_name", facts.workload.as_str());
    object.fields(&fields)?;
    let load = run.load();
    match load.rate {
        RateWord::PerSecond(rate) => object.field("request_rate", &rate)?,
        // As Python writes it: what reads these files expects no text here.
        RateWord::Infinite => object.bare("request_rate", "Infinity")?,
        RateWord::Trace => object.field("request_rate", &"trace")?,
    }
    let mut fields = Fields::default();
    fields.put("max_concurrency", load.cap);
    for name in
        ["sharegpt_output_len", "random_input_len", "random_output_len", "random_range_ratio"]
    {
        fields.put(name, Value::Null);
    }
    fields.put("server_info", server_info(run));
    object.fields(&fields)
}

/// What is known about the server, under the names of its own settings where they are the same.
fn server_info(run: &ConvertedRun<'_>) -> Value {
    let facts = &run.summary.run;
    let model = ("served_model_name".to_owned(), Value::from(facts.model.as_str()));
    let known = facts.system.found.iter().chain(&facts.system.said);
    let known = known.map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    let verdict = ("goodput_verdict".to_owned(), Value::from(run.summary.verdict.name()));
    Value::Object(std::iter::once(model).chain(known).chain([verdict]).collect())
}

/// The figures.
fn results(run: &ConvertedRun<'_>, totals: &RunTotals) -> Fields {
    let rate = |amount: u64| totals.per_second(amount as f64);
    let recounted = run.summary.recount.as_ref().map(|recount| recount.output_tokens);
    let mut fields = Fields::default();
    fields.put("duration", totals.duration_s);
    fields.put("completed", totals.completed);
    fields.put("total_input_tokens", totals.input);
    fields.put("total_input_text_tokens", totals.input.saturating_sub(totals.image));
    fields.put("total_input_vision_tokens", totals.image);
    fields.put("total_output_tokens", totals.output);
    fields.put("total_output_tokens_retokenized", recounted);
    fields.put("request_throughput", rate(totals.completed));
    fields.put("input_throughput", rate(totals.input));
    fields.put("output_throughput", rate(totals.output));
    fields.put("total_throughput", rate(totals.input + totals.output));
    flat::metric(&mut fields, "e2e_latency", &totals.e2e, &PERCENTILES);
    flat::metric(&mut fields, "ttft", &totals.ttft, &PERCENTILES);
    flat::metric(&mut fields, "tpot", &totals.tpot, &PERCENTILES);
    flat::metric(&mut fields, "itl", &totals.itl, &PERCENTILES);
    fields.put("concurrency", totals.per_second(totals.e2e.sum() / 1e3));
    fields.put("accept_length", Value::Null);
    fields.put("max_output_tokens_per_s", totals.peak_events as f64);
    fields.put("max_concurrent_requests", totals.peak_requests);
    fields
}
