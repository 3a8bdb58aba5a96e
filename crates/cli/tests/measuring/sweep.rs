//! `goodput sweep`: points, answer, resume, and servers that misbehave. Whether the answer is right is
//! asked in simulated time (`crates/campaign/tests/search.rs`); here it is real sockets.

use crate::support::mock::MockProcess;
use crate::support::{
    Outcome, Session, about_time, ms, number, outcome, signal, timed, undisturbed,
};
use goodput_clock::{now, pause};
use goodput_model::Nanos;
use goodput_testkit::{ArrivedRequest, Server, answer, timed_stream};
use serde_json::Value;

/// Short points of short answers.
const SHORT: [&str; 14] = [
    "--isl",
    "20",
    "--osl",
    "5",
    "--duration",
    "1s",
    "--warmup",
    "200ms",
    "--settle",
    "0s",
    "--quick",
    "--no-length-check",
    "--out",
    "out",
];

/// Four at once, 30 ms each: 133 requests per second.
const FOUR: &str = "mock:ttft=22ms,itl=2ms,slots=4";

fn sweep(session: &Session, target: &str, more: &[&str]) -> (Outcome, Value) {
    let args = [&["sweep", target, "--json", "--quiet"], &SHORT[..], more].concat();
    let outcome = session.run(&args);
    let found = serde_json::from_str(&outcome.stdout).unwrap_or(Value::Null);
    assert!(!found.is_null(), "no summary: {:?} {}", outcome.code, outcome.stderr);
    (outcome, found)
}

fn levels(found: &Value, purpose: &str) -> Vec<f64> {
    let points = found["points"].as_array().unwrap();
    let of = points.iter().filter(|point| point["ask"]["purpose"] == purpose);
    let mut levels: Vec<f64> =
        of.map(|point| point["ask"]["level"]["rate"].as_f64().unwrap()).collect();
    // On a busy machine the client spoils a point, and it is measured again.
    levels.dedup();
    levels
}

/// The points on disk, in order.
fn folders(session: &Session) -> Vec<String> {
    let points = std::fs::read_dir(session.path("out/points")).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        points.map(|point| point.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn log_of(session: &Session, folder: &str) -> Vec<u8> {
    std::fs::read(session.path(&format!("out/points/{folder}/requests.log"))).unwrap_or_default()
}

/// Waits until a point at this rate is the newest and has records; its folder.
fn wait_for_point(session: &Session, rate: &str) -> String {
    let deadline = now() + Nanos::from_millis(60_000);
    loop {
        assert!(now() < deadline, "no point at {rate} after 60 s: {:?}", folders(session));
        let newest = folders(session).pop().unwrap_or_default();
        if newest.ends_with(&format!("rate-{rate}")) && log_of(session, &newest).len() > 500 {
            return newest;
        }
        pause(Nanos::from_millis(20));
    }
}

#[test]
fn rates_that_were_given() {
    undisturbed(|| {
        let session = Session::new();
        let (done, found) = sweep(&session, FOUR, &["--rates", "20,80,40", "--no-search"]);
        assert!(matches!(done.code, Some(0 | 5)), "{:?} {}", done.code, done.stderr);
        assert_eq!(found["schema"], "goodput.sweep/1");
        assert_eq!(found["goodput"], Value::Null, "nothing was promised");
        // Every other level upward, the rest downward; a point that the client spoiled comes again.
        about_time(|| assert_eq!(levels(&found, "grid"), [20.0, 80.0, 40.0]));
        let users = &found["points"][0]["ask"];
        assert_eq!((&users["purpose"], &users["level"]["users"]), (&"warm_up".into(), &16.into()));
        about_time(|| assert!(number(&found["points"][0]["figures"], "ok") >= 50.0));
        // Every point is a run folder, and the page follows from them.
        assert_eq!(session.run(&["report", "out", "--json"]).stdout, done.stdout);
        let page = session.run(&["report", "out", "-v"]).stdout;
        assert_eq!(std::fs::read_to_string(session.path("out/report.txt")).unwrap(), page);
        assert!(
            page.contains("80.0") && page.lines().all(|line| line.chars().count() <= 80),
            "{page}"
        );
        // A line for each point; a format of one run refuses them.
        let csv = session.run(&["report", "out", "--format", "csv"]).stdout;
        let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(lines.len(), 1 + found["points"].as_array().unwrap().len(), "{csv}");
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{csv}");
        let level = lines[0].iter().position(|name| *name == "level").unwrap();
        assert_eq!(
            (lines[1][level], lines[2][level], lines[2][level + 1]),
            ("16", "20", "unclear")
        );
        let refused = session.run(&["report", "out", "--format", "vllm"]);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains("`points`, or all points with --format csv"));
        let point = found["points"][1]["folder"].as_str().unwrap();
        assert_eq!(point, "points/002-rate-20");
        let again = format!("out/{point}/plan.toml");
        let run = session.run(&["run", "--plan", &again, "--out", "again", "--quiet", "--json"]);
        let run: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(number(&run, "load.offered_rps"), 20.0);
        let taken = session.run(&["sweep", FOUR, "--rates", "5", "--out", "out", "--quiet"]);
        assert_eq!(taken.code, Some(2), "the folder is taken: {}", taken.stderr);
    });
}

#[test]
fn the_answer_is_an_interval() {
    let _alone = crate::support::alone();
    let session = Session::new();
    let slo = ["--slo", "p90 ttft < 60ms", "--sustained", "1s"];
    let (done, found) = sweep(&session, FOUR, &slo);
    let goodput = &found["goodput"];
    assert_eq!(goodput["slo"], "p90 ttft < 60ms");
    if done.code == Some(0) {
        // The client is the limit where a machine stays busy.
        let state = goodput["state"].as_str();
        assert!(matches!(state, Some("found" | "at_least")), "{goodput}");
        let confirmed = number(goodput, "confirmed_rps");
        // Four at once take 30 ms each: beyond 133 every queue grows. How much less keeps the SLO
        // depends on the machine; whether that is right is asked in simulated time.
        assert!(0.0 < confirmed && confirmed < 133.4, "{confirmed}");
        let rejected = goodput["rejected_rps"].as_f64();
        assert!(rejected.is_none_or(|rejected| rejected > confirmed), "{goodput}");
        // Both runs that confirmed it kept it; what the fit makes of that is another figure.
        assert!(number(goodput, "seen_attainment") >= 0.9, "{goodput}");
        let crossing = number(goodput, "crossing.value");
        let end = |name: &str, open: f64| goodput["crossing"][name].as_f64().unwrap_or(open);
        assert!(end("low", 0.0) < crossing && crossing < end("high", f64::MAX), "{goodput}");
        assert!(!found["sustained"].is_null());
        assert!(number(&found, "sweep.estimated.seconds") > 0.0);
    } else {
        // A busy machine: the client says so, and nothing is claimed.
        assert_eq!(done.code, Some(5), "{}", done.stderr);
    }
}

#[test]
fn an_slo_that_nothing_keeps() {
    undisturbed(|| {
        let session = Session::new();
        let (done, found) = sweep(&session, FOUR, &["--slo", "p90 ttft < 1ms"]);
        about_time(|| {
            if done.code == Some(5) {
                assert_eq!(
                    found["goodput"]["state"], "unclear",
                    "a busy machine: {}",
                    found["goodput"]
                );
                return;
            }
            assert_eq!(done.code, Some(4), "{}", done.stderr);
            assert_eq!(found["goodput"]["state"], "unreachable");
            assert_eq!(found["goodput"]["confirmed_rps"], Value::Null);
            assert!(found["points"].as_array().unwrap().len() < 15, "it gives up soon");
        });
    });
}

#[test]
fn no_higher_than_was_allowed() {
    timed(|| {
        let session = Session::new();
        let more = ["--rates", "5,10", "--slo", "p50 e2e < 2s", "--sustained", "0s"];
        let (done, found) = sweep(&session, FOUR, &more);
        let points = found["points"].as_array().unwrap().iter();
        let points = points.filter(|point| point["ask"]["purpose"] != "warm_up");
        let highest = points.map(|point| number(&point["ask"], "level.rate")).fold(0.0, f64::max);
        assert!(highest <= 10.0, "{highest}");
        if done.code == Some(0) {
            about_time(|| {
                assert_eq!(highest, 10.0);
                assert_eq!(found["goodput"]["state"], "at_least");
                assert_eq!(number(&found, "goodput.confirmed_rps"), 10.0);
            });
        } else {
            assert_eq!(done.code, Some(5), "a busy machine: {}", done.stderr);
        }
    });
}

#[test]
fn a_server_that_turns_requests_away() {
    let session = Session::new();
    let target = "mock:ttft=22ms,itl=2ms,slots=4,max_queue=20";
    let more = ["--rates", "10,300", "--slo", "p50 ttft < 10s", "--no-search"];
    let (_, found) = sweep(&session, target, &more);
    let points = found["points"].as_array().unwrap();
    let crowded = points.iter().find(|point| point["ask"]["level"]["rate"] == 300.0).unwrap();
    assert_eq!(crowded["standing"]["because"], "rate_limited", "{crowded}");
}

#[test]
fn a_server_that_only_fails_is_no_answer() {
    let session = Session::new();
    let server = Server::start(|_| vec![answer("500 Oops", "text/plain", "no")]);
    let args = ["--slo", "p90 ttft < 60ms", "--model", "m"];
    // Two small requests show that there is nothing to measure, and no folder is made.
    let refused = session.run(&[&["sweep", &server.url()], &SHORT[..], &args].concat());
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert!(refused.stderr.contains("a second small request failed too"), "{}", refused.stderr);
    assert!(!session.path("out").exists());
    let (done, found) = sweep(&session, &server.url(), &[&args[..], &["--no-probe"]].concat());
    assert_eq!(done.code, Some(3), "{}", done.stderr);
    assert_eq!(
        (&found["verdict"], &found["sweep"]["state"]),
        (&"void".into(), &"no_good_answer".into())
    );
    let why = found["caveats"][0]["message"].as_str().unwrap();
    assert!(why.contains("no request completed (mostly `http_500`)"), "{why}");
    let page = session.run(&["report", "out", "-v"]).stdout;
    assert!(!page.contains("unreachable"), "{page}");
}

/// Failures are outside of every limit: what the run of a point says is what the sweep says.
#[test]
fn a_sweep_and_its_points_agree() {
    let session = Session::new();
    // Quick answers, and every thirtieth request fails: nothing ever waits.
    let server = Server::start(|request: &ArrivedRequest| {
        if request.number % 30 == 29 {
            vec![answer("500 Oops", "text/plain", "no")]
        } else {
            timed_stream(ms(5), ms(1), 3)
        }
    });
    let slo = ["--slo", "p99 ttft < 600ms, errors < 10%", "--model", "m", "--no-search"];
    let more = [&slo[..], &["--rates", "60", "--num-requests", "400"]].concat();
    let (_, found) = sweep(&session, &server.url(), &more);
    let points = found["points"].as_array().unwrap();
    for point in points.iter().filter(|point| point["ask"]["purpose"] == "grid") {
        let folder = format!("out/{}", point["folder"].as_str().unwrap());
        let run = session.run(&["report", &folder, "--json"]);
        let run: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(point["figures"]["slo_state"], run["slo"]["state"], "{point}");
        let standing = &point["standing"];
        if standing["state"] == "unclear" {
            // A busy machine.
            continue;
        }
        assert_eq!(run["slo"]["kept"], false, "{}", run["slo"]);
        assert_eq!(standing["because"]["term"], "p99 ttft < 600ms", "{point}");
    }
}

#[test]
fn kill_9_and_go_on() {
    let session = Session::new();
    let more = ["--rates", "20,40,60", "--no-search"];
    let args = [&["sweep", FOUR, "--quiet"], &SHORT[..], &more].concat();
    let mut child = session.spawn(&args);
    let killed = wait_for_point(&session, "60");
    child.kill().unwrap();
    child.wait().unwrap();
    let whole: Vec<String> =
        folders(&session).into_iter().filter(|folder| *folder != killed).collect();
    let logs = |session: &Session| -> Vec<Vec<u8>> {
        whole.iter().map(|folder| log_of(session, folder)).collect()
    };
    let before = logs(&session);
    let half = session.run(&["report", "out", "--json"]);
    let half: Value = serde_json::from_str(&half.stdout).unwrap();
    assert_eq!(
        (half["points"].as_array().unwrap().len(), &half["sweep"]["state"]),
        (whole.len(), &"unfinished".into())
    );
    let done = session.run(&["sweep", "--resume", "out", "--quiet", "--json"]);
    assert!(matches!(done.code, Some(0 | 5)), "{:?} {}", done.code, done.stderr);
    let found: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(levels(&found, "grid"), [20.0, 60.0, 40.0]);
    assert_eq!(found["sweep"]["state"], "complete");
    assert_eq!(logs(&session), before);
    let kept = session.path(&format!("out/points/{killed}.unfinished-1"));
    assert!(kept.is_dir(), "nothing is lost");
    // What is done is done.
    let again = session.run(&["sweep", "--resume", "out", "--quiet", "--json"]);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(again["points"], found["points"]);
}

#[test]
fn ctrl_c_keeps_what_there_is() {
    let session = Session::new();
    let args =
        [&["sweep", FOUR, "--quiet", "--json", "--rates", "20,40,60", "--no-search"], &SHORT[..]];
    let child = session.spawn(&args.concat());
    let stopped = wait_for_point(&session, "20");
    signal(&child, "-INT");
    let done = outcome(child.wait_with_output().unwrap());
    assert_eq!(done.code, Some(130), "{}", done.stderr);
    let found: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(found["sweep"]["state"], "interrupted");
    let whole = folders(&session).into_iter().filter(|folder| *folder != stopped).count();
    let counted = found["points"].as_array().unwrap().len();
    assert_eq!(counted, whole, "the stopped point does not count");
}

#[test]
fn a_server_that_dies_and_comes_back() {
    let session = Session::new();
    let settings = ["--ttft", "22ms", "--itl", "2ms"];
    let mut server = MockProcess::start(&session, &settings);
    let (port, url) = (server.port.clone(), server.url());
    let more = ["--rates", "20,40", "--no-search"];
    let child = session.spawn(&[&["sweep", &url, "--quiet", "--json"], &SHORT[..], &more].concat());
    wait_for_point(&session, "20");
    server.kill();
    pause(Nanos::from_millis(1_500));
    let listen = format!("127.0.0.1:{port}");
    let mut back = session.command(&[&["mock", "--listen", &listen], &settings[..]].concat());
    let mut back = back.stderr(std::process::Stdio::null()).spawn().unwrap();
    let done = outcome(child.wait_with_output().unwrap());
    back.kill().unwrap();
    back.wait().unwrap();
    assert!(matches!(done.code, Some(0 | 5)), "{:?} {}", done.code, done.stderr);
    let found: Value = serde_json::from_str(&done.stdout).unwrap();
    let rates = levels(&found, "grid");
    // A client that is late again and again ends it, and says so.
    assert!(rates == [20.0, 40.0] || (done.code == Some(5) && rates == [20.0]), "{rates:?}");
    let points = found["points"].as_array().unwrap().iter();
    let grid: Vec<&Value> = points.filter(|point| point["ask"]["purpose"] == "grid").collect();
    // A client that was late as well, on a busy machine, is named first.
    let because = &grid[0]["standing"]["because"];
    assert!(because == "server_gone" || because == "client", "{}", grid[0]["standing"]);
    assert_eq!(grid[1]["ask"]["level"]["rate"], 20.0, "it is measured again");
}

#[test]
fn configurations_and_the_best_of_them() {
    undisturbed(|| {
        let session = Session::new();
        let (done, found) =
            sweep(&session, FOUR, &["--rates", "20", "--no-search", "--vary", "osl=5,10"]);
        assert!(matches!(done.code, Some(0 | 5)), "{:?} {}", done.code, done.stderr);
        assert_eq!(found["schema"], "goodput.sweeps/1");
        let all = found["configurations"].as_array().unwrap();
        // A point that the client spoiled has no figures.
        let length = |one: &Value| number(&one["sweep"]["points"][1], "figures.output_tokens");
        let lengths: Vec<f64> = about_time(|| all.iter().map(length).collect());
        assert_eq!(lengths, [5.0, 10.0]);
        assert_eq!(all[1]["folder"], "configurations/02-osl=10");
        assert_eq!(session.run(&["report", "out", "--json"]).stdout, done.stdout);
    });
}

#[test]
fn a_server_for_each_setting() {
    let session = Session::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (url, binary) = (format!("http://127.0.0.1:{port}"), env!("CARGO_BIN_EXE_goodput"));
    let serve = format!(
        "'{binary}' mock --listen 127.0.0.1:{{port}} --ttft 22ms --itl 2ms --set slots={{n}}"
    );
    let more = ["--rates", "20", "--no-search", "--serve", &serve, "--vary", "n=1,8,none"];
    let (done, found) = sweep(&session, &url, &more);
    let all = found["configurations"].as_array().unwrap();
    assert_eq!(all.len(), 3, "{}", done.stderr);
    for one in &all[..2] {
        assert!(number(one, "start.ready_s") > 0.0 && number(one, "start.first_token_ms") >= 22.0);
        assert_eq!(one["sweep"]["sweep"]["state"], "complete");
    }
    let failed = all[2]["failed"].as_str().unwrap();
    assert!(failed.contains("slots=none"), "its last lines say why: {failed}");
    assert!(std::net::TcpListener::bind(("127.0.0.1", port)).is_ok(), "nothing is left behind");
}

#[test]
fn what_makes_no_sense() {
    let session = Session::new();
    for (args, says) in [
        (&["--rates", "inf"][..], "`inf`"),
        (&["--rates", "0"], "rate"),
        (&["--from", "5", "--to", "2", "--points", "3"], "below"),
        (&["--vary", "workload.nothing=1"], "nothing"),
        (&["--vary", "osl"], "osl"),
        (&["--slo", "p99 ttft"], "ttft"),
    ] {
        let outcome = session.run(&[&["sweep", FOUR, "--quiet"], args].concat());
        assert_eq!(outcome.code, Some(2), "{args:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(says), "{args:?}: {}", outcome.stderr);
    }
    let inside = session.run(&["sweep", FOUR, "--serve", "x", "--quiet", "--out", "served"]);
    assert!(
        inside.code != Some(0) && inside.stderr.contains("does not apply to the mock"),
        "{}",
        inside.stderr
    );
    let gone = session.run(&["sweep", "http://127.0.0.1:9", "--rates", "5", "--quiet"]);
    assert_eq!(gone.code, Some(3), "{}", gone.stderr);
    let nothing = session.run(&["sweep", "--resume", ".", "--quiet"]);
    assert_eq!(nothing.code, Some(2), "{}", nothing.stderr);
}
