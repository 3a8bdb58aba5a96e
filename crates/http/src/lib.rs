//! A small HTTP/1.1 server for pages: one thread for each client, one request for each connection,
//! and a limit on every size and every wait ([`Limits`]).
//!
//! A connection goes through `server` (clients, limits) → `connection` (bytes) → [`Request`] →
//! [`Site`] → [`Response`].

mod connection;
mod reach;
mod request;
mod response;
mod server;

pub use connection::send;
pub use reach::{is_host, is_of_this_machine, may_name, names_this_machine};
pub use request::{Method, Request};
pub use response::Response;
pub use server::{Limits, Reply, Seat, Seats, Site, Writer, start};
