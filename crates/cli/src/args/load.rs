//! What can be typed about when and how much.

use std::time::Duration;

use clap::{Args, ValueEnum};
use goodput_model::{ArrivalProcess, LoadExtent, LoadShape, Rate, Until};

use super::positive_time;

#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArgs {
    /// Open loop: requests per second on average (`20`, `20/s`, `90/m`), or `inf` for all at once
    #[arg(
        long,
        alias = "request-rate",
        value_name = "R",
        conflicts_with_all = ["concurrency", "schedule", "idle"],
        allow_negative_numbers = true
    )]
    pub(crate) rate: Option<Rate>,

    /// Open loop: how arrivals spread: `poisson`, `constant`, or `gamma:CV`
    #[arg(long, value_name = "PROCESS", conflicts_with_all = ["concurrency", "idle"], default_value = "poisson")]
    pub(crate) arrivals: ArrivalProcess,

    /// Open loop whose rate changes: stages `60s@5,30s@5..20,60s@20` (time@rate, `..` is a ramp),
    /// `sine:MEAN:AMPLITUDE:PERIOD`, or `bursts:N/TIME`
    #[arg(long, alias = "stages", value_name = "SHAPE", conflicts_with_all = ["concurrency", "idle"])]
    pub(crate) schedule: Option<LoadShape>,

    /// Cold start test: nothing for so long, then one request; again with --num-requests
    #[arg(long, value_name = "TIME", value_parser = positive_time, conflicts_with_all = ["concurrency", "duration", "warmup"])]
    pub(crate) idle: Option<Duration>,

    /// Open loop: gamma shape of the gaps, as other tools have it (1 is Poisson)
    #[arg(
        long,
        value_name = "SHAPE",
        requires = "rate",
        conflicts_with_all = ["arrivals", "concurrency"],
        hide_short_help = true
    )]
    pub(crate) burstiness: Option<f64>,

    /// Open loop: hold back requests beyond this many in flight; the run is labelled `capped`
    #[arg(long, value_name = "N", conflicts_with = "concurrency", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_concurrency: Option<u32>,

    /// Closed loop: users, each sending its next request when its answer has come
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) concurrency: Option<u32>,

    /// Closed loop: pause between an answer and the user's next request (or session)
    #[arg(long, value_name = "TIME", conflicts_with_all = ["rate", "schedule", "idle"], value_parser = humantime::parse_duration, default_value = "0s")]
    pub(crate) think_time: Duration,

    /// Length of the measured part [default: 60s, unless --num-requests, stages or a trace end it]
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub(crate) duration: Option<Duration>,

    /// Number of measured requests; with --duration, whichever comes first
    #[arg(long, alias = "num-prompts", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) num_requests: Option<u64>,

    /// End once this is known: `p95 ttft ±10%` (or `+-10%`), `mean tpot ±5%`; with commas all of
    /// them. --duration [then 10m by default] and --num-requests are the limits
    #[arg(long, value_name = "RULE")]
    pub(crate) until: Option<Until>,

    /// Measured time before which --until does not end a run [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, requires = "until")]
    pub(crate) min_duration: Option<Duration>,

    /// Load before the measured part, kept out of the numbers: by time (`10s`), by requests (`50`),
    /// or `auto`: what turns out to differ from the rest is cut from the beginning
    #[arg(long, value_name = "TIME|N|auto", default_value = "0s")]
    pub(crate) warmup: LoadExtent,

    /// Load after the measured part, so that its last requests still meet load
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "0s")]
    pub(crate) cooldown: Duration,

    /// How long to wait for answers after the last request
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "60s")]
    pub(crate) drain: Duration,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// What runs of every verb have in common.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Client")]
pub(crate) struct ClientArgs {
    /// Limit for one request, from when it is let go (after waiting for --max-concurrency)
    #[arg(long, value_name = "TIME", value_parser = positive_time, default_value = "10m")]
    pub(crate) timeout: Duration,

    /// Seed of arrivals and prompts; each of several runs has one of its own
    #[arg(long, value_name = "N", default_value_t = 42, value_parser = clap::value_parser!(u64).range(..=i64::MAX.cast_unsigned()))]
    pub(crate) seed: u64,

    /// Threads that send and receive [default: by the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) workers: Option<u32>,

    /// Keep each of these threads on a processor of its own
    #[arg(long)]
    pub(crate) pin: bool,

    /// Ask a server of known timing beside the load, to measure this client's own error
    #[arg(long, value_enum, value_name = "ON|OFF", default_value = "on")]
    pub(crate) canary: Switch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    /// Five small requests a second, inside this process
    On,
    /// None
    Off,
}
