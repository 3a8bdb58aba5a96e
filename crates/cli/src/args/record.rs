//! Arguments of `goodput record`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::ProxyArgs;
use super::proxy::parse_share;
use super::value::{parse_positive_time, parse_url};

const RECORD_EXAMPLES: &str = "\
Examples:
  goodput record --upstream localhost:8000 --output trace.jsonl
      Clients connect to http://127.0.0.1:8080 instead; Ctrl-C ends it
  goodput record --upstream https://llm.example/v1 --output trace.jsonl --duration 1h --share 10%
      One hour, a tenth of the sessions
  goodput run localhost:8000 --trace trace.jsonl
      Replay the recording
  goodput workload show --trace trace.jsonl
      Show what was recorded
  goodput record --upstream http://10.0.0.7:8000 --listen 0.0.0.0:443 --expose \\
      --tls-cert chain.pem --tls-key key.pem --output /var/log/llm/trace.jsonl \\
      --rotate-every 1d --max-size 20GB --keep-passing --metrics-listen 127.0.0.1:9400
      In front of production: one file per day, trace-000001.jsonl and so on

Signals:
  SIGTERM, SIGINT  accept no new connections and wait for answers (--drain); a second one ends at once
  SIGHUP           start a new file

Exit codes:
  0    ended by a limit or a signal
  1    internal error
  2    wrong usage or bad input
  3    the server's name cannot be resolved
  5    some requests are missing from the trace (the disk was full or too slow)
  130  ended at once";

/// Record live traffic as a trace for `goodput run --trace`
///
/// A proxy that forwards every byte as it arrives. It writes when requests arrived, how long
/// prompts and answers were, how fast they were served, and which prompts share a prefix (as hashes
/// with a salt that is never written). The trace contains no text, key, or header.
#[derive(Debug, Args)]
#[command(after_long_help = RECORD_EXAMPLES)]
pub(crate) struct RecordArgs {
    /// Server that answers
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    pub(crate) upstream: String,

    /// Trace file to create
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) proxy: ProxyArgs,

    #[command(flatten)]
    pub(crate) trace: TraceFileArgs,

    /// Serve counts of the traffic as Prometheus metrics at http://ADDR/metrics; port 0 picks a
    /// free port
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics_listen: Option<SocketAddr>,

    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Print no progress and no summary
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// What the recording contains, and when it ends.
#[derive(Debug, Args)]
#[command(next_help_heading = "Trace")]
pub(crate) struct TraceFileArgs {
    /// Record this share of the sessions, such as `10%`; all traffic is forwarded
    #[arg(long, value_name = "SHARE", default_value = "100%", value_parser = parse_share)]
    pub(crate) share: f64,

    /// Also write prompts and answers; anyone who can read the file can then read what users wrote
    #[arg(long)]
    pub(crate) save_text: bool,

    /// Tokenizer to count prompts with
    ///
    /// tokenizer.json, a folder that contains one, a .tiktoken file, o200k_base, cl100k_base, ...,
    /// or a model of the hub.
    #[arg(long, value_name = "NAME|FILE", default_value = "approximate")]
    pub(crate) tokenizer: String,

    /// Approximate tokens per block; shared prefixes are recorded in whole blocks
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) block_tokens: u32,

    /// Start a new file at this size, such as `100MB`
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) rotate_size: Option<u64>,

    /// Start a new file after this time, such as `1h`
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time)]
    pub(crate) rotate_every: Option<Duration>,

    /// Stop when all files together reach this size
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_size: Option<u64>,

    /// Stop after this time
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time)]
    pub(crate) duration: Option<Duration>,

    /// Stop after this many recorded requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_requests: Option<u64>,

    /// At a limit, stop recording but keep forwarding until a signal arrives
    #[arg(long)]
    pub(crate) keep_passing: bool,
}

/// A size as in `100MB`, `2GiB` or plain bytes.
fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || "write it as `500KB`, `100MB`, or `2GB`; at least 4KB".to_owned();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let bytes = number * unit as f64;
    // Less would hold a header and a few rows.
    if (4_000.0..1e18).contains(&bytes) { Ok(bytes as u64) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse_size("100MB"), Ok(100_000_000));
        assert_eq!(parse_size("1.5 GiB"), Ok(3 << 29));
        assert_eq!(parse_size("4096"), Ok(4096));
        for wrong in ["", "MB", "100 apples", "-5MB", "1KB", "1e5", "99999999TB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
