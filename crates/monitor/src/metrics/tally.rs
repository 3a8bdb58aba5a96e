//! What ended requests and the workers' loops say, added up.

use std::collections::VecDeque;

use goodput_model::{BoundedHistogram, ErrorClass, LoopLag, Nanos, RequestRecord};
use goodput_stats::RequestTally;

use super::bounds::{E2E, ITL, LATE, TTFT};

/// How far back the largest lag is kept: longer than a scraper is usually away.
const LOOK_BACK: Nanos = Nanos::from_millis(15_000);

/// Sums over all requests that have ended, whatever their phase.
#[derive(Debug, Clone)]
pub struct MetricsTally {
    /// Of the requests.
    pub requests: RequestTally<BoundedHistogram>,
    pub(super) lag: BoundedHistogram,
    /// The largest of each look.
    lags: VecDeque<(Nanos, Nanos)>,
}

impl MetricsTally {
    /// Of no request.
    pub fn new(stream: bool) -> Self {
        let times = [TTFT, ITL, &[], E2E, LATE].map(|of| BoundedHistogram::from_time_bounds(&[of]));
        let mut requests = RequestTally::from_times(stream, times);
        // A family is on the page before its first sample; this class every target knows.
        requests.failed.insert(ErrorClass::Timeout, 0);
        Self { requests, lag: BoundedHistogram::from_time_bounds(&[LATE]), lags: VecDeque::new() }
    }

    /// A request has ended.
    pub fn add(&mut self, record: &RequestRecord) {
        self.requests.add(record);
    }

    /// Loops were called so late since the last time.
    pub(super) fn observe(&mut self, at: Nanos, beats: &[LoopLag]) {
        for beat in beats {
            self.lag.add_time(beat.lag);
        }
        let largest = beats.iter().map(|beat| beat.lag).max().unwrap_or(Nanos::ZERO);
        self.lags.push_back((at, largest));
        while self.lags.front().is_some_and(|(old, _)| *old + LOOK_BACK < at) {
            self.lags.pop_front();
        }
    }

    pub(super) fn largest_lag(&self) -> Nanos {
        self.lags.iter().map(|(_, lag)| *lag).max().unwrap_or(Nanos::ZERO)
    }
}
