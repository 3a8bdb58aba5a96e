//! LiteLLM's payloads and its table of spending.

use goodput_dataset::{FileKind, TraceFormat, TraceSelection, file_kind};
use serde_json::{Value, json};

use super::{classes, load, options, requests, sessions, took, written};
use crate::common::file;

/// A payload as LiteLLM gives it to its loggers.
fn payload(start: &Value, end: &Value, tokens: (u32, u32), session: &str) -> Value {
    json!({
        "id": "chatcmpl-1", "trace_id": session, "call_type": "acompletion", "stream": true,
        "response_cost": 0.001, "status": "success", "custom_llm_provider": "openai",
        "total_tokens": tokens.0 + tokens.1, "prompt_tokens": tokens.0,
        "completion_tokens": tokens.1, "startTime": start, "endTime": end,
        "completionStartTime": start, "model": "openai/m-8b", "model_group": "m-8b",
        "api_base": "http://10.0.0.9:8000", "metadata": {"user_api_key_alias": "ann's key"},
        "cache_hit": null, "end_user": "ann@example.com", "requester_ip_address": "192.0.2.7",
        "messages": [{"role": "user", "content": "the secret words"}],
        "response": {"choices": [{"message": {"content": "a secret answer"}}]},
        "error_information": {"error_code": ""}, "request_tags": ["User-Agent: curl"],
    })
}

fn with(mut payload: Value, name: &str, value: impl Into<Value>) -> Value {
    payload[name] = value.into();
    payload
}

fn lines(rows: &[Value]) -> String {
    rows.iter().map(Value::to_string).collect::<Vec<_>>().join("\n") + "\n"
}

/// 2026-11-16 09:09:05 UTC
const START: f64 = 1_794_820_145.0;

fn rows() -> Vec<Value> {
    let at = |s: f64| json!(START + s);
    vec![
        payload(&at(0.25), &at(1.5), (100, 20), "ann-7"),
        // It began before the line above it.
        payload(&at(0.0), &at(0.125), (5, 1), "bob-1"),
        with(payload(&at(1.0), &at(2.0), (7, 7), "x"), "status", "failure"),
        with(payload(&at(1.0), &at(2.0), (7, 7), "x"), "cache_hit", true),
        with(payload(&at(1.0), &at(2.0), (7, 0), "x"), "call_type", "aembedding"),
        payload(&at(1.0), &at(2.0), (7, 0), "x"),
        payload(&at(3.5), &at(3.0), (120, 30), "ann-7"),
    ]
}

#[test]
fn payloads_give_arrivals_lengths_and_sessions() {
    let loaded = load("l.jsonl", lines(&rows()), &TraceSelection::default()).unwrap();
    assert_eq!((loaded.format, loaded.seen, loaded.block_tokens), ("litellm", 7, None));
    assert_eq!(requests(&loaded), [(0.0, 5, 1), (250.0, 100, 20), (3500.0, 120, 30)]);
    // An end before the start says nothing.
    assert_eq!(took(&loaded), [Some(125.0), Some(1250.0), None]);
    assert_eq!(sessions(&loaded), [None, Some("1"), Some("1")]);
    assert_eq!(classes(&loaded), [Some("m-8b"); 3]);
    let skipped: Vec<(&str, u64)> = loaded.skipped.iter().map(|(s, n)| (s.as_str(), *n)).collect();
    let expected = [
        ("answered by LiteLLM's own cache", 1),
        ("failed when it was recorded", 1),
        ("not a generation", 1),
        ("without token counts", 1),
    ];
    assert_eq!(skipped, expected);
    assert_eq!(loaded.notes, ["1 rows were out of order and have been sorted"]);
}

#[test]
fn nothing_that_people_wrote_passes() {
    let loaded = load("l.jsonl", lines(&rows()), &TraceSelection::default()).unwrap();
    let text = written(&loaded);
    for word in ["secret", "ann", "bob", "192.0.2.7", "10.0.0.9", "chatcmpl", "curl"] {
        assert!(!text.contains(word), "{word}");
    }
    // Not even of lines that cannot be read.
    let broken = lines(&rows())
        + "{\"messages\":\"the secret words\n"
        + "ann \u{1}\n"
        + "{\"startTime\":\"ann\",\"prompt_tokens\":\"bob\",\"completion_tokens\":1}\n";
    let broken = [broken.as_bytes(), b"{\"end_user\":\"ann\xff\"}\n"].concat();
    let bytes = load("l.jsonl", b"{\"end_user\":\"ann\xff\"}\n", &options(TraceFormat::Litellm));
    assert_eq!(bytes.unwrap_err(), "l.jsonl, line 1: is not UTF-8");
    let skipping = TraceSelection { skip_invalid: true, ..options(TraceFormat::Litellm) };
    let loaded = load("l.jsonl", &broken, &skipping).unwrap();
    assert_eq!(loaded.skipped["not readable"], 4);
    assert_eq!(loaded.notes.len(), 2);
    let refused = load("l.jsonl", &broken, &options(TraceFormat::Litellm)).unwrap_err();
    // Nor of a file of unknown form: at most its fields are named.
    let any = TraceSelection::default();
    let object = load("l.jsonl", "{\"end_user\":\"bob\"}\n", &any).unwrap_err();
    assert!(object.contains("its first object has `end_user`"), "{object}");
    let unknown = ["{\"end_user\":\"bob\n", "192.0.2.7 - bob [16/Nov/2026]\n"]
        .map(|text| load("l.jsonl", text, &any).unwrap_err());
    let bytes = load("l.jsonl", b"{\"end_user\":\"bob\xff\"}\n", &any).unwrap_err();
    for text in unknown.into_iter().chain([object, bytes]) {
        assert!(!text.contains("bob"), "{text}");
    }
    for text in [written(&loaded), refused] {
        for word in ["secret", "ann", "bob"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
    }
}

#[test]
fn instants_in_any_unit_and_zone() {
    let start = [
        json!(START),
        json!(START * 1e3),
        json!("2026-11-16T09:09:05Z"),
        json!("2026-11-16T10:09:05.000+01:00"),
        json!("2026-11-16 09:09:05"),
        json!("2026-11-16T03:39:05-05:30"),
    ];
    for start in start {
        let rows =
            [payload(&json!(START), &start, (1, 1), "a"), payload(&start, &start, (2, 2), "b")];
        let loaded = load("l.jsonl", lines(&rows), &TraceSelection::default()).unwrap();
        assert_eq!(requests(&loaded), [(0.0, 1, 1), (0.0, 2, 2)], "{start}");
        assert_eq!(took(&loaded), [Some(0.0); 2], "{start}");
    }
    // An hour that is shown twice when summer time ends, told by its zone.
    let hour = |zone: &str| json!(format!("2026-10-25T02:30:00{zone}"));
    let rows = [
        payload(&hour("+01:00"), &hour("+01:00"), (1, 1), "a"),
        payload(&hour("+02:00"), &hour("+01:00"), (2, 2), "b"),
    ];
    let loaded = load("l.jsonl", lines(&rows), &TraceSelection::default()).unwrap();
    assert_eq!(requests(&loaded), [(0.0, 2, 2), (3_600_000.0, 1, 1)]);
}

#[test]
fn arrays_pages_and_wrapped_payloads_hold_the_same() {
    let expected = load("l.jsonl", lines(&rows()), &TraceSelection::default()).unwrap();
    let page = json!({"data": rows(), "total": 7, "page": 1});
    let wrapped: Vec<Value> =
        rows().iter().map(|row| json!({"kwargs": 1, "standard_logging_object": row})).collect();
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap();
    let files = [
        json!(rows()).to_string(),
        pretty(&json!(rows())),
        page.to_string(),
        pretty(&page),
        lines(&wrapped),
        rows().iter().map(pretty).collect::<Vec<_>>().join("\n"),
        lines(&rows()).replace("startTime", "start_time").replace("endTime", "end_time"),
    ];
    for text in files {
        let loaded = load("l.json", &text, &TraceSelection::default()).unwrap();
        assert_eq!(requests(&loaded), requests(&expected), "{text}");
        assert_eq!(sessions(&loaded), sessions(&expected));
        assert_eq!((loaded.seen, &loaded.skipped), (7, &expected.skipped));
        assert_eq!(file_kind(&file("l.json", &text).path), Ok(FileKind::Trace));
    }
}

#[test]
fn the_table_of_spending() {
    let text = "request_id,call_type,api_key,spend,total_tokens,prompt_tokens,completion_tokens,startTime,endTime,completionStartTime,model,model_group,user,metadata,cache_hit,request_tags,end_user,requester_ip_address,messages,session_id,status\n\
        r1,acompletion,88dc28d0,0.1,120,100,20,2026-11-16 09:09:05.25,2026-11-16 09:09:06.5,2026-11-16 09:09:05.5,openai/m,m,ann,\"{\"\"a\"\": 1}\",False,[],ann,192.0.2.7,\"[\n]\",s-1,success\n\
        r2,anthropic_messages,88dc28d0,0.1,6,5,1,2026-11-16 09:09:05,2026-11-16 09:09:05.125,,claude,,,{},None,[],,,{},s-1,\n\
        r3,acompletion,88dc28d0,0,0,0,0,2026-11-16 09:09:05,2026-11-16 09:09:05.125,,m,m,,{},None,[],,,{},,failure\n";
    let loaded = load("spend.csv", text, &TraceSelection::default()).unwrap();
    assert_eq!((loaded.format, loaded.seen), ("litellm", 3));
    assert_eq!(requests(&loaded), [(0.0, 5, 1), (250.0, 100, 20)]);
    assert_eq!(took(&loaded), [Some(125.0), Some(1250.0)]);
    assert_eq!(sessions(&loaded), [Some("1"); 2]);
    assert_eq!(classes(&loaded), [Some("claude"), Some("m")]);
    assert_eq!(loaded.skipped["failed when it was recorded"], 1);
    let renamed = text.replace("startTime", "start_time").replace("endTime", "end_time");
    let again = load("spend.csv", renamed, &TraceSelection::default()).unwrap();
    assert_eq!(requests(&again), requests(&loaded));
    let refused = load("spend.csv", "a,ann@example.com\n1,2\n", &options(TraceFormat::Litellm));
    assert_eq!(refused.unwrap_err(), "spend.csv, line 1: no column `startTime`");
}

#[test]
fn rows_that_cannot_be_read_are_refused_or_counted() {
    let good = payload(&json!(START), &json!(START), (1, 1), "a");
    let without = |name: &str| {
        let mut row = good.clone();
        row.as_object_mut().unwrap().remove(name);
        row
    };
    for (row, why) in [
        (
            with(good.clone(), "startTime", "soon").to_string(),
            "field `startTime` is not an instant",
        ),
        (
            with(good.clone(), "prompt_tokens", -1).to_string(),
            "field `prompt_tokens` is not a number of tokens from 0 to 10000000",
        ),
        (
            with(good.clone(), "completion_tokens", 1e9).to_string(),
            "field `completion_tokens` is not a number of tokens from 0 to 10000000",
        ),
        (without("startTime").to_string(), "no field `startTime`"),
        (good.to_string()[..40].to_owned(), "JSON ends too early at column 40"),
        ("[1]".to_owned(), "no JSON object"),
    ] {
        let text = format!("{good}\n{row}\n");
        let refused = load("l.jsonl", &text, &options(TraceFormat::Litellm)).unwrap_err();
        assert_eq!(refused, format!("l.jsonl, line 2: {why}"));
        let skipping = TraceSelection { skip_invalid: true, ..options(TraceFormat::Litellm) };
        let loaded = load("l.jsonl", &text, &skipping).unwrap();
        assert_eq!((loaded.entries.len(), loaded.skipped["not readable"]), (1, 1));
    }
}
