//! A rank: joins rank 0, does what it is told, and hands over what it leaves.
//!
//! One thread speaks with rank 0 ([`link`]); the methods of [`JoinedRank`] look at what it has heard, and
//! none of them waits for longer than it is told, or than rank 0 is heard.

mod join;
mod link;
mod upload;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use goodput_clock::now;
use goodput_model::{ClockOffset, Nanos, Shard};
use tokio::sync::mpsc;

use crate::frame::{FrameKind, LARGEST_MESSAGE};
use crate::message::{ToCoordinator, clip_text};
use crate::{Clocks, FleetError, Order, Token, Totals};
use link::{Out, RankInbox, RankShared};

/// How often a call that waits looks up.
const LOOK_UP: Nanos = Nanos::from_millis(100);
/// Letters of a word to rank 0.
const WORDS: usize = 4_096;

/// How a rank joins.
#[derive(Debug, Clone)]
pub struct RankSettings {
    /// Which part of the run it sends.
    pub shard: Shard,
    /// What all share; none is enough on the loopback.
    pub token: Option<Token>,
    /// This machine in a few words.
    pub host: String,
    /// The version of this program; rank 0 must have the same.
    pub version: String,
    /// How long rank 0 is looked for.
    pub deadline: Nanos,
    /// The clocks of this machine.
    pub clocks: Clocks,
}

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextOrder {
    /// This is to be prepared.
    Order(Order),
    /// Nothing yet.
    Nothing,
    /// Nothing any more.
    End,
    /// Rank 0 is lost, for this reason.
    Lost(String),
}

/// Whether the order begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// It does.
    At {
        /// At this instant of this machine's monotonic clock.
        at: Nanos,
        /// What that instant was reckoned with.
        clock: ClockOffset,
    },
    /// Nothing was said yet.
    Waiting,
    /// The others begin without this one, or it was taken back; [`JoinedRank::next_order`] says what follows.
    Missed,
    /// Rank 0 has said that nothing follows.
    End,
    /// Rank 0 is lost, for this reason.
    Lost(String),
}

/// A rank that has joined. Dropping it says goodbye, within a second.
#[derive(Debug)]
pub struct JoinedRank {
    shared: Arc<RankShared>,
    fleet: String,
    control: Option<mpsc::Sender<Out>>,
    files: Option<mpsc::Sender<Out>>,
    thread: Option<JoinHandle<()>>,
}

impl JoinedRank {
    /// Joins rank 0 at `host:port`; tries again until the deadline, as it may start later. After each
    /// try that failed `look` is told why; `false` gives up.
    pub fn join(
        address: &str,
        settings: &RankSettings,
        look: impl FnMut(&str) -> bool,
    ) -> Result<Self, FleetError> {
        join::join_fleet(address, settings, look)
    }

    /// The name of this start, as rank 0 says it.
    pub fn fleet_name(&self) -> &str {
        &self.fleet
    }

    /// Waits for an order, so long at most. Of several that came meanwhile it is the last.
    pub fn next_order(&self, timeout: Nanos) -> NextOrder {
        let deadline = now() + timeout;
        loop {
            let next = self.shared.with_inbox(|heard| {
                let order = heard.order.take();
                match (order, heard) {
                    (Some(order), _) => NextOrder::Order(order),
                    (None, RankInbox { has_ended: true, .. }) => NextOrder::End,
                    (None, RankInbox { lost: Some(why), .. }) => NextOrder::Lost(why.clone()),
                    (None, _) => NextOrder::Nothing,
                }
            });
            if let NextOrder::Order(order) = &next {
                self.shared.number.store(order.number, Ordering::Release);
            }
            if next != NextOrder::Nothing || now() >= deadline {
                return next;
            }
            self.shared.pause(deadline.min(now() + LOOK_UP));
        }
    }

    /// Says that the order is prepared.
    pub fn report_ready(&self) -> Result<(), FleetError> {
        self.send(&ToCoordinator::Ready { number: self.order_number() })
    }

    /// Says that the order cannot be carried out, or not to its end: nothing of it will be handed over.
    pub fn report_refusal(&self, why: &str) -> Result<(), FleetError> {
        self.send(&ToCoordinator::Cannot {
            number: self.order_number(),
            why: clip_text(why, WORDS),
        })
    }

    /// Waits for the word to begin, so long at most.
    pub fn wait_for_start(&self, timeout: Nanos) -> Start {
        let (deadline, number) = (now() + timeout, self.order_number());
        loop {
            let start = match self.shared.with_inbox(|heard| heard.start_of(number)) {
                Start::Waiting if self.is_aborted() => Start::Missed,
                start => start,
            };
            if start != Start::Waiting || now() >= deadline {
                return start;
            }
            self.shared.pause(deadline.min(now() + LOOK_UP));
        }
    }

    /// Sends what was counted so far, with the next beat; never waits. Of several that wait only the
    /// last is sent, and fleets of more than 512 send less often.
    pub fn report_totals(&self, totals: Totals) {
        self.shared.queue_totals(self.order_number(), totals);
    }

    /// Says that all was sent, with a line for people.
    pub fn report_done(&self, summary: &str) -> Result<(), FleetError> {
        self.send(&ToCoordinator::Done {
            number: self.order_number(),
            summary: clip_text(summary, WORDS),
        })
    }

    /// Whether nothing more of the order is to be sent.
    pub fn is_stopping(&self) -> bool {
        self.is_aborted() || self.shared.is_past(&self.shared.stopped)
    }

    /// Whether the order is to be given up at once.
    pub fn is_aborted(&self) -> bool {
        self.shared.is_past(&self.shared.aborted)
    }

    /// Whether rank 0 is lost.
    pub fn is_lost(&self) -> bool {
        self.shared.is_lost.load(Ordering::Acquire)
    }

    /// This machine's clocks compared with those of rank 0, as last measured.
    pub fn clock(&self) -> Option<ClockOffset> {
        self.shared.with_inbox(|heard| heard.clock)
    }

    fn order_number(&self) -> u64 {
        self.shared.number.load(Ordering::Acquire)
    }

    fn send(&self, what: &ToCoordinator) -> Result<(), FleetError> {
        let out = encode_message(what)?;
        let is_sent = self.control.as_ref().is_some_and(|control| control.try_send(out).is_ok());
        if is_sent { Ok(()) } else { Err(self.lost_error()) }
    }

    fn lost_error(&self) -> FleetError {
        FleetError::Lost(self.shared.with_inbox(|heard| match &heard.lost {
            _ if heard.has_ended => "it has announced the end".to_owned(),
            Some(why) => why.clone(),
            None => "it does not read its messages".to_owned(),
        }))
    }
}

impl Drop for JoinedRank {
    fn drop(&mut self) {
        (self.control, self.files) = (None, None);
        self.shared.leaves.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing more to say.
            let _ = thread.join();
        }
    }
}

fn encode_message(what: &ToCoordinator) -> Result<Out, FleetError> {
    let said = serde_json::to_vec(what).map_err(std::io::Error::from)?;
    if said.len() > LARGEST_MESSAGE {
        let (bytes, most) = (said.len(), LARGEST_MESSAGE);
        return Err(FleetError::TooLarge { what: "the message", bytes, most });
    }
    Ok((FrameKind::Message, said))
}
