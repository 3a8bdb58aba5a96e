//! A worker: its connections, and the exchanges it carries.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use goodput_clock::{Timer, now, run_until, wait_until};
use goodput_model::schedule::RunTimeline;
use goodput_model::{
    ConnectionPolicy, ErrorClass, Exchange, Failure, FailureStage, Nanos, Phase, RequestRecord,
    TokenCount, Tracer,
};
use goodput_wire::{Client, Endpoint, SessionHeader, Tagged};
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use crate::control::RunControl;
use crate::live::LiveCounters;
use crate::pacing::{TimerMode, WakeLead, yield_until};
use crate::self_check::{Canary, Observations};
use crate::senders::Senders;
use crate::session::{BodyEncoder, PreparedRequest};

/// What all workers share.
pub(crate) struct WorkerContext {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) timeout: Duration,
    pub(crate) live: Arc<LiveCounters>,
    pub(crate) control: RunControl,
    pub(crate) records: SyncSender<RequestRecord>,
    /// The run's first instant; set before the first request is due.
    pub(crate) epoch: Arc<OnceLock<Nanos>>,
    /// What workers see of themselves.
    pub(crate) seen: Arc<Observations>,
    pub(crate) canary: Option<Canary>,
    pub(crate) pacing: TimerMode,
    pub(crate) workers: u32,
    /// Processors to keep to, one per worker in turn.
    pub(crate) pin_to: Vec<usize>,
    /// `--max-concurrency`, over all workers.
    pub(crate) cap: Option<Semaphore>,
    pub(crate) connections: ConnectionPolicy,
    pub(crate) timeline: Arc<RunTimeline>,
    pub(crate) is_closed: bool,
    /// Writes the later steps of sessions.
    pub(crate) scribe: BodyEncoder,
    /// Whether the texts of answers go into the record.
    pub(crate) keep_answers: bool,
    pub(crate) session_header: Option<SessionHeader>,
    pub(crate) tracer: Option<Tracer>,
    pub(crate) senders: Senders,
    /// A closed loop has sent all it was to send.
    pub(crate) sent_all: AtomicBool,
    /// The workload of a closed loop has ended.
    pub(crate) fed_all: AtomicBool,
    /// Planned requests of sessions that ended early.
    pub(crate) cut_requests: AtomicU64,
}

pub(crate) struct EngineWorker {
    pub(crate) id: u32,
    pub(crate) client: Client,
    pub(crate) timer: Timer,
    pub(crate) lead: Rc<WakeLead>,
    pub(crate) shared: Arc<WorkerContext>,
    /// Sessions in progress.
    under_way: Cell<u64>,
    quiet: Notify,
}

/// What became of a request, as far as its session goes.
pub(crate) struct RequestOutcome {
    pub(crate) is_ok: bool,
    /// Whether it failed without costing time.
    pub(crate) failed_at_once: bool,
    pub(crate) ended: Nanos,
    /// What the server said, for a session that goes on.
    pub(crate) answer: Option<String>,
}

impl EngineWorker {
    pub(crate) fn new(id: u32, shared: Arc<WorkerContext>) -> std::io::Result<Self> {
        Ok(Self {
            id,
            client: Client::new(Arc::clone(&shared.endpoint)),
            timer: Timer::new()?,
            lead: Rc::new(WakeLead::new(shared.pacing)),
            shared,
            under_way: Cell::new(0),
            quiet: Notify::new(),
        })
    }

    /// Waits for the answers that are still to come.
    pub(crate) async fn wait_for_answers(&self) {
        while self.under_way.get() > 0 {
            self.quiet.notified().await;
        }
    }

    /// One more session.
    pub(crate) fn enter_session(&self) {
        self.under_way.set(self.under_way.get() + 1);
        self.shared.live.sessions.fetch_add(1, Relaxed);
    }

    /// One session less.
    pub(crate) fn leave_session(&self) {
        self.shared.live.ended_sessions.fetch_add(1, Relaxed);
        self.under_way.set(self.under_way.get() - 1);
        if self.under_way.get() == 0 {
            self.quiet.notify_one();
        }
    }

    /// The run's first instant. It is set before anything is due.
    pub(crate) fn epoch(&self) -> Nanos {
        self.shared.epoch.get().copied().unwrap_or_else(now)
    }

    /// Carries one request from its scheduled instant to its record. The answer's text comes back
    /// when the session goes on.
    pub(crate) async fn perform(&self, prepared: PreparedRequest, due: Carried) -> RequestOutcome {
        self.shared.live.started.fetch_add(1, Relaxed);
        let WorkerContext { endpoint, session_header, tracer, .. } = self.shared.as_ref();
        let request_id = endpoint.request_id(prepared.index);
        let header = session_header.as_ref();
        let tag = header.and_then(|header| endpoint.session_tag(header, prepared.session));
        let trace = tracer.and_then(|tracer| tracer.ids(prepared.index));
        let mut exchange = Exchange { request_id, ..Exchange::default() };
        yield_until(due.at).await;
        let (cap_wait, slot) = self.wait_for_slot().await;
        exchange.stamps.dispatched = now();
        match &slot {
            SendSlot::None => exchange.failure = Some(cut_off_failure(FailureStage::Connect)),
            SendSlot::Free | SendSlot::Permit(_) => {
                exchange.body_hash = prepared.body_hash;
                let (body, allowance) = (prepared.body, prepared.allowance);
                let request = Tagged { body, session: tag.as_ref(), trace, allowance };
                self.exchange_bytes(request, &mut exchange).await;
            }
        }
        drop(slot);
        exchange.stamps.ended = now();
        let outcome = self.request_outcome(&mut exchange, due.goes_on);
        let epoch = self.epoch();
        exchange.stamps = exchange.stamps.since(epoch);
        for chunk in &mut exchange.chunks {
            chunk.at = chunk.at - epoch;
        }
        self.record(RequestRecord {
            index: prepared.index,
            phase: prepared.phase,
            worker: self.id,
            scheduled: due.at - epoch,
            pacer_lag: due.pacer_lag,
            cap_wait,
            planned: prepared.planned,
            exchange,
            prompt: prepared.prompt,
        });
        outcome
    }

    /// What the session needs to know. The text of the answer stays only where it was asked for.
    fn request_outcome(&self, exchange: &mut Exchange, goes_on: bool) -> RequestOutcome {
        let text = exchange.text.take();
        let answer = text.as_ref().filter(|_| goes_on).cloned();
        exchange.text = text.filter(|_| self.shared.keep_answers);
        let failed_at_once = exchange.failure.as_ref().is_some_and(|failure| {
            matches!(
                failure.class,
                ErrorClass::Connect | ErrorClass::Closed | ErrorClass::LocalLimit | ErrorClass::Tls
            )
        });
        let (is_ok, ended) = (exchange.failure.is_none(), exchange.stamps.ended);
        RequestOutcome { is_ok, failed_at_once, ended, answer }
    }

    /// Waits for `--max-concurrency`, first come first served, unless the run is stopped first.
    async fn wait_for_slot(&self) -> (Nanos, SendSlot<'_>) {
        let Some(cap) = &self.shared.cap else { return (Nanos::ZERO, SendSlot::Free) };
        if let Ok(permit) = cap.try_acquire() {
            return (Nanos::ZERO, SendSlot::Permit(permit));
        }
        let begin = now();
        let slot = tokio::select! {
            biased;
            () = self.shared.control.wait_until_stopped() => SendSlot::None,
            permit = cap.acquire() => permit.map_or(SendSlot::None, SendSlot::Permit),
        };
        // Held back by a nanosecond at least: a wait must not read as none.
        ((now() - begin).max(Nanos(1)), slot)
    }

    /// Sends and reads until the answer ends, its time is up, or the run is cut off.
    async fn exchange_bytes(&self, request: Tagged<'_>, exchange: &mut Exchange) {
        let limit = now() + self.shared.timeout.into();
        let over = async {
            tokio::select! {
                biased;
                () = self.shared.control.wait_until_aborted() => ErrorClass::CutOff,
                () = wait_until(limit) => ErrorClass::Timeout,
            }
        };
        let Err(class) = run_until(over, self.client.send_tagged(request, exchange)).await else {
            return;
        };
        let stage = exchange.stamps.stage();
        exchange.failure = Some(match class {
            ErrorClass::Timeout => {
                let limit = self.shared.timeout.as_secs_f64();
                Failure { class, stage, message: format!("no complete answer within {limit} s") }
            }
            _ => cut_off_failure(stage),
        });
    }

    /// Hands a record to the collector. Never waits: what the collector cannot take is counted.
    fn record(&self, record: RequestRecord) {
        let live = &self.shared.live;
        let counter = if record.is_ok() { &live.ok } else { &live.failed };
        let tokens = record.exchange.output_tokens.map_or(0, |TokenCount { n, .. }| n);
        live.tokens.fetch_add(u64::from(tokens), Relaxed);
        if let Some(first) = record.exchange.stamps.first_token
            && record.phase == Phase::Measured
        {
            live.first_token_ns.fetch_add((first - record.scheduled).0, Relaxed);
            live.first_tokens.fetch_add(1, Relaxed);
        }
        counter.fetch_add(1, Relaxed);
        if self.shared.records.try_send(record).is_err() {
            live.lost.fetch_add(1, Relaxed);
        }
    }
}

/// How a request is carried.
#[derive(Clone, Copy)]
pub(crate) struct Carried {
    /// When it is due.
    pub(crate) at: Nanos,
    pub(crate) pacer_lag: Option<Nanos>,
    /// Whether more steps follow, which need its answer.
    pub(crate) goes_on: bool,
}

/// Leave to send.
enum SendSlot<'a> {
    /// No cap.
    Free,
    /// One of the cap's.
    Permit(#[expect(dead_code, reason = "held, not read")] SemaphorePermit<'a>),
    /// None: the run was stopped first.
    None,
}

fn cut_off_failure(stage: FailureStage) -> Failure {
    let message = "the run ended before the answer".to_owned();
    Failure { class: ErrorClass::CutOff, stage, message }
}
