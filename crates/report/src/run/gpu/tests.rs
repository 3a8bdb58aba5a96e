//! Two GPUs whose every figure is written down here, and none.

use serde_json::{Value, json};

use crate::tests::page;

fn level(mean: f64, max: f64) -> Value {
    json!({"n": 60, "mean": mean, "min": mean / 2.0, "p50": mean, "p99": max, "max": max})
}

fn section(page: &str) -> Vec<&str> {
    let from = page.lines().skip_while(|line| !line.starts_with("GPU"));
    let mut section: Vec<_> = from
        .take_while(|line| !line.starts_with("Throughput") && !line.starts_with("System"))
        .collect();
    if section.last().is_some_and(|line| line.is_empty()) {
        section.pop();
    }
    section
}

#[test]
fn devices_and_what_a_token_cost() {
    let page = page(|summary| {
        summary["run"]["system"] = json!({"gpu_driver": "570.1", "gpus": [{"name": "x"}]});
        let device = |busy: f64| {
            json!({"name": "NVIDIA H200", "energy_j": 1.0, "throttled": {},
                "levels": {"busy": level(busy, 1.0), "dram_active": level(0.4, 0.5),
                    "memory_gb": level(100.0, 120.0), "power_w": level(500.0, 700.0),
                    "sm_clock_mhz": level(1980.0, 1980.0), "temperature_c": level(60.0, 71.0)}})
        };
        let mut held = device(0.5);
        held["throttled"] = json!({"power_cap": 0.125, "sw_thermal": 0.0});
        held["levels"].as_object_mut().unwrap().remove("dram_active");
        summary["gpu"] = json!({
            "source": "nvml", "devices": [device(0.9), held],
            "energy": {"joules": 60_000.0, "by": "counter", "seconds": 60.0, "mean_w": 1000.0,
                "idle_w": 150.0,
                "joules_per": {"output_token": 1.5, "total_token": 0.25, "good_output_token": 12.0},
                "above_idle_joules_per": {"output_token": 1.275, "total_token": null,
                    "good_output_token": null}},
        });
    });
    let expected = "\
GPU         2 × NVIDIA H200, by nvml, driver 570.1

            busy    DRAM  memory   power      SM      SM    heat
          mean %  mean %  max GB  mean W min MHz max MHz  max °C
GPU 0      90.00   40.00   120.0   500.0     990    1980   71.00
GPU 1      50.00       –   120.0   500.0     990    1980   71.00
Throttled   GPU 1: power_cap at 12.5 % of the samples
Energy      60,000 J in 60.0 s by the GPUs' counters: 1,000 W on average, 150.0
            W idle; GPUs only, without the rest of the machine
Joules      1.5000 per output token, 0.2500 per prompt or output token, 12.0 per
            output token of requests that kept the SLO
            above idle: 1.2750 per output token";
    assert_eq!(section(&page), expected.lines().collect::<Vec<_>>(), "{page}");
}

#[test]
fn gpus_without_samples_take_a_line_at_most() {
    let absent = |target: &str| {
        page(|summary| {
            summary["run"]["target"] = json!(target);
            summary["run"]["system"] = json!({"gpu_absent": "no driver\u{1b}"});
        })
    };
    assert_eq!(section(&absent("http://x")), ["GPU         no data: no driver\\u{1b}"]);
    assert!(section(&absent("mock")).is_empty());
    assert!(section(&page(|_| {})).is_empty());
}

#[test]
fn throttling_that_is_not_told_is_not_none() {
    let held_back = |devices: Value| {
        let page = page(|summary| {
            summary["gpu"] = json!({"source": "nvml", "devices": devices, "energy": null});
        });
        let line = page.lines().find_map(|line| line.strip_prefix("Throttled   "));
        line.map(str::to_owned)
    };
    let device = |throttled: Value| json!({"name": "x", "energy_j": null, "levels": {}, "throttled": throttled});
    let (untold, free) = (device(Value::Null), device(json!({})));
    let power = device(json!({"power": 0.5}));
    assert_eq!(held_back(json!([free])), None);
    assert_eq!(held_back(json!([untold, untold])).unwrap(), "not reported");
    let some = "GPU 0: power at 50.0 % of the samples; not reported for 1 GPU";
    assert_eq!(held_back(json!([power, untold])).unwrap(), some);
}
