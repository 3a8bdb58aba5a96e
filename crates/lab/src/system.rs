//! Facts that the server reports outside of its API: engine, version, limits, parallelism.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use goodput_model::Plan;
use goodput_wire::{FactsPage, fetch_facts_pages};
use serde_json::Value;

use crate::readiness::Ready;

/// Longest time for all questions together.
const LIMIT: Duration = Duration::from_secs(3);

/// Most facts that are kept, most characters of one, and of its name.
const MOST: usize = 40;
const LONGEST: usize = 200;
const LONGEST_NAME: usize = 60;

/// How far a page is followed downwards, and how many of its values are looked at.
const DEEPEST: usize = 6;
const MOST_LEAVES: usize = 5_000;

/// Most values of a list that is kept.
const LONGEST_LIST: usize = 8;

/// A page with more values is a dump of everything: only what is known is taken from it.
const FEW: usize = 40;

/// Our names, and the names that engines have for them. A name with a dot is that of a value inside
/// something, since alone it would say too little. Sources: vLLM's `VllmConfig` and
/// `collect_env.py`, SGLang's `ServerArgs`, TGI's `Info`, llama.cpp's `/props` and `/v1/models`.
const KNOWN: [(&str, &[&str]); 23] = [
    ("engine_version", &["version", "build_info"]),
    ("model_path", &["model_path", "model_id", "root", "model_config.model"]),
    ("model_revision", &["model_sha", "model_config.revision", "weight_version"]),
    ("max_model_len", &["max_model_len", "context_length", "max_total_tokens", "n_ctx"]),
    ("quantization", &["quantization", "quantize", "ftype"]),
    ("dtype", &["dtype", "model_dtype"]),
    ("tensor_parallel", &["tensor_parallel_size", "tp_size"]),
    ("pipeline_parallel", &["pipeline_parallel_size", "pp_size"]),
    ("data_parallel", &["data_parallel_size", "dp_size"]),
    ("expert_parallel", &["ep_size", "enable_expert_parallel"]),
    ("max_num_seqs", &["max_num_seqs", "max_running_requests", "total_slots"]),
    (
        "max_batched_tokens",
        &["max_num_batched_tokens", "max_prefill_tokens", "max_batch_prefill_tokens"],
    ),
    ("max_queue", &["max_queue", "max_queued_requests"]),
    ("scheduling", &["scheduler_config.policy"]),
    ("log_level", &["log_level"]),
    ("log_requests", &["log_requests", "enable_log_requests"]),
    ("kv_cache_dtype", &["kv_cache_dtype", "cache_dtype"]),
    ("kv_cache_tokens", &["max_total_num_tokens"]),
    ("prefix_caching", &["enable_prefix_caching"]),
    ("attention_backend", &["attention_backend", "attention_config.backend"]),
    ("speculative", &["speculative_algorithm", "speculative_config.method"]),
    ("driver", &["nvidia_driver_version"]),
    ("gpu", &["nvidia_gpu_models"]),
];

/// SGLang's word for a server without a prefix cache.
const RADIX_CACHE_OFF: &str = "disable_radix_cache";

/// Settings that decide about speed and have no name of ours: together they are `engine_flags`.
const FLAGS: [&str; 18] = [
    "async_scheduling",
    "block_size",
    "chunked_prefill_size",
    "cuda_graph_max_bs",
    "disable_cuda_graph",
    "disaggregation_mode",
    "enable_chunked_prefill",
    "enable_dp_attention",
    "enable_hierarchical_cache",
    "enable_torch_compile",
    "enforce_eager",
    "gpu_memory_utilization",
    "max_waiting_tokens",
    "mem_fraction_static",
    "page_size",
    "schedule_policy",
    "stream_interval",
    "waiting_served_ratio",
];

/// Engines by whom they let own their models.
const OWNERS: [(&str, &str); 6] = [
    ("vllm", "vllm"),
    ("sglang", "sglang"),
    ("llamacpp", "llama.cpp"),
    ("tensorrt_llm", "tensorrt-llm"),
    ("lmdeploy", "lmdeploy"),
    ("goodput", "goodput mock"),
];

/// What the server says of itself, asked once; nothing if it must not be asked. What fails is simply
/// not known.
pub fn server_facts(plan: &Plan, ready: &Ready) -> BTreeMap<String, String> {
    ready.facts.get_or_init(|| request_facts(plan, ready)).clone()
}

fn request_facts(plan: &Plan, ready: &Ready) -> BTreeMap<String, String> {
    if !plan.target.probe {
        return BTreeMap::new();
    }
    if let Some(mock) = &ready.mock {
        // Its page, without a request that its faults and counts would see.
        let body = serde_json::from_slice(mock.info()).unwrap_or_default();
        return merge_pages(&[FactsPage { name: "server_info", body }], &ready.model);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return BTreeMap::new() };
    let asking = async { tokio::time::timeout(LIMIT, fetch_facts_pages(&ready.endpoint)).await };
    let pages = tokio::task::LocalSet::new().block_on(&runtime, asking).unwrap_or_default();
    merge_pages(&pages, &ready.model)
}

/// A value somewhere in a page.
struct Leaf<'a> {
    /// The names on the way to it.
    path: Vec<&'a str>,
    value: &'a Value,
}

/// The facts of all pages, in our words where we have some.
fn merge_pages(pages: &[FactsPage], model: &str) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut flags = BTreeMap::new();
    facts.extend(detect_engine(pages).map(|engine| ("engine".to_owned(), engine.to_owned())));
    let rooms: Vec<(&str, Vec<Leaf<'_>>)> = pages
        .iter()
        .filter_map(|page| Some((page.name, page_leaves(page_subject(page, model)?))))
        .collect();
    for (_, leaves) in &rooms {
        for leaf in leaves {
            insert_known_fact(leaf, &mut facts);
            let name = leaf.field_name();
            if FLAGS.contains(&name)
                && let Some(value) = leaf.value_text().filter(|value| value != "false")
            {
                flags.entry(name).or_insert(value);
            }
        }
    }
    if !flags.is_empty() {
        let said: Vec<_> = flags.iter().map(|(name, value)| format!("{name}={value}")).collect();
        facts.insert("engine_flags".to_owned(), shorten_text(&said.join(" ")));
    }
    for (page, leaves) in &rooms {
        insert_other_facts(page, leaves, &mut facts);
    }
    facts
}

/// What of a page is about the server: of a list of models, the one that is measured.
fn page_subject<'a>(page: &'a FactsPage, model: &str) -> Option<&'a Value> {
    if page.name != "models" {
        return Some(&page.body);
    }
    let models = page.body.get("data")?.as_array()?;
    let is_it = |entry: &&Value| entry.get("id").and_then(Value::as_str) == Some(model);
    models.iter().find(is_it).or_else(|| models.first())
}

/// Which engine it is, by what only that engine says.
fn detect_engine(pages: &[FactsPage]) -> Option<&'static str> {
    let page = |name: &str| pages.iter().find(|page| page.name == name).map(|page| &page.body);
    let owner = page("models")
        .and_then(|body| body.get("data")?.get(0)?.get("owned_by")?.as_str())
        .and_then(|owner| OWNERS.iter().find(|(theirs, _)| *theirs == owner));
    let info = page("server_info");
    let has = |name: &str| info.is_some_and(|info| info.get(name).is_some());
    let router = page("info").and_then(|body| body.get("router")?.as_str());
    match owner {
        Some((_, engine)) => Some(engine),
        None if has("vllm_config") => Some("vllm"),
        None if has("internal_states") || has("tp_size") => Some("sglang"),
        None if page("model_info").is_some_and(|body| body.get("is_generation").is_some()) => {
            Some("sglang")
        }
        None if router.is_some_and(|router| router.starts_with("text-generation")) => Some("tgi"),
        None if page("props").is_some_and(|body| body.get("build_info").is_some()) => {
            Some("llama.cpp")
        }
        None => None,
    }
}

/// Every value of a page that may be kept, those near the top first.
fn page_leaves(page: &Value) -> Vec<Leaf<'_>> {
    let mut leaves = Vec::new();
    let mut open = std::collections::VecDeque::from([(Vec::new(), page)]);
    while let Some((path, value)) = open.pop_front() {
        if leaves.len() >= MOST_LEAVES {
            break;
        }
        match value {
            Value::Object(inside) if path.len() < DEEPEST => {
                for (name, value) in inside.iter().take(MOST_LEAVES) {
                    if !is_secret(name, value) {
                        let mut path = path.clone();
                        path.push(name.as_str());
                        open.push_back((path, value));
                    }
                }
            }
            Value::Object(_) => {}
            value => leaves.push(Leaf { path, value }),
        }
    }
    leaves
}

impl<'a> Leaf<'a> {
    fn field_name(&self) -> &'a str {
        self.path.last().copied().unwrap_or_default()
    }

    /// The value in a line; none if it says nothing, or more than a line.
    fn value_text(&self) -> Option<String> {
        one_line_text(self.value)
    }

    fn is_called(&self, name: &str) -> bool {
        match name.split_once('.') {
            Some((parent, name)) => {
                self.path.iter().rev().nth(1) == Some(&parent) && self.field_name() == name
            }
            None => self.field_name() == name,
        }
    }
}

fn one_line_text(value: &Value) -> Option<String> {
    let text = match value {
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => value.to_string(),
        Value::String(text) => {
            let words: Vec<_> = text.split_whitespace().collect();
            words.join(" ")
        }
        Value::Array(all) if all.len() <= LONGEST_LIST => {
            let all: Option<Vec<_>> = all
                .iter()
                .map(|each| (!each.is_array()).then(|| one_line_text(each)).flatten())
                .collect();
            all?.join(", ")
        }
        _ => return None,
    };
    let says_nothing = matches!(text.as_str(), "" | "None" | "none" | "null" | "auto");
    (!says_nothing).then_some(text)
}

/// Keeps a value under our name, if we have one for it and nothing stands there yet.
fn insert_known_fact(leaf: &Leaf<'_>, facts: &mut BTreeMap<String, String>) {
    let (name, value) = if leaf.is_called(RADIX_CACHE_OFF) {
        let Some(is_off) = leaf.value.as_bool() else { return };
        ("prefix_caching", (!is_off).to_string())
    } else {
        let ours = KNOWN.iter().find(|(_, theirs)| theirs.iter().any(|name| leaf.is_called(name)));
        let (Some((name, _)), Some(value)) = (ours, leaf.value_text()) else { return };
        // A version of something deeper is that of something else.
        if *name == "engine_version" && leaf.path.len() > 1 {
            return;
        }
        (*name, value)
    };
    let value = shorten_text(value.strip_prefix("torch.").unwrap_or(&value));
    facts.entry(name.to_owned()).or_insert(value);
}

/// Keeps what stands at the top of a small page under its own name, as far as there is room.
fn insert_other_facts(page: &str, leaves: &[Leaf<'_>], facts: &mut BTreeMap<String, String>) {
    let is_kept = |leaf: &&Leaf<'_>| {
        let [name] = leaf.path[..] else { return false };
        let is_known =
            name == RADIX_CACHE_OFF || KNOWN.iter().any(|(_, theirs)| theirs.contains(&name));
        let is_short = (1..=LONGEST_NAME).contains(&name.chars().count());
        // Of a model, only its owner.
        is_short && !is_known && !FLAGS.contains(&name) && (page != "models" || name == "owned_by")
    };
    let top: Vec<_> = leaves.iter().filter(is_kept).collect();
    if top.len() > FEW {
        return;
    }
    for leaf in top {
        let Some(value) = leaf.value_text().filter(|value| value.chars().count() <= LONGEST) else {
            continue;
        };
        if facts.len() < MOST {
            facts.entry(leaf.field_name().to_owned()).or_insert(value);
        }
    }
}

fn shorten_text(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some(_) => text.chars().take(LONGEST - 1).chain(['…']).collect(),
    }
}

/// Whether something looks like a key: engines show those with their settings.
fn is_secret(name: &str, value: &Value) -> bool {
    const NAMES: [&str; 7] = ["key", "token", "secret", "passw", "credential", "auth", "cookie"];
    const BEGINNINGS: [&str; 7] = ["sk-", "hf_", "ghp_", "xox", "eyj", "bearer ", "-----begin"];
    const FLAGS_OF_SECRETS: [&str; 8] =
        ["api-key", "api_key", "apikey", "passw", "secret", "credential", "hf-token", "token="];
    let name = name.to_ascii_lowercase();
    // A number of tokens is none.
    let is_amount = name.ends_with("tokens") && (value.is_number() || value.is_null());
    if !is_amount && NAMES.iter().any(|part| name.contains(part)) {
        return true;
    }
    let looks_so = |text: &str| {
        let small = text.trim_start().to_ascii_lowercase();
        // Long, without a break, and neither a word nor the hash of a commit.
        let is_random = text.len() >= 32
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && text.bytes().any(|byte| byte.is_ascii_digit())
            && !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let has_login = text.split_once("://").is_some_and(|(_, rest)| rest.contains('@'));
        // A command line, or a part of one: numbers of tokens are given there too.
        let has_flag = FLAGS_OF_SECRETS.iter().any(|part| small.contains(part));
        is_random
            || has_login
            || has_flag
            || BEGINNINGS.iter().any(|begin| small.starts_with(begin))
    };
    match value {
        Value::String(text) => looks_so(text),
        Value::Array(all) => all.iter().filter_map(Value::as_str).any(looks_so),
        _ => false,
    }
}
