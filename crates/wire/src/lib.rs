//! *How*: connections, HTTP/1.1 and HTTP/2, TLS, event streams and the OpenAI dialects.
//!
//! Bytes come in, stamped events go out. Each read of a socket is stamped the moment it returns,
//! before anything is parsed (`socket.rs`); everything that one read completes shares that stamp.
//! A [`Client`] lives on one worker's current-thread runtime and owns its connections.
//!
//! Nothing here retries on its own, with one exception that is counted: a pooled connection that
//! turns out to have been closed by the server before a byte of the answer is opened anew, once.

mod answer;
mod body;
mod client;
mod connection;
mod endpoint;
mod fault;
mod head;
mod http1;
mod json;
mod pool;
mod probe;
mod secrets;
mod socket;
mod sse;
mod tls;

pub use answer::AnswerReader;
pub use body::{BodyError, Dialect};
pub use client::Client;
pub use endpoint::{BaseUrl, Endpoint, EndpointError, Settings, UrlError};
pub use probe::{Probe, ProbeError, list_models, probe};
pub use sse::{Event, EventTooLarge, SseParser};
