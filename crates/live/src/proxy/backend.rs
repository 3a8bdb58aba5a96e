//! [`Backend`]: the client side: one upstream, its connections, and requests to it.

use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use goodput_clock::now;
use goodput_model::{ErrorClass, Exchange, Failure, FailureStage, Http};
use goodput_wire::{AnswerTap, EndpointError, PassedHead, Read};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, header};
use hyper::body::Body;
use tokio::time::timeout;

use crate::proxy::heads::{self, api_of_request};
use crate::proxy::inquiry::Payload;
use crate::proxy::keeping::{Allowance, Keeping};
use crate::proxy::settings::{Limits, Upstream};
use crate::proxy::upstream::{Pool, UpstreamAnswer, UpstreamFailure, UpstreamRoute};

/// Bytes of an answer that are read before others are turned to.
const TURN: u64 = 256 << 10;

/// Sends requests to one upstream. Lives on a current-thread runtime with a local task set.
pub struct Backend {
    pool: Rc<Pool>,
    /// For answers to questions of our own.
    allowance: Allowance,
}

/// A request of our own, whole from the beginning.
#[derive(Debug, Clone)]
pub struct OwnRequest {
    /// Method, path and headers as a client sends them: what belongs to its connection is left out.
    pub head: Parts,
    /// The body.
    pub body: Bytes,
    /// The name in `Via`.
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
        Ok(Self::with_allowance(
            UpstreamRoute::new(upstream)?,
            limits.clone(),
            Allowance::default(),
        ))
    }

    pub(crate) fn with_allowance(
        plan: UpstreamRoute,
        limits: Limits,
        allowance: Allowance,
    ) -> Self {
        Self { pool: Rc::new(Pool::new(plan, limits)), allowance }
    }

    /// Sends a request, reads its answer to the end and throws it away. Whatever happens is in the
    /// exchange, measured as that of a request that is passed on.
    pub async fn send_own(&self, question: OwnRequest) -> Exchange {
        let (head, limit) = (&question.head, question.limit);
        let is_api = api_of_request(&head.method, head.uri.path()).is_some();
        let mut passing = AnswerTap::new(is_api, question.keep_text);
        passing.exchange_mut().stamps.dispatched = now();
        passing.exchange_mut().body_bytes = question.body.len() as u64;
        let outcome = timeout(limit, self.send_own_to(question, &mut passing)).await;
        let outcome = outcome.unwrap_or_else(|_| {
            let message = "the request timed out".to_owned();
            let exchange = passing.exchange();
            if exchange.stamps.sent_first.is_some() && exchange.stamps.headers.is_none() {
                self.pool.retire_connection(exchange.connection);
            }
            let stage = exchange.stamps.stage();
            Err(Failure { class: ErrorClass::Timeout, stage, message })
        });
        match outcome {
            Err(failure) => passing.break_off(failure, now()),
            Ok(read) => {
                let mut exchange = passing.end(read);
                exchange.stamps.ended = now();
                exchange
            }
        }
    }

    async fn send_own_to(
        &self,
        question: OwnRequest,
        passing: &mut AnswerTap,
    ) -> Result<Read, Failure> {
        let OwnRequest { head, body, via, most_bytes, .. } = question;
        let body = Some(body).filter(|body| !body.is_empty());
        let mut is_fresh = false;
        let (response, mut answer) = loop {
            let request =
                self.upstream_request(&head, Payload::Whole(body.clone()), via.as_ref())?;
            match self.send(request, is_fresh, passing.exchange_mut()).await {
                Ok(answered) => break answered,
                Err(failed) if failed.is_stale && !is_fresh => is_fresh = true,
                Err(failed) => return Err(failed.failure),
            }
        };
        let mut read = answer.last_read();
        let (status, headers) = (response.status().as_u16(), response.headers());
        passing.take_head(PassedHead { status, headers, read });
        let mut keeping = Keeping::new(&self.allowance, self.pool.limits.kept_total);
        let (mut came, mut turn) = (0, 0);
        while let Some(frame) = poll_fn(|cx| answer.poll_frame(cx)).await.transpose()? {
            if let Some(bytes) = frame.data_ref() {
                read = answer.last_read();
                passing.take_bytes(bytes, read);
                keeping.update_from(passing);
                came += bytes.len() as u64;
            }
            if came > most_bytes {
                let message = "the answer exceeds the size limit".to_owned();
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
    pub(crate) fn upstream_request(
        &self,
        head: &Parts,
        body: Payload,
        via: Option<&HeaderValue>,
    ) -> Result<Request<Payload>, Failure> {
        let target = &self.pool.plan.target;
        let wrong = || Failure {
            class: ErrorClass::BadHttp,
            stage: FailureStage::Connect,
            message: "the path cannot be forwarded".to_owned(),
        };
        let request =
            target.upstream_head(&head.method, &head.uri, &head.headers, via).ok_or_else(wrong)?;
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
    ) -> Result<(Response<()>, UpstreamAnswer), UpstreamFailure> {
        let begin = now();
        let failed = is_fresh.then_some(exchange.connection);
        let link = match self.pool.take_idle(failed) {
            Some(link) => link,
            // In a box, so that requests that need no new connection do not have its size.
            None => Box::pin(self.pool.connect_for(failed))
                .await
                .map_err(|failure| UpstreamFailure { failure, is_stale: false })?,
        };
        exchange.reconnects = u32::from(is_fresh);
        if link.opened.is_none() && self.pool.plan.http == Http::Http2 {
            exchange.blocked += now() - begin;
        }
        let (response, answer) = link.send(request, exchange, &self.pool).await?;
        if !heads::has_plain_coding(response.headers()) {
            let message = "the answer has a transfer coding that was not requested".to_owned();
            let failure =
                Failure { class: ErrorClass::BadHttp, stage: FailureStage::Headers, message };
            return Err(UpstreamFailure { failure, is_stale: false });
        }
        Ok((response, answer))
    }
}
