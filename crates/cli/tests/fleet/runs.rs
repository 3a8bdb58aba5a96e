//! Clients that meet, as processes on the loopback.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

use goodput_clock::{now, pause};
use goodput_model::Nanos;
use serde_json::Value;

use crate::support::mock::{MockProcess, records};
use crate::support::{Outcome, Session, number, outcome, signal};

const PATIENCE: Nanos = Nanos::from_millis(60_000);
const TOKEN: &str = "OnlyTheClientsOfThisTestKnowThisWord";

/// Clients of one load, and where they meet.
struct Fleet {
    session: Session,
    mock: MockProcess,
    at: String,
    join_within: &'static str,
}

impl Fleet {
    fn new() -> Self {
        Self::on(&[])
    }

    /// With an engine like this.
    fn on(engine: &[&str]) -> Self {
        let session = Session::new();
        let mock = MockProcess::fast(&session, engine);
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Self { session, mock, at: free.to_string(), join_within: "20s" }
    }

    fn command(&self, shard: &str, words: &[&str]) -> Command {
        let url = self.mock.url();
        let common = ["run", &url, "--no-length-check", "--quiet", "--out", "out", "--json"];
        let place = ["--shard", shard, "--rendezvous", &self.at, "--join-within", self.join_within];
        let mut command = self.session.command(&[&common, &place[..], words].concat());
        command.env("GOODPUT_FLEET_TOKEN", TOKEN);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command
    }

    fn start(&self, shard: &str, words: &[&str]) -> Child {
        self.command(shard, words).spawn().unwrap()
    }

    /// All ranks to their end: rank 0 first.
    fn play(&self, of: u32, words: &[&str]) -> Vec<Outcome> {
        let ranks: Vec<Child> =
            (0..of).map(|rank| self.start(&format!("{rank}/{of}"), words)).collect();
        ranks.into_iter().map(ended).collect()
    }

    /// Waits until a rank has measured something.
    fn until_measured(&self, rank: u32) {
        let log = self.session.path(&format!("out/shards/{rank:04}/requests.log"));
        let end = now() + PATIENCE;
        while std::fs::metadata(&log).map_or(0, |file| file.len()) < 2_000 {
            assert!(now() < end, "rank {rank} measures nothing");
            pause(Nanos::from_millis(20));
        }
    }

    /// When every request was due, what it was to be, and how long its body was, by number.
    fn sent(&self, folder: &str) -> Vec<(u64, Nanos, u32, u64)> {
        let mut sent: Vec<_> = records(&self.session.path(&format!("{folder}/requests.log")))
            .into_iter()
            .map(|one| {
                let planned = one.planned.input_tokens;
                (one.index, one.scheduled, planned, one.exchange.body_bytes)
            })
            .collect();
        sent.sort_unstable();
        sent
    }
}

/// As Ctrl-C does.
fn interrupt(rank: &Child) {
    signal(rank, "-INT");
}

fn ended(rank: Child) -> Outcome {
    outcome(rank.wait_with_output().unwrap())
}

fn summary(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{}", outcome.stderr))
}

fn shard_of(summary: &Value, rank: usize) -> &Value {
    &summary["run"]["shards"][rank]
}

#[test]
fn three_clients_send_what_one_sends() {
    let fleet = Fleet::new();
    let load = ["--rate", "80", "--num-requests", "90", "--warmup", "10", "--seed", "5"];
    let outcomes = fleet.play(3, &load);
    for outcome in &outcomes {
        outcome.assert_finished("a rank");
    }
    let whole = summary(&outcomes[0]);
    for rank in 0..3 {
        let part = shard_of(&whole, rank);
        assert_eq!((&part["is_there"], &part["is_whole"]), (&true.into(), &true.into()), "{part}");
        // All on one clock.
        let offset = number(part, "clock.offset_ns").abs();
        assert!(offset <= number(part, "clock.error_ns") + 1e6, "{part}");
        assert!(part["late_ms"].is_number(), "{part}");
    }
    assert_eq!(number(&whole, "requests.scheduled"), 90.0);
    assert_eq!(number(&whole, "requests.warmup"), 10.0);
    let url = fleet.mock.url();
    let alone =
        [&["run", &url, "--no-length-check", "--quiet", "--out", "one"], &load[..]].concat();
    fleet.session.run(&alone).assert_finished("one rank");
    assert_eq!(fleet.sent("out"), fleet.sent("one"));
    // Each third is one rank's.
    for rank in 0..3u64 {
        let own = fleet.sent(&format!("out/shards/{rank:04}"));
        assert!(own.iter().all(|sent| sent.0 % 3 == rank), "{own:?}");
    }
}

#[test]
fn users_are_dealt_out() {
    let fleet = Fleet::on(&["--set", "ttft=40ms"]);
    // Two users here and one there: rank 0 is through long before the other.
    let load = ["--concurrency", "3", "--num-requests", "40", "--warmup", "5"];
    let outcomes = fleet.play(2, &[&load, &["--output-tokens", "4"][..]].concat());
    for outcome in &outcomes {
        outcome.assert_finished("a rank");
    }
    let whole = summary(&outcomes[0]);
    assert_eq!(number(&whole, "requests.scheduled"), 40.0);
    assert_eq!(number(&whole, "requests.warmup"), 5.0);
    let numbers: Vec<u64> = fleet.sent("out").into_iter().map(|sent| sent.0).collect();
    assert_eq!(numbers, (0..45).collect::<Vec<_>>());
}

#[test]
fn who_stops_client_0_stops_all() {
    let fleet = Fleet::new();
    let words = ["--rate", "40", "--duration", "60s"];
    let first = fleet.start("0/2", &words);
    let second = fleet.start("1/2", &words);
    fleet.until_measured(1);
    interrupt(&first);
    let first = ended(first);
    assert_eq!(first.code, Some(130), "{}", first.stderr);
    ended(second).assert_finished("a rank that was led");
    let whole = summary(&first);
    assert_eq!(whole["run"]["state"], "interrupted");
    for rank in 0..2 {
        assert!(shard_of(&whole, rank)["cut_s"].is_null(), "{whole}");
    }
}

/// What is never written down each rank knows for itself, from the same file.
#[test]
fn a_plan_with_headers_goes_everywhere() {
    let fleet = Fleet::new();
    let url = fleet.mock.url();
    let load = ["--rate", "40", "--num-requests", "20", "--no-length-check", "--quiet"];
    let words = ["run", &url, "--header", "x-team: blue", "--out", "one"];
    fleet.session.run(&[&words, &load[..]].concat()).assert_finished("one rank");
    let written = std::fs::read_to_string(fleet.session.path("one/plan.toml")).unwrap();
    assert!(written.contains("x-team") && !written.contains("blue"));
    let plan = written.replace(goodput_model::REDACTED, "blue");
    std::fs::write(fleet.session.path("p.toml"), plan).unwrap();
    let start = |shard: &str| {
        let words = ["run", "--plan", "p.toml", "--shard", shard, "--rendezvous", &fleet.at];
        let mut command =
            fleet.session.command(&[&words, &["--out", "out", "--quiet"][..]].concat());
        command.env("GOODPUT_FLEET_TOKEN", TOKEN).stderr(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let ranks = [start("0/2"), start("1/2")];
    for rank in ranks {
        let place = fleet.session.path("out");
        ended(rank).with_folder(&place).assert_finished("a rank");
    }
    assert_eq!(fleet.sent("out"), fleet.sent("one"));
}

/// Who leads says what is sent, not where to: keys go nowhere else.
#[test]
fn a_client_that_is_led_sends_where_its_own_words_say() {
    let fleet = Fleet::new();
    let other = MockProcess::fast(&fleet.session, &[]);
    let load = ["--rate", "40", "--num-requests", "20"];
    let first = fleet.start("0/2", &load);
    let mut words: Vec<&str> = vec!["run"];
    let url = other.url();
    words.extend([&url, "--no-length-check", "--quiet", "--out", "out", "--shard", "1/2"]);
    words.extend(["--rendezvous", &fleet.at]);
    words.extend(load);
    let mut second = fleet.session.command(&words);
    second.env("GOODPUT_FLEET_TOKEN", TOKEN).stderr(std::process::Stdio::piped());
    let second = second.spawn().unwrap();
    let first = ended(first);
    first.assert_finished("rank 0");
    ended(second).assert_finished("rank 1");
    assert!(first.stderr.contains("differ in target"), "{}", first.stderr);
    let manifest = std::fs::read(fleet.session.path("out/shards/0001/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["target"]["url"], url.as_str());
    assert_eq!(number(&summary(&first), "requests.ok"), 20.0);
}

#[test]
fn a_folder_that_is_taken_is_found_before_anything_is_sent() {
    let fleet = Fleet::new();
    std::fs::create_dir(fleet.session.path("out")).unwrap();
    std::fs::write(fleet.session.path("out/mine"), "").unwrap();
    let outcomes = fleet.play(2, &["--rate", "40", "--num-requests", "20"]);
    assert_eq!((outcomes[0].code, outcomes[1].code), (Some(2), Some(3)), "{}", outcomes[0].stderr);
    assert!(outcomes[0].stderr.contains("exists and is not empty"), "{}", outcomes[0].stderr);
    assert!(outcomes[1].stderr.contains("before anything was measured"), "{}", outcomes[1].stderr);
}

#[test]
fn a_client_that_dies_is_named_and_the_others_go_on() {
    let fleet = Fleet::new();
    let words = ["--rate", "40", "--duration", "5s"];
    let first = fleet.start("0/3", &words);
    let mut second = fleet.start("1/3", &words);
    let third = fleet.start("2/3", &words);
    fleet.until_measured(1);
    second.kill().unwrap();
    second.wait().unwrap();
    let first = ended(first);
    assert_eq!(first.code, Some(5), "{}", first.stderr);
    ended(third).assert_finished("a rank whose neighbor died");
    let whole = summary(&first);
    assert_eq!(whole["verdict"], "void");
    let cut = shard_of(&whole, 1);
    assert!(cut["is_there"] == true && number(cut, "cut_s") < 5.0, "{cut}");
    assert!(number(cut, "requests") > 0.0 && shard_of(&whole, 2)["is_whole"] == true);
    assert!(first.stderr.contains("rank 1"), "{}", first.stderr);
}

#[test]
fn without_client_0_nothing_that_was_measured_is_lost() {
    let fleet = Fleet::new();
    let words = ["--rate", "40", "--duration", "4s"];
    let mut first = fleet.start("0/2", &words);
    let second = fleet.start("1/2", &words);
    fleet.until_measured(1);
    first.kill().unwrap();
    first.wait().unwrap();
    let second = ended(second);
    assert_eq!(second.code, Some(3), "{}", second.stderr);
    assert!(second.stderr.contains("goodput merge"), "{}", second.stderr);
    let words = ["merge", "out/shards/0000", "out/shards/0001", "--out", "whole", "--json"];
    let merged = fleet.session.run(&words);
    assert_eq!(merged.code, Some(5), "{}", merged.stderr);
    let whole = summary(&merged);
    assert!(shard_of(&whole, 0)["cut_s"].is_number(), "{whole}");
    assert_eq!(shard_of(&whole, 1)["is_whole"], true);
}

#[test]
fn another_token_is_refused() {
    let fleet = Fleet { join_within: "4s", ..Fleet::new() };
    let words = ["--rate", "40", "--num-requests", "20"];
    let first = fleet.start("0/2", &words);
    let mut command = fleet.command("1/2", &words);
    let stranger = command.env("GOODPUT_FLEET_TOKEN", "AnotherWordAlsoLongEnough").spawn();
    let stranger = ended(stranger.unwrap());
    assert_eq!(stranger.code, Some(2), "{}", stranger.stderr);
    assert!(stranger.stderr.contains("token"), "{}", stranger.stderr);
    assert!(!stranger.stderr.contains(TOKEN) && !stranger.stderr.contains("AnotherWord"));
    let first = ended(first);
    assert_eq!(first.code, Some(5), "{}", first.stderr);
    assert_eq!(shard_of(&summary(&first), 1)["is_there"], false);
    assert!(first.stderr.contains("refused a connection"), "{}", first.stderr);
    let written = fleet.session.everything_written();
    assert!(!written.windows(TOKEN.len()).any(|bytes| bytes == TOKEN.as_bytes()));
}

/// Passes on what two ends say to each other, and keeps all of it.
fn relay(mut from: TcpStream, mut to: TcpStream, seen: &Mutex<Vec<u8>>) {
    let mut piece = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut piece) {
        seen.lock().unwrap().extend_from_slice(&piece[..read]);
        if to.write_all(&piece[..read]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[test]
fn what_crosses_the_wire_cannot_be_read() {
    let mut fleet = Fleet::on(&["--model", "the-model-of-this-test"]);
    let between = TcpListener::bind("127.0.0.1:0").unwrap();
    let (near, far) = (between.local_addr().unwrap().to_string(), fleet.at.clone());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    std::thread::spawn(move || {
        for from in between.incoming().flatten() {
            // Rank 0 may not be there yet: the other one tries again.
            let Ok(to) = TcpStream::connect(&far) else { continue };
            let (back, forth) = (to.try_clone().unwrap(), from.try_clone().unwrap());
            let (one, two) = (Arc::clone(&kept), Arc::clone(&kept));
            std::thread::spawn(move || relay(from, to, &one));
            std::thread::spawn(move || relay(back, forth, &two));
        }
    });
    let words = ["--rate", "40", "--num-requests", "20", "--model", "the-model-of-this-test"];
    let first = fleet.start("0/2", &words);
    fleet.at = near;
    let second = fleet.start("1/2", &words);
    let (first, second) = (ended(first), ended(second));
    first.assert_finished("rank 0");
    second.assert_finished("rank 1");
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let seen = seen.lock().unwrap().clone();
    assert!(seen.len() > 2_000);
    let url = fleet.mock.url();
    // A name of a few letters is in any ciphertext by chance.
    let host = Some(host.trim()).filter(|host| host.len() > 5);
    let secrets = [url.as_str(), "the-model-of-this-test", "num_requests", TOKEN];
    for secret in secrets.into_iter().chain(host) {
        let is_there = seen.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!is_there, "`{secret}` can be read");
    }
}

/// Something listens there and never answers.
#[test]
fn who_waits_for_client_0_can_be_stopped() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let fleet = Fleet { at: silent.local_addr().unwrap().to_string(), ..Fleet::new() };
    let rank = fleet.start("1/2", &["--rate", "40", "--num-requests", "20"]);
    let _connection = silent.accept().unwrap();
    let begin = now();
    interrupt(&rank);
    let stopped = ended(rank);
    assert_eq!(stopped.code, Some(130), "{}", stopped.stderr);
    assert!(now() - begin < Nanos::from_millis(5_000), "{}", stopped.stderr);
}

#[test]
fn ranks_without_a_rendezvous_are_merged_by_hand() {
    let fleet = Fleet::new();
    let url = fleet.mock.url();
    for shard in ["0/2", "1/2"] {
        let words = ["run", &url, "--rate", "50", "--num-requests", "31", "--no-length-check"];
        let place = ["--quiet", "--shard", shard, "--out", &shard[..1]];
        fleet.session.run(&[&words, &place[..]].concat()).assert_finished(shard);
    }
    let merged = fleet.session.run(&["merge", "1", "0", "--out", "whole", "--json"]);
    let whole = summary(&merged);
    assert_eq!(number(&whole, "requests.scheduled"), 31.0);
    let apart = |caveat: &Value| caveat["code"] == "shards_apart";
    assert!(whole["caveats"].as_array().unwrap().iter().any(apart), "{whole}");
}

#[test]
fn what_cannot_be_dealt_out_is_refused() {
    let session = Session::new();
    let cases: [(&[&str], &str); 7] = [
        (&["run", "http://127.0.0.1:9", "--shard", "2/2"], "K from 0 to N-1"),
        (&["run", "mock", "--rate", "5", "--shard", "0/2"], "goodput mock"),
        (
            &[
                "run",
                "http://127.0.0.1:9",
                "--rate",
                "9",
                "--max-concurrency",
                "2",
                "--shard",
                "0/3",
            ],
            "--max-concurrency must be at least the number of ranks",
        ),
        (
            &[
                "run",
                "http://127.0.0.1:9",
                "--rate",
                "9",
                "--until",
                "mean ttft ±5%",
                "--shard",
                "0/3",
            ],
            "--rendezvous",
        ),
        (&["sweep", "http://127.0.0.1:9", "--shard", "0/2"], "--rendezvous"),
        (&["run", "http://127.0.0.1:9", "--rendezvous", "127.0.0.1:1"], "--shard"),
        (
            &[
                "run",
                "http://127.0.0.1:9",
                "--rate",
                "5",
                "--shard",
                "0/2",
                "--rendezvous",
                "0.0.0.0:0",
            ],
            "GOODPUT_FLEET_TOKEN",
        ),
    ];
    for (words, hint) in cases {
        let refused = session.run(words);
        assert_eq!(refused.code, Some(2), "{words:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(hint), "{words:?}: {}", refused.stderr);
    }
}
