//! Requests of the simulated server as a run would have recorded them, and what comes of them.

use std::collections::BTreeMap;
use std::time::Duration;

use goodput_campaign::sweep::{Ask, Figures, Level, SweepPlan};
use goodput_model::{
    Api, Arrivals, Chunk, ClassPlan, ConnectionPolicy, EndedBy, ErrorClass, Exchange, Extent,
    Failure, Http, Load, Measure, Mode, Nanos, ObservePlan, Phase, Plan, Planned, Rate,
    RequestRecord, Stage, Stamps, Target, TokenCount, TokenSource, WorkloadPlan,
};
use goodput_stats::{RunFacts, Summary, analyse};

use super::Server;
use super::load::{Request, Seen};

pub fn figures(server: &Server, plan: &SweepPlan, ask: &Ask, seen: &Seen) -> Figures {
    let mut figures = Figures::of(&summary(server, plan, ask, seen));
    // There is no client here that could be at fault.
    figures.doubts.retain(|doubt| doubt != "not_observed");
    figures
}

pub fn summary(server: &Server, plan: &SweepPlan, ask: &Ask, seen: &Seen) -> Summary {
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
    analyse(&run, facts(seen.ended_by), records, &[], [])
}

fn record(index: u64, request: &Request, burn_in: Nanos) -> RequestRecord {
    let at = request.at;
    let (first, last) = (request.first, request.last);
    let chunk = |at: Nanos, tokens: u32| Chunk {
        at,
        tokens: Some(tokens),
        bytes: 3,
        choice: 0,
        coalesced: false,
        lag_us: None,
    };
    let mut chunks: Vec<Chunk> = first.map(|at| chunk(at, 1)).into_iter().collect();
    if request.output_tokens > 1 {
        chunks.extend(last.map(|at| chunk(at, request.output_tokens - 1)));
    }
    let refused =
        Failure { class: ErrorClass::Http(429), stage: Stage::Headers, message: String::new() };
    let count = |n: u32| Some(TokenCount { n, source: TokenSource::Usage });
    RequestRecord {
        index,
        phase: if at < burn_in { Phase::Warmup } else { Phase::Measured },
        worker: 0,
        scheduled: at,
        pacer_lag: None,
        cap_wait: Nanos::ZERO,
        planned: Planned::new("chat", 1, Some(request.output_tokens)),
        exchange: Exchange {
            stamps: Stamps {
                dispatched: at,
                sent_first: Some(at),
                sent_last: Some(at),
                headers: first.or(request.refused.then_some(at)),
                first_byte: first,
                first_token: first,
                first_answer: first,
                last_token: last,
                done: last,
                ended: last.unwrap_or(at),
                connect: None,
            },
            chunks,
            status: Some(if request.refused { 429 } else { 200 }),
            failure: request.refused.then_some(refused),
            finish: Some("length".to_owned()),
            input_tokens: count(1),
            output_tokens: count(request.output_tokens),
            ..Exchange::default()
        },
        prompt: None,
    }
}

fn run_plan(server: &Server, plan: &SweepPlan, ask: &Ask, seen: &Seen) -> Plan {
    let mode = match ask.level {
        Level::Rate(rate) => Mode::Open {
            rate: Rate::PerSecond(rate),
            arrivals: Arrivals::Poisson,
            max_concurrency: None,
        },
        Level::Users(concurrency) => {
            Mode::Closed { concurrency, think_time: Duration::ZERO, pause_first: false }
        }
    };
    let mut measure = Measure::of(vec![50.0, 90.0, 99.0]);
    measure.slo.clone_from(&plan.slo);
    measure.attainment = plan.attainment;
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
            timeout: Duration::from_mins(10),
            probe: true,
            wait_ready: Duration::ZERO,
            api_key_env: String::new(),
            headers: Vec::new(),
            extra_body: None,
            cacert: None,
            insecure: false,
        },
        load: Load {
            seed: ask.seed,
            duration: Some(Duration::from_secs_f64((seen.end - seen.burn_in).as_secs())),
            num_requests: None,
            warmup: Extent::Time(Duration::from_secs_f64(seen.burn_in.as_secs())),
            cooldown: Duration::ZERO,
            drain: Duration::from_mins(10),
            workers: 1,
            pin: false,
            mode,
        },
        workload: WorkloadPlan::of(ClassPlan::synthetic("chat", server.input, server.output)),
        measure,
        observe: ObservePlan::default(),
        system: BTreeMap::new(),
    }
}

fn facts(ended_by: EndedBy) -> RunFacts {
    RunFacts { stream: true, ended_by: Some(ended_by), ..RunFacts::default() }
}
