//! Files of a Hugging Face hub: where its cache keeps them on this machine, and how they are asked
//! for. Nothing here reads the environment or the network.

mod listing;

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use goodput_files::MOST_SMALL;

pub use listing::{Listing, ListingError};

/// What a repository of the hub holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepoKind {
    /// A model, with its tokenizer.
    Model,
    /// A dataset.
    Dataset,
}

impl RepoKind {
    /// The word in paths, locally and at the hub.
    fn name(self) -> &'static str {
        match self {
            Self::Model => "models",
            Self::Dataset => "datasets",
        }
    }
}

/// Longest part of an id that the hub allows.
const MAX_PART: usize = 96;

/// Whether this is `org/name` or `name` as the hub writes them.
pub fn is_id(text: &str) -> bool {
    let parts: Vec<&str> = text.split('/').collect();
    matches!(parts.len(), 1 | 2) && parts.iter().all(|part| is_valid_part(part))
}

fn is_valid_part(part: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let has_end = |end: char| part.starts_with(end) || part.ends_with(end);
    (1..=MAX_PART).contains(&part.len())
        && part.chars().all(allowed)
        && !has_end('.')
        && !has_end('-')
        // Folders of the cache separate the parts by two hyphens.
        && !part.contains("--")
        && !part.contains("..")
}

/// Whether this is rather an id than a path: nothing of that name is here, and a name without an
/// organization has no extension.
pub fn looks_like_id(text: &str) -> bool {
    is_id(text) && (text.contains('/') || !text.contains('.')) && !Path::new(text).exists()
}

/// Path of a file at the hub, below its origin; `None` if id or file are not names of the hub's.
pub fn download_path(kind: RepoKind, id: &str, file: &str) -> Option<String> {
    let prefix = match kind {
        RepoKind::Model => "",
        RepoKind::Dataset => "/datasets",
    };
    (is_id(id) && is_inside_name(file))
        .then(|| format!("{prefix}/{id}/resolve/main/{}", encode_path(file)))
}

/// Path of the [`Listing`] of a repository at the hub; `None` if this is not an an ID.
pub fn listing_path(kind: RepoKind, id: &str) -> Option<String> {
    is_id(id).then(|| format!("/api/{}/{id}", kind.name()))
}

/// Whether a file's name stays below its repository.
fn is_inside_name(file: &str) -> bool {
    let is_normal = |component: Component| matches!(component, Component::Normal(_));
    !file.is_empty()
        && !file.ends_with('/')
        && !file.chars().any(|c| c.is_control() || c == '\\')
        && Path::new(file).components().all(is_normal)
}

/// A file's name in a URL; its folders stay folders.
fn encode_path(file: &str) -> String {
    let one = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    file.bytes().map(one).collect()
}

fn is_commit(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric())
}

/// The hub's cache on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubCache {
    root: PathBuf,
}

impl HubCache {
    /// The cache in this folder, which need not exist.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Where the hub's own client keeps it, by the variables of the environment.
    pub fn from_vars(get: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let home = get("HOME").filter(|value| !value.is_empty());
        let set = |name: &str| {
            let value = get(name).filter(|value| !value.is_empty())?;
            match (value.strip_prefix("~/"), &home) {
                (Some(below), Some(home)) => Some(Path::new(home).join(below)),
                _ => Some(PathBuf::from(value)),
            }
        };
        let root = set("HF_HUB_CACHE")
            .or_else(|| set("HUGGINGFACE_HUB_CACHE"))
            .or_else(|| set("HF_HOME").map(|folder| folder.join("hub")))
            .or_else(|| set("XDG_CACHE_HOME").map(|folder| folder.join("huggingface/hub")))
            .or_else(|| home.as_ref().map(|home| Path::new(home).join(".cache/huggingface/hub")));
        root.map(Self::new)
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A file of a repository, from the snapshot of its main line, else from the newest that has it.
    pub fn find(&self, kind: RepoKind, id: &str, file: &str) -> Option<PathBuf> {
        if !is_inside_name(file) {
            return None;
        }
        let snapshots = self.snapshot_folders(kind, id).into_iter();
        snapshots.map(|snapshot| snapshot.join(file)).find(|path| path.is_file())
    }

    /// All files of a repository's snapshot with their paths, in the order of their names.
    pub fn list_files(&self, kind: RepoKind, id: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        if let Some(snapshot) = self.snapshot_folders(kind, id).first() {
            collect_files(snapshot, &mut found);
        }
        found.sort();
        found
    }

    /// Where a downloaded file of this commit belongs; `None` if one of them is not a name of the
    /// hub's.
    pub fn file_path(&self, kind: RepoKind, id: &str, commit: &str, file: &str) -> Option<PathBuf> {
        let folder = self.repo_folder(kind, id)?;
        (is_commit(commit) && is_inside_name(file))
            .then(|| folder.join("snapshots").join(commit).join(file))
    }

    /// Says which commit the main line of a repository is at.
    pub fn write_ref(&self, kind: RepoKind, id: &str, commit: &str) -> io::Result<()> {
        let folder = self.repo_folder(kind, id).filter(|_| is_commit(commit));
        let refs = folder.ok_or(io::ErrorKind::InvalidInput)?.join("refs");
        fs::create_dir_all(&refs)?;
        fs::write(refs.join("main"), commit)
    }

    /// `models--org--name`.
    fn repo_folder(&self, kind: RepoKind, id: &str) -> Option<PathBuf> {
        is_id(id).then(|| self.root.join(format!("{}--{}", kind.name(), id.replace('/', "--"))))
    }

    /// Snapshots of a repository: that of the main line first, then the newest first.
    fn snapshot_folders(&self, kind: RepoKind, id: &str) -> Vec<PathBuf> {
        let Some(folder) = self.repo_folder(kind, id) else { return Vec::new() };
        let main =
            goodput_files::read_text(&folder.join("refs/main"), MOST_SMALL).unwrap_or_default();
        let Ok(entries) = fs::read_dir(folder.join("snapshots")) else { return Vec::new() };
        let mut found: Vec<(bool, SystemTime, PathBuf)> = entries
            .flatten()
            .filter(|entry| entry.path().is_dir())
            .map(|entry| {
                let changed = entry.metadata().and_then(|metadata| metadata.modified());
                let is_main = entry.file_name().to_str() == Some(main.trim());
                (is_main, changed.unwrap_or(SystemTime::UNIX_EPOCH), entry.path())
            })
            .collect();
        found.sort();
        found.into_iter().rev().map(|(_, _, path)| path).collect()
    }
}

/// Files below a folder. Files may be links, as the hub's client makes them; folders may not, so
/// that no walk runs in a circle.
fn collect_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect_files(&path, found);
        } else if path.is_file() {
            found.push(path);
        }
    }
}

#[cfg(test)]
mod tests;
