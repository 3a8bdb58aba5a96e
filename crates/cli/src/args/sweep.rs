//! Arguments of `goodput sweep`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use goodput_model::{ArrivalProcess, Rate};

use super::value::{parse_positive_time, parse_target, parse_time};
use super::{ClientArgs, EndpointArgs, OutputArgs, ShardArgs, SloArgs, WorkloadArgs};

const SWEEP_EXAMPLES: &str = "\
Examples:
  goodput sweep mock
      Try it without a server: about two minutes on the mock
  goodput sweep localhost:8000 --slo 'p99 ttft < 500ms, p99 tpot < 50ms'
      The highest rate that keeps the SLO, confirmed, and the curve up to it
  goodput sweep localhost:8000 --slo interactive --quick
      The same with shorter points and wider intervals
  goodput sweep localhost:8000 --rates 1,2,5,10,20 --no-search
      Exactly these rates
  goodput sweep localhost:8000 --from 1 --to 50 --points 12 --slo interactive
      Twelve rates in equal ratios, then the search, never above 50
  goodput sweep localhost:8000 --concurrency 1,2,4,8,16,32 --no-search
      Closed loops
  goodput sweep localhost:8000 --vary workload.isl=512,2048,8192 --slo interactive
      A sweep for each prompt length
  goodput sweep localhost:8000 --serve 'vllm serve M --max-num-batched-tokens {x}' \\
      --vary x=2048,4096,8192 --slo interactive
      Start the server with each setting, sweep it, and stop it; names the best setting
  goodput sweep --resume runs/2026-11-15T10-22-07Z-chat-sweep
      Continue a sweep that was stopped

Exit codes:
  0    success
  1    internal error
  2    wrong usage or bad input
  3    target unreachable, not what it should be, or lost during the sweep
  4    no load keeps the SLO
  5    undecided, or the result is void
  130  interrupted; measured points are kept, and --resume continues";

/// Find the highest load that keeps the SLO
///
/// A sweep warms the server up, measures points at rising load, finds the knee, searches for the
/// highest load that keeps the SLO, confirms it with independent runs, and ends with a sustained
/// run at that load. Every point is a run folder of its own. Without --slo the preset `interactive`
/// applies. After the warm-up, goodput prints how long the sweep will take.
#[derive(Debug, Args)]
#[command(after_long_help = SWEEP_EXAMPLES)]
pub(crate) struct SweepArgs {
    /// Base URL, or `mock[:SETTINGS]` [env: GOODPUT_TARGET]
    #[arg(required_unless_present = "resume", value_parser = parse_target)]
    pub(crate) target: Option<String>,

    /// Continue the sweep in this folder
    ///
    /// You can add the target, --header, and output flags. Commands of the folder (--serve, and
    /// --vary for its placeholders) run only if you type them again or add --allow-commands.
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,

    /// With --resume, allow the folder's commands to run without typing them again
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
#[command(next_help_heading = "Load")]
pub(crate) struct LevelArgs {
    /// Rates to measure, such as `1,2,5,10`
    ///
    /// The search does not go above the last one.
    #[arg(long, alias = "rate", alias = "request-rate", value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["concurrency", "over", "from", "to", "points"], allow_negative_numbers = true)]
    pub(crate) rates: Vec<Rate>,

    /// Closed loop: users to measure, such as `1,2,4,8`
    ///
    /// The search does not go above the last one.
    #[arg(long, alias = "concurrencies", value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["over", "from", "to", "points"], value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) concurrency: Vec<u32>,

    /// Kind of load to raise
    #[arg(long, value_enum, default_value = "rate", value_name = "AXIS")]
    pub(crate) over: AxisName,

    /// Lowest level; the search does not go below it
    #[arg(long, value_name = "LEVEL", value_parser = parse_level)]
    pub(crate) from: Option<f64>,

    /// Highest level; the search does not go above it
    #[arg(long, value_name = "LEVEL", value_parser = parse_level)]
    pub(crate) to: Option<f64>,

    /// Number of levels between --from and --to, in equal ratios [default: goodput chooses them]
    #[arg(long, value_name = "N", requires = "from", requires = "to", value_parser = clap::value_parser!(u32).range(2..=200))]
    pub(crate) points: Option<u32>,

    /// Short points and wider intervals, for a first look
    #[arg(long, conflicts_with = "certified")]
    pub(crate) quick: bool,

    /// Ten minutes per point, and runs of 5,000 requests near the limit
    #[arg(long)]
    pub(crate) certified: bool,

    /// Measure the curve only; do not search for the highest load that keeps the SLO
    #[arg(long)]
    pub(crate) no_search: bool,

    /// With each open-loop point, also measure a closed loop with as many users as were in flight
    #[arg(long)]
    pub(crate) closed_loop_too: bool,

    /// Sweep once for each value: NAME=V,V
    ///
    /// NAME is a value of plan.toml by its path (`workload.isl`, `load.mode.max_concurrency`) or a
    /// {placeholder} of --serve. Two of these flags give all pairs.
    #[arg(long, value_name = "NAME=V,V…")]
    pub(crate) vary: Vec<String>,

    /// GPUs behind the target, for figures per GPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) gpus: Option<u32>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct PointArgs {
    /// Length of the measured window of each point
    ///
    /// The default is the longer of 60s and 5 x p99 E2E, or as --quick or --certified sets it. A
    /// number without a unit is seconds.
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time)]
    pub(crate) duration: Option<Duration>,

    /// Fewest measured requests of each point
    #[arg(long, alias = "num-prompts", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) num_requests: Option<u64>,

    /// Load before the measured window of each point [default: 5 x mean E2E]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) warmup: Option<Duration>,

    /// Length of the sustained run at the confirmed load; `0s` skips it [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) sustained: Option<Duration>,

    /// Most time for the sweep, or for each value of --vary; what is known by then is the result
    /// [default: 1.5 x the estimate]
    ///
    /// A point that would not end in time is not started. --resume continues a sweep that ended
    /// this way.
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time)]
    pub(crate) max_time: Option<Duration>,

    /// Pause between points
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "1s")]
    pub(crate) settle: Duration,

    /// Open loop: distribution of arrivals: `poisson`, `constant`, or `gamma:CV`
    #[arg(long, value_name = "PROCESS", default_value = "poisson")]
    pub(crate) arrivals: ArrivalProcess,

    /// Open loop: hold back requests beyond this many in flight
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_concurrency: Option<u32>,

    /// How long to wait for answers after the last request of a point
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "5m")]
    pub(crate) drain: Duration,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Start the server")]
pub(crate) struct ServeArgs {
    /// Start this server, wait until it is ready, sweep it, and stop it
    ///
    /// `{name}` is filled from --vary, `{port}` from the target.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) serve: Option<String>,

    /// How long the server may take to become ready
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time, default_value = "10m", requires = "serve")]
    pub(crate) serve_timeout: Duration,
}

fn parse_level(text: &str) -> Result<f64, String> {
    match text.parse::<Rate>() {
        Ok(Rate::PerSecond(level)) => Ok(level),
        _ => Err("a level is a positive number".to_owned()),
    }
}
