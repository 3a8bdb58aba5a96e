//! Logs of several clients as one, in the order in which their records ended.
//!
//! A record stays as it is, byte for byte, but for the number of its worker: what of it this version
//! does not know is kept too. One record of each log is in memory at a time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use goodput_files::open_inside;
use goodput_model::{HealthSample, HostSample, Nanos};
use prost::Message;

use crate::Framed;
use crate::error::FolderError;
use crate::folder::{Logs, RunFolder, private_file_options};
use crate::frame::Frame;
use crate::judgement::JudgementLog;
use crate::layout::{JUDGEMENTS, LOG, SAMPLES, TEXT};
use crate::log::{BUFFER, LogReader, LogWriter, Unwritten};

/// Bytes for the buffers of all logs, however many there are, and for one at least.
const BUFFERS: usize = 64 << 20;
const SMALLEST: usize = 1 << 13;

/// The folder of one client.
#[derive(Debug)]
pub struct MergePart<'a> {
    /// Where its logs are.
    pub folder: &'a RunFolder,
    /// What is added to the numbers of its workers, so that no two clients share one.
    pub first_worker: u32,
    /// Whether what it saw of the server is kept: all clients look at the same one.
    pub sees_server: bool,
}

/// What was found in the log of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Merged {
    /// Its records.
    pub records: u64,
    /// When the last of them ended.
    pub last_end: Nanos,
    /// Whether the log ends in a damaged or cut frame.
    pub is_damaged: bool,
}

/// Why logs cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A folder cannot be read, or the new one not be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Two records of one request.
    #[error("request {index} is recorded twice: in `{first}` and in `{second}`", first = first.display(), second = second.display())]
    Twice {
        /// Its number in the plan.
        index: u64,
        /// The folder that had it first.
        first: PathBuf,
        /// The other, or the same.
        second: PathBuf,
    },
}

/// A record as it stands, and the little that must be known of it.
struct Raw {
    index: u64,
    worker: u32,
    ended: Nanos,
    message: Vec<u8>,
}

/// The field that is written again: of a field that comes twice, the last one counts.
#[derive(Clone, PartialEq, Message)]
struct WorkerField {
    #[prost(uint32, tag = "3")]
    worker: u32,
}

impl Framed for Raw {
    fn encode(&self) -> Vec<u8> {
        self.message.clone()
    }

    fn decode(message: &[u8]) -> io::Result<Self> {
        // All of it: a record that cannot be read later would end the merged log.
        let (index, worker, ended) = Frame::decode(message).map_err(io::Error::other)?.record_key();
        Ok(Self { index, worker, ended, message: message.to_vec() })
    }
}

/// Something that ended, or was seen, at an instant.
trait Timed {
    fn instant(&self) -> Nanos;
}

impl Timed for Raw {
    fn instant(&self) -> Nanos {
        self.ended
    }
}

impl Timed for HealthSample {
    fn instant(&self) -> Nanos {
        self.at
    }
}

/// Several logs as one: always the earliest of those that are next. Each log keeps its own order.
struct Woven<T> {
    logs: Vec<Option<LogReader<T>>>,
    waiting: Vec<Option<T>>,
    next: BinaryHeap<Reverse<(Nanos, usize)>>,
}

impl<T: Framed + Timed> Woven<T> {
    fn new(logs: Vec<Option<LogReader<T>>>) -> Self {
        let waiting = logs.iter().map(|_| None).collect();
        let mut woven = Self { logs, waiting, next: BinaryHeap::new() };
        (0..woven.logs.len()).for_each(|place| woven.read_next(place));
        woven
    }

    fn read_next(&mut self, place: usize) {
        let Some(item) = self.logs[place].as_mut().and_then(Iterator::next) else { return };
        self.next.push(Reverse((item.instant(), place)));
        self.waiting[place] = Some(item);
    }

    fn is_damaged(&self, place: usize) -> bool {
        self.logs[place].as_ref().is_some_and(LogReader::is_damaged)
    }
}

impl<T: Framed + Timed> Iterator for Woven<T> {
    type Item = (usize, T);

    fn next(&mut self) -> Option<(usize, T)> {
        let Reverse((_, place)) = self.next.pop()?;
        let item = self.waiting[place].take()?;
        self.read_next(place);
        Some((place, item))
    }
}

/// Merges the logs of these folders into those of a new one at `out`. What was found in each log is in
/// the order of the parts.
pub fn merge_logs(
    parts: &[MergePart<'_>],
    mut logs: Logs,
    out: &Path,
) -> Result<Vec<Merged>, MergeError> {
    let found = merge_requests(parts, &mut logs.requests, out)?;
    merge_samples(parts, &mut logs.samples, out)?;
    merge_judgements(parts, out)?;
    merge_texts(parts, out)?;
    for (log, name) in [(logs.requests, LOG), (logs.samples, SAMPLES)] {
        check_written(log.finish(), &out.join(name))?;
    }
    Ok(found)
}

fn merge_requests(
    parts: &[MergePart<'_>],
    to: &mut LogWriter,
    out: &Path,
) -> Result<Vec<Merged>, MergeError> {
    let open = |part: &MergePart<'_>| open_log::<Raw>(part, LOG, parts.len()).map(Some);
    let mut records = Woven::new(parts.iter().map(open).collect::<Result<_, _>>()?);
    let mut found = vec![Merged::default(); parts.len()];
    let mut seen = HashSet::new();
    for (place, mut raw) in records.by_ref() {
        if !seen.insert(raw.index) {
            return Err(duplicate_error(parts, raw.index, place));
        }
        found[place].records += 1;
        found[place].last_end = found[place].last_end.max(raw.instant());
        let first_worker = parts[place].first_worker;
        if first_worker > 0 {
            let worker = first_worker.saturating_add(raw.worker);
            raw.message.extend(WorkerField { worker }.encode_to_vec());
        }
        to.append_message(&raw.message);
        to.flush_if_many();
        check_refused(to.last_error().map(str::to_owned), &out.join(LOG))?;
    }
    for (place, found) in found.iter_mut().enumerate() {
        found.is_damaged = records.is_damaged(place);
    }
    Ok(found)
}

/// Who else has this request: the logs are read once more, up to it.
fn duplicate_error(parts: &[MergePart<'_>], index: u64, place: usize) -> MergeError {
    let has_it = |part: &&MergePart<'_>| {
        let log = open_log::<Raw>(part, LOG, 1).into_iter().flatten();
        log.filter(|raw| raw.index == index).take(1).count() > 0
    };
    let path = |part: &MergePart<'_>| part.folder.path().to_owned();
    let second = path(&parts[place]);
    let others = parts.iter().enumerate().filter(|(other, _)| *other != place);
    let first = others.map(|(_, part)| part).find(has_it).map_or_else(|| second.clone(), path);
    MergeError::Twice { index, first, second }
}

/// What ranks observed in addition to their requests. What a machine says of itself is not what several say.
fn merge_samples(
    parts: &[MergePart<'_>],
    to: &mut LogWriter,
    out: &Path,
) -> Result<(), FolderError> {
    let open = |part: &MergePart<'_>| match open_log::<HealthSample>(part, SAMPLES, parts.len()) {
        Ok(log) => Ok(Some(log)),
        // A client that was killed at once.
        Err(FolderError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    for (place, mut sample) in Woven::new(parts.iter().map(open).collect::<Result<_, _>>()?) {
        let MergePart { first_worker, sees_server, .. } = parts[place];
        sample.host = HostSample::default();
        for beat in &mut sample.beats {
            beat.worker = beat.worker.saturating_add(first_worker);
        }
        if !sees_server {
            (sample.scrapes, sample.gpus) = (Vec::new(), Vec::new());
        }
        let says_nothing = sample == HealthSample { at: sample.at, ..HealthSample::default() };
        if !says_nothing {
            to.append(&sample);
            to.flush_if_many();
            check_refused(to.last_error().map(str::to_owned), &out.join(SAMPLES))?;
        }
    }
    Ok(())
}

/// One client after the other: each judgement names its request.
fn merge_judgements(parts: &[MergePart<'_>], out: &Path) -> Result<(), FolderError> {
    let mut log = None;
    for part in parts {
        for judgement in part.folder.read_judgements() {
            if log.is_none() {
                log = Some(JudgementLog::create(out)?);
            }
            if let Some(log) = &mut log {
                log.append(&judgement);
            }
        }
    }
    log.map_or(Ok(()), |log| check_written(log.finish(), &out.join(JUDGEMENTS)))
}

/// Prompts and answers, where they were kept. A line that a client could not end is ended here.
fn merge_texts(parts: &[MergePart<'_>], out: &Path) -> Result<(), FolderError> {
    let path = out.join(TEXT);
    let kept = parts.iter().map(|part| part.folder.file_path(TEXT)).filter(|file| file.is_file());
    for file in kept {
        let copied = append_file(&file, &path);
        copied.map_err(|error| FolderError::Io { action: "copy", path: file, error })?;
    }
    Ok(())
}

fn append_file(from: &Path, to: &Path) -> io::Result<()> {
    let (mut from, mut to) =
        (open_inside(from)?, private_file_options().append(true).create(true).open(to)?);
    if io::copy(&mut from, &mut to)? == 0 {
        return Ok(());
    }
    let mut last = [0];
    from.seek(SeekFrom::End(-1))?;
    io::Read::read_exact(&mut from, &mut last)?;
    if last == *b"\n" { Ok(()) } else { to.write_all(b"\n") }
}

/// A log of one of this many folders.
fn open_log<T: Framed>(
    part: &MergePart<'_>,
    name: &str,
    of: usize,
) -> Result<LogReader<T>, FolderError> {
    let path = part.folder.file_path(name);
    let buffer = (BUFFERS / of.max(1)).clamp(SMALLEST, BUFFER);
    let log = open_inside(&path).and_then(|file| LogReader::with_buffer(file, Vec::new(), buffer));
    log.map_err(|error| FolderError::Io { action: "read", path, error })
}

/// A merge that lacks records is none.
fn check_written(log: Unwritten, path: &Path) -> Result<(), FolderError> {
    let lost = (log.lost > 0).then(|| format!("{} records do not fit into a log", log.lost));
    check_refused(log.error.or(lost), path)
}

fn check_refused(error: Option<String>, path: &Path) -> Result<(), FolderError> {
    error.map_or(Ok(()), |error| {
        let error = io::Error::other(error);
        Err(FolderError::Io { action: "write", path: path.to_owned(), error })
    })
}

#[cfg(test)]
mod tests;
