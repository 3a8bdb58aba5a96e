//! What is started is followed: its output passed on, the user's wish to stop passed on too.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use goodput_clock::pause;
use goodput_engine::Control;
use goodput_model::Nanos;

use crate::error::Failed;
use crate::output;
use crate::signals::Listening;

/// How often the user is heard.
const LOOK: Nanos = Nanos::from_millis(100);

/// Looks between two questions to the engine.
const LOOKS: u32 = 20;

/// How far the user wants to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wish {
    /// Not at all.
    GoOn,
    /// Stop sending, write what there is.
    Stop,
    /// Stop at once.
    End,
}

/// Listens for Ctrl-C while something is followed.
pub(super) struct Ear {
    control: Control,
    /// What was passed on already.
    done: Wish,
    _listening: Listening,
}

impl Ear {
    /// From now on; a third signal ends this process.
    pub(super) fn new() -> Result<Self, Failed> {
        let control = Control::new();
        let listening = crate::signals::interrupt()
            .watch(&control)
            .map_err(|error| Failed::internal(format!("cannot hear signals: {error}")))?;
        Ok(Self { control, done: Wish::GoOn, _listening: listening })
    }

    /// A wish that has not been passed on, once.
    pub(super) fn news(&mut self) -> Option<Wish> {
        let wish = match () {
            () if self.control.is_aborting() => Wish::End,
            () if self.control.is_stopping() => Wish::Stop,
            () => Wish::GoOn,
        };
        let is_new = wish > self.done;
        self.done = self.done.max(wish);
        is_new.then_some(wish)
    }

    /// Whether the user has stopped it.
    pub(super) fn is_stopped(&self) -> bool {
        self.done > Wish::GoOn
    }

    /// Two seconds, or until the user wishes something.
    pub(super) fn rest(&mut self) -> Option<Wish> {
        for _ in 0..LOOKS {
            if let Some(wish) = self.news() {
                return Some(wish);
            }
            pause(LOOK);
        }
        self.news()
    }
}

/// A file that grows, and may not be there yet.
pub(super) struct Tail {
    path: PathBuf,
    at: u64,
}

impl Tail {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, at: 0 }
    }

    /// Prints what is new. A file that cannot be read now may be there the next time.
    pub(super) fn pass_on(&mut self) -> Result<(), Failed> {
        let Ok(mut file) = File::open(&self.path) else { return Ok(()) };
        if file.seek(SeekFrom::Start(self.at)).is_err() {
            return Ok(());
        }
        let mut piece = vec![0; 65_536];
        loop {
            let Ok(read @ 1..) = file.read(&mut piece) else { return Ok(()) };
            output::data(&piece[..read])?;
            self.at += read as u64;
        }
    }
}
