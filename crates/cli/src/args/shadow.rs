//! Arguments of `goodput shadow`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use goodput_campaign::shadow::BLOCK_PAIRS;

use super::compare::{FileArgs, parse_share as part};
use super::proxy::parse_share;
use super::value::{parse_positive_time, parse_url};
use super::{ProxyArgs, ScreenName};

const SHADOW_EXAMPLES: &str = "\
Examples:
  goodput shadow --primary localhost:8000 --candidate localhost:8001
      Point clients at http://127.0.0.1:8080: 5 % of the conversations go to the candidate too;
      Ctrl-C ends it and prints the comparison
  goodput shadow --primary http://a:8000 --candidate http://b:8000 --share 20% --duration 1h \\
      --gate 'p99 ttft < +5%, errors < +1%'
      One hour; exit code 4 if a gate fails
  goodput shadow --primary https://api.example.com --candidate localhost:8001 \\
      --candidate-model my-model --candidate-key-env MY_KEY --max-rate 2 --max-in-flight 4
      Another model name and key for the candidate, and limits on its load

Signals:
  SIGUSR1  pause the shadow at once; a second one resumes it

goodput never sends clients' cookies to the candidate, and sends their keys only with
--forward-credentials.

Exit codes:
  0    better or equivalent, or every gate holds
  1    internal error
  2    wrong usage or bad input
  3    the primary's name cannot be resolved, or the proxy failed
  4    worse, or a gate fails
  5    inconclusive or void
  130  stopped before --duration or --pairs; the result is still written";

/// Send some live traffic to a candidate too, and compare
///
/// A proxy in front of the primary. Clients get the primary's answers, byte for byte, as they
/// arrive. Some requests also go to the candidate, whose answers are measured and discarded.
/// Nothing that the candidate does reaches a client.
#[derive(Debug, Args)]
#[command(after_long_help = SHADOW_EXAMPLES)]
pub(crate) struct ShadowArgs {
    /// Server whose answers clients get
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    pub(crate) primary: String,

    /// Server to try
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    pub(crate) candidate: String,

    /// Stop after this time [default: run until stopped]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time)]
    pub(crate) duration: Option<Duration>,

    /// Stop after this many pairs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) pairs: Option<u64>,

    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,
    #[command(flatten)]
    pub(crate) candidate_args: CandidateArgs,
    #[command(flatten)]
    pub(crate) verdict: VerdictArgs,
    #[command(flatten)]
    pub(crate) proxy: ProxyArgs,
    #[command(flatten)]
    pub(crate) shown: ShownArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ByName {
    /// Whole conversations, by the session header or by how they begin
    Conversation,
    /// Each request on its own
    Request,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Choice")]
pub(crate) struct ChoiceArgs {
    /// Share of the traffic that the candidate gets too
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = parse_share)]
    pub(crate) share: f64,

    /// Unit of the choice
    #[arg(long, value_enum, default_value = "conversation", value_name = "UNIT")]
    pub(crate) by: ByName,

    /// Seed of the choice: the same seed chooses the same traffic
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Only requests for this model; can be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) only_model: Vec<String>,

    /// No requests for this model; can be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) not_model: Vec<String>,

    /// Only requests whose path starts with this; can be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) only_path: Vec<String>,

    /// No requests whose path starts with this; can be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) not_path: Vec<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Candidate")]
pub(crate) struct CandidateArgs {
    /// Model name for the candidate [default: the one that the client names]
    #[arg(long, value_name = "NAME")]
    pub(crate) candidate_model: Option<String>,

    /// Environment variable that holds the candidate's API key
    #[arg(long, value_name = "NAME", conflicts_with = "forward_credentials")]
    pub(crate) candidate_key_env: Option<String>,

    /// Add a header to the candidate's requests; can be repeated
    #[arg(long, value_name = "NAME: VALUE")]
    pub(crate) candidate_header: Vec<String>,

    /// Forward this header of the client to the candidate; can be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) forward_header: Vec<String>,

    /// Forward the client's credentials (Authorization, API keys) to the candidate
    #[arg(long)]
    pub(crate) forward_credentials: bool,

    /// Most requests in flight at the candidate
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max_in_flight: u32,

    /// Most requests per second to the candidate
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub(crate) max_rate: Option<f64>,

    /// Most requests that wait for the candidate
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max_queue: u32,

    /// Time limit for an answer of the candidate; answers of the primary have no such limit
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_positive_time)]
    pub(crate) candidate_timeout: Duration,

    /// Pause the candidate if more than this share of its last 20 answers failed; 100% never pauses
    /// it
    #[arg(long, value_name = "SHARE", default_value = "50%", value_parser = parse_share)]
    pub(crate) stop_at_errors: f64,

    /// How long to pause the candidate before one request tries it again; doubles each time
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_positive_time)]
    pub(crate) retry_after: Duration,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Verdict")]
pub(crate) struct VerdictArgs {
    /// Smallest difference that matters, such as `3%` or `0.03`
    #[arg(long, value_name = "SHARE", default_value = "3%", value_parser = part, allow_hyphen_values = true)]
    pub(crate) margin: f64,

    /// Condition that must hold, such as 'p99 ttft < +5%, errors < +1%'; exit code 4 if not; can be
    /// repeated
    #[arg(long, value_name = "CONDITIONS")]
    pub(crate) gate: Vec<String>,

    /// Shortest length of a block; every test compares blocks, never single requests
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_positive_time)]
    pub(crate) block: Duration,

    /// Fewest pairs in a block; a block with fewer continues
    #[arg(long, value_name = "N", default_value_t = BLOCK_PAIRS, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) block_pairs: u32,

    /// Report how similar the answers are: equal, equal up to a point, lengths. Their text is
    /// discarded
    #[arg(long)]
    pub(crate) similarity: bool,

    #[command(flatten)]
    pub(crate) files: FileArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ShownArgs {
    /// Folder for the result [default: runs/TIME-live-shadow]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Print only the folder of the result, and no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// How to show progress on a terminal
    #[arg(long, value_enum, default_value = "auto", value_name = "MODE")]
    pub(crate) screen: ScreenName,

    /// Serve metrics of both sides at http://ADDR/metrics; beyond the loopback address this needs
    /// --expose
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics_listen: Option<SocketAddr>,
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (1e-3..=1e6).contains(&rate) => Ok(rate),
        _ => Err("expected requests per second, as in `5` or `0.5`".to_owned()),
    }
}
