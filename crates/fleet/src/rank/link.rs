//! The thread of a rank: hears rank 0, answers for its clock, and sends what waits.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use goodput_clock::now;
use goodput_model::{ClockOffset, Nanos};
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tokio_rustls::TlsStream;

use super::{Start, encode_message};
use crate::coordinator::beat_interval;
use crate::frame::{self, FrameError, FrameKind, LARGEST_MESSAGE};
use crate::message::{ToCoordinator, ToRank, clip_text};
use crate::{Clocks, Order, Totals};

/// How long the farewell may take.
const FAREWELL: Duration = Duration::from_millis(700);
/// Letters of a word of rank 0 that are kept.
const WORDS: usize = 4_096;

/// What a rank and rank 0 speak through.
pub(super) type Stream = TlsStream<TcpStream>;

/// A frame that waits to be sent.
pub(super) type Out = (FrameKind, Vec<u8>);

/// What was heard.
#[derive(Debug, Default)]
pub(super) struct RankInbox {
    pub(super) order: Option<Order>,
    go: Option<(u64, Nanos, ClockOffset)>,
    off: Option<u64>,
    pub(super) clock: Option<ClockOffset>,
    /// The order whose files may be sent.
    pub(super) take: Option<u64>,
    /// The order whose files were taken, or why not.
    pub(super) taken: Option<(u64, Option<String>)>,
    pub(super) has_ended: bool,
    pub(super) lost: Option<String>,
    at: Nanos,
}

impl RankInbox {
    /// Whether the order of this number begins.
    pub(super) fn start_of(&self, number: u64) -> Start {
        match (self.go, self.off, &self.order, &self.lost) {
            (Some((of, at, clock)), ..) if of == number => Start::At { at, clock },
            (_, Some(off), ..) if off >= number => Start::Missed,
            (_, _, Some(order), _) if order.number > number => Start::Missed,
            _ if self.has_ended => Start::End,
            (.., Some(why)) => Start::Lost(why.clone()),
            _ => Start::Waiting,
        }
    }
}

/// What the threads of a rank share.
#[derive(Debug, Default)]
pub(super) struct RankShared {
    heard: Mutex<RankInbox>,
    changed: Condvar,
    /// The order that is carried out.
    pub(super) number: AtomicU64,
    /// One more than the last order that was stopped; 0 where none was.
    pub(super) stopped: AtomicU64,
    /// The same for those given up.
    pub(super) aborted: AtomicU64,
    pub(super) is_lost: AtomicBool,
    totals: Mutex<Option<(u64, Totals)>>,
    /// The rank leaves.
    pub(super) leaves: Notify,
}

impl RankShared {
    fn lock(&self) -> MutexGuard<'_, RankInbox> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at what was heard.
    pub(super) fn with_inbox<T>(&self, look: impl FnOnce(&mut RankInbox) -> T) -> T {
        look(&mut self.lock())
    }

    /// Waits until something was heard, or until this instant.
    pub(super) fn pause(&self, until: Nanos) {
        let left = Duration::from(until - now());
        // What woke it does not matter: the caller looks again.
        drop(self.changed.wait_timeout(self.lock(), left));
    }

    pub(super) fn queue_totals(&self, number: u64, totals: Totals) {
        *self.totals.lock().unwrap_or_else(PoisonError::into_inner) = Some((number, totals));
    }

    /// Whether the present order is among those up to the one that is noted.
    pub(super) fn is_past(&self, noted: &AtomicU64) -> bool {
        noted.load(Ordering::Acquire) > self.number.load(Ordering::Acquire)
    }

    fn mark_lost(&self, why: String) {
        let mut heard = self.lock();
        heard.lost.get_or_insert(why);
        if !heard.has_ended {
            self.is_lost.store(true, Ordering::Release);
        }
        drop(heard);
        self.changed.notify_all();
    }
}

/// What the thread has.
pub(super) struct LinkThread {
    pub(super) shared: Arc<RankShared>,
    pub(super) clocks: Clocks,
    pub(super) silence: Nanos,
    /// Counts go with every so manieth beat.
    pub(super) every: u32,
    /// For answers; it does not keep the queue open.
    pub(super) control: mpsc::WeakSender<Out>,
}

pub(super) type Queues = (mpsc::Receiver<Out>, mpsc::Receiver<Out>);

/// Speaks with rank 0 until it is lost, or the rank leaves. What ends it is asked first, and files
/// that wait to be sent last: who always has something to do takes all that the runtime lets a task do
/// at a time.
pub(super) async fn run_link(line: LinkThread, stream: Stream, queues: Queues) {
    let (reader, writer) = tokio::io::split(stream);
    line.shared.lock().at = now();
    let why = tokio::select! {
        biased;
        () = line.wait_for_farewell() => "this rank has left".to_owned(),
        why = line.watch_silence() => why,
        why = line.read_messages(reader) => why,
        why = line.send_queued(writer, queues) => why,
    };
    line.shared.mark_lost(why);
}

impl LinkThread {
    async fn read_messages(&self, mut from: ReadHalf<Stream>) -> String {
        loop {
            let said = match frame::read_frame(&mut from, LARGEST_MESSAGE).await {
                Ok((FrameKind::Message, said)) => said,
                Ok((FrameKind::Piece, _)) => return FrameError::Garbage.to_string(),
                Err(error) => return error.to_string(),
            };
            // Read before anything else is done: what takes time here is taken for the way.
            let clocks = (self.clocks)();
            let Ok(message) = serde_json::from_slice(&said) else {
                return FrameError::Garbage.to_string();
            };
            self.handle_message(message, clocks);
        }
    }

    fn handle_message(&self, message: ToRank, clocks: (Nanos, Nanos)) {
        let shared = &self.shared;
        let mut heard = shared.lock();
        heard.at = now();
        match message {
            ToRank::Ping { id } => {
                drop(heard);
                let (mono, wall) = clocks;
                return self.send_answer(&ToCoordinator::Pong { id, mono, wall });
            }
            ToRank::Beat | ToRank::Welcome { .. } | ToRank::Refused(_) => return,
            ToRank::Clock(clock) => heard.clock = Some(clock),
            ToRank::Order(order) => heard.order = Some(order),
            ToRank::Go { number, at, clock } => {
                heard.go = Some((number, at, clock));
                heard.clock = Some(clock);
            }
            ToRank::Off { number } => heard.off = Some(number),
            ToRank::Stop { number } => {
                shared.stopped.fetch_max(number.saturating_add(1), Ordering::AcqRel);
            }
            ToRank::Abort { number } => {
                shared.aborted.fetch_max(number.saturating_add(1), Ordering::AcqRel);
            }
            ToRank::Take { number } => heard.take = Some(number),
            ToRank::Taken { number, refused } => {
                heard.taken = Some((number, refused.map(|why| clip_text(&why, WORDS))));
            }
            ToRank::End => heard.has_ended = true,
        }
        drop(heard);
        shared.changed.notify_all();
    }

    fn send_answer(&self, what: &ToCoordinator) {
        if let (Some(control), Ok(out)) = (self.control.upgrade(), encode_message(what)) {
            // Where the queue is full the message could not be read in time.
            let _ = control.try_send(out);
        }
    }

    /// Sends what waits: answers and words first, files last.
    async fn send_queued(
        &self,
        mut to: WriteHalf<Stream>,
        (mut control, mut files): Queues,
    ) -> String {
        let mut beat = tokio::time::interval(beat_interval(self.silence).into());
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut beats = 0u32;
        loop {
            let out = tokio::select! {
                biased;
                out = control.recv() => match out {
                    Some(out) => Some(out),
                    None => break,
                },
                _ = beat.tick() => {
                    beats = beats.wrapping_add(1);
                    // What was counted is a sign of life too.
                    let totals = if beats.is_multiple_of(self.every) { self.take_totals() } else { None };
                    totals.or_else(|| encode_message(&ToCoordinator::Beat).ok())
                }
                Some(out) = files.recv() => Some(out),
            };
            if let Some((kind, said)) = out
                && let Err(error) = frame::write_frame(&mut to, kind, &said).await
            {
                return format!("the connection failed: {error}");
            }
        }
        // The rank leaves: rank 0 closes when it has read all.
        match to.shutdown().await {
            Ok(()) => std::future::pending().await,
            Err(error) => format!("the connection failed: {error}"),
        }
    }

    /// Ends when the rank has left and was given time to say so.
    async fn wait_for_farewell(&self) {
        self.shared.leaves.notified().await;
        tokio::time::sleep(FAREWELL).await;
    }

    fn take_totals(&self) -> Option<Out> {
        let totals = self.shared.totals.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (number, totals) = totals?;
        encode_message(&ToCoordinator::Totals { number, totals: Box::new(totals) }).ok()
    }

    /// Ends when rank 0 was not heard for too long.
    async fn watch_silence(&self) -> String {
        let beat = beat_interval(self.silence);
        let mut before = now();
        loop {
            tokio::time::sleep(beat.into()).await;
            let present = now();
            let mut heard = self.shared.lock();
            // We were stopped ourselves: that is not its silence.
            if present - before > beat + Nanos(self.silence.0 / 2) {
                heard.at = present;
            }
            if present - heard.at > self.silence {
                return format!("no message for {:.0} s", self.silence.as_secs());
            }
            before = present;
        }
    }
}
