//! Bytes of a file: hashed as they pass, refused when they are not text, cut into lines and items
//! of bounded length.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use goodput_model::safe_excerpt;
use sha2::{Digest, Sha256};

use crate::error::{DatasetError, EntryError, FilePosition};

/// The longest line, item or record that is read into memory.
pub(crate) const LONGEST: u64 = 64 << 20;

/// What is wrong with a longer one.
pub(crate) fn too_long_error(what: &str) -> EntryError {
    EntryError::with_hint(
        format!("{what} is longer than {} MiB", LONGEST >> 20),
        "datasets have one entry per line or array item; is this the right file?",
    )
}

/// Where bytes come from: a file, or a test.
pub(crate) type Source = Box<dyn Read>;

/// Hashes what passes.
pub(crate) struct Tap {
    inner: Source,
    hash: Sha256,
}

impl Read for Tap {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hash.update(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}

/// A file of text: no byte order mark, and every byte hashed.
pub(crate) type Text = BufReader<Tap>;

/// Opens a file of text.
pub(crate) fn open_text(path: &Path) -> Result<Text, DatasetError> {
    text_from_source(path, Box::new(open_file(path)?))
}

/// The same, or a pipe that was handed to this process: for what is read once, from the first byte on.
pub(crate) fn open_stream(path: &Path) -> Result<Text, DatasetError> {
    let file = goodput_files::open_stream(path).map_err(|error| open_error(path, &error))?;
    text_from_source(path, Box::new(file))
}

/// Opens a plain file. A dataset is read more than once (its format, its hash), which a pipe cannot be.
pub(crate) fn open_file(path: &Path) -> Result<File, DatasetError> {
    goodput_files::open(path).map_err(|error| open_error(path, &error))
}

fn open_error(path: &Path, error: &io::Error) -> DatasetError {
    if path.is_dir() {
        let fault =
            EntryError::with_hint("is a folder, expected a file", "name one of the files in it");
        return DatasetError::file(path, fault);
    }
    let what = format!("cannot be opened: {error}");
    match error.kind() {
        io::ErrorKind::InvalidInput => {
            DatasetError::file(path, EntryError::with_hint(what, "write it to a file first"))
        }
        _ => DatasetError::file(path, what),
    }
}

/// Text from any source.
pub(crate) fn text_from_source(path: &Path, source: Source) -> Result<Text, DatasetError> {
    let mut text = BufReader::with_capacity(1 << 17, Tap { inner: source, hash: Sha256::new() });
    let head = text.fill_buf().map_err(|error| DatasetError::io(path, "read", &error))?;
    if head.is_empty() {
        return Err(DatasetError::file(
            path,
            EntryError::with_hint("is empty", "is the download complete?"),
        ));
    }
    if let Some(fault) = binary_error(head) {
        return Err(DatasetError::file(path, fault));
    }
    if head.starts_with(b"\xef\xbb\xbf") {
        text.consume(3);
    }
    Ok(text)
}

/// Kinds of files that are not text, by their first bytes.
const PACKED: [(&[u8], &str, &str); 6] = [
    (b"\x1f\x8b", "gzip", "gunzip"),
    (b"\x28\xb5\x2f\xfd", "zstd", "unzstd"),
    (b"PK\x03\x04", "zip", "unzip"),
    (b"BZh", "bzip2", "bunzip2"),
    (b"\xfd7zXZ", "xz", "unxz"),
    (b"\x04\x22\x4d\x18", "lz4", "unlz4"),
];

fn binary_error(head: &[u8]) -> Option<EntryError> {
    for (magic, name, tool) in PACKED {
        if head.starts_with(magic) {
            let what = format!("is compressed with {name}, expected plain text");
            return Some(EntryError::with_hint(what, format!("decompress it first with `{tool}`")));
        }
    }
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        let hint = "convert it with `iconv -f UTF-16 -t UTF-8`";
        return Some(EntryError::with_hint("is UTF-16, expected UTF-8", hint));
    }
    None
}

/// The hash of the whole file: what was not read yet is read now.
pub(crate) fn hash_rest(path: &Path, mut text: Text) -> Result<String, DatasetError> {
    io::copy(&mut text, &mut io::sink()).map_err(|error| DatasetError::io(path, "read", &error))?;
    Ok(to_hex(&text.into_inner().hash.finalize()))
}

/// SHA-256 of a file in hexadecimal.
pub fn hash_file(path: &Path) -> Result<String, DatasetError> {
    let source = Box::new(open_file(path)?);
    hash_rest(path, BufReader::with_capacity(1 << 17, Tap { inner: source, hash: Sha256::new() }))
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// One line or item, or why there is none.
pub(crate) type Piece<'a> = Result<&'a str, EntryError>;

/// Lines of bounded length.
pub(crate) struct BoundedLines<R> {
    reader: R,
    buffer: Vec<u8>,
    line: u64,
    /// The line was too long, and its rest has not been passed over yet.
    is_unfinished: bool,
}

impl<R: BufRead> BoundedLines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, buffer: Vec::new(), line: 0, is_unfinished: false }
    }

    /// The next line without its end. A line that is too long or no text is a fault of its own:
    /// the one after it can be read.
    pub(crate) fn next(&mut self) -> io::Result<Option<(FilePosition, Piece<'_>)>> {
        if std::mem::take(&mut self.is_unfinished) {
            self.reader.skip_until(b'\n')?;
        }
        self.buffer.clear();
        let read = (&mut self.reader).take(LONGEST + 1).read_until(b'\n', &mut self.buffer)?;
        if read == 0 {
            return Ok(None);
        }
        self.line += 1;
        let place = FilePosition::Line(self.line);
        if read as u64 > LONGEST && self.buffer.last() != Some(&b'\n') {
            self.buffer = Vec::new();
            self.is_unfinished = true;
            return Ok(Some((place, Err(too_long_error("the line")))));
        }
        let line = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Ok(Some((place, decode_utf8(line))))
    }

    /// Lines that were passed over before.
    pub(crate) fn add_skipped(&mut self, lines: u64) {
        self.line += lines;
    }

    pub(crate) fn into_inner(self) -> R {
        self.reader
    }
}

/// Bytes as text, or the byte that is none.
pub(crate) fn decode_utf8(bytes: &[u8]) -> Piece<'_> {
    std::str::from_utf8(bytes).map_err(|error| {
        let place = error.valid_up_to();
        let before = String::from_utf8_lossy(bytes.get(..place).unwrap_or_default()).into_owned();
        let tail: String =
            before.chars().rev().take(20).collect::<Vec<_>>().into_iter().rev().collect();
        EntryError::with_hint(
            format!("byte {} is not UTF-8, after `{}`", place + 1, safe_excerpt(&tail)),
            "convert the file to UTF-8 with `iconv`",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gigabyte_on_one_line_is_passed_over_without_being_held() {
        let long = io::repeat(b'x').take(1 << 30);
        let text = (&b"a\r\n"[..]).chain(long).chain(&b"\nb"[..]);
        let mut lines = BoundedLines::new(BufReader::with_capacity(1 << 20, text));
        let mut found = Vec::new();
        while let Some((place, piece)) = lines.next().unwrap() {
            found.push((place, piece.map(str::to_owned).map_err(|fault| fault.what)));
            assert!(lines.buffer.capacity() as u64 <= 2 * LONGEST + 64);
        }
        let expected = [
            (FilePosition::Line(1), Ok("a".to_owned())),
            (FilePosition::Line(2), Err("the line is longer than 64 MiB".to_owned())),
            (FilePosition::Line(3), Ok("b".to_owned())),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_longest_line_is_still_read() {
        let line = |length: u64| {
            let text = io::repeat(b'x').take(length).chain(&b"\n"[..]);
            let mut lines = BoundedLines::new(BufReader::with_capacity(1 << 20, text));
            lines.next().unwrap().unwrap().1.map(str::len).map_err(|fault| fault.what)
        };
        assert_eq!(line(LONGEST), Ok(LONGEST as usize));
        assert!(line(LONGEST + 1).is_err());
    }

    #[test]
    fn bytes_that_are_no_text_are_named() {
        let fault = decode_utf8(b"caf\xe9 au lait").unwrap_err();
        assert_eq!(fault.what, "byte 4 is not UTF-8, after `caf`");
        assert!(fault.hint.unwrap().contains("iconv"));
    }

    #[test]
    fn every_byte_is_hashed() {
        let path = Path::new("x");
        let bytes = b"\xef\xbb\xbfone\ntwo\n";
        let mut lines = BoundedLines::new(text_from_source(path, Box::new(&bytes[..])).unwrap());
        assert_eq!(lines.next().unwrap().unwrap().1, Ok("one"));
        let hash = hash_rest(path, lines.into_inner()).unwrap();
        assert_eq!(hash, to_hex(&Sha256::digest(bytes)));
        // printf abc | sha256sum
        let known =
            hash_rest(path, text_from_source(path, Box::new(&b"abc"[..])).unwrap()).unwrap();
        assert_eq!(known, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
