//! The index: a table in SQLite, beside the folders or in memory.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row, params, params_from_iter};

use crate::entry::{Entry, Kind};
use crate::read;
use crate::walk::{FRESH, places};

/// The file in the folder of runs.
pub const FILE: &str = ".goodput-index.sqlite";

/// Changes whenever an entry is made in another way: an older index is made again.
const FORMAT: i64 = 3;

/// How long another process may hold the file.
const PATIENCE: Duration = Duration::from_secs(2);

/// Words of a search that count.
const MOST_WORDS: usize = 16;

const TABLE: &str = "CREATE TABLE entries (
    id TEXT PRIMARY KEY, path BLOB NOT NULL, stamp TEXT NOT NULL, started TEXT NOT NULL,
    kind TEXT NOT NULL, verdict TEXT NOT NULL, text TEXT NOT NULL, entry TEXT NOT NULL,
    curves TEXT NOT NULL) WITHOUT ROWID;
    CREATE INDEX by_start ON entries (started DESC, id);";

/// Why there is no index.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The folder of runs cannot be used.
    #[error("cannot read `{0}`: {1}")]
    Folder(PathBuf, std::io::Error),
    /// SQLite refuses.
    #[error("the index cannot be used: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    /// Words that must all occur, in any case, in name, target, model, workload, tags or notes.
    pub words: String,
    /// Only of this kind.
    pub kind: Option<Kind>,
    /// Only with this verdict.
    pub verdict: Option<String>,
    /// Passed over: those on the pages before.
    pub skip: usize,
    /// At most so many.
    pub most: usize,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// The newest first, without their curves.
    pub entries: Vec<Entry>,
    /// How many there are on all pages.
    pub total: usize,
}

/// What lies in a folder of runs.
#[derive(Debug)]
pub struct Index {
    root: PathBuf,
    table: Connection,
    in_memory: bool,
    /// What changed less than this ago is read again.
    fresh: Duration,
}

impl Index {
    /// Opens the index of a folder; makes it where it is missing, damaged or of another version, or
    /// where that is asked for. What is in it is as old as the last [`Index::refresh`].
    pub fn open(folder: &Path, anew: bool) -> Result<Self, IndexError> {
        let unreadable = |error| IndexError::Folder(folder.to_owned(), error);
        let root = fs::canonicalize(folder).map_err(unreadable)?;
        fs::read_dir(&root).map_err(unreadable)?;
        let file = root.join(FILE);
        let before = if anew { Err(rusqlite::Error::InvalidQuery) } else { existing(&file) };
        let kept = match before {
            Ok(table) => Some(table),
            // Another process makes it: it is not ours to take away.
            Err(error) if is_busy(&error) => None,
            Err(_) => {
                remove(&file);
                on_disk(&file).ok()
            }
        };
        // A folder that we may only read has its index in memory.
        let in_memory = kept.is_none();
        let table = kept.map_or_else(in_mind, Ok)?;
        Ok(Self { root, table, in_memory, fresh: FRESH })
    }

    /// One in memory that trusts every time stamp.
    #[cfg(test)]
    pub(crate) fn trusting(folder: &Path) -> Self {
        let (root, table) = (fs::canonicalize(folder).unwrap(), in_mind().unwrap());
        Self { root, table, in_memory: true, fresh: Duration::ZERO }
    }

    /// The folder of runs, with every link in its path resolved.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether it is lost when the process ends.
    pub fn is_in_memory(&self) -> bool {
        self.in_memory
    }

    /// Takes in what changed in the folders; says how many did. An index that turns out to be damaged
    /// is made again.
    pub fn refresh(&mut self) -> Result<usize, IndexError> {
        match self.take_in() {
            // Another process takes it in.
            Err(IndexError::Sqlite(error)) if is_busy(&error) => Ok(0),
            Err(IndexError::Sqlite(_)) => {
                *self = Self::open(&self.root, true)?;
                self.take_in()
            }
            outcome => outcome,
        }
    }

    fn take_in(&mut self) -> Result<usize, IndexError> {
        let places = places(&self.root, self.fresh);
        let change = self.table.transaction()?;
        let mut known: HashMap<String, String> = change
            .prepare("SELECT id, stamp FROM entries")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        let mut changed = 0;
        let mut put =
            change.prepare("INSERT OR REPLACE INTO entries VALUES (?,?,?,?,?,?,?,?,?)")?;
        for place in &places {
            let before = known.remove(&place.id);
            // What is too new to tell has no stamp.
            if !place.stamp.is_empty() && before.as_ref() == Some(&place.stamp) {
                continue;
            }
            changed += 1;
            let entry = read::entry(&self.root, place);
            let json = |value: serde_json::Result<String>| value.unwrap_or_default();
            put.execute(params![
                entry.id,
                entry.path.as_os_str().as_bytes(),
                place.stamp,
                entry.started,
                entry.kind.name(),
                entry.verdict,
                searched(&entry),
                json(serde_json::to_string(&entry)),
                json(serde_json::to_string(&entry.curves)),
            ])?;
        }
        for gone in known.keys() {
            change.execute("DELETE FROM entries WHERE id = ?", [gone])?;
            changed += 1;
        }
        drop(put);
        change.commit()?;
        Ok(changed)
    }

    /// Looks for entries.
    pub fn find(&self, query: &Query) -> Result<Found, IndexError> {
        let (mut wheres, mut values) = (vec!["1"], Vec::<Value>::new());
        for word in query.words.to_lowercase().split_whitespace().take(MOST_WORDS) {
            wheres.push("instr(text, ?) > 0");
            values.push(word.to_owned().into());
        }
        if let Some(kind) = query.kind {
            wheres.push("kind = ?");
            values.push(kind.name().to_owned().into());
        }
        if let Some(verdict) = &query.verdict {
            wheres.push("verdict = ?");
            values.push(verdict.clone().into());
        }
        let wheres = wheres.join(" AND ");
        let total: i64 = self.table.query_row(
            &format!("SELECT count(*) FROM entries WHERE {wheres}"),
            params_from_iter(values.iter()),
            |row| row.get(0),
        )?;
        for bound in [query.most, query.skip] {
            values.push(i64::try_from(bound).unwrap_or(i64::MAX).into());
        }
        let mut select = self.table.prepare(&format!(
            "SELECT entry, path FROM entries WHERE {wheres} ORDER BY started DESC, id LIMIT ? OFFSET ?"
        ))?;
        let rows = select.query_map(params_from_iter(values.iter()), whole)?;
        let entries = rows.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        Ok(Found { entries, total: usize::try_from(total).unwrap_or_default() })
    }

    /// The entry of this id, with its curves.
    pub fn get(&self, id: &str) -> Result<Option<Entry>, IndexError> {
        let mut select =
            self.table.prepare("SELECT entry, path, curves FROM entries WHERE id = ?")?;
        let with_curves = |row: &Row<'_>| {
            let curves: String = row.get(2)?;
            Ok(whole(row)?.map(|mut entry| {
                entry.curves = serde_json::from_str(&curves).unwrap_or_default();
                entry
            }))
        };
        let found = select.query_map([id], with_curves)?.next().transpose()?;
        Ok(found.flatten())
    }

    /// Where an entry's folder is. None where something else than a folder is there now, or a link
    /// leads elsewhere.
    pub fn folder(&self, entry: &Entry) -> Option<PathBuf> {
        let path = if entry.path.as_os_str().is_empty() {
            self.root.clone()
        } else {
            self.root.join(&entry.path)
        };
        let real = fs::canonicalize(&path).ok()?;
        (real == path && real.starts_with(&self.root)).then_some(real)
    }
}

/// An entry of a row that begins with it and its path; none where it cannot be read.
fn whole(row: &Row<'_>) -> rusqlite::Result<Option<Entry>> {
    let (json, path): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
    Ok(serde_json::from_str(&json).ok().map(|mut entry: Entry| {
        entry.path = PathBuf::from(OsStr::from_bytes(&path));
        entry
    }))
}

/// What a search looks through.
fn searched(entry: &Entry) -> String {
    let parts = [
        &entry.name,
        &entry.target,
        &entry.model,
        &entry.workload,
        &entry.load,
        &entry.notes.tags.join("\n"),
        &entry.notes.text,
    ];
    parts.map(|part| part.to_lowercase()).join("\n")
}

/// Opens what is there, if it is whole and ours.
fn existing(file: &Path) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let table = Connection::open_with_flags(file, flags)?;
    table.busy_timeout(PATIENCE)?;
    let format: i64 = table.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let state: String = table.pragma_query_value(None, "quick_check", |row| row.get(0))?;
    // Whether it can be written, too.
    table.execute_batch("BEGIN IMMEDIATE; DELETE FROM entries WHERE 0; COMMIT;")?;
    if format == FORMAT && state == "ok" { Ok(table) } else { Err(rusqlite::Error::InvalidQuery) }
}

fn on_disk(file: &Path) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let table = Connection::open_with_flags(file, flags)?;
    table.busy_timeout(PATIENCE)?;
    fill(&table)?;
    Ok(table)
}

fn in_mind() -> Result<Connection, rusqlite::Error> {
    let table = Connection::open_in_memory()?;
    fill(&table)?;
    Ok(table)
}

fn fill(table: &Connection) -> Result<(), rusqlite::Error> {
    table.execute_batch(TABLE)?;
    table.pragma_update(None, "user_version", FORMAT)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Takes away an index that cannot be used. A link is removed, not what it leads to.
fn remove(file: &Path) {
    let name = file.as_os_str().to_owned();
    for end in ["", "-journal", "-wal", "-shm"] {
        let mut one = name.clone();
        one.push(end);
        let _ = fs::remove_file(PathBuf::from(one));
    }
}
