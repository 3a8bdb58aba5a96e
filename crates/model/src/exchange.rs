//! One request and its answer, as stamps on one clock.
//!
//! Stamps are kept apart and never overwritten by one another; every metric is computed from them
//! later (see `goodput-stats`). Nothing derived is stored.

use crate::{Failure, FailureStage, Nanos, Planned};

/// What was found out about an answer after the run, from its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnswerJudgement {
    /// The request's number in the plan.
    pub index: u64,
    /// Output tokens by a tokenizer of ours.
    pub output_tokens: Option<u32>,
    /// Characters of the answer.
    pub characters: u32,
    /// Whether it keeps its constraint; `None` where it has none or it cannot be checked.
    pub valid: Option<bool>,
}

/// Which part of the run a request belongs to. Only `Measured` enters the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Before the window, to bring the server to its working state.
    Warmup,
    /// The sample.
    Measured,
    /// After the window, so that the last measured requests still meet load.
    Cooldown,
}

/// Start and end of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeSpan {
    /// When it began.
    pub start: Nanos,
    /// When it was complete.
    pub end: Nanos,
}

impl TimeSpan {
    /// How long it took.
    pub fn length(self) -> Nanos {
        self.end - self.start
    }
}

/// The steps of opening a connection; absent from a request that reused one.
///
/// Names are resolved once, before the first request ([`crate::NameLookup`]), so DNS is not a step
/// here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connect {
    /// The TCP handshake.
    pub tcp: TimeSpan,
    /// The TLS handshake, on `https`.
    pub tls: Option<TimeSpan>,
}

impl Connect {
    /// From the first packet to a connection that can carry a request.
    pub fn length(self) -> Nanos {
        self.tcp.length() + self.tls.map_or(Nanos::ZERO, TimeSpan::length)
    }
}

/// The instants of one request. A missing instant means that the request never came that far.
///
/// What comes from the server is stamped with its arrival at this machine where the kernel says
/// when that was, and with the return of the read where it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamps {
    /// A worker let the request go (after waiting for a slot, where the user set a cap).
    pub dispatched: Nanos,
    /// Opening a connection for it.
    pub connect: Option<Connect>,
    /// First byte handed to the socket.
    pub sent_first: Option<Nanos>,
    /// Last byte taken by the socket.
    pub sent_last: Option<Nanos>,
    /// The read that completed the status line and headers.
    pub headers: Option<Nanos>,
    /// The read that brought the first byte of the body.
    pub first_byte: Option<Nanos>,
    /// The read that brought the first token of any channel.
    pub first_token: Option<Nanos>,
    /// The read that brought the first token of the answer itself or of a tool call.
    pub first_answer: Option<Nanos>,
    /// The read that brought the last token.
    pub last_token: Option<Nanos>,
    /// The read that brought `[DONE]` or the end of the body.
    pub done: Option<Nanos>,
    /// The exchange was over, completed or not: given up, refused, or read to its end.
    pub ended: Nanos,
}

impl Stamps {
    /// How far the request had come.
    pub fn stage(&self) -> FailureStage {
        match self {
            Self { first_token: Some(_), .. } => FailureStage::Stream,
            Self { headers: Some(_), .. } => FailureStage::FirstToken,
            Self { sent_first: Some(_), .. } => FailureStage::Headers,
            Self { connect: Some(_), .. } => FailureStage::Send,
            _ => FailureStage::Connect,
        }
    }

    /// The same instants counted from `epoch`.
    #[must_use]
    pub fn since(self, epoch: Nanos) -> Self {
        let at = |instant: Option<Nanos>| instant.map(|instant| instant - epoch);
        let span = |span: TimeSpan| TimeSpan { start: span.start - epoch, end: span.end - epoch };
        Self {
            dispatched: self.dispatched - epoch,
            connect: self
                .connect
                .map(|connect| Connect { tcp: span(connect.tcp), tls: connect.tls.map(span) }),
            sent_first: at(self.sent_first),
            sent_last: at(self.sent_last),
            headers: at(self.headers),
            first_byte: at(self.first_byte),
            first_token: at(self.first_token),
            first_answer: at(self.first_answer),
            last_token: at(self.last_token),
            done: at(self.done),
            ended: self.ended - epoch,
        }
    }
}

/// One event of a stream that carried tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// When the bytes that completed it arrived.
    pub at: Nanos,
    /// Tokens in it, where the server says so (token ids, log probabilities, running usage).
    pub tokens: Option<u32>,
    /// Bytes of text in it.
    pub bytes: u32,
    /// Which of the `n` answers it belongs to.
    pub choice: u32,
    /// It shared its read with another chunk, so a gap of zero says nothing about speed.
    pub coalesced: bool,
    /// How long its last bytes had waited in the kernel when they were read, in microseconds; `at`
    /// is then the kernel's instant. `None`: the system did not say, and `at` is that of the read.
    pub lag_us: Option<u32>,
}

/// Where a token count comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenSource {
    /// The server's `usage`.
    Usage,
    /// Token ids or log probabilities in the chunks.
    Chunks,
    /// A tokenizer of ours, over the text of the answer.
    Tokenizer,
    /// One token assumed per chunk: there was nothing better.
    Events,
    /// What the workload aimed at.
    Planned,
}

impl TokenSource {
    /// The word in `summary.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Chunks => "token_ids",
            Self::Tokenizer => "tokenizer",
            Self::Events => "chunks",
            Self::Planned => "planned",
        }
    }
}

/// A number of tokens and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenCount {
    /// How many.
    pub n: u32,
    /// Who says so.
    pub source: TokenSource,
}

/// What TCP did on a request's connection while the request was in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpFacts {
    /// Segments of ours that had to be sent again.
    pub retransmits: u32,
    /// Segments of the server that came out of order: something was lost or overtaken.
    pub out_of_order: u32,
    /// How long we could not send because the server did not read.
    pub window_limited: Nanos,
    /// The shortest round trip the connection has seen.
    pub min_rtt: Nanos,
}

/// What happened on the wire for one request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exchange {
    /// The instants.
    pub stamps: Stamps,
    /// Every event that carried tokens, in order of arrival.
    pub chunks: Vec<Chunk>,
    /// The HTTP status, once there was one.
    pub status: Option<u16>,
    /// Why it failed; `None` is success.
    pub failure: Option<Failure>,
    /// The finish reason of the (first) answer.
    pub finish: Option<String>,
    /// Prompt tokens.
    pub input_tokens: Option<TokenCount>,
    /// Prompt tokens that the server took from its cache.
    pub cached_tokens: Option<u32>,
    /// Prompt tokens that stand for images, where the server says.
    pub image_tokens: Option<u32>,
    /// Output tokens over all answers.
    pub output_tokens: Option<TokenCount>,
    /// Which connection of the worker carried it.
    pub connection: u64,
    /// Times a pooled connection turned out dead and was opened again (at most 1).
    pub reconnects: u32,
    /// Time lost before sending that is not the client's: on a pooled connection that turned out
    /// dead, or waiting for a shared connection that another request was opening.
    pub blocked: Nanos,
    /// The `x-request-id` that went with the request: the key to other logs of it.
    pub request_id: Option<String>,
    /// Bytes of the request's body.
    pub body_bytes: u64,
    /// The first eight bytes of the SHA-256 of that body without the value of `model`, only when the
    /// plan asks for it and the body is a function of the plan alone.
    pub body_hash: Option<u64>,
    /// How long the head of the answer had waited in the kernel, in microseconds, as in [`Chunk`].
    pub head_lag_us: Option<u32>,
    /// What TCP had to do for it, where the system says.
    pub tcp: Option<TcpFacts>,
    /// Text of the answer, only when the user asked to keep it.
    pub text: Option<String>,
}

/// Everything recorded about one request. Instants count from the run's epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// Its number in the plan: request *i* is a function of (seed, *i*).
    pub index: u64,
    /// Which part of the run it belongs to.
    pub phase: Phase,
    /// Which worker sent it.
    pub worker: u32,
    /// The instant it was due.
    pub scheduled: Nanos,
    /// How late the worker woke up for it; only the first request of a session of an open loop is
    /// woken for.
    pub pacer_lag: Option<Nanos>,
    /// How long it was held back by `--max-concurrency`.
    pub cap_wait: Nanos,
    /// What it was meant to be.
    pub planned: Planned,
    /// What happened.
    pub exchange: Exchange,
    /// Text of the prompt, only when the user asked to keep it.
    pub prompt: Option<String>,
}

impl RequestRecord {
    /// When it was over for its user: the end of a good answer, or the moment it was given up.
    pub fn end(&self) -> Nanos {
        let stamps = &self.exchange.stamps;
        let good = stamps.done.filter(|_| self.is_ok());
        good.unwrap_or(stamps.ended).max(self.scheduled)
    }

    /// Whether it completed.
    pub fn is_ok(&self) -> bool {
        self.exchange.failure.is_none()
    }

    /// The lateness that the client itself caused: from the scheduled instant to the first byte
    /// written, less the wait for a user-set cap and less getting a connection.
    pub fn slip(&self) -> Option<Nanos> {
        let sent = self.exchange.stamps.sent_first?;
        let connect = self.exchange.stamps.connect.map_or(Nanos::ZERO, Connect::length);
        Some(sent - self.scheduled - self.cap_wait - self.exchange.blocked - connect)
    }
}
