//! A short run of every target, bounded by counts, so that it is the same on every machine.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;

use goodput_fuzz::{Extent, FuzzSettings, all_targets, repeat_input, run};

#[test]
fn no_target_has_a_finding() {
    let mut found = Vec::new();
    for target in all_targets() {
        let extent = Extent::Inputs(target.short);
        let settings = FuzzSettings { seed: 1, extent, threads: 2, journals: None };
        let outcome = run(&target, &settings).unwrap();
        assert_eq!(outcome.inputs, target.short, "{}", target.name);
        let (first, name) = (outcome.findings.first(), target.name);
        found.extend(first.map(|f| format!("--target {name} --index {}: {}", f.index, f.what)));
    }
    assert_eq!(found, Vec::<String>::new(), "repeat with `cargo xtask fuzz`");
}

/// A panic, a broken property, too many bytes and too much time are all found: what finds nothing
/// must be able to.
#[test]
fn what_goes_wrong_is_found() {
    for (input, word) in [
        ("panic", "panicked at"),
        ("overflow", "overflow"),
        ("property", "a property"),
        ("memory", "it held"),
        ("time", "it took"),
    ] {
        let found = repeat_input(&goodput_fuzz::sieve_target(), input.as_bytes()).unwrap();
        assert!(found.as_ref().is_some_and(|found| found.contains(word)), "{input}: {found:?}");
    }
    assert_eq!(repeat_input(&goodput_fuzz::sieve_target(), b"fine").unwrap(), None);
}

/// The program says so, saves each input, and survives one that ends its process.
#[test]
fn findings_are_saved_and_repeated() {
    let folder = std::env::temp_dir().join(format!("goodput-fuzz-findings-{}", std::process::id()));
    let fuzz = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_goodput-fuzz"));
        let output = command.args(["--target", "sieve"]).args(words).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let out = folder.to_str().unwrap();
    let (code, said) = fuzz(&["--inputs", "5", "--threads", "1", "--out", out]);
    assert_eq!((code, said.matches("repeat: ").count()), (Some(1), 5), "{said}");
    let input = folder.join("sieve-1-2");
    let (code, said) = fuzz(&["--input", input.to_str().unwrap()]);
    assert_eq!((code, said.as_str()), (Some(1), "sieve: a property\n"));
    let (code, said) = fuzz(&["--inputs", "6", "--threads", "1", "--out", out]);
    let saved = std::fs::read(folder.join("sieve-1-5"));
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("it crashes its process"), "{said}");
    assert_eq!(saved.unwrap(), b"stack");
}
