//! Who may ask.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

use goodput_http::{HttpRequest, Method, is_host, is_loopback_host};

/// Decides who may ask.
#[derive(Debug)]
pub(crate) struct Guard {
    /// Only this machine can connect; then only names of this machine may have led here, as any
    /// other name may be pointed here by its owner.
    is_loopback: bool,
    token: Option<HashedToken>,
    cookie: String,
}

/// A token by its hashes: what is compared has one length and says nothing about the token.
#[derive(Debug)]
struct HashedToken {
    itself: [u8; 32],
    /// What a browser keeps instead of it.
    cookie: String,
}

/// What becomes of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ruling {
    Welcome,
    /// It brought the token: from now on a cookie stands for it.
    Admitted {
        cookie: String,
    },
    /// No token, or a wrong one.
    Stranger,
    /// Never, and why.
    Refused(&'static str),
}

impl Guard {
    pub(crate) fn new(is_loopback: bool, token: Option<&str>, port: u16) -> Self {
        let token = token.map(|token| HashedToken {
            itself: Sha256::digest(token).into(),
            cookie: to_hex(&Sha256::digest(format!("goodput ui cookie\n{token}"))),
        });
        // Browsers do not tell ports apart.
        Self { is_loopback, token, cookie: format!("goodput-{port}") }
    }

    pub(crate) fn admit(&self, request: &HttpRequest) -> Ruling {
        let Some(host) = request.header("host").filter(|host| is_host(host)) else {
            return Ruling::Refused("the Host header is missing or wrong");
        };
        if self.is_loopback && !is_loopback_host(host) {
            return Ruling::Refused("this site answers only to names of this machine");
        }
        if request.method == Method::Post && !is_same_origin(request, host) {
            return Ruling::Refused("only pages of this site may change anything");
        }
        let Some(token) = &self.token else { return Ruling::Welcome };
        let of_cookie = |value: &str| constant_time_eq(value.as_bytes(), token.cookie.as_bytes());
        let of_token = |value: &str| constant_time_eq(&Sha256::digest(value), &token.itself);
        let bearer =
            request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        if request.query_value("token").is_some_and(of_token) && request.method != Method::Post {
            let Self { cookie, .. } = self;
            let value = &token.cookie;
            return Ruling::Admitted {
                cookie: format!("{cookie}={value}; Path=/; HttpOnly; SameSite=Lax"),
            };
        }
        if request.cookie_values(&self.cookie).any(of_cookie) || bearer.is_some_and(of_token) {
            Ruling::Welcome
        } else {
            Ruling::Stranger
        }
    }
}

/// Whether a browser says that the question comes from one of our pages.
fn is_same_origin(request: &HttpRequest, host: &str) -> bool {
    let own = |origin: &str| {
        let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        rest.is_some_and(|rest| rest.eq_ignore_ascii_case(host))
    };
    let site = request.header("sec-fetch-site");
    request.header("origin").is_some_and(own)
        && site.is_none_or(|site| site == "same-origin")
        && (site.is_some() || !request.has_header("sec-fetch-site"))
}

/// Compares in a time that does not tell where two texts differ.
pub(crate) fn constant_time_eq(one: &[u8], other: &[u8]) -> bool {
    let differ = one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b));
    one.len() == other.len() && std::hint::black_box(differ) == 0
}

/// In hexadecimal.
fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// 32 random bytes in hexadecimal, for tokens and keys.
pub fn random_secret() -> io::Result<String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(to_hex(&bytes))
}
