//! A plan to change where a test needs another one.

use std::collections::BTreeMap;
use std::time::Duration;

use goodput_model::{
    Api, ArrivalProcess, ClassPlan, ConnectionPolicy, Http, LengthDistribution, Load, LoadExtent,
    Measure, Mode, ObservePlan, Plan, Rate, Target, WorkloadPlan,
};

/// Ten requests a second by a Poisson process, without an end and without a warm-up; prompts of 50
/// tokens and answers of 10, streamed by the chat API.
pub fn test_plan() -> Plan {
    Plan {
        schema: Plan::SCHEMA.to_owned(),
        target: test_target(),
        load: Load {
            seed: 1,
            duration: None,
            num_requests: None,
            warmup: LoadExtent::Requests(0),
            cooldown: Duration::ZERO,
            drain: Duration::from_secs(10),
            workers: 1,
            pin: false,
            mode: Mode::Open {
                rate: Rate::PerSecond(10.0),
                arrivals: ArrivalProcess::Poisson,
                max_concurrency: None,
            },
        },
        workload: WorkloadPlan::new(ClassPlan::synthetic(
            "chat",
            LengthDistribution::Fixed(50),
            LengthDistribution::Fixed(10),
        )),
        measure: Measure::new(vec![50.0, 99.0]),
        observe: ObservePlan::default(),
        system: BTreeMap::new(),
    }
}

fn test_target() -> Target {
    Target {
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
    }
}
