//! What is sent: made, read from files, replayed.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod files;
mod sessions;
#[path = "../support/mod.rs"]
mod support;
mod synthetic;
mod traces;
