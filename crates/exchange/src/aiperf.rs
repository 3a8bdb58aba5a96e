//! What AIPerf writes as `profile_export_aiperf.json`, whose shape comes from GenAI-Perf: one object
//! for each metric, with its names and by its definitions.

use std::collections::BTreeMap;
use std::io::Write;

use goodput_model::{Api, ArrivalProcess, Mode, Nanos, RequestRecord};
use goodput_stats::RunState;
use serde_json::{Map, Value, json};

use crate::converted::{
    ConvertedRun, LoadWords, RateWord, RequestLimits, RequestTimes, View, input_tokens, is_counted,
    output_tokens,
};
use crate::error::ExchangeError;
use crate::instant;
use crate::json::{Fields, Object};
use crate::numbers::{Gaps, Ranked, Values};

/// The version of the shape.
const SCHEMA: &str = "1.4";

/// Percentiles that it knows.
const PERCENTILES: [f64; 9] = [1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0];

/// The file. `records` must give complete records. What comes back is worth a note.
pub fn write_aiperf(
    out: &mut dyn Write,
    run: &ConvertedRun<'_>,
    records: impl Iterator<Item = RequestRecord>,
) -> Result<Vec<String>, ExchangeError> {
    let mut tally = AiperfTally { limits: run.request_limits(), ..AiperfTally::default() };
    records.filter(is_counted).for_each(|record| tally.add(&record, run));
    tally.sort();
    let mut object = Object::new(out)?;
    object.fields(&head_fields(run, &tally))?;
    object.fields(&tally.metric_fields())?;
    object.close_object()?;
    let mut notes = run.notes();
    if !run.plan.target.stream {
        let missing = "answers were not streamed: the file has no token latencies";
        notes.push(missing.to_owned());
    }
    Ok(notes)
}

/// Everything that one pass adds up; times in milliseconds.
#[derive(Debug, Default)]
struct AiperfTally {
    limits: Option<RequestLimits>,
    ok: u64,
    good: u64,
    first: Option<Nanos>,
    last: Nanos,
    /// By class, each with its first message.
    errors: BTreeMap<String, (u64, Option<u16>, String)>,
    latency: Values,
    ttft: Values,
    ttfa: Values,
    second: Values,
    itl: Values,
    per_user: Values,
    chunk: Gaps,
    input: Values,
    output: Values,
}

impl AiperfTally {
    fn add(&mut self, record: &RequestRecord, run: &ConvertedRun<'_>) {
        if let Some(failure) = &record.exchange.failure {
            let first = || (0, record.exchange.status, failure.message.clone());
            self.errors.entry(failure.class.to_string()).or_insert_with(first).0 += 1;
            return;
        }
        // The time that rates divide by excludes failures, however slow.
        let times = RequestTimes::from_record(record, View::Aiperf, run);
        self.first = Some(self.first.map_or(times.start, |first| first.min(times.start)));
        self.last = self.last.max(times.start + times.latency);
        self.ok += 1;
        let output = output_tokens(record);
        self.input.push(f64::from(input_tokens(record)));
        self.output.push(f64::from(output));
        self.latency.push(times.latency.as_ms());
        let Some(ttft) = times.ttft else {
            self.count_good(None, None, times.latency.as_ms());
            return;
        };
        self.ttft.push(ttft.as_ms());
        if let Some(answer) = record.exchange.stamps.first_answer {
            self.ttfa.push((answer - times.start).as_ms());
        }
        let mut gaps = times.gaps(record);
        if let Some(gap) = gaps.next() {
            self.second.push(gap as f64 / 1e3);
            self.chunk.push(gap);
        }
        gaps.for_each(|gap| self.chunk.push(gap));
        let itl = tokens_after_first(record, output).map(|n| (times.latency - ttft).as_ms() / n);
        if let Some(itl) = itl {
            self.itl.push(itl);
            if itl > 0.0 {
                self.per_user.push(1e3 / itl);
            }
        }
        self.count_good(Some(ttft.as_ms()), itl, times.latency.as_ms());
    }

    /// A request without a figure that is limited is not good.
    fn count_good(&mut self, ttft: Option<f64>, itl: Option<f64>, latency: f64) {
        let Some(limits) = self.limits else { return };
        let keeps = |limit: Option<f64>, value: Option<f64>| {
            limit.is_none_or(|limit| value.is_some_and(|value| value <= limit))
        };
        let is_good =
            keeps(limits.ttft, ttft) && keeps(limits.tpot, itl) && keeps(limits.e2e, Some(latency));
        self.good += u64::from(is_good);
    }

    fn sort(&mut self) {
        let all = [
            &mut self.latency,
            &mut self.ttft,
            &mut self.ttfa,
            &mut self.second,
            &mut self.itl,
            &mut self.per_user,
            &mut self.input,
            &mut self.output,
        ];
        all.into_iter().for_each(Values::sort);
    }

    fn failed_count(&self) -> u64 {
        self.errors.values().map(|error| error.0).sum()
    }

    fn duration_s(&self) -> f64 {
        (self.last - self.first.unwrap_or_default()).as_secs()
    }

    fn metric_fields(&self) -> Fields {
        let mut fields = Fields::default();
        let seconds = self.duration_s();
        let mut scalar = |name: &str, unit: &str, value: f64| {
            fields.insert(name, json!({ "unit": unit, "avg": value }));
        };
        if seconds > 0.0 {
            let rate = |amount: f64| amount / seconds;
            scalar("request_throughput", "requests/sec", rate(self.ok as f64));
            scalar("output_token_throughput", "tokens/sec", rate(self.output.sum()));
            let tokens = self.input.sum() + self.output.sum();
            scalar("total_token_throughput", "tokens/sec", rate(tokens));
            if self.limits.is_some() {
                scalar("goodput", "requests/sec", rate(self.good as f64));
            }
        }
        scalar("benchmark_duration", "sec", seconds);
        scalar("request_count", "requests", self.ok as f64);
        let failed = self.failed_count();
        if failed > 0 {
            scalar("error_request_count", "requests", failed as f64);
        }
        let all = self.ok + failed;
        scalar("completed_request_count", "requests", all as f64);
        scalar("request_error_rate", "%", 100.0 * failed as f64 / all.max(1) as f64);
        if self.limits.is_some() {
            scalar("good_request_count", "requests", self.good as f64);
            scalar("good_request_fraction", "ratio", self.good as f64 / all.max(1) as f64);
        }
        scalar("total_isl", "tokens", self.input.sum());
        scalar("total_osl", "tokens", self.output.sum());
        for (name, unit, sample) in [
            ("request_latency", "ms", &self.latency as &dyn Ranked),
            ("time_to_first_token", "ms", &self.ttft),
            ("time_to_first_output_token", "ms", &self.ttfa),
            ("time_to_second_token", "ms", &self.second),
            ("inter_token_latency", "ms", &self.itl),
            ("inter_chunk_latency", "ms", &self.chunk),
            ("output_token_throughput_per_user", "tokens/sec/user", &self.per_user),
            ("input_sequence_length", "tokens", &self.input),
            ("output_sequence_length", "tokens", &self.output),
        ] {
            if sample.len() > 0 {
                fields.insert(name, distribution_json(sample, unit));
            }
        }
        fields
    }
}

/// Tokens after the first chunk; none if there are none.
fn tokens_after_first(record: &RequestRecord, output: u32) -> Option<f64> {
    let in_first = record.exchange.chunks.first().and_then(|chunk| chunk.tokens);
    let counted = in_first.filter(|n| *n > 0 && *n < output).unwrap_or(1);
    (output > 1).then(|| f64::from(output - counted))
}

fn distribution_json(sample: &dyn Ranked, unit: &str) -> Value {
    let mut fields = Map::new();
    fields.insert("unit".to_owned(), unit.into());
    fields.insert("avg".to_owned(), sample.mean().into());
    for percent in PERCENTILES {
        fields.insert(format!("p{percent}"), sample.percentile(percent).into());
    }
    fields.insert("min".to_owned(), sample.min().into());
    fields.insert("max".to_owned(), sample.max().into());
    fields.insert("std".to_owned(), sample.standard_deviation().into());
    fields.insert("count".to_owned(), sample.len().into());
    fields.insert("sum".to_owned(), sample.sum().into());
    Value::Object(fields)
}

/// What was asked, and how it ended.
fn head_fields(run: &ConvertedRun<'_>, tally: &AiperfTally) -> Fields {
    let facts = &run.summary.run;
    let mut fields = Fields::default();
    fields.insert("schema_version", SCHEMA);
    fields.insert("aiperf_version", format!("goodput-{}", facts.version));
    fields.insert("input_config", input_config(run, tally));
    fields.insert("run_info", json!({ "random_seed": facts.seed, "run_label": facts.workload }));
    fields.insert("was_cancelled", facts.state == RunState::Interrupted);
    fields.insert("is_complete", facts.state != RunState::Unfinished);
    if facts.state == RunState::Unfinished {
        fields.insert("incomplete_reason", "the run was killed");
    }
    let errors = tally.errors.iter().map(|(class, (count, code, message))| {
        let details = json!({ "code": code, "type": class, "message": message });
        json!({ "error_details": details, "count": count })
    });
    fields.insert("error_summary", errors.collect::<Vec<_>>());
    let first = tally.first.unwrap_or_default().as_secs();
    let (start, end) = (first, first + tally.duration_s());
    for (name, at) in [("start_time", start), ("end_time", end)] {
        if let Some(at) = instant::instant_after(&facts.started, at) {
            fields.insert(name, instant::to_isoformat(at));
        }
    }
    fields
}

/// The settings that would have asked for about this. Only what its reader takes is said.
fn input_config(run: &ConvertedRun<'_>, tally: &AiperfTally) -> Value {
    let target = &run.plan.target;
    let kind = match target.api {
        Api::Chat => "chat",
        Api::Completions => "completions",
    };
    let mut config = json!({
        "models": { "items": [{ "name": run.summary.run.model }] },
        "endpoint": {
            "urls": [url_of_target(&run.summary.run.target)],
            "type": kind,
            "streaming": target.stream,
            "use_server_token_count": run.summary.tokens.output_source == "usage",
        },
        "datasets": [{
            "name": "default",
            "type": "synthetic",
            "prompts": { "isl": mean_length(&tally.input), "osl": mean_length(&tally.output) },
        }],
        "phases": phases_json(run, tally),
    });
    let slos = tally.limits.map(|limits| {
        let each = [
            ("time_to_first_token", limits.ttft),
            ("inter_token_latency", limits.tpot),
            ("request_latency", limits.e2e),
        ];
        let known = each.into_iter().filter_map(|(name, limit)| Some((name, limit?)));
        known.map(|(name, limit)| (name.to_owned(), Value::from(limit))).collect::<Map<_, _>>()
    });
    if let (Some(slos), Some(config)) = (slos, config.as_object_mut()) {
        config.insert("slos".to_owned(), slos.into());
    }
    config
}

/// Where the engine inside the process was: its name is followed by its URL.
fn url_of_target(target: &str) -> &str {
    let inside = target.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inside.unwrap_or(target)
}

/// A length that is at least one.
fn mean_length(lengths: &Values) -> u64 {
    lengths.mean().map_or(1, |mean| mean.round().max(1.0) as u64)
}

fn phases_json(run: &ConvertedRun<'_>, tally: &AiperfTally) -> Value {
    let LoadWords { rate, cap } = run.load_words();
    let requests = (tally.ok + tally.failed_count()).max(1);
    let arrivals = match &run.plan.load.mode {
        Mode::Open { arrivals, .. } | Mode::Shaped { arrivals, .. } => Some(*arrivals),
        Mode::Replay { .. } | Mode::Closed { .. } => None,
    };
    let mut measured = match (rate, arrivals) {
        (RateWord::PerSecond(rate), Some(ArrivalProcess::Constant)) => {
            json!({ "type": "constant", "rate": rate })
        }
        (RateWord::PerSecond(rate), Some(ArrivalProcess::Gamma(cv))) => {
            json!({ "type": "gamma", "rate": rate, "smoothness": 1.0 / (cv * cv) })
        }
        (RateWord::PerSecond(rate), _) => json!({ "type": "poisson", "rate": rate }),
        (RateWord::Trace, _) => json!({ "type": "fixed_schedule" }),
        (RateWord::Infinite, _) => json!({ "type": "concurrency", "concurrency": requests }),
    };
    if let Some(phase) = measured.as_object_mut() {
        phase.insert("name".to_owned(), "profiling".into());
        phase.insert("kind".to_owned(), "profiling".into());
        phase.insert("requests".to_owned(), requests.into());
        if let Some(cap) = cap {
            phase.insert("concurrency".to_owned(), cap.into());
        }
    }
    let warm = run.summary.requests.warmup;
    let mut phases = vec![measured.clone()];
    if let Some(phase) = measured.as_object_mut().filter(|_| warm > 0) {
        phase.insert("name".to_owned(), "warmup".into());
        phase.insert("kind".to_owned(), "warmup".into());
        phase.insert("exclude_from_results".to_owned(), true.into());
        phase.insert("requests".to_owned(), warm.into());
        phases.insert(0, measured);
    }
    Value::Array(phases)
}
