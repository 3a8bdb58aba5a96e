//! A log of requests or of samples: frames of `length, checksum, message` after an eight-byte mark.
//!
//! A frame is whole or it is not there: reading stops at the first one that is cut or damaged, and
//! says how many bytes it left.

use std::collections::VecDeque;
use std::fs::{self, File, Metadata};
use std::io::{self, BufReader, Read, Write};
use std::marker::PhantomData;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use goodput_files::open_inside;

use crate::Framed;

/// First bytes of every log; the last one is the version of the framing.
pub(crate) const MARK: &[u8; 8] = b"goodput\x01";

/// Most bytes kept in memory while the disk refuses them.
const BACKLOG: usize = 64 << 20;

/// Bytes that are worth a write when no reader waits.
const FLUSH_AT: usize = 1 << 18;

/// Bytes that are read at once.
pub(crate) const BUFFER: usize = 1 << 18;

/// Length and checksum before each message.
pub(crate) const FRAME_HEAD: usize = 8;

/// No frame is larger: a million chunks fit.
const FRAME_LIMIT: u32 = 64 << 20;

/// Appends records. Writing may fail (a full disk) without losing them at once: they are kept in
/// memory up to a limit, tried again, and counted when lost.
#[derive(Debug)]
pub struct LogWriter {
    file: File,
    pending: Vec<u8>,
    /// Bytes of each frame in `pending`, to say how many were lost.
    pending_frames: VecDeque<usize>,
    /// Frames in the file, whole ones.
    written: u64,
    lost: u64,
    last_error: Option<String>,
}

impl LogWriter {
    /// A new log; a file that is there already is not touched.
    pub fn create(path: &Path) -> io::Result<Self> {
        // Read as well: what is open stays readable when its name is gone.
        Self::from_empty_file(File::options().read(true).write(true).create_new(true).open(path)?)
    }

    /// The file once more, to read it whatever becomes of its name.
    pub(crate) fn log_file(&self) -> io::Result<LogFile> {
        Ok(LogFile(Arc::new(self.file.try_clone()?)))
    }

    /// A new log in an empty file.
    pub(crate) fn from_empty_file(mut file: File) -> io::Result<Self> {
        file.write_all(MARK)?;
        Ok(Self {
            file,
            pending: Vec::new(),
            pending_frames: VecDeque::new(),
            written: 0,
            lost: 0,
            last_error: None,
        })
    }

    /// Takes a record; it is on its way to the disk after the next [`LogWriter::flush`].
    pub fn append(&mut self, record: &impl Framed) {
        if self.pending.len() > BACKLOG {
            self.lost += 1;
            return;
        }
        self.append_message(&record.encode());
    }

    /// Takes a message as it stands.
    pub(crate) fn append_message(&mut self, message: &[u8]) {
        // A reader would stop at it and lose what follows.
        if message.len() > FRAME_LIMIT as usize {
            self.lost += 1;
            return;
        }
        self.pending.extend_from_slice(&(message.len() as u32).to_le_bytes());
        self.pending.extend_from_slice(&crc32fast::hash(message).to_le_bytes());
        self.pending.extend_from_slice(message);
        self.pending_frames.push_back(message.len() + FRAME_HEAD);
    }

    /// Hands everything to the system, which keeps it even if this process is killed.
    pub fn flush(&mut self) {
        while !self.pending.is_empty() {
            match self.file.write(&self.pending) {
                Ok(written) => self.drop_written(written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.last_error = Some(error.to_string());
                    return;
                }
            }
        }
    }

    /// Writes once there is enough of it, to keep memory small.
    pub(crate) fn flush_if_many(&mut self) {
        if self.pending.len() > FLUSH_AT {
            self.flush();
        }
    }

    /// Takes bytes that have been written from what is pending.
    fn drop_written(&mut self, mut bytes: usize) {
        self.pending.drain(..bytes);
        while let Some(first) = self.pending_frames.front_mut() {
            if *first > bytes {
                *first -= bytes;
                return;
            }
            bytes -= *first;
            self.pending_frames.pop_front();
            self.written += 1;
        }
    }

    /// Records that were given up.
    pub(crate) fn lost_records(&self) -> u64 {
        self.lost
    }

    /// What the disk said when it last refused something.
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// Ends the log. What the disk still refuses is returned, for a report that lacks nothing.
    pub fn finish(mut self) -> Unwritten {
        self.flush();
        if let Err(error) = self.file.sync_all() {
            self.last_error = Some(error.to_string());
        }
        self.into_unwritten()
    }

    /// Ends it without waiting for the disk.
    pub(crate) fn into_unwritten(self) -> Unwritten {
        Unwritten {
            bytes: self.pending,
            frames: self.pending_frames.len() as u64,
            written: self.written,
            lost: self.lost,
            error: self.last_error,
        }
    }
}

/// What did not reach the disk.
#[derive(Debug, Default, Clone)]
pub struct Unwritten {
    /// Frames that could not be written, beginning where the file ends.
    pub bytes: Vec<u8>,
    /// How many they are.
    pub frames: u64,
    /// Frames that did.
    pub written: u64,
    /// Records that were given up for lack of memory.
    pub lost: u64,
    /// The latest error of the disk.
    pub error: Option<String>,
}

/// The file of a log that this process writes.
#[derive(Debug, Clone)]
pub(crate) struct LogFile(Arc<File>);

impl LogFile {
    pub(crate) fn new(file: Arc<File>) -> Self {
        Self(file)
    }

    /// Its bytes from the first. Where its writer stands does not matter.
    pub(crate) fn bytes(&self) -> impl Read + Send + use<> {
        FromStart { file: Arc::clone(&self.0), at: 0 }
    }

    /// Whether this path still leads to it.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        let same = |a: &Metadata, b: &Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
        let found = self.0.metadata().ok().zip(fs::symlink_metadata(path).ok());
        found.is_some_and(|(own, named)| same(&own, &named))
    }
}

/// Reads a file at a place of its own.
struct FromStart {
    file: Arc<File>,
    at: u64,
}

impl Read for FromStart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Reads a log of `T` from its beginning.
pub struct LogReader<T> {
    input: Box<dyn Read + Send>,
    /// The message read last.
    message: Vec<u8>,
    damaged: Arc<AtomicBool>,
    kind: PhantomData<fn() -> T>,
}

impl<T: Framed> LogReader<T> {
    /// Opens a log; `unwritten` are frames that follow it.
    pub fn open(path: &Path, unwritten: Vec<u8>) -> io::Result<Self> {
        Self::from_file(open_inside(path)?, unwritten)
    }

    /// Reads a file that stands at its beginning.
    pub(crate) fn from_file(
        file: impl Read + Send + 'static,
        unwritten: Vec<u8>,
    ) -> io::Result<Self> {
        Self::with_buffer(file, unwritten, BUFFER)
    }

    /// The same with a buffer of this many bytes.
    pub(crate) fn with_buffer(
        mut file: impl Read + Send + 'static,
        unwritten: Vec<u8>,
        bytes: usize,
    ) -> io::Result<Self> {
        let mut mark = [0; MARK.len()];
        // A log that was cut within its mark is an empty one.
        let is_empty = file.read_exact(&mut mark).is_err();
        if !is_empty && &mark != MARK {
            let message = if mark.starts_with(b"goodput") {
                "written by a newer version of goodput"
            } else {
                "not a goodput log"
            };
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let input = BufReader::with_capacity(bytes, file).chain(io::Cursor::new(unwritten));
        let (message, damaged) = (Vec::new(), Arc::default());
        Ok(Self { input: Box::new(input), message, damaged, kind: PhantomData })
    }

    /// Whether reading ended at a damaged or cut frame rather than at the end.
    pub fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Acquire)
    }

    /// The same for later, after another reader has read it to its end.
    pub fn damage(&self) -> Damage {
        Damage(Arc::clone(&self.damaged))
    }

    /// The same records, read by a thread of its own while the caller works on those before; by the
    /// caller where there can be no thread.
    pub fn read_ahead(self) -> impl Iterator<Item = T>
    where
        T: Send + 'static,
    {
        Ahead::new(self)
    }
}

/// The next frame, and how many bytes it takes; none at the end. Its message is left in `message`.
pub(crate) fn read_frame<T: Framed>(
    input: &mut dyn Read,
    message: &mut Vec<u8>,
) -> io::Result<Option<(T, u64)>> {
    let mut head = [0; FRAME_HEAD];
    let mut filled = 0;
    while filled < head.len() {
        match input.read(&mut head[filled..])? {
            0 if filled == 0 => return Ok(None),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => filled += n,
        }
    }
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (length, checksum) = (word(0), word(4));
    // A disk that lost power may leave zeros, which would pass as empty frames.
    if length == 0 || length > FRAME_LIMIT {
        return Err(io::ErrorKind::InvalidData.into());
    }
    message.clear();
    input.take(u64::from(length)).read_to_end(message)?;
    if message.len() != length as usize || crc32fast::hash(message) != checksum {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(Some((T::decode(message)?, FRAME_HEAD as u64 + u64::from(length))))
}

impl<T: Framed> Iterator for LogReader<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if self.is_damaged() {
            return None;
        }
        let frame = read_frame(&mut *self.input, &mut self.message).unwrap_or_else(|_| {
            self.damaged.store(true, Ordering::Release);
            None
        });
        frame.map(|(record, _)| record)
    }
}

/// Whether a log turned out to be damaged.
#[derive(Debug, Clone)]
pub struct Damage(Arc<AtomicBool>);

impl Damage {
    /// Whether reading ended at a damaged or cut frame, so far.
    pub fn is_found(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Records that are handed over together, and how many such parts may wait.
const PART: usize = 64;
const PARTS: usize = 4;

/// Reads a log ahead of who asks.
enum Ahead<T> {
    Thread { parts: Receiver<Vec<T>>, current: std::vec::IntoIter<T> },
    Caller(LogReader<T>),
}

impl<T: Framed + Send + 'static> Ahead<T> {
    fn new(reader: LogReader<T>) -> Self {
        let (sender, parts) = mpsc::sync_channel(PARTS);
        // Handed over by a channel, so that it is not lost where there can be no thread.
        let (give, take) = mpsc::channel::<LogReader<T>>();
        let read = move || {
            let Ok(mut reader) = take.recv() else { return };
            loop {
                let part: Vec<T> = reader.by_ref().take(PART).collect();
                // Who asks may have had enough.
                if part.is_empty() || sender.send(part).is_err() {
                    return;
                }
            }
        };
        match thread::Builder::new().name("log".to_owned()).spawn(read) {
            Ok(_) => {
                let _ = give.send(reader);
                Self::Thread { parts, current: Vec::new().into_iter() }
            }
            Err(_) => Self::Caller(reader),
        }
    }
}

impl<T: Framed> Iterator for Ahead<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match self {
            Self::Caller(reader) => reader.next(),
            Self::Thread { parts, current } => loop {
                if let Some(record) = current.next() {
                    return Some(record);
                }
                *current = parts.recv().ok()?.into_iter();
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::{Nanos, RequestRecord};

    use super::*;
    use crate::frame::tests::record;

    fn written(records: u64) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("requests.log");
        let mut log = LogWriter::create(&path).unwrap();
        for index in 0..records {
            // Numbers of one width, so that all frames have one size.
            log.append(&record(index + 1, Nanos(1000 + index), &[1, 2, 3]));
        }
        assert_eq!(log.finish().frames, 0);
        (folder, path)
    }

    fn indexes(path: &Path) -> (Vec<u64>, bool) {
        let mut reader = LogReader::<RequestRecord>::open(path, Vec::new()).unwrap();
        let indexes = reader.by_ref().map(|record| record.index).collect();
        (indexes, reader.is_damaged())
    }

    #[test]
    fn read_ahead_are_the_same_records() {
        // More than one part, and a last one that is not full.
        let (_folder, path) = written(1_000);
        let read = || LogReader::<RequestRecord>::open(&path, Vec::new()).unwrap();
        assert!(read().read_ahead().eq(read()));
        assert_eq!(Ahead::Caller(read()).count(), 1_000);
        fs::write(&path, &fs::read(&path).unwrap()[..5_000]).unwrap();
        let cut = read();
        let damage = cut.damage();
        assert!(!damage.is_found() && cut.read_ahead().count() > 10 && damage.is_found());
        // Who stops early leaves no thread waiting.
        assert_eq!(read().read_ahead().take(3).count(), 3);
    }

    #[test]
    fn a_log_cut_anywhere_keeps_every_whole_frame() {
        let (_folder, path) = written(3);
        let whole = fs::read(&path).unwrap();
        let frame = (whole.len() - MARK.len()) / 3;
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let frames = cut.saturating_sub(MARK.len()) / frame;
            let (kept, damaged) = indexes(&path);
            assert_eq!(kept, (1..=frames as u64).collect::<Vec<_>>(), "cut at {cut}");
            assert_eq!(damaged, cut > MARK.len() && !(cut - MARK.len()).is_multiple_of(frame));
        }
    }

    #[test]
    fn a_flipped_bit_is_noticed() {
        let (_folder, path) = written(3);
        let mut bytes = fs::read(&path).unwrap();
        let last = bytes.len() - 2;
        bytes[last] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert_eq!(indexes(&path), (vec![1, 2], true));
    }

    #[test]
    fn zeros_at_the_end_are_damage() {
        let (_folder, path) = written(2);
        let mut bytes = fs::read(&path).unwrap();
        bytes.extend([0; 1000]);
        fs::write(&path, bytes).unwrap();
        assert_eq!(indexes(&path), (vec![1, 2], true));
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, b"something else").unwrap();
        assert!(LogReader::<RequestRecord>::open(&path, Vec::new()).is_err());
    }

    #[test]
    fn a_frame_counts_as_unwritten_until_its_last_byte() {
        let (_folder, path) = written(0);
        fs::remove_file(&path).unwrap();
        let mut log = LogWriter::create(&path).unwrap();
        for index in 1..4 {
            log.append(&record(index, Nanos(1), &[]));
        }
        let frame = log.pending.len() / 3;
        for (bytes, left) in [(frame - 1, 3), (1, 2), (frame + 3, 1), (frame - 3, 0)] {
            log.drop_written(bytes);
            assert_eq!(log.pending_frames.len(), left);
        }
    }

    #[test]
    fn a_full_disk_loses_nothing_that_fits_in_memory() {
        // `/dev/full` refuses every write.
        let file = File::options().write(true).open("/dev/full").unwrap();
        let mut log = LogWriter {
            file,
            pending: Vec::new(),
            pending_frames: VecDeque::new(),
            written: 0,
            lost: 0,
            last_error: None,
        };
        log.append(&record(0, Nanos(1), &[]));
        log.flush();
        log.append(&record(1, Nanos(2), &[]));
        let unwritten = log.finish();
        assert_eq!((unwritten.frames, unwritten.lost), (2, 0));
        assert!(unwritten.error.is_some());
        let (_folder, path) = written(0);
        let kept: Vec<_> = LogReader::open(&path, unwritten.bytes)
            .unwrap()
            .map(|r: RequestRecord| r.index)
            .collect();
        assert_eq!(kept, [0, 1]);
    }
}
