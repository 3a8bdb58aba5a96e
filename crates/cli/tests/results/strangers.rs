//! Folders and files that a stranger may have made, and folders that vanish.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use goodput_clock::{now, pause};
use goodput_model::{CaveatCode, Nanos};
use serde_json::Value;

use crate::support::mock::MockProcess;
use crate::support::{Outcome, Session, outcome};

/// How long anything may take that must end at once, on a machine with much else to do.
const SOON: Nanos = Nanos::from_millis(60_000);

/// The outcome, of something that must not wait or read forever.
fn soon(session: &Session, args: &[&str]) -> Outcome {
    let mut child = session.spawn(args);
    let deadline = now() + SOON;
    while child.try_wait().unwrap().is_none() {
        if now() > deadline {
            child.kill().unwrap();
            panic!("{args:?} does not end");
        }
        pause(Nanos::from_millis(20));
    }
    let outcome = outcome(child.wait_with_output().unwrap());
    args.iter().fold(outcome, |outcome, name| outcome.with_folder(&session.path(name)))
}

/// A short run in `name`.
fn run(session: &Session, name: &str) {
    session.run_shortly("mock:ttft=2ms,itl=1ms", &[], name);
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Puts each kind of thing that is not a plain file in the place of one.
fn replacements(path: &Path, mut each: impl FnMut(&str)) {
    let whole = fs::read(path).ok();
    let _ = fs::remove_file(path);
    make_pipe(path);
    each("a pipe");
    fs::remove_file(path).unwrap();
    symlink("/dev/zero", path).unwrap();
    each("/dev/zero");
    fs::remove_file(path).unwrap();
    fs::create_dir(path).unwrap();
    each("a folder");
    fs::remove_dir(path).unwrap();
    if let Some(whole) = whole {
        fs::write(path, whole).unwrap();
    }
}

#[test]
fn a_folder_runs_no_command_by_itself() {
    let session = Session::new();
    let has = |name: &str| {
        let path = session.path(name);
        let is_there = path.exists();
        let _ = fs::remove_file(path);
        is_there
    };
    // Nothing listens there, and the command ends at once: the sweep fails, and its folder stays.
    let (serve, vary) = ("touch served-{x}", "x=1");
    let target = ["sweep", "http://127.0.0.1:1", "--rates", "4", "--no-search"];
    let more = ["--serve", serve, "--vary", vary, "--serve-timeout", "2s", "--out", "swept"];
    let first = soon(&session, &[&target[..], &more].concat());
    assert!(has("served-1"), "{}", first.stderr);
    let resume = ["sweep", "--resume", "swept", "--quiet"];
    let refused = soon(&session, &resume);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let typed = "--serve 'touch served-{x}' --vary 'x=1'";
    assert!(refused.stderr.matches(typed).count() == 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("--allow-commands"), "{}", refused.stderr);
    assert!(!has("served-1"));
    // Half of it is not enough, and another command is another sweep.
    for other in [&["--serve", serve][..], &["--serve", "touch served-1", "--vary", vary]] {
        let refused = soon(&session, &[&resume, other].concat());
        assert_eq!(refused.code, Some(2), "{other:?}: {}", refused.stderr);
        assert!(!has("served-1"), "{other:?}");
    }
    for allowed in [&["--allow-commands"][..], &["--serve", serve, "--vary", vary]] {
        let ran = soon(&session, &[&resume, allowed].concat());
        assert_eq!(ran.code, Some(3), "{allowed:?}: {}", ran.stderr);
        assert!(has("served-1"), "{allowed:?}: {}", ran.stderr);
    }

    let switch = "touch switched; exit 7";
    let target = ["compare", "a=http://127.0.0.1:1", "b=http://127.0.0.1:1", "--rate", "4"];
    let first = soon(&session, &[&target[..], &["--switch-cmd", switch, "--out", "two"]].concat());
    assert!(has("switched"), "{}", first.stderr);
    let resume = ["compare", "--resume", "two", "--quiet"];
    let refused = soon(&session, &resume);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("--switch-cmd 'touch switched; exit 7'"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--allow-commands"), "{}", refused.stderr);
    assert!(!has("switched"));
    for allowed in [&["--allow-commands"][..], &["--switch-cmd", switch]] {
        let ran = soon(&session, &[&resume, allowed].concat());
        assert_eq!(ran.code, Some(3), "{allowed:?}: {}", ran.stderr);
        assert!(has("switched"), "{allowed:?}: {}", ran.stderr);
    }
    // A plan has no place for a command.
    run(&session, "ran");
    let plan = fs::read_to_string(session.path("ran/plan.toml")).unwrap();
    for line in ["before_cmd = \"touch planned\"", "[serve]\ncommand = \"touch planned\""] {
        let bad = if line.starts_with('[') {
            format!("{plan}\n{line}\n")
        } else {
            format!("{line}\n{plan}")
        };
        fs::write(session.path("bad.toml"), bad).unwrap();
        let refused = soon(&session, &["run", "--plan", "bad.toml", "--quiet"]);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(!has("planned"));
    }
}

#[test]
fn only_plain_files_are_read() {
    let session = Session::new();
    run(&session, "ran");
    run(&session, "other");
    for name in ["plan.toml", "manifest.json", "requests.log", "server.log"] {
        replacements(&session.path("ran").join(name), |kind| {
            for args in [
                &["report", "ran"][..],
                &["audit", "ran"],
                &["report", "ran", "--format", "csv"],
                &["merge", "ran", "other", "--out", "merged"],
                &["compare", "ran", "other"],
            ] {
                let done = soon(&session, args);
                assert_eq!(done.code, Some(2), "{args:?}, {name} is {kind}: {}", done.stderr);
                assert!(done.stderr.contains("error:"), "{}", done.stderr);
                assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
            }
        });
    }
    soon(&session, &["report", "ran", "-v"]).assert_finished("as it was");
    // Paths that are typed, or stand in a plan.
    replacements(&session.path("named"), |kind| {
        for args in [
            &["run", "--plan", "named", "--quiet"][..],
            &["audit", "named"],
            &["report", "named"],
            &["compare", "named", "other"],
            &["compare", "--targets", "named", "--rate", "2"],
            &["capacity", "named", "--rps", "10"],
            &["stats", "named"],
            &[
                "run",
                "mock",
                "--dataset",
                "named",
                "--rate",
                "5",
                "--num-requests",
                "2",
                "--dry-run",
            ],
            &["run", "mock", "--trace", "named", "--dry-run"],
        ] {
            let done = soon(&session, args);
            assert_eq!(done.code, Some(2), "{args:?}, a path to {kind}: {}", done.stderr);
        }
    });
    // A file may not be longer than its kind is, however little room it takes on disk.
    for (name, limit) in [("plan.toml", "2 MiB"), ("manifest.json", "16 MiB")] {
        let path = session.path("ran").join(name);
        fs::File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        let done = soon(&session, &["report", "ran", "-v"]);
        assert_eq!(done.code, Some(2), "{}", done.stderr);
        assert!(done.stderr.contains(&format!("larger than {limit}")), "{}", done.stderr);
        fs::copy(session.path("other").join(name), path).unwrap();
    }
}

#[test]
fn numbers_come_through_a_pipe() {
    let session = Session::new();
    for text in ["1\n2\n3\n", "ms\n1\n2\n3\n"] {
        let mut stats = session.command(&["stats", "/dev/stdin", "--json"]);
        let mut child = stats
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, text.as_bytes()).unwrap();
        drop(input);
        let done = outcome(child.wait_with_output().unwrap());
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        let found: Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!(found["metric"]["n"], 3, "{found}");
    }
}

#[test]
fn a_stranger_cannot_lead_what_is_written() {
    let session = Session::new();
    run(&session, "ran");
    fs::write(session.path("mine"), "mine").unwrap();
    // Names that are written on the way.
    for name in [".summary.json.new", ".manifest.json.new", ".report.html.new"] {
        symlink(session.path("mine"), session.path("ran").join(name)).unwrap();
    }
    soon(&session, &["report", "ran", "--format", "html", "-o", "ran/report.html"])
        .assert_finished("report");
    run(&session, "again");
    let is_mine = || fs::read(session.path("mine")).unwrap() == b"mine";
    assert!(is_mine(), "a report was written into another file");
    // A sweep that goes on writes its page, its table and its list of points.
    let sweep = ["sweep", "mock:ttft=2ms,itl=1ms", "--rates", "20", "--no-search", "--quiet"];
    let short = ["--duration", "300ms", "--warmup", "0s", "--max-tokens", "4", "--out", "swept"];
    soon(&session, &[&sweep[..], &short].concat());
    for name in ["lock", "report.html", "asks.jsonl", "report.txt", "summary.json"] {
        let path = session.path("swept").join(name);
        let whole = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        symlink(session.path("mine"), &path).unwrap();
        soon(&session, &["sweep", "--resume", "swept", "--quiet"]);
        assert!(is_mine(), "{name}");
        fs::remove_file(&path).unwrap();
        fs::write(&path, whole).unwrap();
    }
}

#[test]
fn a_merge_that_was_killed_is_not_a_run_and_can_be_begun_anew() {
    let session = Session::new();
    let server = MockProcess::fast(&session, &[]);
    let url = server.url();
    for (shard, name) in [("0/2", "one"), ("1/2", "two")] {
        session.run_shortly(&url, &["--shard", shard], name);
    }
    // What is on disk when the logs are being merged.
    fs::create_dir_all(session.path("all/.merging")).unwrap();
    for name in ["plan.toml", "manifest.json", "requests.log"] {
        fs::copy(session.path("one").join(name), session.path("all/.merging").join(name)).unwrap();
    }
    let refused = soon(&session, &["report", "all"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("a merge that was not finished"), "{}", refused.stderr);
    let merged = soon(&session, &["merge", "one", "two", "--out", "all", "--json"]);
    // One shard after the other: a busy machine disturbs one of them more.
    let apart = [CaveatCode::ShardsApart, CaveatCode::ShardSick];
    merged.assert_finished_despite(&apart, "merge");
    let summary: Value = serde_json::from_str(&merged.stdout).unwrap();
    assert_eq!(summary["requests"]["scheduled"], 20);
    assert!(!session.path("all/.merging").exists());
    assert!(session.path("all/report.html").is_file());
    soon(&session, &["report", "all"]).assert_finished_despite(&apart, "report");
    let twice = soon(&session, &["merge", "one", "two", "--out", "all"]);
    assert_eq!(twice.code, Some(2), "{}", twice.stderr);
}

#[test]
fn a_folder_that_vanishes_costs_nothing() {
    for is_blocked in [false, true] {
        let session = Session::new();
        let child = session.spawn(&[
            "run",
            "mock:ttft=2ms,itl=1ms",
            "--rate",
            "40",
            "--num-requests",
            "120",
            "--max-tokens",
            "4",
            "--save-text",
            "--json",
            "--out",
            "runs/here",
        ]);
        let log = session.path("runs/here/requests.log");
        let deadline = now() + SOON;
        while fs::metadata(&log).map_or(0, |log| log.len()) < 2_000 {
            assert!(now() < deadline, "no request was recorded");
            pause(Nanos::from_millis(10));
        }
        fs::remove_dir_all(session.path("runs")).unwrap();
        if is_blocked {
            // It cannot be written again.
            fs::write(session.path("runs"), "in the way").unwrap();
        }
        let done = outcome(child.wait_with_output().unwrap());
        done.assert_finished("run");
        let summary: Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!(summary["requests"]["scheduled"], 120, "nothing that was open is lost");
        assert_eq!(summary["requests"]["ok"], 120);
        assert!(done.stderr.contains("was removed during the run"), "{}", done.stderr);
        if is_blocked {
            assert!(done.stderr.contains("cannot be written again"), "{}", done.stderr);
            continue;
        }
        let again = soon(&session, &["report", "runs/here", "--json"]);
        again.assert_finished("report");
        let again: Value = serde_json::from_str(&again.stdout).unwrap();
        assert_eq!(again["requests"], summary["requests"]);
        assert_eq!(again["metrics"], summary["metrics"]);
        assert!(session.path("runs/here/report.html").is_file());
        let texts = fs::read_to_string(session.path("runs/here/text.jsonl")).unwrap();
        assert_eq!(texts.lines().count(), 120, "texts before and after the removal");
    }
}
