//! Which answer of the candidate belongs to which of the primary.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use goodput_model::{ErrorClass, Nanos};
use goodput_wire::is_unread_success;

use super::half::{CandidateAnswer, Half, MemoryPermit};
use super::mirror::Caps;
use crate::proxy::{Answered, Ending};

/// A request of which both sides are known.
pub(super) struct Both {
    pub(super) primary: Box<Answered>,
    pub(super) candidate: Box<CandidateAnswer>,
    _permits: [MemoryPermit; 2],
}

/// Requests that wait for their other half at most.
const MOST: usize = 20_000;

/// How long the first half may wait where the primary has not answered yet.
const LONG: Nanos = Nanos(3_600_000_000_000);

/// Puts halves together; each waits within bounds of time and number.
#[derive(Debug)]
pub(super) struct Pairing {
    waiting: HashMap<u64, Half>,
    /// Those that wait, with the instant at which they are given up; one of each kind, as all of one
    /// kind wait equally long.
    ends: [VecDeque<(Nanos, u64)>; 2],
    /// How long the primary's half waits.
    patience: Nanos,
    /// How long an answer of the candidate may take, and the bytes that it may have.
    limits: (Nanos, u64),
    /// Requests that the candidate answered and that have no pair: the client gave up, or we did, waiting or at
    /// the end.
    pub(super) unpaired: u64,
    /// Requests whose answers say nothing: not looked into, or beyond our own limits on both sides.
    pub(super) unjudged: u64,
}

/// Whether an answer was broken off by the client, or by our own end: that says nothing of the primary.
fn was_broken_off(primary: &Answered) -> bool {
    let class = primary.exchange.failure.as_ref().map(|failure| failure.class);
    primary.ending == Ending::ClientGone || class == Some(ErrorClass::CutOff)
}

/// How much longer than the candidate may take the primary's half of a pair waits for it.
const BEYOND: Duration = Duration::from_secs(10);

impl Pairing {
    /// The candidate says something about each request within these caps.
    pub(super) fn new(caps: &Caps) -> Self {
        Self {
            waiting: HashMap::new(),
            ends: Default::default(),
            patience: (caps.wait + caps.time + BEYOND).into(),
            limits: (caps.time.into(), caps.answer_bytes),
            unpaired: 0,
            unjudged: 0,
        }
    }

    /// Takes a half; returns the pair that it completes.
    pub(super) fn add_half(&mut self, half: Half, at: Nanos) -> Option<Both> {
        let Some(other) = self.waiting.remove(&half.number()) else {
            self.queue_half(half, at);
            return None;
        };
        match (half, other) {
            (Half::Primary(primary, one), Half::Candidate(candidate, other))
            | (Half::Candidate(candidate, one), Half::Primary(primary, other)) => {
                if was_broken_off(&primary) {
                    self.unpaired += 1;
                    return None;
                }
                if self.is_inconclusive(&primary, &candidate) {
                    self.unjudged += 1;
                    return None;
                }
                Some(Both { primary, candidate, _permits: [one, other] })
            }
            _ => None,
        }
    }

    /// Whether a pair would tell our limits and not the servers: an answer that was not looked into, or
    /// one of the candidate that we ended where the primary's went as far.
    fn is_inconclusive(&self, primary: &Answered, candidate: &CandidateAnswer) -> bool {
        let stamps = &primary.exchange.stamps;
        let (time, bytes) = self.limits;
        let is_beyond = match candidate.exchange.failure.as_ref().map(|failure| failure.class) {
            Some(ErrorClass::Timeout) => stamps.ended - stamps.dispatched >= time,
            Some(ErrorClass::EventTooLarge) => primary.bytes > bytes,
            _ => false,
        };
        is_beyond || is_unread_success(&primary.exchange) || is_unread_success(&candidate.exchange)
    }

    /// Nothing more comes: what still waits for the primary's half has no pair.
    pub(super) fn finish(&mut self) {
        let halves = self.waiting.drain().map(|(_, half)| half);
        self.unpaired += halves.filter(|half| matches!(half, Half::Candidate(..))).count() as u64;
    }

    fn queue_half(&mut self, half: Half, at: Nanos) {
        let number = half.number();
        let (kind, patience) = match half {
            Half::Primary(..) => (0, self.patience),
            Half::Left(_) | Half::Candidate(..) => (1, LONG),
        };
        self.waiting.insert(number, half);
        self.ends[kind].push_back((at + patience, number));
        while self.waiting.len() > MOST && self.give_up_next() {}
    }

    /// Gives up what has waited too long.
    pub(super) fn expire_old(&mut self, at: Nanos) {
        for kind in [0, 1] {
            while self.ends[kind].front().is_some_and(|(end, _)| *end <= at) {
                self.give_up(kind);
            }
        }
        // Those that were paired long ago need no end.
        for kind in [0, 1] {
            if self.ends[kind].len() > 2 * MOST {
                let waiting = &self.waiting;
                self.ends[kind].retain(|(_, number)| waiting.contains_key(number));
            }
        }
    }

    /// Gives up the oldest; whether there was one.
    fn give_up_next(&mut self) -> bool {
        let first = |kind: usize| self.ends[kind].front().map(|(end, _)| *end);
        let kind = match (first(0), first(1)) {
            (None, None) => return false,
            (Some(_), None) => 0,
            (None, Some(_)) => 1,
            (Some(one), Some(other)) => usize::from(other < one),
        };
        self.give_up(kind);
        true
    }

    fn give_up(&mut self, kind: usize) {
        if let Some((_, number)) = self.ends[kind].pop_front()
            && let Some(Half::Candidate(..)) = self.waiting.remove(&number)
        {
            self.unpaired += 1;
        }
    }

    /// Those that wait.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::{Api, Exchange, Failure, FailureStage, Stamps};

    use super::*;

    fn answered(number: u64, ending: Ending) -> Answered {
        let exchange = Exchange::default();
        Answered { number, arrived: Nanos::ZERO, ending, exchange, bytes: 0 }
    }

    fn primary(number: u64, ending: Ending) -> Half {
        Half::Primary(Box::new(answered(number, ending)), MemoryPermit::empty())
    }

    fn candidate(number: u64) -> Half {
        said(number, Exchange::default())
    }

    fn said(number: u64, exchange: Exchange) -> Half {
        let (arrived, api, model, max_tokens) = (Nanos::ZERO, Api::Chat, None, None);
        let one = CandidateAnswer { number, arrived, api, model, max_tokens, exchange };
        Half::Candidate(Box::new(one), MemoryPermit::empty())
    }

    /// The primary's half waits for 100 ns.
    fn pairing() -> Pairing {
        Pairing { patience: Nanos(100), ..Pairing::new(&Caps::default()) }
    }

    #[test]
    fn what_our_limits_cut_on_both_sides_is_no_pair() {
        let failed = |class| {
            let (stage, message) = (FailureStage::Stream, String::new());
            let failure = Some(Failure { class, stage, message });
            Exchange { status: Some(200), failure, ..Exchange::default() }
        };
        let mut pairing = Pairing { limits: (Nanos(50), 1_000), ..pairing() };
        let mut is_pair = |(took, bytes): (u64, u64), class| {
            let (dispatched, ended) = (Nanos(7), Nanos(7 + took));
            let stamps = Stamps { dispatched, ended, ..Stamps::default() };
            let exchange = Exchange { stamps, ..Exchange::default() };
            let one = Answered { exchange, bytes, ..answered(1, Ending::Whole) };
            let _ = pairing.add_half(Half::Primary(Box::new(one), MemoryPermit::empty()), Nanos(1));
            pairing.add_half(said(1, failed(class)), Nanos(1)).is_some()
        };
        let (late, large) = (ErrorClass::Timeout, ErrorClass::EventTooLarge);
        assert!(is_pair((49, 2_000), late) && !is_pair((50, 0), late));
        assert!(is_pair((60, 1_000), large) && !is_pair((0, 1_001), large));
        assert!(is_pair((60, 2_000), ErrorClass::Cut));
        assert_eq!((pairing.unjudged, pairing.unpaired), (2, 0));
    }

    #[test]
    fn what_waits_at_the_end_has_no_pair() {
        let mut pairing = pairing();
        for word in [candidate(1), candidate(2), primary(3, Ending::Whole), Half::Left(4)] {
            let _ = pairing.add_half(word, Nanos(1));
        }
        pairing.finish();
        assert_eq!((pairing.len(), pairing.unpaired), (0, 2));
    }

    #[test]
    fn halves_find_each_other_in_either_order() {
        let mut pairing = pairing();
        let at = Nanos(1);
        assert!(pairing.add_half(primary(1, Ending::Whole), at).is_none());
        assert!(pairing.add_half(candidate(2), at).is_none());
        let pair = pairing.add_half(candidate(1), at).unwrap();
        assert_eq!((pair.primary.number, pair.candidate.number), (1, 1));
        assert!(
            pairing.add_half(primary(2, Ending::Broken), at).is_some(),
            "a failure is an answer"
        );
        assert_eq!((pairing.len(), pairing.unpaired), (0, 0));
    }

    #[test]
    fn abandoned_halves_do_not_wait() {
        let mut pairing = pairing();
        let at = Nanos(1);
        for word in [primary(1, Ending::Whole), Half::Left(1), Half::Left(2)] {
            assert!(pairing.add_half(word, at).is_none());
        }
        assert!(pairing.add_half(primary(2, Ending::Whole), at).is_none());
        assert_eq!(pairing.len(), 0);
        assert!(pairing.add_half(primary(3, Ending::ClientGone), at).is_none());
        assert!(pairing.add_half(candidate(3), at).is_none());
        assert_eq!((pairing.len(), pairing.unpaired), (0, 1));
    }

    #[test]
    fn what_our_own_end_cut_is_no_failure_of_the_primary() {
        let broken = |class| {
            let (stage, message) = (FailureStage::Stream, String::new());
            let failure = Some(Failure { class, stage, message });
            let exchange = Exchange { failure, ..Exchange::default() };
            let one = Answered { exchange, ..answered(1, Ending::Broken) };
            Half::Primary(Box::new(one), MemoryPermit::empty())
        };
        let mut pairing = pairing();
        for (class, unpaired) in [(ErrorClass::CutOff, 1), (ErrorClass::Cut, 1)] {
            let _ = pairing.add_half(broken(class), Nanos(1));
            let is_pair = pairing.add_half(candidate(1), Nanos(1)).is_some();
            assert_eq!((is_pair, pairing.unpaired), (class == ErrorClass::Cut, unpaired));
        }
    }

    #[test]
    fn waiting_has_an_end() {
        let mut pairing = pairing();
        let _ = pairing.add_half(primary(1, Ending::Whole), Nanos(1));
        let _ = pairing.add_half(candidate(2), Nanos(1));
        pairing.expire_old(Nanos(100));
        assert_eq!(pairing.len(), 2);
        pairing.expire_old(Nanos(101));
        assert_eq!((pairing.len(), pairing.unpaired), (1, 0));
        assert!(pairing.add_half(candidate(1), Nanos(102)).is_none(), "its pair is gone");
        pairing.expire_old(LONG + Nanos(1000));
        assert_eq!((pairing.len(), pairing.unpaired), (0, 2));
    }

    #[test]
    fn however_many_wait_memory_is_bounded() {
        let mut pairing = pairing();
        for number in 0..25_000 {
            let _ = pairing.add_half(candidate(number), Nanos(number));
            let _ = pairing.add_half(primary(number + 1_000_000, Ending::Whole), Nanos(number));
            pairing.expire_old(Nanos(0));
        }
        assert_eq!(pairing.len(), MOST);
        assert!(pairing.ends.iter().all(|ends| ends.len() <= 2 * MOST + 1));
    }
}
