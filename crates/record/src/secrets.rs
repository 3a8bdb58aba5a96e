//! What must not reach a file: secrets in URLs.

use goodput_model::REDACTED;

/// The URL with the names of its query alone, and without who asks.
pub(crate) fn without_secrets(url: &str) -> String {
    // The engine inside the process has options, not secrets.
    if url.starts_with("mock") {
        return url.to_owned();
    }
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let after = base.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = base.split_at_checked(after).unwrap_or(("", base));
    let (authority, path) =
        rest.split_at_checked(rest.find('/').unwrap_or(rest.len())).unwrap_or((rest, ""));
    let base = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}{REDACTED}@{host}{path}"),
        None => base.to_owned(),
    };
    let hidden = |pair: &str| match pair.split_once('=') {
        Some((name, _)) => format!("{name}={REDACTED}"),
        None => REDACTED.to_owned(),
    };
    let pairs: Vec<String> = query.split('&').filter(|pair| !pair.is_empty()).map(hidden).collect();
    if pairs.is_empty() { base } else { format!("{base}?{}", pairs.join("&")) }
}
