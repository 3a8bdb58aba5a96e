//! What the client says about itself, from the records and the samples of a run.

use std::collections::BTreeMap;

use goodput_model::{
    CanaryReading, Chunk, Exchange, HealthSample, HostSample, LoopLag, Nanos, Network,
    RequestRecord,
};

use crate::cuts::STALL;
use crate::runs::Micros;
use crate::sample::Sample;
use crate::summary::{
    CanarySummary, ClientSummary, HostSummary, Quick, Stalls, TcpSummary, ThreadSummary,
};
use crate::window::Window;

/// What the measured requests tell about the client.
#[derive(Debug, Default)]
pub(crate) struct ClientTally {
    /// How long bytes waited for their read, in microseconds, once per read.
    lag_us: Micros,
    stamped_by_kernel: u64,
    stamped_by_read: u64,
    pacer_lag: Sample,
    tcp: TcpSummary,
}

impl ClientTally {
    pub(crate) fn add(&mut self, record: &RequestRecord) {
        let Exchange { chunks, head_lag_us, stamps, tcp, .. } = &record.exchange;
        if stamps.headers.is_some() {
            self.add_read(*head_lag_us);
        }
        let mut previous: Option<&Chunk> = None;
        for chunk in chunks {
            let shares_read =
                chunk.coalesced && previous.is_some_and(|previous| previous.at == chunk.at);
            if !shares_read {
                self.add_read(chunk.lag_us);
            }
            previous = Some(chunk);
        }
        if let Some(lag) = record.pacer_lag {
            self.pacer_lag.push(lag.as_ms());
        }
        if let Some(tcp) = tcp {
            self.tcp.retransmits += u64::from(tcp.retransmits);
            self.tcp.out_of_order += u64::from(tcp.out_of_order);
            self.tcp.window_limited_ms += tcp.window_limited.as_ms();
            let rtt = tcp.min_rtt.as_ms();
            self.tcp.min_rtt_ms = Some(self.tcp.min_rtt_ms.map_or(rtt, |least| least.min(rtt)));
        }
    }

    fn add_read(&mut self, lag_us: Option<u32>) {
        match lag_us {
            Some(lag) => {
                self.stamped_by_kernel += 1;
                self.lag_us.push(lag);
            }
            None => self.stamped_by_read += 1,
        }
    }

    /// `last` is the end of the last answer: until then a stall spoils measured requests. Where
    /// requests have a schedule, the instrument's error includes how late it sends.
    pub(crate) fn finish(
        self,
        samples: &[HealthSample],
        window: Window,
        last: Nanos,
        has_schedule: bool,
    ) -> ClientSummary {
        // The last look at the server is later, and says nothing of the client.
        let samples = match samples {
            [before @ .., last] if has_no_information(last) => before,
            all => all,
        };
        let followed = Window { end: window.end.max(last), ..window };
        let beats = || samples.iter().flat_map(|sample| &sample.beats);
        let beats = || {
            beats().filter(|beat| {
                followed.overlap(beat.due, beat.due + beat.lag + Nanos(1)) > Nanos::ZERO
            })
        };
        let readings = samples.iter().flat_map(|sample| &sample.canary);
        let canary: Vec<_> = readings.filter(|reading| window.contains(reading.due)).collect();
        let mut summary = ClientSummary {
            observed_until_s: samples.last().map_or(0.0, |sample| sample.at.as_secs()),
            stamps: match self.stamped_by_kernel as f64
                / (self.stamped_by_kernel + self.stamped_by_read).max(1) as f64
            {
                0.0 => "read",
                // A retransmission or a clock that was set costs a stamp here and there.
                share if share >= 0.99 => "kernel",
                _ => "mixed",
            }
            .to_owned(),
            lag_ms: quick_from_us(self.lag_us),
            pacer_lag_ms: self.pacer_lag.into_quick(),
            loop_lag_ms: beats().map(|beat| beat.lag.as_ms()).collect::<Sample>().into_quick(),
            tcp: self.tcp,
            canary: canary_summary(&canary, has_schedule),
            ..ClientSummary::default()
        };
        summary.stalls = merge_stalls(beats().filter(|beat| beat.lag >= STALL));
        summary.add_host(samples, followed);
        summary
    }
}

fn has_no_information(sample: &HealthSample) -> bool {
    sample.host == HostSample::default() && sample.beats.is_empty() && sample.canary.is_empty()
}

/// Workers that stand still at the same time stand still once: the worst of them counts.
fn merge_stalls<'a>(late: impl Iterator<Item = &'a LoopLag>) -> Stalls {
    let mut by_worker = BTreeMap::<u32, (u64, f64)>::new();
    let mut longest: Option<&LoopLag> = None;
    for beat in late {
        let (count, total_ms) = by_worker.entry(beat.worker).or_default();
        *count += 1;
        *total_ms += beat.lag.as_ms();
        if longest.is_none_or(|longest| beat.lag > longest.lag) {
            longest = Some(beat);
        }
    }
    Stalls {
        count: by_worker.values().map(|stalls| stalls.0).max().unwrap_or(0),
        total_ms: by_worker.values().map(|stalls| stalls.1).fold(0.0, f64::max),
        longest_ms: longest.map(|beat| beat.lag.as_ms()),
        longest_at_s: longest.map(|beat| beat.due.as_secs()),
        requests: 0,
    }
}

impl ClientSummary {
    /// What the host's counters say about the time of the window.
    fn add_host(&mut self, samples: &[HealthSample], window: Window) {
        // Of a run of several clients, each has told for itself.
        let hosts = || samples.iter().map(|sample| &sample.host);
        let hosts = || hosts().filter(|host| **host != HostSample::default());
        self.open_files_max = hosts().map(|host| host.open_files).max();
        if hosts().next().is_none() {
            return;
        }
        // The sample before the window begins, to the one after it ends.
        let first = samples.iter().rposition(|sample| sample.at <= window.start).unwrap_or(0);
        let last = samples.iter().position(|sample| sample.at >= window.end);
        let last = last.unwrap_or(samples.len().saturating_sub(1));
        let Some(inside) = samples.get(first..=last).filter(|inside| inside.len() > 1) else {
            return;
        };
        for pair in inside.windows(2) {
            let seconds = (pair[1].at - pair[0].at).as_secs().max(0.5);
            for (name, change) in thread_deltas(&pair[0].host, &pair[1].host) {
                self.threads.entry(name).or_default().add(change, seconds);
            }
        }
        let (begin, end) = (&inside[0], &inside[inside.len() - 1]);
        let seconds = (end.at - begin.at).as_secs();
        for thread in self.threads.values_mut() {
            thread.finish(seconds);
        }
        let processors = f64::from(end.host.cpus) * seconds;
        self.cpus = end.host.cpus;
        if processors > 0.0 {
            self.steal_share = Some((end.host.steal - begin.host.steal).as_secs() / processors);
            let used: f64 = self.threads.values().map(|thread| thread.cpu_share).sum();
            self.idle_share = Some((end.host.idle - begin.host.idle).as_secs() / processors);
            self.used_share = Some(used / f64::from(end.host.cpus));
        }
        if let (Some(before), Some(after)) = (begin.host.throttled, end.host.throttled) {
            // The counter adds up over processors.
            let cpus = f64::from(end.host.cpus.max(1));
            self.throttled_ms = Some((after.time - before.time).as_ms() / cpus);
            self.throttled_periods = Some(after.periods.saturating_sub(before.periods));
        }
        self.host = host_summary(inside);
    }
}

/// From the first of these looks to the last.
fn host_summary(looks: &[HealthSample]) -> Option<HostSummary> {
    let (begin, end) = (looks.first()?, looks.last()?);
    let memory = || looks.iter().filter_map(|look| look.host.memory);
    let network = begin.host.network.zip(end.host.network);
    let seconds = (end.at - begin.at).as_secs();
    // An interface that went away takes its count with it.
    let rate = |of: fn(&Network) -> u64| {
        let (before, after) = network.as_ref()?;
        let bytes = of(after).checked_sub(of(before))?;
        (seconds > 0.0).then(|| bytes as f64 / 1e6 / seconds)
    };
    let gigabytes = |bytes: u64| bytes as f64 / 1e9;
    let host = HostSummary {
        memory_total_gb: memory().next().map(|memory| gigabytes(memory.total)),
        memory_available_min_gb: memory().map(|memory| memory.available).min().map(gigabytes),
        network_received_mb_s: rate(|network| network.received),
        network_sent_mb_s: rate(|network| network.sent),
    };
    (host != HostSummary::default()).then_some(host)
}

/// What one thread did between two looks.
#[derive(Clone, Copy, Default)]
struct ThreadDelta {
    cpu: Nanos,
    waited: Nanos,
    preempted: u64,
}

/// Threads of one name count as one.
fn thread_deltas(before: &HostSample, after: &HostSample) -> BTreeMap<String, ThreadDelta> {
    let total = |host: &HostSample| {
        let mut totals = BTreeMap::<String, ThreadDelta>::new();
        for thread in &host.threads {
            let total = totals.entry(thread.name.clone()).or_default();
            total.cpu += thread.cpu;
            total.waited += thread.waited;
            total.preempted += thread.preempted;
        }
        totals
    };
    let (before, mut after) = (total(before), total(after));
    for (name, change) in &mut after {
        let earlier = before.get(name).copied().unwrap_or_default();
        change.cpu = change.cpu - earlier.cpu;
        change.waited = change.waited - earlier.waited;
        change.preempted = change.preempted.saturating_sub(earlier.preempted);
    }
    after
}

impl ThreadSummary {
    fn add(&mut self, change: ThreadDelta, seconds: f64) {
        self.cpu_share_max = self.cpu_share_max.max(change.cpu.as_secs() / seconds);
        self.cpu_share += change.cpu.as_secs();
        self.waited_share += change.waited.as_secs();
        self.preempted_per_s += change.preempted as f64;
    }

    /// From sums to shares of the time looked at.
    fn finish(&mut self, seconds: f64) {
        for sum in [&mut self.cpu_share, &mut self.waited_share, &mut self.preempted_per_s] {
            *sum /= seconds;
        }
    }
}

/// How far the instrument was off on a server of known timing, without sign.
fn canary_summary(readings: &[&CanaryReading], has_schedule: bool) -> Option<CanarySummary> {
    let asked = readings.len() as u64;
    let ms = |ns: i64| (ns as f64 / 1e6).abs();
    let answered = readings.iter().filter(|reading| !reading.errors_ns.is_empty());
    let ttft: Sample = answered
        .clone()
        .map(|reading| {
            let slip = if has_schedule { reading.slip } else { Nanos::ZERO };
            ms(slip.0.cast_signed() + reading.errors_ns[0])
        })
        .collect();
    let gaps = answered.flat_map(|reading| reading.errors_ns.windows(2));
    let itl: Sample = gaps.map(|pair| ms(pair[1] - pair[0])).collect();
    (asked > 0).then(|| CanarySummary {
        n: ttft.len(),
        unanswered: asked - ttft.len(),
        ttft_error_beyond_chance_ms: ttft.clone().third_largest_or_p99(),
        ttft_error_ms: ttft.into_quick(),
        itl_error_ms: itl.into_quick(),
    })
}

/// Three numbers of microseconds, in milliseconds, by the same rule as every percentile.
fn quick_from_us(mut all: Micros) -> Quick {
    let sorted: Vec<(u32, u32)> = all.sorted().collect();
    let n: u64 = sorted.iter().map(|(_, count)| u64::from(*count)).sum();
    let at = |percent: f64| {
        let rank = (n as f64 * percent / 100.0 - 1e-9).ceil().max(1.0) as u64;
        let mut seen = 0;
        let is_it = |(_, count): &&(u32, u32)| {
            seen += u64::from(*count);
            seen >= rank
        };
        sorted.iter().find(is_it).map(|(us, _)| f64::from(*us) / 1e3)
    };
    Quick { p50: at(50.0), p99: at(99.0), max: at(100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each value many times: what is counted has the ranks of what is listed.
    #[test]
    fn counted_lags_have_the_percentiles_of_all() {
        let lags: Vec<u32> = (0..1000).map(|k| (k * 7919) % 211 * 1000).collect();
        let mut all = Micros::default();
        for us in &lags {
            all.push(*us);
        }
        let mut sorted = lags;
        sorted.sort_unstable();
        let ms = |rank: usize| Some(f64::from(sorted[rank - 1]) / 1e3);
        assert_eq!(quick_from_us(all), Quick { p50: ms(500), p99: ms(990), max: ms(1000) });
        assert_eq!(quick_from_us(Micros::default()), Quick::default());
    }
}
