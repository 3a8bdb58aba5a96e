//! `cargo xtask gates`: instructions on the hot path, counted by valgrind, against fixed limits.
//!
//! Instructions do not depend on how busy the machine is, so a gate can fail a test run where a
//! stopwatch could not. Each case runs twice with different repetitions; the difference leaves out
//! the start of the process.

use std::process::Command;

/// Case of `goodput-hot`, and how many instructions one repetition may take: what it took when the
/// limit was set, and a fifth more, because memory functions differ between processors. A change that
/// needs more says so by changing its limit.
const GATES: [(&str, u64); 4] =
    [("sse", 278), ("chunked", 250), ("chunk", 867), ("append", 31_200)];

const FEW: u64 = 1_000;
const MANY: u64 = 3_000;

/// Builds the program, counts every case, and fails with those above their limits.
#[expect(clippy::print_stdout, reason = "its result")]
pub(crate) fn check() -> Result<(), String> {
    crate::require("valgrind", "apt-get install valgrind")?;
    // What is published: other profiles inline less.
    let program = ["-p", "goodput-bench", "--bin", "goodput-hot"];
    crate::cargo(&[&["build", "--profile", "dist", "--locked"][..], &program].concat(), &[])?;
    println!("instructions per repetition, measured / limit");
    let mut failed = Vec::new();
    for (case, limit) in GATES {
        let each = (count(case, MANY)?.saturating_sub(count(case, FEW)?)) / (MANY - FEW);
        println!("  {case:8} {each:7} / {limit:7}");
        if each > limit {
            failed.push(case);
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    let failed = failed.join(", ");
    Err(format!(
        "{failed}: more instructions than the limit in xtask/src/gates.rs\n\
         hint: see where they went with `valgrind --tool=callgrind {} CASE {MANY}`",
        crate::published("goodput-hot").display()
    ))
}

/// Instructions of a whole run.
fn count(case: &str, repetitions: u64) -> Result<u64, String> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(crate::published("goodput-hot"))
        .args([case, &repetitions.to_string()])
        .output()
        .map_err(|error| format!("cannot run valgrind: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let counted = collected(&said).filter(|_| output.status.success());
    counted.ok_or_else(|| format!("valgrind did not count `{case}`:\n{said}"))
}

/// The number in `==1== Collected : 123`.
fn collected(said: &str) -> Option<u64> {
    let (_, after) = said.rsplit_once("Collected :")?;
    after.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found() {
        assert_eq!(collected("==7== Events    : Ir\n==7== Collected : 4211\n==7==\n"), Some(4211));
        assert_eq!(collected("==7== Illegal instruction\n"), None);
    }
}
