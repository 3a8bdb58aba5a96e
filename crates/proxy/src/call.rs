//! [`Call`]: what is told of one request, exactly once, whatever becomes of it.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use goodput_clock::now;
use goodput_model::{ErrorClass, Failure, Nanos};
use goodput_wire::{Passing, Read};
use http::request::Parts;
use tokio::sync::Notify;

use crate::inquiry::Inquiry;
use crate::keeping::Keeping;
use crate::line::UnderWay;
use crate::witness::{Answered, Asked, Ending};
use crate::worker::Worker;

/// A frame that is longer does not wait to be looked at.
const FRAME_BYTES: usize = 16 << 10;

/// A frame that is shorter is copied: it would hold the buffer that it was read into.
const SMALL: usize = 1 << 10;

/// What the witness hears of a request when its body is whole.
pub(crate) struct Told {
    pub(crate) number: u64,
    pub(crate) arrived: Nanos,
    pub(crate) head: Arc<Parts>,
}

impl Told {
    pub(crate) fn whole(self: Box<Self>, worker: &Worker, body: Option<Bytes>) {
        worker.after.push(Job::Asked(self, body));
    }
}

/// A request under way.
pub(crate) struct Call {
    worker: Rc<Worker>,
    number: u64,
    arrived: Nanos,
    inquiry: Option<Rc<Inquiry>>,
    seen: Option<Box<Seen>>,
    ending: Ending,
    /// What went wrong, where something did.
    failure: Option<Failure>,
    /// Bytes of the answer's body.
    bytes: u64,
    _under_way: UnderWay,
}

/// The answer as far as it was looked at, and the frame that was not: it is looked at when the next one
/// comes, which saves a turn of the task for each.
pub(crate) struct Seen {
    pub(crate) passing: Passing,
    waiting: Option<(Bytes, Read)>,
    last: Option<Read>,
    keeping: Keeping,
}

impl Seen {
    /// Looks at what was handed on. A fault of the reader must not become one of the stream.
    fn look(&mut self) {
        let Some((bytes, read)) = self.waiting.take() else { return };
        let passing = &mut self.passing;
        let looked = catch_unwind(AssertUnwindSafe(|| passing.take(&bytes, read)));
        if looked.is_err() {
            self.passing.give_up();
        }
        self.keeping.follow(&mut self.passing);
    }
}

impl Call {
    pub(crate) fn new(
        worker: &Rc<Worker>,
        under_way: UnderWay,
        number: u64,
        arrived: Nanos,
        passing: Passing,
    ) -> Self {
        worker.tally.in_flight.add(1);
        let keeping = Keeping::new(&worker.allowance, worker.limits.kept_total);
        let seen = Seen { passing, waiting: None, last: None, keeping };
        Self {
            worker: Rc::clone(worker),
            number,
            arrived,
            inquiry: None,
            seen: Some(Box::new(seen)),
            ending: Ending::ClientGone,
            failure: None,
            bytes: 0,
            _under_way: under_way,
        }
    }

    pub(crate) fn asks(&mut self, inquiry: &Rc<Inquiry>) {
        self.inquiry = Some(Rc::clone(inquiry));
    }

    pub(crate) fn passing(&mut self) -> Option<&mut Passing> {
        self.seen.as_mut().map(|seen| &mut seen.passing)
    }

    /// Bytes that are being handed on: they are looked at later.
    pub(crate) fn took(&mut self, bytes: &Bytes, read: Read) {
        self.bytes += bytes.len() as u64;
        let Some(seen) = &mut self.seen else { return };
        seen.last = Some(read);
        seen.look();
        let is_small = bytes.len() < SMALL;
        let waiting = if is_small { Bytes::copy_from_slice(bytes) } else { bytes.clone() };
        seen.waiting = Some((waiting, read));
        if bytes.len() > FRAME_BYTES {
            seen.look();
        }
    }

    /// The answer came to its end, seen by this read.
    pub(crate) fn is_whole(&mut self) {
        self.ending = Ending::Whole;
    }

    /// The upstream is at fault.
    pub(crate) fn is_broken(&mut self, failure: Failure) {
        self.ending = Ending::Broken;
        self.failure = Some(failure);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let worker = &self.worker;
        worker.tally.in_flight.drop_one();
        worker.tally.bytes_out.add(self.bytes);
        let Some(mut seen) = self.seen.take() else { return };
        if let Some(inquiry) = self.inquiry.take() {
            worker.tally.bytes_in.add(inquiry.came());
            seen.passing.exchange_mut().body_bytes = inquiry.came();
            inquiry.forget(true);
        }
        let is_cut = worker.is_stopping.get() && self.ending == Ending::ClientGone;
        if is_cut {
            worker.tally.cut.add(1);
            self.ending = Ending::Broken;
        }
        let over = Over {
            number: self.number,
            arrived: self.arrived,
            seen,
            ending: self.ending,
            failure: self.failure.take(),
            is_cut,
            bytes: self.bytes,
            at: now(),
        };
        worker.after.push(Job::Over(Box::new(over)));
    }
}

/// A request that is over.
pub(crate) struct Over {
    number: u64,
    arrived: Nanos,
    seen: Box<Seen>,
    ending: Ending,
    failure: Option<Failure>,
    is_cut: bool,
    bytes: u64,
    at: Nanos,
}

impl Over {
    fn tell(mut self, worker: &Worker) {
        self.seen.look();
        // Many clients leave when they have read `[DONE]`, before the end of the body.
        if self.ending == Ending::ClientGone && self.seen.passing.is_done() {
            self.ending = Ending::Whole;
        }
        let Self { number, arrived, seen, ending, failure, is_cut, bytes, at } = self;
        let Seen { passing, last, .. } = *seen;
        let tally = &worker.tally;
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
            let message = if is_cut { "the proxy was stopped" } else { "the client went away" };
            let gone = Failure { class: ErrorClass::CutOff, stage, message: message.to_owned() };
            passing.broken(failure.unwrap_or(gone), at)
        };
        worker.witness.answered(Answered { number, arrived, ending, exchange, bytes });
    }
}

/// What is done after bytes were passed on.
pub(crate) enum Job {
    Asked(Box<Told>, Option<Bytes>),
    Over(Box<Over>),
}

/// Work that waits until what came has been passed on.
#[derive(Default)]
pub(crate) struct After {
    jobs: RefCell<Vec<Job>>,
    more: Notify,
}

impl After {
    fn push(&self, job: Job) {
        self.jobs.borrow_mut().push(job);
        self.more.notify_one();
    }

    /// Does what there is to do.
    pub(crate) fn work(&self, worker: &Worker) {
        loop {
            let jobs = std::mem::take(&mut *self.jobs.borrow_mut());
            if jobs.is_empty() {
                return;
            }
            for job in jobs {
                // One request that cannot be told of must not silence the others.
                let _ = catch_unwind(AssertUnwindSafe(|| worker.tell(job)));
            }
        }
    }

    /// Does it whenever there is something, for ever.
    pub(crate) async fn run(&self, worker: &Worker) {
        loop {
            self.more.notified().await;
            self.work(worker);
        }
    }
}

impl Worker {
    fn tell(&self, job: Job) {
        match job {
            Job::Over(over) => (*over).tell(self),
            Job::Asked(told, body) => {
                let Told { number, arrived, head } = *told;
                let session = self.session_header.as_ref().and_then(|name| {
                    let value = head.headers.get(name)?.as_bytes();
                    Some(String::from_utf8_lossy(value).into_owned())
                });
                let api = crate::heads::api_of(&head.method, head.uri.path());
                let via = self.via.clone();
                self.witness.asked(Asked { number, arrived, api, head, via, session, body });
            }
        }
    }
}
