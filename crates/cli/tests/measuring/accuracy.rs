//! What is reported against what really happened, known by construction.

use crate::support::{Session, about_time, at, ms, number, percentile, timed};
use goodput_testkit::{Server, timed_stream};

#[test]
fn latencies_are_those_of_the_server() {
    timed(|| {
        let server = Server::start(|_| timed_stream(ms(50), ms(10), 20));
        let (outcome, summary) = Session::new()
            .measure(&server.url(), &["--rate", "25", "--num-requests", "150", "--model", "m"]);
        outcome.assert_finished("");
        assert_eq!(number(&summary, "requests.ok"), 150.0);
        assert_eq!(number(&summary, "tokens.output"), 150.0 * 20.0);
        assert_eq!(number(&summary, "tokens.input"), 150.0 * 7.0);
        assert_eq!(at(&summary, "tokens.output_source"), "usage");
        // What a stall of the client spoiled is cut.
        about_time(|| {
            assert_eq!(number(&summary, "metrics.ttft.n"), 150.0);
            assert_eq!(number(&summary, "metrics.itl.n"), 150.0 * 19.0);
        });
        // The server cannot be early, so neither can a true report; medians shrug off a noisy machine.
        about_time(|| {
            let ttft = percentile(&summary, "ttft", "50");
            assert!((50.0..55.0).contains(&ttft), "TTFT {ttft}");
            let itl = percentile(&summary, "itl", "50");
            assert!((9.5..10.5).contains(&itl), "ITL {itl}");
            // Over a whole answer jitter averages out: 19 gaps of 10 ms.
            let tpot = percentile(&summary, "tpot", "50");
            assert!((9.9..10.1).contains(&tpot), "TPOT {tpot}");
            assert!(percentile(&summary, "e2e", "50") >= 240.0);
        });
    });
}

#[test]
fn latency_counts_from_the_due_instant_when_the_server_falls_behind() {
    timed(|| {
        // One slot of 100 ms: 10 requests/s can be served, 30 are due.
        let target = "mock:ttft=100ms,itl=1ms,slots=1";
        let (_, summary) = Session::new().measure(
            target,
            &[
                "--rate",
                "30",
                "--arrivals",
                "constant",
                "--num-requests",
                "120",
                "--max-tokens",
                "1",
            ],
        );
        // Request i is due at i/30 s and answered at (i+1)/10 s: the last waits 120/10 - 119/30 s.
        about_time(|| {
            let last = percentile(&summary, "ttft", "99.9");
            assert!((8033.0..8400.0).contains(&last), "last TTFT {last}");
            let median = percentile(&summary, "ttft", "50");
            assert!((4033.0..4300.0).contains(&median), "median TTFT {median}");
        });
        assert_eq!(number(&summary, "requests.ok"), 120.0);
        let codes: Vec<_> =
            summary["caveats"].as_array().unwrap().iter().map(|c| &c["code"]).collect();
        about_time(|| {
            assert!(codes.iter().any(|code| *code == "overloaded"), "{codes:?}");
            assert_ne!(at(&summary, "verdict"), "valid");
        });
    });
}

#[test]
fn a_cap_delays_and_says_so() {
    timed(|| {
        let (_, summary) = Session::new().measure(
            "mock:ttft=100ms,itl=1ms",
            &[
                "--rate",
                "50",
                "--arrivals",
                "constant",
                "--num-requests",
                "20",
                "--max-tokens",
                "1",
                "--max-concurrency",
                "1",
            ],
        );
        assert_eq!(at(&summary, "load.mode"), "capped");
        // Every request but the first finds the only slot taken.
        about_time(|| {
            assert_eq!(number(&summary, "load.delayed"), 19.0);
            // Due at 19/50 s, begun after 19 others of 100 ms each.
            let last = percentile(&summary, "ttft", "99.9");
            assert!((1620.0..1900.0).contains(&last), "last TTFT {last}");
            // Waiting for the cap is not the client's lateness.
            assert!(number(&summary, "load.slip_ms.p50") < 50.0);
        });
    });
}

#[test]
fn a_closed_loop_keeps_its_users_busy() {
    timed(|| {
        let (_, summary) = Session::new().measure(
            "mock:ttft=50ms,itl=10ms",
            &[
                "--concurrency",
                "8",
                "--think-time",
                "50ms",
                "--duration",
                "3s",
                "--warmup",
                "8",
                "--max-tokens",
                "6",
            ],
        );
        assert_eq!(at(&summary, "load.mode"), "closed");
        // 100 ms of service and 50 ms of thought: 8 users make 53.3 requests/s; Little's law.
        let rate = number(&summary, "throughput.requests_per_s");
        about_time(|| assert!((45.0..53.5).contains(&rate), "{rate} req/s"));
        assert_eq!(number(&summary, "requests.warmup"), 8.0);
        let in_flight = number(&summary, "load.in_flight_mean");
        about_time(|| assert!((4.5..6.5).contains(&in_flight), "{in_flight} in flight"));
    });
}

#[test]
fn a_burst_is_reported_by_its_makespan() {
    timed(|| {
        let (_, summary) = Session::new().measure(
            "mock:ttft=50ms,itl=10ms,slots=10",
            &["--rate", "inf", "--num-requests", "40", "--max-tokens", "6"],
        );
        assert_eq!(at(&summary, "load.mode"), "burst");
        assert_eq!(at(&summary, "window.kind"), "makespan");
        assert_eq!(at(&summary, "load.offered_rps"), &serde_json::Value::Null);
        // Four rounds of ten, 100 ms each: 100 requests/s at most.
        let rate = number(&summary, "throughput.requests_per_s");
        about_time(|| assert!((70.0..=100.0).contains(&rate), "{rate} req/s"));
    });
}

#[test]
fn other_apis_and_answers_in_one_piece() {
    timed(|| {
        for args in [
            &["--api", "completions"][..],
            &["--no-stream"],
            &["--api", "completions", "--no-stream"],
        ] {
            let mut all = vec!["--rate", "40", "--num-requests", "40", "--max-tokens", "6"];
            all.extend(args);
            let (_, summary) = Session::new().measure("mock:ttft=50ms,itl=10ms", &all);
            assert_eq!(number(&summary, "requests.ok"), 40.0, "{args:?}");
            assert_eq!(number(&summary, "tokens.output"), 240.0, "{args:?}");
            let with_ttft = if args.contains(&"--no-stream") { 0.0 } else { 40.0 };
            about_time(|| {
                let e2e = percentile(&summary, "e2e", "50");
                assert!((100.0..110.0).contains(&e2e), "{args:?}: E2E {e2e}");
                assert_eq!(number(&summary, "metrics.ttft.n"), with_ttft, "{args:?}");
            });
        }
    });
}
