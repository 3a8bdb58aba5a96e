//! The thread that reads pages, on real sockets.

use goodput_model::Scrape;
use goodput_testkit::{ArrivedRequest, Server, Step};

use super::*;
use crate::Silent;
use goodput_model::Header;

const PAGE: &str = "vllm:num_requests_running{engine=\"0\"} 3\nvllm:num_requests_waiting 0\n";

fn answer(status: &str, kind: &str, body: &str) -> Step {
    let length = body.len();
    Step::write(format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}"
    ))
}

/// A watch of this target's server, with these flags of `goodput run`.
fn observe(target: &str, flags: &[&str]) -> (Plan, Ready, Result<ServerWatch, Failed>) {
    let mut plan = crate::testing::plan_for(target);
    let mut words = flags.iter();
    while let Some(flag) = words.next() {
        if *flag == "--no-probe" {
            plan.target.probe = false;
            continue;
        }
        let value = (*words.next().unwrap()).to_owned();
        match *flag {
            "--metrics-url" => plan.observe.metrics_urls.push(value),
            "--metrics-interval" if value == "5s" => plan.observe.interval = Duration::from_secs(5),
            "--metrics-interval" => plan.observe.interval = Duration::from_millis(100),
            "--metrics" => plan.observe.metrics = value == "on",
            "--header" => {
                let (name, value) = value.split_once(": ").unwrap();
                let (name, value) = (name.to_owned(), value.to_owned());
                plan.target.headers.push(Header { name, value });
            }
            other => panic!("{other}"),
        }
    }
    let ready = readiness::wait_ready(&mut plan).unwrap();
    let watch = ServerWatch::start(&plan, &ready, &Silent, &Interrupt::default());
    (plan, ready, watch)
}

fn wait_for(server: &Server, requests: usize) {
    let deadline = now() + Duration::from_secs(20).into();
    while server.requests().len() < requests {
        assert!(now() < deadline, "{:?}", server.requests());
        pause(Nanos::from_millis(5));
    }
}

#[test]
fn pages_are_read_from_before_the_load_until_after_it() {
    let server = Server::start(|_| vec![answer("200 OK", "text/plain", PAGE)]);
    let url = format!("{}/a/metrics/?token=hunter22", server.url());
    let flags =
        ["--metrics-url", &url, "--metrics-interval", "100ms", "--header", "x-team: secret-team"];
    let (plan, _ready, observer) = observe("mock:fast", &flags);
    let observer = observer.unwrap();
    let looks = observer.open_looks();
    // The first look is over.
    let first = server.requests();
    assert_eq!(first.len(), 1);
    assert_eq!(first[0].line, "GET /a/metrics/?token=hunter22 HTTP/1.1");
    assert!(first[0].header("accept").unwrap().starts_with("text/plain;version=0.0.4, app"));
    // It is another host than the target.
    assert_eq!((first[0].header("x-team"), first[0].header("authorization")), (None, None));
    let epoch = now();
    wait_for(&server, 4);
    let before = server.requests().len();
    let observer = observer.finish(&plan, false, &Silent);
    let asked = server.requests();
    assert!(asked.len() > before, "no look after the end");
    // One that was in flight at the end may have been given up, with its connection.
    let kept = asked.iter().take(before).all(|request| request.connection == 0);
    assert!(kept, "{asked:?}");
    let (scrapes, _) = looks.take_samples(epoch);
    assert!((asked.len() - 1..=asked.len()).contains(&scrapes.len()), "{scrapes:?}");
    assert_eq!(scrapes[0].at, Nanos::ZERO);
    assert!(scrapes.windows(2).all(|pair| pair[0].at < pair[1].at), "{scrapes:?}");
    assert!(scrapes.iter().all(|scrape| scrape.outcome.is_ok() && scrape.took > Nanos::ZERO));
    let mut system = SystemFacts::default();
    observer.describe(&mut system);
    assert_eq!(system.metrics[0].url, format!("{}/a/metrics/?token=[redacted]", server.url()));
    assert_eq!(system.gpu_absent, "");
    assert_eq!(server.requests().len(), asked.len());
}

#[test]
fn a_page_without_end_does_not_hold_up_who_is_in_a_hurry() {
    let server = Server::start(|request: &ArrivedRequest| {
        if request.number == 0 {
            return vec![answer("200 OK", "text/plain", PAGE)];
        }
        // Too slow for the limit of its size, and never silent.
        let drip = [Step::write("#\n"), Step::Pause(Duration::from_millis(1))];
        let head = Step::write("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n");
        std::iter::once(head).chain(drip.into_iter().cycle().take(20_000)).collect()
    });
    let url = format!("{}/metrics", server.url());
    let flags = ["--metrics-url", &url, "--metrics-interval", "5s"];
    let (plan, _ready, observer) = observe("mock:fast", &flags);
    let (observer, begin) = (observer.unwrap(), now());
    let _ = observer.finish(&plan, true, &Silent);
    // The last look would take the 5 s that an answer may take.
    assert!(now() - begin < Nanos::from_millis(4_000));
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn what_fails_is_on_record_and_does_not_end_it() {
    let script = |request: &ArrivedRequest| match request.number {
        0 => vec![answer("500 Oh", "text/plain", "no")],
        1 => vec![answer("200 OK", "text/html; charset=utf-8", "<html>")],
        2 => vec![Step::write("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nup"), Step::Close],
        3 => vec![answer("302 Found", "text/plain", "")],
        // No request is made there; but some have a folder of that name.
        4 => vec![answer("404 No", "text/plain", "")],
        5 => vec![Step::Pause(Duration::from_secs(30))],
        _ => vec![answer("200 OK", "text/plain", PAGE)],
    };
    let server = Server::start(script);
    let url = format!("{}/metrics", server.url());
    let flags = ["--metrics-url", &url, "--metrics-interval", "100ms"];
    let (plan, _ready, observer) = observe("mock:fast", &flags);
    let observer = observer.unwrap();
    let looks = observer.open_looks();
    wait_for(&server, 8);
    let _ = observer.finish(&plan, false, &Silent);
    let scrapes: Vec<Scrape> = looks.take_samples(Nanos::ZERO).0;
    let said: Vec<&str> =
        scrapes.iter().map(|scrape| scrape.outcome.as_ref().err().map_or("", |e| e)).collect();
    let expected = [
        "HTTP 500",
        "a web page, not metrics",
        "cut: connection closed in the middle of the answer",
        "HTTP 302",
        "no complete answer within 1 s",
        "",
    ];
    assert_eq!(said[..expected.len()], expected);
    assert!(said[expected.len()..].iter().all(|more| more.is_empty()), "{said:?}");
    // A refusal that was read leaves the connection as it was.
    let asked = server.requests();
    let connections: Vec<usize> = asked.iter().map(|request| request.connection).collect();
    assert_eq!(connections[..7], [0, 0, 0, 1, 1, 1, 2]);
    assert_eq!(asked[4].line, "GET /metrics/ HTTP/1.1");
    // At most three questions a second after each of five failures, and a second of silence.
    let sixth = scrapes[5].at - scrapes[0].at;
    assert!(sixth > Nanos::from_millis(2_300), "{sixth:?}");
}

#[test]
fn a_target_without_a_page_is_asked_once_and_with_no_probe_never() {
    let (plan, ready, observer) = observe("mock:fast,metrics=off", &[]);
    let observer = observer.unwrap().finish(&plan, false, &Silent);
    assert_eq!(observer.open_looks().take_samples(Nanos::ZERO).0, []);
    assert_eq!((observer.facts.metrics.len(), observer.cache_counters()), (0, None));
    drop(ready);
    for (flags, pages) in [
        (&["--no-probe"][..], 0),
        (&["--metrics", "off"], 0),
        (&["--no-probe", "--metrics-url", "http://127.0.0.1:9/m"], 1),
        (&[], 1),
    ] {
        let (_, _, observer) = observe("mock:fast", flags);
        assert_eq!(observer.unwrap().facts.metrics.len(), pages, "{flags:?}");
    }
}

#[test]
fn addresses_of_this_machine_are_known() {
    let is_here = |address: &str| is_this_machine(&address.parse().unwrap());
    assert!(is_here("127.0.0.1:80") && is_here("127.8.9.1:80") && is_here("[::1]:80"));
    assert!(is_here("[::ffff:127.0.0.1]:80"));
    // Reserved for documentation: no host has it.
    assert!(!is_here("192.0.2.1:80") && !is_here("[2001:db8::1]:80"));
}
