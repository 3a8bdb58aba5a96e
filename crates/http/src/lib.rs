//! A small HTTP/1.1 server for pages: one thread for each client, one request for each connection,
//! and a limit on every size and every wait ([`HttpLimits`]).
//!
//! A connection goes through `server` (clients, limits) → `connection` (bytes) → [`HttpRequest`] →
//! [`Site`] → [`Response`].

mod connection;
mod reach;
mod request;
mod response;
mod server;

pub use connection::write_all_before;
pub use reach::{is_host, is_host_allowed, is_local_only, is_loopback_host};
pub use request::{HttpRequest, Method};
pub use response::Response;
pub use server::{ClientLimit, HttpLimits, HttpReply, Permit, Site, Writer, start_server};
