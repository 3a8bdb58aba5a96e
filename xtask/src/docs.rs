//! Pages that are made from the source, and the book.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use goodput_model::{CaveatCode, Explanation};

const INTRODUCTION: &str = "\
# Troubleshooting

Every result carries a verdict and the caveats that led to it. This page says what each caveat
means and what to do. `goodput help CODE` prints the same entry.

```
goodput report RUN
```

The message in a report has the figures of that run. `info` caveats do not change the verdict,
`warn` makes it suspect, and `void` makes it void: do not use the figures. Thresholds are in
[metrics](metrics.md#verdict), the reasons behind them in
[design 014](design/014-caveats.md).

<!-- Made by `cargo xtask docs` from crates/model/src/caveat/explanation.rs. -->
";

/// Writes the pages again.
#[expect(clippy::print_stderr, reason = "says what was written")]
pub(crate) fn write() -> Result<(), String> {
    let path = path();
    fs::write(&path, troubleshooting()).map_err(|error| format!("{}: {error}", path.display()))?;
    eprintln!("wrote {}", path.display());
    Ok(())
}

/// Whether the pages are what the source says.
pub(crate) fn check() -> Result<(), String> {
    let is_current = fs::read_to_string(path()).is_ok_and(|page| page == troubleshooting());
    if is_current {
        return Ok(());
    }
    Err("docs/troubleshooting.md is out of date; run `cargo xtask docs`".to_owned())
}

/// Builds the book where mdBook is installed.
#[expect(clippy::print_stderr, reason = "a developer tool talks to the terminal")]
pub(crate) fn book() -> Result<(), String> {
    let docs = path().parent().map(Path::to_owned).unwrap_or_default();
    match Command::new("mdbook").arg("build").arg(&docs).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("mdbook: {status}")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: mdbook is not installed; `cargo install mdbook` gets it");
            Ok(())
        }
        Err(error) => Err(format!("mdbook: {error}")),
    }
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/troubleshooting.md")
}

fn troubleshooting() -> String {
    let mut codes: Vec<_> = CaveatCode::ALL.to_vec();
    codes.sort_by_key(|code| code.name());
    let mut page = INTRODUCTION.to_owned();
    for code in codes {
        let Explanation { title, meaning, remedy } = code.explanation();
        let text = format!("**{title}.** {meaning} {remedy}");
        page.extend(["\n## ", code.name(), "\n\n", &wrapped(&text)]);
    }
    page
}

/// Lines of at most 100 columns.
fn wrapped(text: &str) -> String {
    let mut page = String::new();
    let mut columns = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if columns > 0 && columns + 1 + width > 100 {
            page.push('\n');
            columns = 0;
        } else if columns > 0 {
            page.push(' ');
            columns += 1;
        }
        page.push_str(word);
        columns += width;
    }
    page.push('\n');
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_caveat() {
        let page = troubleshooting();
        assert_eq!(page.matches("\n## ").count(), CaveatCode::ALL.len());
        assert!(page.lines().all(|line| line.chars().count() <= 100));
    }

    #[test]
    fn text_is_wrapped_between_words() {
        let text = format!("{} {}", "a".repeat(99), "b");
        assert_eq!(wrapped(&text), format!("{}\nb\n", "a".repeat(99)));
        assert_eq!(wrapped("a  b"), "a b\n");
    }
}
