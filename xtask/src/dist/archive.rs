//! Tar archives that depend on nothing but what is put in: entries in order, one instant, no owners.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

use sha2::{Digest, Sha256};

const BLOCK: usize = 512;

/// Entries by path; a folder's path ends in a slash.
#[derive(Debug, Default)]
pub(super) struct Archive(BTreeMap<String, ArchiveEntry>);

#[derive(Debug)]
struct ArchiveEntry {
    mode: u32,
    content: Vec<u8>,
}

impl Archive {
    pub(super) fn file(&mut self, path: &str, content: impl Into<Vec<u8>>) {
        self.put(path, 0o644, content.into());
    }

    pub(super) fn program(&mut self, path: &str, content: impl Into<Vec<u8>>) {
        self.put(path, 0o755, content.into());
    }

    /// A folder into which every user may write.
    pub(super) fn open_folder(&mut self, path: &str) {
        self.put(path, 0o1777, Vec::new());
    }

    fn put(&mut self, path: &str, mode: u32, content: Vec<u8>) {
        for (end, _) in path.trim_end_matches('/').match_indices('/') {
            let folder = path[..=end].to_owned();
            self.0.entry(folder).or_insert(ArchiveEntry { mode: 0o755, content: Vec::new() });
        }
        self.0.insert(path.to_owned(), ArchiveEntry { mode, content });
    }

    /// The files, for those who check what arrived.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let files = self.0.iter().filter(|(path, _)| !path.ends_with('/'));
        files.map(|(path, entry)| (path.as_str(), entry.content.as_slice()))
    }

    /// The archive below `top`, which is empty or ends in a slash, with this time on every entry.
    pub(super) fn to_tar(&self, top: &str, time: u64) -> Result<Vec<u8>, String> {
        let mut tar = Vec::new();
        if !top.is_empty() {
            tar.extend(header(top, 0o755, 0, time)?);
        }
        for (path, entry) in &self.0 {
            let path = format!("{top}{path}");
            tar.extend(header(&path, entry.mode, entry.content.len(), time)?);
            tar.extend(&entry.content);
            tar.resize(tar.len().next_multiple_of(BLOCK), 0);
        }
        tar.resize(tar.len() + 2 * BLOCK, 0);
        Ok(tar)
    }
}

/// The ustar header of an entry.
fn header(path: &str, mode: u32, size: usize, time: u64) -> Result<[u8; BLOCK], String> {
    let kind = if path.ends_with('/') { '5' } else { '0' };
    let mut header = [0; BLOCK];
    let mut put =
        |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    if path.len() > 100 {
        return Err(format!("the path `{path}` is too long for an archive"));
    }
    put(0, path);
    put(100, &format!("{mode:07o}"));
    // User and group 0.
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{size:011o}"));
    put(136, &format!("{time:011o}"));
    put(156, &format!("{kind}"));
    put(257, "ustar\x0000");
    // The sum counts its own field as spaces.
    put(148, "        ");
    let sum: u32 = header.iter().copied().map(u32::from).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    Ok(header)
}

/// Compressed, without a name or a time.
pub(super) fn gzip(content: &[u8]) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("gzip: {error}");
    let mut command = Command::new("gzip");
    command.args(["-n", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let stdin = child.stdin.take();
    thread::scope(|scope| {
        let writer = scope.spawn(|| stdin.map_or(Ok(()), |mut stdin| stdin.write_all(content)));
        let output = child.wait_with_output().map_err(failed)?;
        let written = writer.join().is_ok_and(|written| written.is_ok());
        let is_whole = written && output.status.success();
        if is_whole { Ok(output.stdout) } else { Err(format!("gzip: {}", output.status)) }
    })
}

/// SHA-256, in hexadecimal digits.
pub(super) fn sha256(content: &[u8]) -> String {
    format!("{:x}", Sha256::digest(content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn tar_lists_what_was_put_in() {
        let mut archive = Archive::default();
        archive.program("bin/x", "#!/bin/sh\n");
        archive.file("a", vec![b'a'; 512]);
        archive.open_folder("tmp/");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.tar.gz");
        let tar = archive.to_tar("top/", 1_790_000_000).unwrap();
        fs::write(&file, gzip(&tar).unwrap()).unwrap();
        let mut command = Command::new("tar");
        command.args(["--numeric-owner", "--utc", "-tvzf"]).arg(&file);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let list = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<Vec<&str>> =
            list.lines().map(|line| line.split_whitespace().collect()).collect();
        let day = ["2026-09-21", "14:13"];
        let expected = [
            ("drwxr-xr-x", "0", "top/"),
            ("-rw-r--r--", "512", "top/a"),
            ("drwxr-xr-x", "0", "top/bin/"),
            ("-rwxr-xr-x", "10", "top/bin/x"),
            ("drwxrwxrwt", "0", "top/tmp/"),
        ];
        let expected =
            expected.map(|(mode, size, path)| vec![mode, "0/0", size, day[0], day[1], path]);
        assert_eq!(lines, expected);
        assert_eq!(archive.files().map(|(path, _)| path).collect::<Vec<_>>(), ["a", "bin/x"]);
    }

    #[test]
    fn a_path_that_does_not_fit_is_refused() {
        let mut archive = Archive::default();
        archive.file(&"x".repeat(101), "");
        assert!(archive.to_tar("", 0).is_err_and(|error| error.contains("too long")));
    }

    #[test]
    fn hashes_are_those_of_the_standard() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), expected);
    }
}
