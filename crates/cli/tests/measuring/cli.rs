//! The command line: wrong usage, unreachable targets, secrets, repeatability.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;

use crate::support::{Session, at, ms, number};
use goodput_testkit::{ArrivedRequest, Server, Step, answer, timed_stream};
use serde_json::json;

#[test]
fn wrong_usage_is_said_clearly_and_exits_with_2() {
    let cases: [(&[&str], &str); 34] = [
        (&["run", "mock"], "set --rate or --concurrency"),
        (&["run", "mock", "--rate", "1", "--concurrency", "1"], "cannot be used with"),
        (&["run", "mock", "--rate", "-1"], "--rate"),
        (&["run", "mock", "--rate", "inf"], "--num-requests"),
        (&["run", "mock", "--rate", "1", "--arrivals", "gamma:0"], "gamma:CV"),
        (&["run", "mock", "--rate", "1", "--duration", "ten"], "90s"),
        (&["run", "mock", "--rate", "1", "--percentiles", "50,101"], "between 0 and 100"),
        (&["run", "mock", "--rate", "1", "--no-such-flag"], "unexpected argument"),
        (&["run", "mock", "--rate", "1", "--workload", "nope"], "presets: chat"),
        (&["run", "mock:slots=0", "--rate", "1"], "must be from 1 to"),
        (&["run", "example.org", "--rate", "1"], "http://example.org"),
        (&["run", "http://h:1", "--rate", "1", "--header", "nocolon"], "Name: value"),
        (&["run", "mock", "--rate", "1", "--extra-body", "[1]"], "JSON object"),
        (
            &["run", "https://localhost:1", "--rate", "1", "--cacert", "/does/not/exist"],
            "/does/not/exist",
        ),
        (&["run", "mock", "--rate", "1", "--api-key-env", "NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE"),
        (&["report", "."], "not a run folder"),
        (
            &["run", "mock", "--rate", "inf", "--num-requests", "5", "--warmup", "1s"],
            "cannot have a warm-up",
        ),
        (
            &["run", "mock", "--rate", "inf", "--num-requests", "5", "--cooldown", "1s"],
            "cannot have a warm-up",
        ),
        (&["run", "mock", "--concurrency", "5", "--arrivals", "constant"], "cannot be used with"),
        (&["run", "mock", "--concurrency", "5", "--max-concurrency", "2"], "cannot be used with"),
        (&["run", "mock", "--rate", "5", "--think-time", "1s"], "cannot be used with"),
        (&["run", "--plan", "x", "--isl", "9"], "--input-tokens cannot be given again"),
        (&["man", "nope"], "`nope` is not a command"),
        // What is misspelled, and what was meant.
        (&["rnu"], "did you mean `run`?"),
        (&["run"], "hint: `localhost:8000` is a server"),
        (&["run", "mok", "--rate", "1"], "did you mean `mock`?"),
        (&["run", "mock", "--rate", "1", "--workload", "chta"], "did you mean `chat`?"),
        (&["run", "mock", "--rate", "1", "--slo", "interactve"], "did you mean `interactive`?"),
        (&["mock", "--profile", "dem"], "did you mean `demo`?"),
        (&["run", "mock:llama-8b-1xh20", "--rate", "1"], "did you mean `llama-8b-1xh200`?"),
        (&["report", "x", "--format", "jsn"], "'json'"),
        (&["workload", "convert", "x", "--to", "mooncak", "--output", "y"], "`mooncake`?"),
        (&["help", "lod"], "did you mean `load`?"),
        // An address that this machine does not have.
        (&["run", "mock", "--rate", "1", "--metrics-listen", "192.0.2.1:9400"], "port 0"),
    ];
    for (args, expected) in cases {
        let outcome = Session::new().run(args);
        assert_eq!(outcome.code, Some(2), "{args:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(expected), "{args:?}: {}", outcome.stderr);
        assert!(outcome.stdout.is_empty(), "{args:?}");
        assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    }
}

#[test]
fn targets_that_cannot_be_measured_exit_with_3_and_a_hint() {
    let refusing = |status: &'static str, body: &'static str| {
        Server::start(move |_| vec![answer(status, "application/json", body)])
    };
    let key = refusing("401 Unauthorized", r#"{"error":{"message":"bad key"}}"#);
    let model = refusing("404 Not Found", r#"{"error":{"message":"no such model"}}"#);
    let page = Server::start(|_| vec![answer("200 OK", "text/html", "<html>Sign in</html>")]);
    let moved = Server::start(|_| {
        vec![Step::write(
            "HTTP/1.1 307 Moved\r\nlocation: http://other/v1\r\ncontent-length: 0\r\n\r\n",
        )]
    });
    let field = refusing("422 Unprocessable", r#"{"detail":"Unexpected fields: {'ignore_eos'}"}"#);
    let plain = Server::start(|_| vec![Step::write("garbage\r\n\r\n"), Step::Close]);
    let closed_port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let tls = plain.url().replace("http", "https");
    let cases = [
        (closed_port, "--wait-ready"),
        ("http://no-such-host.invalid:8000".to_owned(), "cannot resolve"),
        (key.url(), "OPENAI_API_KEY"),
        (model.url(), "--model"),
        (field.url(), "--ignore-eos"),
        (tls, "use http://"),
        (plain.url(), "--http2"),
        (page.url(), "web page"),
        (moved.url(), "http://other/v1"),
    ];
    for (url, hint) in cases {
        let outcome = Session::new().run(&[
            "run",
            &url,
            "--rate",
            "10",
            "--num-requests",
            "5",
            "--model",
            "m",
        ]);
        assert_eq!(outcome.code, Some(3), "{url}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(hint), "{url}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("hint:"), "{url}: {}", outcome.stderr);
    }
}

#[test]
fn a_server_that_is_still_starting_is_waited_for() {
    let server = Server::start(|request: &ArrivedRequest| {
        if request.number < 3 {
            vec![answer("503 Service Unavailable", "application/json", r#"{"error":"loading"}"#)]
        } else {
            timed_stream(ms(1), ms(1), 2)
        }
    });
    let args = ["--rate", "50", "--num-requests", "5", "--model", "m", "--wait-ready", "20s"];
    let (outcome, summary) = Session::new().measure(&server.url(), &args);
    outcome.assert_finished("");
    assert_eq!(number(&summary, "requests.ok"), 5.0);
}

#[test]
fn a_server_that_never_becomes_ready_is_given_up() {
    let server = Server::start(|_| vec![answer("503 Unavailable", "text/plain", "loading")]);
    let args = ["run", &server.url(), "--rate", "50", "--model", "m", "--wait-ready", "600ms"];
    let outcome = Session::new().run(&args);
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("did not become ready"), "{}", outcome.stderr);
}

#[test]
fn a_server_that_refuses_stream_options_is_asked_without() {
    let server = Server::start(|request: &ArrivedRequest| {
        if request.body.contains("stream_options") {
            vec![answer(
                "422 Unprocessable",
                "application/json",
                r#"{"detail":"unknown field: stream_options"}"#,
            )]
        } else {
            timed_stream(ms(1), ms(1), 2)
        }
    });
    let (outcome, summary) = Session::new()
        .measure(&server.url(), &["--rate", "50", "--num-requests", "5", "--model", "m"]);
    outcome.assert_finished("");
    assert_eq!(number(&summary, "requests.ok"), 5.0);
}

#[test]
fn the_model_is_asked_for_and_requests_carry_what_was_asked() {
    let server = Server::start(|request: &ArrivedRequest| {
        if request.line.starts_with("GET /base/v1/models ") {
            vec![answer("200 OK", "application/json", r#"{"data":[{"id":"served-model"}]}"#)]
        } else {
            timed_stream(ms(1), ms(1), 2)
        }
    });
    let url = format!("{}/base", server.url());
    let args = [
        "--rate",
        "50",
        "--num-requests",
        "3",
        "--max-tokens",
        "9",
        "--header",
        "X-Team: blue",
        "--extra-body",
        r#"{"top_k":4}"#,
        "--ignore-eos",
    ];
    let session = Session::new();
    let mut command = session.command(&["run", &url, "--quiet", "--out", "out"]);
    command.args(args).env("OPENAI_API_KEY", "sk-test-key-123");
    crate::support::outcome_of(&mut command).assert_finished("");
    let requests = server.requests();
    let request = requests.iter().rfind(|request| request.line.starts_with("POST")).unwrap();
    assert_eq!(request.line, "POST /base/v1/chat/completions HTTP/1.1");
    assert_eq!(request.header("x-team"), Some("blue"));
    assert_eq!(request.header("authorization"), Some("Bearer sk-test-key-123"));
    let body: serde_json::Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(body["model"], "served-model");
    assert_eq!(body["max_tokens"], 9);
    assert_eq!(body["top_k"], 4);
    assert_eq!(body["ignore_eos"], true);
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
}

#[test]
fn secrets_and_texts_are_written_nowhere() {
    // A server that quotes the key and a header back, as real ones do.
    let server = Server::start(|request: &ArrivedRequest| {
        if request.number.is_multiple_of(2) {
            return timed_stream(ms(1), ms(1), 2);
        }
        let key = request.header("authorization").unwrap_or_default();
        let header = request.header("x-secret").unwrap_or_default();
        let body = json!({"error": {"message": format!("wrong key: {key}, {header}")}}).to_string();
        vec![answer("429 Too Many", "application/json", &body)]
    });
    let session = Session::new();
    let url = format!("{}/v1?sig=querysecret77", server.url());
    let output = session
        .command(&[
            "run",
            &url,
            "--rate",
            "100",
            "--num-requests",
            "10",
            "--model",
            "m",
            "--header",
            "x-secret: hunter2hunter2",
            "--out",
            "out",
            "--no-probe",
        ])
        .env("OPENAI_API_KEY", "sk-very-secret")
        .output()
        .unwrap();
    assert!(server.requests().iter().all(|r| r.line.contains("?sig=querysecret77")));
    let mut written = session.everything_written();
    written.extend(output.stdout);
    written.extend(output.stderr);
    let text = String::from_utf8_lossy(&written);
    assert!(text.contains("wrong key: Bearer [redacted], [redacted]"), "{text}");
    for secret in ["sk-very-secret", "hunter2hunter2", "querysecret77"] {
        assert!(!text.contains(secret), "{secret} was written");
    }
    // The first words of a prompt are a nonce in brackets; no prompt is kept.
    let body: serde_json::Value = serde_json::from_str(&server.requests()[0].body).unwrap();
    let prompt = body["messages"][0]["content"].as_str().unwrap();
    assert!(!text.contains(&prompt[..14]), "a prompt was written");
}

#[test]
fn texts_are_kept_on_request() {
    let server = Server::start(|_| timed_stream(ms(1), ms(1), 3));
    let session = Session::new();
    session.measure(
        &server.url(),
        &["--rate", "100", "--num-requests", "2", "--model", "m", "--save-text"],
    );
    let text = std::fs::read_to_string(session.path("out/text.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["answer"], "xxx");
    let requests = server.requests();
    let last = requests.iter().rfind(|request| request.line.starts_with("POST")).unwrap();
    let sent: serde_json::Value = serde_json::from_str(&last.body).unwrap();
    assert!(lines.iter().any(|line| line["prompt"] == sent["messages"][0]["content"]));
}

#[test]
fn the_same_seed_sends_the_same_bytes_and_a_plan_repeats_a_run() {
    let bodies = |session: &Session, args: &[&str]| {
        let server = Server::start(|_| timed_stream(ms(1), ms(1), 2));
        let mut all = vec!["run", "TARGET", "--quiet"];
        all.extend(args);
        let url = server.url();
        all[1] = &url;
        let outcome = session.run(&all);
        outcome.assert_finished("");
        let mut bodies: Vec<_> = server.requests().into_iter().map(|r| r.body).collect();
        bodies.sort();
        bodies
    };
    let session = Session::new();
    let flags = ["--rate", "200", "--num-requests", "20", "--model", "m", "--no-probe"];
    let run = |name: &str, seed: &str| {
        bodies(&session, &[&flags[..], &["--seed", seed, "--out", name]].concat())
    };
    let first = run("a", "7");
    assert_eq!(first.len(), 20);
    assert_eq!(first, run("b", "7"));
    assert_ne!(first, run("c", "8"));
    // Two workers and a closed loop send the same requests.
    let closed = [
        "--concurrency",
        "4",
        "--workers",
        "2",
        "--num-requests",
        "20",
        "--model",
        "m",
        "--seed",
        "7",
        "--out",
        "d",
        "--no-probe",
    ];
    assert_eq!(first, bodies(&session, &closed));
    assert_eq!(first, bodies(&session, &["--plan", "a/plan.toml", "--out", "e"]));
    // Where the plan asks for it the log can prove that, whatever the model is called.
    let plan = std::fs::read_to_string(session.path("a/plan.toml")).unwrap();
    let asking = plan.replace("[measure]", "[measure]\nhash_bodies = true");
    std::fs::write(session.path("hashed.toml"), asking).unwrap();
    let hashes = |name: &str, model: &str| {
        bodies(&session, &["--plan", "hashed.toml", "--model", model, "--out", name]);
        let folder = goodput_record::RunFolder::open(&session.path(name)).unwrap();
        let records = folder.read_records().unwrap();
        let mut hashes: Vec<_> =
            records.map(|r| (r.index, r.exchange.body_hash.unwrap(), r.scheduled)).collect();
        hashes.sort_unstable();
        hashes
    };
    let first = hashes("f", "m");
    assert_eq!(first.len(), 20);
    assert_eq!(first, hashes("g", "another"));
}

#[test]
fn report_gives_exactly_what_the_run_printed() {
    let session = Session::new();
    let args = [
        "run",
        "mock:ttft=5ms,itl=1ms",
        "--rate",
        "100",
        "--num-requests",
        "50",
        "--max-tokens",
        "5",
        "--out",
        "out",
    ];
    let live = session.run(&args);
    live.assert_finished("");
    assert_eq!(session.run(&["report", "out"]).stdout, live.stdout);
    // The verdict comes first, and `-v` has the rest.
    let first = live.stdout.split_whitespace().next();
    assert!(["VALID", "SUSPECT", "VOID"].map(Some).contains(&first), "{}", live.stdout);
    assert!(live.stdout.lines().count() <= 25, "{}", live.stdout);
    let whole = session.run(&["report", "out", "-v"]).stdout;
    assert!(whole.contains("Verdict") && whole.contains("schedule slip"), "{whole}");
    let json = session.run(&["report", "out", "--json"]).stdout;
    assert_eq!(json, std::fs::read_to_string(session.path("out/summary.json")).unwrap());
    let summary: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(at(&summary, "schema"), "goodput.summary/1");
    // A folder with something in it is never written into.
    let again = session.run(&args);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("not empty"), "{}", again.stderr);
}

/// The page at `http://ADDRESS/metrics`; none if nothing answers.
fn scraped(url: &str) -> Option<String> {
    let address = url.strip_prefix("http://")?.strip_suffix("/metrics")?;
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split_once("\r\n\r\n").map(|(_, page)| page.to_owned())
}

#[test]
fn runs_show_themselves_while_they_go_on() {
    let session = Session::new();
    let mut child = session.spawn(&[
        "run",
        "mock:ttft=5ms,itl=1ms",
        "--rate",
        "20",
        "--num-requests",
        "40",
        "--isl",
        "30",
        "--osl",
        "4",
        "--repeat",
        "12",
        "--metrics-listen",
        "127.0.0.1:0",
        "--quiet",
    ]);
    let said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut urls = said.filter_map(|line| line.split_once("http://").map(|(_, to)| to.to_owned()));
    let url = format!("http://{}", urls.next().unwrap());
    // Whichever later run this thread is in time for: the first run shows its final counts, to the
    // request.
    let of = |run: &str| format!(r#"{{target="mock:ttft=5ms,itl=1ms",run="repeat-{run}""#);
    let is_at_work = |page: &str, run: &str| {
        let measured = format!("goodput_run_phase{},phase=\"measured\"}} 1", of(run));
        let begun = format!("goodput_requests_scheduled_total{}}} ", of(run));
        let sent = page.lines().find_map(|line| line.strip_prefix(&begun));
        sent.is_some_and(|sent| sent != "0") && page.lines().any(|line| line == measured)
    };
    let later: Vec<String> = (2..=12).map(|run| run.to_string()).collect();
    let (page, run) = loop {
        let page = scraped(&url).expect("the page went away before a later run was seen");
        if let Some(run) = later.iter().find(|run| is_at_work(&page, run)) {
            break (page, run);
        }
        goodput_clock::pause(goodput_model::Nanos::from_millis(20));
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let first = of("1");
    for expected in [
        format!("goodput_requests_scheduled_total{first}}} 40"),
        format!("goodput_requests_ok_total{first}}} 40"),
        format!("goodput_requests_sent_total{first}}} 40"),
        format!("goodput_requests_in_flight{first}}} 0"),
        format!("goodput_output_tokens_total{first}}} 160"),
        format!("goodput_ttft_seconds_count{first}}} 40"),
        format!("goodput_itl_seconds_count{first}}} 120"),
        format!("goodput_run_phase{first},phase=\"ended\"}} 1"),
        format!("goodput_run_phase{},phase=\"ended\"}} 0", of(run)),
        format!("goodput_offered_requests_per_second{}}} 20", of(run)),
    ] {
        assert!(page.lines().any(|line| line == expected), "{expected} is not in\n{page}");
    }
}

#[test]
fn help_completions_and_man_page() {
    let session = Session::new();
    assert!(session.run(&["run", "--help"]).stdout.contains("Examples:"));
    assert!(session.run(&["completions", "bash"]).stdout.contains("goodput"));
    assert!(session.run(&["man"]).stdout.contains(".TH"));
    let short = session.run(&["-h"]).stdout;
    let alone = session.run(&[]);
    assert_eq!((alone.code, alone.stderr.as_str()), (Some(2), short.as_str()));
    let version = session.run(&["version"]);
    assert_eq!((version.code, &version.stdout), (Some(0), &session.run(&["--version"]).stdout));
    // Version, commit, day, target, features: as the manifest of a run has them.
    let facts = version.stdout.trim().strip_prefix("goodput 0.1.0 (").unwrap().to_owned();
    let facts = facts.strip_suffix(", features: full)").unwrap();
    let (commit, target) = facts.split_once(", ").unwrap();
    let run =
        session.run(&["run", "mock", "--rate", "50", "--num-requests", "5", "--out", "version"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let manifest = std::fs::read_to_string(session.path("version/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let build = &manifest["build"];
    let text = |name: &str| build[name].as_str().unwrap();
    assert_eq!(format!("{} {}", text("commit"), text("committed")), commit);
    assert_eq!(text("target"), target);
    assert_eq!(build["features"].as_array().unwrap().len(), 5);
    for (word, expected) in [
        ("run", "Usage: goodput run"),
        ("slo", "--attainment <SHARE>"),
        ("schedule_slip", "What to do:"),
    ] {
        let outcome = session.run(&["help", word]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        assert!(outcome.stdout.contains(expected), "{}", outcome.stdout);
        assert!(!outcome.stdout.contains('\u{1b}'), "{}", outcome.stdout);
    }
    assert!(session.run(&["--color", "always", "help", "slo"]).stdout.contains('\u{1b}'));
    let mut cut_off = Command::new("sh");
    cut_off.arg("-c").arg(format!("{} man | head -1", env!("CARGO_BIN_EXE_goodput")));
    let output = crate::support::outcome(cut_off.output().unwrap());
    assert!(output.stderr.is_empty(), "{}", output.stderr);
}

#[test]
fn the_plan_of_init_runs_and_is_never_overwritten() {
    let session = Session::new();
    let written = session.run(&["init"]);
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    let text = std::fs::read_to_string(session.path("plan.toml")).unwrap();
    let again = session.run(&["init"]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("`plan.toml` already exists"), "{}", again.stderr);
    assert_eq!(std::fs::read_to_string(session.path("plan.toml")).unwrap(), text);
    // Shorter, so that the test is; a number without a unit is seconds.
    let text = text.replace("\"1m\"", "\"1\"").replace("\"10s\"", "\"0\"");
    let text = text.replace("lognormal:200:0.8:10:2000", "4").replace("\"5/s\"", "\"50/s\"");
    std::fs::write(session.path("short.toml"), text).unwrap();
    session.run(&["run", "--plan", "short.toml", "--out", "out"]).assert_finished("");
}

#[test]
fn target_and_model_come_from_the_environment() {
    let server = Server::start(|_| timed_stream(ms(1), ms(1), 2));
    let session = Session::new();
    let args = ["run", "--rate", "50", "--num-requests", "3", "--out", "out", "--quiet"];
    let mut command = session.command(&args);
    let address = server.url().replace("http://", "");
    command.env("GOODPUT_TARGET", address).env("GOODPUT_MODEL", "from-outside");
    crate::support::outcome_of(&mut command).assert_finished("");
    let requests = server.requests();
    let request = requests.iter().rfind(|request| request.line.starts_with("POST")).unwrap();
    let body: serde_json::Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(body["model"], "from-outside");
}
