//! Arguments of the hidden verbs that start a server.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::mock::parse_key_value;
use super::value::parse_positive_time;

/// Run a server for another goodput, and stop it when that process closes stdin or dies
#[derive(Debug, Args)]
pub(crate) struct SuperviseArgs {
    /// File to which the server's output is appended
    #[arg(long, value_name = "FILE")]
    pub(crate) log: PathBuf,

    /// How long the server may take to stop
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time, default_value = "10s")]
    pub(crate) grace: Duration,

    /// Program and arguments of the server
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Start a server, and measure how long it takes until it answers
#[derive(Debug, Args)]
pub(crate) struct ColdStartArgs {
    /// Base URL at which the server will listen
    pub(crate) target: String,

    /// Command of the server; {port}, {host}, and the names of --value stand for their values
    #[arg(long, value_name = "COMMAND")]
    pub(crate) serve: String,

    /// Value for the command; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_key_value)]
    pub(crate) value: Vec<(String, String)>,

    /// File to which the server's output is appended
    #[arg(long, value_name = "FILE", default_value = "server.log")]
    pub(crate) log: PathBuf,

    /// How long the server may take until it answers
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time, default_value = "10m")]
    pub(crate) serve_timeout: Duration,

    /// How long the server may take to stop
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time, default_value = "10s")]
    pub(crate) grace: Duration,

    /// Watch the server's queue until stdin ends, then check that it is empty
    #[arg(long)]
    pub(crate) hold: bool,

    /// Flags of `goodput run` that describe the request
    #[arg(last = true, value_name = "FLAGS")]
    pub(crate) run: Vec<String>,
}
