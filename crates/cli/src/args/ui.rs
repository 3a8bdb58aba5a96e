//! Arguments of `goodput ui`.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::SavedSloArgs;
use clap::Args;

const UI_EXAMPLES: &str = "\
Examples:
  goodput ui
      The results in runs/, at http://127.0.0.1:8642
  goodput ui /data/benchmarks --listen 127.0.0.1:0
      Another folder, on any free port
  goodput ui --listen 0.0.0.0:8642 --token-file token.txt
      For other machines, with a token; an SSH tunnel to the loopback address is safer

Exit codes:
  0    ended by Ctrl-C
  2    wrong usage, a folder that cannot be read, or an address in use";

/// Browse results: list, search, tags, notes, curves, live view
///
/// All data stays on this machine. goodput changes nothing except the tags and notes that you type.
/// It follows a running benchmark by reading its log.
#[derive(Debug, Args)]
#[command(after_long_help = UI_EXAMPLES)]
pub(crate) struct UiArgs {
    /// Folder of results
    #[arg(default_value = "runs")]
    pub(crate) folder: PathBuf,

    /// Address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8642")]
    pub(crate) listen: SocketAddr,

    /// File with the access token [default: none on the loopback address; elsewhere a new one,
    /// printed once]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Rebuild the index of the folder
    #[arg(long)]
    pub(crate) reindex: bool,

    #[command(flatten)]
    pub(crate) slo: SavedSloArgs,
}
