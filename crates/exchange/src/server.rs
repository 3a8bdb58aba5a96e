//! What the server and its GPUs said over time, one figure a line.

use std::io::Write;

use goodput_model::{Buckets, GpuSample, HealthSample, Nanos, Scrape, SignalValue, SystemFacts};

use crate::converted::ConvertedRun;
use crate::error::ExchangeError;
use crate::rows;
use crate::table::{ColumnType, RowCell, RowColumn};

/// One figure at one instant.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading {
    at: Nanos,
    source: &'static str,
    endpoint: String,
    signal: String,
    le: Option<f64>,
    value: f64,
}

macro_rules! column {
    ($name:ident: $kind:ident, $about:literal, $get:expr) => {
        RowColumn { name: stringify!($name), kind: ColumnType::$kind, about: $about, get: $get }
    };
}

/// The columns.
#[rustfmt::skip]
pub(crate) static COLUMNS: [RowColumn<Reading>; 6] = [
    column!(at_s: Number, "time in seconds since the start of the run", |row| RowCell::Number(row.at.as_secs())),
    column!(source: Text, "`server` or `gpu`", |row| RowCell::Text(row.source)),
    column!(endpoint: Text, "URL of the metrics page, or number and name of the GPU", |row| RowCell::Text(&row.endpoint)),
    column!(signal: Text, "name of the figure (docs/server.md); `_sum`, `_count` and `_bucket` of \
                           distributions; `scrape_failed` is 1 where the page did not answer", |row| RowCell::Text(&row.signal)),
    column!(le: Number, "upper bound of a bucket; empty for the last bucket, which has no bound, \
                         and for all other figures", |row| RowCell::number(row.le)),
    column!(value: Number, "the value; totals and distributions count from the first scrape", |row| RowCell::Number(row.value)),
];

/// As Parquet.
pub fn server_parquet(
    out: &mut (dyn Write + Send),
    run: &ConvertedRun<'_>,
    samples: impl Iterator<Item = HealthSample>,
) -> Result<(), ExchangeError> {
    let system = &run.summary.run.system;
    let rows = samples.flat_map(|sample| {
        let scraped = sample.scrapes.iter().flat_map(|scrape| readings_of_scrape(scrape, system));
        let gpus = sample.gpus.iter().flat_map(|gpu| readings_of_gpu(gpu, system));
        scraped.chain(gpus).filter(|row| row.value.is_finite()).collect::<Vec<_>>()
    });
    rows::write_parquet(out, &COLUMNS, &run.metadata("goodput.server/1"), rows)
}

fn readings_of_scrape(scrape: &Scrape, system: &SystemFacts) -> Vec<Reading> {
    let place = usize::try_from(scrape.endpoint).ok().and_then(|place| system.metrics.get(place));
    let endpoint = place.map_or_else(|| scrape.endpoint.to_string(), |source| source.url.clone());
    let row = |signal: String, le: Option<f64>, value: f64| Reading {
        at: scrape.at,
        source: "server",
        endpoint: endpoint.clone(),
        signal,
        le,
        value,
    };
    let Ok(reading) = &scrape.outcome else {
        return vec![row("scrape_failed".to_owned(), None, 1.0)];
    };
    let mut rows = Vec::new();
    for (signal, value) in &reading.values {
        let name = signal.name();
        match value {
            SignalValue::Number(value) => rows.push(row(name.to_owned(), None, *value)),
            SignalValue::Buckets(Buckets { bounds, cumulative, sum, count }) => {
                rows.push(row(format!("{name}_sum"), None, *sum));
                rows.push(row(format!("{name}_count"), None, *count));
                for (le, value) in bounds.iter().zip(cumulative) {
                    rows.push(row(format!("{name}_bucket"), Some(*le), *value));
                }
            }
        }
    }
    rows
}

fn readings_of_gpu(gpu: &GpuSample, system: &SystemFacts) -> Vec<Reading> {
    let facts = usize::try_from(gpu.gpu).ok().and_then(|place| system.gpus.get(place));
    let name = facts.map_or("", |facts| facts.name.as_str());
    let endpoint = format!("{} {name}", gpu.gpu).trim_end().to_owned();
    let throttled = gpu.throttled.as_ref().map(|why| f64::from(u8::from(!why.is_empty())));
    let figures = [
        ("busy", gpu.busy),
        ("sm_active", gpu.sm_active),
        ("tensor_active", gpu.tensor_active),
        ("dram_active", gpu.dram_active),
        ("memory_used_bytes", gpu.memory_used),
        ("power_w", gpu.power_w),
        ("energy_j", gpu.energy_j),
        ("sm_clock_mhz", gpu.sm_clock_mhz),
        ("memory_clock_mhz", gpu.memory_clock_mhz),
        ("temperature_c", gpu.temperature_c),
        ("throttled", throttled),
    ];
    let row = |(signal, value): (&str, Option<f64>)| {
        Some(Reading {
            at: gpu.at,
            source: "gpu",
            endpoint: endpoint.clone(),
            signal: signal.to_owned(),
            le: None,
            value: value?,
        })
    };
    figures.into_iter().filter_map(row).collect()
}
