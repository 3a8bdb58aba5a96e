//! The server on a thread of its own.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};

use crate::server::ServerLoop;
use crate::{Report, Timing};

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct TruthServer {
    address: SocketAddr,
    signal: Arc<OwnedFd>,
    thread: Option<JoinHandle<io::Result<Report>>>,
}

impl TruthServer {
    /// Listens on `address` (port 0 picks a free one) and serves.
    pub fn start(address: &str, timing: Timing) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let signal = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let stop = Arc::clone(&signal);
        let thread = std::thread::Builder::new().name("truth".to_owned()).spawn(move || {
            goodput_clock::request_prompt_wakeups();
            let server = ServerLoop::new(listener, timing)?;
            server.stop_on(&stop)?;
            server.run(None)
        })?;
        Ok(Self { address, signal, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops it; answers in flight are cut.
    pub fn stop(mut self) -> io::Result<Report> {
        self.end().unwrap_or_else(|| Err(io::Error::other("the truth server is not running")))
    }

    fn end(&mut self) -> Option<io::Result<Report>> {
        let thread = self.thread.take()?;
        if let Err(error) = rustix::io::write(&*self.signal, &1u64.to_ne_bytes()) {
            return Some(Err(error.into()));
        }
        let gone = |_| Err(io::Error::other("the truth server's thread panicked"));
        Some(thread.join().unwrap_or_else(gone))
    }
}

impl Drop for TruthServer {
    fn drop(&mut self) {
        // An error could not be reported any more.
        let _ = self.end();
    }
}
