//! The engine model behind the sockets and in simulated time: places are freed when a client leaves,
//! counts are of what happened, and the same seed gives the same curve.

use std::collections::BTreeSet;

use crate::support::mock::{MockProcess, SHORT, post};
use crate::support::{Session, about_time, timed};
use goodput_clock::{now, pause};
use goodput_model::Nanos;
use serde_json::{Value, json};

/// One slot, a first token after 600 ms. The first client leaves at 300 ms: the second, which came
/// at once, has its token 600 ms after that, not 600 ms after it came.
#[test]
fn a_place_is_free_when_its_client_leaves_and_not_before() {
    timed(|| {
        let session = Session::new();
        let mock =
            MockProcess::start(&session, &["--ttft", "600ms", "--itl", "1ms", "--slots", "1"]);
        let request = post("/v1/chat/completions", SHORT);
        let mut first = mock.connect();
        first.send(&request);
        mock.until_running(1.0);
        let mut second = mock.connect();
        second.send(&request);
        pause(Nanos::from_millis(300));
        let left = now();
        drop(first);
        assert_eq!(second.answer().unwrap().status, 200);
        let waited = (now() - left).as_ms();
        about_time(|| assert!(waited >= 590.0, "{waited} ms after the first had left"));
    });
}

/// Delayed headers do not excuse tokens that come together, and do not count as lateness of the
/// mock.
#[test]
fn a_request_with_slow_headers_reaches_the_engine_after_them() {
    timed(|| {
        let session = Session::new();
        let args = ["--ttft", "20ms", "--itl", "20ms", "--fault", "slow-headers=300ms"];
        let mock = MockProcess::start(&session, &args);
        let body = json!({"model": "mock", "prompt": "a", "max_tokens": 6, "stream": true});
        let begin = now();
        assert_eq!(mock.post("/v1/completions", body.to_string()).status, 200);
        let took = (now() - begin).as_ms();
        assert!(took >= 300.0 + 20.0 + 5.0 * 20.0, "{took}");
        assert_eq!((mock.metric("mock_events_total"), mock.injected("slow-headers")), (6.0, 1.0));
        // A busy machine may delay some of the six; all of them would be our doing.
        about_time(|| assert!(mock.metric("mock_late_events_total") < 6.0));
    });
}

#[test]
fn faults_count_where_they_happen() {
    let session = Session::new();
    let faults = ["close-after=1", "slow-accept=1ms", "pings", "ignores-ignore-eos", "stall=1ms"];
    let faults = faults.iter().flat_map(|fault| ["--fault", fault]);
    let args: Vec<&str> = ["--fault", "pause=1ms/50ms"].into_iter().chain(faults).collect();
    let mock = MockProcess::fast(&session, &args);
    let ask = |more: &Value| {
        let mut body = json!({"model": "mock", "prompt": "a", "max_tokens": 8});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        mock.post("/v1/completions", body.to_string()).status
    };
    assert_eq!((ask(&json!({})), ask(&json!({"n": 0}))), (200, 400));
    // An answer in one piece has no events to put comments before, and no such fault was requested.
    let counts = ["pings", "ignores-ignore-eos", "stall"].map(|kind| mock.injected(kind));
    assert_eq!(counts, [0.0, 0.0, 1.0]);
    assert_eq!(mock.metric("mock_events_total"), 0.0);
    assert_eq!(ask(&json!({"stream": true, "ignore_eos": true})), 200);
    let counts = ["pings", "ignores-ignore-eos", "stall"].map(|kind| mock.injected(kind));
    assert_eq!(counts, [1.0, 1.0, 2.0]);
    // Half of eight tokens came, each an event, though late on purpose.
    assert_eq!(mock.metric("mock_events_total"), 4.0);
    assert!(mock.injected("slow-accept") >= 3.0 && mock.injected("close-after") >= 3.0);
    pause(Nanos::from_millis(120));
    assert!(mock.injected("pause") >= 2.0);
    let words = mock.interrupt();
    assert!(words.contains("pause: ") && words.contains("stall: 2"), "{words}");
}

#[test]
fn with_a_seed_an_answer_is_the_same_to_its_length() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &["--set", "answer=exp:40"]);
    let ask = |more: &Value| {
        let mut body = json!({"model": "mock", "prompt": "a", "max_tokens": 1000});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = mock.post("/v1/completions", body.to_string()).json();
        answer["choices"][0]["text"].as_str().unwrap().to_owned()
    };
    let different = |more: &Value| (0..6).map(|_| ask(more)).collect::<BTreeSet<_>>().len();
    assert_eq!(different(&json!({"seed": 5})), 1);
    assert_eq!(different(&json!({"temperature": 0})), 1);
    assert_eq!(different(&json!({})), 6);
}

#[test]
fn a_curve_is_a_function_of_its_seed_and_counts_what_the_server_would_refuse() {
    let session = Session::new();
    let curve = |args: &[&str]| {
        let all = [&["mock", "--json", "--curve-duration", "60s"], args].concat();
        let outcome = session.run(&all);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        serde_json::from_str::<Value>(&outcome.stdout).unwrap()
    };
    let big = ["--profile", "llama-70b-8xh100", "--curve", "2,60"];
    let points = curve(&big)["points"].clone();
    assert_eq!(points, curve(&big)["points"]);
    assert_ne!(points, curve(&[&big[..], &["--seed", "2"]].concat())["points"]);
    assert_eq!((&points[0]["saturated"], &points[1]["saturated"]), (&json!(false), &json!(true)));
    // Everything at once: each token counts, though none took any time.
    let fast = curve(&["--profile", "fast", "--curve", "50"])["points"][0].clone();
    assert_eq!(fast["ttft_ms"]["p99"], 0.0);
    assert!(fast["output_tokens_per_s"].as_f64().unwrap() > 50.0 * 200.0, "{fast}");
    // No chat prompt is shorter than 50 tokens.
    let short = ["--profile", "fast", "--set", "max_model_len=50", "--curve", "5"];
    let short = curve(&short)["points"][0].clone();
    assert!(short["requests"].as_u64() > Some(0) && short["requests"] == short["refused"]);
}
