//! Arguments of `goodput merge`.

use std::path::PathBuf;

use clap::Args;

const MERGE_EXAMPLES: &str = "\
Examples:
  goodput merge shard-0 shard-1 shard-2 shard-3
      Four shards of one plan, as one run
  goodput merge results/rank-* --out runs/whole --json
      Into this folder, with the summary as JSON

Exit codes:
  0    success
  2    wrong usage, or folders that do not belong together
  4    SLO missed
  5    result void
  130  all ranks were interrupted";

/// Merge the shards of one run into one result, exactly
///
/// goodput reads every sample of every shard and averages no figure. It names shards that are
/// missing, died, started late, or had a busy client, and the verdict counts them. The result is a
/// run folder like any other. The folders of the shards stay as they are.
#[derive(Debug, Args)]
#[command(after_long_help = MERGE_EXAMPLES)]
pub(crate) struct MergeArgs {
    /// Run folders of the shards (`goodput run --shard K/N`), in any order
    #[arg(required = true, value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,

    /// Folder for the merged run [default: runs/TIME-WORKLOAD-merge]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Also merge shards that differ in target, model, version, or start, with a warning
    #[arg(long)]
    pub(crate) force: bool,

    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Print only the folder of the result, and no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
