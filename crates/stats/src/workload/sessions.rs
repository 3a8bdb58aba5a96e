//! Sessions: who came when, and who was in thought.

use std::collections::HashMap;

use goodput_model::{Nanos, Phase, RequestRecord};

use crate::summary::SessionsSummary;
use crate::window::Window;

/// Filled by requests of all phases, in the order of the log: a step is on record before the next
/// one begins.
#[derive(Debug, Default)]
pub(crate) struct SessionTally {
    sessions: HashMap<u64, SessionProgress>,
    requests: u64,
    turns_max: u32,
    /// Time between steps that lies inside the window.
    paused: Nanos,
    /// Due and sent instants of the first requests of measured sessions.
    pub(crate) due: Vec<Nanos>,
    pub(crate) sent: Vec<Nanos>,
}

/// How far a session has come.
#[derive(Debug)]
struct SessionProgress {
    turn: u32,
    /// End of the latest step.
    end: Nanos,
    has_begun: bool,
}

impl SessionTally {
    pub(super) fn add(&mut self, record: &RequestRecord, window: Window) {
        let Some(session) = record.planned.session else { return };
        let (turn, end) = (record.planned.turn, record.end());
        self.requests += 1;
        self.turns_max = self.turns_max.max(turn.saturating_add(1));
        let state =
            self.sessions.entry(session).or_insert(SessionProgress { turn, end, has_begun: false });
        if turn > state.turn {
            self.paused += window.overlap(state.end, record.scheduled);
            (state.turn, state.end) = (turn, end);
        } else {
            state.end = state.end.max(end);
        }
        // Of a first step that fans out, one request stands for the arrival.
        if turn == 0 && !state.has_begun {
            state.has_begun = true;
            if record.phase == Phase::Measured {
                self.due.push(record.scheduled);
                self.sent.extend(record.exchange.stamps.sent_first);
            }
        }
    }

    pub(super) fn finish(self, window: Window, cut_requests: u64) -> Option<SessionsSummary> {
        let n = self.sessions.len() as u64;
        let seconds = window.seconds();
        let is_steady = seconds > 0.0 && !window.is_makespan();
        let began = self.due.iter().filter(|at| window.contains(**at)).count() as f64;
        (n > 0).then(|| SessionsSummary {
            n,
            requests_mean: self.requests as f64 / n as f64,
            turns_max: self.turns_max,
            arrivals_per_s: is_steady.then(|| began / seconds),
            thinking_mean: is_steady.then(|| self.paused.as_secs() / seconds),
            cut_requests,
        })
    }
}
