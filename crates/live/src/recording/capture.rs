//! [`CaptureQueue`]: the witness of a recording, which hands on what it hears and waits for nothing.
//!
//! A request that is taken holds a ticket until its row was made, and bytes for what is in memory of it.
//! Both are bounded, and the queue has room for two notes of each ticket: what was taken is never
//! dropped half-way for want of room.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use goodput_model::{Api, Chunk, Exchange, Nanos};

use super::counts::{Lost, RecordCounts};
use crate::proxy::{Answered, ObservedRequest, Witness};

/// Requests whose rows are not made yet, at most.
const MOST_TICKETS: usize = 16_384;

/// Bytes of their text, then of their blocks, and of their answers' stamps, at most.
const MOST_BYTES: usize = 64 << 20;

/// Parts of the table of taken requests: threads of the proxy seldom meet.
const PARTS: usize = 64;

/// What the writer hears.
pub(super) enum WriterMessage {
    Asked(CapturedRequest),
    Answered(CapturedAnswer),
}

/// A request that came whole.
pub(super) struct CapturedRequest {
    pub(super) number: u64,
    pub(super) arrived: Nanos,
    pub(super) api: Api,
    pub(super) session: Option<String>,
    pub(super) body: bytes::Bytes,
}

impl CapturedRequest {
    /// Bytes that it holds.
    pub(super) fn held_bytes(&self) -> usize {
        self.body.len() + self.session.as_ref().map_or(0, String::len)
    }
}

/// The answer to it.
pub(super) struct CapturedAnswer {
    pub(super) number: u64,
    /// None if the queue was full.
    pub(super) exchange: Option<Box<Exchange>>,
    /// Bytes that it holds.
    pub(super) bytes: usize,
}

/// How much is waiting.
#[derive(Debug, Default)]
pub(super) struct Room {
    tickets: AtomicUsize,
    bytes: AtomicUsize,
}

impl Room {
    fn take_ticket(&self) -> bool {
        take_up_to(&self.tickets, 1, MOST_TICKETS)
    }

    pub(super) fn take_bytes(&self, bytes: usize) -> bool {
        take_up_to(&self.bytes, bytes, MOST_BYTES)
    }

    /// A request has its row, or will have none.
    pub(super) fn release_ticket(&self) {
        self.tickets.fetch_sub(1, Ordering::Relaxed);
    }

    /// This many bytes are in memory no longer.
    pub(super) fn release_bytes(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

fn take_up_to(of: &AtomicUsize, n: usize, most: usize) -> bool {
    let is_free = |taken: usize| taken.checked_add(n).filter(|sum| *sum <= most);
    of.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_free).is_ok()
}

/// Hears what passes.
pub(super) struct CaptureQueue {
    notes: SyncSender<WriterMessage>,
    room: Arc<Room>,
    counts: Arc<RecordCounts>,
    /// Numbers of requests that were taken and not answered.
    taken: Vec<Mutex<HashSet<u64>>>,
}

impl CaptureQueue {
    /// With the other end of its queue.
    pub(super) fn new(counts: &Arc<RecordCounts>) -> (Self, Receiver<WriterMessage>, Arc<Room>) {
        let (notes, queue) = sync_channel(2 * MOST_TICKETS);
        let room = Arc::new(Room::default());
        let taken = (0..PARTS).map(|_| Mutex::default()).collect();
        let capture = Self { notes, room: Arc::clone(&room), counts: Arc::clone(counts), taken };
        (capture, queue, room)
    }

    /// The part of the table with this request.
    fn table_part(&self, number: u64) -> MutexGuard<'_, HashSet<u64>> {
        self.taken[number as usize % PARTS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a request, if there is room.
    pub(super) fn push_request(&self, ask: CapturedRequest) -> bool {
        let (number, bytes) = (ask.number, ask.held_bytes());
        if !self.room.take_ticket() {
            return false;
        }
        if !self.room.take_bytes(bytes) {
            self.room.release_ticket();
            return false;
        }
        self.table_part(number).insert(number);
        if self.notes.try_send(WriterMessage::Asked(ask)).is_err() {
            self.table_part(number).remove(&number);
            self.room.release_bytes(bytes);
            self.room.release_ticket();
            return false;
        }
        true
    }
}

impl Witness for CaptureQueue {
    fn request_seen(&self, asked: ObservedRequest) {
        if self.counts.is_over.load(Ordering::Relaxed) {
            return;
        }
        let Some(api) = asked.api else { return self.counts.other.add(1) };
        self.counts.asked.add(1);
        let Some(body) = asked.body else { return self.counts.add_lost(Lost::Length, 1) };
        // The head goes no further: it may hold keys.
        let ObservedRequest { number, arrived, session, .. } = asked;
        if !self.push_request(CapturedRequest { number, arrived, api, session, body }) {
            self.counts.add_lost(Lost::Queue, 1);
        }
    }

    fn answer_seen(&self, answered: Answered) {
        let Answered { number, exchange, .. } = answered;
        if !self.table_part(number).remove(&number) {
            return;
        }
        let text = exchange.text.as_ref().map_or(0, String::len);
        let bytes = exchange.chunks.len() * size_of::<Chunk>() + text;
        let answer = if self.room.take_bytes(bytes) {
            CapturedAnswer { number, exchange: Some(Box::new(exchange)), bytes }
        } else {
            CapturedAnswer { number, exchange: None, bytes: 0 }
        };
        // There is room for both notes of each ticket; without a writer it is not needed.
        let _ = self.notes.try_send(WriterMessage::Answered(answer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::Ending;

    fn ask(number: u64, bytes: usize) -> CapturedRequest {
        let body = vec![b' '; bytes].into();
        CapturedRequest { number, arrived: Nanos::ZERO, api: Api::Chat, session: None, body }
    }

    fn answered(number: u64, exchange: Exchange) -> Answered {
        Answered { number, arrived: Nanos::ZERO, ending: Ending::Whole, exchange, bytes: 0 }
    }

    #[test]
    fn what_waits_is_bounded_and_what_was_taken_is_heard_to_its_end() {
        let (capture, notes, room) = CaptureQueue::new(&Arc::default());
        let taken =
            (0..2 * MOST_TICKETS as u64).filter(|number| capture.push_request(ask(*number, 1)));
        assert_eq!(taken.count(), MOST_TICKETS);
        // Answers to requests that were not recorded are skipped.
        for number in (0..2 * MOST_TICKETS as u64).rev() {
            capture.answer_seen(answered(number, Exchange::default()));
        }
        let heard = notes.try_iter().filter_map(|note| match note {
            WriterMessage::Answered(answer) => Some(answer.number),
            WriterMessage::Asked(_) => None,
        });
        assert!(heard.eq((0..MOST_TICKETS as u64).rev()));
        // What was heard makes room.
        assert!(!capture.push_request(ask(1 << 40, 1)));
        room.release_ticket();
        assert!(capture.push_request(ask(1 << 40, 1)));
    }

    #[test]
    fn bytes_are_bounded_too() {
        let (capture, notes, room) = CaptureQueue::new(&Arc::default());
        assert!(capture.push_request(ask(0, MOST_BYTES - 10)) && capture.push_request(ask(1, 10)));
        assert!(!capture.push_request(ask(2, 1)));
        assert!(
            !capture.push_request(CapturedRequest { session: Some("x".to_owned()), ..ask(2, 0) })
        );
        // An answer without room is known to be lost.
        let exchange = Exchange { text: Some("x".to_owned()), ..Exchange::default() };
        capture.answer_seen(answered(0, exchange.clone()));
        room.release_bytes(1);
        capture.answer_seen(answered(1, exchange));
        let kept = notes.try_iter().filter_map(|note| match note {
            WriterMessage::Answered(answer) => {
                Some((answer.number, answer.exchange.is_some(), answer.bytes))
            }
            WriterMessage::Asked(_) => None,
        });
        assert_eq!(kept.collect::<Vec<_>>(), [(0, false, 0), (1, true, 1)]);
    }
}
