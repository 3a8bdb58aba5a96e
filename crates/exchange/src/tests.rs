//! Requests whose every instant is known, in each shape.

mod shapes;
mod tables;

use std::time::Duration;

use goodput_model::{
    Api, Arrivals, Chunk, ClassPlan, ConnectionPolicy, ErrorClass, Exchange, Extent, Failure, Http,
    Lengths, Load, Measure, Mode, Nanos, ObservePlan, Phase, Plan, Planned, Rate, RequestRecord,
    Stage, Stamps, Target, TokenCount, TokenSource, WorkloadPlan,
};
use goodput_stats::{RunFacts, Summary, analyse};

fn ms(ms: f64) -> Nanos {
    Nanos::from_secs_f64(ms / 1e3)
}

/// Ten requests per second for two seconds, with an SLO that only vLLM's first request keeps.
fn plan() -> Plan {
    Plan {
        schema: Plan::SCHEMA.to_owned(),
        target: Target {
            url: "http://x".to_owned(),
            api: Api::Chat,
            stream: true,
            usage: true,
            model: None,
            http: Http::Http1,
            connections: ConnectionPolicy::Reuse,
            timeout: Duration::from_secs(10),
            probe: true,
            wait_ready: Duration::ZERO,
            api_key_env: String::new(),
            headers: Vec::new(),
            extra_body: None,
            cacert: None,
            insecure: false,
        },
        load: Load {
            seed: 1,
            duration: Some(Duration::from_secs(2)),
            num_requests: None,
            warmup: Extent::Requests(0),
            cooldown: Duration::ZERO,
            drain: Duration::from_secs(10),
            workers: 1,
            pin: false,
            mode: Mode::Open {
                rate: Rate::PerSecond(10.0),
                arrivals: Arrivals::Poisson,
                max_concurrency: None,
            },
        },
        workload: WorkloadPlan::of(ClassPlan::synthetic(
            "chat",
            Lengths::Fixed(100),
            Lengths::Fixed(3),
        )),
        measure: Measure {
            slo: Some("ttft < 90ms".parse().unwrap()),
            ..Measure::of(vec![50.0, 99.0])
        },
        observe: ObservePlan::default(),
        system: std::collections::BTreeMap::new(),
    }
}

fn chunk(at: Nanos) -> Chunk {
    Chunk { at, tokens: None, bytes: 3, choice: 0, coalesced: false, lag_us: None }
}

/// Let go `let_go` ms after it was due, the first byte and the chunks at these ms since, `done` at the
/// end.
fn record(index: u64, due: f64, let_go: f64, first_byte: f64, chunks: &[f64]) -> RequestRecord {
    let at = |since: f64| ms(due + since);
    let (first, last) = (chunks[0], chunks[chunks.len() - 1]);
    RequestRecord {
        index,
        phase: Phase::Measured,
        worker: 0,
        scheduled: ms(due),
        pacer_lag: None,
        cap_wait: Nanos::ZERO,
        planned: Planned::new("chat", 100, None),
        exchange: Exchange {
            stamps: Stamps {
                dispatched: at(let_go),
                sent_first: Some(at(let_go)),
                sent_last: Some(at(let_go)),
                headers: Some(at(first_byte)),
                first_byte: Some(at(first_byte)),
                first_token: Some(at(first)),
                first_answer: Some(at(first)),
                last_token: Some(at(last)),
                done: Some(at(last + 10.0)),
                ended: at(last + 10.0),
                connect: None,
            },
            chunks: chunks.iter().map(|since| chunk(at(*since))).collect(),
            status: Some(200),
            finish: Some("stop".to_owned()),
            input_tokens: Some(TokenCount { n: 100, source: TokenSource::Usage }),
            output_tokens: Some(TokenCount {
                n: u32::try_from(chunks.len()).unwrap(),
                source: TokenSource::Usage,
            }),
            ..Exchange::default()
        },
        prompt: None,
    }
}

/// One whose role comes 50 ms before its first token, one without, one that failed, and one of the
/// warm-up.
fn records() -> Vec<RequestRecord> {
    let role = record(0, 0.0, 1.0, 51.0, &[101.0, 121.0, 161.0]);
    let plain = record(1, 1000.0, 0.0, 200.0, &[200.0, 210.0]);
    let mut failed = record(2, 1200.0, 0.0, 200.0, &[200.0]);
    failed.exchange.failure = Some(Failure {
        class: ErrorClass::Http(500),
        stage: Stage::Headers,
        message: "=1+1, \"said\" the server".to_owned(),
    });
    failed.exchange.chunks.clear();
    failed.exchange.output_tokens = None;
    failed.exchange.status = Some(500);
    failed.exchange.stamps.ended = ms(1500.0);
    for stamp in [
        &mut failed.exchange.stamps.first_token,
        &mut failed.exchange.stamps.first_answer,
        &mut failed.exchange.stamps.last_token,
        &mut failed.exchange.stamps.done,
    ] {
        *stamp = None;
    }
    let mut warm = record(3, 5.0, 0.0, 900.0, &[900.0]);
    warm.phase = Phase::Warmup;
    vec![warm, role, plain, failed]
}

fn summary(plan: &Plan) -> Summary {
    let run = RunFacts {
        version: "0".to_owned(),
        started: "2026-11-15T10:00:00Z".to_owned(),
        target: "http://x".to_owned(),
        model: "m".to_owned(),
        workload: "chat".to_owned(),
        api: "chat".to_owned(),
        stream: true,
        seed: 1,
        ..RunFacts::default()
    };
    analyse(plan, run, || records().into_iter(), &[], std::iter::empty())
}
