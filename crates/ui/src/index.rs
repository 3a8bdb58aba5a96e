//! The index: entries in memory, and a copy in a file for the next time.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use goodput_files::read_inside;
use goodput_record::ArtifactKind;
use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::read;
use crate::walk::{FRESH, find_results};

/// The file in the folder of runs.
pub(crate) const FILE: &str = ".goodput-index.json";

/// Where it is written before it takes the place of the old one.
const NEW_FILE: &str = ".goodput-index.json.new";

/// Changes whenever an entry is made in another way: an older index is made again.
const FORMAT: u32 = 5;

/// Bytes of the file; a run takes about one thousand.
const MOST_FILE: u64 = 256 << 20;

/// Words of a search that count.
const MOST_WORDS: usize = 16;

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Query {
    /// Words that must all occur, in any case, in name, target, model, workload, tags or notes.
    pub(crate) words: String,
    /// Only of this kind.
    pub(crate) kind: Option<ArtifactKind>,
    /// Only with this verdict.
    pub(crate) verdict: Option<String>,
    /// Passed over: those on the pages before.
    pub(crate) skip: usize,
    /// At most this many.
    pub(crate) most: usize,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct IndexedFolders {
    /// The newest first.
    pub(crate) entries: Vec<Entry>,
    /// How many there are on all pages.
    pub(crate) total: usize,
}

/// What lies in a folder of runs.
#[derive(Debug)]
pub(crate) struct Index {
    root: PathBuf,
    /// The newest first.
    indexed: Vec<Indexed>,
    in_memory: bool,
    /// What changed less than this ago is read again.
    fresh: Duration,
}

/// An entry and the state of the files that it was made of.
#[derive(Debug, Serialize, Deserialize)]
struct Indexed {
    stamp: String,
    entry: Entry,
    /// What a search looks through.
    #[serde(skip)]
    text: String,
}

/// The file.
#[derive(Serialize, Deserialize)]
struct IndexFile<T> {
    format: u32,
    indexed: T,
}

impl Index {
    /// Opens the index of a folder; makes it where it is missing, damaged or of another version, or
    /// where that is asked for. What is in it is as old as the last [`Index::refresh`].
    pub(crate) fn open(folder: &Path, anew: bool) -> io::Result<Self> {
        let root = fs::canonicalize(folder)?;
        fs::read_dir(&root)?;
        let indexed = if anew { Vec::new() } else { read_index_file(&root).unwrap_or_default() };
        let mut index = Self { root, indexed, in_memory: false, fresh: FRESH };
        // A folder that we may only read has its index in memory.
        index.in_memory = index.save().is_err();
        Ok(index)
    }

    /// One in memory that trusts every time stamp.
    #[cfg(test)]
    pub(crate) fn in_memory(folder: &Path) -> Self {
        let root = fs::canonicalize(folder).unwrap();
        Self { root, indexed: Vec::new(), in_memory: true, fresh: Duration::ZERO }
    }

    /// The folder of runs, with every link in its path resolved.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Whether it is lost when the process ends.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.in_memory
    }

    /// Takes in what changed in the folders; says how many did.
    pub(crate) fn refresh(&mut self) -> usize {
        let known = self.indexed.drain(..).map(|known| (known.entry.id.clone(), known));
        let mut known: HashMap<String, Indexed> = known.collect();
        let mut changed = 0;
        for place in find_results(&self.root, self.fresh) {
            // What is too new to tell has no stamp.
            let is_same = |known: &Indexed| !place.stamp.is_empty() && known.stamp == place.stamp;
            let entry = if let Some(known) = known.remove(&place.id).filter(is_same) {
                // Only the walk says where it lies: the file may be a stranger's.
                Entry { path: place.path, kind: place.kind, ..known.entry }
            } else {
                changed += 1;
                read::read_entry(&self.root, &place)
            };
            let text = search_text(&entry);
            self.indexed.push(Indexed { stamp: place.stamp, entry, text });
        }
        self.indexed.sort_by(|a, b| {
            let (a, b) = (&a.entry, &b.entry);
            b.started.cmp(&a.started).then_with(|| a.id.cmp(&b.id))
        });
        changed += known.len();
        if changed > 0 && !self.in_memory {
            // It is a copy: without it the next start takes longer.
            let _ = self.save();
        }
        changed
    }

    /// Writes the file, whole or not at all. A link in its place is replaced and not followed.
    fn save(&self) -> io::Result<()> {
        let bytes = serde_json::to_vec(&IndexFile { format: FORMAT, indexed: &self.indexed })?;
        let path = self.root.join(NEW_FILE);
        let _ = fs::remove_file(&path);
        let saved = File::create_new(&path)
            .and_then(|mut file| file.write_all(&bytes))
            .and_then(|()| fs::rename(&path, self.root.join(FILE)));
        if saved.is_err() {
            let _ = fs::remove_file(&path);
        }
        saved
    }

    /// Looks for entries.
    pub(crate) fn find(&self, query: &Query) -> IndexedFolders {
        let words = query.words.to_lowercase();
        let words: Vec<&str> = words.split_whitespace().take(MOST_WORDS).collect();
        let is_meant = |indexed: &&Indexed| {
            let Indexed { entry, text, .. } = indexed;
            words.iter().all(|word| text.contains(word))
                && query.kind.is_none_or(|kind| kind == entry.kind)
                && query.verdict.as_ref().is_none_or(|verdict| *verdict == entry.verdict)
        };
        let found: Vec<&Indexed> = self.indexed.iter().filter(is_meant).collect();
        let page = found.iter().skip(query.skip).take(query.most);
        IndexedFolders { entries: page.map(|one| one.entry.clone()).collect(), total: found.len() }
    }

    /// The entry of this id.
    pub(crate) fn get(&self, id: &str) -> Option<Entry> {
        self.indexed.iter().find(|one| one.entry.id == id).map(|one| one.entry.clone())
    }

    /// Where an entry's folder is. None if something else than a folder is there now, or a link
    /// leads elsewhere.
    pub(crate) fn folder(&self, entry: &Entry) -> Option<PathBuf> {
        let path = if entry.path.as_os_str().is_empty() {
            self.root.clone()
        } else {
            self.root.join(&entry.path)
        };
        let real = fs::canonicalize(&path).ok()?;
        (real == path && real.starts_with(&self.root)).then_some(real)
    }
}

/// What the file holds, if it is whole and of this version.
fn read_index_file(root: &Path) -> Option<Vec<Indexed>> {
    let bytes = read_inside(&root.join(FILE), MOST_FILE).ok()?;
    let saved: IndexFile<Vec<Indexed>> = serde_json::from_slice(&bytes).ok()?;
    (saved.format == FORMAT).then_some(saved.indexed)
}

/// What a search looks through.
fn search_text(entry: &Entry) -> String {
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
