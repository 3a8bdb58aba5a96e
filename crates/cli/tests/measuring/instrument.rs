//! The instrument proves itself: stamps, canary, waterfall; and what distorts it is named.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use crate::support::{
    Session, Started, about_time, alone, at, ms, number, outcome, outcome_of, percentile, signal,
    timed,
};
use goodput_clock::pause;
use goodput_model::Nanos;
use goodput_testkit::{Server, timed_stream};
use serde_json::Value;

fn codes(summary: &Value) -> Vec<&str> {
    let caveats = summary["caveats"].as_array().unwrap();
    caveats.iter().map(|caveat| caveat["code"].as_str().unwrap()).collect()
}

#[test]
fn a_run_carries_its_own_proof() {
    timed(|| {
        let session = Session::new();
        let server = Server::start(|_| timed_stream(ms(60), ms(5), 20));
        let (outcome, summary) =
            session.measure(&server.url(), &["--rate", "40", "--duration", "3s", "--model", "m"]);
        outcome.assert_finished("proof");
        assert_eq!(at(&summary, "client.stamps"), "kernel");
        // Five canaries a second; each has an error, and the error of a gap is below that of a stamp.
        about_time(|| {
            assert!((8.0..=16.0).contains(&number(&summary, "client.canary.n")), "{summary}");
            assert!(number(&summary, "client.canary.ttft_error_ms.p50") < 5.0);
        });
        assert!(number(&summary, "client.lag_ms.p50") < number(&summary, "client.lag_ms.max"));
        assert!(number(&summary, "client.threads.worker-0.cpu_share") > 0.0);
        let (opened, reused) =
            (number(&summary, "client.tcp.opened"), number(&summary, "client.tcp.reused"));
        assert_eq!(opened + reused, number(&summary, "requests.scheduled"));
        for band in ["median", "slowest"] {
            let band = &summary["waterfall"][band];
            let parts: Vec<(&str, f64)> = band["parts"]
                .as_array()
                .unwrap()
                .iter()
                .map(|part| (part["name"].as_str().unwrap(), part["ms"].as_f64().unwrap()))
                .collect();
            let sum: f64 = parts.iter().map(|part| part.1).sum();
            assert!((sum - band["ttft_ms"].as_f64().unwrap()).abs() < 1e-6, "{band}");
            // The server's 60 ms begin when the request is there: not before its sending began, and
            // not after the client saw it sent.
            let part = |name: &str| parts.iter().find(|part| part.0 == name).unwrap().1;
            let answered = part("wait") + part("header_to_byte");
            about_time(|| {
                assert!(part("send") + answered >= 60.0 && answered > part("send"), "{band}");
            });
        }
        let again: Value =
            serde_json::from_str(&session.run(&["report", "out", "--json"]).stdout).unwrap();
        assert_eq!(again["client"], summary["client"]);
        assert_eq!(again["waterfall"], summary["waterfall"]);
    });
}

#[test]
fn the_canary_can_be_left_out() {
    let session = Session::new();
    let args = ["--concurrency", "2", "--num-requests", "20", "--max-tokens", "5"];
    let (outcome, summary) =
        session.measure("mock:ttft=1ms,itl=1ms", &[&args[..], &["--canary", "off"]].concat());
    outcome.assert_finished("could not start the canary");
    assert_eq!(at(&summary, "client.canary"), &Value::Null);
    let plan = std::fs::read_to_string(session.path("out/plan.toml")).unwrap();
    assert!(plan.contains("canary = false"), "{plan}");
}

/// A client that is stopped for two seconds while the server goes on: the server's gaps stay what
/// they were, the lateness is the client's, and the verdict names the cause.
#[test]
fn a_stopped_client_does_not_blame_the_server() {
    timed(|| {
        let session = Session::new();
        let server = Server::start(|_| timed_stream(ms(40), ms(20), 100));
        let url = server.url();
        let mut args = vec!["run", &url, "--json", "--quiet", "--out", "out", "--model", "m"];
        args.extend(["--rate", "20", "--duration", "6s", "--no-length-check"]);
        let child = session.spawn(&args);
        // In full swing: streams of 2 s, twenty a second.
        while server.requests().len() < 50 {
            pause(Nanos::from_millis(20));
        }
        signal(&child, "-STOP");
        pause(Nanos::from_millis(2_000));
        signal(&child, "-CONT");
        let outcome = outcome(child.wait_with_output().unwrap());
        let summary: Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(outcome.code, Some(5), "{:?}", codes(&summary));
        assert!(codes(&summary).contains(&"client_stalled"), "{:?}", codes(&summary));
        assert!(number(&summary, "client.stalls.longest_ms") > 1_900.0);
        about_time(|| {
            assert!(number(&summary, "client.lag_ms.max") > 1_000.0, "{}", summary["client"]);
            assert!(number(&summary, "client.stalls.requests") > 20.0);
        });
        // Nothing of the two seconds is in what is said of the server.
        about_time(|| {
            for metric in ["max_gap", "itl", "ttft", "ttft_sent"] {
                let max = number(&summary, &format!("metrics.{metric}.max"));
                assert!(max < 1_000.0, "{metric}: {max}");
            }
            assert!(percentile(&summary, "itl", "50") < 25.0);
        });
    });
}

#[test]
fn a_client_without_a_core_of_its_own_is_not_valid() {
    let _alone = alone();
    let session = Session::new();
    let server = Server::start(|_| timed_stream(ms(40), ms(10), 30));
    let hogs: Vec<_> = (0..3)
        .map(|_| {
            let spin = "i=0; while [ $i -lt 100000000 ]; do i=$((i+1)); done";
            Started(Command::new("taskset").args(["-c", "0", "sh", "-c", spin]).spawn().unwrap())
        })
        .collect();
    let binary = env!("CARGO_BIN_EXE_goodput");
    let output = Command::new("taskset")
        .args(["-c", "0", binary, "run", &server.url(), "--model", "m", "--json", "--quiet"])
        .args(["--rate", "60", "--duration", "4s"])
        .current_dir(session.folder.path())
        .output()
        .unwrap();
    drop(hogs);
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_ne!(at(&summary, "verdict"), "valid", "{}", summary["client"]);
    let named = ["cpu_contended", "schedule_slip", "client_stalled"];
    assert!(codes(&summary).iter().any(|code| named.contains(code)), "{:?}", codes(&summary));
}

/// A server that takes the head of a request and then does not read for a while.
fn slow_reader(patience: Nanos) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || read_slowly(stream, patience));
        }
    });
    format!("http://{address}")
}

fn read_slowly(mut stream: TcpStream, patience: Nanos) {
    let mut bytes = vec![0; 1 << 16];
    let mut seen = Vec::new();
    let head = loop {
        let n = stream.read(&mut bytes).unwrap_or(0);
        if n == 0 {
            return;
        }
        seen.extend_from_slice(&bytes[..n]);
        if let Some(end) = seen.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let text = String::from_utf8_lossy(&seen[..head]).to_lowercase();
    let length = text.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    let length: usize = length.and_then(|number| number.trim().parse().ok()).unwrap_or(0);
    pause(patience);
    let mut left = (head + length).saturating_sub(seen.len());
    while left > 0 {
        let n = stream.read(&mut bytes).unwrap_or(0);
        if n == 0 {
            return;
        }
        left = left.saturating_sub(n);
    }
    let event = goodput_testkit::token_event("a") + &goodput_testkit::end_events(1);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let _ = stream.write_all(format!("{head}{event}").as_bytes());
}

#[test]
fn a_server_that_reads_slowly_is_named() {
    let session = Session::new();
    let url = slow_reader(Nanos::from_millis(300));
    let args = ["--concurrency", "1", "--num-requests", "3", "--input-tokens", "900000"];
    let (_, summary) =
        session.measure(&url, &[&args[..], &["--no-probe", "--model", "m"]].concat());
    assert_eq!(number(&summary, "requests.ok"), 3.0, "{}", summary["requests"]);
    assert!(codes(&summary).contains(&"server_reads_slowly"), "{}", summary["client"]["tcp"]);
    // Three requests, each held up for the 300 ms or a little less, until the window was full.
    assert!(number(&summary, "client.tcp.window_limited_ms") > 600.0);
}

fn limited(session: &Session, limit: &str, args: &str) -> crate::support::Outcome {
    let binary = env!("CARGO_BIN_EXE_goodput");
    let script = format!("{limit} && exec {binary} {args}");
    outcome(
        Command::new("sh")
            .args(["-c", &script])
            .current_dir(session.folder.path())
            .output()
            .unwrap(),
    )
}

#[test]
fn more_streams_than_files_are_refused_with_advice() {
    let session = Session::new();
    let args = "run http://127.0.0.1:1 --concurrency 20000 --no-probe --model m";
    let outcome = limited(&session, "ulimit -n 1024", args);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("20000") && outcome.stderr.contains("1024"));
    assert!(
        outcome.stderr.contains("hint: raise the limit with `ulimit -n`"),
        "{}",
        outcome.stderr
    );
}

/// A network of its own with twenty local ports, each of which stays taken after its connection.
#[test]
fn local_ports_running_out_void_the_result() {
    let session = Session::new();
    let network = "unshare -rn sh -c 'ip link set lo up && \
                   echo 40000 40020 > /proc/sys/net/ipv4/ip_local_port_range && true'";
    if limited(&session, network, "--version").code != Some(0) {
        eprintln!("not run: this system does not let a test make a network of its own");
        return;
    }
    let binary = env!("CARGO_BIN_EXE_goodput");
    let run = "run mock:ttft=1ms,itl=1ms --rate 50 --duration 2s --max-tokens 2 --connections per-request";
    let script = format!(
        "ip link set lo up && echo 40000 40020 > /proc/sys/net/ipv4/ip_local_port_range && \
         exec {binary} {run} --canary off --json --quiet --out out"
    );
    let output = Command::new("unshare")
        .args(["-rn", "sh", "-c", &script])
        .current_dir(session.folder.path())
        .output()
        .unwrap();
    let outcome = outcome(output);
    let summary: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(outcome.code, Some(5), "{}", summary["requests"]);
    assert!(codes(&summary).contains(&"client_limited"), "{:?}", codes(&summary));
}

/// What `goodput calibrate` saved is used by later runs on the same machine, and by no others.
#[test]
fn a_run_above_half_of_its_ceiling_says_so() {
    let session = Session::new();
    let state = session.path("state/goodput");
    std::fs::create_dir_all(&state).unwrap();
    let measure = |out: &str| {
        let args = ["run", "mock:ttft=1ms,itl=1ms", "--concurrency", "1", "--num-requests", "20"];
        let rest = ["--max-tokens", "5", "--workers", "1", "--json", "--quiet", "--out", out];
        let mut command = session.command(&[&args[..], &rest[..]].concat());
        let outcome = outcome_of(command.env("XDG_STATE_HOME", session.path("state")));
        outcome.assert_finished(out);
        serde_json::from_str::<Value>(&outcome.stdout).unwrap()
    };
    let first = measure("first");
    assert_eq!(at(&first, "run.ceiling"), &Value::Null);
    let manifest = std::fs::read_to_string(session.path("first/manifest.json")).unwrap();
    let host = &serde_json::from_str::<Value>(&manifest).unwrap()["host"];
    let machine =
        format!("{}, {}", host["cpu"].as_str().unwrap(), host["system"].as_str().unwrap());
    let save = |machine: &str, events_per_s: &str| {
        let text = format!(
            r#"{{"schema": "goodput.calibration/1", "version": "0", "date": "", "cpus": 1,
                "machine": {}, "workers": 1, "stamps": "kernel", "levels": [],
                "ceiling": {{"events_per_s": {events_per_s}, "requests_per_s": null}}}}"#,
            Value::from(machine)
        );
        std::fs::write(state.join("calibration-1.json"), text).unwrap();
    };
    save(&machine, "10");
    let second = measure("second");
    assert!(codes(&second).contains(&"near_ceiling"), "{:?}", codes(&second));
    let again = session.run(&["report", "second", "--json"]).stdout;
    assert_eq!(serde_json::from_str::<Value>(&again).unwrap()["run"], second["run"]);
    save("another machine", "10");
    assert_eq!(at(&measure("third"), "run.ceiling"), &Value::Null);
    save(&machine, "\"many\"");
    assert_eq!(at(&measure("fourth"), "run.ceiling"), &Value::Null);
}
