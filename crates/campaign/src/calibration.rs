//! How fast and how exact a client is: levels of rising load against a server of known timing, until
//! the client's own error passes a millisecond; then closer to that point.

use goodput_model::Ceiling;
use goodput_stats::Summary;
use serde::{Deserialize, Serialize};

/// The error that ends a climb, in milliseconds.
const ERROR_LIMIT_MS: f64 = 1.0;

/// Two levels this close are close enough.
const CLOSE: f64 = 1.25;

/// What a climb raises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClimbKind {
    /// Streams open at once, each with an event every 20 ms.
    Streams,
    /// Requests per second with short answers.
    Requests,
}

impl ClimbKind {
    /// The levels of the climb.
    fn ladder_levels(self) -> &'static [f64] {
        match self {
            Self::Streams => &[1.0, 10.0, 100.0, 500.0, 1e3, 2e3, 4e3, 8e3, 16e3],
            Self::Requests => &[100.0, 300.0, 1e3, 2e3, 4e3, 8e3, 16e3, 32e3],
        }
    }
}

/// What was measured at one level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrationLevel {
    /// What was raised.
    pub kind: ClimbKind,
    /// The level it was raised to.
    pub level: f64,
    /// Streamed events received per second.
    pub events_per_s: f64,
    /// Requests per second that were sent.
    pub requests_per_s: f64,
    /// CPU time of all workers per event, in microseconds.
    pub cpu_us_per_event: f64,
    /// Error of TTFT against the server's own record, at p50 and p99; none without an answer.
    pub ttft_error_ms: [Option<f64>; 2],
    /// Error of ITL at p99.
    pub itl_error_ms: Option<f64>,
    /// Lateness of requests at p50 and p99.
    pub slip_ms: [Option<f64>; 2],
    /// How late bytes were read at p99.
    pub lag_ms: Option<f64>,
    /// Why the level exceeded the limits; none if it did not.
    pub limited_by: Option<String>,
    /// Whether the client caused that, and not the test server.
    pub is_clients_limit: bool,
}

impl CalibrationLevel {
    /// From the numbers of the run at this level, and how late the server itself wrote (p99).
    pub fn new(kind: ClimbKind, level: f64, summary: &Summary, server_late_ms: f64) -> Self {
        let (client, load) = (&summary.client, &summary.load);
        let events_per_s = client.events_per_s.unwrap_or(0.0);
        let workers = client.threads.iter().filter(|(name, _)| name.starts_with("worker-"));
        let cpu: f64 = workers.map(|(_, thread)| thread.cpu_share).sum();
        let canary = client.canary;
        let mut reading = Self {
            kind,
            level,
            events_per_s,
            requests_per_s: load.delivered_rps.unwrap_or(0.0),
            cpu_us_per_event: cpu * 1e6 / events_per_s.max(1e-9),
            ttft_error_ms: [
                canary.and_then(|canary| canary.ttft_error_ms.p50),
                canary.and_then(|canary| canary.ttft_error_ms.p99),
            ],
            itl_error_ms: canary.and_then(|canary| canary.itl_error_ms.p99),
            slip_ms: [load.slip_ms.p50, load.slip_ms.p99],
            lag_ms: client.lag_ms.p99,
            limited_by: None,
            is_clients_limit: false,
        };
        reading.find_limit(summary.requests.failed, server_late_ms);
        reading
    }

    fn find_limit(&mut self, failed: u64, server_late_ms: f64) {
        let late = |what: &str, ms: Option<f64>| match ms {
            None => Some(format!("no {what} was measured")),
            Some(ms) => (ms > ERROR_LIMIT_MS).then(|| format!("{what} {ms:.2} ms at p99")),
        };
        let of_client = (failed > 0)
            .then(|| format!("{failed} requests failed"))
            .or_else(|| late("TTFT error", self.ttft_error_ms[1]))
            .or_else(|| late("ITL error", self.itl_error_ms))
            .or_else(|| late("schedule slip", self.slip_ms[1]));
        // A server that is late itself proves nothing about the client.
        let of_server = late("the test server, not the client, wrote late:", Some(server_late_ms));
        self.is_clients_limit = of_client.is_some() && of_server.is_none();
        self.limited_by = of_server.or(of_client);
    }

    /// Whether the client carried it with an error below a millisecond.
    pub fn is_carried(&self) -> bool {
        self.limited_by.is_none()
    }
}

/// The level to measure next, none when the ceiling is known well enough.
pub fn next_level(kind: ClimbKind, done: &[CalibrationLevel]) -> Option<f64> {
    let of_kind = || done.iter().filter(|level| level.kind == kind);
    let refused = of_kind().filter(|level| !level.is_carried()).map(|level| level.level);
    match refused.min_by(f64::total_cmp) {
        None => {
            let highest = of_kind().map(|level| level.level).fold(0.0, f64::max);
            kind.ladder_levels().iter().copied().find(|level| *level > highest)
        }
        Some(refused) => {
            let carried = of_kind().filter(|level| level.is_carried()).map(|level| level.level);
            let carried = carried.filter(|level| *level < refused).fold(0.0, f64::max);
            (carried > 0.0 && refused / carried > CLOSE).then(|| (refused * carried).sqrt().round())
        }
    }
}

/// The most that was carried: events per second over streams, requests per second over requests.
/// None if the climb ended for a reason other than the client.
pub fn measured_ceiling(done: &[CalibrationLevel]) -> Ceiling {
    let most = |kind: ClimbKind, rate: fn(&CalibrationLevel) -> f64| {
        let of_kind = || done.iter().filter(|level| level.kind == kind);
        let refused = of_kind().filter(|level| !level.is_carried());
        let lowest = refused.min_by(|a, b| a.level.total_cmp(&b.level))?;
        let carried = of_kind().filter(|level| level.is_carried()).map(rate).max_by(f64::total_cmp);
        carried.filter(|_| lowest.is_clients_limit)
    };
    Ceiling {
        events_per_s: most(ClimbKind::Streams, |level| level.events_per_s),
        requests_per_s: most(ClimbKind::Requests, |level| level.requests_per_s),
    }
}

/// A calibration as it is saved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// `goodput.calibration/1`
    pub schema: String,
    /// Version of goodput that made the calibration.
    pub version: String,
    /// When (RFC 3339).
    pub date: String,
    /// The machine: processor and system.
    pub machine: String,
    /// Processors available.
    pub cpus: u64,
    /// Threads that sent and received.
    pub workers: u32,
    /// What stamped arrivals: `kernel` or `read`.
    pub stamps: String,
    /// Every level, in the order measured.
    pub levels: Vec<CalibrationLevel>,
    /// The most that the client carries.
    pub ceiling: Ceiling,
}

impl Calibration {
    /// The format this version writes.
    pub const SCHEMA: &'static str = "goodput.calibration/1";
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(level: f64, is_carried: bool) -> CalibrationLevel {
        CalibrationLevel {
            kind: ClimbKind::Streams,
            level,
            events_per_s: 50.0 * level,
            requests_per_s: level,
            cpu_us_per_event: 1.0,
            ttft_error_ms: [None; 2],
            itl_error_ms: None,
            slip_ms: [None; 2],
            lag_ms: None,
            limited_by: (!is_carried).then(|| "late".to_owned()),
            is_clients_limit: !is_carried,
        }
    }

    /// Climbs against a client that carries `limit`: the levels asked for, and the ceiling.
    fn climb(limit: f64) -> (Vec<f64>, Option<f64>) {
        let mut done = Vec::new();
        while let Some(next) = next_level(ClimbKind::Streams, &done) {
            done.push(level(next, next <= limit));
            assert!(done.len() < 30, "does not end");
        }
        let found = measured_ceiling(&done).events_per_s.map(|events| events / 50.0);
        (done.iter().map(|level| level.level).collect(), found)
    }

    #[test]
    fn climbs_then_closes_in() {
        let (levels, found) = climb(1500.0);
        assert_eq!(levels, [1.0, 10.0, 100.0, 500.0, 1000.0, 2000.0, 1414.0, 1682.0]);
        assert_eq!(found, Some(1414.0));
        for limit in [12.0, 99.0, 731.0, 5000.0, 15_999.0] {
            let found = climb(limit).1.unwrap();
            assert!(found <= limit && limit < found * CLOSE + 1.0, "{limit}: {found}");
        }
    }

    #[test]
    fn the_ends_of_the_ladder() {
        let (levels, found) = climb(f64::INFINITY);
        assert_eq!((levels.last(), found), (Some(&16e3), None), "nothing was found to be too much");
        assert_eq!(climb(0.0), (vec![1.0], None));
    }
}
