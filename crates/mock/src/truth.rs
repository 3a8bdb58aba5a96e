//! What really happened to a request, in the form of the request log.
//!
//! Instants are those of `CLOCK_MONOTONIC` on the server's machine:
//!
//! | field | here |
//! |---|---|
//! | `scheduled` | the last byte of the request was read |
//! | `dispatched` | the engine first worked on it: what lies before is its queue |
//! | `headers` | status and headers were handed to the socket |
//! | `first_token`, `chunks`, `last_token` | each token event, as it was handed to the socket |
//! | `done`, `ended` | the end of the answer |

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::SyncSender;

use goodput_clock::now;
use goodput_model::{
    Chunk, ErrorClass, Exchange, Failure, FailureStage, Nanos, Phase, Planned, RequestRecord,
    TokenCount, TokenSource,
};

use crate::tally::MockTally;

/// A record in the making; it is handed in when dropped.
pub(crate) struct TruthRecord {
    record: Option<RequestRecord>,
    sink: SyncSender<RequestRecord>,
    tally: Arc<MockTally>,
}

impl TruthRecord {
    /// A request that has arrived.
    pub(crate) fn new(
        sink: SyncSender<RequestRecord>,
        tally: Arc<MockTally>,
        index: u64,
        arrived: Nanos,
        request_id: Option<String>,
    ) -> Self {
        let planned = Planned::new("request", 0, None);
        let left = Failure {
            class: ErrorClass::CutOff,
            stage: FailureStage::Headers,
            message: "the client left".to_owned(),
        };
        let record = RequestRecord {
            index,
            phase: Phase::Measured,
            worker: 0,
            scheduled: arrived,
            pacer_lag: None,
            cap_wait: Nanos::ZERO,
            planned,
            // Unless something better is heard of it.
            exchange: Exchange { request_id, failure: Some(left), ..Exchange::default() },
            prompt: None,
        };
        Self { record: Some(record), sink, tally }
    }

    /// Changes the record.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut RequestRecord)) {
        if let Some(record) = &mut self.record {
            change(record);
        }
    }

    /// Status and headers leave.
    pub(crate) fn note_headers(&mut self, status: u16) {
        self.change(|record| {
            record.exchange.status = Some(status);
            record.exchange.stamps.headers = Some(now());
        });
    }

    /// A token event leaves.
    pub(crate) fn note_tokens(&mut self, chunk: Chunk) {
        self.change(|record| {
            let exchange = &mut record.exchange;
            exchange.stamps.first_byte.get_or_insert(chunk.at);
            exchange.stamps.first_token.get_or_insert(chunk.at);
            exchange.stamps.first_answer.get_or_insert(chunk.at);
            exchange.stamps.last_token = Some(chunk.at);
            let sent = exchange.output_tokens.map_or(0, |count| count.n);
            let n = sent + chunk.tokens.unwrap_or(0);
            exchange.output_tokens = Some(TokenCount { n, source: TokenSource::Usage });
            exchange.chunks.push(chunk);
        });
    }

    /// The answer ended on purpose: well, or as a fault wants it.
    pub(crate) fn note_end(&mut self, failure: Option<(ErrorClass, String)>) {
        self.change(|record| record.exchange.stamps.done = failure.is_none().then(now));
        match failure {
            Some((class, message)) => self.note_failure(class, message),
            None => self.change(|record| record.exchange.failure = None),
        }
    }

    /// Whatever comes of it, the answer is a bad one.
    pub(crate) fn note_failure(&mut self, class: ErrorClass, message: String) {
        // How far it came is known at its end.
        let failure = Failure { class, stage: FailureStage::Headers, message };
        self.change(|record| record.exchange.failure = Some(failure));
    }
}

impl Drop for TruthRecord {
    fn drop(&mut self) {
        let Some(mut record) = self.record.take() else { return };
        record.exchange.stamps.ended = now();
        let stage = record.exchange.stamps.stage().max(FailureStage::Headers);
        if let Some(failure) = &mut record.exchange.failure {
            // As clients have it: a refusal fails at its status, whatever body follows.
            let is_refused = matches!(failure.class, ErrorClass::Http(_));
            failure.stage = if is_refused { FailureStage::Headers } else { stage };
        }
        if record.exchange.stamps.dispatched == Nanos::ZERO {
            record.exchange.stamps.dispatched = record.scheduled;
        }
        // The server does not wait for a slow disk.
        if self.sink.try_send(record).is_err() {
            self.tally.lost_truth.fetch_add(1, Relaxed);
        }
    }
}
