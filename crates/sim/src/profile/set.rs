//! `key=value`: changes to a profile from the command line.

use std::fmt::Display;
use std::str::FromStr;

use super::{BatchingProfile, Delays, Disaggregated, EngineProfile, Profile, Speculative};

/// Keys that every profile knows.
const COMMON: &str =
    "model, max_model_len, default_tokens, answer, image_tokens, max_queue, time_factor";
/// Keys of a profile with [delays].
const DELAYS: &str = "ttft, itl, slots";
/// Keys of a profile with [scheduler].
const BATCHING: &str = "max_num_seqs, max_num_batched_tokens, kv_blocks, prefix_caching, \
                        speculative, disaggregated, cold_start, idle_timeout, first_use, frontend";

impl Profile {
    /// Changes one setting, or says why not; then nothing has changed.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let mut changed = self.clone();
        changed.change(key, value)?;
        changed.check()?;
        *self = changed;
        Ok(())
    }

    fn change(&mut self, key: &str, value: &str) -> Result<(), String> {
        match (key, &mut self.engine) {
            ("model", _) => value.clone_into(&mut self.model),
            ("max_model_len", _) => self.max_model_len = number(key, value)?,
            ("default_tokens", _) => self.default_tokens = number(key, value)?,
            ("image_tokens", _) => self.image_tokens = number(key, value)?,
            ("answer", _) => {
                self.answer = if value == "none" { None } else { Some(text(key, value)?) };
            }
            ("time_factor", _) => {
                let factor = value.parse().ok().filter(|factor| (0.01..=100.0).contains(factor));
                self.slow_down(factor.ok_or_else(|| {
                    format!("time_factor is a number from 0.01 to 100, not `{value}`")
                })?);
            }
            ("max_queue", EngineProfile::Delays(delays)) => delays.max_queue = limit(key, value)?,
            ("max_queue", EngineProfile::Batching(batching)) => {
                batching.scheduler.max_queue = limit(key, value)?;
            }
            (_, EngineProfile::Delays(delays)) => return delays.change(key, value),
            (_, EngineProfile::Batching(batching)) => return batching.change(key, value),
        }
        Ok(())
    }
}

impl Delays {
    fn change(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "ttft" => self.ttft = text(key, value)?,
            "itl" => self.itl = text(key, value)?,
            "slots" => self.slots = number(key, value)?,
            _ if has(BATCHING, key) => {
                return Err(format!(
                    "`{key}` belongs to a profile with continuous batching; this one has fixed \
                     delays: {DELAYS}"
                ));
            }
            _ => return Err(unknown_setting(key, DELAYS)),
        }
        Ok(())
    }
}

impl BatchingProfile {
    fn change(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "max_num_seqs" => self.scheduler.max_num_seqs = number(key, value)?,
            "max_num_batched_tokens" => {
                self.scheduler.max_num_batched_tokens = number(key, value)?;
            }
            "frontend" => self.scheduler.frontend = text(key, value)?,
            "kv_blocks" => self.kv.blocks = number(key, value)?,
            "prefix_caching" => {
                self.kv.prefix_caching = match value {
                    "on" | "true" => true,
                    "off" | "false" => false,
                    _ => return Err(format!("prefix_caching is on or off, not `{value}`")),
                };
            }
            "speculative" => self.speculative = speculative(value, self.speculative)?,
            "disaggregated" => {
                let workers = number(key, value)?;
                let rest = self.disaggregated.unwrap_or(Disaggregated {
                    prefill_workers: 0,
                    latency: super::Time::default(),
                    ns_per_token: 0.0,
                });
                self.disaggregated =
                    (workers > 0).then_some(Disaggregated { prefill_workers: workers, ..rest });
            }
            "cold_start" => self.start.cold_start = text(key, value)?,
            "idle_timeout" => {
                self.start.idle_timeout =
                    if value == "none" { None } else { Some(text(key, value)?) };
            }
            "first_use" => self.start.first_use = text(key, value)?,
            _ if has(DELAYS, key) => {
                return Err(format!(
                    "`{key}` belongs to a profile with fixed delays; this one has continuous \
                     batching, whose times come from its steps: {BATCHING}"
                ));
            }
            _ => return Err(unknown_setting(key, BATCHING)),
        }
        Ok(())
    }
}

/// `K:ACCEPTANCE`, or `none`.
fn speculative(value: &str, present: Option<Speculative>) -> Result<Option<Speculative>, String> {
    if value == "none" {
        return Ok(None);
    }
    let parts = value.split_once(':');
    let read = parts.and_then(|(k, a)| Some((k.parse().ok()?, a.parse().ok()?)));
    let (tokens, acceptance) =
        read.ok_or_else(|| format!("speculative is K:ACCEPTANCE, as in `4:0.7`, not `{value}`"))?;
    let draft = present.map(|present| present.draft).unwrap_or_default();
    Ok(Some(Speculative { tokens, acceptance, draft }))
}

fn has(list: &str, key: &str) -> bool {
    list.split(", ").any(|known| known == key)
}

fn unknown_setting(key: &str, own: &str) -> String {
    format!("no setting `{key}`; this profile has {COMMON}, {own}")
}

fn number(key: &str, value: &str) -> Result<u32, String> {
    value.parse().map_err(|_| format!("{key} is a whole number below 2^32, not `{value}`"))
}

fn limit(key: &str, value: &str) -> Result<Option<u32>, String> {
    if value == "none" { Ok(None) } else { number(key, value).map(Some) }
}

fn text<T: FromStr>(key: &str, value: &str) -> Result<T, String>
where
    T::Err: Display,
{
    value.parse().map_err(|error| format!("{key}: {error}"))
}
