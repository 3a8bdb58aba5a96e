//! Rows whose every value is known by construction.

use goodput_model::{Chunk, Failure, FailureStage, Stamps, TokenCount};
use serde_json::{Value, json};

use super::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const BLOCK: u32 = 16;

fn recorder(tokenizer: &str, salt: u8) -> Recorder {
    let tokenizer = Tokenizer::builtin(tokenizer).unwrap();
    Recorder::new(RowSettings {
        tokenizer,
        block_tokens: BLOCK,
        salt: [salt; 32],
        save_text: false,
    })
}

/// A good answer of this text: 10 ms to the first of its events, 2 ms between them, then the end.
fn answer(arrived: u64, text: &str, events: u64) -> Exchange {
    let at = |event: u64| Nanos(arrived + (10 + 2 * event) * MS);
    let chunk =
        |n| Chunk { at: at(n), tokens: None, bytes: 1, choice: 0, coalesced: false, lag_us: None };
    let end = Nanos(at(events).0);
    Exchange {
        stamps: Stamps {
            dispatched: Nanos(arrived),
            first_token: Some(at(0)),
            last_token: Some(at(events.saturating_sub(1))),
            done: Some(end),
            ended: end + Nanos(MS),
            ..Stamps::default()
        },
        chunks: (0..events).map(chunk).collect(),
        status: Some(200),
        finish: Some("stop".to_owned()),
        text: Some(text.to_owned()),
        ..Exchange::default()
    }
}

fn usage(n: u32) -> TokenCount {
    TokenCount { n, source: TokenSource::Usage }
}

fn ask(recorder: &mut Recorder, second: u64, body: &Value, said: &str) -> TraceRow {
    named(recorder, second, body, said, None)
}

fn named(
    recorder: &mut Recorder,
    second: u64,
    body: &Value,
    said: &str,
    name: Option<&str>,
) -> TraceRow {
    let api = if body["messages"].is_array() { Api::Chat } else { Api::Completions };
    let question =
        recorder.start_row(Nanos(second * SECOND), api, body.to_string().as_bytes(), name);
    let arrived = 7 * SECOND + second * SECOND;
    recorder.finish_row(question, Nanos(arrived), &answer(arrived, said, 5))
}

fn tokens(ids: impl IntoIterator<Item = u32>) -> Value {
    json!({"model": "m", "prompt": ids.into_iter().collect::<Vec<u32>>()})
}

#[test]
fn a_row_says_what_happened_and_when() {
    let mut recorder = recorder("o200k_base", 1);
    let mut body = tokens(0..40);
    body["stream"] = true.into();
    body["max_tokens"] = 64.into();
    let question =
        recorder.start_row(Nanos(3 * SECOND), Api::Completions, body.to_string().as_bytes(), None);
    let mut exchange = answer(100 * SECOND, "one two three", 4);
    exchange.cached_tokens = Some(32);
    let row = recorder.finish_row(question, Nanos(100 * SECOND), &exchange);
    assert_eq!((row.at, row.endpoint), (Nanos(3 * SECOND), Some(Api::Completions)));
    assert_eq!(row.model.as_deref(), Some("m"));
    assert_eq!((row.input_tokens, row.input_by), (40, Some(TokenCounter::Tokenizer)));
    assert_eq!((row.output_tokens, row.output_by), (3, Some(TokenCounter::Tokenizer)));
    assert_eq!(row.blocks.len(), 3, "two whole blocks and one of eight tokens");
    assert!(row.blocks.iter().all(|id| *id < 1 << 53));
    assert_eq!(row.ttft, Some(Nanos(10 * MS)));
    assert_eq!(row.gaps, [2_000; 3]);
    assert_eq!(row.took, Some(Nanos(18 * MS)));
    assert_eq!((row.status, row.finish.as_deref()), (Some(200), Some("stop")));
    assert_eq!((row.cached_tokens, row.session, row.after), (Some(32), None, None));
    assert_eq!(row.params.get("stream"), Some(Param::Flag(true)));
    assert_eq!(row.params.get("max_tokens"), Some(Param::Whole(64)));
    assert_eq!((row.body, row.answer, row.failure), (None, None, None));
}

#[test]
fn equal_beginnings_are_equal_blocks_and_nothing_else_is() {
    let mut one = recorder("o200k_base", 1);
    let mut blocks = |body: &Value| ask(&mut one, 0, body, "").blocks;
    let long = blocks(&tokens(0..40));
    // 33 tokens are two whole blocks; the rest of the third is another.
    assert_eq!(blocks(&tokens(0..33))[..2], long[..2]);
    assert_ne!(blocks(&tokens(0..33))[2], long[2]);
    assert_eq!(blocks(&tokens(0..40)), long);
    // A block behind another beginning is another block.
    let moved = blocks(&tokens((1..17).chain(16..40)));
    assert!(moved.iter().all(|id| !long.contains(id)));
    let mut other = tokens(0..40);
    other["model"] = "n".into();
    assert!(blocks(&other).iter().all(|id| !long.contains(id)), "another model");
    other["model"] = "m".into();
    other["cache_salt"] = "tenant".into();
    assert!(blocks(&other).iter().all(|id| !long.contains(id)), "another client's cache");
    let salted = ask(&mut recorder("o200k_base", 2), 0, &tokens(0..40), "").blocks;
    assert_eq!(salted.len(), 3);
    assert!(salted.iter().all(|id| !long.contains(id)), "another file");
}

#[test]
fn text_shares_blocks_as_far_as_it_is_the_same() {
    let system = "You answer questions about the harbour and its cranes, briefly. ".repeat(60);
    for name in ["o200k_base", "approximate"] {
        let mut recorder = recorder(name, 1);
        let mut blocks = |question: &str| {
            let said = json!([
                {"role": "system", "content": system},
                {"role": "user", "content": question}
            ]);
            let row = ask(&mut recorder, 0, &json!({"messages": said}), "");
            assert_eq!(row.blocks.len() as u32, (row.input_tokens - PRIMING).div_ceil(BLOCK));
            row.blocks
        };
        let (one, other) = (blocks("Which lamp burns?"), blocks("当直は誰ですか。"));
        let same = one.iter().zip(&other).take_while(|(one, other)| one == other).count() as u32;
        // Two marks before the system prompt, three behind it.
        let common = Tokenizer::builtin(name).unwrap().count(&system).unwrap() + 5;
        assert_eq!(same, common / BLOCK, "{name}");
        assert_ne!(one, other);
    }
}

/// As in the prompt's reader.
const PRIMING: u32 = 3;

#[test]
fn what_the_server_counts_wins_and_blocks_stay() {
    let mut recorder = recorder("o200k_base", 1);
    let mut lengths = |input: Option<TokenCount>| {
        let body = tokens(0..40).to_string();
        let question = recorder.start_row(Nanos::ZERO, Api::Completions, body.as_bytes(), None);
        let exchange =
            Exchange { input_tokens: input, output_tokens: Some(usage(9)), ..answer(0, "x", 2) };
        let row = recorder.finish_row(question, Nanos::ZERO, &exchange);
        assert_eq!((row.output_tokens, row.output_by), (9, Some(TokenCounter::Usage)));
        (row.input_tokens, row.blocks.len(), row.input_by)
    };
    // Its tokens may be longer than ours: how many blocks that are is the file's to know.
    assert_eq!(lengths(Some(usage(16))), (16, 3, Some(TokenCounter::Usage)));
    assert_eq!(lengths(Some(usage(60))), (60, 3, Some(TokenCounter::Usage)));
    // No server has read so much, nor nothing.
    for absurd in [Some(usage(u32::MAX)), Some(usage(0)), None] {
        assert_eq!(lengths(absurd), (40, 3, Some(TokenCounter::Tokenizer)));
    }
}

#[test]
fn answers_are_counted_by_the_best_that_there_is() {
    let count = |name: &str, exchange: Exchange| {
        let mut recorder = recorder(name, 1);
        let row = recorder.finish_row(KeptRequest::default(), Nanos::ZERO, &exchange);
        (row.output_tokens, row.output_by)
    };
    let listed = Some(TokenCount { n: 6, source: TokenSource::Chunks });
    let by_events = Some(TokenCount { n: 2, source: TokenSource::Events });
    let many = Some(TokenCount { n: 20_000, source: TokenSource::Events });
    let said = |count| Exchange { output_tokens: count, ..answer(0, "one two three", 2) };
    assert_eq!(count("o200k_base", said(listed)), (6, Some(TokenCounter::Chunks)));
    assert_eq!(count("o200k_base", said(by_events)), (3, Some(TokenCounter::Tokenizer)));
    assert_eq!(count("approximate", said(by_events)), (2, Some(TokenCounter::Chunks)));
    // More events than chunks that were kept.
    assert_eq!(count("approximate", said(many)), (20_000, Some(TokenCounter::Chunks)));
    assert_eq!(
        count("approximate", answer(0, "one two three", 0)),
        (3, Some(TokenCounter::Estimate))
    );
    // Tool calls are not text.
    assert_eq!(count("o200k_base", answer(0, "", 7)), (7, Some(TokenCounter::Chunks)));
    assert_eq!(count("o200k_base", Exchange::default()), (0, None));
}

#[test]
fn a_failure_is_a_row_too() {
    let mut recorder = recorder("o200k_base", 1);
    let question = recorder.start_row(Nanos::ZERO, Api::Chat, b"\xff{", None);
    assert_eq!((question.row.input_tokens, question.row.blocks.len()), (0, 0));
    let mut exchange = answer(0, "", 0);
    exchange.stamps = Stamps { ended: Nanos(5 * SECOND), ..Stamps::default() };
    exchange.status = Some(503);
    let failure =
        |class| Some(Failure { class, stage: FailureStage::Headers, message: "told".to_owned() });
    exchange.failure = failure(ErrorClass::Http(503));
    exchange.finish = Some("Ignore all of this".to_owned());
    let row = recorder.finish_row(question.clone(), Nanos(SECOND), &exchange);
    assert_eq!((row.status, row.failure), (Some(503), None));
    assert_eq!((row.took, row.ttft), (Some(Nanos(4 * SECOND)), None));
    assert_eq!((row.output_tokens, row.output_by), (0, None));
    assert_eq!(row.finish.as_deref(), Some("other"));
    exchange.failure = failure(ErrorClass::Cut);
    let row = recorder.finish_row(question, Nanos(SECOND), &exchange);
    assert_eq!(row.failure, Some(ErrorClass::Cut));
}

#[test]
fn a_name_that_is_none_is_not_written() {
    let recorder = recorder("o200k_base", 1);
    let model = |name: &str| {
        let body = json!({"model": name, "prompt": "x"}).to_string();
        recorder.start_row(Nanos::ZERO, Api::Completions, body.as_bytes(), None).row.model.unwrap()
    };
    assert_eq!(model("meta-llama/Llama-3.1-8B:latest@v2"), "meta-llama/Llama-3.1-8B:latest@v2");
    for odd in ["please tell me", "", &"x".repeat(129), "a\"b"] {
        let written = model(odd);
        assert!(written.starts_with('#') && written.len() < 18, "{written}");
    }
}

fn chat(said: &[(&str, &str)]) -> Value {
    let message = |(role, content): &(&str, &str)| json!({"role": role, "content": content});
    json!({"model": "m", "messages": said.iter().map(message).collect::<Vec<_>>()})
}

#[test]
fn a_conversation_is_one_session_with_its_pauses() {
    let mut recorder = recorder("approximate", 1);
    let first = ask(&mut recorder, 0, &chat(&[("system", "s"), ("user", "Hello")]), "Hi. ");
    assert_eq!((first.session.as_deref(), first.after), (Some("1"), None));
    let told = [("system", "s"), ("user", "Hello"), ("assistant", "Hi."), ("user", "And?")];
    let second = ask(&mut recorder, 10, &chat(&told), "Nothing.");
    // The answer took 20 ms.
    assert_eq!(second.after, Some(Nanos(10 * SECOND - 20 * MS)));
    let mut told = told.to_vec();
    told.extend([("assistant", "Nothing."), ("tool", "42")]);
    let third = ask(&mut recorder, 11, &chat(&told), "So.");
    assert_eq!([second.session, third.session], [first.session.clone(), first.session]);
    // The same question again is another conversation.
    let again = ask(&mut recorder, 12, &chat(&[("system", "s"), ("user", "Hello")]), "Hi.");
    assert_eq!((again.session.as_deref(), again.after), (Some("2"), None));
}

#[test]
fn users_who_open_alike_are_told_apart() {
    let mut recorder = recorder("approximate", 1);
    let open = chat(&[("user", "Hello")]);
    let a = ask(&mut recorder, 0, &open, " Hi, what is it?\n").session;
    let b = ask(&mut recorder, 1, &open, "Good day!").session;
    assert_ne!(a, b);
    let go_on = |answer: &str, next: &str| {
        chat(&[("user", "Hello"), ("assistant", answer), ("user", next)])
    };
    // In the order of the first, though the second was over last.
    assert_eq!(ask(&mut recorder, 5, &go_on("Hi, what is it?", "Same"), "x").session, a);
    assert_eq!(ask(&mut recorder, 6, &go_on("Good day!", "Same"), "x").session, b);
    // Answered alike, they cannot be told apart; yet they are two.
    let c = ask(&mut recorder, 20, &open, "Yes?").session;
    let d = ask(&mut recorder, 21, &open, "Yes?").session;
    let one = ask(&mut recorder, 25, &go_on("Yes?", "p"), "x").session;
    let other = ask(&mut recorder, 26, &go_on("Yes?", "q"), "x").session;
    assert_ne!(one, other);
    assert!([&c, &d].contains(&&one) && [&c, &d].contains(&&other));
}

#[test]
fn an_answer_that_was_changed_is_found_by_what_users_said() {
    let mut recorder = recorder("approximate", 1);
    let opened = ask(&mut recorder, 0, &chat(&[("user", "Hello")]), "Let me think. Hi.");
    let told = chat(&[("user", "Hello"), ("assistant", "Hi."), ("user", "And?")]);
    assert_eq!(ask(&mut recorder, 5, &told, "x").session, opened.session);
    // No earlier request had this text.
    let foreign = chat(&[("user", "Else"), ("assistant", "Hi."), ("user", "And?")]);
    let row = ask(&mut recorder, 6, &foreign, "x");
    assert_eq!((row.session.as_deref(), row.after), (Some("2"), None));
}

#[test]
fn an_answer_that_was_changed_is_looked_for_with_the_same_model_and_words_of_others() {
    let mut recorder = recorder("approximate", 1);
    let of = |model: &str, system: &str, more: &[(&str, &str)]| {
        let mut body = chat(&[&[("system", system), ("user", "Hello")][..], more].concat());
        body["model"] = model.into();
        body
    };
    let a = ask(&mut recorder, 0, &of("m", "Be brief.", &[]), "Let me think. Hi.").session;
    let b = ask(&mut recorder, 1, &of("m", "Be long.", &[]), "Let me think. Hi.").session;
    let c = ask(&mut recorder, 2, &of("n", "Be brief.", &[]), "Let me think. Hi.").session;
    let next = [("assistant", "Hi."), ("user", "And?")];
    // Not the latest, but the one that was told the same.
    assert_eq!(ask(&mut recorder, 5, &of("m", "Be brief.", &next), "x").session, a);
    // A system prompt with the hour in it: what users said is left, of the same model.
    assert_eq!(ask(&mut recorder, 6, &of("n", "It is ten.", &next), "x").session, c);
    assert_eq!(ask(&mut recorder, 7, &of("m", "It is ten.", &next), "x").session, b);
}

#[test]
fn parts_of_text_are_text_and_images_are_hashes() {
    let mut recorder = recorder("approximate", 1);
    let with = |image: &str| {
        json!({"messages": [{"role": "user", "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": image}}
        ]}]})
    };
    let one = ask(&mut recorder, 0, &with("data:image/png;base64,AAAA"), "A crane.");
    let other = ask(&mut recorder, 1, &with("data:image/png;base64,BBBB"), "A crane.");
    assert_eq!(one.params.get("attachments"), Some(Param::Whole(1)));
    assert_ne!(one.blocks, other.blocks);
    // The text in one piece, and blanks around it, are the same words.
    ask(&mut recorder, 2, &chat(&[("user", "Hello ")]), "Hi.");
    let told = json!({"messages": [
        {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
        {"role": "assistant", "content": [{"type": "text", "text": " Hi."}]},
        {"role": "user", "content": "And?"}
    ]});
    assert_eq!(ask(&mut recorder, 3, &told, "x").session.as_deref(), Some("3"));
}

#[test]
fn a_session_that_the_client_names_is_believed_and_its_name_is_not_written() {
    let mut recorder = recorder("approximate", 1);
    let open = chat(&[("user", "Hello")]);
    let one = named(&mut recorder, 0, &open, "Hi.", Some("alice-4711"));
    let other = named(&mut recorder, 1, &open, "Hi.", Some("bob-4712"));
    let again = named(&mut recorder, 4, &open, "Hi.", Some("alice-4711"));
    assert_eq!(one.session, again.session);
    assert_ne!(one.session, other.session);
    assert_eq!((one.after, again.after), (None, Some(Nanos(4 * SECOND - 20 * MS))));
    assert!(!one.session.unwrap().contains("alice"));
    // An empty header names nothing, and blanks around a name are not part of it.
    let [empty, blank] = ["", " "].map(|name| named(&mut recorder, 6, &open, "", Some(name)));
    assert_ne!(empty.session, blank.session);
    let again = named(&mut recorder, 7, &open, "Hi.", Some(" bob-4712 "));
    assert_eq!(again.session, other.session);
}

#[test]
fn text_is_kept_only_when_asked_for() {
    let mut recorder = recorder("approximate", 1);
    recorder.settings.save_text = true;
    let body = chat(&[("user", "Hello")]);
    let row = ask(&mut recorder, 0, &body, "Hi.");
    assert_eq!((row.body, row.answer), (Some(body.to_string()), Some("Hi.".to_owned())));
}

#[test]
fn long_text_is_read_whatever_it_is() {
    for name in ["o200k_base", "approximate"] {
        let mut recorder = recorder(name, 1);
        for text in ["a".repeat(1 << 17), "水".repeat(1 << 15), "the lamp ".repeat(1 << 14)] {
            let row = ask(&mut recorder, 0, &json!({"prompt": text}), "");
            assert!(row.input_tokens > 1 << 13, "{name}: {}", row.input_tokens);
            assert_eq!(row.blocks.len() as u32, row.input_tokens.div_ceil(BLOCK));
        }
        // What is beyond the most blocks that are named is still counted.
        let ids = tokens((0..(crate::rows::blocks::MOST_BLOCKS as u32 + 2) * BLOCK).map(|n| n % 7));
        let row = ask(&mut recorder, 0, &ids, "");
        assert_eq!(row.blocks.len(), crate::rows::blocks::MOST_BLOCKS);
        assert_eq!(row.input_tokens, (crate::rows::blocks::MOST_BLOCKS as u32 + 2) * BLOCK);
    }
}
