//! An answer: a body whose tokens leave at their instants.

use std::convert::Infallible;
use std::fmt::Write;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use goodput_clock::{Sleep, Timer, now};
use goodput_model::Nanos;
use goodput_random::Stream;
use http::{HeaderValue, Response, StatusCode, header};
use hyper::body::{Body, Frame, SizeHint};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::request::{Ask, Kind, json_response};
use crate::settings::Settings;

/// The engine behind the endpoints.
pub(crate) struct Engine {
    pub(crate) settings: Settings,
    pub(crate) slots: Arc<Semaphore>,
    pub(crate) timer: Timer,
}

/// One request being served.
pub(crate) struct Service {
    engine: Rc<Engine>,
    kind: Kind,
    id: u64,
    tokens: u32,
    prompt_tokens: u32,
    include_usage: bool,
    random: Stream,
}

impl Service {
    pub(crate) fn new(engine: &Rc<Engine>, kind: Kind, ask: &Ask, id: u64) -> Self {
        Self {
            kind,
            id,
            tokens: ask.limit().unwrap_or(engine.settings.default_tokens),
            prompt_tokens: ask.prompt_tokens(),
            include_usage: ask.wants_usage(),
            random: Stream::new(engine.settings.seed, goodput_random::Domain::Service, id),
            engine: Rc::clone(engine),
        }
    }

    /// The answer in one piece, once its last token would have come.
    pub(crate) async fn whole(mut self) -> Response<Answer> {
        // The semaphore is never closed.
        let _slot = Arc::clone(&self.engine.slots).acquire_owned().await;
        let mut due = now() + self.engine.settings.ttft.draw(&mut self.random);
        for _ in 1..self.tokens {
            due += self.engine.settings.itl.draw(&mut self.random);
        }
        self.engine.timer.sleep_until(due).await;
        let text: String = (0..self.tokens).map(word).collect();
        let (object, choice) = match self.kind {
            Kind::Chat => (
                "chat.completion",
                json!({"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "length"}),
            ),
            Kind::Completion => {
                ("text_completion", json!({"index": 0, "text": text, "finish_reason": "length"}))
            }
        };
        let body = json!({
            "id": format!("mock-{}", self.id), "object": object, "created": 0,
            "model": self.engine.settings.model, "choices": [choice], "usage": self.usage(),
        });
        json_response(StatusCode::OK, &body)
    }

    /// The answer as a stream.
    pub(crate) fn stream(self) -> Response<Answer> {
        let slot = Arc::clone(&self.engine.slots).acquire_owned();
        let tokens = Tokens {
            queued: Some(Box::pin(async move { slot.await.ok() })),
            slot: None,
            due: Nanos::ZERO,
            sleep: None,
            sent: 0,
            service: self,
        };
        let mut response = Response::new(Answer::Tokens(Box::new(tokens)));
        let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    }

    fn usage(&self) -> serde_json::Value {
        json!({
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.tokens,
            "total_tokens": self.prompt_tokens + self.tokens,
        })
    }

    /// One event with this `choices` list and, perhaps, usage.
    fn event(&self, out: &mut String, choices: &str, usage: Option<serde_json::Value>) {
        let object = match self.kind {
            Kind::Chat => "chat.completion.chunk",
            Kind::Completion => "text_completion",
        };
        let model = json!(self.engine.settings.model);
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            r#"data: {{"id":"mock-{}","object":"{object}","created":0,"model":{model},"choices":{choices}"#,
            self.id
        );
        if let Some(usage) = usage {
            let _ = write!(out, r#","usage":{usage}"#);
        }
        out.push_str("}\n\n");
    }

    /// Everything that leaves with token `index`: the role before the first, the end after the last.
    fn events_of(&self, index: u32) -> Bytes {
        let mut out = String::with_capacity(512);
        let text = word(index);
        match self.kind {
            Kind::Chat => {
                if index == 0 {
                    let role = r#"[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]"#;
                    self.event(&mut out, role, None);
                }
                let token = format!(
                    r#"[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":null}}]"#
                );
                self.event(&mut out, &token, None);
            }
            Kind::Completion => {
                let token = format!(r#"[{{"index":0,"text":"{text}","finish_reason":null}}]"#);
                self.event(&mut out, &token, None);
            }
        }
        if index + 1 == self.tokens {
            let finish = match self.kind {
                Kind::Chat => r#"[{"index":0,"delta":{},"finish_reason":"length"}]"#,
                Kind::Completion => r#"[{"index":0,"text":"","finish_reason":"length"}]"#,
            };
            self.event(&mut out, finish, None);
            if self.include_usage {
                self.event(&mut out, "[]", Some(self.usage()));
            }
            out.push_str("data: [DONE]\n\n");
        }
        out.into()
    }
}

/// Words that answers are made of; each needs no escaping and differs from its neighbour.
fn word(index: u32) -> &'static str {
    const WORDS: [&str; 8] =
        [" the", " load", " was", " held", " and", " every", " token", " came"];
    WORDS[index as usize % WORDS.len()]
}

/// The body of any answer.
pub(crate) enum Answer {
    Whole(Option<Bytes>),
    Tokens(Box<Tokens>),
}

impl From<Bytes> for Answer {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(Some(bytes))
    }
}

type WaitForSlot = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>>>>;

/// Tokens on their way.
pub(crate) struct Tokens {
    service: Service,
    /// Waiting for a slot, in order of arrival.
    queued: Option<WaitForSlot>,
    /// Held until the last token has left, or the client has.
    slot: Option<OwnedSemaphorePermit>,
    due: Nanos,
    sleep: Option<Sleep>,
    sent: u32,
}

impl Tokens {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let settings = &self.service.engine.settings;
        if let Some(queued) = &mut self.queued {
            self.slot = ready!(queued.as_mut().poll(cx));
            self.queued = None;
            self.due = now() + settings.ttft.draw(&mut self.service.random);
        }
        if self.sent == self.service.tokens {
            self.slot = None;
            return Poll::Ready(None);
        }
        let timer = &self.service.engine.timer;
        let sleep = self.sleep.get_or_insert_with(|| timer.sleep_until(self.due));
        ready!(Pin::new(sleep).poll(cx));
        self.sleep = None;
        let events = self.service.events_of(self.sent);
        self.sent += 1;
        // From the instant it was due, not from now: lateness does not add up.
        self.due += settings.itl.draw(&mut self.service.random);
        if self.sent == self.service.tokens {
            self.slot = None;
        }
        Poll::Ready(Some(events))
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match self.get_mut() {
            Self::Whole(bytes) => bytes.take(),
            Self::Tokens(tokens) => ready!(tokens.poll(cx)),
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Tokens(tokens) => tokens.sent == tokens.service.tokens,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Tokens(_) => SizeHint::default(),
        }
    }
}
