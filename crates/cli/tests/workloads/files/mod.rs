//! Files of other people: datasets, tokenizers and images, from the disk and from a hub; and what
//! is found out about the answers to them.

mod hub;
mod images;
mod judged;
mod refused;
mod regressions;

use std::fs;

use crate::support::mock::records;
use crate::support::{Session, at};
use goodput_testkit::{
    ArrivedRequest, LAST_CHUNK, STREAM_HEAD, Server, Step, chunk, end_events, token_event,
};
use serde_json::{Value, json};

/// Answers every request with the text that the test wants, and `usage` with three tokens.
fn saying(text: impl Fn(&ArrivedRequest) -> String + Send + Sync + 'static) -> Server {
    Server::start(move |request| {
        let quoted = Value::from(text(request)).to_string();
        let events = token_event(quoted.trim_matches('"')) + &end_events(3);
        vec![Step::write(format!("{STREAM_HEAD}{}{LAST_CHUNK}", chunk(&events)))]
    })
}

/// One user, whose requests arrive in the order of their numbers.
const ALONE: [&str; 7] = ["--model", "m", "--no-probe", "--canary", "off", "--concurrency", "1"];

fn bodies(server: &Server) -> Vec<Value> {
    server.requests().iter().map(|request| serde_json::from_str(&request.body).unwrap()).collect()
}

/// A session whose folder holds this file.
fn with_file(name: &str, content: impl AsRef<[u8]>) -> Session {
    let session = Session::new();
    let path = session.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    session
}

fn lines(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join("\n") + "\n"
}

/// Runs the dataset of this file against the mock: prompts in the order of requests, and summary.
fn played(session: &Session, file: &str, args: &[&str]) -> (Vec<String>, Value) {
    let load = ["--dataset", file, "--concurrency", "2", "--canary", "off", "--save-text"];
    let (outcome, summary) = session.measure("mock:fast", &[&load, args].concat());
    outcome.assert_finished(file);
    (prompts(session), summary)
}

fn prompts(session: &Session) -> Vec<String> {
    let text = fs::read_to_string(session.path("out/text.jsonl")).unwrap();
    let mut texts: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    texts.sort_by_key(|line| line["index"].as_u64());
    texts.iter().map(|line| line["prompt"].as_str().unwrap().to_owned()).collect()
}

fn notes(summary: &Value) -> Vec<&str> {
    at(summary, "run.notes").as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect()
}

/// Conversations of this many turns each: `talk 0 question 0`, answered `talk 0 answer 0`, and so
/// on.
fn sharegpt(talks: usize, turns: usize) -> String {
    let said = |talk: usize, turn: usize| {
        [("human", "question"), ("gpt", "answer")].map(
            |(from, what)| json!({"from": from, "value": format!("talk {talk} {what} {turn}")}),
        )
    };
    let talk = |talk| (0..turns).flat_map(|turn| said(talk, turn)).collect::<Vec<_>>();
    json!((0..talks).map(|n| json!({"conversations": talk(n)})).collect::<Vec<_>>()).to_string()
}

/// A column of texts in Parquet, written by hand: one row group, one page, nothing packed.
fn parquet(name: &str, values: &[&str]) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    // Zigzag numbers of Thrift's compact protocol.
    let number = |value: usize| {
        let (mut value, mut bytes) = (value * 2, Vec::new());
        while value >= 0x80 {
            bytes.push((value & 0x7f | 0x80) as u8);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    };
    let data: Vec<u8> = values
        .iter()
        .flat_map(|value| [&(value.len() as u32).to_le_bytes(), value.as_bytes()].concat())
        .collect();
    let (rows, size) = (number(values.len()), number(data.len()));
    // Page header: a data page of plain values, without levels.
    let page = [&[0x15, 0][..], &[0x15], &size, &[0x15], &size, &[0x2c, 0x15], &rows];
    let page = [&page.concat()[..], &[0x15, 0, 0x15, 6, 0x15, 6, 0, 0]].concat();
    let whole = number(page.len() + data.len());
    // Footer: version, schema (a root with one required UTF-8 column), rows, row groups.
    let root = [&[0x48][..], &text("root"), &[0x15, 2, 0]].concat();
    let column = [&[0x15, 12, 0x25, 0, 0x18][..], &text(name), &[0x25, 0, 0]].concat();
    let facts = [
        &[0x15, 12, 0x19, 0x15, 0, 0x19, 0x18][..],
        &text(name),
        &[0x15, 0, 0x16],
        &rows,
        &[0x16],
        &whole,
        &[0x16],
        &whole,
        &[0x26, 8, 0],
    ]
    .concat();
    let chunk = [&[0x26, 8, 0x1c][..], &facts, &[0]].concat();
    let group = [&[0x19, 0x1c][..], &chunk, &[0x16], &whole, &[0x16], &rows, &[0]].concat();
    let footer =
        [&[0x15, 2, 0x19, 0x2c][..], &root, &column, &[0x16], &rows, &[0x19, 0x1c], &group, &[0]]
            .concat();
    let length = (footer.len() as u32).to_le_bytes();
    [b"PAR1", &page[..], &data, &footer, &length, b"PAR1"].concat()
}

/// A file, its content, flags, and the answer lengths in it.
type Case<'a> = (&'a str, Vec<u8>, &'a [&'a str], [Option<u32>; 3]);

#[test]
fn every_form_gives_its_prompts_in_the_order_of_the_file() {
    let messages = lines(&[
        json!({"messages": [{"role": "user", "content": "alpha"}], "max_tokens": 2}),
        json!({"custom_id": "x", "body": {"messages": [{"role": "user", "content": "beta"}]}}),
        json!({"messages": [{"role": "user", "content": "gamma"}]}),
    ]);
    let custom = lines(&[
        json!({"prompt": "alpha", "output_tokens": 3}),
        json!({"prompt": "beta", "output_tokens": 11}),
        json!({"prompt": "gamma", "output_tokens": 7}),
    ]);
    let csv = "id,question,tokens\n1,alpha,3\n2,\"beta\",11\n3,gamma,7\n";
    let table = ["--prompt-column", "question", "--output-column", "tokens"];
    let column = ["--prompt-column", "words"];
    let lengths = [Some(3), Some(11), Some(7)];
    let cases: [Case<'_>; 6] = [
        ("batch.jsonl", messages.into_bytes(), &[], [Some(2), None, None]),
        ("custom.jsonl", custom.into_bytes(), &[], lengths),
        ("table.csv", csv.into(), &table, lengths),
        ("table.tsv", csv.replace(',', "\t").into(), &table, lengths),
        ("lines.txt", b"alpha\n\nbeta\r\ngamma".to_vec(), &[], [None; 3]),
        ("rows.parquet", parquet("words", &["alpha", "beta", "gamma"]), &column, [None; 3]),
    ];
    for (name, content, args, expected) in cases {
        let session = with_file(name, content);
        let args = [&["--in-order", "--num-requests", "3"], args].concat();
        let (prompts, _) = played(&session, name, &args);
        assert_eq!(prompts, ["alpha", "beta", "gamma"], "{name}");
        let mut records = records(&session.path("out/requests.log"));
        records.sort_by_key(|record| record.index);
        let planned: Vec<_> = records.iter().map(|r| r.planned.output_tokens).collect();
        assert_eq!(planned, expected, "{name}");
        // The mock answers to the limit, and with 128 tokens where there is none.
        let answered: Vec<_> =
            records.iter().map(|r| r.exchange.output_tokens.unwrap().n).collect();
        assert_eq!(answered, expected.map(|limit| limit.unwrap_or(128)), "{name}");
    }
}

#[test]
fn messages_reach_the_body_as_they_are() {
    let call = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]});
    let talk = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "weather?"}], "name": "ann"},
        call,
        {"role": "tool", "content": "rain", "tool_call_id": "c1"},
    ]);
    let tools = json!([{"type": "function", "function": {"name": "f", "parameters": {}}}]);
    let line = json!({"model": "gpt-x", "messages": talk, "tools": tools, "temperature": 0.25,
        "stream": false, "max_completion_tokens": 9, "user": "someone"});
    let session = with_file("m.jsonl", lines(&[line]));
    let server = saying(|_| "sun".to_owned());
    // A dataset's own turns are not `--turns`: the body holds all of them, up to the last.
    let args = ["--dataset", "m.jsonl", "--turns", "9", "--history", "dataset"];
    let args = [&ALONE[..], &args, &["--num-requests", "2"]].concat();
    let (_, summary) = session.measure(&server.url(), &args);
    let body = bodies(&server).pop().unwrap();
    assert_eq!(
        body,
        json!({"model": "m", "stream": true, "stream_options": {"include_usage": true},
            "messages": talk, "tools": tools, "temperature": 0.25, "user": "someone",
            "max_tokens": 9})
    );
    for field in ["model", "stream"] {
        let note = format!("m: field `{field}` left out: the run sets it (1 times)");
        assert!(notes(&summary).contains(&&*note), "{:?}", notes(&summary));
    }
}

#[test]
fn the_seed_chooses_the_entries_and_their_order() {
    let content = (0..40).fold(String::new(), |text, n| text + &format!("prompt {n}\n"));
    let drawn = |args: &[&str]| {
        let session = with_file("p.txt", &content);
        played(&session, "p.txt", &[&["--num-requests", "12"], args].concat()).0
    };
    let first = drawn(&["--seed", "1"]);
    assert_eq!(first, drawn(&["--seed", "1"]));
    assert_ne!(first, drawn(&["--seed", "2"]));
    let mut distinct = first.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 12);
    assert!(first.iter().all(|prompt| content.contains(&format!("{prompt}\n"))));
    let in_order = |seed| drawn(&["--in-order", "--seed", seed]);
    let expected: Vec<String> = (0..12).map(|n| format!("prompt {n}")).collect();
    assert_eq!((in_order("1"), in_order("2")), (expected.clone(), expected));
}

#[test]
fn a_plan_repeats_a_data_set_and_refuses_another_file() {
    let session =
        with_file("p.jsonl", lines(&[json!({"prompt": "one"}), json!({"prompt": "two"})]));
    let (first, summary) = played(&session, "p.jsonl", &["--num-requests", "5", "--seed", "9"]);
    let again = ["run", "--plan", "out/plan.toml", "--json", "--quiet"];
    fs::rename(session.path("out"), session.path("before")).unwrap();
    let plan = ["run", "--plan", "before/plan.toml", "--json", "--quiet", "--out", "out"];
    let outcome = session.run(&plan);
    outcome.assert_finished("again");
    let repeated: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(prompts(&session), first);
    assert_eq!(at(&repeated, "run.workload_hash"), at(&summary, "run.workload_hash"));
    fs::write(session.path("p.jsonl"), lines(&[json!({"prompt": "three"})])).unwrap();
    let outcome = session.run(&again);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("p.jsonl is not the file of the plan"), "{}", outcome.stderr);
}

#[test]
fn a_file_that_is_too_short_is_repeated_with_fresh_nonces_and_says_so() {
    let session = with_file("short.txt", "one\ntwo\n");
    let (prompts, summary) = played(&session, "short.txt", &["--in-order", "--num-requests", "6"]);
    assert_eq!(prompts[..2], ["one", "two"]);
    for (place, prompt) in prompts.iter().enumerate().skip(2) {
        let (nonce, entry) = prompt.rsplit_once(". ").unwrap();
        assert_eq!(entry, ["one", "two"][place % 2]);
        let others = prompts.iter().filter(|other| other.starts_with(nonce)).count();
        assert_eq!(others, 1, "{prompt}");
    }
    let note = "short: 2 entries for 6 requests: repeated 3 times with fresh nonces";
    assert_eq!(notes(&summary), [note]);
    let page = session.run(&["report", "out", "-v"]).stdout;
    assert!(page.contains(note), "{page}");
    // A sample is all there is of a file.
    let session = with_file("some.txt", "one\ntwo\nthree\nfour\n");
    let args = ["--in-order", "--sample", "2", "--num-requests", "3"];
    let (prompts, summary) = played(&session, "some.txt", &args);
    assert_eq!(prompts[..2], ["one", "two"]);
    assert!(prompts[2].ends_with(". one"), "{prompts:?}");
    assert!(notes(&summary)[0].starts_with("some: 2 entries for 3 requests"), "{summary}");
    // Just enough entries are not repeated, and say nothing.
    let session = with_file("short.txt", "one\ntwo\n");
    let (_, summary) = played(&session, "short.txt", &["--num-requests", "2"]);
    assert!(notes(&summary).is_empty(), "{:?}", notes(&summary));
}

/// One token of cl100k each.
fn dogs(count: usize) -> String {
    ["dog"].repeat(count).join(" ")
}

#[test]
fn what_is_left_out_is_counted_by_reason() {
    let entry = |input, output| json!({"prompt": dogs(input), "answer": dogs(output)});
    let sizes = [(4, 4), (3, 9), (9, 3), (1024, 1024), (1025, 9), (1000, 1049), (2, 2)];
    let entries: Vec<Value> = sizes.iter().map(|&(i, o)| entry(i, o)).collect();
    let session = with_file("d.jsonl", lines(&entries));
    let args = ["--filter-lengths", "--tokenizer", "cl100k_base", "--num-requests", "3"];
    let (mut prompts, summary) = played(&session, "d.jsonl", &args);
    prompts.truncate(2);
    prompts.sort_by_key(String::len);
    assert_eq!(prompts, [dogs(4), dogs(1024)]);
    let left_out = "d: 5 of 7 entries left out: answer below 4 tokens (1), prompt above 1024 tokens \
                    (1), prompt and answer above 2048 tokens (1), prompt below 4 tokens (2)";
    assert!(notes(&summary).contains(&left_out), "{:?}", notes(&summary));
    // Bounds of one's own, and lengths by the tokenizer in the record.
    let session = with_file("d.jsonl", lines(&entries));
    let bounds = ["--min-input", "3", "--max-input", "9", "--min-output", "9", "--max-total", "12"];
    let args = [&bounds[..], &["--tokenizer", "cl100k_base", "--num-requests", "1"]].concat();
    assert_eq!(played(&session, "d.jsonl", &args).0, [dogs(3)]);
    let record = records(&session.path("out/requests.log")).pop().unwrap();
    assert_eq!((record.planned.input_tokens, record.planned.output_tokens), (3, Some(9)));
    // Nothing left is an error that says why.
    let args = ["run", "mock:fast", "--concurrency", "1", "--num-requests", "1", "--dataset"];
    let args = [&args[..], &["d.jsonl", "--min-input", "5000"]].concat();
    let outcome = session.run(&args);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    let reason = "none of its 7 entries can be used (prompt below 5000 tokens: 7)";
    assert!(outcome.stderr.contains(reason), "{}", outcome.stderr);
}

#[test]
fn later_turns_carry_the_answers_of_the_data_set_or_of_the_server() {
    for (history, answered) in [("dataset", "talk 0 answer"), ("server", "from the server")] {
        let server = saying(|_| "from the server".to_owned());
        let session = with_file("talks.json", sharegpt(1, 4));
        let args = ["--dataset", "talks.json", "--turns", "3", "--history", history];
        // Texts are kept, so that there is a wrong answer to take.
        let args = [&ALONE[..], &args, &["--num-requests", "3", "--save-text"]].concat();
        let (outcome, summary) = session.measure(&server.url(), &args);
        outcome.assert_finished(history);
        let bodies = bodies(&server);
        assert_eq!(bodies.len(), 3);
        for (turn, body) in bodies.iter().enumerate() {
            let mut expected = Vec::new();
            for number in 0..=turn {
                if number > 0 {
                    let own = format!("{answered} {}", number - 1);
                    let text = if history == "dataset" { &own } else { answered };
                    expected.push(json!({"role": "assistant", "content": text}));
                }
                let asked = format!("talk 0 question {number}");
                expected.push(json!({"role": "user", "content": asked}));
            }
            assert_eq!(body["messages"], json!(expected), "{history}, turn {turn}");
        }
        let turns = at(&summary, "breakdown.turn").as_object().unwrap();
        let turns: Vec<_> = turns.iter().map(|(turn, slice)| (&**turn, &slice["ok"])).collect();
        assert_eq!(turns, [("1", &json!(1)), ("2", &json!(1)), ("3", &json!(1))]);
    }
}
