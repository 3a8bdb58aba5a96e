//! Arguments of `goodput init`.

use std::path::PathBuf;

use clap::Args;

const INIT_EXAMPLES: &str = "\
Examples:
  goodput init
      Write plan.toml
  goodput run --plan plan.toml
      Run it
  goodput run localhost:8000 --plan plan.toml --slo interactive
      Run it against another target, and judge it by an SLO";

/// Write a commented plan.toml to start from
///
/// The plan runs as it is, on the mock. An existing file is never overwritten.
#[derive(Debug, Args)]
#[command(after_long_help = INIT_EXAMPLES)]
pub(crate) struct InitArgs {
    /// File to create
    #[arg(default_value = "plan.toml")]
    pub(crate) file: PathBuf,
}
