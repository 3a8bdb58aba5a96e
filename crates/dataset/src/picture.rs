//! Pictures that lie in tables: which files have them, and their rows one by one.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::entry::Picture;
use crate::error::{DatasetError, EntryError};
use crate::first::is_parquet;
use crate::parquet;

/// Whether this path means tables in Parquet with pictures: one file that has them, or a pattern of
/// names such as `data/test-*.parquet`.
pub fn has_pictures(path: &Path) -> bool {
    let is_table = |file: &Path| is_parquet(file).is_ok_and(|is| is) && parquet::has_pictures(file);
    if path.exists() {
        return !path.is_dir() && is_table(path);
    }
    // Only pictures are read from several files: their reader says what is wrong with others.
    let is_first =
        |files: Vec<PathBuf>| files.first().is_some_and(|it| is_parquet(it).is_ok_and(|is| is));
    matching_files(path).is_ok_and(is_first)
}

/// The files whose names match a pattern, in order of their names. `*` stands for any characters and
/// `?` for one; folders are named as they are.
pub fn matching_files(pattern: &Path) -> Result<Vec<PathBuf>, DatasetError> {
    let name = pattern.file_name().map(|name| name.to_string_lossy().into_owned());
    let Some(name) = name.filter(|name| name.contains(['*', '?'])) else {
        return Ok(vec![pattern.to_owned()]);
    };
    let parent = pattern.parent().filter(|parent| !parent.as_os_str().is_empty());
    let list = |folder: &Path| -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if matches(name.as_bytes(), entry.file_name().as_encoded_bytes()) {
                found.push(pattern.with_file_name(entry.file_name()));
            }
        }
        found.sort();
        Ok(found)
    };
    let files = list(parent.unwrap_or(Path::new(".")))
        .map_err(|error| DatasetError::io(pattern, "listed", &error))?;
    if files.is_empty() {
        let fault = EntryError::with_hint("no file has such a name", "check the pattern");
        return Err(DatasetError::file(pattern, fault));
    }
    Ok(files)
}

/// Hands out the pictures of one table row by row, with only one in memory, until its end or until
/// `visit` says that it has enough. It also gets what is wrong with a row; what it returns as wrong
/// becomes the error, with file and row.
pub fn pictures(
    path: &Path,
    visit: &mut dyn FnMut(Result<Picture, String>) -> Result<bool, String>,
) -> Result<(), DatasetError> {
    parquet::scan_pictures(path, visit)
}

/// Whether a name matches a pattern; after a mismatch the last `*` takes one character more.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut place) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(&byte) = name.get(place) {
        match (pattern.get(at), star) {
            (Some(b'*'), _) => {
                star = Some((at + 1, place));
                at += 1;
            }
            (Some(&wanted), _) if wanted == b'?' || wanted == byte => {
                at += 1;
                place += 1;
            }
            (_, Some((after, begun))) => {
                star = Some((after, begun + 1));
                (at, place) = (after, begun + 1);
            }
            (_, None) => return false,
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_patterns() {
        let all = [
            ("test-*.parquet", "test-00000-of-00014.parquet", true),
            ("test-*.parquet", "val-00000-of-00002.parquet", false),
            ("*", "", true),
            ("a?c*", "abcde", true),
            ("a?c", "ac", false),
            ("*ab*ab", "abab", true),
            ("*ab*ab", "abba", false),
            ("**x", "aax", true),
        ];
        for (pattern, name, expected) in all {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}
