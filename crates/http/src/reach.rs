//! Who can reach a listener, and by which names it may be asked.

use std::net::IpAddr;

/// Whether only this machine can connect there.
pub fn is_local_only(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Whether it can be a name or an address with a port.
pub fn is_host(host: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    !host.is_empty() && host.len() <= 255 && host.bytes().all(is_fit)
}

/// Whether a page that is served at this address may be asked for by this `Host`. Any other name may be
/// pointed here by its owner, whose pages could then read ours in a browser (DNS rebinding).
pub fn is_host_allowed(host: &str, listener: IpAddr) -> bool {
    let Some(name) = host_name(host).filter(|_| is_host(host)) else { return false };
    if is_local_only(listener) {
        return is_loopback_name(name);
    }
    // No one can register an address, a name without a dot, or one below a name that is reserved.
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name.parse::<IpAddr>().is_ok()
        || !name.contains('.')
        || [".local", ".localhost", ".internal", ".home.arpa"].iter().any(|end| name.ends_with(end))
        || name.eq_ignore_ascii_case(&rustix::system::uname().nodename().to_string_lossy())
}

/// Whether a host is `localhost` or an address of the loopback, at whatever port: it may be forwarded.
pub fn is_loopback_host(host: &str) -> bool {
    host_name(host).is_some_and(is_loopback_name)
}

fn is_loopback_name(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_local_only)
}

/// The name or address without brackets and port; `None` where the port is invalid.
fn host_name(host: &str) -> Option<&str> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (name, rest) = rest.split_once(']')?;
            (name, rest.strip_prefix(':').or_else(|| rest.is_empty().then_some("0")))
        }
        None => host.split_once(':').map_or((host, Some("0")), |(name, port)| (name, Some(port))),
    };
    port?.parse::<u16>().ok().map(|_| name).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_anybody_may_own_leads_to_no_page() {
        let loopback = "127.0.0.1".parse().unwrap();
        let open = "0.0.0.0".parse().unwrap();
        let mapped = "::ffff:127.0.0.1".parse().unwrap();
        for own in ["localhost", "LOCALHOST:9", "127.0.0.1:1", "[::1]:8642", "[::1]"] {
            assert!([loopback, open, mapped].iter().all(|at| is_host_allowed(own, *at)), "{own}");
        }
        for near in ["10.0.0.7:9400", "[fe80::1]:9400", "node7", "n7:9400", "x.svc.cluster.local"] {
            assert!(is_host_allowed(near, open) && !is_host_allowed(near, loopback), "{near}");
        }
        for strange in [
            "evil.example",
            "evil.example:9400",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "local.evil.example",
            "localhost:x",
            "",
            ":80",
            "a b",
            "localhost@evil",
        ] {
            assert!(
                !is_host_allowed(strange, open) && !is_host_allowed(strange, loopback),
                "{strange}"
            );
        }
    }
}
