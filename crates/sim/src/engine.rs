//! The engine as its drivers see it, whichever model is behind it.

use goodput_model::Nanos;

use crate::batching::BatchingEngine;
use crate::job::{Gauges, Output, QueueFull, SimJob, TokenOf};
use crate::profile::{EngineProfile, Profile};
use crate::slots::Slots;

/// A simulated engine.
pub struct SimEngine(EngineModel);

enum EngineModel {
    Slots(Box<Slots>),
    Batching(Box<BatchingEngine>),
}

macro_rules! each {
    ($self:expr, $engine:ident => $what:expr) => {
        match $self {
            EngineModel::Slots($engine) => $what,
            EngineModel::Batching($engine) => $what,
        }
    };
}

impl SimEngine {
    /// An engine that has never run.
    pub fn new(profile: &Profile, seed: u64, token_of: TokenOf) -> Self {
        Self(match &profile.engine {
            EngineProfile::Delays(delays) => EngineModel::Slots(Box::new(Slots::new(delays, seed))),
            EngineProfile::Batching(batching) => {
                EngineModel::Batching(Box::new(BatchingEngine::new(batching, seed, token_of)))
            }
        })
    }

    /// A request arrives at `at`, to which the caller has advanced before. Requests queue in the
    /// order of these calls.
    pub fn submit(&mut self, at: Nanos, job: SimJob) -> Result<(), QueueFull> {
        match &mut self.0 {
            EngineModel::Slots(engine) => engine.submit(at, &job),
            EngineModel::Batching(engine) => engine.submit(at, job),
        }
    }

    /// The client left: the request's place and blocks are free at once, and nothing more comes of
    /// it. A running step still takes its time.
    pub fn cancel(&mut self, id: u64) {
        each!(&mut self.0, engine => engine.cancel(id));
    }

    /// When there is next something to do; nothing while idle.
    pub fn next(&self) -> Option<Nanos> {
        each!(&self.0, engine => engine.next())
    }

    /// Does everything that is due up to and including `until`, and adds what came of it to `out`
    /// in order of time.
    pub fn advance(&mut self, until: Nanos, out: &mut Vec<Output>) {
        each!(&mut self.0, engine => engine.advance(until, out));
    }

    /// The whole engine stands still for `length` from `from`, to which the caller has advanced:
    /// a running step ends later by that, and nothing begins before it is over.
    pub fn hold(&mut self, from: Nanos, length: Nanos) {
        each!(&mut self.0, engine => engine.hold(from, length));
    }

    /// Forgets every cached block that no running request holds, and lets none of those held be
    /// found by others.
    pub fn reset_prefix_cache(&mut self) {
        if let EngineModel::Batching(engine) = &mut self.0 {
            engine.reset_prefix_cache();
        }
    }

    /// Its gauges.
    pub fn gauges(&self) -> Gauges {
        each!(&self.0, engine => engine.gauges())
    }
}
