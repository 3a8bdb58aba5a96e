//! The folder of runs in a browser, by the real binary.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use crate::support::{Session, Started, signal};
use goodput_clock::{now, pause};
use goodput_model::Nanos;
use serde_json::Value;

/// How long anything may take, on a machine with much else to do.
const PATIENCE: Nanos = Nanos::from_millis(30_000);

/// Its exit code.
fn code(child: &mut Started) -> Option<i32> {
    let deadline = now() + PATIENCE;
    loop {
        if let Some(status) = child.0.try_wait().unwrap() {
            return status.code();
        }
        assert!(now() < deadline, "it does not end");
        pause(Nanos::from_millis(20));
    }
}

/// A view that is ended with the test.
struct View {
    child: Started,
    address: String,
}

impl View {
    fn start(session: &Session, args: &[&str]) -> (Self, String) {
        let all = [&["ui", "runs", "--listen"], args].concat();
        let mut child = session.spawn(&all);
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let (_, rest) = line.split_once("http://").unwrap_or_else(|| panic!("{line}"));
        let address = rest.split('/').next().unwrap().trim().replace("HOST", "127.0.0.1");
        (Self { child: Started(child), address }, line)
    }

    fn ask(&self, path: &str, more: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE.into())).unwrap();
        let host = &self.address;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n").unwrap();
        BufReader::new(stream)
    }

    fn get(&self, path: &str, more: &str) -> String {
        let mut page = String::new();
        self.ask(path, more).read_to_string(&mut page).unwrap();
        page
    }

    /// The page of the list, once it says this.
    fn list_with(&self, text: &str) -> String {
        let deadline = now() + PATIENCE;
        loop {
            let page = self.get("/", "");
            if page.contains(text) {
                return page;
            }
            assert!(now() < deadline, "no `{text}`: {page}");
            pause(Nanos::from_millis(100));
        }
    }
}

#[test]
fn a_run_is_seen_while_it_goes_on_and_after_it() {
    let session = Session::new();
    std::fs::create_dir(session.path("runs")).unwrap();
    let (mut view, line) = View::start(&session, &["127.0.0.1:0"]);
    assert!(!line.contains("token"), "{line}");
    let mut run = Started(session.spawn(&[
        "run",
        "mock:ttft=20ms,itl=2ms",
        "--rate",
        "30",
        "--duration",
        "60s",
        "--max-tokens",
        "10",
        "--quiet",
        "--out",
        "runs/here",
    ]));
    let page = view.list_with(">running<");
    let id = page.split("data-id=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    // Looks come by themselves, and count more and more requests.
    let (mut counts, mut is_stopped, mut is_over) = (Vec::<u64>::new(), false, false);
    let mut deadline = now() + PATIENCE;
    for line in view.ask(&format!("/run/{id}/live"), "").lines() {
        let line = line.unwrap();
        assert!(now() < deadline, "{counts:?}");
        if let Some(data) = line.strip_prefix("data: {\"point\"") {
            let seen: Value = serde_json::from_str(&format!("{{\"point\"{data}")).unwrap();
            counts.push(seen["ended"].as_u64().unwrap());
            if *counts.last().unwrap() > 0 {
                // The mock's time to the first token, and the client's own.
                assert!(seen["ttft_p50_ms"].as_f64().unwrap() >= 20.0, "{seen}");
                assert_eq!(seen["failed"], 0);
            }
        }
        if !is_stopped && counts.len() >= 2 && counts.last() > Some(&0) {
            signal(&run.0, "-INT");
            (is_stopped, deadline) = (true, now() + PATIENCE);
        }
        if line == "event: over" {
            is_over = true;
            break;
        }
    }
    assert!(is_stopped && is_over && counts.is_sorted(), "{counts:?}");
    assert_eq!(code(&mut run), Some(130));
    let page = view.list_with("data-name=\"Verdict\"><span class=\"");
    assert!(!page.contains(">running<") && page.contains(&format!("data-id=\"{id}\"")), "{page}");
    assert!(view.get(&format!("/overlay?id={id}"), "").contains("<svg"));
    // Names that lead here from elsewhere do not.
    let mut stream = TcpStream::connect(&view.address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").unwrap();
    let mut refused = String::new();
    stream.read_to_string(&mut refused).unwrap();
    assert!(refused.starts_with("HTTP/1.1 403") && !refused.contains(&id), "{refused}");
    signal(&view.child.0, "-INT");
    assert_eq!(code(&mut view.child), Some(0));
}

#[test]
fn a_page_is_made_from_the_data_and_never_a_stranger_s() {
    let session = Session::new();
    session.run_shortly("mock:ttft=2ms,itl=1ms", &[], "runs/here");
    let file = session.path("runs/here/report.html");
    let ours = std::fs::read_to_string(&file).unwrap();
    // A page of ours, but for one line that leads away.
    let away = "<meta http-equiv=\"refresh\" content=\"0;url=http://127.0.0.1:9/away\">";
    std::fs::write(&file, ours.replacen("<title>", &format!("{away}<title>"), 1)).unwrap();
    assert!(std::fs::read_to_string(&file).unwrap().contains(away));
    let (view, _) = View::start(&session, &["127.0.0.1:0"]);
    let page = view.list_with("data-id=\"");
    let id = page.split("data-id=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    for _ in 0..2 {
        let shown = view.get(&format!("/run/{id}/report"), "");
        assert!(shown.starts_with("HTTP/1.1 200"), "{shown}");
        let (_, body) = shown.split_once("\r\n\r\n").unwrap();
        assert!(body == ours, "the page is not the one that the run left");
    }
}

#[test]
fn elsewhere_a_token_is_printed_once_and_asked_for() {
    let session = Session::new();
    std::fs::create_dir(session.path("runs")).unwrap();
    let (view, line) = View::start(&session, &["0.0.0.0:0"]);
    let token = line.trim().split("?token=").nth(1).unwrap();
    assert_eq!(token.len(), 64, "{line}");
    assert!(view.get("/", "").starts_with("HTTP/1.1 401"));
    assert!(view.get("/page.css", "").starts_with("HTTP/1.1 401"));
    assert!(view.get("/?token=wrong", "").starts_with("HTTP/1.1 401"));
    let welcome = view.get(&format!("/?token={token}"), "");
    assert!(
        welcome.starts_with("HTTP/1.1 303") && welcome.contains("Location: /\r\n"),
        "{welcome}"
    );
    let cookie = welcome.split("Set-Cookie: ").nth(1).unwrap().split(';').next().unwrap();
    let page = view.get("/", &format!("Cookie: {cookie}\r\n"));
    assert!(page.starts_with("HTTP/1.1 200") && !page.contains(token), "{page}");
    assert!(!session.everything_written().windows(64).any(|part| part == token.as_bytes()));
}

#[test]
fn what_cannot_be_served_is_said_with_a_hint() {
    let session = Session::new();
    let missing = session.run(&["ui", "nowhere", "--listen", "127.0.0.1:0"]);
    assert_eq!(missing.code, Some(2));
    assert!(
        missing.stderr.contains("nowhere") && missing.stderr.contains("hint:"),
        "{}",
        missing.stderr
    );
    std::fs::create_dir(session.path("runs")).unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = session.run(&["ui", "--listen", &address]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--listen 127.0.0.1:0"), "{}", refused.stderr);
    std::fs::write(session.path("token"), "short").unwrap();
    let weak = session.run(&["ui", "--listen", "127.0.0.1:0", "--token-file", "token"]);
    assert_eq!(weak.code, Some(2));
    assert!(!weak.stderr.contains("short"), "{}", weak.stderr);
}
