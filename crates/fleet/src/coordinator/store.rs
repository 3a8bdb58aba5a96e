//! Writes what ranks hand over: on a thread of its own, as disks may wait and clocks may not.
//!
//! The files of a rank go into a folder next to the final one, which gets its name when all
//! are there, each as long as the rank said.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::mpsc;

use super::collect::Files;
use super::state::CoordinatorShared;
use crate::message::TEXT;

/// Pieces that wait for the disk at most: 16 MiB.
pub(super) const WAITING: usize = 64;

/// What is to be written, by connection.
#[derive(Debug)]
pub(super) enum StoreItem {
    Begin {
        connection: u64,
        rank: u32,
        into: PathBuf,
        files: Files,
    },
    File {
        connection: u64,
        name: String,
    },
    Piece {
        connection: u64,
        bytes: Vec<u8>,
    },
    Sent {
        connection: u64,
    },
    Cut {
        connection: u64,
        why: String,
    },
    /// The connection has ended.
    Gone {
        connection: u64,
    },
}

/// Writes until every sender is gone.
pub(super) fn run_store(shared: &Arc<CoordinatorShared>, mut items: mpsc::Receiver<StoreItem>) {
    let mut folders: HashMap<u64, RankFolder> = HashMap::new();
    while let Some(item) = items.blocking_recv() {
        let connection = match &item {
            StoreItem::Begin { connection, .. }
            | StoreItem::File { connection, .. }
            | StoreItem::Piece { connection, .. }
            | StoreItem::Sent { connection }
            | StoreItem::Cut { connection, .. }
            | StoreItem::Gone { connection } => *connection,
        };
        if let StoreItem::Begin { rank, into, files, .. } = item {
            folders.insert(connection, RankFolder::new(rank, into, files));
            continue;
        }
        let Some(folder) = folders.get_mut(&connection) else { continue };
        let done = match item {
            StoreItem::Gone { .. } => {
                folders.remove(&connection);
                continue;
            }
            StoreItem::Sent { .. } => Some(folder.finish()),
            StoreItem::Cut { why, .. } => Some(Err(why)),
            item => folder.write_item(item).err().map(Err),
        };
        if let Some(result) = done {
            let rank = folder.rank;
            // What was not finished is removed with it.
            folders.remove(&connection);
            shared.lock().note_stored(rank, connection, result);
            shared.changed.notify_all();
        }
    }
}

/// The incomplete folder of a rank.
struct RankFolder {
    rank: u32,
    into: PathBuf,
    part: PathBuf,
    /// Those that have not begun.
    files: Files,
    /// The one that is written, and what is missing of it.
    current: Option<(File, u64)>,
    is_made: bool,
}

impl RankFolder {
    fn new(rank: u32, into: PathBuf, files: Files) -> Self {
        let mut part = into.clone().into_os_string();
        part.push(".part");
        Self { rank, part: part.into(), into, files, current: None, is_made: false }
    }

    fn create(&mut self) -> Result<(), String> {
        if self.is_made {
            return Ok(());
        }
        if self.into.symlink_metadata().is_ok() {
            return Err(format!("`{}` already exists", self.into.display()));
        }
        if let Some(above) = self.into.parent() {
            fs::create_dir_all(above).map_err(|error| write_error(above, &error))?;
        }
        // Left by one who did not come to an end.
        let _ = fs::remove_dir_all(&self.part);
        fs::create_dir(&self.part).map_err(|error| write_error(&self.part, &error))?;
        self.is_made = true;
        Ok(())
    }

    fn write_item(&mut self, item: StoreItem) -> Result<(), String> {
        match item {
            StoreItem::File { name, .. } => self.open_file(&name),
            StoreItem::Piece { bytes, .. } => self.write_bytes(&bytes),
            _ => Ok(()),
        }
    }

    fn open_file(&mut self, name: &str) -> Result<(), String> {
        self.create()?;
        self.close_file()?;
        let place = self.files.iter().position(|(offered, _)| offered == name);
        let place = place.ok_or("received a file that was not offered")?;
        // From the fixed list: the name as it was offered was looked at.
        let (name, left) = self.files.swap_remove(place);
        let path = self.part.join(&name);
        // Prompts and answers are for the user alone.
        let mode = if name == TEXT { 0o600 } else { 0o666 };
        let file = File::options().write(true).create_new(true).mode(mode).open(&path);
        let file = file.map_err(|error| write_error(&path, &error))?;
        self.current = Some((file, left));
        Ok(())
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (file, left) = self.current.as_mut().ok_or("received a piece without its file")?;
        *left = left.checked_sub(bytes.len() as u64).ok_or("a file is longer than announced")?;
        file.write_all(bytes).map_err(|error| write_error(&self.part, &error))
    }

    fn close_file(&mut self) -> Result<(), String> {
        match self.current.take() {
            Some((_, left)) if left > 0 => Err("a file is shorter than announced".to_owned()),
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<PathBuf, String> {
        self.close_file()?;
        if !self.files.is_empty() {
            return Err("some offered files did not arrive".to_owned());
        }
        self.create()?;
        fs::rename(&self.part, &self.into).map_err(|error| write_error(&self.into, &error))?;
        self.is_made = false;
        Ok(self.into.clone())
    }
}

impl Drop for RankFolder {
    fn drop(&mut self) {
        if self.is_made {
            // Incomplete files are removed: the rank still has all of them.
            let _ = fs::remove_dir_all(&self.part);
        }
    }
}

fn write_error(path: &Path, error: &io::Error) -> String {
    format!("cannot write `{}`: {error}", path.display())
}
