//! A server of our own: started, found ready, stopped, and never left behind.

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::support::{Session, outcome};
use goodput_clock::{now, pause};
use goodput_model::Nanos;
use serde_json::Value;

/// A port that is free at the moment.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A server that is ready soon.
fn mock() -> String {
    let binary = env!("CARGO_BIN_EXE_goodput");
    format!("'{binary}' mock --profile fast --listen 127.0.0.1:{{port}}")
}

fn arguments(port: u16, serve: &str, more: &[&str]) -> Vec<String> {
    let url = format!("http://127.0.0.1:{port}");
    let all = ["cold-start", &url, "--serve", serve].into_iter().chain(more.iter().copied());
    all.map(str::to_owned).collect()
}

/// All processes that are alive: number, parent, group. A zombie is not.
fn processes() -> Vec<[i32; 3]> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    ids.filter_map(|id| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        fields.next().filter(|state| *state != "Z")?;
        Some([id, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?])
    })
    .collect()
}

fn members(group: i32) -> usize {
    processes().iter().filter(|[_, _, of]| *of == group).count()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = now() + Duration::from_secs(10).into();
    while !is_so() {
        assert!(now() < deadline, "{what}");
        pause(Nanos::from_millis(10));
    }
}

/// One that holds its server.
struct Holding {
    process: Child,
    said: BufReader<ChildStdout>,
    group: i32,
    port: u16,
}

impl Holding {
    fn new(session: &Session, serve: &str, more: &[&str]) -> Self {
        let port = free_port();
        let arguments = arguments(port, serve, &[&["--hold"], more].concat());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = session.command(&arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let said = BufReader::new(process.stdout.take().unwrap());
        let mut holding = Self { process, said, group: 0, port };
        let group = holding.next()["group"].as_i64().unwrap();
        holding.group = i32::try_from(group).unwrap();
        let start = holding.next()["start"].clone();
        assert!(start["ready_s"].as_f64().unwrap() > 0.0, "{start}");
        assert!(start["first_token_ms"].as_f64().unwrap() > 0.0, "{start}");
        assert!(members(holding.group) > 0);
        holding
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn supervisor(&self) -> i32 {
        let own = i32::try_from(self.process.id()).unwrap();
        processes().iter().find(|[_, parent, _]| *parent == own).unwrap()[0]
    }
}

fn kill(id: i32) {
    assert!(Command::new("kill").args(["-9", &id.to_string()]).status().unwrap().success());
}

#[test]
fn a_server_is_started_found_ready_and_stopped() {
    let session = Session::new();
    let mut holding = Holding::new(&session, &mock(), &["--log", "server.log"]);
    drop(holding.process.stdin.take());
    let batch = holding.next()["batch"].clone();
    assert_eq!(batch["running_max"], 0.0, "{batch}");
    assert!(batch["samples"].as_u64() >= Some(1), "{batch}");
    assert_eq!(holding.next()["empty"]["by"], "metrics");
    assert_eq!(holding.next()["end"], "ended with status 0");
    assert_eq!(members(holding.group), 0);
    assert!(TcpStream::connect(("127.0.0.1", holding.port)).is_err());
    assert!(holding.process.wait().unwrap().success());
    let log = std::fs::read_to_string(session.path("server.log")).unwrap();
    assert!(log.contains("mock engine on http://127.0.0.1:"), "{log}");
}

#[test]
fn a_server_that_does_not_come_up_is_reported_with_its_last_words() {
    let cases: [(&str, &[&str], i32, &[&str]); 7] = [
        (
            "sh -c 'echo before; echo loading >&2; exit 3'",
            &[],
            3,
            &[
                "error: the server ended with status 3; its last lines:\n  before\n  loading\n",
                "server.log",
            ],
        ),
        ("sh -c 'kill -9 $$'", &[], 3, &["killed by signal 9", "it printed nothing"]),
        ("true", &[], 3, &["ended with status 0", "foreground"]),
        (
            "sh -c 'echo alive; sleep 30'",
            &["--serve-timeout", "300ms"],
            3,
            &["cannot reach", "alive"],
        ),
        ("no-such-program --x", &[], 2, &["cannot run `no-such-program`", "hint: check the PATH"]),
        ("sleep {seconds}", &[], 2, &["`{seconds}` in the server command has no value", "{port}"]),
        ("sleep 1", &["--value", "x=1"], 2, &["the server command does not use `x`", "write {x}"]),
    ];
    let session = Session::new();
    std::fs::write(session.path("server.log"), "of an earlier one\n").unwrap();
    for (serve, more, code, words) in cases {
        let arguments = arguments(free_port(), serve, more);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let outcome = outcome(session.command(&arguments).output().unwrap());
        assert_eq!(outcome.code, Some(code), "{serve}: {}", outcome.stderr);
        for word in words {
            assert!(outcome.stderr.contains(word), "{serve}: {}", outcome.stderr);
        }
        assert!(!outcome.stderr.contains("earlier"), "{serve}: {}", outcome.stderr);
        if let Some(line) = outcome.stdout.lines().next() {
            let said: Value = serde_json::from_str(line).unwrap();
            let group = said["group"].as_i64().unwrap();
            assert_eq!(members(i32::try_from(group).unwrap()), 0, "{serve}");
        }
    }
}

#[test]
fn a_place_that_is_taken_is_left_alone() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let session = Session::new();
    let arguments = arguments(taken.local_addr().unwrap().port(), "touch started", &[]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = session.run(&arguments);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("something already listens at 127.0.0.1:"),
        "{}",
        outcome.stderr
    );
    assert!(!session.path("started").exists());
}

/// Ignores the signal to end, and so does its child; and another child leaves the group.
fn stubborn(mark: &str) -> String {
    let binary = env!("CARGO_BIN_EXE_goodput");
    format!(
        "sh -c 'trap \"\" TERM; setsid sleep {mark} & sleep 60 & \
         \"{binary}\" mock --profile fast --listen 127.0.0.1:{{port}} & wait; sleep 60'"
    )
}

fn is_running(mark: &str) -> bool {
    processes().iter().any(|[id, ..]| {
        std::fs::read(format!("/proc/{id}/cmdline"))
            .is_ok_and(|line| line == format!("sleep\0{mark}\0").as_bytes())
    })
}

#[test]
fn kill_9_leaves_nothing_behind() {
    let session = Session::new();
    let mark = "61.7531";
    let mut holding = Holding::new(&session, &stubborn(mark), &["--grace", "200ms"]);
    wait_until("the one that leaves", || is_running(mark));
    let supervisor = holding.supervisor();
    holding.process.kill().unwrap();
    holding.process.wait().unwrap();
    wait_until("the group is left", || members(holding.group) == 0);
    wait_until("one outside the group is left", || !is_running(mark));
    wait_until("the supervisor is left", || processes().iter().all(|[id, ..]| *id != supervisor));
    assert!(TcpStream::connect(("127.0.0.1", holding.port)).is_err());
}

#[test]
fn a_server_that_will_not_end_is_killed() {
    let session = Session::new();
    let mark = "61.7532";
    let mut holding = Holding::new(&session, &stubborn(mark), &["--grace", "200ms"]);
    drop(holding.process.stdin.take());
    holding.next();
    assert_eq!(holding.next()["empty"]["by"], "metrics");
    let end = holding.next()["end"].clone();
    assert!(end.as_str().unwrap().starts_with("was killed by signal 9"), "{end}");
    assert_eq!(members(holding.group), 0);
    assert!(!is_running(mark));
}

#[test]
fn a_server_without_a_supervisor_is_killed_too() {
    let session = Session::new();
    let mut holding = Holding::new(&session, &mock(), &[]);
    kill(holding.supervisor());
    drop(holding.process.stdin.take());
    // In an error, or as the last line if it was not known so soon.
    let mut said = String::new();
    holding.said.read_to_string(&mut said).unwrap();
    said += &outcome(holding.process.wait_with_output().unwrap()).stderr;
    assert!(said.contains("was lost: its supervisor was killed"), "{said}");
    wait_until("the group is left", || members(holding.group) == 0);
}
