//! [`Dialer`]: stamped connections for those who speak HTTP themselves.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use goodput_model::{Connect, Failure, Http, Nanos};

use crate::answer::Read;
use crate::connection::{Waits, open_socket};
use crate::endpoint::{BaseUrl, EndpointError};
use crate::resolve::ResolvedHost;
use crate::secrets;
use crate::socket::{Socket, SocketStamps};
use crate::tls::{self, TlsSettings};

/// Opens connections to one server. May be cloned to other threads; the sockets stay on theirs.
#[derive(Debug, Clone)]
pub struct Dialer {
    shared: Arc<ResolvedAddresses>,
}

#[derive(Debug)]
struct ResolvedAddresses {
    host: String,
    port: u16,
    /// Taken for a copy before dialling, and to note what the name stands for now.
    addresses: RwLock<Vec<SocketAddr>>,
    tls: Option<TlsSettings>,
}

impl Dialer {
    /// Resolves the name and prepares TLS.
    pub fn new(
        url: &BaseUrl,
        http: Http,
        cacert: Option<&[u8]>,
        insecure: bool,
    ) -> Result<Self, EndpointError> {
        secrets::remember_secrets(url.secrets());
        let addresses = RwLock::new(url.resolve()?.addresses);
        let settings = || tls::tls_settings(&url.host, http, cacert, insecure);
        let tls = url.is_https.then(settings).transpose()?;
        let (host, port) = (url.host.clone(), url.port);
        Ok(Self { shared: Arc::new(ResolvedAddresses { host, port, addresses, tls }) })
    }

    /// A new connection, with the steps of opening it and what its socket sees. The caller gives up
    /// after `limit`: an address that has others behind it gets its share of that.
    pub async fn open(&self, limit: Duration) -> Result<(Socket, SocketWatch, Connect), Failure> {
        let addresses = self.addresses();
        let share = limit / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
        let waits = Waits { each: share, last: Duration::MAX };
        let (socket, connect) = open_socket(&addresses, self.shared.tls.as_ref(), waits).await?;
        let watch = SocketWatch(socket.shared_stamps());
        Ok((socket, watch, connect))
    }

    /// Looks the name up again; what it stood for holds where that fails. Waits for the resolver.
    pub fn refresh_addresses(&self) {
        if let Ok(found) = ResolvedHost::resolve(&self.shared.host, self.shared.port) {
            *self.shared.addresses.write().unwrap_or_else(PoisonError::into_inner) =
                found.addresses;
        }
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.shared.addresses.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What a [`Socket`] has seen so far.
#[derive(Debug, Clone)]
pub struct SocketWatch(Rc<SocketStamps>);

impl SocketWatch {
    /// The latest read.
    pub fn last_read(&self) -> Read {
        let arrival = self.0.last_read.get();
        Read { at: arrival.at, sequence: self.0.reads.get(), lag_us: arrival.lag_us() }
    }

    /// A request is about to be written.
    pub fn expect_request(&self) {
        self.0.expect_request();
    }

    /// When the first byte since then was handed to the socket, and when the last one was taken.
    pub fn write_instants(&self) -> (Option<Nanos>, Option<Nanos>) {
        (self.0.first_write.get(), self.0.last_write.get())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use nix::sys::socket::{Backlog, listen};

    use super::*;

    #[test]
    fn an_address_that_says_nothing_leaves_time_for_the_next() {
        const LIMIT: Duration = Duration::from_secs(2);
        let bind = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (deaf, live) = (bind(), bind());
        let [deaf_at, live_at] = [&deaf, &live].map(|one| one.local_addr().unwrap());
        // The queue is full: the next connection is not answered.
        listen(&deaf, Backlog::new(0).unwrap()).unwrap();
        let _queued = TcpStream::connect(deaf_at).unwrap();
        let url = format!("http://{live_at}").parse().unwrap();
        let dialer = Dialer::new(&url, Http::Http1, None, false).unwrap();
        *dialer.shared.addresses.write().unwrap() = vec![deaf_at, live_at];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let opened =
            runtime.block_on(async { tokio::time::timeout(LIMIT, dialer.open(LIMIT)).await });
        assert!(opened.expect("in time").is_ok());
        live.set_nonblocking(true).unwrap();
        assert!(live.accept().is_ok());
    }
}
