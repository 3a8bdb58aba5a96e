//! `key=value`: changes to a profile from the command line.

use std::fmt::Display;
use std::str::FromStr;

use super::{BatchingProfile, Delays, Disaggregated, EngineProfile, Profile, Speculative};

/// A setting that `key=value` changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileSetting {
    /// Its key.
    pub key: &'static str,
    /// What a value looks like.
    pub value: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Which profiles have it.
    pub scope: SettingScope,
}

/// Which profiles have a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingScope {
    /// All.
    All,
    /// Those with fixed or drawn delays.
    Delays,
    /// Those with continuous batching.
    Batching,
}

impl SettingScope {
    /// All of them, in the order of [`SETTINGS`], each with a heading.
    pub const ALL: [(Self, &'static str); 3] = [
        (Self::All, "every profile"),
        (Self::Delays, "profiles with delays"),
        (Self::Batching, "profiles with batching"),
    ];
}

const fn setting(
    scope: SettingScope,
    key: &'static str,
    value: &'static str,
    about: &'static str,
) -> ProfileSetting {
    ProfileSetting { key, value, about, scope }
}

use SettingScope::{All, Batching, Delays as OfDelays};

/// Every setting, as help, messages and docs/profiles.md have it.
pub const SETTINGS: [ProfileSetting; 23] = [
    setting(All, "model", "NAME", "name of the model"),
    setting(All, "max_model_len", "TOKENS", "prompt and answer together"),
    setting(All, "default_tokens", "TOKENS", "length of an answer without a limit"),
    setting(All, "answer", "LENGTHS|none", "length at which answers end by themselves"),
    setting(All, "image_tokens", "TOKENS", "prompt tokens of an image"),
    setting(All, "max_queue", "N|none", "requests that may wait"),
    setting(All, "time_factor", "FACTOR", "multiplies every time of the engine as set so far"),
    setting(OfDelays, "ttft", "DELAY", "from a slot to the first token"),
    setting(OfDelays, "itl", "DELAY", "from one token to the next"),
    setting(OfDelays, "slots", "N", "requests served at once"),
    setting(Batching, "max_num_seqs", "N", "sequences that run at once"),
    setting(Batching, "max_num_batched_tokens", "TOKENS", "tokens of a step"),
    setting(
        Batching,
        "chunked_prefill",
        "on|off",
        "off: whole prompts go first, in steps of their own, and decoding waits",
    ),
    setting(Batching, "kv_blocks", "N", "blocks of the KV cache"),
    setting(Batching, "prefix_caching", "on|off", "whether cached blocks are reused"),
    setting(Batching, "speculative", "K:ACCEPTANCE|none", "draft tokens of a step"),
    setting(Batching, "disaggregated", "WORKERS", "workers that only prefill; 0 is off"),
    setting(
        Batching,
        "precision",
        "native|fp8",
        "fp8: a step takes 0.6 of its time, a KV token half of its bytes",
    ),
    setting(
        Batching,
        "tp",
        "GPUS[:EFFICIENCY]",
        "times as many GPUs: each doubling is 2 × 0.85 times as fast, with twice the KV cache",
    ),
    setting(Batching, "cold_start", "TIME", "delay before the first step of a cold engine"),
    setting(Batching, "idle_timeout", "TIME|none", "idle time after which the engine is cold"),
    setting(Batching, "first_use", "TIME", "added to the first step of each shape"),
    setting(Batching, "frontend", "TIME", "from arrival to the waiting queue"),
];

/// The keys of these profiles, as a list.
fn keys(scope: SettingScope) -> String {
    let own = SETTINGS.iter().filter(|setting| setting.scope == scope);
    own.map(|setting| setting.key).collect::<Vec<_>>().join(", ")
}

impl Profile {
    /// Changes one setting, or says why not; then nothing has changed.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let mut changed = self.clone();
        changed.set_value(key, value)?;
        changed.check()?;
        *self = changed;
        Ok(())
    }

    fn set_value(&mut self, key: &str, value: &str) -> Result<(), String> {
        match (key, &mut self.engine) {
            ("model", _) => value.clone_into(&mut self.model),
            ("max_model_len", _) => self.max_model_len = parse_number(key, value)?,
            ("default_tokens", _) => self.default_tokens = parse_number(key, value)?,
            ("image_tokens", _) => self.image_tokens = parse_number(key, value)?,
            ("answer", _) => {
                self.answer = if value == "none" { None } else { Some(parse_value(key, value)?) };
            }
            ("time_factor", _) => {
                let factor = value.parse().ok().filter(|factor| (0.01..=100.0).contains(factor));
                self.slow_down(factor.ok_or_else(|| {
                    format!("time_factor is a number from 0.01 to 100, not `{value}`")
                })?);
            }
            ("max_queue", EngineProfile::Delays(delays)) => {
                delays.max_queue = parse_limit(key, value)?;
            }
            ("max_queue", EngineProfile::Batching(batching)) => {
                batching.scheduler.max_queue = parse_limit(key, value)?;
            }
            (_, EngineProfile::Delays(delays)) => return delays.set_value(key, value),
            (_, EngineProfile::Batching(batching)) => return batching.set_value(key, value),
        }
        Ok(())
    }
}

impl Delays {
    fn set_value(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "ttft" => self.ttft = parse_value(key, value)?,
            "itl" => self.itl = parse_value(key, value)?,
            "slots" => self.slots = parse_number(key, value)?,
            _ if has_key(Batching, key) => {
                return Err(format!(
                    "`{key}` belongs to a profile with continuous batching; this one has fixed \
                     delays: {}",
                    keys(OfDelays)
                ));
            }
            _ => return Err(unknown_setting(key, OfDelays)),
        }
        Ok(())
    }
}

impl BatchingProfile {
    fn set_value(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "max_num_seqs" => self.scheduler.max_num_seqs = parse_number(key, value)?,
            "max_num_batched_tokens" => {
                self.scheduler.max_num_batched_tokens = parse_number(key, value)?;
            }
            "frontend" => self.scheduler.frontend = parse_value(key, value)?,
            "kv_blocks" => self.kv.blocks = parse_number(key, value)?,
            "prefix_caching" => {
                self.kv.prefix_caching = switch(key, value)?;
            }
            "chunked_prefill" => self.scheduler.chunked_prefill = switch(key, value)?,
            "precision" => self.hardware.precision = value.parse()?,
            "tp" => self.hardware = self.hardware.with_tensor_parallel(value)?,
            "speculative" => self.speculative = parse_speculative(value, self.speculative)?,
            "disaggregated" => {
                let workers = parse_number(key, value)?;
                let rest = self.disaggregated.unwrap_or(Disaggregated {
                    prefill_workers: 0,
                    latency: super::Time::default(),
                    ns_per_token: 0.0,
                });
                self.disaggregated =
                    (workers > 0).then_some(Disaggregated { prefill_workers: workers, ..rest });
            }
            "cold_start" => self.start.cold_start = parse_value(key, value)?,
            "idle_timeout" => {
                self.start.idle_timeout =
                    if value == "none" { None } else { Some(parse_value(key, value)?) };
            }
            "first_use" => self.start.first_use = parse_value(key, value)?,
            _ if has_key(OfDelays, key) => {
                return Err(format!(
                    "`{key}` belongs to a profile with fixed delays; this one has continuous \
                     batching, whose times come from its steps: {}",
                    keys(Batching)
                ));
            }
            _ => return Err(unknown_setting(key, Batching)),
        }
        Ok(())
    }
}

/// `K:ACCEPTANCE`, or `none`.
fn parse_speculative(
    value: &str,
    present: Option<Speculative>,
) -> Result<Option<Speculative>, String> {
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

fn switch(key: &str, value: &str) -> Result<bool, String> {
    match value {
        "on" | "true" => Ok(true),
        "off" | "false" => Ok(false),
        _ => Err(format!("{key} is on or off, not `{value}`")),
    }
}

fn has_key(scope: SettingScope, key: &str) -> bool {
    SETTINGS.iter().any(|setting| setting.scope == scope && setting.key == key)
}

fn unknown_setting(key: &str, own: SettingScope) -> String {
    format!("no setting `{key}`; this profile has {}, {}", keys(All), keys(own))
}

fn parse_number(key: &str, value: &str) -> Result<u32, String> {
    value.parse().map_err(|_| format!("{key} is a whole number below 2^32, not `{value}`"))
}

fn parse_limit(key: &str, value: &str) -> Result<Option<u32>, String> {
    if value == "none" { Ok(None) } else { parse_number(key, value).map(Some) }
}

fn parse_value<T: FromStr>(key: &str, value: &str) -> Result<T, String>
where
    T::Err: Display,
{
    value.parse().map_err(|error| format!("{key}: {error}"))
}
