//! Arguments about the load, and about the client that sends it.

use std::time::Duration;

use clap::{Args, ValueEnum};
use goodput_model::{ArrivalProcess, LoadExtent, LoadShape, Rate, Until};

use super::value::{parse_positive_time, parse_time};

#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArgs {
    /// Open loop: requests per second (`20`, `90/m`, `inf`)
    ///
    /// Requests are sent at their scheduled instants, whatever the server does. `inf` sends all
    /// requests at once and needs --num-requests.
    #[arg(
        long,
        alias = "request-rate",
        value_name = "R",
        conflicts_with_all = ["concurrency", "schedule", "idle"],
        allow_negative_numbers = true
    )]
    pub(crate) rate: Option<Rate>,

    /// Open loop: distribution of arrivals: `poisson`, `constant`, or `gamma:CV`
    #[arg(long, value_name = "PROCESS", conflicts_with_all = ["concurrency", "idle"], default_value = "poisson")]
    pub(crate) arrivals: ArrivalProcess,

    /// Open loop with a changing rate
    ///
    /// Stages such as `60s@5,30s@5..20,60s@20` (TIME@RATE; `..` is a ramp),
    /// `sine:MEAN:AMPLITUDE:PERIOD`, or `bursts:N/TIME`.
    #[arg(long, alias = "stages", value_name = "SHAPE", conflicts_with_all = ["concurrency", "idle"])]
    pub(crate) schedule: Option<LoadShape>,

    /// Cold start test: stay idle this long, then send one request; repeat for --num-requests
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time, conflicts_with_all = ["concurrency", "duration", "warmup"])]
    pub(crate) idle: Option<Duration>,

    /// Open loop: shape of the gamma distribution of arrivals, as in other tools (1 is Poisson)
    #[arg(
        long,
        value_name = "SHAPE",
        requires = "rate",
        conflicts_with_all = ["arrivals", "concurrency"],
        hide_short_help = true
    )]
    pub(crate) burstiness: Option<f64>,

    /// Open loop: hold back requests beyond this many in flight; marks the run as `capped`
    #[arg(long, value_name = "N", conflicts_with = "concurrency", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_concurrency: Option<u32>,

    /// Closed loop: users, each waiting for its answer
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) concurrency: Option<u32>,

    /// Closed loop: pause of a user between an answer and the next request or session
    #[arg(long, value_name = "TIME", conflicts_with_all = ["rate", "schedule", "idle"], value_parser = parse_time, default_value = "0s")]
    pub(crate) think_time: Duration,

    /// Length of the measured window, such as 90s or 5m
    ///
    /// The default is 60s, unless --num-requests, --schedule, or a trace ends the run. A number
    /// without a unit is seconds.
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time)]
    pub(crate) duration: Option<Duration>,

    /// Number of measured requests; with --duration, the run ends at whichever limit comes first
    #[arg(long, alias = "num-prompts", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) num_requests: Option<u64>,

    /// End the run when a figure is known this well, such as `p95 ttft ±10%`
    ///
    /// Write `±10%` or `+-10%`, also as `mean tpot ±5%`; with several rules, separated by commas,
    /// all must hold. --duration (then 10m by default) and --num-requests still limit the run.
    #[arg(long, value_name = "RULE")]
    pub(crate) until: Option<Until>,

    /// Shortest measured window before --until can end the run [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_time, requires = "until")]
    pub(crate) min_duration: Option<Duration>,

    /// Load before the measured window, left out of all figures
    ///
    /// A time (`10s`), a number of requests (`50`), `auto`, which cuts the beginning where it
    /// differs from the rest, or `0s` for none. The default is `auto`, and `0s` for loads that change
    /// by design (--schedule, --trace, --idle) and for `--rate inf`.
    #[arg(long, value_name = "TIME|N|auto")]
    pub(crate) warmup: Option<LoadExtent>,

    /// Load after the measured window, so that its last requests still compete for the server
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "0s")]
    pub(crate) cooldown: Duration,

    /// How long to wait for answers after the last request
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "60s")]
    pub(crate) drain: Duration,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// Flags of the client, the same in every verb that sends load.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Client")]
pub(crate) struct ClientArgs {
    /// Time limit for one request, counted from the send (after any wait for --max-concurrency)
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time, default_value = "10m")]
    pub(crate) timeout: Duration,

    /// Seed of arrivals and prompts; with several runs, each gets its own
    #[arg(long, value_name = "N", default_value_t = 42, value_parser = clap::value_parser!(u64).range(..=i64::MAX.cast_unsigned()))]
    pub(crate) seed: u64,

    /// Threads that send and receive, from 1 to 256 [default: one less than the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) workers: Option<u32>,

    /// Pin each worker thread to a core
    #[arg(long)]
    pub(crate) pin: bool,

    /// Measure the client's own error on a server of known timing during the run
    #[arg(long, value_enum, value_name = "ON|OFF", default_value = "on")]
    pub(crate) canary: Switch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    /// Five small requests per second, inside this process
    On,
    /// No canary
    Off,
}
