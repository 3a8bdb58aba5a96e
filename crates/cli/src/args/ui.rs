//! What can be typed after `goodput ui`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

const UI_EXAMPLES: &str = "\
Examples:
  goodput ui
      The results in runs/, at http://127.0.0.1:8642
  goodput ui /data/benchmarks --listen 127.0.0.1:0
      Another folder, at any port that is free
  goodput ui --listen 0.0.0.0:8642 --token-file token.txt
      For others on the network, who need the token; an SSH tunnel to the loopback is safer

Exit codes: 0 ended by Ctrl-C, 2 usage, a folder that cannot be read or an address that is taken.";

/// Look at a folder of results in a browser: list, search, tags, notes, overlaid curves, live view
///
/// Nothing leaves the machine, and nothing is changed but the tags and notes that are typed. A
/// running benchmark is watched by reading its log.
#[derive(Debug, Args)]
#[command(after_help = UI_EXAMPLES)]
pub(crate) struct UiArgs {
    /// The folder of results
    #[arg(default_value = "runs")]
    pub(crate) folder: PathBuf,

    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8642")]
    pub(crate) listen: SocketAddr,

    /// A file that holds the token to ask for [default: none on the loopback, elsewhere a new one,
    /// printed once]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Make the index of the folder anew
    #[arg(long)]
    pub(crate) reindex: bool,
}
