//! `goodput merge` on folders whose every record is made here.

mod fleet;

use std::fs;
use std::path::Path;

use crate::support::Session;
use fleet::{Fleet, Numbers, RATE, manifest, plan, records, samples, write};
use goodput_model::{
    ClockOffset, EndedBy, ErrorClass, Failure, FailureStage, HealthSample, Nanos, Plan,
    RequestRecord, Shard,
};
use goodput_record::{Manifest, State};
use serde_json::{Value, json};

fn caveat<'a>(summary: &'a Value, code: &str) -> Option<&'a Value> {
    summary["caveats"].as_array().unwrap().iter().find(|caveat| caveat["code"] == code)
}

fn said(summary: &Value, code: &str) -> (String, String) {
    let found =
        caveat(summary, code).unwrap_or_else(|| panic!("no {code}: {}", summary["caveats"]));
    let text = |name: &str| found[name].as_str().unwrap().to_owned();
    (text("severity"), text("message"))
}

/// What was one run, and is dealt out at random and merged, is the same to the last byte.
#[test]
fn merged_is_as_if_one_had_measured() {
    for (seed, of, lag_ms) in [(11, 2, 0), (12, 5, 0), (13, 3, 60)] {
        let (session, all) = (Session::new(), records(seed));
        let mut numbers = Numbers(seed ^ 0xabc);
        let to: Vec<u32> = all.iter().map(|_| numbers.below(of.into()) as u32).collect();
        let mut looks = Vec::new();
        for index in 0..of {
            // One of them stands still now and then.
            let lag_ms = if index == 1 { lag_ms } else { 0 };
            let own = all.iter().zip(&to).filter(|(_, to)| **to == index);
            let own: Vec<_> = own.map(|(record, _)| record.clone()).collect();
            let manifest = manifest(Shard::new(index, of));
            let path = session.path(&index.to_string());
            write(&path, (&plan(RATE), &manifest), &own, &samples(index, true, lag_ms));
            looks.extend(samples(index, false, lag_ms));
        }
        looks.sort_by_key(|look| look.at);
        let whole =
            all.iter().zip(&to).map(|(record, to)| RequestRecord { worker: *to, ..record.clone() });
        let whole: Vec<_> = whole.collect();
        write(&session.path("one"), (&plan(RATE), &manifest(None)), &whole, &looks);
        let folders: Vec<String> = (0..of).rev().map(|index| index.to_string()).collect();
        let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
        let merge = [&["merge", "--json", "--out", "out"], &folders[..]].concat();
        let read = |args: &[&str]| {
            let outcome = session.run(args);
            outcome.assert_finished("a summary");
            let mut found: Value = serde_json::from_str(&outcome.stdout).unwrap();
            let shards = found["run"]["shards"].take();
            if lag_ms > 0 {
                // There it is a client that stood still, here it is one of several.
                (found["caveats"], found["verdict"]) = (Value::Null, Value::Null);
            }
            (serde_json::to_string_pretty(&found).unwrap(), shards)
        };
        let ((merged, shards), (one, none)) = (read(&merge), read(&["report", "one", "--json"]));
        let first = merged.lines().zip(one.lines()).find(|(a, b)| a != b);
        assert_eq!((merged == one, first), (true, None), "seed {seed}");
        let requests: u64 =
            shards.as_array().unwrap().iter().map(|part| part["requests"].as_u64().unwrap()).sum();
        assert_eq!((requests, none), (all.len() as u64, json!([])));
        // The figures are there, and a stall cuts those that it touched.
        let found: Value = serde_json::from_str(&merged).unwrap();
        assert_eq!(found["requests"]["scheduled"], json!(all.len()));
        let touched = found["client"]["stalls"]["requests"].as_u64().unwrap();
        assert_eq!(touched > 0, lag_ms > 0, "{touched}");
        assert!(found["load"]["sent_gaps"]["p"].as_f64().unwrap() > 1e-4);
    }
}

#[test]
fn a_merged_run_reads_as_any_other() {
    let fleet = Fleet::new(4);
    let found = fleet.merged(0..4, 0);
    assert_eq!(found["requests"]["scheduled"], json!(fleet.records.len()));
    assert_eq!((&found["verdict"], &found["run"]["state"]), (&json!("valid"), &json!("complete")));
    for name in ["summary", "manifest"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
        let schema = fs::read_to_string(folder.join(format!("{name}.schema.json"))).unwrap();
        let file = fs::read_to_string(fleet.session.path(&format!("out/{name}.json"))).unwrap();
        let [schema, file] = [schema, file].map(|text| serde_json::from_str(&text).unwrap());
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        let errors: Vec<String> = validator.iter_errors(&file).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
    let again = fleet.session.run(&["report", "out", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&again.stdout).unwrap(), found);
    let text = fleet.session.run(&["report", "out", "-v"]).stdout;
    assert!(text.contains("Ranks       rank 0: valid, "), "{text}");
    assert!(text.contains("node-3, 4 × CPU"), "{text}");
    let page = fs::read_to_string(fleet.session.path("out/report.html")).unwrap();
    assert!(page.contains("id=\"ranks\"") && page.contains("node-3"), "no section of ranks");
    for format in ["markdown", "csv", "vllm"] {
        let outcome = fleet.session.run(&["report", "out", "--format", format]);
        assert_eq!(outcome.code, Some(0), "{format}: {}", outcome.stderr);
        assert_eq!(outcome.stdout.contains("### Ranks"), format == "markdown");
    }
    let twice = fleet.session.run(&["merge", "out", "--out", "again"]);
    assert!(
        twice.code == Some(2) && twice.stderr.contains("a merged run already"),
        "{}",
        twice.stderr
    );
    let occupied = fleet.merge(0..4, &[]);
    assert!(occupied.stderr.contains("exists and is not empty"), "{}", occupied.stderr);
}

/// What is measured is the share of the whole, and says so.
#[test]
fn a_shard_by_itself_raises_no_false_alarm() {
    let fleet = Fleet::new(4);
    let text = fleet.session.run(&["report", "2"]).stdout;
    assert!(text.contains("Shard       2 of 4"), "{text}");
    let found = fleet.session.run(&["report", "2", "--json"]).stdout;
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["load"]["offered_rps"], json!(5.0));
    assert_eq!((&found["load"]["due_gaps"], &found["verdict"]), (&Value::Null, &json!("valid")));
}

#[test]
fn missing_clients_are_named_with_their_share() {
    let fleet = Fleet::new(4);
    let found = fleet.merged([0, 1, 3], 5);
    let (severity, message) = said(&found, "shard_missing");
    // Above 5 % it is another load.
    assert_eq!(severity, "void");
    assert!(message.contains("1 of 4 ranks left no records (rank 2)"), "{message}");
    assert!(message.contains("25.0 % of the planned load, about 60 requests,"), "{message}");
    let there = fleet.records.iter().filter(|record| record.index % 4 != 2).count();
    assert_eq!(found["requests"]["scheduled"], json!(there));
    // What follows from it is not said again.
    assert!(caveat(&found, "not_poisson").is_none(), "{}", found["caveats"]);
    assert_eq!(found["run"]["shards"][2]["is_there"], json!(false));
    let few = Fleet::new(30);
    let found = few.merged((0..30).filter(|index| *index != 17), 0);
    assert_eq!(said(&found, "shard_missing").0, "warn");
    assert_eq!(found["verdict"], json!("suspect"));
}

#[test]
fn a_sick_client_makes_the_result_suspect_and_is_named() {
    let is = |manifest: &Manifest, rank: u32| {
        manifest.shard.as_ref().is_some_and(|facts| facts.shard.index() == rank)
    };
    let stalled = |at_least: u32| {
        move |_: &mut Plan, manifest: &mut Manifest, looks: &mut Vec<HealthSample>| {
            if (0..at_least).any(|rank| is(manifest, rank + 1)) {
                *looks = samples(rank_of(manifest), true, 100);
            }
        }
    };
    let found = Fleet::changed(4, stalled(1)).merged(0..4, 0);
    let (severity, message) = said(&found, "shard_sick");
    assert_eq!((severity.as_str(), &found["verdict"]), ("warn", &json!("suspect")));
    assert!(message.contains("1 of 4 ranks"), "{message}");
    assert!(message.contains("rank 1 (node-1, 4 × CPU) is void: the client stalled"), "{message}");
    assert_eq!(found["run"]["shards"][0]["verdict"], json!("valid"));
    // Three of four are not one.
    let found = Fleet::changed(4, stalled(3)).merged(0..4, 5);
    assert_eq!(said(&found, "shard_sick").0, "void");
}

fn rank_of(manifest: &Manifest) -> u32 {
    manifest.shard.as_ref().map_or(0, |facts| facts.shard.index())
}

#[test]
fn a_killed_client_leaves_what_it_had() {
    let fleet = Fleet::changed(4, |_, manifest, _| {
        if rank_of(manifest) == 3 {
            (manifest.state, manifest.epoch_ns) = (State::Running, None);
        }
    });
    // Half of its log, in the middle of a frame.
    let log = fleet.session.path("3/requests.log");
    let bytes = fs::read(&log).unwrap();
    fs::write(&log, &bytes[..bytes.len() / 2 + 5]).unwrap();
    let found = fleet.merged(0..4, 5);
    let part = &found["run"]["shards"][3];
    let kept = part["requests"].as_u64().unwrap();
    let own = fleet.records.iter().filter(|record| record.index % 4 == 3);
    let last = own.clone().nth(usize::try_from(kept).unwrap() - 1).unwrap();
    assert_eq!(part["cut_s"], json!(last.exchange.stamps.ended.as_secs()));
    assert!(kept > 10 && kept < own.count() as u64);
    let (severity, message) = said(&found, "shard_cut");
    assert!(message.contains("rank 3 (node-3, 4 × CPU) at "), "{message}");
    // Half of a quarter.
    assert_eq!(severity, "void");
    // The run of the others went to its end.
    assert_eq!(
        (&found["run"]["state"], &found["window"]["end_s"]),
        (&json!("complete"), &json!(12.0))
    );
    let others = fleet.records.iter().filter(|record| record.index % 4 != 3).count() as u64;
    assert_eq!(found["requests"]["scheduled"], json!(others + kept));
    assert_eq!(part["late_ms"], Value::Null);
}

#[test]
fn a_client_that_was_cut_off_from_the_server_is_named() {
    let cut = |ranks: &[u64], code: i32| {
        let fleet = Fleet::new(4);
        for rank in ranks {
            let own = fleet.records.iter().filter(|record| record.index % 4 == *rank);
            let mut own: Vec<_> = own.cloned().collect();
            let half = own.len() / 2;
            for record in &mut own[half..] {
                record.exchange.failure = Some(Failure {
                    class: ErrorClass::Connect,
                    stage: FailureStage::Connect,
                    message: "no route".to_owned(),
                });
            }
            fs::remove_dir_all(fleet.session.path(&rank.to_string())).unwrap();
            fleet.write(u32::try_from(*rank).unwrap(), &own, |_, _, _| {});
        }
        (fleet.merged(0..4, code), fleet.records.len() / 4 / 2)
    };
    let (found, about) = cut(&[2], 5);
    let (severity, message) = said(&found, "shard_sick");
    // Half of a quarter of the load never came to the server.
    assert_eq!(severity, "void");
    assert!(message.contains("1 of 4 ranks") && message.contains("rank 2 "), "{message}");
    assert!(message.contains("0.0 % of the median rank's"), "{message}");
    let failed = found["run"]["shards"][2]["failed_alone"].as_u64().unwrap();
    assert!(failed.abs_diff(about as u64) <= 1, "{failed} of about {about}");
    // What happens to most is the server's.
    let (found, _) = cut(&[1, 2, 3], 0);
    assert!(caveat(&found, "shard_sick").is_none() && caveat(&found, "errors").is_some());
}

#[test]
fn a_damaged_log_is_the_trouble_of_its_client() {
    let fleet = Fleet::new(4);
    // Whole, and with its numbers: then its last byte is lost.
    let summary = fleet.session.run(&["report", "1", "--json"]).stdout;
    fs::write(fleet.session.path("1/summary.json"), summary).unwrap();
    let log = fleet.session.path("1/requests.log");
    let bytes = fs::read(&log).unwrap();
    fs::write(&log, &bytes[..bytes.len() - 1]).unwrap();
    let found = fleet.merged(0..4, 0);
    let (severity, message) = said(&found, "shard_sick");
    assert!(severity == "warn" && message.contains("rank 1 "), "{message}");
    assert!(message.contains("the request log ends in a damaged frame"), "{message}");
    assert_eq!(found["requests"]["scheduled"], json!(fleet.records.len() - 1));
}

#[test]
fn a_log_that_lost_whole_records_is_found_out() {
    let fleet = Fleet::new(2);
    let own: Vec<_> = fleet.records.iter().filter(|r| r.index % 2 == 1).cloned().collect();
    // Three are one in eighty; all are half of the load.
    for (kept, code) in [(own.len() - 3, 0), (0, 5)] {
        fs::remove_dir_all(fleet.session.path("1")).unwrap();
        let closed = Some(own.len() as u64);
        fleet.write(1, &own[..kept], |_, manifest, _| manifest.records = closed);
        let _ = fs::remove_dir_all(fleet.session.path("out"));
        let found = fleet.merged(0..2, code);
        let message = said(&found, "shard_sick").1;
        let held = format!("its log has {kept} records, but had {} when", own.len());
        assert!(message.contains(&held), "{message}");
        let lost = (own.len() - kept) as f64 / fleet.records.len() as f64 * 100.0;
        assert!(message.contains(&format!("and {lost:.1} % of the load was lost")), "{message}");
    }
}

/// By a rule, which rank 0 follows, and which one that was lost did not hear of.
#[test]
fn a_run_that_a_rule_ended_is_over_for_all() {
    let fleet = Fleet::changed(3, |_, manifest, _| {
        let (by, at) = match rank_of(manifest) {
            0 => (EndedBy::Until, Some(6.0)),
            1 => (EndedBy::User, Some(6.2)),
            _ => (EndedBy::Plan, None),
        };
        (manifest.ended_by, manifest.stopped_s) = (Some(by), at);
    });
    let found = fleet.merged(0..3, 0);
    assert!(caveat(&found, "shard_cut").is_none(), "{}", found["caveats"]);
    assert_eq!(
        (&found["run"]["ended_by"], &found["window"]["end_s"]),
        (&json!("until"), &json!(6.0))
    );
    let due = fleet.records.iter().filter(|record| record.scheduled < Nanos::from_millis(6_000));
    assert_eq!(found["requests"]["scheduled"], json!(due.count()));
}

/// By the clocks of a common start, and by wall clocks without one.
#[test]
fn clients_that_did_not_begin_together_are_found() {
    let fleet = |late_ms: u64, name: Option<&str>, wall_s: i64| {
        let name = name.map(str::to_owned);
        Fleet::changed(3, move |_, manifest, _| {
            let rank = rank_of(manifest);
            // The clock of rank 1 is 5 s ahead, and its wall clock by so much.
            let offset_ns = if rank == 1 { 5_000_000_000 } else { 0 };
            let wall_ns = if rank == 1 { wall_s * 1_000_000_000 } else { 0 };
            let clock = ClockOffset { offset_ns, error_ns: 200_000, wall_ns };
            let facts = manifest.shard.as_mut().unwrap();
            facts.fleet.clone_from(&name);
            facts.clock = name.as_ref().map(|_| clock);
            let late = if rank == 1 { late_ms * 1_000_000 } else { 0 };
            manifest.epoch_ns = Some(1_000_000_000 + late + offset_ns.unsigned_abs());
            manifest.clocks.monotonic_ns = offset_ns.unsigned_abs();
            manifest.clocks.unix_ns = manifest.clocks.unix_ns.strict_add_signed(wall_ns);
        })
    };
    let found = fleet(0, Some("a"), 3).merged(0..3, 0);
    assert_eq!(found["verdict"], json!("valid"), "{}", found["caveats"]);
    let (severity, message) = said(&found, "shard_clock");
    assert!(
        severity == "info" && message.contains("rank 1 (node-1, 4 × CPU) by +3.0 s"),
        "{message}"
    );
    for (late, name, expected, code) in [
        (49, Some("a"), None, 0),
        // The clocks may be off by 0.2 ms each.
        (50, Some("a"), Some("warn"), 0),
        (1_001, Some("a"), Some("void"), 5),
        (0, None, None, 0),
        (80, None, Some("warn"), 0),
        (1_500, None, Some("void"), 5),
    ] {
        let found = fleet(late, name, 0).merged(0..3, code);
        let severity =
            caveat(&found, "shards_apart").map(|caveat| caveat["severity"].as_str().unwrap());
        assert_eq!(severity, expected, "{late} {name:?}");
        assert_eq!(found["run"]["shards"][1]["late_ms"], json!(late as f64));
        if expected.is_some() {
            let message = said(&found, "shards_apart").1;
            assert!(message.contains("rank 1 (node-1"), "{message}");
            assert_eq!(message.contains("by their wall clocks"), name.is_none(), "{message}");
        }
    }
}

/// A change to the second of two shards.
type Change = fn(&mut Plan, &mut Manifest, &mut Vec<HealthSample>);

#[test]
fn what_does_not_belong_together_is_refused() {
    let cases: [(Change, &str, bool); 6] = [
        (|plan, _, _| plan.load.seed = 2, "differ in plan (load.seed): 1 and 2", false),
        (|_, m, _| m.workload.hash = "other".to_owned(), "differ in workload (its hash)", false),
        (|plan, _, _| plan.target.url = "http://other".to_owned(), "differ in target", true),
        (|_, m, _| m.target.model = "other".to_owned(), "differ in model: m and other", true),
        (|_, m, _| m.version = "9".to_owned(), "differ in goodput version: 0.1.0 and 9", true),
        (
            |_, m, _| m.shard.as_mut().unwrap().fleet = Some("f".to_owned()),
            "differ in common start: none and f",
            true,
        ),
    ];
    for (change, expected, may_pass) in cases {
        let fleet = Fleet::changed(2, |plan, manifest, looks| {
            if rank_of(manifest) == 1 {
                change(plan, manifest, looks);
            }
        });
        let outcome = fleet.merge(0..2, &[]);
        assert_eq!(outcome.code, Some(2), "{expected}");
        assert!(outcome.stderr.contains(expected), "{expected}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("`0` and `1`"), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("hint: "), "{}", outcome.stderr);
        assert!(!fleet.session.path("out").exists());
        let forced = fleet.merge(0..2, &["--force"]);
        assert_eq!(forced.code == Some(0), may_pass, "{expected}: {}", forced.stderr);
        assert!(!may_pass || forced.stderr.contains("warning: "), "{}", forced.stderr);
    }
}

#[test]
fn folders_that_are_no_shards_are_refused() {
    let fleet = Fleet::new(2);
    write(&fleet.session.path("whole"), (&plan(RATE), &manifest(None)), &[], &[]);
    write(&fleet.session.path("of3"), (&plan(RATE), &manifest(Shard::new(1, 3))), &[], &[]);
    // A shard of another name with a request of the first.
    let again = fleet.records.iter().find(|record| record.index == 4).unwrap().clone();
    write(&fleet.session.path("same"), (&plan(RATE), &manifest(Shard::new(1, 2))), &[again], &[]);
    for (folders, expected) in [
        (["0", "nowhere"], "`nowhere` does not exist"),
        (["0", "whole"], "`whole` is a whole run, not a shard"),
        (["0", "of3"], "`0` is shard 0/2 and `of3` is shard 1/3"),
        (["0", "0"], "`0` and `0` are both shard 0/2"),
        (["0", "same"], "request 4 is recorded twice: in `0` and in `same`"),
    ] {
        let outcome =
            fleet.session.run(&["merge", folders[0], folders[1], "--out", "out", "--force"]);
        assert_eq!(outcome.code, Some(2), "{expected}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(expected), "{expected}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("hint: "), "{}", outcome.stderr);
        assert!(!fleet.session.path("out").exists(), "{expected}: nothing is left behind");
    }
}
