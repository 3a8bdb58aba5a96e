use goodput_model::{Exchange, Phase, Plan, Planned, Stamps};
use goodput_record::{Manifest, RunFolder};
use serde_json::json;
use tempfile::TempDir;

use super::*;

/// SHA-256 of the first two requests of [`SENT`]: number and hash of each, eight bytes with the
/// highest first, by sha256sum.
const FIRST_TWO: &str = "8608602ce4a16c680b73ae2d7ae43e11dbf9ca10b3265cdc06a6705bbace103d";

/// Number, hash and scheduled instant.
type Line = (u64, Option<u64>, u64);

const SENT: [Line; 3] = [(0, Some(0xa), 100), (1, Some(0xb), 250), (2, Some(0xc), 300)];

fn plan(mode: &serde_json::Value) -> Plan {
    serde_json::from_value(json!({
        "schema": Plan::SCHEMA,
        "target": {
            "url": "http://127.0.0.1:1", "api": "chat", "stream": true, "usage": true,
            "http": "http1", "connections": "reuse", "timeout": "10m", "probe": false,
            "wait_ready": "0s", "api_key_env": "OPENAI_API_KEY", "insecure": false,
        },
        "load": {
            "seed": 1, "num_requests": 1, "warmup": "0s", "cooldown": "0s", "drain": "1m",
            "workers": 1, "mode": mode,
        },
        "workload": {"name": "chat", "class": [
            {"name": "chat", "source": {"kind": "synthetic", "input": "500", "output": "100"}},
        ]},
        "measure": {"percentiles": [50.0], "hash_bodies": true},
    }))
    .unwrap()
}

fn manifest(model: &str) -> Manifest {
    serde_json::from_value(json!({
        "schema": Manifest::SCHEMA, "version": "-", "state": "complete", "started": "-",
        "host": {"system": "-", "cpu": "-", "cpus": 1, "fd_limit": 1024},
        "target": {"url": "-", "route": "-", "address": "-", "model": model},
        "clocks": {"monotonic_ns": 0, "unix_ns": 0},
    }))
    .unwrap()
}

fn record((index, body_hash, due): Line) -> RequestRecord {
    let scheduled = Nanos(due);
    let stamps = Stamps { sent_last: Some(scheduled), ended: scheduled, ..Stamps::default() };
    RequestRecord {
        index,
        phase: Phase::Measured,
        worker: 0,
        scheduled,
        pacer_lag: None,
        cap_wait: Nanos::ZERO,
        planned: Planned::new("chat", 1, None),
        exchange: Exchange { stamps, body_hash, ..Exchange::default() },
        prompt: None,
    }
}

/// Folders of runs, gone with it.
struct Runs(TempDir, bool);

impl Runs {
    fn new(is_closed: bool) -> Self {
        Self(TempDir::new().unwrap(), is_closed)
    }

    fn write(&self, name: &str, model: &str, records: &[RequestRecord]) -> PathBuf {
        let mode = if self.1 {
            json!({"kind": "closed", "concurrency": 1, "think_time": "0s"})
        } else {
            json!({"kind": "open", "rate": "1/s", "arrivals": "poisson"})
        };
        let path = self.0.path().join(name);
        let (_, mut logs) = RunFolder::create(&path, &plan(&mode), &manifest(model)).unwrap();
        for record in records {
            logs.requests.append(record);
        }
        assert!(logs.requests.finish().error.is_none());
        path
    }

    fn lines(&self, name: &str, lines: &[Line]) -> PathBuf {
        let records: Vec<_> = lines.iter().copied().map(record).collect();
        self.write(name, "m", &records)
    }
}

#[test]
fn the_same_in_any_order_is_the_same() {
    let runs = Runs::new(false);
    // Logs are in the order in which answers ended.
    let [one, two, three] = SENT;
    let group = vec![runs.lines("a", &SENT), runs.lines("b", &[three, one, two])];
    let proof = prove_same_requests(&[group]).unwrap();
    assert_eq!((proof.compared, proof.identical, proof.same_instant), (3, 3, Some(3)));
    assert!(!proof.without_model);
    let third = vec![runs.lines("c", &[two, one]), runs.lines("d", &[one, two])];
    assert_eq!(prove_same_requests(&[third]).unwrap().sha256, FIRST_TWO);
    assert_ne!(proof.sha256, FIRST_TWO);
}

#[test]
fn what_differs_on_any_side_is_not_the_same() {
    let runs = Runs::new(false);
    let [one, two, three] = SENT;
    let other_bytes = (three.0, Some(0xd), three.2);
    let later = (two.0, two.1, two.2 + 1);
    let a = runs.lines("a", &SENT);
    let b = runs.lines("b", &SENT);
    let c = runs.lines("c", &[one, later, other_bytes]);
    let proof = prove_same_requests(&[vec![a, b, c]]).unwrap();
    assert_eq!((proof.compared, proof.identical, proof.same_instant), (3, 2, Some(1)));
    assert_eq!(proof.sha256, FIRST_TWO);
}

#[test]
fn only_what_all_sides_were_sent_is_compared() {
    let runs = Runs::new(true);
    let [one, two, three] = SENT;
    let mut unsent = record(three);
    unsent.exchange.stamps.sent_last = None;
    let slow = runs.write("slow", "m", &[record(two), record(one), unsent]);
    let quotes = (3, None, 400);
    let fast = runs.lines("fast", &[one, two, three, quotes]);
    // In a closed loop the server decides when a request is due.
    let late = runs.lines("late", &[(0, one.1, 900), (1, two.1, 950), (2, Some(0xd), 999)]);
    let proof = prove_same_requests(&[vec![fast, slow, late]]).unwrap();
    assert_eq!((proof.compared, proof.identical, proof.same_instant), (2, 2, None));
    assert_eq!(proof.sha256, FIRST_TWO);
}

#[test]
fn groups_add_up_and_names_of_models_may_differ() {
    let runs = Runs::new(false);
    let [one, two, three] = SENT;
    let first = vec![runs.lines("a1", &[one]), runs.lines("b1", &[one])];
    let other = runs.write("b2", "another", &[record(two)]);
    let second = vec![runs.lines("a2", &[two, three]), other];
    let alone = vec![runs.lines("a3", &[three])];
    let proof = prove_same_requests(&[first, second, alone]).unwrap();
    assert_eq!((proof.compared, proof.identical, proof.same_instant), (2, 2, Some(2)));
    assert_eq!((proof.sha256.as_str(), proof.without_model), (FIRST_TWO, true));
}

#[test]
fn without_hashes_there_is_no_proof() {
    let runs = Runs::new(false);
    let hashed = runs.lines("hashed", &SENT);
    let again = runs.lines("again", &SENT);
    let bare = runs.lines("bare", &SENT.map(|(index, _, due)| (index, None, due)));
    let empty = runs.lines("empty", &[]);
    assert_eq!(prove_same_requests(&[]), None);
    assert_eq!(prove_same_requests(&[vec![hashed.clone(), empty]]), None);
    assert_eq!(prove_same_requests(&[vec![hashed.clone(), PathBuf::from("nowhere")]]), None);
    let both = [vec![hashed.clone(), again], vec![hashed, bare]];
    assert!(prove_same_requests(&both[..1]).is_some());
    assert_eq!(prove_same_requests(&both), None);
}
