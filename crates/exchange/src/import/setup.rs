//! What free-form metadata says about the system under test.

use goodput_model::ReportedSetup;

use super::fields::ImportFields;

/// Fields by what they mean. Users name them as they like, so common names are tried in turn.
const HARDWARE: [&str; 8] =
    ["gpu", "gpu_type", "gpu_name", "hardware", "hw", "accelerator", "device_name", "gpu_model"];
const GPUS: [&str; 8] = [
    "gpus",
    "num_gpus",
    "gpu_count",
    "n_gpus",
    "tp",
    "tp_size",
    "tensor_parallel_size",
    "world_size",
];
const INTERCONNECT: [&str; 4] = ["interconnect", "nvlink", "network", "topology"];
const PRECISION: [&str; 5] = ["quantization", "quant", "precision", "dtype", "weight_dtype"];
const ENGINE: [&str; 8] = [
    "engine",
    "engine_version",
    "server_version",
    "vllm_version",
    "version",
    "image",
    "framework",
    "commit",
];
const FLAGS: [&str; 5] = ["server_args", "engine_args", "flags", "serve_args", "server_cmd"];
const DRIVER: [&str; 3] = ["driver", "driver_version", "gpu_driver"];
const PARALLELISM: [&str; 4] = ["tensor_parallel", "tensor_parallel_size", "tp", "tp_size"];
const LIMITS: [&str; 3] = ["max_model_len", "context_length", "max_seq_len"];
const PREFIX_CACHING: [&str; 3] = ["prefix_caching", "enable_prefix_caching", "prefix_cache"];
const UTILISATION: [&str; 3] = ["gpu_utilization", "kv_cache_usage", "gpu_util"];

/// The facts that `fields` states.
pub(super) fn read_setup(fields: &ImportFields<'_>) -> ReportedSetup {
    let first = |names: &[&str]| {
        let found = names.iter().find_map(|name| fields.scalar(name));
        found.filter(|text| !matches!(text.as_str(), "" | "null" | "none" | "None" | "auto"))
    };
    ReportedSetup {
        hardware: first(&HARDWARE),
        gpus: first(&GPUS).and_then(|text| text.parse().ok()),
        interconnect: first(&INTERCONNECT),
        precision: first(&PRECISION),
        engine: first(&ENGINE),
        flags: first(&FLAGS),
        utilisation: first(&UTILISATION),
        driver: first(&DRIVER),
        parallelism: first(&PARALLELISM).map(|n| format!("TP {n}")),
        limits: first(&LIMITS).map(|n| format!("max_model_len {n}")),
        prefix_caching: first(&PREFIX_CACHING),
        utilisation_lacks: None,
        model_revision: first(&["model_revision", "revision"]),
        batch_limit: first(&["max_num_seqs", "max_running_requests"])
            .map(|n| format!("sequences {n}")),
        queue_limit: first(&["max_queue", "max_queued_requests"]),
        batch: None,
        attention_backend: first(&["attention_backend"]),
        scheduling: first(&["scheduling", "schedule_policy", "scheduling_policy"]),
        network: first(&["network"]),
        storage: first(&["storage"]),
        logging: first(&["log_level"]).map(|level| format!("level {level}")),
    }
}
