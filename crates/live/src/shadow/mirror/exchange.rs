//! One exchange with the candidate, read by the same instrument as the primary's.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use goodput_clock::now;
use goodput_model::{ErrorClass, Exchange, Failure, FailureStage};
use http::{HeaderMap, HeaderValue, Method, Request};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::MirrorSettings;
use crate::proxy::Allowance;
use crate::proxy::UpstreamRoute;
use crate::proxy::{Backend, OwnRequest};
use crate::proxy::{Limits, Upstream};

/// What the candidate is sent.
pub(super) struct Given {
    pub(super) path: String,
    pub(super) head: HeaderMap,
    /// How the proxy calls itself.
    pub(super) via: HeaderValue,
    pub(super) body: Bytes,
}

/// The server that is tried.
pub(super) struct Candidate {
    upstream: Upstream,
    limits: Limits,
    limit: Duration,
    answer_bytes: u64,
    keep_text: bool,
    /// None until its name could be resolved.
    backend: OnceCell<Backend>,
}

impl Candidate {
    pub(super) fn new(settings: &MirrorSettings) -> Rc<Self> {
        Rc::new(Self {
            upstream: settings.candidate.clone(),
            limits: settings.limits.clone(),
            limit: settings.caps.time,
            answer_bytes: settings.caps.answer_bytes,
            keep_text: settings.keep_text,
            backend: OnceCell::new(),
        })
    }

    /// Asks it, and reads its answer to the end or to a limit.
    pub(super) async fn send(&self, given: Given) -> Exchange {
        let request = Request::builder().method(Method::POST).uri(given.path).body(());
        let (Ok(request), Some(backend)) = (request, self.connect_backend().await) else {
            return unsent_exchange();
        };
        let mut head = request.into_parts().0;
        head.headers = given.head;
        let question = OwnRequest {
            head,
            body: given.body,
            via: Some(given.via),
            keep_text: self.keep_text,
            limit: self.limit,
            most_bytes: self.answer_bytes,
        };
        backend.send_own(question).await
    }

    /// Its connections. A name that cannot be resolved is tried again with the next request; the
    /// resolver may take its time, and is waited for on a thread of its own.
    async fn connect_backend(&self) -> Option<&Backend> {
        let plan = || async {
            let upstream = self.upstream.clone();
            let plan = spawn_blocking(move || UpstreamRoute::new(&upstream).ok()).await;
            let plan = plan.ok().flatten().ok_or(())?;
            Ok::<_, ()>(Backend::with_allowance(plan, self.limits.clone(), Allowance::default()))
        };
        let made = timeout(self.limits.connect_time, self.backend.get_or_try_init(plan)).await;
        made.ok()?.ok()
    }
}

/// The candidate is unreachable.
fn unsent_exchange() -> Exchange {
    let mut exchange = Exchange::default();
    (exchange.stamps.dispatched, exchange.stamps.ended) = (now(), now());
    let message = "cannot resolve the candidate's host name".to_owned();
    exchange.failure =
        Some(Failure { class: ErrorClass::Dns, stage: FailureStage::Connect, message });
    exchange
}
