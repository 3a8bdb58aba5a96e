//! Folders of shards whose every record is known.

use std::fs;
use std::path::Path;

use goodput_model::{
    CanaryReading, Chunk, HealthSample, HostSample, LoopLag, Nanos, Plan, Planned, RequestRecord,
    Shard, ShardFacts, SystemFacts,
};
use goodput_record::{Clocks, Host, Manifest, RunFolder, State, TargetFacts, WorkloadFacts};
use goodput_testkit::{RecordBuilder, token_chunk};
use serde_json::{Value, json};

use crate::support::{Outcome, Session};

pub(crate) const RATE: f64 = 20.0;
pub(crate) const SECONDS: u64 = 12;

/// Numbers that look random, the same every time (xorshift64).
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

pub(crate) fn plan(rate: f64) -> Plan {
    serde_json::from_value(json!({
        "schema": Plan::SCHEMA,
        "target": {
            "url": "http://127.0.0.1:1", "api": "chat", "stream": true, "usage": true,
            "http": "http1", "connections": "reuse", "timeout": "10m", "probe": false,
            "wait_ready": "0s", "api_key_env": "OPENAI_API_KEY", "insecure": false,
        },
        "load": {
            "seed": 1, "duration": format!("{SECONDS}s"), "warmup": "0s", "cooldown": "0s",
            "drain": "1m", "workers": 1,
            "mode": {"kind": "open", "rate": format!("{rate}/s"), "arrivals": "poisson"},
        },
        "workload": {"name": "chat", "class": [{"name": "chat", "source": {
            "kind": "synthetic", "input": "40", "output": "10"}}]},
        "measure": {"percentiles": [50.0, 90.0, 99.0]},
    }))
    .unwrap()
}

pub(crate) fn manifest(shard: Option<Shard>) -> Manifest {
    let text = |text: &str| text.to_owned();
    let name = shard.map(|shard| format!("node-{}", shard.index()));
    Manifest {
        schema: text(Manifest::SCHEMA),
        version: text("0.1.0"),
        build: None,
        state: State::Complete,
        started: text("2026-01-01T00:00:00Z"),
        ended: None,
        stopped_s: None,
        ended_by: None,
        command: String::new(),
        repeat: None,
        shard: shard.map(|shard| ShardFacts { shard, fleet: None, clock: None }),
        shards: Vec::new(),
        host: Host {
            name,
            system: text("Linux"),
            cpu: text("CPU"),
            cpus: 4,
            fd_limit: 1024,
            cpu_quota: None,
        },
        target: TargetFacts {
            url: text("http://127.0.0.1:1"),
            route: text("/v1/chat/completions"),
            address: text("127.0.0.1:1"),
            model: text("m"),
            probe_ms: None,
            lookup: None,
        },
        clocks: Clocks { monotonic_ns: 0, unix_ns: 1_000_000_000_000 },
        clocks_end: None,
        epoch_ns: Some(0),
        trace_nonce: None,
        ceiling: None,
        records: None,
        lost_records: 0,
        workload: WorkloadFacts { hash: text("abc"), ..WorkloadFacts::default() },
        system: SystemFacts::default(),
    }
}

/// A good request: ten tokens, the first after about 100 ms.
pub(crate) fn record(index: u64, due: Nanos, numbers: &mut Numbers) -> RequestRecord {
    let mut at = due + Nanos::from_micros(80_000 + numbers.below(40_000));
    let first = at;
    let mut chunks = Vec::new();
    for token in 0..10 {
        at += Nanos::from_micros(if token == 0 { 0 } else { 5_000 + numbers.below(3_000) });
        let lag_us = Some(numbers.below(40) as u32);
        chunks.push(Chunk { bytes: 4, lag_us, ..token_chunk(at) });
    }
    let sent = due + Nanos(100_000);
    let mut record = RecordBuilder::new(due)
        .index(index)
        .planned(Planned::new("chat", 40, Some(10)))
        .sent(sent)
        .answered(sent + Nanos(500_000), first)
        .chunks(chunks)
        .input_tokens(40)
        .finish("length")
        .build();
    record.pacer_lag = Some(Nanos(2_000));
    record.exchange.head_lag_us = Some(3);
    record
}

/// A Poisson schedule, each request with its answer, in the order in which they ended.
pub(crate) fn records(seed: u64) -> Vec<RequestRecord> {
    let mut numbers = Numbers(seed);
    let (mut at, mut all) = (0.0, Vec::new());
    loop {
        let uniform = (numbers.below(1 << 32) as f64 + 0.5) / (1u64 << 32) as f64;
        at -= uniform.ln() / RATE;
        if at >= SECONDS as f64 {
            break;
        }
        // Whole microseconds, and no two requests at one: their order is then known.
        let index = all.len() as u64;
        let due = Nanos::from_micros((at * 1e6) as u64);
        all.push(record(index, due, &mut numbers));
    }
    all.sort_by_key(|record| record.exchange.stamps.ended);
    all.dedup_by_key(|record| record.exchange.stamps.ended);
    all
}

/// What a client saw of itself: a beat and a canary each second, late by so much.
pub(crate) fn samples(worker: u32, host: bool, lag_ms: u64) -> Vec<HealthSample> {
    let look = |second: u64| HealthSample {
        at: Nanos::from_millis(1_000 * second + u64::from(worker)),
        host: HostSample {
            cpus: u32::from(host) * 4,
            open_files: u64::from(host) * 9,
            idle: Nanos::from_millis(u64::from(host) * 4_000 * second),
            ..HostSample::default()
        },
        beats: vec![LoopLag {
            worker: if host { 0 } else { worker },
            due: Nanos::from_millis(1_000 * second - 500),
            lag: Nanos::from_millis(lag_ms),
        }],
        canary: vec![CanaryReading {
            due: Nanos::from_millis(1_000 * second - 400),
            slip: Nanos(1_000),
            errors_ns: vec![1_000, 2_000, 1_500],
        }],
        ..HealthSample::default()
    };
    (1..=SECONDS).map(look).collect()
}

pub(crate) fn write(
    path: &Path,
    (plan, manifest): (&Plan, &Manifest),
    records: &[RequestRecord],
    samples: &[HealthSample],
) {
    let (_, mut logs) = RunFolder::create(path, plan, manifest).unwrap();
    for record in records {
        logs.requests.append(record);
    }
    for sample in samples {
        logs.samples.append(sample);
    }
    assert!(logs.requests.finish().error.is_none() && logs.samples.finish().error.is_none());
}

/// One run, dealt out over folders `0`, `1`, …, which a test may change.
pub(crate) struct Fleet {
    pub(crate) session: Session,
    of: u32,
    pub(crate) records: Vec<RequestRecord>,
}

impl Fleet {
    /// In turn.
    pub(crate) fn new(of: u32) -> Self {
        Self::changed(of, |_, _, _| {})
    }

    pub(crate) fn changed(
        of: u32,
        change: impl Fn(&mut Plan, &mut Manifest, &mut Vec<HealthSample>),
    ) -> Self {
        let fleet = Self { session: Session::new(), of, records: records(7) };
        for index in 0..of {
            let own = |record: &&RequestRecord| record.index % u64::from(of) == u64::from(index);
            let own: Vec<_> = fleet.records.iter().filter(own).cloned().collect();
            fleet.write(index, &own, &change);
        }
        fleet
    }

    pub(crate) fn write(
        &self,
        index: u32,
        records: &[RequestRecord],
        change: impl Fn(&mut Plan, &mut Manifest, &mut Vec<HealthSample>),
    ) {
        let mut manifest = manifest(Shard::new(index, self.of));
        let (mut plan, mut samples) = (plan(RATE), samples(index, true, 0));
        change(&mut plan, &mut manifest, &mut samples);
        write(&self.session.path(&index.to_string()), (&plan, &manifest), records, &samples);
    }

    pub(crate) fn merge(&self, folders: impl IntoIterator<Item = u32>, more: &[&str]) -> Outcome {
        let folders: Vec<String> = folders.into_iter().map(|index| index.to_string()).collect();
        let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
        self.session.run(&[&["merge"], &folders[..], &["--out", "out", "--json"], more].concat())
    }

    /// The numbers of a merge that came to its end with this code.
    pub(crate) fn merged(&self, folders: impl IntoIterator<Item = u32>, code: i32) -> Value {
        let outcome = self.merge(folders, &[]);
        assert_eq!(outcome.code, Some(code), "{} {}", outcome.stderr, outcome.stdout);
        let found: Value = serde_json::from_str(&outcome.stdout).unwrap();
        let kept = fs::read_to_string(self.session.path("out/summary.json")).unwrap();
        assert_eq!(outcome.stdout, kept, "what is printed is what is kept");
        found
    }
}
