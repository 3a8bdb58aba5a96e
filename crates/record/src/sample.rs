//! The form of one sample in the log: a protobuf message, as that of a request is (`frame.rs`).

mod server;

use std::io;

use goodput_model::{
    CanaryReading, HealthSample, HostSample, LoopLag, MachineMemory, Nanos, Network, ThreadSample,
    Throttled,
};
use prost::Message;

use crate::framed::Framed;

use server::{GpuFrame, ScrapeFrame};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SampleFrame {
    #[prost(uint64, tag = "1")]
    at_ns: u64,
    #[prost(message, repeated, tag = "2")]
    threads: Vec<ThreadFrame>,
    /// Periods and nanoseconds; absent without a limit.
    #[prost(uint64, repeated, tag = "3")]
    throttled: Vec<u64>,
    #[prost(uint64, tag = "4")]
    steal_ns: u64,
    #[prost(uint64, tag = "5")]
    open_files: u64,
    /// Beats, column by column.
    #[prost(uint32, repeated, tag = "6")]
    beat_worker: Vec<u32>,
    #[prost(uint64, repeated, tag = "7")]
    beat_due_ns: Vec<u64>,
    #[prost(uint64, repeated, tag = "8")]
    beat_lag_ns: Vec<u64>,
    #[prost(message, repeated, tag = "9")]
    canary: Vec<CanaryFrame>,
    #[prost(uint32, tag = "10")]
    cpus: u32,
    #[prost(uint64, tag = "11")]
    idle_ns: u64,
    /// Total and available; absent if the system does not tell.
    #[prost(uint64, repeated, tag = "12")]
    memory: Vec<u64>,
    /// Received and sent; absent likewise.
    #[prost(uint64, repeated, tag = "13")]
    network: Vec<u64>,
    #[prost(message, repeated, tag = "14")]
    scrapes: Vec<ScrapeFrame>,
    #[prost(message, repeated, tag = "15")]
    gpus: Vec<GpuFrame>,
}

#[derive(Clone, PartialEq, Message)]
struct ThreadFrame {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(uint64, tag = "2")]
    cpu_ns: u64,
    #[prost(uint64, tag = "3")]
    waited_ns: u64,
    #[prost(uint64, tag = "4")]
    preempted: u64,
}

/// All in nanoseconds.
#[derive(Clone, PartialEq, Message)]
struct CanaryFrame {
    #[prost(uint64, tag = "1")]
    due: u64,
    #[prost(uint64, tag = "2")]
    slip: u64,
    #[prost(sint64, repeated, tag = "3")]
    errors: Vec<i64>,
}

impl From<&HealthSample> for SampleFrame {
    fn from(sample: &HealthSample) -> Self {
        let thread = |thread: &ThreadSample| ThreadFrame {
            name: thread.name.clone(),
            cpu_ns: thread.cpu.0,
            waited_ns: thread.waited.0,
            preempted: thread.preempted,
        };
        let canary = |reading: &CanaryReading| CanaryFrame {
            due: reading.due.0,
            slip: reading.slip.0,
            errors: reading.errors_ns.clone(),
        };
        let host = &sample.host;
        Self {
            at_ns: sample.at.0,
            threads: host.threads.iter().map(thread).collect(),
            throttled: host.throttled.map_or_else(Vec::new, |t| vec![t.periods, t.time.0]),
            steal_ns: host.steal.0,
            open_files: host.open_files,
            cpus: host.cpus,
            idle_ns: host.idle.0,
            beat_worker: sample.beats.iter().map(|beat| beat.worker).collect(),
            beat_due_ns: sample.beats.iter().map(|beat| beat.due.0).collect(),
            beat_lag_ns: sample.beats.iter().map(|beat| beat.lag.0).collect(),
            canary: sample.canary.iter().map(canary).collect(),
            memory: host.memory.map_or_else(Vec::new, |m| vec![m.total, m.available]),
            network: host.network.map_or_else(Vec::new, |n| vec![n.received, n.sent]),
            scrapes: sample.scrapes.iter().map(ScrapeFrame::from).collect(),
            gpus: sample.gpus.iter().map(GpuFrame::from).collect(),
        }
    }
}

impl From<SampleFrame> for HealthSample {
    fn from(frame: SampleFrame) -> Self {
        let thread = |thread: ThreadFrame| ThreadSample {
            name: thread.name,
            cpu: Nanos(thread.cpu_ns),
            waited: Nanos(thread.waited_ns),
            preempted: thread.preempted,
        };
        let canary = |reading: CanaryFrame| CanaryReading {
            due: Nanos(reading.due),
            slip: Nanos(reading.slip),
            errors_ns: reading.errors,
        };
        let beats = frame.beat_worker.iter().zip(&frame.beat_due_ns).zip(&frame.beat_lag_ns);
        Self {
            at: Nanos(frame.at_ns),
            host: HostSample {
                threads: frame.threads.into_iter().map(thread).collect(),
                throttled: match *frame.throttled.as_slice() {
                    [periods, time, ..] => Some(Throttled { periods, time: Nanos(time) }),
                    _ => None,
                },
                steal: Nanos(frame.steal_ns),
                open_files: frame.open_files,
                cpus: frame.cpus,
                idle: Nanos(frame.idle_ns),
                memory: match *frame.memory.as_slice() {
                    [total, available, ..] => Some(MachineMemory { total, available }),
                    _ => None,
                },
                network: match *frame.network.as_slice() {
                    [received, sent, ..] => Some(Network { received, sent }),
                    _ => None,
                },
            },
            beats: beats
                .map(|((worker, due), lag)| LoopLag {
                    worker: *worker,
                    due: Nanos(*due),
                    lag: Nanos(*lag),
                })
                .collect(),
            canary: frame.canary.into_iter().map(canary).collect(),
            scrapes: frame.scrapes.into_iter().map(Into::into).collect(),
            gpus: frame.gpus.into_iter().map(Into::into).collect(),
        }
    }
}

impl Framed for HealthSample {
    fn encode(&self) -> Vec<u8> {
        SampleFrame::from(self).encode_to_vec()
    }

    fn decode(message: &[u8]) -> io::Result<Self> {
        Ok(SampleFrame::decode(message).map_err(io::Error::other)?.into())
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::{
        Buckets, GpuSample, Scrape, ServerReading, Signal, SignalKind, SignalValue,
    };

    use super::*;

    fn scrapes() -> Vec<Scrape> {
        let value = |signal: &Signal| match signal.kind() {
            SignalKind::Gauge | SignalKind::Counter => SignalValue::Number(0.5),
            SignalKind::Histogram => SignalValue::Buckets(Buckets {
                bounds: vec![0.25, f64::INFINITY],
                cumulative: vec![3.0, 4.0],
                sum: 1.5,
                count: 4.0,
            }),
        };
        let values = Signal::ALL.iter().map(|signal| (*signal, value(signal))).collect();
        let read = ServerReading { values, resets: 1, malformed: 2, of_several: true };
        let scrape =
            |endpoint, outcome| Scrape { at: Nanos(19), took: Nanos(20), endpoint, outcome };
        vec![scrape(0, Ok(read)), scrape(1, Err("timed out".to_owned()))]
    }

    #[test]
    fn a_sample_survives_its_frame() {
        let sample = HealthSample {
            at: Nanos(1_000_000_007),
            host: HostSample {
                threads: vec![ThreadSample {
                    name: "worker-0".to_owned(),
                    cpu: Nanos(5),
                    waited: Nanos(6),
                    preempted: 7,
                }],
                throttled: Some(Throttled { periods: 0, time: Nanos(9) }),
                steal: Nanos(10),
                open_files: 11,
                cpus: 17,
                idle: Nanos(18),
                memory: Some(MachineMemory { total: 21, available: 0 }),
                network: Some(Network { received: 22, sent: 23 }),
            },
            beats: vec![LoopLag { worker: 1, due: Nanos(12), lag: Nanos(0) }],
            canary: vec![CanaryReading {
                due: Nanos(13),
                slip: Nanos(14),
                errors_ns: vec![-15, 16],
            }],
            scrapes: scrapes(),
            gpus: vec![
                GpuSample { at: Nanos(24), gpu: 1, ..GpuSample::default() },
                GpuSample { throttled: Some(Vec::new()), ..GpuSample::default() },
                GpuSample {
                    at: Nanos(25),
                    gpu: 2,
                    busy: Some(0.0),
                    sm_active: Some(0.1),
                    tensor_active: Some(0.2),
                    dram_active: Some(0.3),
                    memory_used: Some(4e10),
                    power_w: Some(500.0),
                    energy_j: Some(1e9),
                    sm_clock_mhz: Some(1980.0),
                    memory_clock_mhz: Some(3201.0),
                    temperature_c: Some(41.0),
                    throttled: Some(vec!["power".to_owned()]),
                },
            ],
        };
        let bytes = SampleFrame::from(&sample).encode_to_vec();
        assert_eq!(HealthSample::from(SampleFrame::decode(bytes.as_slice()).unwrap()), sample);
    }
}
