//! What is read from results that are there.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod audit;
mod capacity;
mod compare_saved;
mod exports;
mod harness;
mod judged;
mod pages;
mod schemas;
mod strangers;
#[path = "../support/mod.rs"]
mod support;
mod ui;
