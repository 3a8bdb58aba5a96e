//! Whatever comes: a row, never a panic, and never a word of it on disk.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use goodput_dataset::{TraceHead, TraceRow, TraceSelection, TraceWriter, load_trace};
use goodput_live::rows::{Recorder, RowSettings};
use goodput_model::{Api, Exchange, Nanos};
use goodput_tokens::Tokenizer;
use proptest::prelude::*;
use serde_json::{Value, json};

fn recorder() -> Recorder {
    let tokenizer = Tokenizer::builtin("approximate").unwrap();
    Recorder::new(RowSettings { tokenizer, block_tokens: 4, salt: [7; 32], save_text: false })
}

/// The row of a body, answered with this text.
fn row(body: &[u8], said: &str, session: Option<&str>) -> TraceRow {
    let mut recorder = recorder();
    let question = recorder.start_row(Nanos(1), Api::Chat, body, session);
    let text = Some(said.to_owned());
    let exchange = Exchange { text, status: Some(200), ..Exchange::default() };
    recorder.finish_row(question, Nanos::ZERO, &exchange)
}

fn written(row: &TraceRow) -> String {
    let head = TraceHead { block_tokens: Some(4), ..TraceHead::default() };
    let mut writer = TraceWriter::with_head(Vec::new(), &head).unwrap();
    writer.write(row).unwrap();
    String::from_utf8(writer.into_inner()).unwrap()
}

/// A row is read back, or left out for a reason that is not an error.
fn is_readable(text: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    std::fs::write(&path, text).unwrap();
    if let Err(error) = load_trace(&path, &TraceSelection::default()) {
        assert!(error.to_string().contains("unknown length"), "{error}");
    }
}

/// Values that bodies may hold where something else is expected.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        let key = prop_oneof![
            Just("role".to_owned()),
            Just("content".to_owned()),
            Just("type".to_owned()),
            Just("text".to_owned()),
            Just("tool_calls".to_owned()),
            ".{0,6}",
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::hash_map(key, inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_bytes_are_a_row(body in proptest::collection::vec(any::<u8>(), 0..400)) {
        is_readable(&written(&row(&body, "x", None)));
    }

    #[test]
    fn any_json_in_any_place_is_a_row(
        values in proptest::collection::vec(any_value(), 6),
        session in proptest::option::of(".{0,10}"),
    ) {
        let names = ["messages", "prompt", "model", "tools", "max_tokens", "response_format"];
        let body: Value = names.iter().zip(values).map(|(name, v)| (*name, v)).collect();
        is_readable(&written(&row(body.to_string().as_bytes(), "x", session.as_deref())));
    }

    /// Words in letters that no name of a field has.
    #[test]
    fn no_eight_bytes_of_any_text_are_written(
        words in proptest::collection::vec("[A-ZÄÖÜЖЩЯ水火]{8,40}", 8),
    ) {
        let [system, user, part, tool, answer, arguments, session, model] = words.as_slice() else {
            unreachable!()
        };
        let body = json!({
            "model": format!("{model} {model}"),
            "user": user,
            "stop": [user, part],
            "metadata": {"who": user},
            "tools": [{"type": "function", "function": {"name": tool, "description": tool}}],
            "tool_choice": {"function": {"name": tool}},
            "messages": [
                {"role": "system", "content": system},
                {"role": "user", "name": user, "content": [
                    {"type": "text", "text": part},
                    {"type": "image_url", "image_url": {"url": part}}
                ]},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": tool, "function": {"name": tool, "arguments": arguments}}
                ]},
                {"role": "tool", "tool_call_id": tool, "content": arguments},
                {"role": tool, "content": user}
            ]
        });
        let text = written(&row(body.to_string().as_bytes(), answer, Some(session)));
        prop_assert!(text.contains("\"blocks\":["));
        for word in &words {
            for piece in word.as_bytes().windows(8) {
                let is_there = text.as_bytes().windows(8).any(|bytes| bytes == piece);
                prop_assert!(!is_there, "{word} in {text}");
            }
        }
    }
}

#[test]
fn nesting_without_end_is_a_row() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}1{}", open.repeat(50_000), close.repeat(50_000));
        let message = format!(r#"{{"role":"user","content":{deep}}}"#);
        let body = format!(r#"{{"model":"m","messages":[{message}],"tools":{deep}}}"#);
        let row = row(body.as_bytes(), "x", None);
        assert_eq!(row.model.as_deref(), Some("m"));
        is_readable(&written(&row));
    }
}
