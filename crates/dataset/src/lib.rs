//! *Other people's files*: prompts, conversations and traces.
//!
//! [`load`] streams a file and keeps the entries that were asked for; nothing is read as a whole
//! but what is kept. What is left out is counted by reason.

mod entry;

pub use entry::{Entry, Loaded, Turn};
