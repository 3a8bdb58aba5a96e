//! [`Pool`]: the connections to one upstream.

use std::cell::{Cell, RefCell};

use goodput_clock::now;
use goodput_model::{ErrorClass, Failure, FailureStage, Http, Nanos};
use goodput_wire::{Dialer, EndpointError};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::{Link, Opened};
use crate::proxy::heads::RequestTarget;
use crate::proxy::settings::{Limits, Upstream};

/// Idle connections that are kept, and for how long.
const IDLE: usize = 256;
const IDLE_TIME: Nanos = Nanos::from_millis(60_000);

/// How often a name is looked up again while its addresses are unreachable.
const LOOK_UP_EVERY: Nanos = Nanos::from_millis(5_000);

/// Where an upstream is and how it is spoken to: the part of a [`Pool`] that threads share.
#[derive(Debug, Clone)]
pub(crate) struct UpstreamRoute {
    dialer: Dialer,
    pub(crate) target: RequestTarget,
    pub(crate) http: Http,
}

impl UpstreamRoute {
    pub(crate) fn new(upstream: &Upstream) -> Result<Self, EndpointError> {
        let Upstream { url, http, cacert, insecure } = upstream;
        let dialer = Dialer::new(url, *http, cacert.as_deref(), *insecure)?;
        Ok(Self { dialer, target: RequestTarget::new(url, *http)?, http: *http })
    }
}

/// The connections of one backend.
pub(crate) struct Pool {
    pub(crate) plan: UpstreamRoute,
    pub(crate) limits: Limits,
    /// Idle ones of HTTP/1.1, last used last, with when that was; or all of HTTP/2.
    idle: RefCell<Vec<(Link, Nanos)>>,
    next_id: Cell<u64>,
    /// Held while a connection of HTTP/2 is being opened, so that a burst opens few.
    opening: Mutex<()>,
    looked_up: Cell<Nanos>,
}

impl Pool {
    pub(crate) fn new(plan: UpstreamRoute, limits: Limits) -> Self {
        Self {
            plan,
            limits,
            idle: RefCell::default(),
            next_id: Cell::new(0),
            opening: Mutex::new(()),
            looked_up: Cell::new(now()),
        }
    }

    /// A new connection, or one that another request has just opened. Who waits for others waits no longer
    /// than for one of its own.
    pub(crate) async fn connect_for(&self, failed: Option<u64>) -> Result<Link, Failure> {
        let opening = async {
            if self.plan.http == Http::Http1 {
                return self.open().await;
            }
            let _guard = self.opening.lock().await;
            match self.take_idle(failed) {
                Some(link) => Ok(link),
                None => self.open().await,
            }
        };
        let opened = timeout(self.limits.connect_time, opening).await.unwrap_or_else(|_| {
            let message = "the upstream did not accept the connection in time".to_owned();
            Err(Failure { class: ErrorClass::Timeout, stage: FailureStage::Connect, message })
        });
        if opened.is_err() {
            self.refresh_addresses();
        }
        opened
    }

    /// A connection that is there. Where one has failed the request, only one that was opened after it,
    /// which none of HTTP/1.1 is for sure.
    pub(crate) fn take_idle(&self, failed: Option<u64>) -> Option<Link> {
        let mut idle = self.idle.borrow_mut();
        if self.plan.http == Http::Http2 {
            idle.retain_mut(|(link, _)| link.is_ready() && !link.is_unused_for(IDLE_TIME));
            let later =
                idle.iter().filter(|(link, _)| failed.is_none_or(|failed| link.id > failed));
            return later.into_iter().find_map(|(link, _)| link.new_handle(None));
        }
        if failed.is_some() {
            return None;
        }
        while let Some((mut link, since)) = idle.pop() {
            if now() - since > IDLE_TIME {
                // Those below it are older still.
                idle.clear();
            } else if link.is_ready() {
                link.opened = None;
                return Some(link);
            }
        }
        None
    }

    /// A new connection.
    async fn open(&self) -> Result<Link, Failure> {
        let link = self.connect().await?;
        let Some(stream) = link.new_handle(link.opened) else { return Ok(link) };
        self.idle.borrow_mut().push((link, now()));
        Ok(stream)
    }

    async fn connect(&self) -> Result<Link, Failure> {
        let (socket, watch, opened) = self.plan.dialer.open(self.limits.connect_time).await?;
        let id = self.next_id.replace(self.next_id.get() + 1);
        let head_bytes = self.limits.head_bytes;
        let opened = Opened { id, socket, watch, steps: opened };
        match self.plan.http {
            Http::Http1 => Ok(Link::new_http1(opened, head_bytes)),
            Http::Http2 => Link::new_http2(opened, head_bytes).await,
        }
    }

    /// The server is unreachable: the name may stand for another address by now.
    fn refresh_addresses(&self) {
        if now() - self.looked_up.get() < LOOK_UP_EVERY {
            return;
        }
        self.looked_up.set(now());
        let dialer = self.plan.dialer.clone();
        drop(tokio::task::spawn_blocking(move || dialer.refresh_addresses()));
    }

    /// A request on this connection was answered too late: no more requests use it, whether it lives or
    /// not.
    pub(crate) fn retire_connection(&self, id: u64) {
        if self.plan.http == Http::Http2 {
            self.idle.borrow_mut().retain(|(link, _)| link.id != id);
        }
    }

    /// The answer is over. A connection of HTTP/1.1 that can carry another is kept.
    pub(crate) fn return_link(&self, mut link: Link) {
        if self.plan.http == Http::Http1 && link.is_ready() {
            let mut idle = self.idle.borrow_mut();
            if idle.len() < IDLE {
                idle.push((link, now()));
            }
        }
    }
}
