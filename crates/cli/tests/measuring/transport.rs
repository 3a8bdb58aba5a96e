//! TLS and HTTP/2 over real sockets, with a real certificate authority.

use std::io::{BufRead, BufReader};

use serde_json::json;

use crate::support::mock::MockProcess;
use crate::support::{Session, certificate, number};

const SMALL: [&str; 6] = ["--rate", "200", "--num-requests", "40", "--max-tokens", "5"];

#[test]
fn tls_with_both_protocols_and_both_policies() {
    let session = Session::new();
    let [cert, key] = certificate(&session);
    let mock = MockProcess::fast(&session, &["--tls-cert", &cert, "--tls-key", &key]);
    let url = format!("https://localhost:{}", mock.port);
    let cases: [&[&str]; 4] = [
        &["--cacert", &cert],
        &["--cacert", &cert, "--http2"],
        &["--cacert", &cert, "--connections", "per-request"],
        &["--insecure"],
    ];
    for args in cases {
        let run = Session::new();
        let (outcome, summary) = run.measure(&url, &[&SMALL[..], args].concat());
        outcome.assert_finished(&format!("{args:?}"));
        assert_eq!(number(&summary, "requests.ok"), 40.0, "{args:?}");
        assert_eq!(number(&summary, "tokens.output"), 200.0, "{args:?}");
        let connects = number(&summary, "requests.connects");
        if args.contains(&"per-request") {
            assert_eq!(connects, 40.0);
        } else {
            assert!(connects < 40.0, "{args:?}: {connects}");
        }
    }
    let untrusted = session.run(&["run", &url, "--rate", "1", "--num-requests", "1"]);
    assert_eq!(untrusted.code, Some(3));
    assert!(untrusted.stderr.contains("--cacert"), "{}", untrusted.stderr);
}

#[test]
fn http2_with_prior_knowledge() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &[]);
    let url = format!("http://localhost:{}", mock.port);
    let (outcome, summary) = Session::new().measure(&url, &[&SMALL[..], &["--http2"]].concat());
    outcome.assert_finished("");
    assert_eq!(number(&summary, "requests.ok"), 40.0);
    // 250 streams at once need three connections of a hundred streams each.
    let slow = MockProcess::fast(&session, &["--ttft", "300ms"]);
    let url = format!("http://127.0.0.1:{}", slow.port);
    let args = ["--rate", "inf", "--num-requests", "250", "--max-tokens", "2", "--http2"];
    let (_, summary) = Session::new().measure(&url, &args);
    assert_eq!(number(&summary, "requests.ok"), 250.0, "{}", summary["requests"]);
}

#[test]
fn names_of_two_families_reach_a_server_on_one() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &[]);
    // `localhost` may resolve to ::1 first, where nothing listens.
    let url = format!("http://localhost:{}", mock.port);
    let (outcome, summary) = Session::new().measure(&url, &SMALL);
    outcome.assert_finished("");
    assert!(number(&summary, "run.lookup.ms") > 0.0, "{}", summary["run"]);
    assert!(number(&summary, "run.lookup.addresses") >= 1.0, "{}", summary["run"]);
    let url = format!("http://127.0.0.1:{}", mock.port);
    let (_, summary) = Session::new().measure(&url, &SMALL);
    assert_eq!(summary["run"]["lookup"], json!({"ms": null, "addresses": 1}));
    let Ok(listener) = std::net::TcpListener::bind("[::1]:0") else { return };
    drop(listener);
    let all = ["mock", "--listen", "[::1]:0", "--profile", "fast"];
    let mut child = session.spawn(&all);
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address =
        line.split_once("http://").unwrap().1.split_whitespace().next().unwrap().to_owned();
    let (outcome, summary) = Session::new().measure(&format!("http://{address}"), &SMALL);
    let _ = child.kill();
    let _ = child.wait();
    outcome.assert_finished("");
    assert_eq!(number(&summary, "requests.ok"), 40.0);
}
