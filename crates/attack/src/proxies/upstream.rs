//! `record` in front of upstreams of HTTP/1.1 that flood, hang, lie and break off.

use rustix::process::Signal;

use super::peer::{OriginServer, ReceivedBytes, Visitor, send_and_receive};
use super::stand::{BODY, CHAT, SOON_S, Stand, good_answer, new_case, post_request, sleep_ms};
use crate::case::{Case, CaseBounds, Observed, Skip};
use crate::program::Binary;

/// What the client of a hostile upstream must see.
#[derive(Debug, Clone, Copy)]
enum ExpectedAnswer {
    /// This status, and a whole answer.
    Whole(u16),
    /// 200, and an answer that does not end as if it were whole.
    Cut,
    /// Not a byte: the upstream never answered.
    Nothing,
}

/// What an upstream does with a request.
#[derive(Clone, Copy)]
enum UpstreamAct {
    /// Says this and closes.
    Say(&'static str),
    /// Says this and goes on as if it were a good server.
    Answer(&'static str),
    /// Says this and then nothing.
    Keep(&'static str),
    /// Says the first, then the second without end.
    Flood(&'static str, &'static str),
    Do(fn(&mut Visitor)),
}

const SSE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const BARE: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const TOKEN: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Xylophonist\"}}]}\n\n";

const NO_MODELS: &str = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";

/// Name, what it does, what its client sees.
const ACTS: &[(&str, UpstreamAct, ExpectedAnswer)] = {
    use ExpectedAnswer::{Cut, Nothing, Whole};
    use UpstreamAct::{Answer, Do, Flood, Keep, Say};
    &[
        ("silence", Keep(""), Nothing),
        ("close", Say(""), Whole(502)),
        ("garbage", Say("\0\u{1}\u{2} no HTTP \u{1b}[31m\r\n\r\n"), Whole(502)),
        ("http-0.9", Say("<html>Xylophonist</html>"), Whole(502)),
        ("status-099", Say("HTTP/1.1 099 Odd\r\n\r\n"), Whole(502)),
        ("head-lines-endless", Flood("HTTP/1.1 200 OK\r\n", "x: y\r\n"), Whole(502)),
        ("head-line-endless", Flood("HTTP/1.1 200 OK\r\nx: ", "yyyyyyyy"), Whole(502)),
        ("head-drip", Do(|visitor| visitor.drip(b"HTTP/1.1 200 OK\r\nx: yyyyyyyyyyyy")), Nothing),
        (
            "head-folded",
            Say("HTTP/1.1 200 OK\r\nx: a\r\n b\r\ncontent-length: 0\r\n\r\n"),
            Whole(502),
        ),
        (
            "head-bare-cr",
            Say("HTTP/1.1 200 OK\r\nx: a\rb\r\ncontent-length: 0\r\n\r\n"),
            Whole(502),
        ),
        ("head-nul", Say("HTTP/1.1 200 OK\r\nx: a\0b\r\ncontent-length: 0\r\n\r\n"), Whole(502)),
        ("interim-endless", Flood("", "HTTP/1.1 100 Continue\r\n\r\n"), Nothing),
        ("interim-huge", Flood("HTTP/1.1 103 Early Hints\r\nlink: ", "yyyyyyyy"), Whole(502)),
        (
            "redirect",
            Answer(
                "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
            ),
            Whole(302),
        ),
        (
            "switching-protocols",
            Answer("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n"),
            Whole(502),
        ),
        (
            "lengths-two",
            Say("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!"),
            Whole(502),
        ),
        ("length-signed", Say("HTTP/1.1 200 OK\r\ncontent-length: +5\r\n\r\nhello"), Whole(502)),
        (
            "length-overflow",
            Say("HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551621\r\n\r\nhello"),
            Whole(502),
        ),
        (
            "length-too-long",
            Say("HTTP/1.1 200 OK\r\ncontent-length: 9223372036854775807\r\n\r\nhello"),
            Cut,
        ),
        (
            "answer-behind-answer",
            Answer(
                "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nEVIL",
            ),
            Whole(200),
        ),
        (
            "length-and-chunks",
            Answer(
                "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            ),
            Whole(200),
        ),
        ("coding-gzip", Say("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nhello"), Whole(502)),
        (
            "coding-of-http-1.0",
            Say("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
            Whole(502),
        ),
        ("chunk-no-size", Do(|visitor| broken_chunk(visitor, "zz\r\nhello\r\n0\r\n\r\n")), Cut),
        (
            "chunk-longer-than-said",
            Do(|visitor| broken_chunk(visitor, "5\r\nhello!!!\r\n0\r\n\r\n")),
            Cut,
        ),
        (
            "chunk-overflow",
            Do(|visitor| broken_chunk(visitor, "fffffffffffffffff\r\nhello\r\n0\r\n\r\n")),
            Cut,
        ),
        ("chunk-line-endless", Flood(BARE, "5;xxxxxx"), Cut),
        ("chunks-of-one-byte", Flood(BARE, "1\r\nx\r\n"), Cut),
        (
            "trailers-endless",
            Flood(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
                "x: y\r\n",
            ),
            Cut,
        ),
        ("text-endless", Flood(SSE, "data: Xylophonist without a line end "), Cut),
        ("tokens-endless", Flood(SSE, TOKEN), Cut),
        ("comments-endless", Flood(SSE, ": ping\n"), Cut),
        (
            "json-of-a-tebibyte",
            Flood(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1099511627776\r\n\r\n",
                "[[[[[[[[",
            ),
            Cut,
        ),
        (
            "gzip-bomb",
            Flood(
                "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-type: text/event-stream\r\n\r\n",
                "\u{1f}\0\0\0\0\0\0\0",
            ),
            Cut,
        ),
        ("cut-in-a-stream", Do(|visitor| broken_chunk(visitor, "b\r\ndata: half\n")), Cut),
        ("reset-in-a-stream", Do(reset_in_a_stream), Cut),
        (
            "stall-in-a-stream",
            Keep("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"),
            Cut,
        ),
        (
            "finish-reason-of-text",
            Answer(
                "HTTP/1.1 200 OK\r\ncontent-length: 108\r\ncontent-type: application/json\r\n\r\n{\"choices\":[{\"message\":{\"content\":\"x\"},\"finish_reason\":\"Xylophonist \\u001b[31m <script>alert(1)</script>\"}]}",
            ),
            Whole(200),
        ),
    ]
};

/// A chunked answer that has begun well, in a read of its own.
fn broken_chunk(visitor: &mut Visitor, rest_of_it: &str) {
    visitor.send_bytes(CHUNKED.as_bytes());
    visitor.send_bytes(b"5\r\ndata:\r\n");
    sleep_ms(50);
    visitor.send_bytes(rest_of_it.as_bytes());
}

/// Closing over bytes that were not read resets a connection.
fn reset_in_a_stream(visitor: &mut Visitor) {
    visitor.send_bytes(CHUNKED.as_bytes());
    visitor.send_bytes(b"5\r\ndata:\r\n");
    sleep_ms(50);
    let _ =
        rustix::net::sockopt::set_socket_linger(&visitor.stream, Some(std::time::Duration::ZERO));
}

impl UpstreamAct {
    fn play_on(self, visitor: &mut Visitor) {
        match self {
            Self::Say(words) | Self::Answer(words) => {
                visitor.send_bytes(words.as_bytes());
            }
            Self::Keep(words) => {
                visitor.send_bytes(words.as_bytes());
                visitor.wait();
            }
            Self::Flood(first, more) => {
                visitor.send_bytes(first.as_bytes());
                visitor.flood(more.as_bytes());
            }
            Self::Do(act) => act(visitor),
        }
    }
}

impl ExpectedAnswer {
    fn find_fault(self, said: &ReceivedBytes) -> Option<String> {
        let is_right = match self {
            Self::Whole(status) => said.status() == Some(status) && said.is_whole(),
            Self::Cut => said.status() == Some(200) && !said.is_whole() && said.is_over,
            Self::Nothing => said.first.is_empty() && said.is_over,
        };
        (!is_right).then(|| format!("the client should see {self:?}, but: {}", said.text()))
    }
}

fn attack_as_upstream(
    goodput: &Binary,
    act: UpstreamAct,
    seen: ExpectedAnswer,
) -> Result<Observed, Skip> {
    let origin = OriginServer::start(move |visitor| {
        while let Some(path) = visitor.read_request() {
            match act {
                _ if !path.starts_with("/bad") => {
                    visitor.send_bytes(&good_answer());
                }
                UpstreamAct::Answer(_) => act.play_on(visitor),
                _ => return act.play_on(visitor),
            }
        }
    })?;
    let stand = Stand::record(goodput, &origin.url(), &[])?;
    let (address, path) = (stand.address, format!("/bad{CHAT}"));
    let hostile =
        std::thread::spawn(move || send_and_receive(address, &post_request(&path, BODY), 10.0));
    sleep_ms(100);
    let faults = stand.check_bystanders(4);
    // So long a flood goes on, for memory to grow if it does.
    sleep_ms(400);
    let mut observed = stand.end_recording(Signal::INT, Some(5))?;
    observed.faults.extend(faults);
    let said = hostile.join().map_err(|_| Skip::Broken("the client broke".to_owned()))?;
    observed.faults.extend(seen.find_fault(&said));
    Ok(observed)
}

/// No server listens, or one that does not speak TLS.
fn absent_upstream(goodput: &Binary, url: &str) -> Result<Observed, Skip> {
    let stand = Stand::record(goodput, url, &["--insecure"])?;
    let said = send_and_receive(stand.address, &post_request(CHAT, BODY), SOON_S);
    let health =
        send_and_receive(stand.address, b"GET /goodput/health HTTP/1.0\r\nhost: h\r\n\r\n", SOON_S);
    let mut observed = stand.end_recording(Signal::TERM, Some(1))?;
    observed.faults.extend(ExpectedAnswer::Whole(502).find_fault(&said));
    observed.faults.extend(ExpectedAnswer::Whole(200).find_fault(&health));
    Ok(observed)
}

/// Two signals end it at once, even with requests in flight.
fn stop_in_a_hurry(goodput: &Binary) -> Result<Observed, Skip> {
    let origin = OriginServer::start(|visitor| {
        while let Some(path) = visitor.read_request() {
            let is_first_look = !path.ends_with(CHAT);
            visitor.send_bytes(if is_first_look { NO_MODELS } else { SSE }.as_bytes());
            if !is_first_look {
                return visitor.flood(TOKEN.as_bytes());
            }
        }
    })?;
    let stand = Stand::record_draining(goodput, &origin.url(), "60s", &[])?;
    let address = stand.address;
    std::thread::spawn(move || send_and_receive(address, &post_request(CHAT, BODY), 10.0));
    sleep_ms(200);
    stand.process.signal(Signal::INT);
    sleep_ms(300);
    Ok(stand.end(Signal::TERM)?.0)
}

/// The first look at a server, before anything listens, meets a page without end. Of it 64 MiB are read.
fn endless_models(goodput: &Binary) -> Result<Observed, Skip> {
    let origin = OriginServer::start(|visitor| {
        visitor.read_request();
        visitor.send_bytes(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n");
        visitor.flood(br#"{"data":[{"id":"Xylophonist"},"#);
    })?;
    Stand::record(goodput, &origin.url(), &[])?.end_recording(Signal::TERM, Some(0))
}

/// Every case. A drain takes half a second, and a busy machine takes its time.
pub(super) fn cases() -> Vec<Case> {
    let bound = CaseBounds::exit(&[0]).within(4.0, 96.0);
    let acts = ACTS.iter().map(|&(name, act, seen)| {
        new_case("proxy/upstream", name, bound.clone(), move |goodput| {
            attack_as_upstream(goodput, act, seen)
        })
    });
    let others = [
        new_case("proxy/upstream", "absent", bound.clone(), |goodput| {
            absent_upstream(goodput, "http://127.0.0.1:1")
        }),
        new_case("proxy/upstream", "no-tls", bound.clone(), |goodput| {
            let origin = OriginServer::start(|visitor| {
                visitor.send_bytes(b"\x15\x03\x01 no TLS\r\n");
            })?;
            absent_upstream(goodput, &origin.url().replace("http:", "https:"))
        }),
        new_case(
            "proxy/upstream",
            "models-endless",
            CaseBounds::exit(&[0]).within(4.0, 256.0),
            endless_models,
        ),
        new_case(
            "proxy/upstream",
            "two-signals",
            CaseBounds::exit(&[130]).within(2.0, 96.0),
            stop_in_a_hurry,
        ),
    ];
    acts.chain(others).collect()
}
