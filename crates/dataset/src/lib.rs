//! *Other people's files*: prompts, conversations and traces.
//!
//! [`load_dataset`] streams a file and keeps the entries that were asked for; nothing is read as a whole
//! but what is kept. What is left out is counted by reason.
//!
//! Memory is bounded: a line, array item or row has at most 64 MiB, candidates of a sample beyond
//! its size hold at most 64 MiB of text, and what is kept at most 4 GiB; more is an error.

mod conversation;
mod convert;
mod detect;
mod entry;
mod error;
mod filter;
mod first;
mod format;
pub mod frozen;
mod input;
mod items;
mod kind;
mod load;
mod messages;
#[cfg(all(test, feature = "parquet"))]
mod no_parquet;
mod numbers;
mod object;
mod options;
mod pairs;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "no_parquet.rs"]
mod parquet;
mod pass;
mod picture;
mod private;
mod prompts;
mod sample;
mod sharegpt;
mod table;
pub mod trace;

pub use convert::{ConvertTarget, Converted, convert};
pub use entry::{DatasetEntry, DatasetTurn, Loaded, Picture, RecordedService, TokenCounter};
pub use error::DatasetError;
pub use format::{DatasetFormat, TraceFormat, UnknownFormat};
pub use input::hash_file as file_sha256;
pub use kind::{FileKind, file_kind};
pub use load::load_dataset;
pub use numbers::load_numbers;
pub use options::DatasetOptions;
pub use pairs::load_pairs;
pub use picture::{has_pictures, matching_files, pictures};
pub use trace::{
    Param, Params, TraceHead, TraceRow, TraceRowWriter as TraceWriter, TraceSelection, load_trace,
};
