//! `goodput record`: what passes is written as a trace that replays, without a word of anyone's text.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, Read, Write};
use std::net::TcpStream;
use std::process::Command;

use crate::recording::{Recording, command, read, until};
use crate::support::mock::{MockProcess, SHORT, records};
use crate::support::{Session, about_time, undisturbed};
use goodput_clock::pause;
use goodput_model::Nanos;
use serde_json::{Value, json};

/// An engine with a prefix cache in blocks of 16 tokens, and hardly any latency.
const ENGINE: &str = "model = \"m\"\nmax_model_len = 16384\ndefault_tokens = 8\n\
    [scheduler]\nmax_num_seqs = 64\nmax_num_batched_tokens = 8192\n[kv]\nblocks = 20000\n\
    [step]\nbase_ms = 0.1\noverlap = 0.0\ndecode_ms = [[1, 0.1]]\nprefill_ms = [[1, 0.1]]\n";

fn engine(session: &Session) -> MockProcess {
    fs::write(session.path("engine.toml"), ENGINE).unwrap();
    MockProcess::start(session, &["--profile", "engine.toml"])
}

/// Cached and all prompt tokens.
fn hit_rate(prompts: impl Iterator<Item = (u64, u64)>) -> f64 {
    let (cached, all) = prompts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    cached as f64 / all as f64
}

/// Nanoseconds of a decimal with nine places at most.
fn nanos(number: &Value) -> u64 {
    let text = number.to_string();
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    whole.parse::<u64>().unwrap() * 1_000_000_000 + format!("{part:0<9}").parse::<u64>().unwrap()
}

#[test]
fn what_was_recorded_comes_again() {
    undisturbed(|| {
        let session = Session::new();
        let mock = engine(&session);
        let recording = Recording::start(&session, &mock.url(), &[]);
        let load = ["--rate", "50", "--num-requests", "60", "--turns", "3", "--turn-pause", "20ms"];
        let text = ["--prefix-groups", "3", "--prefix-tokens", "512", "--input-tokens", "80"];
        let rest = ["--output-tokens", "8", "--canary", "off"];
        let (outcome, _) = session.measure(&recording.url(), &[&load[..], &text, &rest].concat());
        outcome.assert_finished("the load");
        let (code, words) = recording.stop("-INT");
        assert_eq!(code, Some(0), "{words}");
        let (head, mut rows) = read(&session.path("trace.jsonl"));
        assert_eq!((&head["schema"], &head["text"]), (&"goodput.trace/2".into(), &false.into()));
        rows.sort_by_key(|row| nanos(&row["at"]));
        // Before the run there are small requests of its own.
        let sent = records(&session.path("out/requests.log"));
        let before = rows.len() - sent.len();
        assert!(words.contains(&format!("recorded {0} of {0} requests", rows.len())), "{words}");
        let mut instants: Vec<u64> =
            sent.iter().map(|record| record.exchange.stamps.sent_first.unwrap().0).collect();
        instants.sort_unstable();
        let first = nanos(&rows[before]["at"]);
        about_time(|| {
            for (row, instant) in rows[before..].iter().zip(&instants) {
                let (seen, was) = (nanos(&row["at"]) - first, instant - instants[0]);
                assert!(seen.abs_diff(was) < 20_000_000, "{seen} is not {was}");
            }
        });
        let sessions = rows[before..].iter().map(|row| row["session"].as_str().unwrap());
        assert_eq!(sessions.collect::<std::collections::BTreeSet<_>>().len(), 20);

        let shown = session.run(&["workload", "show", "--trace", "trace.jsonl", "--json"]);
        let shown: Value = serde_json::from_str(&shown.stdout).expect(&shown.stderr);
        assert_eq!(shown["requests"], rows.len());

        // The same requests at the same instants, with as much in common.
        drop(mock);
        let mock = engine(&session);
        fs::remove_dir_all(session.path("out")).unwrap();
        let (outcome, _) =
            session.measure(&mock.url(), &["--trace", "trace.jsonl", "--canary", "off"]);
        outcome.assert_finished("the replay");
        let mut again = records(&session.path("out/requests.log"));
        again.sort_by_key(|record| record.scheduled);
        let due: Vec<u64> = again.iter().map(|record| record.scheduled.0).collect();
        let at: Vec<u64> =
            rows.iter().map(|row| nanos(&row["at"]) - nanos(&rows[0]["at"])).collect();
        assert_eq!(due, at);
        let number = |row: &Value, name: &str| row[name].as_u64().unwrap();
        let was = hit_rate(
            rows.iter().map(|row| (number(row, "cached_tokens"), number(row, "input_tokens"))),
        );
        let is = hit_rate(again.iter().map(|record| {
            let exchange = &record.exchange;
            (exchange.cached_tokens.unwrap().into(), exchange.input_tokens.unwrap().n.into())
        }));
        // A server also keeps answers, which a replay by the clock cannot bring again.
        about_time(|| assert!(was > 0.75 && (was - is).abs() < 0.05, "{is} instead of {was}"));
    });
}

const PRIVATE: &str = r#"{"model":"mock","user":"Zoraida","messages":[{"role":"system","content":"Quetzalcoatl"},{"role":"user","content":"my xylophone is Mxyzptlk"}],"max_tokens":3,"stop":["Abracadabra"],"tools":[{"type":"function","function":{"name":"open_sesame"}}]}"#;
const HEAD: &str =
    "Authorization: Bearer sk-Hocuspocus\r\nX-Talk: Rumpelstiltskin\r\nCookie: Shibboleth\r\n";
const WORDS: [&str; 9] = [
    "Zoraida",
    "Quetzalcoatl",
    "xylophone",
    "Mxyzptlk",
    "Abracadabra",
    "open_sesame",
    "Hocuspocus",
    "Rumpelstiltskin",
    "Shibboleth",
];

fn words_in(text: &str) -> Vec<&str> {
    WORDS.into_iter().filter(|word| text.contains(word)).collect()
}

#[test]
fn nothing_of_anyones_text_is_written() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &[]);
    let recording = Recording::start(&session, &mock.url(), &["--session-header", "X-Talk"]);
    assert_eq!(recording.ask(HEAD, PRIVATE).0, 200);
    assert_eq!(recording.ask(HEAD, &PRIVATE.replace("[{", "{[")).0, 400);
    let (code, words) = recording.stop("-TERM");
    assert_eq!(code, Some(0), "{words}");
    let written = String::from_utf8(session.everything_written()).unwrap() + &words;
    assert_eq!(words_in(&written), [""; 0], "{written}");
    let (_, rows) = read(&session.path("trace.jsonl"));
    assert_eq!(rows.iter().map(|row| &row["status"]).collect::<Vec<_>>(), [200, 400]);
    assert!(!words.contains("WARNING"), "{words}");
}

#[test]
fn text_is_written_where_it_is_asked_for_and_that_is_said() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &[]);
    let args = ["--session-header", "X-Talk", "--save-text", "--quiet"];
    let recording = Recording::start(&session, &mock.url(), &args);
    assert_eq!(recording.ask(HEAD, PRIVATE).0, 200);
    let (_, words) = recording.stop("-TERM");
    assert_eq!(words.matches("WARNING: --save-text").count(), 2, "{words}");
    let (head, rows) = read(&session.path("trace.jsonl"));
    assert_eq!(head["text"], true);
    let written = fs::read_to_string(session.path("trace.jsonl")).unwrap();
    // Prompts, but no header.
    assert_eq!(words_in(&written), WORDS[..6]);
    assert!(!rows[0]["answer"].as_str().unwrap().is_empty());
    assert_eq!(words_in(&words), [""; 0]);
}

#[test]
fn a_full_disk_stops_nothing() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &[]);
    let upstream = mock.url();
    let args = command(&upstream, &[]);
    let plain = session.command(&args);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 8; exec \"$0\" \"$@\""]).arg(plain.get_program()).args(&args);
    limited.current_dir(session.folder.path());
    let recording = Recording::spawn(limited);
    for _ in 0..60 {
        assert_eq!(recording.ask("", SHORT).0, 200);
    }
    // What is written five times a second must have met the limit.
    until("the limit", || fs::metadata(session.path("trace.jsonl")).unwrap().len() > 3_000);
    assert_eq!(recording.ask("", SHORT).0, 200);
    let (code, words) = recording.stop("-INT");
    assert_eq!(code, Some(5), "{words}");
    assert!(words.contains("warning: cannot write the trace"), "{words}");
    let (_, rows) = read(&session.path("trace.jsonl"));
    let lost = 61 - rows.len();
    assert!(
        lost > 0 && words.contains(&format!("lost: {lost} (the disk could not be written to)")),
        "{words}"
    );
}

#[test]
fn a_hangup_begins_a_new_file() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &[]);
    let recording = Recording::start(&session, &mock.url(), &[]);
    // A request is told to the trace after its answer has left.
    let has_row = |name: &str| {
        let path = session.path(name);
        until("its row", || fs::read_to_string(&path).unwrap().lines().count() > 1);
    };
    assert_eq!(recording.ask("", SHORT).0, 200);
    has_row("trace.jsonl");
    recording.signal("-HUP");
    until("a second file", || session.path("trace-000001.jsonl").exists());
    assert_eq!(recording.ask("", SHORT).0, 200);
    has_row("trace-000001.jsonl");
    // As logrotate does it.
    fs::rename(session.path("trace.jsonl"), session.path("old.jsonl")).unwrap();
    recording.signal("-HUP");
    until("a third file", || session.path("trace.jsonl").exists());
    for _ in 0..2 {
        assert_eq!(recording.ask("", SHORT).0, 200);
    }
    let (code, words) = recording.stop("-INT");
    assert_eq!(code, Some(0), "{words}");
    let rows = ["old.jsonl", "trace-000001.jsonl", "trace.jsonl"]
        .map(|name| read(&session.path(name)).1.len());
    assert_eq!(rows, [1, 1, 2], "{words}");
}

#[test]
fn what_is_refused_leaves_nothing_behind() {
    let session = Session::new();
    let refused = |args: &[&str], hint: &str| {
        let plain = ["record", "--upstream", "http://127.0.0.1:9", "--output", "trace.jsonl"];
        let listen: &[&str] =
            if args.contains(&"--listen") { &[] } else { &["--listen", "127.0.0.1:0"] };
        let outcome = session.run(&[&plain, listen, args].concat());
        assert_eq!(outcome.code, Some(2), "{args:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(hint), "{args:?}: {}", outcome.stderr);
    };
    refused(&["--listen", "0.0.0.0:0"], "--expose");
    refused(&["--listen", "127.0.0.1:9"], "the address that goodput itself listens on");
    refused(&["--listen", "192.0.2.1:0", "--expose"], "cannot listen");
    refused(&["--metrics-listen", "192.0.2.1:0"], "--expose");
    refused(&["--metrics-listen", "192.0.2.1:0", "--expose"], "cannot listen");
    refused(&["--share", "0%"], "5%");
    // A name that does not resolve: one error, nothing else.
    let unknown = ["record", "--upstream", "http://nowhere.invalid", "--output", "trace.jsonl"];
    let outcome = session.run(&[&unknown[..], &["--listen", "127.0.0.1:0"]].concat());
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("502"), "{}", outcome.stderr);
    refused(&["--tokenizer", "./nothing"], "");
    refused(&["--session-header", "authorization"], "not allowed");
    assert!(!session.path("trace.jsonl").exists());
    fs::write(session.path("trace.jsonl"), "dear").unwrap();
    refused(&[], "never overwrites");
    assert_eq!(fs::read(session.path("trace.jsonl")).unwrap(), b"dear");
}

#[test]
fn a_kill_leaves_whole_lines() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &[]);
    let mut recording = Recording::start(&session, &mock.url(), &[]);
    let path = session.path("trace.jsonl");
    // More than settles how long tokens are, so that rows are written as they come.
    for _ in 0..40 {
        assert_eq!(recording.ask("", SHORT).0, 200);
    }
    until("rows", || fs::metadata(&path).unwrap().len() > 4_000);
    recording.child.kill().unwrap();
    recording.child.wait().unwrap();
    let (_, rows) = read(&path);
    assert!((10..=40).contains(&rows.len()), "{}", rows.len());
}

#[test]
fn limits_end_it() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &[]);
    let recording = Recording::start(&session, &mock.url(), &["--max-requests", "3"]);
    for _ in 0..3 {
        assert_eq!(recording.ask("", SHORT).0, 200);
    }
    let (code, words) = recording.ended();
    assert_eq!(code, Some(0), "{words}");
    assert_eq!(read(&session.path("trace.jsonl")).1.len(), 3);

    // Or end only the recording.
    let args = ["--max-requests", "2", "--keep-passing", "--rotate-every", "1h"];
    let mut recording = Recording::start(&session, &mock.url(), &args);
    for _ in 0..2 {
        assert_eq!(recording.ask("", SHORT).0, 200);
    }
    let mut line = String::new();
    while !line.contains("recording has stopped; traffic is still forwarded") {
        line.clear();
        assert!(recording.said.read_line(&mut line).unwrap() > 0);
    }
    assert_eq!(recording.ask("", SHORT).0, 200);
    let (code, words) = recording.stop("-INT");
    assert_eq!(code, Some(0), "{words}");
    assert_eq!(read(&session.path("trace-000001.jsonl")).1.len(), 2);

    let args = ["--duration", "200ms", "--rotate-size", "1MB"];
    let (code, words) = Recording::start(&session, &mock.url(), &args).ended();
    assert_eq!(code, Some(0), "{words}");
    assert_eq!(read(&session.path("trace-000002.jsonl")).1.len(), 0);
}

#[test]
fn answers_under_way_are_waited_for() {
    let session = Session::new();
    let mock = MockProcess::start(&session, &["--ttft", "400ms", "--itl", "1ms"]);
    let recording = Recording::start(&session, &mock.url(), &[]);
    let asked = recording.send("", SHORT);
    mock.until_running(1.0);
    recording.signal("-TERM");
    let (status, body) = asked.answer();
    assert_eq!(status, 200);
    assert!(body.contains("\"completion_tokens\":2"), "{body}");
    let (code, words) = recording.ended();
    assert_eq!(code, Some(0), "{words}");
    assert_eq!(read(&session.path("trace.jsonl")).1.len(), 1);

    // Who cannot wait.
    fs::remove_file(session.path("trace.jsonl")).unwrap();
    let mock = MockProcess::start(&session, &["--ttft", "60s"]);
    let recording = Recording::start(&session, &mock.url(), &[]);
    let asked = recording.send("", SHORT);
    mock.until_running(1.0);
    recording.signal("-INT");
    // Signals of one kind that come at once are one.
    pause(Nanos::from_millis(500));
    let (code, words) = recording.stop("-TERM");
    assert_eq!(code, Some(130), "{words}");
    drop(asked);
}

#[test]
fn a_page_says_what_passes() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &[]);
    let mut recording =
        Recording::start(&session, &mock.url(), &["--metrics-listen", "127.0.0.1:0"]);
    let mut line = String::new();
    recording.said.read_line(&mut line).unwrap();
    let (_, place) = line.trim().split_once("http://").unwrap();
    let address = place.strip_suffix("/metrics").unwrap().to_owned();
    for _ in 0..4 {
        assert_eq!(recording.ask("", SHORT).0, 200);
    }
    let page = || {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    // The answer is there before it is told of.
    until("four requests", || page().contains("\ngoodput_record_requests_total 4\n"));
    until("their ends", || page().contains("\ngoodput_proxy_requests_in_flight 0\n"));
    for series in [
        "goodput_proxy_requests_total 4",
        "goodput_proxy_answers_total{class=\"2xx\"} 4",
        "goodput_proxy_resent_total 0",
        "goodput_record_lost_total{reason=\"disk\"} 0",
    ] {
        assert!(page().contains(&format!("\n{series}\n")), "{series}: {}", page());
    }
    assert_eq!(recording.stop("-INT").0, Some(0));
}

#[test]
fn users_who_open_alike_are_told_apart_by_their_answers() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &[]);
    let recording = Recording::start(&session, &mock.url(), &[]);
    let say = |messages: &Value, tokens: u64| {
        let body = json!({"model": "mock", "messages": messages, "max_tokens": tokens});
        let (status, answer) = recording.ask("", &body.to_string());
        assert_eq!(status, 200, "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
    };
    let open = json!([{"role": "user", "content": "Hello"}]);
    let answers = [3, 5].map(|tokens| say(&open, tokens));
    assert_ne!(answers[0], answers[1]);
    // The first goes on first, though the second was over last.
    for answer in &answers {
        let said = json!([open[0], {"role": "assistant", "content": answer},
            {"role": "user", "content": "And?"}]);
        say(&said, 2);
    }
    let (code, words) = recording.stop("-INT");
    assert_eq!(code, Some(0), "{words}");
    let (_, rows) = read(&session.path("trace.jsonl"));
    let sessions: Vec<_> = rows.iter().map(|row| row["session"].as_str().unwrap()).collect();
    assert_eq!(sessions, ["1", "2", "1", "2"]);
    let written = fs::read_to_string(session.path("trace.jsonl")).unwrap();
    assert!(answers.iter().all(|answer| !written.contains(answer.trim())), "{written}");
}

#[test]
fn a_share_in_files_of_a_size() {
    let session = Session::new();
    let mock = MockProcess::fast(&session, &[]);
    let args = ["--share", "50%", "--rotate-size", "4KB", "--session-header", "X-Talk", "--json"];
    let recording = Recording::start(&session, &mock.url(), &args);
    let talk = |number: u64| {
        for _ in 0..2 {
            assert_eq!(recording.ask(&format!("X-Talk: t{number}\r\n"), SHORT).0, 200);
        }
    };
    (0..60).for_each(talk);
    until("a second file", || session.path("trace-000002.jsonl").exists());
    (60..70).for_each(talk);
    let (code, said, words) = recording.finished("-INT");
    assert_eq!(code, Some(0), "{words}");
    let said: Value = serde_json::from_str(&said).expect(&said);
    let names: Vec<_> =
        said["files"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
    assert!(names.len() >= 2 && names[0] == "trace-000001.jsonl", "{names:?}");
    let mut rows = 0;
    for name in &names {
        let file = read(&session.path(name)).1;
        let mut sessions: BTreeMap<&str, u64> = BTreeMap::new();
        for row in &file {
            *sessions.entry(row["session"].as_str().unwrap()).or_default() += 1;
        }
        // A new file may begin between two requests of a session, at its beginning and its end.
        assert!(sessions.values().filter(|rows| **rows != 2).count() <= 2, "{sessions:?}");
        rows += file.len() as u64;
    }
    assert!((30..=110).contains(&rows), "{rows} of 140");
    assert_eq!((&said["rows"], &said["requests"]), (&rows.into(), &140.into()));
    assert_eq!(said["left_out"], 140 - rows);
    assert_eq!(said["lost"], json!({"queue": 0, "length": 0, "disk": 0, "unanswered": 0}));
}

#[test]
fn idle_clients_make_way_and_that_is_said() {
    let session = Session::new();
    let mock = engine(&session);
    let recording =
        Recording::start(&session, &mock.url(), &["--max-connections", "8", "--json", "--quiet"]);
    let address = recording.url().replace("http://", "");
    let ask = |path: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: h\r\n\r\n").unwrap();
        let mut status = [0; 15];
        stream.read_exact(&mut status).unwrap();
        assert_eq!(&status, b"HTTP/1.1 200 OK");
        stream
    };
    let clients: Vec<_> = (0..10).map(|_| ask("/v1/models")).collect();
    let probe = ask("/goodput/health");
    let (code, printed, words) = recording.finished("-INT");
    drop((clients, probe));
    assert_eq!(code, Some(0), "{words}");
    assert_eq!(words.matches("warning: 8 connections are open (--max-connections)").count(), 1);
    assert!(words.contains("3 connections exceeded the 8 of --max-connections"), "{words}");
    let summary: Value = serde_json::from_str(&printed).unwrap();
    let expected = json!({"beyond_limit": 3, "made_way": 3, "turned_away": 0});
    assert_eq!(summary["connections"], expected, "{words}");
}

#[test]
fn a_stop_ends_a_recording_whose_server_never_ends() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let n = stream.read(&mut [0; 4096]).unwrap_or(0);
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
                let event = r#"data: {"choices":[{"index":0,"delta":{"content":"a "}}]}"#;
                let events = format!("{event}\n\n").repeat(1000);
                let mut outcome = stream.write_all(head.as_bytes());
                while n > 0 && outcome.is_ok() {
                    outcome = stream.write_all(events.as_bytes());
                }
            });
        }
    });
    let session = Session::new();
    // By its own limit, and at once by a second signal.
    for (output, drain, signals, expected) in
        [("one.jsonl", "300ms", 1, Some(0)), ("two.jsonl", "60s", 2, Some(130))]
    {
        let args = ["--drain", drain, "--quiet"];
        let mut all = command(&upstream, &args);
        let at = all.iter().position(|word| *word == "trace.jsonl").unwrap();
        all[at] = output;
        let recording = Recording::spawn(session.command(&all));
        let mut clients: Vec<_> = (0..4).map(|_| recording.send("", r#"{"model":"m"}"#)).collect();
        let (first, came) = std::sync::mpsc::channel();
        let reading: Vec<_> = clients
            .drain(..)
            .map(|client| {
                let first = first.clone();
                std::thread::spawn(move || {
                    let mut stream = client.stream();
                    stream.read_exact(&mut vec![0; 1 << 20]).unwrap();
                    first.send(()).unwrap();
                    let _ = std::io::copy(&mut stream, &mut std::io::sink());
                })
            })
            .collect();
        for _ in 0..4 {
            came.recv().unwrap();
        }
        let begin = goodput_clock::now();
        for _ in 1..signals {
            recording.signal("-INT");
            pause(Nanos::from_millis(300));
        }
        let (code, words) = recording.stop("-INT");
        assert_eq!(code, expected, "{words}");
        assert!(goodput_clock::now() - begin < Nanos::from_millis(10_000), "{words}");
        for client in reading {
            client.join().unwrap();
        }
    }
}
