//! Requests, read just far enough to answer them.

use memchr::memmem;

/// Largest head of a request.
pub(crate) const HEAD_LIMIT: usize = 64 << 10;

/// Largest request.
const LIMIT: usize = 64 << 20;

/// Most tokens of one answer.
const MOST_TOKENS: u64 = 10_000_000;

/// Tokens of an answer to a request that sets no limit.
const DEFAULT_TOKENS: u32 = 16;

/// How far the next request has come.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RequestProgress {
    /// Not all there: at least this many bytes are needed.
    Needs(usize),
    /// All there.
    Whole(TruthRequest),
    /// Nothing that can be answered.
    Broken,
}

/// A whole request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TruthRequest {
    /// Bytes of it.
    pub(crate) length: usize,
    pub(crate) asked: Route,
    /// The connection ends with its answer.
    pub(crate) closes: bool,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    Stream { tokens: u32, usage: bool },
    Models,
    Health,
    Unknown,
}

/// Looks at what has been received.
pub(crate) fn request_progress(received: &[u8]) -> RequestProgress {
    let Some(end) = memmem::find(received, b"\r\n\r\n") else {
        let is_hopeless = received.len() > HEAD_LIMIT;
        return if is_hopeless {
            RequestProgress::Broken
        } else {
            RequestProgress::Needs(received.len() + 1)
        };
    };
    let Some(head) = Head::read(&received[..end]) else { return RequestProgress::Broken };
    let length = end + 4 + head.body;
    if length > LIMIT {
        return RequestProgress::Broken;
    }
    let Some(body) = received.get(end + 4..length) else { return RequestProgress::Needs(length) };
    let asked = match (head.method, head.path) {
        (b"POST", _) => Route::Stream { tokens: requested_tokens(body), usage: wants_usage(body) },
        (b"GET", b"/v1/models") => Route::Models,
        (b"GET", b"/health") => Route::Health,
        _ => Route::Unknown,
    };
    RequestProgress::Whole(TruthRequest { length, asked, closes: head.closes })
}

struct Head<'a> {
    method: &'a [u8],
    path: &'a [u8],
    body: usize,
    closes: bool,
}

impl<'a> Head<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let mut words = lines.next()?.split(|byte| *byte == b' ');
        let (method, path, version) = (words.next()?, words.next()?, words.next()?);
        if !version.starts_with(b"HTTP/1.") {
            return None;
        }
        let mut head = Self { method, path, body: 0, closes: version == b"HTTP/1.0" };
        for line in lines {
            let colon = memchr::memchr(b':', line)?;
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"content-length") {
                head.body =
                    std::str::from_utf8(value).ok()?.parse().ok().filter(|n| *n <= LIMIT)?;
            } else if name.eq_ignore_ascii_case(b"connection") {
                head.closes |= value.eq_ignore_ascii_case(b"close");
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                // No client that is measured sends its request in chunks.
                return None;
            }
        }
        Some(head)
    }
}

fn requested_tokens(body: &[u8]) -> u32 {
    let number = |name: &[u8]| {
        let value = value_of(body, name)?;
        let digits = value.iter().take_while(|byte| byte.is_ascii_digit());
        let number = digits
            .fold(0u64, |n, byte| n.saturating_mul(10).saturating_add(u64::from(byte - b'0')));
        Some(number.clamp(1, MOST_TOKENS) as u32)
    };
    number(b"\"max_tokens\"")
        .or_else(|| number(b"\"max_completion_tokens\""))
        .unwrap_or(DEFAULT_TOKENS)
}

fn wants_usage(body: &[u8]) -> bool {
    value_of(body, b"\"include_usage\"").is_some_and(|value| value.starts_with(b"true"))
}

/// What follows the first `"name":`. Inside a JSON string the quotes would be escaped, so the
/// text of a prompt cannot be taken for a field.
fn value_of<'a>(body: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    memmem::find_iter(body, name).find_map(|at| {
        let value = body[at + name.len()..].trim_ascii_start().strip_prefix(b":")?;
        Some(value.trim_ascii_start())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(headers: &str, body: &str) -> Vec<u8> {
        let length = body.len();
        format!("POST /x HTTP/1.1\r\n{headers}Content-LENGTH:{length}\r\n\r\n{body}").into_bytes()
    }

    fn asked(body: &str) -> Route {
        match request_progress(&post("Host: x\r\n", body)) {
            RequestProgress::Whole(request) => request.asked,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_length_of_an_answer_is_what_was_asked() {
        let stream = |tokens, usage| Route::Stream { tokens, usage };
        assert_eq!(asked(r#"{"max_tokens":7}"#), stream(7, false));
        assert_eq!(asked(r#"{"max_tokens" : 7, "x": 1}"#), stream(7, false));
        assert_eq!(asked(r#"{"max_completion_tokens": 9}"#), stream(9, false));
        assert_eq!(asked(r#"{"content":"\"max_tokens\":3","max_tokens":7}"#), stream(7, false));
        assert_eq!(asked(r#"{"a":"max_tokens","max_tokens":7}"#), stream(7, false));
        assert_eq!(asked(r#"{"max_tokens":0}"#), stream(1, false));
        assert_eq!(asked(r#"{"max_tokens":99999999999999999999999}"#), stream(10_000_000, false));
        assert_eq!(asked(r#"{"stream_options":{"include_usage": true}}"#), stream(16, true));
        assert_eq!(asked(r#"{"stream_options":{"include_usage":false}}"#), stream(16, false));
    }

    #[test]
    fn a_request_is_whole_at_its_last_byte() {
        let bytes = post("", r#"{"max_tokens":7}"#);
        for cut in 0..bytes.len() {
            let RequestProgress::Needs(need) = request_progress(&bytes[..cut]) else {
                panic!("at {cut}")
            };
            assert!(cut < need && need <= bytes.len());
        }
        let more = [bytes.as_slice(), b"POST"].concat();
        let RequestProgress::Whole(request) = request_progress(&more) else { panic!() };
        assert_eq!((request.length, request.closes), (bytes.len(), false));
    }

    #[test]
    fn what_cannot_be_answered_is_broken() {
        let huge = vec![b'x'; HEAD_LIMIT + 1];
        let bad: [&[u8]; 6] = [
            b"\r\n\r\n",
            b"hello\r\n\r\n",
            b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
            b"POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n",
            b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
            &huge,
        ];
        for bytes in bad {
            assert_eq!(request_progress(bytes), RequestProgress::Broken);
        }
        let close = request_progress(b"GET /health HTTP/1.1\r\nConnection: Close\r\n\r\n");
        let RequestProgress::Whole(request) = close else { panic!() };
        assert_eq!((request.asked, request.closes), (Route::Health, true));
    }
}
