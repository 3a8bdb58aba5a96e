//! The users of a closed loop: each plays one session after another.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use goodput_clock::{Timer, now};
use goodput_model::{Nanos, Phase};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::feeder::SessionQueue;
use crate::pacing::StepInstant;
use crate::senders::Sender;
use crate::session::PreparedSession;
use crate::worker::EngineWorker;

/// How long a user of a closed loop waits after a failure that cost no time. Without it a dead
/// server would be asked thousands of times a second.
const BACK_OFF: Nanos = Nanos::from_millis(100);

/// The users of a closed loop that live on one worker.
pub(crate) struct Users {
    pub(crate) count: u32,
    pub(crate) habits: UserSettings,
    /// Shared by all workers, so that sessions begin in order of their number.
    pub(crate) queue: Arc<SessionQueue>,
    pub(crate) start: oneshot::Receiver<Nanos>,
    /// Users may take sessions as long as this is there.
    pub(crate) sender: Sender,
}

/// What users do between sessions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UserSettings {
    pub(crate) think_time: Nanos,
    /// Whether they also think before their first session.
    pub(crate) pause_first: bool,
}

impl EngineWorker {
    /// Lets users play until the run has sent enough, the workload ends, or the run is stopped.
    pub(crate) async fn serve_closed(self: &Rc<Self>, users: Users) {
        let Users { count, habits, queue, start, sender } = users;
        let Ok(epoch) = start.await else { return };
        let pause = if habits.pause_first { habits.think_time } else { Nanos::ZERO };
        tokio::select! {
            biased;
            () = self.shared.control.wait_until_stopped() => return,
            () = self.timer.sleep_until(epoch + pause) => {}
        }
        let (free, mut next) = unbounded_channel();
        for _ in 0..count {
            let _ = free.send(());
        }
        loop {
            tokio::select! {
                biased;
                () = self.shared.control.wait_until_stopped() => break,
                Some(()) = next.recv() => {}
            }
            let Some(mut visit) = self.next_visit(&queue).await else { break };
            let requests = visit.first.len();
            if !visit.first.assign_phases(|| self.next_phase(now())) {
                break;
            }
            self.count_cut(requests - visit.first.len());
            let think_time = habits.think_time;
            let user = ClosedUser { think_time, timer: self.timer.clone(), free: free.clone() };
            self.begin_session_for(user, visit);
        }
        drop(sender);
    }

    fn begin_session_for(self: &Rc<Self>, user: ClosedUser, visit: PreparedSession) {
        self.enter_session();
        let worker = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let last = worker.play_session(visit, StepInstant { at: None, pacer_lag: None }).await;
            worker.leave_session();
            user.think_then_ask(last.ended, last.failed_at_once).await;
        });
    }

    /// The phase of the next request of a closed loop; `None` when enough has been sent.
    pub(crate) fn next_phase(&self, at: Nanos) -> Option<Phase> {
        let phase = self.shared.timeline.next_phase(at - self.epoch());
        if phase.is_none() {
            self.shared.sent_all.store(true, Relaxed);
        }
        phase
    }

    /// The next session; `None` at the end of the workload, or when the run is stopped. The feeder
    /// is ahead but for the very first ones and for very long prompts.
    async fn next_visit(&self, queue: &SessionQueue) -> Option<PreparedSession> {
        loop {
            if self.shared.control.is_stopping() {
                return None;
            }
            // Looked at before the queue: what was put there before the end must not be missed.
            let is_end = self.shared.fed_all.load(Acquire);
            let visit = queue.pop();
            if visit.is_some() || is_end {
                return visit;
            }
            self.timer.sleep_until(now() + Nanos::from_micros(100)).await;
        }
    }
}

/// One user of a closed loop, between an answer and the next question.
struct ClosedUser {
    think_time: Nanos,
    timer: Timer,
    free: UnboundedSender<()>,
}

impl ClosedUser {
    /// The user asks again a think time after the answer ended.
    async fn think_then_ask(self, ended: Nanos, failed_at_once: bool) {
        let pause = if failed_at_once { self.think_time.max(BACK_OFF) } else { self.think_time };
        if pause > Nanos::ZERO {
            self.timer.sleep_until(ended + pause).await;
        }
        // The worker no longer listens once the run has sent enough.
        let _ = self.free.send(());
    }
}
