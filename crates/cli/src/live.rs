//! What `record` and `shadow` have in common: the settings of the proxy, signals as commands, and
//! messages about both.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use goodput_live::{Limits, LiveError, ObserverCommand, ProxyError, Settings, TlsFiles, Upstream};
use goodput_model::Http;
use goodput_report::escape_control;
use goodput_wire::{BaseUrl, EndpointError, SessionHeader, UrlError};
use tokio::signal::unix::SignalKind;

use crate::args::{HttpName, ProxyArgs};
use crate::error::Failed;
use crate::output;
use crate::signals::SignalStreams;

/// How long signals are waited for at a time.
const LONG: Duration = Duration::from_hours(1);

/// The settings of a proxy that forwards to `upstream`. The witness gets no text.
pub(crate) fn proxy_settings(args: &ProxyArgs, upstream: Upstream) -> Result<Settings, Failed> {
    check_exposure(args)?;
    check_loop(args.listen, &upstream)?;
    let tls = args.tls_cert.clone().zip(args.tls_key.clone());
    if let Some(name) = &args.session_header {
        let wrong = |error: EndpointError| Failed::usage(error.to_string());
        name.parse::<SessionHeader>().map_err(wrong)?;
    }
    Ok(Settings {
        listen: args.listen,
        tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
        upstream,
        workers: usize::from(args.workers),
        session_header: args.session_header.as_ref().map(|name| name.to_ascii_lowercase()),
        keep_text: false,
        limits: Limits { connections: args.max_connections as usize, ..Limits::default() },
    })
}

/// A server behind the proxy, spoken to as the flags say.
pub(crate) fn build_upstream(args: &ProxyArgs, url: &str) -> Result<Upstream, Failed> {
    let url: BaseUrl =
        url.parse().map_err(|error: UrlError| Failed::usage(error.to_string()).hint(error.hint))?;
    let http = match args.upstream_http {
        HttpName::Http1 => Http::Http1,
        HttpName::Http2 => Http::Http2,
    };
    let cacert = args.cacert.as_deref().map(read_authorities).transpose()?;
    Ok(Upstream { url, http, cacert, insecure: args.insecure })
}

fn read_authorities(path: &Path) -> Result<Vec<u8>, Failed> {
    goodput_files::read(path, goodput_files::MOST_SMALL).map_err(|error| {
        Failed::usage(format!("cannot read the CA file `{}`: {error}", path.display()))
    })
}

/// Anyone who can reach the address can use the server behind it, so this needs a flag.
fn check_exposure(args: &ProxyArgs) -> Result<(), Failed> {
    if args.listen.ip().is_loopback() || args.expose {
        return Ok(());
    }
    Err(Failed::usage(format!(
        "{} is not a loopback address: anyone who can reach it could use the server behind it",
        args.listen
    ))
    .hint("add --expose to allow this; --tls-cert and --tls-key encrypt the traffic"))
}

/// So does an address at which others can read how much traffic passes.
pub(crate) fn check_metrics(args: &ProxyArgs, metrics: Option<SocketAddr>) -> Result<(), Failed> {
    match metrics.filter(|address| !address.ip().is_loopback() && !args.expose) {
        None => Ok(()),
        Some(address) => Err(Failed::usage(format!(
            "{address} (--metrics-listen) is not a loopback address: anyone who can reach it could \
             read how much traffic passes"
        ))
        .hint("add --expose to allow this")),
    }
}

/// A proxy in front of itself would send each request around until nothing is left.
pub(crate) fn check_loop(listen: SocketAddr, upstream: &Upstream) -> Result<(), Failed> {
    if !goodput_live::is_loop(listen, upstream) {
        return Ok(());
    }
    let shown = upstream.url.shown();
    Err(Failed::usage(format!("{shown} is the address that goodput itself listens on"))
        .hint("choose another port with --listen; port 0 picks a free one"))
}

/// Warns if a server does not answer yet: it may still start, so this is not an error. A name that
/// cannot be resolved is one.
pub(crate) fn warn_unless_reachable(upstream: &Upstream) -> Result<(), Failed> {
    if let Some(why) =
        goodput_live::check_upstream(upstream).map_err(|error| proxy_failure(&error))?
    {
        let shown = upstream.url.shown();
        output::print_note(&escape_control(&format!(
            "warning: {shown} does not answer: {why}; requests get 502 until it does"
        )));
    }
    Ok(())
}

/// Says where clients can connect.
pub(crate) fn print_listening(address: SocketAddr, is_encrypted: bool) {
    // If the port was left open, this is the only way to learn it.
    let scheme = if is_encrypted { "https" } else { "http" };
    output::print_note(&format!("listening on {scheme}://{address}"));
    output::warn_if_open(
        address,
        if is_encrypted {
            "anyone who can connect can use the server behind it"
        } else {
            "what clients send is not encrypted; --tls-cert and --tls-key encrypt it"
        },
    );
}

/// Turns signals into commands from now on. The returned sender is for other sources of commands.
pub(crate) fn signal_commands(
    others: &[(SignalKind, ObserverCommand)],
) -> Result<(Sender<ObserverCommand>, Receiver<ObserverCommand>), Failed> {
    // A limit on the size of files, or a terminal that closes, ends a process that does not hear of
    // it; passing on must go on.
    let too_large = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    let stops = [SignalKind::interrupt(), SignalKind::terminate()];
    let table: Vec<(SignalKind, ObserverCommand)> = stops
        .into_iter()
        .map(|kind| (kind, ObserverCommand::Stop))
        .chain(others.iter().copied())
        .collect();
    let mut kinds: Vec<SignalKind> = table.iter().map(|(kind, _)| *kind).collect();
    kinds.push(too_large);
    if !kinds.contains(&SignalKind::hangup()) {
        kinds.push(SignalKind::hangup());
    }
    let internal = |error: std::io::Error| Failed::internal(error.to_string());
    let streams = SignalStreams::new(&kinds).map_err(internal)?;
    let (sender, receiver) = channel();
    let told = sender.clone();
    let listen = move || {
        streams.for_each_signal(LONG, |heard| {
            let command = table.iter().find(|(kind, _)| Some(*kind) == heard);
            command.is_none_or(|(_, command)| told.send(*command).is_ok())
        });
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(listen).map_err(internal)?;
    Ok((sender, receiver))
}

/// The failure to start a recording or a shadow, with the matching exit code.
pub(crate) fn live_failure(error: &LiveError) -> Failed {
    let failed = match error {
        LiveError::Proxy(error) => return proxy_failure(error),
        LiveError::Trace { .. } | LiveError::Folder(_) => Failed::usage(error.to_string()),
        LiveError::Thread(_) | LiveError::Broken(_) => Failed::internal(error.to_string()),
    };
    match error.hint() {
        Some(hint) => failed.hint(hint),
        None => failed,
    }
}

/// The failure to start a proxy, with the matching exit code.
fn proxy_failure(error: &ProxyError) -> Failed {
    let failed = match error {
        ProxyError::Upstream(EndpointError::Dns { .. }) => Failed::target(error.to_string()),
        ProxyError::Start(_) => Failed::internal(error.to_string()),
        _ => Failed::usage(error.to_string()),
    };
    failed.hint(error.hint())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_for_others_must_be_meant() {
        #[derive(clap::Parser)]
        struct Typed {
            #[command(flatten)]
            proxy: ProxyArgs,
        }
        let is_refused = |flags: &[&str], address: Option<&str>| {
            let typed: Typed = clap::Parser::parse_from([&["x"][..], flags].concat());
            check_metrics(&typed.proxy, address.map(|address| address.parse().unwrap())).is_err()
        };
        assert!(is_refused(&[], Some("0.0.0.0:9090")) && is_refused(&[], Some("[::]:0")));
        assert!(!is_refused(&["--expose"], Some("0.0.0.0:9090")));
        assert!(!is_refused(&[], Some("127.0.0.1:0")) && !is_refused(&[], None));
    }
}
