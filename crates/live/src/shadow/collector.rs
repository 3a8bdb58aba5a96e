//! The thread that makes pairs, writes them down, and says what they mean so far.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use goodput_campaign::compare::CompareState;
use goodput_campaign::shadow::Pair;
use goodput_clock::{lower_priority, now};
use goodput_model::{Exchange, Nanos, Phase, Planned, RequestRecord, Stamps, known_finish};

use super::figures::ShadowFigures;
use super::half::{CandidateAnswer, Half};
use super::likeness;
use super::pairing::{Both, Pairing};
use super::store::PairStore;
use crate::observer::LiveObserver;
use crate::rows::is_model_name;

/// How often logs are handed to the system: the most that a `kill -9` takes.
const FLUSH: Nanos = Nanos::from_millis(200);

/// How often pairs are looked at together, and the result so far is written.
const LOOK: Nanos = Nanos::from_millis(5_000);

/// Models that are told apart at most: clients choose their names.
const MOST_NAMES: usize = 64;

/// What is beyond them, or no name of a model: it could be anyone's text.
const OTHER: &str = "other";

/// Makes pairs.
pub(super) struct Collector {
    pub(super) pairing: Pairing,
    pub(super) store: PairStore,
    pub(super) figures: Arc<ShadowFigures>,
    pub(super) observer: Arc<dyn LiveObserver>,
    /// Models that clients asked for.
    pub(super) models: BTreeSet<String>,
}

impl Collector {
    /// Works until it is over and everything is heard.
    pub(super) fn run(mut self, halves: &Receiver<Half>, is_over: &AtomicBool) -> PairStore {
        lower_priority();
        let (mut flushed, mut looked, mut is_told) = (now(), now(), false);
        loop {
            match halves.recv_timeout(Duration::from_millis(50)) {
                Ok(half) => {
                    if let Some(both) = self.pairing.add_half(half, now()) {
                        self.add_pair(both);
                    }
                }
                Err(RecvTimeoutError::Timeout) if !is_over.load(Ordering::Relaxed) => {}
                Err(_) => break,
            }
            let present = now();
            if present - flushed >= FLUSH {
                flushed = present;
                self.store.flush();
                self.pairing.expire_old(present);
                if let Some(error) = self.store.last_error().filter(|_| !is_told) {
                    is_told = true;
                    self.observer.warn(&format!("warning: cannot write the pairs: {error}"));
                }
            }
            if present - looked >= LOOK {
                looked = present;
                self.tick();
            }
        }
        self.pairing.finish();
        self.tick();
        self.store
    }

    fn tick(&mut self) {
        self.figures.unpaired.store(self.pairing.unpaired, Ordering::Relaxed);
        self.figures.unjudged.store(self.pairing.unjudged, Ordering::Relaxed);
        let (facts, shadow) =
            self.figures.comparison_facts(self.store.plan(), CompareState::Unfinished);
        let comparison = Arc::new(self.store.comparison_so_far(facts, &shadow));
        self.store.write_so_far(&comparison);
        self.observer.comparison_so_far(&comparison);
    }

    fn add_pair(&mut self, both: Both) {
        let Both { mut primary, mut candidate, .. } = both;
        let texts = (primary.exchange.text.take(), candidate.exchange.text.take());
        let likeness = match texts {
            (Some(one), Some(other))
                if primary.exchange.failure.is_none() && candidate.exchange.failure.is_none() =>
            {
                Some(likeness::compare_texts(&one, &other))
            }
            _ => None,
        };
        let class = self.request_class(&candidate);
        let at = candidate.arrived - self.figures.began;
        let record = |exchange: Exchange| {
            let planned = Planned::new(
                Arc::clone(&class),
                exchange.input_tokens.map_or(0, |count| count.n),
                candidate.max_tokens,
            );
            side_record(candidate.number, planned, exchange, self.figures.began)
        };
        let pair = Pair {
            at,
            primary: record(primary.exchange),
            candidate: record(candidate.exchange),
            likeness,
        };
        self.figures.pairs.fetch_add(1, Ordering::Relaxed);
        self.observer.pair(&pair);
        self.store.append(pair);
    }

    /// Endpoint and model.
    fn request_class(&mut self, candidate: &CandidateAnswer) -> Arc<str> {
        let model = known_model(&mut self.models, candidate.model.as_deref());
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
fn side_record(
    index: u64,
    planned: Planned,
    mut exchange: Exchange,
    epoch: Nanos,
) -> RequestRecord {
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
        scheduled: service_start(&exchange.stamps),
        pacer_lag: None,
        cap_wait: Nanos::ZERO,
        planned,
        exchange,
        prompt: None,
    }
}

/// When a server had the request, or when we turned to it where it never had, or answered before.
fn service_start(stamps: &Stamps) -> Nanos {
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
            side_record(0, Planned::new("x", 0, None), exchange, Nanos::ZERO)
                .exchange
                .finish
                .unwrap()
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
        assert_eq!(service_start(&stamps(Some(30), Some(50))), Nanos(30));
        assert_eq!(service_start(&stamps(Some(30), None)), Nanos(30));
        assert_eq!(service_start(&stamps(None, None)), Nanos(10), "no instants");
        assert_eq!(
            service_start(&stamps(Some(60), Some(50))),
            Nanos(10),
            "refused before it was sent"
        );
    }
}
