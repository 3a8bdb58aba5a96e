//! What happens around a run: traces, a user's own commands, the server's profiler.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::{Session, ms};
use goodput_clock::{now, pause};
use goodput_model::{Nanos, Tracer};
use goodput_testkit::{ArrivedRequest, Server, Step, answer, timed_stream};
use serde_json::Value;

fn is_chat(request: &ArrivedRequest) -> bool {
    request.line.starts_with("POST /v1/chat/completions")
}

/// The values of `traceparent` that came, by the number of the request.
fn received(server: &Server) -> BTreeMap<u64, String> {
    let traced = |request: &ArrivedRequest| {
        let index = request.header("x-request-id")?.rsplit('-').next()?.parse().ok()?;
        Some((index, request.header("traceparent")?.to_owned()))
    };
    server.requests().iter().filter(|request| is_chat(request)).filter_map(traced).collect()
}

/// All spans of documents, each checked for its form.
fn spans<'a>(documents: impl Iterator<Item = &'a str>) -> Vec<Value> {
    let mut all = Vec::new();
    for document in documents {
        let document: Value = serde_json::from_str(document).unwrap();
        assert_eq!(keys(&document), ["resourceSpans"]);
        for of_resource in document["resourceSpans"].as_array().unwrap() {
            assert_eq!(keys(of_resource), ["resource", "scopeSpans"]);
            assert_eq!(attribute(&of_resource["resource"], "service.name"), "goodput");
            for of_scope in of_resource["scopeSpans"].as_array().unwrap() {
                assert_eq!(of_scope["scope"]["name"], "goodput");
                let spans = of_scope["spans"].as_array().unwrap();
                assert!(spans.len() <= 500, "{} in one document", spans.len());
                all.extend(spans.iter().cloned());
            }
        }
    }
    all.iter().for_each(check_form);
    all
}

fn keys(object: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// The only value of an attribute, without the name of its type.
fn attribute(of: &Value, key: &str) -> Value {
    let all = of["attributes"].as_array().unwrap();
    let mut found = all.iter().filter(|pair| pair["key"] == key);
    let value = found.next().map_or(Value::Null, |pair| {
        pair["value"].as_object().unwrap().values().next().unwrap().clone()
    });
    assert!(found.next().is_none(), "{key} twice");
    value
}

/// Unix nanoseconds, which are text.
fn nanos(value: &Value) -> u64 {
    value.as_str().unwrap().parse().unwrap()
}

fn check_form(span: &Value) {
    let expected = [
        "attributes",
        "endTimeUnixNano",
        "events",
        "flags",
        "kind",
        "name",
        "spanId",
        "startTimeUnixNano",
        "status",
        "traceId",
    ];
    assert_eq!(keys(span), expected);
    let is_hex = |text: &str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    for (key, digits) in [("traceId", 32), ("spanId", 16)] {
        let id = span[key].as_str().unwrap();
        assert!(id.len() == digits && is_hex(id) && id.bytes().any(|b| b != b'0'), "{id}");
    }
    assert_eq!((&span["kind"], &span["flags"]), (&Value::from(3), &Value::from(1)));
    for pair in span["attributes"].as_array().unwrap() {
        let (kind, value) = pair["value"].as_object().unwrap().iter().next().unwrap();
        match kind.as_str() {
            "stringValue" => assert!(value.is_string()),
            "intValue" => assert!(value.as_str().unwrap().parse::<i64>().is_ok()),
            "doubleValue" => assert!(value.is_f64()),
            "boolValue" => assert!(value.is_boolean()),
            "arrayValue" => assert!(value["values"].is_array()),
            other => panic!("{other} is not a value of OTLP"),
        }
    }
    let (start, end) = (nanos(&span["startTimeUnixNano"]), nanos(&span["endTimeUnixNano"]));
    let mut latest = start;
    for event in span["events"].as_array().unwrap() {
        let at = nanos(&event["timeUnixNano"]);
        assert!((start..=end).contains(&at), "{event} outside of {span}");
        // The kernel's word of an answer may be earlier than the return of the call that asked.
        if event["name"] != "sent" {
            assert!(at >= latest, "{event} before what precedes it");
            latest = at;
        }
    }
}

fn events(span: &Value) -> Vec<&str> {
    span["events"].as_array().unwrap().iter().map(|event| event["name"].as_str().unwrap()).collect()
}

/// What spans say about requests of which every tenth, those whose numbers end in 5, was refused.
fn check_words(spans: &[Value], port: &str) {
    let (mut good, mut bad, mut paced) = (0, 0, 0);
    for span in spans {
        assert_eq!(span["name"], "chat m");
        for (key, value) in [
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.request.model", "m"),
            ("server.address", "127.0.0.1"),
            ("server.port", port),
            ("goodput.phase", "measured"),
        ] {
            assert_eq!(attribute(span, key), value, "{key}");
        }
        if attribute(span, "goodput.index").as_str().unwrap().ends_with('5') {
            bad += 1;
            assert_eq!(span["status"]["code"], 2);
            assert_eq!(attribute(span, "error.type"), "http_429");
            assert_eq!(attribute(span, "http.response.status_code"), "429");
            assert!(events(span).ends_with(&["sent", "headers"]), "{span}");
        } else {
            good += 1;
            assert_eq!(span["status"], Value::Object(serde_json::Map::new()));
            assert_eq!(attribute(span, "gen_ai.usage.input_tokens"), "7");
            assert_eq!(attribute(span, "gen_ai.usage.output_tokens"), "3");
            let reasons = attribute(span, "gen_ai.response.finish_reasons");
            assert_eq!(reasons, serde_json::json!({"values": [{"stringValue": "stop"}]}));
            assert!(attribute(span, "goodput.ttft_ms").as_f64().unwrap() >= 2.0);
            // Undefined where a busy machine read all tokens at once.
            paced += usize::from(attribute(span, "goodput.tpot_ms").is_f64());
            let names = events(span);
            assert!(names.starts_with(&["scheduled", "dispatched"]), "{names:?}");
            let rest = ["sent", "headers", "first_token", "last_token", "done"];
            assert!(names.ends_with(&rest), "{names:?}");
        }
    }
    assert!(good > 0 && bad > 0 && paced > 0, "{good} good, {bad} bad, {paced} paced");
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

#[test]
fn spans_have_the_ids_that_were_sent_with_exactly_the_sampled_requests() {
    let server = Server::start(|request| match request.header("x-request-id") {
        Some(id) if id.ends_with('5') => {
            vec![answer("429 Too Many Requests", "application/json", "{\"detail\":\"no\\nroom\"}")]
        }
        _ => timed_stream(ms(2), ms(5), 3),
    });
    let session = Session::new();
    let args = [
        "--rate",
        "300",
        "--num-requests",
        "80",
        "--seed",
        "7",
        "--model",
        "m",
        "--no-probe",
        "--trace-share",
        "40%",
        "--traces",
        "t.jsonl",
    ];
    let begun = unix_ns();
    let (outcome, _) = session.measure(&server.url(), &args);
    let ended = unix_ns();
    assert!(!outcome.stderr.contains("warning"), "{}", outcome.stderr);
    let text = std::fs::read_to_string(session.path("t.jsonl")).unwrap();
    let spans = spans(text.lines());

    let manifest = std::fs::read_to_string(session.path("out/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let nonce = u64::from_str_radix(manifest["trace_nonce"].as_str().unwrap(), 16).unwrap();
    let tracer = Tracer::new(7, nonce, 0.4);
    let expected: BTreeMap<u64, String> =
        (0..80).filter_map(|index| tracer.ids(index).map(|ids| (index, ids.to_string()))).collect();
    assert!((16..=50).contains(&expected.len()), "{} of 80", expected.len());
    assert_eq!(received(&server), expected);
    let exported: BTreeMap<u64, String> = spans
        .iter()
        .map(|span| {
            let ids = [&span["traceId"], &span["spanId"]].map(|id| id.as_str().unwrap());
            let index = attribute(span, "goodput.index").as_str().unwrap().parse().unwrap();
            (index, format!("00-{}-{}-01", ids[0], ids[1]))
        })
        .collect();
    assert_eq!(exported, expected);

    for span in &spans {
        assert!(
            nanos(&span["startTimeUnixNano"]) > begun && nanos(&span["endTimeUnixNano"]) < ended
        );
    }
    check_words(&spans, &server.address().port().to_string());

    // From the folder, at any time: the same to the byte. And what is there is added to.
    for lines in [1, 2] {
        let outcome = session.run(&["report", "out", "--traces", "again.jsonl"]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        let again = std::fs::read_to_string(session.path("again.jsonl")).unwrap();
        assert_eq!(again, text.repeat(lines));
    }
}

/// Runs with everything traced to `to`.
fn traced(session: &Session, server: &Server, to: &str, more: &[&str]) -> (String, Value) {
    let mut args = vec!["--seed", "7", "--model", "m", "--no-probe", "--trace-share", "1"];
    args.extend(["--traces", to]);
    args.extend(more);
    let (outcome, summary) = session.measure(&server.url(), &args);
    outcome.assert_finished(&outcome.stderr);
    (outcome.stderr, summary)
}

#[test]
fn a_collector_gets_the_spans_and_costs_no_result_when_it_fails() {
    let server = Server::start(|_| timed_stream(ms(1), ms(1), 2));
    let collector = Server::start(|request| match request.line.as_str() {
        "POST /v1/traces HTTP/1.1" => vec![answer("200 OK", "application/json", "{}")],
        _ => vec![answer("503 Busy", "text/plain", "come \u{1b}[2J back")],
    });
    let session = Session::new();
    let burst = ["--concurrency", "16", "--num-requests", "510"];
    let (stderr, _) = traced(&session, &server, &collector.url(), &burst);
    assert!(!stderr.contains("warning"), "{stderr}");
    let documents = collector.requests();
    let sizes: Vec<_> = documents
        .iter()
        .map(|document| spans([document.body.as_str()].into_iter()).len())
        .collect();
    assert_eq!(sizes, [500, 10]);
    assert!(documents.iter().all(|it| it.header("content-type") == Some("application/json")));
    let ids = |text: &str| -> BTreeSet<String> {
        spans(text.lines()).iter().map(|span| span["traceId"].to_string()).collect()
    };
    let first: BTreeSet<_> = documents.iter().flat_map(|document| ids(&document.body)).collect();
    assert_eq!(first.len(), 510);

    // The same plan and seed once more: other ids. A collector that refuses, or is not there, is
    // named with its reason and without what it says to terminals.
    let few = ["--concurrency", "2", "--num-requests", "6"];
    let elsewhere = format!("{}/other?key=hunter22", collector.url());
    let other = Session::new();
    let (stderr, summary) = traced(&other, &server, &elsewhere, &few);
    assert!(stderr.contains("warning: traces") && stderr.contains("http_503"), "{stderr}");
    assert!(!stderr.contains("hunter22") && !stderr.contains('\u{1b}'), "{stderr}");
    assert_eq!(summary["requests"]["ok"], 6);
    assert_eq!(collector.requests().last().unwrap().line, "POST /other?key=hunter22 HTTP/1.1");
    assert!(first.is_disjoint(&ids(&collector.requests().last().unwrap().body)));
    let (stderr, summary) = traced(&Session::new(), &server, "http://127.0.0.1:1", &few);
    assert!(stderr.contains("warning: traces") && stderr.contains("refused"), "{stderr}");
    assert_eq!(summary["requests"]["ok"], 6);
}

#[test]
fn a_collector_that_wants_only_some_still_gets_the_rest() {
    let server = Server::start(|_| timed_stream(ms(1), ms(1), 2));
    let picky = Server::start(|_| {
        let body = "{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"too old\"}}";
        vec![answer("200 OK", "application/json", body)]
    });
    let session = Session::new();
    let burst = ["--concurrency", "16", "--num-requests", "510"];
    let (stderr, _) = traced(&session, &server, &picky.url(), &burst);
    assert_eq!(picky.requests().len(), 2, "{stderr}");
    let said: Vec<_> = stderr.lines().filter(|line| line.contains("traces")).collect();
    let expected =
        format!("warning: traces: {} accepted 504 spans and rejected 6: too old", picky.url());
    assert_eq!(said, [expected]);

    // Ctrl-C ends the waiting for one that does not answer, and the report comes.
    let silent = Server::start(|_| vec![Step::Pause(Duration::from_mins(5))]);
    let (url, to) = (server.url(), silent.url());
    let mut args = vec!["run", &url, "--concurrency", "2", "--num-requests", "6", "--model", "m"];
    args.extend(["--no-probe", "--trace-share", "1", "--json", "--out", "b", "--traces", &to]);
    let child = session.spawn(&args);
    let deadline = now() + Duration::from_mins(1).into();
    while silent.requests().is_empty() {
        assert!(now() < deadline, "nothing was sent to the collector");
        pause(Nanos::from_millis(20));
    }
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let outcome = crate::support::outcome(child.wait_with_output().unwrap());
    let summary: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(summary["requests"]["ok"], 6);
    assert!(outcome.stderr.contains("accepted 0 spans, then sending was stopped"));
    assert!(outcome.stderr.contains("/b --traces …` sends all of them"), "{}", outcome.stderr);
}

#[test]
fn several_runs_have_their_traces_and_those_without_say_why() {
    let server = Server::start(|_| timed_stream(ms(1), ms(1), 2));
    let session = Session::new();
    let url = server.url();
    let run = |out: &str, more: &[&str]| {
        let mut args = vec!["run", &url, "--concurrency", "2", "--num-requests", "6"];
        args.extend(["--model", "m", "--no-probe", "--out", out]);
        args.extend(more);
        session.run(&args)
    };
    let outcome = run("many", &["--repeat", "2", "--trace-share", "1"]);
    outcome.assert_finished(&outcome.stderr);
    let report = session.run(&["report", "many", "--traces", "t.jsonl"]);
    assert_eq!(report.code, Some(0), "{}", report.stderr);
    assert!(report.stderr.contains("traces: 12 requests to t.jsonl"), "{}", report.stderr);
    let text = std::fs::read_to_string(session.path("t.jsonl")).unwrap();
    assert_eq!((text.lines().count(), spans(text.lines()).len()), (2, 12));

    run("plain", &[]);
    let report = session.run(&["report", "plain", "--traces", "none.jsonl"]);
    assert_eq!(report.code, Some(2), "{}", report.stderr);
    assert!(report.stderr.contains("no request was traced: the run"), "{}", report.stderr);
}

#[test]
fn a_users_own_traceparent_is_the_only_one() {
    let own = "00-11111111111111111111111111111111-2222222222222222-01";
    let server = Server::start(|_| timed_stream(ms(1), ms(1), 2));
    let session = Session::new();
    let header = format!("traceparent: {own}");
    let more = ["--concurrency", "2", "--num-requests", "6", "--header", &header];
    traced(&session, &server, "t.jsonl", &more);
    let chats: Vec<_> = server.requests().into_iter().filter(is_chat).collect();
    assert_eq!(chats.len(), 6);
    for chat in chats {
        let lines = chat.headers.iter().filter(|line| line.starts_with("traceparent:"));
        assert_eq!(lines.collect::<Vec<_>>(), [&header]);
    }
    let text = std::fs::read_to_string(session.path("t.jsonl")).unwrap();
    let document: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let resource = &document["resourceSpans"][0]["resource"];
    assert_eq!(attribute(resource, "goodput.traceparent_sent"), false);
}

fn note(file: &Path, line: &str) {
    let mut file = std::fs::File::options().append(true).create(true).open(file).unwrap();
    // In one piece: several connections write at once.
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

#[test]
fn commands_and_the_profiler_stand_around_the_load_in_order() {
    let session = Session::new();
    let order = session.path("order");
    let file = order.clone();
    let server = Server::start(move |request| {
        let path = request.line.split(' ').nth(1).unwrap();
        note(&file, if is_chat(request) { "chat" } else { path });
        match path {
            "/v1/chat/completions" => timed_stream(ms(1), ms(1), 2),
            // Where SGLang and vLLM have it, next to the API.
            "/start_profile" | "/stop_profile" => vec![answer("200 OK", "text/plain", "")],
            _ => vec![answer("404 Not Found", "text/plain", "")],
        }
    });
    let told = "\"$GOODPUT_LABEL at $GOODPUT_TARGET in $GOODPUT_RUN_FOLDER\"";
    let before = format!("echo out; echo before {told} >> order; test -f out/plan.toml");
    let after = "echo after >> order; echo gone wrong >&2; exit 9";
    let (outcome, summary) = session.measure(
        &server.url(),
        &[
            "--concurrency",
            "2",
            "--num-requests",
            "5",
            "--model",
            "m",
            "--no-probe",
            "--metrics",
            "off",
            "--profile",
            "--before-cmd",
            &before,
            "--after-cmd",
            after,
        ],
    );
    outcome.assert_finished(&outcome.stderr);
    let lines = std::fs::read_to_string(&order).unwrap();
    let folder = session.folder.path().canonicalize().unwrap().join("out");
    let first = format!("before 2 users at {} in {}", server.url(), folder.display());
    let mut expected = vec![first.as_str(), "/start_profile"];
    expected.extend(["chat"; 5]);
    expected.extend(["/stop_profile", "after"]);
    assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
    assert!(outcome.stderr.contains("out\n") && outcome.stderr.contains("gone wrong"));
    assert!(outcome.stderr.contains("warning: --after-cmd"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("status 9"), "{}", outcome.stderr);
    let caveats = summary["caveats"].as_array().unwrap();
    let profiled = caveats.iter().find(|caveat| caveat["code"] == "profiled").unwrap();
    assert_eq!(profiled["severity"], "warn");
    let report = session.run(&["report", "out", "--json"]);
    assert!(report.stdout.contains("\"profiled\""), "{}", report.stdout);
}

#[test]
fn what_cannot_begin_sends_nothing() {
    let server = Server::start(|request| {
        if is_chat(request) {
            timed_stream(ms(1), ms(1), 2)
        } else {
            vec![answer("404 Not Found", "text/plain", "")]
        }
    });
    let session = Session::new();
    let run = |out: &str, more: &[&str]| {
        let url = server.url();
        let mut args = vec!["run", &url, "--rate", "50", "--num-requests", "3", "--model", "m"];
        args.extend(["--no-probe", "--metrics", "off", "--out", out]);
        args.extend(more);
        session.run(&args)
    };
    let failed = run("a", &["--before-cmd", "exit 3", "--after-cmd", "touch never"]);
    assert_eq!(failed.code, Some(2), "{}", failed.stderr);
    assert!(failed.stderr.contains("--before-cmd `exit 3` ended with status 3"));
    // What the first command did is undone where the profiler is what fails.
    let unable = run("b", &["--profile", "--before-cmd", "true", "--after-cmd", "touch undone"]);
    assert_eq!(unable.code, Some(2), "{}", unable.stderr);
    assert!(unable.stderr.contains("/start_profile"), "{}", unable.stderr);
    assert!(unable.stderr.contains("VLLM_TORCH_PROFILER_DIR"), "{}", unable.stderr);
    assert!(session.path("undone").exists() && !session.path("never").exists());
    let nowhere = run("c", &["--traces", "no/such/folder/t.jsonl"]);
    assert_eq!(nowhere.code, Some(2), "{}", nowhere.stderr);
    assert_eq!(server.requests().iter().filter(|request| is_chat(request)).count(), 0);
}

#[test]
fn a_stop_ends_the_command_before_the_load_and_all_it_started() {
    let session = Session::new();
    let server = Server::start(|_| vec![Step::Close]);
    let mut command = session.command(&[
        "run",
        &server.url(),
        "--rate",
        "5",
        "--num-requests",
        "3",
        "--model",
        "m",
        "--no-probe",
        "--out",
        "out",
        "--before-cmd",
        "sleep 300 & echo $! > id.new; mv id.new id; wait",
    ]);
    // A pipe would be held open by what is left running, and hide it for as long as that runs.
    let said = std::fs::File::create(session.path("said")).unwrap();
    let mut child = command.stderr(said).spawn().unwrap();
    let deadline = now() + Duration::from_mins(1).into();
    let id = loop {
        if let Ok(id) = std::fs::read_to_string(session.path("id")) {
            break id.trim().to_owned();
        }
        assert!(now() < deadline, "the command has not begun");
        pause(Nanos::from_millis(20));
    };
    let own = child.id().to_string();
    std::process::Command::new("kill").args(["-INT", &own]).status().unwrap();
    let code = child.wait().unwrap().code();
    let said = std::fs::read_to_string(session.path("said")).unwrap();
    assert_eq!(code, Some(130), "{said}");
    assert_eq!(server.requests().len(), 0);
    // Dead, though its parent may not have reaped it yet.
    let state = || std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let is_dead = || state().is_empty() || state().contains(") Z ");
    while !is_dead() {
        assert!(now() < deadline, "{}", state());
        pause(Nanos::from_millis(20));
    }
}
