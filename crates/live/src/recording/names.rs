//! Names of files that follow each other.

use std::io;
use std::path::{Path, PathBuf};

/// Digits of a number: a million files sort by their names.
const DIGITS: usize = 6;

/// Gives each file of a recording its name.
#[derive(Debug)]
pub(super) struct FileNames {
    output: PathBuf,
    /// Whether the first file has a number, too.
    is_numbered: bool,
    /// The number of the file before.
    last: u64,
}

impl FileNames {
    /// Files that are there already keep their numbers: the first new one gets the next.
    pub(super) fn new(output: &Path, is_numbered: bool) -> io::Result<Self> {
        let folder = match output.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut last = 0;
        for entry in std::fs::read_dir(folder)? {
            let name = entry?.file_name();
            last = last.max(number_in_name(output, &name.to_string_lossy()).unwrap_or(0));
        }
        Ok(Self { output: output.to_owned(), is_numbered, last })
    }

    /// The next file. Without numbers it is the one that was named, as long as that is not there:
    /// who moves a file away before asking for a new one finds it under the old name.
    pub(super) fn next(&mut self, is_first: bool) -> PathBuf {
        if !self.is_numbered && (is_first || !self.output.exists()) {
            return self.output.clone();
        }
        self.last += 1;
        let (stem, ending) = stem_and_extension(&self.output);
        self.output.with_file_name(format!("{stem}-{:0DIGITS$}{ending}", self.last))
    }
}

/// Of `trace.jsonl`: `trace` and `.jsonl`.
fn stem_and_extension(output: &Path) -> (String, String) {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let ending = output.extension().map(|ending| format!(".{}", ending.to_string_lossy()));
    (stem, ending.unwrap_or_default())
}

/// The number in a name of ours.
fn number_in_name(output: &Path, name: &str) -> Option<u64> {
    let (stem, ending) = stem_and_extension(output);
    let digits = name.strip_prefix(&stem)?.strip_prefix('-')?.strip_suffix(&ending)?;
    let is_number = digits.len() >= DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("trace.jsonl");
        let mut names = FileNames::new(&output, true).unwrap();
        assert_eq!(names.next(true), folder.path().join("trace-000001.jsonl"));
        assert_eq!(names.next(false), folder.path().join("trace-000002.jsonl"));
        // Others' names have no number of ours.
        for name in ["trace-000041.jsonl", "trace-9.jsonl", "other-000099.jsonl", "trace-x.jsonl"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let mut names = FileNames::new(&output, true).unwrap();
        assert_eq!(names.next(true), folder.path().join("trace-000042.jsonl"));
    }

    #[test]
    fn who_moves_the_file_away_finds_the_next_under_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("trace");
        let mut names = FileNames::new(&output, false).unwrap();
        assert_eq!(names.next(true), output);
        assert_eq!(names.next(false), output);
        std::fs::write(&output, "").unwrap();
        assert_eq!(names.next(false), folder.path().join("trace-000001"));
    }
}
