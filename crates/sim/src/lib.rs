//! *The engine model*: what a serving engine does, with time as a parameter.
//!
//! An [`SimEngine`] is told what arrives and when ([`SimEngine::submit`]), says when it next has
//! something to do ([`SimEngine::next`]), and gives the tokens that are due
//! ([`SimEngine::advance`]). It knows no clock and does no I/O: a server drives it along the real
//! clock, [`simulate`] as fast as the processor goes. Everything random is a function of the seed
//! and the request's number, so a run can be repeated exactly.
//!
//! There are two models. *Delays* has no batching: a request waits for one of some slots, then each
//! token comes after a drawn time. *Batching* is iteration-level continuous batching over a paged
//! KV cache, as vLLM's scheduler does it, with a step time fitted to measurements. A [`Profile`]
//! says which, and with what numbers.

mod batching;
mod engine;
mod job;
mod kv;
mod profile;
mod simulate;
mod slots;
mod step;

pub use engine::SimEngine;
pub use job::{Gauges, Output, QueueFull, SimJob, TokenOf};
pub use profile::{
    BatchingProfile, Delays, Disaggregated, EngineProfile, Hardware, Kv, Precision, Profile,
    ProfileSetting, SETTINGS, Scheduler, SettingScope, Speculative, StartupCost, Time,
};
pub use simulate::{JobArrival, JobOutcome, simulate};
pub use step::{StepCost, StepShape};
