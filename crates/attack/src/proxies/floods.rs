//! Clients of `record` that flood it with frames of HTTP/2 and do not read what it says to them.

use std::io::Write;
use std::net::TcpStream;

use goodput_clock::now;
use rustix::process::Signal;

use super::peer::write_until;
use super::stand::{Stand, good_origin, new_case, sleep_ms};
use super::upstream2::{
    CONTINUATION, DATA, HEADERS, PING, PREFACE, PRIORITY, RESET, SETTINGS, WINDOW, header_bomb,
    http2_frame,
};
use crate::case::{Case, CaseBounds, Observed, Skip};
use crate::program::{Binary, seconds_to_nanos};

/// GET http://h/, and POST.
const GET: [u8; 6] = [0x82, 0x86, 0x84, 0x41, 1, b'h'];
const POST: [u8; 6] = [0x83, 0x86, 0x84, 0x41, 1, b'h'];

/// Frames of a piece.
const MANY: u32 = 64;

/// A piece of a flood by its number, after the first SETTINGS; an empty one ends it.
type Piece = fn(u32) -> Vec<u8>;

/// The same frame many times, whatever the number.
fn repeat_frame(frame: &[u8]) -> Vec<u8> {
    frame.repeat(MANY as usize)
}

/// For each stream of the piece.
fn frames_per_stream(number: u32, of: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    (number * MANY..(number + 1) * MANY).flat_map(|stream| of(2 * stream + 1)).collect()
}

/// A request once, and then these.
fn stream_with_repeats(number: u32, head: &[u8], again: &[u8]) -> Vec<u8> {
    if number == 0 { head.to_vec() } else { repeat_frame(again) }
}

const FLOODS: &[(&str, Piece)] = &[
    ("h2-rapid-reset", |number| {
        frames_per_stream(number, |stream| {
            [http2_frame(HEADERS, 5, stream, &GET), http2_frame(RESET, 0, stream, &[0, 0, 0, 8])]
                .concat()
        })
    }),
    ("h2-continuation-full", |number| {
        stream_with_repeats(
            number,
            &http2_frame(HEADERS, 0, 1, &GET),
            &http2_frame(CONTINUATION, 0, 1, &[0x84; 1_000]),
        )
    }),
    ("h2-continuation-empty", |number| {
        stream_with_repeats(
            number,
            &http2_frame(HEADERS, 0, 1, &GET),
            &http2_frame(CONTINUATION, 0, 1, &[]),
        )
    }),
    ("h2-settings", |_| repeat_frame(&http2_frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0xff, 0xff]))),
    ("h2-pings", |_| repeat_frame(&http2_frame(PING, 0, 0, &[0; 8]))),
    ("h2-windows", |_| repeat_frame(&http2_frame(WINDOW, 0, 0, &[0, 0, 0, 1]))),
    ("h2-window-overflow", |_| repeat_frame(&http2_frame(WINDOW, 0, 0, &[0x7f, 0xff, 0xff, 0xff]))),
    ("h2-priorities", |number| {
        frames_per_stream(number, |stream| http2_frame(PRIORITY, 0, stream, &[0, 0, 0, 0, 1]))
    }),
    ("h2-empty-data", |number| {
        stream_with_repeats(
            number,
            &http2_frame(HEADERS, 4, 1, &POST),
            &http2_frame(DATA, 0, 1, &[]),
        )
    }),
    ("h2-padding-only", |number| {
        stream_with_repeats(
            number,
            &http2_frame(HEADERS, 4, 1, &POST),
            &http2_frame(DATA, 8, 1, &[255; 256]),
        )
    }),
    ("h2-header-bombs", |number| {
        let stream = 2 * number + 1;
        http2_frame(HEADERS, 5, stream, &header_bomb(&GET))
    }),
    ("h2-zero-windows", |number| match number {
        0 => http2_frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]),
        1..=4 => frames_per_stream(number - 1, |stream| http2_frame(HEADERS, 5, stream, &GET)),
        _ => Vec::new(),
    }),
    ("h2-too-many-streams", |number| {
        frames_per_stream(number, |stream| http2_frame(HEADERS, 4, stream, &POST))
    }),
    ("h2-unknown-frames", |_| repeat_frame(&http2_frame(0xbe, 0, 0, &[0; 100]))),
    ("h2-frame-of-16-mib", |number| match number {
        0 => vec![0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1],
        _ => vec![0; 16 << 10],
    }),
    ("h2-stream-zero", |_| repeat_frame(&http2_frame(HEADERS, 5, 0, &GET))),
];

fn flood_proxy(goodput: &Binary, piece: Piece) -> Result<Observed, Skip> {
    let origin = good_origin()?;
    let stand = Stand::record(goodput, &origin.url(), &[])?;
    let address = stand.address;
    let floods: Vec<_> = (0..2)
        .map(|_| {
            std::thread::spawn(move || {
                let mut stream = TcpStream::connect(address)?;
                stream.write_all(&[PREFACE, &http2_frame(SETTINGS, 0, 0, &[])].concat())?;
                write_until(&mut stream, now() + seconds_to_nanos(0.9), piece);
                // One that has nothing more to say stays.
                sleep_ms(300);
                std::io::Result::Ok(())
            })
        })
        .collect();
    sleep_ms(100);
    let mut faults = stand.check_bystanders(3);
    sleep_ms(300);
    faults.extend(stand.check_bystanders(1));
    let mut observed = stand.end_recording(Signal::INT, Some(4))?;
    observed.faults.extend(faults);
    for flood in floods {
        let _ = flood.join();
    }
    Ok(observed)
}

pub(super) fn cases() -> Vec<Case> {
    let bound = CaseBounds::exit(&[0]).within(4.0, 96.0);
    let floods = FLOODS.iter();
    floods
        .map(|&(name, piece)| {
            new_case("proxy/client", name, bound.clone(), move |goodput| {
                flood_proxy(goodput, piece)
            })
        })
        .collect()
}
