//! Hostile clients of `record` that speak HTTP/1.1: smuggled, slow, endless, idle, gone.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::Ordering;

use goodput_clock::now;
use rustix::net::sockopt::set_socket_linger;
use rustix::process::Signal;

use super::peer::{
    OriginServer, ReceivedBytes, find_bytes, open_many, read_until, request_length,
    send_and_receive, shut_down_writes, write_until,
};
use super::stand::{
    BODY, CHAT, SOON_S, Stand, good_answer, good_origin, new_case, post_request, sleep_ms,
};
use crate::case::{Case, CaseBounds, Observed, Skip};
use crate::program::{Binary, seconds_to_nanos};

const HEALTH: &[u8] = b"GET /goodput/health HTTP/1.0\r\nhost: h\r\n\r\n";

/// What follows a request that lies about its end.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nhost: h\r\n\r\n";

/// Name, what stands behind `POST /x HTTP/1.1` and `host: h`, the status, and how many requests arrive.
/// A status of 0: none, or any.
const DISGUISES: &[(&str, &str, u16, usize)] = &[
    ("cl-te", "content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}", 200, 1),
    (
        "te-cl",
        "transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n21\r\n{HIDDEN}\r\n0\r\n\r\n",
        200,
        1,
    ),
    (
        "te-twice",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}",
        501,
        0,
    ),
    (
        "te-then-other",
        "transfer-encoding: chunked\r\ntransfer-encoding: x\r\n\r\n0\r\n\r\n{HIDDEN}",
        400,
        0,
    ),
    ("te-gzip", "transfer-encoding: gzip\r\n\r\n{HIDDEN}", 400, 0),
    ("te-gzip-chunked", "transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n{HIDDEN}", 501, 0),
    ("te-identity", "transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n{HIDDEN}", 400, 0),
    ("te-xchunked", "transfer-encoding: xchunked\r\n\r\n0\r\n\r\n{HIDDEN}", 400, 0),
    (
        "te-space-before-colon",
        "transfer-encoding : chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n{HIDDEN}",
        400,
        0,
    ),
    (
        "te-folded",
        "transfer-encoding:\r\n chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n{HIDDEN}",
        400,
        0,
    ),
    (
        "te-vertical-tab",
        "transfer-encoding: \u{b}chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n{HIDDEN}",
        400,
        0,
    ),
    (
        "te-behind-bare-cr",
        "x: y\rtransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n{HIDDEN}",
        400,
        0,
    ),
    (
        "te-behind-bare-lf",
        "x: y\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n{HIDDEN}",
        400,
        0,
    ),
    ("cl-twice", "content-length: 5\r\ncontent-length: 6\r\n\r\nhello{HIDDEN}", 400, 0),
    ("cl-list", "content-length: 5, 6\r\n\r\nhello{HIDDEN}", 400, 0),
    ("cl-plus", "content-length: +5\r\n\r\nhello{HIDDEN}", 400, 0),
    ("cl-hex", "content-length: 0x5\r\n\r\nhello{HIDDEN}", 400, 0),
    ("cl-huge", "content-length: 18446744073709551621\r\n\r\nhello{HIDDEN}", 400, 0),
    ("cl-space-before-colon", "content-length : 5\r\n\r\nhello{HIDDEN}", 400, 0),
    ("cl-first-line-folded", " content-length: 5\r\n\r\nhello{HIDDEN}", 400, 0),
    ("nul-in-value", "x: a\0b\r\ncontent-length: 0\r\n\r\n{HIDDEN}", 400, 0),
    ("two-hosts", "host: other\r\ncontent-length: 0\r\n\r\n{HIDDEN}", 400, 0),
    (
        "chunk-bad-size",
        "transfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n{HIDDEN}",
        400,
        0,
    ),
    ("chunk-bare-lf", "transfer-encoding: chunked\r\n\r\n5\nhello\n0\n\n{HIDDEN}", 400, 0),
    (
        "chunk-overflow",
        "transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello\r\n0\r\n\r\n{HIDDEN}",
        400,
        0,
    ),
    (
        "chunk-longer-than-said",
        "transfer-encoding: chunked\r\n\r\n5\r\nhelloX0\r\n\r\n{HIDDEN}",
        400,
        0,
    ),
    (
        "trailer-bare-lf",
        "transfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx: y\n\r\n{HIDDEN}",
        400,
        0,
    ),
    (
        "connection-names-framing",
        "connection: close, content-length, host\r\ncontent-length: 5\r\n\r\nhello",
        200,
        1,
    ),
    (
        "upgrade-websocket",
        "upgrade: websocket\r\nconnection: upgrade, close\r\ncontent-length: 0\r\n\r\n",
        501,
        0,
    ),
    (
        "upgrade-h2c",
        "upgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\nconnection: upgrade, http2-settings, close\r\ncontent-length: 5\r\n\r\nhello",
        200,
        1,
    ),
    ("expect-odd", "expect: the-moon\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", 417, 0),
];

/// Requests whose first line is the trick.
const LINES: &[(&str, &str, u16, usize)] = &[
    ("http-0.9", "GET /x\r\n", 0, 0),
    ("http-3", "GET /x HTTP/3.0\r\nhost: h\r\n\r\n", 400, 0),
    (
        "te-of-http-1.0",
        "POST /x HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}",
        400,
        0,
    ),
    ("connect", "CONNECT 127.0.0.1:1 HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n", 405, 0),
    ("no-host", "GET /x HTTP/1.1\r\nconnection: close\r\n\r\n", 400, 0),
    ("space-in-path", "GET /x /hidden HTTP/1.1\r\nhost: h\r\n\r\n", 400, 0),
    (
        "absolute-form",
        "GET http://127.0.0.1:1/x HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n",
        200,
        1,
    ),
    ("bare-lf-line", "GET /x HTTP/1.1\nhost: h\r\n\r\n{HIDDEN}", 400, 0),
    ("tls-hello", "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\0\u{3}\u{3} hello", 0, 0),
];

/// What of a connection to the upstream is whole requests, or what is wrong with them.
fn whole_requests(mut bytes: &[u8], host: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    while let Some(length) = request_length(bytes) {
        let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
        let head = text.split("\r\n\r\n").next().unwrap_or_default();
        let mut lines = head.split("\r\n");
        let line = lines.next().unwrap_or_default();
        let is_line = line.split(' ').count() == 3 && line.ends_with(" HTTP/1.1");
        let is_odd = |line: &str| line.starts_with([' ', '\t']) || line.contains(char::is_control);
        let lines: Vec<&str> = lines.collect();
        let count = |name: &str| lines.iter().filter(|line| line.starts_with(name)).count();
        let framings = count("content-length:") + count("transfer-encoding:");
        let is_host = lines.contains(&&*format!("host: {host}")) && count("host:") == 1;
        if !is_line || !is_host || framings > 1 || lines.iter().any(|line| is_odd(line)) {
            return Err(format!("the upstream got {head}"));
        }
        found.push(line.to_owned());
        bytes = &bytes[length..];
    }
    Ok(found)
}

/// Sends a request that two servers could read differently; what arrives is one request, or none.
fn send_smuggled(
    goodput: &Binary,
    request: &str,
    status: u16,
    most: usize,
) -> Result<Observed, Skip> {
    let origin = good_origin()?;
    let stand = Stand::record(goodput, &origin.url(), &[])?;
    let said = send_and_receive(stand.address, request.replace("{HIDDEN}", HIDDEN).as_bytes(), 0.7);
    let faults = stand.check_bystanders(1);
    let mut observed = stand.end_recording(Signal::INT, Some(1))?;
    observed.faults.extend(faults);
    observed.check(status == 0 || said.status() == Some(status), || said.text());
    let answers = said.first.windows(9).filter(|part| part == b"HTTP/1.1 ").count();
    observed.check(answers <= 1, || format!("{answers} answers to one request"));
    let mut arrived = 0;
    for heard in origin.received_requests() {
        match whole_requests(&heard, &origin.address.to_string()) {
            Ok(requests) => {
                arrived += requests.iter().filter(|line| line.contains(" /x ")).count();
                let hidden = requests.iter().find(|line| line.contains("hidden"));
                observed.faults.extend(hidden.map(|line| format!("smuggled: {line}")));
            }
            Err(fault) => observed.faults.push(fault),
        }
    }
    observed.check(arrived == most, || format!("{arrived} requests arrived, not {most}"));
    Ok(observed)
}

/// A crowd that has sent this much; a new client and the health path are answered all the same.
fn open_idle_connections(goodput: &Binary, count: usize, each: &[u8]) -> Result<Observed, Skip> {
    let origin = good_origin()?;
    let stand = Stand::record(goodput, &origin.url(), &[])?;
    let crowd = open_many(stand.address, count, each)?;
    // A connection that has not asked yet counts as idle after a second.
    sleep_ms(1_200);
    let health = send_and_receive(stand.address, HEALTH, SOON_S);
    let faults: Vec<String> = (0..3).filter_map(|_| stand.check_bystander(SOON_S)).collect();
    let mut observed = stand.end_recording(Signal::INT, Some(3))?;
    observed.faults.extend(faults);
    observed.check(health.status() == Some(200), || format!("health: {}", health.text()));
    drop(crowd);
    Ok(observed)
}

/// Heads that come a byte at a time: after 10 s they are closed, and no other client waits.
fn send_slow_heads(goodput: &Binary) -> Result<Observed, Skip> {
    let origin = good_origin()?;
    let stand = Stand::record(goodput, &origin.url(), &[])?;
    let (begin, mut faults) = (now(), Vec::new());
    let mut slow = open_many(stand.address, 100, b"GET /x HTTP/1.1\r\nhost: h\r\n")?;
    while now() < begin + seconds_to_nanos(11.5) {
        for stream in &mut slow {
            let _ = stream.write(b"x");
        }
        faults.extend(stand.check_bystanders(1));
        sleep_ms(500);
    }
    let mut ends = 0;
    for stream in &slow {
        let mut said = ReceivedBytes::default();
        read_until(stream, &mut said, now() + seconds_to_nanos(0.1));
        ends += usize::from(said.is_over);
    }
    let mut observed = stand.end_recording(Signal::TERM, None)?;
    observed.faults.extend(faults);
    observed.check(ends == slow.len(), || format!("{ends} of 100 slow ones were let go"));
    Ok(observed)
}

/// A client that goes on sending these pieces, next to good ones.
fn send_endless(goodput: &Binary, begin: &'static str, piece: &[u8]) -> Result<Observed, Skip> {
    let origin = OriginServer::start(|visitor| {
        while let Some(path) = visitor.read_request() {
            visitor.send_bytes(
                if path.ends_with(CHAT) { good_answer() } else { Vec::new() }.as_slice(),
            );
        }
    })?;
    let stand = Stand::record(goodput, &origin.url(), &[])?;
    let (address, piece) = (stand.address, piece.repeat(1 + (16 << 10) / piece.len()));
    let hostile = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(begin.as_bytes())?;
        write_until(&mut stream, now() + seconds_to_nanos(1.0), |_| piece.clone());
        std::io::Result::Ok(())
    });
    sleep_ms(100);
    let faults = stand.check_bystanders(4);
    let _ = hostile.join();
    let mut observed = stand.end_recording(Signal::INT, Some(4))?;
    observed.faults.extend(faults);
    Ok(observed)
}

/// A body longer than what is looked at: it passes, and the trace says that it is missing (exit 5).
fn send_long_body(goodput: &Binary) -> Result<Observed, Skip> {
    let origin = good_origin()?;
    let stand = Stand::record(goodput, &origin.url(), &[])?;
    let said = send_and_receive(stand.address, &post_request(CHAT, &"x".repeat(40 << 20)), 10.0);
    let faults = stand.check_bystanders(1);
    let mut observed = stand.end_recording(Signal::INT, Some(2))?;
    observed.faults.extend(faults);
    observed.check(said.status() == Some(200), || said.text());
    Ok(observed)
}

/// How a client leaves in the middle of an answer.
#[derive(Clone, Copy)]
enum Leaves {
    HalfClosed,
    Reset,
    ReadsNothing,
}

/// The upstream answers without end, and the client leaves, or does not read.
fn leave_early(goodput: &Binary, leaves: Leaves) -> Result<Observed, Skip> {
    let origin = OriginServer::start(|visitor| {
        while let Some(path) = visitor.read_request() {
            if path.starts_with("/bad") {
                visitor.send_bytes(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n");
                return visitor.flood(b"data: {\"choices\":[]}\n\n");
            }
            visitor.send_bytes(&good_answer());
        }
    })?;
    let stand = Stand::record(goodput, &origin.url(), &[])?;
    let idle = origin.open.load(Ordering::SeqCst);
    let mut streams = open_many(stand.address, 20, &post_request(&format!("/bad{CHAT}"), BODY))?;
    sleep_ms(400);
    for stream in &streams {
        match leaves {
            Leaves::HalfClosed => shut_down_writes(stream),
            Leaves::Reset => {
                let _ = set_socket_linger(stream, Some(std::time::Duration::ZERO));
            }
            Leaves::ReadsNothing => {}
        }
    }
    if matches!(leaves, Leaves::Reset) {
        streams.clear();
    }
    let faults = stand.check_bystanders(4);
    sleep_ms(300);
    // Of good ones a connection may be kept.
    let open = origin.open.load(Ordering::SeqCst);
    let mut observed = stand.end_recording(Signal::TERM, Some(24))?;
    observed.faults.extend(faults);
    let is_free = matches!(leaves, Leaves::ReadsNothing) || open <= idle + 4;
    observed.check(is_free, || format!("{open} connections to the upstream are open"));
    drop(streams);
    Ok(observed)
}

/// A model's name, a session and a role that would draw on a terminal or in a page.
fn use_odd_names(goodput: &Binary) -> Result<Observed, Skip> {
    let origin = good_origin()?;
    let stand = Stand::record(goodput, &origin.url(), &["--session-header", "x-talk"])?;
    let odd = r"\u001b[31m<script>alert(1)</script> Quetzalcoatl";
    let body = format!(
        r#"{{"model":"{odd}","user":"{odd}","messages":[{{"role":"{odd}","content":"{odd}"}}],"stop":["{odd}"]}}"#
    );
    let said = send_and_receive(stand.address, &post_request(CHAT, &body), SOON_S);
    let deep = send_and_receive(stand.address, &post_request(CHAT, &"[".repeat(1 << 20)), SOON_S);
    let (mut observed, _, scratch) = stand.end(Signal::INT)?;
    let trace = std::fs::read(scratch.join("trace.jsonl"))?;
    observed.check(find_bytes(&trace, b"script").is_none(), || "markup is in the trace".to_owned());
    observed.check(said.status() == Some(200) && deep.status() == Some(200), || said.text());
    Ok(observed)
}

/// Listening for everybody must be meant.
fn start_exposed(goodput: &Binary, args: &[&str]) -> Result<Observed, Skip> {
    let scratch = crate::program::ScratchFolder::new()?;
    let ended = goodput.run(scratch.path(), args, 5.0)?;
    let mut observed = Observed::from_process(&ended);
    observed.check(ended.stderr.contains("--expose"), || ended.stderr.clone());
    observed.check(!scratch.join("trace.jsonl").exists(), || "a trace was begun".to_owned());
    Ok(observed)
}

fn smuggling_cases(bound: &CaseBounds) -> impl Iterator<Item = Case> {
    let disguised = DISGUISES.iter().map(|&(name, rest, status, most)| {
        (name, format!("POST /x HTTP/1.1\r\nhost: h\r\n{rest}"), status, most)
    });
    let lines =
        LINES.iter().map(|&(name, line, status, most)| (name, line.to_owned(), status, most));
    let bound = bound.clone();
    disguised.chain(lines).map(move |(name, request, status, most)| {
        new_case("proxy/client", format!("smuggle-{name}"), bound.clone(), move |goodput| {
            send_smuggled(goodput, &request, status, most)
        })
    })
}

fn exposure_cases() -> impl Iterator<Item = Case> {
    let rows: [(&str, &[&str]); 3] = [
        (
            "record-exposed",
            &[
                "record",
                "--upstream",
                "http://127.0.0.1:1",
                "--output",
                "trace.jsonl",
                "--listen",
                "0.0.0.0:0",
            ],
        ),
        (
            "shadow-exposed",
            &[
                "shadow",
                "--primary",
                "http://127.0.0.1:1",
                "--candidate",
                "http://127.0.0.1:2",
                "--listen",
                "0.0.0.0:0",
            ],
        ),
        (
            "metrics-exposed",
            &[
                "record",
                "--upstream",
                "http://127.0.0.1:1",
                "--output",
                "trace.jsonl",
                "--listen",
                "127.0.0.1:0",
                "--metrics-listen",
                "0.0.0.0:0",
            ],
        ),
    ];
    let bound = CaseBounds::exit(&[2]).within(2.0, 96.0);
    rows.into_iter().map(move |(name, args)| {
        new_case("proxy/client", name, bound.clone(), move |goodput| start_exposed(goodput, args))
    })
}

pub(super) fn cases() -> Vec<Case> {
    let bound = CaseBounds::exit(&[0]).within(4.0, 96.0);
    let new = |name, expected: &CaseBounds, attack: fn(&Binary) -> Result<Observed, Skip>| {
        new_case("proxy/client", name, expected.clone(), attack)
    };
    let body = "POST /x HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n";
    let head = "GET /x HTTP/1.1\r\nhost: h\r\n";
    let others = [
        new("idle-silent-5000", &bound, |goodput| open_idle_connections(goodput, 5_000, b"")),
        new("idle-half-head-5000", &bound, |goodput| {
            open_idle_connections(goodput, 5_000, b"GET / HTTP/1.1\r\n")
        }),
        new("idle-kept-5000", &bound, |goodput| {
            open_idle_connections(
                goodput,
                5_000,
                b"GET /goodput/health HTTP/1.1\r\nhost: h\r\n\r\n",
            )
        }),
        new("slow-heads", &bound, send_slow_heads),
        new("slow-bodies", &bound, |goodput| {
            open_idle_connections(
                goodput,
                300,
                b"POST /x HTTP/1.1\r\nhost: h\r\ncontent-length: 100\r\n\r\n{",
            )
        }),
        new_case("proxy/client", "endless-head", bound.clone(), move |goodput| {
            send_endless(goodput, head, b"x: y\r\n")
        }),
        new_case("proxy/client", "endless-line", bound.clone(), move |goodput| {
            send_endless(goodput, head, b"yyyyyyyy")
        }),
        new_case("proxy/client", "endless-blank-lines", bound.clone(), |goodput| {
            send_endless(goodput, "", b"\r\n")
        }),
        new_case("proxy/client", "endless-chunks", bound.clone(), move |goodput| {
            send_endless(goodput, body, b"1\r\nx\r\n")
        }),
        new_case("proxy/client", "endless-chunk-line", bound.clone(), move |goodput| {
            send_endless(goodput, body, b"1;xxxxxx")
        }),
        new_case("proxy/client", "endless-trailers", bound.clone(), move |goodput| {
            send_endless(
                goodput,
                "POST /x HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n0\r\n",
                b"x: y\r\n",
            )
        }),
        new_case("proxy/client", "endless-pipelined", bound.clone(), |goodput| {
            send_endless(goodput, "", b"GET /goodput/health HTTP/1.1\r\nhost: h\r\n\r\n")
        }),
        new("body-of-40-mib", &CaseBounds::exit(&[5]).within(4.0, 96.0), send_long_body),
        new("half-closed", &bound, |goodput| leave_early(goodput, Leaves::HalfClosed)),
        new("reset-in-an-answer", &bound, |goodput| leave_early(goodput, Leaves::Reset)),
        new("reads-nothing", &bound, |goodput| leave_early(goodput, Leaves::ReadsNothing)),
        new("odd-names", &bound, use_odd_names),
    ];
    smuggling_cases(&bound).chain(others).chain(exposure_cases()).collect()
}
