//! [`Plan`]: everything that was asked of a run, resolved, in a form that can be written to
//! `plan.toml` and run again. Values with a text form (`20/s`, `gamma:2`, `90s`) keep it on disk.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::parse::{ParseError, wrong};
use crate::{ClassPlan, LoadShape, OutputLength, Slo, Until, WorkloadPlan};

/// What stands in a written plan where a header's value or a query value stood.
pub const REDACTED: &str = "[redacted]";

/// Everything that was asked. `goodput run --plan plan.toml` repeats it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Format name and version: `goodput.plan/1`.
    pub schema: String,
    /// Whom to send to.
    pub target: Target,
    /// How much, when, and for how long.
    pub load: Load,
    /// What to send.
    pub workload: WorkloadPlan,
    /// What to compute.
    pub measure: Measure,
    /// What to look at on the server's side.
    #[serde(default)]
    pub observe: ObservePlan,
    /// What no endpoint tells about the server: GPU type and count, quantisation, engine flags.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub system: BTreeMap<String, String>,
}

impl Plan {
    /// The format this version writes.
    pub const SCHEMA: &'static str = "goodput.plan/1";

    /// How long one run takes at most, where it is bounded by time.
    pub fn longest(&self) -> Option<Duration> {
        let load = &self.load;
        let shaped = match &load.mode {
            Mode::Shaped { shape, .. } => shape.length(),
            _ => None,
        };
        let measured = load.duration.or(shaped)?;
        let warmup = match load.warmup {
            LoadExtent::Time(time) => time,
            LoadExtent::Requests(0) | LoadExtent::Auto => Duration::ZERO,
            LoadExtent::Requests(_) => return None,
        };
        Some(measured + warmup + load.cooldown + load.drain + self.target.wait_ready)
    }

    /// Requests of one class at a steady average rate: what `goodput run URL --rate R --duration D`
    /// asks for, with one worker.
    pub fn open_loop(url: &str, class: ClassPlan, per_second: f64, duration: Duration) -> Self {
        Self {
            schema: Self::SCHEMA.to_owned(),
            target: Target::new(url),
            load: Load {
                seed: 42,
                duration: Some(duration),
                num_requests: None,
                warmup: LoadExtent::Time(Duration::ZERO),
                cooldown: Duration::ZERO,
                drain: Duration::from_mins(1),
                workers: 1,
                pin: false,
                mode: Mode::Open {
                    rate: Rate::PerSecond(per_second),
                    arrivals: ArrivalProcess::Poisson,
                    max_concurrency: None,
                },
            },
            workload: WorkloadPlan { output: OutputLength::Exact, ..WorkloadPlan::new(class) },
            measure: Measure::new(Measure::PERCENTILES.to_vec()),
            observe: ObservePlan::default(),
            system: BTreeMap::new(),
        }
    }
}

/// The endpoint and how to speak to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Base URL, or `mock[:…]` for the engine inside the process.
    pub url: String,
    /// Which API.
    pub api: Api,
    /// Whether answers are streamed.
    pub stream: bool,
    /// Whether to ask for token counts in the stream (`stream_options.include_usage`).
    pub usage: bool,
    /// Model name; asked from the server when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Protocol version.
    pub http: Http,
    /// Whether connections are kept.
    pub connections: ConnectionPolicy,
    /// Limit for one request, from the instant it is let go.
    #[serde(with = "duration_text")]
    pub timeout: Duration,
    /// Whether one small request is sent ahead, to see that the server answers.
    pub probe: bool,
    /// How long to wait for the server to become ready.
    #[serde(with = "duration_text")]
    pub wait_ready: Duration,
    /// Environment variable that holds the API key.
    pub api_key_env: String,
    /// Extra headers. Values are never written to disk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<Header>,
    /// JSON object merged into every request body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_body: Option<String>,
    /// PEM file with additional trusted certificates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cacert: Option<String>,
    /// Whether certificates go unchecked.
    pub insecure: bool,
}

impl Target {
    /// The variable that holds the API key where no other is named.
    pub const KEY_ENV: &'static str = "OPENAI_API_KEY";

    /// A streaming chat endpoint, with everything else as usual.
    pub fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            api: Api::Chat,
            stream: true,
            usage: true,
            model: None,
            http: Http::Http1,
            connections: ConnectionPolicy::Reuse,
            timeout: Duration::from_mins(10),
            probe: true,
            wait_ready: Duration::ZERO,
            api_key_env: Self::KEY_ENV.to_owned(),
            headers: Vec::new(),
            extra_body: None,
            cacert: None,
            insecure: false,
        }
    }
}

/// One extra request header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its value, or [`REDACTED`] in a plan that came from disk.
    pub value: String,
}

/// The API spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// `/v1/chat/completions`
    Chat,
    /// `/v1/completions`
    Completions,
}

impl Api {
    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Completions => "completions",
        }
    }
}

/// The HTTP version spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Http {
    /// HTTP/1.1
    Http1,
    /// HTTP/2: by ALPN on `https`, with prior knowledge on `http`.
    Http2,
}

/// What happens to a connection after its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectionPolicy {
    /// Kept for a later request.
    Reuse,
    /// Closed: every request opens its own.
    PerRequest,
}

impl ConnectionPolicy {
    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reuse => "reuse",
            Self::PerRequest => "per-request",
        }
    }
}

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
    pub fn workers(&self, asked: u32) -> u32 {
        match self {
            Self::Open { .. } | Self::Shaped { .. } | Self::Replay { .. } => asked,
            Self::Closed { concurrency, .. } => asked.min(*concurrency),
        }
    }

    /// Requests in flight at most, where an open loop has such a bound.
    pub fn cap(&self) -> Option<u32> {
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
            _ if self.cap().is_some() => "capped",
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

/// What to compute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Percentiles, each in (0, 100).
    pub percentiles: Vec<f64>,
    /// Whether a server of known timing gets requests during the load.
    #[serde(default = "yes")]
    pub canary: bool,
    /// Whether each percentile also has MLPerf's early-stopping estimate.
    #[serde(default, skip_serializing_if = "is_no")]
    pub early_stopping: bool,
    /// Whether the log holds a hash of each body, which proves that several servers were sent the
    /// same.
    #[serde(default, skip_serializing_if = "is_no")]
    pub hash_bodies: bool,
    /// The SLO.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo: Option<Slo>,
    /// The share of requests, in (0, 1], that must keep all promises about single requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attainment: Option<f64>,
    /// The run may end once this is known; its duration and number of requests are then limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// Measured time before which it does not end by that.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "option_duration_text")]
    pub min_duration: Option<Duration>,
    /// Whether a point of a sweep may end before its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_early: Option<StopEarly>,
}

/// When a point of a sweep may end early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopEarly {
    /// Once the server cannot recover: it does not keep up, requests fail, or the SLO is out of
    /// reach whatever follows.
    Hopeless,
    /// Also once it is clear whether the SLO is kept.
    Decided,
}

impl Measure {
    /// Percentiles that are reported where no others are asked for.
    pub const PERCENTILES: [f64; 6] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9];

    /// These percentiles, and nothing else that must be asked for.
    pub fn new(percentiles: Vec<f64>) -> Self {
        Self {
            percentiles,
            canary: true,
            early_stopping: false,
            hash_bodies: false,
            slo: None,
            attainment: None,
            until: None,
            min_duration: None,
            stop_early: None,
        }
    }
}

/// What to observe on the server's side during the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ObservePlan {
    /// Whether the server's pages of metrics are read.
    pub metrics: bool,
    /// Where they are; empty means next to the target's API.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics_urls: Vec<String>,
    /// How often they are read, and how long an answer may take.
    #[serde(with = "duration_text")]
    pub interval: Duration,
    /// A file that maps names of an engine that we do not know onto ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_map: Option<String>,
    /// Who is asked about GPUs.
    pub gpu: GpuPlan,
    /// How long the GPUs are watched before the load, for the power they draw with an idle server.
    #[serde(with = "duration_text", skip_serializing_if = "Duration::is_zero")]
    pub gpu_idle: Duration,
    /// The share of requests, 0 to 1, whose trace is sampled; none sends no `traceparent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_share: Option<f64>,
}

impl Default for ObservePlan {
    fn default() -> Self {
        Self {
            metrics: true,
            metrics_urls: Vec::new(),
            interval: Duration::from_secs(1),
            metrics_map: None,
            gpu: GpuPlan::Auto,
            gpu_idle: Duration::ZERO,
            trace_share: None,
        }
    }
}

/// Who is asked about GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuPlan {
    /// The driver of this machine, where the server runs here and there is one.
    #[default]
    Auto,
    /// None.
    Off,
    /// The driver of this machine, wherever the server runs.
    Local,
    /// The same, but only these of its GPUs, by the driver's numbers.
    Devices(Vec<u32>),
    /// Exporters of NVIDIA or AMD at these URLs.
    Exporters(Vec<String>),
}

impl GpuPlan {
    /// The URLs of exporters.
    pub fn exporters(&self) -> &[String] {
        match self {
            Self::Exporters(urls) => urls,
            _ => &[],
        }
    }
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_no(value: &bool) -> bool {
    !value
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
            Some(_) => return Err(wrong(text, EXPECTED)),
        };
        let rate = number.trim().parse::<f64>().map_err(|_| wrong(text, EXPECTED))? / per_seconds;
        // Below one request in 11 days and above what nanoseconds can tell apart nothing is meant.
        if (1e-6..=1e9).contains(&rate) {
            Ok(Self::PerSecond(rate))
        } else {
            Err(wrong(text, EXPECTED))
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
                _ => Err(wrong(text, EXPECTED)),
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
            .map_err(|_| wrong(text, "a time (`10s`), a number of requests (`50`) or `auto`"))
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

/// Serde by text form, for the types above.
macro_rules! serde_as_text {
    ($($name:ty),*) => {$(
        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}
serde_as_text!(Rate, ArrivalProcess, LoadExtent, LoadShape, Until);

mod duration_text {
    use super::{Deserialize, Duration};

    pub(super) fn serialize<S: serde::Serializer>(
        duration: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_duration(*duration))
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        crate::parse_duration(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

mod option_duration_text {
    use super::{Duration, duration_text};

    #[expect(clippy::ref_option, reason = "the signature serde asks for")]
    pub(super) fn serialize<S: serde::Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => duration_text::serialize(duration, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        duration_text::deserialize(deserializer).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_units_and_limits() {
        assert_eq!("20".parse(), Ok(Rate::PerSecond(20.0)));
        assert_eq!("90/m".parse(), Ok(Rate::PerSecond(1.5)));
        assert_eq!("inf".parse(), Ok(Rate::Infinite));
        for bad in ["0", "-1", "nan", "NaN", "20/d", "", "1e300", "infinity"] {
            assert!(bad.parse::<Rate>().is_err(), "{bad}");
        }
    }

    #[test]
    fn warmup_is_a_time_or_a_count() {
        assert_eq!("10s".parse(), Ok(LoadExtent::Time(Duration::from_secs(10))));
        assert_eq!("50".parse(), Ok(LoadExtent::Requests(50)));
        assert!("10x".parse::<LoadExtent>().is_err());
    }

    #[test]
    fn a_plan_survives_its_file() {
        let plan = Plan {
            schema: Plan::SCHEMA.to_owned(),
            target: Target {
                url: "http://localhost:8000".to_owned(),
                api: Api::Chat,
                stream: true,
                usage: true,
                model: None,
                http: Http::Http1,
                connections: ConnectionPolicy::PerRequest,
                timeout: Duration::from_millis(1500),
                probe: true,
                wait_ready: Duration::ZERO,
                api_key_env: "OPENAI_API_KEY".to_owned(),
                headers: vec![Header { name: "x-team".to_owned(), value: REDACTED.to_owned() }],
                extra_body: Some(r#"{"top_k":1}"#.to_owned()),
                cacert: None,
                insecure: false,
            },
            load: Load {
                seed: u64::MAX >> 1,
                duration: Some(Duration::from_secs(20)),
                num_requests: None,
                warmup: LoadExtent::Requests(7),
                cooldown: Duration::ZERO,
                drain: Duration::from_mins(1),
                workers: 2,
                pin: false,
                mode: Mode::Open {
                    rate: Rate::PerSecond(0.1),
                    arrivals: ArrivalProcess::Gamma(1.5),
                    max_concurrency: Some(4),
                },
            },
            workload: crate::workload::tests::everything(),
            measure: Measure {
                slo: Some("interactive, p99 e2e < 2s + 3ms/token".parse().unwrap()),
                attainment: Some(0.99),
                hash_bodies: true,
                until: Some("p95 ttft ±10%, mean e2e ±5%".parse().unwrap()),
                min_duration: Some(Duration::from_secs(30)),
                ..Measure::new(vec![50.0, 99.9])
            },
            observe: ObservePlan {
                metrics_urls: vec!["http://a:9/metrics".to_owned()],
                gpu: GpuPlan::Exporters(vec!["http://b:9400/metrics".to_owned()]),
                trace_share: Some(0.01),
                ..ObservePlan::default()
            },
            system: BTreeMap::from([("tensor parallel".to_owned(), "4".to_owned())]),
        };
        let text = toml::to_string(&plan).unwrap();
        assert!(text.contains("arrivals = \"gamma:1.5\""), "{text}");
        assert!(text.contains("slo = \"ttft < 500ms, tpot < 50ms, errors < 1%, p99 e2e"), "{text}");
        assert_eq!(toml::from_str::<Plan>(&text).unwrap(), plan);
        let misspelt = text.replace("drain", "drian");
        assert!(toml::from_str::<Plan>(&misspelt).is_err());
    }
}
