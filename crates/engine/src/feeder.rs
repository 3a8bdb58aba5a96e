//! The feeder: builds sessions ahead of their instants, on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crossbeam_queue::ArrayQueue;
use goodput_clock::pause;
use goodput_model::schedule::{ArrivalSequence, RunTimeline};
use goodput_model::{Nanos, Session, Shard};
use goodput_workload::Workload;
use tokio::sync::mpsc::Sender;

use crate::senders::Senders;
use crate::session::{BodyEncoder, PreparedSession};

/// Sessions built ahead of the workers. At 3,000 sessions/s this is more than a second.
pub(crate) const AHEAD: usize = 4096;

/// Bytes built ahead, about: fewer sessions than [`AHEAD`] where prompts are long or have images.
const BYTES_AHEAD: u64 = 256 << 20;

/// How long a feeder with enough ahead sleeps. What is ahead lasts far longer; waking more often
/// would cost the workers.
const REST: Nanos = Nanos::from_millis(20);

/// What a run sends: sessions by their number, each always the same.
pub trait SessionSource: Send {
    /// Session `number`; `None` past the end.
    fn session(&self, number: u64) -> Option<Session>;
    /// When session `number` arrives, in workloads that bring their own instants; in order.
    fn arrival(&self, number: u64) -> Option<Nanos>;
    /// How many requests session `number` has.
    fn request_count(&self, number: u64) -> Option<u64> {
        self.session(number).map(|session| session.request_count())
    }
    /// In whose turn it is dealt out to a client: sessions of one turn stay together.
    fn deal_turn(&self, number: u64) -> u64 {
        number
    }
}

impl SessionSource for Workload {
    fn session(&self, number: u64) -> Option<Session> {
        Workload::session(self, number)
    }

    fn arrival(&self, number: u64) -> Option<Nanos> {
        Workload::arrival(self, number)
    }

    fn request_count(&self, number: u64) -> Option<u64> {
        Workload::request_count(self, number)
    }

    fn deal_turn(&self, number: u64) -> u64 {
        Workload::deal_turn(self, number)
    }
}

/// Builds sessions, and numbers their requests: first those of session 0, then those of session 1.
/// Those of other shards are counted, not built.
pub(crate) struct Feeder {
    sessions: Box<dyn SessionSource>,
    shard: Shard,
    scribe: BodyEncoder,
    senders: Senders,
    number: u64,
    index: u64,
}

impl Feeder {
    pub(crate) fn new(
        sessions: Box<dyn SessionSource>,
        shard: Shard,
        scribe: BodyEncoder,
        senders: Senders,
    ) -> Self {
        Self { sessions, shard, scribe, senders, number: 0, index: 0 }
    }

    /// The next session, and how many requests it has; none to send where it is another shard's.
    fn next_session(&mut self) -> Option<(u64, Option<PreparedSession>)> {
        let is_own = self.shard.sends_turn(self.sessions.deal_turn(self.number));
        let (requests, visit) = if is_own {
            let session = self.sessions.session(self.number)?;
            let requests = session.request_count();
            let (number, index) = (self.number, self.index);
            let visit = PreparedSession::new(session, number, index, &self.scribe, &self.senders)?;
            (requests, Some(visit))
        } else {
            // One that asks nothing ends the feed, whosever it is.
            (self.sessions.request_count(self.number).filter(|requests| *requests > 0)?, None)
        };
        self.number += 1;
        self.index += requests;
        Some((requests, visit))
    }

    /// When the next session arrives, by the workload's own instants.
    fn next_arrival(&self) -> Option<Nanos> {
        self.sessions.arrival(self.number)
    }
}

impl Iterator for Feeder {
    type Item = PreparedSession;

    fn next(&mut self) -> Option<PreparedSession> {
        loop {
            if let (_, Some(visit)) = self.next_session()? {
                return Some(visit);
            }
        }
    }
}

/// How much is built and not yet taken.
#[derive(Debug, Default)]
pub(crate) struct PreparedBacklog {
    /// Sessions built so far.
    pub(crate) fed: AtomicU64,
    bytes: AtomicU64,
}

impl PreparedBacklog {
    pub(crate) fn add(&self, visit: &PreparedSession) {
        self.bytes.fetch_add(visit.bytes, Relaxed);
        self.fed.fetch_add(1, Relaxed);
    }

    pub(crate) fn remove(&self, visit: &PreparedSession) {
        self.bytes.fetch_sub(visit.bytes, Relaxed);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.load(Relaxed) >= BYTES_AHEAD
    }
}

/// A session with its place in the schedule, as an offset from the epoch.
#[derive(Debug)]
pub(crate) struct ScheduledSession {
    pub(crate) at: Nanos,
    pub(crate) visit: PreparedSession,
}

/// Feeds the workers of an open loop.
pub(crate) struct OpenFeed {
    pub(crate) feeder: Feeder,
    /// `None`: the workload brings its own.
    pub(crate) arrivals: Option<ArrivalSequence>,
    pub(crate) timeline: Arc<RunTimeline>,
    pub(crate) ahead: Arc<PreparedBacklog>,
    /// To each worker.
    pub(crate) workers: Vec<Sender<ScheduledSession>>,
}

impl OpenFeed {
    /// Deals sessions out to the workers in turn, until arrivals or sessions end, the run has enough
    /// of them, or a worker takes no more.
    pub(crate) fn run(mut self) {
        // A burst leaves as a whole, so it is built as a whole, however large it is.
        let is_burst = self.arrivals.as_ref().is_some_and(ArrivalSequence::is_burst);
        let workers = std::mem::take(&mut self.workers);
        for worker in workers.iter().cycle() {
            let Some(arrival) = self.next() else { return };
            self.ahead.add(&arrival.visit);
            if worker.blocking_send(arrival).is_err() {
                return;
            }
            while !is_burst && self.ahead.is_full() && Arc::strong_count(&self.ahead) > 1 {
                pause(REST);
            }
        }
    }

    fn next(&mut self) -> Option<ScheduledSession> {
        loop {
            let at = match &mut self.arrivals {
                Some(arrivals) => arrivals.next(),
                None => self.feeder.next_arrival(),
            }?;
            let (requests, visit) = self.feeder.next_session()?;
            // Those of others use up the counts too.
            let placed = self.timeline.place_session(at, requests)?;
            if let Some(mut visit) = visit {
                visit.assign_first_phase(placed);
                return Some(ScheduledSession { at, visit });
            }
        }
    }
}

/// Sessions that wait for the users of a closed loop, in order.
#[derive(Debug)]
pub(crate) struct SessionQueue {
    visits: ArrayQueue<PreparedSession>,
    pub(crate) ahead: PreparedBacklog,
}

impl SessionQueue {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { visits: ArrayQueue::new(capacity), ahead: PreparedBacklog::default() }
    }

    pub(crate) fn pop(&self) -> Option<PreparedSession> {
        let visit = self.visits.pop()?;
        self.ahead.remove(&visit);
        Some(visit)
    }

    pub(crate) fn len(&self) -> usize {
        self.visits.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.visits.is_full() || self.ahead.is_full()
    }

    /// Keeps the queue full until the sessions end or every worker has let go of it.
    pub(crate) fn keep_full(self: &Arc<Self>, feeder: Feeder) {
        for visit in feeder {
            while self.is_full() && Arc::strong_count(self) > 1 {
                pause(REST);
            }
            if Arc::strong_count(self) == 1 {
                return;
            }
            self.ahead.add(&visit);
            // There is room: this is the only producer.
            let _ = self.visits.push(visit);
        }
    }
}

#[cfg(test)]
mod tests;
