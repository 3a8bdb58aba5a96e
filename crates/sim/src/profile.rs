//! Profiles: what an engine is like, as TOML.

mod check;
mod hardware;
mod plain;
mod set;
mod slow;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use goodput_model::Nanos;
use serde::{Deserialize, Serialize};

pub use hardware::{Hardware, Precision};
pub use set::{ProfileSetting, SETTINGS, SettingScope};

use crate::step::StepCost;
use goodput_model::{Delay, LengthDistribution};

/// What an engine is like.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// What it stands for, in a sentence.
    pub about: String,
    /// Name of the model it serves.
    pub model: String,
    /// Tokens of prompt and answer together that one request may have.
    pub max_model_len: u32,
    /// Tokens of an answer when the request sets no limit.
    pub default_tokens: u32,
    /// Where answers end by themselves; without it they run to their limit.
    pub answer: Option<LengthDistribution>,
    /// Prompt tokens that an image counts for.
    pub image_tokens: u32,
    /// How it serves.
    pub engine: EngineProfile,
}

/// How an engine serves.
#[derive(Debug, Clone, PartialEq)]
pub enum EngineProfile {
    /// Slots and drawn delays.
    Delays(Delays),
    /// Continuous batching.
    Batching(Box<BatchingProfile>),
}

/// No batching: a slot, then drawn delays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delays {
    /// From getting a slot to the first token.
    pub ttft: Delay,
    /// From one token to the next.
    pub itl: Delay,
    /// Requests served at once; the others wait in order of arrival.
    pub slots: u32,
    /// Requests that may wait; more are refused. Without it all may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_queue: Option<u32>,
}

/// Continuous batching over a paged KV cache.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchingProfile {
    /// Limits of a step.
    pub scheduler: Scheduler,
    /// The cache.
    pub kv: Kv,
    /// How long a step takes.
    pub step: StepCost,
    /// Draft tokens.
    pub speculative: Option<Speculative>,
    /// Workers of their own for prefill.
    pub disaggregated: Option<Disaggregated>,
    /// What it runs on, relative to what the rest describes.
    pub hardware: Hardware,
    /// What the first requests pay.
    pub start: StartupCost,
}

/// Limits of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheduler {
    /// Sequences that may run at once.
    pub max_num_seqs: u32,
    /// Tokens that one step may compute.
    pub max_num_batched_tokens: u32,
    /// Whether a prompt may be computed in parts, together with what decodes. Otherwise whole prompts
    /// go first, in steps of their own, and decoding waits for them.
    #[serde(default = "default_true", skip_serializing_if = "is_on")]
    pub chunked_prefill: bool,
    /// Requests that may wait; more are refused. Without it all may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_queue: Option<u32>,
    /// From arrival to the waiting queue: HTTP, template, tokenizer.
    #[serde(default)]
    pub frontend: Time,
}

/// The KV cache of one worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kv {
    /// Blocks there are.
    pub blocks: u32,
    /// Tokens in a block.
    #[serde(default = "block_tokens")]
    pub block_tokens: u32,
    /// Whether blocks can be found again by what is in them.
    #[serde(default = "default_true")]
    pub prefix_caching: bool,
}

fn block_tokens() -> u32 {
    16
}

fn default_true() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_on(value: &bool) -> bool {
    *value
}

/// Speculative decoding: some draft tokens are checked with each decode step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Speculative {
    /// Draft tokens a step.
    pub tokens: u32,
    /// Chance that a draft token is accepted, given those before it were.
    pub acceptance: f64,
    /// What drafting adds to a step.
    #[serde(default)]
    pub draft: Time,
}

/// Prefill on workers of its own, then a transfer of the KV cache.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disaggregated {
    /// Workers that only prefill.
    pub prefill_workers: u32,
    /// What a transfer takes at least.
    #[serde(default)]
    pub latency: Time,
    /// What it takes besides, for each token.
    #[serde(default)]
    pub ns_per_token: f64,
}

/// What the first requests pay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartupCost {
    /// Before the first step of an engine that has never run, or was idle for too long.
    #[serde(default)]
    pub cold_start: Time,
    /// How long idle is too long; without it the engine stays warm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Time>,
    /// Added to the first step of each shape: compilation, graph capture.
    #[serde(default)]
    pub first_use: Time,
}

/// A span of time in a profile: `42ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Time(pub Duration);

impl Time {
    pub(crate) fn nanos(self) -> Nanos {
        self.0.into()
    }
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "0" {
            return Ok(Self::default());
        }
        let time = humantime::parse_duration(text)
            .map_err(|_| format!("`{text}` is not a time: write `9ms` or `1m 30s`"))?;
        Ok(Self(time))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", humantime::format_duration(self.0))
    }
}

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Time> for String {
    fn from(time: Time) -> Self {
        time.to_string()
    }
}

/// A profile as it is written: which model it is follows from its sections.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileText {
    #[serde(default)]
    about: String,
    model: String,
    max_model_len: u32,
    default_tokens: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<LengthDistribution>,
    #[serde(default = "image_tokens")]
    image_tokens: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delays: Option<Delays>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scheduler: Option<Scheduler>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kv: Option<Kv>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step: Option<StepCost>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    speculative: Option<Speculative>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    disaggregated: Option<Disaggregated>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hardware: Option<Hardware>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start: Option<StartupCost>,
}

fn image_tokens() -> u32 {
    576
}

impl Profile {
    /// The profiles that are built in.
    pub const NAMES: [&'static str; 7] =
        ["default", "fast", "demo", "light", "llama-8b-1xh200", "llama-70b-8xh100", "cpu-laptop"];

    /// A built-in profile as its file says it, comments and all.
    pub fn builtin_text(name: &str) -> Option<&'static str> {
        match name {
            "default" => Some(include_str!("../profiles/default.toml")),
            "fast" => Some(include_str!("../profiles/fast.toml")),
            "demo" => Some(include_str!("../profiles/demo.toml")),
            "light" => Some(include_str!("../profiles/light.toml")),
            "llama-8b-1xh200" => Some(include_str!("../profiles/llama-8b-1xh200.toml")),
            "llama-70b-8xh100" => Some(include_str!("../profiles/llama-70b-8xh100.toml")),
            "cpu-laptop" => Some(include_str!("../profiles/cpu-laptop.toml")),
            _ => None,
        }
    }

    /// A built-in profile.
    pub fn builtin(name: &str) -> Option<Self> {
        // A test parses each of them.
        Self::parse(Self::builtin_text(name)?).ok()
    }

    /// Reads a profile, and says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text: ProfileText = toml::from_str(text).map_err(|error| error.to_string())?;
        let profile = Self::assemble(text)?;
        profile.check()?;
        Ok(profile)
    }

    fn assemble(text: ProfileText) -> Result<Self, String> {
        let extra =
            text.speculative.is_some() || text.disaggregated.is_some() || text.hardware.is_some();
        let engine = match (text.delays, text.scheduler, text.kv, text.step) {
            (Some(delays), None, None, None) if !extra && text.start.is_none() => {
                EngineProfile::Delays(delays)
            }
            (None, Some(scheduler), Some(kv), Some(step)) => {
                EngineProfile::Batching(Box::new(BatchingProfile {
                    scheduler,
                    kv,
                    step,
                    speculative: text.speculative,
                    disaggregated: text.disaggregated,
                    hardware: text.hardware.unwrap_or_default(),
                    start: text.start.unwrap_or_default(),
                }))
            }
            _ => {
                return Err(
                    "a profile has either [delays] only, or [scheduler], [kv], and [step], with \
                     optional [speculative], [disaggregated], [hardware], and [start]"
                        .to_owned(),
                );
            }
        };
        Ok(Self {
            about: text.about,
            model: text.model,
            max_model_len: text.max_model_len,
            default_tokens: text.default_tokens,
            answer: text.answer,
            image_tokens: text.image_tokens,
            engine,
        })
    }

    /// The profile as TOML that [`Profile::parse`] reads back to the same.
    pub fn to_toml(&self) -> Result<String, String> {
        let mut text = ProfileText {
            about: self.about.clone(),
            model: self.model.clone(),
            max_model_len: self.max_model_len,
            default_tokens: self.default_tokens,
            answer: self.answer,
            image_tokens: self.image_tokens,
            delays: None,
            scheduler: None,
            kv: None,
            step: None,
            speculative: None,
            disaggregated: None,
            hardware: None,
            start: None,
        };
        match &self.engine {
            EngineProfile::Delays(delays) => text.delays = Some(delays.clone()),
            EngineProfile::Batching(batching) => {
                text.scheduler = Some(batching.scheduler.clone());
                text.kv = Some(batching.kv.clone());
                text.step = Some(batching.step.clone());
                text.speculative = batching.speculative;
                text.disaggregated = batching.disaggregated;
                text.hardware = Some(batching.hardware).filter(|it| !it.is_native());
                text.start = Some(batching.start);
            }
        }
        toml::to_string(&text).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests;
