//! URLs without what must not be written: who asks, and the values of a query, which may be keys.

use crate::REDACTED;

/// The URL, or what was meant as one, without its user and with the names of its query alone.
///
/// Everything before the last `@` goes where the host could not be a host: the password of a URL that
/// was not escaped may hold a slash.
pub fn url_without_secrets(url: &str) -> String {
    // The engine inside the process has options, not secrets.
    if url.starts_with("mock") {
        return url.to_owned();
    }
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let after = base.find("://").map_or(0, |at| at + "://".len());
    let (scheme, rest) = base.split_at_checked(after).unwrap_or(("", base));
    let authority = rest.split('/').next().unwrap_or(rest);
    let user_end = match authority.rfind('@') {
        None if !has_port(authority) => rest.rfind('@'),
        at => at,
    };
    let base = match user_end.and_then(|at| rest.get(at..)) {
        Some(host) => format!("{scheme}{REDACTED}{host}"),
        None => base.to_owned(),
    };
    let names = query_names(query);
    if names.is_empty() { base } else { format!("{base}?{names}") }
}

/// `name=[redacted]` for each pair of a query.
pub fn query_names(query: &str) -> String {
    let name = |pair: &str| match pair.split_once('=') {
        Some((name, _)) => format!("{name}={REDACTED}"),
        None => REDACTED.to_owned(),
    };
    let pairs: Vec<String> = query.split('&').filter(|pair| !pair.is_empty()).map(name).collect();
    pairs.join("&")
}

/// Whether what follows the last colon, if there is one, can be a port.
fn has_port(authority: &str) -> bool {
    let (_, port) = authority.rsplit_once(':').unwrap_or(("", ""));
    port.ends_with(']') || port.chars().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_values_go_and_the_rest_stays() {
        let cases = [
            (
                "https://user:s3cret@h/v1?key=s3cret&plain",
                "https://[redacted]@h/v1?key=[redacted]&[redacted]",
            ),
            ("http://user:pa/s3cret@h:8000/v1", "http://[redacted]@h:8000/v1"),
            ("user:s3cret@h:8000/v1?", "[redacted]@h:8000/v1"),
            ("http://h:8000/models/a@v1", "http://h:8000/models/a@v1"),
            ("http://[::1]/models/a@v1", "http://[::1]/models/a@v1"),
            ("mock:chat?slots=4", "mock:chat?slots=4"),
            ("h:8000/v1?&", "h:8000/v1"),
        ];
        for (url, shown) in cases {
            assert_eq!(url_without_secrets(url), shown, "{url}");
        }
    }
}
