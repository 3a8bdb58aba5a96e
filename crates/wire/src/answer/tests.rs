//! Every stream variant that a real server or a peer's bug report showed, cut at every byte.

use super::*;

/// What an answer amounts to, apart from instants.
#[derive(Debug, PartialEq, Eq)]
struct AnswerFacts {
    /// Bytes of text per chunk.
    chunks: Vec<u32>,
    output: Option<(u32, TokenSource)>,
    input: Option<u32>,
    cached: Option<u32>,
    finish: Option<String>,
    failure: Option<ErrorClass>,
}

/// Feeds the pieces, one read each at 1 ms intervals.
fn read_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (AnswerFacts, Exchange) {
    let mut reader = AnswerReader::new(false, AnswerLimits::default());
    let mut exchange = Exchange::default();
    let mut outcome = Ok(());
    let mut read = Read { at: Nanos::ZERO, sequence: 0, lag_us: None };
    for (index, piece) in pieces.into_iter().enumerate() {
        read = Read { at: Nanos::from_millis(index as u64), sequence: index as u64, lag_us: None };
        outcome = outcome.and_then(|()| reader.push(piece, read, &mut exchange));
    }
    outcome = outcome.and_then(|()| reader.finish(read, &mut exchange));
    let seen = AnswerFacts {
        chunks: exchange.chunks.iter().map(|chunk| chunk.bytes).collect(),
        output: exchange.output_tokens.map(|count| (count.n, count.source)),
        input: exchange.input_tokens.map(|count| count.n),
        cached: exchange.cached_tokens,
        finish: exchange.finish.clone(),
        failure: outcome.err().map(|fault| fault.class),
    };
    (seen, exchange)
}

/// The same however it is cut: whole, in two at every position, and byte by byte.
fn read_cut_everywhere(body: &[u8]) -> (AnswerFacts, Exchange) {
    let (whole, _) = read_pieces([body]);
    for cut in 0..=body.len() {
        let (head, tail) = body.split_at(cut);
        assert_eq!(read_pieces([head, tail]).0, whole, "cut at {cut}");
    }
    let (bytes, _) = read_pieces(body.chunks(1));
    assert_eq!(bytes, whole, "byte by byte");
    // One event a read, as a server that flushes each event would have it arrive.
    let events = body.split_inclusive(|byte| *byte == b'\n').collect::<Vec<_>>();
    let (by_line, exchange) = read_pieces(events);
    assert_eq!(by_line, whole, "line by line");
    (whole, exchange)
}

fn sample(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/samples/{name}.sse", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Sample, chunks, output tokens and source, prompt tokens, cached, finish reason, failure, and
/// the line whose arrival is the first token.
type Row = (
    &'static str,
    usize,
    Option<(u32, TokenSource)>,
    Option<u32>,
    Option<u32>,
    Option<&'static str>,
    Option<ErrorClass>,
    Option<u64>,
);

#[rustfmt::skip]
fn rows() -> Vec<Row> {
    use ErrorClass::{NoFinish, StreamError};
    use TokenSource::{Chunks, Events, Usage};
    let (stop, length) = (Some("stop"), Some("length"));
    vec![
        ("vllm-chat", 1, Some((2, Usage)), Some(16), None, stop, None, Some(3)),
        ("vllm-chat-contusage", 4, Some((4, Usage)), Some(16), None, length, None, Some(3)),
        ("vllm-chat-nousage", 5, Some((5, Events)), None, None, length, None, Some(3)),
        ("vllm-chat-streaminterval4", 5, Some((14, Usage)), Some(16), None, length, None, Some(3)),
        ("vllm-chat-tokenids", 2, Some((2, Chunks)), None, None, length, None, Some(3)),
        ("vllm-chat-logprobs", 2, Some((2, Chunks)), None, None, length, None, Some(3)),
        ("vllm-chat-n2", 6, Some((6, Usage)), Some(11), None, length, None, Some(5)),
        ("vllm-completions", 6, Some((6, Usage)), Some(3), None, length, None, Some(1)),
        ("llama-server-chat", 33, Some((34, Usage)), Some(12), Some(3), stop, None, Some(3)),
        ("llama-server-chat-length", 4, Some((4, Usage)), Some(12), Some(11), length, None, Some(3)),
        ("llama-server-chat-nousage", 3, Some((3, Events)), None, None, length, None, Some(3)),
        ("llama-server-chat-logprobs", 2, Some((2, Chunks)), None, None, length, None, Some(3)),
        ("llama-server-chat-n2", 6, Some((6, Usage)), Some(10), Some(3), length, None, Some(3)),
        ("llama-server-completions", 4, Some((4, Usage)), Some(3), Some(0), length, None, Some(1)),
        ("llama-server-queued", 6, Some((6, Events)), None, None, length, None, Some(3)),
        ("llama-server-midstream-error", 10, None, None, None, None, Some(StreamError), Some(3)),
        ("llama-server-ping-error", 10, None, None, None, None, Some(StreamError), Some(3)),
        ("litellm-chat", 6, Some((6, Usage)), Some(12), Some(11), length, None, Some(3)),
        ("litellm-chat-nousage", 3, Some((3, Events)), None, None, length, None, Some(3)),
        ("litellm-completions", 3, Some((3, Usage)), Some(2), Some(1), length, None, Some(1)),
        ("litellm-vllm-chat", 5, Some((5, Usage)), Some(16), None, length, None, Some(3)),
        ("tfserve-chat", 8, Some((8, Usage)), Some(16), None, length, None, Some(3)),
        ("tfserve-cb-chat", 25, Some((26, Usage)), Some(16), None, stop, None, Some(3)),
        ("tfserve-completions", 3, Some((4, Usage)), Some(2), None, length, None, Some(1)),
        ("lcp-chat", 5, Some((5, Events)), None, None, length, None, Some(3)),
        ("lcp-completions", 3, Some((3, Events)), None, None, length, None, Some(1)),
        ("lcp-ping", 3, Some((3, Events)), None, None, length, None, Some(7)),
        ("lcp-interrupted", 82, Some((82, Events)), None, None, None, Some(NoFinish), Some(3)),
    ]
}

#[test]
fn real_streams_give_the_same_answer_however_they_are_cut() {
    for (name, chunks, output, input, cached, finish, failure, first) in rows() {
        let (seen, exchange) = read_cut_everywhere(&sample(name));
        let actual = (
            seen.chunks.len(),
            seen.output,
            seen.input,
            seen.cached,
            seen.finish.as_deref(),
            seen.failure,
            // Line n of the body arrives at n ms, and the blank line after it completes the event.
            exchange.stamps.first_token.map(|at| at.0 / 1_000_000),
        );
        assert_eq!(actual, (chunks, output, input, cached, finish, failure, first), "{name}");
        assert!(exchange.stamps.first_answer == exchange.stamps.first_token, "{name}");
    }
}

#[test]
fn running_usage_and_listed_tokens_say_how_many_tokens_a_chunk_has() {
    let tokens = |name: &str| {
        let (_, exchange) = read_pieces([sample(name).as_slice()]);
        exchange.chunks.iter().map(|chunk| chunk.tokens).collect::<Vec<_>>()
    };
    assert_eq!(tokens("vllm-chat-contusage"), [Some(1); 4]);
    assert_eq!(tokens("vllm-chat-streaminterval4"), [Some(1), Some(4), Some(4), Some(4), Some(1)]);
    assert_eq!(tokens("vllm-chat-logprobs"), [Some(1); 2]);
    assert_eq!(tokens("vllm-chat-nousage"), [None; 5]);
}

/// A body of chat chunks from the JSON of their `choices[0]` (or whole chunks, when they have keys
/// of their own), ended by `[DONE]`.
fn chat(choices: &[&str]) -> String {
    let events = choices.iter().map(|choice| format!("data: {{\"choices\":[{choice}]}}\n\n"));
    events.chain(["data: [DONE]\n\n".to_owned()]).collect()
}

const FINISH: &str = r#"{"index":0,"delta":{},"finish_reason":"stop"}"#;

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
#[rustfmt::skip]
fn variants_of_chat_chunks() {
    let role = r#"{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}"#;
    let token = r#"{"index":0,"delta":{"content":"né"}}"#;
    let events = |n| Some((n, TokenSource::Events));
    let usage = |n| Some((n, TokenSource::Usage));
    let cases = [
        ("role then tokens", chat(&[role, token, token, FINISH]), events(2), None),
        (
            "content on the finish chunk",
            chat(&[token, r#"{"delta":{"content":"x"},"finish_reason":"length"}"#]),
            events(2),
            None,
        ),
        (
            "reasoning only",
            chat(&[
                r#"{"delta":{"reasoning":"hm"}}"#,
                r#"{"delta":{"reasoning_content":"hm"}}"#,
                FINISH,
            ]),
            events(2),
            None,
        ),
        (
            "tool calls only",
            chat(&[
                r#"{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]}}"#,
                r#"{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}"#,
                FINISH,
            ]),
            events(2),
            None,
        ),
        ("zero tokens", chat(&[role, FINISH]), None, Some(ErrorClass::Empty)),
        ("one token", chat(&[token, FINISH]), events(1), None),
        ("no finish reason", chat(&[role, token]), events(1), Some(ErrorClass::NoFinish)),
        (
            "one of two answers unfinished",
            chat(&[token, r#"{"index":1,"delta":{"content":"b"}}"#, FINISH]),
            events(2),
            Some(ErrorClass::NoFinish),
        ),
        (
            "usage with the finish reason",
            format!(
                "data: {{\"choices\":[{token}]}}\n\ndata: {{\"choices\":[{FINISH}],\"usage\":{{\"completion_tokens\":9}}}}\n\n"
            ),
            usage(9),
            None,
        ),
        (
            "usage in between and at the end",
            format!(
                "data: {{\"choices\":[{token}],\"usage\":{{\"completion_tokens\":1}}}}\n\ndata: {{\"choices\":[{FINISH}]}}\n\ndata: {{\"choices\":[],\"usage\":{{\"completion_tokens\":2}}}}\n\n"
            ),
            usage(2),
            None,
        ),
        (
            "CRLF, no space, comments",
            format!(
                "\u{feff}: hello\r\n\r\ndata:{{\"choices\":[{token}]}}\r\n\r\n:\r\n\r\ndata:{{\"choices\":[{FINISH}]}}\r\n\r\ndata:[DONE]\r\n\r\n"
            ),
            events(1),
            None,
        ),
        ("bare CR", chat(&[token, FINISH]).replace('\n', "\r"), events(1), None),
        (
            "DONE without a blank line",
            chat(&[token, FINISH]).trim_end().to_owned(),
            events(1),
            None,
        ),
        ("no DONE", chat(&[token, FINISH]).replace("data: [DONE]\n\n", ""), events(1), None),
        (
            "event names",
            format!(
                "event: message\ndata: {{\"choices\":[{token}]}}\n\nevent: ping\n\ndata: {{\"choices\":[{FINISH}]}}\n\n"
            ),
            events(1),
            None,
        ),
        (
            "several data lines",
            format!(
                "data: {{\"choices\":\ndata: [{token}]}}\n\ndata: {{\"choices\":[{FINISH}]}}\n\n"
            ),
            events(1),
            None,
        ),
        (
            "error object",
            chat(&[token]).replace("[DONE]", r#"{"error":{"message":"boom","code":500}}"#),
            None,
            Some(ErrorClass::StreamError),
        ),
        (
            "error text",
            chat(&[token]).replace("[DONE]", r#"{"error":"boom"}"#),
            None,
            Some(ErrorClass::StreamError),
        ),
        (
            "error event",
            chat(&[token]).replace("data: [DONE]", "event: error\ndata: boom"),
            None,
            Some(ErrorClass::StreamError),
        ),
        (
            "error as an object kind",
            chat(&[token]).replace("[DONE]", r#"{"object":"error","message":"boom"}"#),
            None,
            Some(ErrorClass::StreamError),
        ),
        ("garbage", chat(&[token]).replace("[DONE]", "boom"), None, Some(ErrorClass::BadEvent)),
        (
            "truncated JSON",
            chat(&[token]).replace("[DONE]", r#"{"choices":[{"de"#),
            None,
            Some(ErrorClass::BadEvent),
        ),
        (
            "not a number",
            chat(&[
                r#"{"delta":{"content":"a"},"logprobs":{"content":[{"logprob":NaN}]}}"#,
                FINISH,
            ]),
            Some((1, TokenSource::Chunks)),
            None,
        ),
        ("empty body", String::new(), None, Some(ErrorClass::NoFinish)),
        (
            "text after DONE is not read",
            format!("{}data: boom\n\n", chat(&[token, FINISH])),
            events(1),
            None,
        ),
    ];
    for (name, body, output, failure) in cases {
        let (seen, _) = read_cut_everywhere(body.as_bytes());
        assert_eq!((seen.output, seen.failure), (output, failure), "{name}");
    }
}

#[test]
fn the_first_answer_token_comes_after_reasoning() {
    let body = chat(&[
        r#"{"delta":{"role":"assistant","content":""}}"#,
        r#"{"delta":{"reasoning":"hm"}}"#,
        r#"{"delta":{"content":"yes"}}"#,
        FINISH,
    ]);
    let events: Vec<_> = body.split_inclusive("\n\n").map(str::as_bytes).collect();
    let (_, exchange) = read_pieces(events);
    let stamps = exchange.stamps;
    let ms = |at: Option<Nanos>| at.map(|at| at.0 / 1_000_000);
    assert_eq!(ms(stamps.first_token), Some(1));
    assert_eq!(ms(stamps.first_answer), Some(2));
    assert_eq!(ms(stamps.last_token), Some(2));
    assert_eq!(ms(stamps.done), Some(4));
}

#[test]
fn a_token_without_text_moves_only_the_last_token() {
    let body = chat(&[
        r#"{"delta":{"role":"assistant","content":""}}"#,
        r#"{"delta":{"content":""}}"#,
        r#"{"delta":{"content":"a"}}"#,
        r#"{"delta":{"content":""}}"#,
        FINISH,
    ]);
    let events: Vec<_> = body.split_inclusive("\n\n").map(str::as_bytes).collect();
    let (seen, exchange) = read_pieces(events);
    let ms = |at: Option<Nanos>| at.map(|at| at.0 / 1_000_000);
    assert_eq!(ms(exchange.stamps.first_token), Some(2));
    assert_eq!(ms(exchange.stamps.last_token), Some(3));
    assert_eq!(seen.chunks, [1]);
}

#[test]
fn chunks_of_one_read_share_its_instant_and_say_so() {
    let token = r#"{"index":0,"delta":{"content":"x"}}"#;
    let body = chat(&[token, token, token, FINISH]);
    let second = body.match_indices("data:").nth(2).unwrap().0;
    let (head, tail) = body.split_at(second);
    let (_, exchange) = read_pieces([head.as_bytes(), tail.as_bytes()]);
    let marks: Vec<_> = exchange.chunks.iter().map(|c| (c.at.0 / 1_000_000, c.coalesced)).collect();
    assert_eq!(marks, [(0, true), (0, true), (1, false)]);
}

#[test]
fn an_event_beyond_the_limit_is_a_class_of_its_own() {
    let mut reader = AnswerReader::new(false, AnswerLimits::default());
    let mut exchange = Exchange::default();
    let read = Read { at: Nanos(1), sequence: 1, lag_us: None };
    let piece = vec![b'x'; 1 << 20];
    let fault = (0..17).find_map(|_| reader.push(&piece, read, &mut exchange).err());
    assert_eq!(fault.unwrap().class, ErrorClass::EventTooLarge);
}

#[test]
fn whole_answers() {
    let read = Read { at: Nanos(7), sequence: 1, lag_us: None };
    let take = |bytes: &[u8]| {
        let mut exchange = Exchange::default();
        let outcome =
            AnswerReader::new(true, AnswerLimits::default()).read_whole(bytes, read, &mut exchange);
        (outcome.map_err(|fault| fault.class), exchange)
    };
    let (outcome, exchange) = take(&sample("llama-server-chat-json"));
    assert_eq!(outcome, Ok(()));
    assert_eq!(exchange.output_tokens, Some(TokenCount { n: 3, source: TokenSource::Usage }));
    assert_eq!((exchange.stamps.first_token, exchange.stamps.last_token), (None, Some(Nanos(7))));
    assert_eq!(exchange.text.as_deref(), Some(" ChiefAPH Grande"));
    assert_eq!(take(b"<html>").0, Err(ErrorClass::BadJson));
    assert_eq!(take(br#"{"error":"x"}"#).0, Err(ErrorClass::StreamError));
    assert_eq!(take(br#"{"choices":[]}"#).0, Err(ErrorClass::NoFinish));
}

proptest::proptest! {
    /// Events that repeat each other in all but their text, mixed with others: what is known from an
    /// earlier event must be what reading would have found.
    #[test]
    fn a_likeness_changes_nothing(
        events in proptest::collection::vec((0usize..7, "[a-zé\"\\\\{}: \u{1}]{0,6}"), 1..24),
    ) {
        let mut body = String::new();
        for (kind, text) in events {
            let quoted = serde_json::Value::from(text.clone());
            let data = match kind {
                0 => format!(r#"{{"choices":[{{"index":0,"delta":{{"content":{quoted}}},"finish_reason":"stop"}}]}}"#),
                1 => format!(r#"{{"choices":[{{"index":1,"delta":{{"content":{quoted}}}}}]}}"#),
                2 => format!(r#"{{"choices":[{{"index":0,"text":{quoted}}}]}}"#),
                3 => format!(r#"{{"choices":[{{"index":0,"delta":{{"content":{quoted}}}}}],"usage":{{"completion_tokens":{}}}}}"#, text.len()),
                // As it is: sometimes no JSON at all.
                4 => format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#),
                _ => format!(r#"{{"choices":[{{"index":0,"delta":{{"content":{quoted}}}}}]}}"#),
            };
            body.extend(["data: ", &data, "\n\n"]);
        }
        let read = Read { at: Nanos(1), sequence: 1, lag_us: None };
        let outcome = |mut reader: AnswerReader| {
            let mut exchange = Exchange::default();
            let outcome = reader
                .push(body.as_bytes(), read, &mut exchange)
                .and_then(|()| reader.finish(read, &mut exchange));
            (outcome, exchange)
        };
        let mut reads_all = AnswerReader::new(false, AnswerLimits::default());
        reads_all.state.likeness = EventTemplate::disabled();
        proptest::prop_assert_eq!(outcome(AnswerReader::new(false, AnswerLimits::default())), outcome(reads_all));
    }
}

#[test]
fn a_web_page_is_reported_by_its_title() {
    let page = b"\n<!DOCTYPE html><html><head><TITLE>502  Bad\nGateway</TITLE></head>...</html>";
    assert_eq!(clip_bytes(page), "web page `502 Bad Gateway`");
    assert_eq!(clip_bytes(b"<html>Sign in</html>"), "a web page");
    assert_eq!(clip_bytes(b"<html><title>never ends"), "a web page");
    assert_eq!(clip_bytes(b"no  such\nmodel"), "no such model");
}
