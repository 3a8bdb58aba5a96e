//! The folder of a shadow: what both servers did with each request that both were sent.
//!
//! ```text
//! shadow.toml     what was asked
//! primary.log     what the primary did, one checksummed frame per request, append-only
//! candidate.log   what the candidate did with the same requests
//! pairs.log       when each arrived, and how alike the answers are
//! summary.json    every number
//! report.txt      the same as a page
//! lock            held while a process measures
//! ```
//!
//! A pair is whole once it is in all three logs: the records of a pair have its number.

use std::io;
use std::iter::Peekable;
use std::path::{Path, PathBuf};

use goodput_model::{Likeness, Nanos, PairNote, RequestRecord, known_finish};
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::campaign::{Campaign, CampaignFolder};
use crate::error::FolderError;
use crate::framed::Framed;
use crate::log::{Damage, LogReader, LogWriter, Unwritten};

const PRIMARY: &str = "primary.log";
const CANDIDATE: &str = "candidate.log";
const PAIRS: &str = "pairs.log";

/// The form of a note in its log. Field numbers are never reused.
#[derive(Clone, PartialEq, Message)]
struct NoteFrame {
    /// Always there, so that no message is empty.
    #[prost(uint64, optional, tag = "1")]
    number: Option<u64>,
    #[prost(uint64, tag = "2")]
    at_ns: u64,
    /// Absent if answers were not compared.
    #[prost(bool, optional, tag = "3")]
    exact: Option<bool>,
    #[prost(uint32, tag = "4")]
    prefix: u32,
    #[prost(uint32, tag = "5")]
    primary_length: u32,
    #[prost(uint32, tag = "6")]
    candidate_length: u32,
}

impl From<&PairNote> for NoteFrame {
    fn from(note: &PairNote) -> Self {
        let likeness = note.likeness;
        let [primary_length, candidate_length] = likeness.map_or([0, 0], |like| like.lengths);
        Self {
            number: Some(note.number),
            at_ns: note.at.0,
            exact: likeness.map(|like| like.exact),
            prefix: likeness.map_or(0, |like| like.prefix),
            primary_length,
            candidate_length,
        }
    }
}

impl From<NoteFrame> for PairNote {
    fn from(frame: NoteFrame) -> Self {
        let likeness = frame.exact.map(|exact| Likeness {
            exact,
            prefix: frame.prefix,
            lengths: [frame.primary_length, frame.candidate_length],
        });
        Self { number: frame.number.unwrap_or_default(), at: Nanos(frame.at_ns), likeness }
    }
}

impl Framed for PairNote {
    fn encode(&self) -> Vec<u8> {
        NoteFrame::from(self).encode_to_vec()
    }

    fn decode(message: &[u8]) -> io::Result<Self> {
        Ok(NoteFrame::decode(message).map_err(io::Error::other)?.into())
    }
}

/// A shadow on disk.
#[derive(Debug)]
pub struct ShadowFolder {
    folder: CampaignFolder,
}

/// The logs of a shadow that is being made.
#[derive(Debug)]
pub struct PairLogs {
    primary: LogWriter,
    candidate: LogWriter,
    notes: LogWriter,
    /// The number of the next pair.
    next: u64,
}

/// What did not reach the disk of the logs of a shadow.
#[derive(Debug, Default, Clone)]
pub struct PairUnwritten {
    /// Of the primary's records, the candidate's, and everything else.
    logs: [Unwritten; 3],
}

impl PairUnwritten {
    /// Frames that could not be written, and those that were given up, over all logs.
    pub fn unwritten_frames(&self) -> u64 {
        self.logs.iter().map(|log| log.frames + log.lost).sum()
    }

    /// What the disk said, where it refused something.
    pub fn last_error(&self) -> Option<&str> {
        self.logs.iter().find_map(|log| log.error.as_deref())
    }
}

impl ShadowFolder {
    /// Makes a new folder with what was asked and empty logs. Values of headers and of queries are
    /// left out.
    pub fn create(path: &Path, asked: &impl Serialize) -> Result<(Self, PairLogs), FolderError> {
        let folder = CampaignFolder::create(Campaign::Shadow, path, asked)?;
        let create = |name: &str| {
            let path = path.join(name);
            LogWriter::create(&path).map_err(|error| FolderError::Io {
                action: "create",
                path,
                error,
            })
        };
        let logs = PairLogs {
            primary: create(PRIMARY)?,
            candidate: create(CANDIDATE)?,
            notes: create(PAIRS)?,
            next: 0,
        };
        Ok((Self { folder }, logs))
    }

    /// Opens an existing folder to read it; none if the path is something else.
    pub fn open(path: &Path) -> Option<Self> {
        let folder = CampaignFolder::open(Campaign::Shadow, path)?;
        Some(Self { folder })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// What was asked, without the values of headers and queries.
    pub fn read_asked<T: DeserializeOwned>(&self) -> Result<T, FolderError> {
        self.folder.read_asked()
    }

    /// Writes the numbers, whole or not at all.
    pub fn write_summary(&self, summary: &impl Serialize) -> Result<(), FolderError> {
        self.folder.write_summary(summary)
    }

    /// Writes the page, whole or not at all.
    pub fn write_report(&self, page: &str) -> Result<(), FolderError> {
        self.folder.write_report(page)
    }

    /// The numbers that were written last; none if there are none, or of another form.
    pub fn read_summary<T: DeserializeOwned>(&self) -> Option<T> {
        self.folder.read_summary()
    }

    /// Every whole pair, from the first.
    pub fn read_pairs(&self) -> Result<ShadowPairs, FolderError> {
        let file = |name: &str| self.path().join(name);
        let primary = open_log(file(PRIMARY))?;
        let candidate = open_log(file(CANDIDATE))?;
        let notes = open_log(file(PAIRS))?;
        Ok(ShadowPairs {
            damages: [primary.damage(), candidate.damage(), notes.damage()],
            primary: primary.peekable(),
            candidate: candidate.peekable(),
            notes,
        })
    }
}

fn open_log<T: Framed>(path: PathBuf) -> Result<LogReader<T>, FolderError> {
    let opened = LogReader::open(&path, Vec::new());
    opened.map_err(|error| FolderError::Io { action: "read", path, error })
}

impl PairLogs {
    /// Takes a pair and gives it its number; it is on its way to the disk after the next
    /// [`PairLogs::flush`].
    pub fn append(
        &mut self,
        at: Nanos,
        [primary, candidate]: [&RequestRecord; 2],
        likeness: Option<Likeness>,
    ) {
        let number = self.next;
        self.next += 1;
        for (log, record) in [(&mut self.primary, primary), (&mut self.candidate, candidate)] {
            log.append(&without_text(record, number));
            log.flush_if_many();
        }
        self.notes.append(&PairNote { number, at, likeness });
        self.notes.flush_if_many();
    }

    /// Hands everything to the system, which keeps it even if this process is killed.
    pub fn flush(&mut self) {
        self.primary.flush();
        self.candidate.flush();
        self.notes.flush();
    }

    /// What the disk said when it last refused something.
    pub fn last_error(&self) -> Option<&str> {
        [&self.primary, &self.candidate, &self.notes].into_iter().find_map(LogWriter::last_error)
    }

    /// Ends the logs. What the disk still refuses is returned.
    pub fn finish(self) -> PairUnwritten {
        let logs = [self.primary, self.candidate, self.notes].map(LogWriter::finish);
        PairUnwritten { logs }
    }
}

/// The pairs of a shadow, one by one. One that lacks a record is passed over.
pub struct ShadowPairs {
    primary: Peekable<LogReader<RequestRecord>>,
    candidate: Peekable<LogReader<RequestRecord>>,
    notes: LogReader<PairNote>,
    damages: [Damage; 3],
}

impl ShadowPairs {
    /// Whether a log was cut or damaged, as far as it was read.
    pub fn is_damaged(&self) -> bool {
        self.damages.iter().any(Damage::is_found)
    }
}

impl std::fmt::Debug for ShadowPairs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShadowPairs").finish_non_exhaustive()
    }
}

impl Iterator for ShadowPairs {
    type Item = (PairNote, [RequestRecord; 2]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let note = self.notes.next()?;
            let primary = record_of_number(&mut self.primary, note.number);
            let candidate = record_of_number(&mut self.candidate, note.number);
            if let (Some(primary), Some(candidate)) = (primary, candidate) {
                return Some((note, [primary, candidate]));
            }
        }
    }
}

/// The record of a pair without a word of anyone: what a server says of a failure may quote the
/// request, and an id may be the client's.
fn without_text(record: &RequestRecord, number: u64) -> RequestRecord {
    let mut record = RequestRecord { index: number, prompt: None, ..record.clone() };
    let exchange = &mut record.exchange;
    (exchange.text, exchange.request_id) = (None, None);
    if let Some(failure) = &mut exchange.failure {
        failure.message.clear();
    }
    exchange.finish = exchange.finish.as_deref().map(|reason| known_finish(reason).to_owned());
    record
}

/// The record of this number, if it is there; those before it have no note and are passed over.
fn record_of_number(
    records: &mut Peekable<LogReader<RequestRecord>>,
    number: u64,
) -> Option<RequestRecord> {
    while records.next_if(|record| record.index < number).is_some() {}
    records.next_if(|record| record.index == number)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use goodput_model::{ErrorClass, Failure, FailureStage};

    use super::*;
    use crate::frame::tests::record;

    fn like(prefix: u32) -> Likeness {
        Likeness { exact: prefix == 7, prefix, lengths: [7, 9] }
    }

    fn written(count: u64) -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("out");
        let (_, mut logs) = ShadowFolder::create(&path, &asked()).unwrap();
        for k in 0..count {
            let primary = record(900 + k, Nanos(1_000 + k), &[1, 2, 3]);
            let candidate = record(700 - k, Nanos(1_000 + k), &[4]);
            let likeness = (k % 2 == 0).then(|| like(k as u32));
            logs.append(Nanos(10 * k), [&primary, &candidate], likeness);
        }
        assert_eq!((logs.next, logs.last_error()), (count, None));
        assert_eq!(logs.finish().unwritten_frames(), 0);
        (place, path)
    }

    fn asked() -> BTreeMap<&'static str, &'static str> {
        std::iter::once(("asked", "this")).collect()
    }

    fn numbers(path: &Path) -> Vec<u64> {
        let pairs = ShadowFolder::open(path).unwrap().read_pairs().unwrap();
        pairs
            .map(|(note, [primary, candidate])| {
                assert_eq!((primary.index, candidate.index), (note.number, note.number));
                assert_eq!((primary.scheduled, note.at.0), (candidate.scheduled, 10 * note.number));
                note.number
            })
            .collect()
    }

    #[test]
    fn what_was_written_is_read() {
        let (_place, path) = written(9);
        assert_eq!(numbers(&path), (0..9).collect::<Vec<_>>());
        let all: Vec<_> = ShadowFolder::open(&path).unwrap().read_pairs().unwrap().collect();
        assert_eq!(all[6].0.likeness, Some(like(6)));
        assert_eq!(all[7].0.likeness, None);
        assert_eq!(all[8].1[0].exchange.chunks.len(), 3);
        assert_eq!(all[8].1[1].exchange.chunks.len(), 1);
    }

    #[test]
    fn a_pair_that_one_log_lacks_is_left_out_and_no_other() {
        for name in [PRIMARY, CANDIDATE, PAIRS] {
            let (_place, path) = written(4);
            let file = path.join(name);
            let bytes = std::fs::read(&file).unwrap();
            std::fs::write(&file, &bytes[..bytes.len() - 3]).unwrap();
            assert_eq!(numbers(&path), [0, 1, 2], "{name}");
            let mut pairs = ShadowFolder::open(&path).unwrap().read_pairs().unwrap();
            assert!(!pairs.is_damaged());
            assert_eq!(pairs.by_ref().count(), 3);
            assert!(pairs.is_damaged(), "{name}");
        }
    }

    #[test]
    fn a_record_that_was_given_up_costs_its_pair_alone() {
        let (_place, path) = written(0);
        let mut logs = [PRIMARY, CANDIDATE, PAIRS].map(|name| {
            std::fs::remove_file(path.join(name)).unwrap();
            LogWriter::create(&path.join(name)).unwrap()
        });
        for number in 0..5 {
            // The second record of the primary and the fourth of the candidate are lost.
            for (log, lost) in [(0, 1), (1, 3)] {
                if number != lost {
                    logs[log].append(&record(number, Nanos(1), &[]));
                }
            }
            logs[2].append(&PairNote { number, at: Nanos(10 * number), likeness: None });
        }
        for log in logs {
            assert_eq!(log.finish().frames, 0);
        }
        assert_eq!(numbers(&path), [0, 2, 4]);
    }

    #[test]
    fn no_text_is_kept() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("out");
        let (_, mut logs) = ShadowFolder::create(&path, &asked()).unwrap();
        let mut one = record(0, Nanos(1), &[]);
        one.exchange.finish = Some("tool_calls".to_owned());
        let mut other = record(0, Nanos(1), &[]);
        other.prompt = Some("quoted".to_owned());
        let exchange = &mut other.exchange;
        exchange.text = Some("quoted".to_owned());
        exchange.request_id = Some("quoted".to_owned());
        exchange.finish = Some("quoted_in_letters".to_owned());
        let message = "you quoted".to_owned();
        exchange.failure =
            Some(Failure { class: ErrorClass::Http(400), stage: FailureStage::Headers, message });
        logs.append(Nanos(0), [&one, &other], None);
        logs.finish();
        for entry in std::fs::read_dir(&path).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            assert!(!bytes.windows(6).any(|part| part == b"quoted"));
        }
        let mut pairs = ShadowFolder::open(&path).unwrap().read_pairs().unwrap();
        let (_, [one, other]) = pairs.next().unwrap();
        assert_eq!(one.exchange.finish.unwrap(), "tool_calls");
        assert_eq!(other.exchange.finish.unwrap(), "other");
        assert_eq!(other.exchange.failure.unwrap().class, ErrorClass::Http(400));
    }

    #[test]
    fn one_process_at_a_time_and_no_folder_of_another_kind() {
        let place = tempfile::tempdir().unwrap();
        assert!(ShadowFolder::open(place.path()).is_none());
        let path = place.path().join("out");
        let asked = asked();
        let first = ShadowFolder::create(&path, &asked).unwrap();
        assert!(matches!(ShadowFolder::create(&path, &asked), Err(FolderError::Occupied(_))));
        drop(first);
        assert!(CampaignFolder::open(Campaign::Comparison, &path).is_none());
    }
}
