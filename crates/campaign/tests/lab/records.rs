//! Requests of the simulated server as a run would have recorded them, and what comes of them.

use std::collections::BTreeMap;
use std::time::Duration;

use goodput_campaign::sweep::{Figures, Level, PointAsk, SweepPlan};
use goodput_model::{
    Api, ArrivalProcess, Chunk, ClassPlan, ConnectionPolicy, EndedBy, ErrorClass, Exchange,
    Failure, FailureStage, Http, Load, LoadExtent, Measure, Mode, Nanos, ObservePlan, Phase, Plan,
    Planned, Rate, RequestRecord, Stamps, Target, TokenCount, TokenSource, WorkloadPlan,
};
use goodput_stats::{RunFacts, Summary, analyze_run};
use goodput_testkit::{RecordBuilder, failure, token_chunk, usage};

use super::Server;
use super::load::{PointTrace, Request};

pub fn figures(server: &Server, plan: &SweepPlan, ask: &PointAsk, seen: &PointTrace) -> Figures {
    let mut figures = Figures::from_summary(&summary(server, plan, ask, seen));
    // No client is involved that could be at fault.
    figures.doubts.retain(|doubt| doubt != "not_observed");
    figures
}

pub fn summary(server: &Server, plan: &SweepPlan, ask: &PointAsk, seen: &PointTrace) -> Summary {
    let run = run_plan(server, plan, ask, seen);
    let is_lost = seen.ended_by == EndedBy::Hopeless;
    let sent = (0u64..).zip(&seen.requests).filter(|(_, request)| {
        // Given up at its end and not yet answered: stays out.
        !is_lost
            || request.refused
            || server.promised(request.first, request.last).is_some_and(|at| at <= seen.end)
            || seen.end - request.at >= server.limit
    });
    let records = || sent.clone().map(|(index, request)| record(index, request, seen.burn_in));
    analyze_run(&run, facts(seen.ended_by), records, &[], [])
}

fn record(index: u64, request: &Request, burn_in: Nanos) -> RequestRecord {
    let at = request.at;
    let (first, last) = (request.first, request.last);
    let chunk = |at: Nanos, tokens: u32| Chunk { tokens: Some(tokens), ..token_chunk(at) };
    let mut chunks: Vec<Chunk> = first.map(|at| chunk(at, 1)).into_iter().collect();
    if request.output_tokens > 1 {
        chunks.extend(last.map(|at| chunk(at, request.output_tokens - 1)));
    }
    let mut record = RecordBuilder::new(at)
        .index(index)
        .planned(Planned::new("chat", 1, Some(request.output_tokens)))
        .sent(at)
        .chunks(chunks)
        .input_tokens(1)
        .finish("length")
        .build();
    record.phase = if at < burn_in { Phase::Warmup } else { Phase::Measured };
    let exchange = &mut record.exchange;
    exchange.status = Some(if request.refused { 429 } else { 200 });
    exchange.output_tokens = usage(request.output_tokens);
    let refused = || failure(ErrorClass::Http(429), FailureStage::Headers);
    exchange.failure = request.refused.then(refused);
    let stamps = &mut exchange.stamps;
    (stamps.headers, stamps.first_byte) = (first.or(request.refused.then_some(at)), first);
    (stamps.last_token, stamps.done, stamps.ended) = (last, last, last.unwrap_or(at));
    record
}

fn run_plan(server: &Server, plan: &SweepPlan, ask: &PointAsk, seen: &PointTrace) -> Plan {
    let mode = match ask.level {
        Level::Rate(rate) => Mode::Open {
            rate: Rate::PerSecond(rate),
            arrivals: ArrivalProcess::Poisson,
            max_concurrency: None,
        },
        Level::Users(concurrency) => {
            Mode::Closed { concurrency, think_time: Duration::ZERO, pause_first: false }
        }
    };
    let mut run = goodput_testkit::test_plan();
    run.target.timeout = Duration::from_mins(10);
    (run.load.seed, run.load.mode, run.load.drain) = (ask.seed, mode, Duration::from_mins(10));
    run.load.duration = Some(Duration::from_secs_f64((seen.end - seen.burn_in).as_secs()));
    run.load.warmup = LoadExtent::Time(Duration::from_secs_f64(seen.burn_in.as_secs()));
    run.workload = WorkloadPlan::new(ClassPlan::synthetic("chat", server.input, server.output));
    run.measure = Measure::new(vec![50.0, 90.0, 99.0]);
    run.measure.slo.clone_from(&plan.slo);
    run.measure.attainment = plan.attainment;
    run
}

fn facts(ended_by: EndedBy) -> RunFacts {
    RunFacts { stream: true, ended_by: Some(ended_by), ..RunFacts::default() }
}
