//! Files for forges and builders of images name tasks, scripts, and paths: each must be there.

use std::collections::BTreeSet;
use std::fs;

use regex::Regex;

use super::{NO_REPOSITORY, TARGETS, options, root};

const FILES: [&str; 4] =
    [".ci/run", ".github/workflows/ci.yml", ".github/workflows/release.yml", "Containerfile"];

/// All of them, without comments.
fn text() -> String {
    let read = |name: &str| fs::read_to_string(root().join(name)).unwrap();
    let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let lines = FILES.into_iter().flat_map(|name| lines(read(name)));
    let lines = lines.filter(|line| !line.trim_start().starts_with('#'));
    lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ")
}

/// What the group of a pattern finds.
fn found(pattern: &str) -> BTreeSet<String> {
    let text = text();
    let found = Regex::new(pattern).unwrap();
    found.captures_iter(&text).map(|captures| captures[1].to_owned()).collect()
}

#[test]
fn tasks_and_their_flags_exist() {
    let commands = found(r"cargo xtask ([^\n]+)");
    assert!(commands.len() >= 4, "{commands:?}");
    for command in commands {
        let words: Vec<String> =
            command.split_whitespace().map(|word| word.trim_matches('"').to_owned()).collect();
        assert!(crate::TASKS.iter().any(|(task, _)| *task == words[0]), "{command}");
        if words[0] == "dist" {
            assert!(options(&words[1..]).is_ok(), "{command}");
        }
    }
}

#[test]
fn scripts_packages_profiles_and_features_exist() {
    for script in found(r"run: (\.[\w./-]+)") {
        assert!(root().join(&script).exists(), "{script}");
    }
    let manifest: toml::Table =
        fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    for profile in found(r"(?:--profile|target/)\s?(\w+)") {
        // rustup has a profile of its own.
        let is_known = manifest["profile"].get(&profile).is_some() || profile == "minimal";
        assert!(is_known, "{profile}");
    }
    let program: toml::Table =
        fs::read_to_string(root().join("crates/cli/Cargo.toml")).unwrap().parse().unwrap();
    assert_eq!(found(r"--package (\S+)"), BTreeSet::from(["goodput".to_owned()]));
    for feature in found(r"--features (\S+)") {
        assert!(program["features"].get(&feature).is_some(), "{feature}");
    }
    let minimum = manifest["workspace"]["package"]["rust-version"].as_str().unwrap();
    for version in found(r"(?:toolchain install |rustup default |rust:)(\d[\d.]+)") {
        assert_eq!(version, minimum);
    }
    assert_eq!(found(r"target: (\S+-linux-gnu)"), TARGETS.map(str::to_owned).into());
}

#[test]
fn the_build_of_the_image_gets_what_it_reads() {
    let ignored = fs::read_to_string(root().join(".containerignore")).unwrap();
    for path in ignored.lines().filter_map(|line| line.strip_prefix('!')) {
        assert!(root().join(path).exists(), "{path}");
    }
    let is_copied = |path: &str| ignored.contains(&format!("\n!{path}\n"));
    assert!(["Cargo.toml", "Cargo.lock", "crates", "xtask"].into_iter().all(is_copied));
}

/// A project without a home must not point to another one's.
#[test]
fn no_repository_is_invented() {
    assert!(NO_REPOSITORY.starts_with("https://example.invalid/"));
    assert_eq!(found(r"(https?://\S+)"), BTreeSet::new());
}
