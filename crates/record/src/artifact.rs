//! [`Artifact`]: what lies at a path. This is the only place that knows which files tell one kind of result
//! from another.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use goodput_files::{MOST_SUMMARY, read_inside};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::campaign::{Campaign, CampaignFolder};
use crate::error::FolderError;
use crate::folder::RunFolder;
use crate::layout::SUMMARY;
use crate::series::SeriesFolder;
use crate::shadow::ShadowFolder;

/// What a folder holds, told by the names in it alone. No file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactKind {
    /// One run, or one shard of a run.
    #[default]
    Run,
    /// Several runs of one plan.
    Repeats,
    /// Rising load on one target.
    Sweep,
    /// Sweeps of several configurations.
    Sweeps,
    /// The same load on several targets.
    Comparison,
    /// A share of live traffic on a candidate.
    Shadow,
}

impl ArtifactKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Run, Self::Repeats, Self::Sweep, Self::Sweeps, Self::Comparison, Self::Shadow];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Repeats => "repeats",
            Self::Sweep => "sweep",
            Self::Sweeps => "sweeps",
            Self::Comparison => "comparison",
            Self::Shadow => "shadow",
        }
    }

    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// What this folder holds; nothing if it holds something else. A file that tells the kind but
    /// is not a plain one is an error, unless there is a run next to it.
    pub fn from_folder(path: &Path) -> Result<Option<Self>, FolderError> {
        let mut refused = None;
        for campaign in [Campaign::Comparison, Campaign::Shadow, Campaign::Sweep] {
            match CampaignFolder::is_at(campaign, path) {
                Ok(false) => {}
                Ok(true) => return Ok(Some(Self::from_campaign(campaign, path))),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        // A run may lie in a folder with any name next to it: only a folder without a run of its own
        // holds several.
        if RunFolder::is_at(path) {
            return Ok(Some(Self::Run));
        }
        match refused {
            Some(error) => Err(error),
            None => Ok(SeriesFolder::open(path).map(|_| Self::Repeats)),
        }
    }

    fn from_campaign(campaign: Campaign, path: &Path) -> Self {
        match campaign {
            Campaign::Comparison => Self::Comparison,
            Campaign::Shadow => Self::Shadow,
            // Until the first of several configurations begins, there is nothing to tell them by.
            Campaign::Sweep if CampaignFolder::has_configurations(path) => Self::Sweeps,
            Campaign::Sweep => Self::Sweep,
        }
    }
}

/// A result at a path.
#[derive(Debug)]
pub enum Artifact {
    /// A run: whole, or merged from its shards.
    Run(RunFolder),
    /// The part of a run that one of several clients measured.
    Shard(RunFolder),
    /// Several runs of one plan.
    Repeats(SeriesFolder),
    /// Rising load on one target.
    Sweep(CampaignFolder),
    /// Sweeps of several configurations.
    Sweeps(CampaignFolder),
    /// The same load on several targets.
    Comparison(CampaignFolder),
    /// A share of live traffic on a candidate.
    Shadow(ShadowFolder),
    /// Numbers without what they were made from: a folder that holds a summary and no logs, as that of a
    /// comparison of saved runs.
    Summary(SummaryFolder),
    /// A file: the result of another tool, or a summary that was taken out of its folder.
    File(PathBuf),
}

impl Artifact {
    /// Opens what lies at a path. The `summary.json` of a result stands for the folder that it lies in.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let facts = fs::metadata(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => FolderError::Missing(path.to_owned()),
            _ => read_error(path, error),
        })?;
        if facts.is_dir() {
            return Self::open_folder(path);
        }
        // A pipe or a device is refused without being opened.
        goodput_files::open(path).map_err(|error| read_error(path, error))?;
        let is_summary = path.file_name().is_some_and(|name| name == SUMMARY);
        let folder = path.parent().filter(|_| is_summary).map(parent_or_here);
        Ok(match folder.map(Self::open_folder) {
            None | Some(Ok(Self::Summary(_)) | Err(_)) => Self::File(path.to_owned()),
            Some(Ok(artifact)) => artifact,
        })
    }

    fn open_folder(path: &Path) -> Result<Self, FolderError> {
        let gone = || FolderError::Missing(path.to_owned());
        let campaign = |kind| CampaignFolder::open(kind, path).ok_or_else(gone);
        let Some(kind) = ArtifactKind::from_folder(path)? else {
            return match SummaryFolder::open(path) {
                Some(summary) => Ok(Self::Summary(summary)),
                // It says what is missing.
                None => RunFolder::open(path).map(Self::Run),
            };
        };
        Ok(match kind {
            ArtifactKind::Run => {
                let folder = RunFolder::open(path)?;
                let is_shard =
                    folder.read_manifest().is_ok_and(|manifest| manifest.shard.is_some());
                if is_shard { Self::Shard(folder) } else { Self::Run(folder) }
            }
            ArtifactKind::Repeats => Self::Repeats(SeriesFolder::open(path).ok_or_else(gone)?),
            ArtifactKind::Sweep => Self::Sweep(campaign(Campaign::Sweep)?),
            ArtifactKind::Sweeps => Self::Sweeps(campaign(Campaign::Sweep)?),
            ArtifactKind::Comparison => Self::Comparison(campaign(Campaign::Comparison)?),
            ArtifactKind::Shadow => Self::Shadow(ShadowFolder::open(path).ok_or_else(gone)?),
        })
    }

    /// The folder, or the file.
    pub fn path(&self) -> &Path {
        match self {
            Self::Run(folder) | Self::Shard(folder) => folder.path(),
            Self::Repeats(folder) => folder.path(),
            Self::Sweep(folder) | Self::Sweeps(folder) | Self::Comparison(folder) => folder.path(),
            Self::Shadow(folder) => folder.path(),
            Self::Summary(folder) => folder.path(),
            Self::File(path) => path,
        }
    }

    /// Where its numbers were written, or will be.
    pub fn summary_path(&self) -> PathBuf {
        match self {
            Self::File(path) => path.clone(),
            _ => self.path().join(SUMMARY),
        }
    }

    /// The folders of the results that it is made of, in their order: repeats, points, configurations.
    /// What was set aside and what only warmed up is not among them.
    pub fn part_folders(&self) -> Vec<PathBuf> {
        match self {
            Self::Repeats(folder) => {
                folder.run_numbers().into_iter().map(|number| folder.run_path(number)).collect()
            }
            Self::Sweep(folder) | Self::Sweeps(folder) | Self::Comparison(folder) => {
                let parts = folder.list_points().into_iter().chain(folder.list_configurations());
                parts.map(|(_, path)| path).collect()
            }
            Self::Run(_) | Self::Shard(_) | Self::Shadow(_) | Self::Summary(_) | Self::File(_) => {
                Vec::new()
            }
        }
    }
}

/// A folder with the numbers of a result, and not what they were made from.
#[derive(Debug)]
pub struct SummaryFolder(PathBuf);

impl SummaryFolder {
    /// Opens a folder with a summary; none without such a plain file.
    pub fn open(path: &Path) -> Option<Self> {
        let facts = fs::symlink_metadata(path.join(SUMMARY)).ok()?;
        facts.is_file().then(|| Self(path.to_owned()))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The name and version of the summary's format; empty if it names none.
    pub fn read_schema(&self) -> String {
        #[derive(Deserialize)]
        struct Named {
            schema: String,
        }
        self.read_summary().map_or_else(|_| String::new(), |Named { schema }| schema)
    }

    /// The numbers.
    pub fn read_summary<T: DeserializeOwned>(&self) -> Result<T, FolderError> {
        let path = self.0.join(SUMMARY);
        let bytes = read_inside(&path, MOST_SUMMARY).map_err(|error| read_error(&path, error))?;
        serde_json::from_slice(&bytes)
            .map_err(|error| FolderError::Damaged { path, error: error.to_string() })
    }
}

fn read_error(path: &Path, error: io::Error) -> FolderError {
    FolderError::Io { action: "read", path: path.to_owned(), error }
}

/// A file without a folder in its path lies here.
fn parent_or_here(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

#[cfg(test)]
mod tests;
