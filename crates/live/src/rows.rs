//! Bodies of requests and answers as rows of a trace, without a word of their text.
//!
//! Prompts become counts and salted hashes of their blocks; the salt is drawn again for each file
//! and written nowhere. Pure: no clocks, no files.

mod blocks;
mod json;
mod params;
mod prompt;
mod recorder;
mod salted;
mod sessions;

pub use recorder::{KeptRequest, Recorder, RowSettings, is_model_name};
