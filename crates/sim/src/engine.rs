//! The engine as its drivers see it, whichever model is behind it.

use goodput_model::Nanos;

use crate::batching::Batching;
use crate::job::{Gauges, Job, Output, QueueFull, TokenOf};
use crate::profile::{Model, Profile};
use crate::slots::Slots;

/// A simulated engine.
pub struct Engine(Kind);

enum Kind {
    Slots(Box<Slots>),
    Batching(Box<Batching>),
}

macro_rules! each {
    ($self:expr, $engine:ident => $what:expr) => {
        match $self {
            Kind::Slots($engine) => $what,
            Kind::Batching($engine) => $what,
        }
    };
}

impl Engine {
    /// An engine that has never run.
    pub fn new(profile: &Profile, seed: u64, token_of: TokenOf) -> Self {
        Self(match &profile.engine {
            Model::Delays(delays) => Kind::Slots(Box::new(Slots::new(delays, seed))),
            Model::Batching(batching) => {
                Kind::Batching(Box::new(Batching::new(batching, seed, token_of)))
            }
        })
    }

    /// A request arrives at `at`, to which the caller has advanced before. Requests queue in the
    /// order of these calls.
    pub fn submit(&mut self, at: Nanos, job: Job) -> Result<(), QueueFull> {
        match &mut self.0 {
            Kind::Slots(engine) => engine.submit(at, &job),
            Kind::Batching(engine) => engine.submit(at, job),
        }
    }

    /// The client left: the request's place and blocks are free at once, and nothing more comes of
    /// it. A step under way still takes its time.
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
    /// what is under way ends later by that, and nothing begins before it is over.
    pub fn hold(&mut self, from: Nanos, length: Nanos) {
        each!(&mut self.0, engine => engine.hold(from, length));
    }

    /// Forgets every cached block that no running request holds, and lets none of those held be
    /// found by others.
    pub fn reset_prefix_cache(&mut self) {
        if let Kind::Batching(engine) = &mut self.0 {
            engine.reset_prefix_cache();
        }
    }

    /// How it stands.
    pub fn gauges(&self) -> Gauges {
        each!(&self.0, engine => engine.gauges())
    }
}
