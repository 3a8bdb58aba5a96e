//! What passes a proxy, on real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod breaks;
mod floods;
mod limits;
mod messages;
mod mirror;
mod noise;
mod pairings;
mod passing_on;
mod seats;
mod shared;
mod smuggling;
mod support;
mod upstreams;
