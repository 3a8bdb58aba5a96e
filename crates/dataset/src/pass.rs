//! One pass over a file: every entry is looked at, what is left out is counted, and what is wanted
//! goes to the [`Keeper`].

use std::collections::BTreeMap;
use std::path::Path;

use crate::Entry;
use crate::error::{DatasetError, Fault, Place};
use crate::input::open;
use crate::items::Items;
use crate::options::Options;

/// What an item of a file turned out to be.
pub(crate) enum Found {
    Entry(Entry),
    /// A good entry that nobody wanted to have built.
    Good,
    /// Left out, and why.
    Skip(String),
}

/// Who takes the entries.
pub(crate) trait Keeper {
    /// Whether the entry with this number, from 0, is worth building.
    fn wants(&mut self, number: u64) -> bool;

    /// Takes it, or says why not.
    fn keep(&mut self, number: u64, entry: Entry) -> Result<Option<String>, Fault>;
}

/// What was counted on the way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    pub(crate) seen: u64,
    pub(crate) skipped: BTreeMap<String, u64>,
    pub(crate) notes: BTreeMap<String, u64>,
    pub(crate) sha256: String,
    /// The first entry that could not be read, and why.
    unreadable: Option<String>,
}

impl Tally {
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
    pub(crate) fn none_left(&self, path: &Path) -> DatasetError {
        let reasons: Vec<String> =
            self.skipped.iter().map(|(reason, times)| format!("{reason}: {times}")).collect();
        let what =
            format!("none of its {} entries can be used ({})", self.seen, reasons.join(", "));
        DatasetError::file(path, Fault::with_hint(what, "widen the bounds, or take another file"))
    }
}

/// Counts of what happened within entries, by what it was.
#[derive(Default)]
pub(crate) struct Notes(BTreeMap<String, u64>);

impl Notes {
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
    options: &Options,
    keeper: &mut dyn Keeper,
    mut read: impl FnMut(&str, bool, &mut Notes) -> Result<Found, Fault>,
) -> Result<Tally, DatasetError> {
    let mut items = Items::new(path, open(path)?)?;
    let mut pass = Pass::new(path, options.skip_invalid, keeper);
    while let Some((place, piece)) = items.next(path)? {
        pass.item(place, |build, notes| {
            let text = piece?;
            if text.trim().is_empty() {
                return Ok(Found::Skip("blank line".to_owned()));
            }
            read(text, build, notes)
        })?;
    }
    pass.finish(items.finish(path)?)
}

/// A pass that is under way.
pub(crate) struct Pass<'a> {
    path: &'a Path,
    skip_invalid: bool,
    keeper: &'a mut dyn Keeper,
    tally: Tally,
    notes: Notes,
}

impl<'a> Pass<'a> {
    pub(crate) fn new(path: &'a Path, skip_invalid: bool, keeper: &'a mut dyn Keeper) -> Self {
        let (tally, notes) = (Tally::default(), Notes::default());
        Self { path, skip_invalid, keeper, tally, notes }
    }

    pub(crate) fn note(&mut self, what: &str) {
        self.notes.add(what);
    }

    /// Takes one item. `read` is told whether to build the entry, and notes what it leaves out.
    pub(crate) fn item(
        &mut self,
        place: Place,
        read: impl FnOnce(bool, &mut Notes) -> Result<Found, Fault>,
    ) -> Result<(), DatasetError> {
        let number = self.tally.seen;
        self.tally.seen += 1;
        let is_wanted = self.keeper.wants(number);
        match read(is_wanted, &mut self.notes) {
            Ok(Found::Good) => {}
            Ok(Found::Skip(reason)) => self.tally.skip(reason),
            Ok(Found::Entry(mut entry)) => {
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

    pub(crate) fn finish(self, sha256: String) -> Result<Tally, DatasetError> {
        if self.tally.seen == 0 {
            return Err(DatasetError::file(self.path, "holds no entries"));
        }
        Ok(Tally { notes: self.notes.0, sha256, ..self.tally })
    }
}
