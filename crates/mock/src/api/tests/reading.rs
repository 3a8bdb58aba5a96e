//! What is accepted, what is refused and how.

use proptest::prelude::*;

use super::super::tokenizer::{self, decode_tokens, media_token};
use super::*;

fn refused(kind: AnswerKind, body: &Value) -> ApiRefusal {
    read(kind, body).expect_err(&body.to_string())
}

/// The refusal of a chat with these fields.
fn refused_chat(more: &Value) -> ApiRefusal {
    refused(
        AnswerKind::Chat,
        &with(json!({"messages": [{"role": "user", "content": "hello"}]}), more),
    )
}

#[test]
fn every_field_has_its_effect() {
    let ask = chat(&json!({
        "model": "mock", "n": 2, "stop": ["a", "b"], "max_tokens": 9, "min_tokens": 2,
        "ignore_eos": true, "stream": true,
        "stream_options": {"include_usage": true, "continuous_usage_stats": true},
        "logprobs": true, "top_logprobs": 3, "seed": -5, "return_token_ids": true,
        "temperature": 2, "top_p": 1, "top_k": -1, "presence_penalty": -2.0, "user": "me",
        "response_format": {"type": "json_object"}, "logit_bias": {"5": 1}, "x": [{}],
        "reasoning_effort": "low", "best_of": 3,
    }));
    assert_eq!((ask.n, ask.limit, ask.min_tokens, ask.logprobs), (2, Some(9), 2, Some(3)));
    assert_eq!((ask.stop.len(), ask.seed), (2, Some(-5)));
    assert!(ask.ignore_eos && ask.stream && ask.include_usage && ask.continuous_usage);
    assert!(ask.return_token_ids && ask.thinking && !ask.is_greedy);
    assert_eq!(decode_tokens(&ask.prompts[0]), "<|bos|><|user|>hello<|end|><|assistant|>");
}

#[test]
fn null_is_as_good_as_absent() {
    let names = [
        "model",
        "n",
        "stop",
        "max_tokens",
        "max_completion_tokens",
        "min_tokens",
        "ignore_eos",
        "stream",
        "stream_options",
        "logprobs",
        "top_logprobs",
        "seed",
        "return_token_ids",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "tools",
        "tool_choice",
        "reasoning_effort",
        "chat_template_kwargs",
        "user",
        "presence_penalty",
        "frequency_penalty",
    ];
    let nulls: Value = names.iter().map(|name| ((*name).to_owned(), Value::Null)).collect();
    assert_eq!(format!("{:?}", chat(&nulls)), format!("{:?}", chat(&json!({}))));
    let inner = json!({"stream": true, "stream_options": {"include_usage": null}});
    assert!(!chat(&inner).include_usage);
}

#[test]
fn bad_values_are_refused_by_name() {
    let cases = [
        (json!({"n": 0}), "n"),
        (json!({"n": 129}), "n"),
        (json!({"n": 1.5}), "n"),
        (json!({"max_tokens": 0}), "max_tokens"),
        (json!({"max_tokens": -1}), "max_tokens"),
        (json!({"max_tokens": "NaN"}), "max_tokens"),
        (json!({"max_tokens": u64::MAX}), "max_tokens"),
        (json!({"max_completion_tokens": 1e300}), "max_completion_tokens"),
        (json!({"max_tokens": 5, "min_tokens": 6}), "min_tokens"),
        (json!({"temperature": 2.1}), "temperature"),
        (json!({"temperature": -0.1}), "temperature"),
        (json!({"temperature": "hot"}), "temperature"),
        (json!({"top_p": 0}), "top_p"),
        (json!({"top_p": 1.01}), "top_p"),
        (json!({"min_p": 2}), "min_p"),
        (json!({"top_k": -2}), "top_k"),
        (json!({"presence_penalty": 3}), "presence_penalty"),
        (json!({"frequency_penalty": -3}), "frequency_penalty"),
        (json!({"repetition_penalty": 0}), "repetition_penalty"),
        (json!({"seed": "x"}), "seed"),
        (json!({"stream": 1}), "stream"),
        (json!({"stream_options": {}}), "stream_options"),
        (
            json!({"stream": true, "stream_options": {"include_usage": 1}}),
            "stream_options.include_usage",
        ),
        (json!({"stop": 5}), "stop"),
        (json!({"stop": [5]}), "stop"),
        (json!({"stop": ""}), "stop"),
        (json!({"stop": vec!["a"; 17]}), "stop"),
        (json!({"logprobs": true, "top_logprobs": 21}), "top_logprobs"),
        (json!({"top_logprobs": 1}), "top_logprobs"),
        (json!({"tools": {}}), "tools"),
        (json!({"tools": [{}]}), "tools[0].function.name"),
        (json!({"tool_choice": "required"}), "tool_choice"),
        (json!({"tool_choice": "sometimes"}), "tool_choice"),
        (json!({"tool_choice": {}}), "tool_choice"),
        (
            json!({"tools": [{"function": {"name": "a"}}], "tool_choice": {"function": {"name": "b"}}}),
            "tool_choice",
        ),
        (json!({"model": 5}), "model"),
        (json!({"messages": null}), "messages"),
        (json!({"messages": []}), "messages"),
        (json!({"messages": "hello"}), "messages"),
        (json!({"messages": [5]}), "messages[0]"),
        (json!({"messages": [{}]}), "messages[0].role"),
        (json!({"messages": [{"role": "pope", "content": "x"}]}), "messages[0].role"),
        (json!({"messages": [{"role": "user", "content": 5}]}), "messages[0].content"),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "smell"}]}]}),
            "messages[0].content",
        ),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
            "messages[0].content",
        ),
        (json!({"messages": [{"role": "assistant", "tool_calls": 5}]}), "messages[0].tool_calls"),
    ];
    for (more, name) in cases {
        let refusal = refused_chat(&more);
        assert_eq!(refusal.status, 400, "{more}");
        assert_eq!(refusal.param.as_deref(), Some(name), "{more}: {}", refusal.message);
        assert!(refusal.message.contains(name), "{more}: {}", refusal.message);
    }
}

#[test]
fn models_and_lengths_are_refused_with_what_would_do() {
    let refusal = refused_chat(&json!({"model": "nope"}));
    assert_eq!((refusal.status.as_u16(), refusal.code), (404, Some("model_not_found")));
    let refusal = refused_chat(&json!({"max_tokens": 4092}));
    assert_eq!((refusal.status.as_u16(), refusal.code), (400, Some("context_length_exceeded")));
    assert_eq!(refusal.param.as_deref(), Some("max_tokens"));
    for number in ["4096", "5", "4092"] {
        assert!(refusal.message.contains(number), "{}", refusal.message);
    }
    assert_eq!(chat(&json!({"max_tokens": 4091})).tokens_left_for(0), 4091);
    let refusal = refused(AnswerKind::Completion, &json!({"prompt": "a ".repeat(5000)}));
    assert_eq!(
        (refusal.code, refusal.param.as_deref()),
        (Some("context_length_exceeded"), Some("prompt"))
    );
    let refusal = refused(AnswerKind::Embedding, &json!({"input": ["a", "a ".repeat(5000)]}));
    assert_eq!(refusal.param.as_deref(), Some("input"));
}

#[test]
fn bodies_that_are_no_objects_are_refused() {
    let deep = format!("{{\"messages\":{}{}}}", "[".repeat(5000), "]".repeat(5000));
    let bodies: [&[u8]; 11] = [
        b"",
        b"[]",
        b"5",
        b"null",
        b"{",
        b"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\xfe\"}]}",
        b"\xef\xbb\xbf{}",
        b"{\"max_tokens\":1e309}",
        b"{\"max_tokens\":NaN}",
        b"{\"prompt\":\"\\ud800\"}",
        deep.as_bytes(),
    ];
    for body in bodies {
        for kind in [AnswerKind::Chat, AnswerKind::Completion, AnswerKind::Embedding] {
            let refusal = CheckedRequest::read(kind, body, &RULES).unwrap_err();
            assert_eq!((refusal.status.as_u16(), refusal.kind), (400, "invalid_request_error"));
        }
    }
    // Of two values the last counts.
    let twice = br#"{"prompt":"a","max_tokens":5,"max_tokens":6}"#;
    assert_eq!(CheckedRequest::read(AnswerKind::Completion, twice, &RULES).unwrap().limit, Some(6));
}

#[test]
fn content_may_be_parts() {
    let parts = json!([
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:A"}},
        {"type": "input_audio", "input_audio": {"data": "B", "format": "wav"}},
        {"type": "image_url", "image_url": {"url": "data:A"}},
    ]);
    let ask = chat(
        &json!({"messages": [{"role": "user", "content": parts}, {"role": "assistant", "content": null}]}),
    );
    let prompt = &ask.prompts[0];
    assert_eq!(prompt.len(), 2 + 1 + 300 + 1 + 2 + 1);
    let (a, b) = (media_token("data:A"), media_token("B"));
    assert!(prompt[3..103].iter().all(|id| *id == a) && prompt[103..203].iter().all(|id| *id == b));
    assert_eq!((prompt[203], prompt[302]), (a, a));
    // A short body cannot ask for more images than the context holds.
    let image = json!({"type": "image_url", "image_url": "x"});
    let refusal =
        refused_chat(&json!({"messages": [{"role": "user", "content": vec![image; 1000]}]}));
    assert_eq!(refusal.code, Some("context_length_exceeded"));
    // It stops at the first that does not fit: 2 tokens and 41 images.
    assert!(refusal.message.contains("4102 tokens or more"), "{}", refusal.message);
}

#[test]
fn prompts_come_in_four_forms() {
    let of =
        |prompt: Value| read(AnswerKind::Completion, &json!({"prompt": prompt, "n": 2})).unwrap();
    assert_eq!(of(json!("a b")).prompts[0].len(), 3);
    let two = of(json!(["a b", "c"]));
    assert_eq!((two.prompts.len(), two.choices(), two.prompt_tokens()), (2, 4, 5));
    assert_eq!(two.prompt_of(1), two.prompts.first());
    assert_eq!(two.prompt_of(2), two.prompts.get(1));
    assert_eq!(of(json!([7, 8])).prompts[0][..], [7, 8]);
    assert_eq!(of(json!([[7], [8, 9]])).prompts[1][..], [8, 9]);
    assert_eq!(of(json!("")).prompts[0][..], [tokenizer::BOS]);
    for bad in [
        json!(null),
        json!(5),
        json!({}),
        json!([]),
        json!([[]]),
        json!(["a", 5]),
        json!([5, "a"]),
        json!([[5], "a"]),
        json!([true]),
        json!([-1]),
        json!([1.5]),
        json!([1u64 << 31]),
        json!(vec!["a"; 2049]),
    ] {
        assert_eq!(
            refused(AnswerKind::Completion, &json!({"prompt": bad})).param.as_deref(),
            Some("prompt")
        );
    }
}

#[test]
fn embeddings_are_read_and_written() {
    let ask =
        read(AnswerKind::Embedding, &json!({"input": ["a", "b c"], "dimensions": 3})).unwrap();
    let body: Value = serde_json::from_slice(&embeddings_response(&HEAD, &ask)).unwrap();
    assert_eq!(body["usage"], json!({"prompt_tokens": 5, "total_tokens": 5}));
    assert_eq!((&body["object"], &body["model"]), (&json!("list"), &json!("mock")));
    let floats: Vec<f64> = serde_json::from_value(body["data"][1]["embedding"].clone()).unwrap();
    assert_eq!((body["data"][1]["index"].clone(), floats.len()), (json!(1), 3));
    let ask =
        read(AnswerKind::Embedding, &json!({"input": "b c", "encoding_format": "base64"})).unwrap();
    let body: Value = serde_json::from_slice(&embeddings_response(&HEAD, &ask)).unwrap();
    // 64 numbers of 4 bytes.
    assert_eq!(body["data"][0]["embedding"].as_str().unwrap().len(), (256usize).div_ceil(3) * 4);
    for (name, value) in
        [("dimensions", json!(0)), ("encoding_format", json!("hex")), ("input", json!(5))]
    {
        let refusal =
            refused(AnswerKind::Embedding, &with(json!({"input": "a"}), &json!({name: value})));
        assert_eq!(refusal.param.as_deref(), Some(name));
    }
}

#[test]
fn texts_are_tokenized_and_back() {
    let body = |body: Value| -> Value {
        serde_json::from_slice(&tokenize_response(body.to_string().as_bytes(), &RULES).unwrap())
            .unwrap()
    };
    let answer = body(json!({"prompt": "The load", "return_token_strs": true}));
    assert_eq!((&answer["count"], &answer["max_model_len"]), (&json!(3), &json!(4096)));
    assert_eq!(answer["token_strs"], json!(["<|bos|>", "The", " load"]));
    let bare = body(json!({"prompt": "The load", "add_special_tokens": false}));
    assert_eq!((&bare["count"], &bare["token_strs"]), (&json!(2), &Value::Null));
    let back =
        detokenize_response(json!({"tokens": bare["tokens"]}).to_string().as_bytes(), &RULES)
            .unwrap();
    assert_eq!(back, br#"{"prompt":"The load"}"#);
    let messages = json!([{"role": "user", "content": "hello"}]);
    let ids: Vec<u32> =
        serde_json::from_value(body(json!({"messages": messages}))["tokens"].clone()).unwrap();
    assert_eq!(ids[..], chat(&json!({})).prompts[0][..]);
    assert_eq!(body(json!({"messages": messages, "add_generation_prompt": false}))["count"], 4);
    for bad in [json!({}), json!({"prompt": 5}), json!({"model": "x", "prompt": "a"})] {
        assert!(tokenize_response(bad.to_string().as_bytes(), &RULES).is_err());
    }
    for bad in [json!({}), json!({"tokens": "a"}), json!({"tokens": [1u64 << 31]})] {
        assert!(detokenize_response(bad.to_string().as_bytes(), &RULES).is_err());
    }
    assert_eq!(detokenize_response(br#"{"tokens":[]}"#, &RULES).unwrap(), br#"{"prompt":""}"#);
}

#[test]
fn lists_of_models_and_versions_are_json() {
    let body: Value = serde_json::from_slice(&models_response(&HEAD, &RULES)).unwrap();
    assert_eq!(
        body,
        json!({"object": "list", "data": [{
            "id": "mock", "object": "model", "created": 1_794_711_920, "owned_by": "goodput",
            "root": "mock", "parent": null, "max_model_len": 4096,
        }]})
    );
    let loras = ["lora \"1\"".to_owned()];
    let rules = RequestRules { loras: &loras, ..RULES };
    let body: Value = serde_json::from_slice(&models_response(&HEAD, &rules)).unwrap();
    assert_eq!(body["data"][1]["id"], "lora \"1\"");
    assert_eq!(body["data"][1]["parent"], "mock");
    let adapted = json!({"model": "lora \"1\"", "prompt": "hi"}).to_string();
    assert!(CheckedRequest::read(AnswerKind::Completion, adapted.as_bytes(), &rules).is_ok());
    assert!(CheckedRequest::read(AnswerKind::Completion, adapted.as_bytes(), &RULES).is_err());
    let body: Value = serde_json::from_slice(&version_response()).unwrap();
    assert_eq!(body, json!({"version": "0.1.0"}));
}

/// Reads a body as every kind there is, and answers it if it can be; nothing may panic.
fn survives(body: &[u8]) -> Result<(), TestCaseError> {
    let mut refusals = Vec::new();
    for kind in [AnswerKind::Chat, AnswerKind::Completion, AnswerKind::Embedding] {
        match CheckedRequest::read(kind, body, &RULES) {
            Err(refusal) => refusals.push(refusal),
            Ok(ask) if kind == AnswerKind::Embedding => {
                prop_assert!(
                    serde_json::from_slice::<Value>(&embeddings_response(&HEAD, &ask)).is_ok()
                );
            }
            Ok(ask) if ask.choices() <= 4 => {
                heard_whole(&ask, Some(30), &AnswerBehavior::default());
                events(&stream(&ask, Some(30), &AnswerBehavior::default(), 3));
            }
            Ok(_) => {}
        }
    }
    refusals.extend(tokenize_response(body, &RULES).err());
    refusals.extend(detokenize_response(body, &RULES).err());
    for refusal in refusals {
        prop_assert!(refusal.status.is_client_error());
        let body: Value = serde_json::from_slice(&refusal.body()).unwrap();
        let error = body["error"].as_object().unwrap();
        prop_assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()));
        prop_assert_eq!(error.keys().collect::<Vec<_>>(), ["code", "message", "param", "type"]);
    }
    Ok(())
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-3i64..30).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,8}", inner, 0..4)
                .prop_map(|map| map.into_iter().collect::<Value>()),
        ]
    })
}

const NAMES: [&str; 30] = [
    "model",
    "messages",
    "prompt",
    "input",
    "n",
    "stop",
    "max_tokens",
    "max_completion_tokens",
    "min_tokens",
    "ignore_eos",
    "stream",
    "stream_options",
    "logprobs",
    "top_logprobs",
    "echo",
    "tools",
    "tool_choice",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "reasoning_effort",
    "chat_template_kwargs",
    "return_token_ids",
    "dimensions",
    "encoding_format",
    "tokens",
    "presence_penalty",
    "add_special_tokens",
];

fn valid() -> Value {
    json!({
        "model": "mock", "messages": [
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "b"}}]},
            {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
        ],
        "prompt": ["a", "b"], "input": "c", "n": 2, "stop": ["x"], "max_tokens": 9, "stream": true,
        "stream_options": {"include_usage": true}, "tokens": [1, 2],
        "tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "auto",
    })
}

proptest! {
    #[test]
    fn any_bytes_are_survived(body in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(&body)?;
    }

    #[test]
    fn any_fields_are_survived(
        changes in prop::collection::vec((prop::sample::select(NAMES.to_vec()), any_json()), 0..4),
    ) {
        let mut body = valid();
        for (name, value) in changes {
            body[name] = value;
        }
        survives(body.to_string().as_bytes())?;
    }

    #[test]
    fn any_message_is_survived(content in any_json(), role in prop_oneof!["[a-z]{0,5}", Just("user".to_owned())], calls in any_json()) {
        let message = json!({"role": role, "content": [content.clone()], "tool_calls": [calls]});
        survives(json!({"messages": [message, {"role": "user", "content": content}]}).to_string().as_bytes())?;
    }

    #[test]
    fn broken_requests_are_survived(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..4),
    ) {
        let mut body = valid().to_string().into_bytes();
        for (at, byte, how) in cuts {
            let at = at.index(body.len());
            match how {
                0 => body[at] = byte,
                1 => body.insert(at, byte),
                _ => drop(body.remove(at)),
            }
        }
        survives(&body)?;
    }
}
