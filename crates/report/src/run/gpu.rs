//! What GPUs did over the window, and what a token cost in energy.

#[cfg(test)]
mod tests;

use goodput_stats::{Energy, GpuDevice, GpuSummary, LevelSummary, PerToken, Summary};

use super::{HTML, TEXT};
use goodput_document::number::{amount, cell_number, percent, plural};
use goodput_document::{Block, Column, Fact, Formats, Section, Table};

/// Devices that a page has room for.
const MOST: usize = 16;

/// Columns of a device's name and of a number.
const NAME: usize = 8;
const CELL: usize = 8;

/// A figure of a device: its heading in two lines, the level's name, the size of its unit, and which
/// of the level's figures it is.
type DeviceColumn = (&'static str, &'static str, &'static str, f64, fn(&LevelSummary) -> f64);

const FIGURES: [DeviceColumn; 9] = [
    ("busy", "mean %", "busy", 100.0, |level| level.mean),
    ("SM", "mean %", "sm_active", 100.0, |level| level.mean),
    ("tensor", "mean %", "tensor_active", 100.0, |level| level.mean),
    ("DRAM", "mean %", "dram_active", 100.0, |level| level.mean),
    ("memory", "max GB", "memory_gb", 1.0, |level| level.max),
    ("power", "mean W", "power_w", 1.0, |level| level.mean),
    ("SM", "min MHz", "sm_clock_mhz", 1.0, |level| level.min),
    ("SM", "max MHz", "sm_clock_mhz", 1.0, |level| level.max),
    ("heat", "max °C", "temperature_c", 1.0, |level| level.max),
];

/// The GPUs; a line at most where nothing told of them, and nothing if there are none to be had.
pub(super) fn gpu_section(summary: &Summary) -> Section {
    let section = Section::with_name("gpu", "GPU", "GPU and energy");
    let Some(gpu) = &summary.gpu else {
        let why = &summary.run.system.gpu_absent;
        let is_said = !why.is_empty() && !summary.run.is_simulated();
        let fact = Fact::new("GPU", format!("no data: {why}"));
        return section.with_some(Formats::LONG, is_said.then(|| Block::Facts(vec![fact])));
    };
    let driver = match summary.run.system.gpu_driver.as_str() {
        "" => String::new(),
        driver => format!(", driver {driver}"),
    };
    let title = format!("{}, by {}{driver}", device_names(&gpu.devices), gpu.source);
    let mut section =
        section.with_on(TEXT, Block::fact("GPU", title.clone())).with_on(HTML, Block::note(title));
    if let Some(table) = devices_table(gpu) {
        let mut short = table.clone();
        short.rows.truncate(MOST);
        section = section
            .with_on(TEXT, Block::Gap)
            .with_on(TEXT, Block::Table(short))
            .with_on(HTML, Block::Table(table));
        let more = gpu.devices.len().saturating_sub(MOST);
        let more = Fact::new("", format!("and {more} more in summary.json"));
        let more = (gpu.devices.len() > MOST).then(|| Block::Facts(vec![more]));
        section = section.with_some(TEXT, more);
    }
    let mut held = Vec::new();
    held.extend(throttled_text(&gpu.devices).map(|text| Fact::new("Throttled", text)));
    if let Some(energy) = &gpu.energy {
        held.push(Fact::new("Energy", energy_text(energy)));
        held.extend(Fact::several("Joules", joules_per_token(energy)));
    }
    section.with_on(Formats::LONG, Block::Facts(held))
}

/// `2 × NVIDIA H200`.
pub(super) fn device_names(devices: &[GpuDevice]) -> String {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for device in devices {
        match kinds.iter_mut().find(|(name, _)| *name == device.name) {
            Some((_, n)) => *n += 1,
            None => kinds.push((&device.name, 1)),
        }
    }
    let kind = |(name, n): &(&str, usize)| {
        let name = if name.is_empty() { "unnamed" } else { name };
        format!("{n} × {name}")
    };
    kinds.iter().map(kind).collect::<Vec<_>>().join(", ")
}

/// What each device has, of the figures that some device has.
fn devices_table(gpu: &GpuSummary) -> Option<Table> {
    let has = |figure: &&DeviceColumn| {
        gpu.devices.iter().any(|device| device.levels.contains_key(figure.2))
    };
    let figures: Vec<_> = FIGURES.iter().filter(has).collect();
    let is_there = !figures.is_empty();
    let table = Table::from_subjects("", "Over the window", gpu.devices.iter().enumerate())
        .with(Column::left("GPU", NAME).short(""), |(place, _)| format!("GPU {place}"))
        .each(
            figures,
            |(above, below, ..)| Column::stacked(above, below, CELL),
            |(_, device), figure| device_value(device, figure),
        )
        .table;
    is_there.then_some(table)
}

fn device_value(device: &GpuDevice, (_, _, name, unit, figure): &DeviceColumn) -> String {
    device.levels.get(*name).map_or("–".to_owned(), |level| match figure(level) * unit {
        value if name.ends_with("mhz") => format!("{value:.0}"),
        value => cell_number(value),
    })
}

fn throttled_text(devices: &[GpuDevice]) -> Option<String> {
    let one = |(place, device): (usize, &GpuDevice)| {
        let reason = |(reason, share): (&String, &f64)| format!("{reason} at {}", percent(*share));
        let held = device.throttled.iter().flatten().filter(|(_, share)| **share > 0.0);
        let reasons: Vec<_> = held.map(reason).collect();
        (!reasons.is_empty()).then(|| format!("GPU {place}: {}", reasons.join(", ")))
    };
    let all: Vec<_> = devices.iter().enumerate().filter_map(one).take(MOST).collect();
    let untold = devices.iter().filter(|device| device.throttled.is_none()).count();
    let mut parts = Vec::new();
    if !all.is_empty() {
        parts.push(format!("{} of the samples", all.join("; ")));
    }
    if untold == devices.len() {
        parts.push("not reported".to_owned());
    } else if untold > 0 {
        parts.push(format!("not reported for {}", plural(untold as u64, "GPU")));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn energy_text(energy: &Energy) -> String {
    let by = match energy.by.as_str() {
        "counter" => "by the GPUs' counters",
        _ => "summed from power samples",
    };
    let idle = energy.idle_w.map_or(String::new(), |idle| format!(", {} W idle", amount(idle)));
    format!(
        "{} J in {:.1} s {by}: {} W on average{idle}; GPUs only, without the rest of the machine",
        amount(energy.joules),
        energy.seconds,
        amount(energy.mean_w)
    )
}

/// Joules for each kind of token, which is named with each figure.
fn joules_per_token(energy: &Energy) -> Vec<String> {
    let joules = |value: f64| match value {
        small if small < 10.0 => format!("{small:.4}"),
        large => amount(large),
    };
    let text = |per: &PerToken| {
        let kinds = [
            (per.output_token, "output token"),
            (per.total_token, "prompt or output token"),
            (per.good_output_token, "output token of requests that kept the SLO"),
        ];
        let known = kinds.into_iter().filter_map(|(value, kind)| {
            value
                .filter(|value| value.is_finite())
                .map(|value| format!("{} per {kind}", joules(value)))
        });
        known.collect::<Vec<_>>().join(", ")
    };
    let all = [(Some(energy.joules_per), ""), (energy.above_idle_joules_per, "above idle: ")];
    let all = all.into_iter().filter_map(|(per, what)| {
        let text = text(&per?);
        (!text.is_empty()).then(|| format!("{what}{text}"))
    });
    all.collect()
}
