//! Arguments of every proxy.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::value::parse_positive_time;

/// Where clients connect, and how the proxy speaks to the servers behind it.
#[derive(Debug, Clone, Args)]
pub(crate) struct ProxyArgs {
    /// Address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,

    /// Listen beyond the loopback address: every machine that can reach the address can use the
    /// server behind it
    #[arg(long)]
    pub(crate) expose: bool,

    /// PEM file with the certificate chain, to serve https to clients
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// PEM file with the key of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// HTTP version for the servers behind the proxy
    #[arg(long, value_enum, default_value = "1", value_name = "VERSION")]
    pub(crate) upstream_http: HttpName,

    /// PEM file with additional certificates to trust for the servers behind the proxy
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,

    /// Do not verify the certificates of the servers behind the proxy
    #[arg(long)]
    pub(crate) insecure: bool,

    /// Threads that forward traffic, from 1 to 64
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) workers: u16,

    /// Most client connections at the same time; beyond it, the longest idle ones are closed
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_connections: u32,

    /// Header that names a conversation, if clients send one
    #[arg(long, value_name = "NAME")]
    pub(crate) session_header: Option<String>,

    /// How long to wait for answers in flight after a stop
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_positive_time)]
    pub(crate) drain: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HttpName {
    /// HTTP/1.1
    #[value(name = "1")]
    Http1,
    /// HTTP/2: by ALPN on https, with prior knowledge on http
    #[value(name = "2")]
    Http2,
}

/// A share of the traffic, such as `5%`: above 0 and at most 1.
pub(super) fn parse_share(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    percent
        .filter(|percent| *percent > 0.0 && *percent <= 100.0)
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "write it as `5%`, above 0% and at most 100%".to_owned())
}
