//! Several clients: what they send together, what is merged, and who starts them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod launch;
mod merge;
mod runs;
#[path = "../support/mod.rs"]
mod support;
