//! For tests only: what several crates' tests are made of.

mod plans;
mod records;
mod server;

pub use plans::test_plan;
pub use records::{RecordBuilder, failure, token_chunk, usage};
pub use server::{
    ArrivedRequest, LAST_CHUNK, STREAM_HEAD, Server, Step, answer, chunk, end_events, timed_stream,
    token_event,
};
