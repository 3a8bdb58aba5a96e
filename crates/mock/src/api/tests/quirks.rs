//! Each quirk, and that it is the only thing that changes.

use super::*;
use crate::faults::{Quirks, RoleShape};

fn stream_with(quirks: Quirks) -> String {
    let more = json!({"max_tokens": 4, "stream": true, "seed": 5, "stream_options": {"include_usage": true}});
    let behavior = AnswerBehavior { quirks, ..AnswerBehavior::default() };
    stream(&chat(&more), None, &behavior, 1)
}

fn plain() -> String {
    stream_with(Quirks::default())
}

fn text(stream: &str) -> String {
    heard(&chat(&json!({})), &events(stream)).remove(0).text
}

#[test]
fn lines_may_end_otherwise() {
    assert_eq!(
        stream_with(Quirks { crlf: true, ..Quirks::default() }),
        plain().replace('\n', "\r\n")
    );
    assert_eq!(
        stream_with(Quirks { no_space: true, ..Quirks::default() }),
        plain().replace("data: ", "data:")
    );
    let pings = stream_with(Quirks { pings: true, ..Quirks::default() });
    assert_eq!(pings, plain().replace("data: ", ": ping\n\ndata: "));
}

#[test]
fn roles_come_in_five_ways() {
    let first = |role| {
        events(&stream_with(Quirks { role, ..Quirks::default() }))[0]["choices"][0]["delta"].clone()
    };
    let word = text(&plain()).split_inclusive(' ').nth(1).unwrap().trim().to_owned();
    let word = format!(" {word}");
    assert_eq!(first(RoleShape::Empty), json!({"role": "assistant", "content": ""}));
    assert_eq!(first(RoleShape::Null), json!({"role": "assistant", "content": null}));
    assert_eq!(first(RoleShape::Bare), json!({"role": "assistant"}));
    assert_eq!(first(RoleShape::Absent), json!({"content": word}));
    assert_eq!(first(RoleShape::WithFirst), json!({"role": "assistant", "content": word}));
    for role in [RoleShape::Null, RoleShape::Bare, RoleShape::Absent, RoleShape::WithFirst] {
        let stream = stream_with(Quirks { role, ..Quirks::default() });
        assert_eq!(text(&stream), text(&plain()));
        let is_apart = matches!(role, RoleShape::Null | RoleShape::Bare);
        assert_eq!(stream.matches("assistant").count(), usize::from(role != RoleShape::Absent));
        assert_eq!(events(&stream).len(), 6 + usize::from(is_apart));
    }
}

#[test]
fn text_may_come_whole_each_time() {
    let events = events(&stream_with(Quirks { cumulative: true, ..Quirks::default() }));
    let whole = text(&plain());
    let said: Vec<_> = events
        .iter()
        .filter_map(|event| event["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(said.len(), 6);
    for pair in said.windows(2) {
        assert!(pair[1].starts_with(pair[0]));
    }
    assert_eq!((said[4], said[5]), (whole.as_str(), whole.as_str()));
}

#[test]
fn an_answer_in_one_piece_may_lack_its_finish_reason() {
    let quirks = Quirks { no_finish: true, ..Quirks::default() };
    let behavior = AnswerBehavior { quirks, ..AnswerBehavior::default() };
    let body = heard_whole(&chat(&json!({})), None, &behavior).1;
    assert_eq!(body["choices"][0]["finish_reason"], json!(null));
    assert!(body["choices"][0]["message"]["content"].is_string());
}

#[test]
fn usage_may_lack_or_lie() {
    let none = stream_with(Quirks { no_usage: true, ..Quirks::default() });
    assert!(!none.contains("usage") && none.contains("[DONE]"));
    let wrong = events(&stream_with(Quirks { wrong_usage: true, ..Quirks::default() }));
    assert_eq!(wrong.last().unwrap()["usage"]["completion_tokens"], 15);
    let none = stream_with(Quirks { no_done: true, ..Quirks::default() });
    assert_eq!(none + "data: [DONE]\n\n", plain());
    let behavior = AnswerBehavior {
        quirks: Quirks { no_usage: true, ..Quirks::default() },
        ..AnswerBehavior::default()
    };
    assert!(heard_whole(&chat(&json!({})), None, &behavior).1.get("usage").is_none());
}

#[test]
fn usage_may_be_of_another_tokenizer() {
    let behavior =
        AnswerBehavior { token_factor: 1.6, reasoning: 0.5, ..AnswerBehavior::default() };
    let with_usage = json!({"include_usage": true, "continuous_usage_stats": true});
    let more = json!({"max_tokens": 4, "seed": 5});
    let ask = chat(&with(more.clone(), &json!({"stream": true, "stream_options": with_usage})));
    // A prompt of 5, 3 of it cached, and 4 tokens one by one, the first 2 of them reasoning.
    let usage = |completion: u64, reasoning: u64| {
        json!({
            "prompt_tokens": 8, "completion_tokens": completion, "total_tokens": 8 + completion,
            "prompt_tokens_details": {"cached_tokens": 5},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        })
    };
    let streamed = events(&stream(&ask, None, &behavior, 1));
    let streamed: Vec<_> = streamed.iter().map(|event| event["usage"].clone()).collect();
    let counts = [(0, 0), (2, 2), (3, 3), (5, 3), (6, 3), (6, 3), (6, 3)];
    assert_eq!(streamed, counts.map(|(completion, reasoning)| usage(completion, reasoning)));
    let plain = AnswerBehavior { token_factor: 1.0, ..behavior };
    let whole = |behavior| heard_whole(&chat(&more), None, behavior).1;
    let (one, other) = (whole(&plain), whole(&behavior));
    assert_eq!(
        (&one["usage"]["prompt_tokens"], &other["usage"]["prompt_tokens"]),
        (&json!(5), &json!(8))
    );
    assert_eq!(other["usage"]["completion_tokens"], 6);
    // Only the count is another.
    assert_eq!(one["choices"], other["choices"]);
}

#[test]
fn json_may_break_off() {
    let cut = data(&stream_with(Quirks { truncated_json_at: Some(2), ..Quirks::default() }));
    let right = data(&plain());
    assert_eq!(cut.len(), right.len());
    for (at, (cut, right)) in cut.iter().zip(&right).enumerate() {
        if at == 3 {
            assert!(serde_json::from_str::<Value>(cut).is_err() && right.starts_with(cut.as_str()));
            assert!(cut.len() > 50);
        } else {
            assert_eq!(cut, right);
        }
    }
}

#[test]
fn errors_end_the_stream() {
    for at in 0..4 {
        let stream = stream_with(Quirks { error_at: Some(at), ..Quirks::default() });
        let events = events(&stream);
        assert_eq!(events.len(), 1 + at as usize + 1);
        assert_eq!(events.last().unwrap()["error"]["type"], "server_error");
        assert!(
            !stream.contains("[DONE]")
                && !stream.contains("usage")
                && !stream.contains("\"length\"")
        );
    }
    assert_eq!(stream_with(Quirks { error_at: Some(4), ..Quirks::default() }), plain());
    // Tokens before the error in the same event are not lost.
    let quirks = Quirks { error_at: Some(2), ..Quirks::default() };
    let behavior = AnswerBehavior { quirks, ..AnswerBehavior::default() };
    assert_eq!(events(&stream(&chat(&json!({"max_tokens": 4})), None, &behavior, 4)).len(), 3);
}

#[test]
fn answers_may_end_early() {
    for at in [0, 1, 3] {
        let stream = stream_with(Quirks { early_eos_at: Some(at), ..Quirks::default() });
        let events = events(&stream);
        assert_eq!(events.len(), 1 + at as usize + 2);
        assert_eq!(events.last().unwrap()["usage"]["completion_tokens"], at);
        assert!(stream.contains(r#""finish_reason":"stop""#));
    }
    assert_eq!(stream_with(Quirks { early_eos_at: Some(4), ..Quirks::default() }), plain());
}

#[test]
fn words_may_have_long_characters() {
    let events = events(&stream_with(Quirks { utf8: true, ..Quirks::default() }));
    for event in &events[1..5] {
        assert!(!event["choices"][0]["delta"]["content"].as_str().unwrap().is_ascii());
    }
}

#[test]
fn the_first_event_may_be_huge() {
    let stream = stream_with(Quirks { huge_event: Some(10_000), ..Quirks::default() });
    let sizes: Vec<_> = stream.split_inclusive("\n\n").map(str::len).collect();
    let right: Vec<_> = plain().split_inclusive("\n\n").map(str::len).collect();
    assert_eq!(sizes[1], 10_000);
    assert_eq!((sizes[0], &sizes[2..]), (right[0], &right[2..]));
    assert_eq!(events(&stream).len(), 7);
    assert_eq!(stream_with(Quirks { huge_event: Some(5), ..Quirks::default() }), plain());
    let behavior = AnswerBehavior {
        reasoning: 1.0,
        quirks: Quirks { huge_event: Some(999), ..Quirks::default() },
        ..AnswerBehavior::default()
    };
    let stream = super::stream(&chat(&json!({"max_tokens": 4})), None, &behavior, 2);
    let sizes: Vec<_> = stream.split_inclusive("\n\n").map(str::len).collect();
    assert_eq!(sizes[1], 999);
    assert!(sizes[2] < 300);
    events(&stream);
}

#[test]
fn an_error_from_outside_is_the_last_event() {
    let ask = chat(&json!({"max_tokens": 2}));
    let behavior = AnswerBehavior::default();
    let mut writer = StreamWriter::new(&HEAD, &ask, plans(&ask, None, &behavior), &behavior);
    let mut out = Vec::new();
    assert!(!writer.is_over());
    writer.write_error(&ApiRefusal::overloaded("gone", None), &mut out);
    assert!(writer.is_over());
    writer.write_role(0, &mut out);
    writer.write_tokens(0, 0, 1, &mut out);
    writer.write_finish(0, &mut out);
    writer.write_usage(&mut out);
    writer.write_done(&mut out);
    // Choices that do not exist are ignored.
    writer.write_tokens(9, 0, 1, &mut out);
    let expected = r#"data: {"error":{"message":"gone","type":"overloaded_error","param":null,"code":"overloaded"}}"#;
    assert_eq!(String::from_utf8(out).unwrap(), format!("{expected}\n\n"));
}
