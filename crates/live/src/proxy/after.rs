//! [`After`]: what is told of requests, after their bytes were passed on.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use goodput_model::{ErrorClass, Failure, Nanos};
use goodput_wire::{AnswerTap, Read};
use http::request::Parts;
use http::{HeaderName, HeaderValue};
use tokio::sync::Notify;

use crate::proxy::heads::api_of_request;
use crate::proxy::keeping::Keeping;
use crate::proxy::tally::Tally;
use crate::proxy::witness::{Answered, Ending, ObservedRequest, Witness};

/// A frame that is longer does not wait to be looked at.
const FRAME_BYTES: usize = 16 << 10;

/// A frame that is shorter is copied: it would hold the buffer that it was read into.
const SMALL: usize = 1 << 10;

/// What the witness hears of a request when its body is whole.
pub(crate) struct WholeRequest {
    pub(crate) number: u64,
    pub(crate) arrived: Nanos,
    pub(crate) head: Arc<Parts>,
}

/// The answer as far as it was looked at, and the frame that was not: it is looked at when the next one
/// comes, which saves a turn of the task for each.
pub(crate) struct ObservedAnswer {
    pub(crate) passing: AnswerTap,
    waiting: Option<(Bytes, Read)>,
    last: Option<Read>,
    keeping: Keeping,
}

impl ObservedAnswer {
    pub(crate) fn new(passing: AnswerTap, keeping: Keeping) -> Self {
        Self { passing, waiting: None, last: None, keeping }
    }

    /// Bytes that are being handed on: they are looked at later.
    pub(crate) fn add_bytes(&mut self, bytes: &Bytes, read: Read) {
        self.last = Some(read);
        self.inspect();
        let is_small = bytes.len() < SMALL;
        let waiting = if is_small { Bytes::copy_from_slice(bytes) } else { bytes.clone() };
        self.waiting = Some((waiting, read));
        if bytes.len() > FRAME_BYTES {
            self.inspect();
        }
    }

    /// Looks at what was handed on. A fault of the reader must not become one of the stream.
    fn inspect(&mut self) {
        let Some((bytes, read)) = self.waiting.take() else { return };
        let passing = &mut self.passing;
        let looked = catch_unwind(AssertUnwindSafe(|| passing.take_bytes(&bytes, read)));
        if looked.is_err() {
            self.passing.give_up();
        }
        self.keeping.update_from(&mut self.passing);
    }
}

/// A request that is over.
pub(crate) struct Over {
    pub(crate) number: u64,
    pub(crate) arrived: Nanos,
    pub(crate) seen: Box<ObservedAnswer>,
    pub(crate) ending: Ending,
    pub(crate) failure: Option<Failure>,
    pub(crate) is_cut: bool,
    pub(crate) bytes: u64,
    pub(crate) at: Nanos,
}

impl Over {
    fn report(mut self, after: &After) {
        self.seen.inspect();
        // Many clients leave when they have read `[DONE]`, before the end of the body.
        if self.ending == Ending::ClientGone && self.seen.passing.is_done() {
            self.ending = Ending::Whole;
        }
        let Self { number, arrived, seen, ending, failure, is_cut, bytes, at } = self;
        let ObservedAnswer { passing, last, .. } = *seen;
        let tally = &after.tally;
        match ending {
            Ending::Whole => {}
            Ending::ClientGone => tally.clients_gone.add(1),
            Ending::Broken if is_cut => {}
            Ending::Broken => tally.upstream_failures.add(1),
        }
        let exchange = if ending == Ending::Whole {
            let head = passing.exchange().stamps.headers.unwrap_or(at);
            let mut exchange =
                passing.end(last.unwrap_or(Read { at: head, sequence: 0, lag_us: None }));
            exchange.stamps.ended = at;
            exchange
        } else {
            let stage = passing.exchange().stamps.stage();
            let message = if is_cut { "the proxy was stopped" } else { "the client disconnected" };
            let gone = Failure { class: ErrorClass::CutOff, stage, message: message.to_owned() };
            passing.break_off(failure.unwrap_or(gone), at)
        };
        after.witness.answer_seen(Answered { number, arrived, ending, exchange, bytes });
    }
}

/// What is done after bytes were passed on.
enum AfterBytes {
    Asked(Box<WholeRequest>, Option<Bytes>),
    Over(Box<Over>),
}

/// Work that waits until what came has been passed on.
pub(crate) struct After {
    jobs: RefCell<Vec<AfterBytes>>,
    more: Notify,
    witness: Arc<dyn Witness>,
    tally: Arc<Tally>,
    session_header: Option<HeaderName>,
    via: HeaderValue,
}

impl After {
    pub(crate) fn new(
        witness: Arc<dyn Witness>,
        tally: Arc<Tally>,
        session_header: Option<HeaderName>,
        via: HeaderValue,
    ) -> Self {
        let (jobs, more) = (RefCell::default(), Notify::new());
        Self { jobs, more, witness, tally, session_header, via }
    }

    /// The body of a request is whole.
    pub(crate) fn request_complete(&self, told: Box<WholeRequest>, body: Option<Bytes>) {
        self.queue_bytes(AfterBytes::Asked(told, body));
    }

    pub(crate) fn answer_over(&self, over: Over) {
        self.queue_bytes(AfterBytes::Over(Box::new(over)));
    }

    fn queue_bytes(&self, job: AfterBytes) {
        self.jobs.borrow_mut().push(job);
        self.more.notify_one();
    }

    /// Does what there is to do.
    pub(crate) fn run_queued(&self) {
        loop {
            let jobs = std::mem::take(&mut *self.jobs.borrow_mut());
            if jobs.is_empty() {
                return;
            }
            for job in jobs {
                // One request that cannot be told of must not silence the others.
                let _ = catch_unwind(AssertUnwindSafe(|| self.inspect_now(job)));
            }
        }
    }

    /// Does it whenever there is something, forever.
    pub(crate) async fn run_forever(&self) {
        loop {
            self.more.notified().await;
            self.run_queued();
        }
    }

    fn inspect_now(&self, job: AfterBytes) {
        match job {
            AfterBytes::Over(over) => (*over).report(self),
            AfterBytes::Asked(told, body) => {
                let WholeRequest { number, arrived, head } = *told;
                let session = self.session_header.as_ref().and_then(|name| {
                    let value = head.headers.get(name)?.as_bytes();
                    Some(String::from_utf8_lossy(value).into_owned())
                });
                let api = api_of_request(&head.method, head.uri.path());
                let via = self.via.clone();
                self.witness.request_seen(ObservedRequest {
                    number,
                    arrived,
                    api,
                    head,
                    via,
                    session,
                    body,
                });
            }
        }
    }
}
