//! Tells the program which commit and target it is built from. Outside a checkout, `GOODPUT_COMMIT`
//! and `GOODPUT_COMMIT_DATE` (or `SOURCE_DATE_EPOCH`) say so, or the facts are left out.

use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use humantime::format_rfc3339_seconds;

fn main() {
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let commit = ["rev-parse", "--short=10", "HEAD"];
    let date = ["log", "-1", "--format=%cs"];
    say("GOODPUT_COMMIT", git(&commit));
    say("GOODPUT_COMMIT_DATE", source_date().or_else(|| git(&date)));
    say("GOODPUT_TARGET", std::env::var("TARGET").ok());
}

/// What is set for the build goes first.
fn say(name: &str, found: Option<String>) {
    println!("cargo::rerun-if-env-changed={name}");
    let value = std::env::var(name).ok().or(found).unwrap_or_default();
    println!("cargo::rustc-env={name}={value}");
}

/// The day that builders state for all files of a build (reproducible-builds.org).
fn source_date() -> Option<String> {
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let seconds: u32 = std::env::var("SOURCE_DATE_EPOCH").ok()?.parse().ok()?;
    let instant = UNIX_EPOCH + Duration::from_secs(seconds.into());
    format_rfc3339_seconds(instant).to_string().get(..10).map(str::to_owned)
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
