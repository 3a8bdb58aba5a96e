//! The connections of one worker.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use goodput_model::{Connect, ConnectionPolicy, Failure, Http};
use tokio::sync::Mutex;

use crate::connection::HttpConnection;
use crate::endpoint::Endpoint;

/// Idle HTTP/1.1 connections, last used first, and the shared HTTP/2 ones. Not limited in number:
/// a pool limit would close the loop without a word.
pub(crate) struct ConnectionPool {
    endpoint: Arc<Endpoint>,
    idle: RefCell<Vec<HttpConnection>>,
    next_id: Cell<u64>,
    /// Held while an HTTP/2 connection is being opened, so that a burst opens few, not one each.
    opening: Mutex<()>,
}

/// A connection to use for one exchange.
pub(crate) struct Lease {
    pub(crate) connection: HttpConnection,
    /// The steps of opening it; `None` when it was there already.
    pub(crate) opened: Option<Connect>,
}

impl ConnectionPool {
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self { endpoint, idle: RefCell::default(), next_id: Cell::new(0), opening: Mutex::new(()) }
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// A usable connection: an idle one if there is one that still lives, else a new one.
    pub(crate) async fn lease_connection(&self) -> Result<Lease, Failure> {
        if let Some(connection) = self.take_idle() {
            return Ok(Lease { connection, opened: None });
        }
        let is_shared = self.endpoint.connections == ConnectionPolicy::Reuse;
        match self.endpoint.http {
            Http::Http2 if is_shared => {
                let _guard = self.opening.lock().await;
                match self.take_idle() {
                    Some(connection) => Ok(Lease { connection, opened: None }),
                    None => self.open_shared().await,
                }
            }
            Http::Http1 | Http::Http2 => self.open().await,
        }
    }

    /// A new connection, whatever is idle.
    pub(crate) async fn open(&self) -> Result<Lease, Failure> {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        let (connection, opened) = HttpConnection::open(&self.endpoint, id).await?;
        Ok(Lease { connection, opened: Some(opened) })
    }

    /// The exchange is over. The connection is kept if its answer was read to the end.
    pub(crate) fn return_connection(&self, mut connection: HttpConnection) {
        let keep = self.endpoint.connections == ConnectionPolicy::Reuse
            && self.endpoint.http == Http::Http1
            && connection.is_ready();
        if keep {
            self.idle.borrow_mut().push(connection);
        }
    }

    fn take_idle(&self) -> Option<HttpConnection> {
        let mut idle = self.idle.borrow_mut();
        match self.endpoint.http {
            Http::Http1 => {
                while let Some(mut connection) = idle.pop() {
                    if connection.is_ready() {
                        return Some(connection);
                    }
                }
                None
            }
            Http::Http2 => {
                idle.retain_mut(HttpConnection::is_ready);
                idle.iter().find_map(HttpConnection::new_handle)
            }
        }
    }

    async fn open_shared(&self) -> Result<Lease, Failure> {
        let lease = self.open().await?;
        if let Some(shared) = lease.connection.new_handle() {
            self.idle.borrow_mut().push(lease.connection);
            return Ok(Lease { connection: shared, opened: lease.opened });
        }
        Ok(lease)
    }
}
