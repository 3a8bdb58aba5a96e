//! Requests whose every instant is known, in each shape.

mod shapes;
mod tables;

use std::time::Duration;

use goodput_model::{
    ClassPlan, ErrorClass, Failure, FailureStage, LengthDistribution, Nanos, Phase, Plan, Planned,
    RequestRecord, WorkloadPlan,
};
use goodput_stats::{RunFacts, Summary, analyze_run};
use goodput_testkit::RecordBuilder;

fn ms(ms: f64) -> Nanos {
    Nanos::from_secs_f64(ms / 1e3)
}

/// Ten requests per second for two seconds, with an SLO that only vLLM's first request keeps.
fn plan() -> Plan {
    let mut plan = goodput_testkit::test_plan();
    plan.load.duration = Some(Duration::from_secs(2));
    plan.workload = WorkloadPlan::new(ClassPlan::synthetic(
        "chat",
        LengthDistribution::Fixed(100),
        LengthDistribution::Fixed(3),
    ));
    plan.measure.slo = Some("ttft < 90ms".parse().unwrap());
    plan
}

/// Let go `let_go` ms after it was due, the first byte and the chunks at these ms since, `done` at the
/// end.
fn record(index: u64, due: f64, let_go: f64, first_byte: f64, chunks: &[f64]) -> RequestRecord {
    let at = |since: f64| ms(due + since);
    RecordBuilder::new(ms(due))
        .index(index)
        .planned(Planned::new("chat", 100, None))
        .dispatched(at(let_go))
        .sent(at(let_go))
        .answered(at(first_byte), at(first_byte))
        .tokens(chunks.iter().map(|since| at(*since)))
        .done(at(chunks[chunks.len() - 1] + 10.0))
        .input_tokens(100)
        .finish("stop")
        .build()
}

/// One whose role comes 50 ms before its first token, one without, one that failed, and one of the
/// warm-up.
fn records() -> Vec<RequestRecord> {
    let role = record(0, 0.0, 1.0, 51.0, &[101.0, 121.0, 161.0]);
    let plain = record(1, 1000.0, 0.0, 200.0, &[200.0, 210.0]);
    let mut failed = record(2, 1200.0, 0.0, 200.0, &[200.0]);
    failed.exchange.failure = Some(Failure {
        class: ErrorClass::Http(500),
        stage: FailureStage::Headers,
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
    analyze_run(plan, run, || records().into_iter(), &[], std::iter::empty())
}
