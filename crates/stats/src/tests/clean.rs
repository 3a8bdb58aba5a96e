//! Clean runs in simulated time: what a caveat says about a server and a client without fault is a
//! false alarm.

use std::collections::BTreeMap;
use std::sync::Arc;

use goodput_model::{Beat, CanaryReading, Delay, HostSample, Sample, ThreadSample, Throttled};
use goodput_random::{Domain, Stream};
use goodput_sim::{Delays, Engine, Job, Model, Output, Profile};

use super::*;

/// A server of some slots whose requests take 1.06 s on average: 100 ms to the first token, and
/// then 48 tokens, 20 ms each.
const SLOTS: u32 = 16;
const TOKENS: u32 = 49;
const SERVICE_S: f64 = 0.1 + 0.02 * (TOKENS - 1) as f64;
const WARMUP_S: u64 = 30;

/// A clean run of so many seconds at this share of what the server can do.
#[derive(Clone, Copy)]
struct Clean {
    seconds: u64,
    utilisation: f64,
    slots: u32,
    seed: u64,
}

impl Clean {
    fn rate(self) -> f64 {
        self.utilisation * f64::from(self.slots) / SERVICE_S
    }

    fn plan(self) -> Plan {
        let mut plan = plan(Some(self.seconds), None, Extent::Time(Duration::from_secs(WARMUP_S)));
        plan.load.mode = Mode::Open {
            rate: Rate::PerSecond(self.rate()),
            arrivals: Arrivals::Poisson,
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
            max_model_len: 1_000,
            default_tokens: TOKENS,
            answer: None,
            image_tokens: 0,
            engine: Model::Delays(delays),
        };
        let mut engine = Engine::new(&profile, self.seed, |_, _| 0);
        let mut stream = Stream::new(self.seed, Domain::Arrivals, 0);
        let end = ms((WARMUP_S + self.seconds) as f64 * 1e3);
        let (mut records, mut outputs, mut at) = (Vec::new(), Vec::new(), 0.0);
        let prompt: Arc<[u32]> = Arc::from([1]);
        loop {
            at += stream.exponential() / self.rate();
            let due = ms(at * 1e3);
            if due >= end {
                break;
            }
            engine.advance(due, &mut outputs);
            note(&mut records, &mut outputs);
            let id = records.len() as u64;
            let job = Job { id, prompt: prompt.clone(), output_tokens: TOKENS, answer_seed: id };
            engine.submit(due, job).unwrap();
            records.push(begun(id, due));
        }
        while let Some(at) = engine.next() {
            engine.advance(at, &mut outputs);
            note(&mut records, &mut outputs);
        }
        records
    }

    fn summary(self) -> Summary {
        let records = self.records();
        let end_s = (WARMUP_S + self.seconds) as f64;
        let facts = facts(RunState::Complete);
        analyse(&self.plan(), facts, || records.iter().cloned(), &healthy(end_s), [])
    }
}

fn begun(id: u64, due: Nanos) -> RequestRecord {
    let mut record = record(id, due.as_ms(), &[]);
    record.scheduled = due;
    record.phase = if due < ms(WARMUP_S as f64 * 1e3) { Phase::Warmup } else { Phase::Measured };
    record.exchange.chunks.clear();
    record.exchange.head_lag_us = Some(20);
    record.exchange.output_tokens = Some(TokenCount { n: TOKENS, source: TokenSource::Usage });
    let stamps = &mut record.exchange.stamps;
    stamps.dispatched = due;
    let sent = Some(due + Nanos(20_000));
    (stamps.sent_first, stamps.sent_last) = (sent, sent);
    record
}

fn note(records: &mut [RequestRecord], outputs: &mut Vec<Output>) {
    for output in outputs.drain(..) {
        let exchange = &mut records[output.id as usize].exchange;
        exchange.chunks.push(Chunk { lag_us: Some(20), ..chunk(output.at) });
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
fn healthy(end_s: f64) -> Vec<Sample> {
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
    };
    let sample = |second: u32| {
        let at = ms(f64::from(second) * 1e3);
        let canary = CanaryReading { due: at, slip: Nanos(5_000), errors_ns: vec![15_000; 3] };
        let beat = Beat { worker: 0, due: at, lag: Nanos(50_000) };
        Sample { at, host: host(f64::from(second)), beats: vec![beat], canary: vec![canary] }
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

/// True of every such run: fewer than 1,000 requests for p99 (or 100,000 for p99.9).
const EXPECTED: [&str; 1] = ["few_samples"];

#[test]
fn a_clean_run_raises_nothing() {
    for (seed, utilisation) in [(100, 0.3), (200, 0.6), (300, 0.8)] {
        let clean = Clean { seconds: 180, utilisation, slots: SLOTS, seed };
        let summary = clean.summary();
        let codes: Vec<_> = summary.caveats.iter().map(|c| c.code.name()).collect();
        assert!(codes.iter().all(|code| EXPECTED.contains(code)), "{utilisation}: {codes:?}");
        assert_eq!(summary.verdict, Verdict::Valid);
    }
}

/// The table of docs/design/014-caveats.md:
/// `cargo test --release -p goodput-stats -- --ignored --nocapture how_often`.
#[test]
#[ignore = "a quarter of an hour"]
fn how_often_clean_runs_raise_a_caveat() {
    for (runs, seconds, slots) in [(1000, 180, SLOTS), (1000, 180, 64), (200, 1800, SLOTS)] {
        for utilisation in [0.3, 0.6, 0.8] {
            let raised = alarms(runs, Clean { seconds, utilisation, slots, seed: 1 });
            println!("{runs} runs of {seconds} s, {slots} slots, {utilisation}: {raised:?}");
            for (code, count) in raised.iter().filter(|(code, _)| !EXPECTED.contains(*code)) {
                assert!(*count <= runs / 100, "{code}: {count} of {runs}");
            }
        }
    }
}
