//! The parts of a run folder other than its records.

use goodput_model::{Plan, SystemFacts};
use goodput_record::{Clocks, Host, Manifest, State, TargetFacts, WorkloadFacts};
use serde_json::{Value, json};

/// A plan under this load that only has to be readable.
pub fn plan_for_load(load: &Value) -> serde_json::Result<Plan> {
    serde_json::from_value(json!({
        "schema": Plan::SCHEMA,
        "target": {
            "url": "http://127.0.0.1:1", "api": "chat", "stream": true, "usage": true,
            "http": "http1", "connections": "reuse", "timeout": "10m", "probe": false,
            "wait_ready": "0s", "api_key_env": "OPENAI_API_KEY", "insecure": false,
        },
        "load": load,
        "workload": {"name": "chat", "class": [{"name": "chat", "source": {"kind": "synthetic", "input": "500", "output": "100"}}]},
        "measure": {"percentiles": [50.0, 90.0, 99.0]},
    }))
}

/// A manifest in which nothing is known but how the run ended.
pub fn new_manifest(state: State) -> Manifest {
    let text = || "-".to_owned();
    Manifest {
        schema: Manifest::SCHEMA.to_owned(),
        version: text(),
        build: None,
        state,
        started: text(),
        ended: None,
        stopped_s: None,
        ended_by: None,
        command: String::new(),
        repeat: None,
        shard: None,
        shards: Vec::new(),
        host: Host {
            name: None,
            system: text(),
            cpu: text(),
            cpus: 1,
            fd_limit: 1024,
            cpu_quota: None,
        },
        target: TargetFacts {
            url: text(),
            route: text(),
            address: text(),
            model: text(),
            probe_ms: None,
            lookup: None,
        },
        clocks: Clocks { monotonic_ns: 0, unix_ns: 0 },
        clocks_end: None,
        epoch_ns: None,
        trace_nonce: None,
        ceiling: None,
        records: None,
        lost_records: 0,
        workload: WorkloadFacts::default(),
        system: SystemFacts::default(),
    }
}
