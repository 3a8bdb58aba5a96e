//! What goes through the proxy comes out as it went in, and is told as it was.

use std::time::Duration;

use crate::support::{exchange, post, settings, split, start, unchunk};
use goodput_live::Ending;
use goodput_model::{Api, ErrorClass};
use goodput_testkit::{
    LAST_CHUNK, STREAM_HEAD, Server, Step, answer, chunk, end_events, timed_stream, token_event,
};

fn samples() -> Vec<(String, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../wire/tests/samples");
    let mut samples: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "sse"))
        .map(|path| (path.display().to_string(), std::fs::read(path).unwrap()))
        .collect();
    samples.sort();
    samples
}

const CHAT: &str = "/v1/chat/completions";

#[test]
fn every_real_stream_passes_byte_for_byte() {
    let samples = samples();
    assert!(samples.len() > 30, "{}", samples.len());
    let known = samples.clone();
    let server = Server::start(move |request| {
        let number: usize = request.body.parse().unwrap();
        let body = &known[number].1;
        let mut steps = vec![Step::write(STREAM_HEAD)];
        // Cut where no event ends, and in the middle of characters.
        for piece in body.chunks(97) {
            let mut bytes = format!("{:x}\r\n", piece.len()).into_bytes();
            bytes.extend_from_slice(piece);
            bytes.extend_from_slice(b"\r\n");
            steps.push(Step::Write(bytes));
        }
        steps.push(Step::write(LAST_CHUNK));
        steps
    });
    let (proxy, notes) = start(settings(&server.url()));
    for (number, (name, body)) in samples.iter().enumerate() {
        let answer = exchange(proxy.address(), post(CHAT, &number.to_string()).as_bytes());
        let (head, rest) = split(&answer);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{name}: {head}");
        assert!(head.contains("content-type: text/event-stream"), "{name}: {head}");
        assert_eq!(unchunk(rest), (body.clone(), true), "{name}");
    }
    let answered = notes.answers(samples.len());
    for (answered, (name, body)) in answered.iter().zip(&samples) {
        assert_eq!(answered.ending, Ending::Whole, "{name}");
        assert_eq!(answered.bytes, body.len() as u64, "{name}");
    }
    let good = answered.iter().filter(|answered| answered.exchange.failure.is_none()).count();
    assert!(good > 15, "{good}");
    assert_eq!(proxy.tally().requests.get(), samples.len() as u64);
}

#[test]
fn a_request_arrives_as_it_was_sent_and_both_sides_are_told() {
    let events = format!("{}{}{}", token_event("a"), token_event("b"), end_events(2));
    let server = Server::start(move |_| {
        vec![Step::write(format!("{STREAM_HEAD}{}{LAST_CHUNK}", chunk(&events)))]
    });
    let (proxy, notes) = start(settings(&server.url()));
    let body = r#"{"model":"m","stream":true}"#;
    let request = format!(
        "POST /v1/chat/completions?a=%20b&c HTTP/1.1\r\nHost: proxy:1\r\nAuthorization: Bearer k\r\n\
         Connection: close, X-Mine\r\nX-Mine: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authorization: p\r\n\
         TE: trailers, deflate\r\nX-Session: s7\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = exchange(proxy.address(), request.as_bytes());
    assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
    let seen = &server.requests()[0];
    assert_eq!(seen.line, "POST /v1/chat/completions?a=%20b&c HTTP/1.1");
    assert_eq!(seen.body, body);
    assert_eq!(seen.header("authorization"), Some("Bearer k"));
    assert_eq!(seen.header("host"), Some(server.address().to_string().as_str()));
    assert_eq!(seen.header("te"), Some("trailers"));
    assert_eq!(seen.header("content-length"), Some(body.len().to_string().as_str()));
    assert!(seen.header("via").is_some_and(|via| via.starts_with("1.1 goodput-")));
    for gone in ["connection", "x-mine", "keep-alive", "proxy-authorization", "transfer-encoding"] {
        assert_eq!(seen.header(gone), None, "{gone}");
    }
    let answered = notes.answers(1);
    let asked = notes.questions();
    assert_eq!((asked.len(), answered.len()), (1, 1));
    assert_eq!((asked[0].number, answered[0].number), (0, 0));
    assert_eq!(asked[0].api, Some(Api::Chat));
    assert_eq!(asked[0].session.as_deref(), Some("s7"));
    assert_eq!(asked[0].body.as_deref(), Some(body.as_bytes()));
    assert_eq!(asked[0].head.headers["x-mine"], "1");
    let told = &answered[0].exchange;
    assert_eq!((told.status, &told.failure, told.chunks.len()), (Some(200), &None, 2));
    assert_eq!(told.body_bytes, body.len() as u64);
    assert_eq!(told.input_tokens.map(|count| count.n), Some(7));
    let stamps = told.stamps;
    let order = [
        Some(answered[0].arrived),
        stamps.sent_first,
        stamps.headers,
        stamps.first_token,
        stamps.last_token,
        stamps.done,
        Some(stamps.ended),
    ];
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{order:?}");
}

#[test]
fn frames_leave_as_they_come() {
    let steps = timed_stream(Duration::from_millis(30), Duration::from_millis(30), 4);
    let server = Server::start(move |_| steps.clone());
    let (proxy, notes) = start(settings(&server.url()));
    exchange(proxy.address(), post(CHAT, "{}").as_bytes());
    let told = notes.answers(1).remove(0).exchange;
    assert_eq!((told.failure, told.chunks.len()), (None, 4));
    let apart = told.chunks.windows(2).all(|two| two[1].at - two[0].at > goodput_model::Nanos(0));
    assert!(apart && told.chunks.iter().all(|chunk| !chunk.coalesced));
}

#[test]
fn errors_of_the_upstream_pass_unchanged() {
    let words = r#"{"error":{"message":"no such model","type":"x","code":404}}"#;
    let server =
        Server::start(move |_| vec![answer("404 Nothing Here", "application/json", words)]);
    let (proxy, notes) = start(settings(&server.url()));
    let answer = exchange(proxy.address(), post(CHAT, "{}").as_bytes());
    let (head, body) = split(&answer);
    assert!(head.starts_with("HTTP/1.1 404 Nothing Here\r\n"), "{head}");
    assert_eq!(body, words.as_bytes());
    let told = notes.answers(1).remove(0);
    assert_eq!(told.ending, Ending::Whole);
    assert_eq!(told.exchange.failure.unwrap().class, ErrorClass::Http(404));
    assert_eq!(proxy.tally().statuses[4].get(), 1);
}

#[test]
fn an_unreachable_upstream_is_our_own_502() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (proxy, notes) = start(settings(&format!("http://{port}")));
    let answer = exchange(proxy.address(), post(CHAT, "{}").as_bytes());
    let (head, body) = split(&answer);
    assert!(head.starts_with("HTTP/1.1 502 "), "{head}");
    assert!(String::from_utf8_lossy(body).contains("\"code\":\"upstream_unreachable\""));
    let told = notes.answers(1).remove(0);
    assert_eq!(told.ending, Ending::Broken);
    assert_eq!(told.exchange.failure.unwrap().class, ErrorClass::Connect);
    assert_eq!(proxy.tally().upstream_failures.get(), 1);
}
