//! Bodies, byte for byte.

use std::sync::Arc;

use goodput_model::{Constraint, MessagePart, Planned, Role};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn prompt() -> Request {
    Request::prompt("say \"hi\"\n", Planned::new("chat", 2, Some(7)))
}

fn chat() -> RequestFormat {
    RequestFormat::new(Api::Chat, "m", false)
}

fn parsed(body: &Bytes) -> Value {
    serde_json::from_slice(body).unwrap()
}

fn under(constraint: Constraint) -> Request {
    Request { constraint: Some(Arc::new(constraint)), ..prompt() }
}

fn with_fields(fields: &[(&str, &str)]) -> Request {
    let fields = fields.iter().map(|(key, json)| ((*key).to_owned(), (*json).to_owned()));
    Request { fields: fields.collect(), ..prompt() }
}

#[test]
fn only_what_was_asked_for_is_sent() {
    let plain = chat().encode(&[], &prompt());
    assert_eq!(
        plain,
        r#"{"max_tokens":7,"messages":[{"content":"say \"hi\"\n","role":"user"}],"model":"m"}"#
    );
    let full = RequestFormat::new(Api::Completions, "m", true).with_usage().with_exact_output();
    assert_eq!(
        full.encode(&[], &prompt()),
        r#"{"ignore_eos":true,"max_tokens":7,"min_tokens":7,"model":"m","prompt":"say \"hi\"\n","stream":true,"stream_options":{"include_usage":true}}"#
    );
    let open = Request { planned: Planned::new("chat", 2, None), ..prompt() };
    assert_eq!(
        chat().with_exact_output().encode(&[], &open),
        r#"{"messages":[{"content":"say \"hi\"\n","role":"user"}],"model":"m"}"#,
        "without a planned length there is none to be exact about"
    );
}

#[test]
fn the_users_fields_win() {
    let dialect = RequestFormat::new(Api::Chat, "m", true);
    let merged = dialect.clone().with_extra(r#"{"model":"other","top_k":1}"#).unwrap();
    let body = parsed(&merged.encode(&[], &prompt()));
    assert_eq!((&body["model"], &body["top_k"]), (&json!("other"), &json!(1)));
    assert_eq!(dialect.clone().with_extra("[1]").unwrap_err(), BodyError::NotAnObject);
    assert!(matches!(dialect.with_extra("{"), Err(BodyError::NotJson(_))));
}

#[test]
fn fields_win_in_their_order() {
    let request = Request {
        model: Some("adapter".into()),
        ..with_fields(&[("temperature", "0.5"), ("tools", "[ ]"), ("top_k", "3")])
    };
    let dialect = chat().with_extra(r#"{"top_k":1,"a\"":{"b":null}}"#).unwrap();
    assert_eq!(
        dialect.encode(&[], &request),
        r#"{"a\"":{"b":null},"max_tokens":7,"messages":[{"content":"say \"hi\"\n","role":"user"}],"model":"adapter","temperature":0.5,"tools":[ ],"top_k":1}"#
    );
    let of_data = Request { model: Some("adapter".into()), ..with_fields(&[("model", "\"x\"")]) };
    assert_eq!(parsed(&chat().encode(&[], &of_data))["model"], "x");
    let forced = chat().with_extra(r#"{"model":"y"}"#).unwrap();
    assert_eq!(parsed(&forced.encode(&[], &of_data))["model"], "y");
}

#[test]
fn another_limit_takes_the_place_of_ours() {
    for key in LIMITS {
        let body = chat().with_exact_output().encode(&[], &with_fields(&[(key, "3")]));
        let messages = r#""messages":[{"content":"say \"hi\"\n","role":"user"}],"model":"m"}"#;
        assert_eq!(body, format!(r#"{{"ignore_eos":true,"{key}":3,{messages}"#));
    }
    let dialect = chat().with_exact_output().with_extra(r#"{"max_completion_tokens":9}"#).unwrap();
    let body = parsed(&dialect.encode(&[], &prompt()));
    assert_eq!(body.get("max_tokens"), None);
    assert_eq!(body.get("min_tokens"), None);
}

fn conversation() -> (Vec<Message>, Request) {
    let raw = r#"{"role": "assistant", "content": null, "tool_calls": [ {"id": 1} ]}"#;
    let history = vec![
        Message::text(Role::System, "Be brief."),
        Message::text(Role::User, "2+2?"),
        Message::Raw(raw.into()),
        Message::Raw(
            r#"{"role":"tool","content":[{"type":"text","text":"fo"},{"type":"x"},{"text":"ur"}]}"#
                .into(),
        ),
    ];
    let parts = vec![
        MessagePart::Text("Look ".into()),
        MessagePart::Text("here:".into()),
        MessagePart::Image("data:image/png;base64,AA==".into()),
        MessagePart::Image("data:image/png;base64,BB==".into()),
        MessagePart::Text("what?".into()),
    ];
    let messages = vec![Message::Plain { role: Role::User, parts }];
    (history, Request { messages, ..prompt() })
}

#[test]
fn a_conversation_with_images_and_raw_messages() {
    let (history, request) = conversation();
    let expected = [
        r#"{"content":"Be brief.","role":"system"}"#,
        r#"{"content":"2+2?","role":"user"}"#,
        r#"{"role": "assistant", "content": null, "tool_calls": [ {"id": 1} ]}"#,
        r#"{"role":"tool","content":[{"type":"text","text":"fo"},{"type":"x"},{"text":"ur"}]}"#,
        concat!(
            r#"{"content":[{"text":"Look here:","type":"text"},"#,
            r#"{"image_url":{"url":"data:image/png;base64,AA=="},"type":"image_url"},"#,
            r#"{"image_url":{"url":"data:image/png;base64,BB=="},"type":"image_url"},"#,
            r#"{"text":"what?","type":"text"}],"role":"user"}"#,
        ),
    ];
    assert_eq!(
        chat().encode(&history, &request),
        format!(r#"{{"max_tokens":7,"messages":[{}],"model":"m"}}"#, expected.join(","))
    );
}

#[test]
fn completions_take_the_texts_alone() {
    let (mut history, request) = conversation();
    history.push(Message::Raw(r#"{"content":"raw \"text\""}"#.into()));
    history.push(Message::Raw("no json".into()));
    let body = RequestFormat::new(Api::Completions, "m", false).encode(&history, &request);
    let texts = "Be brief.\n2+2?\n\nfour\nraw \"text\"\n\nLook here:what?";
    assert_eq!(parsed(&body)["prompt"], texts);
    assert_eq!(parsed(&body).get("messages"), None);
}

#[test]
fn several_texts_of_a_message_are_one_string() {
    let parts = vec![
        MessagePart::Text("a\"".into()),
        MessagePart::Text("".into()),
        MessagePart::Text("\u{1}b".into()),
    ];
    let none = Message::Plain { role: Role::User, parts: Vec::new() };
    let messages = vec![Message::Plain { role: Role::User, parts }, none];
    assert_eq!(
        chat().encode(&[], &Request { messages, ..prompt() }),
        r#"{"max_tokens":7,"messages":[{"content":"a\"\u0001b","role":"user"},{"content":"","role":"user"}],"model":"m"}"#
    );
}

const SCHEMA: &str = r#"{"type": "object"}"#;

/// One of each kind, in the order of [`ConstraintKind::ALL`].
fn constraints() -> [Constraint; 4] {
    [
        Constraint::Json(SCHEMA.to_owned()),
        Constraint::Regex(r"a|\d".to_owned()),
        Constraint::Choice(vec!["yes (1.5)".to_owned(), "a\\b\"\n".to_owned()]),
        Constraint::Grammar("root ::= \"x\"".to_owned()),
    ]
}

/// What each dialect adds to the body for them.
fn expected() -> [(ConstraintDialect, [String; 4]); 5] {
    let format = format!(
        r#""response_format":{{"json_schema":{{"name":"answer","schema":{SCHEMA},"strict":true}},"type":"json_schema"}}"#
    );
    let json = format!(r#""json":{SCHEMA}"#);
    let regex = r#""regex":"a|\\d""#.to_owned();
    let choice = r#""choice":["yes (1.5)","a\\b\"\n"]"#.to_owned();
    let grammar = r#""grammar":"root ::= \"x\"""#.to_owned();
    let plain = [json, regex.clone(), choice, grammar.clone()];
    let outputs = plain.clone().map(|inner| format!(r#""structured_outputs":{{{inner}}}"#));
    let guided = plain.map(|inner| format!(r#""guided_{}"#, &inner[1..]));
    let mut by_format = outputs.clone();
    by_format[0].clone_from(&format);
    let choice_regex = r#""regex":"(yes \\(1\\.5\\)|a\\\\b\"\n)""#.to_owned();
    let choice_gbnf = r#""grammar":"root ::= \"yes (1.5)\" | \"a\\\\b\\\"\\n\"""#.to_owned();
    let ebnf = r#""ebnf":"root ::= \"x\"""#.to_owned();
    let json_schema = format!(r#""json_schema":{SCHEMA}"#);
    [
        (ConstraintDialect::ResponseFormat, by_format),
        (ConstraintDialect::StructuredOutputs, outputs),
        (ConstraintDialect::Guided, guided),
        (ConstraintDialect::Sglang, [format, regex, choice_regex, ebnf]),
        (ConstraintDialect::Llamacpp, [json_schema, String::new(), choice_gbnf, grammar]),
    ]
}

#[test]
fn constraints_in_every_dialect() {
    for (dialect, expected) in expected() {
        let dialect = chat().with_exact_output().with_constraints(dialect);
        for (constraint, expected) in constraints().into_iter().zip(expected) {
            assert_eq!(dialect.can_express(constraint.kind()), !expected.is_empty());
            let body = dialect.encode(&[], &under(constraint));
            let text = std::str::from_utf8(&body).unwrap();
            assert!(text.contains(&expected), "{expected}\n{text}");
            let body = parsed(&body);
            let others = usize::from(!expected.is_empty());
            assert_eq!(body.as_object().unwrap().len(), 3 + others, "{text}");
            assert_eq!(body["max_tokens"], 7);
        }
    }
}

#[test]
fn the_model_is_found_where_it_stands() {
    let raw = Message::Raw(r#"{"model":"decoy","role":"user"}"#.into());
    let fields = [("metadata", r#"{"model":"decoy"}"#), ("tools", r#"[{"model":"decoy"}]"#)];
    let fields = fields.map(|(key, json)| (key.to_owned(), json.to_owned()));
    let plain = Request { messages: vec![raw], fields: Arc::new(fields), ..prompt() };
    let adapter = Request { model: Some("a \"lora\"".into()), ..plain.clone() };
    let dialect = RequestFormat::new(Api::Chat, "base", true);
    let of_user = dialect.clone().with_extra(r#"{"model": "mine"}"#).unwrap();
    for (dialect, request, expected) in [
        (&dialect, &plain, r#""base""#),
        (&dialect, &adapter, r#""a \"lora\"""#),
        (&of_user, &adapter, r#""mine""#),
    ] {
        let (body, model) = dialect.encode_marked(&[], request);
        assert_eq!(&body[model.clone()], expected.as_bytes());
        assert!(body[..model.start].ends_with(br#","model":"#));
        assert_eq!(dialect.encode(&[], request), body);
    }
}

/// Any text of scalar values, and those that are awkward in JSON more often.
fn texts() -> impl Strategy<Value = String> {
    let awkward = prop::sample::select(vec!['"', '\\', '\n', '\0', '\u{1f}', '\u{7f}', '\u{2028}']);
    prop::collection::vec(prop_oneof![awkward, any::<char>()], 0..40)
        .prop_map(|letters| letters.into_iter().collect())
}

proptest! {
    #[test]
    fn a_body_says_what_was_meant(
        past in prop::collection::vec(texts(), 0..3),
        parts in prop::collection::vec((texts(), any::<bool>()), 0..5),
        model in texts(),
        limit in prop::option::of(1u32..),
        key in texts(),
    ) {
        let history: Vec<_> =
            past.iter().map(|text| Message::text(Role::Assistant, text.as_str())).collect();
        let is_plain = parts.iter().all(|(_, is_image)| !is_image);
        let part = |(text, is_image): &(String, bool)| match is_image {
            true => MessagePart::Image(text.as_str().into()),
            false => MessagePart::Text(text.as_str().into()),
        };
        let message = Message::Plain { role: Role::User, parts: parts.iter().map(part).collect() };
        let request = Request {
            messages: vec![message],
            fields: Arc::new([(format!("x{key}"), "[1]".to_owned())]),
            planned: Planned::new("c", 1, limit),
            ..prompt()
        };
        let text: String =
            parts.iter().filter(|(_, is_image)| !is_image).map(|(text, _)| text.as_str()).collect();

        let chat = parsed(&RequestFormat::new(Api::Chat, &model, false).encode(&history, &request));
        prop_assert_eq!(&chat["model"], &json!(model));
        prop_assert_eq!(chat.get("max_tokens").cloned(), limit.map(|limit| json!(limit)));
        prop_assert_eq!(&chat[format!("x{key}")], &json!([1]));
        for (place, past) in past.iter().enumerate() {
            prop_assert_eq!(&chat["messages"][place], &json!({"role": "assistant", "content": past}));
        }
        let content = &chat["messages"][past.len()]["content"];
        if is_plain {
            prop_assert_eq!(content, &json!(text));
        } else {
            let pieces = content.as_array().unwrap();
            let said: String = pieces.iter().filter_map(|piece| piece["text"].as_str()).collect();
            prop_assert_eq!(said, text.clone());
            let shown: Vec<_> = pieces.iter().filter_map(|p| p["image_url"]["url"].as_str()).collect();
            let images: Vec<_> =
                parts.iter().filter(|(_, image)| *image).map(|(url, _)| url.as_str()).collect();
            prop_assert_eq!(shown, images);
        }

        let completions = RequestFormat::new(Api::Completions, &model, false);
        let body = parsed(&completions.encode(&history, &request));
        let all: Vec<_> = past.iter().map(String::as_str).chain([text.as_str()]).collect();
        prop_assert_eq!(&body["prompt"], &json!(all.join("\n")));
        prop_assert_eq!(completions.encode(&history, &request), completions.encode(&history, &request.clone()));
    }
}
