//! What the simulated engine says it did, against what `goodput run` saw: the truth log request by
//! request, the counters of `/metrics`, and two engines with one seed byte by byte.

use std::collections::HashMap;

use crate::support::mock::{MockProcess, records};
use crate::support::{Session, about_time, number, timed};
use goodput_clock::{now, pause};
use goodput_model::{ErrorClass, FailureStage, Nanos, RequestRecord};
use serde_json::{Value, json};

/// A run against a mock with a truth log: pairs of what the client and the engine say.
fn joined(mock_args: &[&str], run_args: &[&str]) -> Vec<(RequestRecord, RequestRecord)> {
    let session = Session::new();
    let mock = MockProcess::start(&session, &[mock_args, &["--truth", "truth.log"]].concat());
    let run_args = [run_args, &["--no-probe", "--canary", "off"]].concat();
    let (outcome, _) = session.measure(&mock.url(), &run_args);
    outcome.assert_finished(&format!("{mock_args:?}"));
    mock.interrupt();
    let id = |record: &RequestRecord| record.exchange.request_id.clone().unwrap();
    let truth = records(&session.path("truth.log"));
    let asked = truth.len();
    let mut truth: HashMap<_, _> = truth.into_iter().map(|record| (id(&record), record)).collect();
    assert_eq!(truth.len(), asked, "a request is in the truth once");
    let seen = records(&session.path("out/requests.log"));
    let pairs: Vec<_> = seen
        .into_iter()
        .map(|seen| {
            let truth = truth.remove(&id(&seen)).expect("every request is in the truth");
            (seen, truth)
        })
        .collect();
    assert!(truth.is_empty(), "no other requests: {:?}", truth.keys());
    pairs
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// From one chunk to the next, in milliseconds.
fn gaps(record: &RequestRecord) -> Vec<f64> {
    record.exchange.chunks.windows(2).map(|pair| (pair[1].at - pair[0].at).as_ms()).collect()
}

#[test]
fn client_and_engine_agree_on_every_request() {
    timed(|| {
        let load = ["--rate", "40", "--num-requests", "60", "--max-tokens", "16"];
        let pairs = joined(&["--profile", "llama-8b-1xh200"], &load);
        assert_eq!(pairs.len(), 60);
        let (mut late, mut apart) = (Vec::new(), Vec::new());
        for (seen, truth) in &pairs {
            let (client, engine) = (&seen.exchange, &truth.exchange);
            assert!(seen.is_ok() && truth.is_ok(), "{client:?}\n{engine:?}");
            assert_eq!((client.status, engine.status), (Some(200), Some(200)));
            assert_eq!(client.finish, engine.finish);
            assert_eq!(client.input_tokens, engine.input_tokens);
            assert_eq!(client.output_tokens, engine.output_tokens);
            assert_eq!(client.output_tokens.unwrap().n, 16);
            assert_eq!(client.cached_tokens, engine.cached_tokens);
            assert_eq!(client.body_bytes, engine.body_bytes);
            assert_eq!(client.chunks.len(), engine.chunks.len());
            let bytes = |chunks: &[goodput_model::Chunk]| -> Vec<u32> {
                chunks.iter().map(|chunk| chunk.bytes).collect()
            };
            assert_eq!(bytes(&client.chunks), bytes(&engine.chunks));
            assert!(truth.scheduled <= engine.stamps.dispatched, "the queue comes first");
            // The client begins to write before the engine has read, and reads after it has written.
            let ttft = client.stamps.first_token.unwrap() - client.stamps.sent_first.unwrap();
            let inside = engine.stamps.first_token.unwrap() - truth.scheduled;
            let transfer = ttft.as_ms() - inside.as_ms();
            assert!(transfer > 0.0, "{transfer}: {ttft:?} {inside:?}");
            late.push(transfer);
            let between = gaps(seen).into_iter().zip(gaps(truth)).map(|(a, b)| (a - b).abs());
            apart.extend(between);
        }
        let (late, apart) = (median(late), median(apart));
        about_time(|| {
            assert!(late < 5.0, "the transfer takes {late} ms");
            assert!(apart < 1.0, "gaps differ by {apart} ms");
        });
    });
}

/// Fault, and whether the engine goes on after what the client takes for the end.
const FAULTS: [(&str, bool); 14] = [
    ("500", false),
    ("429", false),
    ("reset", false),
    ("bad-http", false),
    ("html", false),
    ("empty", false),
    ("cut=0", false),
    ("cut", false),
    ("cut=100", false),
    ("reset-midstream", false),
    ("truncated-json", true),
    ("error-event", false),
    ("no-finish", false),
    ("early-eos", false),
];

#[test]
fn client_and_engine_agree_on_every_failure() {
    let load = ["--concurrency", "2", "--num-requests", "12", "--max-tokens", "8"];
    let fresh = ["--connections", "per-request"];
    for (fault, goes_on) in FAULTS {
        let share = format!("{fault}:1/3");
        let args = ["--profile", "fast", "--fault", &share];
        let pairs = joined(&args, &[&load[..], &fresh].concat());
        let mut failed = 0;
        for (seen, truth) in &pairs {
            let (client, engine) = (&seen.exchange, &truth.exchange);
            let what = |record: &RequestRecord| {
                let failure = record.exchange.failure.as_ref()?;
                Some((failure.class, failure.stage))
            };
            assert_eq!(what(seen), what(truth), "{fault}: {client:?}\n{engine:?}");
            assert_eq!(client.status, engine.status, "{fault}");
            if !goes_on {
                assert_eq!(client.chunks.len(), engine.chunks.len(), "{fault}");
            }
            if seen.is_ok() {
                assert_eq!(client.output_tokens, engine.output_tokens, "{fault}");
                assert_eq!(client.finish, engine.finish, "{fault}");
            }
            failed += usize::from(!seen.is_ok());
        }
        assert_eq!(
            (pairs.len(), failed),
            (12, if fault == "early-eos" { 0 } else { 4 }),
            "{fault}"
        );
    }
}

#[test]
fn answers_in_one_piece_are_in_the_truth_as_well() {
    let load = ["--concurrency", "2", "--num-requests", "12", "--max-tokens", "8", "--no-stream"];
    for fault in ["truncated-json", "error-event", "no-finish", "empty"] {
        let share = format!("{fault}:1/3");
        let pairs = joined(&["--profile", "fast", "--fault", &share], &load);
        for (seen, truth) in &pairs {
            let class = |record: &RequestRecord| record.exchange.failure.as_ref().map(|f| f.class);
            assert_eq!(class(seen), class(truth), "{fault}");
            if seen.is_ok() {
                let (client, engine) = (&seen.exchange, &truth.exchange);
                assert_eq!(client.output_tokens, engine.output_tokens, "{fault}");
                assert_eq!(client.input_tokens, engine.input_tokens, "{fault}");
                assert_eq!(client.cached_tokens, engine.cached_tokens, "{fault}");
            }
        }
        assert_eq!(pairs.iter().filter(|(seen, _)| !seen.is_ok()).count(), 4, "{fault}");
    }
}

#[test]
fn a_client_that_leaves_is_said_to_have_left() {
    let load = ["--rate", "50", "--num-requests", "8", "--max-tokens", "8", "--timeout", "400ms"];
    for protocol in [&[][..], &["--http2"]] {
        let args = ["--profile", "fast", "--fault", "stall=1m:1/2"];
        let pairs = joined(&args, &[&load[..], protocol].concat());
        assert_eq!(pairs.len(), 8);
        let mut left = 0;
        for (seen, truth) in &pairs {
            let Some(failure) = &truth.exchange.failure else {
                assert!(seen.is_ok());
                continue;
            };
            assert_eq!((failure.class, failure.stage), (ErrorClass::CutOff, FailureStage::Stream));
            assert_eq!(failure.message, "the client left");
            assert_eq!(seen.exchange.failure.as_ref().unwrap().class, ErrorClass::Timeout);
            assert_eq!((seen.exchange.chunks.len(), truth.exchange.chunks.len()), (4, 4));
            left += 1;
        }
        assert_eq!(left, 4, "{protocol:?}");
    }
}

#[test]
fn the_truth_survives_a_kill() {
    let session = Session::new();
    let args = ["--profile", "fast", "--truth", "truth.log"];
    let mut mock = MockProcess::start(&session, &args);
    let url = mock.url();
    let load = ["run", &url, "--rate", "100", "--duration", "30s", "--max-tokens", "2"];
    let mut run = session.spawn(&[&load[..], &["--no-probe", "--quiet", "--out", "out"]].concat());
    let deadline = now() + Nanos::from_millis(30_000);
    // Killed in the middle of the load, never having had a quiet moment.
    while mock.metric("mock_requests_total") < 150.0 {
        assert!(now() < deadline, "no load");
        pause(Nanos::from_millis(20));
    }
    mock.kill();
    run.kill().unwrap();
    run.wait().unwrap();
    let log = session.path("truth.log");
    let reader = goodput_record::LogReader::<RequestRecord>::open(&log, Vec::new()).unwrap();
    let kept = reader.filter(RequestRecord::is_ok).count();
    assert!(kept >= 50, "{kept} of 150 or more");
}

#[test]
fn a_connection_after_a_refusal_is_another_one() {
    let session = Session::new();
    let args = ["--profile", "fast", "--truth", "truth.log", "--fault", "refuse@300ms+200ms"];
    let mock = MockProcess::start(&session, &args);
    let load = ["--rate", "50", "--duration", "1s", "--connections", "per-request"];
    let more = ["--max-tokens", "1", "--no-probe", "--canary", "off"];
    let (_, summary) = session.measure(&mock.url(), &[&load[..], &more].concat());
    assert!(number(&summary, "requests.errors.connect") >= 1.0, "{}", summary["requests"]);
    mock.interrupt();
    let served = records(&session.path("truth.log"));
    let mut lines: Vec<_> = served.iter().map(|record| record.exchange.connection).collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), served.len(), "{lines:?}");
}

#[test]
fn the_counters_say_what_the_run_says() {
    let session = Session::new();
    for (dialect, prompt, generated, ended) in [
        (
            "vllm",
            "vllm:prompt_tokens_total",
            "vllm:generation_tokens_total",
            "vllm:request_success_total",
        ),
        (
            "sglang",
            "sglang:prompt_tokens_total",
            "sglang:generation_tokens_total",
            "sglang:num_requests_total",
        ),
    ] {
        let args = ["--profile", "llama-8b-1xh200", "--metrics", dialect];
        let mock = MockProcess::start(&session, &args);
        let load = ["--concurrency", "8", "--num-requests", "24", "--max-tokens", "10"];
        let args = [&load[..], &["--no-probe", "--canary", "off"]].concat();
        let (_, summary) = Session::new().measure(&mock.url(), &args);
        assert_eq!(number(&summary, "requests.ok"), 24.0);
        assert_eq!(mock.metric(prompt), number(&summary, "tokens.input"));
        assert_eq!(mock.metric(generated), number(&summary, "tokens.output"));
        assert_eq!(mock.metric(ended), 24.0);
        assert_eq!(mock.metric("mock_requests_total"), 24.0);
        assert_eq!(mock.metric("mock_events_total"), number(&summary, "tokens.chunks"));
    }
}

#[test]
fn a_repeated_prompt_comes_from_the_cache_in_whole_blocks() {
    let session = Session::new();
    let mock = MockProcess::start(&session, &["--profile", "llama-8b-1xh200"]);
    let mut hits = 0;
    for length in [15, 16, 17, 64, 70] {
        let prompt: Vec<u32> = (0..length).map(|at| 1000 * length + at).collect();
        let body = json!({"model": "llama-8b", "prompt": prompt, "max_tokens": 2});
        let mut cached = |expected: u32| {
            let usage = mock.post("/v1/completions", body.to_string()).json()["usage"].clone();
            assert_eq!(usage["prompt_tokens"], length, "{usage}");
            let details = &usage["prompt_tokens_details"]["cached_tokens"];
            assert_eq!(details.as_u64().unwrap_or(0), u64::from(expected), "{length}: {usage}");
            hits += expected;
        };
        cached(0);
        // Blocks of 16; the last token is always computed, for there would be nothing to go on from.
        cached((length - 1) / 16 * 16);
    }
    assert_eq!(mock.metric("vllm:prefix_cache_hits_total"), f64::from(hits));
}

/// Questions of every kind, one after the other; the answers without the second they were made in.
fn interview(seed: &str) -> Vec<String> {
    let session = Session::new();
    let faults = ["--fault", "500:10%", "--fault", "early-eos:30%", "--reasoning", "30%"];
    let args = [&["--profile", "fast", "--seed", seed, "--set", "answer=20"], &faults[..]].concat();
    let mock = MockProcess::start(&session, &args);
    let message = |text: &str| json!([{"role": "user", "content": text}]);
    let tool = json!([{"type": "function", "function": {"name": "look", "parameters": {}}}]);
    let mut questions: Vec<(&str, Value)> = Vec::new();
    for stream in [true, false] {
        for _ in 0..4 {
            let chat = json!({"model": "mock", "messages": message("hello"), "stream": stream});
            let call = json!({"model": "mock", "messages": message("hi"), "stream": stream,
                "tools": tool, "tool_choice": "required", "n": 2});
            let text = json!({"model": "mock", "prompt": "once upon", "stream": stream,
                "logprobs": 2, "echo": true, "max_tokens": 9});
            questions.extend([("/v1/chat/completions", chat), ("/v1/chat/completions", call)]);
            questions.push(("/v1/completions", text));
        }
    }
    questions.push(("/v1/embeddings", json!({"model": "mock", "input": ["a", "b c"]})));
    let answer = |(path, body): &(&str, Value)| {
        let reply = mock.post(path, body.to_string());
        let mut body = String::from_utf8(reply.body.clone()).unwrap();
        while let Some(at) = body.find("\"created\":1") {
            let digits = at + "\"created\":".len();
            body.replace_range(digits..digits + 10, "");
        }
        format!("{}\n{body}", reply.status)
    };
    questions.iter().map(answer).collect()
}

#[test]
fn one_seed_gives_the_same_bytes() {
    let first = interview("7");
    assert_eq!(first.len(), 25);
    assert!(first.iter().any(|answer| answer.starts_with("500")), "faults are drawn as well");
    assert!(first.iter().any(|answer| answer.contains("[DONE]")));
    assert_eq!(first, interview("7"));
    assert_ne!(first, interview("8"));
}
