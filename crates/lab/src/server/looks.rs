//! [`Looks`]: what was seen and has not been taken yet, between the threads that look and the one
//! that writes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use goodput_model::{GpuSample, Nanos, Scrape, ServerReading, Signal, SignalValue};

/// Most scrapes, and most samples of GPUs, that wait to be taken. The collector comes once a second.
const MOST: usize = 10_000;

/// Shared by all who look and the one who takes. Instants are the clock's until they are taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Looks(Arc<Mutex<ServerSamples>>);

#[derive(Debug, Default)]
struct ServerSamples {
    scrapes: Vec<Scrape>,
    gpus: Vec<GpuSample>,
    /// What did not fit.
    lost: u64,
    /// Of the prefix cache, by endpoint.
    cache: BTreeMap<u32, Cache>,
    /// Whether the run has begun: before that only the last look of each counts.
    has_begun: bool,
    /// Of each GPU before the run.
    power: BTreeMap<u32, Power>,
}

/// Looks at the power of one GPU.
#[derive(Debug, Default)]
struct Power {
    sum: f64,
    count: f64,
    last: Option<f64>,
    has_changed: bool,
}

impl Power {
    fn add(&mut self, watts: f64) {
        (self.sum, self.count) = (self.sum + watts, self.count + 1.0);
        self.has_changed |= self.last.replace(watts).is_some_and(|last| last != watts);
    }
}

/// What one endpoint says of its prefix cache since the first look.
#[derive(Debug, Default)]
struct Cache {
    looks: u64,
    queries: f64,
    hits: f64,
}

/// Power while the server is idle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Idle {
    /// Mean of each GPU, added up.
    pub(super) watts: f64,
    /// Whether any GPU told two different values.
    pub(super) has_changed: bool,
}

impl Looks {
    fn lock_samples(&self) -> MutexGuard<'_, ServerSamples> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run is about to begin: from now on every look is kept until it is taken.
    pub(super) fn keep_from_now(&self) {
        self.lock_samples().has_begun = true;
    }

    /// One endpoint was asked.
    pub(super) fn push(&self, scrape: Scrape) {
        let mut seen = self.lock_samples();
        if let Ok(reading) = &scrape.outcome
            && let Some((queries, hits)) = cache_tokens(reading)
        {
            let cache = seen.cache.entry(scrape.endpoint).or_default();
            *cache = Cache { looks: cache.looks + 1, queries, hits };
        }
        if !seen.has_begun && scrape.outcome.is_ok() {
            seen.scrapes.retain(|old| old.outcome.is_err() || old.endpoint != scrape.endpoint);
        }
        if seen.scrapes.len() < MOST {
            seen.scrapes.push(scrape);
        } else {
            seen.lost += 1;
        }
    }

    /// GPUs were looked at.
    pub(super) fn push_gpus(&self, samples: Vec<GpuSample>) {
        let mut seen = self.lock_samples();
        if !seen.has_begun {
            for sample in &samples {
                seen.gpus.retain(|old| old.gpu != sample.gpu);
                if let Some(watts) = sample.power_w {
                    seen.power.entry(sample.gpu).or_default().add(watts);
                }
            }
        }
        let room = MOST.saturating_sub(seen.gpus.len());
        seen.lost += samples.len().saturating_sub(room) as u64;
        seen.gpus.extend(samples.into_iter().take(room));
    }

    /// What came since the last call, on the clock of a run that began then. What was seen before
    /// that was seen at its beginning; of several such answers the last counts.
    pub(crate) fn take_samples(&self, epoch: Nanos) -> (Vec<Scrape>, Vec<GpuSample>) {
        let (mut scrapes, mut gpus) = {
            let mut seen = self.lock_samples();
            (std::mem::take(&mut seen.scrapes), std::mem::take(&mut seen.gpus))
        };
        let mut later: Vec<(u32, Nanos)> = Vec::new();
        retain_from_the_end(&mut scrapes, |scrape| {
            scrape.outcome.is_err() || is_first(&mut later, scrape.endpoint, scrape.at, epoch)
        });
        let mut later: Vec<(u32, Nanos)> = Vec::new();
        retain_from_the_end(&mut gpus, |sample| is_first(&mut later, sample.gpu, sample.at, epoch));
        for scrape in &mut scrapes {
            scrape.at = scrape.at - epoch;
        }
        for sample in &mut gpus {
            sample.at = sample.at - epoch;
        }
        (scrapes, gpus)
    }

    /// Power of all GPUs together before the run, where they tell it.
    pub(super) fn idle_power(&self) -> Option<Idle> {
        let seen = self.lock_samples();
        let told = || seen.power.values().filter(|power| power.count > 0.0);
        let means = told().map(|power| power.sum / power.count);
        let watts = means.reduce(|sum, more| sum + more)?;
        Some(Idle { watts, has_changed: told().any(|power| power.has_changed) })
    }

    /// What did not fit, if anything.
    pub(super) fn lost_count(&self) -> Option<u64> {
        Some(self.lock_samples().lost).filter(|lost| *lost > 0)
    }

    /// Tokens looked up and found between the first look and the last, over all endpoints that
    /// tell, where there are two looks.
    pub(super) fn cache_counters(&self) -> Option<(u64, u64)> {
        let seen = self.lock_samples();
        let told = seen.cache.values().filter(|cache| cache.looks > 1);
        told.map(|cache| (cache.queries as u64, cache.hits as u64))
            .reduce(|sum, more| (sum.0 + more.0, sum.1 + more.1))
    }
}

fn cache_tokens(reading: &ServerReading) -> Option<(f64, f64)> {
    let number = |signal| match reading.values.get(&signal) {
        Some(SignalValue::Number(number)) => Some(*number),
        _ => None,
    };
    Some((number(Signal::PrefixQueries)?, number(Signal::PrefixHits)?))
}

/// Whether this is the first of its kind before the epoch, or not before it at all.
fn is_first(seen: &mut Vec<(u32, Nanos)>, kind: u32, at: Nanos, epoch: Nanos) -> bool {
    if at > epoch {
        return true;
    }
    let is_new = seen.iter().all(|(known, _)| *known != kind);
    if is_new {
        seen.push((kind, at));
    }
    is_new
}

/// Like `retain`, asking about the last first.
fn retain_from_the_end<T>(items: &mut Vec<T>, keeps: impl FnMut(&T) -> bool) {
    items.reverse();
    items.retain(keeps);
    items.reverse();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrape(at: u64, endpoint: u32, outcome: Result<(f64, f64), &str>) -> Scrape {
        let reading = |(queries, hits)| {
            let number = SignalValue::Number;
            let values =
                [(Signal::PrefixQueries, number(queries)), (Signal::PrefixHits, number(hits))];
            ServerReading { values: values.into(), ..ServerReading::default() }
        };
        let outcome = outcome.map(reading).map_err(str::to_owned);
        Scrape { at: Nanos(at), took: Nanos(1), endpoint, outcome }
    }

    fn watts(at: u64, gpu: u32, power: Option<f64>) -> GpuSample {
        GpuSample { at: Nanos(at), gpu, power_w: power, ..GpuSample::default() }
    }

    #[test]
    fn instants_become_those_of_the_run_and_of_its_eve_the_last_counts() {
        let looks = Looks::default();
        looks.keep_from_now();
        for (at, endpoint, outcome) in [
            (10, 0, Ok((0.0, 0.0))),
            (11, 1, Ok((0.0, 0.0))),
            (20, 0, Err("late")),
            (30, 0, Ok((3.0, 1.0))),
            (150, 0, Ok((40.0, 10.0))),
            (250, 1, Ok((7.0, 2.0))),
        ] {
            looks.push(scrape(at, endpoint, outcome));
        }
        let samples = [(5, 0), (6, 1), (90, 0), (100, 1), (101, 1)];
        looks.push_gpus(samples.map(|(at, gpu)| watts(at, gpu, None)).to_vec());
        let (scrapes, gpus) = looks.take_samples(Nanos(100));
        let kept: Vec<_> =
            scrapes.iter().map(|s| (s.at.0, s.endpoint, s.outcome.is_ok())).collect();
        let expected = [(0, 1, true), (0, 0, false), (0, 0, true), (50, 0, true), (150, 1, true)];
        assert_eq!(kept, expected);
        assert_eq!(scrapes[2].outcome, scrape(0, 0, Ok((3.0, 1.0))).outcome);
        let kept: Vec<_> = gpus.iter().map(|sample| (sample.at.0, sample.gpu)).collect();
        assert_eq!(kept, [(0, 0), (0, 1), (1, 1)]);
        assert_eq!(looks.take_samples(Nanos(100)), (Vec::new(), Vec::new()));
        assert_eq!(looks.cache_counters(), Some((47, 12)));
        assert_eq!(looks.lost_count(), None);
    }

    #[test]
    fn one_look_says_nothing_of_a_cache_and_power_is_added_up_over_gpus() {
        let looks = Looks::default();
        looks.push(scrape(1, 0, Ok((9.0, 9.0))));
        looks.push(scrape(2, 0, Err("late")));
        assert_eq!(looks.cache_counters(), None);
        assert_eq!(looks.idle_power(), None);
        let samples = [(1, 0, Some(90.0)), (1, 1, Some(50.0)), (2, 0, Some(110.0)), (3, 1, None)];
        for (at, gpu, power) in samples {
            looks.push_gpus(vec![watts(at, gpu, power)]);
        }
        assert_eq!(looks.idle_power(), Some(Idle { watts: 150.0, has_changed: true }));
        // Before the run the last of each is enough.
        let (scrapes, gpus) = looks.take_samples(Nanos(0));
        assert_eq!(scrapes.len(), 2);
        assert_eq!(gpus.iter().map(|s| (s.at.0, s.gpu)).collect::<Vec<_>>(), [(2, 0), (3, 1)]);
        let looks = Looks::default();
        for at in 0..9 {
            looks.push_gpus(vec![watts(at, 0, Some(80.0))]);
        }
        assert_eq!(looks.idle_power(), Some(Idle { watts: 80.0, has_changed: false }));
    }

    #[test]
    fn the_buffer_is_bounded_and_what_does_not_fit_is_counted() {
        let looks = Looks::default();
        looks.keep_from_now();
        for at in 0..MOST as u64 + 7 {
            looks.push(scrape(at, 0, Err("late")));
        }
        looks.push_gpus(vec![GpuSample::default(); MOST - 1]);
        looks.push_gpus(vec![GpuSample::default(); 3]);
        assert_eq!(looks.lost_count(), Some(9));
        assert_eq!(looks.take_samples(Nanos(u64::MAX)).0.len(), MOST);
    }
}
