//! Arguments of `goodput compare`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use goodput_model::{ArrivalProcess, Rate};

use super::value::{parse_positive_time, parse_side, parse_time};
use super::{ClientArgs, EndpointArgs, OutputArgs, SloArgs, WorkloadArgs};

const COMPARE_EXAMPLES: &str = "\
Examples:
  goodput compare mock mock:time_factor=1.05 --rate 20
      Try it without a server: the second mock is 5 % slower
  goodput compare localhost:8000 localhost:8001 --rate 8
      The same requests at the same instants on both, until the outcome is clear
  goodput compare runs/baseline localhost:8000 --gate 'p99 ttft < +5%'
      Repeat the runs of a saved baseline on this server; exit code 4 if worse
  goodput compare runs/baseline localhost:8000 --gate 'p99 ttft < +5%, goodput > -3%' \\
      --junit gate.xml --markdown \"$GITHUB_STEP_SUMMARY\"
      The same in CI, for a baseline measured with --slo
  goodput compare localhost:8000 --aa --rate 8
      A server with itself, once: the noise floor of this rig
  goodput compare old=http://a:8000 new=http://b:8000 --rate 4,8,16 --slo interactive --at-once
      Three loads, both servers at the same time (each on its own hardware)
  goodput compare localhost:8000 localhost:8000 --rate 8 --switch-cmd './start-engine {side}'
      One machine that must swap engines between runs
  goodput compare http://a:8000 http://b:8000 --search --slo 'p99 ttft < 500ms'
      Which of them carries more load within the SLO
  goodput compare runs/2026-11-14T… runs/2026-11-15T…
      Two saved results
  goodput compare mock:llama-8b-1xh200 --vary chunked_prefill=off --vary precision=fp8 --rate 4
      The effect of each setting against the baseline, in one table
  goodput compare localhost:8000 --vary tp=2,4 --switch-cmd './start-server {vary}' --rate 8
      The same on a server that a command starts with each setting
  goodput compare --targets providers.toml --rate 2
      Several targets, each with its own model and key

Exit codes:
  0    better or equivalent, or every gate holds
  1    internal error
  2    wrong usage or bad input
  3    target unreachable, or not what it should be
  4    worse, or a gate fails
  5    inconclusive, void, or the sides are not comparable
  130  interrupted; measured blocks are kept, and --resume continues";

/// Compare servers or saved results: which is better, by how much
///
/// The first TARGET is the baseline. A TARGET is a base URL, `mock[:SETTINGS]`, or the folder of a
/// saved result, and can have a name: NAME=TARGET. Live targets get the same requests at the same
/// instants, in blocks of one run per target. Every test compares runs, never single requests.
#[derive(Debug, Args)]
#[command(after_long_help = COMPARE_EXAMPLES)]
pub(crate) struct CompareArgs {
    /// Base URLs, `mock`, or result folders; the first is the baseline
    #[arg(value_name = "TARGET", value_parser = parse_side)]
    pub(crate) targets: Vec<String>,

    /// Read targets from a TOML file
    ///
    /// It holds `[[target]]` tables with name, url, and, where they differ, model, api_key_env,
    /// headers, gpus, price_per_gpu_hour, and meta.
    #[arg(long = "targets", value_name = "FILE", conflicts_with = "targets")]
    pub(crate) list: Option<PathBuf>,

    /// Name of the target to compare the others against [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) reference: Option<String>,

    /// Compare one target with itself to measure the noise floor
    ///
    /// The result is saved as the noise floor of this rig, and smaller margins are refused from
    /// then on.
    #[arg(long, conflicts_with = "list")]
    pub(crate) aa: bool,

    /// Compare the target with itself under another setting: one table shows the effect of each;
    /// can be repeated
    ///
    /// `tp=2,4` adds a side for each value, `precision=fp8,tp=2` one side with both settings. A
    /// mock takes each as its own; for a server, --switch-cmd starts it with `{vary}`, which is
    /// empty for the baseline.
    #[arg(long, value_name = "KEY=VALUE", conflicts_with_all = ["list", "aa", "reference"])]
    pub(crate) vary: Vec<String>,

    /// Continue the comparison in this folder
    ///
    /// You can add the targets or --targets, --header (secrets are not saved), and output flags.
    /// The --switch-cmd of the folder runs only if you type it again or add --allow-commands.
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,

    /// With --resume, allow the folder's command to run without typing it again
    #[arg(long, requires = "resume")]
    pub(crate) allow_commands: bool,

    #[command(flatten)]
    pub(crate) design: DesignArgs,
    #[command(flatten)]
    pub(crate) gate: GateArgs,
    #[command(flatten)]
    pub(crate) slo: SloArgs,
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderName {
    /// Every second block in the reverse order of the one before
    Abba,
    /// A new random order for each block
    Random,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Blocks")]
pub(crate) struct DesignArgs {
    /// Open loop: requests per second (`8`, `4,8,16`)
    ///
    /// The default is half of the rate that the baseline carries with 16 users.
    #[arg(long, alias = "rates", alias = "request-rate", value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["concurrency", "search"], allow_negative_numbers = true)]
    pub(crate) rate: Vec<Rate>,

    /// Closed loop: users, such as `8` or `1,8,64`
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "search", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) concurrency: Vec<u32>,

    /// Compare the goodput: every run is a quick search for the highest load that keeps the SLO
    #[arg(long)]
    pub(crate) search: bool,

    /// Most blocks to measure, from 3 to 1000; ends after 6, 8, or 12 if the outcome is clear
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = parse_blocks)]
    pub(crate) blocks: u32,

    /// Measure all blocks and test once
    #[arg(long)]
    pub(crate) no_early_end: bool,

    /// Most time for the comparison; what is known by then is the result [default: 1.5 x the
    /// estimate]
    ///
    /// A run that would not end in time is not started. --resume continues a comparison that ended
    /// this way.
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time)]
    pub(crate) max_time: Option<Duration>,

    /// Length of the measured window of each run [default: 30s]
    ///
    /// With --search the default is that of `goodput sweep --quick`. A number without a unit is
    /// seconds.
    #[arg(long, alias = "block-duration", value_name = "TIME", value_parser = parse_positive_time)]
    pub(crate) duration: Option<Duration>,

    /// Load before the measured window of each run
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "5s")]
    pub(crate) warmup: Duration,

    /// Pause after each run
    #[arg(long, alias = "cooldown", value_name = "TIME", value_parser = parse_time, default_value = "1s")]
    pub(crate) settle: Duration,

    /// Order of the targets within a block
    #[arg(long, value_enum, default_value = "abba", value_name = "ORDER")]
    pub(crate) order: OrderName,

    /// Run all targets of a block at the same time; only if each has its own hardware
    #[arg(long, conflicts_with_all = ["switch_cmd", "search", "aa"])]
    pub(crate) at_once: bool,

    /// Run this command before each run, then wait until the target is ready
    ///
    /// `{side}` is the target's name, `{vary}` its settings (--vary), and `{url}` its URL; inside
    /// quotes use $GOODPUT_SIDE, $GOODPUT_VARY, and $GOODPUT_URL.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) switch_cmd: Option<String>,

    /// Open loop: distribution of arrivals: `poisson`, `constant`, or `gamma:CV`
    #[arg(long, value_name = "PROCESS", default_value = "poisson")]
    pub(crate) arrivals: ArrivalProcess,

    /// How long to wait for answers after the last request of a run
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "60s")]
    pub(crate) drain: Duration,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Verdict")]
pub(crate) struct GateArgs {
    /// Smallest difference that matters, such as `3%` or `0.03`
    #[arg(long, value_name = "SHARE", default_value = "3%", value_parser = parse_share, allow_hyphen_values = true)]
    pub(crate) margin: f64,

    /// Condition that must hold, such as 'p99 ttft < +5%, goodput > -3%'; exit code 4 if not; can
    /// be repeated
    #[arg(long, value_name = "CONDITIONS")]
    pub(crate) gate: Vec<String>,

    /// Setting of the servers that is compared, such as `engine` or `max_num_seqs`; can be repeated
    ///
    /// Any other setting that differs between the servers is a caveat. `engine`, `model`,
    /// `hardware`, `precision`, `parallelism`, and `logging` stand for all settings of their kind.
    #[arg(long, value_name = "NAME")]
    pub(crate) under_test: Vec<String>,

    /// Give a verdict even if the sides are not comparable
    #[arg(long)]
    pub(crate) anyway: bool,

    /// GPUs behind each target: one number for all, or one each, such as `8,4`
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) gpus: Vec<u32>,

    /// Price of one GPU per hour: one number for all, or one each
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::capacity::parse_price)]
    pub(crate) price_per_gpu_hour: Vec<f64>,

    #[command(flatten)]
    pub(crate) files: FileArgs,
}

/// Pages for a CI system.
#[derive(Debug, Args)]
pub(crate) struct FileArgs {
    /// Also write the gates, or the tested figures, to this file as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,

    /// Also append the page as Markdown to this file, such as $GITHUB_STEP_SUMMARY
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
}

/// `3%` or `0.03`. A bare `3` could mean either.
pub(super) fn parse_share(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim(), 0.01),
        None => (text, 1.0),
    };
    let value = number.parse().ok().map(|value: f64| value * scale);
    let value = value.filter(|value| *value > 0.0 && *value < 1.0);
    value.ok_or_else(|| format!("`{text}` is not between 0 and 100 %: write `3%` or `0.03`"))
}

/// Two differences do not show how far blocks spread.
fn parse_blocks(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(blocks @ 3..=1000) => Ok(blocks),
        Ok(0..=2) => Err("fewer than 3 blocks cannot give a verdict; use 6 or more".to_owned()),
        _ => Err("a number between 3 and 1000".to_owned()),
    }
}
