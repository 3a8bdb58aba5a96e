//! What a profile may say.

use std::time::Duration;

use super::{
    BatchingProfile, Delays, Disaggregated, EngineProfile, Kv, Profile, Scheduler, Speculative,
    Time,
};
use crate::step::StepCost;

/// Requests, sequences and slots at most: beyond it a profile is a slip of the keyboard.
pub(super) const MANY: u32 = 10_000_000;

/// A day: longer than any step, transfer or start.
const LONG: Duration = Duration::from_hours(24);

impl Profile {
    /// Says what is out of range. [`Profile::parse`] and [`Profile::set`] have done so; a profile
    /// put together by hand has to be asked.
    pub fn check(&self) -> Result<(), String> {
        check_range("max_model_len", self.max_model_len, 1, 100_000_000)?;
        check_range("default_tokens", self.default_tokens, 1, MANY)?;
        check_range("image_tokens", self.image_tokens, 0, MANY)?;
        if self.model.is_empty() || self.model.chars().any(char::is_control) {
            return Err("model must be a name".to_owned());
        }
        match &self.engine {
            EngineProfile::Delays(delays) => delays.check(),
            EngineProfile::Batching(batching) => batching.check(),
        }
    }
}

impl Delays {
    fn check(&self) -> Result<(), String> {
        check_range("slots", self.slots, 1, MANY)
    }
}

impl BatchingProfile {
    fn check(&self) -> Result<(), String> {
        self.scheduler.check()?;
        self.kv.check()?;
        self.step.check()?;
        if let Some(speculative) = &self.speculative {
            speculative.check()?;
        }
        if let Some(disaggregated) = &self.disaggregated {
            disaggregated.check()?;
        }
        self.hardware.check()?;
        check_time("cold_start", self.start.cold_start)?;
        check_time("idle_timeout", self.start.idle_timeout.unwrap_or_default())?;
        check_time("first_use", self.start.first_use)
    }
}

impl Scheduler {
    fn check(&self) -> Result<(), String> {
        check_range("max_num_seqs", self.max_num_seqs, 1, MANY)?;
        check_range("max_num_batched_tokens", self.max_num_batched_tokens, 1, MANY)?;
        if self.max_num_batched_tokens < self.max_num_seqs {
            return Err(format!(
                "max_num_batched_tokens ({}) must be at least max_num_seqs ({}): each running \
                 sequence needs a token per step",
                self.max_num_batched_tokens, self.max_num_seqs
            ));
        }
        if self.max_queue == Some(0) {
            // Every request waits for a step's end at least, so this engine would refuse all.
            return Err("max_queue must be at least 1 with continuous batching".to_owned());
        }
        check_time("frontend", self.frontend)
    }
}

impl Kv {
    fn check(&self) -> Result<(), String> {
        check_range("kv_blocks", self.blocks, 1, MANY)?;
        check_range("block_tokens", self.block_tokens, 1, 65_536)
    }
}

impl Speculative {
    fn check(&self) -> Result<(), String> {
        check_range("speculative tokens", self.tokens, 1, 64)?;
        if !(0.0..=1.0).contains(&self.acceptance) {
            return Err(format!("acceptance ({}) must be from 0 to 1", self.acceptance));
        }
        check_time("draft", self.draft)
    }
}

impl Disaggregated {
    fn check(&self) -> Result<(), String> {
        check_range("prefill_workers", self.prefill_workers, 1, 1024)?;
        check_amount("ns_per_token", self.ns_per_token, 1e9)?;
        check_time("latency", self.latency)
    }
}

impl StepCost {
    fn check(&self) -> Result<(), String> {
        const MS: f64 = 86_400_000.0;
        check_amount("base_ms", self.base_ms, MS)?;
        check_amount("overlap", self.overlap, 1.0)?;
        check_amount("kv_ns", self.kv_ns, 1e9)?;
        check_amount("attention_ns", self.attention_ns, 1e9)?;
        check_range("reference_context", self.reference_context, 0, 100_000_000)?;
        for (name, table) in [("decode_ms", &self.decode_ms), ("prefill_ms", &self.prefill_ms)] {
            if table.is_empty() || table.len() > 10_000 {
                return Err(format!("{name} needs from 1 to 10,000 points"));
            }
            let mut last = (0, self.base_ms);
            for &(tokens, ms) in table {
                check_amount(name, ms, MS)?;
                if tokens <= last.0 {
                    return Err(format!(
                        "{name}: points must be in rising order: {tokens} after {}",
                        last.0
                    ));
                }
                if ms < last.1 {
                    return Err(format!(
                        "{name}: {ms} ms at {tokens} after {} ms: more work cannot take less time, \
                         nor less than base_ms",
                        last.1
                    ));
                }
                last = (tokens, ms);
            }
        }
        Ok(())
    }
}

fn check_range(name: &str, value: u32, low: u32, high: u32) -> Result<(), String> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(format!("{name} ({value}) must be from {low} to {high}"))
    }
}

fn check_amount(name: &str, value: f64, high: f64) -> Result<(), String> {
    if value.is_finite() && (0.0..=high).contains(&value) {
        Ok(())
    } else {
        Err(format!("{name} ({value}) must be a number from 0 to {high}"))
    }
}

fn check_time(name: &str, time: Time) -> Result<(), String> {
    if time.0 <= LONG { Ok(()) } else { Err(format!("{name} ({time}) must be at most a day")) }
}
