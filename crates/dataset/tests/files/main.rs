//! Other people's files, and our own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod arbitrary;
mod bad_input;
mod common;
mod conversion;
mod datasets;
mod frozen;
mod logs;
mod pictures;
mod recorded;
mod tables;
mod traces;
