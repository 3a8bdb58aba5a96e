//! The endpoints: what is asked at which path, and the answer to it.

use std::cell::{Cell, OnceCell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use goodput_clock::{Timer, now, now_and_unix};
use goodput_model::{Nanos, RequestRecord};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use hyper::body::{Body, Incoming};

use crate::answer::{Answer, Broken};
use crate::api::{self, Head, Kind, Refusal, Rules};
use crate::driver::Driver;
use crate::faults::{Connections, Faults, Label, Pause, Window};
use crate::line::{Line, UnderWay};
use crate::metrics::{Gauges, Metrics};
use crate::reading::{Bodies, forget, read};
use crate::settings::Settings;
use crate::tally::Tally;
use crate::trouble::PageTrouble;

/// A status, headers and an answer.
pub(crate) type Reply = Response<Answer>;

/// Marks a reply to a request whose body has not been read to its end.
#[derive(Clone, Copy)]
struct Unread;

/// The server without its sockets.
pub(crate) struct Service {
    pub(crate) settings: Settings,
    pub(crate) driver: Rc<Driver>,
    pub(crate) metrics: Rc<RefCell<Metrics>>,
    /// The engine's totals when those of the page began anew.
    totals_before: OnceCell<Gauges>,
    pub(crate) faults: Faults,
    connections: Connections,
    pub(crate) bodies: Bodies,
    pub(crate) started: Nanos,
    /// Seconds since 1970 at the start.
    created: u64,
    /// Requests for an answer so far.
    pub(crate) requests: Cell<u64>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) truth: Option<SyncSender<RequestRecord>>,
}

impl Service {
    pub(crate) fn new(
        settings: Settings,
        tally: Arc<Tally>,
        truth: Option<SyncSender<RequestRecord>>,
    ) -> io::Result<Rc<Self>> {
        let faults = Faults::new(settings.faults.clone(), settings.seed);
        let block_tokens = settings.profile.block_tokens();
        let metrics = Metrics::new(u64::from(block_tokens), faults.labels());
        let metrics = Rc::new(RefCell::new(metrics));
        let driver = Driver::new(&settings.profile, settings.seed, Rc::clone(&metrics))?;
        let (started, Nanos(unix)) = now_and_unix();
        Ok(Rc::new(Self {
            driver,
            metrics,
            totals_before: OnceCell::new(),
            connections: faults.connection(),
            faults,
            bodies: Bodies::default(),
            started,
            created: unix / 1_000_000_000,
            requests: Cell::new(0),
            settings,
            tally,
            truth,
        }))
    }

    pub(crate) fn timer(&self) -> &Timer {
        &self.driver.timer
    }

    /// Drives the engine, and stops the server now and then if it is to be stopped.
    pub(crate) async fn run(self: &Rc<Self>) {
        for pause in self.connections.pause.clone() {
            let service = Rc::clone(self);
            tokio::task::spawn_local(async move { service.stand_still(pause).await });
        }
        self.driver.run().await;
    }

    async fn stand_still(&self, pause: Pause) {
        let mut next = self.started + pause.window.from + pause.every;
        while pause.window.contains(next - self.started) {
            self.timer().sleep_until(next).await;
            self.happened(Label::Named("pause"));
            self.driver.stand_still(pause.length);
            next = (next + pause.every).max(now());
        }
    }

    /// A fault happened.
    pub(crate) fn happened(&self, label: Label) {
        self.metrics.borrow_mut().injected(label);
        self.tally.injected(&label.to_string());
    }

    /// When new connections are to be refused, in order.
    pub(crate) fn refusals(&self) -> Vec<Window> {
        let mut windows = self.connections.refuse.clone();
        windows.sort_by_key(|window| window.from);
        for window in &mut windows {
            window.from += self.started;
        }
        windows
    }

    /// Until `length` after `from`, or for ever.
    pub(crate) async fn sleep_for(&self, from: Nanos, length: Option<Nanos>) {
        match length {
            Some(length) => self.timer().sleep_until(from + length).await,
            None => std::future::pending().await,
        }
    }

    /// How long a connection accepted now waits.
    pub(crate) fn slow_accept(&self) -> Option<Nanos> {
        let delay = self.connections.accept_delay(now() - self.started)?;
        self.happened(Label::Named("slow-accept"));
        Some(delay)
    }

    pub(crate) fn connected(&self, is_connected: bool) {
        let mut metrics = self.metrics.borrow_mut();
        if is_connected { metrics.connected() } else { metrics.disconnected() }
    }

    /// A token event left; so long after its instant, where that is ours to answer for.
    pub(crate) fn left(&self, lateness: Option<Nanos>) {
        self.tally.left(lateness);
        self.metrics.borrow_mut().event(lateness);
    }

    /// Answers one request.
    pub(crate) async fn answer(
        self: &Rc<Self>,
        request: Request<Incoming>,
        line: &Rc<Line>,
    ) -> Result<Reply, Broken> {
        let under_way = line.begin();
        let closes = self.connections.request_limit(now() - self.started);
        let is_last = closes.is_some_and(|limit| line.requests.get() >= limit);
        line.is_shared.set(request.version() == Version::HTTP_2);
        let has_body = !request.body().is_end_stream();
        let mut reply = self.route(request, under_way).await?;
        // What is left of the body would be taken for the next request.
        let closes = is_last || (has_body && reply.extensions().get::<Unread>().is_some());
        if closes && !line.is_shared.get() {
            if is_last {
                self.happened(Label::Named("close-after"));
            }
            reply.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(reply)
    }

    async fn route(
        self: &Rc<Self>,
        request: Request<Incoming>,
        under_way: UnderWay,
    ) -> Result<Reply, Broken> {
        let path = request.uri().path().trim_end_matches('/').to_owned();
        // The answer to HEAD is that to GET; its body is left out when it is written.
        let method = match request.method() {
            &Method::HEAD => Method::GET,
            method => method.clone(),
        };
        let needs_key = path.starts_with("/v1/") || path.ends_with("tokenize");
        if needs_key && !self.has_key(request.headers()) {
            let refusal =
                Refusal::key("the key is missing or wrong: send `Authorization: Bearer KEY`");
            return Ok(self.refuse_early(request, under_way, &refusal).await);
        }
        let head = self.head(0);
        let json = "application/json";
        let (kind, body) = match (&method, path.as_str()) {
            (&Method::POST, "/v1/chat/completions") => {
                return self.generate(Kind::Chat, request, under_way).await;
            }
            (&Method::POST, "/v1/completions") => {
                return self.generate(Kind::Completion, request, under_way).await;
            }
            (&Method::POST, "/v1/embeddings") => {
                return self.generate(Kind::Embedding, request, under_way).await;
            }
            (&Method::POST, "/tokenize" | "/detokenize") => {
                let convert = if path == "/tokenize" { api::tokenize } else { api::detokenize };
                let body = match read(request, &self.bodies, self.settings.patience).await {
                    Ok(body) => body,
                    Err(refusal) => return Ok(self.refuse_unread(under_way, &refusal)),
                };
                match convert(&body, &self.rules()) {
                    Ok(body) => (json, body),
                    Err(refusal) => return Ok(self.refuse(under_way, &refusal)),
                }
            }
            (&Method::GET, "/v1/models") => (json, api::models(&head, &self.rules())),
            (&Method::GET, "/health" | "/ping") => (json, br#"{"status":"ok"}"#.to_vec()),
            (&Method::GET, "/version") => (json, api::version()),
            (&Method::GET, "/metrics") if self.settings.page == PageTrouble::Off => {
                let refusal = Refusal::not_found(request.uri().path());
                return Ok(self.refuse_early(request, under_way, &refusal).await);
            }
            (&Method::GET, "/metrics") => {
                if let PageTrouble::Slow(length) = self.settings.page {
                    self.sleep_for(now(), Some(length)).await;
                }
                let kind = "text/plain; version=0.0.4; charset=utf-8";
                self.settings.page.spoil(kind, self.metrics_page().into_bytes())
            }
            (&Method::POST, "/reset_prefix_cache") => {
                self.driver.reset_prefix_cache();
                (json, b"{}".to_vec())
            }
            _ => {
                let refusal = match allowed(&path) {
                    Some(_) => Refusal::method(request.method().as_str(), &path),
                    None => Refusal::not_found(request.uri().path()),
                };
                let mut reply = self.refuse_early(request, under_way, &refusal).await;
                if let Some(methods) = allowed(&path) {
                    reply.headers_mut().insert(header::ALLOW, HeaderValue::from_static(methods));
                }
                return Ok(reply);
            }
        };
        Ok(reply(StatusCode::OK, kind, Answer::whole(self, under_way, body)))
    }

    fn has_key(&self, headers: &HeaderMap) -> bool {
        let Some(key) = &self.settings.api_key else { return true };
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|given| given.split_once(' '));
        given.is_some_and(|(scheme, given)| {
            scheme.eq_ignore_ascii_case("bearer") && given.trim() == key
        })
    }

    pub(crate) fn head(&self, number: u64) -> Head<'_> {
        let created = self.created + (now() - self.started).0 / 1_000_000_000;
        Head { id: number, created, model: &self.settings.profile.model }
    }

    pub(crate) fn rules(&self) -> Rules<'_> {
        let profile = &self.settings.profile;
        Rules {
            model: &profile.model,
            loras: &self.settings.loras,
            max_model_len: profile.longest_request(),
            default_tokens: profile.default_tokens,
            image_tokens: profile.image_tokens,
        }
    }

    fn metrics_page(&self) -> String {
        let mut metrics = self.metrics.borrow_mut();
        let (since_start, mut gauges) = (now() - self.started, self.driver.gauges());
        if let PageTrouble::Reset(after) = self.settings.page
            && since_start >= after
        {
            // Once: the totals of the engine as they were count as nothing from then on.
            let before = self.totals_before.get_or_init(|| {
                metrics.start_anew(self.faults.labels());
                gauges
            });
            gauges = gauges.since(before);
        }
        metrics.scraped(since_start);
        metrics.render(self.settings.metrics, &gauges, &self.settings.profile.model)
    }

    /// A refusal of a request whatever its body says.
    async fn refuse_early(
        self: &Rc<Self>,
        request: Request<Incoming>,
        under_way: UnderWay,
        refusal: &Refusal,
    ) -> Reply {
        if forget(request).await {
            self.refuse(under_way, refusal)
        } else {
            self.refuse_unread(under_way, refusal)
        }
    }

    /// A refusal of a request whose body has not been read to its end.
    pub(crate) fn refuse_unread(self: &Rc<Self>, under_way: UnderWay, refusal: &Refusal) -> Reply {
        let mut reply = self.refuse(under_way, refusal);
        reply.extensions_mut().insert(Unread);
        reply
    }

    pub(crate) fn refuse(self: &Rc<Self>, under_way: UnderWay, refusal: &Refusal) -> Reply {
        self.metrics.borrow_mut().refused(refusal.status.as_u16());
        let answer = Answer::whole(self, under_way, refusal.body());
        let mut reply = reply(refusal.status, "application/json", answer);
        if let Some(seconds) = refusal.retry_after {
            reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if refusal.status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            reply.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
        }
        reply
    }
}

/// The methods of a path.
fn allowed(path: &str) -> Option<&'static str> {
    match path {
        "/v1/chat/completions"
        | "/v1/completions"
        | "/v1/embeddings"
        | "/tokenize"
        | "/detokenize"
        | "/reset_prefix_cache" => Some("POST"),
        "/v1/models" | "/health" | "/ping" | "/version" | "/metrics" => Some("GET, HEAD"),
        _ => None,
    }
}

/// A reply with this content type.
pub(crate) fn reply(status: StatusCode, kind: &'static str, answer: Answer) -> Reply {
    let mut reply = Response::new(answer);
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}
