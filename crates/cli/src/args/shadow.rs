//! What can be typed after `goodput shadow`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use goodput_campaign::shadow::BLOCK_PAIRS;

use super::compare::{FileArgs, share as part};
use super::proxy::share;
use super::{ProxyArgs, ScreenName, positive_time};

const SHADOW_EXAMPLES: &str = "\
Examples:
  goodput shadow --primary http://localhost:8000 --candidate http://localhost:8001
      Point clients at http://127.0.0.1:8080: they get the primary's answers; 5 % of the
      conversations go to the candidate too. Ctrl-C ends it and says who is faster
  goodput shadow --primary http://a:8000 --candidate http://b:8000 --share 20% --duration 1h \\
      --gate 'p99 ttft < +5%, errors < +1%'
      An hour; exit code 4 where a gate fails
  goodput shadow --primary https://api.example.com --candidate http://localhost:8001 \\
      --candidate-model my-model --candidate-key-env MY_KEY --max-rate 2 --max-in-flight 4
      Another model's name and key for the candidate, and not more than it can bear
  kill -USR1 PID
      Stops mirroring at once; once more, and it goes on

Cookies of clients are never sent to the candidate, their keys only with --forward-credentials.
Exit codes: 0 fine (better or equivalent, or every gate holds), 1 internal, 2 usage or bad input,
            3 nobody knows the primary's name, or the proxy broke, 4 worse, or a gate failed,
            5 inconclusive or void, 130 stopped before --duration or --pairs; the result is written
            all the same.";

/// Send a share of live traffic to a candidate too, and compare it with the server that answers
///
/// A proxy in front of the primary. Clients get the primary's answers, byte for byte as they come;
/// some of the requests are also sent to the candidate, whose answers are measured and thrown away.
/// Nothing that the candidate does reaches a client.
#[derive(Debug, Args)]
#[command(after_help = SHADOW_EXAMPLES)]
pub(crate) struct ShadowArgs {
    /// The server that answers
    #[arg(long, value_name = "URL")]
    pub(crate) primary: String,

    /// The server that is tried
    #[arg(long, value_name = "URL")]
    pub(crate) candidate: String,

    /// End after this time [default: until it is stopped]
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub(crate) duration: Option<Duration>,

    /// End after so many pairs
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
    /// All requests of a conversation or none: by the session header, or by how it begins
    Conversation,
    /// Each request for itself
    Request,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Choice")]
pub(crate) struct ChoiceArgs {
    /// Share of the traffic that the candidate gets too
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = share)]
    pub(crate) share: f64,

    /// What is chosen as one
    #[arg(long, value_enum, default_value = "conversation", value_name = "WHAT")]
    pub(crate) by: ByName,

    /// Whom the choice falls on: the same for the same seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Only requests for this model; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) only_model: Vec<String>,

    /// No requests for this model; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) not_model: Vec<String>,

    /// Only requests whose path begins so; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) only_path: Vec<String>,

    /// No requests whose path begins so; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) not_path: Vec<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Candidate")]
pub(crate) struct CandidateArgs {
    /// The name of the model there [default: as the client asks]
    #[arg(long, value_name = "NAME")]
    pub(crate) candidate_model: Option<String>,

    /// Environment variable with the candidate's key
    #[arg(long, value_name = "NAME", conflicts_with = "forward_credentials")]
    pub(crate) candidate_key_env: Option<String>,

    /// A header for the candidate; may be repeated
    #[arg(long, value_name = "NAME: VALUE")]
    pub(crate) candidate_header: Vec<String>,

    /// A header of the client that the candidate gets too; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) forward_header: Vec<String>,

    /// Send the client's credentials (Authorization, API keys) to the candidate too
    #[arg(long)]
    pub(crate) forward_credentials: bool,

    /// Requests under way at the candidate at most
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max_in_flight: u32,

    /// Requests a second to the candidate at most
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) max_rate: Option<f64>,

    /// Requests that wait for the candidate at most
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max_queue: u32,

    /// How long an answer of the candidate may take; an answer of the primary has no such limit
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = positive_time)]
    pub(crate) candidate_timeout: Duration,

    /// Leave the candidate alone for a while when more than this share of its last 20 answers failed;
    /// 100% is never
    #[arg(long, value_name = "SHARE", default_value = "50%", value_parser = share)]
    pub(crate) stop_at_errors: f64,

    /// How long it is left alone before one request tries it again; twice as long each time
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = positive_time)]
    pub(crate) retry_after: Duration,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Verdict")]
pub(crate) struct VerdictArgs {
    /// Changes smaller than this do not matter, as in `3%` or `0.03`
    #[arg(long, value_name = "SHARE", default_value = "3%", value_parser = part, allow_hyphen_values = true)]
    pub(crate) margin: f64,

    /// What must hold, as in 'p99 ttft < +5%, errors < +1%': exit code 4 where it does not; may be
    /// repeated
    #[arg(long, value_name = "CONDITIONS")]
    pub(crate) gate: Vec<String>,

    /// Least length of a block: the unit of every test is the block, never the request
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = positive_time)]
    pub(crate) block: Duration,

    /// Least pairs of a block; one with fewer goes on
    #[arg(long, value_name = "N", default_value_t = BLOCK_PAIRS, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) block_pairs: u32,

    /// Say how alike the answers are: the same, so far the same, how long. Their text is forgotten
    #[arg(long)]
    pub(crate) similarity: bool,

    #[command(flatten)]
    pub(crate) files: FileArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ShownArgs {
    /// The folder of the result [default: runs/TIME-live-shadow]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Print the summary as JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,

    /// Print neither progress nor table
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// How progress is shown on a terminal
    #[arg(long, value_enum, default_value = "auto", value_name = "HOW")]
    pub(crate) screen: ScreenName,

    /// Serve metrics of both sides at this address, under /metrics; elsewhere than on the loopback it
    /// needs --expose
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics_listen: Option<SocketAddr>,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (1e-3..=1e6).contains(&rate) => Ok(rate),
        _ => Err("requests a second, as in `5` or `0.5`".to_owned()),
    }
}
