//! [`Call`]: what is told of one request, exactly once, whatever becomes of it.

use std::rc::Rc;

use bytes::Bytes;
use goodput_clock::now;
use goodput_model::{Failure, Nanos};
use goodput_wire::{AnswerTap, Read};

use crate::proxy::after::{ObservedAnswer, Over};
use crate::proxy::inquiry::Inquiry;
use crate::proxy::keeping::Keeping;
use crate::proxy::line::LineRequest;
use crate::proxy::shared::Shared;
use crate::proxy::witness::Ending;

/// A request in flight.
pub(crate) struct Call {
    shared: Rc<Shared>,
    number: u64,
    arrived: Nanos,
    inquiry: Option<Rc<Inquiry>>,
    seen: Option<Box<ObservedAnswer>>,
    ending: Ending,
    /// What went wrong, where something did.
    failure: Option<Failure>,
    /// Bytes of the answer's body.
    bytes: u64,
    _under_way: LineRequest,
}

impl Call {
    pub(crate) fn new(
        shared: &Rc<Shared>,
        under_way: LineRequest,
        number: u64,
        arrived: Nanos,
        passing: AnswerTap,
    ) -> Self {
        shared.tally.in_flight.add(1);
        let keeping = Keeping::new(&shared.allowance, shared.limits.kept_total);
        let seen = ObservedAnswer::new(passing, keeping);
        Self {
            shared: Rc::clone(shared),
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

    pub(crate) fn set_inquiry(&mut self, inquiry: &Rc<Inquiry>) {
        self.inquiry = Some(Rc::clone(inquiry));
    }

    pub(crate) fn answer_tap(&mut self) -> Option<&mut AnswerTap> {
        self.seen.as_mut().map(|seen| &mut seen.passing)
    }

    /// Bytes that are being handed on: they are looked at later.
    pub(crate) fn add_bytes(&mut self, bytes: &Bytes, read: Read) {
        self.bytes += bytes.len() as u64;
        let Some(seen) = &mut self.seen else { return };
        seen.add_bytes(bytes, read);
    }

    /// The answer came to its end, seen by this read.
    pub(crate) fn mark_whole(&mut self) {
        self.ending = Ending::Whole;
    }

    /// The upstream is at fault.
    pub(crate) fn mark_broken(&mut self, failure: Failure) {
        self.ending = Ending::Broken;
        self.failure = Some(failure);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let shared = &self.shared;
        shared.tally.in_flight.drop_one();
        shared.tally.bytes_out.add(self.bytes);
        let Some(mut seen) = self.seen.take() else { return };
        if let Some(inquiry) = self.inquiry.take() {
            shared.tally.bytes_in.add(inquiry.received_bytes());
            seen.passing.exchange_mut().body_bytes = inquiry.received_bytes();
            inquiry.drop_buffer(true);
        }
        let is_cut = shared.is_stopping.get() && self.ending == Ending::ClientGone;
        if is_cut {
            shared.tally.cut.add(1);
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
        shared.after.answer_over(over);
    }
}
