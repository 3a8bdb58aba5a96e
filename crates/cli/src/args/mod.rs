//! What can be typed. Nothing past `plan` sees these types.

mod audit;
mod capacity;
mod compare;
mod fleet;
mod load;
mod log;
mod merge;
mod mock;
mod observe;
mod proxy;
mod record;
mod serve;
mod shadow;
mod shard;
mod slo;
mod sweep;
mod ui;
mod workload;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use goodput_report::Detail;

pub(crate) use audit::{AuditArgs, AuditFormat};
pub(crate) use capacity::CapacityArgs;
pub(crate) use compare::{CompareArgs, DesignArgs, FileArgs, GateArgs, OrderName};
pub(crate) use fleet::{FleetArgs, FleetVerb, KubernetesArgs, LaunchArgs, RayArgs, SlurmArgs};
pub(crate) use load::{ClientArgs, LoadArgs, Switch};
pub(crate) use log::LogArgs;
pub(crate) use merge::MergeArgs;
pub(crate) use mock::MockArgs;
pub(crate) use observe::{BesideArgs, MetricsSwitch, ObserveArgs};
pub(crate) use proxy::{HttpName, ProxyArgs};
pub(crate) use record::{RecordArgs, TraceFileArgs};
pub(crate) use serve::{ColdStartArgs, SuperviseArgs};
pub(crate) use shadow::{ByName, CandidateArgs, ShadowArgs};
pub(crate) use shard::{ShardArgs, ShardName};
pub(crate) use slo::SloArgs;
pub(crate) use sweep::{AxisName, LevelArgs, PointArgs, SweepArgs};
pub(crate) use ui::UiArgs;
pub(crate) use workload::{
    AmountArgs, ConvertArgs, DataArgs, HistoryName, MakeArgs, OutputName, ReplayName, SampleArgs,
    SessionArgs, ShapeArgs, ShowArgs, StructuredDialectName, TraceArgs, WorkloadArgs, WorkloadVerb,
};

/// How much load an LLM endpoint carries while its users stay happy, how sure we are, and what it
/// costs.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Verb,

    /// Whether words with a meaning have a colour; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN", global = true)]
    pub(crate) color: ColorName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ColorName {
    /// On a terminal, unless NO_COLOR is set; also elsewhere with CLICOLOR_FORCE
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Run(Box<RunArgs>),
    Sweep(Box<SweepArgs>),
    Compare(Box<CompareArgs>),
    Report(ReportArgs),
    Merge(MergeArgs),
    Audit(AuditArgs),
    Stats(StatsArgs),
    Plan(Box<CapacityArgs>),
    Mock(Box<MockArgs>),
    /// Make, look at, convert and sample workloads and traces
    #[command(subcommand)]
    Workload(WorkloadVerb),
    Calibrate(CalibrateArgs),
    Record(Box<RecordArgs>),
    Shadow(Box<ShadowArgs>),
    Ui(UiArgs),
    Fleet(FleetArgs),
    /// Print a completion script for a shell
    ///
    /// For example: goodput completions bash > /etc/bash_completion.d/goodput
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print the manual page, of goodput or of one verb
    ///
    /// For example: goodput man run | man -l -
    Man {
        /// Which verb
        verb: Option<String>,
    },
    #[command(hide = true)]
    ColdStart(ColdStartArgs),
    #[command(hide = true)]
    Supervise(SuperviseArgs),
}

const RUN_EXAMPLES: &str = "\
Examples:
  goodput run mock --rate 20 --duration 20s
      Try it without a server: open-loop Poisson chat traffic on the simulated engine
  goodput run http://localhost:8000 --rate 8 --duration 5m --warmup 30s
      Measure a server at 8 requests per second
  goodput run https://host/v1 --model llama --concurrency 64 --duration 2m --cacert ca.pem
      64 users, each waiting for its answer, over TLS with a private certificate authority
  goodput run http://localhost:8000 --rate inf --num-requests 500 --max-tokens 100
      Everything at once
  goodput run http://localhost:8000 --rate 5 --mix chat=70%,long_context_qa=30% --tokenizer ./model
      A mix of two kinds of traffic, with prompts exact to the token
  goodput run http://localhost:8000 --trace mooncake.jsonl --time-scale 0.5
      A recorded trace at twice its speed
  goodput run http://localhost:8000 --rate 8 --duration 10m --slo interactive --attainment 99%
      Whether 99 % of the requests keep the preset's limits: exit code 0, 4 or 5
  goodput run http://localhost:8000 --rate 8 --warmup 30s --until 'p95 ttft ±10%'
      Until p95 TTFT is known to ±10 %, for at most ten minutes
  goodput run http://localhost:8000 --rate 8 --duration 2m --warmup 30s --repeat 5
      Five times, with the spread between the runs
  goodput run --plan runs/2026-11-15T10-22-07Z-chat-run/plan.toml
      Repeat a run

Exit codes: 0 good, 1 internal, 2 usage or bad input, 3 target unreachable or wrong,
            4 SLO missed, 5 result void, or too few samples to decide what --slo or --until
            asks, 130 interrupted with a partial report written. Of several runs (--repeat)
            the worst counts.
            A report of a saved run exits with 0 whatever its verdict.";

/// Measure one load level
///
/// TARGET is a base URL (http://host:8000, https://host/prefix/v1), or `mock[:SETTINGS]`, which
/// starts the simulated engine inside the process (see `goodput mock --help` for the settings).
///
/// Before the run one small request checks that the target answers; --no-probe leaves it out.
/// Latencies count from the instant a request was due, not from when it was sent.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    /// Base URL, or `mock[:SETTINGS]`
    #[arg(required_unless_present = "plan")]
    pub(crate) target: Option<String>,

    /// Repeat the run of this plan file; only the target, --model, --header, the SLO, --repeat,
    /// output flags and what is looked at or runs beside it may be added
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,

    /// Run it so many times with seeds of their own (--seed, the next one, …), and say how the runs
    /// differ
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100))]
    pub(crate) repeat: Option<u32>,

    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
    #[command(flatten)]
    pub(crate) slo: SloArgs,
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
    #[command(flatten)]
    pub(crate) shard: ShardArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ApiName {
    /// /v1/chat/completions
    Chat,
    /// /v1/completions
    Completions,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ConnectionsName {
    /// Keep connections for later requests
    Reuse,
    /// Open one for every request
    PerRequest,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Endpoint")]
pub(crate) struct EndpointArgs {
    /// Which API [default: chat, or what the URL names]
    #[arg(long, value_enum)]
    pub(crate) api: Option<ApiName>,

    /// Ask for answers in one piece instead of streams
    #[arg(long)]
    pub(crate) no_stream: bool,

    /// Do not ask for token counts in streams (`stream_options`)
    #[arg(long)]
    pub(crate) no_usage: bool,

    /// Model name [default: the first that /v1/models lists]
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// Wait this long for the server to become ready
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "0s", conflicts_with = "no_probe")]
    pub(crate) wait_ready: Duration,

    /// Send no request ahead of the run
    #[arg(long)]
    pub(crate) no_probe: bool,

    /// Environment variable that holds the API key [default: OPENAI_API_KEY, if set]
    #[arg(long, value_name = "NAME")]
    pub(crate) api_key_env: Option<String>,

    /// An extra header, `Name: value`; may be repeated
    #[arg(long = "header", short = 'H', value_name = "HEADER")]
    pub(crate) headers: Vec<String>,

    /// A JSON object merged into every request body; it is saved with the plan
    #[arg(long, value_name = "JSON")]
    pub(crate) extra_body: Option<String>,

    /// PEM file with certificates to trust besides the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<String>,

    /// Do not check the server's certificate
    #[arg(long)]
    pub(crate) insecure: bool,

    /// Speak HTTP/2 (by ALPN on https, with prior knowledge on http)
    #[arg(long)]
    pub(crate) http2: bool,

    /// What becomes of a connection after its answer
    #[arg(long, value_enum, default_value = "reuse", value_name = "POLICY")]
    pub(crate) connections: ConnectionsName,

    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
    #[command(flatten)]
    pub(crate) beside: BesideArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// The folder of the result [default: runs/TIME-WORKLOAD-run; -sweep and -compare end those of
    /// these verbs]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Print the summary as JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,

    /// Print everything that is known and not only what is read first
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// Print the result's folder only
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// How progress is shown on a terminal
    #[arg(long, value_enum, default_value = "auto", value_name = "HOW")]
    pub(crate) screen: ScreenName,

    /// Percentiles to report, between 0 and 100 [default: 50,75,90,95,99,99.9]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = percentile)]
    pub(crate) percentiles: Option<Vec<f64>>,

    /// Beside each percentile MLPerf's early-stopping estimate: on the safe side with 99 %
    #[arg(long)]
    pub(crate) early_stopping: bool,

    /// Keep prompts and answers in the run folder (text.jsonl)
    #[arg(long)]
    pub(crate) save_text: bool,

    /// Print what would be sent, and send nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl OutputArgs {
    /// How much of a result to print.
    pub(crate) fn detail(&self) -> Detail {
        detail(self.verbose)
    }
}

impl ReportArgs {
    /// How much of a result to print; a file has everything.
    pub(crate) fn detail(&self) -> Detail {
        detail(self.verbose || self.output.is_some())
    }
}

fn detail(is_verbose: bool) -> Detail {
    if is_verbose { Detail::Full } else { Detail::Short }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScreenName {
    /// A screen of its own, where stderr and stdin are a terminal
    Auto,
    /// A plain line every few seconds, as without a terminal
    Off,
    /// One line that is rewritten
    Line,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The table that the run printed
    Text,
    /// summary.json, computed anew from the log
    Json,
    /// A page for a pull request or a job's summary
    #[value(alias = "md")]
    Markdown,
    /// What was asked to hold (an SLO, the gates of a comparison), as JUnit XML
    Junit,
    /// A page for a browser, with everything in it
    Html,
    /// Every chart as a file, in the folder of --output
    Svg,
    /// Every request of a run, or every point of a sweep, one a line
    Csv,
    /// Requests, chunks and the server's series as Parquet files, in the folder of --output
    Parquet,
    /// What `vllm bench serve --save-result` writes
    Vllm,
    /// What SGLang's bench_serving writes, one line
    Sglang,
    /// What AIPerf and GenAI-Perf write as their summary
    Aiperf,
}

/// Show the results of a saved run, of several (--repeat), of a sweep or of a comparison, also of one
/// that was killed
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  goodput report runs/2026-11-15T10-22-07Z-chat-run\n  goodput report runs/… --format json | jq .metrics.ttft"
)]
pub(crate) struct ReportArgs {
    /// The folder of a run, a series, a sweep or a comparison, or a result file of another tool
    pub(crate) folder: PathBuf,

    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,

    /// Print everything that is known and not only what is read first
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// Print JSON; the same as --format json
    #[arg(long)]
    pub(crate) json: bool,

    /// Write to this file (a folder for svg and parquet) instead of stdout
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,

    /// With --format vllm or sglang: every request too (--save-detailed, --output-details)
    #[arg(long)]
    pub(crate) detailed: bool,

    /// Write the traces of a run as OTLP/JSON too: to a file, or to a collector at a URL
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) traces: Option<String>,
}

const CALIBRATE_EXAMPLES: &str = "\
Examples:
  goodput calibrate
      About two minutes; later runs on this machine warn above half of the ceiling it finds
  goodput calibrate --workers 4 --json > calibration.json

The result is kept in $XDG_STATE_HOME/goodput (or ~/.local/state/goodput) for runs with the same
number of workers on the same machine; --out keeps it elsewhere, and then runs do not use it.";

/// Measure this client on this machine: how exact, and how fast
///
/// Rising load against a server of known timing inside this process: error of TTFT and ITL at rising
/// numbers of streams, schedule error at rising request rates, and the rates at which the error
/// passes 1 ms. Do nothing else on the machine meanwhile.
#[derive(Debug, Args)]
#[command(after_help = CALIBRATE_EXAMPLES)]
pub(crate) struct CalibrateArgs {
    /// Threads that send and receive [default: as `goodput run` has it]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) workers: Option<u32>,

    /// Measured time of each level
    #[arg(long, value_name = "TIME", value_parser = level_time, default_value = "4s")]
    pub(crate) level_duration: Duration,

    /// Keep the result in this file instead
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Print the result as JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,

    /// Print no progress and no table
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

const STATS_EXAMPLES: &str = "\
Examples:
  goodput stats latencies.txt
      One number per line, in the order in which they were measured
  goodput stats requests.csv --column ttft_ms --percentiles 50,99
      A column of a table, by its name or number
  goodput stats requests.csv --column 3 --json

`inf` stands for a value beyond a time limit. Exit codes: 0 good, 2 usage or bad input.";

/// What a column of numbers says: percentiles with intervals, warm-up, trend, two groups
///
/// The statistics of a run for latencies that something else has written down, in the order in which
/// they were measured.
#[derive(Debug, Args)]
#[command(after_help = STATS_EXAMPLES)]
pub(crate) struct StatsArgs {
    /// Numbers, one per line, or a table (CSV, TSV)
    pub(crate) file: PathBuf,

    /// The column, by its name or its number from 1 [default: the first]
    #[arg(long, value_name = "NAME|N")]
    pub(crate) column: Option<String>,

    /// Percentiles to report, between 0 and 100 [default: 50,75,90,95,99,99.9]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = percentile)]
    pub(crate) percentiles: Option<Vec<f64>>,

    /// Beside each percentile MLPerf's early-stopping estimate
    #[arg(long)]
    pub(crate) early_stopping: bool,

    /// Print the result as JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

fn positive_time(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if time.is_zero() => Err("must be longer than nothing".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(format!("{error}; write `90s`, `2m`, `500ms`")),
    }
}

/// Answers take two seconds: a shorter level would see none.
fn level_time(text: &str) -> Result<Duration, String> {
    let time = positive_time(text)?;
    let is_fit = (Duration::from_secs(3)..=Duration::from_mins(10)).contains(&time);
    if is_fit { Ok(time) } else { Err("between 3s and 10m".to_owned()) }
}

fn percentile(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(percent),
        _ => Err("a percentile lies between 0 and 100".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
