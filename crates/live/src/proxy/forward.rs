//! The life of one request: refused, answered here, or passed on.

use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use goodput_clock::now;
use goodput_model::{ErrorClass, Failure, FailureStage};
use goodput_wire::{AnswerTap, PassedHead};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Version};
use hyper::body::{Body, Incoming};
use hyper::ext::ReasonPhrase;

use crate::proxy::after::WholeRequest;
use crate::proxy::backend::Backend;
use crate::proxy::call::Call;
use crate::proxy::heads::{self, api_of_request};
use crate::proxy::inquiry::{Inquiry, Trouble};
use crate::proxy::line::Line;
use crate::proxy::reply::{Passed, Reply};
use crate::proxy::said::{self, HEALTH, Own};
use crate::proxy::seats::RequestPermits;
use crate::proxy::shared::Shared;
use crate::proxy::upstream::{UpstreamAnswer, UpstreamFailure};

/// Passes requests of a worker on to the upstream.
pub(crate) struct Forwarder {
    pub(crate) shared: Rc<Shared>,
    pub(crate) backend: Backend,
    pub(crate) seats: RequestPermits,
}

/// How long the rest of a request is read that no server could take.
const REST_LIMIT: Duration = Duration::from_secs(1);

/// Answers one request.
pub(crate) async fn answer_request(
    forwarder: Rc<Forwarder>,
    line: Rc<Line>,
    request: Request<Incoming>,
) -> Result<Response<Reply>, Infallible> {
    let shared = &forwarder.shared;
    let is_shared = request.version() == Version::HTTP_2;
    let (mut under_way, arrived) = line.begin_request(is_shared);
    let (parts, incoming) = request.into_parts();
    let said = if is_health(&parts) {
        Some(said::health_response(shared.is_draining.get()))
    } else {
        heads::refusal_reason(&parts, &shared.via).map(|refused| {
            shared.tally.refused.add(1);
            refused.to_response()
        })
    };
    if let Some(answer) = said {
        if !incoming.is_end_stream() {
            line.abandon_rest();
        }
        return Ok(answer.map(own_reply));
    }
    let Some(seat) = forwarder.seats.acquire(&line).await else {
        shared.tally.refused.add(1);
        shared.tally.turned_away.add(1);
        line.abandon_rest();
        return Ok(Own::Full.to_response().map(own_reply));
    };
    under_way.hold_permit(seat);
    let number = shared.tally.requests.next();
    let is_api = api_of_request(&parts.method, parts.uri.path()).is_some();
    let mut passing = AnswerTap::new(is_api, shared.keep_text);
    passing.exchange_mut().stamps.dispatched = arrived;
    let mut call = Call::new(shared, under_way, number, arrived, passing);
    let head = Arc::new(parts);
    let told = Box::new(WholeRequest { number, arrived, head: Arc::clone(&head) });
    let inquiry = Inquiry::new(shared, incoming, told);
    call.set_inquiry(&inquiry);
    let outcome = forward_request(&forwarder, &head, &inquiry, &mut call).await;
    let trouble = inquiry.client_failure();
    if outcome.is_err() && trouble.is_none() {
        inquiry.read_rest(REST_LIMIT).await;
    }
    if !inquiry.is_whole() {
        line.abandon_rest();
    }
    Ok(match outcome {
        Ok((response, answer)) => {
            // What is not whole yet will still be told of.
            if inquiry.is_whole() {
                inquiry.drop_buffer(false);
            }
            shared.tally.count_answer(response.status().as_u16());
            // The end of an answer to HTTP/1.0 may be the end of its connection: a cut must not be that.
            let is_old = head.version == Version::HTTP_10;
            let passed = Passed::new(answer, call, line, is_old);
            client_response(response).map(|()| Reply::Passed(Box::new(passed)))
        }
        Err(failure) => {
            let failed = match trouble {
                Some(Trouble::Slow) => Own::SlowBody,
                Some(Trouble::Broken) => Own::BrokenBody,
                None => {
                    let failed = Own::from_class(failure.class);
                    call.mark_broken(failure);
                    failed
                }
            };
            failed.to_response().map(own_reply)
        }
    })
}

fn own_reply(body: Bytes) -> Reply {
    Reply::Own(Some(body))
}

fn is_health(parts: &Parts) -> bool {
    parts.uri.path() == HEALTH && [Method::GET, Method::HEAD].contains(&parts.method)
}

/// Sends the request, and once more where its connection turns out to have been closed before.
async fn forward_request(
    forwarder: &Forwarder,
    head: &Parts,
    inquiry: &Rc<Inquiry>,
    call: &mut Call,
) -> Result<(Response<()>, UpstreamAnswer), Failure> {
    let begin = now();
    let mut is_fresh = false;
    loop {
        let lost = || Failure {
            class: ErrorClass::Closed,
            stage: FailureStage::Headers,
            message: "the connection was closed, and the request body could not be sent again"
                .to_owned(),
        };
        let payload = inquiry.replay_payload().ok_or_else(lost)?;
        let request =
            forwarder.backend.upstream_request(head, payload, Some(&forwarder.shared.via))?;
        let Some(passing) = call.answer_tap() else { return Err(lost()) };
        let exchange = passing.exchange_mut();
        match forwarder.backend.send(request, is_fresh, exchange).await {
            Ok((response, answer)) => {
                let read = answer.last_read();
                let (status, headers) = (response.status().as_u16(), response.headers());
                if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                    let message =
                        "the upstream switched protocols without a request to do so".to_owned();
                    return Err(Failure {
                        class: ErrorClass::BadHttp,
                        stage: FailureStage::Headers,
                        message,
                    });
                }
                passing.take_head(PassedHead { status, headers, read });
                return Ok((response, answer));
            }
            Err(UpstreamFailure { is_stale: true, .. })
                if !is_fresh && inquiry.client_failure().is_none() =>
            {
                forwarder.shared.tally.resent.add(1);
                exchange.blocked = now() - begin;
                exchange.stamps.sent_first = None;
                exchange.stamps.sent_last = None;
                is_fresh = true;
            }
            Err(failed) => return Err(failed.failure),
        }
    }
}

/// The head of an answer as the client gets it.
fn client_response(response: Response<()>) -> Response<()> {
    let (mut parts, ()) = response.into_parts();
    heads::strip_answer(&mut parts.headers);
    // Of what hyper notes next to the head, only the words behind the status are the upstream's.
    let reason = parts.extensions.remove::<ReasonPhrase>();
    parts.extensions.clear();
    if let Some(reason) = reason {
        parts.extensions.insert(reason);
    }
    parts.version = Version::HTTP_11;
    Response::from_parts(parts, ())
}
