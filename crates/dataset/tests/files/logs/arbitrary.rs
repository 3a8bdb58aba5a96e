//! Whatever stands in a log: a result or an error, never a panic.

use goodput_dataset::{ConvertTarget, TraceFormat, convert, load_trace};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{nginx, options};
use crate::common::file;

/// Pieces that readers know, so that arbitrary files come further than their first byte.
const PIECES: [&str; 46] = [
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "\"",
    "\n",
    "\\",
    "\\x",
    "\\x2",
    "\\xZZ\\x22",
    " ",
    "-",
    "$",
    "null",
    "0",
    "-1",
    "NaN",
    "1e400",
    "\u{1f600}",
    "18446744073709551616",
    "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[",
    "{\"traceId\":\"t\",\"spanId\":\"a\",\"parentSpanId\":\"a\",\"startTimeUnixNano\":\"5\",\"attributes\":[",
    "{\"key\":\"gen_ai.usage.input_tokens\",\"value\":{\"intValue\":\"3\"}},",
    "{\"key\":\"gen_ai.usage.output_tokens\",\"value\":{\"intValue\":4}}",
    "]}]}]}]}\n",
    "]},",
    "{\"data\":[",
    "{\"spans\":[",
    "\"attributes\":{\"gen_ai.x\":[1]}",
    "{\"context\":{\"span_id\":\"b\"},\"attributes\":{}}\n",
    "{\"startTime\":1.5,\"endTime\":9e99,\"prompt_tokens\":3,\"completion_tokens\":4,\"session_id\":\"s\"}\n",
    "{\"startTime\":\"2026-11-16T09:09:05Z\",\"prompt_tokens\":3,\"completion_tokens\":4}\n",
    "startTime,endTime,prompt_tokens,completion_tokens\n",
    "1,2,3,4\n",
    "\"standard_logging_object\":",
    "1794820145.5 0.25 200 9 9 \"POST /v1/chat/completions HTTP/1.1\" \"text/event-stream\"\n",
    "9999999999 1e300 200 9 9 \"POST /completions\" \"x\"\n",
    "\"POST /v1/messages HTTP/1.1\"",
    " 200 ",
    "1794820145.5",
    "text/event-stream",
    "16/Nov/2026:09:09:05 +0000",
    "{\n",
    "\"t\":",
];

const FORMATS: [&str; 3] = [
    "$msec $request_time $status $request_length $body_bytes_sent \"$request\" \"$sent_http_content_type\"",
    "{\"t\":$msec,\"r\":\"$request\",\"i\":$request_length,\"o\":$bytes_sent,\"k\":\"$sent_http_content_type\"}",
    "escape=none [$time_local] $uri $upstream_response_time $content_length $bytes_sent $upstream_http_content_type",
];

fn every_reader(name: &str, bytes: &[u8]) {
    let scratch = file(name, bytes);
    let logs = FORMATS.iter().map(|format| nginx(format));
    let others = [TraceFormat::Litellm, TraceFormat::Otel].map(options);
    for mut options in others.into_iter().chain(logs) {
        for skip_invalid in [false, true] {
            options.skip_invalid = skip_invalid;
            if let Ok(loaded) = load_trace(&scratch.path, &options) {
                assert!(loaded.entries.is_sorted_by_key(|entry| entry.at));
                for target in ConvertTarget::ALL {
                    convert(&loaded, target, &mut Vec::new()).unwrap();
                }
            }
        }
    }
    let _ = goodput_dataset::file_kind(&scratch.path);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_bytes_break_a_reader(pieces in vec(prop_oneof![
        6 => (0..PIECES.len()).prop_map(|n| PIECES[n].as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..4),
    ], 0..25), name in prop_oneof![Just("x.json"), Just("x.jsonl"), Just("x.csv"), Just("x.log")]) {
        every_reader(name, &pieces.concat());
    }

    #[test]
    fn no_format_breaks_the_reader(format in "[$\\{}\"'a-c=; ]{0,30}", line in "[\\\\x\"a-c0-9 \\PC]{0,40}") {
        let format = format!("{format}$msec \"$request\" $content_length $bytes_sent $sent_http_content_type{line}");
        let scratch = file("x.log", &line);
        let _ = load_trace(&scratch.path, &nginx(&format));
        let _ = load_trace(&scratch.path, &nginx(&format.chars().skip(7).collect::<String>()));
    }
}

#[test]
fn deep_and_long_lines_are_errors_at_most() {
    let deep = "[".repeat(100_000);
    every_reader("x.jsonl", format!("{{\"attributes\":{deep}").as_bytes());
    every_reader("x.jsonl", format!("{{\"data\":{deep}{}}}", "]".repeat(100_000)).as_bytes());
    every_reader(
        "x.jsonl",
        format!("{{\"resourceSpans\":{}", "{\"scopeSpans\":[".repeat(50_000)).as_bytes(),
    );
    let long = "a".repeat(4 << 20);
    let row = format!(
        "{{\"startTime\":1,\"prompt_tokens\":1,\"completion_tokens\":1,\"session_id\":\"{long}\",\"model\":\"{long}\"}}\n"
    );
    let loaded =
        load_trace(&file("l.jsonl", row.repeat(2)).path, &options(TraceFormat::Litellm)).unwrap();
    assert!(loaded.entries.iter().all(|entry| entry.session.as_deref() == Some("1")));
    assert!(loaded.entries.iter().all(|entry| entry.class.as_ref().unwrap().len() == 100));
    // Every quote could end the value.
    every_reader("x.log", format!("1 0 200 9 9 \"{}", "\\\"\\\\".repeat(1 << 20)).as_bytes());
}
