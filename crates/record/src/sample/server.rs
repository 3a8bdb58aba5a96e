//! What the server and its GPUs said, as messages.

use goodput_model::{Buckets, GpuSample, Nanos, Scrape, ServerReading, Signal, SignalValue};
use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct ScrapeFrame {
    #[prost(uint64, tag = "1")]
    at_ns: u64,
    #[prost(uint64, tag = "2")]
    took_ns: u64,
    #[prost(uint32, tag = "3")]
    endpoint: u32,
    /// Why the answer is missing; absent if it is not.
    #[prost(string, optional, tag = "4")]
    failure: Option<String>,
    #[prost(message, repeated, tag = "5")]
    values: Vec<ValueFrame>,
    #[prost(uint32, tag = "6")]
    resets: u32,
    #[prost(uint32, tag = "7")]
    malformed: u32,
    #[prost(bool, tag = "8")]
    of_several: bool,
}

/// A number, or a distribution: then the number is its sum.
#[derive(Clone, PartialEq, Message)]
struct ValueFrame {
    /// By name: a reader skips what it does not know.
    #[prost(string, tag = "1")]
    signal: String,
    #[prost(double, tag = "2")]
    number: f64,
    #[prost(double, optional, tag = "3")]
    count: Option<f64>,
    #[prost(double, repeated, tag = "4")]
    bounds: Vec<f64>,
    #[prost(double, repeated, tag = "5")]
    cumulative: Vec<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct GpuFrame {
    #[prost(uint64, tag = "1")]
    at_ns: u64,
    #[prost(uint32, tag = "2")]
    gpu: u32,
    #[prost(double, optional, tag = "3")]
    busy: Option<f64>,
    #[prost(double, optional, tag = "4")]
    sm_active: Option<f64>,
    #[prost(double, optional, tag = "5")]
    tensor_active: Option<f64>,
    #[prost(double, optional, tag = "6")]
    dram_active: Option<f64>,
    #[prost(double, optional, tag = "7")]
    memory_used: Option<f64>,
    #[prost(double, optional, tag = "8")]
    power_w: Option<f64>,
    #[prost(double, optional, tag = "9")]
    energy_j: Option<f64>,
    #[prost(double, optional, tag = "10")]
    sm_clock_mhz: Option<f64>,
    #[prost(double, optional, tag = "11")]
    memory_clock_mhz: Option<f64>,
    #[prost(double, optional, tag = "12")]
    temperature_c: Option<f64>,
    #[prost(string, repeated, tag = "13")]
    throttled: Vec<String>,
    /// A list cannot be absent.
    #[prost(bool, tag = "14")]
    tells_throttling: bool,
}

impl From<&Scrape> for ScrapeFrame {
    fn from(scrape: &Scrape) -> Self {
        let value = |(signal, value): (&Signal, &SignalValue)| {
            let signal = signal.name().to_owned();
            match value {
                SignalValue::Number(number) => {
                    ValueFrame { signal, number: *number, ..ValueFrame::default() }
                }
                SignalValue::Buckets(buckets) => ValueFrame {
                    signal,
                    number: buckets.sum,
                    count: Some(buckets.count),
                    bounds: buckets.bounds.clone(),
                    cumulative: buckets.cumulative.clone(),
                },
            }
        };
        let mut frame = Self {
            at_ns: scrape.at.0,
            took_ns: scrape.took.0,
            endpoint: scrape.endpoint,
            ..Self::default()
        };
        match &scrape.outcome {
            Ok(reading) => {
                frame.values = reading.values.iter().map(value).collect();
                (frame.resets, frame.malformed) = (reading.resets, reading.malformed);
                frame.of_several = reading.of_several;
            }
            Err(failure) => frame.failure = Some(failure.clone()),
        }
        frame
    }
}

impl From<ScrapeFrame> for Scrape {
    fn from(frame: ScrapeFrame) -> Self {
        let value = |value: ValueFrame| {
            let signal = Signal::ALL.iter().find(|signal| signal.name() == value.signal)?;
            let number = SignalValue::Number(value.number);
            let found = value.count.map_or(number, |count| {
                SignalValue::Buckets(Buckets {
                    bounds: value.bounds,
                    cumulative: value.cumulative,
                    sum: value.number,
                    count,
                })
            });
            Some((*signal, found))
        };
        Self {
            at: Nanos(frame.at_ns),
            took: Nanos(frame.took_ns),
            endpoint: frame.endpoint,
            outcome: match frame.failure {
                Some(failure) => Err(failure),
                None => Ok(ServerReading {
                    values: frame.values.into_iter().filter_map(value).collect(),
                    resets: frame.resets,
                    malformed: frame.malformed,
                    of_several: frame.of_several,
                }),
            },
        }
    }
}

impl From<&GpuSample> for GpuFrame {
    fn from(sample: &GpuSample) -> Self {
        Self {
            at_ns: sample.at.0,
            gpu: sample.gpu,
            busy: sample.busy,
            sm_active: sample.sm_active,
            tensor_active: sample.tensor_active,
            dram_active: sample.dram_active,
            memory_used: sample.memory_used,
            power_w: sample.power_w,
            energy_j: sample.energy_j,
            sm_clock_mhz: sample.sm_clock_mhz,
            memory_clock_mhz: sample.memory_clock_mhz,
            temperature_c: sample.temperature_c,
            throttled: sample.throttled.clone().unwrap_or_default(),
            tells_throttling: sample.throttled.is_some(),
        }
    }
}

impl From<GpuFrame> for GpuSample {
    fn from(frame: GpuFrame) -> Self {
        Self {
            at: Nanos(frame.at_ns),
            gpu: frame.gpu,
            busy: frame.busy,
            sm_active: frame.sm_active,
            tensor_active: frame.tensor_active,
            dram_active: frame.dram_active,
            memory_used: frame.memory_used,
            power_w: frame.power_w,
            energy_j: frame.energy_j,
            sm_clock_mhz: frame.sm_clock_mhz,
            memory_clock_mhz: frame.memory_clock_mhz,
            temperature_c: frame.temperature_c,
            throttled: frame.tells_throttling.then_some(frame.throttled),
        }
    }
}
