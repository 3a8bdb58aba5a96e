//! The folder of several runs of one plan: `repeat-1`, `repeat-2` and so on, each a run folder, and
//! a summary of all.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::FolderError;
use crate::folder::{create_folder, replace_in_folder, to_json};
use crate::layout::SUMMARY;

/// What the folders of its runs are called, before their number.
const RUN: &str = "repeat-";

/// Several runs of one plan on disk.
#[derive(Debug)]
pub struct SeriesFolder(PathBuf);

impl SeriesFolder {
    /// Makes a new folder.
    pub fn create(path: &Path) -> Result<Self, FolderError> {
        create_folder(path)?;
        Ok(Self(path.to_owned()))
    }

    /// Opens an existing folder; none if it holds no numbered run.
    pub fn open(path: &Path) -> Option<Self> {
        let series = Self(path.to_owned());
        (!series.run_numbers().is_empty()).then_some(series)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Where the run of this number is, or will be.
    pub fn run_path(&self, number: u32) -> PathBuf {
        self.0.join(format!("{RUN}{number}"))
    }

    /// The numbers of the runs that are there, in order.
    pub fn run_numbers(&self) -> Vec<u32> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let number = |entry: fs::DirEntry| {
            let name = entry.file_name();
            let number = name.to_str()?.strip_prefix(RUN)?.parse().ok()?;
            // `repeat-01` is nothing of ours.
            (self.run_path(number).file_name() == Some(&name)).then_some(number)
        };
        let mut numbers: Vec<u32> = entries.filter_map(number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Writes the numbers of all, whole or not at all.
    pub fn write_summary(&self, summary: &impl Serialize) -> Result<(), FolderError> {
        replace_in_folder(&self.0, SUMMARY, to_json(summary).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_come_in_the_order_of_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("several");
        let series = SeriesFolder::create(&path).unwrap();
        assert!(SeriesFolder::open(&path).is_none(), "it holds no run");
        for name in ["repeat-10", "repeat-2", "repeat-1", "repeat-01", "repeat-x", "other"] {
            fs::create_dir(path.join(name)).unwrap();
        }
        assert_eq!(SeriesFolder::open(&path).unwrap().run_numbers(), [1, 2, 10]);
        series.write_summary(&[1]).unwrap();
        assert_eq!(fs::read_to_string(path.join("summary.json")).unwrap(), "[\n  1\n]\n");
        assert!(matches!(SeriesFolder::create(&path), Err(FolderError::Occupied(_))));
        assert!(SeriesFolder::open(Path::new("/nowhere")).is_none());
    }
}
