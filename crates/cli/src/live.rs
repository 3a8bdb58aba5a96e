//! What the verbs that stand in front of a server have in common: a proxy from what was typed.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use goodput_live::{Limits, Proxy, ProxyError, Settings, Tally, TlsFiles, Upstream, Witness};
use goodput_model::{Api, ConnectionPolicy, Http};
use goodput_report::plain;
use goodput_wire::{
    BaseUrl, Endpoint, EndpointError, ProbeError, SessionHeader, UrlError, list_models,
};

use crate::args::{HttpName, ProxyArgs};
use crate::error::Failed;
use crate::listen::{Sheet, label};
use crate::{http, output};

/// How long the first look at a server may take.
const FIRST_LOOK: Duration = Duration::from_secs(3);

/// How the proxy is to be, with everything behind it at `upstream`. The witness gets no text.
pub(crate) fn settings(args: &ProxyArgs, upstream: Upstream) -> Result<Settings, Failed> {
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
pub(crate) fn upstream(args: &ProxyArgs, url: &str) -> Result<Upstream, Failed> {
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

/// Whoever can reach the address can use the server behind it: that must be wanted.
fn check_exposure(args: &ProxyArgs) -> Result<(), Failed> {
    if args.listen.ip().is_loopback() || args.expose {
        return Ok(());
    }
    Err(Failed::usage(format!(
        "{} is not on the loopback: whoever can reach it could use the server behind it",
        args.listen
    ))
    .hint("--expose says that this is meant; --tls-cert and --tls-key encrypt what is sent"))
}

/// So must be who can read how much passes.
pub(crate) fn check_metrics(args: &ProxyArgs, metrics: Option<SocketAddr>) -> Result<(), Failed> {
    match metrics.filter(|address| !address.ip().is_loopback() && !args.expose) {
        None => Ok(()),
        Some(address) => Err(Failed::usage(format!(
            "{address} (--metrics-listen) is not on the loopback: whoever can reach it could read \
             how much passes"
        ))
        .hint("--expose says that this is meant")),
    }
}

/// A proxy in front of itself would send each request around until nothing is left.
pub(crate) fn check_loop(listen: SocketAddr, upstream: &Upstream) -> Result<(), Failed> {
    // A name that cannot be resolved now is said by the first look.
    let addresses = upstream.url.host().to_socket_addrs().into_iter().flatten();
    let is_loop = addresses.into_iter().any(|address| reaches(address, listen));
    if !is_loop {
        return Ok(());
    }
    let shown = upstream.url.shown();
    Err(Failed::usage(format!("{shown} is the address that goodput is to listen on itself"))
        .hint("--listen takes another port; port 0 picks a free one"))
}

/// Whether a connection to `address` would come to who listens at `listen`.
fn reaches(address: SocketAddr, listen: SocketAddr) -> bool {
    let is_ours = |ip: IpAddr| ip.is_unspecified() || UdpSocket::bind((ip, 0)).is_ok();
    let (to, at) = (address.ip().to_canonical(), listen.ip().to_canonical());
    let is_same = to == at || (to.is_unspecified() && at.is_loopback());
    address.port() == listen.port() && (is_same || (at.is_unspecified() && is_ours(to)))
}

/// Starts the proxy, and says where it listens.
pub(crate) fn start(settings: Settings, witness: Arc<dyn Witness>) -> Result<Proxy, Failed> {
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    let proxy = Proxy::start(settings, witness).map_err(|error| unusable(&error))?;
    // A port that was left open can be known in no other way.
    output::note(&format!("listening on {scheme}://{}", proxy.address()));
    http::warn_if_open(
        proxy.address(),
        match scheme {
            "http" => "what clients send is not encrypted; --tls-cert and --tls-key do that",
            _ => "whoever can connect can use the server behind it",
        },
    );
    Ok(proxy)
}

/// Why there can be no proxy, with the code of whose fault it is.
fn unusable(error: &ProxyError) -> Failed {
    let failed = match error {
        ProxyError::Upstream(EndpointError::Dns { .. }) => Failed::target(error.to_string()),
        ProxyError::Start(_) => Failed::internal(error.to_string()),
        _ => Failed::usage(error.to_string()),
    };
    failed.hint(hint(error))
}

fn hint(error: &ProxyError) -> &'static str {
    match error {
        ProxyError::Listen { error, .. } if error.kind() == ErrorKind::AddrInUse => {
            "another program has this address; port 0 picks a free one"
        }
        ProxyError::Listen { error, .. } if error.kind() == ErrorKind::PermissionDenied => {
            "ports below 1024 are the administrator's; take one above"
        }
        ProxyError::Tls(_) => "--tls-cert takes a chain in PEM, --tls-key the key of its first",
        ProxyError::Upstream(_) => "check the server's URL and --cacert",
        _ => "--listen takes 127.0.0.1:8080; port 0 picks a free one",
    }
}

/// The limit on connections, and what is said of it.
pub(crate) struct Crowd {
    most: u32,
    tally: Arc<Tally>,
    is_told: bool,
}

impl Crowd {
    pub(crate) fn new(args: &ProxyArgs, tally: &Arc<Tally>) -> Self {
        Self { most: args.max_connections, tally: Arc::clone(tally), is_told: false }
    }

    /// What to say when the limit is first reached.
    pub(crate) fn news(&mut self) -> Option<String> {
        let is_new = self.tally.at_limit.get() > 0 && !std::mem::replace(&mut self.is_told, true);
        is_new.then(|| {
            format!(
                "warning: {} connections are open (--max-connections): those idle longest are \
                 closed for new ones, and requests wait where none is idle",
                self.most
            )
        })
    }

    /// What became of those beyond the limit, in the end.
    pub(crate) fn in_words(&self) -> Option<String> {
        let Tally { at_limit, made_way, turned_away, .. } = &*self.tally;
        (at_limit.get() > 0).then(|| {
            format!(
                "warning: {} connections came beyond the {} of --max-connections: {} idle ones \
                 were closed for them, {} requests were refused with 503",
                at_limit.get(),
                self.most,
                made_way.get(),
                turned_away.get()
            )
        })
    }

    /// The same for programs.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "beyond_limit": self.tally.at_limit.get(),
            "made_way": self.tally.made_way.get(),
            "turned_away": self.tally.turned_away.get(),
        })
    }
}

/// What passes, for a page of metrics.
pub(crate) fn metrics(sheet: &mut Sheet, tally: &Tally) {
    let series = [
        ("goodput_proxy_connections_total", "Connections of clients", &tally.connections),
        ("goodput_proxy_connections_open", "Connections of clients that are open", &tally.open),
        ("goodput_proxy_requests_total", "Requests passed on, or that were to be", &tally.requests),
        ("goodput_proxy_requests_in_flight", "Requests under way", &tally.in_flight),
        ("goodput_proxy_request_bytes_total", "Bytes of requests' bodies", &tally.bytes_in),
        ("goodput_proxy_answer_bytes_total", "Bytes of answers' bodies", &tally.bytes_out),
        (
            "goodput_proxy_upstream_failures_total",
            "Requests without a whole answer because of the upstream",
            &tally.upstream_failures,
        ),
        (
            "goodput_proxy_clients_gone_total",
            "Requests whose client went away before the end",
            &tally.clients_gone,
        ),
        ("goodput_proxy_refused_total", "Requests refused by the proxy itself", &tally.refused),
        (
            "goodput_proxy_too_slow_total",
            "Connections, and streams of HTTP/2, ended because their client was too slow",
            &tally.too_slow,
        ),
        (
            "goodput_proxy_at_limit_total",
            "Connections that came when --max-connections were open",
            &tally.at_limit,
        ),
        (
            "goodput_proxy_made_way_total",
            "Idle connections closed to make way for them",
            &tally.made_way,
        ),
        (
            "goodput_proxy_turned_away_total",
            "Requests refused because too many waited for a connection to end",
            &tally.turned_away,
        ),
        (
            "goodput_proxy_resent_total",
            "Requests sent once more, as their connection had been closed when it was used",
            &tally.resent,
        ),
    ];
    for (name, help, count) in series {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        sheet.family((name, kind, help));
        sheet.line(name, "", count.get());
    }
    let name = "goodput_proxy_answers_total";
    sheet.family((name, "counter", "Answers of the upstream that began, by class of their status"));
    for (digit, count) in tally.statuses.iter().enumerate().skip(1) {
        sheet.line(name, &label("class", &format!("{digit}xx")), count.get());
    }
}

/// Says so where a server does not answer yet: it may still come, so nothing ends here. A name that
/// nobody knows does.
pub(crate) fn look_at(upstream: &Upstream) -> Result<(), Failed> {
    let shown = upstream.url.shown();
    let warn = |why: &str| {
        output::note(&plain(&format!(
            "warning: {shown} does not answer: {why}; requests get 502 until it does"
        )));
    };
    let endpoint = match Endpoint::new(&questions(upstream)) {
        Ok(endpoint) => Arc::new(endpoint),
        Err(error) => return Err(unusable(&ProxyError::Upstream(error))),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failed::internal(error.to_string()))?;
    let looking = async { tokio::time::timeout(FIRST_LOOK, list_models(&endpoint)).await };
    match tokio::task::LocalSet::new().block_on(&runtime, looking) {
        // Whatever it says, it is there.
        Ok(Ok(_) | Err(ProbeError::Refused(_))) => {}
        Ok(Err(ProbeError::Unreachable(failure))) => warn(&failure.message),
        Err(_) => warn(&format!("nothing came within {} s", FIRST_LOOK.as_secs())),
    }
    Ok(())
}

/// How a server is asked whether it is there: without a key, which only clients have.
fn questions(upstream: &Upstream) -> goodput_wire::Settings {
    goodput_wire::Settings {
        url: upstream.url.clone(),
        api: Api::Chat,
        stream: false,
        http: upstream.http,
        connections: ConnectionPolicy::PerRequest,
        api_key: None,
        headers: Vec::new(),
        cacert: upstream.cacert.clone(),
        insecure: upstream.insecure,
        keep_text: false,
    }
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

    #[test]
    fn a_loop_is_seen_at_every_name_of_the_same_place() {
        let upstream = |url: &str| Upstream {
            url: url.parse().unwrap(),
            http: Http::Http1,
            cacert: None,
            insecure: false,
        };
        let is_loop =
            |listen: &str, url| check_loop(listen.parse().unwrap(), &upstream(url)).is_err();
        assert!(is_loop("127.0.0.1:8080", "http://127.0.0.1:8080"));
        assert!(is_loop("127.0.0.1:8080", "http://localhost:8080/v1"));
        assert!(is_loop("127.0.0.1:8080", "http://0.0.0.0:8080"));
        assert!(is_loop("0.0.0.0:8080", "http://127.0.0.1:8080"));
        assert!(is_loop("[::]:8080", "http://127.0.0.1:8080"));
        assert!(!is_loop("127.0.0.1:8080", "http://127.0.0.1:8081"));
        assert!(!is_loop("127.0.0.1:8080", "http://127.0.0.2:8080"));
        // An address of documents, which no machine has.
        assert!(!is_loop("0.0.0.0:8080", "http://192.0.2.1:8080"));
        assert!(!is_loop("127.0.0.1:0", "http://127.0.0.1:8080"));
    }
}
