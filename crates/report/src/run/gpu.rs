//! What GPUs did over the window, and what a token cost in energy.

#[cfg(test)]
mod tests;

use std::fmt::{Error, Write};

use goodput_stats::{Energy, GpuDevice, GpuSummary, LevelSummary, PerToken, Summary};

use crate::clip::{left, right};
use crate::number::{amount, cell, percent};
use crate::render::text::{Fields, field};
use goodput_model::plain;

/// Devices that a page has room for.
const MOST: usize = 16;

/// Columns of a device's name and of a number.
const NAME: usize = 8;
const CELL: usize = 8;

/// A column: its heading in two lines, the level's name, the size of its unit, and which of its
/// figures it shows.
pub(crate) type Column = (&'static str, &'static str, &'static str, f64, fn(&LevelSummary) -> f64);

const COLUMNS: [Column; 9] = [
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

/// The GPUs; a line at most where nobody told, and nothing where there are none to be had.
pub(crate) fn block(page: &mut String, summary: &Summary) -> Result<(), Error> {
    let Some(gpu) = &summary.gpu else {
        if let Some(why) = absent(summary) {
            page.push('\n');
            field(page, "GPU", &why);
        }
        return Ok(());
    };
    page.push('\n');
    field(page, "GPU", &title(summary, gpu));
    devices(page, gpu)?;
    held(page, gpu);
    Ok(())
}

/// Why nothing is known of GPUs, where there might be some.
pub(crate) fn absent(summary: &Summary) -> Option<String> {
    let why = &summary.run.system.gpu_absent;
    let is_said = !why.is_empty() && !summary.run.is_simulated();
    is_said.then(|| format!("not seen: {}", plain(why)))
}

/// Which GPUs, and who told.
pub(crate) fn title(summary: &Summary, gpu: &GpuSummary) -> String {
    let driver = match summary.run.system.gpu_driver.as_str() {
        "" => String::new(),
        driver => format!(", driver {}", plain(driver)),
    };
    format!("{}, by {}{driver}", names(&gpu.devices), plain(&gpu.source))
}

/// What held them back, and what they took.
pub(crate) fn held(page: &mut impl Fields, gpu: &GpuSummary) {
    throttled(page, &gpu.devices);
    if let Some(energy) = &gpu.energy {
        field(page, "Energy", &energy_text(energy));
        per_token(page, energy);
    }
}

/// `2 × NVIDIA H200`.
pub(crate) fn names(devices: &[GpuDevice]) -> String {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for device in devices {
        match kinds.iter_mut().find(|(name, _)| *name == device.name) {
            Some((_, n)) => *n += 1,
            None => kinds.push((&device.name, 1)),
        }
    }
    let kind = |(name, n): &(&str, usize)| {
        let name = if name.is_empty() { "without a name".to_owned() } else { plain(name) };
        format!("{n} × {name}")
    };
    kinds.iter().map(kind).collect::<Vec<_>>().join(", ")
}

/// The columns that some device has something in.
pub(crate) fn columns(gpu: &GpuSummary) -> Vec<&'static Column> {
    let has =
        |column: &&Column| gpu.devices.iter().any(|device| device.levels.contains_key(column.2));
    COLUMNS.iter().filter(has).collect()
}

/// What a device has in a column.
pub(crate) fn value(device: &GpuDevice, column: &Column) -> String {
    let (_, _, name, unit, figure) = column;
    let clock = name.ends_with("mhz");
    device.levels.get(*name).map_or("–".to_owned(), |level| match figure(level) * unit {
        value if clock => format!("{value:.0}"),
        value => cell(value),
    })
}

fn devices(page: &mut String, gpu: &GpuSummary) -> Result<(), Error> {
    let columns = columns(gpu);
    if columns.is_empty() {
        return Ok(());
    }
    let row = |name: &str, text: &dyn Fn(&Column) -> String| {
        let cells: String = columns.iter().map(|column| right(&text(column), CELL)).collect();
        (left(name, NAME) + &cells).trim_end().to_owned()
    };
    writeln!(page, "\n{}", row("", &|column| column.0.to_owned()))?;
    writeln!(page, "{}", row("", &|column| column.1.to_owned()))?;
    for (place, device) in gpu.devices.iter().take(MOST).enumerate() {
        let value = |column: &Column| value(device, column);
        writeln!(page, "{}", row(&format!("GPU {place}"), &value))?;
    }
    if gpu.devices.len() > MOST {
        field(page, "", &format!("and {} more in summary.json", gpu.devices.len() - MOST));
    }
    Ok(())
}

fn throttled(page: &mut impl Fields, devices: &[GpuDevice]) {
    let one = |(place, device): (usize, &GpuDevice)| {
        let reason =
            |(reason, share): (&String, &f64)| format!("{} at {}", plain(reason), percent(*share));
        let held = device.throttled.iter().flatten().filter(|(_, share)| **share > 0.0);
        let reasons: Vec<_> = held.map(reason).collect();
        (!reasons.is_empty()).then(|| format!("GPU {place}: {}", reasons.join(", ")))
    };
    let all: Vec<_> = devices.iter().enumerate().filter_map(one).take(MOST).collect();
    let untold = devices.iter().filter(|device| device.throttled.is_none()).count();
    let mut parts = Vec::new();
    if !all.is_empty() {
        parts.push(format!("{} of the looks", all.join("; ")));
    }
    if untold == devices.len() {
        parts.push("not told".to_owned());
    } else if untold > 0 {
        parts.push(format!("not told of {untold} GPUs"));
    }
    if !parts.is_empty() {
        field(page, "Held back", &parts.join("; "));
    }
}

fn energy_text(energy: &Energy) -> String {
    let by = match energy.by.as_str() {
        "counter" => "by the GPUs' counters",
        _ => "summed up from looks at the power",
    };
    let idle = energy.idle_w.map_or(String::new(), |idle| format!(", {} W idle", amount(idle)));
    format!(
        "{} J in {:.1} s {by}: {} W on average{idle}; GPUs alone, not the machine around them",
        amount(energy.joules),
        energy.seconds,
        amount(energy.mean_w)
    )
}

/// Joules for each kind of token, which is named with each figure.
fn per_token(page: &mut impl Fields, energy: &Energy) {
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
    let mut label = "Joules";
    for (per, what) in
        [(Some(energy.joules_per), ""), (energy.above_idle_joules_per, "above idle: ")]
    {
        let text = per.map(|per| text(&per)).unwrap_or_default();
        if !text.is_empty() {
            field(page, label, &format!("{what}{text}"));
            label = "";
        }
    }
}
