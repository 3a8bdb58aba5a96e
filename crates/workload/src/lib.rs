//! *What*: the sessions of a run. Session *i* is a function of (plan, seed, *i*) alone.
//!
//! `sources` reads what the classes need from files; everything else is pure. The `mix` says which
//! class a session belongs to, and the class makes it: `synthetic` text by lengths, `entries` of a
//! file, rows of a `trace`, or a frozen session as it is.
//!
//! Token counts are those of the plan's calibration; without one, a unit of the vocabulary is
//! taken for one token. What the server counted is in the record.

mod author;
mod calibrate;
mod check;
mod class;
mod constraint;
mod describe;
mod entries;
mod error;
mod hash;
mod images;
mod lexicon;
mod maker;
mod material;
mod mix;
mod nonce;
mod prefix;
mod preset;
mod sizes;
mod sources;
mod synthetic;
mod text;
mod text_cache;
mod trace;
mod workload;

pub use calibrate::{CalibrateError, Calibrated, calibrate};
pub use constraint::Checker;
pub use describe::describe_workload;
pub use error::WorkloadError;
pub use lexicon::Lexicon;
pub use material::{Material, Setting};
pub use preset::{PRESETS, find_preset};
pub use workload::Workload;

#[cfg(test)]
mod tests;
