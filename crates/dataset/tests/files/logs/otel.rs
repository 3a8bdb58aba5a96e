//! OpenTelemetry's spans.

use goodput_dataset::{FileKind, TraceFormat, TraceSelection, file_kind};
use serde_json::{Value, json};

use super::{classes, load, options, requests, sessions, took, written};
use crate::common::file;

/// 2026-11-16 09:09:05 UTC
const START: u64 = 1_794_820_145_000_000_000;

/// What a test says of a span.
#[derive(Clone)]
struct TestSpan {
    id: &'static str,
    parent: &'static str,
    from_ms: u64,
    to_ms: u64,
    attributes: Vec<(&'static str, Value)>,
    is_error: bool,
}

fn said(id: &'static str, ms: (u64, u64), tokens: (u32, u32), talk: &str) -> TestSpan {
    let attributes = vec![
        ("gen_ai.operation.name", json!("chat")),
        ("gen_ai.request.model", json!("m-8b")),
        ("gen_ai.usage.input_tokens", json!(tokens.0)),
        ("gen_ai.usage.output_tokens", json!(tokens.1)),
        ("gen_ai.conversation.id", json!(talk)),
        ("gen_ai.input.messages", json!("the secret words")),
        ("enduser.id", json!("ann")),
        ("client.address", json!("192.0.2.7")),
    ];
    TestSpan { id, parent: "", from_ms: ms.0, to_ms: ms.1, attributes, is_error: false }
}

fn plain(id: &'static str, parent: &'static str) -> TestSpan {
    let attributes = vec![("http.request.method", json!("POST"))];
    TestSpan { id, parent, from_ms: 0, to_ms: 1, attributes, is_error: false }
}

fn spans() -> Vec<TestSpan> {
    let server = vec![
        ("gen_ai.request.id", json!("r")),
        ("gen_ai.usage.prompt_tokens", json!(100)),
        ("gen_ai.usage.completion_tokens", json!(20)),
        ("gen_ai.latency.time_to_first_token", json!(0.25)),
    ];
    let within = |parent| TestSpan {
        id: "s1",
        parent,
        from_ms: 260,
        to_ms: 1400,
        attributes: server.clone(),
        is_error: false,
    };
    let mut agent = said("g1", (0, 4000), (225, 51), "t-7");
    agent.attributes[0].1 = json!("invoke_agent");
    let mut broken = said("e1", (20, 30), (1, 1), "t-9");
    broken.is_error = true;
    let mut first = said("a1", (250, 1500), (100, 20), "t-7");
    first.parent = "g1";
    vec![
        // Children end, and are written, before those who called them.
        within("h1"),
        plain("h1", "a1"),
        first,
        TestSpan { id: "s2", ..within("missing") },
        said("a2", (0, 125), (5, 1), "t-8"),
        broken,
        said("a3", (3500, 4000), (120, 30), "t-7"),
        agent,
        TestSpan { attributes: vec![("gen_ai.system", json!("openai"))], ..plain("u1", "") },
        // Sent twice.
        said("a3", (3500, 4000), (120, 30), "t-7"),
    ]
}

fn wrapped(value: &Value) -> Value {
    match value {
        Value::String(_) => json!({"stringValue": value}),
        Value::Number(number) if number.is_u64() => json!({"intValue": number.to_string()}),
        Value::Number(_) => json!({"doubleValue": value}),
        other => json!({"boolValue": other}),
    }
}

fn otlp(said: &TestSpan) -> Value {
    let list: Vec<Value> = said
        .attributes
        .iter()
        .map(|(key, value)| json!({"key": key, "value": wrapped(value)}))
        .collect();
    let at = |ms: u64| (START + ms * 1_000_000).to_string();
    json!({
        "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": said.id, "parentSpanId": said.parent,
        "name": "chat m-8b", "kind": 3, "startTimeUnixNano": at(said.from_ms),
        "endTimeUnixNano": at(said.to_ms), "attributes": list, "events": [],
        "status": if said.is_error { json!({"code": 2, "message": "no"}) } else { json!({}) },
    })
}

fn document(spans: &[TestSpan]) -> Value {
    let spans: Vec<Value> = spans.iter().map(otlp).collect();
    json!({"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {"name": "x"}, "spans": spans}]}]})
}

fn jaeger(said: &TestSpan) -> Value {
    let tags: Vec<Value> = said
        .attributes
        .iter()
        .map(|(key, value)| json!({"key": key, "type": "string", "value": value}))
        .collect();
    let error = said
        .is_error
        .then(|| json!({"key": "otel.status_code", "type": "string", "value": "ERROR"}));
    let parent = json!([{"refType": "CHILD_OF", "traceID": "t", "spanID": said.parent}]);
    json!({
        "traceID": "t", "spanID": said.id, "operationName": "chat",
        "references": if said.parent.is_empty() { json!([]) } else { parent },
        "startTime": START / 1000 + said.from_ms * 1000, "duration": (said.to_ms - said.from_ms) * 1000,
        "tags": tags.into_iter().chain(error).collect::<Vec<_>>(), "logs": [], "processID": "p1",
    })
}

/// As Python's SDK prints it.
fn console(said: &TestSpan) -> Value {
    let at = |ms: u64| format!("2026-11-16T09:09:{:02}.{:03}000Z", 5 + ms / 1000, ms % 1000);
    let attributes: serde_json::Map<String, Value> =
        said.attributes.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    json!({
        "name": "chat", "context": {"trace_id": "0x1", "span_id": said.id, "trace_state": "[]"},
        "kind": "SpanKind.CLIENT",
        "parent_id": if said.parent.is_empty() { Value::Null } else { json!(said.parent) },
        "start_time": at(said.from_ms), "end_time": at(said.to_ms),
        "status": {"status_code": if said.is_error { "ERROR" } else { "UNSET" }},
        "attributes": attributes, "events": [], "links": [], "resource": {},
    })
}

#[test]
fn every_shape_gives_the_same_requests() {
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap();
    let printed: Vec<Value> = spans().iter().map(console).collect();
    let traced: Vec<Value> = spans().iter().map(jaeger).collect();
    let export = json!({"data": [{"traceID": "t", "spans": traced, "processes": {}}], "total": 0});
    let numbers =
        document(&spans()).to_string().replace("\"intValue\":\"100\"", "\"intValue\":100");
    let files = [
        document(&spans()).to_string(),
        pretty(&document(&spans())),
        spans()
            .iter()
            .map(|span| document(std::slice::from_ref(span)).to_string() + "\n")
            .collect(),
        numbers.replace("\"intValue\":\"20\"", "\"intValue\":20.0"),
        export.to_string(),
        pretty(&export),
        printed.iter().map(pretty).collect::<Vec<_>>().join("\n"),
        json!(printed).to_string(),
        pretty(&json!(spans().iter().map(otlp).collect::<Vec<_>>())),
    ];
    for text in files {
        let loaded = load("t.json", &text, &TraceSelection::default())
            .unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!((loaded.format, loaded.seen), ("otel", 10), "{text}");
        let expected = [(0.0, 5, 1), (250.0, 100, 20), (260.0, 100, 20), (3500.0, 120, 30)];
        assert_eq!(requests(&loaded), expected, "{text}");
        assert_eq!(took(&loaded), [Some(125.0), Some(1250.0), Some(1140.0), Some(500.0)]);
        assert_eq!(sessions(&loaded), [None, Some("1"), None, Some("1")]);
        assert_eq!(classes(&loaded), [Some("m-8b"), Some("m-8b"), None, Some("m-8b")]);
        let skipped: Vec<(&str, u64)> =
            loaded.skipped.iter().map(|(s, n)| (s.as_str(), *n)).collect();
        let expected = [
            ("duplicate span", 1),
            ("failed when it was recorded", 1),
            ("not a gen_ai span", 1),
            ("not a generation", 1),
            ("part of another generation", 1),
            ("without token counts", 1),
        ];
        assert_eq!(skipped, expected, "{text}");
        assert_eq!(file_kind(&file("t.json", &text).path), Ok(FileKind::Trace));
        let written = written(&loaded);
        for word in ["secret", "ann", "192.0.2.7", "t-7"] {
            assert!(!written.contains(word), "{word}");
        }
    }
}

#[test]
fn instants_are_exact_to_the_nanosecond() {
    let mut one = document(&[said("a", (0, 1), (1, 1), "")]);
    let mut two = document(&[said("b", (0, 1), (1, 1), "")]);
    let place = "/resourceSpans/0/scopeSpans/0/spans/0/startTimeUnixNano";
    *one.pointer_mut(place).unwrap() = json!("1794820145123456789");
    *two.pointer_mut(place).unwrap() = json!(1_794_820_145_123_456_790_u64);
    let loaded = load("t.jsonl", format!("{two}\n{one}\n"), &TraceSelection::default()).unwrap();
    let at: Vec<u64> = loaded.entries.iter().map(|entry| entry.at.unwrap().0).collect();
    assert_eq!(at, [0, 1]);
}

#[test]
fn what_is_no_span_is_refused_or_counted() {
    let good = document(&[said("a", (0, 1), (1, 1), "")]).to_string();
    let metrics = json!({"resourceMetrics": []}).to_string();
    let loaded =
        load("t.jsonl", format!("{good}\n\n{metrics}\n"), &TraceSelection::default()).unwrap();
    assert_eq!((loaded.skipped["blank line"], loaded.skipped["metrics or logs"]), (1, 1));
    let mut late = said("b", (0, 1), (1, 1), "");
    late.attributes[2].1 = json!("ann");
    for (wrong, why) in [
        (good[..60].to_owned(), "JSON ends too early at column 60"),
        ("{\"ann\": 1}".to_owned(), "no spans: expected `resourceSpans`, `data`, or a span"),
        ("ann".to_owned(), "invalid JSON at column 1"),
        (
            document(&[late]).to_string(),
            "field `gen_ai.usage.input_tokens` is not a number of tokens from 0 to 10000000",
        ),
        (
            good.replace("\"spanId\":\"a\"", "\"spanId\":\"c\"")
                .replace("1794820145000000000", "ann"),
            "field `start` is not an instant",
        ),
    ] {
        let text = format!("{good}\n{wrong}\n");
        let refused = load("t.jsonl", &text, &options(TraceFormat::Otel)).unwrap_err();
        assert_eq!(refused, format!("t.jsonl, line 2: {why}"));
        let skipping = TraceSelection { skip_invalid: true, ..options(TraceFormat::Otel) };
        let loaded = load("t.jsonl", &text, &skipping).unwrap();
        assert_eq!((loaded.entries.len(), loaded.skipped["not readable"]), (1, 1));
    }
}

#[test]
fn spans_that_call_each_other_in_a_circle_end() {
    let mut one = plain("x", "y");
    one.attributes = said("x", (0, 1), (3, 4), "").attributes;
    let own = TestSpan { parent: "z", id: "z", ..one.clone() };
    let circle =
        [plain("p", "q"), plain("q", "p"), TestSpan { id: "w", parent: "p", ..one.clone() }, own];
    let loaded = load("t.json", document(&circle).to_string(), &TraceSelection::default()).unwrap();
    assert_eq!(requests(&loaded), [(0.0, 3, 4), (0.0, 3, 4)]);
}
