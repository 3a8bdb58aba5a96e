//! The items of a JSON file, one at a time: of an array, or one on each line.
//!
//! An array is cut at its items' ends without looking into them, so that one of them can be wrong,
//! or too long, and the others still be read.

use std::io::{self, BufRead};
use std::path::Path;

use serde::de::IgnoredAny;

use crate::error::{DatasetError, EntryError, FilePosition};
use crate::input::{
    BoundedLines, LONGEST, Piece, Text, decode_utf8, hash_rest, open_text, too_long_error,
};

/// The items of a file.
pub(crate) enum Items {
    Lines(BoundedLines<Text>),
    Array(Array<Text>),
}

impl Items {
    /// An array when the file begins like one, lines when not.
    pub(crate) fn new(path: &Path, mut text: Text) -> Result<Self, DatasetError> {
        let (first, lines) =
            first_byte(&mut text).map_err(|error| DatasetError::io(path, "read", &error))?;
        if first == Some(b'[') {
            text.consume(1);
            return Ok(Self::Array(Array::new(text, lines + 1)));
        }
        let mut items = BoundedLines::new(text);
        items.add_skipped(lines);
        Ok(Self::Lines(items))
    }

    /// The same, for files that may also hold objects over several lines, one behind the other.
    pub(crate) fn new_documents(path: &Path) -> Result<Self, DatasetError> {
        let mut items = Self::new(path, open_text(path)?)?;
        let is_open = match items.next(path)? {
            Some((FilePosition::Line(_), Ok(line))) => is_unfinished(line),
            _ => false,
        };
        let mut text = open_text(path)?;
        if !is_open {
            return Self::new(path, text);
        }
        let (_, lines) =
            first_byte(&mut text).map_err(|error| DatasetError::io(path, "read", &error))?;
        Ok(Self::Array(Array { is_bare: true, ..Array::new(text, lines + 1) }))
    }

    /// The next item. An error is one of the file's structure; an item of its own that is wrong is
    /// a fault in the piece.
    pub(crate) fn next(
        &mut self,
        path: &Path,
    ) -> Result<Option<(FilePosition, Piece<'_>)>, DatasetError> {
        let io = |error: io::Error| DatasetError::io(path, "read", &error);
        match self {
            Self::Lines(lines) => lines.next().map_err(io),
            Self::Array(array) => {
                let found = array.next().map_err(|broken| match broken {
                    ArrayError::Io(error) => io(error),
                    ArrayError::Array(place, fault) => DatasetError::new(path, place, fault),
                })?;
                let Some((place, is_long)) = found else { return Ok(None) };
                let piece = if is_long {
                    Err(too_long_error("the item"))
                } else {
                    decode_utf8(&array.item)
                };
                Ok(Some((place, piece)))
            }
        }
    }

    /// The hash of the file.
    pub(crate) fn finish(self, path: &Path) -> Result<String, DatasetError> {
        match self {
            Self::Lines(lines) => hash_rest(path, lines.into_inner()),
            Self::Array(array) => hash_rest(path, array.reader),
        }
    }
}

/// Whether an object begins on this line and goes on below: a line that was cut off ends elsewhere
/// than where people break lines.
fn is_unfinished(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('{')
        && line.ends_with(['{', '[', ',', ':'])
        && serde_json::from_str::<IgnoredAny>(line).is_err_and(|error| error.is_eof())
}

/// Looks past blanks: the first byte that is none, and the line ends before it.
fn first_byte(text: &mut impl BufRead) -> io::Result<(Option<u8>, u64)> {
    let mut lines = 0;
    loop {
        let buffer = text.fill_buf()?;
        let Some(&first) = buffer.first() else { return Ok((None, lines)) };
        if !first.is_ascii_whitespace() {
            return Ok((Some(first), lines));
        }
        lines += u64::from(first == b'\n');
        text.consume(1);
    }
}

/// What ends the reading of an array.
pub(crate) enum ArrayError {
    Io(io::Error),
    Array(FilePosition, EntryError),
}

impl From<io::Error> for ArrayError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The items of an array, behind its opening bracket.
pub(crate) struct Array<R> {
    /// Without brackets and commas: objects stand one behind the other.
    is_bare: bool,
    reader: R,
    item: Vec<u8>,
    number: u64,
    line: u64,
    /// An item that was too long, and has not been passed over yet.
    unfinished: Option<ItemScan>,
}

/// Where a scan for the end of an item is.
#[derive(Default)]
struct ItemScan {
    depth: u64,
    in_text: bool,
    is_escaped: bool,
    /// Neither object, array nor text: it ends before what follows it.
    is_bare: bool,
}

impl<R: BufRead> Array<R> {
    pub(crate) fn new(reader: R, line: u64) -> Self {
        Self { is_bare: false, reader, item: Vec::new(), number: 0, line, unfinished: None }
    }

    /// Finds the next item; true when it is longer than is kept.
    fn next(&mut self) -> Result<Option<(FilePosition, bool)>, ArrayError> {
        if let Some(mut scan) = self.unfinished.take() {
            while !self.scan_buffer(&mut scan, false)? {}
        }
        let Some(first) = self.peek_byte()? else {
            return if self.is_bare { Ok(None) } else { Err(self.array_error(ENDS)) };
        };
        match (first, self.number) {
            (b'{', _) if self.is_bare => {}
            _ if self.is_bare => return Err(self.array_error("expected `{`")),
            (b']', _) => return self.expect_end(),
            (b',', 1..) => {
                self.reader.consume(1);
                match self.peek_byte()? {
                    None => return Err(self.array_error(ENDS)),
                    Some(b']' | b',') => {
                        return Err(self.array_error("expected an item after the comma"));
                    }
                    Some(_) => {}
                }
            }
            (_, 1..) => return Err(self.array_error("expected `,` or `]` after the item")),
            _ => {}
        }
        self.number += 1;
        let place = FilePosition::Item { item: self.number, line: self.line };
        let is_long = self.copy_item()?;
        Ok(Some((place, is_long)))
    }

    /// Behind the closing bracket only blanks may stand.
    fn expect_end(&mut self) -> Result<Option<(FilePosition, bool)>, ArrayError> {
        self.reader.consume(1);
        if self.peek_byte()?.is_some() {
            return Err(self.array_error("text after the end of the array"));
        }
        Ok(None)
    }

    fn array_error(&self, what: &str) -> ArrayError {
        ArrayError::Array(
            FilePosition::Item { item: self.number, line: self.line },
            EntryError::from(what),
        )
    }

    /// The next byte that is not a blank.
    fn peek_byte(&mut self) -> io::Result<Option<u8>> {
        let (first, lines) = first_byte(&mut self.reader)?;
        self.line += lines;
        Ok(first)
    }

    /// Copies the item that begins here; true when it is longer than is kept.
    fn copy_item(&mut self) -> Result<bool, ArrayError> {
        self.item.clear();
        let first = self.reader.fill_buf()?.first();
        let is_bare = !matches!(first, Some(b'{' | b'[' | b'"'));
        let mut scan = ItemScan { is_bare, ..ItemScan::default() };
        while !self.scan_buffer(&mut scan, true)? {
            if self.item.len() as u64 > LONGEST {
                self.item = Vec::new();
                self.unfinished = Some(scan);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes what the reader holds of an item; true at the item's end.
    fn scan_buffer(&mut self, scan: &mut ItemScan, is_kept: bool) -> Result<bool, ArrayError> {
        let buffer = self.reader.fill_buf()?;
        if buffer.is_empty() {
            return Err(self.array_error(if self.is_bare { CUT } else { ENDS }));
        }
        let (used, is_over) = scan.advance(buffer);
        let part = buffer.get(..used).unwrap_or_default();
        self.line += memchr::memchr_iter(b'\n', part).count() as u64;
        if is_kept {
            self.item.extend_from_slice(part);
        }
        self.reader.consume(used);
        Ok(is_over)
    }
}

const CUT: &str = "the file ends inside an object: it is truncated";
const ENDS: &str = "the file ends inside the array: it is truncated, or its `]` is missing";

impl ItemScan {
    /// Goes through the buffer up to the end of the item: bytes used, and whether the end is there.
    fn advance(&mut self, buffer: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while let Some(&byte) = buffer.get(at) {
            if self.is_escaped {
                self.is_escaped = false;
                at += 1;
            } else if self.in_text {
                // Most bytes are inside texts: they are searched, not walked.
                let rest = buffer.get(at..).unwrap_or_default();
                let Some(found) = memchr::memchr2(b'"', b'\\', rest) else {
                    return (buffer.len(), false);
                };
                at += found + 1;
                if rest.get(found) == Some(&b'\\') {
                    self.is_escaped = true;
                } else {
                    self.in_text = false;
                    if self.depth == 0 {
                        return (at, true);
                    }
                }
            } else if self.is_bare {
                if matches!(byte, b',' | b']') || byte.is_ascii_whitespace() {
                    return (at, true);
                }
                at += 1;
            } else {
                at += 1;
                match byte {
                    b'"' => self.in_text = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => {
                        self.depth = self.depth.saturating_sub(1);
                        if self.depth == 0 {
                            return (at, true);
                        }
                    }
                    _ => {}
                }
            }
        }
        (at, false)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use super::*;

    /// The items of the text behind `[`, read through a buffer of this many bytes.
    fn items(text: &str, buffer: usize) -> Result<Vec<(String, u64)>, String> {
        let reader = BufReader::with_capacity(buffer, text.as_bytes());
        let mut array = Array::new(reader, 1);
        let mut found = Vec::new();
        loop {
            match array.next() {
                Ok(None) => return Ok(found),
                Ok(Some((FilePosition::Item { line, .. }, false))) => {
                    found.push((String::from_utf8(array.item.clone()).unwrap(), line));
                }
                Ok(Some(other)) => panic!("{other:?}"),
                Err(ArrayError::Array(_, fault)) => return Err(fault.what),
                Err(ArrayError::Io(error)) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn an_array_is_cut_at_its_items_wherever_the_buffer_ends() {
        let text = " {\"a\":\"]}\\\"\\\\\"},\n[1,[2]] ,\n\n\"x,\" , 12 ]\n ";
        let expected = [("{\"a\":\"]}\\\"\\\\\"}", 1), ("[1,[2]]", 2), ("\"x,\"", 4), ("12", 4)];
        let expected: Vec<(String, u64)> =
            expected.iter().map(|(text, line)| ((*text).to_owned(), *line)).collect();
        for buffer in 1..=text.len() {
            assert_eq!(items(text, buffer), Ok(expected.clone()), "buffer of {buffer}");
        }
        assert_eq!(items(" ]", 8), Ok(Vec::new()));
    }

    #[test]
    fn objects_may_stand_one_behind_the_other() {
        let bare = |text: &'static str| {
            let mut array = Array { is_bare: true, ..Array::new(text.as_bytes(), 1) };
            let mut found = Vec::new();
            while let Some((place, _)) = array.next().map_err(|broken| match broken {
                ArrayError::Array(_, fault) => fault.what,
                ArrayError::Io(error) => error.to_string(),
            })? {
                found.push((String::from_utf8(array.item.clone()).unwrap(), place.number()));
            }
            Ok::<_, String>(found)
        };
        let expected = [("{\n\"a\":[1]}".to_owned(), 1), ("{}".to_owned(), 2)];
        assert_eq!(bare("{\n\"a\":[1]}\n{}\n").unwrap(), expected);
        assert_eq!(bare("{}{\"a\":").unwrap_err(), CUT);
        assert_eq!(bare("{}]").unwrap_err(), "expected `{`");
        for (line, is_open) in [
            ("{", true),
            ("{\"a\": [", true),
            ("{\"a\": 1,", true),
            ("{}", false),
            ("{\"a\":\"x", false),
            ("[", false),
            ("{]{", false),
            ("a,", false),
        ] {
            assert_eq!(is_unfinished(line), is_open, "{line}");
        }
    }

    #[test]
    fn a_broken_array_is_an_error() {
        for truncated in ["", "{}", "{},", "{\"a\":\"", "{\"a\":1", "\"x", "{}\n"] {
            assert_eq!(items(truncated, 8).unwrap_err(), ENDS, "{truncated}");
        }
        assert_eq!(items("{}] x", 8).unwrap_err(), "text after the end of the array");
        assert_eq!(items("{} {}]", 8).unwrap_err(), "expected `,` or `]` after the item");
        assert_eq!(items("{},]", 8).unwrap_err(), "expected an item after the comma");
        assert_eq!(items("{},,{}]", 8).unwrap_err(), "expected an item after the comma");
    }

    #[test]
    fn a_gigabyte_in_one_item_is_passed_over_without_being_held() {
        let long = io::repeat(b'x').take(1 << 30);
        let text = (&b"{},\""[..]).chain(long).chain(&b"\",{}]"[..]);
        let mut array = Array::new(BufReader::with_capacity(1 << 20, text), 1);
        let mut long = Vec::new();
        while let Some((_, is_long)) = array.next().ok().unwrap() {
            long.push(is_long);
            assert!(array.item.capacity() as u64 <= 2 * (LONGEST + (1 << 20)));
        }
        assert_eq!(long, [false, true, false]);
    }
}
