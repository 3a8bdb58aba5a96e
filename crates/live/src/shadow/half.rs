//! What is known of a mirrored request, on its way to the collector.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use goodput_model::{Api, Exchange, Nanos};

use crate::proxy::Answered;

/// Bytes of what waits for the collector or for its other half at most.
const MOST_BYTES: u64 = 128 << 20;

/// Halves that may wait for the collector.
const MOST_WAITING: usize = 16_384;

/// One side of a request, with the memory that it holds.
#[derive(Debug)]
pub enum Half {
    /// The candidate will say nothing about this request.
    Left(u64),
    /// The primary's answer is over.
    Primary(Box<Answered>, MemoryPermit),
    /// The candidate's is.
    Candidate(Box<CandidateAnswer>, MemoryPermit),
}

impl Half {
    /// The number of the request.
    pub(super) fn number(&self) -> u64 {
        match self {
            Self::Left(number) => *number,
            Self::Primary(one, _) => one.number,
            Self::Candidate(one, _) => one.number,
        }
    }
}

/// What a candidate made of a request.
#[derive(Debug, Clone)]
pub struct CandidateAnswer {
    /// As the client's request has it.
    pub number: u64,
    /// When the client's request arrived.
    pub arrived: Nanos,
    /// Which API it asks.
    pub api: Api,
    /// The model that the client asked for.
    pub model: Option<String>,
    /// The length that the client asked for.
    pub max_tokens: Option<u32>,
    /// Stamps on the process's clock; it begins when the mirror turned to it.
    pub exchange: Exchange,
}

/// Tells the collector of halves, and waits for nothing: what it cannot take is counted and forgotten.
#[derive(Debug, Clone)]
pub struct HalfSender {
    halves: SyncSender<Half>,
    /// Answers of the candidate that were forgotten. One of the primary that was leaves the
    /// candidate's without a pair, where there is one, and is counted there.
    lost: Arc<AtomicU64>,
    /// Bytes of what was sent and is not done with.
    held: Arc<AtomicU64>,
}

/// Memory that a half takes until this is dropped.
#[derive(Debug)]
pub struct MemoryPermit(Arc<AtomicU64>, u64);

impl MemoryPermit {
    fn new(exchange: &Exchange, held: &Arc<AtomicU64>) -> Option<Self> {
        let text = exchange.text.as_ref().map_or(0, String::len);
        let bytes = (size_of::<CandidateAnswer>() + size_of_val(&*exchange.chunks) + text) as u64;
        let before = held.fetch_add(bytes, Ordering::Relaxed);
        // Given back at once where there is too little.
        Some(Self(Arc::clone(held), bytes)).filter(|_| before + bytes <= MOST_BYTES)
    }

    #[cfg(test)]
    pub(super) fn empty() -> Self {
        Self(Arc::default(), 0)
    }
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}

impl HalfSender {
    /// With the other end of its queue.
    pub fn new() -> (Self, Receiver<Half>) {
        Self::with_room(MOST_WAITING)
    }

    fn with_room(most: usize) -> (Self, Receiver<Half>) {
        let (halves, queue) = sync_channel(most);
        (Self { halves, lost: Arc::default(), held: Arc::default() }, queue)
    }

    /// Answers of the candidate that were forgotten.
    pub(super) fn lost_count(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Whether it was taken.
    fn send(&self, half: Option<Half>) -> bool {
        let outcome = half.map(|half| self.halves.try_send(half));
        !matches!(outcome, None | Some(Err(TrySendError::Full(_))))
    }

    /// The candidate will say nothing about this request.
    pub(super) fn candidate_skipped(&self, number: u64) {
        self.send(Some(Half::Left(number)));
    }

    /// The primary's answer is over.
    pub(super) fn send_primary(&self, answer: Answered) {
        let permit = MemoryPermit::new(&answer.exchange, &self.held);
        self.send(permit.map(|permit| Half::Primary(Box::new(answer), permit)));
    }

    /// The candidate's answer is over, completed or not.
    pub(super) fn send_candidate(&self, answer: CandidateAnswer) {
        let permit = MemoryPermit::new(&answer.exchange, &self.held);
        if !self.send(permit.map(|permit| Half::Candidate(Box::new(answer), permit))) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::Ending;

    #[test]
    fn only_answers_of_the_candidate_are_lost() {
        let (sender, _queue) = HalfSender::with_room(1);
        let (number, arrived, exchange) = (1, Nanos::ZERO, Exchange::default());
        let echo = || {
            let (api, model, max_tokens) = (Api::Chat, None, None);
            let exchange = exchange.clone();
            sender.send_candidate(CandidateAnswer {
                number,
                arrived,
                api,
                model,
                max_tokens,
                exchange,
            });
        };
        echo();
        assert_eq!(sender.lost_count(), 0);
        // From here on the queue is full: nothing is lost of requests that were not chosen.
        sender.candidate_skipped(2);
        let (ending, exchange) = (Ending::Whole, exchange.clone());
        sender.send_primary(Answered { number, arrived, ending, exchange, bytes: 0 });
        assert_eq!(sender.lost_count(), 0);
        echo();
        assert_eq!(sender.lost_count(), 1);
    }
}
