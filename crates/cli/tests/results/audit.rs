//! `goodput audit` on real result files, on the same files with a fault planted, and on rubbish.

use std::path::{Path, PathBuf};

use crate::support::{Outcome, Session, ms};
use goodput_testkit::{ArrivedRequest, Server, answer, timed_stream};
use serde_json::{Value, json};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../exchange/tests/results").join(name)
}

fn audit_of(session: &Session, path: &str) -> (Outcome, Value) {
    let outcome = session.run(&["audit", path, "--json"]);
    let audits = serde_json::from_str(&outcome.stdout).unwrap_or(Value::Null);
    assert!(audits.is_array(), "{} {}", outcome.stdout, outcome.stderr);
    (outcome, audits)
}

/// Status and severity of a check of the first result in the file.
fn said(audits: &Value, check: &str) -> Option<(String, String)> {
    let items = audits[0]["items"].as_array()?;
    let item = items.iter().find(|item| item["check"] == check)?;
    Some((item["status"].as_str()?.to_owned(), item["severity"].as_str()?.to_owned()))
}

fn severity(audits: &Value, check: &str) -> String {
    said(audits, check).map_or("info".to_owned(), |(_, severity)| severity)
}

#[test]
fn real_files_are_judged() {
    // The file, the exit code, and what must be found in it.
    let cases: [(&str, i32, &[&str]); 12] = [
        ("vllm-python-open-detailed.json", 4, &["p99_samples", "duration", "first_token"]),
        ("vllm-python-burst.json", 4, &["open_loop", "drain", "duration"]),
        ("vllm-python-faults.json", 5, &["empty_answers", "failures", "latency_origin"]),
        ("vllm-rust-open-detailed.json", 4, &["first_token", "duration"]),
        ("vllm-rust-closed.json", 4, &["open_loop", "drain", "duration_vs_latency"]),
        ("aiperf-closed.json", 4, &["warmup", "open_loop", "drain"]),
        ("aiperf-poisson-goodput.json", 4, &["warmup", "duration"]),
        ("aiperf-faults.json", 4, &["failures", "own_remarks"]),
        ("guidellm-concurrent.json", 4, &["open_loop", "warmup", "p999_samples"]),
        ("guidellm-poisson.json", 4, &["delivered_rate", "arrivals"]),
        ("sglang.jsonl", 4, &["duration", "p99_samples"]),
        ("genai-perf.json", 4, &["prompt_lengths", "open_loop"]),
    ];
    let session = Session::new();
    for (name, code, expected) in cases {
        let (outcome, audits) = audit_of(&session, fixture(name).to_str().unwrap());
        assert_eq!(outcome.code, Some(code), "{name}: {}", outcome.stderr);
        for check in expected {
            assert_ne!(severity(&audits, check), "info", "{name}: {check}");
        }
        // Every figure in a file that its tool wrote agrees with the others.
        for item in audits.as_array().unwrap().iter().flat_map(|audit| {
            audit["items"].as_array().unwrap().iter().filter(|item| item["source"] == "arithmetic")
        }) {
            assert_ne!(item["status"], "wrong", "{name}: {item}");
        }
    }
}

/// A file, a fault, the check that finds it, and what it then says.
type Plant = (&'static str, fn(&mut Value), &'static str, &'static str);

const PLANTS: [Plant; 36] = [
    (
        "vllm-python-open-detailed.json",
        |f| {
            let (p90, p99) = (f["p90_ttft_ms"].clone(), f["p99_ttft_ms"].clone());
            (f["p90_ttft_ms"], f["p99_ttft_ms"]) = (p99, p90);
        },
        "percentile_order",
        "void",
    ),
    ("vllm-python-open-detailed.json", |f| f["ttfts"][3] = json!(0.0), "empty_answers", "void"),
    (
        "vllm-python-open-detailed.json",
        |f| f["mean_ttft_ms"] = json!(f["mean_ttft_ms"].as_f64().unwrap() * 0.99),
        "recomputed_statistics",
        "void",
    ),
    (
        "vllm-python-open-detailed.json",
        |f| f["output_lens"][0] = json!(99),
        "recomputed_totals",
        "void",
    ),
    (
        "vllm-python-open-detailed.json",
        |f| f["latencies"][0] = json!(0.01),
        "request_latencies",
        "void",
    ),
    ("vllm-python-open-detailed.json", |f| f["completed"] = json!(31), "request_sum", "void"),
    (
        "vllm-python-open-detailed.json",
        |f| f["request_rate"] = json!(60.0),
        "delivered_rate",
        "warn",
    ),
    ("vllm-python-open-detailed.json", |f| f["max_concurrency"] = json!(4), "open_loop", "warn"),
    (
        "vllm-python-open-detailed.json",
        |f| f["itls"].as_array_mut().unwrap().iter_mut().for_each(|g| *g = json!([0.03, 0.03])),
        "coalesced_chunks",
        "warn",
    ),
    (
        "vllm-python-open-detailed.json",
        |f| f["input_lens"].as_array_mut().unwrap().iter_mut().for_each(|n| *n = json!(36)),
        "prompt_lengths",
        "warn",
    ),
    ("vllm-python-burst.json", |f| f["failed"] = json!(10), "failures", "warn"),
    ("vllm-python-burst.json", |f| f["output_throughput"] = json!(9000.0), "token_rate", "void"),
    ("vllm-rust-closed.json", |f| f["request_throughput"] = json!(90.0), "request_rate", "void"),
    ("vllm-rust-closed.json", |f| f["max_concurrency"] = json!(2), "littles_law", "void"),
    ("vllm-rust-closed.json", |f| f["mean_ttft_ms"] = json!(-5.0), "latency_sign", "void"),
    ("vllm-rust-closed.json", |f| f["median_ttft_ms"] = json!(300.0), "ttft_below_e2e", "void"),
    (
        "aiperf-closed.json",
        |f| f["time_to_first_token"]["p50"] = json!(90.0),
        "percentile_order",
        "void",
    ),
    (
        "aiperf-closed.json",
        |f| f["time_to_first_token"]["min"] = json!(0.0),
        "empty_answers",
        "void",
    ),
    ("aiperf-closed.json", |f| f["was_cancelled"] = json!(true), "own_remarks", "warn"),
    ("aiperf-poisson-goodput.json", |f| f["goodput"]["avg"] = json!(50.0), "latency_bound", "void"),
    (
        "aiperf-poisson-goodput.json",
        |f| f["input_config"]["endpoint"]["streaming"] = json!(false),
        "streaming",
        "warn",
    ),
    (
        "aiperf-poisson-goodput.json",
        |f| f["request_latency"]["avg"] = json!(1.0),
        "mean_in_range",
        "void",
    ),
    (
        "guidellm-concurrent.json",
        |f| f["benchmarks"][0]["metrics"]["request_totals"]["errored"] = json!(6),
        "failures",
        "warn",
    ),
    (
        "guidellm-concurrent.json",
        |f| {
            let ttft = &mut f["benchmarks"][0]["metrics"]["time_to_first_token_ms"];
            ttft["successful"]["median"] = json!(1.0);
        },
        "percentile_order",
        "void",
    ),
    (
        "guidellm-poisson.json",
        |f| {
            let requests = &mut f["benchmarks"][0]["requests"]["successful"];
            requests[0]["time_to_first_token_ms"] = json!(5000.0);
        },
        "recomputed_statistics",
        "void",
    ),
    (
        "vllm-python-open-detailed.json",
        |f| {
            let names =
                ["duration", "request_throughput", "output_throughput", "total_token_throughput"];
            for (name, times) in names.iter().zip([0.5, 2.0, 2.0, 2.0]) {
                f[*name] = json!(f[*name].as_f64().unwrap() * times);
            }
        },
        "within_duration",
        "void",
    ),
    (
        "vllm-python-open-detailed.json",
        |f| {
            for name in ["ttfts", "itls", "latencies", "input_lens", "output_lens"] {
                for place in 20..30 {
                    f[name][place] = f[name][place - 20].clone();
                }
            }
        },
        "copied_requests",
        "void",
    ),
    (
        "vllm-rust-closed.json",
        |f| f["mean_tpot_ms"] = json!(f["mean_tpot_ms"].as_f64().unwrap() * 0.4),
        "phases_add_up",
        "void",
    ),
    ("vllm-rust-closed.json", |f| f["max_concurrent_requests"] = json!(41), "littles_law", "void"),
    ("vllm-python-burst.json", |f| f["mean_tpot_ms"] = json!(15.0), "phases_add_up", "warn"),
    (
        "aiperf-poisson-goodput.json",
        |f| f["time_to_first_token"]["count"] = json!(45),
        "sample_counts",
        "warn",
    ),
    (
        "aiperf-poisson-goodput.json",
        |f| f["input_config"]["phases"][0]["rate"] = json!("inf"),
        "open_loop",
        "warn",
    ),
    (
        "aiperf-poisson-goodput.json",
        |f| f["inter_chunk_latency"]["avg"] = json!(15.0),
        "phases_add_up",
        "void",
    ),
    (
        "guidellm-concurrent.json",
        |f| {
            let metrics = &mut f["benchmarks"][0]["metrics"];
            metrics["request_concurrency"]["successful"]["mean"] = json!(1.5);
        },
        "littles_law",
        "void",
    ),
    ("genai-perf.json", |f| f["request_latency"]["p99"] = json!(10.0), "percentile_order", "void"),
    ("genai-perf.json", |f| f["output_sequence_length"]["min"] = json!(0), "empty_answers", "void"),
];

#[test]
fn planted_faults_are_found() {
    let session = Session::new();
    for (index, (name, plant, check, expected)) in PLANTS.iter().enumerate() {
        let text = std::fs::read_to_string(fixture(name)).unwrap();
        let mut file: Value = serde_json::from_str(&text).unwrap();
        let (_, before) = audit_of(&session, fixture(name).to_str().unwrap());
        plant(&mut file);
        let path = session.path(&format!("{index}.json"));
        std::fs::write(&path, file.to_string()).unwrap();
        let (outcome, after) = audit_of(&session, path.to_str().unwrap());
        assert_eq!(severity(&after, check), *expected, "{name}, {check}: {after:#}");
        assert_ne!(severity(&before, check), *expected, "{name}, {check} was there before");
        let code = if *expected == "void" { 5 } else { 4 };
        assert!(outcome.code.unwrap() >= code, "{name}, {check}");
    }
}

#[test]
fn a_line_of_sglang_is_judged_like_the_others() {
    let text = std::fs::read_to_string(fixture("sglang.jsonl")).unwrap();
    let mut run: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    run["total_output_tokens_retokenized"] = json!(10);
    run["errors"][0] = json!("refused");
    run["concurrency"] = json!(3.2);
    let session = Session::new();
    let path = session.path("one.jsonl");
    std::fs::write(&path, format!("{run}\n")).unwrap();
    let (outcome, audits) = audit_of(&session, path.to_str().unwrap());
    assert_eq!(severity(&audits, "littles_law"), "void");
    assert_eq!(severity(&audits, "token_counts"), "warn");
    assert_eq!(severity(&audits, "failures"), "warn");
    assert_eq!(said(&audits, "sweep").unwrap().0, "missing");
    // A failure that `completed` counts as a success.
    assert_eq!(severity(&audits, "recomputed_totals"), "void");
    assert_eq!(outcome.code, Some(5));
}

#[test]
fn a_run_of_ours_brings_its_verdict() {
    let session = Session::new();
    let args = ["--rate", "50", "--num-requests", "40", "--max-tokens", "4", "--canary", "off"];
    let (run, summary) = session.measure("mock:ttft=5ms,itl=1ms", &args);
    run.assert_finished("");
    let (outcome, audits) = audit_of(&session, "out");
    assert!(matches!(outcome.code, Some(4 | 5)), "{}", outcome.stderr);
    assert_eq!(audits[0]["subject"], "out");
    assert!(said(&audits, "own_verdict").is_some());
    let caveats = summary["caveats"].as_array().unwrap();
    for caveat in caveats {
        let code = format!("caveat_{}", caveat["code"].as_str().unwrap());
        assert_eq!(severity(&audits, &code), caveat["severity"].as_str().unwrap());
    }
    for (check, expected) in
        [("open_loop", "ok"), ("latency_origin", "ok"), ("drain", "ok"), ("prompt_lengths", "ok")]
    {
        assert_eq!(said(&audits, check).unwrap().0, expected, "{check}");
    }
    assert_eq!(said(&audits, "duration").unwrap(), ("doubtful".to_owned(), "warn".to_owned()));
    // The summary alone says nearly as much.
    let (outcome, alone) = audit_of(&session, "out/summary.json");
    assert!(matches!(outcome.code, Some(4 | 5)), "{}", outcome.stderr);
    assert_eq!(said(&alone, "open_loop"), said(&audits, "open_loop"));
}

#[test]
fn what_a_server_tells_of_itself_is_known_and_its_keys_are_not() {
    let server = Server::start(|request: &ArrivedRequest| {
        let settings = r#"{"tp_size":2,"dtype":"bfloat16","version":"0.5.3","api_key":"s3cr3tkey",
            "internal_states":[],"note":"sk-test-key-123"}"#;
        match request.line.split(' ').nth(1).unwrap() {
            "/server_info?config_format=json" => {
                vec![answer("200 OK", "application/json", settings)]
            }
            "/v1/chat/completions" => timed_stream(ms(1), ms(1), 2),
            _ => vec![answer("404 Not Found", "application/json", "{}")],
        }
    });
    let session = Session::new();
    let (url, quick) = (server.url(), ["--rate", "50", "--num-requests", "5", "--model", "m"]);
    let mut command = session.command(&["run", &url, "-v", "--out", "out", "--meta", "gpu=H200"]);
    command.args(quick).env("OPENAI_API_KEY", "sk-test-key-123");
    let page = crate::support::outcome_of(&mut command);
    page.assert_finished("");
    assert!(page.stdout.contains("sglang 0.5.3, bfloat16, TP 2"), "{}", page.stdout);
    assert!(page.stdout.contains("gpu H200"), "{}", page.stdout);
    let written = session.everything_written();
    for secret in ["s3cr3tkey", "sk-test-key-123"] {
        assert!(!String::from_utf8_lossy(&written).contains(secret), "{secret}");
    }
    let (_, audits) = audit_of(&session, "out");
    for (check, expected) in [
        ("engine", "ok"),
        ("precision", "ok"),
        ("parallelism", "ok"),
        ("hardware", "missing"),
        ("driver", "missing"),
    ] {
        assert_eq!(said(&audits, check).unwrap().0, expected, "{check}");
    }
    // Without queries to the server nothing is found.
    let args = [&quick[..], &["--no-probe"]].concat();
    let (_, summary) = Session::new().measure(&url, &args);
    assert_eq!(summary["run"]["system"].get("found"), None);
    let is_page = |request: &&ArrivedRequest| request.line.contains("server_info");
    assert_eq!(server.requests().iter().filter(is_page).count(), 1);
}

#[test]
fn pages_fit_and_say_the_same() {
    let session = Session::new();
    let file = fixture("guidellm-concurrent.json");
    let text = session.run(&["audit", file.to_str().unwrap()]);
    assert_eq!(text.code, Some(4), "{}", text.stderr);
    // The path of the fixture is one word, however long.
    let wide =
        |line: &&str| line.chars().count() > 80 && !line.contains("guidellm-concurrent.json");
    assert_eq!(text.stdout.lines().find(wide), None);
    assert_eq!(text.stdout.matches("SUSPECT").count(), 2, "{}", text.stdout);
    let page = session.run(&["audit", file.to_str().unwrap(), "--format", "md"]);
    assert_eq!(page.stdout.matches("\n|---|---|---|---|---|\n").count(), 2, "{}", page.stdout);
    assert!(page.stdout.contains("(open\\_loop)"), "{}", page.stdout);
}

#[test]
fn strict_counts_gaps_and_the_worst_result_decides() {
    let session = Session::new();
    // Long, open, warmed up, with many requests: only gaps remain.
    let good = json!({
        "date": "20260101-000000", "backend": "vllm", "model_id": "m", "num_prompts": 2000,
        "num_warmups": 100, "request_rate": 20.0, "burstiness": 1.0, "max_concurrency": null,
        "duration": 100.0, "completed": 2000, "failed": 0, "total_input_tokens": 200_000,
        "total_output_tokens": 20_000, "request_throughput": 20.0, "output_throughput": 200.0,
        "total_token_throughput": 2200.0, "mean_ttft_ms": 50.0, "median_ttft_ms": 49.0,
        "std_ttft_ms": 5.0, "p99_ttft_ms": 70.0, "mean_tpot_ms": 5.0, "median_tpot_ms": 5.0,
        "std_tpot_ms": 0.5, "p99_tpot_ms": 6.0
    });
    let path = session.path("good.json");
    std::fs::write(&path, good.to_string()).unwrap();
    assert_eq!(session.run(&["audit", "good.json"]).code, Some(0));
    assert_eq!(session.run(&["audit", "good.json", "--strict"]).code, Some(4));
    let void = fixture("vllm-python-faults.json");
    let both = session.run(&["audit", "good.json", void.to_str().unwrap(), "--json"]);
    assert_eq!(both.code, Some(5));
    let audits: Value = serde_json::from_str(&both.stdout).unwrap();
    assert_eq!(
        (audits[0]["verdict"].as_str(), audits[1]["verdict"].as_str()),
        (Some("valid"), Some("void"))
    );
    // What cannot be read does not hide the rest.
    let mixed = session.run(&["audit", "nowhere.json", "good.json"]);
    assert_eq!(mixed.code, Some(2));
    assert!(mixed.stdout.contains("good.json") && mixed.stderr.contains("nowhere.json"));
}

#[test]
fn rubbish_is_refused_with_a_hint() {
    let session = Session::new();
    std::fs::create_dir(session.path("folder")).unwrap();
    let deep = vec![b'['; 50_000];
    let cases: [(&str, &[u8], &str); 8] = [
        ("empty.json", b"", "empty"),
        ("cut.json", br#"{"model_id": "m", "comple"#, "not JSON"),
        ("other.json", br#"{"hello": 1}"#, "`hello`"),
        ("binary.json", b"\x00\xff\xfe", "not JSON"),
        ("list.json", b"[[[[]]]]", "begins with"),
        ("type.json", br#"{"model_id":1,"completed":2,"request_throughput":3}"#, "`model_id`"),
        (
            "huge.json",
            br#"{"model_id":"m","completed":1e300,"request_throughput":3}"#,
            "`completed`",
        ),
        ("deep.json", &deep, "not JSON"),
    ];
    for (name, bytes, expected) in cases {
        std::fs::write(session.path(name), bytes).unwrap();
        let outcome = session.run(&["audit", name]);
        assert_eq!(outcome.code, Some(2), "{name}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(expected), "{name}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("hint:"), "{name}: {}", outcome.stderr);
        assert!(outcome.stdout.is_empty() && !outcome.stderr.contains("panicked"), "{name}");
    }
    let folder = session.run(&["audit", "folder"]);
    assert_eq!(folder.code, Some(2));
    assert!(folder.stderr.contains("not a run folder"), "{}", folder.stderr);
    assert_eq!(session.run(&["audit"]).code, Some(2));
}

#[test]
fn foreign_text_is_shown_not_obeyed() {
    let session = Session::new();
    let text = std::fs::read_to_string(fixture("aiperf-faults.json")).unwrap();
    let mut file: Value = serde_json::from_str(&text).unwrap();
    let evil = "\u{1b}[31m| <script>alert(1)</script> \r\n| `x` \u{202e}";
    file["input_config"]["models"]["items"][0]["name"] = json!(evil);
    file["error_summary"][0]["error_details"]["type"] = json!(evil);
    file["aiperf_version"] = json!(evil);
    std::fs::write(session.path("evil.json"), file.to_string()).unwrap();
    for format in ["text", "md"] {
        let outcome = session.run(&["audit", "evil.json", "--format", format]);
        assert_eq!(outcome.code, Some(4), "{}", outcome.stderr);
        let page = &outcome.stdout;
        assert!(!page.contains(['\u{1b}', '\u{202e}', '\r']), "{page}");
        assert!(format == "text" || !page.contains("<script>"), "{page}");
    }
    let (_, audits) = audit_of(&session, "evil.json");
    assert!(audits[0]["run"].as_str().unwrap().contains(evil.trim()), "{audits:#}");
}
