//! Histograms of times with fine buckets, of everything and of the last seconds.

use goodput_model::Nanos;
use goodput_screen::Percentiles;

/// Finer than this is not told apart: 2⁷ ns.
const GRAIN: u32 = 7;
/// Buckets of an octave: values are told within half of 1/32 of them.
const FINE: u32 = 5;
/// Times above 2⁴⁰ grains (39 hours) are taken for that.
const LARGEST: u64 = (1 << 40) - 1;
const BUCKETS: usize = 36 << FINE;

/// Seconds that are lately.
const LATELY: u64 = 10;
/// A second more than that is kept for the one that is under way.
const SECONDS: usize = LATELY as usize + 1;

/// Counts by bucket.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    counts: Vec<u32>,
    n: u64,
    /// Values that were still growing when they were given up.
    unfinished: u64,
    max: Nanos,
}

impl Histogram {
    fn new() -> Self {
        Self { counts: vec![0; BUCKETS], n: 0, unfinished: 0, max: Nanos::ZERO }
    }

    fn clear(&mut self) {
        self.counts.fill(0);
        (self.n, self.unfinished, self.max) = (0, 0, Nanos::ZERO);
    }

    fn add(&mut self, time: Nanos) {
        if let Some(count) = self.counts.get_mut(bucket(time)) {
            *count = count.saturating_add(1);
        }
        self.n += 1;
        self.max = self.max.max(time);
    }

    fn add_unfinished(&mut self) {
        self.n += 1;
        self.unfinished += 1;
    }

    fn merge(&mut self, other: &Self) {
        for (sum, count) in self.counts.iter_mut().zip(&other.counts) {
            *sum = sum.saturating_add(*count);
        }
        self.n = self.n.saturating_add(other.n);
        self.unfinished = self.unfinished.saturating_add(other.unfinished);
        self.max = self.max.max(other.max);
    }

    /// The same counts for another client, and those of another client.
    fn told(&self) -> goodput_fleet::Histogram {
        let counts = (0u16..).zip(&self.counts).filter(|(_, count)| **count > 0);
        goodput_fleet::Histogram {
            counts: counts.map(|(place, count)| (place, u64::from(*count))).collect(),
            unfinished: self.unfinished,
            max: self.max,
        }
    }

    fn heard(told: &goodput_fleet::Histogram) -> Self {
        let mut own = Self::new();
        for (place, count) in &told.counts {
            if let Some(sum) = own.counts.get_mut(usize::from(*place)) {
                *sum = u32::try_from(*count).unwrap_or(u32::MAX);
                own.n = own.n.saturating_add(*count);
            }
        }
        own.n = own.n.saturating_add(told.unfinished);
        (own.unfinished, own.max) = (told.unfinished, told.max);
        own
    }

    /// What came since these counts.
    fn since(&self, before: &Self) -> Self {
        let pairs = self.counts.iter().zip(&before.counts);
        Self {
            counts: pairs.map(|(now, then)| now.saturating_sub(*then)).collect(),
            n: self.n.saturating_sub(before.n),
            unfinished: self.unfinished.saturating_sub(before.unfinished),
            max: self.max,
        }
    }

    /// Percentiles in milliseconds, within 2 %.
    fn percentiles(&self) -> Percentiles {
        let of = |share: f64| (self.n > 0).then(|| self.quantile(share));
        let max = if self.unfinished > 0 { f64::INFINITY } else { self.max.as_ms() };
        Percentiles {
            n: self.n,
            p50: of(0.5),
            p90: of(0.9),
            p95: of(0.95),
            p99: of(0.99),
            max: (self.n > 0).then_some(max),
        }
    }

    fn quantile(&self, share: f64) -> f64 {
        let rank = (share * self.n as f64).ceil().max(1.0) as u64;
        let mut sum = 0;
        for (place, count) in self.counts.iter().enumerate() {
            sum += u64::from(*count);
            if sum >= rank {
                return middle(place).min(self.max).as_ms();
            }
        }
        f64::INFINITY
    }
}

/// Linear up to 2⁵ grains, then 2⁵ buckets for each doubling.
fn bucket(time: Nanos) -> usize {
    let grains = (time.0 >> GRAIN).min(LARGEST);
    let shift = (u64::BITS - grains.leading_zeros()).saturating_sub(FINE + 1);
    ((u64::from(shift) << FINE) + (grains >> shift)) as usize
}

/// The middle of a bucket.
fn middle(place: usize) -> Nanos {
    let shift = (place >> FINE).saturating_sub(1) as u32;
    let from = (place as u64 - (u64::from(shift) << FINE)) << shift;
    Nanos((from << GRAIN) + (1 << (shift + GRAIN)) / 2)
}

/// A latency over a run.
#[derive(Debug)]
pub(super) struct Series {
    all: Histogram,
    /// What other clients have counted so far.
    others: Option<Histogram>,
    /// Of the last seconds, each in its place, with the second that it is of.
    seconds: Vec<(u64, Histogram)>,
}

impl Series {
    pub(super) fn new() -> Self {
        let seconds = vec![(0, Histogram::new()); SECONDS];
        Self { all: Histogram::new(), others: None, seconds }
    }

    /// What this client has counted so far, for another one.
    pub(super) fn told(&self) -> goodput_fleet::Histogram {
        self.all.told()
    }

    /// What all other clients have counted so far. What is new came about now.
    pub(super) fn hear(&mut self, at: Nanos, told: &goodput_fleet::Histogram) {
        let heard = Histogram::heard(told);
        let before = self.others.take().unwrap_or_else(Histogram::new);
        let new = heard.since(&before);
        self.others = Some(heard);
        if let Some(second) = self.second(at) {
            second.merge(&new);
        }
    }

    /// A value that was complete at this instant.
    pub(super) fn add(&mut self, at: Nanos, time: Nanos) {
        self.all.add(time);
        if let Some(second) = self.second(at) {
            second.add(time);
        }
    }

    /// One that was given up at this instant: longer than anything.
    pub(super) fn add_unfinished(&mut self, at: Nanos) {
        self.all.add_unfinished();
        if let Some(second) = self.second(at) {
            second.add_unfinished();
        }
    }

    fn second(&mut self, at: Nanos) -> Option<&mut Histogram> {
        let second = whole(at);
        let (of, histogram) = self.seconds.get_mut(second as usize % SECONDS)?;
        if *of < second {
            *of = second;
            histogram.clear();
        }
        // What comes very late is not lately.
        (*of == second).then_some(histogram)
    }

    /// Lately, and of everything.
    pub(super) fn percentiles(&self, at: Nanos) -> (Percentiles, Percentiles) {
        let mut lately = Histogram::new();
        let from = whole(at).saturating_sub(LATELY);
        for (second, histogram) in &self.seconds {
            if *second >= from && *second <= whole(at) {
                lately.merge(histogram);
            }
        }
        let mut all = self.all.clone();
        all.merge(self.others.as_ref().unwrap_or(&Histogram::new()));
        (lately.percentiles(), all.percentiles())
    }
}

fn whole(at: Nanos) -> u64 {
    at.0 / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_told_within_two_percent() {
        let mut time = 5_000u64;
        while time < 86_400_000_000_000 {
            let told = middle(bucket(Nanos(time))).0 as f64;
            assert!((told / time as f64 - 1.0).abs() < 0.02, "{time} as {told}");
            time += time / 7;
        }
        // Neighbours in order, and the largest in the last.
        let all: Vec<u64> = (0..BUCKETS).map(|place| middle(place).0).collect();
        assert!(all.is_sorted());
        assert!((0..BUCKETS).all(|place| bucket(middle(place)) == place));
        assert_eq!(bucket(Nanos(u64::MAX)), BUCKETS - 1);
        assert_eq!(bucket(Nanos(0)), 0);
    }

    #[test]
    fn percentiles_lately_and_of_all() {
        let (mut series, ms) = (Series::new(), Nanos::from_millis);
        assert_eq!(series.percentiles(ms(0)), Default::default());
        // A hundred values of 1 to 100 ms in second 0, and ten of 500 ms in second 20.
        (1..=100).for_each(|n| series.add(ms(100), ms(n)));
        (0..10).for_each(|_| series.add(ms(20_000), ms(500)));
        let (now, all) = series.percentiles(ms(21_000));
        let about = |value: Option<f64>, wanted: f64| (value.unwrap() / wanted - 1.0).abs() < 0.02;
        assert_eq!((now.n, all.n), (10, 110));
        assert!(about(now.p50, 500.0) && about(now.max, 500.0), "{now:?}");
        assert!(about(all.p50, 55.0) && about(all.p90, 99.0) && about(all.p95, 500.0), "{all:?}");
        assert_eq!(series.percentiles(ms(60_000)).0, Percentiles::default());
    }

    #[test]
    fn what_other_clients_counted_counts() {
        let (mut one, mut other, ms) = (Series::new(), Series::new(), Nanos::from_millis);
        let (mut whole, mut both) = (Series::new(), Series::new());
        for n in 1..=100 {
            [&mut one, &mut other][n as usize % 2].add(ms(500), ms(n));
            whole.add(ms(500), ms(n));
        }
        // Told twice, it counts once.
        both.hear(ms(600), &one.told());
        let mut sum = one.told();
        sum.merge(&other.told());
        both.hear(ms(700), &sum);
        assert_eq!(both.percentiles(ms(800)), whole.percentiles(ms(800)));
        // A client may say anything.
        sum.counts.insert(u16::MAX, u64::MAX);
        sum.counts.insert(7, u64::MAX);
        both.hear(ms(900), &sum);
        assert!(both.percentiles(ms(900)).1.p99.is_some());
    }

    #[test]
    fn what_was_given_up_is_longer_than_anything() {
        let (mut series, ms) = (Series::new(), Nanos::from_millis);
        series.add(ms(1), ms(10));
        series.add_unfinished(ms(2));
        let (now, _) = series.percentiles(ms(3));
        assert_eq!((now.n, now.p99, now.max), (2, Some(f64::INFINITY), Some(f64::INFINITY)));
        assert!(now.p50.unwrap() < 11.0);
    }
}
