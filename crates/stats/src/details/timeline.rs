//! The run over time.

use std::collections::{BTreeMap, BTreeSet};

use goodput_model::{GpuSample, HealthSample, Nanos, RequestRecord};

use super::Timeline;
use crate::series::SeriesTally;

/// Bins that are drawn at most, and how many a run below a minute has about.
const MOST: u64 = 600;
const FEW: u64 = 60;

/// Lengths of a bin in tenths of a second; beyond, whole hours.
const TENTHS: [u64; 13] = [1, 2, 5, 10, 20, 50, 100, 200, 300, 600, 1_200, 3_000, 6_000];
const TENTH: u64 = 100_000_000;
const HOUR: u64 = 36_000;

/// No run is longer: a log may claim anything.
const LATEST: Nanos = Nanos(u64::MAX / 4);

/// Requests of every phase.
#[derive(Debug, Default)]
pub(super) struct TimelineTally {
    series: SeriesTally,
    /// When requests failed.
    failures: Vec<Nanos>,
    last: Nanos,
}

impl TimelineTally {
    pub(super) fn add(&mut self, record: &RequestRecord) {
        self.series.add(record);
        self.last = self.last.max(record.end());
        if !record.is_ok() {
            self.failures.push(record.end());
        }
    }

    pub(super) fn finish(self, is_stream: bool, samples: &[HealthSample]) -> Timeline {
        if self.series.is_empty() {
            return Timeline::default();
        }
        let last = self.last.min(LATEST);
        let bin = bin_length(last);
        let bins = (last.0 / bin.0) as usize + 1;
        let series = self.series.series_in_bins(Nanos::ZERO, bin, bins);
        let mut errors = vec![0u64; bins];
        for at in self.failures {
            if let Some(count) = errors.get_mut((at.0 / bin.0) as usize) {
                *count += 1;
            }
        }
        let seconds = bin.as_secs();
        let rate = |count: u64| count as f64 / seconds;
        let ended = series.completions.iter().zip(&errors);
        let waits = series.ttft.values.iter().zip(&series.ttft.counts);
        let mut ttft: Vec<Option<f64>> =
            waits.map(|(value, count)| (*count > 0 && is_stream).then_some(*value)).collect();
        ttft.resize(bins, None);
        Timeline {
            bin_s: seconds,
            completions_per_s: ended
                .map(|(all, failed)| rate(u64::from(*all).saturating_sub(*failed)))
                .collect(),
            arrivals_per_s: series.arrivals.iter().map(|count| rate(u64::from(*count))).collect(),
            in_flight: series.in_flight,
            tokens_per_s: series.tokens_per_s,
            errors,
            ttft_p50_ms: ttft,
            gpu: gpu_bins(samples, bin),
        }
    }
}

/// A round length that makes few enough bins of the time until this instant.
fn bin_length(last: Nanos) -> Nanos {
    let most = if last.0 < 60 * 10 * TENTH { FEW } else { MOST };
    let fits = |tenths: &u64| last.0 / (tenths * TENTH) < most;
    let hours = (last.0 / (HOUR * TENTH) / MOST + 1) * HOUR;
    let tenths = TENTHS.into_iter().find(fits).unwrap_or(hours);
    // Below a minute bins are short; above it, of a second or more.
    let shortest = if last.0 < 60 * 10 * TENTH { 1 } else { 10 };
    Nanos(tenths.max(shortest) * TENTH)
}

/// What GPUs said in a bin.
#[derive(Debug, Default)]
struct BinLooks {
    busy: BinMean,
    watts: BinMean,
}

#[derive(Debug, Default, Clone, Copy)]
struct BinMean {
    sum: f64,
    n: u32,
}

impl BinMean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite() && *value >= 0.0) {
            self.sum += value;
            self.n += 1;
        }
    }

    fn mean(self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / f64::from(self.n))
    }
}

/// Bin by bin where looks are closer to each other: mean utilization, and the power of all where
/// all that ever tell it do.
fn gpu_bins(samples: &[HealthSample], bin: Nanos) -> Vec<(f64, Option<f64>, Option<f64>)> {
    let looks = || samples.iter().flat_map(|sample| &sample.gpus);
    let mut bins = BTreeMap::<u64, BTreeMap<u32, BinLooks>>::new();
    let mut metered = BTreeSet::<u32>::new();
    for GpuSample { at, gpu, busy, power_w, .. } in looks() {
        let one = bins.entry(at.0 / bin.0).or_default().entry(*gpu).or_default();
        one.busy.add(*busy);
        one.watts.add(*power_w);
        if one.watts.n > 0 {
            metered.insert(*gpu);
        }
    }
    let drawn = |(place, gpus): (u64, BTreeMap<u32, BinLooks>)| {
        let mut busy = BinMean::default();
        for looks in gpus.values() {
            busy.add(looks.busy.mean());
        }
        let watts: Option<Vec<f64>> =
            metered.iter().map(|gpu| gpus.get(gpu).and_then(|looks| looks.watts.mean())).collect();
        let watts = watts.filter(|each| !each.is_empty()).map(|each| each.iter().sum());
        ((place as f64 + 0.5) * bin.as_secs(), busy.mean(), watts)
    };
    bins.into_iter().map(drawn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_round_and_few() {
        let seconds = |last: f64| bin_length(Nanos::from_secs_f64(last)).as_secs();
        for (last, expected) in [
            (0.0, 0.1),
            (5.9, 0.1),
            (6.1, 0.2),
            (30.5, 1.0),
            (59.0, 1.0),
            (61.0, 1.0),
            (599.0, 1.0),
            (601.0, 2.0),
            (3_600.0, 10.0),
            (86_400.0, 300.0),
            (1e7, 18_000.0),
        ] {
            assert_eq!(seconds(last), expected, "{last}");
            assert!(last / expected < 600.0);
        }
        assert!(LATEST.0 / bin_length(LATEST).0 < 600);
    }

    #[test]
    fn power_is_that_of_all_gpus_or_of_none() {
        let look = |at: f64, gpu, busy, power_w| GpuSample {
            at: Nanos::from_secs_f64(at),
            gpu,
            busy: Some(busy),
            power_w,
            ..GpuSample::default()
        };
        let gpus_seen = vec![
            look(0.1, 0, 0.2, Some(100.0)),
            look(0.2, 1, 0.4, Some(300.0)),
            look(0.6, 0, 0.4, Some(200.0)),
            look(1.5, 0, 0.5, Some(150.0)),
            // It never tells its power.
            look(1.5, 2, 0.7, None),
        ];
        let seen = [HealthSample { gpus: gpus_seen, ..HealthSample::default() }];
        let found = gpu_bins(&seen, Nanos::from_millis(1_000));
        assert_eq!(found.len(), 2);
        // 0.3 and 0.4 on average; 150 and 300 W.
        assert!((found[0].1.unwrap() - 0.35).abs() < 1e-12);
        assert_eq!((found[0].0, found[0].2), (0.5, Some(450.0)));
        assert!((found[1].1.unwrap() - 0.6).abs() < 1e-12);
        assert_eq!((found[1].0, found[1].2), (1.5, None));
    }
}
