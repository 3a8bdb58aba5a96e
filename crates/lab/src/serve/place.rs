//! Where a server is to listen.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use goodput_clock::{now, pause};
use goodput_model::{Nanos, Plan};

use super::command::Values;
use crate::error::Failed;
use crate::readiness;

/// For one attempt to connect; on this machine it is answered at once.
const CONNECT_LIMIT: Duration = Duration::from_millis(500);

/// How often a place is looked at until it is free.
const LOOK_AGAIN: Nanos = Nanos::from_millis(50);

/// The place of a server that we start.
#[derive(Debug, Clone)]
pub struct ServerPlace {
    addresses: Vec<SocketAddr>,
}

impl ServerPlace {
    /// Where the plan's requests go.
    pub fn from_plan(plan: &Plan) -> Result<Self, Failed> {
        let url = &plan.target.url;
        if url == "mock" || url.starts_with("mock:") {
            return Err(Failed::usage(
                "--serve does not apply to the mock, which runs inside this process",
            )
            .hint("name the URL at which the server will listen, as in http://127.0.0.1:8000"));
        }
        Ok(Self { addresses: readiness::resolve_addresses(plan)? })
    }

    /// What a command may want to know: `port` and `host`.
    pub fn placeholder_values(&self) -> Values {
        let named = |address: &SocketAddr| {
            [("host", address.ip().to_string()), ("port", address.port().to_string())]
        };
        let pairs = self.addresses.first().map(named).into_iter().flatten();
        pairs.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The address at which something listens.
    pub fn listening_address(&self) -> Option<SocketAddr> {
        self.addresses.iter().copied().find(|address| {
            TcpStream::connect_timeout(address, CONNECT_LIMIT).is_ok_and(|stream| {
                // The kernel may use a free port for the calling socket, which then connects to itself.
                stream.local_addr().ok() != stream.peer_addr().ok()
            })
        })
    }

    /// Fails if something listens already.
    pub fn check_free(&self) -> Result<(), Failed> {
        match self.listening_address() {
            None => Ok(()),
            Some(address) => Err(Failed::usage(format!("something already listens at {address}"))
                .hint("stop it, or use another port")),
        }
    }

    /// Waits until nothing listens any more; the address at which something still does.
    pub fn wait_until_free(&self, within: Duration) -> Option<SocketAddr> {
        let deadline = now() + within.into();
        loop {
            match self.listening_address() {
                Some(_) if now() < deadline => pause(LOOK_AGAIN),
                outcome => return outcome,
            }
        }
    }
}
