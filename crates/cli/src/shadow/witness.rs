//! What the proxy and the mirror tell, on its way to the collector.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};

use goodput_live::{Answered, Asked, Echo, Mirror, Mirrored, Witness};
use goodput_model::Exchange;

use super::pairing::Word;

/// Bytes of what waits for the collector or for its other half at most.
const MOST_BYTES: u64 = 128 << 20;

/// Tells of both, and waits for nobody: what the collector cannot take is counted and forgotten.
#[derive(Clone)]
pub(super) struct Teller {
    words: SyncSender<Word>,
    /// Answers of the candidate that were forgotten. One of the primary that was leaves the
    /// candidate's without a pair, where there is one, and is counted there.
    lost: Arc<AtomicU64>,
    /// Bytes of what was said and is not done with.
    held: Arc<AtomicU64>,
}

/// Room that a word takes until this is dropped.
#[derive(Debug)]
pub(super) struct Room(Arc<AtomicU64>, u64);

impl Room {
    fn of(exchange: &Exchange, held: &Arc<AtomicU64>) -> Option<Self> {
        let text = exchange.text.as_ref().map_or(0, String::len);
        let bytes = (size_of::<Mirrored>() + size_of_val(&*exchange.chunks) + text) as u64;
        let before = held.fetch_add(bytes, Ordering::Relaxed);
        // Given back at once where there is too little.
        Some(Self(Arc::clone(held), bytes)).filter(|_| before + bytes <= MOST_BYTES)
    }

    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self(Arc::default(), 0)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}

impl Teller {
    pub(super) fn new(words: SyncSender<Word>) -> Self {
        Self { words, lost: Arc::default(), held: Arc::default() }
    }

    /// Answers of the candidate that were forgotten.
    pub(super) fn lost(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.lost)
    }

    /// Whether it was heard.
    fn say(&self, word: Option<Word>) -> bool {
        let outcome = word.map(|word| self.words.try_send(word));
        !matches!(outcome, None | Some(Err(TrySendError::Full(_))))
    }

    fn answered(&self, answered: Answered) {
        let room = Room::of(&answered.exchange, &self.held);
        self.say(room.map(|room| Word::Primary(Box::new(answered), room)));
    }
}

impl Echo for Teller {
    fn left(&self, number: u64) {
        self.say(Some(Word::Left(number)));
    }

    fn echoed(&self, mirrored: Mirrored) {
        let room = Room::of(&mirrored.exchange, &self.held);
        if !self.say(room.map(|room| Word::Candidate(Box::new(mirrored), room))) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Offers requests to the mirror.
pub(super) struct Shadow {
    pub(super) teller: Teller,
    pub(super) mirror: Arc<Mirror>,
    /// Requests that came whole, of the paths that can be mirrored.
    pub(super) passed: Arc<AtomicU64>,
}

impl Witness for Shadow {
    fn asked(&self, asked: Asked) {
        self.passed.fetch_add(u64::from(asked.api.is_some()), Ordering::Relaxed);
        if !self.mirror.offer(&asked) {
            self.teller.left(asked.number);
        }
    }

    fn answered(&self, answered: Answered) {
        self.teller.answered(answered);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use goodput_live::Ending;
    use goodput_model::{Api, Nanos};

    use super::*;

    #[test]
    fn only_answers_of_the_candidate_are_lost() {
        let (words, _heard) = sync_channel(1);
        let teller = Teller::new(words);
        let (number, arrived, exchange) = (1, Nanos::ZERO, Exchange::default());
        let echo = || {
            let (api, model, max_tokens) = (Api::Chat, None, None);
            let exchange = exchange.clone();
            teller.echoed(Mirrored { number, arrived, api, model, max_tokens, exchange });
        };
        echo();
        assert_eq!(teller.lost.load(Ordering::Relaxed), 0);
        // From here on there is no room: of what was not chosen nothing is lost.
        teller.left(2);
        let (ending, exchange) = (Ending::Whole, exchange.clone());
        teller.answered(Answered { number, arrived, ending, exchange, bytes: 0 });
        assert_eq!(teller.lost.load(Ordering::Relaxed), 0);
        echo();
        assert_eq!(teller.lost.load(Ordering::Relaxed), 1);
    }
}
