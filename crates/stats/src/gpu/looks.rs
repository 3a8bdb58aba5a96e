//! The looks at one GPU, and its levels over the window.

use std::collections::BTreeMap;

use goodput_model::{GpuSample, HealthSample};

use crate::sample::Sample as Values;
use crate::summary::GpuDevice;
use crate::window::Window;

/// Looks at one GPU, in order of time, one for each instant.
#[derive(Debug, Clone, Default)]
pub(super) struct GpuLooks<'a>(pub(super) Vec<&'a GpuSample>);

/// A level's name, and where a look has it.
type Level = (&'static str, fn(&GpuSample) -> Option<f64>);

const LEVELS: [Level; 9] = [
    ("busy", |look| look.busy),
    ("sm_active", |look| look.sm_active),
    ("tensor_active", |look| look.tensor_active),
    ("dram_active", |look| look.dram_active),
    ("memory_gb", |look| look.memory_used.map(|bytes| bytes / 1e9)),
    ("power_w", |look| look.power_w),
    ("sm_clock_mhz", |look| look.sm_clock_mhz),
    ("memory_clock_mhz", |look| look.memory_clock_mhz),
    ("temperature_c", |look| look.temperature_c),
];

/// By the GPU's place.
pub(super) fn looks_by_gpu(samples: &[HealthSample]) -> BTreeMap<u32, GpuLooks<'_>> {
    let mut gpus = BTreeMap::<u32, GpuLooks<'_>>::new();
    for look in samples.iter().flat_map(|sample| &sample.gpus) {
        gpus.entry(look.gpu).or_default().0.push(look);
    }
    for looks in gpus.values_mut() {
        looks.0.sort_by_key(|look| look.at);
        // Looks before the first request all say zero: the last of them is the closest to it.
        looks.0.reverse();
        looks.0.dedup_by_key(|look| look.at);
        looks.0.reverse();
    }
    gpus
}

impl GpuLooks<'_> {
    /// Levels and throttling inside the window.
    pub(super) fn device_summary(&self, window: Window) -> GpuDevice {
        let inside: Vec<&GpuSample> =
            self.0.iter().copied().filter(|look| window.contains(look.at)).collect();
        let summed = |(name, of): Level| {
            let mut values = Values::default();
            let told = inside.iter().filter_map(|look| of(look)).filter(|v| v.is_finite());
            told.for_each(|value| values.push(value));
            values.into_level().map(|level| (name.to_owned(), level))
        };
        GpuDevice {
            levels: LEVELS.into_iter().filter_map(summed).collect(),
            throttled: throttled_shares(&inside),
            ..GpuDevice::default()
        }
    }
}

/// Share of the looks at a GPU at work; where the source does not tell whether it worked, it did.
/// None if no look tells what held it back.
fn throttled_shares(inside: &[&GpuSample]) -> Option<BTreeMap<String, f64>> {
    let is_busy = |look: &GpuSample| look.busy.is_none_or(|share| share > 0.0);
    let told = || inside.iter().filter_map(|look| Some((is_busy(look), look.throttled.as_ref()?)));
    told().next()?;
    let busy = || told().filter(|(is_busy, _)| *is_busy);
    let mut counts = BTreeMap::<String, f64>::new();
    for reason in busy().flat_map(|(_, reasons)| reasons) {
        *counts.entry(reason.clone()).or_default() += 1.0;
    }
    let all = busy().count() as f64;
    Some(counts.into_iter().map(|(reason, count)| (reason, (count / all).min(1.0))).collect())
}
