//! Times of everything and of the last seconds.

use goodput_model::{LogHistogram, Nanos};
use goodput_stats::TimeTally;

use crate::view::Percentiles;

/// Seconds that are lately.
const LATELY: u64 = 10;
/// One more second is kept for the current one.
const SECONDS: usize = LATELY as usize + 1;

/// A latency over a run.
#[derive(Debug, Default)]
pub(super) struct LatencySeries {
    all: LogHistogram,
    /// What other clients have counted so far.
    others: LogHistogram,
    /// Of the last seconds, each in its place, with the second that it is of.
    seconds: [(u64, LogHistogram); SECONDS],
}

impl TimeTally for LatencySeries {
    fn add(&mut self, at: Nanos, time: Nanos) {
        self.all.add(time);
        if let Some(second) = self.second_histogram(at) {
            second.add(time);
        }
    }

    fn add_unfinished(&mut self, at: Nanos, _: Nanos) {
        self.all.add_unfinished();
        if let Some(second) = self.second_histogram(at) {
            second.add_unfinished();
        }
    }
}

impl LatencySeries {
    /// What all other clients have counted so far. What is new came about now.
    pub(super) fn set_others(&mut self, at: Nanos, others: &LogHistogram) {
        let new = others.since(&self.others);
        self.others.clone_from(others);
        if let Some(second) = self.second_histogram(at) {
            second.merge(&new);
        }
    }

    fn second_histogram(&mut self, at: Nanos) -> Option<&mut LogHistogram> {
        let second = whole_seconds(at);
        let (of, histogram) = self.seconds.get_mut(second as usize % SECONDS)?;
        if *of < second {
            *of = second;
            histogram.clear();
        }
        // What comes very late is not lately.
        (*of == second).then_some(histogram)
    }

    /// Lately, and of everything.
    pub(super) fn recent_and_total(&self, at: Nanos) -> (Percentiles, Percentiles) {
        let mut lately = LogHistogram::default();
        let from = whole_seconds(at).saturating_sub(LATELY);
        for (second, histogram) in &self.seconds {
            if *second >= from && *second <= whole_seconds(at) {
                lately.merge(histogram);
            }
        }
        let mut all = self.all.clone();
        all.merge(&self.others);
        (histogram_percentiles(&lately), histogram_percentiles(&all))
    }
}

/// In milliseconds, within 2 %.
fn histogram_percentiles(of: &LogHistogram) -> Percentiles {
    Percentiles {
        n: of.count(),
        p50: of.quantile_ms(0.5),
        p90: of.quantile_ms(0.9),
        p95: of.quantile_ms(0.95),
        p99: of.quantile_ms(0.99),
        max: of.max_ms(),
    }
}

fn whole_seconds(at: Nanos) -> u64 {
    at.0 / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lately_and_of_all() {
        let (mut series, ms) = (LatencySeries::default(), Nanos::from_millis);
        assert_eq!(series.recent_and_total(ms(0)), Default::default());
        // A hundred values of 1 to 100 ms in second 0, and ten of 500 ms in second 20.
        (1..=100).for_each(|n| series.add(ms(100), ms(n)));
        (0..10).for_each(|_| series.add(ms(20_000), ms(500)));
        let (now, all) = series.recent_and_total(ms(21_000));
        let about = |value: Option<f64>, wanted: f64| (value.unwrap() / wanted - 1.0).abs() < 0.02;
        assert_eq!((now.n, all.n), (10, 110));
        assert!(about(now.p50, 500.0) && about(now.max, 500.0), "{now:?}");
        assert!(about(all.p50, 55.0) && about(all.p90, 99.0) && about(all.p95, 500.0), "{all:?}");
        assert_eq!(series.recent_and_total(ms(60_000)).0, Percentiles::default());
    }

    #[test]
    fn what_other_clients_counted_counts() {
        let (mut one, mut other, ms) =
            (LatencySeries::default(), LatencySeries::default(), Nanos::from_millis);
        let (mut whole, mut both) = (LatencySeries::default(), LatencySeries::default());
        for n in 1..=100 {
            [&mut one, &mut other][n as usize % 2].add(ms(500), ms(n));
            whole.add(ms(500), ms(n));
        }
        // Told twice, it counts once.
        both.set_others(ms(600), &one.all);
        let mut sum = one.all.clone();
        sum.merge(&other.all);
        both.set_others(ms(700), &sum);
        assert_eq!(both.recent_and_total(ms(800)), whole.recent_and_total(ms(800)));
        // A client may say anything.
        let many = format!(r#"{{"counts":{{"7":{0},"65535":{0}}}}}"#, u64::MAX);
        sum.merge(&serde_json::from_str(&many).unwrap());
        both.set_others(ms(900), &sum);
        assert!(both.recent_and_total(ms(900)).1.p99.is_some());
    }

    #[test]
    fn what_was_given_up_is_longer_than_anything() {
        let (mut series, ms) = (LatencySeries::default(), Nanos::from_millis);
        series.add(ms(1), ms(10));
        series.add_unfinished(ms(2), ms(1));
        let (now, _) = series.recent_and_total(ms(3));
        assert_eq!((now.n, now.p99, now.max), (2, Some(f64::INFINITY), Some(f64::INFINITY)));
        assert!(now.p50.unwrap() < 11.0);
    }
}
