//! GPUs and the host's memory and network, from looks to caveats.

use goodput_model::{GpuSample, HealthSample, HostSample, MachineMemory, Network, SystemFacts};

use super::*;
use crate::{ClientSummary, HostSummary};

/// A minute at ten requests a second, each of 40 and 11 tokens; every other one is slow.
fn analyzed(looks: impl Fn(f64) -> GpuSample) -> Summary {
    analyzed_all(|at| vec![looks(at)])
}

fn analyzed_all(looks: impl Fn(f64) -> Vec<GpuSample>) -> Summary {
    let records: Vec<_> = (0..600)
        .map(|i| record(i, i as f64 * 100.0, &[if i % 2 == 0 { 1.0 } else { 10.0 }; 10]))
        .collect();
    let mut plan = plan(Some(60), None, LoadExtent::Time(Duration::ZERO));
    plan.measure.slo = Some("e2e < 150ms".parse().unwrap());
    let samples: Vec<HealthSample> = (0..70)
        .map(|second| {
            let at = ms(f64::from(second) * 1e3);
            let available = (if second == 30 { 6 } else { 8 }) * 1_000_000_000;
            let sent = 1_000_000 * u64::from(second as u32);
            let host = HostSample {
                memory: Some(MachineMemory { total: 16_000_000_000, available }),
                network: Some(Network { received: 5 * sent, sent }),
                ..HostSample::default()
            };
            let looks = looks(f64::from(second)).into_iter();
            let gpus = looks.map(|look| GpuSample { at, ..look }).collect();
            HealthSample { at, host, gpus, ..HealthSample::default() }
        })
        .collect();
    let system = SystemFacts { gpu_idle_w: Some(100.0), ..SystemFacts::default() };
    let run = RunFacts { system, ..facts(RunState::Complete) };
    analyze_run(&plan, run, || records.iter().cloned(), &samples, [])
}

fn severity(summary: &Summary, code: &str) -> Option<Severity> {
    summary.caveats.iter().find(|caveat| caveat.code.name() == code).map(|c| c.severity)
}

#[test]
fn joules_of_a_token() {
    let summary = analyzed(|at| GpuSample { energy_j: Some(550.0 * at), ..GpuSample::default() });
    let energy = summary.gpu.as_ref().unwrap().energy.as_ref().unwrap();
    let near = |value: Option<f64>, expected: f64| {
        assert!((value.unwrap() / expected - 1.0).abs() < 0.01, "{value:?} {expected}");
    };
    // 550 W for 110 output tokens a second, 510 of both kinds, 55 of requests that kept the SLO.
    near(energy.joules_per.output_token, 5.0);
    near(energy.joules_per.total_token, 550.0 / 510.0);
    near(energy.joules_per.good_output_token, 10.0);
    near(energy.above_idle_joules_per.unwrap().output_token, 450.0 / 110.0);
    assert_eq!(energy.by, "counter");
    assert_eq!(severity(&summary, "gpu_energy_by_power"), None);
    assert_eq!(severity(&summary, "gpu_throttled"), None);
    let host = HostSummary {
        memory_total_gb: Some(16.0),
        memory_available_min_gb: Some(6.0),
        network_received_mb_s: Some(5.0),
        network_sent_mb_s: Some(1.0),
    };
    assert_eq!(summary.client.host, Some(host));
    // An older summary has no such field.
    let mut value = serde_json::to_value(&summary.client).unwrap();
    assert!(value.as_object_mut().unwrap().remove("host").is_some());
    assert_eq!(serde_json::from_value::<ClientSummary>(value).unwrap().host, None);
}

#[test]
fn what_holds_a_gpu_back_is_said() {
    // Every eighth look, or every twelfth; the clock is 1500 MHz then, 1900 else.
    let held = |every: f64, reason: &'static str, busy: f64| {
        analyzed(move |at| {
            let is_held = at % every == 0.0;
            GpuSample {
                busy: Some(busy),
                power_w: Some(500.0),
                sm_clock_mhz: Some(if is_held { 1500.0 } else { 1900.0 }),
                throttled: Some(is_held.then(|| reason.to_owned()).into_iter().collect()),
                ..GpuSample::default()
            }
        })
    };
    let summary = held(8.0, "thermal", 0.9);
    assert_eq!(severity(&summary, "gpu_throttled"), Some(Severity::Warn));
    assert_eq!(severity(&summary, "gpu_energy_by_power"), Some(Severity::Info));
    let found = summary.caveats.iter().find(|c| c.code.name() == "gpu_throttled").unwrap();
    // At 8 of 60 looks.
    for part in ["GPU 0", "heat", "13 %", "1847 MHz", "1900 at most"] {
        assert!(found.message.contains(part), "{part} in {}", found.message);
    }
    for (reason, expected) in [
        ("power", Severity::Info),
        ("power_brake", Severity::Warn),
        ("hw_slowdown", Severity::Warn),
    ] {
        assert_eq!(severity(&held(1.0, reason, 0.9), "gpu_throttled"), Some(expected), "{reason}");
    }
    assert_eq!(severity(&held(12.0, "thermal", 0.9), "gpu_throttled"), None, "5 of 60");
    assert_eq!(severity(&held(1.0, "app_clocks", 0.9), "gpu_throttled"), None, "as was set");
    assert_eq!(severity(&held(1.0, "power", 0.0), "gpu_throttled"), None, "idle");
}

#[test]
fn heat_is_said_before_the_power_limit() {
    let both = analyzed(|at| GpuSample {
        busy: Some(1.0),
        throttled: Some(
            ["power", "thermal"].map(str::to_owned)[..if at % 5.0 == 0.0 { 2 } else { 1 }].to_vec(),
        ),
        ..GpuSample::default()
    });
    let found = both.caveats.iter().find(|c| c.code.name() == "gpu_throttled").unwrap();
    assert_eq!(found.severity, Severity::Warn);
    assert!(found.message.contains("heat in 20 %"), "{}", found.message);
}

#[test]
fn gpus_without_work_are_said() {
    // Two GPUs at 300 W, two at 100 W.
    let four = |last_busy: f64, meters: u32| {
        analyzed_all(move |at| {
            let look = |gpu: u32| {
                let (watts, busy) = if gpu < 2 { (300.0, 0.9) } else { (100.0, last_busy) };
                let energy_j = (gpu < meters).then_some(watts * at);
                GpuSample { gpu, busy: Some(busy), energy_j, ..GpuSample::default() }
            };
            (0..4).map(look).collect()
        })
    };
    let message = |summary: &Summary| {
        let found = summary.caveats.iter().find(|c| c.code.name() == "gpus_idle");
        found.map(|caveat| (caveat.severity, caveat.message.clone()))
    };
    let said = |text: &str| Some((Severity::Info, text.to_owned()));
    let share = "2 of 4 GPUs were idle; they used 25 % of the energy";
    assert_eq!(message(&four(0.0, 4)), said(share));
    assert_eq!(message(&four(0.0, 3)), said("2 of 4 GPUs were idle"));
    assert_eq!(message(&four(0.01, 4)), None);
}
