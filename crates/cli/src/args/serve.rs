//! Arguments of the verbs around a server of our own.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::mock::key_value;
use super::positive_time;

/// Run a server for another goodput, and end it when that one lets go of stdin or dies
#[derive(Debug, Args)]
pub(crate) struct SuperviseArgs {
    /// Where the server's words are added
    #[arg(long, value_name = "FILE")]
    pub(crate) log: PathBuf,

    /// How long the server has to end when it is told to
    #[arg(long, value_name = "TIME", value_parser = positive_time, default_value = "10s")]
    pub(crate) grace: Duration,

    /// The server's program and arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Start a server, and say how long it takes until it answers
#[derive(Debug, Args)]
pub(crate) struct ColdStartArgs {
    /// Base URL at which the server will listen
    pub(crate) target: String,

    /// The server's command; {port}, {host} and the names of --value stand for their values
    #[arg(long, value_name = "COMMAND")]
    pub(crate) serve: String,

    /// A value for the command; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = key_value)]
    pub(crate) value: Vec<(String, String)>,

    /// Where the server's words are added
    #[arg(long, value_name = "FILE", default_value = "server.log")]
    pub(crate) log: PathBuf,

    /// How long it may take until the server answers
    #[arg(long, value_name = "TIME", value_parser = positive_time, default_value = "10m")]
    pub(crate) serve_timeout: Duration,

    /// How long the server has to end when it is told to
    #[arg(long, value_name = "TIME", value_parser = positive_time, default_value = "10s")]
    pub(crate) grace: Duration,

    /// Watch the server's queue until stdin ends, then see that it is empty
    #[arg(long)]
    pub(crate) hold: bool,

    /// Flags of `goodput run` that say how to ask
    #[arg(last = true, value_name = "FLAGS")]
    pub(crate) run: Vec<String>,
}
