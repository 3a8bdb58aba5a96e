//! The body of an answer: pieces that leave at their instants.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use goodput_clock::{Sleep, now};
use goodput_model::{Chunk, ErrorClass, Nanos, TokenCount, TokenSource};
use hyper::body::{Body, Frame, SizeHint};

use crate::api::{AnswerPlan, StreamWriter};
use crate::driver::{Emission, Ticket};
use crate::faults::{AfterTokens, At, EventDelivery, Injected};
use crate::line::RequestInFlight;
use crate::outbox::{Outbox, OutboxItem};
use crate::service::Service;
use crate::truth::TruthRecord;

/// Token events that are written together at most, when many are due.
const BATCH: usize = 64;

/// Why an answer failed, in the truth log.
pub(crate) const ON_PURPOSE: &str = "on purpose";

/// The connection is to break off here.
#[derive(Debug, thiserror::Error)]
#[error("broken off on purpose")]
pub(crate) struct BrokenOff;

/// The body of any answer.
pub(crate) struct MockBody {
    service: Rc<Service>,
    under_way: RequestInFlight,
    outbox: Outbox,
    silence: Option<Sleep>,
    /// Where more comes from.
    tokens: Option<Box<TokenFeed>>,
    /// Bytes of an answer in one piece.
    length: Option<u64>,
    truth: Option<TruthRecord>,
    /// What a fault has made of it, though it comes to its end.
    spoiled: Option<ErrorClass>,
    is_over: bool,
}

impl MockBody {
    /// An answer in one piece.
    pub(crate) fn in_one_piece(
        service: &Rc<Service>,
        under_way: RequestInFlight,
        bytes: Vec<u8>,
    ) -> Self {
        let length = Some(bytes.len() as u64);
        let mut outbox = Outbox::new(EventDelivery::default(), None);
        outbox.push(bytes, 0);
        Self { length, ..Self::new(service, under_way, outbox, None) }
    }

    /// An answer in one piece that a fault may delay, cut or slow down.
    pub(crate) fn with_fault(
        service: &Rc<Service>,
        under_way: RequestInFlight,
        bytes: Vec<u8>,
        injected: &Injected,
    ) -> Self {
        if injected.after_tokens.is_none() && injected.drip.is_none() {
            return Self::in_one_piece(service, under_way, bytes);
        }
        let mut outbox = Outbox::new(EventDelivery::default(), injected.drip);
        let half = bytes.len() / 2;
        outbox.push(bytes[..half].to_vec(), 0);
        if let Some((fault, _)) = injected.after_tokens {
            outbox.push_interruption(outbox_item(fault));
        }
        outbox.push(bytes[half..].to_vec(), 0);
        outbox.flush();
        Self::new(service, under_way, outbox, None)
    }

    /// An answer as a stream.
    pub(crate) fn streamed(
        service: &Rc<Service>,
        under_way: RequestInFlight,
        tokens: Box<TokenFeed>,
        injected: &Injected,
    ) -> Self {
        let outbox = Outbox::new(injected.delivery, injected.drip);
        Self::new(service, under_way, outbox, Some(tokens))
    }

    fn new(
        service: &Rc<Service>,
        under_way: RequestInFlight,
        outbox: Outbox,
        tokens: Option<Box<TokenFeed>>,
    ) -> Self {
        Self {
            service: Rc::clone(service),
            under_way,
            outbox,
            silence: None,
            tokens,
            length: None,
            truth: None,
            spoiled: None,
            is_over: false,
        }
    }

    /// A client will find this wrong with the answer.
    #[must_use]
    pub(crate) fn with_expected_error(mut self, class: Option<ErrorClass>) -> Self {
        self.spoiled = class;
        self
    }

    /// What happens to the answer goes on record.
    #[must_use]
    pub(crate) fn with_truth(mut self, truth: Option<TruthRecord>) -> Self {
        self.truth = truth;
        self
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        loop {
            if let Some(silence) = &mut self.silence {
                ready!(Pin::new(silence).poll(cx));
                self.silence = None;
            }
            match self.outbox.pop() {
                Some(OutboxItem::Bytes(bytes, events)) => {
                    self.count_events(events);
                    if self.length.is_some() {
                        // hyper never polls past the announced length.
                        self.note_end(self.spoiled);
                    }
                    return Poll::Ready(Some(Ok(bytes)));
                }
                Some(OutboxItem::Silence(length)) => {
                    self.silence = Some(self.service.timer().sleep_until(now() + length));
                }
                Some(fault @ (OutboxItem::Reset | OutboxItem::Cut)) => {
                    if fault == OutboxItem::Reset {
                        self.under_way.line().reset();
                    }
                    self.note_end(Some(ErrorClass::Cut));
                    return Poll::Ready(Some(Err(BrokenOff)));
                }
                None => match &mut self.tokens {
                    Some(tokens) if !tokens.is_over => {
                        ready!(tokens.poll(cx, &mut self.outbox));
                        self.spoiled = tokens.expected_error();
                        if let Some((truth, class)) = self.truth.as_mut().zip(self.spoiled) {
                            truth.note_failure(class, ON_PURPOSE.to_owned());
                        }
                    }
                    _ => {
                        self.note_end(self.spoiled);
                        return Poll::Ready(None);
                    }
                },
            }
        }
    }

    /// Token events leave now.
    fn count_events(&mut self, events: usize) {
        let Some(tokens) = self.tokens.as_mut().filter(|_| events > 0) else { return };
        let at = now();
        for _ in 0..events {
            let Some(mark) = tokens.marks.pop_front() else { return };
            let line = self.under_way.line();
            // On a shared line a stream may wait for its client where the socket does not show it.
            let is_ours = tokens.is_on_time && (mark.awaited || !line.is_shared.get());
            self.service.note_event_left(is_ours.then(|| at - line.writable_since(mark.due)));
            if let Some(truth) = &mut self.truth {
                truth.note_tokens(tokens.chunk_record(at, &mark, events > 1));
                truth.change(|record| record.exchange.stamps.dispatched = mark.admitted);
            }
        }
    }

    fn note_end(&mut self, class: Option<ErrorClass>) {
        self.is_over = true;
        let Some(mut truth) = self.truth.take() else { return };
        if let Some(tokens) = &self.tokens {
            let cached = tokens.cached_tokens();
            truth.change(|record| record.exchange.cached_tokens = Some(cached));
        }
        truth.note_end(class.map(|class| (class, ON_PURPOSE.to_owned())));
    }
}

fn outbox_item(fault: AfterTokens) -> OutboxItem {
    match fault {
        AfterTokens::Reset => OutboxItem::Reset,
        AfterTokens::Cut => OutboxItem::Cut,
        AfterTokens::Stall(length) => OutboxItem::Silence(length),
    }
}

/// Tokens on their way from the engine to a stream.
pub(crate) struct TokenFeed {
    ticket: Ticket,
    writer: StreamWriter,
    choices: Vec<PendingChoice>,
    /// Choices that are not finished.
    open: usize,
    /// Choices to a prompt.
    n: usize,
    /// What happens after this many tokens.
    fault: Option<(u32, OutboxItem)>,
    /// Nothing delays its events on purpose.
    is_on_time: bool,
    /// Token events that have not left.
    marks: VecDeque<PendingEvent>,
    is_over: bool,
}

struct PendingChoice {
    plan: AnswerPlan,
    sent: u32,
    has_started: bool,
    cached: u32,
}

/// A token event that has not left.
struct PendingEvent {
    choice: u32,
    from: u32,
    tokens: u32,
    due: Nanos,
    admitted: Nanos,
    awaited: bool,
}

impl TokenFeed {
    pub(crate) fn new(
        ticket: Ticket,
        writer: StreamWriter,
        plans: Vec<AnswerPlan>,
        n: u32,
        after_tokens: Option<(AfterTokens, At)>,
    ) -> Self {
        let total = plans.first().map_or(0, |plan| plan.tokens);
        let fault = after_tokens.map(|(fault, at)| {
            let after = match at {
                At::Half => (total / 2).max(1),
                // A fault that is counted happens: at the latest before the finish reason.
                At::Tokens(tokens) => tokens.min(total),
            };
            (after, outbox_item(fault))
        });
        let new = |plan| PendingChoice { plan, sent: 0, has_started: false, cached: 0 };
        let choices: Vec<_> = plans.into_iter().map(new).collect();
        Self {
            ticket,
            writer,
            open: choices.len(),
            choices,
            n: n.max(1) as usize,
            is_on_time: fault.is_none(),
            fault,
            marks: VecDeque::new(),
            is_over: false,
        }
    }

    /// Takes what the engine has made and puts its events into the outbox.
    fn poll(&mut self, cx: &mut Context<'_>, outbox: &mut Outbox) -> Poll<()> {
        self.is_on_time &= outbox.is_plain();
        let mut bytes = Vec::with_capacity(512);
        let mut events = 0;
        let mut outcome = Poll::Pending;
        while events < BATCH && !self.is_over {
            let Poll::Ready(emission) = self.ticket.poll_next(cx) else { break };
            outcome = Poll::Ready(());
            // What is to happen before the first token must not wait until it has been written.
            let mut fault = self.fault_due();
            if fault.is_none() {
                let before = self.marks.len();
                self.write_emission(&emission, &mut bytes);
                events += self.marks.len() - before;
                fault = self.fault_due();
            }
            if let Some(piece) = fault {
                if !bytes.is_empty() {
                    outbox.push(std::mem::take(&mut bytes), std::mem::take(&mut events));
                }
                self.is_over |= piece == OutboxItem::Reset || piece == OutboxItem::Cut;
                outbox.push_interruption(piece);
            }
            if !self.is_over {
                self.write_end(&emission, &mut bytes);
            }
            if !outbox.is_plain() && !bytes.is_empty() {
                outbox.push(std::mem::take(&mut bytes), std::mem::take(&mut events));
            }
        }
        if !bytes.is_empty() {
            outbox.push(bytes, events);
        }
        if self.is_over {
            outbox.flush();
        }
        outcome
    }

    /// What happens after this many tokens.
    fn fault_due(&mut self) -> Option<OutboxItem> {
        let sent = self.choices.first().map_or(0, |choice| choice.sent);
        self.fault.take_if(|(after, _)| sent >= *after).map(|(_, piece)| piece)
    }

    fn write_emission(&mut self, emission: &Emission, out: &mut Vec<u8>) {
        let Some(choice) = self.choices.get_mut(emission.choice as usize) else { return };
        if !choice.has_started {
            choice.has_started = true;
            choice.cached = emission.cached_tokens;
            self.writer.write_role(emission.choice, out);
        }
        if emission.new_tokens > 0 {
            self.writer.write_tokens(emission.choice, choice.sent, emission.new_tokens, out);
            let end = choice.sent + emission.new_tokens;
            // An error ends the tokens.
            let tokens = self.writer.quirks.error_at.map_or(end, |at| end.min(at)) - choice.sent;
            if tokens > 0 {
                self.marks.push_back(PendingEvent {
                    choice: emission.choice,
                    from: choice.sent,
                    tokens,
                    due: emission.at,
                    admitted: emission.admitted,
                    awaited: emission.awaited,
                });
            }
            choice.sent += tokens;
        }
        self.is_over = self.writer.is_over();
    }

    /// Writes what follows the last token of a choice, and of all.
    fn write_end(&mut self, emission: &Emission, out: &mut Vec<u8>) {
        if emission.finished {
            self.open -= 1;
            if !self.writer.quirks.no_finish {
                self.writer.write_finish(emission.choice, out);
            }
        }
        if self.open == 0 {
            self.writer.cached = self.cached_tokens();
            self.writer.write_usage(out);
            self.writer.write_done(out);
        }
        self.is_over = self.open == 0 || self.writer.is_over();
    }

    /// What a client will find wrong with what has been written.
    fn expected_error(&self) -> Option<ErrorClass> {
        let sent = |choice: &PendingChoice| choice.sent;
        let most = self.choices.iter().map(sent).max().unwrap_or(0);
        if self.writer.quirks.truncated_json_at.is_some_and(|at| at < most) {
            Some(ErrorClass::BadEvent)
        } else if self.writer.is_over() && self.open > 0 {
            Some(ErrorClass::StreamError)
        } else if self.open == 0 && self.writer.quirks.no_finish {
            Some(ErrorClass::NoFinish)
        } else {
            (self.open == 0 && most == 0).then_some(ErrorClass::Empty)
        }
    }

    /// Tokens of the prompts that came from the cache; each prompt counts once.
    fn cached_tokens(&self) -> u32 {
        self.choices.iter().step_by(self.n).map(|choice| choice.cached).sum()
    }

    fn chunk_record(&self, at: Nanos, mark: &PendingEvent, coalesced: bool) -> Chunk {
        let plan = self.choices.get(mark.choice as usize).map(|choice| &choice.plan);
        let text = |index| plan.map_or(0, |plan| plan.token_text(index).len());
        Chunk {
            at,
            tokens: Some(mark.tokens),
            bytes: (mark.from..mark.from + mark.tokens).map(text).sum::<usize>() as u32,
            choice: mark.choice,
            coalesced,
            lag_us: None,
        }
    }
}

/// Notes what an answer is to be.
pub(crate) fn note_plan(
    truth: &mut TruthRecord,
    class: &str,
    prompt_tokens: u32,
    plans: &[AnswerPlan],
) {
    truth.change(|record| {
        record.planned.class = class.into();
        record.planned.input_tokens = prompt_tokens;
        record.planned.output_tokens = Some(plans.iter().map(|plan| plan.tokens).sum());
        let input = TokenCount { n: prompt_tokens, source: TokenSource::Usage };
        record.exchange.input_tokens = Some(input);
        record.exchange.finish = plans.first().map(|plan| plan.finish.name().to_owned());
    });
}

impl Body for MockBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let answer = self.get_mut();
        if answer.is_over {
            return Poll::Ready(None);
        }
        answer.poll(cx).map(|next| next.map(|outcome| outcome.map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
