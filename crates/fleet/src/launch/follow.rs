//! What is started is followed: its output passed on, the user's wish to stop passed on too.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use goodput_clock::pause;
use goodput_model::Nanos;

use crate::LaunchError;

/// How often the user is heard.
const LOOK: Nanos = Nanos::from_millis(100);

/// Looks between two questions to the engine.
const LOOKS: u32 = 20;

/// How far the user wants to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopRequest {
    /// Not at all.
    None,
    /// Stop sending, write what there is.
    Stop,
    /// Stop at once.
    Abort,
}

/// The user of a job that is followed.
pub trait JobObserver {
    /// Something happened. Foreign text in it is already harmless.
    fn note(&self, text: &str);
    /// What rank 0 prints.
    fn output(&self, bytes: &[u8]) -> Result<(), LaunchError>;
    /// How far the user wants to stop by now.
    fn stop_request(&self) -> StopRequest;
}

/// The user, and what was already done of their wish to stop.
pub(super) struct Follower<'a> {
    observer: &'a dyn JobObserver,
    done: StopRequest,
}

impl<'a> Follower<'a> {
    pub(super) fn new(observer: &'a dyn JobObserver) -> Self {
        Self { observer, done: StopRequest::None }
    }

    pub(super) fn note(&self, text: &str) {
        self.observer.note(text);
    }

    /// A wish that has not been passed on, once.
    pub(super) fn new_stop_request(&mut self) -> Option<StopRequest> {
        let wish = self.observer.stop_request();
        let is_new = wish > self.done;
        self.done = self.done.max(wish);
        is_new.then_some(wish)
    }

    /// Whether the user has stopped it.
    pub(super) fn is_stopped(&self) -> bool {
        self.done > StopRequest::None
    }

    pub(super) fn unless_stopped(&self, code: u8) -> Option<u8> {
        (!self.is_stopped()).then_some(code)
    }

    /// Two seconds, or until the user wishes something.
    pub(super) fn pause(&mut self) -> Option<StopRequest> {
        for _ in 0..LOOKS {
            if let Some(wish) = self.new_stop_request() {
                return Some(wish);
            }
            pause(LOOK);
        }
        self.new_stop_request()
    }

    /// Passes on what is new in a file. One that cannot be read now may be there the next time.
    pub(super) fn print_new(&self, tail: &mut Tail) -> Result<(), LaunchError> {
        let Ok(mut file) = File::open(&tail.path) else { return Ok(()) };
        if file.seek(SeekFrom::Start(tail.at)).is_err() {
            return Ok(());
        }
        let mut piece = vec![0; 65_536];
        loop {
            let Ok(read @ 1..) = file.read(&mut piece) else { return Ok(()) };
            self.observer.output(&piece[..read])?;
            tail.at += read as u64;
        }
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
}
