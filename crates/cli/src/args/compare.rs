//! What can be typed about a comparison.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use goodput_model::{ArrivalProcess, Rate};

use super::{ClientArgs, EndpointArgs, OutputArgs, SloArgs, WorkloadArgs, positive_time};

const COMPARE_EXAMPLES: &str = "\
Examples:
  goodput compare mock mock:time_factor=1.05 --rate 20
      Try it without a server: the second engine is 5 % slower
  goodput compare http://localhost:8000 http://localhost:8001 --rate 8
      The same requests at the same instants on both, in turn, until it can be told
  goodput compare http://localhost:8000 --aa --rate 8
      A server with itself, once: how much chance there is on this rig
  goodput compare old=http://a:8000 new=http://b:8000 --rate 4,8,16 --slo interactive --at-once
      Three loads, both servers at once (each on hardware of its own)
  goodput compare http://localhost:8000 http://localhost:8000 --rate 8 \\
      --switch-cmd './start-engine {side}'
      One machine that must swap engines between runs
  goodput compare http://a:8000 http://b:8000 --search --slo 'p99 ttft < 500ms'
      Which of them carries more load within the SLO
  goodput compare runs/2026-11-14T… runs/2026-11-15T…
      What can be said from saved runs
  goodput compare runs/baseline http://localhost:8000 --gate 'p99 ttft < +5%, goodput > -3%' \\
      --junit gate.xml --markdown \"$GITHUB_STEP_SUMMARY\"
      The runs of a saved baseline (measured with --slo) again on this server; exit code 4 where
      it got worse
  goodput compare --targets providers.toml --rate 2
      Several, with a model and a key each

Exit codes: 0 fine (better or equivalent, or every gate holds), 1 internal, 2 usage or bad input,
            3 target unreachable or wrong, 4 worse, 5 inconclusive, void, or sides that are not
            comparable, 130 interrupted; what was measured is kept, and --resume goes on.";

/// Is B really faster than A, and by how much
///
/// The first TARGET is the reference. Targets are base URLs, `mock[:SETTINGS]`, or folders of saved
/// runs, each also as NAME=TARGET. Live targets get the same requests at the same instants in blocks
/// of runs, one run of each target a block; the unit of every test is the run, never the request.
#[derive(Debug, Args)]
#[command(after_help = COMPARE_EXAMPLES)]
pub(crate) struct CompareArgs {
    /// Base URLs, `mock[:SETTINGS]`, or folders of saved runs; the first is the reference
    #[arg(value_name = "TARGET")]
    pub(crate) targets: Vec<String>,

    /// Targets from a TOML file: `[[target]]` with name, url, and where they differ model,
    /// api_key_env, headers, gpus and price_per_gpu_hour
    #[arg(long = "targets", value_name = "FILE", conflicts_with = "targets")]
    pub(crate) list: Option<PathBuf>,

    /// The target that the others are held against, by name [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) reference: Option<String>,

    /// One target against itself: how far apart two measurements of one server lie. The result is
    /// kept as the noise floor of this rig, and margins below it are refused
    #[arg(long, conflicts_with = "list")]
    pub(crate) aa: bool,

    /// Go on with the comparison in this folder; only targets, --targets and --header (for secrets,
    /// which are not kept) and output flags may be added, and the folder's --switch-cmd, which runs only if
    /// typed again
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,

    /// With --resume: run the command that the folder names, without typing it again
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
    /// Drawn anew for each block
    Random,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Blocks")]
pub(crate) struct DesignArgs {
    /// Open loop: requests per second; several as in `4,8,16` [default: half of what the reference
    /// carries with 16 users]
    #[arg(long, alias = "rates", alias = "request-rate", value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["concurrency", "search"], allow_negative_numbers = true)]
    pub(crate) rate: Vec<Rate>,

    /// Closed loop: users; several as in `1,8,64`
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "search", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) concurrency: Vec<u32>,

    /// Compare the highest load that keeps the SLO: every run is a quick search of its own
    #[arg(long)]
    pub(crate) search: bool,

    /// Blocks at most. It may end after 6, 8 and 12 once everything can be told
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = blocks)]
    pub(crate) blocks: u32,

    /// Measure all blocks, and look once
    #[arg(long)]
    pub(crate) no_early_end: bool,

    /// Measured time of each run [default: 30s; with --search as `goodput sweep --quick` has it]
    #[arg(long, alias = "block-duration", value_name = "TIME", value_parser = positive_time)]
    pub(crate) duration: Option<Duration>,

    /// Load before the measured part of each run
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "5s")]
    pub(crate) warmup: Duration,

    /// Pause after each run
    #[arg(long, alias = "cooldown", value_name = "TIME", value_parser = humantime::parse_duration, default_value = "1s")]
    pub(crate) settle: Duration,

    /// Order of the targets within a block
    #[arg(long, value_enum, default_value = "abba", value_name = "ORDER")]
    pub(crate) order: OrderName,

    /// All targets of a block at once: only where each has hardware of its own
    #[arg(long, conflicts_with_all = ["switch_cmd", "search", "aa"])]
    pub(crate) at_once: bool,

    /// Run this before each run, and wait until the target is ready; `{side}` is the target's name,
    /// `{url}` its URL, inside quotes $GOODPUT_SIDE and $GOODPUT_URL
    #[arg(long, value_name = "COMMAND")]
    pub(crate) switch_cmd: Option<String>,

    /// Open loop: how arrivals spread: `poisson`, `constant`, or `gamma:CV`
    #[arg(long, value_name = "PROCESS", default_value = "poisson")]
    pub(crate) arrivals: ArrivalProcess,

    /// How long to wait for answers after the last request of a run
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "60s")]
    pub(crate) drain: Duration,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Verdict")]
pub(crate) struct GateArgs {
    /// Changes smaller than this do not matter, as in `3%` or `0.03`
    #[arg(long, value_name = "SHARE", default_value = "3%", value_parser = share, allow_hyphen_values = true)]
    pub(crate) margin: f64,

    /// What must hold, as in 'p99 ttft < +5%, goodput > -3%': exit code 4 where it does not; may be
    /// repeated
    #[arg(long, value_name = "CONDITIONS")]
    pub(crate) gate: Vec<String>,

    /// A verdict though the sides are not comparable
    #[arg(long)]
    pub(crate) anyway: bool,

    /// GPUs behind each target: one number for all, or one for each, as in `8,4`
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) gpus: Vec<u32>,

    /// What one GPU costs for an hour: one number for all, or one for each
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::capacity::price)]
    pub(crate) price_per_gpu_hour: Vec<f64>,

    #[command(flatten)]
    pub(crate) files: FileArgs,
}

/// What a CI takes.
#[derive(Debug, Args)]
pub(crate) struct FileArgs {
    /// Write the gates (or the tested figures) as JUnit XML to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,

    /// Append the page as Markdown to this file, as a CI job's summary wants it
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
}

/// `3%` or `0.03`. A bare `3` could mean either.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim(), 0.01),
        None => (text, 1.0),
    };
    let value = number.parse().ok().map(|value: f64| value * scale);
    let value = value.filter(|value| *value > 0.0 && *value < 1.0);
    value.ok_or_else(|| format!("`{text}` lies not between 0 and 100 %: write `3%` or `0.03`"))
}

/// The first two differences tell nothing of how far blocks spread.
fn blocks(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(blocks @ 3..=1000) => Ok(blocks),
        Ok(0..=2) => {
            Err("fewer than 3 blocks give no verdict; 6 or more give a good one".to_owned())
        }
        _ => Err("a number between 3 and 1000".to_owned()),
    }
}
