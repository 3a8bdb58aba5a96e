//! The mirror's two threads.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use goodput_clock::{lower_priority, now};
use goodput_model::{Api, Nanos};
use http::{HeaderMap, HeaderValue};
use tokio::sync::{Semaphore, mpsc, watch};

use super::breaker::Breaker;
use super::choose::{self, By};
use super::exchange::{Candidate, Given};
use super::tally::{Dropped, MirrorTally, increment};
use super::{Held, MirrorSettings, Offered};
use crate::shadow::half::{CandidateAnswer, HalfSender};

/// How long the chooser waits before it looks whether it is over.
const LOOK: Duration = Duration::from_millis(20);

/// The longest pause between two requests by the cap on their rate.
const DAY: Duration = Duration::from_hours(24);

/// Shared by requests in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// Go on; the number counts the times that mirroring was switched off.
    On(u64),
    /// All is over.
    Over,
}

impl Wake {
    /// Once more.
    pub(super) fn next(self) -> Self {
        match self {
            Self::On(times) => Self::On(times + 1),
            Self::Over => Self::Over,
        }
    }
}

/// What the mirror's threads and its handle have in common.
pub(super) struct MirrorShared {
    pub(super) settings: MirrorSettings,
    pub(super) tally: Arc<MirrorTally>,
    pub(super) halves: HalfSender,
    pub(super) is_ending: AtomicBool,
    pub(super) wake: watch::Sender<Wake>,
    breaker: Mutex<Breaker>,
}

impl MirrorShared {
    pub(super) fn new(settings: MirrorSettings, halves: HalfSender) -> Self {
        let breaker = Mutex::new(Breaker::new(settings.stop_at.clone()));
        Self {
            settings,
            tally: Arc::default(),
            halves,
            is_ending: AtomicBool::new(false),
            wake: watch::Sender::new(Wake::On(0)),
            breaker,
        }
    }

    /// Why nothing is taken now, where that is so.
    pub(super) fn closed_reason(&self) -> Option<Dropped> {
        if self.is_ending.load(Ordering::Relaxed) {
            return Some(Dropped::Ending);
        }
        if self.tally.is_off.load(Ordering::Relaxed) {
            return Some(Dropped::SwitchedOff);
        }
        let until = self.tally.open_until.load(Ordering::Relaxed);
        (until > 0 && now().0 < until).then_some(Dropped::Errors)
    }

    /// A request that was not examined: counted as often as the share alone would have chosen it, for
    /// its model is not known.
    pub(super) fn drop_unseen(&self, number: u64, why: Dropped) {
        if choose::is_chosen(self.settings.share, self.settings.seed, number) {
            increment(&self.tally.chosen);
            self.tally.drop_one(why);
        }
    }

    fn drop_chosen(&self, number: u64, why: Dropped) {
        self.tally.drop_one(why);
        self.halves.candidate_skipped(number);
    }

    fn lock_breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the breaker says now, for all to see.
    fn publish_breaker(&self, breaker: &Breaker) {
        let until = breaker.open_until().map_or(0, |until| until.0.max(1));
        self.tally.open_until.store(until, Ordering::Relaxed);
    }

    /// The breaker's ticket for one more, where the candidate may be sent it.
    fn breaker_ticket(&self) -> Option<u64> {
        let mut breaker = self.lock_breaker();
        let ticket = breaker.admit(now());
        self.publish_breaker(&breaker);
        ticket
    }

    fn note_result(&self, ticket: u64, failed: bool) {
        let mut breaker = self.lock_breaker();
        if breaker.note_result(ticket, failed, now()) {
            increment(&self.tally.pauses);
        }
        self.publish_breaker(&breaker);
    }

    /// What the candidate did before is forgotten.
    pub(super) fn reset_breaker(&self) {
        let mut breaker = self.lock_breaker();
        breaker.reset();
        self.publish_breaker(&breaker);
    }

    fn cancel_ticket(&self, ticket: u64) {
        let mut breaker = self.lock_breaker();
        breaker.cancel_ticket(ticket, now());
        self.publish_breaker(&breaker);
    }
}

/// A request that is ready for the candidate.
pub(super) struct ReadyRequest {
    number: u64,
    arrived: Nanos,
    offered: Nanos,
    api: Api,
    model: Option<String>,
    max_tokens: Option<u32>,
    path: String,
    head: HeaderMap,
    via: HeaderValue,
    body: Bytes,
    _held: Held,
}

/// Looks at what is offered, and chooses, until all is over.
pub(super) fn choose_requests(
    shared: &MirrorShared,
    offered: &Receiver<Offered>,
    ready: &mpsc::Sender<ReadyRequest>,
) {
    lower_priority();
    loop {
        match offered.recv_timeout(LOOK) {
            Ok(one) => examine_offer(shared, one, ready),
            Err(RecvTimeoutError::Timeout) if shared.is_ending.load(Ordering::Relaxed) => return,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn examine_offer(shared: &MirrorShared, offered: Offered, ready: &mpsc::Sender<ReadyRequest>) {
    let Offered { number, arrived, at, api, head, via, session, body, held } = offered;
    let settings = &shared.settings;
    let seen = choose::read_fields(api, &body);
    let model = seen.as_ref().and_then(|seen| seen.model.as_deref()).unwrap_or_default();
    let key = match (settings.by, &session, &seen) {
        (By::Request, ..) => number,
        (By::Conversation, Some(session), _) => choose::hash_key(session.as_bytes()),
        (By::Conversation, None, Some(seen)) => seen.opening,
        (By::Conversation, None, None) => choose::hash_key(&body),
    };
    if !settings.rules.allow_model(model) || !choose::is_chosen(settings.share, settings.seed, key)
    {
        shared.halves.candidate_skipped(number);
        return;
    }
    increment(&shared.tally.chosen);
    let Some(seen) = seen else { return shared.drop_chosen(number, Dropped::Unreadable) };
    let renamed = settings.model.as_ref().map(|name| choose::replace_model(&body, &seen, name));
    let sent = match renamed {
        None => body.clone(),
        Some(Some(renamed)) => renamed.into(),
        Some(None) => return shared.drop_chosen(number, Dropped::Unreadable),
    };
    let one = ReadyRequest {
        number,
        arrived,
        offered: at,
        api,
        model: seen.model.map(std::borrow::Cow::into_owned),
        max_tokens: seen.max_tokens,
        // A query may hold a key; the candidate's URL has its own.
        path: head.uri.path().to_owned(),
        head: settings.head.apply(&head.headers),
        via,
        body: sent,
        _held: held,
    };
    shared.tally.queued.fetch_add(1, Ordering::Relaxed);
    if ready.try_send(one).is_err() {
        shared.tally.queued.fetch_sub(1, Ordering::Relaxed);
        shared.drop_chosen(number, Dropped::QueueFull);
    }
}

/// A thread that speaks with the candidate until all is over.
pub(super) fn spawn_sender(
    shared: Arc<MirrorShared>,
    mut queue: mpsc::Receiver<ReadyRequest>,
) -> std::io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("mirror".to_owned()).spawn(move || {
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async move {
            let candidate = Candidate::new(&shared.settings);
            send_queued(&shared, &candidate, &mut queue).await;
        });
        drop(local);
        // A name that is still being looked up is not waited for.
        runtime.shutdown_background();
    })
}

async fn send_queued(
    shared: &Arc<MirrorShared>,
    candidate: &Rc<Candidate>,
    queue: &mut mpsc::Receiver<ReadyRequest>,
) {
    let caps = &shared.settings.caps;
    let most = u32::try_from(caps.in_flight.max(1)).unwrap_or(u32::MAX);
    let seats = Arc::new(Semaphore::new(most as usize));
    let mut wake = shared.wake.subscribe();
    let mut pace = RateCap::new(caps.rate);
    while let Some(one) = queue.recv().await {
        let seat = tokio::select! {
            biased;
            () = wait_until_over(&mut wake) => None,
            seat = Arc::clone(&seats).acquire_owned() => seat.ok(),
        };
        let turn = pace.next_turn(now(), one.offered + caps.wait.into());
        if let (Some(_), Some(turn)) = (&seat, turn) {
            wait_until(turn, &mut wake).await;
        }
        shared.tally.queued.fetch_sub(1, Ordering::Relaxed);
        // From before the look at the switch: what is switched off after it is heard of.
        let woken = shared.wake.subscribe();
        let ticket = match (&seat, turn) {
            (None, _) => Err(Dropped::Ending),
            (Some(_), _) if *wake.borrow() == Wake::Over => Err(Dropped::Ending),
            (Some(_), _) if shared.tally.is_off.load(Ordering::Relaxed) => {
                Err(Dropped::SwitchedOff)
            }
            (Some(_), None) => Err(Dropped::Waited),
            (Some(_), Some(turn)) => match shared.breaker_ticket() {
                None => Err(Dropped::Errors),
                Some(ticket) => {
                    pace.note_sent(turn);
                    Ok(ticket)
                }
            },
        };
        let ticket = match ticket {
            Ok(ticket) => ticket,
            Err(why) => {
                shared.drop_chosen(one.number, why);
                continue;
            }
        };
        let under_way = MirroredRequest::new(Arc::clone(shared), one.number, ticket);
        let task = mirror_request(under_way, Rc::clone(candidate), one, woken);
        tokio::task::spawn_local(async move {
            task.await;
            drop(seat);
        });
    }
    // Requests in flight end by themselves, or are woken to end.
    let _ = seats.acquire_many(most).await;
}

/// When requests may be sent by the cap on their rate.
#[derive(Debug)]
pub(super) struct RateCap {
    every: Nanos,
    next: Nanos,
}

impl RateCap {
    pub(super) fn new(rate: Option<f64>) -> Self {
        let every = |rate: f64| Duration::try_from_secs_f64(1.0 / rate).unwrap_or(DAY).min(DAY);
        Self { every: rate.map_or(Duration::ZERO, every).into(), next: Nanos::ZERO }
    }

    /// The turn of a request; none if that is later than it can wait. A request that is not sent
    /// leaves its turn to the next.
    pub(super) fn next_turn(&self, present: Nanos, latest: Nanos) -> Option<Nanos> {
        Some(self.next.max(present)).filter(|turn| *turn <= latest)
    }

    /// One was sent in its turn.
    pub(super) fn note_sent(&mut self, turn: Nanos) {
        self.next = turn + self.every;
    }
}

/// Waits for an instant, or for the end.
async fn wait_until(instant: Nanos, wake: &mut watch::Receiver<Wake>) {
    let present = now();
    if instant > present {
        let pause = Duration::from_nanos((instant - present).0);
        tokio::select! {
            biased;
            () = wait_until_over(wake) => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Waits until all is over.
async fn wait_until_over(wake: &mut watch::Receiver<Wake>) {
    while *wake.borrow_and_update() != Wake::Over {
        if wake.changed().await.is_err() {
            return;
        }
    }
}

/// A request in flight. It is counted and reported exactly once, however it ends.
struct MirroredRequest {
    shared: Arc<MirrorShared>,
    number: u64,
    /// The breaker's.
    ticket: u64,
    is_over: bool,
}

impl MirroredRequest {
    fn new(shared: Arc<MirrorShared>, number: u64, ticket: u64) -> Self {
        increment(&shared.tally.sent);
        increment(&shared.tally.in_flight);
        Self { shared, number, ticket, is_over: false }
    }

    fn finish(mut self, answer: CandidateAnswer) {
        self.is_over = true;
        let failed = answer.exchange.failure.is_some();
        let tally = &self.shared.tally;
        increment(if failed { &tally.failed } else { &tally.ok });
        self.shared.note_result(self.ticket, failed);
        self.shared.halves.send_candidate(answer);
    }
}

impl Drop for MirroredRequest {
    fn drop(&mut self) {
        self.shared.tally.in_flight.fetch_sub(1, Ordering::Relaxed);
        if !self.is_over {
            increment(&self.shared.tally.cut);
            self.shared.cancel_ticket(self.ticket);
            self.shared.halves.candidate_skipped(self.number);
        }
    }
}

async fn mirror_request(
    under_way: MirroredRequest,
    candidate: Rc<Candidate>,
    one: ReadyRequest,
    mut wake: watch::Receiver<Wake>,
) {
    let ReadyRequest {
        number, arrived, api, model, max_tokens, path, head, via, body, _held, ..
    } = one;
    let given = Given { path, head, via, body };
    tokio::select! {
        // A candidate whose bytes never end leaves no budget to what is asked after it.
        biased;
        // Switched off, or over.
        _ = wake.changed() => {}
        exchange = candidate.send(given) => {
            under_way.finish(CandidateAnswer { number, arrived, api, model, max_tokens, exchange });
        }
    }
}
