//! How events become writes: as they come, several in one, one in several, or a few bytes at a time.

use std::collections::VecDeque;

use bytes::Bytes;
use goodput_model::Nanos;

use crate::faults::EventDelivery;

/// Between two writes that must not reach the client as one.
const APART: Nanos = Nanos::from_micros(500);

/// What leaves next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OutboxItem {
    /// Bytes for one write, with which this many token events are complete.
    Bytes(Bytes, usize),
    /// Nothing for so long.
    Silence(Nanos),
    /// A reset.
    Reset,
    /// The end of the connection in the middle of the answer.
    Cut,
}

/// Pieces on their way to the socket.
pub(crate) struct Outbox {
    delivery: EventDelivery,
    drip: Option<(u32, Nanos)>,
    /// Events that wait for others to leave with.
    held: Vec<u8>,
    held_events: u32,
    held_tokens: usize,
    pieces: VecDeque<OutboxItem>,
}

impl Outbox {
    pub(crate) fn new(delivery: EventDelivery, drip: Option<(u32, Nanos)>) -> Self {
        Self {
            delivery,
            drip,
            held: Vec::new(),
            held_events: 0,
            held_tokens: 0,
            pieces: VecDeque::new(),
        }
    }

    /// Whether events leave as they come, so that those that are due together may share a write.
    pub(crate) fn is_plain(&self) -> bool {
        self.delivery == EventDelivery::default() && self.drip.is_none()
    }

    /// An event; `tokens` is 1 if it carries tokens, and more if it is several such events.
    pub(crate) fn push(&mut self, bytes: Vec<u8>, tokens: usize) {
        if self.is_plain() {
            self.pieces.push_back(OutboxItem::Bytes(bytes.into(), tokens));
            return;
        }
        self.held.extend_from_slice(&bytes);
        self.held_events += 1;
        self.held_tokens += tokens;
        if self.held_events >= self.delivery.joined {
            self.flush();
        }
    }

    /// What is held leaves.
    pub(crate) fn flush(&mut self) {
        if self.held.is_empty() {
            return;
        }
        self.held_events = 0;
        let tokens = std::mem::take(&mut self.held_tokens);
        let mut bytes = Bytes::from(std::mem::take(&mut self.held));
        let gap = self.drip.map_or(APART, |(_, gap)| gap);
        let mut length = bytes.len().div_ceil(self.delivery.split.max(1) as usize);
        if let Some((most, _)) = self.drip {
            length = length.min(most.max(1) as usize);
        }
        while !bytes.is_empty() {
            let mut cut = length.min(bytes.len());
            if self.delivery.split_utf8 {
                cut = split_character(&bytes, cut);
            }
            let piece = bytes.split_to(cut);
            let complete = if bytes.is_empty() { tokens } else { 0 };
            self.pieces.extend([OutboxItem::Bytes(piece, complete), OutboxItem::Silence(gap)]);
        }
    }

    /// Something that is not bytes, after all that came before it.
    pub(crate) fn push_interruption(&mut self, piece: OutboxItem) {
        self.flush();
        if matches!(piece, OutboxItem::Reset | OutboxItem::Cut) {
            // An end that comes with the bytes before it takes them along: they never leave.
            self.pieces.push_back(OutboxItem::Silence(APART));
        }
        self.pieces.push_back(piece);
    }

    pub(crate) fn pop(&mut self) -> Option<OutboxItem> {
        self.pieces.pop_front()
    }
}

/// The first place inside a character of several bytes, or where the cut was meant.
fn split_character(bytes: &[u8], meant: usize) -> usize {
    let is_continuation = |byte: &u8| (0x80..0xc0).contains(byte);
    bytes.iter().skip(1).position(is_continuation).map_or(meant, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(outbox: &mut Outbox) -> Vec<OutboxItem> {
        std::iter::from_fn(|| outbox.pop()).collect()
    }

    fn bytes(text: &'static [u8], tokens: usize) -> OutboxItem {
        OutboxItem::Bytes(Bytes::from_static(text), tokens)
    }

    #[test]
    fn plain_events_leave_as_they_come() {
        let mut outbox = Outbox::new(EventDelivery::default(), None);
        outbox.push(b"abc".to_vec(), 1);
        outbox.push(b"de".to_vec(), 0);
        assert_eq!(pieces(&mut outbox), [bytes(b"abc", 1), bytes(b"de", 0)]);
    }

    #[test]
    fn what_came_before_an_end_has_time_to_leave() {
        for end in [OutboxItem::Cut, OutboxItem::Reset] {
            let mut outbox = Outbox::new(EventDelivery::default(), None);
            outbox.push(b"abc".to_vec(), 1);
            outbox.push_interruption(end);
            let pieces = pieces(&mut outbox);
            assert_eq!(pieces[..2], [bytes(b"abc", 1), OutboxItem::Silence(APART)]);
            assert_eq!(pieces.len(), 3);
        }
    }

    #[test]
    fn joined_events_leave_together_and_the_rest_with_the_end() {
        let delivery = EventDelivery { joined: 2, ..EventDelivery::default() };
        let mut outbox = Outbox::new(delivery, None);
        for event in [b"a", b"b", b"c"] {
            outbox.push(event.to_vec(), 1);
        }
        outbox.push_interruption(OutboxItem::Cut);
        let expected = [
            bytes(b"ab", 2),
            OutboxItem::Silence(APART),
            bytes(b"c", 1),
            OutboxItem::Silence(APART),
            OutboxItem::Silence(APART),
            OutboxItem::Cut,
        ];
        assert_eq!(pieces(&mut outbox), expected);
    }

    #[test]
    fn what_came_before_an_end_leaves_before_it() {
        let mut outbox = Outbox::new(EventDelivery::default(), None);
        outbox.push(b"a".to_vec(), 1);
        outbox.push_interruption(OutboxItem::Reset);
        assert_eq!(
            pieces(&mut outbox),
            [bytes(b"a", 1), OutboxItem::Silence(APART), OutboxItem::Reset]
        );
    }

    #[test]
    fn a_split_event_counts_with_its_last_write() {
        let delivery = EventDelivery { split: 3, ..EventDelivery::default() };
        let mut outbox = Outbox::new(delivery, None);
        outbox.push(b"abcdefg".to_vec(), 1);
        let quiet = || OutboxItem::Silence(APART);
        let expected =
            [bytes(b"abc", 0), quiet(), bytes(b"def", 0), quiet(), bytes(b"g", 1), quiet()];
        assert_eq!(pieces(&mut outbox), expected);
    }

    #[test]
    fn characters_are_cut_in_two() {
        let delivery = EventDelivery { split_utf8: true, ..EventDelivery::default() };
        let mut outbox = Outbox::new(delivery, None);
        outbox.push("né".as_bytes().to_vec(), 1);
        let expected = [
            bytes(b"n\xc3", 0),
            OutboxItem::Silence(APART),
            bytes(b"\xa9", 1),
            OutboxItem::Silence(APART),
        ];
        assert_eq!(pieces(&mut outbox), expected);
    }

    #[test]
    fn a_drip_is_a_few_bytes_at_a_time() {
        let gap = Nanos::from_millis(5);
        let mut outbox = Outbox::new(EventDelivery::default(), Some((2, gap)));
        outbox.push(b"abc".to_vec(), 1);
        let expected =
            [bytes(b"ab", 0), OutboxItem::Silence(gap), bytes(b"c", 1), OutboxItem::Silence(gap)];
        assert_eq!(pieces(&mut outbox), expected);
    }
}
