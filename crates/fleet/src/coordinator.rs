//! Rank 0: listens, tells all what to do and when, and takes what they leave.
//!
//! One thread serves all ranks ([`serve`]), one writes what they hand over ([`store`]); the methods
//! of [`Coordinator`] look at the [`state`] that all of them share, and put messages into queues that
//! never wait.

mod away;
mod collect;
mod peer;
mod serve;
mod state;
mod store;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use goodput_clock::now;
use goodput_model::{ClockOffset, Nanos};

use crate::frame::LARGEST_MESSAGE;
use crate::message::ToRank;
use crate::{FleetError, Order, Token, Totals};
use peer::Peer;
pub(crate) use serve::beat_interval;
use state::{CoordinatorShared, Placed};

/// How often a call that waits looks up.
const LOOK_UP: Nanos = Nanos::from_millis(100);
/// The longest that clocks are compared before all begin.
const COMPARING: Nanos = Nanos::from_millis(1_000);
/// The longest that farewells may take; two milliseconds for each rank where that is more.
const FAREWELL: Nanos = Nanos::from_millis(700);

/// How rank 0 leads.
#[derive(Debug, Clone)]
pub struct CoordinatorSettings {
    /// How many ranks there are, itself included.
    pub of: u32,
    /// What all share; none is enough on the loopback.
    pub token: Option<Token>,
    /// The name of this start, which all are told.
    pub fleet: String,
    /// The version of this program; others are turned away.
    pub version: String,
    /// What peers may do.
    pub limits: PeerLimits,
}

/// What peers may do.
#[derive(Debug, Clone, Copy)]
pub struct PeerLimits {
    /// A peer that says nothing for so long is lost.
    pub silence: Nanos,
    /// The bytes of all files that a rank may hand over for an order.
    pub upload: u64,
    /// How long a stranger may take to prove who it is.
    pub proof: Nanos,
}

impl Default for PeerLimits {
    fn default() -> Self {
        Self {
            silence: Nanos::from_millis(10_000),
            upload: 64 << 30,
            proof: Nanos::from_millis(10_000),
        }
    }
}

/// How far a rank is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RankPhase {
    /// It is there, and has nothing to do.
    Joined,
    /// It has an order, and prepares it.
    Preparing,
    /// It is ready.
    Ready,
    /// It cannot carry out the order, or not to its end, and says why.
    Refused(String),
    /// It was told when to begin.
    Running,
    /// It has sent all it was to send.
    Done,
    /// It is not there anymore, or not heard anymore.
    Lost(String),
}

/// What is known of a rank.
#[derive(Debug, Clone)]
pub struct RankState {
    /// Which one.
    pub rank: u32,
    /// Its machine in a few words, as it says.
    pub host: String,
    /// Whether it is connected.
    pub is_there: bool,
    /// How far it is.
    pub phase: RankPhase,
    /// Whether it was told to begin this order, as those in [`Go::ranks`] were.
    pub has_begun: bool,
    /// Why it was lost in this order, where it was; it may be there again.
    pub lost: Option<String>,
    /// Its clocks compared with ours.
    pub clock: Option<ClockOffset>,
    /// What it has counted of this order so far.
    pub totals: Option<Totals>,
    /// What it said when it was done.
    pub summary: Option<String>,
}

/// When all begin, and who was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Go {
    /// The instant, on the clock of rank 0.
    pub at: Nanos,
    /// The ranks that were ready; all others begin nothing.
    pub ranks: Vec<u32>,
}

/// Rank 0. When it is dropped, all ranks lose it; [`Coordinator::announce_end`] says goodbye first.
#[derive(Debug)]
pub struct Coordinator {
    shared: Arc<CoordinatorShared>,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

impl Coordinator {
    /// Listens, from now until it is dropped.
    pub fn listen(address: SocketAddr, settings: CoordinatorSettings) -> Result<Self, FleetError> {
        if settings.token.is_none() && !address.ip().to_canonical().is_loopback() {
            return Err(FleetError::TokenRequired(address));
        }
        serve::start_coordinator(address, settings)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Who was turned away so far and why, in sentences, each with how often: the first one first, and
    /// few. Words of strangers are in them.
    pub fn turned_away(&self) -> Vec<(String, u64)> {
        self.shared.lock().turned_away.counts()
    }

    /// all ranks that were ever there, in order.
    pub fn ranks(&self) -> Vec<RankState> {
        self.shared.lock().rank_states()
    }

    /// The latest counts of each rank for this order, of those that were lost too.
    pub fn totals(&self) -> Vec<(u32, Totals)> {
        let state = self.shared.lock();
        let counted = state.peers.iter();
        counted.filter_map(|(rank, peer)| Some((*rank, peer.totals.clone()?))).collect()
    }

    /// Waits until all ranks are there, or until this instant; says who is. Meanwhile
    /// `look` is called with those, again and again; `false` gives up.
    pub fn gather(&self, deadline: Nanos, mut look: impl FnMut(&[u32]) -> bool) -> Vec<u32> {
        let all = self.shared.settings.of.saturating_sub(1) as usize;
        loop {
            let there = self.shared.lock().connected_ranks();
            if there.len() == all || !look(&there) || now() >= deadline {
                return there;
            }
            self.shared.pause(deadline.min(now() + LOOK_UP));
        }
    }

    /// Sends an order to all; who joins before the start gets it too.
    pub fn prepare(&self, order: Order) -> Result<(), FleetError> {
        let placed = Placed::new(order);
        let (bytes, most) = (placed.message_bytes(), LARGEST_MESSAGE);
        if bytes > most {
            return Err(FleetError::TooLarge { what: "the plan", bytes, most });
        }
        let mut state = self.shared.lock();
        if state.order_number().is_some_and(|before| before >= placed.number) {
            return Err(FleetError::OutOfOrder(placed.number));
        }
        state.place_order(placed);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Waits until no rank prepares the order any more, and the clocks of all ready ranks are known,
    /// or until this instant; says how all are. Meanwhile `look` is called; `false` gives up.
    pub fn wait_ready(&self, deadline: Nanos, mut look: impl FnMut() -> bool) -> Vec<RankState> {
        loop {
            let is_over = !self.shared.lock().peers.values().any(Peer::may_become_ready);
            if is_over || !look() || now() >= deadline {
                return self.ranks();
            }
            self.shared.pause(deadline.min(now() + LOOK_UP));
        }
    }

    /// Compares clocks once more, within a second (two milliseconds for each rank where that is
    /// more), then lets all that are ready begin so long after that. The others are told that they
    /// are not part of it.
    pub fn announce_start(&self, ahead: Nanos) -> Go {
        let deadline = now() + self.at_least_for_ranks(COMPARING);
        self.shared.lock().compare_ready_clocks();
        while now() < deadline && self.shared.lock().is_comparing() {
            self.shared.pause(deadline.min(now() + LOOK_UP));
        }
        let at = now() + ahead;
        let ranks = self.shared.lock().send_starts(at);
        self.shared.changed.notify_all();
        Go { at, ranks }
    }

    /// So long, or two milliseconds for each rank where that is more.
    fn at_least_for_ranks(&self, time: Nanos) -> Nanos {
        time.max(Nanos::from_millis(2 * u64::from(self.shared.settings.of)))
    }

    /// Asks all to send nothing more of this order, and to wait for requests in flight.
    pub fn stop(&self) {
        self.shared
            .lock()
            .send_to_phase(|number| ToRank::Stop { number }, |phase| *phase == RankPhase::Running);
    }

    /// Asks all to give up this order at once.
    pub fn abort(&self) {
        self.shared.lock().send_to_phase(|number| ToRank::Abort { number }, |_| true);
    }

    /// Tells all that nothing follows, and waits a little until they have heard it.
    pub fn announce_end(&self) {
        self.shared.lock().send_goodbye();
        let deadline = now() + self.at_least_for_ranks(FAREWELL);
        while now() < deadline && self.shared.lock().connections > 0 {
            self.shared.pause(deadline.min(now() + LOOK_UP));
        }
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        self.shared.stop.notify_one();
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing more to say.
            let _ = thread.join();
        }
    }
}
