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

pub use connection::send;
pub use reach::{is_host, is_of_this_machine, may_name, names_this_machine};
pub use request::{HttpRequest, Method};
pub use response::Response;
pub use server::{ClientLimit, HttpLimits, HttpReply, Permit, Site, Writer, start};
