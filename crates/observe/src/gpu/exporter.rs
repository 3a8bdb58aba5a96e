//! Pages of GPU exporters: NVIDIA's DCGM exporter, Triton's own figures of GPUs, and AMD's device
//! metrics exporter. Where the names come from stands in docs/server-names.md.

mod names;
/// A name that an exporter gives; of a very long one the beginning, with a mark.
fn clip_name(name: &str) -> String {
    match name.char_indices().nth(LONGEST_NAME) {
        None => name.to_owned(),
        Some(_) => name.chars().take(LONGEST_NAME - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use goodput_model::{GpuFacts, GpuSample, Nanos};

use crate::text::{ParsedPage, ParsedSeries};
use names::{GpuField, gpu_field};

/// The most GPUs followed: a page of nonsense must not fill the memory.
const LIMIT: usize = 4096;

/// Most characters of a name.
const LONGEST_NAME: usize = 256;

/// From this share of the time on, a look counts as one at which the GPU was held back.
const HELD_BACK: f64 = 0.5;

/// Reads pages of one or several exporters; keeps the order in which GPUs were first seen.
#[derive(Debug, Default)]
pub struct GpuExporter {
    facts: Vec<GpuFacts>,
    /// By what tells it from others, the place of a GPU.
    known: HashMap<String, usize>,
    /// By the board, which of its parts tells power and energy: they are of the whole board, and
    /// exporters repeat them for each part.
    boards: HashMap<String, usize>,
    /// Of AMD's GPUs, how long each cause has held them back, and the time in all, in units of the
    /// driver.
    held_back: HashMap<(usize, &'static str), (f64, f64)>,
}

/// One GPU on one page.
#[derive(Debug, Default)]
struct ExporterGpu {
    sample: GpuSample,
    /// By field, the sum and number of its values: clocks come once per part of the chip.
    fields: BTreeMap<GpuField, (f64, u32)>,
    /// `None` where unknown.
    reasons: Option<Vec<&'static str>>,
    /// Of AMD's GPUs, by cause: the share of time, and the time since some beginning.
    shares: BTreeMap<&'static str, f64>,
    held_back: BTreeMap<&'static str, f64>,
}

impl GpuExporter {
    /// One look at the GPUs of a page; `exporter` tells pages apart.
    pub fn read(&mut self, exporter: u32, page: &str, at: Nanos) -> Vec<GpuSample> {
        let page = ParsedPage::parse(page);
        let mut looks: BTreeMap<usize, ExporterGpu> = BTreeMap::new();
        for series in &page.series {
            let Some((field, value)) = gpu_field(series) else { continue };
            let Some((gpu, board)) = self.gpu_of_series(exporter, series) else { continue };
            let look = looks.entry(gpu).or_default();
            look.sample.gpu = gpu as u32;
            look.sample.at = at;
            // The part that told first goes on telling.
            if !field.is_board_wide() || *self.boards.entry(board).or_insert(gpu) == gpu {
                look.set_field(field, value);
            }
        }
        looks.into_iter().map(|(gpu, look)| self.gpu_sample(gpu, look)).collect()
    }

    /// The GPUs seen so far.
    pub fn facts(&self) -> &[GpuFacts] {
        &self.facts
    }

    /// Which GPU a series is of, and the board that it is on.
    fn gpu_of_series(
        &mut self,
        exporter: u32,
        series: &ParsedSeries<'_>,
    ) -> Option<(usize, String)> {
        let any = |names: &[&str]| {
            names.iter().map(|name| series.label(name)).find(|value| !value.is_empty())
        };
        let uuid = any(&["UUID", "uuid", "gpu_uuid", "serial_number"]).unwrap_or_default();
        let number = any(&["gpu", "gpu_id"]).unwrap_or_default();
        let part = any(&["GPU_I_ID", "gpu_partition_id"]).unwrap_or_default();
        let board = if uuid.is_empty() {
            let host = any(&["Hostname", "hostname"]).unwrap_or_default();
            format!("{exporter} {host} {number}")
        } else {
            uuid.to_owned()
        };
        let key = format!("{board} {part}");
        let gpu = match self.known.get(&key) {
            Some(gpu) => *gpu,
            None if self.facts.len() >= LIMIT => return None,
            None => {
                let gpu = self.facts.len();
                let name = any(&["modelName", "model_name", "card_model", "card_series"]);
                let profile = any(&["GPU_I_PROFILE"]).map(|profile| format!(" MIG {profile}"));
                let name = format!("{}{}", name.unwrap_or_default(), profile.unwrap_or_default());
                let is_part = !uuid.is_empty() && !series.label("GPU_I_ID").is_empty();
                let uuid = if is_part { format!("{uuid}/{part}") } else { uuid.to_owned() };
                let [name, uuid, board] = [&name, &uuid, &board].map(|text| clip_name(text));
                self.facts.push(GpuFacts { name, uuid, board, ..GpuFacts::default() });
                self.known.insert(key, gpu);
                gpu
            }
        };
        Some((gpu, board))
    }

    fn gpu_sample(&mut self, gpu: usize, look: ExporterGpu) -> GpuSample {
        let get = |field: GpuField| look.fields.get(&field).map(|(sum, n)| sum / f64::from(*n));
        if let Some(facts) = self.facts.get_mut(gpu) {
            let parts = || {
                let known = get(GpuField::MemoryUsed)? + get(GpuField::MemoryFree)?;
                Some(known + get(GpuField::MemoryReserved).unwrap_or_default())
            };
            facts.memory_bytes = get(GpuField::MemoryTotal).or_else(parts).or(facts.memory_bytes);
            facts.power_limit_w = get(GpuField::PowerLimit).or(facts.power_limit_w);
        }
        let share = |field: GpuField| get(field).map(|share| share.min(1.0));
        let mut shares = look.shares;
        for (reason, held) in look.held_back {
            let Some(time) = get(GpuField::HeldBackTime) else { continue };
            let before = self.held_back.insert((gpu, reason), (held, time));
            if let Some((earlier, since)) = before.filter(|before| time > before.1) {
                shares.entry(reason).or_insert((held - earlier) / (time - since));
            }
        }
        let mut throttled = look.reasons;
        for (reason, share) in shares {
            let words = throttled.get_or_insert_default();
            if share >= HELD_BACK && !words.contains(&reason) {
                words.push(reason);
            }
        }
        GpuSample {
            busy: share(GpuField::Busy).or_else(|| share(GpuField::EngineActive)),
            sm_active: share(GpuField::SmActive),
            tensor_active: share(GpuField::TensorActive),
            dram_active: share(GpuField::DramActive),
            memory_used: get(GpuField::MemoryUsed),
            power_w: get(GpuField::Power),
            energy_j: get(GpuField::Energy),
            sm_clock_mhz: get(GpuField::SmClock),
            memory_clock_mhz: get(GpuField::MemoryClock),
            temperature_c: get(GpuField::Temperature),
            throttled: throttled.map(|words| words.into_iter().map(str::to_owned).collect()),
            ..look.sample
        }
    }
}

impl ExporterGpu {
    fn set_field(&mut self, field: GpuField, value: f64) {
        match field {
            GpuField::Reasons => self.reasons = Some(names::throttle_reasons(value as u64)),
            // Each part of the chip has its own: the worst counts.
            GpuField::HeldBackShare(reason) => {
                let share = self.shares.entry(reason).or_default();
                *share = share.max(value / 100.0);
            }
            GpuField::HeldBack(reason) => *self.held_back.entry(reason).or_default() += value,
            GpuField::SmClock | GpuField::MemoryClock => {
                let (sum, number) = self.fields.entry(field).or_default();
                *sum += value;
                *number += 1;
            }
            // The same again, for another pod that uses the GPU.
            _ => {
                self.fields.entry(field).or_insert((value, 1));
            }
        }
    }
}
