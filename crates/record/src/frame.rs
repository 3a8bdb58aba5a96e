//! The form of one request in the log: a protobuf message, so that a newer reader can skip or miss
//! fields. Field numbers are never reused.
//!
//! Instants are nanoseconds since the request was due; chunk instants are kept to the microsecond,
//! as differences, because they are most of the data.

use std::io;

use goodput_model::{
    Chunk, Connect, ConstraintKind, Exchange, Failure, FailureStage, Nanos, Phase, Planned,
    RequestRecord, Stamps, TcpFacts, TimeSpan, TokenCount, TokenSource,
};
use prost::Message;

use crate::framed::Framed;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Frame {
    #[prost(uint64, tag = "1")]
    index: u64,
    #[prost(uint32, tag = "2")]
    phase: u32,
    #[prost(uint32, tag = "3")]
    worker: u32,
    #[prost(uint64, tag = "4")]
    scheduled_ns: u64,
    #[prost(uint64, tag = "5")]
    cap_wait_ns: u64,
    #[prost(string, tag = "6")]
    class: String,
    #[prost(uint32, tag = "7")]
    planned_input: u32,
    #[prost(uint32, optional, tag = "8")]
    planned_output: Option<u32>,
    #[prost(uint64, tag = "9")]
    dispatched: u64,
    /// TCP start and end, then TLS start and end where there was TLS.
    #[prost(uint64, repeated, tag = "10")]
    connect: Vec<u64>,
    #[prost(uint64, optional, tag = "11")]
    sent_first: Option<u64>,
    #[prost(uint64, optional, tag = "12")]
    sent_last: Option<u64>,
    #[prost(uint64, optional, tag = "13")]
    headers: Option<u64>,
    #[prost(uint64, optional, tag = "14")]
    first_byte: Option<u64>,
    #[prost(uint64, optional, tag = "15")]
    first_token: Option<u64>,
    #[prost(uint64, optional, tag = "16")]
    first_answer: Option<u64>,
    #[prost(uint64, optional, tag = "17")]
    last_token: Option<u64>,
    #[prost(uint64, optional, tag = "18")]
    done: Option<u64>,
    /// Microseconds from one chunk to the next, the first from the scheduled instant.
    #[prost(uint32, repeated, tag = "19")]
    chunk_gap_us: Vec<u32>,
    #[prost(uint32, repeated, tag = "20")]
    chunk_bytes: Vec<u32>,
    /// Tokens per chunk plus one, zero for unknown; absent when all are unknown.
    #[prost(uint32, repeated, tag = "21")]
    chunk_tokens: Vec<u32>,
    /// Which answer each chunk belongs to; absent when all belong to the first.
    #[prost(uint32, repeated, tag = "22")]
    chunk_choice: Vec<u32>,
    /// One bit per chunk.
    #[prost(bytes = "vec", tag = "23")]
    chunk_coalesced: Vec<u8>,
    #[prost(uint32, optional, tag = "24")]
    status: Option<u32>,
    #[prost(string, tag = "25")]
    error_class: String,
    #[prost(uint32, tag = "26")]
    error_stage: u32,
    #[prost(string, tag = "27")]
    error_message: String,
    #[prost(string, optional, tag = "28")]
    finish: Option<String>,
    #[prost(uint32, optional, tag = "29")]
    input_tokens: Option<u32>,
    #[prost(uint32, tag = "30")]
    input_source: u32,
    #[prost(uint32, optional, tag = "31")]
    output_tokens: Option<u32>,
    #[prost(uint32, tag = "32")]
    output_source: u32,
    #[prost(uint32, optional, tag = "33")]
    cached_tokens: Option<u32>,
    #[prost(uint64, tag = "34")]
    connection: u64,
    #[prost(uint32, tag = "35")]
    reconnects: u32,
    #[prost(uint64, tag = "36")]
    body_bytes: u64,
    #[prost(uint64, tag = "37")]
    ended: u64,
    #[prost(uint64, tag = "38")]
    blocked_ns: u64,
    /// Microseconds that each chunk waited in the kernel, plus one, zero for unknown; absent when
    /// all are unknown.
    #[prost(uint32, repeated, tag = "39")]
    chunk_lag_us: Vec<u32>,
    #[prost(uint32, optional, tag = "40")]
    head_lag_us: Option<u32>,
    #[prost(uint64, optional, tag = "41")]
    pacer_lag_ns: Option<u64>,
    /// Retransmits, out-of-order segments, window-limited time and shortest round trip (ns).
    #[prost(uint64, repeated, tag = "42")]
    tcp: Vec<u64>,
    #[prost(string, optional, tag = "43")]
    request_id: Option<String>,
    #[prost(uint64, optional, tag = "44")]
    session: Option<u64>,
    #[prost(uint32, tag = "45")]
    turn: u32,
    /// Place among the kinds plus one, zero for none.
    #[prost(uint32, tag = "46")]
    constraint: u32,
    #[prost(uint32, tag = "47")]
    images: u32,
    #[prost(uint32, optional, tag = "48")]
    planned_cached: Option<u32>,
    #[prost(uint64, optional, tag = "49")]
    trace_at_ns: Option<u64>,
    #[prost(uint32, optional, tag = "50")]
    image_tokens: Option<u32>,
    #[prost(fixed64, optional, tag = "51")]
    body_hash: Option<u64>,
}

impl Frame {
    /// Its number in the plan, its worker, and when it ended.
    pub(crate) fn record_key(&self) -> (u64, u32, Nanos) {
        (self.index, self.worker, Nanos(self.scheduled_ns) + Nanos(self.ended))
    }
}

const PHASES: [Phase; 3] = [Phase::Warmup, Phase::Measured, Phase::Cooldown];
const SOURCES: [TokenSource; 5] = [
    TokenSource::Usage,
    TokenSource::Chunks,
    TokenSource::Events,
    TokenSource::Planned,
    TokenSource::Tokenizer,
];

/// Position in a table whose order is part of the format.
fn table_position<T: PartialEq>(table: &[T], value: &T) -> u32 {
    table.iter().position(|entry| entry == value).unwrap_or(0) as u32
}

impl From<&RequestRecord> for Frame {
    fn from(record: &RequestRecord) -> Self {
        let RequestRecord { scheduled, planned, exchange, .. } = record;
        let stamps = &exchange.stamps;
        let after = |at: Nanos| (at - *scheduled).0;
        let span = |span: TimeSpan| [after(span.start), after(span.end)];
        let connect = stamps.connect.map_or_else(Vec::new, |connect| {
            span(connect.tcp).into_iter().chain(connect.tls.into_iter().flat_map(span)).collect()
        });
        let failure = exchange.failure.as_ref();
        Self {
            index: record.index,
            phase: table_position(&PHASES, &record.phase),
            worker: record.worker,
            scheduled_ns: scheduled.0,
            cap_wait_ns: record.cap_wait.0,
            class: planned.class.to_string(),
            planned_input: planned.input_tokens,
            planned_output: planned.output_tokens,
            dispatched: after(stamps.dispatched),
            connect,
            sent_first: stamps.sent_first.map(after),
            sent_last: stamps.sent_last.map(after),
            headers: stamps.headers.map(after),
            first_byte: stamps.first_byte.map(after),
            first_token: stamps.first_token.map(after),
            first_answer: stamps.first_answer.map(after),
            last_token: stamps.last_token.map(after),
            done: stamps.done.map(after),
            chunk_gap_us: gaps_us(&exchange.chunks, *scheduled),
            chunk_bytes: exchange.chunks.iter().map(|chunk| chunk.bytes).collect(),
            chunk_tokens: unless_uniform(&exchange.chunks, 0, |chunk| plus_one(chunk.tokens)),
            chunk_choice: unless_uniform(&exchange.chunks, 0, |chunk| chunk.choice),
            chunk_coalesced: coalesced_bits(&exchange.chunks),
            status: exchange.status.map(u32::from),
            error_class: failure.map_or_else(String::new, |failure| failure.class.to_string()),
            error_stage: failure
                .map_or(0, |failure| table_position(&FailureStage::ALL, &failure.stage)),
            error_message: failure.map_or_else(String::new, |failure| failure.message.clone()),
            finish: exchange.finish.clone(),
            input_tokens: exchange.input_tokens.map(|count| count.n),
            input_source: exchange.input_tokens.map_or(0, |c| table_position(&SOURCES, &c.source)),
            output_tokens: exchange.output_tokens.map(|count| count.n),
            output_source: exchange
                .output_tokens
                .map_or(0, |c| table_position(&SOURCES, &c.source)),
            cached_tokens: exchange.cached_tokens,
            image_tokens: exchange.image_tokens,
            connection: exchange.connection,
            reconnects: exchange.reconnects,
            body_bytes: exchange.body_bytes,
            body_hash: exchange.body_hash,
            ended: after(stamps.ended),
            blocked_ns: exchange.blocked.0,
            chunk_lag_us: unless_uniform(&exchange.chunks, 0, |chunk| plus_one(chunk.lag_us)),
            head_lag_us: exchange.head_lag_us,
            pacer_lag_ns: record.pacer_lag.map(|lag| lag.0),
            request_id: exchange.request_id.clone(),
            session: planned.session,
            turn: planned.turn,
            constraint: constraint_number(planned.constraint),
            images: planned.images,
            planned_cached: planned.cached_tokens,
            trace_at_ns: planned.trace_at.map(|at| at.0),
            tcp: exchange.tcp.map_or_else(Vec::new, |tcp| {
                let counts = [u64::from(tcp.retransmits), u64::from(tcp.out_of_order)];
                counts.into_iter().chain([tcp.window_limited.0, tcp.min_rtt.0]).collect()
            }),
        }
    }
}

/// Zero for none.
pub(crate) fn constraint_number(kind: Option<ConstraintKind>) -> u32 {
    kind.map_or(0, |kind| table_position(&ConstraintKind::ALL, &kind) + 1)
}

/// A kind of a newer version is none that this one knows.
pub(crate) fn constraint_kind(number: u32) -> Option<ConstraintKind> {
    ConstraintKind::ALL.get((number as usize).checked_sub(1)?).copied()
}

/// Rounded to microseconds from the scheduled instant first, so that rounding does not add up.
fn gaps_us(chunks: &[Chunk], scheduled: Nanos) -> Vec<u32> {
    let mut previous = 0;
    let gap = |chunk: &Chunk| {
        let offset = (chunk.at - scheduled).as_micros_rounded();
        let gap = offset.saturating_sub(previous);
        previous = offset;
        u32::try_from(gap).unwrap_or(u32::MAX)
    };
    chunks.iter().map(gap).collect()
}

/// Room for "unknown" at zero.
fn plus_one(value: Option<u32>) -> u32 {
    value.map_or(0, |value| value.saturating_add(1))
}

/// One number per chunk, or nothing if all are `common`.
fn unless_uniform(chunks: &[Chunk], common: u32, value: impl Fn(&Chunk) -> u32) -> Vec<u32> {
    let values: Vec<u32> = chunks.iter().map(value).collect();
    if values.iter().all(|value| *value == common) { Vec::new() } else { values }
}

fn coalesced_bits(chunks: &[Chunk]) -> Vec<u8> {
    if !chunks.iter().any(|chunk| chunk.coalesced) {
        return Vec::new();
    }
    let byte = |eight: &[Chunk]| {
        eight
            .iter()
            .enumerate()
            .fold(0, |byte, (bit, chunk)| byte | u8::from(chunk.coalesced) << bit)
    };
    chunks.chunks(8).map(byte).collect()
}

impl From<Frame> for RequestRecord {
    fn from(frame: Frame) -> Self {
        let scheduled = Nanos(frame.scheduled_ns);
        let at = |offset: u64| scheduled + Nanos(offset);
        let span = |start: u64, end: u64| TimeSpan { start: at(start), end: at(end) };
        let connect = match *frame.connect.as_slice() {
            [start, end] => Some(Connect { tcp: span(start, end), tls: None }),
            [start, end, tls_start, tls_end, ..] => {
                Some(Connect { tcp: span(start, end), tls: Some(span(tls_start, tls_end)) })
            }
            _ => None,
        };
        let count = |n: Option<u32>, source: u32| {
            let source = SOURCES.get(source as usize).copied().unwrap_or(TokenSource::Planned);
            n.map(|n| TokenCount { n, source })
        };
        let failure = (!frame.error_class.is_empty()).then(|| Failure {
            // A class of a newer version still is a failure.
            class: frame.error_class.parse().unwrap_or(goodput_model::ErrorClass::BadHttp),
            stage: FailureStage::ALL
                .get(frame.error_stage as usize)
                .copied()
                .unwrap_or(FailureStage::Stream),
            message: frame.error_message.clone(),
        });
        let stamps = Stamps {
            dispatched: at(frame.dispatched),
            connect,
            sent_first: frame.sent_first.map(at),
            sent_last: frame.sent_last.map(at),
            headers: frame.headers.map(at),
            first_byte: frame.first_byte.map(at),
            first_token: frame.first_token.map(at),
            first_answer: frame.first_answer.map(at),
            last_token: frame.last_token.map(at),
            done: frame.done.map(at),
            ended: at(frame.ended),
        };
        let planned = planned_lengths(&frame);
        let exchange = Exchange {
            stamps,
            chunks: decode_chunks(&frame, scheduled),
            status: frame.status.and_then(|status| u16::try_from(status).ok()),
            failure,
            finish: frame.finish,
            input_tokens: count(frame.input_tokens, frame.input_source),
            cached_tokens: frame.cached_tokens,
            image_tokens: frame.image_tokens,
            output_tokens: count(frame.output_tokens, frame.output_source),
            connection: frame.connection,
            reconnects: frame.reconnects,
            body_bytes: frame.body_bytes,
            body_hash: frame.body_hash,
            blocked: Nanos(frame.blocked_ns),
            request_id: frame.request_id,
            head_lag_us: frame.head_lag_us,
            tcp: tcp_facts(&frame.tcp),
            text: None,
        };
        Self {
            index: frame.index,
            phase: PHASES.get(frame.phase as usize).copied().unwrap_or(Phase::Cooldown),
            worker: frame.worker,
            scheduled,
            pacer_lag: frame.pacer_lag_ns.map(Nanos),
            cap_wait: Nanos(frame.cap_wait_ns),
            planned,
            exchange,
            prompt: None,
        }
    }
}

fn planned_lengths(frame: &Frame) -> Planned {
    Planned {
        session: frame.session,
        turn: frame.turn,
        constraint: constraint_kind(frame.constraint),
        images: frame.images,
        cached_tokens: frame.planned_cached,
        trace_at: frame.trace_at_ns.map(Nanos),
        ..Planned::new(frame.class.as_str(), frame.planned_input, frame.planned_output)
    }
}

fn tcp_facts(numbers: &[u64]) -> Option<TcpFacts> {
    let &[retransmits, out_of_order, window_limited, min_rtt, ..] = numbers else { return None };
    Some(TcpFacts {
        retransmits: u32::try_from(retransmits).unwrap_or(u32::MAX),
        out_of_order: u32::try_from(out_of_order).unwrap_or(u32::MAX),
        window_limited: Nanos(window_limited),
        min_rtt: Nanos(min_rtt),
    })
}

fn decode_chunks(frame: &Frame, scheduled: Nanos) -> Vec<Chunk> {
    let mut offset_us = 0u64;
    let value = |values: &[u32], index: usize| values.get(index).copied().unwrap_or(0);
    let chunk = |(index, gap_us): (usize, &u32)| {
        offset_us += u64::from(*gap_us);
        let coalesced =
            frame.chunk_coalesced.get(index / 8).is_some_and(|b| b >> (index % 8) & 1 == 1);
        Chunk {
            at: scheduled + Nanos::from_micros(offset_us),
            tokens: value(&frame.chunk_tokens, index).checked_sub(1),
            bytes: value(&frame.chunk_bytes, index),
            choice: value(&frame.chunk_choice, index),
            coalesced,
            lag_us: value(&frame.chunk_lag_us, index).checked_sub(1),
        }
    };
    frame.chunk_gap_us.iter().enumerate().map(chunk).collect()
}

impl Framed for RequestRecord {
    fn encode(&self) -> Vec<u8> {
        Frame::from(self).encode_to_vec()
    }

    fn decode(message: &[u8]) -> io::Result<Self> {
        Ok(Frame::decode(message).map_err(io::Error::other)?.into())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use goodput_model::ErrorClass;
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn record(index: u64, scheduled: Nanos, chunk_gaps_us: &[u32]) -> RequestRecord {
        let mut at = scheduled;
        let chunks: Vec<_> = chunk_gaps_us
            .iter()
            .enumerate()
            .map(|(i, gap)| {
                at += Nanos::from_micros(u64::from(*gap));
                Chunk {
                    at,
                    tokens: (i % 3 == 1).then_some(i as u32),
                    bytes: 4,
                    choice: (i % 2) as u32,
                    coalesced: *gap == 0,
                    lag_us: (i % 4 != 0).then_some(i as u32),
                }
            })
            .collect();
        let span = TimeSpan { start: scheduled + Nanos(5), end: scheduled + Nanos(77) };
        RequestRecord {
            index,
            phase: Phase::Measured,
            worker: 3,
            scheduled,
            pacer_lag: Some(Nanos(2)),
            cap_wait: Nanos(9),
            planned: Planned::new("chat", 4, Some(8)),
            exchange: Exchange {
                stamps: Stamps {
                    dispatched: scheduled + Nanos(3),
                    connect: Some(Connect { tcp: span, tls: Some(span) }),
                    sent_first: Some(scheduled + Nanos(100)),
                    first_token: chunks.first().map(|chunk| chunk.at),
                    done: Some(at),
                    ended: at + Nanos(1),
                    ..Stamps::default()
                },
                chunks,
                status: Some(200),
                failure: Some(Failure {
                    class: ErrorClass::Http(429),
                    stage: FailureStage::Headers,
                    message: "slow down".to_owned(),
                }),
                finish: Some("length".to_owned()),
                input_tokens: Some(TokenCount { n: 12, source: TokenSource::Usage }),
                cached_tokens: Some(0),
                image_tokens: None,
                output_tokens: Some(TokenCount { n: 3, source: TokenSource::Events }),
                connection: 1,
                reconnects: 1,
                request_id: Some("run-7".to_owned()),
                body_bytes: 99,
                body_hash: None,
                blocked: Nanos(11),
                head_lag_us: Some(6),
                tcp: Some(TcpFacts {
                    retransmits: 1,
                    out_of_order: 2,
                    window_limited: Nanos(3),
                    min_rtt: Nanos(4),
                }),
                text: None,
            },
            prompt: None,
        }
    }

    /// A frame of the version before sessions, byte for byte: it still reads, and what has nothing
    /// new in it is still written like that.
    #[test]
    fn an_older_log_still_reads() {
        const OLD: &str = "08071001180320c0843d28093204636861743804400848035204054d054d5864788827900188\
                           279a01020500a201020404aa01020002b201020001ba010102c001c801ca0108687474705f34\
                           3239d00102da0109736c6f7720646f776ee201066c656e677468e8010cf80103800202880200\
                           900201980201a00263a8028927b0020bba02020002c00206c80202d2020401020304da020572\
                           756e2d37";
        let old: Vec<u8> = (0..OLD.len() / 2)
            .map(|at| u8::from_str_radix(&OLD[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        let expected = record(7, Nanos(1_000_000), &[5, 0]);
        let copy = RequestRecord::from(Frame::decode(old.as_slice()).unwrap());
        assert_eq!(copy, expected);
        assert_eq!(Frame::from(&expected).encode_to_vec(), old);
    }

    #[test]
    fn every_part_of_what_was_planned_survives() {
        let kinds = ConstraintKind::ALL.map(Some).into_iter().chain([None]);
        for (number, constraint) in kinds.enumerate() {
            let mut original = record(1, Nanos(5), &[]);
            original.planned = Planned {
                session: Some(number as u64),
                turn: 3,
                constraint,
                images: 2,
                cached_tokens: Some(0),
                trace_at: Some(Nanos(0)),
                ..original.planned
            };
            original.exchange.image_tokens = Some(9);
            // Zero is a hash like any other.
            original.exchange.body_hash = Some(number as u64);
            let bytes = Frame::from(&original).encode_to_vec();
            let copy = RequestRecord::from(Frame::decode(bytes.as_slice()).unwrap());
            assert_eq!(copy, original);
        }
        assert_eq!(constraint_kind(5), None, "a kind of a newer version");
    }

    proptest! {
        #[test]
        fn a_record_survives_its_frame(
            index: u64,
            scheduled in 0u64..1 << 60,
            gaps in prop::collection::vec(0u32..5_000_000, 0..40),
        ) {
            // Dispatch and epoch are whole microseconds here, so nothing is rounded away.
            let original = record(index, Nanos(scheduled), &gaps);
            let bytes = Frame::from(&original).encode_to_vec();
            let copy = RequestRecord::from(Frame::decode(bytes.as_slice()).unwrap());
            prop_assert_eq!(copy, original);
        }

        #[test]
        fn rounding_does_not_add_up(gaps_ns in prop::collection::vec(0u64..40_000, 1..400)) {
            let mut original = record(0, Nanos(123_456_789), &vec![0; gaps_ns.len()]);
            let mut at = original.scheduled;
            for (chunk, gap) in original.exchange.chunks.iter_mut().zip(&gaps_ns) {
                at += Nanos(*gap);
                chunk.at = at;
            }
            let copy = RequestRecord::from(Frame::from(&original));
            for (a, b) in original.exchange.chunks.iter().zip(&copy.exchange.chunks) {
                prop_assert!(a.at.0.abs_diff(b.at.0) <= 500);
            }
        }
    }
}
