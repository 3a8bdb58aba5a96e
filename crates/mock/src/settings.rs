//! What the simulated engine is like, and how it misbehaves.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use goodput_files::MOST_TOML;
use goodput_sim::Profile;

use crate::faults::MockFault;
use crate::metrics::MetricNames;
use crate::trouble::PageTrouble;

/// Everything about a server but its address.
#[derive(Clone)]
pub struct MockSettings {
    /// The engine.
    pub profile: Profile,
    /// Seed of everything drawn.
    pub seed: u64,
    /// Names of adapters served in addition to the model.
    pub loras: Vec<String>,
    /// What goes wrong on purpose.
    pub faults: Vec<MockFault>,
    /// Whose names `/metrics` uses.
    pub metrics: MetricNames,
    /// What is wrong with `/metrics`.
    pub page: PageTrouble,
    /// The key that requests must carry.
    pub api_key: Option<String>,
    /// Share of each answer that is sent as reasoning.
    pub reasoning: f64,
    /// Share of the requests that offer tools which are answered by a call.
    pub tool_calls: f64,
    /// Tokens in `usage` for each that there is: a tokenizer that counts otherwise.
    pub token_factor: f64,
    /// The status of a request that finds the queue full: 429 or 503.
    pub queue_full_status: u16,
    /// How long a connection may be open without a request on it, and a body may take.
    pub patience: Duration,
}

/// A description that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{part}` does not describe a mock: {reason}")]
pub struct SettingsError {
    part: String,
    reason: String,
}

/// Settings that are not the profile's.
const OWN: &str = "seed, lora, fault, metrics, reasoning, tool_calls, token_factor, \
                   queue_full_status, patience";

/// The most patience.
const LONGEST: Duration = Duration::from_hours(24);

impl MockSettings {
    /// The plain server with this engine.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            seed: 1,
            loras: Vec::new(),
            faults: Vec::new(),
            metrics: MetricNames::default(),
            page: PageTrouble::default(),
            api_key: None,
            reasoning: 0.0,
            tool_calls: 0.0,
            token_factor: 1.0,
            queue_full_status: 429,
            patience: Duration::from_mins(1),
        }
    }

    /// A built-in profile by its name, or one from a TOML file.
    pub fn profile(name: &str) -> Result<Profile, SettingsError> {
        let wrong = |reason: String| SettingsError { part: name.to_owned(), reason };
        if let Some(profile) = Profile::builtin(name) {
            return Ok(profile);
        }
        let is_file = Path::new(name).extension().is_some_and(|end| end == "toml");
        if !is_file {
            let known = Profile::NAMES.join(", ");
            let near = goodput_model::closest_name(name, Profile::NAMES);
            let guess = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            let reason = format!(
                "{guess}the profiles are {known}; the name of a profile file must end in .toml"
            );
            return Err(wrong(reason));
        }
        let text = goodput_files::read_text(Path::new(name), MOST_TOML)
            .map_err(|error| wrong(error.to_string()))?;
        Profile::parse(&text).map_err(wrong)
    }

    /// Changes several settings, of which some may make sense only together with others.
    pub fn set_all(&mut self, mut changes: Vec<(&str, &str)>) -> Result<(), SettingsError> {
        while !changes.is_empty() {
            let before = changes.len();
            let mut first_error = None;
            changes.retain(|(key, value)| match self.set(key, value) {
                Ok(()) => false,
                Err(error) => {
                    first_error.get_or_insert(error);
                    true
                }
            });
            if let Some(error) = first_error.filter(|_| changes.len() == before) {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Changes one setting, the server's own or one of the profile.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SettingsError> {
        let wrong = |reason: String| SettingsError { part: format!("{key}={value}"), reason };
        match key {
            "seed" => {
                self.seed =
                    value.parse().map_err(|_| wrong("a seed must be a number".to_owned()))?;
            }
            "lora" if value.is_empty() => return Err(wrong("an adapter needs a name".to_owned())),
            "lora" => self.loras.push(value.to_owned()),
            "fault" => {
                let fault =
                    value.parse().map_err(|error: crate::FaultError| wrong(error.to_string()));
                self.faults.push(fault?);
            }
            "metrics" => match value.parse() {
                Ok(dialect) => self.metrics = dialect,
                Err(no_dialect) => {
                    let trouble = value.parse();
                    self.page =
                        trouble.map_err(|error: String| wrong(format!("{no_dialect}; {error}")))?;
                }
            },
            "reasoning" => self.reasoning = parse_share(value).map_err(wrong)?,
            "tool_calls" => self.tool_calls = parse_share(value).map_err(wrong)?,
            "token_factor" => {
                let factor = value.parse().ok().filter(|factor| (0.01..=100.0).contains(factor));
                self.token_factor =
                    factor.ok_or_else(|| wrong("a factor must be from 0.01 to 100".to_owned()))?;
            }
            "queue_full_status" => {
                let status = value.parse().ok().filter(|status| [429, 503].contains(status));
                self.queue_full_status =
                    status.ok_or_else(|| wrong("it must be 429 or 503".to_owned()))?;
            }
            "patience" => {
                let patience = humantime::parse_duration(value).ok();
                let patience = patience.filter(|length| !length.is_zero() && *length <= LONGEST);
                self.patience = patience
                    .ok_or_else(|| wrong("a time up to a day is written `60s`".to_owned()))?;
            }
            _ => self.profile.set(key, value).map_err(|reason| {
                let is_unknown = reason.contains("no setting");
                let rest = format!("; in addition to those of the profile: {OWN}");
                wrong(reason + if is_unknown { &rest } else { "" })
            })?,
        }
        Ok(())
    }
}

/// `40%` or `0.4`.
fn parse_share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    let number = number.ok().filter(|share| (0.0..=1.0).contains(share));
    number.ok_or_else(|| "a share is written `40%` or `0.4`".to_owned())
}

impl Default for MockSettings {
    fn default() -> Self {
        Self::new(Profile::default())
    }
}

/// The API key must not show up in logs.
impl fmt::Debug for MockSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("profile", &self.profile)
            .field("seed", &self.seed)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

/// `PROFILE`, `ttft=50ms,itl=10ms,slots=8`, or a profile followed by changes to it.
impl FromStr for MockSettings {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let mut parts = text.split(',').filter(|part| !part.is_empty()).peekable();
        let profile = parts.next_if(|part| !part.contains('='));
        let mut settings = match profile {
            Some(name) => Self::new(Self::profile(name)?),
            None => Self::default(),
        };
        let changes: Result<Vec<_>, _> = parts
            .map(|part| {
                part.split_once('=').ok_or_else(|| SettingsError {
                    part: part.to_owned(),
                    reason: "a profile must come first, and only once".to_owned(),
                })
            })
            .collect();
        settings.set_all(changes?)?;
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use goodput_sim::EngineProfile;

    use super::*;

    #[test]
    fn descriptions() {
        let text = "fast,ttft=uniform:1ms:2ms,slots=3,fault=500:10%,fault=stall=2s,metrics=tgi";
        let settings: MockSettings = text.parse().unwrap();
        let EngineProfile::Delays(delays) = &settings.profile.engine else { panic!() };
        assert_eq!((delays.slots, delays.ttft.to_string().as_str()), (3, "uniform:1ms:2ms"));
        assert_eq!(settings.faults.len(), 2);
        assert_eq!(settings.metrics, MetricNames::Tgi);
        assert_eq!("".parse::<MockSettings>().unwrap().profile, Profile::default());
        assert!("llama-70b-8xh100,max_num_seqs=64,seed=7".parse::<MockSettings>().is_ok());
        // Fewer tokens than sequences make no sense until both have been said.
        let both = "llama-70b-8xh100,max_num_batched_tokens=64,max_num_seqs=64";
        assert!(both.parse::<MockSettings>().is_ok());
        let patience = "patience=500ms".parse::<MockSettings>().unwrap().patience;
        assert_eq!(patience, Duration::from_millis(500));
        assert_eq!("reasoning=40%".parse::<MockSettings>().unwrap().reasoning, 0.4);
        // Names and trouble of the page are set apart from each other.
        let both: MockSettings = "metrics=slow:3s,metrics=tgi".parse().unwrap();
        assert_eq!(both.metrics, MetricNames::Tgi);
        assert_eq!(both.page, PageTrouble::Slow(goodput_model::Nanos::from_millis(3_000)));
        assert_eq!("token_factor=1.15".parse::<MockSettings>().unwrap().token_factor, 1.15);
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let bad = [
            ("nope", "llama-70b-8xh100"),
            ("slots=0", "slots"),
            ("ttft=5", "ttft"),
            ("x=1", "reasoning"),
            ("ttft=1ms,fast", "must come first"),
            ("fast,fast", "must come first"),
            ("fault=nope", "fault"),
            ("metrics=nope", "slow:TIME"),
            ("metrics=slow:5", "time"),
            ("reasoning=2", "40%"),
            ("queue_full_status=500", "503"),
            ("token_factor=0", "0.01"),
            ("token_factor=nan", "0.01"),
            ("patience=0s", "60s"),
            ("./nowhere.toml", "nowhere.toml"),
            ("llama-70b-8xh100,ttft=5ms", "ttft"),
        ];
        for (text, hint) in bad {
            let error = text.parse::<MockSettings>().unwrap_err().to_string();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }

    #[test]
    fn a_key_is_not_printed() {
        let settings =
            MockSettings { api_key: Some("sesame".to_owned()), ..MockSettings::default() };
        assert!(!format!("{settings:?}").contains("sesame"));
    }
}
