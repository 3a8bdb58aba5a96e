//! Where ranks meet: `HOST:PORT`.

/// The port unless another is given.
const PORT: u16 = 8470;

/// The address with a port, also where none was given.
pub fn with_port(at: String) -> String {
    let has_port = at.rsplit_once(':').is_some_and(|(host, port)| {
        port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']'))
    });
    if has_port { at } else { host_and_port(&at, PORT) }
}

/// With this port. An address of IPv6 has colons of its own.
fn host_and_port(host: &str, port: u16) -> String {
    let is_bare = host.contains(':') && !host.starts_with('[');
    if is_bare { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

impl crate::DetectedRank {
    /// Where rank 0 is, where the environment says so.
    pub fn rendezvous(&self) -> Option<String> {
        let port = self.rendezvous_port.unwrap_or(PORT);
        self.rendezvous_host.as_deref().map(|host| host_and_port(host, port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meeting_place_has_a_port() {
        let cases = [
            ("node1", "node1:8470"),
            ("node1:9000", "node1:9000"),
            ("10.0.0.1", "10.0.0.1:8470"),
            ("[::1]:9", "[::1]:9"),
            ("[::1]", "[::1]:8470"),
            ("fe80::1", "[fe80::1]:8470"),
        ];
        for (typed, meant) in cases {
            assert_eq!(with_port(typed.to_owned()), meant);
        }
    }
}
