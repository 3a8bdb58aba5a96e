//! [`Backend`]: the client side: one upstream, its connections, and requests to it.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use goodput_clock::now;
use goodput_model::{ErrorClass, Exchange, Failure, Http, Nanos, Stage};
use goodput_wire::{Dialer, EndpointError, PassedHead, Passing, Read};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, header};
use hyper::body::Body;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::heads::{self, Target, api_of};
use crate::inquiry::Payload;
use crate::keeping::{Allowance, Keeping};
use crate::settings::{Limits, Upstream};
use crate::upstream::{Answer, Failed, Link};

/// Idle connections that are kept, and for how long.
const IDLE: usize = 256;
const IDLE_TIME: Nanos = Nanos::from_millis(60_000);

/// Bytes of an answer that are read before others are turned to.
const TURN: u64 = 256 << 10;

/// How often a name is looked up again while nobody can be reached behind it.
const LOOK_UP_EVERY: Nanos = Nanos::from_millis(5_000);

/// Where an upstream is and how it is spoken to: the part of a [`Backend`] that threads share.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    dialer: Dialer,
    target: Target,
    http: Http,
}

impl Plan {
    pub(crate) fn new(upstream: &Upstream) -> Result<Self, EndpointError> {
        let Upstream { url, http, cacert, insecure } = upstream;
        let dialer = Dialer::new(url, *http, cacert.as_deref(), *insecure)?;
        Ok(Self { dialer, target: Target::new(url, *http)?, http: *http })
    }
}

/// Sends requests to one upstream. Lives on a current-thread runtime with a local task set.
pub struct Backend {
    pool: Rc<Pool>,
    /// For answers to questions of our own.
    allowance: Allowance,
}

/// A request of our own, whole from the beginning.
#[derive(Debug, Clone)]
pub struct Question {
    /// Method, path and headers as a client sends them: what belongs to its connection is left out.
    pub head: Parts,
    /// The body.
    pub body: Bytes,
    /// How whoever sends it calls itself in `Via`.
    pub via: Option<HeaderValue>,
    /// Whether the text of the answer is kept.
    pub keep_text: bool,
    /// How long all of it may take.
    pub limit: Duration,
    /// Bytes that the answer's body may have.
    pub most_bytes: u64,
}

impl Backend {
    /// Resolves the name and prepares TLS; connects when there is something to send.
    pub fn new(upstream: &Upstream, limits: &Limits) -> Result<Self, EndpointError> {
        Ok(Self::of(Plan::new(upstream)?, limits.clone(), Allowance::default()))
    }

    pub(crate) fn of(plan: Plan, limits: Limits, allowance: Allowance) -> Self {
        let pool = Pool {
            plan,
            limits,
            idle: RefCell::default(),
            next_id: Cell::new(0),
            opening: Mutex::new(()),
            looked_up: Cell::new(now()),
        };
        Self { pool: Rc::new(pool), allowance }
    }

    /// Sends a request, reads its answer to the end and throws it away. Whatever happens is in the
    /// exchange, measured as that of a request that is passed on.
    pub async fn ask(&self, question: Question) -> Exchange {
        let (head, limit) = (&question.head, question.limit);
        let is_api = api_of(&head.method, head.uri.path()).is_some();
        let mut passing = Passing::new(is_api, question.keep_text);
        passing.exchange_mut().stamps.dispatched = now();
        passing.exchange_mut().body_bytes = question.body.len() as u64;
        let outcome = timeout(limit, self.ask_within(question, &mut passing)).await;
        let outcome = outcome.unwrap_or_else(|_| {
            let message = "the time for the request ran out".to_owned();
            let exchange = passing.exchange();
            if exchange.stamps.sent_first.is_some() && exchange.stamps.headers.is_none() {
                self.pool.forget(exchange.connection);
            }
            let stage = exchange.stamps.stage();
            Err(Failure { class: ErrorClass::Timeout, stage, message })
        });
        match outcome {
            Err(failure) => passing.broken(failure, now()),
            Ok(read) => {
                let mut exchange = passing.end(read);
                exchange.stamps.ended = now();
                exchange
            }
        }
    }

    async fn ask_within(&self, question: Question, passing: &mut Passing) -> Result<Read, Failure> {
        let Question { head, body, via, most_bytes, .. } = question;
        let body = Some(body).filter(|body| !body.is_empty());
        let mut is_fresh = false;
        let (response, mut answer) = loop {
            let request = self.request(&head, Payload::Whole(body.clone()), via.as_ref())?;
            match self.send(request, is_fresh, passing.exchange_mut()).await {
                Ok(answered) => break answered,
                Err(failed) if failed.is_stale && !is_fresh => is_fresh = true,
                Err(failed) => return Err(failed.failure),
            }
        };
        let mut read = answer.last_read();
        let (status, headers) = (response.status().as_u16(), response.headers());
        passing.head(PassedHead { status, headers, read });
        let mut keeping = Keeping::new(&self.allowance, self.pool.limits.kept_total);
        let (mut came, mut turn) = (0, 0);
        while let Some(frame) = poll_fn(|cx| answer.poll_frame(cx)).await.transpose()? {
            if let Some(bytes) = frame.data_ref() {
                read = answer.last_read();
                passing.take(bytes, read);
                keeping.follow(passing);
                came += bytes.len() as u64;
            }
            if came > most_bytes {
                let message = "the answer is longer than what is read".to_owned();
                let stage = passing.exchange().stamps.stage();
                return Err(Failure { class: ErrorClass::EventTooLarge, stage, message });
            }
            // One whose bytes never end lets others have their turn.
            if came - turn > TURN {
                turn = came;
                tokio::task::yield_now().await;
            }
        }
        Ok(read)
    }

    /// A request as it is sent: the head as the upstream is to see it, with the length of the body.
    pub(crate) fn request(
        &self,
        head: &Parts,
        body: Payload,
        via: Option<&HeaderValue>,
    ) -> Result<Request<Payload>, Failure> {
        let target = &self.pool.plan.target;
        let wrong = || Failure {
            class: ErrorClass::BadHttp,
            stage: Stage::Connect,
            message: "the path cannot be passed on".to_owned(),
        };
        let request = target.head(&head.method, &head.uri, &head.headers, via).ok_or_else(wrong)?;
        let mut request = request.map(|()| body);
        // A body of no bytes says so where the method expects one.
        let expects = ![Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE, Method::DELETE]
            .contains(&head.method);
        let length = request.body().size_hint().exact().filter(|length| *length > 0 || expects);
        if let Some(length) = length {
            request.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
        Ok(request)
    }

    /// Sends a request, on a new connection where that is asked for, and waits for the answer's head.
    pub(crate) async fn send(
        &self,
        request: Request<Payload>,
        is_fresh: bool,
        exchange: &mut Exchange,
    ) -> Result<(Response<()>, Answer), Failed> {
        let begin = now();
        let failed = is_fresh.then_some(exchange.connection);
        let link = match self.pool.take_idle(failed) {
            Some(link) => link,
            // In a box, so that requests that need no new connection do not have its size.
            None => Box::pin(self.pool.connect_for(failed))
                .await
                .map_err(|failure| Failed { failure, is_stale: false })?,
        };
        exchange.reconnects = u32::from(is_fresh);
        if link.opened.is_none() && self.pool.plan.http == Http::Http2 {
            exchange.blocked += now() - begin;
        }
        let (response, answer) = link.send(request, exchange, &self.pool).await?;
        if !heads::is_plain(response.headers()) {
            let message = "the answer is in a transfer coding that nobody asked for".to_owned();
            let failure = Failure { class: ErrorClass::BadHttp, stage: Stage::Headers, message };
            return Err(Failed { failure, is_stale: false });
        }
        Ok((response, answer))
    }
}

/// The connections of one backend.
pub(crate) struct Pool {
    plan: Plan,
    pub(crate) limits: Limits,
    /// Idle ones of HTTP/1.1, last used last, with when that was; or all of HTTP/2.
    idle: RefCell<Vec<(Link, Nanos)>>,
    next_id: Cell<u64>,
    /// Held while a connection of HTTP/2 is being opened, so that a burst opens few.
    opening: Mutex<()>,
    looked_up: Cell<Nanos>,
}

impl Pool {
    /// A new connection, or one that somebody else has just opened. Who waits for others waits no longer
    /// than for one of its own.
    async fn connect_for(&self, failed: Option<u64>) -> Result<Link, Failure> {
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
            let message = "the upstream did not take the connection in time".to_owned();
            Err(Failure { class: ErrorClass::Timeout, stage: Stage::Connect, message })
        });
        if opened.is_err() {
            self.look_up_again();
        }
        opened
    }

    /// A connection that is there. Where one has failed the request, only one that was opened after it,
    /// which none of HTTP/1.1 is for sure.
    fn take_idle(&self, failed: Option<u64>) -> Option<Link> {
        let mut idle = self.idle.borrow_mut();
        if self.plan.http == Http::Http2 {
            idle.retain_mut(|(link, _)| link.is_ready() && !link.is_unused_for(IDLE_TIME));
            let later =
                idle.iter().filter(|(link, _)| failed.is_none_or(|failed| link.id > failed));
            return later.into_iter().find_map(|(link, _)| link.share(None));
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
        let Some(stream) = link.share(link.opened) else { return Ok(link) };
        self.idle.borrow_mut().push((link, now()));
        Ok(stream)
    }

    async fn connect(&self) -> Result<Link, Failure> {
        let (socket, watch, opened) = self.plan.dialer.open(self.limits.connect_time).await?;
        let id = self.next_id.replace(self.next_id.get() + 1);
        let head_bytes = self.limits.head_bytes;
        match self.plan.http {
            Http::Http1 => Ok(Link::http1(socket, (id, watch, opened), head_bytes)),
            Http::Http2 => Link::http2(socket, (id, watch, opened), head_bytes).await,
        }
    }

    /// Nobody is there: the name may stand for another address by now.
    fn look_up_again(&self) {
        if now() - self.looked_up.get() < LOOK_UP_EVERY {
            return;
        }
        self.looked_up.set(now());
        let dialer = self.plan.dialer.clone();
        drop(tokio::task::spawn_blocking(move || dialer.look_up_again()));
    }

    /// A request on this connection was answered too late: nobody else is sent to it, whether it lives or
    /// not.
    pub(crate) fn forget(&self, id: u64) {
        if self.plan.http == Http::Http2 {
            self.idle.borrow_mut().retain(|(link, _)| link.id != id);
        }
    }

    /// The answer is over. A connection of HTTP/1.1 that can carry another is kept.
    pub(crate) fn give_back(&self, mut link: Link) {
        if self.plan.http == Http::Http1 && link.is_ready() {
            let mut idle = self.idle.borrow_mut();
            if idle.len() < IDLE {
                idle.push((link, now()));
            }
        }
    }
}
