//! What a server says, kept in a file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use goodput_model::escape_control;

/// The most that is read of the end of a log.
const TAIL: u64 = 64 * 1024;

/// The most that is shown of a line.
const LINE: usize = 300;

/// Opens a log to add to it. Servers log prompts, so it is for the user alone.
pub(super) fn open_log(path: &Path) -> io::Result<File> {
    File::options().append(true).create(true).mode(0o600).open(path)
}

/// The last lines of a log from `start` on, made harmless; empty ones are left out.
pub fn last_lines(path: &Path, start: u64, n: usize) -> Vec<String> {
    let read = || -> io::Result<(bool, Vec<u8>)> {
        let mut file = File::open(path)?;
        let from = file.metadata()?.len().saturating_sub(TAIL).max(start);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes)?;
        Ok((from > start, bytes))
    };
    let Ok((is_cut, bytes)) = read() else { return Vec::new() };
    let text = String::from_utf8_lossy(&bytes);
    // The first one may have begun before.
    let lines = text.lines().skip(usize::from(is_cut)).map(visible_line);
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    lines.get(lines.len().saturating_sub(n)..).unwrap_or_default().to_vec()
}

/// A line as it would stand on a terminal: of a progress bar the last state.
fn visible_line(line: &str) -> String {
    let last = line.trim_end().rsplit('\r').next().unwrap_or_default().trim_end();
    let mut shown: String = last.chars().take(LINE).collect();
    if shown.len() < last.len() {
        shown.push('…');
    }
    escape_control(&shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(bytes: &[u8], start: u64, n: usize) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.log");
        std::fs::write(&path, bytes).unwrap();
        last_lines(&path, start, n)
    }

    #[test]
    fn the_last_lines_and_no_others() {
        assert_eq!(tail(b"a\nb\n\nc", 0, 2), ["b", "c"]);
        assert_eq!(tail(b"a\nb\nc\n", 0, 9), ["a", "b", "c"]);
        assert_eq!(tail(b"old\nnew\n", 4, 9), ["new"]);
        assert_eq!(tail(b"", 0, 9), [""; 0]);
        assert_eq!(tail(b"a\n", 100, 9), [""; 0]);
        assert_eq!(last_lines(Path::new("/nowhere/at/all"), 0, 9), [""; 0]);
    }

    #[test]
    fn they_are_harmless_and_bounded() {
        assert_eq!(
            tail(b" 1%\r 50%\r100%\r\n\x1b[2Jx\xff\n", 0, 9),
            ["100%", "\\u{1b}[2Jx\u{fffd}"]
        );
        let long = tail("ä".repeat(1000).as_bytes(), 0, 9);
        assert_eq!(long, ["ä".repeat(LINE) + "…"]);
        // A line without end, and one that began before what is read.
        let huge = tail(("x".repeat(200_000) + "\nlast\n").as_bytes(), 0, 9);
        assert_eq!(huge, ["last"]);
    }
}
