//! What the server's metrics pages and GPUs said last, to be published again next to the load.

use std::collections::BTreeMap;

use goodput_lab::Observation;
use goodput_model::{GpuSample, Scrape, Signal, SignalValue, metrics_label};

/// Metrics pages, and GPUs, that are published at most: each is a label value.
const MOST_SOURCES: usize = 64;

/// A series of a metrics page: our name for the signal, and what it means.
pub(super) const SERVER: [(Signal, &str, &str); 9] = [
    (Signal::Running, "goodput_server_requests_running", "Requests in the server's batch"),
    (Signal::Waiting, "goodput_server_requests_waiting", "Requests in the server's queue"),
    (Signal::BatchSize, "goodput_server_batch_sequences", "Sequences in one step of the server"),
    (Signal::KvUsage, "goodput_server_kv_usage_ratio", "Share of the server's KV cache in use"),
    (
        Signal::PrefixHits,
        "goodput_server_prefix_hit_tokens_total",
        "Prompt tokens that the server found in its prefix cache since its first scrape",
    ),
    (
        Signal::PrefixQueries,
        "goodput_server_prefix_query_tokens_total",
        "Prompt tokens that the server looked up in its prefix cache since its first scrape",
    ),
    (
        Signal::GenerationTokens,
        "goodput_server_generation_tokens_total",
        "Tokens that the server generated since its first scrape",
    ),
    (
        Signal::Preemptions,
        "goodput_server_preemptions_total",
        "Requests that had to leave the server's batch since its first scrape",
    ),
    (
        Signal::Rejections,
        "goodput_server_rejections_total",
        "Requests that the server turned away since its first scrape",
    ),
];

/// A figure of a GPU.
type GpuValue = fn(&GpuSample) -> Option<f64>;

/// A series of a GPU: its name, what it means, and its value.
pub(super) const GPU: [(&str, &str, GpuValue); 7] = [
    ("goodput_gpu_busy_ratio", "Share of time in which some kernel ran", |gpu| gpu.busy),
    ("goodput_gpu_sm_active_ratio", "Share of cycles in which a multiprocessor had work", |gpu| {
        gpu.sm_active
    }),
    (
        "goodput_gpu_dram_active_ratio",
        "Share of cycles in which the memory was read or written",
        |gpu| gpu.dram_active,
    ),
    ("goodput_gpu_memory_used_bytes", "Memory in use", |gpu| gpu.memory_used),
    ("goodput_gpu_power_watts", "Power, as the source averages it", |gpu| gpu.power_w),
    ("goodput_gpu_temperature_celsius", "Temperature", |gpu| gpu.temperature_c),
    ("goodput_gpu_throttled", "1 while something makes the GPU slower than it could be", |gpu| {
        gpu.throttled.as_ref().map(|reasons| f64::from(u8::from(!reasons.is_empty())))
    }),
];

/// The latest reading of each metrics page and each GPU.
#[derive(Debug, Clone, Default)]
pub(super) struct LatestReadings {
    /// By their place in the manifest; none where the last scrape failed.
    endpoints: BTreeMap<u32, Option<BTreeMap<Signal, f64>>>,
    gpus: BTreeMap<u32, GpuSample>,
}

impl LatestReadings {
    /// Takes what came since the last time.
    pub(super) fn observe(&mut self, seen: &Observation<'_>) {
        for scrape in seen.scrapes {
            if has_room(&self.endpoints, scrape.endpoint) {
                self.endpoints.insert(scrape.endpoint, numbers(scrape));
            }
        }
        for gpu in seen.gpus {
            if has_room(&self.gpus, gpu.gpu) {
                self.gpus.insert(gpu.gpu, gpu.clone());
            }
        }
    }

    /// Whether the last scrape of each page succeeded.
    pub(super) fn up(&self) -> Vec<(String, u8)> {
        let all = self.endpoints.iter();
        all.map(|(place, said)| (label("endpoint", *place), u8::from(said.is_some()))).collect()
    }

    /// This signal of each page that states it.
    pub(super) fn signal(&self, signal: Signal) -> Vec<(String, f64)> {
        let all = self.endpoints.iter().filter_map(|(place, said)| {
            let value = said.as_ref()?.get(&signal).copied()?;
            Some((label("endpoint", *place), value))
        });
        all.collect()
    }

    /// This figure of each GPU whose source tells it.
    pub(super) fn gpu(&self, value: GpuValue) -> Vec<(String, f64)> {
        let all = self.gpus.iter().filter_map(|(place, sample)| {
            let value = value(sample).filter(|value| is_sound(*value))?;
            Some((label("gpu", *place), value))
        });
        all.collect()
    }
}

/// Whether a source is known, or may still become so.
fn has_room<T>(all: &BTreeMap<u32, T>, place: u32) -> bool {
    all.len() < MOST_SOURCES || all.contains_key(&place)
}

/// The gauges and totals of a scrape that succeeded.
fn numbers(scrape: &Scrape) -> Option<BTreeMap<Signal, f64>> {
    let reading = scrape.outcome.as_ref().ok()?;
    let all = reading.values.iter().filter_map(|(signal, value)| match value {
        SignalValue::Number(value) if is_sound(*value) => Some((*signal, *value)),
        SignalValue::Number(_) | SignalValue::Buckets(_) => None,
    });
    Some(all.collect())
}

/// A server may state anything; none of these figures can be negative or endless.
fn is_sound(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

fn label(name: &str, place: u32) -> String {
    metrics_label(name, &place.to_string())
}
