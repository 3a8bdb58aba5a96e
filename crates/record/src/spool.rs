//! [`Spool`]: answers that wait for their judgement after the run, where text is not saved.
//!
//! The file has no name from its first byte on, so nothing of it is left after a crash.

use std::fs::{self, File};
use std::io::{self, Seek};
use std::path::Path;

use goodput_model::ConstraintKind;
use prost::Message;

use crate::Framed;
use crate::folder::private_file_options;
use crate::frame::{constraint_kind, constraint_number};
use crate::log::{LogReader, LogWriter};

/// An answer on its way to its judgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spooled {
    /// The request's number.
    pub index: u64,
    /// Its class.
    pub class: String,
    /// What the answer was under.
    pub constraint: Option<ConstraintKind>,
    /// The answer.
    pub text: String,
}

#[derive(Clone, PartialEq, Message)]
struct SpoolFrame {
    /// Always there, so that no message is empty.
    #[prost(uint64, optional, tag = "1")]
    index: Option<u64>,
    #[prost(uint32, tag = "2")]
    constraint: u32,
    #[prost(string, tag = "3")]
    text: String,
    #[prost(string, tag = "4")]
    class: String,
}

impl Framed for SpoolFrame {
    fn encode(&self) -> Vec<u8> {
        self.encode_to_vec()
    }

    fn decode(message: &[u8]) -> io::Result<Self> {
        <Self as Message>::decode(message).map_err(io::Error::other)
    }
}

/// A file without a name that holds answers.
#[derive(Debug)]
pub struct Spool {
    log: LogWriter,
    /// The same file, to read it back.
    file: File,
}

impl Spool {
    /// An empty one on the disk of `folder`.
    pub fn new(folder: &Path) -> io::Result<Self> {
        let path = folder.join(format!(".answers-{}", std::process::id()));
        let file = private_file_options().read(true).write(true).create_new(true).open(&path)?;
        fs::remove_file(&path)?;
        Ok(Self { log: LogWriter::from_empty_file(file.try_clone()?)?, file })
    }

    /// Takes an answer.
    pub fn push(&mut self, answer: Spooled) {
        self.log.append(&SpoolFrame {
            index: Some(answer.index),
            class: answer.class,
            constraint: constraint_number(answer.constraint),
            text: answer.text,
        });
        self.log.flush_if_many();
    }

    /// Answers that neither disk nor memory could take.
    pub fn lost_answers(&self) -> u64 {
        self.log.lost_records()
    }

    /// The answers in the order in which they came, one at a time.
    pub fn drain(mut self) -> io::Result<impl Iterator<Item = Spooled>> {
        self.log.flush();
        let unwritten = self.log.into_unwritten();
        self.file.rewind()?;
        let frames = LogReader::<SpoolFrame>::from_file(self.file, unwritten.bytes)?;
        Ok(frames.map(|frame| Spooled {
            index: frame.index.unwrap_or_default(),
            class: frame.class,
            constraint: constraint_kind(frame.constraint),
            text: frame.text,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(index: u64, constraint: Option<ConstraintKind>, text: &str) -> Spooled {
        Spooled { index, class: "chat".to_owned(), constraint, text: text.to_owned() }
    }

    #[test]
    fn answers_come_back_and_nothing_is_left_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(folder.path()).unwrap();
        let answers: Vec<Spooled> = (0..3000)
            .map(|index| {
                answer(u64::from(index), constraint_kind(index % 5), &"å".repeat(index as usize))
            })
            .collect();
        answers.iter().cloned().for_each(|answer| spool.push(answer));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(spool.file.metadata().unwrap().len() > 8_000_000, "it is on disk, not in memory");
        assert_eq!(spool.lost_answers(), 0);
        assert_eq!(spool.drain().unwrap().collect::<Vec<_>>(), answers);
        // Another of the same process.
        assert_eq!(Spool::new(folder.path()).unwrap().drain().unwrap().count(), 0);
    }

    #[test]
    fn an_answer_that_is_too_large_costs_only_itself() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(folder.path()).unwrap();
        spool.push(answer(0, None, &"x".repeat((64 << 20) + 1)));
        spool.push(answer(1, Some(ConstraintKind::Grammar), "y"));
        assert_eq!(spool.lost_answers(), 1);
        let kept = [answer(1, Some(ConstraintKind::Grammar), "y")];
        assert_eq!(spool.drain().unwrap().collect::<Vec<_>>(), kept);
    }
}
