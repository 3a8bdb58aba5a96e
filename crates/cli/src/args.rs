//! What can be typed. Nothing past `plan.rs` sees these types.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use goodput_model::{Arrivals, Extent, Lengths, Rate};

/// How much load an LLM endpoint carries while its users stay happy, how sure we are, and what it
/// costs.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Run(RunArgs),
    Report(ReportArgs),
    Mock(MockArgs),
    Calibrate(CalibrateArgs),
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
}

/// Flags that a plan answers already.
const FIXED_BY_A_PLAN: [&str; 13] = [
    "LoadArgs",
    "WorkloadArgs",
    "api",
    "no_stream",
    "no_usage",
    "wait_ready",
    "no_probe",
    "api_key_env",
    "extra_body",
    "cacert",
    "insecure",
    "http2",
    "connections",
];

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
  goodput run --plan runs/2026-11-15T10-22-07Z-chat-run/plan.toml
      Repeat a run

Exit codes: 0 good, 1 internal, 2 usage or bad input, 3 target unreachable or wrong,
            5 result void, 130 interrupted with a partial report written.
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

    /// Repeat the run of this plan file; only the target, --model, --header and output flags may be added
    #[arg(long, value_name = "FILE", conflicts_with_all = FIXED_BY_A_PLAN)]
    pub(crate) plan: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArgs {
    /// Open loop: requests per second on average (`20`, `20/s`, `90/m`), or `inf` for all at once
    #[arg(
        long,
        alias = "request-rate",
        value_name = "R",
        conflicts_with = "concurrency",
        allow_negative_numbers = true
    )]
    pub(crate) rate: Option<Rate>,

    /// Open loop: how arrivals spread: `poisson`, `constant`, or `gamma:CV`
    #[arg(long, value_name = "PROCESS", conflicts_with = "concurrency", default_value = "poisson")]
    pub(crate) arrivals: Arrivals,

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

    /// Closed loop: pause between an answer and the user's next request
    #[arg(long, value_name = "TIME", conflicts_with = "rate", value_parser = humantime::parse_duration, default_value = "0s")]
    pub(crate) think_time: Duration,

    /// Length of the measured part [default: 60s, unless --num-requests is given]
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub(crate) duration: Option<Duration>,

    /// Number of measured requests; with --duration, whichever comes first
    #[arg(long, alias = "num-prompts", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) num_requests: Option<u64>,

    /// Load before the measured part, by time (`10s`) or requests (`50`); kept out of the numbers
    #[arg(long, value_name = "TIME|N", default_value = "0s")]
    pub(crate) warmup: Extent,

    /// Load after the measured part, so that its last requests still meet load
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "0s")]
    pub(crate) cooldown: Duration,

    /// How long to wait for answers after the last request
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "60s")]
    pub(crate) drain: Duration,

    /// Limit for one request, from when it is let go (after waiting for --max-concurrency)
    #[arg(long, value_name = "TIME", value_parser = positive_time, default_value = "10m")]
    pub(crate) timeout: Duration,

    /// Seed of arrivals and prompts
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

#[derive(Debug, Args)]
#[command(next_help_heading = "Workload")]
pub(crate) struct WorkloadArgs {
    /// What to send
    #[arg(long, value_name = "NAME", default_value = "chat")]
    pub(crate) workload: String,

    /// A fixed prompt length in tokens, about, instead of the workload's distribution
    #[arg(long, alias = "random-input-len", value_name = "LENGTHS")]
    pub(crate) input_tokens: Option<Lengths>,

    /// A fixed limit for answers in tokens, instead of the workload's distribution
    #[arg(long, alias = "random-output-len", value_name = "LENGTHS")]
    pub(crate) max_tokens: Option<Lengths>,

    /// Ask the server to generate up to the limit (`ignore_eos`; not every server knows it)
    #[arg(long)]
    pub(crate) ignore_eos: bool,
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
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// The run folder [default: runs/TIME-WORKLOAD-run]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Print the summary as JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,

    /// Print neither progress nor table
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Percentiles to report, between 0 and 100 [default: 50,75,90,95,99,99.9]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = percentile)]
    pub(crate) percentiles: Option<Vec<f64>>,

    /// Keep prompts and answers in the run folder (text.jsonl)
    #[arg(long)]
    pub(crate) save_text: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The table that the run printed
    Text,
    /// summary.json, computed anew from the log
    Json,
}

/// Show the results of a saved run, also of one that was killed
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  goodput report runs/2026-11-15T10-22-07Z-chat-run\n  goodput report runs/… --format json | jq .metrics.ttft"
)]
pub(crate) struct ReportArgs {
    /// The run folder
    pub(crate) folder: PathBuf,

    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,

    /// Print JSON; the same as --format json
    #[arg(long)]
    pub(crate) json: bool,
}

const MOCK_EXAMPLES: &str = "\
Examples:
  goodput mock --listen 127.0.0.1:8000
  goodput mock --profile llama-70b-8xh100            continuous batching, KV and prefix cache
  goodput mock --ttft lognormal:80ms:0.5 --itl 20ms --slots 16
  goodput mock --fault 500:5% --fault stall=2s:1/100 --fault refuse@30s+5s
  goodput mock --profile llama-70b-8xh100 --curve 1,5,10,20,30     in simulated time, at once
  goodput mock --profile llama-8b-1xh200 --show-profile > mine.toml
  goodput run mock:ttft=20ms,itl=5ms,slots=4 --rate 10             the same inside a run
  goodput run mock:llama-8b-1xh200,max_num_seqs=64,fault=429:1% --rate 10

Delays are fixed (50ms), uniform:40ms:60ms, exp:50ms (mean) or lognormal:50ms:0.5 (median, sigma).
Settings, faults and how to write a profile: docs/mock.md, docs/profiles.md.";

/// Serve the simulated engine alone
///
/// An OpenAI-compatible server over a model of an engine: chat, completions, embeddings, models,
/// tokenize, health, /metrics, over HTTP/1.1 and HTTP/2. Its timing is known by construction, and
/// it misbehaves on demand. Ctrl-C ends it and says what it did.
#[derive(Debug, Args)]
#[command(after_help = MOCK_EXAMPLES)]
pub(crate) struct MockArgs {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8000")]
    pub(crate) listen: String,

    /// The engine: `default` (50 ms TTFT, 10 ms ITL, 128 slots), `fast` (no delays),
    /// `llama-8b-1xh200`, `llama-70b-8xh100`, `cpu-laptop`, or a .toml file
    #[arg(long, value_name = "NAME|FILE", default_value = "default")]
    pub(crate) profile: String,

    /// Change a setting of the profile, as in `max_num_seqs=64`; can be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,

    /// From getting a slot to the first token
    #[arg(long, value_name = "DELAY")]
    pub(crate) ttft: Option<String>,

    /// From one token to the next
    #[arg(long, value_name = "DELAY")]
    pub(crate) itl: Option<String>,

    /// Requests served at once; the others wait in order of arrival
    #[arg(long, value_name = "N")]
    pub(crate) slots: Option<String>,

    /// Name of the model
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// Seed of everything drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Let something go wrong: `KIND[=VALUE][:SHARE][@FROM[+FOR]]`; can be repeated
    #[arg(long, value_name = "FAULT", long_help = fault_help())]
    pub(crate) fault: Vec<String>,

    /// Whose names /metrics uses: vllm, sglang, tgi or llamacpp
    #[arg(long, value_name = "DIALECT", default_value = "vllm")]
    pub(crate) metrics: String,

    /// Share of each chat answer that is sent as reasoning, as in `40%`
    #[arg(long, value_name = "SHARE")]
    pub(crate) reasoning: Option<String>,

    /// Share of the requests with tools that are answered by a call where the choice is free
    #[arg(long, value_name = "SHARE")]
    pub(crate) tool_calls: Option<String>,

    /// Environment variable with the key that requests must carry
    #[arg(long, value_name = "NAME")]
    pub(crate) api_key_env: Option<String>,

    /// Write what really happened to each request to this file, as a request log
    #[arg(long, value_name = "FILE")]
    pub(crate) truth: Option<PathBuf>,

    /// PEM file with the certificate chain, to serve https
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// PEM file with the certificate's key
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Print the profile as TOML instead, to start one of your own from
    #[arg(long)]
    pub(crate) show_profile: bool,

    /// Print instead how the profile does at these rates (requests/s) of chat traffic, computed in
    /// simulated time
    #[arg(long, value_name = "RATES", value_delimiter = ',', value_parser = simulated_rate, conflicts_with = "show_profile")]
    pub(crate) curve: Vec<f64>,

    /// Simulated time of each rate of --curve
    #[arg(long, value_name = "TIME", value_parser = positive_time, default_value = "5m", requires = "curve")]
    pub(crate) curve_duration: Duration,

    /// Print the curve as JSON
    #[arg(long, requires = "curve")]
    pub(crate) json: bool,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn simulated_rate(text: &str) -> Result<f64, String> {
    let rate = text.trim().parse::<f64>().ok();
    rate.filter(|rate| *rate > 0.0 && *rate <= 100_000.0)
        .ok_or_else(|| "a rate is a number of requests per second, as in 1,5,20".to_owned())
}

fn fault_help() -> String {
    format!(
        "Let something go wrong; can be repeated\n\n\
         KIND[=VALUE][:SHARE][@FROM[+FOR]]: SHARE is 10% of the requests or 1/10, every tenth (all \
         by default); @30s+5s: only those that come 30 s after the start, for 5 s. Kinds:\n{}",
        goodput_mock::Fault::forms().collect::<Vec<_>>().join(", ")
    )
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
