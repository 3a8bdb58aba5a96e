//! The mirror: some of the requests that pass are sent to a candidate too.
//!
//! On the proxy's threads nothing happens but a push into a queue that never waits. A thread of the
//! mirror's own reads bodies and chooses; another, with a runtime of its own, speaks with the
//! candidate. Whatever the candidate does, only that one sees it. Everything that waits is bounded by
//! number and bytes, and what does not fit is dropped and counted.

mod breaker;
mod choose;
mod exchange;
mod head;
mod run;
mod tally;

#[cfg(test)]
mod tests;

use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use goodput_clock::{now, pause};
use goodput_model::{Api, Nanos};
use http::request::Parts;
use http::{HeaderValue, Method};

pub use breaker::StopAt;
pub use choose::{By, Rules};
pub use head::HeadRules;
pub use tally::{Dropped, MirrorStanding, MirrorTally};

use super::half::HalfSender;
use crate::proxy::{Answered, Limits, ObservedRequest, Upstream, Witness};
use run::{MirrorShared, Wake};

/// Everything about a mirror.
#[derive(Debug, Clone)]
pub struct MirrorSettings {
    /// Who is sent the share.
    pub candidate: Upstream,
    /// How its connections are kept within bounds.
    pub limits: Limits,
    /// The share of requests that is chosen, from 0 to 1.
    pub share: f64,
    /// Whom the choice falls on.
    pub seed: u64,
    /// What is chosen as one.
    pub by: By,
    /// Which may be chosen at all.
    pub rules: Rules,
    /// The model that the candidate is asked for, where it has another name there.
    pub model: Option<String>,
    /// Which headers it gets.
    pub head: HeadRules,
    /// How much it is sent.
    pub caps: Caps,
    /// When it is left alone.
    pub stop_at: StopAt,
    /// Whether the text of its answers is given on.
    pub keep_text: bool,
}

/// How much a candidate is sent, and how much waits for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Caps {
    /// Requests that wait.
    pub queue: usize,
    /// Bytes of bodies that are held, in the queue and in flight.
    pub bytes: u64,
    /// Requests in flight.
    pub in_flight: usize,
    /// Requests a second.
    pub rate: Option<f64>,
    /// How long a request may wait for its turn, from when it was offered: its pair is to be of the
    /// same time.
    pub wait: Duration,
    /// How long an answer may take to its end.
    pub time: Duration,
    /// Bytes that an answer may have.
    pub answer_bytes: u64,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            queue: 256,
            bytes: 64 << 20,
            in_flight: 64,
            rate: None,
            wait: Duration::from_secs(5),
            time: Duration::from_mins(2),
            answer_bytes: 16 << 20,
        }
    }
}

/// A request that waits to be looked at.
struct Offered {
    number: u64,
    arrived: Nanos,
    /// When it was offered.
    at: Nanos,
    api: Api,
    head: Arc<Parts>,
    via: HeaderValue,
    session: Option<String>,
    body: Bytes,
    held: Held,
}

/// Bytes that are held, until this is dropped.
struct Held(Arc<MirrorTally>, u64);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.held_bytes.fetch_sub(self.1, Ordering::Relaxed);
    }
}

/// Requests that may wait to be looked at.
const INTAKE: usize = 1024;

/// How often the end is looked for.
const STEP: Nanos = Nanos::from_millis(5);

/// Chooses requests and sends them to a candidate; as a witness of the proxy, tells the collector of
/// both sides.
pub struct Mirror {
    shared: Arc<MirrorShared>,
    intake: SyncSender<Offered>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Mirror {
    /// Starts the mirror's threads.
    pub fn start(settings: MirrorSettings, halves: HalfSender) -> std::io::Result<Self> {
        let shared = Arc::new(MirrorShared::new(settings, halves));
        let (intake, offered) = sync_channel(INTAKE);
        let (ready, queue) = tokio::sync::mpsc::channel(shared.settings.caps.queue.max(1));
        let speak = run::spawn_sender(Arc::clone(&shared), queue)?;
        let own = Arc::clone(&shared);
        let choose = std::thread::Builder::new()
            .name("mirror-choose".to_owned())
            .spawn(move || run::choose_requests(&own, &offered, &ready))?;
        let threads = Mutex::new(vec![choose, speak]);
        Ok(Self { shared, intake, threads })
    }

    /// The counters.
    pub fn tally(&self) -> &Arc<MirrorTally> {
        &self.shared.tally
    }

    /// Offers a request; whether it may still be mirrored. What may not has no further word.
    pub fn offer(&self, asked: &ObservedRequest) -> bool {
        let MirrorShared { settings, tally, .. } = &*self.shared;
        let Some(api) = asked.api.filter(|_| asked.head.method == Method::POST) else {
            return false;
        };
        if !settings.rules.allow_path(asked.head.uri.path()) {
            return false;
        }
        let refusal = self.shared.closed_reason().or_else(|| {
            let is_packed = asked.head.headers.contains_key(http::header::CONTENT_ENCODING);
            is_packed.then_some(Dropped::Unreadable)
        });
        let Some(body) = asked.body.clone().filter(|_| refusal.is_none()) else {
            self.shared.drop_unseen(asked.number, refusal.unwrap_or(Dropped::TooLong));
            return false;
        };
        // One that is chosen by itself need not be looked at to be left out.
        let is_out = settings.by == By::Request
            && !choose::is_chosen(settings.share, settings.seed, asked.number);
        if is_out {
            return false;
        }
        let length = body.len() as u64;
        let before = tally.held_bytes.fetch_add(length, Ordering::Relaxed);
        let held = Held(Arc::clone(tally), length);
        if before + length > settings.caps.bytes {
            self.shared.drop_unseen(asked.number, Dropped::QueueBytes);
            return false;
        }
        let offered = Offered {
            number: asked.number,
            arrived: asked.arrived,
            at: now(),
            api,
            head: Arc::clone(&asked.head),
            via: asked.via.clone(),
            session: asked.session.clone(),
            body,
            held,
        };
        let is_taken = self.intake.try_send(offered).is_ok();
        if !is_taken {
            self.shared.drop_unseen(asked.number, Dropped::Unseen);
        }
        is_taken
    }

    /// Stops at once where requests are mirrored, and goes on where they are not; requests in flight are
    /// given up.
    pub fn toggle(&self) {
        let is_off = !self.shared.tally.is_off.fetch_xor(true, Ordering::Relaxed);
        if is_off {
            self.shared.wake.send_modify(|wake| *wake = wake.next());
        } else {
            self.shared.reset_breaker();
        }
    }

    /// Takes no more; waits for requests in flight up to a limit, and gives up the rest.
    pub fn drain(&self, limit: Duration) {
        self.shared.is_ending.store(true, Ordering::Relaxed);
        let end = now() + Nanos::from(limit);
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        while now() < end && threads.iter().any(|thread| !thread.is_finished()) {
            pause(STEP);
        }
        self.shared.wake.send_modify(|wake| *wake = Wake::Over);
        for thread in threads {
            let _ = thread.join();
        }
    }
}

impl Witness for Mirror {
    fn request_seen(&self, asked: ObservedRequest) {
        let passed = u64::from(asked.api.is_some());
        self.shared.tally.passed.fetch_add(passed, Ordering::Relaxed);
        if !self.offer(&asked) {
            self.shared.halves.candidate_skipped(asked.number);
        }
    }

    fn answer_seen(&self, answered: Answered) {
        self.shared.halves.send_primary(answered);
    }
}
