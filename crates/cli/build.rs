//! Tells the program which commit and target it is built from. Outside a checkout, `GOODPUT_COMMIT`
//! and `GOODPUT_COMMIT_DATE` say so, or the facts are left out.

use std::process::Command;

fn main() {
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let commit = ["rev-parse", "--short=10", "HEAD"];
    let date = ["log", "-1", "--format=%cs"];
    say("GOODPUT_COMMIT", git(&commit));
    say("GOODPUT_COMMIT_DATE", git(&date));
    say("GOODPUT_TARGET", std::env::var("TARGET").ok());
}

/// What is set for the build goes first.
fn say(name: &str, found: Option<String>) {
    println!("cargo::rerun-if-env-changed={name}");
    let value = std::env::var(name).ok().or(found).unwrap_or_default();
    println!("cargo::rustc-env={name}={value}");
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
