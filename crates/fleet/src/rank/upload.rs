//! Handing over the files of a run.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use goodput_clock::{now, pause};
use goodput_model::Nanos;

use super::link::Out;
use super::{JoinedRank, LOOK_UP, encode_message};
use crate::FleetError;
use crate::frame::{FrameKind, LARGEST_PIECE};
use crate::message::{ToCoordinator, UPLOADED, WENT_ON};

/// How long is waited when the queue is full.
const BREATH: Nanos = Nanos::from_millis(1);

/// What rank 0 has said about the files.
enum UploadAnswer {
    Take,
    Taken(Option<String>),
}

/// How long something may take.
struct UploadPatience<'a> {
    deadline: Nanos,
    /// Whether the caller still wants it.
    look: &'a mut dyn FnMut() -> bool,
}

impl UploadPatience<'_> {
    fn check_time(&mut self) -> Result<(), FleetError> {
        let why = match now() {
            at if at >= self.deadline => "rank 0 did not accept them in time",
            _ if !(self.look)() => "this rank gave up",
            _ => return Ok(()),
        };
        Err(FleetError::Upload(why.to_owned()))
    }
}

impl JoinedRank {
    /// Says that what was measured lies where rank 0 wants it already: there is nothing to hand over.
    pub fn report_kept(&self) -> Result<(), FleetError> {
        self.send(&ToCoordinator::Kept { number: self.order_number() })
    }

    /// Hands over the files of a run that lie in this folder. Waits for its turn for as long as rank 0
    /// is heard, as that may measure for longer than this one; what follows may take so long. Meanwhile
    /// `look` is called; `false` gives up. The files stay where they are.
    pub fn upload(
        &self,
        folder: &Path,
        within: Nanos,
        mut look: impl FnMut() -> bool,
    ) -> Result<(), FleetError> {
        let files = run_files(folder).map_err(|error| {
            let failed = read_error(folder, &error);
            // Rank 0 would wait for them; where it is lost, it does not.
            let _ = self.report_refusal(&failed.to_string());
            failed
        })?;
        // What was said of taken ones stays: rank 0 may have given these up already.
        self.shared.with_inbox(|heard| heard.take = None);
        let offer = files.iter().map(|file| (file.name.to_owned(), file.bytes)).collect();
        let mut patience = UploadPatience { deadline: Nanos(u64::MAX), look: &mut look };
        // In the queue of files: what is left of those before goes first.
        let offer = ToCoordinator::Offer { number: self.order_number(), files: offer };
        self.send_frame(encode_message(&offer)?, &mut patience)?;
        let turn = self.wait_for_answer(true, &mut patience);
        patience.deadline = now() + within;
        let sent = match turn {
            Ok(UploadAnswer::Take) => {
                files.into_iter().try_for_each(|file| self.send_file(file, &mut patience))
            }
            Ok(UploadAnswer::Taken(refused)) => upload_outcome(refused),
            Err(error) => Err(error),
        };
        // The last word is said whatever happened: rank 0 may wait for it.
        let last = match &sent {
            Ok(()) => ToCoordinator::Sent,
            Err(error) => ToCoordinator::Cut(error.to_string()),
        };
        let mut brief = UploadPatience { deadline: now() + LOOK_UP, look: &mut || true };
        let patience = if sent.is_ok() { &mut patience } else { &mut brief };
        self.send_frame(encode_message(&last)?, patience)?;
        sent?;
        match self.wait_for_answer(false, patience)? {
            UploadAnswer::Taken(refused) => upload_outcome(refused),
            UploadAnswer::Take => Ok(()),
        }
    }

    fn upload_answer(&self, counts_take: bool) -> Option<UploadAnswer> {
        let number = self.order_number();
        self.shared.with_inbox(|heard| match (&heard.taken, &heard.order) {
            (Some((of, refused)), _) if *of == number => Some(UploadAnswer::Taken(refused.clone())),
            (_, Some(order)) if order.number > number => {
                Some(UploadAnswer::Taken(Some(WENT_ON.to_owned())))
            }
            _ if counts_take && heard.take == Some(number) => Some(UploadAnswer::Take),
            _ => None,
        })
    }

    fn wait_for_answer(
        &self,
        counts_take: bool,
        patience: &mut UploadPatience<'_>,
    ) -> Result<UploadAnswer, FleetError> {
        loop {
            if let Some(word) = self.upload_answer(counts_take) {
                return Ok(word);
            }
            if self.shared.with_inbox(|heard| heard.has_ended || heard.lost.is_some()) {
                return Err(self.lost_error());
            }
            patience.check_time()?;
            self.shared.pause(patience.deadline.min(now() + LOOK_UP));
        }
    }

    fn send_file(
        &self,
        run_file: RunFile,
        patience: &mut UploadPatience<'_>,
    ) -> Result<(), FleetError> {
        let RunFile { name, bytes: mut left, mut file } = run_file;
        self.send_frame(encode_message(&ToCoordinator::File { name: name.to_owned() })?, patience)?;
        while left > 0 {
            let mut piece = vec![0; LARGEST_PIECE.min(usize::try_from(left).unwrap_or(usize::MAX))];
            file.read_exact(&mut piece).map_err(|error| read_error(Path::new(name), &error))?;
            left -= piece.len() as u64;
            self.send_frame((FrameKind::Piece, piece), patience)?;
            if let Some(UploadAnswer::Taken(Some(why))) = self.upload_answer(false) {
                return Err(FleetError::Upload(why));
            }
        }
        Ok(())
    }

    /// Puts a frame into the queue of files, when there is room.
    fn send_frame(
        &self,
        mut out: Out,
        patience: &mut UploadPatience<'_>,
    ) -> Result<(), FleetError> {
        use tokio::sync::mpsc::error::TrySendError;
        let Some(files) = &self.files else { return Err(self.lost_error()) };
        loop {
            match files.try_send(out) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Closed(_)) => return Err(self.lost_error()),
                Err(TrySendError::Full(back)) => out = back,
            }
            patience.check_time()?;
            pause(BREATH);
        }
    }
}

/// An open file of a run.
struct RunFile {
    name: &'static str,
    bytes: u64,
    file: File,
}

/// The files of a run in a folder.
fn run_files(folder: &Path) -> io::Result<Vec<RunFile>> {
    let mut files = Vec::new();
    for name in UPLOADED {
        let path = folder.join(name);
        match path.symlink_metadata() {
            Ok(facts) if facts.is_file() => {
                let file = File::open(path)?;
                files.push(RunFile { name, bytes: file.metadata()?.len(), file });
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    if files.is_empty() { Err(io::Error::other("a folder without run files")) } else { Ok(files) }
}

fn read_error(path: &Path, error: &io::Error) -> FleetError {
    FleetError::Upload(format!("cannot read `{}`: {error}", path.display()))
}

/// What became of the files, as rank 0 says.
fn upload_outcome(refused: Option<String>) -> Result<(), FleetError> {
    refused.map_or(Ok(()), |why| Err(FleetError::Upload(why)))
}
