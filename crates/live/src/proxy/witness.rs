//! What a proxy tells.

use std::sync::Arc;

use bytes::Bytes;
use goodput_model::{Api, Exchange, Nanos};
use http::HeaderValue;
use http::request::Parts;

/// Hears what passes. Called on the proxy's threads between two reads: it must not wait for anything,
/// and what it cannot take at once it counts and lets go.
pub trait Witness: Send + Sync {
    /// A request has come whole.
    fn request_seen(&self, asked: ObservedRequest);
    /// The answer to it is over, completed or not.
    fn answer_seen(&self, answered: Answered);
}

/// A request, once its body has come whole. Its head and body may hold anything: nothing of them may be
/// written but what a witness makes of them.
#[derive(Debug, Clone)]
pub struct ObservedRequest {
    /// From 0, in the order of arrival; the answer has the same.
    pub number: u64,
    /// When the first byte of its head was there, or the head was complete where the first is unknown.
    pub arrived: Nanos,
    /// Which API it asks, by its path; none for all other paths.
    pub api: Option<Api>,
    /// Method, path with query, and headers as the client sent them.
    pub head: Arc<Parts>,
    /// How the proxy calls itself in `Via`: what is sent on elsewhere carries it, so that a request that
    /// comes back is known.
    pub via: HeaderValue,
    /// The value of the session header, where there is one.
    pub session: Option<String>,
    /// The body; none if it was longer than what is kept.
    pub body: Option<Bytes>,
}

/// How an answer came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All of it was passed on.
    Whole,
    /// The client went away.
    ClientGone,
    /// The upstream broke off, was not there or took too long, or the proxy itself was stopped (then
    /// the exchange's failure is `CutOff`).
    Broken,
}

/// An answer that is over.
#[derive(Debug, Clone)]
pub struct Answered {
    /// As in [`ObservedRequest`]. A request that never came whole is answered without having been asked.
    pub number: u64,
    /// When the request arrived.
    pub arrived: Nanos,
    /// How it ended.
    pub ending: Ending,
    /// Stamps on the process's clock, chunks, status, counts, failure: as the client of a run would
    /// have seen it at the upstream's socket. Of paths outside the API only stamps and status are known.
    pub exchange: Exchange,
    /// Bytes of the answer's body.
    pub bytes: u64,
}
