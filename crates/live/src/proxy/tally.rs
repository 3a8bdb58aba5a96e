//! [`Tally`]: counts of a running proxy.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters that only grow, but for those of what is going on now.
#[derive(Debug, Default)]
pub struct Tally {
    /// Connections of clients so far.
    pub connections: TallyCounter,
    /// Connections of clients that are open.
    pub open: TallyCounter,
    /// Requests that were passed on, or were to be.
    pub requests: TallyCounter,
    /// Requests in flight.
    pub in_flight: TallyCounter,
    /// Answers of the upstream that began, by the first digit of their status.
    pub statuses: [TallyCounter; 6],
    /// Bytes of requests' bodies.
    pub bytes_in: TallyCounter,
    /// Bytes of answers' bodies.
    pub bytes_out: TallyCounter,
    /// Requests without a whole answer because of the upstream.
    pub upstream_failures: TallyCounter,
    /// Requests whose client went away before the end.
    pub clients_gone: TallyCounter,
    /// Requests that were refused here: no passing on, no witness.
    pub refused: TallyCounter,
    /// Requests that were sent once more, because their connection had been closed when it was used.
    pub resent: TallyCounter,
    /// Connections, and streams of HTTP/2, that were ended because their client was too slow.
    pub too_slow: TallyCounter,
    /// Connections that came when as many were open as may be.
    pub at_limit: TallyCounter,
    /// Idle connections that were closed to make way for them.
    pub made_way: TallyCounter,
    /// Requests that were refused because too many waited for their turn.
    pub turned_away: TallyCounter,
    /// Requests that were cut when the proxy was stopped.
    pub cut: TallyCounter,
}

/// One counter.
#[derive(Debug, Default)]
pub struct TallyCounter(AtomicU64);

impl TallyCounter {
    /// How many.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// One more; returns how many there were.
    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn drop_one(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Tally {
    pub(crate) fn count_answer(&self, status: u16) {
        if let Some(count) = self.statuses.get(usize::from(status / 100)) {
            count.add(1);
        }
    }
}
