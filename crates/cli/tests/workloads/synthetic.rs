//! Generated traffic against servers whose counting is known: lengths to the token, answers of the
//! length asked for, mixes, the same bytes again, and what is refused.

use std::collections::BTreeMap;

use crate::support::{Session, about_time, at, number, timed};
use goodput_model::CaveatCode;
use goodput_testkit::{
    ArrivedRequest, LAST_CHUNK, STREAM_HEAD, Server, Step, answer, chunk, end_events,
};
use serde_json::{Value, json};

/// The summary of a run. On a busy machine the verdict may be void, and the counts are right.
fn measured(target: &str, args: &[&str]) -> Value {
    measured_in(&Session::new(), target, args)
}

fn measured_in(session: &Session, target: &str, args: &[&str]) -> Value {
    measured_despite(&[], session, target, args)
}

/// The same where these caveats may make it void.
fn measured_despite(
    expected: &[CaveatCode],
    session: &Session,
    target: &str,
    args: &[&str],
) -> Value {
    let (outcome, summary) = session.measure(target, &[args, &["--canary", "off"]].concat());
    outcome.assert_finished_despite(expected, &format!("{args:?}"));
    summary
}

fn has_caveat(summary: &Value, code: &str) -> bool {
    summary["caveats"].as_array().unwrap().iter().any(|caveat| caveat["code"] == code)
}

/// Every length of this side (`input`, `output`) is the planned one.
fn assert_exact(summary: &Value, side: &str, requests: f64, context: &str) {
    let check = &summary["lengths"][side];
    let context = format!("{context}, {side}: {check}");
    assert_eq!(number(check, "n"), requests, "{context}");
    assert_eq!(number(check, "exact_share"), 1.0, "{context}");
    assert_eq!(number(check, "max_error"), 0.0, "{context}");
    assert_eq!(number(check, "ratio"), 1.0, "{context}");
}

/// Tokens of a text for the scripted engine: words, and marks behind them.
fn tokens_of(text: &str) -> usize {
    let marks = text.chars().filter(char::is_ascii_punctuation).count();
    text.split_whitespace().count() + marks
}

/// What the scripted engine adds to a prompt, and to it for each message after the first.
const TEMPLATE: usize = 7;
const MESSAGE: usize = 3;

fn body(request: &ArrivedRequest) -> Value {
    serde_json::from_str(&request.body).unwrap()
}

fn is_chat(request: &ArrivedRequest) -> bool {
    request.line == "POST /v1/chat/completions HTTP/1.1"
}

/// An answer of `max_tokens` words. The only path is that of chats.
fn engine(request: &ArrivedRequest) -> Vec<Step> {
    if !is_chat(request) {
        return vec![answer("404 Not Found", "application/json", "{}")];
    }
    let body = body(request);
    let messages = body["messages"].as_array().unwrap();
    let text = |message: &Value| tokens_of(message["content"].as_str().unwrap());
    let prompt = messages.iter().map(text).sum::<usize>() + TEMPLATE - MESSAGE;
    let prompt = prompt + messages.len() * MESSAGE;
    let tokens = body["max_tokens"].as_u64().unwrap();
    let said =
        json!({"choices": [{"index": 0, "delta": {"content": "word ".repeat(tokens as usize)}}]});
    let end = end_events(u32::try_from(tokens).unwrap());
    let end = end.replace("\"prompt_tokens\":7", &format!("\"prompt_tokens\":{prompt}"));
    let events = chunk(&format!("data: {said}\n\n{end}"));
    vec![Step::write(format!("{STREAM_HEAD}{events}{LAST_CHUNK}"))]
}

/// The bodies of the last requests, in order of arrival.
fn last_bodies(server: &Server, count: usize) -> Vec<String> {
    let bodies: Vec<_> = server.requests().into_iter().filter(is_chat).map(|r| r.body).collect();
    bodies[bodies.len() - count..].to_vec()
}

const ONE_BY_ONE: [&str; 4] = ["--concurrency", "1", "--model", "m"];

#[test]
fn lengths_are_exact_to_the_token_by_the_servers_tokenize() {
    let cases: [(&str, &[&str]); 8] = [
        ("mock:fast", &[]),
        ("mock:fast", &["--input-tokens", "uniform:20:600"]),
        ("mock:fast", &["--input-tokens", "uniform:20:600", "--system-tokens", "100"]),
        ("mock:fast", &["--input-tokens", "uniform:20:600", "--api", "completions"]),
        ("mock:fast", &["--api", "completions", "--system-tokens", "50"]),
        ("mock:fast", &["--input-tokens", "zipf:1.2:16:4096", "--no-stream"]),
        ("mock:fast", &["--prefix-groups", "3", "--prefix-tokens", "40", "--isl", "90"]),
        ("mock:llama-8b-1xh200", &["--cache", "hit=50%", "--isl", "uniform:40:200"]),
    ];
    for (target, args) in cases {
        let flags = ["--concurrency", "4", "--num-requests", "40", "--osl", "uniform:1:30"];
        let summary = measured(target, &[&flags, args].concat());
        assert_eq!(at(&summary, "run.calibration"), "server", "{args:?}");
        assert_exact(&summary, "input", 40.0, &format!("{args:?}"));
        assert_exact(&summary, "output", 40.0, &format!("{args:?}"));
    }
}

#[test]
fn a_server_without_tokenize_is_asked_by_its_usage() {
    for args in [&["--isl", "uniform:30:400"][..], &["--system-tokens", "60", "--isl", "200"]] {
        let server = Server::start(engine);
        let flags = ["--num-requests", "25", "--osl", "uniform:1:9"];
        let summary = measured(&server.url(), &[&ONE_BY_ONE, &flags, args].concat());
        assert_eq!(at(&summary, "run.calibration"), "usage", "{args:?}");
        assert_exact(&summary, "input", 25.0, &format!("{args:?}"));
        assert_exact(&summary, "output", 25.0, &format!("{args:?}"));
        let chats = server.requests().iter().filter(|request| is_chat(request)).count();
        // One probe, at most 48 questions for words and two for the template.
        assert!(chats <= 25 + 1 + 48 + 2, "{chats}");
    }
}

#[test]
fn without_a_length_check_the_server_is_asked_nothing_and_lengths_are_about_right() {
    let server = Server::start(engine);
    let flags = ["--num-requests", "10", "--isl", "100", "--osl", "5", "--no-length-check"];
    let summary = measured(&server.url(), &[&ONE_BY_ONE[..], &flags].concat());
    assert_eq!(at(&summary, "run.calibration"), "estimate");
    // Every word and mark is one token, as estimated; the template is not known.
    assert_eq!(number(&summary, "lengths.input.planned_mean"), 100.0);
    assert_eq!(number(&summary, "lengths.input.actual_mean"), 100.0 + TEMPLATE as f64);
    // No count was reported.
    assert!(!has_caveat(&summary, "input_length"), "{summary}");
    let seen: Vec<_> = server.requests().into_iter().map(|request| request.line).collect();
    // Pages that are only read cost it nothing.
    let is_asked = |line: &&String| line.starts_with("POST");
    let lines: Vec<_> = seen.iter().filter(is_asked).collect();
    // A probe, and the run.
    assert_eq!(lines.len(), 11, "{seen:?}");
    let on_mock = ["--num-requests", "20", "--concurrency", "2", "--osl", "2", "--isl", "300"];
    let summary = measured("mock:fast", &[&on_mock[..], &["--no-length-check"]].concat());
    let ratio = number(&summary, "lengths.input.ratio");
    assert!((0.8..1.5).contains(&ratio), "{ratio}");
}

#[test]
fn a_tokenizer_of_another_model_is_found_out() {
    let flags = ["--concurrency", "2", "--num-requests", "20", "--osl", "2", "--isl", "120"];
    let other = ["--tokenizer", "cl100k_base", "--no-probe"];
    let summary = measured("mock:fast", &[&flags[..], &other].concat());
    assert_eq!(at(&summary, "run.calibration"), "tokenizer");
    assert_eq!(number(&summary, "lengths.input.planned_mean"), 120.0);
    // The template alone is four tokens, 3 %.
    assert!(number(&summary, "lengths.input.ratio") >= 124.0 / 120.0, "{}", summary["lengths"]);
    assert!(has_caveat(&summary, "input_length"), "{}", summary["caveats"]);
    assert!(!has_caveat(&measured("mock:fast", &flags), "input_length"));
}

#[test]
fn answers_that_end_early_are_a_caveat_where_their_length_was_asked_for() {
    let flags = ["--concurrency", "4", "--num-requests", "20", "--isl", "30", "--osl", "40"];
    for fault in ["ignores-ignore-eos", "early-eos"] {
        let target = format!("mock:fast,fault={fault}");
        let summary = measured(&target, &flags);
        assert_eq!(number(&summary, "lengths.output.ratio"), 0.5, "{fault}");
        assert_eq!(number(&summary, "lengths.output.exact_share"), 0.0, "{fault}");
        assert!(has_caveat(&summary, "output_length"), "{fault}");
    }
    assert!(!has_caveat(&measured("mock:fast", &flags), "output_length"));
    // A limit is not a length. A server that ends earlier keeps it.
    let limit = [&flags[..], &["--output-length", "limit"]].concat();
    let summary = measured("mock:fast,fault=early-eos", &limit);
    assert_eq!(number(&summary, "lengths.output.ratio"), 0.5);
    assert!(!has_caveat(&summary, "output_length"));
    // Nothing asked for all tokens, so the other fault does not happen.
    let summary = measured("mock:fast,fault=ignores-ignore-eos", &limit);
    assert_eq!(number(&summary, "lengths.output.ratio"), 1.0);
}

#[test]
fn exact_answers_are_asked_for_with_three_fields_and_limits_with_one() {
    for (how, fields) in [("exact", true), ("limit", false)] {
        let server = Server::start(engine);
        let flags = ["--num-requests", "5", "--osl", "uniform:3:9", "--output-length", how];
        let quick = ["--no-probe", "--isl", "30"];
        measured(&server.url(), &[&ONE_BY_ONE[..], &flags, &quick].concat());
        for request in server.requests().iter().filter(|request| is_chat(request)) {
            let body = body(request);
            assert!((3..=9).contains(&body["max_tokens"].as_u64().unwrap()), "{body}");
            let expected = if fields { body["max_tokens"].clone() } else { Value::Null };
            assert_eq!(body["min_tokens"], expected, "{how}: {body}");
            let expected = if fields { Value::Bool(true) } else { Value::Null };
            assert_eq!(body["ignore_eos"], expected, "{how}: {body}");
        }
    }
}

#[test]
fn a_server_that_refuses_ignore_eos_is_asked_without() {
    let server = Server::start(|request| {
        if is_chat(request) && !body(request)["ignore_eos"].is_null() {
            let refusal = r#"{"error":{"message":"Unrecognized request argument: ignore_eos"}}"#;
            return vec![answer("400 Bad Request", "application/json", refusal)];
        }
        engine(request)
    });
    let session = Session::new();
    let flags = ["--num-requests", "6", "--isl", "40", "--osl", "8", "--out", "out"];
    let outcome = session.run(&[&["run", &server.url()], &ONE_BY_ONE[..], &flags].concat());
    outcome.assert_finished("");
    assert!(outcome.stderr.contains("refuses `min_tokens` and `ignore_eos`"), "{}", outcome.stderr);
    let read = |name: &str| std::fs::read_to_string(session.path(name)).unwrap();
    let summary: Value = serde_json::from_str(&read("out/summary.json")).unwrap();
    assert_eq!(number(&summary, "requests.ok"), 6.0);
    assert!(read("out/plan.toml").contains("output = \"limit\""));
    for text in last_bodies(&server, 6) {
        assert!(text.contains("\"max_tokens\":8"), "{text}");
        assert!(!text.contains("ignore_eos") && !text.contains("min_tokens"), "{text}");
    }
}

#[test]
fn a_thousand_requests_of_a_mix_have_exactly_their_shares() {
    let mix = "chat=70%,summarization=20%,code_generation=10%";
    let flags = ["--concurrency", "16", "--num-requests", "1000", "--osl", "2"];
    let summary = measured("mock:fast", &[&flags[..], &["--mix", mix]].concat());
    let classes = at(&summary, "breakdown.class").as_object().unwrap();
    let counts: BTreeMap<&str, f64> =
        classes.iter().map(|(name, slice)| (name.as_str(), number(slice, "ok"))).collect();
    let expected = [("chat", 700.0), ("code_generation", 100.0), ("summarization", 200.0)];
    assert_eq!(counts, expected.into());
    assert_exact(&summary, "input", 1000.0, "mix");
    let mean = |class: &str| number(&classes[class], "input_tokens_mean");
    // Medians of 500, 1,500 and 4,000 with the same sigma.
    assert!(mean("chat") < mean("code_generation"), "{classes:?}");
    assert!(mean("code_generation") < mean("summarization"), "{classes:?}");
}

/// A file of classes `short` and `long` with these answer lengths.
fn two_classes(session: &Session, outputs: [u32; 2], models: [&str; 2]) {
    let class = |((name, output), model): ((&str, u32), &str)| {
        format!(
            "[[class]]\nname = \"{name}\"\nshare = 0.5\nmodel = \"{model}\"\n[class.source]\n\
             kind = \"synthetic\"\ninput = \"30\"\noutput = \"{output}\"\n"
        )
    };
    let classes = ["short", "long"].into_iter().zip(outputs).zip(models);
    let text = classes.map(class).collect::<String>();
    std::fs::write(session.path("two.toml"), text).unwrap();
}

#[test]
fn classes_far_apart_are_a_caveat_and_equal_ones_are_not() {
    timed(|| {
        for (outputs, is_bimodal) in [([2, 120], true), ([4, 4], false)] {
            let session = Session::new();
            two_classes(&session, outputs, ["mock", "mock"]);
            // 10 ms against 600, and 115 against 115: no machine is so busy that this changes.
            let target =
                if is_bimodal { "mock:ttft=5ms,itl=5ms" } else { "mock:ttft=100ms,itl=5ms" };
            let flags = ["--workload", "two.toml", "--concurrency", "20", "--num-requests", "60"];
            let summary = measured_in(&session, target, &flags);
            about_time(|| {
                assert_eq!(
                    has_caveat(&summary, "bimodal_mix"),
                    is_bimodal,
                    "{}",
                    summary["breakdown"]
                );
            });
            let slices = at(&summary, "breakdown.class");
            for (class, output) in ["short", "long"].into_iter().zip(outputs) {
                assert_eq!(number(&slices[class], "output_tokens_mean"), f64::from(output));
            }
        }
    });
}

#[test]
fn each_class_asks_for_its_own_adapter() {
    let session = Session::new();
    two_classes(&session, [2, 2], ["a", "b"]);
    let show = session.run(&["workload", "show", "two.toml", "--num-requests", "40", "--json"]);
    let view: Value = serde_json::from_str(&show.stdout).unwrap();
    let counts: BTreeMap<String, f64> = serde_json::from_value(view["classes"].clone())
        .map(|pairs: Vec<(String, f64)>| pairs.into_iter().collect())
        .unwrap();
    assert_eq!(counts.values().sum::<f64>(), 40.0);
    let flags = ["--workload", "two.toml", "--concurrency", "4", "--num-requests", "40"];
    for (adapters, failing) in [("lora=a,lora=b", None), ("lora=a", Some("long"))] {
        let folder = Session::new();
        std::fs::copy(session.path("two.toml"), folder.path("two.toml")).unwrap();
        // A class without its adapter fails, and that is about half.
        let expected = [CaveatCode::Errors];
        let target = format!("mock:fast,{adapters}");
        let summary = measured_despite(&expected, &folder, &target, &flags);
        for (class, count) in &counts {
            let slice = &at(&summary, "breakdown.class")[class];
            let failed = if failing == Some(class) { *count } else { 0.0 };
            assert_eq!(number(slice, "scheduled"), *count, "{adapters}: {slice}");
            assert_eq!(number(slice, "failed"), failed, "{adapters}: {slice}");
        }
        let unknown = at(&summary, "requests.errors.http_404").as_f64();
        assert_eq!(unknown, failing.map(|class| counts[class]), "{}", summary["requests"]);
    }
}

/// Hash of the workload and the bodies of a run, one request after another.
fn sent(session: &Session, args: &[&str], count: usize) -> (String, Vec<String>) {
    let server = Server::start(engine);
    let url = server.url();
    let outcome = session.run(&[&["run", &url, "--quiet", "--json"], args].concat());
    outcome.assert_finished(&format!("{args:?}"));
    let summary: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(number(&summary, "requests.ok"), count as f64, "{args:?}");
    let hash = at(&summary, "run.workload_hash").as_str().unwrap().to_owned();
    // The plan of a run knows how the server counts: a probe, and nothing is found out again.
    let asked = server.requests().iter().filter(|request| is_chat(request)).count();
    assert!(!args.contains(&"--plan") || asked == count + 1, "{asked}");
    (hash, last_bodies(&server, count))
}

#[test]
fn the_same_plan_sends_the_same_bytes_and_another_seed_none_of_them() {
    let session = Session::new();
    let flags = ["--num-requests", "12", "--mix", "chat=50%,code_generation=50%"];
    let flags = [&ONE_BY_ONE[..], &flags, &["--osl", "uniform:1:9", "--system-tokens", "20"]];
    let run = |out: &str, seed: &str| {
        sent(&session, &[&flags.concat()[..], &["--seed", seed, "--out", out]].concat(), 12)
    };
    let first = run("a", "7");
    assert_eq!(run("b", "7"), first);
    assert_eq!(sent(&session, &["--plan", "a/plan.toml", "--out", "c"], 12), first);
    let other = run("d", "8");
    assert_ne!(other.0, first.0);
    assert!(other.1.iter().all(|body| !first.1.contains(body)));
    let manifest = std::fs::read_to_string(session.path("a/manifest.json")).unwrap();
    assert!(manifest.contains(&first.0), "{manifest}");
}

#[test]
fn a_frozen_workload_is_what_the_direct_run_sends() {
    let session = Session::new();
    let what = ["--isl", "uniform:20:90", "--osl", "uniform:2:9", "--seed", "7"];
    let count = ["--num-requests", "15"];
    let make = [&["workload", "make", "--output", "w.jsonl"], &what[..], &count].concat();
    let first = session.run(&make);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert!(first.stderr.contains("15 requests in 15 sessions"), "{}", first.stderr);
    let direct = ["--no-length-check", "--out", "direct"];
    let direct = sent(&session, &[&ONE_BY_ONE[..], &what, &count, &direct].concat(), 15);
    // The file limits how much is sent, however much is requested.
    let frozen = ["--workload", "w.jsonl", "--num-requests", "40", "--out", "frozen"];
    let frozen = sent(&session, &[&ONE_BY_ONE[..], &frozen].concat(), 15);
    assert_eq!(frozen.1, direct.1);
    // A second one of the same description is the same file.
    let again = [&["workload", "make", "--output", "again.jsonl"], &what[..], &count].concat();
    assert_eq!(session.run(&again).code, Some(0));
    let read = |name: &str| std::fs::read(session.path(name)).unwrap();
    assert_eq!(read("w.jsonl"), read("again.jsonl"));
    // A file that is there is left alone.
    assert_eq!(session.run(&make).code, Some(2));
    assert_eq!(read("w.jsonl"), read("again.jsonl"));
}

#[test]
fn a_dry_run_sends_nothing_and_shows_three_bodies() {
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let session = Session::new();
    let flags = ["--rate", "5", "--num-requests", "30", "--isl", "25", "--osl", "9"];
    let dry = [&["run", &closed, "--dry-run", "--json"], &flags[..]].concat();
    let outcome = session.run(&dry);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("nothing is sent"), "{}", outcome.stderr);
    let view: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!((&view["requests"], &view["sessions"]), (&json!(30), &json!(30)));
    let previews = view["previews"].as_array().unwrap();
    assert_eq!(previews.len(), 3);
    for preview in previews {
        let body: Value = serde_json::from_str(preview["body"].as_str().unwrap()).unwrap();
        assert_eq!(tokens_of(body["messages"][0]["content"].as_str().unwrap()), 25, "{body}");
        assert_eq!((&body["max_tokens"], &body["ignore_eos"]), (&json!(9), &json!(true)));
    }
    let page = session.run(&[&["run", &closed, "--dry-run"], &flags[..]].concat()).stdout;
    assert_eq!(page.matches("\"max_tokens\":9").count(), 3, "{page}");
    // No folder of a run was left behind.
    assert_eq!(std::fs::read_dir(session.folder.path()).unwrap().count(), 0);
    // They are the bodies that a run sends.
    let run = [&ONE_BY_ONE[..], &flags[2..], &["--no-length-check", "--out", "out"]].concat();
    let real = sent(&session, &run, 30).1;
    let dry = session.run(&[&dry[..], &["--model", "m"]].concat());
    let view: Value = serde_json::from_str(&dry.stdout).unwrap();
    for (place, sent) in real.iter().take(3).enumerate() {
        assert_eq!(view["previews"][place]["body"].as_str(), Some(sent.as_str()));
    }
}

#[test]
fn the_numbers_of_a_preview_add_up() {
    let flags = ["--mix", "chat=3,agent=1", "--num-requests", "200", "--structured", "json:25%"];
    let outcome = Session::new().run(&[&["workload", "show", "--json"], &flags[..]].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let view: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let requests = number(&view, "requests");
    // Whole sessions are looked at until there are enough requests.
    assert!((200.0..300.0).contains(&requests), "{requests}");
    let sum = |name: &str| {
        let pairs = view[name].as_array().unwrap().iter();
        pairs.map(|pair| pair[1].as_f64().unwrap()).sum::<f64>()
    };
    assert_eq!((sum("classes"), sum("constraints")), (requests, requests));
    for histogram in ["input_tokens", "output_tokens"] {
        let bins = view[histogram]["bins"].as_array().unwrap().iter();
        assert_eq!(bins.map(|bin| bin[2].as_f64().unwrap()).sum::<f64>(), requests);
        assert_eq!(number(&view[histogram], "n"), requests);
    }
    // `turns` has the requests of each session.
    assert_eq!(number(&view, "turns.n"), number(&view, "sessions"));
    let mean = number(&view, "turns.mean") * number(&view, "sessions");
    assert!((mean - requests).abs() < 1e-6, "{mean}");
}

#[test]
fn what_cannot_be_sent_is_refused_with_a_hint() {
    let cases: [(&[&str], &str, &str); 15] = [
        (&["--workload", "talk"], "no workload is named `talk`", "presets: chat"),
        (&["--mix", "chat"], "`chat` is not a mix", "--mix chat=70%"),
        (&["--mix", "chat=70%,nope=30%"], "no workload is named `nope`", "presets: chat"),
        (&["--mix", "chat=0%,agent=100%"], "is not a mix", "--mix chat=70%"),
        (&["--isl", "uniform:900:100"], "uniform:900:100", "lognormal:200:0.8"),
        (&["--isl", "0"], "`0` is not a length", "uniform:50:400"),
        (&["--osl", "many"], "`many` is not a length", "uniform:50:400"),
        (&["--cache", "hit=170%"], "`hit=170%` is not a state of the cache", "hit=70%[:GROUPS]"),
        (&["--cache", "tiling=4"], "`tiling=4` is not a state of the cache", "tiling=CONTEXTS"),
        (&["--turn-pause", "1s"], "without turns", "add --turns 4"),
        (&["--turns", "0"], "`0` is not a length", "--turns"),
        (&["--turns", "2", "--turn-pause", "soon"], "soon", "--turn-pause"),
        (
            &["--images", "1", "--api", "completions"],
            "the completions API cannot carry images",
            "--api chat",
        ),
        (&["--images", "65"], "does not describe images", "2:640x480"),
        (&["--structured", "xml"], "`xml` is not a constraint", "json:50%"),
    ];
    for (args, message, hint) in cases {
        for command in [&["run", "mock:fast", "--rate", "5"][..], &["workload", "show"]] {
            if command[0] == "workload" && args.contains(&"--api") {
                continue;
            }
            let all = [command, args].concat();
            let outcome = Session::new().run(&all);
            assert_eq!(outcome.code, Some(2), "{all:?}: {}", outcome.stderr);
            assert!(outcome.stderr.contains(message), "{all:?}: {}", outcome.stderr);
            assert!(outcome.stderr.contains(hint), "{all:?}: {}", outcome.stderr);
            assert!(outcome.stdout.is_empty(), "{all:?}: {}", outcome.stdout);
        }
    }
}

#[test]
fn a_workload_that_ends_early_ends_the_window() {
    let session = Session::new();
    let make = ["workload", "make", "--output", "w.jsonl", "--num-requests", "15", "--osl", "2"];
    assert_eq!(session.run(&make).code, Some(0));
    let flags = ["--workload", "w.jsonl", "--rate", "100", "--arrivals", "constant"];
    let summary = measured_in(&session, "mock:fast", &flags);
    // The last of fifteen is due after 140 ms; 60 s were to be measured.
    assert!(number(&summary, "window.end_s") < 1.0, "{}", summary["window"]);
    assert_eq!(at(&summary, "run.workload_ended"), true);
}

#[test]
fn images_are_not_taken_for_prompts_that_are_too_long() {
    let flags = ["--concurrency", "1", "--num-requests", "3", "--osl", "2", "--images", "1:8x8"];
    let summary = measured("mock:fast", &flags);
    assert!(!has_caveat(&summary, "input_length"), "{summary}");
    // What the images cost is the server's word; the text is as long as planned.
    assert!(number(&summary, "tokens.image") > 0.0);
    assert_exact(&summary, "input", 3.0, "images");
}
