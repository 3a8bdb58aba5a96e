//! Playing sessions: one step after another, each at its instant.
//!
//! A step is due a pause after the last request of the step before has ended. Its bodies are built
//! before the pause, so nothing is built between a scheduled instant and the socket unless there is
//! no pause; what building takes then shows as slip.
//!
//! A session whose main request fails is over: a user who gets an error leaves. What it would have
//! asked is counted, not sent.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use goodput_clock::now;
use goodput_model::{Nanos, Phase};

use crate::pacing::StepInstant;
use crate::session::{PreparedRequest, PreparedSession, PreparedStep, RemainingSteps};
use crate::worker::{Carried, EngineWorker, RequestOutcome};

impl EngineWorker {
    /// Begins a session of an open loop, and returns at once.
    pub(crate) fn begin_session(self: &Rc<Self>, visit: PreparedSession, due: StepInstant) {
        self.enter_session();
        let worker = Rc::clone(self);
        tokio::task::spawn_local(async move {
            worker.play_session(visit, due).await;
            worker.leave_session();
        });
    }

    /// Plays a session to its end. What became of its last step comes back.
    pub(crate) async fn play_session(
        self: &Rc<Self>,
        visit: PreparedSession,
        due: StepInstant,
    ) -> RequestOutcome {
        let PreparedSession { first, rest, .. } = visit;
        let phase = first.main.phase;
        let outcome = self.send_step(first, due, rest.is_some()).await;
        match rest {
            None => outcome,
            // On the heap: most sessions have one step, and should not pay for those that have more.
            Some(rest) => Box::pin(self.play_remaining(*rest, phase, outcome)).await,
        }
    }

    /// Asks everything of a step at its instant, and waits for all answers.
    async fn send_step(
        self: &Rc<Self>,
        asking: PreparedStep,
        due: StepInstant,
        goes_on: bool,
    ) -> RequestOutcome {
        // A closed loop has no schedule: the request of a user is due when its turn has
        // come. A client too slow to give everybody a turn shows as users missing from the loop.
        let at = due.at.unwrap_or_else(now);
        let how = Carried { at, pacer_lag: due.pacer_lag, goes_on };
        let PreparedStep { main, others } = asking;
        if others.is_empty() {
            self.perform(main, how).await
        } else {
            Box::pin(self.send_parallel(main, others, how)).await
        }
    }

    /// Asks several things at once. Only the main answer carries the session on.
    async fn send_parallel(
        self: &Rc<Self>,
        main: PreparedRequest,
        others: Vec<PreparedRequest>,
        how: Carried,
    ) -> RequestOutcome {
        let carry = |prepared| {
            let worker = Rc::clone(self);
            let how = Carried { goes_on: false, ..how };
            tokio::task::spawn_local(async move { worker.perform(prepared, how).await })
        };
        let others: Vec<_> = others.into_iter().map(carry).collect();
        let mut outcome = self.perform(main, how).await;
        for other in others {
            if let Ok(other) = other.await {
                outcome.ended = outcome.ended.max(other.ended);
                outcome.failed_at_once |= other.failed_at_once;
            }
        }
        outcome
    }

    /// Plays the later steps.
    async fn play_remaining(
        self: &Rc<Self>,
        mut rest: RemainingSteps,
        phase: Phase,
        mut outcome: RequestOutcome,
    ) -> RequestOutcome {
        let shared = &self.shared;
        while outcome.is_ok && !shared.control.is_stopping() {
            rest.add_answer(outcome.answer.take());
            let due = outcome.ended + rest.pause_before_next();
            // In a closed loop requests are placed when their turn comes, not before.
            let step_phase = if shared.is_closed {
                Some(phase)
            } else {
                shared.timeline.later_phase(due - self.epoch(), phase)
            };
            if step_phase.is_none() {
                break;
            }
            let Some(mut asking) = rest.next(&shared.scribe) else { break };
            let unsent = asking.len();
            let place = || if shared.is_closed { self.next_phase(due) } else { step_phase };
            if !self.wait_for(due).await || !asking.assign_phases(place) {
                self.count_cut(unsent);
                break;
            }
            self.count_cut(unsent - asking.len());
            let goes_on = rest.left > 0;
            let due = StepInstant { at: Some(due), pacer_lag: None };
            if !goes_on {
                drop(rest);
                return self.send_step(asking, due, false).await;
            }
            outcome = self.send_step(asking, due, true).await;
        }
        self.count_cut(rest.left);
        outcome
    }

    /// Waits until shortly before an instant; whether it is still to be kept.
    async fn wait_for(&self, instant: Nanos) -> bool {
        tokio::select! {
            biased;
            () = self.shared.control.wait_until_stopped() => false,
            _ = self.lead.sleep_until(&self.timer, instant) => true,
        }
    }

    /// Counts requests of a session that will not be sent. What goes beyond the number of requests
    /// that a closed loop was asked for was never planned.
    pub(crate) fn count_cut(&self, requests: u64) {
        if requests == 0 {
            return;
        }
        let shared = &self.shared;
        let present = now() + self.lead.get() - self.epoch();
        let is_over = shared.timeline.end().is_some_and(|end| present >= end);
        if is_over || !shared.sent_all.load(Relaxed) {
            shared.cut_requests.fetch_add(requests, Relaxed);
        }
    }
}
