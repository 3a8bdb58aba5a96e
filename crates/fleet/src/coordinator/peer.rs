//! One rank, as rank 0 sees it.

use std::sync::Arc;

use goodput_model::Nanos;
use tokio::sync::{Notify, mpsc};

use super::collect::Upload;
use super::state::{Said, encode_message};
use super::{RankPhase, RankState};
use crate::Totals;
use crate::burst::{Burst, MeasuredOffset, on_rank_clock};
use crate::message::ToRank;

/// A rank.
#[derive(Debug)]
pub(super) struct Peer {
    connection: u64,
    host: String,
    /// None once it is gone.
    out: Option<mpsc::Sender<Said>>,
    cut: Arc<Notify>,
    pub(super) phase: RankPhase,
    /// It was told to begin this order.
    has_begun: bool,
    /// Why it was lost first since this order was placed.
    pub(super) lost: Option<String>,
    clock: Option<MeasuredOffset>,
    burst: Option<Burst>,
    heard: Nanos,
    /// It is we who do not read: its silence proves nothing.
    pub(super) is_held: bool,
    pub(super) totals: Option<Totals>,
    pub(super) summary: Option<String>,
    pub(super) upload: Upload,
}

impl Peer {
    pub(super) fn new(connection: u64, host: String, out: mpsc::Sender<Said>) -> Self {
        Self {
            connection,
            host,
            out: Some(out),
            cut: Arc::default(),
            phase: RankPhase::Joined,
            has_begun: false,
            lost: None,
            clock: None,
            burst: None,
            heard: goodput_clock::now(),
            is_held: false,
            totals: None,
            summary: None,
            upload: Upload::default(),
        }
    }

    pub(super) fn state(&self, rank: u32) -> RankState {
        RankState {
            rank,
            host: self.host.clone(),
            is_there: self.is_connected(),
            phase: self.phase.clone(),
            has_begun: self.has_begun,
            lost: self.lost.clone(),
            clock: self.clock.map(|measured| measured.clock),
            totals: self.totals.clone(),
            summary: self.summary.clone(),
        }
    }

    pub(super) fn is_connection(&self, connection: u64) -> bool {
        self.connection == connection
    }

    pub(super) fn is_connected(&self) -> bool {
        self.out.is_some()
    }

    pub(super) fn is_ready(&self) -> bool {
        self.is_connected() && self.phase == RankPhase::Ready
    }

    /// Whether it may yet be ready: it prepares, or its clock is not known.
    pub(super) fn may_become_ready(&self) -> bool {
        let lacks_clock = self.is_ready() && self.clock.is_none();
        self.is_connected() && self.phase == RankPhase::Preparing || lacks_clock
    }

    /// What ends its task at once.
    pub(super) fn cut_signal(&self) -> Arc<Notify> {
        Arc::clone(&self.cut)
    }

    pub(super) fn send(&mut self, what: &ToRank) {
        self.send_raw(&encode_message(what));
    }

    pub(super) fn send_raw(&mut self, said: &Said) {
        let Some(out) = &self.out else { return };
        if out.try_send(Arc::clone(said)).is_err() {
            self.mark_lost("it does not read its messages");
        }
    }

    /// Nothing more is said to it.
    pub(super) fn close(&mut self) {
        self.out = None;
    }

    /// It is gone. One that was done, or could not go on, stays so.
    pub(super) fn mark_lost(&mut self, why: &str) {
        self.out = None;
        self.burst = None;
        self.lost.get_or_insert_with(|| why.to_owned());
        if !matches!(self.phase, RankPhase::Done | RankPhase::Refused(_) | RankPhase::Lost(_)) {
            self.phase = RankPhase::Lost(why.to_owned());
        }
        self.cut.notify_one();
    }

    pub(super) fn note_heard(&mut self, at: Nanos) {
        self.heard = at;
    }

    pub(super) fn is_silent(&self, at: Nanos, silence: Nanos) -> bool {
        !self.is_held && at - self.heard > silence
    }

    pub(super) fn prepare(&mut self, order: &Said) {
        self.phase = RankPhase::Preparing;
        self.send_raw(order);
    }

    pub(super) fn forget_order(&mut self) {
        self.totals = None;
        self.summary = None;
        self.upload.abandon();
        self.has_begun = false;
        if self.is_connected() {
            self.lost = None;
        } else if !matches!(self.phase, RankPhase::Lost(_)) {
            // It was done with the order before, and has no part in this one.
            self.phase = RankPhase::Lost("it left after an earlier order".to_owned());
        }
    }

    /// It cannot go on: with the order, or, when that is done, with handing over its files.
    pub(super) fn mark_failed(&mut self, why: String) {
        match self.phase {
            RankPhase::Preparing | RankPhase::Ready | RankPhase::Running => {
                self.upload.abandon();
                self.phase = RankPhase::Refused(why);
            }
            RankPhase::Done if matches!(self.upload, Upload::None | Upload::Offered(_)) => {
                self.upload = Upload::Refused(why);
            }
            _ => {}
        }
    }

    /// Takes the place of one that was lost: what that one has done of this order is not forgotten.
    pub(super) fn take_over_from(&mut self, before: Self) {
        if before.has_begun {
            self.has_begun = true;
            (self.lost, self.totals) = (before.lost, before.totals);
            if matches!(before.upload, Upload::InPlace) {
                self.upload = Upload::InPlace;
            }
        }
    }

    /// Says when to begin, if it is ready and its clock known.
    pub(super) fn send_start(&mut self, number: u64, at: Nanos) -> bool {
        let Some(MeasuredOffset { clock, .. }) = self.clock.filter(|_| self.is_ready()) else {
            return false;
        };
        self.phase = RankPhase::Running;
        self.has_begun = true;
        self.send(&ToRank::Go { number, at: on_rank_clock(at, clock), clock });
        self.is_connected()
    }

    /// Begins a burst of questions for its clock.
    pub(super) fn begin_burst(&mut self, id: u64, at: Nanos) {
        let mut burst = Burst::default();
        burst.note_question(id, at);
        self.burst = Some(burst);
        self.send(&ToRank::Ping { id });
    }

    pub(super) fn is_comparing(&self) -> bool {
        self.burst.is_some()
    }

    /// Whether it was asked lately, and may answer yet.
    pub(super) fn was_asked_lately(&self, at: Nanos) -> bool {
        self.burst.as_ref().is_some_and(|burst| burst.is_fresh(at))
    }

    /// Its clocks, as it answers a question; `next` numbers the one after.
    pub(super) fn note_clock(
        &mut self,
        id: u64,
        theirs: (Nanos, Nanos),
        ours: (Nanos, Nanos),
        next: u64,
    ) {
        let Some(burst) = &mut self.burst else { return };
        if !burst.note_answer(id, theirs, ours) {
            return;
        }
        let Some(clock) = burst.best() else { return };
        let measured = MeasuredOffset { clock, at: ours.0 };
        if !burst.is_over() {
            // The first is better than nothing.
            self.clock = self.clock.or(Some(measured));
            // The clock once more: what was done since is not the way.
            burst.note_question(next, goodput_clock::now());
            self.send(&ToRank::Ping { id: next });
            return;
        }
        self.burst = None;
        let clock = measured.better_of(self.clock, ours.0);
        self.clock = Some(clock);
        self.send(&ToRank::Clock(clock.clock));
    }
}
