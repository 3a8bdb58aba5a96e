//! What can be typed about a sweep.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use goodput_model::{ArrivalProcess, Rate};

use super::{
    ClientArgs, EndpointArgs, OutputArgs, ShardArgs, SloArgs, WorkloadArgs, positive_time,
};

const SWEEP_EXAMPLES: &str = "\
Examples:
  goodput sweep mock
      Try it without a server: the simulated engine, two to three minutes
  goodput sweep http://localhost:8000 --slo 'p99 ttft < 500ms, p99 tpot < 50ms'
      The highest rate that keeps the SLO, confirmed, with the curve on the way there
  goodput sweep http://localhost:8000 --slo interactive --quick
      The same with shorter points: less sure, and says so
  goodput sweep http://localhost:8000 --rates 1,2,5,10,20 --no-search
      These rates and nothing else
  goodput sweep http://localhost:8000 --from 1 --to 50 --points 12 --slo interactive
      Twelve rates in equal ratios, then the search, never beyond 50
  goodput sweep http://localhost:8000 --concurrency 1,2,4,8,16,32 --no-search
      Closed loops
  goodput sweep http://localhost:8000 --vary workload.isl=512,2048,8192 --slo interactive
      A sweep for each prompt length
  goodput sweep http://localhost:8000 --serve 'vllm serve M --max-num-batched-tokens {x}' \\
      --vary x=2048,4096,8192 --slo interactive
      Start the server with each setting, sweep it, stop it; the best setting is named
  goodput sweep --resume runs/2026-11-15T10-22-07Z-chat-sweep
      Go on with a sweep that was stopped

Exit codes: 0 good, 1 internal, 2 usage or bad input, 3 target unreachable or wrong, or lost in
            mid-sweep, 4 no load keeps the SLO, 5 it cannot be told, or the result is void,
            130 interrupted; what was measured is kept, and --resume goes on.";

/// Raise the load, draw the curve, and find the highest load that keeps the SLO
///
/// Warm-up, points at rising load, the knee, a search for the highest load that keeps the SLO, runs
/// that confirm it, and a sustained test there. Every point is a run folder of its own. Without
/// --slo the preset `interactive` is meant. How long it takes is said once the warm-up has shown
/// how fast the server is.
#[derive(Debug, Args)]
#[command(after_help = SWEEP_EXAMPLES)]
pub(crate) struct SweepArgs {
    /// Base URL, or `mock[:SETTINGS]`
    #[arg(required_unless_present = "resume")]
    pub(crate) target: Option<String>,

    /// Go on with the sweep in this folder; only the target, --header and output flags may be added, and
    /// commands of the folder (--serve, and --vary for its placeholders), which run only if typed again
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,

    /// With --resume: run the commands that the folder names, without typing them again
    #[arg(long, requires = "resume")]
    pub(crate) allow_commands: bool,

    #[command(flatten)]
    pub(crate) levels: LevelArgs,
    #[command(flatten)]
    pub(crate) point: PointArgs,
    #[command(flatten)]
    pub(crate) slo: SloArgs,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
    #[command(flatten)]
    pub(crate) shard: ShardArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AxisName {
    /// Requests per second of an open loop
    Rate,
    /// Users of a closed loop
    Concurrency,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Levels")]
pub(crate) struct LevelArgs {
    /// Rates to measure, as in `1,2,5,10`; the search goes no higher than the last
    #[arg(long, alias = "rate", alias = "request-rate", value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["concurrency", "over", "from", "to", "points"], allow_negative_numbers = true)]
    pub(crate) rates: Vec<Rate>,

    /// Closed loop: numbers of users to measure, as in `1,2,4,8`; the search goes no higher
    #[arg(long, alias = "concurrencies", value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["over", "from", "to", "points"], value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) concurrency: Vec<u32>,

    /// What is raised
    #[arg(long, value_enum, default_value = "rate", value_name = "AXIS")]
    pub(crate) over: AxisName,

    /// The lowest level; the search goes no lower
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    pub(crate) from: Option<f64>,

    /// The highest level; the search goes no higher
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    pub(crate) to: Option<f64>,

    /// Levels between --from and --to, in equal ratios; without it they are found
    #[arg(long, value_name = "N", requires = "from", requires = "to", value_parser = clap::value_parser!(u32).range(2..=200))]
    pub(crate) points: Option<u32>,

    /// A first look: short points, wider intervals
    #[arg(long, conflicts_with = "certified")]
    pub(crate) quick: bool,

    /// Ten minutes for each point, runs of 5,000 requests near the limit
    #[arg(long)]
    pub(crate) certified: bool,

    /// Only the curve: do not look for the highest level that keeps the SLO
    #[arg(long)]
    pub(crate) no_search: bool,

    /// Beside each open-loop point a closed loop with as many users as were under way
    #[arg(long)]
    pub(crate) closed_loop_too: bool,

    /// A sweep for each value of this: any value of plan.toml by its path (`workload.isl`,
    /// `load.mode.max_concurrency`), or a {placeholder} of --serve; two of them give all pairs
    #[arg(long, value_name = "NAME=V,V…")]
    pub(crate) vary: Vec<String>,

    /// GPUs behind the target, for figures per GPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) gpus: Option<u32>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Points")]
pub(crate) struct PointArgs {
    /// Measured time of each point [default: 60s and 5 x p99 E2E, or as the effort has it]
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub(crate) duration: Option<Duration>,

    /// Measured requests of each point at least
    #[arg(long, alias = "num-prompts", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) num_requests: Option<u64>,

    /// Load before the measured part of each point [default: 5 x mean E2E]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) warmup: Option<Duration>,

    /// Length of the sustained test at the answer; `0s` for none [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) sustained: Option<Duration>,

    /// Pause between points
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "1s")]
    pub(crate) settle: Duration,

    /// Open loop: how arrivals spread: `poisson`, `constant`, or `gamma:CV`
    #[arg(long, value_name = "PROCESS", default_value = "poisson")]
    pub(crate) arrivals: ArrivalProcess,

    /// Open loop: hold back requests beyond this many in flight
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_concurrency: Option<u32>,

    /// How long to wait for answers after the last request of a point
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "5m")]
    pub(crate) drain: Duration,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ServeArgs {
    /// Start this server, wait until it is ready, sweep it and stop it; `{name}` is filled from
    /// --vary, `{port}` from the target
    #[arg(long, value_name = "COMMAND")]
    pub(crate) serve: Option<String>,

    /// How long it may take to become ready
    #[arg(long, value_name = "TIME", value_parser = positive_time, default_value = "10m", requires = "serve")]
    pub(crate) serve_timeout: Duration,
}

fn level(text: &str) -> Result<f64, String> {
    match text.parse::<Rate>() {
        Ok(Rate::PerSecond(level)) => Ok(level),
        _ => Err("a level is a positive number".to_owned()),
    }
}
