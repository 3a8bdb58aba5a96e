//! `goodput shadow`: what users get, what a candidate gets, and what is said of both, on real sockets.

mod servers;

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::mock::{MockProcess, SHORT, post};
use crate::support::{Outcome, Session, about_time, at, number, timed};
use goodput_clock::{now, pause};
use goodput_model::Nanos;
use serde_json::{Value, json};
use servers::{PATIENCE, Server, Shadow, answer_of, good};

fn short() -> Vec<u8> {
    post("/v1/chat/completions", SHORT)
}

/// What a client measures through the shadow.
fn client(session: &Session, shadow: &Shadow, more: &[&str]) -> Value {
    let args =
        ["--isl", "20", "--no-length-check", "--no-probe", "--model", "mock", "--warmup", "0s"];
    session.measure(&shadow.url(), &[&args[..], more].concat()).1
}

fn dropped(result: &Value, reason: &str) -> u64 {
    result["shadow"]["facts"]["dropped"][reason].as_u64().unwrap_or(0)
}

fn fact(result: &Value, name: &str) -> u64 {
    result["shadow"]["facts"][name].as_u64().unwrap()
}

/// Every chosen request is of a pair, or its drop has a reason.
fn assert_all_counted(result: &Value) {
    let without = result["shadow"]["facts"]["dropped"].as_object().unwrap().values();
    let without: u64 = without.map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(fact(result, "chosen"), fact(result, "pairs") + without, "{}", result["shadow"]);
}

/// Sixty requests of four users while the candidate is at this address.
fn users_during(candidate: &str, more: &[&str]) -> Value {
    let session = Session::new();
    let primary = Server::start(|_| Some(good("a")));
    let caps = ["--max-in-flight", "4", "--max-queue", "8"];
    let shadow = Shadow::start(&session, [&primary.url(), candidate], &[&caps[..], more].concat());
    let user = || {
        for _ in 0..15 {
            let (status, got) = shadow.ask(&short());
            assert!(status == 200 && good("a").ends_with(&got));
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(user))));
    let (outcome, result) = shadow.end();
    assert!(matches!(outcome.code, Some(0 | 4 | 5)), "{:?}: {}", outcome.code, outcome.stderr);
    assert_eq!((fact(&result, "passed"), fact(&result, "chosen")), (60, 60));
    assert_all_counted(&result);
    result
}

#[test]
fn a_dead_candidate_harms_no_client() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let result = users_during(&format!("http://127.0.0.1:{port}"), &["--stop-at-errors", "100%"]);
    assert_eq!(fact(&result, "pairs"), fact(&result, "mirrored"), "each failure is of a pair");
    let failures = result["shadow"]["failures"].to_string();
    assert!(failures.contains("connect"), "{failures}");
    assert!(result["caveats"].to_string().contains("shadow_share"), "{}", result["caveats"]);
}

#[test]
fn a_hanging_candidate_harms_no_client() {
    let candidate = Server::hanging();
    let result = users_during(&candidate.url(), &["--candidate-timeout", "1h"]);
    // Four are in flight, one is ready to be sent, eight wait.
    let full = dropped(&result, "queue_full");
    assert!((47..=52).contains(&full), "{}", result["shadow"]["facts"]);
    assert!(candidate.requests.load(Ordering::SeqCst) <= 4);
}

#[test]
fn a_candidate_of_garbage_harms_no_client() {
    let garbage = |number: usize| {
        Some(match number % 3 {
            0 => b"\x00\xff no HTTP at all \r\n\r\n".to_vec(),
            1 => answer_of("200 OK", b"{\"choices\": [[[[[ \xff"),
            _ => answer_of("500 Oh", b"<html>\x1b[2J</html>"),
        })
    };
    let result = users_during(&Server::start(garbage).url(), &["--stop-at-errors", "100%"]);
    assert_eq!(fact(&result, "pairs"), fact(&result, "mirrored"));
    assert_eq!(result["shadow"]["good"], 0);
}

#[test]
fn a_candidate_ten_times_slower_harms_no_client() {
    let candidate = Server::start(|_| {
        pause(Nanos::from_millis(20));
        Some(good("b"))
    });
    let result = users_during(&candidate.url(), &["--stop-at-errors", "100%"]);
    assert!(fact(&result, "pairs") > 0 && result["shadow"]["good"] == result["shadow"]["pairs"]);
}

#[test]
fn a_primary_that_packs_its_answers_is_not_judged() {
    let session = Session::new();
    let packed = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n\
                   Content-Length: 4\r\n\r\n\x1f\x8b\x08\x00";
    let primary = Server::start(|_| Some(packed.to_vec()));
    let candidate = Server::start(|_| Some(good("b")));
    let shadow = Shadow::start(&session, [&primary.url(), &candidate.url()], &[]);
    for _ in 0..3 {
        assert_eq!(shadow.ask(&short()), (200, b"\x1f\x8b\x08\x00".to_vec()));
    }
    let (outcome, result) = shadow.end();
    assert_eq!((fact(&result, "pairs"), dropped(&result, "unjudged")), (0, 3));
    assert_eq!(outcome.code, Some(5), "{}", outcome.stderr);
    assert!(result["caveats"].to_string().contains("compression"), "{}", result["caveats"]);
}

#[test]
fn users_get_the_primarys_bytes_and_a_candidate_nothing_of_theirs() {
    let session = Session::new();
    let said = good("the primary's own words");
    let own = said.clone();
    let primary = Server::start(move |_| Some(own.clone()));
    let candidate = Server::start(|_| Some(good("the candidate's own word")));
    let more = [
        "--candidate-key-env",
        "CANDIDATE_KEY",
        "--candidate-model",
        "other",
        "--similarity",
        "--candidate-header",
        "x-shadow: header-value",
        "--forward-header",
        "x-tenant",
    ];
    let shadow = Shadow::start(&session, [&primary.url(), &candidate.url()], &more);
    let body = r#"{"model":"m","messages":[{"role":"user","content":"my private prompt"}]}"#;
    let length = body.len();
    let request = format!(
        "POST /v1/chat/completions?key=users-query HTTP/1.1\r\nHost: x\r\n\
         Authorization: Bearer users-secret\r\nCookie: sid=users-secret\r\nX-Api-Key: users-secret\r\n\
         Api-Key: users-secret\r\nX-Tenant: blue\r\nX-Other: users-secret\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    for _ in 0..5 {
        let (status, got) = shadow.ask(request.as_bytes());
        assert_eq!(status, 200);
        assert!(said.ends_with(&got) && !got.is_empty(), "{}", String::from_utf8_lossy(&got));
    }
    let (outcome, result) = shadow.end();
    assert_eq!((fact(&result, "pairs"), fact(&result, "mirrored")), (5, 5), "{}", outcome.stderr);
    let like = &result["shadow"]["likeness"];
    assert_eq!((&like["pairs"], &like["exact"]), (&json!(5), &json!(0)));
    // "the " of 24 characters, and 24 against 23.
    let prefix = like["prefix_share"].as_f64().unwrap();
    assert!((prefix - 4.0 / 24.0).abs() < 1e-3, "{prefix}");

    let (at_primary, at_candidate) = (primary.got(), candidate.got());
    assert!(at_primary.contains("users-secret") && at_primary.contains("users-query"));
    assert!(at_candidate.contains("my private prompt"), "{at_candidate}");
    for kept in ["users-secret", "users-query", "\"m\""] {
        assert!(!at_candidate.contains(kept), "{kept}: {at_candidate}");
    }
    for given in ["Bearer candidates-own-key", "header-value", "blue", r#"{"model":"other","#] {
        assert!(at_candidate.contains(given), "{given}: {at_candidate}");
    }
    let mut written = session.everything_written();
    written.extend(outcome.stdout.bytes().chain(outcome.stderr.bytes()));
    let written = String::from_utf8_lossy(&written);
    for text in [
        "users-secret",
        "users-query",
        "candidates-own-key",
        "header-value",
        "my private prompt",
        "own words",
        "own word",
    ] {
        assert!(!written.contains(text), "{text}");
    }
    // The folder says the same again.
    let again = session.run(&["report", "shadow", "--format", "json"]);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(again["shadow"], result["shadow"]);
    assert!(session.path("shadow/report.html").is_file());
}

#[test]
fn a_conversation_goes_to_the_candidate_whole_or_not_at_all() {
    let session = Session::new();
    let primary = Server::start(|_| Some(good("a")));
    let candidate = Server::start(|_| Some(good("b")));
    let more = ["--share", "50%", "--seed", "3", "--not-model", "unwanted"];
    let shadow = Shadow::start(&session, [&primary.url(), &candidate.url()], &more);
    let ask = |model: &str, turns: &str| {
        let body = format!(r#"{{"model":"{model}","messages":[{turns}]}}"#);
        assert_eq!(shadow.ask(&post("/v1/chat/completions", body)).0, 200);
    };
    for conversation in 0..24 {
        let mut turns = format!(r#"{{"role":"user","content":"opening-{conversation}-"}}"#);
        for _ in 0..3 {
            ask("m", &turns);
            turns += r#",{"role":"assistant","content":"a"},{"role":"user","content":"more"}"#;
        }
        ask("unwanted", &turns);
    }
    assert_eq!(shadow.ask(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n").0, 200);
    let (_, result) = shadow.end();
    let got = candidate.got();
    let times = |n: usize| got.matches(&format!("opening-{n}-")).count();
    let counts: Vec<usize> = (0..24).map(times).collect();
    assert!(counts.iter().all(|count| [0, 3].contains(count)), "{counts:?}");
    let chosen = counts.iter().filter(|count| **count == 3).count();
    assert!((4..=20).contains(&chosen), "{counts:?}");
    assert_eq!(fact(&result, "pairs"), 3 * chosen as u64);
    // Of paths that can be mirrored: four turns of each.
    assert_eq!(fact(&result, "passed"), 96);
    assert!(!got.contains("unwanted") && !got.contains("GET "));
}

#[test]
fn a_signal_stops_mirroring_at_once_and_starts_it_again() {
    let session = Session::new();
    let primary = Server::start(|_| Some(good("a")));
    // The first is answered, the second never, others are.
    let candidate = Server::start(|number| (number != 1).then(|| good("b")));
    let more = ["--metrics-listen", "127.0.0.1:0"];
    let shadow = Shadow::start(&session, [&primary.url(), &candidate.url()], &more);
    let ask = |times: usize| (0..times).for_each(|_| assert_eq!(shadow.ask(&short()).0, 200));
    // A terminal that closes is none of the users' business.
    shadow.signal("-HUP");
    ask(1);
    shadow.until_metric("goodput_shadow_pairs_total", 1.0);
    assert_eq!(shadow.metric("goodput_shadow_state{state=\"going\"}"), 1.0);
    ask(1);
    shadow.until_metric("goodput_shadow_in_flight", 1.0);
    shadow.signal("-USR1");
    shadow.until("mirroring is switched off");
    // Requests in flight are abandoned, and no more are sent.
    shadow.until_metric("goodput_shadow_cut_total", 1.0);
    assert_eq!(shadow.metric("goodput_shadow_state{state=\"switched_off\"}"), 1.0);
    ask(3);
    assert_eq!(shadow.metric("goodput_shadow_dropped_total{reason=\"switched_off\"}"), 3.0);
    assert_eq!(candidate.requests.load(Ordering::SeqCst), 2);
    shadow.signal("-USR1");
    shadow.until("mirroring continues");
    ask(2);
    shadow.until_metric("goodput_shadow_pairs_total", 3.0);
    for side in ["primary", "candidate"] {
        let name = format!("goodput_shadow_e2e_seconds_count{{side=\"{side}\"}}");
        assert_eq!(shadow.metric(&name), 3.0);
    }
    shadow.signal("-USR1");
    shadow.until_metric("goodput_shadow_state{state=\"switched_off\"}", 1.0);
    let (_, result) = shadow.end();
    assert_eq!((fact(&result, "mirrored"), fact(&result, "pairs")), (4, 3));
    assert_eq!((dropped(&result, "switched_off"), dropped(&result, "cut")), (3, 1));
    assert!(at(&result, "shadow.facts.ended").as_str().unwrap().contains("SIGUSR1"));
}

#[test]
fn a_candidate_that_fails_is_left_alone_and_tried_again() {
    let session = Session::new();
    let primary = Server::start(|_| Some(good("a")));
    let is_well = Arc::new(AtomicBool::new(false));
    let well = Arc::clone(&is_well);
    let candidate = Server::start(move |_| {
        Some(if well.load(Ordering::SeqCst) { good("b") } else { answer_of("503 No", b"{}") })
    });
    let more = ["--retry-after", "300ms", "--metrics-listen", "127.0.0.1:0"];
    let shadow = Shadow::start(&session, [&primary.url(), &candidate.url()], &more);
    let ask = || assert_eq!(shadow.ask(&short()).0, 200);
    for pairs in 1..=20 {
        ask();
        shadow.until_metric("goodput_shadow_pairs_total", f64::from(pairs));
    }
    shadow.until("mirroring paused");
    let end = now() + Nanos::from(PATIENCE);
    let ask_until = |is_so: &dyn Fn() -> bool| {
        while !is_so() {
            assert!(now() < end, "{}", shadow.said());
            ask();
            pause(Nanos::from_millis(20));
        }
    };
    // On a machine that froze one may be the next try; that fails, and the pause is longer.
    ask_until(&|| shadow.metric("goodput_shadow_dropped_total{reason=\"errors\"}") >= 1.0);
    is_well.store(true, Ordering::SeqCst);
    ask_until(&|| shadow.said().contains("mirroring continues"));
    let (outcome, result) = shadow.end();
    assert!(at(&result, "shadow.facts.ended").is_null(), "{}", result["shadow"]["facts"]);
    assert_all_counted(&result);
    // One block tells nothing; that it was left alone does.
    assert_eq!(outcome.code, Some(4), "{}", outcome.stderr);
    let said = result["caveats"].to_string();
    assert!(said.contains("were not sent because the candidate was failing"), "{said}");
}

#[test]
fn bodies_that_wait_are_bounded_by_bytes() {
    let session = Session::new();
    let primary = Server::start(|_| Some(good("a")));
    let candidate = Server::hanging();
    let more = ["--metrics-listen", "127.0.0.1:0", "--max-in-flight", "200"];
    let shadow = Shadow::start(&session, [&primary.url(), &candidate.url()], &more);
    // Nine of 8 MiB do not fit into 64 MiB.
    let text = "x".repeat(8 << 20);
    let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{text}"}}]}}"#);
    for _ in 0..9 {
        assert_eq!(shadow.ask(&post("/v1/chat/completions", &body)).0, 200);
    }
    assert!(shadow.metric("goodput_shadow_held_bytes") <= f64::from(64 << 20));
    assert_eq!(shadow.metric("goodput_shadow_dropped_total{reason=\"queue_bytes\"}"), 2.0);
    let (_, result) = shadow.end();
    assert_all_counted(&result);
}

/// The largest difference between the distributions of two samples (Kolmogorov and Smirnov).
fn apart(samples: [&[Nanos]; 2]) -> f64 {
    let share = |sample: &[Nanos], at: Nanos| {
        sample.iter().filter(|one| **one <= at).count() as f64 / sample.len() as f64
    };
    let all = samples.iter().flat_map(|sample| sample.iter());
    all.map(|at| (share(samples[0], *at) - share(samples[1], *at)).abs()).fold(0.0, f64::max)
}

/// 200 pairs of requests of four users at once: one through a shadow whose candidate gets it too, and
/// one through a shadow that mirrors nothing, by turns. The primary takes from 1 to 11 ms.
fn assert_latency_is_the_primarys(candidate: &str) {
    const USERS: usize = 4;
    const PAIRS: usize = 50;
    let (session, other) = (Session::new(), Session::new());
    let primary = Server::start(|number| {
        pause(Nanos(1_000_000 + number as u64 * 41 % 101 * 100_000));
        Some(good("a"))
    });
    let more = ["--max-in-flight", "500", "--max-queue", "500", "--candidate-timeout", "1h"];
    let more = [&more[..], &["--stop-at-errors", "100%"]].concat();
    let sides = [&primary.url(), candidate];
    let shadow = Shadow::start(&session, sides, &more);
    let alone = Shadow::start(&other, sides, &["--only-model", "other-model"]);
    let took = |shadow: &Shadow| {
        let begin = now();
        assert_eq!(shadow.ask(&short()).0, 200);
        now() - begin
    };
    let pair = |number: usize| {
        if number.is_multiple_of(2) {
            let with = took(&shadow);
            (with, took(&alone))
        } else {
            let without = took(&alone);
            (took(&shadow), without)
        }
    };
    let user = || (0..PAIRS).map(pair).collect::<Vec<_>>();
    let pairs: Vec<(Nanos, Nanos)> = std::thread::scope(|scope| {
        let users: Vec<_> = (0..USERS).map(|_| scope.spawn(user)).collect();
        users.into_iter().flat_map(|user| user.join().unwrap()).collect()
    });
    let [mirrored, unmirrored] = [shadow, alone].map(|one| fact(&one.end().1, "mirrored"));
    assert_eq!((mirrored, unmirrored), ((USERS * PAIRS) as u64, 0));
    // Of samples of one distribution, 4 in 100,000 are so far apart, and as many so often to one side.
    let (with, without): (Vec<Nanos>, Vec<Nanos>) = pairs.iter().copied().unzip();
    let distance = apart([&with, &without]);
    about_time(|| assert!(distance < 0.23, "{distance}: {with:?} {without:?}"));
    let slower = pairs.iter().filter(|(with, without)| with > without).count();
    about_time(|| assert!((71..=129).contains(&slower), "{slower} of 200 are slower"));
}

#[test]
fn a_dead_candidate_leaves_the_primarys_latencies_alone() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    timed(|| assert_latency_is_the_primarys(&format!("http://127.0.0.1:{port}")));
}

#[test]
fn a_hanging_candidate_leaves_the_primarys_latencies_alone() {
    timed(|| assert_latency_is_the_primarys(&Server::hanging().url()));
}

/// What is said of each figure after a few seconds of pairs.
fn verdicts(candidate: [&str; 2]) -> (Outcome, Value) {
    let session = Session::new();
    let mock =
        |[ttft, itl]: [&str; 2]| MockProcess::start(&session, &["--ttft", ttft, "--itl", itl]);
    let (primary, candidate) = (mock(["40ms", "6ms"]), mock(candidate));
    let more = ["--block", "250ms", "--block-pairs", "8"];
    let shadow = Shadow::start(&session, [&primary.url(), &candidate.url()], &more);
    let seen = client(&session, &shadow, &["--osl", "8", "--rate", "60", "--duration", "2s"]);
    assert_eq!(number(&seen, "requests.failed"), 0.0);
    shadow.end()
}

fn outcome_of<'a>(result: &'a Value, metric: &str) -> &'a str {
    let mut findings = result["findings"].as_array().unwrap().iter();
    let found = findings.find(|finding| finding["metric"] == metric);
    found.unwrap_or_else(|| panic!("no {metric}: {result:#}"))["outcome"].as_str().unwrap()
}

#[test]
fn a_candidate_a_tenth_slower_is_found() {
    timed(|| {
        let (outcome, result) = verdicts(["44ms", "6600us"]);
        about_time(|| {
            for metric in ["ttft_p50", "tpot_p50"] {
                assert_eq!(
                    outcome_of(&result, metric),
                    "worse",
                    "{metric}: {:#}",
                    result["findings"]
                );
            }
            assert_eq!(outcome.code, Some(4), "{}", outcome.stderr);
        });
    });
}

#[test]
fn an_equal_candidate_is_not_found_slower() {
    timed(|| {
        let (outcome, result) = verdicts(["40ms", "6ms"]);
        about_time(|| {
            for metric in ["ttft_p50", "tpot_p50"] {
                let found = outcome_of(&result, metric);
                assert!(
                    !["worse", "better"].contains(&found),
                    "{metric}: {:#}",
                    result["findings"]
                );
            }
        });
        assert!(matches!(outcome.code, Some(0 | 5)), "{:?} {}", outcome.code, outcome.stderr);
    });
}
