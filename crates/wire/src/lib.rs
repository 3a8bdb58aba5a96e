//! *How*: connections, HTTP/1.1 and HTTP/2, TLS, event streams and the OpenAI dialects.
//!
//! Bytes come in, stamped events go out. Each read of a socket is stamped by the kernel's word of
//! when its bytes arrived (`arrival.rs`), or else the moment it returns, in either case before
//! anything is parsed; everything that one read completes shares that stamp.
//! A [`Client`] lives on one worker's current-thread runtime and owns its connections.
//!
//! Nothing here retries on its own, with one exception that is counted: a pooled connection that
//! turns out to have been closed by the server before a byte of the answer is opened again, once.

mod allowance;
mod answer;
mod answer_text;
mod arrival;
mod body;
mod client;
mod connection;
mod dial;
mod download;
mod endpoint;
mod engine_api;
mod event_template;
mod facts;
mod fault;
mod framing;
mod head;
mod http1;
mod inflow;
mod json;
mod page;
mod places;
mod pool;
mod post;
mod probe;
mod profile;
mod resolve;
mod secrets;
mod socket;
mod sse;
mod tap;
mod tcp_info;
mod tls;
mod tokenize;
mod turn;

pub use allowance::AnswerLimits;
pub use answer::{AnswerReader, Read};
pub use body::{BodyError, RequestFormat};
pub use client::{Client, Tagged};
pub use dial::{Dialer, SocketWatch};
pub use download::{DownloadError, download};
pub use endpoint::{
    BaseUrl, Endpoint, EndpointError, EndpointSettings, SessionHeader, SessionTag, UrlError,
};
pub use engine_api::{fetch_metrics_page, reset_prefix_cache};
pub use facts::{FactsPage, fetch_facts_pages};
pub use fault::PLAIN_HTTP;
pub use inflow::{BodyPart, Inflow, InflowHead};
pub use page::{FetchedPage, PageError, PagePlace, PageReader};
pub use post::Poster;
pub use probe::{ProbeError, ProbeResult, list_models, probe_endpoint, send_outside_load};
pub use profile::{start_profile, stop_profile};
pub use secrets::scrub_secrets;
pub use socket::Socket;
pub use sse::{EventTooLarge, SseEvent, SseParser};
pub use tap::{AnswerTap, PassedHead, is_unread_success};
pub use tokenize::{Tokenizing, count_remote_tokens};

/// The hot path in pieces, for the instruction gates (`cargo xtask gates`) only.
#[doc(hidden)]
pub mod hot {
    use goodput_model::{Exchange, Nanos};

    pub use crate::framing::{BodyFraming, FramedBytes};

    /// Takes the bytes of one read as [`crate::Client`] does; whether they were good.
    pub fn read_answer(
        reader: &mut crate::AnswerReader,
        bytes: &[u8],
        at: Nanos,
        exchange: &mut Exchange,
    ) -> bool {
        let read = crate::answer::Read { at, sequence: at.0, lag_us: Some(5) };
        reader.push(bytes, read, exchange).is_ok()
    }
}
