//! Clean runs in simulated time: what a caveat says about a server and a client without fault is a
//! false alarm.

use std::collections::BTreeMap;
use std::sync::Arc;

use goodput_model::random::{Domain, RandomStream};
use goodput_model::{
    CanaryReading, Delay, HealthSample, HostSample, LoopLag, ThreadSample, Throttled,
};
use goodput_sim::{Delays, EngineProfile, Output, Profile, SimEngine, SimJob};
use goodput_testkit::token_chunk;

use super::*;

/// A server that never changes, and a Poisson load that it carries.
#[derive(Clone, Copy)]
struct Clean {
    seconds: u64,
    warmup_s: u64,
    utilisation: f64,
    slots: u32,
    answers: Answers,
    seed: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Answers {
    /// 49 tokens: 1.06 s.
    Short,
    /// 400 on average, exponential: 8.1 s. Queues take long to forget.
    Long,
}

impl Answers {
    fn mean(self) -> u32 {
        if self == Self::Short { 49 } else { 400 }
    }

    fn draw(self, seed: u64, id: u64) -> u32 {
        let mut stream = RandomStream::new(seed, Domain::Lengths, id);
        match self {
            Self::Short => 49,
            Self::Long => 1 + (stream.draw_exponential() * 399.0) as u32,
        }
    }
}

impl Clean {
    /// A tenth of a second to the first token, then 20 ms each.
    fn rate(self) -> f64 {
        let service_s = 0.1 + 0.02 * f64::from(self.answers.mean() - 1);
        self.utilisation * f64::from(self.slots) / service_s
    }

    fn plan(self) -> Plan {
        let mut plan =
            plan(Some(self.seconds), None, LoadExtent::Time(Duration::from_secs(self.warmup_s)));
        plan.load.mode = Mode::Open {
            rate: Rate::PerSecond(self.rate()),
            arrivals: ArrivalProcess::Poisson,
            max_concurrency: None,
        };
        plan.target.timeout = Duration::from_mins(10);
        plan
    }

    /// Poisson arrivals at a server that never changes; the client is on time.
    fn records(self) -> Vec<RequestRecord> {
        let delays = Delays {
            ttft: Delay::LogNormal(Duration::from_millis(88), 0.5),
            itl: Delay::Exponential(Duration::from_millis(20)),
            slots: self.slots,
            max_queue: None,
        };
        let profile = Profile {
            about: String::new(),
            model: String::new(),
            max_model_len: 100_000,
            default_tokens: 1,
            answer: None,
            image_tokens: 0,
            engine: EngineProfile::Delays(delays),
        };
        let mut engine = SimEngine::new(&profile, self.seed, |_, _| 0);
        let mut stream = RandomStream::new(self.seed, Domain::Arrivals, 0);
        let start = ms(self.warmup_s as f64 * 1e3);
        let end = start + ms(self.seconds as f64 * 1e3);
        let (mut records, mut outputs, mut at) = (Vec::new(), Vec::new(), 0.0);
        let prompt: Arc<[u32]> = Arc::from([1]);
        loop {
            at += stream.draw_exponential() / self.rate();
            let due = ms(at * 1e3);
            if due >= end {
                break;
            }
            engine.advance(due, &mut outputs);
            note(&mut records, &mut outputs);
            let id = records.len() as u64;
            let output_tokens = self.answers.draw(self.seed, id);
            let job = SimJob { id, prompt: prompt.clone(), output_tokens, answer_seed: id };
            engine.submit(due, job).unwrap();
            let phase = if due < start { Phase::Warmup } else { Phase::Measured };
            records.push(RequestRecord { phase, ..begun(id, due, output_tokens) });
        }
        while let Some(at) = engine.next() {
            engine.advance(at, &mut outputs);
            note(&mut records, &mut outputs);
        }
        records
    }

    fn summary(self) -> Summary {
        let records = self.records();
        let end_s = (self.warmup_s + self.seconds) as f64;
        let facts = facts(RunState::Complete);
        analyze_run(&self.plan(), facts, || records.iter().cloned(), &healthy(end_s), [])
    }
}

fn begun(id: u64, due: Nanos, tokens: u32) -> RequestRecord {
    let mut record = record(id, due.as_ms(), &[]);
    record.scheduled = due;
    record.exchange.chunks.clear();
    record.exchange.head_lag_us = Some(20);
    record.exchange.output_tokens = Some(TokenCount { n: tokens, source: TokenSource::Usage });
    let stamps = &mut record.exchange.stamps;
    stamps.dispatched = due;
    let sent = Some(due + Nanos(20_000));
    (stamps.sent_first, stamps.sent_last) = (sent, sent);
    record
}

fn note(records: &mut [RequestRecord], outputs: &mut Vec<Output>) {
    for output in outputs.drain(..) {
        let exchange = &mut records[output.id as usize].exchange;
        exchange.chunks.push(Chunk { lag_us: Some(20), ..token_chunk(output.at) });
        let stamps = &mut exchange.stamps;
        if output.total_tokens == 1 {
            let at = Some(output.at);
            (stamps.headers, stamps.first_byte) = (at, at);
            (stamps.first_token, stamps.first_answer) = (at, at);
        }
        stamps.last_token = Some(output.at);
        (stamps.done, stamps.ended) = (Some(output.at), output.at);
    }
}

/// A client with time to spare, to the end of the run.
fn healthy(end_s: f64) -> Vec<HealthSample> {
    let host = |at_s: f64| HostSample {
        threads: vec![ThreadSample {
            name: "worker-0".to_owned(),
            cpu: ms(at_s * 100.0),
            waited: ms(at_s),
            preempted: at_s as u64,
        }],
        throttled: Some(Throttled::default()),
        steal: Nanos::ZERO,
        cpus: 2,
        idle: ms(at_s * 1_800.0),
        open_files: 20,
        ..HostSample::default()
    };
    let sample = |second: u32| {
        let at = ms(f64::from(second) * 1e3);
        let canary = CanaryReading { due: at, slip: Nanos(5_000), errors_ns: vec![15_000; 3] };
        let beat = LoopLag { worker: 0, due: at, lag: Nanos(50_000) };
        HealthSample {
            at,
            host: host(f64::from(second)),
            beats: vec![beat],
            canary: vec![canary],
            ..HealthSample::default()
        }
    };
    (0..=end_s as u32 + 1).map(sample).collect()
}

/// How often each caveat was raised in `runs` clean runs.
fn alarms(runs: u64, clean: Clean) -> BTreeMap<&'static str, u64> {
    let mut raised = BTreeMap::new();
    for run in 0..runs {
        let summary = Clean { seed: clean.seed + run, ..clean }.summary();
        for caveat in summary.caveats {
            *raised.entry(caveat.code.name()).or_default() += 1;
        }
    }
    raised
}

/// Short answers from 16 slots for three minutes.
fn short_answers(utilisation: f64, seed: u64) -> Clean {
    Clean { seconds: 180, warmup_s: 30, utilisation, slots: 16, answers: Answers::Short, seed }
}

/// True of these runs, and so no false alarm: fewer than 1,000 requests where slots are few; at 80 %
/// a queue that makes neighbors alike, and TTFT of those who waited and those who did not.
const EXPECTED: [&str; 3] = ["few_samples", "tail_unreliable", "bimodal"];

#[test]
fn a_clean_run_raises_nothing() {
    for (seed, utilisation) in [(100, 0.3), (200, 0.6), (300, 0.8)] {
        let summary = short_answers(utilisation, seed).summary();
        let codes: Vec<_> = summary.caveats.iter().map(|c| c.code.name()).collect();
        assert!(codes.iter().all(|code| EXPECTED.contains(code)), "{utilisation}: {codes:?}");
        assert_eq!(summary.verdict, Verdict::Valid);
    }
}

/// One run in a hundred, two for a cold start (docs/design/013-steady-state.md), and three standard
/// errors.
fn rarely(name: &str, runs: u64, clean: &dyn Fn(f64) -> Clean) {
    for utilisation in [0.3, 0.6, 0.8] {
        let raised = alarms(runs, clean(utilisation));
        println!("{runs} runs, {name}, {utilisation}: {raised:?}");
        for (code, count) in raised.iter().filter(|(code, _)| !EXPECTED.contains(*code)) {
            let rate = if *code == "cold_start" { 0.02 } else { 0.01 };
            let error = (runs as f64 * rate * (1.0 - rate)).sqrt();
            assert!(*count as f64 <= runs as f64 * rate + 3.0 * error, "{code}: {count} of {runs}");
        }
    }
}

/// The table of docs/design/014-caveats.md:
/// `cargo test --release -p goodput-stats -- --ignored --nocapture how_often`.
#[test]
#[ignore = "several minutes"]
fn how_often_clean_runs_raise_a_caveat() {
    let of = |utilisation| short_answers(utilisation, 1);
    rarely("16 slots", 300, &of);
    rarely("64 slots", 300, &|u| Clean { slots: 64, ..of(u) });
}

#[test]
#[ignore = "several minutes"]
fn how_often_clean_half_hours_raise_a_caveat() {
    let half_hour = |u| Clean { seconds: 1800, ..short_answers(u, 1) };
    rarely("16 slots, half an hour", 300, &half_hour);
}

/// The same where answers take 8 s and differ in length: a queue remembers for minutes.
#[test]
#[ignore = "several minutes"]
fn how_often_clean_runs_of_long_answers_raise_a_caveat() {
    let long = |utilisation| Clean {
        seconds: 600,
        warmup_s: 120,
        slots: 64,
        answers: Answers::Long,
        ..short_answers(utilisation, 1)
    };
    rarely("64 slots, long answers", 100, &long);
}
