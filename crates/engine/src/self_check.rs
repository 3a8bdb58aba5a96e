//! What the workers observe about themselves: the beat of their loops, and the canary.
//!
//! Both run as tasks of the worker, next to its requests, so they see the same delays.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crossbeam_queue::ArrayQueue;
use goodput_clock::{Timer, now};
use goodput_model::{CanaryReading, Connect, Exchange, LoopLag, Nanos};
use goodput_wire::{Client, Endpoint};

use crate::pacing::{WakeLead, yield_until};

/// How often a loop is to be called.
const BEAT_EVERY: Nanos = Nanos::from_millis(20);

/// How long an answer of the canary is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Observations that may wait for the collector: a second of 64 workers.
const QUEUE: usize = 1 << 13;

/// A server of known timing that gets requests during the load: its error is the instrument's.
#[derive(Clone)]
pub struct Canary {
    /// Where it is. Its answers' texts are kept.
    pub endpoint: Arc<Endpoint>,
    /// What it is asked.
    pub body: Bytes,
    /// How often, over all workers.
    pub every: Nanos,
    /// Reads from the text of an answer when the server wrote each token.
    pub truth: fn(&str) -> Vec<Nanos>,
}

/// Observations on their way to the collector.
pub(crate) struct Observations {
    pub(crate) beats: ArrayQueue<LoopLag>,
    pub(crate) canary: ArrayQueue<CanaryReading>,
}

impl Observations {
    pub(crate) fn new() -> Self {
        Self { beats: ArrayQueue::new(QUEUE), canary: ArrayQueue::new(QUEUE) }
    }

    /// Everything that has come since the last call.
    pub(crate) fn take_all(&self) -> (Vec<LoopLag>, Vec<CanaryReading>) {
        let beats = std::iter::from_fn(|| self.beats.pop()).collect();
        (beats, std::iter::from_fn(|| self.canary.pop()).collect())
    }
}

/// Notes how late this worker's loop is called, from the epoch on.
pub(crate) async fn measure_loop_lag(
    worker: u32,
    timer: Timer,
    epoch: Nanos,
    seen: Arc<Observations>,
) {
    let mut due = epoch;
    loop {
        due += BEAT_EVERY;
        timer.sleep_until(due).await;
        let lag = now() - due;
        // A full queue means that the collector sleeps; its own lateness is on record elsewhere.
        let _ = seen.beats.push(LoopLag { worker, due: due - epoch, lag });
        // Beats missed in a stall are one late beat, not many.
        due += Nanos(lag.0 / BEAT_EVERY.0 * BEAT_EVERY.0);
    }
}

/// When a request of the canary is due after the epoch. Not at equal gaps: what this process does
/// once a second would meet every fifth of them, and count for a fifth of the time.
fn canary_instant(every: Nanos, number: u64) -> Nanos {
    // The fractions of multiples of the golden ratio lie evenly, and two in turn are never close.
    let part = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    Nanos(every.0 * number + ((every.0 * part) >> 32))
}

/// A worker's share of the canary.
pub(crate) struct CanaryTask {
    pub(crate) canary: Canary,
    pub(crate) worker: u32,
    pub(crate) workers: u32,
    pub(crate) lead: Rc<WakeLead>,
    pub(crate) epoch: Nanos,
    pub(crate) seen: Arc<Observations>,
}

impl CanaryTask {
    /// Asks the canary again and again, each time at its instant.
    pub(crate) async fn run(self, timer: Timer) {
        let task = Rc::new(self);
        let client = Rc::new(Client::new(Arc::clone(&task.canary.endpoint)));
        client.connect_ahead(1).await;
        let mut number = u64::from(task.worker);
        loop {
            // What a stall made impossible is not made up for.
            while task.epoch + canary_instant(task.canary.every, number) < now() {
                number += u64::from(task.workers);
            }
            let due = task.epoch + canary_instant(task.canary.every, number);
            task.lead.sleep_until(&timer, due).await;
            yield_until(due).await;
            number += u64::from(task.workers);
            let (task, client) = (Rc::clone(&task), Rc::clone(&client));
            tokio::task::spawn_local(async move {
                let answer = tokio::time::timeout(PATIENCE, task.probe(&client, due)).await;
                // One that does not answer is on record too, with nothing to compare.
                let none = CanaryReading {
                    due: due - task.epoch,
                    slip: Nanos::ZERO,
                    errors_ns: Vec::new(),
                };
                let _ = task.seen.canary.push(answer.ok().flatten().unwrap_or(none));
            });
        }
    }

    async fn probe(&self, client: &Client, due: Nanos) -> Option<CanaryReading> {
        let mut exchange = Exchange::default();
        client.send(self.canary.body.clone(), &mut exchange).await;
        let sent = exchange.stamps.sent_first?;
        let connect = exchange.stamps.connect.map_or(Nanos::ZERO, Connect::length);
        let written = (self.canary.truth)(exchange.text.as_deref()?);
        let error = |(stamp, truth): (Nanos, Nanos)| stamp.0.cast_signed() - truth.0.cast_signed();
        let stamps = exchange.chunks.iter().map(|chunk| chunk.at);
        Some(CanaryReading {
            due: due - self.epoch,
            slip: sent - due - connect,
            errors_ns: stamps.zip(written).map(error).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where they meet what happens once a second, and how close two of them come.
    #[test]
    fn the_canary_is_asked_at_all_parts_of_a_second() {
        let every = Nanos::from_millis(200);
        let instants: Vec<Nanos> = (0..1_000).map(|number| canary_instant(every, number)).collect();
        assert!(instants.windows(2).all(|pair| pair[1] - pair[0] > Nanos::from_millis(120)));
        let mut met = [0; 20];
        for at in &instants {
            met[(at.0 % 1_000_000_000 / 50_000_000) as usize] += 1;
        }
        assert!(met.iter().all(|n| (40..=60).contains(n)), "{met:?}");
    }
}
