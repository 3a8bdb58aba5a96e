//! A short run of every target, bounded by counts, so that it is the same on every machine.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use goodput_fuzz::{Extent, Settings, repeat, run, targets};

#[test]
fn no_target_has_a_finding() {
    let mut found = Vec::new();
    for target in targets() {
        let extent = Extent::Inputs(target.short);
        let settings = Settings { seed: 1, extent, threads: 2, journals: None };
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
        let found = repeat(&goodput_fuzz::sieve(), input.as_bytes()).unwrap();
        assert!(found.as_ref().is_some_and(|found| found.contains(word)), "{input}: {found:?}");
    }
    assert_eq!(repeat(&goodput_fuzz::sieve(), b"fine").unwrap(), None);
}
