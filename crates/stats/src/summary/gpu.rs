//! What GPUs did, and what a token cost in energy.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::server::LevelSummary;

/// GPUs over the window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GpuSummary {
    /// The source: `nvml`, or the URL of an exporter.
    pub source: String,
    /// One for each.
    pub devices: Vec<GpuDevice>,
    /// Energy over the window; none if a GPU reports neither power nor energy.
    pub energy: Option<Energy>,
}

/// One GPU over the window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GpuDevice {
    /// Product name.
    pub name: String,
    /// Levels by name: `busy`, `sm_active`, `tensor_active`, `dram_active` (shares), `memory_gb`,
    /// `power_w`, `sm_clock_mhz`, `memory_clock_mhz`, `temperature_c`.
    pub levels: BTreeMap<String, LevelSummary>,
    /// Energy over the window, or over the known part of it, in joules.
    pub energy_j: Option<f64>,
    /// Share of the samples while it was busy in which it was throttled, by reason; none if the
    /// source does not report that.
    #[serde(default)]
    pub throttled: Option<BTreeMap<String, f64>>,
}

impl GpuDevice {
    /// Whether every look found it without work; not where the source does not tell.
    pub(crate) fn was_idle(&self) -> bool {
        self.levels.get("busy").is_some_and(|busy| busy.max <= 0.0)
    }
}

/// Energy of all GPUs over the window: GPUs only, without the rest of the node.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Energy {
    /// Joules.
    pub joules: f64,
    /// `counter`, or `power` if it was summed from power samples.
    pub by: String,
    /// The time it covers, in seconds.
    pub seconds: f64,
    /// Mean power.
    pub mean_w: f64,
    /// Power with the server idle, if measured.
    pub idle_w: Option<f64>,
    /// Including everything.
    pub joules_per: PerToken,
    /// Minus the idle power; none if that was not measured, or not below the mean.
    pub above_idle_joules_per: Option<PerToken>,
}

/// Joules per token of each kind; none without such tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PerToken {
    /// Output tokens that arrived in the window.
    pub output_token: Option<f64>,
    /// Prompt and output tokens.
    pub total_token: Option<f64>,
    /// Output tokens of requests that kept the SLO; none without one.
    pub good_output_token: Option<f64>,
}
