//! One pass over a file: every entry is looked at, what is left out is counted, and what is wanted
//! goes to the [`Keeper`].

use std::collections::BTreeMap;
use std::path::Path;

use crate::DatasetEntry;
use crate::error::{DatasetError, EntryError, FilePosition};
use crate::input::open_text;
use crate::items::Items;
use crate::options::DatasetOptions;

/// What an item of a file turned out to be.
pub(crate) enum ItemOutcome {
    Entry(DatasetEntry),
    /// A valid entry that was not needed, so it was not built.
    Good,
    /// Left out, and why.
    Skip(String),
}

/// Who takes the entries.
pub(crate) trait Keeper {
    /// Whether the entry with this number, from 0, is worth building.
    fn wants(&mut self, number: u64) -> bool;

    /// Takes it, or says why not.
    fn keep(&mut self, number: u64, entry: DatasetEntry) -> Result<Option<String>, EntryError>;
}

/// What was counted on the way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PassTally {
    pub(crate) seen: u64,
    pub(crate) skipped: BTreeMap<String, u64>,
    pub(crate) notes: BTreeMap<String, u64>,
    pub(crate) sha256: String,
    /// The first entry that could not be read, and why.
    unreadable: Option<String>,
}

impl PassTally {
    /// The notes as sentences.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let note = |(what, times): (&String, &u64)| format!("{what} ({times} times)");
        let first = self.unreadable.iter().map(|what| format!("first entry not readable: {what}"));
        self.notes.iter().map(note).chain(first).collect()
    }

    pub(crate) fn skip(&mut self, reason: String) {
        *self.skipped.entry(reason).or_default() += 1;
    }

    /// The error of a file of which nothing was kept.
    pub(crate) fn nothing_kept_error(&self, path: &Path) -> DatasetError {
        let reasons: Vec<String> =
            self.skipped.iter().map(|(reason, times)| format!("{reason}: {times}")).collect();
        let what =
            format!("none of its {} entries can be used ({})", self.seen, reasons.join(", "));
        DatasetError::file(
            path,
            EntryError::with_hint(what, "widen the bounds, or use another file"),
        )
    }
}

/// Counts of what happened within entries, by what it was.
#[derive(Default)]
pub(crate) struct EntryNotes(BTreeMap<String, u64>);

impl EntryNotes {
    pub(crate) fn add(&mut self, what: &str) {
        match self.0.get_mut(what) {
            Some(times) => *times += 1,
            None => {
                self.0.insert(what.to_owned(), 1);
            }
        }
    }
}

/// One pass over a file of JSON items. `read` makes something of the text of each; it is told
/// whether an entry is wanted.
pub(crate) fn scan_items(
    path: &Path,
    options: &DatasetOptions,
    keeper: &mut dyn Keeper,
    mut read: impl FnMut(&str, bool, &mut EntryNotes) -> Result<ItemOutcome, EntryError>,
) -> Result<PassTally, DatasetError> {
    let mut items = Items::new(path, open_text(path)?)?;
    let mut pass = Pass::new(path, options.skip_invalid, keeper);
    while let Some((place, piece)) = items.next(path)? {
        pass.read_item(place, |build, notes| {
            let text = piece?;
            if text.trim().is_empty() {
                return Ok(ItemOutcome::Skip("blank line".to_owned()));
            }
            read(text, build, notes)
        })?;
    }
    pass.finish(items.finish(path)?)
}

/// A pass in progress.
pub(crate) struct Pass<'a> {
    path: &'a Path,
    skip_invalid: bool,
    keeper: &'a mut dyn Keeper,
    tally: PassTally,
    notes: EntryNotes,
}

impl<'a> Pass<'a> {
    pub(crate) fn new(path: &'a Path, skip_invalid: bool, keeper: &'a mut dyn Keeper) -> Self {
        let (tally, notes) = (PassTally::default(), EntryNotes::default());
        Self { path, skip_invalid, keeper, tally, notes }
    }

    pub(crate) fn add_note(&mut self, what: &str) {
        self.notes.add(what);
    }

    /// Takes one item. `read` is told whether to build the entry, and notes what it leaves out.
    pub(crate) fn read_item(
        &mut self,
        place: FilePosition,
        read: impl FnOnce(bool, &mut EntryNotes) -> Result<ItemOutcome, EntryError>,
    ) -> Result<(), DatasetError> {
        let number = self.tally.seen;
        self.tally.seen += 1;
        let is_wanted = self.keeper.wants(number);
        match read(is_wanted, &mut self.notes) {
            Ok(ItemOutcome::Good) => {}
            Ok(ItemOutcome::Skip(reason)) => self.tally.skip(reason),
            Ok(ItemOutcome::Entry(mut entry)) => {
                entry.line = place.number();
                let kept = self.keeper.keep(number, entry);
                let kept = kept.map_err(|fault| DatasetError::new(self.path, place, fault))?;
                if let Some(reason) = kept {
                    self.tally.skip(reason);
                }
            }
            Err(fault) if self.skip_invalid => {
                self.tally.skip("not readable".to_owned());
                let error = || DatasetError::new(self.path, place, fault).to_string();
                self.tally.unreadable.get_or_insert_with(error);
            }
            Err(mut fault) => {
                fault.hint.get_or_insert_with(|| {
                    "entries that cannot be read are left out with --skip-invalid".to_owned()
                });
                return Err(DatasetError::new(self.path, place, fault));
            }
        }
        Ok(())
    }

    pub(crate) fn finish(self, sha256: String) -> Result<PassTally, DatasetError> {
        if self.tally.seen == 0 {
            return Err(DatasetError::file(self.path, "holds no entries"));
        }
        Ok(PassTally { notes: self.notes.0, sha256, ..self.tally })
    }
}
