//! Records of requests whose every instant is known.

use goodput_model::{
    Chunk, ErrorClass, Exchange, Failure, FailureStage, Nanos, Phase, Planned, RequestRecord,
    Stamps, TokenCount, TokenSource,
};

/// A chunk of three bytes whose tokens the server does not count.
pub fn token_chunk(at: Nanos) -> Chunk {
    Chunk { at, tokens: None, bytes: 3, choice: 0, coalesced: false, lag_us: None }
}

/// A number of tokens by the server's word.
pub fn usage(n: u32) -> Option<TokenCount> {
    Some(TokenCount { n, source: TokenSource::Usage })
}

/// A failure without a message.
pub fn failure(class: ErrorClass, stage: FailureStage) -> Failure {
    Failure { class, stage, message: String::new() }
}

/// Makes the record of one request, instant by instant. What is not said did not happen.
#[derive(Debug, Clone)]
pub struct RecordBuilder(RequestRecord);

impl RecordBuilder {
    /// A measured request of worker 0, let go when it was due.
    pub fn new(scheduled: Nanos) -> Self {
        let stamps = Stamps { dispatched: scheduled, ended: scheduled, ..Stamps::default() };
        Self(RequestRecord {
            index: 0,
            phase: Phase::Measured,
            worker: 0,
            scheduled,
            pacer_lag: None,
            cap_wait: Nanos::ZERO,
            planned: Planned::new("chat", 1, None),
            exchange: Exchange { stamps, ..Exchange::default() },
            prompt: None,
        })
    }

    /// Its number in the plan.
    #[must_use]
    pub fn index(mut self, index: u64) -> Self {
        self.0.index = index;
        self
    }

    /// What it was meant to be.
    #[must_use]
    pub fn planned(mut self, planned: Planned) -> Self {
        self.0.planned = planned;
        self
    }

    /// Let go at this instant instead.
    #[must_use]
    pub fn dispatched(mut self, at: Nanos) -> Self {
        self.0.exchange.stamps.dispatched = at;
        self
    }

    /// All of its bytes left at this instant.
    #[must_use]
    pub fn sent(mut self, at: Nanos) -> Self {
        let stamps = &mut self.0.exchange.stamps;
        (stamps.sent_first, stamps.sent_last) = (Some(at), Some(at));
        self
    }

    /// The status of the answer, whenever it came.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.0.exchange.status = Some(status);
        self
    }

    /// The head of a good answer, and the first byte of its body.
    #[must_use]
    pub fn answered(mut self, headers: Nanos, first_byte: Nanos) -> Self {
        let stamps = &mut self.0.exchange.stamps;
        (stamps.headers, stamps.first_byte) = (Some(headers), Some(first_byte));
        self.status(200)
    }

    /// A chunk of one token at each of these instants; the answer ends with the last.
    #[must_use]
    pub fn tokens(self, instants: impl IntoIterator<Item = Nanos>) -> Self {
        self.chunks(instants.into_iter().map(token_chunk).collect())
    }

    /// The same with chunks of any kind: the server counts one token for each.
    #[must_use]
    pub fn chunks(mut self, chunks: Vec<Chunk>) -> Self {
        let (first, last) = (chunks.first().map(|c| c.at), chunks.last().map(|c| c.at));
        let stamps = &mut self.0.exchange.stamps;
        (stamps.first_token, stamps.first_answer) = (first, first);
        (stamps.last_token, stamps.done) = (last, last);
        stamps.ended = last.unwrap_or(stamps.ended);
        self.0.exchange.output_tokens = usage(u32::try_from(chunks.len()).unwrap_or(u32::MAX));
        self.0.exchange.chunks = chunks;
        self
    }

    /// The answer ends at this instant instead.
    #[must_use]
    pub fn done(mut self, at: Nanos) -> Self {
        let stamps = &mut self.0.exchange.stamps;
        (stamps.done, stamps.ended) = (Some(at), at);
        self
    }

    /// The prompt's tokens by the server's word.
    #[must_use]
    pub fn input_tokens(mut self, n: u32) -> Self {
        self.0.exchange.input_tokens = usage(n);
        self
    }

    /// Why the answer ended.
    #[must_use]
    pub fn finish(mut self, reason: &str) -> Self {
        self.0.exchange.finish = Some(reason.to_owned());
        self
    }

    /// The record.
    pub fn build(self) -> RequestRecord {
        self.0
    }
}
