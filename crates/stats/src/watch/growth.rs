//! Whether a queue grows during a run, by what has been measured so far.

use std::collections::VecDeque;

use goodput_model::Nanos;

use crate::saturation;
use crate::series::{Medians, Series};

/// Seconds that are looked back on.
const BACK: usize = 120;

/// What is seen about once a second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Tick {
    pub(crate) at_s: f64,
    pub(crate) in_flight: f64,
    /// Requests let go so far.
    pub(crate) started: f64,
    /// Mean wait for the first token of the answers that ended since the last tick.
    pub(crate) ttft_ms: Option<f64>,
}

/// The last two minutes.
#[derive(Debug, Default)]
pub(crate) struct Ticks(VecDeque<Tick>);

impl Ticks {
    pub(crate) fn push(&mut self, tick: Tick) {
        if self.0.len() > BACK {
            self.0.pop_front();
        }
        self.0.push_back(tick);
    }

    /// By how many requests per second the queue grows, where it does by the same rule as in the
    /// report.
    pub(crate) fn queue_growth(&self) -> Option<f64> {
        let found = saturation::judge_saturation(&self.to_series()?)?;
        found.over_saturated.then_some(found.backlog_growth_per_s)
    }

    /// Requests in flight that were let go before this instant, at least.
    pub(crate) fn in_flight_since(&self, since_s: f64) -> u64 {
        let before = self.0.iter().rev().find(|tick| tick.at_s <= since_s).or(self.0.front());
        let (Some(before), Some(last)) = (before, self.0.back()) else { return 0 };
        (last.in_flight - (last.started - before.started)).max(0.0) as u64
    }

    /// A bin for each tick but the first.
    fn to_series(&self) -> Option<Series> {
        let (first, last) = (self.0.front()?, self.0.back()?);
        let bins = self.0.len().checked_sub(1).filter(|bins| *bins > 0)?;
        let bin = Nanos::from_secs_f64((last.at_s - first.at_s) / bins as f64);
        let mut series =
            Series { start: Nanos::from_secs_f64(first.at_s), bin, ..Series::default() };
        let mut wait = self.0.iter().find_map(|tick| tick.ttft_ms)?;
        let mut before = first;
        for tick in self.0.iter().skip(1) {
            wait = tick.ttft_ms.unwrap_or(wait);
            let sent = tick.started - before.started;
            series.in_flight.push(tick.in_flight);
            series.ttft.values.push(wait);
            series.arrivals.push(sent as u32);
            series.completions.push((sent - (tick.in_flight - before.in_flight)) as u32);
            before = tick;
        }
        let counts = vec![1; bins];
        series.ttft = Medians { counts, ..series.ttft };
        series.refused = vec![0; bins];
        series.tokens_per_s = vec![0.0; bins];
        Some(series)
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::random::{Domain, RandomStream};

    use super::*;

    /// A minute of arrivals at 20/s and completions at another rate; the last look.
    fn look(done_per_s: f64, noise: f64, seed: u64) -> Option<f64> {
        let mut stream = RandomStream::new(seed, Domain::Service, 0);
        let mut ticks = Ticks::default();
        for second in 0..60 {
            let at_s = f64::from(second);
            let queue = 40.0 + (20.0 - done_per_s) * at_s;
            let in_flight = (queue + noise * stream.draw_normal()).max(0.0);
            let ttft_ms = Some(in_flight / 20.0 * 1e3 + 10.0 * stream.draw_normal());
            ticks.push(Tick { at_s, in_flight, started: 20.0 * at_s, ttft_ms });
        }
        ticks.queue_growth()
    }

    #[test]
    fn growth_is_its_slope() {
        let found = look(17.0, 0.0, 1).unwrap();
        assert!((found - 3.0).abs() < 1e-9, "{found}");
        assert!((look(17.0, 5.0, 1).unwrap() - 3.0).abs() < 0.5);
    }

    #[test]
    fn a_steady_queue_does_not_grow() {
        let alarms = (0..1000).filter(|seed| look(20.0, 6.3, *seed).is_some()).count();
        assert_eq!(alarms, 0, "of 1000");
        assert_eq!(look(19.9, 0.0, 1), None, "half a percent of what is sent");
        assert_eq!(look(25.0, 1.0, 1), None, "it shrinks");
    }

    #[test]
    fn what_is_under_way_for_too_long_hangs() {
        let mut ticks = Ticks::default();
        assert_eq!(ticks.in_flight_since(0.0), 0);
        // Ten a second, of which one in ten never ends and the others are over within the second.
        for second in 0..50 {
            let at_s = f64::from(second);
            let (in_flight, started) = (at_s + 9.0, 10.0 * at_s + 9.0);
            ticks.push(Tick { at_s, in_flight, started, ttft_ms: Some(100.0) });
        }
        assert_eq!(ticks.in_flight_since(48.5), 48);
        assert_eq!(ticks.in_flight_since(44.0), 8);
    }

    #[test]
    fn little_is_nothing() {
        let mut ticks = Ticks::default();
        for second in 0..30 {
            assert_eq!(ticks.queue_growth(), None, "{second}");
            let at_s = f64::from(second);
            let (in_flight, started) = (9.0 * at_s, 10.0 * at_s);
            ticks.push(Tick { at_s, in_flight, started, ttft_ms: Some(at_s * 100.0) });
        }
        assert_eq!(ticks.queue_growth(), None);
    }
}
