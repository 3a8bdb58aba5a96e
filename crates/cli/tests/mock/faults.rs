//! The simulated engine misbehaves on demand, and each fault shows in `goodput run` in its class,
//! as often as the engine itself says that it happened.

use crate::support::mock::{MockProcess, records};
use crate::support::{Session, about_time, at, number, percentile, timed};
use goodput_model::{CaveatCode, ErrorClass, RequestRecord};
use serde_json::{Value, json};

/// Twenty requests for eight tokens each, on connections of their own: a connection that breaks
/// affects no other request, and none is retried.
const TWENTY: [&str; 11] = [
    "--concurrency",
    "2",
    "--num-requests",
    "20",
    "--max-tokens",
    "8",
    "--connections",
    "per-request",
    "--no-probe",
    "--canary",
    "off",
];

/// The same one after the other on kept connections.
const IN_TURN: [&str; 9] = [
    "--concurrency",
    "1",
    "--num-requests",
    "20",
    "--max-tokens",
    "8",
    "--no-probe",
    "--canary",
    "off",
];

/// A run against a mock, with the mock still there to ask.
struct MockRun {
    mock: MockProcess,
    session: Session,
    summary: Value,
}

impl MockRun {
    fn new(mock_args: &[&str], run_args: &[&str]) -> Self {
        Self::despite(&[], mock_args, run_args)
    }

    /// The same where these caveats may make it void.
    fn despite(expected: &[CaveatCode], mock_args: &[&str], run_args: &[&str]) -> Self {
        let session = Session::new();
        let mock = MockProcess::start(&session, &[&["--profile", "fast"], mock_args].concat());
        let (outcome, summary) = session.measure(&mock.url(), run_args);
        outcome.assert_finished_despite(expected, &format!("{mock_args:?} {run_args:?}"));
        Self { mock, session, summary }
    }

    fn with_fault(fault: &str, run_args: &[&str]) -> Self {
        Self::new(&["--fault", fault], run_args)
    }

    fn records(&self) -> Vec<RequestRecord> {
        records(&self.session.path("out/requests.log"))
    }

    /// Five of the twenty failed like this, and only they.
    fn assert_five(&self, kind: &str, class: &str, stage: &str, context: &str) {
        let requests = &self.summary["requests"];
        assert_eq!(self.mock.injected(kind), 5.0, "{context}");
        assert_eq!(requests["errors"], json!({class: 5}), "{context}: {requests}");
        assert_eq!(requests["errors_by_stage"], json!({stage: 5}), "{context}: {requests}");
        assert_eq!(requests["reconnects"], 0, "{context}");
        assert_eq!(number(&self.summary, "requests.ok"), 15.0, "{context}");
        assert_eq!(number(&self.summary, "tokens.output"), 15.0 * 8.0, "{context}");
    }

    fn ok(&self) -> f64 {
        number(&self.summary, "requests.ok")
    }
}

/// Fault, class, stage, and the token events that come before it.
const FAILURES: [(&str, &str, &str, usize); 19] = [
    ("500", "http_500", "headers", 0),
    ("429", "http_429", "headers", 0),
    ("503=7", "http_503", "headers", 0),
    ("404", "http_404", "headers", 0),
    ("418", "http_418", "headers", 0),
    ("reset", "closed", "headers", 0),
    ("bad-http", "bad_http", "headers", 0),
    ("html", "html", "first_token", 0),
    ("empty", "empty", "first_token", 0),
    ("cut=0", "cut", "first_token", 0),
    ("reset-midstream=0", "cut", "first_token", 0),
    ("cut=1", "cut", "stream", 1),
    ("cut", "cut", "stream", 4),
    ("cut=100", "cut", "stream", 8),
    ("reset-midstream", "cut", "stream", 4),
    ("truncated-json", "bad_event", "stream", 4),
    ("error-event", "stream_error", "stream", 4),
    ("no-finish", "no_finish", "stream", 8),
    ("huge-event=17MB", "event_too_large", "first_token", 0),
];

#[test]
fn each_fault_has_its_class_and_its_count() {
    for (fault, class, stage, events) in FAILURES {
        let ran = MockRun::with_fault(&format!("{fault}:1/4"), &TWENTY);
        let kind = fault.split('=').next().unwrap();
        ran.assert_five(kind, class, stage, fault);
        let records = ran.records();
        let failed = records.iter().filter(|record| !record.is_ok());
        for record in failed {
            assert_eq!(record.exchange.chunks.len(), events, "{fault}: {:?}", record.exchange);
        }
    }
}

#[test]
fn answers_in_one_piece_have_the_same_faults() {
    let cases = [
        ("500", "http_500", "headers"),
        ("reset", "closed", "headers"),
        ("bad-http", "bad_http", "headers"),
        ("html", "html", "first_token"),
        ("cut", "cut", "first_token"),
        ("reset-midstream", "cut", "first_token"),
        ("truncated-json", "bad_json", "first_token"),
        ("error-event", "stream_error", "first_token"),
        ("no-finish", "no_finish", "first_token"),
        ("empty", "empty", "first_token"),
    ];
    for (fault, class, stage) in cases {
        let args = [&TWENTY[..], &["--no-stream"]].concat();
        let ran = MockRun::with_fault(&format!("{fault}:1/4"), &args);
        let context = format!("{fault} in one piece");
        ran.assert_five(fault, class, stage, &context);
    }
}

/// Over HTTP/2 a stream breaks, not its connection: with two users on one connection no other
/// request fails, and no other connection is opened.
#[test]
fn a_broken_http2_stream_leaves_other_streams_alone() {
    let args = [&TWENTY[..6], &["--no-probe", "--canary", "off", "--http2"]].concat();
    let args = [&args[..], &["--workers", "1"]].concat();
    let cases = [
        ("500", "http_500", "headers"),
        ("reset", "closed", "headers"),
        ("reset-midstream", "cut", "stream"),
        ("cut", "cut", "stream"),
        ("cut=0", "cut", "first_token"),
        ("error-event", "stream_error", "stream"),
        ("html", "html", "first_token"),
    ];
    for (fault, class, stage) in cases {
        let ran = MockRun::with_fault(&format!("{fault}:1/4"), &args);
        let context = format!("{fault} over HTTP/2");
        ran.assert_five(fault.split('=').next().unwrap(), class, stage, &context);
        let mut connections: Vec<_> =
            ran.records().iter().map(|record| record.exchange.connection).collect();
        connections.dedup();
        assert_eq!(connections, [0], "{context}");
    }
}

#[test]
fn garbage_over_http2_ends_the_connection_and_the_next_one_works() {
    let args = [&IN_TURN[..], &["--http2", "--workers", "1"]].concat();
    MockRun::with_fault("bad-http:1/4", &args)
        .assert_five("bad-http", "bad_http", "headers", "HTTP/2");
}

#[test]
fn a_stall_beyond_the_limit_is_a_timeout_over_both_protocols() {
    timed(|| {
        for protocol in [&[][..], &["--http2"]] {
            let args = ["--rate", "100", "--arrivals", "constant", "--num-requests", "20"];
            let more = ["--max-tokens", "8", "--timeout", "500ms", "--no-probe", "--canary", "off"];
            let args = [&args[..], &more, protocol].concat();
            let ran = MockRun::with_fault("stall=1m:1/4", &args);
            // Of a busy machine other answers, too, may take half a second.
            about_time(|| {
                ran.assert_five("stall", "timeout", "stream", &format!("{protocol:?}"));
                let records = ran.records();
                let late: Vec<_> = records.iter().filter(|record| !record.is_ok()).collect();
                assert!(late.iter().all(|record| record.exchange.chunks.len() == 4));
                // They are the tail of the distribution, not missing from it.
                assert_eq!(number(&ran.summary, "metrics.e2e.censored"), 5.0);
            });
        }
    });
}

#[test]
fn a_kept_connection_that_is_reset_is_reopened_once_and_counted() {
    let ran = MockRun::with_fault("reset:1/4", &IN_TURN);
    // 20 answers need 26 questions, of which every fourth is met by a reset.
    assert_eq!((ran.ok(), ran.mock.injected("reset")), (20.0, 6.0));
    assert_eq!(number(&ran.summary, "requests.reconnects"), 6.0);
    assert_eq!(number(&ran.summary, "requests.failed"), 0.0);
}

#[test]
fn a_status_comes_with_the_seconds_to_wait() {
    let session = Session::new();
    for (fault, status, seconds) in [("429", 429, 1), ("503=7", 503, 7)] {
        let mock = MockProcess::start(&session, &["--profile", "fast", "--fault", fault]);
        let body = json!({"model": "mock", "prompt": "a", "max_tokens": 1});
        let reply = mock.post("/v1/completions", body.to_string());
        assert_eq!(reply.status, status);
        assert!(reply.head.contains(&format!("retry-after: {seconds}")), "{}", reply.head);
        assert!(reply.json()["error"]["message"].is_string(), "{:?}", reply.body);
    }
}

#[test]
fn refused_connections_are_refused_for_that_time_only() {
    timed(|| {
        let rate =
            ["--rate", "50", "--arrivals", "constant", "--duration", "3s", "--max-tokens", "2"];
        let args = [&rate[..], &["--no-probe", "--canary", "off"]].concat();
        let ran = MockRun::with_fault("refuse@1s+1s", &args);
        let records = ran.records();
        let (good, bad): (Vec<_>, Vec<_>) = records.iter().partition(|record| record.is_ok());
        let mut due: Vec<_> = bad.iter().map(|record| record.scheduled).collect();
        due.sort();
        let class = |record: &&RequestRecord| record.exchange.failure.as_ref().unwrap().class;
        assert!(bad.iter().all(|record| class(record) == ErrorClass::Connect), "{}", ran.summary);
        // A second of fifty, give or take those at its edges.
        about_time(|| assert!((40..=52).contains(&bad.len()), "{} failed", bad.len()));
        let (first, last) = (due[0], due[due.len() - 1]);
        about_time(|| {
            assert!((last - first).as_secs() < 1.05, "{first:?} {last:?}");
            assert!(good.iter().all(|record| record.scheduled < first || record.scheduled > last));
            assert!(good.iter().any(|record| record.scheduled > last), "it came back");
        });
        assert_eq!(number(&ran.summary, "requests.errors_by_stage.connect"), bad.len() as f64);
    });
}

#[test]
fn a_connection_that_ends_after_some_requests_costs_a_new_one_and_nothing_else() {
    let ran = MockRun::with_fault("close-after=3", &IN_TURN);
    assert_eq!((ran.ok(), number(&ran.summary, "requests.reconnects")), (20.0, 0.0));
    // The first is opened ahead of the run; three requests on each make six more.
    assert_eq!(number(&ran.summary, "requests.connects"), 6.0);
    let mut used: Vec<_> = ran.records().iter().map(|record| record.exchange.connection).collect();
    used.sort_unstable();
    used.dedup();
    assert_eq!(used.len(), 7);
}

#[test]
fn a_full_queue_refuses_exactly_those_that_find_no_place() {
    timed(|| {
        for status in ["429", "503"] {
            let full = format!("queue_full_status={status}");
            let engine =
                ["--ttft", "300ms", "--slots", "1", "--set", "max_queue=2", "--set", full.as_str()];
            let burst = ["--rate", "inf", "--num-requests", "10", "--max-tokens", "2"];
            let burst = [&burst[..], &["--no-probe", "--canary", "off"]].concat();
            let ran = MockRun::despite(&[CaveatCode::Errors], &engine, &burst);
            // One in the slot, two in the queue.
            // A client that takes 300 ms to send ten finds a free slot again.
            let class = format!("http_{status}");
            about_time(|| {
                assert_eq!(at(&ran.summary, "requests.errors"), &json!({class: 7}));
                assert_eq!(ran.ok(), 3.0);
                assert_eq!(ran.mock.metric("mock_refused_total"), 7.0);
                assert_eq!(
                    ran.mock.metric("mock_requests_total"),
                    3.0,
                    "those that the engine took"
                );
            });
            let tokens = number(&ran.summary, "tokens.input");
            assert_eq!(ran.mock.metric("vllm:prompt_tokens_total"), tokens);
            let ttft = ["50", "99"].map(|percent| percentile(&ran.summary, "ttft", percent));
            about_time(|| {
                assert!(
                    ttft[0] >= 600.0 && ttft[1] >= 900.0,
                    "they waited for each other: {ttft:?}"
                );
            });
        }
    });
}
