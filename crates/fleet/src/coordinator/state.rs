//! What rank 0 knows of its ranks, and what it tells them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use goodput_clock::now;
use goodput_model::Nanos;
use rustls::ServerConfig;
use tokio::sync::{Notify, mpsc};

use super::away::TurnedAway;
use super::collect::Collecting;
use super::peer::Peer;
use super::{CoordinatorSettings, RankPhase, RankState};
use crate::message::{Hello, ToRank};
use crate::{Order, OrderKind, Refusal};

/// Messages that wait for a rank at most; one that does not read is lost.
pub(super) const QUEUE: usize = 64;

/// Ranks whose clocks are compared at once.
const ASKED_AT_ONCE: usize = 16;

/// A message, written once for all who get it.
pub(super) type Said = Arc<[u8]>;

/// In JSON.
pub(super) fn encode_message(what: &ToRank) -> Said {
    // Plain data with text keys can always be written.
    serde_json::to_vec(what).unwrap_or_default().into()
}

/// What the threads of rank 0 share.
#[derive(Debug)]
pub(super) struct CoordinatorShared {
    state: Mutex<FleetState>,
    pub(super) changed: Condvar,
    pub(super) stop: Notify,
    pub(super) settings: CoordinatorSettings,
    pub(super) tls: Arc<ServerConfig>,
}

impl CoordinatorShared {
    pub(super) fn new(settings: CoordinatorSettings, tls: Arc<ServerConfig>) -> Self {
        let state = Mutex::new(FleetState::default());
        Self { state, changed: Condvar::new(), stop: Notify::new(), settings, tls }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, FleetState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something has changed, or until this instant.
    pub(super) fn pause(&self, until: Nanos) {
        let left = Duration::from(until - now());
        // What woke it does not matter: the caller looks again.
        drop(self.changed.wait_timeout(self.lock(), left));
    }
}

/// The order of the moment.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) number: u64,
    kind: OrderKind,
    said: Said,
    has_begun: bool,
}

impl Placed {
    pub(super) fn new(order: Order) -> Self {
        let (number, kind) = (order.number, order.kind);
        Self { number, kind, said: encode_message(&ToRank::Order(order)), has_begun: false }
    }

    /// How long the message is.
    pub(super) fn message_bytes(&self) -> usize {
        self.said.len()
    }
}

/// All that rank 0 knows.
#[derive(Debug, Default)]
pub(super) struct FleetState {
    pub(super) peers: BTreeMap<u32, Peer>,
    pub(super) order: Option<Placed>,
    pub(super) turned_away: TurnedAway,
    pub(super) collecting: Option<Collecting>,
    /// Tasks that serve a rank.
    pub(super) connections: usize,
    has_ended: bool,
    last_id: u64,
    /// Ranks whose clock is to be asked for, and those that were asked.
    to_ask: BTreeSet<u32>,
    asked: BTreeSet<u32>,
}

/// A rank that was let in.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) connection: u64,
    pub(super) queue: mpsc::Receiver<Said>,
    pub(super) cut: Arc<Notify>,
}

impl FleetState {
    /// A number that was not used before.
    pub(super) fn new_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// The number of the order of the moment.
    pub(super) fn order_number(&self) -> Option<u64> {
        self.order.as_ref().map(|placed| placed.number)
    }

    pub(super) fn rank_states(&self) -> Vec<RankState> {
        self.peers.iter().map(|(rank, peer)| peer.state(*rank)).collect()
    }

    /// The ranks that are connected.
    pub(super) fn connected_ranks(&self) -> Vec<u32> {
        self.peers.iter().filter(|(_, peer)| peer.is_connected()).map(|(rank, _)| *rank).collect()
    }

    /// The peer of this rank, if it is still the one of this connection.
    pub(super) fn peer(&mut self, rank: u32, connection: u64) -> Option<&mut Peer> {
        self.peers.get_mut(&rank).filter(|peer| peer.is_connection(connection))
    }

    fn refusal_reason(&self, hello: &Hello, of: u32) -> Option<Refusal> {
        let is_over = self.has_ended
            || self
                .order
                .as_ref()
                .is_some_and(|placed| placed.has_begun && placed.kind == OrderKind::Run);
        if hello.of != of || hello.rank >= of {
            Some(Refusal::Count { coordinator: of, rank: hello.of })
        } else if hello.rank == 0 {
            Some(Refusal::Zero)
        } else if self.peers.get(&hello.rank).is_some_and(Peer::is_connected) {
            Some(Refusal::Taken(hello.rank))
        } else if is_over {
            Some(Refusal::Begun)
        } else {
            None
        }
    }

    /// Lets in one who has proved to have the token, or says why not.
    pub(super) fn admit(
        &mut self,
        hello: &Hello,
        settings: &CoordinatorSettings,
    ) -> Result<Admitted, Refusal> {
        if let Some(refusal) = self.refusal_reason(hello, settings.of) {
            return Err(refusal);
        }
        let (out, queue) = mpsc::channel(QUEUE);
        let connection = self.new_id();
        let mut peer = Peer::new(connection, hello.host.clone(), out);
        let cut = peer.cut_signal();
        let silence = settings.limits.silence;
        peer.send(&ToRank::Welcome { fleet: settings.fleet.clone(), silence });
        match &self.order {
            Some(placed) if !placed.has_begun => peer.prepare(&placed.said),
            _ => {}
        }
        if let Some(before) = self.peers.remove(&hello.rank) {
            peer.take_over_from(before);
        }
        self.peers.insert(hello.rank, peer);
        self.connections += 1;
        self.compare_clocks([hello.rank]);
        Ok(Admitted { connection, queue, cut })
    }

    /// The connection of a rank has ended.
    pub(super) fn remove_rank(&mut self, rank: u32, connection: u64, why: &str) {
        self.connections = self.connections.saturating_sub(1);
        // Another may have taken its place since.
        if let Some(peer) = self.peer(rank, connection) {
            peer.mark_lost(why);
            // It may have been given up before, for a reason of its own.
            let why = peer.lost.clone().unwrap_or_default();
            self.note_lost(rank, &why);
        }
    }

    /// Puts an order before all who are there.
    pub(super) fn place_order(&mut self, placed: Placed) {
        let said = Arc::clone(&placed.said);
        self.order = Some(placed);
        for peer in self.peers.values_mut() {
            peer.forget_order();
            if peer.is_connected() {
                peer.prepare(&said);
            }
        }
    }

    /// Begins to compare clocks with all who are ready.
    pub(super) fn compare_ready_clocks(&mut self) {
        let ready = self.peers.iter().filter(|(_, peer)| peer.is_ready());
        let ranks: Vec<_> = ready.map(|(rank, _)| *rank).collect();
        self.compare_clocks(ranks);
    }

    /// Whether clocks are still compared with someone.
    pub(super) fn is_comparing(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Asks these for their clocks, each when it is its turn: where thousands are asked at once, the
    /// answers wait for each other, and that would be taken for the way.
    fn compare_clocks(&mut self, ranks: impl IntoIterator<Item = u32>) {
        self.to_ask.extend(ranks);
        self.ask_next();
    }

    /// Asks those whose turn it is.
    pub(super) fn ask_next(&mut self) {
        let (peers, at) = (&self.peers, now());
        self.asked.retain(|rank| peers.get(rank).is_some_and(|peer| peer.was_asked_lately(at)));
        while self.asked.len() < ASKED_AT_ONCE
            && let Some(rank) = self.to_ask.pop_first()
        {
            let id = self.new_id();
            if let Some(peer) = self.peers.get_mut(&rank).filter(|peer| peer.is_connected()) {
                peer.begin_burst(id, at);
                self.asked.insert(rank);
            }
        }
    }

    /// Says go to all who are ready, at this instant, each on its own clock; says who they are.
    pub(super) fn send_starts(&mut self, at: Nanos) -> Vec<u32> {
        let Some(placed) = &mut self.order else { return Vec::new() };
        placed.has_begun = true;
        let number = placed.number;
        let mut told = Vec::new();
        for (rank, peer) in &mut self.peers {
            if peer.send_start(number, at) {
                told.push(*rank);
            } else if peer.is_connected() {
                peer.send(&ToRank::Off { number });
            }
        }
        told
    }

    /// Tells something about this order to all who are so far.
    pub(super) fn send_to_phase(
        &mut self,
        what: impl Fn(u64) -> ToRank,
        to: impl Fn(&RankPhase) -> bool,
    ) {
        let Some(number) = self.order_number() else { return };
        let said = encode_message(&what(number));
        for peer in self.peers.values_mut().filter(|peer| to(&peer.phase)) {
            peer.send_raw(&said);
        }
    }

    /// Nothing follows: every queue ends with these words.
    pub(super) fn send_goodbye(&mut self) {
        self.has_ended = true;
        let said = encode_message(&ToRank::End);
        for peer in self.peers.values_mut() {
            peer.send_raw(&said);
            peer.close();
        }
    }

    /// Once a beat: says that we are alive, looks who is silent, and compares clocks now and then.
    pub(super) fn tick(&mut self, at: Nanos, silence: Nanos, compares: bool) {
        let said = encode_message(&ToRank::Beat);
        for (rank, peer) in self.peers.iter_mut().filter(|(_, peer)| peer.is_connected()) {
            if peer.is_silent(at, silence) {
                peer.mark_lost(&format!("no message for {:.0} s", silence.as_secs()));
                continue;
            }
            peer.send_raw(&said);
            if compares && !peer.is_comparing() {
                self.to_ask.insert(*rank);
            }
        }
        self.ask_next();
    }

    /// This process itself was suspended: the ranks are not silent because of that.
    pub(super) fn reset_silence(&mut self, at: Nanos) {
        self.peers.values_mut().for_each(|peer| peer.note_heard(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PeerLimits;

    /// Rank 1 of 2, let in just now, and what it is told.
    fn with_one() -> (FleetState, Admitted) {
        let settings = CoordinatorSettings {
            of: 2,
            token: None,
            fleet: String::new(),
            version: String::new(),
            limits: PeerLimits::default(),
        };
        let hello = Hello { rank: 1, of: 2, host: String::new() };
        let mut state = FleetState::default();
        let admitted = state.admit(&hello, &settings).unwrap();
        (state, admitted)
    }

    #[test]
    fn our_own_sleep_is_not_the_silence_of_others() {
        let (minute, silence) = (Nanos::from_millis(60_000), Nanos::from_millis(10_000));
        let (mut state, _queue) = with_one();
        state.reset_silence(now() + minute);
        state.tick(now() + minute, silence, false);
        assert_eq!(state.connected_ranks(), [1]);
        state.tick(now() + minute + minute, silence, false);
        assert!(state.connected_ranks().is_empty());
    }

    #[test]
    fn who_was_done_and_left_has_no_part_in_the_next_order() {
        let text = String::new;
        let order = |number| {
            let (plan, folder, workload) = (text(), text(), text());
            Placed::new(Order { number, kind: OrderKind::Run, plan, folder, workload })
        };
        let (mut state, admitted) = with_one();
        state.place_order(order(1));
        state.peer(1, admitted.connection).unwrap().phase = RankPhase::Done;
        state.remove_rank(1, admitted.connection, "it has left");
        assert_eq!(state.rank_states()[0].phase, RankPhase::Done);
        state.place_order(order(2));
        assert!(matches!(state.rank_states()[0].phase, RankPhase::Lost(_)));
        assert_eq!(state.send_starts(Nanos::ZERO), Vec::<u32>::new());
    }
}
