//! What GPUs did, and what a token cost in energy.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::server::LevelSummary;

/// GPUs over the window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GpuSummary {
    /// Who told: `nvml`, or the URL of an exporter.
    pub source: String,
    /// One for each.
    pub devices: Vec<GpuDevice>,
    /// Energy over the window; none where some GPU tells neither power nor energy.
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
    /// Energy over the window, or the part of it that is known, in joules.
    pub energy_j: Option<f64>,
    /// Share of the looks while it was busy at which something held it back, by reason; none
    /// where the source does not tell.
    #[serde(default)]
    pub throttled: Option<BTreeMap<String, f64>>,
}

impl GpuDevice {
    /// Whether every look found it without work; not where the source does not tell.
    pub(crate) fn was_idle(&self) -> bool {
        self.levels.get("busy").is_some_and(|busy| busy.max <= 0.0)
    }
}

/// Energy of all GPUs over the window: GPUs alone, not the node around them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Energy {
    /// Joules.
    pub joules: f64,
    /// `counter`, or `power` where it was summed up from looks at the power.
    pub by: String,
    /// The time it covers, in seconds.
    pub seconds: f64,
    /// Mean power.
    pub mean_w: f64,
    /// Power with the server idle, where that was measured.
    pub idle_w: Option<f64>,
    /// With everything in it.
    pub joules_per: PerToken,
    /// With the idle power taken off; none where it was not measured, or was not below the mean.
    pub above_idle_joules_per: Option<PerToken>,
}

/// Joules for each token of a kind; none without such tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PerToken {
    /// Output tokens that arrived in the window.
    pub output_token: Option<f64>,
    /// Prompt and output tokens.
    pub total_token: Option<f64>,
    /// Output tokens of requests that kept the SLO; none without one.
    pub good_output_token: Option<f64>,
}
