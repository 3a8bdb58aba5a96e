//! Requests that were right before something happened to them, sent to a running simulated engine:
//! it answers or hangs up, never fails, and never stops serving.

use crate::support::Session;
use crate::support::mock::MockProcess;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Right requests: path and body.
const REQUESTS: [(&str, &str); 6] = [
    (
        "/v1/chat/completions",
        r#"{"model":"mock","messages":[{"role":"system","content":"a"},{"role":"user","content":[{"type":"text","text":"b"},{"type":"image_url","image_url":{"url":"data:x"}}]}],"max_tokens":3,"n":2,"stop":["x"],"logprobs":true,"top_logprobs":2,"temperature":0.5,"seed":1}"#,
    ),
    (
        "/v1/chat/completions",
        r#"{"messages":[{"role":"user","content":"b"},{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"query\":\"a\"}"}}]},{"role":"tool","content":"c"}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"required","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":4}"#,
    ),
    (
        "/v1/completions",
        r#"{"prompt":["a b","c"],"max_tokens":3,"min_tokens":1,"echo":true,"logprobs":1,"ignore_eos":true,"stream":true,"return_token_ids":true}"#,
    ),
    ("/v1/embeddings", r#"{"input":[[100,200],[300]],"dimensions":4,"encoding_format":"base64"}"#),
    ("/tokenize", r#"{"prompt":"hello","add_special_tokens":false,"return_token_strs":true}"#),
    ("/detokenize", r#"{"tokens":[100,2000,30000]}"#),
];

/// HTTP/2 by prior knowledge: preface, settings, and a GET of `/`.
const HTTP2: &[u8] =
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x03\x01\x05\0\0\0\x01\x82\x84\x86";

/// Pieces that mean something to one of the readers.
const PIECES: [&str; 30] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    ",",
    ":",
    "null",
    "true",
    "-1",
    "0",
    "1e308",
    "99999999999999999999",
    "\\u0000",
    "\\ud800",
    "\u{1f600}",
    "\r\n",
    "\r\n\r\n",
    "\n",
    " ",
    "\t",
    "\0",
    "é",
    "HTTP/1.0",
    "Content-Length: 0\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Connection: close\r\n",
    "Expect: 100-continue\r\n",
    "Content-Encoding: gzip\r\n",
    "\"stream\":true,",
];

/// Something that happens to a request, at a place given as a share of its length.
#[derive(Debug, Clone)]
enum Harm {
    Flip(u16, u8),
    Insert(u16, usize),
    Remove(u16, u8),
    Repeat(u16, u8),
    End(u16),
}

impl Harm {
    fn happen(&self, bytes: &mut Vec<u8>) {
        let place = |share: u16| usize::from(share) * bytes.len() / (1 << 16);
        let range = |share, length: u8| {
            let from = place(share);
            from..(from + usize::from(length)).min(bytes.len())
        };
        match *self {
            Self::Flip(at, bits) => {
                let at = place(at);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= bits;
                }
            }
            Self::Insert(at, piece) => {
                let at = place(at);
                bytes.splice(at..at, PIECES[piece].bytes());
            }
            Self::Remove(at, length) => drop(bytes.drain(range(at, length))),
            Self::Repeat(at, length) => {
                let part = bytes[range(at, length)].to_vec();
                let at = place(at);
                bytes.splice(at..at, part);
            }
            Self::End(at) => bytes.truncate(place(at)),
        }
    }
}

fn harms() -> impl Strategy<Value = Vec<Harm>> {
    let harm = prop_oneof![
        4 => (any::<u16>(), 1..=255u8).prop_map(|(at, bits)| Harm::Flip(at, bits)),
        4 => (any::<u16>(), 0..PIECES.len()).prop_map(|(at, piece)| Harm::Insert(at, piece)),
        2 => (any::<u16>(), 1..40u8).prop_map(|(at, length)| Harm::Remove(at, length)),
        2 => (any::<u16>(), 1..=255u8).prop_map(|(at, length)| Harm::Repeat(at, length)),
        1 => any::<u16>().prop_map(Harm::End),
    ];
    prop::collection::vec(harm, 1..5)
}

fn request(path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn run<S: Strategy>(
    cases: u32,
    strategy: &S,
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    if let Err(error) = TestRunner::new(config).run(strategy, test) {
        panic!("{error}");
    }
}

/// The status of what came back, if it is an answer.
fn status(said: &str) -> Option<u16> {
    let rest = said.strip_prefix("HTTP/1.1 ").or_else(|| said.strip_prefix("HTTP/1.0 "))?;
    rest.split(' ').next()?.parse().ok()
}

#[test]
fn harmed_bodies_are_answered() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &[]);
    run(1000, &(0..REQUESTS.len(), harms()), |(which, harms)| {
        let (path, body) = REQUESTS[which];
        let mut body = body.as_bytes().to_vec();
        for harm in &harms {
            harm.happen(&mut body);
        }
        let mut line = mock.connect();
        line.send(request(path, &body));
        let said = line.rest();
        let shown = String::from_utf8_lossy(&body);
        prop_assert!(matches!(status(&said), Some(200 | 400 | 404)), "{shown}: {said}");
        Ok(())
    });
    mock.assert_serves("after harmed bodies");
}

#[test]
fn harmed_requests_are_answered_or_hung_up_on() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &[]);
    run(1000, &(0..=REQUESTS.len(), harms()), |(which, harms)| {
        let whole = REQUESTS.get(which).map(|(path, body)| request(path, body.as_bytes()));
        let mut bytes = whole.unwrap_or_else(|| HTTP2.to_vec());
        for harm in &harms {
            harm.happen(&mut bytes);
        }
        let mut line = mock.connect();
        line.try_send(&bytes);
        line.end_sending();
        let said = line.rest();
        let is_fine = said.is_empty()
            || which == REQUESTS.len()
            || status(&said).is_some_and(|status| matches!(status, 100 | 200 | 400..=499));
        prop_assert!(is_fine, "{}: {said}", String::from_utf8_lossy(&bytes));
        Ok(())
    });
    mock.assert_serves("after harmed requests");
}
