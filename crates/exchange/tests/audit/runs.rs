//! Simulated runs whose every instant is known, as the result file of each tool.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use goodput_exchange::{ConvertedRun, parse_results, write_aiperf, write_sglang, write_vllm};
use goodput_model::random::{Domain, RandomStream};
use goodput_model::{
    Api, ArrivalProcess, ClassPlan, ErrorClass, Failure, FailureStage, LengthDistribution, Measure,
    Mode, Nanos, Plan, Planned, Rate, RequestRecord, WorkloadPlan,
};
use goodput_stats::{Audit, RunFacts, Summary, analyze_run, audit_reported, audit_run};
use goodput_testkit::{RecordBuilder, usage};
use serde_json::{Map, Value, json};

/// Answers of a server with 8 slots in a second: each takes 0.42 s, of which 40 ms are the first token's
/// and 19 ms each other one's, 20 on average.
const CAPACITY: f64 = 19.0;
const SLOTS: usize = 8;
/// Requests before those of the file: the queue has forgotten that it was empty.
const BEFORE: usize = 200;
/// JSON has no such numbers, but Python writes them: they stand as texts until the file is written.
pub(crate) const NOT_FINITE: [(&str, &str); 2] = [("@NaN", "NaN"), ("@Infinity", "Infinity")];

/// GuideLLM's distributions.
const GUIDELLM: [&str; 6] = [
    "request_latency",
    "time_to_first_token_ms",
    "time_per_output_token_ms",
    "inter_token_latency_ms",
    "prompt_token_count",
    "output_token_count",
];

/// Who wrote the file; `All` with every request in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    Vllm,
    VllmAll,
    Sglang,
    SglangAll,
    Aiperf,
    GenaiPerf,
    Guidellm,
    GuidellmAll,
    Ours,
}

impl Shape {
    pub(crate) const EVERY: [Self; 9] = [
        Self::Vllm,
        Self::VllmAll,
        Self::Sglang,
        Self::SglangAll,
        Self::Aiperf,
        Self::GenaiPerf,
        Self::Guidellm,
        Self::GuidellmAll,
        Self::Ours,
    ];

    /// The file that holds everything, and what is left of it here.
    fn parts(self) -> (Self, fn(&Scene, Value) -> Value) {
        match self {
            Self::Vllm => (Self::VllmAll, without_lists),
            Self::Sglang => (Self::SglangAll, without_lists),
            Self::GenaiPerf => (Self::Aiperf, genai_perf),
            Self::Guidellm => (Self::GuidellmAll, without_requests),
            Self::VllmAll | Self::SglangAll | Self::Aiperf | Self::GuidellmAll | Self::Ours => {
                (self, |_, file| file)
            }
        }
    }

    /// Its name in docs/audit.md.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vLLM",
            Self::VllmAll => "vLLM, details",
            Self::Sglang => "SGLang",
            Self::SglangAll => "SGLang, details",
            Self::Aiperf => "AIPerf",
            Self::GenaiPerf => "GenAI-Perf",
            Self::Guidellm => "GuideLLM",
            Self::GuidellmAll => "GuideLLM, details",
            Self::Ours => "goodput",
        }
    }
}

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Sent {
    /// By a share of the capacity.
    Poisson(f64),
    Evenly(f64),
    /// Eight at a time.
    InGroups(f64),
    /// This many users.
    Closed(u32),
    AtOnce,
}

/// One answer in seconds.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// From the send to the first token.
    pub(crate) first: f64,
    /// From the send to the first event, which carries no token.
    pub(crate) role: f64,
    /// Between tokens.
    pub(crate) gaps: Vec<f64>,
}

/// A run. Files say of it what `said` is, where that is not what was done.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) seed: u64,
    pub(crate) n: usize,
    pub(crate) sent: Sent,
    pub(crate) said: Option<Sent>,
    pub(crate) api: Api,
    /// Tokens of an event.
    pub(crate) per_event: usize,
    /// One in this many fails; none for zero.
    pub(crate) failing: usize,
    pub(crate) percentiles: Vec<f64>,
    /// What becomes of an answer, by the share of the run that is over.
    pub(crate) change: fn(f64, &mut Answer),
}

impl Scene {
    pub(crate) fn new(seed: u64, n: usize, sent: Sent) -> Self {
        Self {
            seed,
            n,
            sent,
            said: None,
            api: Api::Completions,
            per_event: 1,
            failing: 0,
            percentiles: vec![50.0, 90.0, 99.0],
            change: |_, _| {},
        }
    }

    fn answer(&self, random: &mut RandomStream, place: usize) -> Answer {
        let later = random.draw_exponential() * 20.0;
        let first = random.draw_log_normal(0.0392, 0.2);
        let gaps =
            (0..later.round() as usize).map(|_| random.draw_log_normal(0.0186, 0.2)).collect();
        let mut answer = Answer { first, role: first - 1e-5, gaps };
        if let Some(place) = place.checked_sub(BEFORE) {
            (self.change)(place as f64 / self.n as f64, &mut answer);
        }
        answer
    }

    /// The instants of an open loop: as vLLM does it, the rate is kept to the last request.
    fn arrivals(&self, random: &mut RandomStream) -> Vec<f64> {
        let all = BEFORE + self.n;
        let (rate, gap): (f64, &mut dyn FnMut(usize) -> f64) = match self.sent {
            Sent::Poisson(share) => (share * CAPACITY, &mut |_| random.draw_exponential()),
            Sent::Evenly(share) => (share * CAPACITY, &mut |_| 1.0),
            Sent::InGroups(share) => {
                (share * CAPACITY, &mut |place| if place % 8 == 0 { 8.0 } else { 0.001 })
            }
            Sent::AtOnce | Sent::Closed(_) => (CAPACITY, &mut |_| 0.0),
        };
        let mut at = 0.0;
        let mut instants: Vec<f64> = (0..all)
            .map(|place| {
                at += gap(place) / rate;
                at
            })
            .collect();
        let (begin, end) = (instants[BEFORE], instants[all - 1]);
        if end > begin {
            let stretch = (self.n - 1) as f64 / rate / (end - begin);
            for at in &mut instants {
                *at = (*at - begin) * stretch;
            }
        }
        instants
    }

    /// Send, answer with its wait in a queue, whether it fails.
    fn requests(&self) -> Vec<(f64, Answer, bool)> {
        let mut random = RandomStream::new(self.seed, Domain::Arrivals, 0);
        let mut free = vec![f64::NEG_INFINITY; SLOTS];
        let is_closed = matches!(self.sent, Sent::Closed(_));
        // These begin with everybody at once.
        let warm = if is_closed || self.sent == Sent::AtOnce { BEFORE } else { 0 };
        if let Sent::Closed(users) = self.sent {
            free = vec![0.0; users as usize];
        }
        let mut requests = Vec::new();
        for (place, at) in self.arrivals(&mut random).into_iter().enumerate().skip(warm) {
            let mut answer = self.answer(&mut random, place);
            let slot = free.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap();
            // A user sends as soon as its answer is there.
            let at = if is_closed { *slot + 1e-4 * random.next_unit() } else { at };
            let begin = slot.max(at);
            let wait = begin - at;
            answer.first += wait;
            answer.role += wait;
            let fails = self.failing > 0 && place % self.failing == 0;
            let whole = if fails { 0.3 } else { answer.first + answer.gaps.iter().sum::<f64>() };
            *slot = at + whole;
            requests.push((at, answer, fails));
        }
        requests.split_off(BEFORE - warm)
    }

    fn records(&self) -> Vec<RequestRecord> {
        let requests = self.requests();
        let begin = requests.iter().map(|(at, ..)| *at).fold(f64::INFINITY, f64::min);
        let mut random = RandomStream::new(self.seed, Domain::Lengths, 0);
        let mut record = |(index, (at, answer, fails)): (usize, (f64, Answer, bool))| {
            let input = 100 + random.next_below(400) as u32;
            let record = record(index as u64, at - begin, &answer, input, self.per_event);
            if fails { failed(record) } else { record }
        };
        requests.into_iter().enumerate().map(&mut record).collect()
    }

    fn plan(&self) -> Plan {
        let open = |rate, arrivals| Mode::Open { rate, arrivals, max_concurrency: None };
        let per_second = |share: f64| Rate::PerSecond(share * CAPACITY);
        let mode = match self.said.unwrap_or(self.sent) {
            Sent::Poisson(share) | Sent::InGroups(share) => {
                open(per_second(share), ArrivalProcess::Poisson)
            }
            Sent::Evenly(share) => open(per_second(share), ArrivalProcess::Constant),
            Sent::AtOnce => open(Rate::Infinite, ArrivalProcess::Poisson),
            Sent::Closed(concurrency) => {
                Mode::Closed { concurrency, think_time: Duration::ZERO, pause_first: false }
            }
        };
        plan(self, mode)
    }

    /// The file of each tool.
    pub(crate) fn files(&self, shapes: &[Shape]) -> Vec<(Shape, Value)> {
        let (plan, records) = (self.plan(), self.records());
        let mut written = BTreeMap::new();
        let mut file = |shape: Shape| {
            let (whole, _) = shape.parts();
            let write = || written_by(whole, &plan, &records, self);
            shape.parts().1(self, written.entry(whole).or_insert_with(write).clone())
        };
        shapes.iter().map(|shape| (*shape, file(*shape))).collect()
    }
}

/// A file with everything in it that its tool writes.
fn written_by(shape: Shape, plan: &Plan, records: &[RequestRecord], scene: &Scene) -> Value {
    let facts = RunFacts {
        version: "0".to_owned(),
        started: "2026-11-15T10:00:00Z".to_owned(),
        target: "http://x".to_owned(),
        model: "m".to_owned(),
        workload: "chat".to_owned(),
        api: "completions".to_owned(),
        stream: true,
        seed: 1,
        ..RunFacts::default()
    };
    // Of the summary the other shapes take names only.
    let some = if shape == Shape::Ours { records.len() } else { 1 };
    let few = || records[..some].iter().cloned();
    let summary = analyze_run(plan, facts, few, &[], std::iter::empty());
    let run = ConvertedRun { plan, summary: &summary };
    let all = || records.iter().cloned();
    let mut out = Vec::new();
    match shape {
        Shape::VllmAll => drop(write_vllm(&mut out, &run, &all, true).unwrap()),
        Shape::SglangAll => drop(write_sglang(&mut out, &run, &all, true).unwrap()),
        Shape::Aiperf => drop(write_aiperf(&mut out, &run, all()).unwrap()),
        Shape::GuidellmAll => return guidellm(scene, records),
        _ => return serde_json::to_value(&summary).unwrap(),
    }
    let text = String::from_utf8(out).unwrap().replace("Infinity", "\"@Infinity\"");
    serde_json::from_str(&text).unwrap()
}

/// vLLM's or SGLang's file without the lists.
fn without_lists(_: &Scene, mut file: Value) -> Value {
    file.as_object_mut().unwrap().retain(|_, value| !value.is_array());
    file
}

/// GuideLLM's file without the requests.
fn without_requests(_: &Scene, mut file: Value) -> Value {
    file["benchmarks"][0]["requests"] = json!({});
    file
}

/// What the audit says of a file.
pub(crate) fn audit(shape: Shape, file: &Value) -> Audit {
    if shape == Shape::Ours {
        let summary: Summary = serde_json::from_value(file.clone()).unwrap();
        return audit_run(&summary, None);
    }
    let text = NOT_FINITE.iter().fold(file.to_string(), |text, (ours, pythons)| {
        text.replace(&format!("\"{ours}\""), pythons)
    });
    audit_reported(&parse_results(Path::new("x.json"), text.as_bytes()).unwrap()[0])
}

fn at(seconds: f64) -> Nanos {
    Nanos::from_secs_f64(seconds)
}

fn record(index: u64, start: f64, answer: &Answer, input: u32, per_event: usize) -> RequestRecord {
    let mut now = start + answer.first;
    let mut chunks = vec![now];
    for gaps in answer.gaps.chunks(per_event) {
        now += gaps.iter().sum::<f64>();
        chunks.push(now);
    }
    // With several tokens in an event, the first has several too.
    let tokens = answer.gaps.len() + per_event;
    let mut record = RecordBuilder::new(at(start))
        .index(index)
        .planned(Planned::new("chat", input, None))
        .sent(at(start))
        .answered(at(start + answer.role), at(start + answer.role))
        .tokens(chunks.into_iter().map(at))
        .done(at(now + 5e-5))
        .input_tokens(input)
        .finish("stop")
        .build();
    record.exchange.output_tokens = usage(tokens as u32);
    record
}

/// The same, refused after 0.3 s.
fn failed(mut record: RequestRecord) -> RequestRecord {
    let exchange = &mut record.exchange;
    exchange.failure = Some(Failure {
        class: ErrorClass::Http(500),
        stage: FailureStage::Headers,
        message: "refused".to_owned(),
    });
    (exchange.status, exchange.output_tokens) = (Some(500), None);
    exchange.chunks.clear();
    let stamps = &mut exchange.stamps;
    stamps.ended = stamps.dispatched + at(0.3);
    (stamps.first_token, stamps.first_answer) = (None, None);
    (stamps.last_token, stamps.done) = (None, None);
    record
}

fn plan(scene: &Scene, mode: Mode) -> Plan {
    let mut plan = goodput_testkit::test_plan();
    (plan.target.api, plan.target.timeout) = (scene.api, Duration::from_mins(10));
    (plan.load.seed, plan.load.num_requests) = (scene.seed, Some(scene.n as u64));
    (plan.load.drain, plan.load.mode) = (Duration::from_mins(10), mode);
    plan.workload = WorkloadPlan::new(ClassPlan::synthetic(
        "chat",
        LengthDistribution::Uniform(100, 499),
        LengthDistribution::Exponential(21),
    ));
    plan.measure = Measure::new(scene.percentiles.clone());
    plan
}

/// GenAI-Perf's file: AIPerf kept its metrics, and added counts, sums, instants and phases.
fn genai_perf(scene: &Scene, mut file: Value) -> Value {
    let fields = file.as_object_mut().unwrap();
    let kept = ["request_", "time_to_", "inter_token", "output_", "input_sequence"];
    fields.retain(|name, _| {
        kept.iter().any(|kept| name.starts_with(kept)) && name != "request_error_rate"
    });
    for metric in fields.values_mut().filter_map(Value::as_object_mut) {
        metric.retain(|name, _| name != "count" && name != "sum");
    }
    let mut config = json!({ "model": ["m"], "endpoint_type": "completions", "streaming": true });
    match scene.said.unwrap_or(scene.sent) {
        Sent::Closed(users) => config["concurrency"] = users.into(),
        Sent::AtOnce => config["concurrency"] = scene.n.into(),
        Sent::Poisson(share) | Sent::Evenly(share) | Sent::InGroups(share) => {
            config["request_rate"] = (share * CAPACITY).into();
        }
    }
    fields.insert("input_config".to_owned(), config);
    file
}

/// One of GuideLLM's distributions; a value may weigh several samples.
fn distribution(mut samples: Vec<(f64, u64)>) -> Value {
    samples.sort_by(|a, b| a.0.total_cmp(&b.0));
    let count: u64 = samples.iter().map(|(_, weight)| weight).sum();
    let n = count.max(1) as f64;
    let total: f64 = samples.iter().map(|(value, weight)| value * *weight as f64).sum();
    let mean = total / n;
    let square = |(value, weight): &(f64, u64)| (value - mean).powi(2) * *weight as f64;
    let deviation = (samples.iter().map(square).sum::<f64>() / n).sqrt();
    let percentile = |share: f64| {
        let mut before = 0;
        let reached = |(_, weight): &&(f64, u64)| {
            before += weight;
            before as f64 >= share * n
        };
        samples.iter().find(reached).map(|(value, _)| *value)
    };
    let names = [("p05", 0.05), ("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)];
    let percentiles: Map<_, _> =
        names.iter().map(|(name, share)| ((*name).to_owned(), percentile(*share).into())).collect();
    json!({ "successful": {
        "mean": mean, "median": percentile(0.5), "std_dev": deviation, "count": count,
        "min": samples.first().map(|s| s.0), "max": samples.last().map(|s| s.0),
        "total_sum": total, "percentiles": percentiles,
    } })
}

/// How a run was loaded, in GuideLLM's words.
fn strategy(sent: Sent) -> Value {
    match sent {
        Sent::Poisson(share) | Sent::InGroups(share) => {
            json!({ "type_": "poisson", "rate": share * CAPACITY })
        }
        Sent::Evenly(share) => json!({ "type_": "constant", "rate": share * CAPACITY }),
        Sent::Closed(users) => json!({ "type_": "concurrent", "streams": users }),
        Sent::AtOnce => json!({ "type_": "throughput" }),
    }
}

/// Most requests in flight at one instant.
fn peak(times: &[(f64, f64)]) -> f64 {
    let changes = times.iter().flat_map(|(begin, end)| [(*begin, 1.0), (*end, -1.0)]);
    let mut changes: Vec<(f64, f64)> = changes.collect();
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let under_way = changes.iter().scan(0.0, |now, (_, change)| {
        *now += change;
        Some(*now)
    });
    under_way.fold(0.0, f64::max)
}

fn guidellm(scene: &Scene, records: &[RequestRecord]) -> Value {
    let epoch = 1_794_762_237.25;
    let (mut good, mut errored, mut times) = (Vec::new(), Vec::new(), Vec::new());
    let mut parts: [Vec<(f64, u64)>; 6] = Default::default();
    let (mut first, mut last) = (f64::INFINITY, 0.0_f64);
    for record in records {
        let stamps = &record.exchange.stamps;
        let begin = stamps.dispatched.as_secs();
        let end = stamps.last_token.unwrap_or(stamps.ended).as_secs();
        (first, last) = (first.min(begin), last.max(end));
        let mut request = json!({
            "request_start_time": epoch + begin, "request_end_time": epoch + end,
            "request_latency": end - begin,
        });
        let Some(token) = stamps.first_token.filter(|_| record.is_ok()) else {
            errored.push(request);
            continue;
        };
        times.push((begin, end));
        let tokens = u64::from(record.exchange.output_tokens.unwrap().n);
        let input = u64::from(record.exchange.input_tokens.unwrap().n);
        let (whole, ttft) = ((end - begin) * 1e3, (token.as_secs() - begin) * 1e3);
        let itl = (whole - ttft) / (tokens.max(2) - 1) as f64;
        parts[0].push((end - begin, 1));
        parts[1].push((ttft, 1));
        parts[2].push((whole / tokens as f64, tokens));
        if tokens > 1 {
            parts[3].push((itl, tokens - 1));
        }
        parts[4].push((input as f64, 1));
        parts[5].push((tokens as f64, 1));
        request["time_to_first_token_ms"] = ttft.into();
        request["prompt_tokens"] = input.into();
        request["output_tokens"] = tokens.into();
        good.push(request);
    }
    let duration = last - first;
    let totals = json!({
        "successful": good.len(), "errored": errored.len(), "incomplete": 0, "total": records.len()
    });
    let sum = |place: usize| parts[place].iter().map(|part| part.0).sum::<f64>();
    let rate = |amount: f64| json!({ "successful": { "mean": amount / duration } });
    let under_way = json!({ "mean": sum(0) / duration, "max": peak(&times) });
    let mut metrics = json!({
        "request_totals": totals,
        "requests_per_second": rate(good.len() as f64),
        "output_tokens_per_second": rate(sum(5)),
        "tokens_per_second": rate(sum(4) + sum(5)),
        "request_concurrency": { "successful": under_way },
    });
    for (name, part) in GUIDELLM.into_iter().zip(parts) {
        metrics[name] = distribution(part);
    }
    let said = scene.said.unwrap_or(scene.sent);
    json!({
        "metadata": { "guidellm_version": "0.8.1" },
        "benchmarks": [{
            "config": { "strategy": strategy(said), "backend": { "model": "m", "stream": true } },
            "scheduler_metrics": { "requests_made": totals },
            "metrics": metrics,
            "requests": { "successful": good, "errored": errored, "incomplete": [] },
            "warnings": [],
            "start_time": epoch + first, "end_time": epoch + last, "duration": duration,
            "warmup_duration": 0.0, "cooldown_duration": 0.0,
        }],
    })
}
