//! What is looked at before a proxy starts: the server behind it.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use goodput_model::{Api, ConnectionPolicy};
use goodput_wire::{Endpoint, ProbeError, list_models};

use crate::proxy::{ProxyError, Upstream};

/// How long the first look at a server may take.
const FIRST_LOOK: Duration = Duration::from_secs(3);

/// Whether a proxy at this address would be its own upstream and send each request around until nothing
/// is left.
pub fn is_loop(listen: SocketAddr, upstream: &Upstream) -> bool {
    // A name that cannot be resolved now is said by the first look.
    let addresses = upstream.url.host().to_socket_addrs().into_iter().flatten();
    addresses.into_iter().any(|address| connects_to(address, listen))
}

/// Whether a connection to `address` would come to who listens at `listen`.
fn connects_to(address: SocketAddr, listen: SocketAddr) -> bool {
    let is_ours = |ip: IpAddr| ip.is_unspecified() || UdpSocket::bind((ip, 0)).is_ok();
    let (to, at) = (address.ip().to_canonical(), listen.ip().to_canonical());
    let is_same = to == at || (to.is_unspecified() && at.is_loopback());
    address.port() == listen.port() && (is_same || (at.is_unspecified() && is_ours(to)))
}

/// Why a server does not answer, where it does not: it may still come. A name that cannot be resolved
/// is an error.
pub fn check_upstream(upstream: &Upstream) -> Result<Option<String>, ProxyError> {
    let endpoint = Arc::new(Endpoint::new(&probe_settings(upstream))?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let looking = async { tokio::time::timeout(FIRST_LOOK, list_models(&endpoint)).await };
    Ok(match tokio::task::LocalSet::new().block_on(&runtime, looking) {
        // Whatever it says, it is there.
        Ok(Ok(_) | Err(ProbeError::Refused(_))) => None,
        Ok(Err(ProbeError::Unreachable(failure))) => Some(failure.message),
        Err(_) => Some(format!("no answer within {} s", FIRST_LOOK.as_secs())),
    })
}

/// How a server is asked whether it is there: without a key, which only clients have.
fn probe_settings(upstream: &Upstream) -> goodput_wire::EndpointSettings {
    goodput_wire::EndpointSettings {
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
    use goodput_model::Http;

    use super::*;

    #[test]
    fn a_loop_is_seen_at_every_name_of_the_same_place() {
        let upstream = |url: &str| Upstream {
            url: url.parse().unwrap(),
            http: Http::Http1,
            cacert: None,
            insecure: false,
        };
        let is_loop = |listen: &str, url| is_loop(listen.parse().unwrap(), &upstream(url));
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
