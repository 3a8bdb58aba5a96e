//! The thread that makes pairs, writes them down, and says what they mean so far.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use goodput_campaign::compare::Comparison;
use goodput_campaign::shadow::Pair;
use goodput_clock::now;
use goodput_live::Mirrored;
use goodput_live::rows::is_model_name;
use goodput_model::{Exchange, Nanos, Phase, Planned, RequestRecord, Stamps, known_finish};
use goodput_screen::Latency;

use super::likeness;
use super::pairing::{Both, Pairing, Word};
use super::saved::Keeper;
use crate::listen::Tally;
use crate::{output, screen};
use goodput_lab::host;

/// How often logs are handed to the system: the most that a `kill -9` takes.
const FLUSH: Nanos = Nanos::from_millis(200);

/// How often pairs are looked at together, and the result so far is written.
const LOOK: Nanos = Nanos::from_millis(5_000);

/// Models that are told apart at most: clients choose their names.
const MOST_NAMES: usize = 64;

/// What is beyond them, or no name of a model: it could be anyone's text.
const OTHER: &str = "other";

/// What others may see of the collector's work.
#[derive(Debug)]
pub(super) struct Board(Mutex<Seen>);

/// What is known so far.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) pairs: u64,
    /// Requests that the candidate answered and that have no pair.
    pub(super) unpaired: u64,
    /// Requests whose answers say nothing.
    pub(super) unjudged: u64,
    /// Of the pairs, the primary's side and the candidate's.
    pub(super) sides: [Tally; 2],
    /// The same with percentiles, for a screen.
    pub(super) shown: Arc<Mutex<[screen::Tally; 2]>>,
    /// Models that clients asked for.
    pub(super) models: BTreeSet<String>,
    /// What pairs say so far, and in words.
    pub(super) so_far: Option<Arc<Comparison>>,
    pub(super) in_words: String,
}

impl Board {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Seen {
            pairs: 0,
            unpaired: 0,
            unjudged: 0,
            sides: [Tally::new(true), Tally::new(true)],
            shown: Arc::new(Mutex::new([screen::Tally::new(true), screen::Tally::new(true)])),
            models: BTreeSet::new(),
            so_far: None,
            in_words: String::new(),
        }))
    }

    pub(super) fn read(&self) -> Seen {
        self.lock().clone()
    }

    /// Latencies of both sides, so long after the beginning.
    pub(super) fn latencies(&self, at: Nanos) -> Vec<Latency> {
        let shown = Arc::clone(&self.lock().shown);
        let shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |name: &'static str, tally: &screen::Tally| {
            let own = tally.latencies(at).into_iter();
            own.map(move |one| Latency { name: format!("{} {name}", one.name), ..one })
        };
        let [primary, candidate] = &*shown;
        of("primary", primary).zip(of("candidate", candidate)).flat_map(|(a, b)| [a, b]).collect()
    }

    pub(super) fn pairs(&self) -> u64 {
        self.lock().pairs
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What pairs say so far; none once it is over.
pub(super) type SoFar = Box<dyn Fn(&Keeper) -> Option<Comparison> + Send>;

/// Makes pairs.
pub(super) struct Collector {
    pub(super) epoch: Nanos,
    pub(super) pairing: Pairing,
    pub(super) keeper: Keeper,
    pub(super) board: Arc<Board>,
    /// What pairs say so far.
    pub(super) say: SoFar,
}

impl Collector {
    /// Works until it is over and everything is heard.
    pub(super) fn run(mut self, words: &Receiver<Word>, is_over: &AtomicBool) -> Keeper {
        host::give_way();
        let (mut flushed, mut looked, mut is_told) = (now(), now(), false);
        loop {
            match words.recv_timeout(Duration::from_millis(50)) {
                Ok(word) => {
                    if let Some(both) = self.pairing.hear(word, now()) {
                        self.take(both);
                    }
                }
                Err(RecvTimeoutError::Timeout) if !is_over.load(Ordering::Relaxed) => {}
                Err(_) => break,
            }
            let present = now();
            if present - flushed >= FLUSH {
                flushed = present;
                self.keeper.flush();
                self.pairing.expire(present);
                if let Some(error) = self.keeper.error().filter(|_| !is_told) {
                    is_told = true;
                    output::note(&format!("warning: the disk refuses the pairs: {error}"));
                }
            }
            if present - looked >= LOOK {
                looked = present;
                self.look();
            }
        }
        self.pairing.end();
        self.look();
        self.keeper
    }

    fn look(&mut self) {
        {
            let mut seen = self.board.lock();
            (seen.unpaired, seen.unjudged) = (self.pairing.unpaired, self.pairing.unjudged);
        }
        let comparison = (self.say)(&self.keeper);
        if let Some(comparison) = &comparison {
            self.keeper.keep_so_far(comparison);
        }
        let mut seen = self.board.lock();
        seen.in_words = comparison.as_ref().map_or_else(String::new, in_words);
        seen.so_far = comparison.map(Arc::new);
    }

    fn take(&mut self, both: Both) {
        let Both { mut primary, mut candidate, .. } = both;
        let texts = (primary.exchange.text.take(), candidate.exchange.text.take());
        let likeness = match texts {
            (Some(one), Some(other))
                if primary.exchange.failure.is_none() && candidate.exchange.failure.is_none() =>
            {
                Some(likeness::of(&one, &other))
            }
            _ => None,
        };
        let class = self.class(&candidate);
        let at = candidate.arrived - self.epoch;
        let record = |exchange: Exchange| {
            let planned = Planned::new(
                Arc::clone(&class),
                exchange.input_tokens.map_or(0, |count| count.n),
                candidate.max_tokens,
            );
            record(candidate.number, planned, exchange, self.epoch)
        };
        let pair = Pair {
            at,
            primary: record(primary.exchange),
            candidate: record(candidate.exchange),
            likeness,
        };
        {
            let mut seen = self.board.lock();
            seen.pairs += 1;
            seen.sides[0].add(&pair.primary);
            seen.sides[1].add(&pair.candidate);
            let mut shown = seen.shown.lock().unwrap_or_else(PoisonError::into_inner);
            shown[0].add(&pair.primary);
            shown[1].add(&pair.candidate);
        }
        self.keeper.append(pair);
    }

    /// Endpoint and model.
    fn class(&mut self, candidate: &Mirrored) -> Arc<str> {
        let model = known_model(&mut self.board.lock().models, candidate.model.as_deref());
        format!("{}/{model}", candidate.api.name()).into()
    }
}

/// A model's name, where it is one; those beyond the first few are one.
fn known_model<'a>(known: &mut BTreeSet<String>, model: Option<&'a str>) -> &'a str {
    let model = match model {
        Some(model) if is_model_name(model) => model,
        Some("") | None => "",
        Some(_) => OTHER,
    };
    if known.contains(model) {
        return model;
    }
    let model = if known.len() < MOST_NAMES { model } else { OTHER };
    known.insert(model.to_owned());
    model
}

/// What one server did. Its time runs from the moment it had the request: neither the client's own
/// slowness in sending it, nor our queue, nor opening a connection is any of it.
fn record(index: u64, planned: Planned, mut exchange: Exchange, epoch: Nanos) -> RequestRecord {
    exchange.stamps = exchange.stamps.since(epoch);
    for chunk in &mut exchange.chunks {
        chunk.at = chunk.at - epoch;
    }
    // What a server says of a failure may quote the request.
    if let Some(failure) = &mut exchange.failure {
        failure.message.clear();
    }
    exchange.request_id = None;
    exchange.finish = exchange.finish.as_deref().map(|reason| known_finish(reason).to_owned());
    RequestRecord {
        index,
        phase: Phase::Measured,
        worker: 0,
        scheduled: begin(&exchange.stamps),
        pacer_lag: None,
        cap_wait: Nanos::ZERO,
        planned,
        exchange,
        prompt: None,
    }
}

/// Changes on the progress line at most.
const MOST_CHANGES: usize = 3;

/// Says in few words what the pairs so far mean.
fn in_words(comparison: &Comparison) -> String {
    let rows = goodput_report::compare_so_far(comparison).into_iter().flat_map(|one| one.rows);
    let rows = rows.filter(|row| row.figure.starts_with("p50")).take(MOST_CHANGES);
    rows.map(|row| format!("{} {}", row.figure, row.change)).collect::<Vec<_>>().join(", ")
}

/// When a server had the request, or when we turned to it where it never had, or answered before.
fn begin(stamps: &Stamps) -> Nanos {
    let answered = stamps.headers.unwrap_or(Nanos(u64::MAX));
    stamps.sent_last.filter(|sent| *sent <= answered).unwrap_or(stamps.dispatched)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_names_of_models_is_kept() {
        let mut known = BTreeSet::new();
        let mut name = |model: Option<&str>| known_model(&mut known, model).to_owned();
        assert_eq!(name(Some("org/model-7b:v1")), "org/model-7b:v1");
        assert_eq!(name(None), "");
        assert_eq!(name(Some("my private prompt")), "other");
        assert_eq!(name(Some(&"x".repeat(129))), "other");
        for k in 0..100 {
            name(Some(&format!("m{k}")));
        }
        assert_eq!((name(Some("m1")), name(Some("m99"))), ("m1".to_owned(), "other".to_owned()));
        assert!(known.len() <= MOST_NAMES + 1);
    }

    #[test]
    fn nothing_that_a_server_says_is_kept_but_known_words() {
        let kept = |reason: &str| {
            let exchange = Exchange { finish: Some(reason.to_owned()), ..Exchange::default() };
            record(0, Planned::new("x", 0, None), exchange, Nanos::ZERO).exchange.finish.unwrap()
        };
        assert_eq!((kept("stop"), kept("quoted_words")), ("stop".to_owned(), "other".to_owned()));
    }

    #[test]
    fn time_runs_from_when_a_server_had_the_request() {
        let stamps = |sent: Option<u64>, headers: Option<u64>| Stamps {
            dispatched: Nanos(10),
            sent_last: sent.map(Nanos),
            headers: headers.map(Nanos),
            ..Stamps::default()
        };
        assert_eq!(begin(&stamps(Some(30), Some(50))), Nanos(30));
        assert_eq!(begin(&stamps(Some(30), None)), Nanos(30));
        assert_eq!(begin(&stamps(None, None)), Nanos(10), "nobody was there");
        assert_eq!(begin(&stamps(Some(60), Some(50))), Nanos(10), "refused before it was sent");
    }
}
