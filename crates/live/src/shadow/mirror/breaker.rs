//! When a candidate that fails is left alone, and when it is tried again.

use std::collections::VecDeque;
use std::time::Duration;

use goodput_model::Nanos;

/// How many failures are too many.
#[derive(Debug, Clone, PartialEq)]
pub struct StopAt {
    /// More than this share of the last ones; 1 is never.
    pub share: f64,
    /// How many of the last ones are looked at; with fewer nothing is decided.
    pub of: usize,
    /// How long the candidate is left alone before one request tries it again; twice as long each
    /// time that one fails.
    pub pause: Duration,
    /// At most so long.
    pub longest: Duration,
}

impl Default for StopAt {
    fn default() -> Self {
        Self {
            share: 0.5,
            of: 20,
            pause: Duration::from_secs(30),
            longest: Duration::from_mins(10),
        }
    }
}

/// Counts failures, and says who may go.
#[derive(Debug)]
pub(super) struct Breaker {
    settings: StopAt,
    /// Whether each of the last ones failed.
    last: VecDeque<bool>,
    state: BreakerState,
    pause: Nanos,
    /// The ticket of the next that may go.
    next: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BreakerState {
    /// All may go.
    Closed,
    /// No request may be sent before this instant.
    Open(Nanos),
    /// The one with this ticket is on its way to see whether all may.
    Probing(u64),
}

impl Breaker {
    pub(super) fn new(settings: StopAt) -> Self {
        let pause = settings.pause.into();
        Self { settings, last: VecDeque::new(), state: BreakerState::Closed, pause, next: 0 }
    }

    /// A ticket for a request that may go now. One that may while the breaker is open is the probe,
    /// and its outcome must be told.
    pub(super) fn admit(&mut self, at: Nanos) -> Option<u64> {
        match self.state {
            BreakerState::Closed => {}
            BreakerState::Open(until) if at >= until => {
                self.state = BreakerState::Probing(self.next);
            }
            BreakerState::Open(_) | BreakerState::Probing(_) => return None,
        }
        self.next += 1;
        Some(self.next - 1)
    }

    /// When the next may go; none if all may.
    pub(super) fn open_until(&self) -> Option<Nanos> {
        match self.state {
            BreakerState::Closed => None,
            BreakerState::Open(until) => Some(until),
            BreakerState::Probing(_) => Some(Nanos(u64::MAX)),
        }
    }

    /// The request with this ticket came to its end; whether mirroring just paused.
    pub(super) fn note_result(&mut self, ticket: u64, failed: bool, at: Nanos) -> bool {
        match self.state {
            BreakerState::Probing(probe) if probe == ticket && failed => {
                self.pause = (self.pause + self.pause).min(self.settings.longest.into());
                self.state = BreakerState::Open(at + self.pause);
                true
            }
            BreakerState::Probing(probe) if probe == ticket => {
                self.reset();
                false
            }
            // Requests in flight when it opened carry no new information.
            BreakerState::Probing(_) | BreakerState::Open(_) => false,
            BreakerState::Closed => self.count_result(failed, at),
        }
    }

    /// The one with this ticket ended without a word about the candidate: where it was the probe,
    /// another may try at once.
    pub(super) fn cancel_ticket(&mut self, ticket: u64, at: Nanos) {
        if self.state == BreakerState::Probing(ticket) {
            self.state = BreakerState::Open(at);
        }
    }

    /// All may go, and what was is forgotten.
    pub(super) fn reset(&mut self) {
        self.last.clear();
        self.state = BreakerState::Closed;
        self.pause = self.settings.pause.into();
    }

    fn count_result(&mut self, failed: bool, at: Nanos) -> bool {
        self.last.push_back(failed);
        if self.last.len() > self.settings.of {
            self.last.pop_front();
        }
        let failures = self.last.iter().filter(|failed| **failed).count();
        let too_many = failures as f64 > self.settings.share * self.last.len() as f64;
        if self.last.len() < self.settings.of || !too_many {
            return false;
        }
        self.last.clear();
        self.state = BreakerState::Open(at + self.pause);
        true
    }
}
