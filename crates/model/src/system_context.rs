//! What decides the speed of a server: its settings under names of ours, and a summary of them for
//! the head of a page.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::SystemFacts;

/// Facts from a server's own pages that decide its speed. Other facts of those pages say what it is
/// called or how long it runs. What the user states always counts.
const DECISIVE: [&str; 25] = [
    "attention_backend",
    "data_parallel",
    "driver",
    "dtype",
    "engine",
    "engine_version",
    "expert_parallel",
    "gpu",
    "kv_cache_dtype",
    "kv_cache_tokens",
    "log_level",
    "log_requests",
    "max_batched_tokens",
    "max_model_len",
    "max_num_seqs",
    "max_queue",
    "model_path",
    "model_revision",
    "pipeline_parallel",
    "prefix_caching",
    "quantization",
    "speculative",
    "max_concurrent_requests",
    "scheduling",
    "tensor_parallel",
];

/// The fact in which the settings of an engine stand together, as `name=value name=value`.
const FLAGS: &str = "engine_flags";

/// What several settings are together: the name under which all of them are meant, and their names.
const GROUPS: [(&str, &[&str]); 6] = [
    ("engine", &["engine", "engine_version"]),
    ("hardware", &["gpu", "gpu_type", "gpu_count", "interconnect", "driver", "gpu_memory"]),
    ("model", &["model_path", "model_revision", "model_size"]),
    ("precision", &["precision", "dtype", "quantization", "kv_cache_dtype"]),
    ("parallelism", &["tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel"]),
    ("logging", &["log_level", "log_requests", "disable_log_requests", "logging"]),
];

/// Whether a setting is meant by this name: its own, or that of the group that it belongs to.
pub fn is_setting_meant(name: &str, setting: &str) -> bool {
    let group = GROUPS.iter().find(|(group, _)| group.eq_ignore_ascii_case(name));
    setting.eq_ignore_ascii_case(name)
        || group.is_some_and(|(_, settings)| settings.contains(&setting))
}

impl SystemFacts {
    /// Everything that is known to decide the server's speed, by name: what the user states before
    /// what the server reports, and that before what its GPUs and its metrics page show. Each of
    /// the engine's flags is a setting of its own. Foreign text.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for (facts, is_stated) in [(&self.said, true), (&self.found, false)] {
            for (name, value) in facts {
                if name == FLAGS {
                    add_flags(value, &mut all);
                } else if (is_stated || DECISIVE.contains(&name.as_str())) && !value.is_empty() {
                    all.entry(name.clone()).or_insert_with(|| value.clone());
                }
            }
        }
        let mut seen = |name: &str, value: &str| {
            if !value.is_empty() {
                all.entry(name.to_owned()).or_insert_with(|| value.to_owned());
            }
        };
        if let Some(page) = self.metrics.iter().find(|page| !page.engine.is_empty()) {
            seen("engine", &page.engine);
        }
        if let Some(gpu) = self.gpus.first() {
            seen("gpu", &gpu.name);
            seen("gpu_count", &self.gpus.len().to_string());
            seen("interconnect", &gpu.interconnect);
        }
        seen("driver", &self.gpu_driver);
        all
    }
}

/// The settings of a text of flags. What is not `name=value` is one setting as a whole.
fn add_flags(text: &str, all: &mut BTreeMap<String, String>) {
    let pairs: Option<Vec<_>> = text.split_whitespace().map(|flag| flag.split_once('=')).collect();
    match pairs {
        Some(pairs) => {
            for (name, value) in pairs {
                let name = name.trim_start_matches('-').replace('-', "_");
                all.entry(name).or_insert_with(|| value.to_owned());
            }
        }
        None => {
            all.entry(FLAGS.to_owned()).or_insert_with(|| text.to_owned());
        }
    }
}

/// What a reader has to know about the system behind a figure. A part that is not stated is empty.
/// Foreign text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemContext {
    /// Kind, number, and connection of the GPUs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hardware: String,
    /// Name of the model, as it was requested.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Its number of parameters.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model_size: String,
    /// Its revision.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model_revision: String,
    /// Number format and quantization, of the weights and of the KV cache.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub precision: String,
    /// Engine and version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub engine: String,
    /// How the model is distributed over GPUs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub parallelism: String,
    /// What computes attention.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub attention_backend: String,
    /// In which order requests are served.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub scheduling: String,
    /// Most sequences and tokens in a batch, and most requests that may wait.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub limits: String,
}

impl SystemContext {
    /// The context of a model whose server has these settings.
    pub fn new(model: &str, settings: &BTreeMap<String, String>) -> Self {
        let first = |names: &[&str]| {
            let found = names.iter().find_map(|name| settings.get(*name));
            found.cloned().unwrap_or_default()
        };
        let together = |facts: &[(&str, &str)]| {
            let one = |(word, name): &(&str, &str)| {
                settings.get(*name).map(|value| format!("{word}{value}"))
            };
            facts.iter().filter_map(one).collect::<Vec<_>>().join(", ")
        };
        let join = |parts: &[String], between: &str| {
            let known: Vec<&str> =
                parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
            known.join(between)
        };
        let gpu = first(&["gpu", "gpu_type", "gpu_name", "hardware", "accelerator"]);
        let count = match first(&["gpu_count", "gpus", "num_gpus"]).as_str() {
            "" => String::new(),
            count if gpu.is_empty() => format!("{count} GPUs"),
            count => format!("{count} ×"),
        };
        let memory = first(&["gpu_memory"]);
        Self {
            hardware: join(
                &[join(&[count, gpu], " "), memory, first(&["interconnect", "nvlink", "topology"])],
                ", ",
            ),
            model: model.to_owned(),
            model_size: first(&["model_size", "parameters"]),
            model_revision: first(&["model_revision", "revision"]),
            precision: together(&[
                ("", "quantization"),
                ("", "precision"),
                ("", "dtype"),
                ("KV cache ", "kv_cache_dtype"),
            ]),
            engine: join(&[first(&["engine"]), first(&["engine_version"])], " "),
            parallelism: together(&[
                ("TP ", "tensor_parallel"),
                ("PP ", "pipeline_parallel"),
                ("DP ", "data_parallel"),
                ("EP ", "expert_parallel"),
            ]),
            attention_backend: first(&["attention_backend"]),
            scheduling: first(&["scheduling", "scheduling_policy", "schedule_policy"]),
            limits: together(&[
                ("max_num_seqs ", "max_num_seqs"),
                ("max_batched_tokens ", "max_batched_tokens"),
                ("max_queue ", "max_queue"),
                ("max_model_len ", "max_model_len"),
            ]),
        }
    }

    /// Whether nothing is known but perhaps the model's name.
    pub fn is_empty(&self) -> bool {
        let named = Self { model: self.model.clone(), ..Self::default() };
        *self == named
    }

    /// What every page shows, with its name; empty where it is not stated.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let size = [&self.model, &self.model_size];
        let mut model: Vec<String> =
            size.into_iter().filter(|part| !part.is_empty()).cloned().collect();
        if !self.model_revision.is_empty() {
            model.push(format!("revision {}", self.model_revision));
        }
        vec![
            ("Hardware", self.hardware.clone()),
            ("Model", model.join(", ")),
            ("Precision", self.precision.clone()),
            ("Engine", self.engine.clone()),
            ("Parallelism", self.parallelism.clone()),
            ("Attention", self.attention_backend.clone()),
            ("Scheduling", self.scheduling.clone()),
            ("Limits", self.limits.clone()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GpuFacts, MetricsSource};

    fn facts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn system() -> SystemFacts {
        let gpu = GpuFacts {
            name: "NVIDIA H200".to_owned(),
            interconnect: "18 NVLinks".to_owned(),
            ..GpuFacts::default()
        };
        SystemFacts {
            metrics: vec![MetricsSource { url: String::new(), engine: "sglang".to_owned() }],
            gpus: vec![gpu; 8],
            found: facts(&[
                ("engine", "vllm"),
                ("engine_version", "0.32.0"),
                ("dtype", "bfloat16"),
                ("engine_flags", "block_size=16 enforce_eager=true"),
                ("max_num_seqs", "256"),
                ("uptime", "12"),
            ]),
            said: facts(&[("dtype", "fp8"), ("rack", "7"), ("engine_flags", "--block-size=32")]),
            ..SystemFacts::default()
        }
    }

    #[test]
    fn settings_are_by_name_and_the_user_comes_first() {
        let expected = facts(&[
            ("block_size", "32"),
            ("dtype", "fp8"),
            ("enforce_eager", "true"),
            ("engine", "vllm"),
            ("engine_version", "0.32.0"),
            ("gpu", "NVIDIA H200"),
            ("gpu_count", "8"),
            ("interconnect", "18 NVLinks"),
            ("max_num_seqs", "256"),
            ("rack", "7"),
        ]);
        assert_eq!(system().settings(), expected);
        // A command line is not taken apart.
        let line = "serve model --max-num-seqs 256";
        let said = facts(&[("engine_flags", line)]);
        let one = SystemFacts { said: said.clone(), ..SystemFacts::default() };
        assert_eq!(one.settings(), said);
    }

    #[test]
    fn a_context_has_the_words_of_its_settings() {
        let mut settings = system().settings();
        settings.extend(facts(&[("model_size", "70B"), ("tensor_parallel", "8")]));
        let context = SystemContext::new("llama", &settings);
        let known: Vec<_> = context.facts().into_iter().filter(|fact| !fact.1.is_empty()).collect();
        let expected = [
            ("Hardware", "8 × NVIDIA H200, 18 NVLinks"),
            ("Model", "llama, 70B"),
            ("Precision", "fp8"),
            ("Engine", "vllm 0.32.0"),
            ("Parallelism", "TP 8"),
            ("Limits", "max_num_seqs 256"),
        ];
        assert_eq!(known, expected.map(|(name, text)| (name, text.to_owned())));
    }

    #[test]
    fn a_group_means_its_settings() {
        assert!(is_setting_meant("engine", "engine_version"));
        assert!(is_setting_meant("MAX_NUM_SEQS", "max_num_seqs"));
        assert!(!is_setting_meant("engine", "max_num_seqs"));
    }
}
