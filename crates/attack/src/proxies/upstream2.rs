//! `record` in front of upstreams of HTTP/2 that misbehave.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;

use super::peer::{OriginServer, Visitor, send_and_receive};
use super::stand::{BODY, CHAT, GOOD, SOON_S, Stand, new_case, post_request, sleep_ms};
use crate::case::{Case, CaseBounds, Observed, Skip};
use crate::program::Binary;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RESET: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GO_AWAY: u8 = 7;
pub(super) const WINDOW: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A frame of HTTP/2.
pub(super) fn http2_frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A block of headers that is short on the wire and long in memory: one large header, many times.
pub(super) fn header_bomb(begin: &[u8]) -> Vec<u8> {
    let value = [b'y'; 3_900];
    // A literal to be remembered: its name, and its length as an integer of a seven-bit prefix.
    let literal = [&[0x40, 1, b'x', 0x7f][..], &[0xbd, 0x1d], &value].concat();
    [begin, &literal, &[0xbe; 12_000]].concat()
}

/// What an upstream does on its first connection once a request has come. Others are answered well.
struct FirstConnectionAct {
    name: &'static str,
    /// Said once.
    first: Vec<u8>,
    /// Said without end.
    again: Vec<u8>,
    closes: bool,
    status: Option<u16>,
}

fn hostile_acts() -> Vec<FirstConnectionAct> {
    let act = |name, status: Option<u16>, first: Vec<u8>, again: Vec<u8>| {
        let closes = again.is_empty() && status.is_some();
        FirstConnectionAct { name, first, again, closes, status }
    };
    let large = http2_frame(HEADERS, 1, 1, &header_bomb(&[0x88]));
    let open = http2_frame(HEADERS, 0, 1, &[0x88]);
    let empty = http2_frame(CONTINUATION, 0, 1, &[]);
    let full = http2_frame(CONTINUATION, 0, 1, &[0x88; 1_000]);
    let too_much = http2_frame(DATA, 0, 1, &[b'x'; 16_000]).repeat(70);
    vec![
        act("h2-silence", None, Vec::new(), Vec::new()),
        act("h2-close", Some(502), Vec::new(), Vec::new()),
        act("h2-speaks-http1", Some(502), b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), Vec::new()),
        act("h2-reset-stream", Some(502), http2_frame(RESET, 0, 1, &[0, 0, 0, 2]), Vec::new()),
        act(
            "h2-go-away",
            Some(502),
            http2_frame(GO_AWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 11]),
            Vec::new(),
        ),
        act(
            "h2-frame-of-16-mib",
            Some(502),
            vec![0xff, 0xff, 0xff, 1, 4, 0, 0, 0, 1],
            vec![0; 999],
        ),
        act("h2-push", Some(502), http2_frame(PUSH, 4, 1, &[0, 0, 0, 2, 0x82]), Vec::new()),
        act("h2-header-bomb", Some(502), large, Vec::new()),
        act("h2-continuation-full", Some(502), open.clone(), full),
        act("h2-continuation-empty", Some(502), open, empty),
        act(
            "h2-beyond-the-window",
            None,
            [http2_frame(HEADERS, 4, 1, &[0x88]), too_much].concat(),
            Vec::new(),
        ),
        act("h2-settings-endless", None, Vec::new(), http2_frame(SETTINGS, 0, 0, &[])),
        act("h2-pings-endless", None, Vec::new(), http2_frame(PING, 0, 0, &[0; 8])),
        act("h2-windows-endless", None, Vec::new(), http2_frame(WINDOW, 0, 0, &[0, 0, 0, 1])),
        act("h2-unknown-frames-endless", None, Vec::new(), http2_frame(0xbe, 0, 0, &[0; 100])),
    ]
}

/// One connection. The first request with a body is the victim, on stream 1; all others are answered.
fn serve_act(visitor: &mut Visitor, act: &FirstConnectionAct, has_victim: &AtomicBool) {
    let (mut is_begun, again) = (false, &act.again);
    let mut out: VecDeque<u8> = http2_frame(SETTINGS, 0, 0, &[]).into();
    let (mut came, mut is_skipped) = (Vec::new(), false);
    loop {
        if is_begun && !again.is_empty() && out.is_empty() {
            out.extend(again.repeat(1 + 4_000 / again.len()));
        }
        if !out.is_empty() {
            out.make_contiguous();
            let Ok(length) = visitor.stream.write(out.as_slices().0) else { return };
            out.drain(..length);
        }
        let wait = if is_begun { 1 } else { 50 };
        let _ = visitor.stream.set_read_timeout(Some(std::time::Duration::from_millis(wait)));
        let Some(bytes) = visitor.read() else { return };
        came.extend(bytes);
        if !is_skipped && came.len() >= PREFACE.len() {
            came.drain(..PREFACE.len());
            is_skipped = true;
        }
        while let Some((kind, flags, stream)) = take_frame(&mut came).filter(|_| is_skipped) {
            if !matches!(kind, DATA | HEADERS) || flags & 1 == 0 {
                continue;
            }
            if kind == DATA && !has_victim.swap(true, Ordering::SeqCst) {
                is_begun = true;
                out.extend(&act.first);
            } else {
                let length = GOOD.len().to_string();
                let said = [&[0x88, 0x0f, 0x0d, length.len() as u8], length.as_bytes()].concat();
                out.extend(http2_frame(HEADERS, 4, stream, &said));
                out.extend(http2_frame(DATA, 1, stream, GOOD.as_bytes()));
            }
        }
        if is_begun && act.closes && out.is_empty() {
            return;
        }
    }
}

/// Kind, flags and stream of a frame, once it is whole.
fn take_frame(bytes: &mut Vec<u8>) -> Option<(u8, u8, u32)> {
    let head: [u8; 9] = bytes.get(..9)?.try_into().ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    if bytes.len() < 9 + length {
        return None;
    }
    bytes.drain(..9 + length);
    Some((head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]])))
}

fn attack_as_http2_upstream(goodput: &Binary, name: &'static str) -> Result<Observed, Skip> {
    let found = hostile_acts().into_iter().find(|act| act.name == name);
    let act = found.ok_or_else(|| Skip::Broken("no such act".to_owned()))?;
    let (status, has_victim) = (act.status, AtomicBool::new(false));
    let origin = OriginServer::start(move |visitor| serve_act(visitor, &act, &has_victim))?;
    let stand = Stand::record(goodput, &origin.url(), &["--upstream-http", "2"])?;
    let address = stand.address;
    let victim =
        std::thread::spawn(move || send_and_receive(address, &post_request(CHAT, BODY), 10.0));
    // Requests that share a broken connection get a 502, rightly: it must be broken by then.
    sleep_ms(300);
    let faults = stand.check_bystanders(3);
    sleep_ms(300);
    let mut observed = stand.end_recording(Signal::INT, Some(4))?;
    observed.faults.extend(faults);
    let said = victim.join().map_err(|_| Skip::Broken("the client broke".to_owned()))?;
    let is_right =
        status.is_none_or(|status| said.status() == Some(status) && said.seconds < SOON_S);
    observed.check(is_right && said.is_over, || format!("the victim saw {}", said.text()));
    Ok(observed)
}

pub(super) fn cases() -> Vec<Case> {
    let bound = CaseBounds::exit(&[0]).within(4.0, 96.0);
    let names = hostile_acts().into_iter().map(|act| act.name);
    names
        .map(|name| {
            new_case("proxy/upstream", name, bound.clone(), move |goodput| {
                attack_as_http2_upstream(goodput, name)
            })
        })
        .collect()
}
