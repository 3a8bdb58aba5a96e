//! One function of the hot path, many times: what `cargo xtask gates` counts the instructions of.
//!
//! `goodput-hot CASE N`, where CASE is `sse` (one event of a stream), `chunked` (the chunk that
//! carries it), `chunk` (from its bytes to a recorded chunk) or `append` (the log's frame of a
//! request of a hundred chunks).

use std::hint::black_box;

use goodput_bench::{new_manifest, plan_for_load};
use goodput_model::{
    Chunk, Exchange, Nanos, Phase, Planned, RequestRecord, Stamps, TokenCount, TokenSource,
};
use goodput_record::{RunFolder, State};
use goodput_wire::hot::{BodyFraming, read_answer};
use goodput_wire::{AnswerLimits, AnswerReader, SseParser};
use serde_json::json;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// One token as a server of today sends it.
const EVENT: &str = concat!(
    r#"data: {"id":"chatcmpl-b7707c0eb6fcf054","object":"chat.completion.chunk","created":1794711920,"#,
    r#""model":"rand5m","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"#,
    r#""finish_reason":null,"token_ids":null}]}"#,
    "\n\n"
);

/// Tokens of an answer.
const ANSWER: usize = 100;

fn main() -> Outcome {
    let mut args = std::env::args().skip(1);
    let case = args.next().unwrap_or_default();
    let n: usize = args.next().unwrap_or_default().parse()?;
    match case.as_str() {
        "sse" => parse_sse_events(n),
        "chunked" => parse_chunked(n),
        "chunk" => read_chunk_json(n),
        "append" => append_records(n),
        _ => Err(format!("no case `{case}`: sse, chunked, chunk or append").into()),
    }
}

fn parse_sse_events(n: usize) -> Outcome {
    let mut parser = SseParser::new(1 << 20);
    let mut bytes = 0;
    for _ in 0..n {
        parser.push(black_box(EVENT.as_bytes()), |event| bytes += event.data.len())?;
    }
    black_box(bytes);
    Ok(())
}

fn parse_chunked(n: usize) -> Outcome {
    let read = format!("{:x}\r\n{EVENT}\r\n", EVENT.len());
    let mut framing = BodyFraming::ChunkSize;
    let mut bytes = 0;
    for _ in 0..n {
        let mut rest = black_box(read.as_bytes());
        while !rest.is_empty() {
            let taken = framing.take_framed(rest)?;
            bytes += taken.piece.map_or(0, |piece| piece.len());
            rest = &rest[taken.used..];
        }
    }
    if bytes == n * EVENT.len() { Ok(()) } else { Err("the framing lost bytes".into()) }
}

fn read_chunk_json(n: usize) -> Outcome {
    let mut chunks = 0;
    for answer in 0..n.div_ceil(ANSWER) {
        let mut reader = AnswerReader::new(false, AnswerLimits::default());
        let mut exchange = Exchange::default();
        for token in 0..ANSWER.min(n - answer * ANSWER) {
            let at = Nanos::from_millis(20 * token as u64);
            read_answer(&mut reader, black_box(EVENT.as_bytes()), at, &mut exchange);
        }
        chunks += black_box(exchange).chunks.len();
    }
    if chunks == n { Ok(()) } else { Err("the reader lost chunks".into()) }
}

fn append_records(n: usize) -> Outcome {
    let path = std::env::temp_dir().join(format!("goodput-hot-{}", std::process::id()));
    let closed = json!({
        "seed": 1, "num_requests": 1, "warmup": "0s", "cooldown": "0s", "drain": "1m",
        "workers": 1, "mode": {"kind": "closed", "concurrency": 1, "think_time": "0s"},
    });
    let (_, logs) =
        RunFolder::create(&path, &plan_for_load(&closed)?, &new_manifest(State::Running))?;
    let mut log = logs.requests;
    let record = sample_record();
    for i in 1..=n {
        log.append(black_box(&record));
        // The collector flushes by time; often enough here that memory stays small.
        if i % 16 == 0 {
            log.flush();
        }
    }
    let unwritten = log.finish();
    std::fs::remove_dir_all(&path)?;
    unwritten.error.map_or(Ok(()), |error| Err(error.into()))
}

fn sample_record() -> RequestRecord {
    let at = |token: usize| Nanos::from_micros(50_013 + 20_007 * token as u64);
    let chunk = |token| Chunk {
        at: at(token),
        tokens: None,
        bytes: 6,
        choice: 0,
        coalesced: false,
        lag_us: Some(5),
    };
    let stamps = Stamps {
        sent_first: Some(Nanos(120_000)),
        sent_last: Some(Nanos(150_000)),
        headers: Some(Nanos(900_000)),
        first_byte: Some(at(0)),
        first_token: Some(at(0)),
        first_answer: Some(at(0)),
        last_token: Some(at(ANSWER - 1)),
        done: Some(at(ANSWER)),
        ended: at(ANSWER),
        ..Stamps::default()
    };
    let count = |n| Some(TokenCount { n, source: TokenSource::Usage });
    RequestRecord {
        index: 12_345,
        phase: Phase::Measured,
        worker: 1,
        scheduled: Nanos(100_000),
        pacer_lag: Some(Nanos(3_000)),
        cap_wait: Nanos::ZERO,
        planned: Planned::new("chat", 500, Some(100)),
        exchange: Exchange {
            stamps,
            chunks: (0..ANSWER).map(chunk).collect(),
            status: Some(200),
            finish: Some("length".to_owned()),
            input_tokens: count(500),
            output_tokens: count(100),
            body_bytes: 2_500,
            ..Exchange::default()
        },
        prompt: None,
    }
}
