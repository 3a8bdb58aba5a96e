//! What the simulated engine is like.

use std::str::FromStr;
use std::time::Duration;

use crate::delay::Delay;

/// What the simulated engine is like.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// From getting a slot to the first token.
    pub ttft: Delay,
    /// From one token to the next.
    pub itl: Delay,
    /// Requests served at once; the others wait in order of arrival.
    pub slots: u32,
    /// Name of the model.
    pub model: String,
    /// Tokens of an answer when the request sets no limit.
    pub default_tokens: u32,
    /// Seed of drawn delays.
    pub seed: u64,
}

/// A description that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{part}` does not describe a mock: {reason}")]
pub struct SettingsError {
    part: String,
    reason: String,
}

impl Settings {
    /// The profiles there are.
    pub const PROFILES: [&'static str; 2] = ["default", "fast"];

    /// A profile by name.
    pub fn profile(name: &str) -> Option<Self> {
        match name {
            "default" => Some(Self::default()),
            // No latency at all: for testing what stands in front of an engine.
            "fast" => Some(Self {
                ttft: Delay::Fixed(Duration::ZERO),
                itl: Delay::Fixed(Duration::ZERO),
                slots: 100_000,
                ..Self::default()
            }),
            _ => None,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ttft: Delay::Fixed(Duration::from_millis(50)),
            itl: Delay::Fixed(Duration::from_millis(10)),
            slots: 128,
            model: "mock".to_owned(),
            default_tokens: 128,
            seed: 1,
        }
    }
}

/// `PROFILE`, `ttft=50ms,itl=10ms,slots=8`, or a profile followed by changes to it.
impl FromStr for Settings {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let wrong = |part: &str, reason: String| SettingsError { part: part.to_owned(), reason };
        let mut settings = None;
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let Some((key, value)) = part.split_once('=') else {
                let known = Self::PROFILES.join(", ");
                let profile = Self::profile(part)
                    .ok_or_else(|| wrong(part, format!("the profiles are {known}")))?;
                if settings.replace(profile).is_some() {
                    return Err(wrong(part, "a profile comes first, and only once".to_owned()));
                }
                continue;
            };
            let current = settings.get_or_insert_with(Self::default);
            let number = || value.parse::<u32>().ok().filter(|n| *n > 0);
            let delay = || value.parse::<Delay>().map_err(|reason| wrong(part, reason));
            match key {
                "ttft" => current.ttft = delay()?,
                "itl" => current.itl = delay()?,
                "slots" => {
                    current.slots = number()
                        .ok_or_else(|| wrong(part, "slots is a positive number".to_owned()))?;
                }
                "model" => value.clone_into(&mut current.model),
                _ => {
                    let known = "the settings are ttft, itl, slots and model";
                    return Err(wrong(part, known.to_owned()));
                }
            }
        }
        Ok(settings.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions() {
        let settings: Settings = "fast,ttft=uniform:1ms:2ms,slots=3".parse().unwrap();
        assert_eq!(settings.slots, 3);
        assert_eq!(settings.ttft.to_string(), "uniform:1ms:2ms");
        assert_eq!(settings.itl, Delay::Fixed(Duration::ZERO));
        assert_eq!("".parse::<Settings>().unwrap(), Settings::default());
        for bad in ["nope", "slots=0", "ttft=5", "x=1", "ttft=1ms,fast,fast"] {
            assert!(bad.parse::<Settings>().is_err(), "{bad}");
        }
    }
}
