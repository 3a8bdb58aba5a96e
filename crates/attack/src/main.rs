//! `cargo xtask attack` and `cargo xtask soak`: the real binary against hostile peers and faults,
//! and over hours.

mod case;
mod faults;
mod program;
mod proxies;
mod servers;
mod soak;

use std::path::PathBuf;
use std::process::ExitCode;

use case::{Case, Skip, differences};
use program::Binary;

const USAGE: &str = "\
usage: goodput-attack attack --goodput PATH [--only TEXT] [--list]
       goodput-attack soak --goodput PATH [--hours N] [--stacks N] [--out DIR]";

#[expect(clippy::print_stderr, reason = "a developer tool talks to the terminal")]
fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.first().map(String::as_str) {
        Some("attack") => run_attack(&words[1..]),
        Some("soak") => soak::run_soak(&words[1..]),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Every case, area by area.
fn all_cases() -> Vec<Case> {
    [servers::cases(), proxies::cases(), faults::cases()].into_iter().flatten().collect()
}

/// Carries out every case that `--only` names, and prints a line for each.
#[expect(clippy::print_stdout, reason = "the table is the result")]
fn run_attack(words: &[String]) -> Result<bool, String> {
    let goodput = Binary { path: goodput_binary(words)? };
    let only = flag_value(words, "--only").unwrap_or_default();
    let cases: Vec<Case> = all_cases()
        .into_iter()
        .filter(|case| format!("{}/{}", case.area, case.name).contains(&only))
        .collect();
    if words.iter().any(|word| word == "--list") {
        for case in &cases {
            println!("{}/{}", case.area, case.name);
        }
        return Ok(true);
    }
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for case in &cases {
        let name = format!("{}/{}", case.area, case.name);
        match (case.attack)(&goodput) {
            Ok(observed) => {
                let differences = differences(&case.expected, &observed);
                let word = if differences.is_empty() { "ok" } else { "FAILED" };
                let code = observed.exit.map_or("-".to_owned(), |code| code.to_string());
                let classes: Vec<&str> = observed.classes.iter().map(String::as_str).collect();
                println!(
                    "{word:6} {name:52} exit {code:>3} {:6.2} s {:5.0} MiB  {}{}",
                    observed.seconds,
                    observed.mebibytes,
                    classes.join(" "),
                    observed.note
                );
                for difference in &differences {
                    println!("       {}", difference.escape_debug());
                }
                if differences.is_empty() { passed += 1 } else { failed += 1 }
            }
            Err(Skip::Unavailable(why)) => {
                skipped += 1;
                println!("SKIPPED {name}: {why}");
            }
            Err(Skip::Broken(why)) => {
                failed += 1;
                println!("BROKEN {name}: {}", why.escape_debug());
            }
        }
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    if cases.is_empty() {
        return Err(format!("no case has `{only}` in its name"));
    }
    Ok(failed == 0)
}

/// The binary that `--goodput` names.
fn goodput_binary(words: &[String]) -> Result<PathBuf, String> {
    let path = flag_value(words, "--goodput").ok_or(USAGE)?;
    std::fs::canonicalize(&path).map_err(|error| format!("{path}: {error}"))
}

/// The word after `flag`.
fn flag_value(words: &[String], flag: &str) -> Option<String> {
    let at = words.iter().position(|word| word == flag)?;
    words.get(at + 1).cloned()
}
