//! The endpoints: what is asked at which path, and the answer to it.

use std::rc::Rc;

use goodput_clock::now;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use hyper::body::{Body, Incoming};

use crate::answer::{BrokenOff, MockBody};
use crate::api::{self, AnswerKind, ApiRefusal};
use crate::faults::Label;
use crate::line::{MockConnection, RequestInFlight};
use crate::reading::{drain_unwanted, read_body};
use crate::service::Service;
use crate::trouble::PageTrouble;

/// A status, headers and an answer.
pub(crate) type Reply = Response<MockBody>;

/// Marks a reply to a request whose body has not been read to its end.
#[derive(Clone, Copy)]
struct Unread;

impl Service {
    /// Answers one request.
    pub(crate) async fn answer(
        self: &Rc<Self>,
        request: Request<Incoming>,
        line: &Rc<MockConnection>,
    ) -> Result<Reply, BrokenOff> {
        let under_way = line.begin_request();
        let closes = self.connections.request_limit(now() - self.started);
        let is_last = closes.is_some_and(|limit| line.requests.get() >= limit);
        line.is_shared.set(request.version() == Version::HTTP_2);
        let has_body = !request.body().is_end_stream();
        let mut reply = self.route(request, under_way).await?;
        // What is left of the body would be taken for the next request.
        let closes = is_last || (has_body && reply.extensions().get::<Unread>().is_some());
        if closes && !line.is_shared.get() {
            if is_last {
                self.count_fault(Label::Named("close-after"));
            }
            reply.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(reply)
    }

    async fn route(
        self: &Rc<Self>,
        request: Request<Incoming>,
        under_way: RequestInFlight,
    ) -> Result<Reply, BrokenOff> {
        let path = request.uri().path().trim_end_matches('/').to_owned();
        // The answer to HEAD is that to GET; its body is left out when it is written.
        let method = match request.method() {
            &Method::HEAD => Method::GET,
            method => method.clone(),
        };
        let needs_key = path.starts_with("/v1/") || path.ends_with("tokenize");
        if needs_key && !self.has_key(request.headers()) {
            let refusal = ApiRefusal::unauthorized(
                "the key is missing or wrong: send `Authorization: Bearer KEY`",
            );
            return Ok(self.refuse_early(request, under_way, &refusal).await);
        }
        let head = self.event_head(0);
        let json = "application/json";
        let (kind, body) = match (&method, path.as_str()) {
            (&Method::POST, "/v1/chat/completions") => {
                return self.generate(AnswerKind::Chat, request, under_way).await;
            }
            (&Method::POST, "/v1/completions") => {
                return self.generate(AnswerKind::Completion, request, under_way).await;
            }
            (&Method::POST, "/v1/embeddings") => {
                return self.generate(AnswerKind::Embedding, request, under_way).await;
            }
            (&Method::POST, "/tokenize" | "/detokenize") => {
                return Ok(self.convert_tokens(&path, request, under_way).await);
            }
            (&Method::GET, "/v1/models") => {
                (json, api::models_response(&head, &self.request_rules()))
            }
            (&Method::GET, "/health" | "/ping") => (json, br#"{"status":"ok"}"#.to_vec()),
            (&Method::GET, "/version") => (json, api::version_response()),
            (&Method::GET, "/server_info") => {
                (json, api::server_info_response(&self.settings.profile))
            }
            (&Method::GET, "/metrics") if self.settings.page == PageTrouble::Off => {
                let refusal = ApiRefusal::not_found(request.uri().path());
                return Ok(self.refuse_early(request, under_way, &refusal).await);
            }
            (&Method::GET, "/metrics") => {
                if let PageTrouble::Slow(length) = self.settings.page {
                    self.sleep_from(now(), Some(length)).await;
                }
                let kind = "text/plain; version=0.0.4; charset=utf-8";
                self.settings.page.apply(kind, self.metrics_page().into_bytes())
            }
            (&Method::POST, "/reset_prefix_cache") => {
                self.driver.reset_prefix_cache();
                (json, b"{}".to_vec())
            }
            _ => {
                let refusal = match allowed_methods(&path) {
                    Some(_) => ApiRefusal::wrong_method(request.method().as_str(), &path),
                    None => ApiRefusal::not_found(request.uri().path()),
                };
                let mut reply = self.refuse_early(request, under_way, &refusal).await;
                if let Some(methods) = allowed_methods(&path) {
                    reply.headers_mut().insert(header::ALLOW, HeaderValue::from_static(methods));
                }
                return Ok(reply);
            }
        };
        Ok(build_reply(StatusCode::OK, kind, MockBody::in_one_piece(self, under_way, body)))
    }

    /// Answers `/tokenize` and `/detokenize`.
    async fn convert_tokens(
        self: &Rc<Self>,
        path: &str,
        request: Request<Incoming>,
        under_way: RequestInFlight,
    ) -> Reply {
        let convert =
            if path == "/tokenize" { api::tokenize_response } else { api::detokenize_response };
        let body = match read_body(request, &self.bodies, self.settings.patience).await {
            Ok(body) => body,
            Err(refusal) => return self.refuse_unread(under_way, &refusal),
        };
        match convert(&body, &self.request_rules()) {
            Ok(body) => {
                let body = MockBody::in_one_piece(self, under_way, body);
                build_reply(StatusCode::OK, "application/json", body)
            }
            Err(refusal) => self.refuse(under_way, &refusal),
        }
    }

    fn has_key(&self, headers: &HeaderMap) -> bool {
        let Some(key) = &self.settings.api_key else { return true };
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|given| given.split_once(' '));
        given.is_some_and(|(scheme, given)| {
            scheme.eq_ignore_ascii_case("bearer") && given.trim() == key
        })
    }

    /// A refusal of a request whatever its body says.
    async fn refuse_early(
        self: &Rc<Self>,
        request: Request<Incoming>,
        under_way: RequestInFlight,
        refusal: &ApiRefusal,
    ) -> Reply {
        if drain_unwanted(request).await {
            self.refuse(under_way, refusal)
        } else {
            self.refuse_unread(under_way, refusal)
        }
    }

    /// A refusal of a request whose body has not been read to its end.
    pub(crate) fn refuse_unread(
        self: &Rc<Self>,
        under_way: RequestInFlight,
        refusal: &ApiRefusal,
    ) -> Reply {
        let mut reply = self.refuse(under_way, refusal);
        reply.extensions_mut().insert(Unread);
        reply
    }

    pub(crate) fn refuse(
        self: &Rc<Self>,
        under_way: RequestInFlight,
        refusal: &ApiRefusal,
    ) -> Reply {
        self.metrics.borrow_mut().count_refusal(refusal.status.as_u16());
        let answer = MockBody::in_one_piece(self, under_way, refusal.body());
        let mut reply = build_reply(refusal.status, "application/json", answer);
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
fn allowed_methods(path: &str) -> Option<&'static str> {
    match path {
        "/v1/chat/completions"
        | "/v1/completions"
        | "/v1/embeddings"
        | "/tokenize"
        | "/detokenize"
        | "/reset_prefix_cache" => Some("POST"),
        "/v1/models" | "/health" | "/ping" | "/version" | "/server_info" | "/metrics" => {
            Some("GET, HEAD")
        }
        _ => None,
    }
}

/// A reply with this content type.
pub(crate) fn build_reply(status: StatusCode, kind: &'static str, answer: MockBody) -> Reply {
    let mut reply = Response::new(answer);
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}
