//! Images from files: those of a folder, and those that lie in tables.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use goodput_dataset::{DatasetError, matching_files, pictures};

use super::captions::Captions;
use super::{Image, Images, MAX_BYTES, check, data_url, image_error};
use crate::WorkloadError;

/// Endings of names in a folder that are taken for images.
const ENDINGS: [&str; 5] = ["jpg", "jpeg", "png", "webp", "gif"];

/// Bytes of data URLs that are kept: images beyond them are not read.
const MOST_POOL_BYTES: usize = 2 << 30;

const HINT: &str = "name a folder with .jpg, .png, .webp or .gif files, or Parquet with pictures";

/// The first images of a folder, of a table in Parquet, or of the tables that a pattern names.
pub(super) fn from_files(
    path: &Path,
    most: usize,
    skip_invalid: bool,
) -> Result<Images, WorkloadError> {
    let mut pool = ImagePool { found: Images::default(), most, bytes: 0, skip_invalid };
    if path.is_dir() {
        pool.add_folder(path)?;
    } else {
        for table in matching_files(path).map_err(|error| bad_table(&error))? {
            pool.add_table(&table)?;
        }
    }
    if pool.found.images.is_empty() {
        let left_out: u64 = pool.found.skipped.values().sum();
        let message = format!("{}: no image in it ({left_out} left out)", path.display());
        return Err(image_error(message, HINT));
    }
    Ok(pool.found)
}

/// Images that are kept in memory, up to a number and a size.
struct ImagePool {
    found: Images,
    most: usize,
    bytes: usize,
    /// Whether files and rows without a whole image are left out and counted.
    skip_invalid: bool,
}

impl ImagePool {
    /// The files of a folder that are images, by name, and then its tables.
    fn add_folder(&mut self, folder: &Path) -> Result<(), WorkloadError> {
        let failed = |error: io::Error| image_error(format!("{}: {error}", folder.display()), HINT);
        let mut files = Vec::new();
        walk(folder, &mut files).map_err(failed)?;
        files.sort();
        let (images, tables): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|path| is_image_name(path));
        let captions = Captions::read(folder)?;
        for path in images {
            if self.is_full() {
                return Ok(());
            }
            match whole(&path) {
                Ok((kind, bytes)) => {
                    let caption = captions.find(folder, &path)?;
                    self.keep(Image { url: data_url(kind, &bytes), caption });
                }
                Err(reason) if self.skip_invalid => self.skip(reason),
                Err(reason) => {
                    let hint = "replace or remove it, or leave such files out with --skip-invalid";
                    return Err(image_error(format!("{}: {reason}", path.display()), hint));
                }
            }
        }
        tables.iter().try_for_each(|table| self.add_table(table))
    }

    /// The rows of a table, one at a time.
    fn add_table(&mut self, table: &Path) -> Result<(), WorkloadError> {
        if self.is_full() {
            return Ok(());
        }
        let visit = &mut |found: Result<goodput_dataset::Picture, String>| {
            let image = found.and_then(|picture| {
                let kind = kind(&picture.bytes)?;
                let caption = picture.text.as_deref().map(Into::into);
                Ok(Image { url: data_url(kind, &picture.bytes), caption })
            });
            match image {
                Ok(image) => self.keep(image),
                Err(reason) if self.skip_invalid => self.skip(reason),
                Err(reason) => return Err(reason),
            }
            Ok(!self.is_full())
        };
        pictures(table, visit).map_err(|error| bad_table(&error))
    }

    fn keep(&mut self, image: Image) {
        self.bytes = self.bytes.saturating_add(image.url.len());
        self.found.images.push(image);
    }

    fn skip(&mut self, reason: String) {
        *self.found.skipped.entry(reason).or_default() += 1;
    }

    fn is_full(&self) -> bool {
        self.found.images.len() >= self.most || self.bytes >= MOST_POOL_BYTES
    }
}

fn bad_table(error: &DatasetError) -> WorkloadError {
    let hint = "leave such rows out with --skip-invalid, or check the file";
    image_error(error.to_string(), &error.hint().unwrap_or_else(|| hint.to_owned()))
}

/// The kind of a picture in a row, or what is wrong with it.
fn kind(bytes: &[u8]) -> Result<&'static str, String> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("its picture is larger than {} MiB", MAX_BYTES >> 20));
    }
    check::image_kind(bytes).map_err(|reason| format!("its picture is {reason}"))
}

/// Files below a folder that are called images or tables. Links to folders are not followed, so that
/// no walk runs in a circle.
fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if entry.file_type()?.is_dir() {
            walk(&path, found)?;
        } else if is_image_name(&path) || ending(&path).as_deref() == Some("parquet") {
            found.push(path);
        }
    }
    Ok(())
}

/// Whether a file is called an image.
pub(super) fn is_image_name(path: &Path) -> bool {
    ending(path).is_some_and(|ending| ENDINGS.contains(&ending.as_str()))
}

fn ending(path: &Path) -> Option<String> {
    path.extension().map(|ending| ending.to_string_lossy().to_lowercase())
}

/// The kind and the bytes of an image, or why it is none.
fn whole(path: &Path) -> Result<(&'static str, Vec<u8>), String> {
    let bytes = goodput_files::read(path, MAX_BYTES).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => format!("larger than {} MiB", MAX_BYTES >> 20),
        io::ErrorKind::InvalidInput => "not a plain file".to_owned(),
        kind => format!("unreadable: {kind}"),
    })?;
    let kind = check::image_kind(&bytes)?;
    Ok((kind, bytes))
}
