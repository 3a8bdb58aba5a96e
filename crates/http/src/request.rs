//! Requests: a head taken apart, and forms.

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HttpRequest {
    /// What is to be done.
    pub method: Method,
    /// Without the query, as it was sent: nothing in it is decoded, as no page needs that.
    pub path: String,
    /// Names and values, decoded.
    pub query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    /// Empty unless it is a `POST`.
    pub body: Vec<u8>,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// A page.
    #[default]
    Get,
    /// Like `Get`, without the body of the answer.
    Head,
    /// A change.
    Post,
    /// Anything else.
    Other,
}

/// Names and values of a form at most.
const MOST_PAIRS: usize = 200;

impl HttpRequest {
    /// From a head; none if it is not one.
    pub fn parse(head: &[u8]) -> Option<Self> {
        let head = str::from_utf8(head).ok()?;
        let mut lines = head.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || !version.starts_with("HTTP/1.") || !target.starts_with('/') {
            return None;
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut headers = Vec::new();
        for line in lines {
            let (name, value) = line.split_once(':')?;
            // A name with a space may hide another from a proxy in between.
            if name.is_empty() || name.contains([' ', '\t']) {
                return None;
            }
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let method = match method {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "POST" => Method::Post,
            _ => Method::Other,
        };
        let path = path.to_owned();
        Some(Self { method, path, query: parse_pairs(query), headers, body: Vec::new() })
    }

    /// The value of a header that is there once; none if it is missing or contradicts itself.
    pub fn header<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        let mut values = self.header_values(name);
        let value = values.next();
        value.filter(|_| values.next().is_none())
    }

    /// The values of all headers of this name, which is in lower case.
    pub fn header_values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let lines = self.headers.iter().filter(move |(own, _)| own == name);
        lines.map(|(_, value)| value.as_str())
    }

    /// Whether a header is there at all.
    pub fn has_header(&self, name: &str) -> bool {
        self.header_values(name).next().is_some()
    }

    /// The values of a cookie.
    pub fn cookie_values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let pairs = self.header_values("cookie").flat_map(|line| line.split(';'));
        pairs
            .filter_map(|pair| pair.trim().split_once('='))
            .filter_map(move |(own, value)| (own == name).then_some(value))
    }

    /// The first value of a name in the query.
    pub fn query_value(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// How many bytes of a body follow; none if that is not said plainly.
    pub fn body_length(&self) -> Option<usize> {
        if self.has_header("transfer-encoding") {
            return None;
        }
        let text = self.header("content-length")?;
        let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_plain)
    }

    /// The body as a form; none if it is of another kind.
    pub fn parse_form(&self) -> Option<Vec<(String, String)>> {
        let kind = self.header("content-type")?.split(';').next()?.trim();
        if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return None;
        }
        Some(parse_pairs(str::from_utf8(&self.body).ok()?))
    }
}

/// Names and values of a query or a form. What is not text is left out.
fn parse_pairs(text: &str) -> Vec<(String, String)> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((percent_decode(name)?, percent_decode(value)?))
    };
    let parts = text.split('&').filter(|part| !part.is_empty());
    parts.take(MOST_PAIRS).filter_map(pair).collect()
}

/// Text with its escapes resolved; none if they are broken or no text.
fn percent_decode(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}
