//! The folder of many runs, a sweep or a comparison, which can be gone on with after any stop. (That of
//! a shadow is one too, with logs of its own instead of points.)
//!
//! ```text
//! sweep.toml          what was asked; of a comparison compare.toml
//! asks.jsonl          which point began and which ended, append-only
//! points/001-users-4  a run folder for each point, in the order measured
//! summary.json        every number
//! report.txt          the same as a page
//! lock                held while a process measures
//! warm-up/001-A       a run folder for each warm-up of a comparison
//! configurations/     instead of points: a sweep folder for each configuration
//! ```

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use goodput_files::{MOST_SMALL, MOST_SUMMARY, check_inside, read_inside, read_text_inside};
use goodput_model::{REDACTED, url_without_secrets};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::FolderError;
use crate::folder::{create_folder, replace_in_folder, to_json};
use crate::layout::{SUMMARY, is_folder};
use crate::lock::FolderLock;
use crate::toml_file::read_toml_inside;

const ASKS: &str = "asks.jsonl";
const POINTS: &str = "points";
const CONFIGURATIONS: &str = "configurations";
const WARM_UPS: &str = "warm-up";
const LOCK: &str = "lock";
/// What a point's folder is called that was set aside, behind its name.
const ASIDE: &str = ".unfinished-";

/// Letters of a name that a folder takes from what it is about.
const LONGEST: usize = 60;

/// What many runs are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Campaign {
    /// Rising load on one target.
    Sweep,
    /// The same load on several.
    Comparison,
    /// A share of live traffic on a candidate.
    Shadow,
}

impl Campaign {
    /// The file that holds what was asked; a folder is told by it.
    fn file_name(self) -> &'static str {
        match self {
            Self::Sweep => "sweep.toml",
            Self::Comparison => "compare.toml",
            Self::Shadow => "shadow.toml",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Sweep => "sweep",
            Self::Comparison => "comparison",
            Self::Shadow => "shadow",
        }
    }
}

/// Many runs on disk.
#[derive(Debug)]
pub struct CampaignFolder {
    kind: Campaign,
    path: PathBuf,
    /// Held as long as this lives; none in a folder that is only read.
    _lock: Option<FolderLock>,
}

/// A point that was begun.
#[derive(Debug, Clone, PartialEq)]
pub struct BegunPoint<A> {
    /// Its number.
    pub number: u32,
    /// What was asked of it.
    pub ask: A,
    /// How long it took, once it had ended: its folder is whole.
    pub took_s: Option<f64>,
}

/// A line of `asks.jsonl`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum AskLine<A> {
    Began { number: u32, ask: A },
    Ended { number: u32, took_s: f64 },
}

impl CampaignFolder {
    /// The file that holds the page.
    pub const REPORT: &'static str = "report.txt";

    /// Makes a new folder with what was asked. Values of headers and of queries are left out, as in
    /// `plan.toml`.
    pub fn create(
        kind: Campaign,
        path: &Path,
        asked: &impl Serialize,
    ) -> Result<Self, FolderError> {
        create_folder(path)?;
        let lock = lock_folder(path)?;
        let folder = Self { kind, path: path.to_owned(), _lock: lock };
        folder.write_asked(asked)?;
        Ok(folder)
    }

    /// Opens an existing folder to read it; none if the path is something else.
    pub fn open(kind: Campaign, path: &Path) -> Option<Self> {
        let is_one = path.join(kind.file_name()).is_file();
        is_one.then(|| Self { kind, path: path.to_owned(), _lock: None })
    }

    /// Opens an existing folder to go on with it. Only one process at a time can.
    pub fn resume(kind: Campaign, path: &Path) -> Result<Self, FolderError> {
        if !path.join(kind.file_name()).is_file() {
            return Err(FolderError::NotACampaign(path.to_owned(), kind.name(), kind.file_name()));
        }
        let lock = lock_folder(path)?;
        let folder = Self { kind, path: path.to_owned(), _lock: lock };
        folder.cut_partial_line()?;
        Ok(folder)
    }

    /// Writes what was asked, once more of it is settled, whole or not at all.
    pub fn write_asked(&self, asked: &impl Serialize) -> Result<(), FolderError> {
        let file = self.kind.file_name();
        let damaged = |error: toml::ser::Error| FolderError::Damaged {
            path: self.path.join(file),
            error: error.to_string(),
        };
        let mut asked = toml::Table::try_from(asked).map_err(damaged)?;
        redact_plans(&mut asked);
        let text = toml::to_string(&asked).map_err(damaged)?;
        replace_in_folder(&self.path, file, text.as_bytes())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was asked, without the values of headers and queries.
    pub fn read_asked<T: DeserializeOwned>(&self) -> Result<T, FolderError> {
        read_toml_inside(&self.path.join(self.kind.file_name()))
    }

    /// The same as its file has it; empty if it cannot be read.
    pub fn read_asked_source(&self) -> String {
        read_text_inside(&self.path.join(self.kind.file_name()), MOST_SMALL).unwrap_or_default()
    }

    /// Where the point of this number is, or will be. The label may be any text.
    pub fn point_path(&self, number: u32, label: &str) -> PathBuf {
        self.path.join(POINTS).join(format!("{number:03}-{}", safe_name(label)))
    }

    /// A free place for a run that warms something up and counts for nothing. The label may be any
    /// text.
    pub fn new_warm_up_path(&self, label: &str) -> PathBuf {
        let all = self.path.join(WARM_UPS);
        let last = numbered_folders(&all).last().map_or(0, |last| last.0);
        all.join(format!("{:03}-{}", last.saturating_add(1), safe_name(label)))
    }

    /// The points that are there, by number, without those that were set aside.
    pub fn list_points(&self) -> Vec<(u32, PathBuf)> {
        numbered_folders(&self.path.join(POINTS))
    }

    /// Renames what is there of a point, so that it can be measured again and nothing is lost.
    pub fn set_aside(&self, number: u32) -> Result<(), FolderError> {
        for (_, path) in self.list_points().into_iter().filter(|point| point.0 == number) {
            let aside = |k: u32| {
                let mut name = path.clone().into_os_string();
                name.push(format!("{ASIDE}{k}"));
                PathBuf::from(name)
            };
            let free = (1..=u32::MAX).map(aside).find(|path| fs::symlink_metadata(path).is_err());
            let to = free.unwrap_or_else(|| aside(0));
            fs::rename(&path, &to).map_err(io_error("rename", &path))?;
        }
        Ok(())
    }

    /// Notes that a point begins.
    pub fn note_begin(&self, number: u32, ask: &impl Serialize) -> Result<(), FolderError> {
        self.append_line(&AskLine::Began { number, ask })
    }

    /// Notes that a point has ended, and its folder is whole.
    pub fn note_end(&self, number: u32, took_s: f64) -> Result<(), FolderError> {
        self.append_line(&AskLine::<()>::Ended { number, took_s })
    }

    /// Every point that was begun, by number; of one that was begun again, the last time. A last line
    /// that was cut off is left out.
    pub fn read_asks<A: DeserializeOwned>(&self) -> Result<Vec<BegunPoint<A>>, FolderError> {
        let path = self.path.join(ASKS);
        let bytes = match read_inside(&path, MOST_SMALL) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(io_error("read", &path))?,
        };
        let mut asks = BTreeMap::new();
        let whole = bytes.get(..whole_lines_length(&bytes)).unwrap_or_default();
        let lines = whole.split(|byte| *byte == b'\n').enumerate();
        for (index, line) in lines.filter(|(_, line)| !line.is_empty()) {
            let line = serde_json::from_slice(line).map_err(|error| FolderError::Damaged {
                path: path.clone(),
                error: format!("line {}: {error}", index + 1),
            })?;
            match line {
                AskLine::Began { number, ask } => {
                    asks.insert(number, BegunPoint { number, ask, took_s: None });
                }
                AskLine::Ended { number, took_s } => {
                    if let Some(asked) = asks.get_mut(&number) {
                        asked.took_s = Some(took_s);
                    }
                }
            }
        }
        Ok(asks.into_values().collect())
    }

    /// Where the sweep of this configuration is, or will be. Names and values may be any text.
    pub fn configuration_path(&self, number: u32, values: &[(String, String)]) -> PathBuf {
        let pairs: Vec<String> =
            values.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let name = safe_name(&pairs.join(","));
        self.path.join(CONFIGURATIONS).join(format!("{number:02}-{name}"))
    }

    /// Whether many runs of this kind lie in this folder. The file that says so must be a plain one.
    pub(crate) fn is_at(kind: Campaign, path: &Path) -> Result<bool, FolderError> {
        let file = path.join(kind.file_name());
        check_inside(&file).map_err(io_error("read", &file))?;
        Ok(fs::symlink_metadata(&file).is_ok())
    }

    /// Whether there are configurations in this folder.
    pub(crate) fn has_configurations(path: &Path) -> bool {
        is_folder(&path.join(CONFIGURATIONS))
    }

    /// The configurations that are there, by number.
    pub fn list_configurations(&self) -> Vec<(u32, PathBuf)> {
        numbered_folders(&self.path.join(CONFIGURATIONS))
    }

    /// The numbers that were written last; none if there are none, or of another form.
    pub fn read_summary<T: DeserializeOwned>(&self) -> Option<T> {
        let bytes = read_inside(&self.path.join(SUMMARY), MOST_SUMMARY).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Writes the numbers, whole or not at all.
    pub fn write_summary(&self, summary: &impl Serialize) -> Result<(), FolderError> {
        replace_in_folder(&self.path, SUMMARY, to_json(summary).as_bytes())
    }

    /// Writes the page, whole or not at all.
    pub fn write_report(&self, page: &str) -> Result<(), FolderError> {
        replace_in_folder(&self.path, Self::REPORT, page.as_bytes())
    }

    fn append_line(&self, line: &AskLine<impl Serialize>) -> Result<(), FolderError> {
        let path = self.path.join(ASKS);
        let mut bytes = serde_json::to_vec(line).map_err(|error| FolderError::Damaged {
            path: path.clone(),
            error: error.to_string(),
        })?;
        bytes.push(b'\n');
        // A full disk may have left half a line.
        self.cut_partial_line()?;
        let file = OpenOptions::new().append(true).create(true).open(&path);
        // A point takes minutes; its line must outlive a machine that goes down after it.
        file.and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_data()))
            .map_err(io_error("write", &path))
    }

    /// Cuts off the beginning of a line, so that the next one does not stand behind it.
    fn cut_partial_line(&self) -> Result<(), FolderError> {
        let path = self.path.join(ASKS);
        let bytes = match read_inside(&path, MOST_SMALL) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other.map_err(io_error("read", &path))?,
        };
        let whole = whole_lines_length(&bytes);
        if whole == bytes.len() {
            return Ok(());
        }
        let file = OpenOptions::new().write(true).open(&path);
        file.and_then(|file| file.set_len(whole as u64)).map_err(io_error("write", &path))
    }
}

fn io_error(action: &'static str, path: &Path) -> impl Fn(io::Error) -> FolderError + use<> {
    let path = path.to_owned();
    move |error| FolderError::Io { action, path: path.clone(), error }
}

/// Bytes up to and with the last end of a line.
fn whole_lines_length(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1)
}

/// The lock of a folder; none on a file system without locks.
fn lock_folder(path: &Path) -> Result<Option<FolderLock>, FolderError> {
    let file = path.join(LOCK);
    check_inside(&file).map_err(io_error("create", &file))?;
    let open = OpenOptions::new().write(true).create(true).truncate(false).open(&file);
    let opened = open.map_err(io_error("create", &file))?;
    match FolderLock::new(opened) {
        Ok(lock) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => Err(FolderError::Locked(path.to_owned())),
        // Some network file systems have no locks: better a sweep than none.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
        Err(TryLockError::Error(error)) => Err(io_error("lock", &file)(error)),
    }
}

/// Folders whose names begin with a number and a dash, in the order of their numbers.
fn numbered_folders(path: &Path) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let number = |entry: fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_str().filter(|name| !name.contains(ASIDE))?;
        let (number, _) = name.split_once('-')?;
        let is_ours = number.bytes().all(|byte| byte.is_ascii_digit()) && entry.path().is_dir();
        is_ours.then(|| Some((number.parse().ok()?, entry.path())))?
    };
    let mut found: Vec<(u32, PathBuf)> = entries.filter_map(number).collect();
    found.sort();
    found
}

/// A text as part of a file's name, on every system: what may stand for something else becomes `_`,
/// and what is long is cut.
fn safe_name(text: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "._=,+-".contains(c);
    let name: String = text.chars().map(|c| if is_safe(c) { c } else { '_' }).collect();
    // What was set aside is told by its name.
    let name: String = name.replace(ASIDE, "_unfinished-").chars().take(LONGEST).collect();
    // Some systems leave dots at the end out.
    name.trim_end_matches('.').to_owned()
}

/// Hides the values of headers and of queries, wherever a plan stands in it.
fn redact_plans(table: &mut toml::Table) {
    for (name, value) in table.iter_mut() {
        match (name.as_str(), value) {
            ("url", toml::Value::String(url)) => *url = url_without_secrets(url),
            ("headers", toml::Value::Array(headers)) => {
                for header in headers.iter_mut().filter_map(toml::Value::as_table_mut) {
                    header.insert("value".to_owned(), REDACTED.into());
                }
            }
            ("metrics_urls" | "exporters", toml::Value::Array(urls)) => {
                for url in urls {
                    if let toml::Value::String(url) = url {
                        *url = url_without_secrets(url);
                    }
                }
            }
            (_, value) => redact_value(value),
        }
    }
}

fn redact_value(value: &mut toml::Value) {
    match value {
        toml::Value::Table(table) => redact_plans(table),
        toml::Value::Array(values) => values.iter_mut().for_each(redact_value),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
