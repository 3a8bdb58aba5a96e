//! As much of HTTP/1.1 as a page of metrics needs: a head in, an answer out.

use std::net::IpAddr;

use super::page::Format;
use goodput_http::may_name;

/// Bytes of a request's head at most.
pub(super) const MOST_HEAD: usize = 8 * 1024;

/// What a head asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    Page(Format),
    /// `/`: where the page is.
    Root,
    Refused(Refusal),
}

/// Why there is no page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    BadRequest,
    /// Asked for by a name that may be a stranger's.
    Host,
    NotFound,
    Method,
    TooSlow,
    TooLarge,
    Busy,
}

impl Refusal {
    fn status(self) -> &'static str {
        match self {
            Self::BadRequest => "400 Bad Request",
            Self::Host => "403 Forbidden",
            Self::NotFound => "404 Not Found",
            Self::Method => "405 Method Not Allowed",
            Self::TooSlow => "408 Request Timeout",
            Self::TooLarge => "431 Request Header Fields Too Large",
            Self::Busy => "503 Service Unavailable",
        }
    }
}

/// Reads a head, which ends with an empty line, at a server that listens at this address. Whether only the head of the answer is wanted comes
/// with it.
pub(super) fn read(head: &[u8], at: IpAddr) -> (Ask, bool) {
    let Ok(head) = str::from_utf8(head) else { return (Ask::Refused(Refusal::BadRequest), false) };
    let mut lines = head.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, path, version) = (words.next(), words.next(), words.next());
    let (Some(method), Some(path), None) = (method, path, words.next()) else {
        return (Ask::Refused(Refusal::BadRequest), false);
    };
    if !version.is_some_and(|version| version.starts_with("HTTP/1.")) || !path.starts_with('/') {
        return (Ask::Refused(Refusal::BadRequest), false);
    }
    if !matches!(method, "GET" | "HEAD") {
        return (Ask::Refused(Refusal::Method), false);
    }
    let values = |name: &str| -> Vec<&str> {
        lines.clone().filter_map(|line| value_of(line, name)).collect()
    };
    let (accept, hosts) = (values("accept"), values("host"));
    // Browsers never leave it out; some that scrape do.
    if hosts.len() > 1 || hosts.iter().any(|host| !may_name(host.trim(), at)) {
        return (Ask::Refused(Refusal::Host), method == "HEAD");
    }
    let ask = match path.split('?').next() {
        Some("/metrics") => Ask::Page(format(&accept.join(","))),
        Some("/") => Ask::Root,
        _ => Ask::Refused(Refusal::NotFound),
    };
    (ask, method == "HEAD")
}

/// What a line of a head says under this name.
fn value_of<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (said, value) = line.split_once(':')?;
    said.trim_end().eq_ignore_ascii_case(name).then_some(value)
}

/// OpenMetrics where it is named and not less welcome than plain text.
fn format(accept: &str) -> Format {
    let welcome = |kind: &str| {
        let of = |item: &str| {
            let mut parts = item.split(';').map(str::trim);
            let is_meant = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(kind));
            let q = parts
                .find_map(|part| part.strip_prefix("q="))
                .map_or(Some(1.0), |q| q.parse().ok());
            q.filter(|_| is_meant)
        };
        accept.split(',').filter_map(of).fold(0.0_f64, f64::max)
    };
    let open = welcome("application/openmetrics-text");
    if open > 0.0 && open >= welcome("text/plain") { Format::OpenMetrics } else { Format::Text }
}

/// The whole answer. The page is made only where it is wanted.
pub(super) fn answer((ask, is_head): (Ask, bool), page: impl FnOnce(Format) -> String) -> Vec<u8> {
    let plain = "text/plain; charset=utf-8";
    let (status, kind, body) = match ask {
        Ask::Page(Format::Text) => {
            ("200 OK", "text/plain; version=0.0.4; charset=utf-8", page(Format::Text))
        }
        Ask::Page(Format::OpenMetrics) => (
            "200 OK",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            page(Format::OpenMetrics),
        ),
        Ask::Root => {
            ("200 OK", plain, "goodput: the metrics of this run are at /metrics\n".to_owned())
        }
        Ask::Refused(refusal @ Refusal::Host) => (
            refusal.status(),
            plain,
            format!("{}: ask by address, or by a name of this machine\n", refusal.status()),
        ),
        Ask::Refused(refusal) => (refusal.status(), plain, format!("{}\n", refusal.status())),
    };
    let allow = if ask == Ask::Refused(Refusal::Method) { "Allow: GET, HEAD\r\n" } else { "" };
    let length = body.len();
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{allow}\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    );
    if !is_head {
        answer.push_str(&body);
    }
    answer.into_bytes()
}
