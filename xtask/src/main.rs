//! Developer tasks. `cargo xtask` lists them.

mod attack;
mod bench;
mod browser;
mod dist;
mod docs;
mod exports;
mod fit;
mod fleet;
mod fuzz;
mod gates;
mod layers;
mod modules;
mod prometheus;
mod python;
mod retries;
mod running;
mod schemas;
mod sdk;
mod study;
mod suite;
mod supply;
mod tokenizers;
mod wheel;
mod words;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread;

/// Every task: name, what it does.
const TASKS: [(&str, &str); 20] = [
    ("test", "formatting, words, lints, tests, doc tests and documentation, as CI runs them"),
    (
        "bench",
        "[--seconds N] [--peers] [--only NAME]: the budgets, against a raw-epoll floor and a server of known timing",
    ),
    ("gates", "instructions on the hot path against fixed limits; needs valgrind"),
    ("fit", "[FILE.csv]: step times of a profile from measurements, with the error of each point"),
    (
        "judges",
        "check against the OpenAI client, Prometheus, a browser, table readers, Python tokenizers and mypy",
    ),
    ("browser", "only the browser of these: pages of real runs, opened from disk"),
    (
        "test-fleet",
        "fleets under a real Slurm and Ray: killed, cut off, with wrong clocks; needs root",
    ),
    ("study", "[NAME]: compute a table of the docs (takes minutes); without a name, list them"),
    (
        "fuzz",
        "[--seconds N | --hours N] [--target NAME] [--seed N] [--threads N]: every parser against mutated inputs",
    ),
    (
        "attack",
        "[--only TEXT] [--list]: hostile servers, clients, folders and faults against the real binary",
    ),
    (
        "dist",
        "[--profile NAME] [--out DIR] [--binary FILE] [--repository URL] | --formula | --check: what is published",
    ),
    (
        "soak",
        "[--hours N] [--stacks N] [--out DIR]: all long-running verbs together, checked for growth",
    ),
    ("supply", "known vulnerabilities, licenses and build scripts of dependencies"),
    ("licenses", "[FILE]: write the packages with the texts of their licenses, for distributors"),
    ("schemas", "regenerate docs/schema/ from the types that are written to files"),
    ("docs", "regenerate docs/troubleshooting.md from the list of caveats"),
    ("book", "build the documentation as a book, where mdBook is installed"),
    ("wheel", "build the wheel for PyPI with maturin and zig, for glibc 2.17"),
    ("words", "check words, line lengths, and links in code and documentation"),
    (
        "layers",
        "check that crates depend only on what ARCHITECTURE.md allows, and that modules form no cycle",
    ),
];

#[expect(clippy::print_stderr, reason = "a developer tool talks to the terminal")]
fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    let rest: Vec<String> = std::env::args().skip(2).collect();
    let outcome = match task.as_str() {
        "test" => test(),
        "attack" | "soak" => attack::run(&task, &rest),
        "bench" => build_dist().and_then(|()| bench::bench(&rest)),
        "dist" => dist::run(&rest),
        "fit" => fit::fit(&rest),
        "fuzz" => fuzz::run(&rest),
        "gates" => gates::check(),
        "judges" => programs().and_then(|goodput| judges(&goodput)),
        "browser" => programs().and_then(|goodput| browser::check(&goodput)),
        "layers" => layers::check(),
        "licenses" => dist::write_licenses(&rest),
        "supply" => supply::check(),
        "test-fleet" => programs().and_then(|goodput| fleet::check(&goodput)),
        "schemas" => schemas::write(),
        "docs" => docs::write(),
        "book" => docs::book(),
        "wheel" => wheel::build(),
        "words" => words::check(),
        "study" => study::run(rest.first().map(String::as_str)),
        _ => {
            eprintln!("usage: cargo xtask TASK");
            for (name, what) in TASKS {
                eprintln!("  {name:10} {what}");
            }
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {task}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What CI runs, cheapest first.
fn test() -> Result<(), String> {
    require("rustfmt", "rustup component add rustfmt")?;
    require("clippy-driver", "rustup component add clippy")?;
    require("valgrind", "apt-get install valgrind")?;
    cargo(&["fmt", "--all", "--check"], &[])?;
    layers::check()?;
    schemas::check()?;
    docs::check()?;
    words::check()?;
    supply::check()?;
    cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"], &[])?;
    retries::begin()?;
    let tested = suite::run(|| {
        let strict = [("RUSTDOCFLAGS", "-D warnings")];
        cargo(&["doc", "--workspace", "--no-deps", "--locked"], &strict)
    });
    let retried = retries::check();
    tested.and(retried)?;
    let goodput = programs()?;
    // Judges wait for the network; what they install is fetched while the gates are compiled.
    at_once(vec![Box::new(gates::check), Box::new(|| judges(&goodput))])
}

/// Programs of others hold the simulated engine against what they expect of a server, and our
/// tokens against theirs. One that cannot be had here is left out, and says so.
fn judges(goodput: &Path) -> Result<(), String> {
    embedding()?;
    at_once(vec![
        Box::new(|| {
            sdk::check(goodput)?;
            prometheus::check(goodput)?;
            browser::check(goodput)
        }),
        Box::new(|| {
            exports::check(goodput)?;
            wheel::check(goodput)?;
            dist::check(goodput)?;
            tokenizers::check(&target_folder().join("debug/examples/ids"))
        }),
    ])
}

/// A check that runs at the same time as others.
type Lane<'a> = Box<dyn FnOnce() -> Result<(), String> + Send + 'a>;

/// Runs them all to their ends. Fails with what each of them failed with.
fn at_once(lanes: Vec<Lane<'_>>) -> Result<(), String> {
    let failed: Vec<String> = thread::scope(|scope| {
        let running: Vec<_> = lanes.into_iter().map(|lane| scope.spawn(lane)).collect();
        let broke = |_| Err("a check panicked".to_owned());
        let ends = running.into_iter().map(|lane| lane.join().unwrap_or_else(broke));
        ends.filter_map(Result::err).collect()
    });
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// The library alone carries out a run and renders its page.
fn embedding() -> Result<(), String> {
    let example = target_folder().join("debug/examples/embed");
    let output = Command::new(&example).output().map_err(|error| format!("embed: {error}"))?;
    let page = String::from_utf8_lossy(&output.stdout);
    let is_whole = page.starts_with("p99 TTFT Some(") && page.contains("\n| ");
    if output.status.success() && is_whole { Ok(()) } else { Err(format!("embed: {output:?}")) }
}

/// Builds what is judged, and says where `goodput` is.
fn programs() -> Result<PathBuf, String> {
    // Of the whole workspace, whose features the tests were built with: a package alone is built
    // again.
    let programs = ["--bin", "goodput", "--example", "ids", "--example", "embed"];
    cargo(&[&["build", "--workspace", "--locked"][..], &programs].concat(), &[])?;
    Ok(target_folder().join("debug/goodput"))
}

/// Builds what is published, which is what the benchmark measures.
fn build_dist() -> Result<(), String> {
    let programs = ["-p", "goodput", "-p", "goodput-bench"];
    cargo(&[&["build", "--profile", "dist", "--locked"][..], &programs].concat(), &[])
}

/// A program as it is published.
fn published(program: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Path::new(&target).join("dist").join(program)
}

/// The workspace's: tests do not run in its root.
fn target_folder() -> PathBuf {
    let set = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    set.unwrap_or_else(|| {
        let own = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        own.map_or_else(|| "target".into(), |own| own.join("../target"))
    })
}

/// Asks clearly for what is missing.
fn require(program: &str, how: &str) -> Result<(), String> {
    let found = Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success());
    if found { Ok(()) } else { Err(format!("`{program}` is missing; install it with `{how}`")) }
}

#[expect(clippy::print_stderr, reason = "says which step runs")]
fn cargo(args: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    eprintln!("+ cargo {}", args.join(" "));
    let begun = goodput_clock::now();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let status = Command::new(cargo)
        .args(args)
        .envs(environment.iter().copied())
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    let seconds = (goodput_clock::now() - begun).as_secs();
    eprintln!("{seconds:6.1} s  cargo {}", args.first().unwrap_or(&""));
    if status.success() { Ok(()) } else { Err(format!("`cargo {}` failed", args.join(" "))) }
}
