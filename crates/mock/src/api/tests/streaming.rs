//! Streams, exactly and against whole answers.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::faults::{Quirks, RoleShape};

#[test]
fn a_chat_is_written_like_this() {
    let more = json!({"max_tokens": 3, "stream": true, "seed": 1, "stream_options": {"include_usage": true}});
    let out = stream(&chat(&more), Some(2), &AnswerBehavior::default(), 1);
    let start = r#"data: {"id":"chatcmpl-b7707c0eb6fcf054","object":"chat.completion.chunk","created":1794711920,"model":"mock","choices":["#;
    let rest = [
        r#"{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,"prompt_text":null}"#,
        r#"{"index":0,"delta":{"content":"FIRST"},"logprobs":null,"finish_reason":null,"token_ids":null}]}"#,
        r#"{"index":0,"delta":{"content":"SECOND"},"logprobs":null,"finish_reason":null,"token_ids":null}]}"#,
        r#"{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"stop","stop_reason":null,"token_ids":null}]}"#,
        r#"],"usage":{"prompt_tokens":5,"total_tokens":7,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3}},"system_fingerprint":"goodput-mock-0.1.0"}"#,
    ];
    let words = plans(&chat(&more), Some(2), &AnswerBehavior::default());
    let mut expected: String = rest.map(|rest| format!("{start}{rest}\n\n")).concat();
    expected =
        expected.replace("FIRST", words[0].token_text(0)).replace("SECOND", words[0].token_text(1));
    assert_eq!(out, expected + "data: [DONE]\n\n");
}

#[test]
fn a_completion_is_written_like_this() {
    let ask = completion(&json!({"max_tokens": 3, "stream": true}));
    let out = stream(&ask, None, &AnswerBehavior::default(), 2);
    let plan = &plans(&ask, None, &AnswerBehavior::default())[0];
    let text = [
        plan.token_text(0).to_owned() + plan.token_text(1),
        plan.token_text(2).to_owned(),
        String::new(),
    ];
    let mut expected = String::new();
    for (text, finish) in text.iter().zip(["null", "null", "\"length\""]) {
        let print =
            if finish == "null" { "" } else { r#","system_fingerprint":"goodput-mock-0.1.0""# };
        let event = format!(
            r#"data: {{"id":"cmpl-b7707c0eb6fcf054","object":"text_completion","created":1794711920,"model":"mock","choices":[{{"index":0,"text":"{text}","logprobs":null,"finish_reason":{finish},"stop_reason":null,"prompt_token_ids":null,"token_ids":null}}]{print}}}"#
        );
        expected += &event;
        expected += "\n\n";
    }
    assert_eq!(out, expected + "data: [DONE]\n\n");
}

#[test]
fn a_model_s_name_is_escaped() {
    let head = EventHead { model: "a\"\\b\n", ..HEAD };
    let ask = chat(&json!({"max_tokens": 1}));
    let mut writer = StreamWriter::new(
        &head,
        &ask,
        plans(&ask, None, &AnswerBehavior::default()),
        &AnswerBehavior::default(),
    );
    let mut out = Vec::new();
    writer.write_tokens(0, 0, 1, &mut out);
    assert_eq!(events(std::str::from_utf8(&out).unwrap())[0]["model"], head.model);
}

#[test]
fn tool_calls_begin_with_a_name_and_end_as_json() {
    let tools = json!([{"type": "function", "function": {"name": "find\"it"}}]);
    let more = json!({"tools": tools, "tool_choice": "required", "max_tokens": 5});
    let behavior = AnswerBehavior { reasoning: 0.4, ..AnswerBehavior::default() };
    let ask = chat(&more);
    let deltas: Vec<_> = events(&stream(&ask, None, &behavior, 1))
        .iter()
        .map(|event| event["choices"][0]["delta"].clone())
        .collect();
    assert_eq!(deltas.len(), 1 + 2 + 1 + 3 + 1);
    assert!(deltas[1]["reasoning_content"].is_string());
    let call = &deltas[3]["tool_calls"][0];
    assert_eq!(call["function"], json!({"name": "find\"it", "arguments": ""}));
    assert_eq!((&call["index"], &call["type"]), (&json!(0), &json!("function")));
    assert!(
        deltas[4]["tool_calls"][0]["function"]["arguments"]
            .as_str()
            .unwrap()
            .starts_with(r#"{"query":" "#)
    );
    let (heard, _) = heard_whole(&ask, None, &behavior);
    let arguments: Value = serde_json::from_str(&heard[0].arguments).unwrap();
    let plan = &plans(&ask, None, &behavior)[0];
    let words: String = (2..5).map(|index| plan.token_text(index)).collect();
    assert_eq!(arguments, json!({"query": words}));
    assert_eq!(heard[0].finish.as_deref(), Some("tool_calls"));
}

#[test]
fn reasoning_may_have_another_name() {
    let behavior = AnswerBehavior {
        reasoning: 0.5,
        reasoning_field: "reasoning",
        ..AnswerBehavior::default()
    };
    let ask = chat(&json!({"max_tokens": 4}));
    let events = events(&stream(&ask, None, &behavior, 4));
    // One event across the border carries both.
    let delta = events[1]["choices"][0]["delta"].as_object().unwrap();
    assert_eq!(delta.keys().collect::<Vec<_>>(), ["content", "reasoning"]);
}

/// Every path of names in a value; lists count as their elements.
fn paths(value: &Value, at: &str, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = format!("{at}.{name}");
                out.insert(path.clone());
                paths(value, &path, out);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| paths(item, at, out)),
        _ => {}
    }
}

fn all_paths(events: &[Value]) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for event in events {
        paths(event, "", &mut out);
    }
    out
}

#[test]
fn streams_have_every_key_that_vllm_s_have() {
    let usage = json!({"include_usage": true});
    let continuous = json!({"include_usage": true, "continuous_usage_stats": true});
    let cases = [
        ("vllm-chat", AnswerKind::Chat, json!({"stream_options": usage})),
        ("vllm-chat-nousage", AnswerKind::Chat, json!({})),
        ("vllm-chat-n2", AnswerKind::Chat, json!({"n": 2, "stream_options": usage})),
        ("vllm-chat-contusage", AnswerKind::Chat, json!({"stream_options": continuous})),
        ("vllm-chat-logprobs", AnswerKind::Chat, json!({"logprobs": true, "top_logprobs": 1})),
        ("vllm-chat-tokenids", AnswerKind::Chat, json!({"return_token_ids": true})),
        (
            "vllm-chat-streaminterval4",
            AnswerKind::Chat,
            json!({"return_token_ids": true, "stream_options": usage}),
        ),
        ("vllm-completions", AnswerKind::Completion, json!({"stream_options": usage})),
    ];
    for (name, kind, more) in cases {
        let path = format!("{}/../wire/tests/samples/{name}.sse", env!("CARGO_MANIFEST_DIR"));
        let theirs = events(&std::fs::read_to_string(path).unwrap());
        let more = with(json!({"stream": true, "max_tokens": 4}), &more);
        let ask = if kind == AnswerKind::Chat { chat(&more) } else { completion(&more) };
        let behavior = AnswerBehavior { reasoning: 0.5, ..AnswerBehavior::default() };
        let ours = events(&stream(&ask, None, &behavior, 1));
        let (ours, theirs) = (all_paths(&ours), all_paths(&theirs));
        let is_null_there = ".usage.completion_tokens_details";
        let missing: Vec<_> = theirs
            .difference(&ours)
            .filter(|path| kind == AnswerKind::Chat || !path.starts_with(is_null_there))
            .collect();
        assert_eq!(missing, [""; 0], "{name}");
    }
}

#[derive(Debug, Clone)]
struct Options {
    is_chat: bool,
    body: Value,
    behavior: AnswerBehavior,
    natural: Option<u32>,
    step: u32,
}

fn quirks() -> impl Strategy<Value = Quirks> {
    let roles = prop::sample::select(vec![
        RoleShape::Empty,
        RoleShape::Null,
        RoleShape::Bare,
        RoleShape::Absent,
        RoleShape::WithFirst,
    ]);
    (any::<[bool; 5]>(), roles, prop::option::of(0u32..12)).prop_map(
        |(flags, role, early_eos_at)| {
            let [crlf, no_space, utf8, pings, wrong_usage] = flags;
            Quirks {
                crlf,
                no_space,
                role,
                wrong_usage,
                utf8,
                pings,
                early_eos_at,
                ..Quirks::default()
            }
        },
    )
}

fn body(is_chat: bool) -> impl Strategy<Value = Value> {
    let prompts = prop::sample::select(vec![
        json!("say \"it\" é\n"),
        json!(["one", "two 22"]),
        json!([1, 20, 300_000]),
        json!([[5, 6], [7]]),
    ]);
    let stops = prop::sample::select(vec![
        json!(null),
        json!("e"),
        json!([" the", "er "]),
        json!([" of", "nd ", "…", "ö"]),
    ]);
    let tool_choices = prop::sample::select(vec![
        json!(null),
        json!("none"),
        json!("auto"),
        json!("required"),
        json!({"type": "function", "function": {"name": "b"}}),
    ]);
    let numbers =
        (1u32..4, prop::option::of(1u32..30), 0u32..30, prop::option::of(0u8..4), any::<i64>());
    (prompts, stops, tool_choices, numbers, any::<[bool; 6]>()).prop_map(
        move |(prompt, stop, tool_choice, (n, limit, least, top, seed), flags)| {
            let [echo, usage, continuous, ids, has_tools, ignore_eos] = flags;
            let mut body = json!({
                "n": n, "max_tokens": limit, "min_tokens": least.min(limit.unwrap_or(30)),
                "stop": stop, "seed": seed, "ignore_eos": ignore_eos, "stream": true,
                "return_token_ids": ids,
                "stream_options": {"include_usage": usage, "continuous_usage_stats": continuous},
            });
            if is_chat {
                body["messages"] = json!([{"role": "user", "content": "hi"}]);
                body["logprobs"] = json!(top.is_some());
                body["top_logprobs"] = json!(top);
                if has_tools {
                    body["tools"] =
                        ["a", "b"].map(|name| json!({"function": {"name": name}})).into();
                    body["tool_choice"] = tool_choice;
                }
            } else {
                body["prompt"] = prompt;
                body["logprobs"] = json!(top);
                body["echo"] = json!(echo);
            }
            body
        },
    )
}

fn options() -> impl Strategy<Value = Options> {
    let shares = prop::sample::select(vec![0.0, 0.3, 0.5, 1.0]);
    let behavior =
        (shares.clone(), shares, quirks()).prop_map(|(reasoning, tool_calls, quirks)| {
            AnswerBehavior { reasoning, tool_calls, quirks, ..AnswerBehavior::default() }
        });
    let natural = prop::option::of(0u32..40);
    let bodies = any::<bool>().prop_flat_map(|is_chat| (Just(is_chat), body(is_chat)));
    (bodies, behavior, natural, 1u32..6).prop_map(|((is_chat, body), behavior, natural, step)| {
        Options { is_chat, body, behavior, natural, step }
    })
}

proptest! {
    #[test]
    fn streams_say_what_whole_answers_say(options in options()) {
        let kind = if options.is_chat { AnswerKind::Chat } else { AnswerKind::Completion };
        let ask = read(kind, &options.body).unwrap();
        let out = stream(&ask, options.natural, &options.behavior, options.step);
        let events = events(&out);
        let (whole, body) = heard_whole(&ask, options.natural, &options.behavior);
        let streamed = heard(&ask, &events);
        let plans = plans(&ask, options.natural, &options.behavior);
        // Nothing generated: no event of a token to carry the prompt's logprobs.
        if ask.echo && ask.logprobs.is_some() && plans.iter().any(|plan| plan.tokens == 0) {
            return Ok(());
        }
        prop_assert_eq!(&streamed, &whole);
        prop_assert!(data(&out).last().is_some_and(|last| last == "[DONE]"));
        let last = events.last().unwrap();
        prop_assert_eq!(last["system_fingerprint"].as_str(), Some("goodput-mock-0.1.0"));
        if ask.include_usage {
            prop_assert_eq!(&last["usage"], &body["usage"]);
            prop_assert_eq!(&last["choices"], &json!([]));
        }
        for (heard, plan) in whole.iter().zip(&plans) {
            prop_assert_eq!(heard.finish.as_deref(), Some(plan.finish.name()));
            prop_assert_eq!(heard.function.as_ref(), plan.tool.as_ref());
            prop_assert!(plan.tool.is_none() || serde_json::from_str::<Value>(&heard.arguments).is_ok());
            if ask.return_token_ids {
                prop_assert_eq!(heard.token_ids.len(), plan.tokens as usize);
            }
            for stop in ask.stop.iter().filter(|_| ask.min_tokens == 0 && !ask.echo) {
                prop_assert!(!heard.text.contains(stop.as_str()));
            }
        }
        for event in events.iter().filter(|_| ask.continuous_usage) {
            prop_assert!(event["usage"].is_object());
        }
        let prompt_ids = events[0]["prompt_token_ids"].is_array()
            || events[0]["choices"][0]["prompt_token_ids"].is_array();
        let is_there = ask.return_token_ids && plans[0].tokens > 0;
        prop_assert!(prompt_ids || !is_there || plans[0].tool.is_some());
    }
}
