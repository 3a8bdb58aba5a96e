//! Following a log that another process writes.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::marker::PhantomData;

use crate::Framed;
use crate::log::{FRAME_HEAD, MARK, read_frame};

/// The end of a log of `T` that grows. Only whole frames are taken; a cut one is looked at again.
#[derive(Debug)]
pub struct LogTail<T> {
    file: File,
    /// Where the next frame begins.
    at: u64,
    kind: PhantomData<T>,
}

impl<T: Framed> LogTail<T> {
    /// From the beginning of a log.
    pub fn new(file: File) -> Self {
        Self { file, at: MARK.len() as u64, kind: PhantomData }
    }

    /// Passes over frames, without looking into them, until at most this many bytes are left; over at
    /// most `frames` at once. How many it passed over: none once it is there.
    pub fn skip(&mut self, left: u64, frames: usize) -> io::Result<usize> {
        let end = self.file.metadata()?.len();
        let mut input = BufReader::new(&self.file);
        input.seek(SeekFrom::Start(self.at))?;
        for passed in 0..frames {
            if end.saturating_sub(self.at) <= left {
                return Ok(passed);
            }
            let mut head = [0; FRAME_HEAD];
            input.read_exact(&mut head)?;
            let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
            let to = self.at + FRAME_HEAD as u64 + u64::from(length);
            if length == 0 || to > end {
                return Ok(passed);
            }
            input.seek_relative(i64::from(length))?;
            self.at = to;
        }
        Ok(frames)
    }

    /// The frames that have come since, at most this many and about this many bytes.
    pub fn read(&mut self, frames: usize, bytes: u64) -> io::Result<Vec<T>> {
        let (mut found, mut message, from) = (Vec::new(), Vec::new(), self.at);
        self.file.seek(SeekFrom::Start(from))?;
        let mut input = BufReader::new(&self.file);
        while found.len() < frames && self.at - from < bytes {
            // What is cut now may be whole at the next look; what is damaged stays so.
            let Ok(Some((record, length))) = read_frame(&mut input, &mut message) else { break };
            self.at += length;
            found.push(record);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use goodput_model::{Nanos, RequestRecord};

    use super::*;
    use crate::LogWriter;
    use crate::frame::tests::record;

    #[test]
    fn frames_are_taken_once_they_are_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (path, grows) = (folder.path().join("whole"), folder.path().join("grows"));
        let mut log = LogWriter::create(&path).unwrap();
        for index in 1..=5 {
            log.append(&record(index, Nanos(1000 + index), &[1, 2, 3]));
        }
        log.finish();
        let bytes = fs::read(&path).unwrap();
        let frame = (bytes.len() - MARK.len()) as u64 / 5;
        let mut file = File::create(&grows).unwrap();
        let mut tail = LogTail::<RequestRecord>::new(File::open(&grows).unwrap());
        let mut seen = Vec::new();
        // Byte by byte: each frame is seen with its last byte, and once.
        for (count, byte) in bytes.iter().enumerate() {
            file.write_all(&[*byte]).unwrap();
            seen.extend(tail.read(10, u64::MAX).unwrap().into_iter().map(|record| record.index));
            let whole = (count as u64 + 1).saturating_sub(MARK.len() as u64) / frame;
            assert_eq!(seen.len() as u64, whole, "after {} bytes", count + 1);
        }
        assert_eq!(seen, [1, 2, 3, 4, 5]);
        // In steps, and from near the end.
        let mut tail = LogTail::<RequestRecord>::new(File::open(&grows).unwrap());
        assert_eq!(tail.read(2, u64::MAX).unwrap().len(), 2);
        assert_eq!(tail.read(10, 1).unwrap().len(), 1);
        let mut tail = LogTail::<RequestRecord>::new(File::open(&grows).unwrap());
        assert_eq!(tail.skip(2 * frame, 1).unwrap(), 1);
        assert_eq!(tail.skip(2 * frame, 100).unwrap(), 2);
        assert_eq!(tail.skip(2 * frame, 100).unwrap(), 0);
        let rest: Vec<u64> = tail.read(10, u64::MAX).unwrap().iter().map(|r| r.index).collect();
        assert_eq!(rest, [4, 5]);
    }
}
