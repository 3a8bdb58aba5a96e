//! Whether a queue grows while a run goes on (METHOD 3.6, in its simplest form).

use std::collections::VecDeque;

/// Seconds that are looked back on.
const BACK: usize = 30;

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

/// The last half minute.
#[derive(Debug, Default)]
pub(crate) struct Ticks(VecDeque<Tick>);

impl Ticks {
    pub(crate) fn push(&mut self, tick: Tick) {
        if self.0.len() > BACK {
            self.0.pop_front();
        }
        self.0.push_back(tick);
    }

    /// By how many requests per second the queue grows, where it clearly does.
    ///
    /// Both the requests under way and the wait for a first token rise beyond their t-interval; of
    /// what was sent more than 3 % stayed; and the rise is larger than what chance makes of Poisson
    /// arrivals (three standard deviations of the difference of two counts) and than a tenth.
    pub(crate) fn growth(&self) -> Option<f64> {
        let (first, last) = (self.0.front()?, self.0.back()?);
        let points = |of: fn(&Tick) -> Option<f64>| {
            self.0.iter().filter_map(move |tick| Some((tick.at_s, of(tick)?))).collect::<Vec<_>>()
        };
        let queue = rise(&points(|tick| Some(tick.in_flight)))?;
        let wait = rise(&points(|tick| tick.ttft_ms))?;
        let grown = queue.slope * (last.at_s - first.at_s);
        let sent = last.started - first.started;
        let mean = self.0.iter().map(|tick| tick.in_flight).sum::<f64>() / self.0.len() as f64;
        let chance = (3.0 * (2.0 * first.in_flight).sqrt()).max(5.0).max(0.1 * mean);
        let is_clear = self.0.len() > BACK && queue.is_sure && wait.is_sure;
        (is_clear && grown > chance && grown > 0.03 * sent).then_some(queue.slope)
    }
}

struct Rise {
    slope: f64,
    /// The slope is positive beyond its 95 % interval.
    is_sure: bool,
}

/// The line through these points, by least squares.
fn rise(points: &[(f64, f64)]) -> Option<Rise> {
    let n = points.len() as f64;
    let (x, y) =
        points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0 / n, sum.1 + point.1 / n));
    let width: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let slope = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / width;
    let left: f64 = points.iter().map(|point| (point.1 - y - slope * (point.0 - x)).powi(2)).sum();
    (points.len() > BACK / 2 && width > 0.0).then(|| {
        let error = (left / (n - 2.0) / width).sqrt();
        // t of 16 points, which are 14 degrees of freedom; of more it is smaller.
        Rise { slope, is_sure: slope > 2.145 * error }
    })
}

#[cfg(test)]
mod tests {
    use goodput_random::{Domain, Stream};

    use super::*;

    /// A minute of arrivals at 20/s and completions at another rate; the last look.
    fn look(done_per_s: f64, noise: f64, seed: u64) -> Option<f64> {
        let mut stream = Stream::new(seed, Domain::Service, 0);
        let mut ticks = Ticks::default();
        for second in 0..60 {
            let at_s = f64::from(second);
            let queue = 40.0 + (20.0 - done_per_s) * at_s;
            let in_flight = (queue + noise * stream.normal()).max(0.0);
            let ttft_ms = Some(in_flight / 20.0 * 1e3 + 10.0 * stream.normal());
            ticks.push(Tick { at_s, in_flight, started: 20.0 * at_s, ttft_ms });
        }
        ticks.growth()
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
    fn little_is_nothing() {
        let mut ticks = Ticks::default();
        for second in 0..30 {
            assert_eq!(ticks.growth(), None, "{second}");
            let at_s = f64::from(second);
            let (in_flight, started) = (9.0 * at_s, 10.0 * at_s);
            ticks.push(Tick { at_s, in_flight, started, ttft_ms: Some(at_s * 100.0) });
        }
        assert_eq!(ticks.growth(), None);
    }
}
