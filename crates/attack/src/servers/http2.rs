//! HTTP/2 by hand-written frames. Every request has a connection of its own, so its stream is the first.

use std::io::{self, Read};

use super::peer::{
    Act, AnswerProtocol, FINISH, PeerConnection, TOKEN, When, close, flood, good_events, hold,
};
use super::{BAD_HTTP, CLOSED, CUT, Comes, MARKUP, NO_FINISH, ServerRow, TIMEOUT, TOO_LARGE};
use crate::program::KEY;
use Comes::Fails;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

/// `:status: 200`, `:status: 404` and `:status: 100` in HPACK.
const OK: &[u8] = &[0x88];
const NOT_FOUND: &[u8] = &[0x8d];
const CONTINUE: &[u8] = b"\x08\x03100";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn settings(pairs: &[(u16, u32)]) -> Vec<u8> {
    let pair = |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(SETTINGS, 0, 0, &pairs.iter().flat_map(pair).collect::<Vec<u8>>())
}

/// The head of a stream of events.
fn begin(stream: u32) -> Vec<u8> {
    let kind = b"text/event-stream";
    let block = [OK, &[0x0f, 0x10, kind.len() as u8], kind].concat();
    frame(HEADERS, END_HEADERS, stream, &block)
}

fn data(text: &str) -> Vec<u8> {
    frame(DATA, 0, 1, text.as_bytes())
}

/// A literal header that is not kept, by name.
fn literal(name: &[u8], value: &[u8]) -> Vec<u8> {
    [&[0, name.len() as u8], name, &[value.len() as u8], value].concat()
}

fn goaway(reason: u32, words: &str) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[&[0; 4], &reason.to_be_bytes()[..], words.as_bytes()].concat())
}

/// Serves requests until one of them is met with the act.
pub(super) fn serve(peer: &mut PeerConnection) -> io::Result<()> {
    peer.wire.read_exact(&mut [0; 24])?;
    peer.send(settings(&[]))?;
    loop {
        let mut head = [0; 9];
        peer.wire.read_exact(&mut head)?;
        let [a, b, c, kind, flags, stream @ ..] = head;
        let stream = u32::from_be_bytes(stream);
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        peer.wire.read_exact(&mut payload)?;
        match (kind, flags & END_STREAM) {
            (SETTINGS, 0) => peer.send(frame(SETTINGS, ACK, 0, &[]))?,
            (PING, 0) => peer.send(frame(PING, ACK, 0, &payload))?,
            (HEADERS, END_STREAM) => {
                peer.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, NOT_FOUND))?;
            }
            (DATA, END_STREAM) if peer.is_spared() => {
                let end = frame(DATA, END_STREAM, stream, good_events().as_bytes());
                peer.send([begin(stream), end].concat())?;
            }
            (DATA, END_STREAM) => {
                let act = peer.script().act.clone();
                return peer.act(&act);
            }
            _ => {}
        }
    }
}

fn row(name: &'static str, comes: Comes, act: Act) -> ServerRow {
    let mut row =
        ServerRow::new(name, comes, act).with_args(&["--http2", "--connections", "per-request"]);
    row.script.protocol = AnswerProtocol::Http2;
    row
}

/// Begins before a byte of the request was read.
fn at_once(name: &'static str, comes: Comes, act: Act) -> ServerRow {
    row(name, comes, act).with_timing(When::Accepted)
}

/// Behaviors without an end of their own, for stops.
pub(super) fn endless() -> Vec<ServerRow> {
    vec![row("pings", TIMEOUT, flood(Vec::new(), frame(PING, 0, 0, &[7; 8])))]
}

pub(super) fn rows() -> Vec<ServerRow> {
    [floods(), ends(), frames(), blocks(), waits()].into_iter().flatten().collect()
}

fn floods() -> Vec<ServerRow> {
    let open = frame(HEADERS, 0, 1, OK);
    let entry = [&[0x40, 1, b'a', 0x7f, 0xa1, 0x1e], &[b'b'; 4000][..]].concat();
    let bomb = [OK, &entry, &[0xbe; 12_000][..]].concat();
    let more = frame(CONTINUATION, 0, 1, &literal(b"x", &[b'y'; 100]));
    let tokens = TOKEN.repeat(250);
    let excess: Vec<u8> = data(&tokens).repeat(40);
    vec![
        row("settings", TIMEOUT, flood(Vec::new(), settings(&[(4, 65_535)]))),
        row("pings", TIMEOUT, flood(Vec::new(), frame(PING, 0, 0, &[7; 8]))),
        row("ping_answers", TIMEOUT, flood(Vec::new(), frame(PING, ACK, 0, &[7; 8]))),
        row("unknown_frames", TIMEOUT, flood(Vec::new(), frame(0xbb, 0, 1, &[7; 8]))),
        row("priorities", TIMEOUT, flood(Vec::new(), frame(2, 0, 1, &[0, 0, 0, 3, 9]))),
        row("empty_data", Fails(&["timeout", "bad_http"]), flood(begin(1), frame(DATA, 0, 1, b""))),
        row(
            "interim_answers",
            Fails(&["timeout", "bad_http"]),
            flood(Vec::new(), frame(HEADERS, END_HEADERS, 1, CONTINUE)),
        ),
        row("continuations", BAD_HTTP, flood(open.clone(), more.clone())),
        row("empty_continuations", BAD_HTTP, flood(open, frame(CONTINUATION, 0, 1, b""))),
        row(
            "trailers",
            BAD_HTTP,
            flood([begin(1), data(TOKEN), frame(HEADERS, END_STREAM, 1, b"")].concat(), more),
        ),
        row("resets", CLOSED, flood(Vec::new(), frame(RESET, 0, 1, &[0, 0, 0, 8]))),
        row("hpack_bomb", BAD_HTTP, hold(frame(HEADERS, END_HEADERS, 1, &bomb))),
        row("tokens", TOO_LARGE, hold([begin(1), excess].concat())),
        row(
            "data_beyond_window",
            Fails(&["answer_too_large", "event_too_large", "bad_http"]),
            flood(begin(1), frame(DATA, 0, 1, &[b':'; 16_384])),
        ),
    ]
}

/// The server gives up, in good order or not.
fn ends() -> Vec<ServerRow> {
    let reset = |code: u8| frame(RESET, 0, 1, &[0, 0, 0, code]);
    let words = format!("\u{1b}[31m{MARKUP} {KEY}");
    let first = [begin(1), data(TOKEN)].concat();
    vec![
        at_once("goaway_at_once", CLOSED, close([settings(&[]), goaway(0, "")].concat())),
        at_once("goaway_with_words", CLOSED, hold([settings(&[]), goaway(11, &words)].concat())),
        row("goaway_after_request", CLOSED, close(goaway(2, &words))),
        row("reset_stream", CLOSED, hold(reset(2))),
        row("refused_stream", CLOSED, hold(reset(7))),
        row("reset_after_token", CUT, hold([first.clone(), reset(2)].concat())),
        row("goaway_after_token", CUT, close([first.clone(), goaway(2, &words)].concat())),
        row("cut_after_token", CUT, close(first.clone())),
        row(
            "end_without_finish",
            NO_FINISH,
            hold([first, frame(DATA, END_STREAM, 1, b"")].concat()),
        ),
        row("close_after_request", CLOSED, close(Vec::new())),
    ]
}

/// Frames that no server may send.
fn frames() -> Vec<ServerRow> {
    let head = |length: [u8; 3], kind: u8| [&length[..], &[kind, 0, 0, 0, 0, 1]].concat();
    let first = [begin(1), data(TOKEN)].concat();
    let promise = frame(PUSH, END_HEADERS, 1, &[&[0, 0, 0, 2], OK].concat());
    vec![
        row("window_overflow", BAD_HTTP, hold(frame(WINDOW, 0, 0, &[0x7f, 255, 255, 255]))),
        row("window_of_nothing", BAD_HTTP, hold(frame(WINDOW, 0, 0, &[0; 4]))),
        row("window_of_settings", BAD_HTTP, hold(settings(&[(4, u32::MAX)]))),
        row("frame_of_16_mib", BAD_HTTP, hold(head([255; 3], DATA))),
        row("data_before_headers", BAD_HTTP, hold(data(TOKEN))),
        row("data_on_stream_0", BAD_HTTP, hold(frame(DATA, 0, 0, b"a"))),
        row("data_on_idle_stream", BAD_HTTP, hold(frame(DATA, 0, 9, b"a"))),
        row("headers_twice", BAD_HTTP, hold([first.clone(), begin(1)].concat())),
        row("push", BAD_HTTP, hold(promise)),
        row(
            "padding_too_long",
            BAD_HTTP,
            hold([begin(1), frame(DATA, PADDED, 1, &[200, 1, 1])].concat()),
        ),
        row("settings_of_five_bytes", BAD_HTTP, hold(frame(SETTINGS, 0, 0, &[0; 5]))),
        row("ping_of_nothing", BAD_HTTP, hold(frame(PING, 0, 0, b""))),
        row(
            "continuation_alone",
            BAD_HTTP,
            hold([first, frame(CONTINUATION, END_HEADERS, 1, b"")].concat()),
        ),
        at_once("garbage", BAD_HTTP, hold(vec![b'z'; 4096])),
        at_once("http1_answer", BAD_HTTP, hold(format!("HTTP/1.1 400 {KEY}\r\n\r\n").into_bytes())),
    ]
}

/// Header blocks that no server may send.
fn blocks() -> Vec<ServerRow> {
    let answer = |block: Vec<u8>| hold(frame(HEADERS, END_HEADERS, 1, &block));
    let more = |name: &[u8], value: &[u8]| [OK, &literal(name, value)].concat();
    let long = [answer_head(&more(b"content-length", b"5")), data(TOKEN), data(FINISH)].concat();
    vec![
        row("hpack_bad_index", BAD_HTTP, answer(vec![0xff, 0xff, 0xff, 0x03])),
        row("hpack_cut", BAD_HTTP, answer(vec![0x88, 0x40, 0x7f])),
        row("hpack_bad_huffman", BAD_HTTP, answer(vec![0x88, 0, 0x84, 255, 255, 255, 255, 0])),
        row("no_status", BAD_HTTP, answer(literal(b"x", KEY.as_bytes()))),
        row("status_of_letters", BAD_HTTP, answer(b"\x08\x03abc".to_vec())),
        row("capital_name", BAD_HTTP, answer(more(b"X", b"y"))),
        row("hop_by_hop_name", BAD_HTTP, answer(more(b"connection", b"close"))),
        row("line_end_in_value", BAD_HTTP, answer(more(b"x", b"a\r\nb: c"))),
        row("length_that_lies", BAD_HTTP, hold(long)),
    ]
}

fn answer_head(block: &[u8]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, 1, block)
}

fn waits() -> Vec<ServerRow> {
    let first = [begin(1), data(TOKEN)].concat();
    vec![
        at_once("silence", TIMEOUT, hold(Vec::new())),
        at_once("zero_window", TIMEOUT, hold(settings(&[(4, 0)]))),
        at_once("no_streams", TIMEOUT, hold(settings(&[(3, 0)]))),
        row("answer_never_begins", TIMEOUT, hold(Vec::new())),
        row("head_then_silence", TIMEOUT, hold(begin(1))),
        row("token_then_silence", TIMEOUT, hold(first.clone())),
        row("drip", TIMEOUT, Act::Drip(begin(1), frame(DATA, 0, 1, b":"))),
    ]
}
