//! [`LiveCounters`]: what a run looks like while it runs. Counters only; the numbers come from the
//! record.

use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Counters that workers add to and displays read. Relaxed: nothing depends on their order.
#[derive(Debug, Default)]
pub struct LiveCounters {
    pub(crate) started: AtomicU64,
    pub(crate) ok: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) tokens: AtomicU64,
    pub(crate) first_token_ns: AtomicU64,
    pub(crate) first_tokens: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) sessions: AtomicU64,
    pub(crate) ended_sessions: AtomicU64,
    /// What other clients of the same run have said of themselves.
    others: Mutex<Snapshot>,
}

/// One look at [`LiveCounters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// Requests let go.
    pub started: u64,
    /// Completed requests.
    pub ok: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Output tokens of ended requests.
    pub tokens: u64,
    /// Sum of TTFT from schedule over ended requests, in nanoseconds, and their number.
    pub ttft_sum_ns: u64,
    /// Number of requests in that sum.
    pub ttft_count: u64,
    /// Requests whose record the sink was too slow to take.
    pub lost: u64,
    /// Sessions that have begun.
    pub sessions: u64,
    /// Sessions that are over, whether or not all of their requests were sent.
    pub ended_sessions: u64,
}

impl LiveCounters {
    /// The counters of all clients, as far as they are known here.
    pub fn total_snapshot(&self) -> Snapshot {
        self.snapshot() + *self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What other clients have counted so far.
    pub fn set_others(&self, others: Snapshot) {
        *self.others.lock().unwrap_or_else(PoisonError::into_inner) = others;
    }

    /// The counters of this client now.
    pub fn snapshot(&self) -> Snapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Snapshot {
            started: read(&self.started),
            ok: read(&self.ok),
            failed: read(&self.failed),
            tokens: read(&self.tokens),
            ttft_sum_ns: read(&self.first_token_ns),
            ttft_count: read(&self.first_tokens),
            lost: read(&self.lost),
            sessions: read(&self.sessions),
            ended_sessions: read(&self.ended_sessions),
        }
    }
}

impl Add for Snapshot {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        // Others may say what they like.
        let sum = u64::saturating_add;
        Self {
            started: sum(self.started, other.started),
            ok: sum(self.ok, other.ok),
            failed: sum(self.failed, other.failed),
            tokens: sum(self.tokens, other.tokens),
            ttft_sum_ns: sum(self.ttft_sum_ns, other.ttft_sum_ns),
            ttft_count: sum(self.ttft_count, other.ttft_count),
            lost: sum(self.lost, other.lost),
            sessions: sum(self.sessions, other.sessions),
            ended_sessions: sum(self.ended_sessions, other.ended_sessions),
        }
    }
}

impl Snapshot {
    /// Requests in flight.
    pub fn in_flight(&self) -> u64 {
        self.started.saturating_sub(self.ok).saturating_sub(self.failed)
    }
}
