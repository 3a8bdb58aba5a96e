//! The simulated engine, as its users see it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod abuse;
mod api;
mod faults;
mod fuzz;
mod model;
mod quirks;
#[path = "../support/mod.rs"]
mod support;
mod truth;
