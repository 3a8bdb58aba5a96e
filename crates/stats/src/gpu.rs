//! What GPUs did over the window, and the energy of a token.

mod energy;
mod looks;
#[cfg(test)]
mod tests;

use goodput_model::{HealthSample, SystemFacts};

use crate::summary::{GpuDevice, GpuSummary, SloSummary, Throughput};
use crate::window::Window;

/// Tokens of the window, by which energy is divided.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WindowTokens {
    pub(crate) output: f64,
    pub(crate) total: f64,
    /// Of requests that kept the SLO.
    pub(crate) good_output: Option<f64>,
}

impl WindowTokens {
    /// By the rates of the window.
    pub(crate) fn new(rates: &Throughput, slo: Option<&SloSummary>, window: Window) -> Self {
        let amount = |rate: Option<f64>| rate.unwrap_or(0.0) * window.seconds();
        let output = amount(rates.output_tokens_per_s);
        let good = slo.and_then(|slo| slo.goodput_output_tps);
        Self {
            output,
            total: amount(rates.total_tokens_per_s),
            // The two are counted over slightly different requests.
            good_output: good.map(|good| amount(Some(good)).min(output)),
        }
    }
}

/// What the GPUs did; none if no source reported it.
pub(crate) fn gpu_summary(
    samples: &[HealthSample],
    window: Window,
    tokens: WindowTokens,
    facts: &SystemFacts,
) -> Option<GpuSummary> {
    let gpus = looks::looks_by_gpu(samples);
    let last = gpus.keys().next_back()?;
    // One that never answered has its place too.
    let count = facts.gpus.len().max(*last as usize + 1);
    let places: Vec<looks::GpuLooks<'_>> =
        (0u32..).take(count).map(|place| gpus.get(&place).cloned().unwrap_or_default()).collect();
    let mut devices: Vec<GpuDevice> =
        places.iter().map(|looks| looks.device_summary(window)).collect();
    for (device, facts) in devices.iter_mut().zip(&facts.gpus) {
        device.name.clone_from(&facts.name);
    }
    let found = energy::energy_over(&places, &facts.gpus, window);
    for (device, joules) in devices.iter_mut().zip(&found.each) {
        device.energy_j = *joules;
    }
    let energy = found.all.map(|all| all.energy_per_token(window, tokens, facts.gpu_idle_w));
    Some(GpuSummary { source: facts.gpu_source.clone(), devices, energy })
}
