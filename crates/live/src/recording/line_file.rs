//! A file of whole lines on a disk that may be full.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Bytes that wait for a disk that refuses, at most.
const MOST_WAITING: usize = 8 << 20;

/// Lines that go to a new file. What is on disk ends with a line's end, whatever happened.
#[derive(Debug)]
pub(super) struct LineFile {
    file: File,
    /// Bytes on disk: whole lines.
    length: u64,
    /// Lines that are to follow.
    waiting: Vec<u8>,
    /// Whether there may be a part of a line behind them.
    is_torn: bool,
    /// Whether the disk refused when it was asked last.
    is_refused: bool,
    /// Lines and bytes that were written to make room, and not reported yet.
    untold: (u64, u64),
}

impl LineFile {
    /// A file that was not there, which only its owner can read.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let (waiting, untold) = (Vec::new(), (0, 0));
        Ok(Self { file, length: 0, waiting, is_torn: false, is_refused: false, untold })
    }

    /// Bytes of the lines so far, on disk or not.
    pub(super) fn size(&self) -> u64 {
        self.length + self.waiting.len() as u64
    }

    /// Takes a line with its end. Where too much is waiting already the disk is to take it now;
    /// false if it does not.
    pub(super) fn push(&mut self, line: &[u8]) -> bool {
        // A disk that refused is not asked for each line.
        if !self.has_room(line) && !self.is_refused {
            let (lines, bytes, _) = self.flush();
            self.untold = (lines, bytes);
        }
        let has_room = self.has_room(line);
        if has_room {
            self.waiting.extend_from_slice(line);
        }
        has_room
    }

    fn has_room(&self, line: &[u8]) -> bool {
        self.waiting.len() + line.len() <= MOST_WAITING || self.waiting.is_empty()
    }

    /// Writes what is waiting; how many lines and bytes came to the disk, also where it refused the
    /// rest.
    pub(super) fn flush(&mut self) -> (u64, u64, io::Result<()>) {
        let (lines, bytes, outcome) = self.write();
        self.is_refused = outcome.is_err();
        let untold = std::mem::take(&mut self.untold);
        (untold.0 + lines, untold.1 + bytes, outcome)
    }

    fn write(&mut self) -> (u64, u64, io::Result<()>) {
        if let Err(error) = self.cut_partial_line() {
            return (0, 0, Err(error));
        }
        let mut written = 0;
        let outcome = loop {
            let rest = &self.waiting[written..];
            if rest.is_empty() {
                break Ok(());
            }
            match self.file.write_at(rest, self.length + written as u64) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => written += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        let whole = self.waiting[..written].iter().rposition(|byte| *byte == b'\n');
        let whole = whole.map_or(0, |end| end + 1);
        let lines = count_lines(&self.waiting[..whole]);
        self.waiting.drain(..whole);
        self.length += whole as u64;
        self.is_torn = written > whole;
        // A part of a line is taken back at once; where that fails too, before the next line.
        let _ = self.cut_partial_line();
        (lines, whole as u64, outcome)
    }

    /// Lines that never came to the disk.
    pub(super) fn unwritten(&self) -> u64 {
        count_lines(&self.waiting)
    }

    fn cut_partial_line(&mut self) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.length)?;
            self.is_torn = false;
        }
        Ok(())
    }
}

/// Ends of lines.
fn count_lines(bytes: &[u8]) -> u64 {
    bytes.split(|byte| *byte == b'\n').count() as u64 - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.jsonl");
        std::fs::write(&path, "dear").unwrap();
        assert_eq!(LineFile::create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"dear");
    }

    #[test]
    fn a_disk_that_refuses_costs_no_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.jsonl");
        let mut file = LineFile::create(&path).unwrap();
        assert!(file.push(b"one\n") && file.push(b"two\n"));
        assert!(matches!(file.flush(), (2, 8, Ok(()))));
        // A file that cannot be written to, and the same one again.
        let good = std::mem::replace(&mut file.file, File::open(&path).unwrap());
        assert!(file.push(b"three\n"));
        assert!(matches!(file.flush(), (0, 0, Err(_))));
        assert_eq!((file.unwritten(), file.size()), (1, 14));
        file.file = good;
        // As if a part of it had come to the disk.
        file.file.write_at(b"thr", 8).unwrap();
        file.is_torn = true;
        assert!(matches!(file.flush(), (1, 6, Ok(()))));
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\nthree\n");
    }

    #[test]
    fn a_torn_line_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.jsonl");
        let mut file = LineFile::create(&path).unwrap();
        file.file.write_at(b"thr", 0).unwrap();
        file.is_torn = true;
        assert!(matches!(file.flush(), (0, 0, Ok(()))));
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn what_waits_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.jsonl");
        let mut file = LineFile::create(&path).unwrap();
        let mut line = vec![b'x'; MOST_WAITING / 2];
        line[MOST_WAITING / 2 - 1] = b'\n';
        assert!(file.push(&line) && file.push(&line));
        // A disk that refuses, and the same one when it takes again.
        let good = std::mem::replace(&mut file.file, File::open(&path).unwrap());
        assert!(!file.push(b"\n"));
        assert_eq!((file.size(), file.unwritten()), (MOST_WAITING as u64, 2));
        file.file = good;
        assert!(!file.push(b"\n"));
        assert!(matches!(file.flush(), (2, _, Ok(()))));
    }

    #[test]
    fn a_disk_that_takes_what_waits_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = LineFile::create(&folder.path().join("trace.jsonl")).unwrap();
        let mut line = vec![b'x'; MOST_WAITING / 2];
        line[MOST_WAITING / 2 - 1] = b'\n';
        for _ in 0..5 {
            assert!(file.push(&line));
        }
        let all = 5 * (MOST_WAITING / 2) as u64;
        assert_eq!((file.unwritten(), file.size()), (1, all));
        // Nothing that came to the disk on the way is forgotten.
        assert!(matches!(file.flush(), (5, bytes, Ok(())) if bytes == all));
    }
}
