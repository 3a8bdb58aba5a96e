//! `goodput workload`: files that are made, shown, converted and sampled.

use std::fs;

use goodput_model::Nanos;
use goodput_testkit::{Server, timed_stream};
use serde_json::{Value, json};

use super::{AZURE, AZURE_AT, due, lines, mooncake, replayed, sessions, with_files};
use crate::support::{Session, ms, number};

fn made(session: &Session, args: &[&str]) -> String {
    let outcome = session.run(&[&["workload"], args].concat());
    assert_eq!(outcome.code, Some(0), "{args:?}: {}", outcome.stderr);
    outcome.stderr
}

fn read(session: &Session, name: &str) -> String {
    fs::read_to_string(session.path(name)).unwrap()
}

#[test]
fn converting_keeps_instants_and_lengths_and_says_what_is_lost() {
    let session = with_files(&[("a.csv", AZURE)]);
    let convert = |from: &str, to: &str, output: &str| {
        made(&session, &["convert", from, "--to", to, "--output", output])
    };
    let said = convert("a.csv", "mooncake", "m.jsonl");
    assert!(said.contains("m.jsonl: 3 of 3 azure entries"), "{said}");
    assert!(!said.contains("no such field"), "{said}");
    let row = |at: &str, input: u32, output: u32| {
        format!(
            r#"{{"timestamp":{at},"input_length":{input},"output_length":{output},"hash_ids":[]}}"#
        ) + "\n"
    };
    let expected = row("0", 374, 44) + &row("110.0007", 396, 109) + &row("319.4101", 879, 55);
    assert_eq!(read(&session, "m.jsonl"), expected);
    convert("m.jsonl", "goodput", "g.jsonl");
    let head = r#"{"schema":"goodput.trace/2","block_tokens":512,"text":false}"#;
    let rows = [("0", 374, 44), ("0.1100007", 396, 109), ("0.3194101", 879, 55)];
    let row = |(at, input, output): (&str, u32, u32)| {
        format!(r#"{{"at":{at},"input_tokens":{input},"output_tokens":{output}}}"#) + "\n"
    };
    assert_eq!(read(&session, "g.jsonl"), format!("{head}\n{}", rows.map(row).concat()));
    // And back: the instants count from the first now.
    convert("g.jsonl", "azure", "back.csv");
    let table =
        "TIMESTAMP,ContextTokens,GeneratedTokens\n0,374,44\n0.1100007,396,109\n0.3194101,879,55\n";
    assert_eq!(read(&session, "back.csv"), table);
    let (records, _) = replayed(&session, "mock:fast", &["--trace", "g.jsonl"]);
    assert_eq!(due(&records), AZURE_AT.map(Nanos));
}

#[test]
fn what_the_other_form_cannot_hold_is_said_field_by_field() {
    let blocks = mooncake(&[(0.0, 600, 3, &[1, 2]), (5.0, 600, 3, &[1]), (9.0, 6, 3, &[])]);
    let session = with_files(&[
        ("own.jsonl", &sessions()),
        ("blocks.jsonl", &blocks),
        ("p.txt", "one prompt\n"),
    ]);
    let cases: [(&str, &str, &[&str]); 3] = [
        ("own.jsonl", "azure", &["session of 4", "took of 2", "after of 1"]),
        ("own.jsonl", "burstgpt", &["after of 1"]),
        ("blocks.jsonl", "azure", &["blocks of 2"]),
    ];
    for (place, (file, to, lost)) in cases.into_iter().enumerate() {
        let said = made(&session, &["convert", file, "--to", to, "--output", &place.to_string()]);
        let said: Vec<&str> = said
            .lines()
            .filter_map(|l| l.strip_prefix("dropped, because the new format has no such field: "))
            .collect();
        let mut expected: Vec<String> =
            lost.iter().map(|field| format!("{field} entries")).collect();
        expected.sort();
        assert_eq!(said, expected, "{file} to {to}");
    }
    // A dataset has no instants to write, a trace no text.
    let hopeless = [("p.txt", "mooncake", "timestamp"), ("own.jsonl", "messages", "text")];
    for (file, to, missing) in hopeless {
        let args = ["workload", "convert", file, "--to", to, "--output", "none.jsonl"];
        let outcome = session.run(&args);
        assert_eq!(outcome.code, Some(2), "{file} to {to}");
        assert!(outcome.stderr.contains(missing), "{}", outcome.stderr);
        assert!(!session.path("none.jsonl").exists());
    }
    let outcome = session.run(&["workload", "convert", "p.txt", "--to", "yaml", "--output", "x"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("`mooncake`"), "{}", outcome.stderr);
    assert!(!session.path("x").exists());
}

#[test]
fn a_sample_is_a_function_of_the_seed() {
    let prompts: Vec<Value> = (0..50).map(|n| json!({"prompt": format!("prompt {n}")})).collect();
    let session = with_files(&[("p.jsonl", &lines(&prompts))]);
    let sample = |seed: &str, name: &str| {
        let args = ["sample", "p.jsonl", "--count", "7", "--seed", seed, "--output", name];
        let said = made(&session, &args);
        assert!(said.contains(&format!("{name}: 7 of 50 prompts entries")), "{said}");
        read(&session, name)
    };
    let (first, again, other) = (sample("1", "a"), sample("1", "b"), sample("2", "c"));
    assert_eq!(first, again);
    assert_ne!(first, other);
    for line in first.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = &line["messages"][0]["content"];
        assert!(prompts.iter().any(|prompt| prompt["prompt"] == *text), "{line}");
    }
    // It can be run as it is, and nothing is written over it.
    let args = ["--dataset", "a", "--dataset-format", "messages", "--concurrency", "1"];
    let (records, _) =
        replayed(&session, "mock:fast", &[&args[..], &["--num-requests", "7"]].concat());
    assert_eq!(records.len(), 7);
    for args in [
        ["sample", "p.jsonl", "--count", "9", "--output", "a"],
        ["convert", "p.jsonl", "--to", "messages", "--output", "a"],
    ] {
        let outcome = session.run(&[&["workload"], &args[..]].concat());
        assert_eq!(outcome.code, Some(2), "{args:?}");
        assert!(outcome.stderr.contains("`a` already exists"), "{}", outcome.stderr);
    }
    assert_eq!(read(&session, "a"), first);
}

/// What a run sends, sorted.
fn sent(session: &Session, args: &[&str]) -> Vec<String> {
    let server = Server::start(|_| timed_stream(ms(0), ms(0), 2));
    let all = ["--model", "m", "--no-probe", "--canary", "off", "--concurrency", "1"];
    let (outcome, _) = session.measure(&server.url(), &[&all, args].concat());
    outcome.assert_finished("");
    fs::remove_dir_all(session.path("out")).unwrap();
    server.requests().into_iter().map(|request| request.body).collect()
}

#[test]
fn a_frozen_workload_sends_the_same_bytes_and_notices_a_change() {
    let session = Session::new();
    let what = ["--workload", "chat", "--num-requests", "5", "--seed", "3"];
    let said = made(&session, &[&["make", "--output", "f.jsonl"], &what[..]].concat());
    assert!(said.contains("f.jsonl: 5 requests in 5 sessions, sha256 "), "{said}");
    made(&session, &[&["make", "--output", "g.jsonl"], &what[..]].concat());
    let file = read(&session, "f.jsonl");
    assert_eq!(file, read(&session, "g.jsonl"));
    let head: Value = serde_json::from_str(file.lines().next().unwrap()).unwrap();
    assert_eq!((&head["schema"], &head["seed"]), (&json!("goodput.workload/1"), &json!(3)));
    assert!(said.contains(head["sha256"].as_str().unwrap()), "{said}");
    let frozen = sent(&session, &["--workload", "f.jsonl", "--num-requests", "5"]);
    assert_eq!(frozen.len(), 5);
    assert_eq!(frozen, sent(&session, &what));
    // It ends with its last session.
    assert_eq!(sent(&session, &["--workload", "f.jsonl", "--num-requests", "9"]), frozen);
    // One letter of one prompt.
    let place = file.rfind(" the ").unwrap() + 1;
    let mut changed = file.clone();
    changed.replace_range(place..=place, "T");
    fs::write(session.path("f.jsonl"), changed).unwrap();
    let run = ["run", "mock:fast", "--concurrency", "1", "--num-requests", "1", "--workload"];
    let show = ["workload", "show"];
    for verb in [&run[..], &show] {
        let outcome = session.run(&[verb, &["f.jsonl"]].concat());
        assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
        let words = ["f.jsonl: was changed after it was written", "hint: make it again"];
        assert!(words.iter().all(|word| outcome.stderr.contains(word)), "{}", outcome.stderr);
    }
    fs::write(session.path("f.jsonl"), file.trim_end().rsplit_once('\n').unwrap().0).unwrap();
    let outcome = session.run(&[&run[..], &["f.jsonl"]].concat());
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("was changed"), "{}", outcome.stderr);
}

#[test]
fn a_frozen_trace_keeps_its_instants() {
    let session = with_files(&[("a.csv", AZURE)]);
    made(&session, &["make", "--trace", "a.csv", "--output", "f.jsonl"]);
    let (records, _) = replayed(&session, "mock:fast", &["--workload", "f.jsonl"]);
    assert_eq!(due(&records), AZURE_AT.map(Nanos));
    let planned: Vec<_> = records.iter().map(|r| r.planned.input_tokens).collect();
    assert_eq!(planned, [374, 396, 879]);
}

#[test]
fn show_tells_what_a_file_holds() {
    let talk = json!([{"conversations": [
        {"from": "human", "value": "one"}, {"from": "gpt", "value": "two"},
        {"from": "human", "value": "three"}, {"from": "gpt", "value": "four"}]}]);
    let blocks = mooncake(&[(0.0, 600, 3, &[1]), (500.0, 600, 5, &[1])]);
    let mix = "name = \"office\"\n[[class]]\npreset = \"chat\"\nshare = 0.75\n\
        [[class]]\npreset = \"summarization\"\nshare = 0.25\n";
    let session = with_files(&[
        ("talk.json", &talk.to_string()),
        ("blocks.jsonl", &blocks),
        ("a.csv", AZURE),
        ("own.jsonl", &sessions()),
        ("mix.toml", mix),
        ("office", mix),
        ("p.txt", "one\ntwo\n"),
    ]);
    made(&session, &["make", "--workload", "chat", "--num-requests", "4", "--output", "f.jsonl"]);
    let view = |args: &[&str]| -> Value {
        let outcome = session.run(&[&["workload", "show", "--json"], args].concat());
        assert_eq!(outcome.code, Some(0), "{args:?}: {}", outcome.stderr);
        serde_json::from_str(&outcome.stdout).unwrap()
    };
    let turns = view(&["talk.json", "--turns", "5", "--num-requests", "2"]);
    assert_eq!((&turns["sessions"], &turns["turns"]["max"]), (&json!(1), &json!(2.0)));
    let trace = view(&["blocks.jsonl"]);
    assert_eq!((&trace["requests"], &trace["span_s"]), (&json!(2), &json!(0.5)));
    assert_eq!(number(&trace, "expected_hit_rate"), 512.0 / 1200.0);
    assert_eq!(
        (&trace["input_tokens"]["mean"], &trace["output_tokens"]["mean"]),
        (&json!(600.0), &json!(4.0))
    );
    assert_eq!(number(&view(&["a.csv"]), "input_tokens.max"), 879.0);
    let own = view(&["own.jsonl", "--replay", "think-times"]);
    assert_eq!(
        (&own["sessions"], &own["requests"], &own["turns"]["max"]),
        (&json!(2), &json!(4), &json!(3.0))
    );
    assert!((number(&own, "pauses_s.max") - 0.04).abs() < 1e-9, "{}", own["pauses_s"]);
    let office = view(&["mix.toml", "--num-requests", "1000"]);
    assert_eq!(office["classes"], json!([["chat", 750], ["summarization", 250]]));
    // What a file holds counts, not how it is called.
    fs::copy(session.path("f.jsonl"), session.path("frozen")).unwrap();
    for name in [&["office"][..], &["--workload", "office"]] {
        assert_eq!(view(&[name, &["--num-requests", "1000"]].concat()), office);
    }
    let renamed = view(&["--workload", "frozen"]);
    assert_eq!(renamed["previews"], view(&["f.jsonl"])["previews"]);
    assert_eq!(renamed["counted_by"], json!("the file"));
    assert_eq!(view(&["p.txt", "--num-requests", "2"])["previews"].as_array().unwrap().len(), 2);
    let frozen = view(&["f.jsonl"]);
    assert_eq!((&frozen["requests"], &frozen["counted_by"]), (&json!(4), &json!("the file")));
    assert_eq!(
        frozen["input_tokens"],
        view(&["--workload", "chat", "--num-requests", "4"])["input_tokens"]
    );
    // The page has the same figures.
    let page = session.run(&["workload", "show", "blocks.jsonl"]).stdout;
    assert!(page.contains("42.7 %") && page.contains("600 tokens in, 3 out"), "{page}");
}
