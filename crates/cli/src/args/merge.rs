//! What can be typed after `goodput merge`.

use std::path::PathBuf;

use clap::Args;

const MERGE_EXAMPLES: &str = "\
Examples:
  goodput merge shard-0 shard-1 shard-2 shard-3
      Four clients that sent one plan together, as one run
  goodput merge results/rank-* --out runs/whole --json
      Into this folder, with the numbers as JSON

Exit codes: as those of `goodput run`: 0 good, 2 usage or folders that do not belong together, 4 SLO
            missed, 5 result void, 130 all clients were interrupted.";

/// Make one run of the shards of one, exactly
///
/// Every sample of every client is read; no figure is averaged. Clients that are missing, died, began
/// late or were not well are named, and the verdict counts them. The result is a run folder like any
/// other; those of the clients are left as they are.
#[derive(Debug, Args)]
#[command(after_help = MERGE_EXAMPLES)]
pub(crate) struct MergeArgs {
    /// The run folders of the shards (`goodput run --shard K/N`), in any order
    #[arg(required = true, value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,

    /// Folder of the merged run [default: runs/TIME-WORKLOAD-merge]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Merge shards of another target, model, version or start too, with a warning
    #[arg(long)]
    pub(crate) force: bool,

    /// Print the summary as JSON instead of a page
    #[arg(long)]
    pub(crate) json: bool,
}
