//! A streaming server whose every write is known: what a client's stamps are checked against.
//!
//! It answers each POST with a chat stream of `max_tokens` tokens at fixed delays. The text of each
//! token is the instant of its own write ([`instants_in`] reads them back), so a client on the same
//! machine can compare its stamps token by token; and the server keeps a [`Report`] of what
//! really happened. It is one thread on raw epoll, shares no code with the client, and does
//! nothing while no answer is in flight.

mod numbers;
mod poller;
mod request;
mod server;
mod template;
mod thread;

pub use numbers::{BoundedValues, Quantiles, Report, exponential_distance};
pub use poller::{Poller, ReadySocket};
pub use server::serve_until;
pub use template::{DIGITS, instants_in, parse_instant};
pub use thread::TruthServer;

use goodput_model::Nanos;

/// The fixed delays of every answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// From the whole request having been read to the write of the first token.
    pub ttft: Nanos,
    /// From the scheduled instant of one token to that of the next.
    pub itl: Nanos,
}
