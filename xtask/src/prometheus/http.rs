//! As much of an HTTP client as a check on one machine needs.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);

/// The body of a page.
pub(crate) fn get(address: &str, path: &str) -> Result<String, String> {
    exchange(address, &format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n"))
        .map_err(|error| format!("GET http://{address}{path}: {error}"))
}

/// The answer to a JSON document.
pub(super) fn post(address: &str, path: &str, body: &str) -> Result<String, String> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    exchange(address, &(head + body))
        .map_err(|error| format!("POST http://{address}{path}: {error}"))
}

/// HTTP/1.0: the answer ends with the connection and is not chunked.
fn exchange(address: &str, request: &str) -> Result<String, String> {
    let address: SocketAddr = address.parse().map_err(|_| "not an address".to_owned())?;
    let text = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(text)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(text)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(text)?;
    stream.write_all(request.as_bytes()).map_err(text)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map_err(text)?;
    body(&String::from_utf8_lossy(&answer))
}

fn body(answer: &str) -> Result<String, String> {
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("the answer's headers have no end")?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    if status == "200" { Ok(body.to_owned()) } else { Err(format!("{head}\n{body}")) }
}

/// An expression in a query string.
pub(super) fn encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_taken_apart() {
        assert_eq!(body("HTTP/1.0 200 OK\r\na: b\r\n\r\nx\r\n\r\ny"), Ok("x\r\n\r\ny".to_owned()));
        assert!(body("HTTP/1.0 503 No\r\n\r\n").is_err());
        assert!(body("garbage").is_err());
        assert_eq!(encode("a:b[5m]"), "a%3Ab%5B5m%5D");
    }
}
