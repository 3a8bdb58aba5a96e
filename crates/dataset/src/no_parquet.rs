//! A build without Parquet: a table is an error that says so.

use std::path::Path;

use goodput_model::{Feature, LeftOut};

use crate::entry::Picture;
use crate::error::{DatasetError, EntryError};
use crate::options::DatasetOptions;
use crate::pass::{Keeper, PassTally};

/// Fails.
pub(crate) fn scan_parquet(
    path: &Path,
    _options: &DatasetOptions,
    _keeper: &mut dyn Keeper,
) -> Result<PassTally, DatasetError> {
    let what = LeftOut(Feature::Parquet).to_string();
    Err(DatasetError::file(path, EntryError::with_hint(what, LeftOut::HINT)))
}

/// A table is for the other reader, which says what is left out.
#[cfg_attr(
    all(test, feature = "parquet"),
    expect(dead_code, reason = "the build with Parquet has its own")
)]
pub(crate) fn has_pictures(_path: &Path) -> bool {
    false
}

/// Fails.
#[cfg_attr(
    all(test, feature = "parquet"),
    expect(dead_code, reason = "the build with Parquet has its own")
)]
pub(crate) fn scan_pictures(
    path: &Path,
    _visit: &mut dyn FnMut(Result<Picture, String>) -> Result<bool, String>,
) -> Result<(), DatasetError> {
    let what = LeftOut(Feature::Parquet).to_string();
    Err(DatasetError::file(path, EntryError::with_hint(what, LeftOut::HINT)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DatasetEntry;

    struct None;

    impl Keeper for None {
        fn wants(&mut self, _number: u64) -> bool {
            false
        }

        fn keep(&mut self, _: u64, _: DatasetEntry) -> Result<Option<String>, EntryError> {
            Ok(Option::None)
        }
    }

    #[test]
    fn a_table_says_what_is_left_out() {
        let error = scan_parquet(Path::new("a.parquet"), &DatasetOptions::default(), &mut None);
        let error = error.unwrap_err().to_string();
        let expected =
            "a.parquet: built without `parquet`: this build cannot read or write Parquet";
        assert_eq!(error, expected);
    }
}
