//! A run folder of many generated requests, to measure the cost of its report.
//!
//! `goodput-million FOLDER [REQUESTS [TOKENS [SHARDS]]]`: a million requests of about a hundred tokens
//! by default, 550 a second, of three classes and four workers, with first tokens after 50 to 550 ms,
//! gaps of 10 to 30 ms and a stall now and then. With shards the same requests lie in `FOLDER/0`,
//! `FOLDER/1` and so on, dealt out in turn, for `goodput merge`.

use std::path::Path;

use goodput_bench::{new_manifest, plan_for_load};
use goodput_model::{
    Chunk, ErrorClass, Exchange, Failure, FailureStage, HealthSample, HostSample, LoopLag, Nanos,
    Phase, Planned, RequestRecord, Shard, ShardFacts, Stamps, TokenCount, TokenSource,
};
use goodput_record::{RunFolder, State};
use serde_json::json;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Requests a second.
const RATE: u64 = 550;

/// Kinds of traffic.
const CLASSES: [&str; 3] = ["chat", "code", "search"];

/// Numbers that look random, the same every time (xorshift64).
struct Numbers(u64);

impl Numbers {
    fn random_below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn main() -> Outcome {
    let mut args = std::env::args().skip(1);
    let folder = args.next().ok_or("goodput-million FOLDER [REQUESTS [TOKENS [SHARDS]]]")?;
    let mut number = |otherwise: u64| args.next().map_or(Ok(otherwise), |text| text.parse());
    let (requests, tokens, shards) = (number(1_000_000)?, number(100)?, number(1)?);
    let seconds = requests.div_ceil(RATE);
    let mut plan = plan_for_load(&json!({
        "seed": 1, "duration": format!("{seconds}s"), "warmup": "0s", "cooldown": "0s",
        "drain": "1m", "workers": 4,
        "mode": {"kind": "open", "rate": format!("{RATE}/s"), "arrivals": "constant"},
    }))?;
    plan.measure.canary = false;
    plan.measure.slo = Some("ttft < 500ms, tpot < 25ms".parse()?);
    let mut logs = Vec::new();
    for index in 0..u32::try_from(shards)?.max(1) {
        let shard = Shard::new(index, u32::try_from(shards)?.max(1)).ok_or("too many shards")?;
        let mut manifest = new_manifest(State::Complete);
        manifest.shard = shard.is_part().then_some(ShardFacts { shard, fleet: None, clock: None });
        manifest.epoch_ns = Some(0);
        manifest.host.name = shard.is_part().then(|| format!("node-{index}"));
        let whole = Path::new(&folder).to_owned();
        let path = if shard.is_part() { whole.join(index.to_string()) } else { whole };
        logs.push(RunFolder::create(&path, &plan, &manifest)?.1);
    }
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for index in 0..requests {
        let place = (index % logs.len() as u64) as usize;
        let log = &mut logs[place].requests;
        log.append(&random_record(index, tokens, &mut numbers));
        if index / shards.max(1) % 64 == 0 {
            log.flush();
        }
    }
    let is_sharded = logs.len() > 1;
    for mut log in logs {
        for second in (1..=seconds).filter(|_| is_sharded) {
            log.samples.append(&health_sample(second));
            log.samples.flush();
        }
        log.samples.finish();
        if let Some(error) = log.requests.finish().error {
            return Err(error.into());
        }
    }
    Ok(())
}

/// What a client that is well sees of itself in a second: a beat of each worker every 20 ms, and idle
/// processors.
fn health_sample(second: u64) -> HealthSample {
    let beat = |k: u64| LoopLag {
        worker: (k % 4) as u32,
        due: Nanos::from_millis(1_000 * (second - 1) + k / 4 * 20),
        lag: Nanos(50_000 + 1_000 * (k % 7)),
    };
    let idle = Nanos::from_millis(3_600 * second);
    HealthSample {
        at: Nanos::from_millis(1_000 * second),
        host: HostSample { cpus: 4, idle, open_files: 600, ..HostSample::default() },
        beats: (0..200).map(beat).collect(),
        ..HealthSample::default()
    }
}

fn random_record(index: u64, about: u64, numbers: &mut Numbers) -> RequestRecord {
    let tokens = about / 2 + numbers.random_below(about + 1);
    let prompt = 100 + numbers.random_below(1_900) as u32;
    let class = CLASSES[(index % 3) as usize];
    let due = Nanos::from_micros(index * 1_000_000 / RATE);
    let mut at = due + Nanos::from_micros(50_000 + numbers.random_below(500_000));
    let first = at;
    let mut chunks = Vec::with_capacity(usize::try_from(tokens).unwrap_or(0));
    for token in 0..tokens {
        if token > 0 {
            let stall = if numbers.random_below(20_000) == 0 { 400_000 } else { 0 };
            at += Nanos::from_micros(10_000 + numbers.random_below(20_000) + stall);
        }
        let coalesced = false;
        chunks.push(Chunk { at, tokens: None, bytes: 6, choice: 0, coalesced, lag_us: Some(5) });
    }
    let failure = (numbers.random_below(500) == 0).then(|| Failure {
        class: ErrorClass::Http(503),
        stage: FailureStage::Headers,
        message: "overloaded".to_owned(),
    });
    let is_ok = failure.is_none();
    let seen = |at: Nanos| Some(at).filter(|_| is_ok);
    let count = |n: u64| Some(TokenCount { n: n as u32, source: TokenSource::Usage });
    RequestRecord {
        index,
        phase: Phase::Measured,
        worker: (index % 4) as u32,
        scheduled: due,
        pacer_lag: Some(Nanos(3_000)),
        cap_wait: Nanos::ZERO,
        planned: Planned::new(class, prompt, u32::try_from(tokens).ok()),
        exchange: Exchange {
            stamps: Stamps {
                dispatched: due,
                sent_first: Some(due + Nanos(120_000)),
                sent_last: Some(due + Nanos(150_000)),
                headers: Some(due + Nanos(900_000)),
                first_byte: seen(first),
                first_token: seen(first),
                first_answer: seen(first),
                last_token: seen(at),
                done: seen(at),
                ended: if is_ok { at } else { due + Nanos(900_000) },
                ..Stamps::default()
            },
            chunks: if is_ok { chunks } else { Vec::new() },
            status: Some(if is_ok { 200 } else { 503 }),
            finish: is_ok.then(|| "length".to_owned()),
            input_tokens: count(u64::from(prompt)).filter(|_| is_ok),
            output_tokens: count(tokens).filter(|_| is_ok),
            failure,
            body_bytes: 2_500,
            ..Exchange::default()
        },
        prompt: None,
    }
}
