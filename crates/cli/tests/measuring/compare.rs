//! `goodput compare` on live targets: blocks, order, resume, and servers that misbehave. How often its
//! verdict is right is asked in simulated time (`crates/campaign/tests/compare.rs`); here it is real
//! sockets.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Child;

use crate::support::mock::MockProcess;
use crate::support::{Outcome, Session, about_time, number, outcome, signal, undisturbed};
use goodput_clock::{now, pause};
use goodput_model::Nanos;
use serde_json::Value;

/// Short runs of short answers.
const SHORT: [&str; 14] = [
    "--isl",
    "20",
    "--osl",
    "5",
    "--duration",
    "300ms",
    "--warmup",
    "100ms",
    "--settle",
    "0s",
    "--no-early-end",
    "--no-length-check",
    "--out",
    "out",
];

const FAST: &str = "mock:ttft=20ms,itl=2ms";

fn compare(session: &Session, targets: &[&str], more: &[&str]) -> (Outcome, Value) {
    let args = [&["compare", "--json"], targets, &SHORT[..], more].concat();
    found(session.run(&args))
}

fn found(outcome: Outcome) -> (Outcome, Value) {
    let found = serde_json::from_str(&outcome.stdout).unwrap_or(Value::Null);
    assert!(!found.is_null(), "no summary: {:?} {}", outcome.code, outcome.stderr);
    (outcome, found)
}

/// The first of twelve that has this many blocks: a busy machine makes runs void, but not forever.
fn counted<T>(blocks: f64, mut once: impl FnMut() -> (T, (Outcome, Value))) -> (T, Outcome, Value) {
    let mut why = String::new();
    for _ in 0..12 {
        let (place, (done, found)) = once();
        if number(&found, "comparison.blocks") >= blocks {
            return (place, done, found);
        }
        why = done.stderr;
    }
    panic!("too few blocks count, each time: {why}");
}

/// All sides were sent the same.
fn assert_same(found: &Value) {
    let proof = &found["proof"];
    assert!(number(proof, "compared") > 0.0, "{proof}");
    assert_eq!(proof["identical"], proof["compared"]);
    assert_eq!(proof["same_instant"], proof["compared"]);
}

/// Block, side and seed of every run, in the order measured.
fn runs(found: &Value) -> Vec<(u64, u64, u64)> {
    let asks = found["runs"].as_array().unwrap().iter().map(|run| &run["ask"]);
    let of = |ask: &Value, name: &str| ask[name].as_u64().unwrap();
    asks.map(|ask| (of(ask, "block"), of(ask, "side"), of(ask, "seed"))).collect()
}

/// Ctrl-C, and what came of it.
fn interrupt(child: Child) -> (Outcome, Value) {
    signal(&child, "-INT");
    found(outcome(child.wait_with_output().unwrap()))
}

/// The folder of this run, once it has records.
fn wait_for_run(session: &Session, number: u32) -> PathBuf {
    wait_for(session, "out/points", number, 200)
}

/// The same in any folder, once its log has this many bytes.
fn wait_for(session: &Session, folder: &str, number: u32, bytes: u64) -> PathBuf {
    let deadline = now() + Nanos::from_millis(60_000);
    let prefix = format!("{number:03}-");
    loop {
        assert!(now() < deadline, "no run {number} in {folder} after 60 s");
        let points = std::fs::read_dir(session.path(folder)).into_iter().flatten().flatten();
        let mut named =
            points.filter(|point| point.file_name().to_string_lossy().starts_with(&prefix));
        if let Some(found) = named.next() {
            let log = found.path().join("requests.log");
            if std::fs::metadata(log).is_ok_and(|meta| meta.len() >= bytes) {
                return found.path();
            }
        }
        pause(Nanos::from_millis(5));
    }
}

#[test]
fn a_slower_server_is_worse_and_the_page_follows_from_the_runs() {
    undisturbed(|| {
        let slow = "slow=mock:ttft=80ms,itl=2ms";
        let (session, done, found) = counted(3.0, || {
            let session = Session::new();
            let found = compare(&session, &[FAST, slow], &["--rate", "30", "--blocks", "3"]);
            (session, found)
        });
        assert_eq!(found["schema"], "goodput.comparison/1");
        assert_eq!(
            (&found["sides"][0]["name"], &found["sides"][1]["name"]),
            (&"A".into(), &"slow".into())
        );
        let findings = found["findings"].as_array().unwrap();
        let ttft = findings.iter().find(|finding| finding["metric"] == "ttft_p50").unwrap();
        about_time(|| {
            assert!(number(ttft, "change") > 1.0, "{ttft}");
            assert_eq!(
                (&ttft["outcome"], done.code),
                (&"worse".into(), Some(4)),
                "{}",
                done.stderr
            );
        });
        assert_same(&found);
        assert!(number(&found, "comparison.estimated_s") > 0.0);
        assert!(done.stderr.contains("up to 3 blocks of 2 runs"), "{}", done.stderr);
        assert_eq!(session.run(&["report", "out", "--json"]).stdout, done.stdout);
        let page = session.run(&["report", "out", "-v"]).stdout;
        assert_eq!(std::fs::read_to_string(session.path("out/report.txt")).unwrap(), page);
        assert!(page.contains("slow: mock:ttft=80ms,itl=2ms"), "{page}");
        let taken = session.run(&["compare", FAST, FAST, "--rate", "5", "--out", "out", "--quiet"]);
        assert_eq!(taken.code, Some(2), "the folder is taken: {}", taken.stderr);
    });
}

#[test]
fn a_server_with_itself_gives_the_floor_of_the_rig() {
    let more = ["--aa", "--rate", "30", "--blocks", "3"];
    let (session, done, found) = counted(3.0, || {
        let session = Session::new();
        let found = compare(&session, &[FAST], &more);
        (session, found)
    });
    assert_eq!(found["design"]["sides"], serde_json::json!(["A", "A'"]));
    assert_eq!(found["design"]["same_target"], true);
    // The second side must not find the prompts of the first in the server's cache.
    let plan = std::fs::read_to_string(session.path("out/compare.toml")).unwrap();
    assert!(plan.contains("reset_cache = true"), "{plan}");
    assert!(number(&found, "floor.sd.ttft_p50") > 0.0, "{}", found["floor"]);
    assert_eq!(found["floor"]["target"], FAST);
    assert!(done.stderr.contains("noise floor: two runs"), "{}", done.stderr);
    // Measured as the floor was: one of another load or length would be left out.
    let alike = SHORT.strip_suffix(&["--out", "out"]).unwrap();
    let below = ["--rate", "30", "--margin", "0.0001%", "--out", "other"];
    let refused = session.run(&[&["compare", FAST, FAST], alike, &below].concat());
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("noise floor"), "{}", refused.stderr);
    assert!(!session.path("other").exists());
}

#[test]
fn ctrl_c_and_go_on() {
    let session = Session::new();
    let more = ["--rate", "30", "--blocks", "3", "--quiet", "--json"];
    let child = session.spawn(&[&["compare", FAST, FAST], &SHORT[..], &more].concat());
    let first = wait_for_run(&session, 1);
    let second = wait_for(&session, "out/points", 2, 0);
    let (done, half) = interrupt(child);
    assert_eq!(done.code, Some(130), "{}", done.stderr);
    assert_eq!(half["comparison"]["state"], "interrupted");
    assert_eq!(runs(&half).len(), 1, "the stopped run does not count");
    let before = std::fs::read(first.join("requests.log")).unwrap();
    let (done, whole) = found(session.run(&["compare", "--resume", "out", "--json"]));
    assert!(matches!(done.code, Some(0 | 4 | 5)), "{:?} {}", done.code, done.stderr);
    assert_eq!(whole["comparison"]["state"], "complete");
    assert_eq!(whole["comparison"]["started"], half["comparison"]["started"]);
    assert_eq!(runs(&whole)[0], runs(&half)[0]);
    assert_eq!(std::fs::read(first.join("requests.log")).unwrap(), before);
    // One side has seen half of the prompts of its block: the next has others.
    let name = second.file_name().unwrap().to_string_lossy().into_owned();
    let stopped: u64 = name["002-b".len()..].split('-').next().unwrap().parse().unwrap();
    assert_eq!(whole["runs"][1]["ask"]["number"], 3);
    assert_eq!(runs(&whole)[1].0, stopped + 1);
    assert_ne!(runs(&whole)[1].2, runs(&half)[0].2);
    // What is done is done.
    let (_, again) = found(session.run(&["compare", "--resume", "out", "--json", "--quiet"]));
    assert_eq!(again["runs"], whole["runs"]);
}

#[test]
fn engines_that_take_turns() {
    let command = "echo {side} >> order; echo switched to {side} at {url}";
    let more = ["--rate", "40", "--blocks", "3", "--switch-cmd", command];
    let sides = |server: &MockProcess| ["a", "b"].map(|name| format!("{name}={}", server.url()));
    let ((session, server), done, found) = counted(2.0, || {
        let session = Session::new();
        let server = MockProcess::fast(&session, &[]);
        let [a, b] = sides(&server);
        let found = compare(&session, &[&a, &b], &more);
        ((session, server), found)
    });
    let [a, b] = sides(&server);
    assert!(matches!(done.code, Some(0 | 4 | 5)), "{:?} {}", done.code, done.stderr);
    let order = std::fs::read_to_string(session.path("order")).unwrap();
    let order: Vec<&str> = order.lines().collect();
    let measured = runs(&found);
    let sides: Vec<&str> = measured.iter().map(|run| ["a", "b"][run.1 as usize]).collect();
    // Both once, to see that they are there; then before each run.
    assert_eq!(order, [&["a", "b"], &sides[..]].concat());
    // Where a run was void its block ends there; others are whole.
    let pairs: Vec<_> = measured.windows(2).filter(|two| two[0].0 == two[1].0).collect();
    assert!(pairs.len() >= 2, "{measured:?}");
    for two in &pairs {
        assert_eq!(two[0].2, two[1].2, "one seed for a block: {measured:?}");
        assert!(pairs.iter().all(|other| other[0].0 == two[0].0 || other[0].2 != two[0].2));
        let back = pairs.iter().find(|other| other[0].0 == two[0].0 + two[0].0 % 2);
        let is_back = |back: &&[(u64, u64, u64)]| back[0].1 == two[1].1;
        assert!(back.is_none_or(|back| back[0].0 == two[0].0 || is_back(&&back[..])));
    }
    let said = std::fs::read_to_string(session.path("out/switch.log")).unwrap();
    assert!(said.contains(&format!("switched to b at {}", server.url())), "{said}");
    // Another name for it is not another server.
    let same = b.replace("127.0.0.1", "localhost");
    assert_ne!(same, b);
    let twice = session.run(&["compare", &a, &same, "--rate", "40", "--at-once", "--out", "twice"]);
    assert_eq!(twice.code, Some(2), "{}", twice.stderr);
    assert!(twice.stderr.contains("`a` and `b` are the same server"), "{}", twice.stderr);
    let broken = "echo no such engine; exit 7";
    let args = ["compare", &a, &b, "--rate", "40", "--switch-cmd", broken, "--out", "broken"];
    let failed = session.run(&args);
    assert_eq!(failed.code, Some(3), "{}", failed.stderr);
    assert!(failed.stderr.contains("status 7; no such engine"), "{}", failed.stderr);
}

#[test]
fn all_at_once_at_half_of_what_the_reference_carries() {
    let targets = [FAST, "mock:ttft=21ms,itl=2ms", "mock:ttft=22ms,itl=2ms"];
    let (session, done, found) = counted(1.0, || {
        let session = Session::new();
        let found = compare(&session, &targets, &["--blocks", "3", "--at-once"]);
        (session, found)
    });
    assert!(matches!(done.code, Some(0 | 4 | 5)), "{:?} {}", done.code, done.stderr);
    let rate = number(&found["design"]["levels"][0], "rate");
    // Sixteen users of a server that takes 28 ms, or longer on a busy machine.
    assert!(rate > 0.0 && rate <= 290.0, "{rate}");
    assert!(done.stderr.contains(&format!("load: {rate} req/s, half of")), "{}", done.stderr);
    let measured = runs(&found);
    assert!(measured.len() >= 6, "{measured:?}");
    for block in measured.chunks(3) {
        assert!(block.iter().all(|run| run.0 == block[0].0 && run.2 == block[0].2), "{block:?}");
    }
    let manifest = |number: u32| -> Value {
        let path = wait_for_run(&session, number).join("manifest.json");
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    let together: Vec<Value> = (1..=3).map(manifest).collect();
    for (one, other) in [(0, 1), (1, 2), (2, 0)] {
        let begun = number(&together[one], "clocks.monotonic_ns");
        assert!(begun < number(&together[other], "clocks_end.monotonic_ns"), "one after the other");
    }
    assert_same(&found);
}

#[test]
fn a_target_that_is_not_there_leaves_nothing() {
    let session = Session::new();
    let args = [&["compare", FAST, "http://127.0.0.1:9", "--rate", "5"], &SHORT[..]].concat();
    let gone = session.run(&args);
    assert_eq!(gone.code, Some(3), "{}", gone.stderr);
    assert!(gone.stderr.contains("target `B`"), "{}", gone.stderr);
    assert!(!session.path("out").exists());
}

#[test]
fn several_from_a_list_with_their_secrets() {
    let session = Session::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let server = MockProcess::fast(&session, &["--api-key-env", "MOCK_KEY"]);
    let target = |name: &str| {
        format!(
            "[[target]]\nname = \"{name}\"\nurl = \"{}?code=hunter21\"\napi_key_env = \"KEY_{name}\"\n\
             gpus = 2\nheaders = {{ x-team = \"hunter22\" }}\n",
            server.url()
        )
    };
    let list = elsewhere.path().join("providers.toml");
    std::fs::write(&list, ["one", "two", "three"].map(target).concat()).unwrap();
    let list = list.to_str().unwrap();
    let with_keys = |args: &[&str]| {
        let mut command = session.command(args);
        for name in ["KEY_one", "KEY_two", "KEY_three"] {
            command.env(name, "sesame");
        }
        outcome(command.output().unwrap())
    };
    let more = ["--targets", list, "--reference", "three", "--rate", "40", "--blocks", "3"];
    let args = [&["compare", "--json"], &SHORT[..], &more].concat();
    let (done, found) = found(with_keys(&args));
    assert!(matches!(done.code, Some(0 | 4 | 5)), "{:?} {}", done.code, done.stderr);
    assert_eq!(found["design"]["sides"], serde_json::json!(["three", "one", "two"]));
    assert_eq!(found["sides"][2]["gpus"], 2);
    let no_key = session.run(&args);
    assert_eq!(no_key.code, Some(2), "{}", no_key.stderr);
    assert!(no_key.stderr.contains("KEY_three"), "{}", no_key.stderr);
    // Secrets are not kept; with the list there they need not be.
    let bare = with_keys(&["compare", "--resume", "out", "--json"]);
    assert_eq!(bare.code, Some(2), "{}", bare.stderr);
    assert!(bare.stderr.contains("secret"), "{}", bare.stderr);
    let again = with_keys(&["compare", "--resume", "out", "--json", "--targets", list]);
    assert_eq!(again.code, done.code, "{}", again.stderr);
    let said = [done.stderr, done.stdout, bare.stderr, again.stderr, again.stdout].concat();
    let written = String::from_utf8_lossy(&session.everything_written()).into_owned() + &said;
    for secret in ["hunter21", "hunter22", "sesame"] {
        assert!(!written.contains(secret), "{secret} was written");
    }
}

#[test]
fn a_server_that_dies_and_comes_back() {
    let session = Session::new();
    let settings = ["--ttft", "20ms", "--itl", "2ms"];
    let mut server = MockProcess::start(&session, &settings);
    let (port, url) = (server.port.clone(), server.url());
    let more = ["--rate", "30", "--blocks", "3", "--quiet", "--json"];
    let child = session.spawn(&[&["compare", &url, &url], &SHORT[..], &more].concat());
    wait_for(&session, "out/points", 1, 0);
    server.kill();
    pause(Nanos::from_millis(700));
    let listen = format!("127.0.0.1:{port}");
    let mut back = session.command(&[&["mock", "--listen", &listen], &settings[..]].concat());
    let mut back = back.stderr(std::process::Stdio::null()).spawn().unwrap();
    let ended = child.wait_with_output().unwrap();
    // Before anything is asserted: it would outlive a test that fails.
    back.kill().unwrap();
    back.wait().unwrap();
    let (done, found) = found(outcome(ended));
    assert!(matches!(done.code, Some(0 | 4 | 5)), "{:?} {}", done.code, done.stderr);
    assert_eq!(found["comparison"]["state"], "complete");
    // The block that broke off gives way to another, which has prompts of its own.
    let measured = runs(&found);
    assert!(measured.len() >= 3 && measured[0].0 == 2, "{measured:?}");
    assert_eq!(found["comparison"]["repeats"], 1);
    // What is done needs no server.
    let again = session.run(&["compare", "--resume", "out", "--json"]);
    assert_eq!(again.code, done.code, "{}", again.stderr);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!((&again["runs"], &again["sides"]), (&found["runs"], &found["sides"]));
}

#[test]
fn ctrl_c_while_nothing_is_measured() {
    // During a warm-up: no run begins.
    let session = Session::new();
    let slow = "mock:ttft=200ms,itl=2ms";
    let more = ["--rate", "30", "--blocks", "3", "--quiet", "--json", "--switch-cmd", "true"];
    let child = session.spawn(&[&["compare", slow, slow], &SHORT[..], &more].concat());
    wait_for(&session, "out/warm-up", 1, 200);
    let (done, none) = interrupt(child);
    assert_eq!((done.code, &none["comparison"]["state"]), (Some(130), &"interrupted".into()));
    assert!(!session.path("out/points").exists(), "a run began");
    // While a server is waited for that is gone.
    let session = Session::new();
    let mut server = MockProcess::fast(&session, &[]);
    let url = server.url();
    let more = ["--rate", "30", "--blocks", "3", "--json"];
    let mut child = session.spawn(&[&["compare", &url, &url], &SHORT[..], &more].concat());
    wait_for(&session, "out/points", 1, 0);
    server.kill();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("stopped answering during a run")));
    let (done, none) = interrupt(child);
    assert_eq!((done.code, &none["comparison"]["state"]), (Some(130), &"interrupted".into()));
}

#[test]
fn what_makes_no_sense() {
    let session = Session::new();
    for (args, says) in [
        (&[FAST][..], "--aa"),
        (&[FAST, FAST, "--aa"], "one target"),
        (&[FAST, FAST, "--rate", "inf"], "--rate inf"),
        (&[FAST, FAST, "--gate", "p99 ttft"], "ttft"),
        (&[FAST, FAST, "--gate", "goodput > -3%"], "--slo"),
        (&[FAST, FAST, "--rate", "2", "--concurrency", "2"], "--concurrency"),
        (&["--resume", "."], "compare.toml"),
    ] {
        let outcome = session.run(&[&["compare", "--quiet"], args].concat());
        assert_eq!(outcome.code, Some(2), "{args:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(says), "{args:?}: {}", outcome.stderr);
    }
    let dry = session.run(&["compare", FAST, FAST, "--rate", "5", "--dry-run", "--json"]);
    assert_eq!(dry.code, Some(0), "{}", dry.stderr);
    assert!(!session.path("runs").exists());
}
