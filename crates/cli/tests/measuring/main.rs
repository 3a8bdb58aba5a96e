//! Verbs that measure: what is sent, seen and said.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod accuracy;
mod cli;
mod compare;
mod faults;
mod hooks;
mod instrument;
mod interruption;
mod regressions;
mod repeats;
mod screen;
mod secrets;
mod serve;
mod server;
mod slo;
mod statistics;
#[path = "../support/mod.rs"]
mod support;
mod sweep;
mod transport;
mod until;
