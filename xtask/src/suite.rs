//! The test programs, in lanes that run at the same time: end-to-end tests wait more than they work.
//! One lane is the slowest program, one has the other programs that look at time. The third has the
//! lowest priority: all other programs, and what else there is to check.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

/// Packages whose tests wait for sockets, clocks, or other processes. What the tests of all others say
/// does not depend on when they run.
const ABOUT_TIME: [&str; 13] = [
    "goodput",
    "goodput-clock",
    "goodput-engine",
    "goodput-fleet",
    "goodput-http",
    "goodput-lab",
    "goodput-live",
    "goodput-mock",
    "goodput-monitor",
    "goodput-observe",
    "goodput-truth",
    "goodput-ui",
    "goodput-wire",
];

/// One program with tests.
#[derive(Debug, PartialEq, Eq)]
struct TestProgram {
    package: String,
    target: String,
    path: PathBuf,
    /// Where Cargo starts it: the folder of its package.
    folder: PathBuf,
}

/// The program that takes longest: package and target.
const SLOWEST: (&str, &str) = ("goodput", "measuring");

/// Builds every test program of the workspace and runs it, then `checks` at the lowest priority.
/// Fails with all that failed, after everything has run.
pub(crate) fn run(checks: impl FnOnce() -> Result<(), String> + Send) -> Result<(), String> {
    let programs = build()?;
    let (about_time, others): (Vec<_>, Vec<_>) =
        programs.into_iter().partition(|program| ABOUT_TIME.contains(&program.package.as_str()));
    let is_slowest = |one: &TestProgram| (&*one.package, &*one.target) == SLOWEST;
    let (slowest, about_time): (Vec<_>, Vec<_>) = about_time.into_iter().partition(is_slowest);
    let failed: Vec<String> = thread::scope(|scope| {
        let background = scope.spawn(|| {
            let mut failed = yield_to_others().err().into_iter().collect::<Vec<_>>();
            failed.extend(run_all(&others));
            failed.extend(checks().err());
            failed
        });
        let lanes =
            [scope.spawn(|| run_all(&slowest)), scope.spawn(|| run_all(&about_time)), background];
        let gone = |_| vec!["the runner".to_owned()];
        lanes.into_iter().flat_map(|lane| lane.join().unwrap_or_else(gone)).collect()
    });
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// Gives this thread, and every program that it starts, the lowest priority.
fn yield_to_others() -> Result<(), String> {
    rustix::process::nice(19)
        .map(drop)
        .map_err(|error| format!("cannot lower the priority: {error}"))
}

fn build() -> Result<Vec<TestProgram>, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let words = ["test", "--workspace", "--locked", "--no-run", "--message-format"];
    let output = Command::new(cargo)
        .args(words)
        .arg("json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err("the tests do not build".to_owned());
    }
    let programs = programs(&String::from_utf8_lossy(&output.stdout));
    let packages: BTreeSet<&str> = programs.iter().map(|one| one.package.as_str()).collect();
    match ABOUT_TIME.iter().find(|name| !packages.contains(*name)) {
        Some(gone) => Err(format!("xtask/src/suite.rs names `{gone}`, which has no tests")),
        None => Ok(programs),
    }
}

/// The test programs in Cargo's messages.
fn programs(messages: &str) -> Vec<TestProgram> {
    let of = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        message["profile"]["test"].as_bool().filter(|is_test| *is_test)?;
        let folder = PathBuf::from(message["manifest_path"].as_str()?).parent()?.to_owned();
        let id = message["package_id"].as_str()?;
        // `path+file:///folder/crates/cli#goodput@0.1.0`, or `…/crates/name#0.1.0`.
        let (place, name) = id.rsplit_once('#')?;
        let package = match name.split_once('@') {
            Some((name, _)) => name,
            None => place.rsplit('/').next()?,
        };
        Some(TestProgram {
            package: package.to_owned(),
            target: message["target"]["name"].as_str()?.to_owned(),
            path: message["executable"].as_str()?.into(),
            folder,
        })
    };
    messages.lines().filter_map(of).collect()
}

/// Runs one after another, and returns the names of those that failed.
fn run_all(programs: &[TestProgram]) -> Vec<String> {
    programs.iter().filter_map(|program| run_one(program).err()).collect()
}

#[expect(clippy::print_stdout, reason = "the results of the tests")]
fn run_one(program: &TestProgram) -> Result<(), String> {
    let name = format!("{} {}", program.package, program.target);
    let begun = goodput_clock::now();
    let output = Command::new(&program.path)
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env("RUST_TEST_THREADS", "4")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{name} ({error})"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let seconds = (goodput_clock::now() - begun).as_secs();
    if output.status.success() {
        let result = text.lines().rfind(|line| line.starts_with("test result:"));
        println!("{seconds:6.1} s  {name}: {}", result.unwrap_or("no tests"));
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    println!("{seconds:6.1} s  {name}: FAILED, {}\n{text}{errors}", output.status);
    Err(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_told_from_other_artifacts() {
        let message = |id: &str, is_test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"{id}","manifest_path":"/p/x/Cargo.toml","target":{{"name":"short"}},"profile":{{"test":{is_test}}},"executable":"/t/short-1"}}"#
            )
        };
        let lines = [
            message("path+file:///p/cli#goodput@0.1.0", true),
            message("path+file:///p/xtask#0.1.0", true),
            message("path+file:///p/xtask#0.1.0", false),
            "a line of a build script".to_owned(),
        ];
        let program = |package: &str| TestProgram {
            package: package.to_owned(),
            target: "short".to_owned(),
            path: "/t/short-1".into(),
            folder: "/p/x".into(),
        };
        assert_eq!(programs(&lines.join("\n")), [program("goodput"), program("xtask")]);
    }
}
