//! Live traffic: recorded, and shadowed.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod record;
#[path = "../support/recording.rs"]
mod recording;
mod shadow;
#[path = "../support/mod.rs"]
mod support;
