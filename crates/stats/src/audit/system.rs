//! What is known about the system behind a run of ours: by the user's word, by the server's, by the
//! GPUs' and by what was seen.

use goodput_model::{ReportedSetup, SystemFacts};

use super::words::{number_text, percent_text};
use crate::summary::{GpuDevice, Summary};

/// Checks about hardware and engine.
pub(super) const CHECKS: [&str; 19] = [
    "model_revision",
    "batch_limit",
    "batch_size",
    "queue_limit",
    "attention_backend",
    "scheduling",
    "network",
    "storage",
    "logging",
    "hardware",
    "driver",
    "precision",
    "engine",
    "parallelism",
    "max_lengths",
    "prefix_caching",
    "engine_flags",
    "per_gpu_throughput",
    "utilisation",
];

/// The system in the words of other tools' files.
pub(super) fn reported_setup(summary: &Summary) -> ReportedSetup {
    let system = &summary.run.system;
    let fact = |names: &[&str]| system.fact(names).map(str::to_owned);
    let first = system.gpus.first();
    let own = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let count = system.fact(&["gpu_count", "gpus", "num_gpus"]);
    // The driver also lists GPUs without work.
    let busy = busy_gpus(summary).count();
    let seen = Some(if busy > 0 { busy } else { system.gpus.len() } as u64).filter(|n| *n > 0);
    ReportedSetup {
        hardware: fact(&["gpu", "gpu_type", "gpu_name", "hardware", "accelerator"])
            .or_else(|| first.and_then(|gpu| own(&gpu.name))),
        gpus: count.and_then(|text| text.parse().ok()).or(seen),
        interconnect: fact(&["interconnect", "nvlink", "topology"])
            .or_else(|| first.and_then(|gpu| own(&gpu.interconnect))),
        precision: join_facts(system, &[("", "quantization"), ("", "precision"), ("", "dtype")]),
        engine: engine_name(system),
        flags: fact(&["engine_flags", "server_args", "flags"]),
        utilisation: utilization_text(summary),
        driver: fact(&["driver", "gpu_driver", "driver_version"])
            .or_else(|| own(&system.gpu_driver)),
        parallelism: join_facts(
            system,
            &[
                ("TP ", "tensor_parallel"),
                ("PP ", "pipeline_parallel"),
                ("DP ", "data_parallel"),
                ("EP ", "expert_parallel"),
            ],
        ),
        limits: join_facts(
            system,
            &[
                ("sequences of ", "max_model_len"),
                ("batches of sequences ", "max_num_seqs"),
                ("of tokens ", "max_batched_tokens"),
            ],
        ),
        prefix_caching: fact(&["prefix_caching", "enable_prefix_caching"])
            .or_else(|| cache_hits_text(summary)),
        utilisation_lacks: missing_utilization(summary),
        model_revision: fact(&["model_revision", "revision"]),
        batch_limit: join_facts(
            system,
            &[("sequences ", "max_num_seqs"), ("tokens ", "max_batched_tokens")],
        ),
        queue_limit: fact(&["max_queue", "queue_limit"]),
        batch: batch_text(summary),
        attention_backend: fact(&["attention_backend"]),
        scheduling: fact(&["scheduling", "scheduling_policy", "schedule_policy"])
            .or_else(|| system.settings().remove("schedule_policy")),
        network: fact(&["network"]),
        storage: fact(&["storage"]),
        logging: logging_text(system),
    }
}

/// The GPUs that had work in the window, as far as they were sampled.
fn busy_gpus(summary: &Summary) -> impl Iterator<Item = &GpuDevice> {
    let devices = summary.gpu.iter().flat_map(|gpu| &gpu.devices);
    devices.filter(|device| !device.was_idle())
}

/// Facts with a word before each.
fn join_facts(system: &SystemFacts, facts: &[(&str, &str)]) -> Option<String> {
    let one =
        |(word, name): &(&str, &str)| system.fact(&[name]).map(|value| format!("{word}{value}"));
    let all: Vec<_> = facts.iter().filter_map(one).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Name and version; a page of metrics names the engine too.
fn engine_name(system: &SystemFacts) -> Option<String> {
    let by_metrics = system.metrics.iter().map(|page| page.engine.as_str());
    let name = system.fact(&["engine"]).or_else(|| by_metrics.into_iter().find(|e| !e.is_empty()));
    let version = system.fact(&["engine_version", "version"]);
    // A name without a version is half of the answer only.
    Some(format!("{} {}", name?, version?))
}

/// A cache that answered is on.
fn cache_hits_text(summary: &Summary) -> Option<String> {
    let counted = summary.server.as_ref().and_then(|server| server.prefix_hit_rate_counted);
    let observed = summary.cache.as_ref().and_then(|cache| cache.observed);
    let share = counted.or(observed).filter(|share| *share > 0.0)?;
    Some(format!("on: {} of the prompt tokens came from it", percent_text(share)))
}

/// How much the engine logs: its level, and whether it logs each request.
fn logging_text(system: &SystemFacts) -> Option<String> {
    let stated = system.fact(&["logging"]).map(str::to_owned);
    stated.or_else(|| join_facts(system, &[("level ", "log_level"), ("requests ", "log_requests")]))
}

/// How many sequences the batch had, as the server reports it.
fn batch_text(summary: &Summary) -> Option<String> {
    let levels = &summary.server.as_ref()?.levels;
    let level = levels.get("batch_size").or_else(|| levels.get("running"))?;
    Some(format!("{} on average, {} at most", number_text(level.mean), number_text(level.max)))
}

/// Of the three figures that tell which resource is scarce, those that were not sampled.
fn missing_utilization(summary: &Summary) -> Option<String> {
    let has = |names: &[&str]| {
        busy_gpus(summary).any(|device| names.iter().any(|name| device.levels.contains_key(*name)))
    };
    let kv = summary.server.as_ref().is_some_and(|server| server.levels.contains_key("kv_usage"));
    let all = [
        (has(&["busy", "sm_active"]), "GPU"),
        (has(&["dram_active"]), "memory bandwidth"),
        (kv, "KV cache"),
    ];
    let lacking: Vec<_> = all.iter().filter(|(is_there, _)| !is_there).map(|one| one.1).collect();
    (!lacking.is_empty()).then(|| lacking.join(", "))
}

/// How busy things were, as far as they were sampled.
fn utilization_text(summary: &Summary) -> Option<String> {
    let mut parts = Vec::new();
    for (name, word) in
        [("busy", "GPU busy"), ("sm_active", "SM active"), ("dram_active", "DRAM active")]
    {
        let means: Vec<f64> =
            busy_gpus(summary).filter_map(|device| Some(device.levels.get(name)?.mean)).collect();
        if !means.is_empty() {
            let mean = means.iter().sum::<f64>() / means.len() as f64;
            parts.push(format!("{word} {}", percent_text(mean)));
        }
    }
    let kv = summary.server.as_ref().and_then(|server| server.levels.get("kv_usage"));
    parts.extend(kv.map(|kv| format!("KV cache {}", percent_text(kv.mean))));
    (!parts.is_empty()).then(|| parts.join(", ") + " on average")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use goodput_model::{GpuFacts, LoadExtent, MetricsSource};

    use super::*;
    use crate::audit::{Item, Status, audit_run};
    use crate::summary::{GpuSummary, LevelSummary, ServerSummary};
    use crate::tests::{plan, summary};

    fn facts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// What the checks about hardware and engine say of a run.
    fn said(change: impl FnOnce(&mut Summary)) -> Vec<Item> {
        let mut run = summary(&plan(None, Some(10), LoadExtent::Requests(0)), &[]);
        run.run.target = "http://x".to_owned();
        run.throughput.output_tokens_per_s = Some(100.0);
        change(&mut run);
        let items = audit_run(&run, None).items;
        CHECKS
            .iter()
            .flat_map(|check| items.iter().filter(move |item| item.check == *check))
            .cloned()
            .collect()
    }

    #[test]
    fn each_missing_fact_has_a_flag() {
        let items = said(|_| {});
        assert_eq!(items.len(), CHECKS.len());
        for item in &items {
            assert_eq!(item.status, Status::Missing, "{}", item.check);
            let flag = match item.check.as_str() {
                "utilisation" => "--gpu",
                "batch_size" => "--metrics-url",
                _ => "--meta ",
            };
            assert!(item.advice.contains(flag), "{}: {}", item.check, item.advice);
        }
        // A simulated engine runs on no hardware.
        assert_eq!(said(|run| run.run.target = "mock:ttft=5ms".to_owned()), []);
        let elsewhere = facts(&[("engine", "goodput mock")]);
        assert_eq!(said(|run| run.run.system.found = elsewhere), []);
    }

    /// Everything is known, by one source or another.
    fn tell_everything(run: &mut Summary) {
        let level = |mean: f64| LevelSummary { mean, max: mean, ..LevelSummary::default() };
        let system = &mut run.run.system;
        let gpu = GpuFacts {
            name: "NVIDIA H200".to_owned(),
            interconnect: "18 NVLinks".to_owned(),
            ..GpuFacts::default()
        };
        system.gpus = vec![gpu; 2];
        system.gpu_driver = "570.1".to_owned();
        let (url, engine) = ("http://x/metrics".to_owned(), "vllm".to_owned());
        system.metrics = vec![MetricsSource { url, engine }];
        system.found = facts(&[
            ("engine_version", "0.32.0"),
            ("dtype", "bfloat16"),
            ("tensor_parallel", "2"),
            ("max_model_len", "4096"),
            ("engine_flags", "enforce_eager=true schedule_policy=lpm"),
            ("model_revision", "0e9e39f"),
            ("max_num_seqs", "64"),
            ("max_queue", "512"),
            ("attention_backend", "FLASHINFER"),
            ("log_level", "info"),
        ]);
        system.said = facts(&[
            ("dtype", "fp8"),
            ("gpu", "H200 SXM"),
            ("gpu_count", "4"),
            ("network", "25GbE"),
            ("log_requests", "false"),
        ]);
        let device = |busy: f64| GpuDevice {
            levels: [("busy".to_owned(), level(busy))].into(),
            ..GpuDevice::default()
        };
        run.gpu =
            Some(GpuSummary { devices: vec![device(0.5), device(0.9)], ..GpuSummary::default() });
        run.server = Some(ServerSummary {
            levels: [
                ("kv_usage".to_owned(), level(0.25)),
                ("running".to_owned(), LevelSummary { max: 16.0, ..level(12.0) }),
            ]
            .into(),
            prefix_hit_rate_counted: Some(0.5),
            ..ServerSummary::default()
        });
    }

    #[test]
    fn what_is_known_is_stated_by_the_user_first() {
        let items = said(tell_everything);
        let evidence: Vec<_> =
            items.iter().map(|item| (item.check.as_str(), item.evidence.as_str())).collect();
        assert_eq!(
            evidence,
            [
                ("model_revision", "0e9e39f"),
                ("batch_limit", "sequences 64"),
                ("batch_size", "12 on average, 16 at most"),
                ("queue_limit", "512"),
                ("attention_backend", "FLASHINFER"),
                ("scheduling", "lpm"),
                ("network", "25GbE"),
                ("storage", "not stated"),
                ("logging", "level info, requests false"),
                ("hardware", "H200 SXM, 4 GPUs, 18 NVLinks"),
                ("driver", "570.1"),
                ("precision", "fp8"),
                ("engine", "vllm 0.32.0"),
                ("parallelism", "TP 2"),
                ("max_lengths", "sequences of 4096, batches of sequences 64"),
                ("prefix_caching", "on: 50 % of the prompt tokens came from it"),
                ("engine_flags", "the file holds settings of the server"),
                ("per_gpu_throughput", "100 output tokens/s on 4 GPUs: 25 each"),
                (
                    "utilisation",
                    "GPU busy 70 %, KV cache 25 % on average; not stated: memory bandwidth"
                ),
            ]
        );
        let missing = items.iter().filter(|item| item.status != Status::Ok);
        let missing: Vec<_> = missing.map(|item| item.check.as_str()).collect();
        assert_eq!(missing, ["storage", "utilisation"]);
    }

    #[test]
    fn gpus_without_work_do_not_serve() {
        let per_gpu = |busy: &[Option<f64>]| {
            let items = said(|run| {
                run.run.system.gpus = vec![GpuFacts::default(); busy.len()];
                let device = |busy: &Option<f64>| {
                    let level =
                        busy.map(|b| LevelSummary { mean: b, max: b, ..Default::default() });
                    let levels =
                        level.map(|level| ("busy".to_owned(), level)).into_iter().collect();
                    GpuDevice { levels, ..GpuDevice::default() }
                };
                let devices = busy.iter().map(device).collect();
                run.gpu = Some(GpuSummary { devices, ..GpuSummary::default() });
            });
            let text = |check: &str| {
                let item = items.iter().find(|item| item.check == check);
                item.map(|item| item.evidence.clone()).unwrap_or_default()
            };
            (text("per_gpu_throughput"), text("utilisation"))
        };
        let (rate, busy) = per_gpu(&[Some(0.0), Some(0.8), Some(0.0), Some(0.6)]);
        assert_eq!(rate, "100 output tokens/s on 2 GPUs: 50 each");
        assert!(busy.starts_with("GPU busy 70 % on average; "), "{busy}");
        // Where this is unknown, or none was seen at work, all of them count.
        for unknown in [[None; 4], [Some(0.0); 4]] {
            assert_eq!(per_gpu(&unknown).0, "100 output tokens/s on 4 GPUs: 25 each");
        }
    }
}
