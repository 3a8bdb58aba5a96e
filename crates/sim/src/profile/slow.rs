//! The same engine, slower or faster.

use std::time::Duration;

use goodput_model::Delay;

use super::{BatchingProfile, Delays, EngineProfile, Profile, Time};
use crate::step::StepCost;

impl Profile {
    /// Multiplies every time that the engine takes. How long it may be idle is not among them.
    pub(super) fn slow_down(&mut self, factor: f64) {
        match &mut self.engine {
            EngineProfile::Delays(Delays { ttft, itl, .. }) => {
                *ttft = slow_delay(*ttft, factor);
                *itl = slow_delay(*itl, factor);
            }
            EngineProfile::Batching(batching) => batching.slow_down(factor),
        }
    }
}

impl BatchingProfile {
    fn slow_down(&mut self, factor: f64) {
        let later = |time: &mut Time| time.0 = slow_time(time.0, factor);
        self.step.slow_down(factor);
        later(&mut self.scheduler.frontend);
        later(&mut self.start.cold_start);
        later(&mut self.start.first_use);
        if let Some(speculative) = &mut self.speculative {
            later(&mut speculative.draft);
        }
        if let Some(split) = &mut self.disaggregated {
            later(&mut split.latency);
            split.ns_per_token *= factor;
        }
    }
}

impl StepCost {
    /// Multiplies everything that a step takes.
    pub(super) fn slow_down(&mut self, factor: f64) {
        self.base_ms *= factor;
        self.kv_ns *= factor;
        self.attention_ns *= factor;
        for (_, ms) in self.decode_ms.iter_mut().chain(&mut self.prefill_ms) {
            *ms *= factor;
        }
    }
}

fn slow_delay(delay: Delay, factor: f64) -> Delay {
    let longer = |time| slow_time(time, factor);
    match delay {
        Delay::Fixed(time) => Delay::Fixed(longer(time)),
        Delay::Uniform(low, high) => Delay::Uniform(longer(low), longer(high)),
        Delay::Exponential(mean) => Delay::Exponential(longer(mean)),
        Delay::LogNormal(median, sigma) => Delay::LogNormal(longer(median), sigma),
    }
}

fn slow_time(time: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(time.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}
