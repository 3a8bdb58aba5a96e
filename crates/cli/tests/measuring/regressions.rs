//! One test for each thing that once went wrong.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use crate::support::{Session, about_time, at, ms, number, percentile, signal, timed};
use goodput_clock::now;
use goodput_model::Nanos;
use goodput_testkit::{
    ArrivedRequest, STREAM_HEAD, Server, Step, answer, chunk, timed_stream, token_event,
};

fn seconds(since: Nanos) -> f64 {
    (now() - since).as_secs()
}

#[test]
fn users_of_a_closed_loop_do_not_start_before_time_zero() {
    timed(|| {
        let args = ["--concurrency", "8", "--num-requests", "16", "--max-tokens", "5"];
        let (_, summary) = Session::new().measure("mock:ttft=3ms,itl=1ms", &args);
        let least = number(&summary, "metrics.ttft.min");
        about_time(|| assert!(least >= 3.0, "TTFT {least} is below what the engine takes"));
    });
}

#[test]
fn a_closed_loop_by_count_counts_each_cohort_once() {
    timed(|| {
        let server = Server::start(|_| timed_stream(ms(50), ms(10), 6));
        let args =
            ["--concurrency", "10", "--num-requests", "60", "--warmup", "10", "--model", "m"];
        let (_, summary) = Session::new().measure(&server.url(), &args);
        // Ten users of 100 ms each: 100 requests/s, and no more.
        let rate = number(&summary, "throughput.requests_per_s");
        about_time(|| assert!((80.0..=101.0).contains(&rate), "{rate} req/s"));
    });
}

#[test]
fn a_think_time_does_not_keep_a_run_from_ending() {
    let begin = now();
    let args =
        ["--concurrency", "1", "--think-time", "60s", "--duration", "1s", "--max-tokens", "2"];
    let (outcome, _) = Session::new().measure("mock:ttft=1ms,itl=1ms", &args);
    outcome.assert_finished("");
    assert!(seconds(begin) < 30.0, "took {} s", seconds(begin));
}

#[test]
fn the_drain_limit_holds_for_a_closed_loop_by_count() {
    let begin = now();
    let server = Server::start(|request: &ArrivedRequest| match request.number {
        0 => vec![Step::Pause(Duration::from_mins(2))],
        _ => timed_stream(ms(1), ms(1), 2),
    });
    let args = [
        "--concurrency",
        "2",
        "--num-requests",
        "5",
        "--drain",
        "500ms",
        "--model",
        "m",
        "--no-probe",
    ];
    let (_, summary) = Session::new().measure(&server.url(), &args);
    assert_eq!(number(&summary, "requests.errors.cut_off"), 1.0);
    assert!(seconds(begin) < 60.0, "took {} s", seconds(begin));
}

#[test]
fn connections_opened_ahead_do_not_hang_a_run() {
    // Accepts and never answers the TLS handshake.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let begin = now();
    let args = [
        "--concurrency",
        "3",
        "--num-requests",
        "3",
        "--timeout",
        "1s",
        "--no-probe",
        "--model",
        "m",
        "--insecure",
    ];
    let (outcome, summary) = Session::new().measure(&url, &args);
    assert_eq!(outcome.code, Some(3));
    assert_eq!(number(&summary, "requests.errors.timeout"), 3.0);
    assert!(seconds(begin) < 60.0, "took {} s", seconds(begin));
}

#[test]
fn stalls_are_the_largest_gaps_and_stay_in_flight() {
    timed(|| {
        let stalling = || {
            vec![
                Step::write(STREAM_HEAD),
                Step::write(chunk(&token_event("a"))),
                Step::write(chunk(&token_event("b"))),
                Step::Pause(Duration::from_secs(30)),
            ]
        };
        let server = Server::start(move |request: &ArrivedRequest| {
            if request.number.is_multiple_of(2) {
                stalling()
            } else {
                timed_stream(ms(5), ms(1), 3)
            }
        });
        let args = [
            "--rate",
            "20",
            "--arrivals",
            "constant",
            "--num-requests",
            "20",
            "--timeout",
            "600ms",
            "--model",
            "m",
            "--no-probe",
        ];
        let (_, summary) = Session::new().measure(&server.url(), &args);
        about_time(|| {
            assert_eq!(number(&summary, "metrics.max_gap.censored"), 10.0);
            assert_eq!(number(&summary, "metrics.tpot.censored"), 10.0);
            assert!(at(&summary, "metrics.e2e.mean").is_null());
            // Ten stalls of 600 ms within 950 ms of sending: about six in flight on average.
            let in_flight = number(&summary, "load.in_flight_mean");
            assert!(in_flight > 3.0, "{in_flight} in flight");
        });
    });
}

#[test]
fn a_key_in_a_header_is_hidden_even_when_quoted_without_its_scheme() {
    let server = Server::start(|request: &ArrivedRequest| {
        let key = request.header("authorization").unwrap().trim_start_matches("Bearer ").to_owned();
        let body = format!("{{\"error\":{{\"message\":\"{} bad key {key}\"}}}}", "x ".repeat(95));
        vec![answer("429 Too Many Requests", "application/json", &body)]
    });
    let session = Session::new();
    let outcome = session.run(&[
        "run",
        &server.url(),
        "--rate",
        "50",
        "--num-requests",
        "4",
        "--model",
        "m",
        "--header",
        "Authorization: Bearer sk-abcdef-0123456789",
        "--out",
        "out",
    ]);
    let mut written = session.everything_written();
    written.extend(outcome.stdout.bytes().chain(outcome.stderr.bytes()));
    let text = String::from_utf8_lossy(&written);
    assert!(!text.contains("sk-abc"), "{text}");
}

#[test]
fn a_refusal_whose_body_hangs_keeps_its_status() {
    let server = Server::start(|_| {
        vec![
            Step::write("HTTP/1.1 500 Oops\r\ncontent-length: 100\r\n\r\nhalf"),
            Step::Pause(Duration::from_secs(30)),
        ]
    });
    let args = ["--rate", "50", "--num-requests", "3", "--model", "m", "--no-probe"];
    let (_, summary) = Session::new().measure(&server.url(), &args);
    assert_eq!(number(&summary, "requests.errors.http_500"), 3.0, "{}", summary["requests"]);
}

#[test]
fn an_early_refusal_of_a_long_upload_is_read() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut some = [0; 1000];
            let _ = stream.read(&mut some);
            let _ = stream.write_all(
                b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            );
            // Dropped with most of the request unread: the client's writes are reset.
        }
    });
    let args = [
        "--rate",
        "20",
        "--num-requests",
        "8",
        "--model",
        "m",
        "--no-probe",
        "--input-tokens",
        "900000",
        "--connections",
        "per-request",
    ];
    let (_, summary) = Session::new().measure(&url, &args);
    assert_eq!(number(&summary, "requests.errors.http_413"), 8.0, "{}", summary["requests"]);
}

#[test]
fn a_certificate_that_is_its_own_authority_is_trusted_when_named() {
    let session = Session::new();
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    std::fs::write(session.path("cert.pem"), certificate.pem()).unwrap();
    std::fs::write(session.path("key.pem"), key.serialize_pem()).unwrap();
    let mut mock = session.spawn(&[
        "mock",
        "--listen",
        "127.0.0.1:0",
        "--profile",
        "fast",
        "--tls-cert",
        "cert.pem",
        "--tls-key",
        "key.pem",
    ]);
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(mock.stderr.take().unwrap()),
        &mut line,
    )
    .unwrap();
    let port =
        line.split_once("127.0.0.1:").unwrap().1.split_whitespace().next().unwrap().to_owned();
    let url = format!("https://localhost:{port}");
    let outcome = session.run(&[
        "run",
        &url,
        "--rate",
        "50",
        "--num-requests",
        "5",
        "--max-tokens",
        "2",
        "--cacert",
        "cert.pem",
        "--out",
        "out",
    ]);
    let _ = mock.kill();
    let _ = mock.wait();
    outcome.assert_finished(&outcome.stderr);
}

#[test]
fn a_request_held_by_a_cap_is_not_sent_after_a_stop() {
    timed(|| {
        let session = Session::new();
        let server = Server::start(|_| timed_stream(ms(400), ms(1), 2));
        let child = session.spawn(&[
            "run",
            &server.url(),
            "--rate",
            "100",
            "--max-concurrency",
            "1",
            "--duration",
            "30s",
            "--model",
            "m",
            "--no-probe",
            "--out",
            "out",
        ]);
        goodput_clock::pause(Nanos::from_millis(1500));
        signal(&child, "-INT");
        let outcome = crate::support::outcome(child.wait_with_output().unwrap());
        assert_eq!(outcome.code, Some(130), "{}", outcome.stderr);
        // One every 400 ms until the signal, and the one in flight: not the queue behind it.
        about_time(|| {
            assert!(server.requests().len() <= 8, "{} requests", server.requests().len());
        });
    });
}

#[test]
fn a_cap_is_not_taken_for_an_overloaded_server() {
    timed(|| {
        let args =
            ["--rate", "60", "--max-concurrency", "2", "--num-requests", "60", "--max-tokens", "2"];
        let (_, summary) = Session::new().measure("mock:ttft=100ms,itl=1ms", &args);
        let codes: Vec<_> =
            summary["caveats"].as_array().unwrap().iter().map(|c| &c["code"]).collect();
        about_time(|| {
            assert!(!codes.iter().any(|code| *code == "overloaded"), "{codes:?}");
            assert!(number(&summary, "load.in_flight_mean") <= 2.01);
            assert!(percentile(&summary, "ttft", "50") > 500.0);
        });
    });
}

#[test]
fn plans_and_folders_of_another_version_are_refused() {
    let session = Session::new();
    session.measure(
        "mock:ttft=1ms,itl=1ms",
        &["--rate", "50", "--num-requests", "5", "--max-tokens", "2"],
    );
    for (file, known, other) in
        [("plan.toml", "plan/1", "plan/9"), ("manifest.json", "manifest/1", "manifest/9")]
    {
        let path = session.path("out").join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace(known, other)).unwrap();
        let outcome = session.run(&["report", "out", "-v"]);
        assert_eq!(outcome.code, Some(2), "{file}");
        assert!(outcome.stderr.contains(other), "{}", outcome.stderr);
        std::fs::write(&path, text).unwrap();
    }
}

#[test]
fn a_stdout_that_cannot_be_written_is_an_error() {
    let session = Session::new();
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let status = session.command(&["man"]).stdout(full()).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn a_plan_cannot_ask_for_more_threads_than_a_flag() {
    let session = Session::new();
    let args = ["--concurrency", "1", "--num-requests", "1", "--max-tokens", "1"];
    session.measure("mock:ttft=1ms,itl=1ms", &[&args[..], &["--workers", "1"]].concat());
    let plan = std::fs::read_to_string(session.path("out/plan.toml")).unwrap();
    std::fs::write(session.path("p.toml"), plan.replace("workers = 1", "workers = 100000"))
        .unwrap();
    let outcome = session.run(&["run", "--plan", "p.toml", "--out", "again"]);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("256"), "{}", outcome.stderr);
}
