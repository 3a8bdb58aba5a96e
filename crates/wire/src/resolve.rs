//! [`ResolvedHost`]: the addresses of a host, and how long the resolver took to find them.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use goodput_clock::now;
use goodput_model::NameLookup;

/// The addresses of a host.
#[derive(Debug)]
pub(crate) struct ResolvedHost {
    /// At least one, in the resolver's order.
    pub(crate) addresses: Vec<SocketAddr>,
    /// What it took to find them.
    pub(crate) lookup: NameLookup,
}

impl ResolvedHost {
    /// Asks the system's resolver, and waits for it.
    pub(crate) fn resolve(host: &str, port: u16) -> io::Result<Self> {
        Self::from_resolver(host, || Ok((host, port).to_socket_addrs()?.collect()))
    }

    fn from_resolver(
        host: &str,
        resolver: impl FnOnce() -> io::Result<Vec<SocketAddr>>,
    ) -> io::Result<Self> {
        let is_name = host.parse::<IpAddr>().is_err();
        let begun = now();
        let mut addresses = resolver()?;
        let took = is_name.then(|| now() - begun);
        addresses.dedup();
        if addresses.is_empty() {
            return Err(io::Error::other("the name has no address"));
        }
        let lookup = NameLookup::new(took, addresses.len());
        Ok(Self { addresses, lookup })
    }
}

#[cfg(test)]
mod tests {
    use goodput_clock::pause;
    use goodput_model::Nanos;

    use super::*;

    /// A resolver that takes 30 ms and names two servers, one of them twice.
    fn slow() -> Vec<SocketAddr> {
        pause(Nanos::from_millis(30));
        ["10.0.0.1:80", "10.0.0.1:80", "10.0.0.2:80"].map(|it| it.parse().unwrap()).to_vec()
    }

    #[test]
    fn a_name_is_timed_and_an_address_is_not() {
        let found = ResolvedHost::from_resolver("llm.example", || Ok(slow())).unwrap();
        assert_eq!((found.addresses.len(), found.lookup.addresses), (2, 2));
        assert!(found.lookup.ms.is_some_and(|ms| ms >= 30.0), "{:?}", found.lookup);
        for literal in ["10.0.0.1", "::1"] {
            let found = ResolvedHost::from_resolver(literal, || Ok(slow())).unwrap();
            assert_eq!(found.lookup, NameLookup { ms: None, addresses: 2 }, "{literal}");
        }
    }

    #[test]
    fn a_name_without_an_address_is_an_error() {
        let error = ResolvedHost::from_resolver("llm.example", || Ok(Vec::new())).unwrap_err();
        assert_eq!(error.to_string(), "the name has no address");
    }
}
