//! Arguments about the target and how it is spoken to.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::value::parse_time;
use super::{HookArgs, ObserveArgs};

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ApiName {
    /// /v1/chat/completions
    Chat,
    /// /v1/completions
    Completions,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ConnectionsName {
    /// Keep it open for later requests
    Reuse,
    /// Close it, and open a new one for each request
    PerRequest,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Endpoint")]
pub(crate) struct EndpointArgs {
    /// API to use [default: chat, or the one that the URL names]
    #[arg(long, value_enum)]
    pub(crate) api: Option<ApiName>,

    /// Request whole answers instead of streams
    #[arg(long)]
    pub(crate) no_stream: bool,

    /// Do not request token counts in streams (`stream_options`)
    #[arg(long)]
    pub(crate) no_usage: bool,

    /// Model name [env: GOODPUT_MODEL]
    ///
    /// The default is the first model that the server lists under /v1/models.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// Wait up to this long for the server to become ready
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "0s", conflicts_with = "no_probe")]
    pub(crate) wait_ready: Duration,

    /// Do not send a small request before the run; for a server whose failures are to be measured
    #[arg(long)]
    pub(crate) no_probe: bool,

    /// Environment variable that holds the API key [default: OPENAI_API_KEY, if set]
    #[arg(long, value_name = "NAME")]
    pub(crate) api_key_env: Option<String>,

    /// Add a header to every request, as `Name: value`; can be repeated
    #[arg(long = "header", short = 'H', value_name = "HEADER")]
    pub(crate) headers: Vec<String>,

    /// Merge this JSON object into every request body; it is saved with the plan
    #[arg(long, value_name = "JSON")]
    pub(crate) extra_body: Option<String>,

    /// PEM file with certificates to trust in addition to those of the system
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<String>,

    /// Do not verify the server's certificate
    #[arg(long)]
    pub(crate) insecure: bool,

    /// Use HTTP/2: by ALPN on https, with prior knowledge on http
    #[arg(long)]
    pub(crate) http2: bool,

    /// What to do with a connection after its answer
    #[arg(long, value_enum, default_value = "reuse", value_name = "POLICY")]
    pub(crate) connections: ConnectionsName,

    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
    #[command(flatten)]
    pub(crate) hooks: HookArgs,
}
