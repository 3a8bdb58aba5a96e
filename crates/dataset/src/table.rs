//! Tables with a header, row by row, in bounded memory.

use std::cell::Cell;
use std::collections::HashSet;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

use csv::{ByteRecord, Position, Reader, ReaderBuilder, Terminator};
use goodput_model::safe_excerpt;

use crate::error::{DatasetError, EntryError, FilePosition, name_list};
use crate::format::lowercase_extension;
use crate::input::{LONGEST, Text, decode_utf8, hash_rest, open_stream, open_text, too_long_error};

/// Refuses to give more than the longest record in one go.
struct RecordLimit {
    inner: Text,
    /// Bytes given since the last whole record.
    given: Rc<Cell<u64>>,
}

impl Read for RecordLimit {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given.get() > LONGEST {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        let read = self.inner.read(buffer)?;
        self.given.set(self.given.get() + read as u64);
        Ok(read)
    }
}

/// A table that is being read.
pub(crate) struct TableReader {
    reader: Reader<RecordLimit>,
    given: Rc<Cell<u64>>,
    /// Names of the columns; empty without a header.
    pub(crate) header: Vec<String>,
    record: ByteRecord,
    is_pending: bool,
}

impl TableReader {
    /// A table whose first row names its columns, each name once.
    pub(crate) fn open(path: &Path) -> Result<Self, DatasetError> {
        Self::new(path, open_text(path)?).with_header(path)
    }

    /// A table that may have no header, and is read once.
    pub(crate) fn open_bare(path: &Path) -> Result<Self, DatasetError> {
        Ok(Self::new(path, open_stream(path)?))
    }

    /// Takes the row that is next for the names of the columns.
    pub(crate) fn with_header(mut self, path: &Path) -> Result<Self, DatasetError> {
        let Some(row) = self.next(path)? else {
            return Err(DatasetError::file(path, "holds no entries"));
        };
        let place = row.place;
        let header: Result<Vec<String>, EntryError> =
            row.fields().map(|field| Ok(field?.trim().to_owned())).collect();
        let header = header.map_err(|fault| DatasetError::new(path, place, fault))?;
        let mut seen = HashSet::new();
        let mut named = header.iter().filter(|name| !name.is_empty());
        if let Some(name) = named.find(|name| !seen.insert(name.as_str())) {
            let fault = format!("two columns are named `{}`, expected one", safe_excerpt(name));
            return Err(DatasetError::new(path, place, EntryError::from(fault)));
        }
        self.header = header;
        Ok(self)
    }

    fn new(path: &Path, text: Text) -> Self {
        let given = Rc::new(Cell::new(0));
        let source = RecordLimit { inner: text, given: Rc::clone(&given) };
        let delimiter = if lowercase_extension(path) == "tsv" { b'\t' } else { b',' };
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            // Not the default: with it, the line numbers of files with CRLF are one too low.
            .terminator(Terminator::Any(b'\n'))
            .from_reader(source);
        let record = ByteRecord::new();
        Self { reader, given, header: Vec::new(), record, is_pending: false }
    }

    /// The next row.
    pub(crate) fn next(&mut self, path: &Path) -> Result<Option<TableRow<'_>>, DatasetError> {
        if !std::mem::take(&mut self.is_pending) {
            loop {
                if !self.read(path)? {
                    return Ok(None);
                }
                let is_blank = self.record.len() == 1 && self.record.get(0) == Some(b"\r");
                if !is_blank {
                    break;
                }
            }
        }
        let place = FilePosition::Line(self.record.position().map_or(0, Position::line));
        Ok(Some(TableRow { place, header: &self.header, record: &self.record }))
    }

    fn read(&mut self, path: &Path) -> Result<bool, DatasetError> {
        let line = self.reader.position().line();
        let found = self.reader.read_byte_record(&mut self.record).map_err(|error| {
            let is_long = matches!(error.kind(), csv::ErrorKind::Io(error)
                if error.kind() == io::ErrorKind::FileTooLarge);
            let fault = if is_long {
                too_long_error("the row")
            } else {
                EntryError::from(format!("cannot be read: {error}"))
            };
            DatasetError::new(path, FilePosition::Line(line), fault)
        })?;
        self.given.set(0);
        Ok(found)
    }

    /// The row that was just read is given once more.
    pub(crate) fn unread_row(&mut self) {
        self.is_pending = true;
    }

    /// The place of a column by the first of these names that there is, whatever its case.
    pub(crate) fn column(&self, wanted: &[&str]) -> Option<usize> {
        let place =
            |name: &&str| self.header.iter().position(|have| have.eq_ignore_ascii_case(name));
        wanted.iter().find_map(place)
    }

    /// The same, for a column that must be there.
    pub(crate) fn required_column(
        &self,
        path: &Path,
        wanted: &[&str],
    ) -> Result<usize, DatasetError> {
        self.column(wanted).ok_or_else(|| {
            let (wanted, there) = (name_list(wanted.iter().copied()), self.column_names());
            let what = format!("no column {wanted}; columns there: {there}");
            DatasetError::new(
                path,
                FilePosition::Line(1),
                EntryError::with_hint(what, "name the column"),
            )
        })
    }

    pub(crate) fn column_names(&self) -> String {
        name_list(self.header.iter().map(String::as_str))
    }

    pub(crate) fn finish(self, path: &Path) -> Result<String, DatasetError> {
        hash_rest(path, self.reader.into_inner().inner)
    }
}

/// One row.
pub(crate) struct TableRow<'a> {
    pub(crate) place: FilePosition,
    header: &'a [String],
    record: &'a ByteRecord,
}

impl<'a> TableRow<'a> {
    /// Its fields as text.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Result<&'a str, EntryError>> + use<'a> {
        let last = self.record.len().saturating_sub(1);
        let trimmed = move |(place, field): (usize, &'a [u8])| match field {
            [field @ .., b'\r'] if place == last => decode_utf8(field),
            field => decode_utf8(field),
        };
        self.record.iter().enumerate().map(trimmed)
    }

    /// The field of a column; a row must have as many as the header.
    pub(crate) fn get(&self, column: usize) -> Result<&'a str, EntryError> {
        let (have, want) = (self.record.len(), self.header.len());
        if have != want {
            return Err(EntryError::from(format!(
                "the row has {have} fields, expected {want} as in the header"
            )));
        }
        self.fields().nth(column).unwrap_or(Ok("")).map_err(|fault| EntryError {
            what: format!("field `{}`: {}", safe_excerpt(self.name(column)), fault.what),
            hint: fault.hint,
        })
    }

    /// The field of a column that may not be there, or be blank.
    pub(crate) fn optional(&self, column: Option<usize>) -> Result<Option<&'a str>, EntryError> {
        let Some(column) = column else { return Ok(None) };
        let text = self.get(column)?;
        Ok(Some(text).filter(|text| !text.trim().is_empty()))
    }

    /// The name of a column.
    pub(crate) fn name(&self, column: usize) -> &'a str {
        self.header.get(column).map_or("", String::as_str)
    }
}
