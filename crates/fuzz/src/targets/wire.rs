//! Event streams, answers of the APIs, HTTP/1 heads and bodies: the same however their bytes are cut.

use goodput_model::{Exchange, Nanos};
use goodput_wire::hot::BodyFraming;
use goodput_wire::{
    AnswerLimits, AnswerReader, AnswerTap, BaseUrl, BodyPart, Inflow, PassedHead, Read,
    RequestFormat, SseParser,
};
use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderValue};

use super::{FuzzTarget, InputLimits, ParserInput, SHORT, USUAL, check_same, text_seeds};

/// What servers have been seen to stream.
macro_rules! samples {
    ($($name:literal),* $(,)?) => {
        vec![$(include_bytes!(concat!("../../../wire/tests/samples/", $name)).to_vec()),*]
    };
}

/// Fields and words of the event streams.
pub(super) const EVENTS: [&str; 24] = [
    "data:",
    "data: ",
    "event: error\n",
    ": ping\n",
    "id: 1\n",
    "\n\n",
    "\r\n\r\n",
    "data: [DONE]\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n",
    "\"choices\":",
    "\"delta\":",
    "\"content\":",
    "\"reasoning_content\":",
    "\"tool_calls\":",
    "\"text\":",
    "\"index\":",
    "\"finish_reason\":\"stop\"",
    "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}",
    "\"completion_tokens\":",
    "\"prompt_tokens_details\":{\"cached_tokens\":3}",
    "\"error\":{\"message\":\"no\"}",
    "\"logprobs\":null",
    "\"token_ids\":[1,2]",
    "\"object\":\"chat.completion.chunk\"",
];

const HEADS: [&str; 26] = [
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.0 200 OK\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 204 No Content\r\n",
    "HTTP/1.1 304 \r\n",
    "HTTP/1.1 101 x\r\n",
    "HTTP/1.1 999 x\r\n",
    "content-length: ",
    "Content-Length: 3\r\n",
    "transfer-encoding: chunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "connection: close\r\n",
    "connection: keep-alive\r\n",
    "content-type: text/event-stream\r\n",
    "content-type: application/json\r\n",
    "content-type: text/html\r\n",
    "content-encoding: gzip\r\n",
    "location: /v1\r\n",
    "retry-after: 1\r\n",
    "\r\n\r\n",
    "0\r\n\r\n",
    "5\r\nhello\r\n",
    "ffffffffffffffff\r\n",
    "10;x=y\r\n",
    "x-trailer: 1\r\n\r\n",
    " folded\r\n",
];

pub(super) fn targets() -> Vec<FuzzTarget> {
    vec![
        FuzzTarget {
            name: "sse",
            seeds: stream_seeds,
            words: &EVENTS,
            check: fuzz_sse,
            limits: USUAL,
            short: SHORT,
        },
        FuzzTarget {
            name: "answer",
            seeds: stream_seeds,
            words: &EVENTS,
            check: fuzz_answer,
            limits: InputLimits { per_byte: 128, ..USUAL },
            short: SHORT,
        },
        FuzzTarget {
            name: "http1",
            seeds: head_seeds,
            words: &HEADS,
            check: fuzz_http1,
            limits: USUAL,
            short: SHORT,
        },
        FuzzTarget {
            name: "chunked",
            seeds: body_seeds,
            words: &HEADS,
            check: fuzz_chunked,
            limits: USUAL,
            short: SHORT,
        },
        FuzzTarget {
            name: "url",
            seeds: || {
                text_seeds(&[
                    "http://127.0.0.1:8000/v1",
                    "https://u:p@[::1]:443/a/chat/completions?key=1&b",
                    "http://host/v2/?x",
                ])
            },
            words: &[
                "http://", "https://", "://", "@", "?", "&", "=", "/v1", "[::1]", ":0", ":65536",
            ],
            check: fuzz_url,
            limits: USUAL,
            short: SHORT,
        },
        FuzzTarget {
            name: "extra-body",
            seeds: || text_seeds(&[r#"{"temperature":0.5,"stop":["a"],"nested":{"a":[1,2]}}"#]),
            words: &["\"model\":", "\"stream\":", "\"messages\":", "\"prompt\":"],
            check: fuzz_extra_body,
            limits: USUAL,
            short: SHORT,
        },
    ]
}

pub(super) fn stream_seeds() -> Vec<Vec<u8>> {
    let mut all = samples![
        "lcp-chat.sse",
        "lcp-err.sse",
        "lcp-ping.sse",
        "litellm-chat.sse",
        "litellm-completions.sse",
        "llama-server-chat-json.sse",
        "llama-server-chat-logprobs.sse",
        "llama-server-chat-n2.sse",
        "llama-server-completions.sse",
        "llama-server-midstream-error.sse",
        "tfserve-chat.sse",
        "tfserve-completions.sse",
        "vllm-chat-contusage.sse",
        "vllm-chat-n2.sse",
        "vllm-chat-streaminterval4.sse",
        "vllm-chat-tokenids.sse",
        "vllm-chat.sse",
        "vllm-completions.sse",
        "vllm-err-ctx.sse",
    ];
    all.extend(text_seeds(&[
        "data: a\n\ndata: b\r\n\r\ndata: c\r\rdata",
        "\u{feff}event: error\ndata: {\"error\":{\"message\":\"m\",\"code\":400}}\n\n",
        r#"{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#,
        r#"{"object":"list","data":[{"index":0,"embedding":[0.1,0.2]}],"usage":{"prompt_tokens":3,"total_tokens":3}}"#,
    ]));
    all
}

pub(super) fn head_seeds() -> Vec<Vec<u8>> {
    text_seeds(&[
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
         10\r\ndata: {\"a\": 12}\n\r\n2;ext=1\r\n\n\n\r\n0\r\nx-t: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n{\"object\":12}",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 429 Too Many\r\nretry-after: 1\r\ncontent-length: 2\r\n\r\n{}",
        "HTTP/1.0 200 OK\r\nserver: x\r\n\r\nuntil the end",
        "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n",
        "HTTP/1.1 307 Elsewhere\r\nlocation: http://other/\r\ncontent-length: 0\r\n\r\n",
    ])
}

fn body_seeds() -> Vec<Vec<u8>> {
    text_seeds(&[
        "5\r\nhello\r\n0\r\n\r\n",
        "A;name=\"v\"\r\n0123456789\r\n1\r\nx\r\n0\r\nx-trailer: 1\r\n\r\n",
        "0\r\n\r\n",
        "00000005\r\nhello\r\n000\r\n\r\n",
    ])
}

/// One instant for every piece: what is left to differ is the reading.
const READ: Read = Read { at: Nanos(1_000), sequence: 1, lag_us: Some(5) };

fn fuzz_sse(case: &ParserInput<'_>) -> Result<(), String> {
    type Events = Vec<(Vec<u8>, Vec<u8>)>;
    let read = |pieces: &[&[u8]], limit| {
        let mut parser = SseParser::new(limit);
        let mut events = Events::new();
        let mut keep = |event: goodput_wire::SseEvent<'_>| {
            events.push((event.kind.to_vec(), event.data.to_vec()));
        };
        let all = pieces.iter().try_for_each(|piece| parser.push(piece, &mut keep));
        let all = all.and_then(|()| parser.finish(&mut keep));
        (all.is_ok(), events)
    };
    // A small limit: only that it holds, for what is counted against it depends on the cuts.
    let (_, events) = read(&case.pieces(), 64);
    if let Some((_, data)) = events.iter().find(|(_, data)| data.len() > 64) {
        return Err(format!("an event of {} bytes passed a limit of 64", data.len()));
    }
    check_same("cut elsewhere", &read(&case.pieces(), 1 << 20), &read(&[case.input], 1 << 20))
}

fn fuzz_answer(case: &ParserInput<'_>) -> Result<(), String> {
    for (kind, keep_text) in
        [("text/event-stream", true), ("text/event-stream", false), ("", false)]
    {
        let mut headers = HeaderMap::new();
        if !kind.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        let read = |pieces: &[&[u8]]| {
            let mut passing = AnswerTap::new(true, keep_text);
            passing.take_head(PassedHead { status: 200, headers: &headers, read: READ });
            for piece in pieces {
                passing.take_bytes(piece, READ);
            }
            passing.end(READ)
        };
        check_same("cut elsewhere", &read(&case.pieces()), &read(&[case.input]))?;
    }
    // As the client reads its own.
    let mut exchange = Exchange::default();
    let mut reader = AnswerReader::new(true, AnswerLimits::default());
    for piece in case.pieces() {
        goodput_wire::hot::read_answer(&mut reader, piece, READ.at, &mut exchange);
    }
    Ok(())
}

/// Statuses, headers, bytes and trailers of the answers on a connection, and how it ended.
#[derive(Debug, PartialEq, Default)]
struct InflowResult {
    heads: Vec<goodput_wire::InflowHead>,
    data: Vec<u8>,
    trailers: Vec<HeaderMap>,
    fault: Option<&'static str>,
    is_over: bool,
    is_clean: bool,
}

fn fuzz_http1(case: &ParserInput<'_>) -> Result<(), String> {
    let read = |pieces: &[&[u8]], may_have_body| {
        let mut inflow = Inflow::new(32 << 10);
        inflow.expect_answer(may_have_body);
        let mut taken = InflowResult::default();
        for piece in pieces {
            inflow.push(&mut piece.to_vec());
            take_all(&mut inflow, &mut taken);
        }
        inflow.end_of_stream();
        take_all(&mut inflow, &mut taken);
        (taken.is_over, taken.is_clean) = (inflow.is_over(), inflow.is_clean());
        taken
    };
    for may_have_body in [true, false] {
        let pieces = case.pieces();
        check_same(
            "cut elsewhere",
            &read(&pieces, may_have_body),
            &read(&[case.input], may_have_body),
        )?;
    }
    Ok(())
}

fn take_all(inflow: &mut Inflow, taken: &mut InflowResult) {
    match inflow.take_head() {
        Ok(head) => taken.heads.extend(head),
        Err(fault) => taken.fault = Some(fault),
    }
    loop {
        match inflow.take_part() {
            Ok(None) => break,
            Ok(Some(BodyPart::Data(bytes))) => taken.data.extend_from_slice(&bytes),
            Ok(Some(BodyPart::Trailers(trailers))) => taken.trailers.push(trailers),
            Err(fault) => {
                taken.fault = Some(fault);
                break;
            }
        }
    }
}

/// A chunked body as the client reads it: what is left over is kept for the next piece.
fn fuzz_chunked(case: &ParserInput<'_>) -> Result<(), String> {
    let read = |pieces: &[&[u8]]| {
        let (mut held, mut data) = (Vec::<u8>::new(), Vec::<u8>::new());
        let mut framing = BodyFraming::ChunkSize;
        for piece in pieces {
            held.extend_from_slice(piece);
            loop {
                let Ok(taken) = framing.take_framed(&held) else { return (data, None) };
                data.extend(taken.piece.clone().map(|piece| &held[piece]).unwrap_or_default());
                held.drain(..taken.used);
                if taken.piece.is_none() {
                    break;
                }
            }
        }
        (data, Some(framing))
    };
    check_same("cut elsewhere", &read(&case.pieces()), &read(&[case.input]))
}

fn fuzz_url(case: &ParserInput<'_>) -> Result<(), String> {
    let Some(text) = case.text() else { return Ok(()) };
    let url: BaseUrl = match text.parse() {
        Ok(url) => url,
        Err(error) => {
            drop(format!("{error:?}"));
            return Ok(());
        }
    };
    drop((url.shown(), url.names_api(), url.path_and_query(), url.authority().len()));
    let (host, _) = url.host();
    if host.is_empty() { Err("a URL without a host".to_owned()) } else { Ok(()) }
}

fn fuzz_extra_body(case: &ParserInput<'_>) -> Result<(), String> {
    let Some(text) = case.text() else { return Ok(()) };
    let dialect = RequestFormat::new(goodput_model::Api::Chat, "m", true).with_extra(text);
    let Ok(dialect) = dialect else { return Ok(()) };
    let request = goodput_model::Request::prompt("a", goodput_model::Planned::new("chat", 5, None));
    let body = dialect.encode(&[], &request);
    serde_json::from_slice::<serde_json::Value>(&body)
        .map(drop)
        .map_err(|error| format!("the body is not valid JSON: {error}"))
}
