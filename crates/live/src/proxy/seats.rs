//! [`RequestPermits`]: how many connections of clients may be open, and how many of them may have requests.
//!
//! A seat is what a connection with a request in flight has; one between requests has none. Beyond as
//! many connections as there are seats, those that have been idle longest make way. Where none is idle,
//! a few more are let in: they may ask how the proxy is, and their other requests wait for a seat. So
//! the health path is answered on a new connection whatever the others do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::proxy::line::{Line, Seat};

/// Connections beyond the limit.
const LOBBY: usize = 256;

/// Requests that wait for a seat; the rest of the lobby is left to others.
const WAITING: usize = 192;

/// The seats of all workers.
#[derive(Clone)]
pub(crate) struct RequestPermits {
    most: usize,
    /// One for each connection that may be open.
    doors: Arc<Semaphore>,
    /// One for each connection that may have requests in flight.
    free: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
    /// Open connections that were told to make way.
    leaving: Arc<AtomicUsize>,
}

impl RequestPermits {
    pub(crate) fn new(most: usize) -> Self {
        let most = most.clamp(1, Semaphore::MAX_PERMITS - LOBBY);
        Self {
            most,
            doors: Arc::new(Semaphore::new(most + LOBBY)),
            free: Arc::new(Semaphore::new(most)),
            waiting: Arc::default(),
            leaving: Arc::default(),
        }
    }

    /// Room for one more connection.
    pub(crate) async fn admit_connection(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.doors).acquire_owned().await.ok()
    }

    /// How many must make way where this many connections are open.
    pub(crate) fn connections_to_close(&self, open: u64) -> usize {
        let leaving = self.leaving.load(Ordering::Relaxed);
        let open = usize::try_from(open).unwrap_or(usize::MAX);
        open.saturating_sub(leaving).saturating_sub(self.most)
    }

    /// One makes way.
    pub(crate) fn note_making_way(&self) {
        self.leaving.fetch_add(1, Ordering::Relaxed);
    }

    /// One that made way is closed.
    pub(crate) fn note_closed(&self) {
        self.leaving.fetch_sub(1, Ordering::Relaxed);
    }

    /// A seat for a request of this connection: the one that it has, or the next that is free. None
    /// if too many wait already.
    pub(crate) async fn acquire(&self, line: &Line) -> Option<Seat> {
        if let Some(seat) = line.current_permit() {
            return Some(seat);
        }
        let permit = if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            permit
        } else {
            let _waiting = Waiting::new(&self.waiting)?;
            Arc::clone(&self.free).acquire_owned().await.ok()?
        };
        // Another request of the connection may have waited at the same time.
        Some(line.current_permit().unwrap_or_else(|| line.assign_permit(permit)))
    }
}

/// One of those who wait, until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Option<Self> {
        let before = count.fetch_add(1, Ordering::Relaxed);
        Some(Self(count)).filter(|_| before < WAITING)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
