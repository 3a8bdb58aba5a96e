//! Where the time to the first token went. The parts of a request add up to its TTFT from schedule
//! to the nanosecond, and means over the same requests keep that sum.

use goodput_model::{Connect, Nanos, RequestRecord, TimeSpan};

use crate::summary::{Waterfall, WaterfallBand, WaterfallPart};

/// The parts, in order of time. Names are resolved once before the run (`run.lookup`), so `dns` is
/// zero; older files have it, and programs may read it.
const PARTS: [&str; 10] = [
    "held",
    "slip",
    "blocked",
    "dns",
    "connect",
    "tls",
    "send",
    "wait",
    "header_to_byte",
    "byte_to_token",
];

/// The parts of each request, to be averaged over those around the median and over the slowest.
#[derive(Debug, Default)]
pub(crate) struct Waterfalls(Vec<Request>);

/// TTFT of a request, and its parts.
type Request = (Nanos, [Nanos; PARTS.len()]);

impl Waterfalls {
    pub(crate) fn add(&mut self, record: &RequestRecord) {
        if let Some(parts) = request_parts(record).filter(|_| record.is_ok()) {
            let ttft = parts.iter().fold(Nanos::ZERO, |sum, part| sum + *part);
            self.0.push((ttft, parts));
        }
    }

    pub(crate) fn finish(mut self) -> Option<Waterfall> {
        self.0.sort_unstable();
        let n = self.0.len();
        // A tenth of all requests, around the middle one; the last hundredth.
        let (middle, half) = (n.checked_sub(1)? / 2, n / 20);
        Some(Waterfall {
            median: waterfall_band(&self.0[middle - half.min(middle)..=(middle + half).min(n - 1)]),
            slowest: waterfall_band(&self.0[n - n.div_ceil(100)..]),
        })
    }
}

fn waterfall_band(requests: &[Request]) -> WaterfallBand {
    let n = requests.len() as f64;
    let mean = |part: &dyn Fn(&Request) -> Nanos| {
        requests.iter().map(|request| part(request).as_ms()).sum::<f64>() / n
    };
    let part = |(index, name): (usize, &&str)| WaterfallPart {
        name: (*name).to_owned(),
        ms: mean(&|request| request.1[index]),
    };
    WaterfallBand {
        n: requests.len() as u64,
        ttft_ms: mean(&|request| request.0),
        parts: PARTS.iter().enumerate().map(part).collect(),
    }
}

/// The parts of one request. Each instant is held between the one before it and the first token, so
/// that the sum is exact even where the kernel saw an answer before our write had returned.
fn request_parts(record: &RequestRecord) -> Option<[Nanos; PARTS.len()]> {
    let stamps = &record.exchange.stamps;
    let (begin, token) = (stamps.sent_first?, stamps.first_token?);
    let connect = stamps.connect;
    let before = begin.min(token) - record.scheduled;
    let mut left = before;
    let mut take = |part: Nanos| {
        let share = part.min(left);
        left = left - share;
        share
    };
    let held = take(record.cap_wait);
    let blocked = take(record.exchange.blocked);
    let tcp = take(connect.map_or(Nanos::ZERO, |Connect { tcp, .. }| tcp.length()));
    let tls = take(connect.and_then(|connect| connect.tls).map_or(Nanos::ZERO, TimeSpan::length));
    let slip = left;
    let mut at = record.scheduled + before;
    let mut until = |instant: Option<Nanos>| {
        let next = instant.unwrap_or(at).clamp(at, token.max(at));
        let part = next - at;
        at = next;
        part
    };
    let send = until(stamps.sent_last);
    let wait = until(stamps.headers);
    let header_to_byte = until(stamps.first_byte);
    let byte_to_token = until(Some(token));
    let dns = Nanos::ZERO;
    Some([held, slip, blocked, dns, tcp, tls, send, wait, header_to_byte, byte_to_token])
}
