//! How often tests that look at time were looked at again, over all test binaries.
//!
//! `crates/cli/tests/support/timed.rs` writes a line for each retry.

use std::path::PathBuf;

/// The most retries of one run of all tests. About 60 tests look at time and each is retried three
/// times at most; a quiet machine needs none. Where one in three has to be looked at again, either the
/// machine is too busy for what the tests say of time, or a defect shows under load and retries hide it.
const BUDGET: usize = 20;

fn file() -> PathBuf {
    super::target_folder().join("tmp/retries.log")
}

/// Forgets earlier ones.
pub(crate) fn begin() -> Result<(), String> {
    match std::fs::remove_file(file()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", file().display()))
        }
        _ => Ok(()),
    }
}

/// Says how many there were and of which tests; an error above the budget.
#[expect(clippy::print_stderr, reason = "tells the developer")]
pub(crate) fn check() -> Result<(), String> {
    let lines = std::fs::read_to_string(file()).unwrap_or_default();
    lines.lines().for_each(|line| eprintln!("retried: {line}"));
    let count = lines.lines().count();
    eprintln!("{count} retries of timing tests, {BUDGET} allowed");
    within_budget(count)
}

fn within_budget(count: usize) -> Result<(), String> {
    if count <= BUDGET {
        return Ok(());
    }
    Err(format!(
        "timing tests were retried {count} times, more than the {BUDGET} allowed: run again on an idle machine; if that does not help, the tested code has a timing problem"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn above_the_budget_the_suite_fails() {
        assert_eq!(within_budget(BUDGET), Ok(()));
        assert!(within_budget(BUDGET + 1).unwrap_err().contains("21 times"));
    }
}
