//! What to look at on the server's side.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::text::duration_text;

/// What to observe on the server's side during the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ObservePlan {
    /// Whether the server's pages of metrics are read.
    pub metrics: bool,
    /// Where they are; empty means next to the target's API.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics_urls: Vec<String>,
    /// How often they are read, and how long an answer may take.
    #[serde(with = "duration_text")]
    pub interval: Duration,
    /// A file that maps names of an engine that we do not know onto ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_map: Option<String>,
    /// Who is asked about GPUs.
    pub gpu: GpuPlan,
    /// How long the GPUs are watched before the load, for the power they draw with an idle server.
    #[serde(with = "duration_text", skip_serializing_if = "Duration::is_zero")]
    pub gpu_idle: Duration,
    /// The share of requests, 0 to 1, whose trace is sampled; none sends no `traceparent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_share: Option<f64>,
}

impl Default for ObservePlan {
    fn default() -> Self {
        Self {
            metrics: true,
            metrics_urls: Vec::new(),
            interval: Duration::from_secs(1),
            metrics_map: None,
            gpu: GpuPlan::Auto,
            gpu_idle: Duration::ZERO,
            trace_share: None,
        }
    }
}

/// Who is asked about GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuPlan {
    /// The driver of this machine, where the server runs here and there is one.
    #[default]
    Auto,
    /// None.
    Off,
    /// The driver of this machine, wherever the server runs.
    Local,
    /// The same, but only these of its GPUs, by the driver's numbers.
    Devices(Vec<u32>),
    /// Exporters of NVIDIA or AMD at these URLs.
    Exporters(Vec<String>),
}

impl GpuPlan {
    /// The URLs of exporters.
    pub fn exporters(&self) -> &[String] {
        match self {
            Self::Exporters(urls) => urls,
            _ => &[],
        }
    }
}
