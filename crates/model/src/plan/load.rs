//! How much load, when, and for how long.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::text::{duration_text, option_duration_text};
use crate::LoadShape;
use crate::parse::{ParseError, parse_error};

/// How much load, when, and for how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Seed of arrivals and prompts.
    pub seed: u64,
    /// Length of the measured part in time.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "option_duration_text")]
    pub duration: Option<Duration>,
    /// Length of the measured part in requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_requests: Option<u64>,
    /// Load before the measured part, kept out of the numbers.
    pub warmup: LoadExtent,
    /// Load after the measured part, kept out of the numbers.
    #[serde(with = "duration_text")]
    pub cooldown: Duration,
    /// How long to wait for answers after the last request was sent.
    #[serde(with = "duration_text")]
    pub drain: Duration,
    /// Threads that send and receive.
    pub workers: u32,
    /// Whether each of them keeps to one processor.
    #[serde(default)]
    pub pin: bool,
    /// Who decides when a request starts.
    pub mode: Mode,
}

/// Who decides when a request starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Mode {
    /// A schedule, whatever the server does.
    Open {
        /// Mean rate.
        rate: Rate,
        /// How arrivals spread around it.
        arrivals: ArrivalProcess,
        /// Requests in flight at most: a bound that makes the loop `capped`.
        #[serde(skip_serializing_if = "Option::is_none")]
        max_concurrency: Option<u32>,
    },
    /// A schedule whose rate changes over time.
    Shaped {
        /// How it changes.
        shape: LoadShape,
        /// How arrivals spread around it.
        arrivals: ArrivalProcess,
        /// Requests in flight at most: a bound that makes the loop `capped`.
        #[serde(skip_serializing_if = "Option::is_none")]
        max_concurrency: Option<u32>,
    },
    /// The instants of a trace, whatever the server does.
    Replay {
        /// Trace time is multiplied by this: 0.5 plays twice as fast.
        time_scale: f64,
        /// What is kept of the trace's time.
        keep: Keep,
        /// Requests in flight at most: a bound that makes the loop `capped`.
        #[serde(skip_serializing_if = "Option::is_none")]
        max_concurrency: Option<u32>,
    },
    /// A fixed number of users, each waiting for its answer.
    Closed {
        /// How many users.
        concurrency: u32,
        /// Pause between an answer and the user's next request.
        #[serde(with = "duration_text")]
        think_time: Duration,
        /// Whether users also pause before their first request: the cold start test.
        #[serde(default)]
        pause_first: bool,
    },
}

/// What is kept of a trace's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// Each request is due at its instant, whether or not the one before it has been answered.
    #[default]
    Timestamps,
    /// Sessions begin at their instants; later requests follow the answer before them after the
    /// pause that the trace shows.
    ThinkTimes,
}

impl Mode {
    /// How many of the workers that were asked for have something to do.
    pub fn useful_workers(&self, asked: u32) -> u32 {
        match self {
            Self::Open { .. } | Self::Shaped { .. } | Self::Replay { .. } => asked,
            Self::Closed { concurrency, .. } => asked.min(*concurrency),
        }
    }

    /// Requests in flight at most, where an open loop has such a bound.
    pub fn most_in_flight(&self) -> Option<u32> {
        match self {
            Self::Open { max_concurrency, .. }
            | Self::Shaped { max_concurrency, .. }
            | Self::Replay { max_concurrency, .. } => *max_concurrency,
            Self::Closed { .. } => None,
        }
    }

    /// The word in `summary.json`: `open`, `shaped`, `replay`, `capped`, `burst` or `closed`.
    pub fn name(&self) -> &'static str {
        match self {
            _ if self.most_in_flight().is_some() => "capped",
            Self::Open { rate: Rate::Infinite, .. } => "burst",
            Self::Open { .. } => "open",
            Self::Shaped { .. } => "shaped",
            Self::Replay { .. } => "replay",
            Self::Closed { .. } => "closed",
        }
    }
}

/// Requests per second, or all at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// A finite, positive rate.
    PerSecond(f64),
    /// Everything at the first instant.
    Infinite,
}

/// How the gaps between arrivals are distributed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ArrivalProcess {
    /// Exponential gaps: independent users.
    Poisson,
    /// Equal gaps.
    Constant,
    /// Gamma gaps with this coefficient of variation: above 1 is burstier than Poisson.
    Gamma(f64),
}

/// An amount of load by time or by number of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadExtent {
    /// For so long.
    Time(Duration),
    /// For this many requests.
    Requests(u64),
    /// As much as turns out to differ from the rest, found after the run.
    Auto,
}

impl LoadExtent {
    /// Whether it is nothing at all.
    pub fn is_none(self) -> bool {
        self == Self::Time(Duration::ZERO) || self == Self::Requests(0)
    }
}

impl FromStr for Rate {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: &str = "a rate: a positive number (`20`, `20/s`, `90/m`) or `inf`";
        let text = text.trim();
        if text == "inf" {
            return Ok(Self::Infinite);
        }
        let (number, per_seconds) = match text.rsplit_once('/') {
            None => (text, 1.0),
            Some((number, "s")) => (number, 1.0),
            Some((number, "m")) => (number, 60.0),
            Some((number, "h")) => (number, 3600.0),
            Some(_) => return Err(parse_error(text, EXPECTED)),
        };
        let rate =
            number.trim().parse::<f64>().map_err(|_| parse_error(text, EXPECTED))? / per_seconds;
        // Below one request in 11 days and above what nanoseconds can tell apart nothing is meant.
        if (1e-6..=1e9).contains(&rate) {
            Ok(Self::PerSecond(rate))
        } else {
            Err(parse_error(text, EXPECTED))
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerSecond(rate) => write!(f, "{rate}/s"),
            Self::Infinite => f.write_str("inf"),
        }
    }
}

impl FromStr for ArrivalProcess {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: &str = "an arrival process: `poisson`, `constant` or `gamma:CV` with a \
                                coefficient of variation between 0.01 and 100";
        match text.trim() {
            "poisson" => Ok(Self::Poisson),
            "constant" => Ok(Self::Constant),
            other => match other.strip_prefix("gamma:").map(str::parse::<f64>) {
                Some(Ok(cv)) if (0.01..=100.0).contains(&cv) => Ok(Self::Gamma(cv)),
                _ => Err(parse_error(text, EXPECTED)),
            },
        }
    }
}

impl fmt::Display for ArrivalProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poisson => f.write_str("poisson"),
            Self::Constant => f.write_str("constant"),
            Self::Gamma(cv) => write!(f, "gamma:{cv}"),
        }
    }
}

impl FromStr for LoadExtent {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let text = text.trim();
        if text == "auto" {
            return Ok(Self::Auto);
        }
        if let Ok(requests) = text.parse() {
            return Ok(Self::Requests(requests));
        }
        humantime::parse_duration(text)
            .map(Self::Time)
            .map_err(|_| parse_error(text, "a time (`10s`), a number of requests (`50`) or `auto`"))
    }
}

impl fmt::Display for LoadExtent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => write!(f, "{}", humantime::format_duration(*time)),
            Self::Requests(requests) => write!(f, "{requests}"),
            Self::Auto => f.write_str("auto"),
        }
    }
}
