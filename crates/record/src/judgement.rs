//! Judgements in a log: what was found out about answers after the run.

use std::io;
use std::path::Path;

use goodput_model::AnswerJudgement;
use prost::Message;

use crate::error::FolderError;
use crate::framed::Framed;
use crate::layout::JUDGEMENTS;
use crate::log::{LogWriter, Unwritten};

#[derive(Clone, PartialEq, Message)]
struct JudgementFrame {
    /// Always there, so that no message is empty.
    #[prost(uint64, optional, tag = "1")]
    index: Option<u64>,
    #[prost(uint32, optional, tag = "2")]
    output_tokens: Option<u32>,
    #[prost(uint32, tag = "3")]
    characters: u32,
    #[prost(bool, optional, tag = "4")]
    valid: Option<bool>,
}

impl From<&AnswerJudgement> for JudgementFrame {
    fn from(judgement: &AnswerJudgement) -> Self {
        let AnswerJudgement { index, output_tokens, characters, valid } = *judgement;
        Self { index: Some(index), output_tokens, characters, valid }
    }
}

impl From<JudgementFrame> for AnswerJudgement {
    fn from(frame: JudgementFrame) -> Self {
        let JudgementFrame { index, output_tokens, characters, valid } = frame;
        Self { index: index.unwrap_or_default(), output_tokens, characters, valid }
    }
}

impl Framed for AnswerJudgement {
    fn encode(&self) -> Vec<u8> {
        JudgementFrame::from(self).encode_to_vec()
    }

    fn decode(message: &[u8]) -> io::Result<Self> {
        Ok(JudgementFrame::decode(message).map_err(io::Error::other)?.into())
    }
}

/// Writes the judgements of a run.
#[derive(Debug)]
pub struct JudgementLog(LogWriter);

impl JudgementLog {
    /// A new log in the run folder at `folder`. Judgements that are there already are replaced:
    /// they are a function of the answers.
    pub fn create(folder: &Path) -> Result<Self, FolderError> {
        let path = folder.join(JUDGEMENTS);
        let file = std::fs::File::create(&path).and_then(LogWriter::from_empty_file);
        file.map(Self).map_err(|error| FolderError::Io { action: "create", path, error })
    }

    /// Takes a judgement.
    pub fn append(&mut self, judgement: &AnswerJudgement) {
        self.0.append(judgement);
        self.0.flush_if_many();
    }

    /// Ends the log. What the disk refuses is returned, for
    /// [`RunFolder::keep_unwritten_judgements`](crate::RunFolder::keep_unwritten_judgements).
    pub fn finish(self) -> Unwritten {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunFolder;

    #[test]
    fn judgements_survive_their_log() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["plan.toml", "manifest.json", "requests.log"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let run = RunFolder::open(folder.path()).unwrap();
        assert_eq!(run.read_judgements().count(), 0, "no file, no judgements");
        let judgements = [
            AnswerJudgement::default(),
            AnswerJudgement { index: 1, output_tokens: Some(0), characters: 9, valid: Some(false) },
            AnswerJudgement {
                index: u64::MAX,
                output_tokens: None,
                characters: 0,
                valid: Some(true),
            },
        ];
        assert!(!judgements[0].encode().is_empty());
        // The second replaces the first.
        for _ in 0..2 {
            let mut log = JudgementLog::create(folder.path()).unwrap();
            for judgement in &judgements {
                log.append(judgement);
            }
            assert_eq!(log.finish().frames, 0);
        }
        assert_eq!(run.read_judgements().collect::<Vec<_>>(), judgements);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = JudgementLog::create(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/judgements.log"), "{error}");
    }
}
