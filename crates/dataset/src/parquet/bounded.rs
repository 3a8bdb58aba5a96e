//! A Parquet file whose pages cannot ask for more memory than they can fill.
//!
//! The `parquet` crate reserves what a page states before it reads the page: a page of 100 bytes that
//! claims 2 GiB, or a dictionary of 2³¹ values, ends the process. Here each statement is checked first.

use std::fs::File;
use std::io::{BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::bloom_filter::Sbbf;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{
    ChunkReader, FileReader, Length, RowGroupReader, SerializedFileReader,
};
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;

/// Uncompressed bytes of one page at most. Writers aim at 1 MiB.
const MOST_PAGE_BYTES: u64 = 64 << 20;

/// Bytes of a page's head that hold the sizes it states.
const HEAD_BYTES: u64 = 24;

/// A file that is read within these bounds.
pub(super) struct BoundedFile(SerializedFileReader<Chunks>);

impl BoundedFile {
    pub(super) fn new(file: File) -> Result<Self> {
        let has_footer = Arc::<AtomicBool>::default();
        let chunks = Chunks { file, has_footer: Arc::clone(&has_footer) };
        let reader = SerializedFileReader::new(chunks)?;
        has_footer.store(true, Ordering::Relaxed);
        Ok(Self(reader))
    }
}

impl FileReader for BoundedFile {
    fn metadata(&self) -> &ParquetMetaData {
        self.0.metadata()
    }

    fn num_row_groups(&self) -> usize {
        self.0.num_row_groups()
    }

    fn get_row_group(&self, index: usize) -> Result<Box<dyn RowGroupReader + '_>> {
        Ok(Box::new(BoundedRows(self.0.get_row_group(index)?)))
    }

    fn get_row_iter(&self, projection: Option<Type>) -> Result<RowIter<'_>> {
        RowIter::from_file(projection, self)
    }
}

struct BoundedRows<'a>(Box<dyn RowGroupReader + 'a>);

impl RowGroupReader for BoundedRows<'_> {
    fn metadata(&self) -> &RowGroupMetaData {
        self.0.metadata()
    }

    fn num_columns(&self) -> usize {
        self.0.num_columns()
    }

    fn get_column_page_reader(&self, index: usize) -> Result<Box<dyn PageReader>> {
        let pages = self.0.get_column_page_reader(index)?;
        let column = self.metadata().column(index).column_descr();
        let has_repetition = column.max_rep_level() > 0;
        let levels = PageLevels { has_repetition, has_definition: column.max_def_level() > 0 };
        Ok(Box::new(BoundedPages { pages, levels }))
    }

    fn get_column_bloom_filter(&self, index: usize) -> Option<&Sbbf> {
        self.0.get_column_bloom_filter(index)
    }

    fn get_row_iter(&self, projection: Option<Type>) -> Result<RowIter<'_>> {
        RowIter::from_row_group(projection, self)
    }
}

struct BoundedPages {
    pages: Box<dyn PageReader>,
    levels: PageLevels,
}

impl PageReader for BoundedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        match &page {
            Some(page) if !is_plausible(page, self.levels) => {
                Err(contradiction_error("more values than it can hold"))
            }
            _ => Ok(page),
        }
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

impl Iterator for BoundedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

/// The bytes of the file; heads of pages are looked at on their way.
struct Chunks {
    file: File,
    /// The footer was read: what is read from now on begins with the head of a page.
    has_footer: Arc<AtomicBool>,
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for Chunks {
    type T = BufReader<File>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        if self.has_footer.load(Ordering::Relaxed) {
            let mut head = Vec::new();
            self.file.get_read(start)?.take(HEAD_BYTES).read_to_end(&mut head)?;
            match page_bytes(&head) {
                Some(bytes) if bytes <= MOST_PAGE_BYTES => {}
                Some(_) => return Err(contradiction_error("more than 64 MiB of data")),
                None => return Err(contradiction_error("no size")),
            }
        }
        self.file.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // Not beyond the file: the crate reserves the length before it reads.
        if start.checked_add(length as u64).is_none_or(|end| end > self.file.len()) {
            return Err(contradiction_error("data beyond the end of the file"));
        }
        self.file.get_bytes(start, length)
    }
}

fn contradiction_error(what: &str) -> ParquetError {
    ParquetError::General(format!("a page states {what}"))
}

/// Whether the values that a page states can be in its bytes.
fn is_plausible(page: &Page, levels: PageLevels) -> bool {
    let bytes = page.buffer();
    let values = u64::from(page.num_values());
    let encoding = page.encoding();
    match page {
        // Every value of a dictionary takes a byte or more.
        Page::DictionaryPage { .. } => values <= bytes.len() as u64,
        Page::DataPage { .. } => {
            let lists = levels.after_them(bytes);
            lists.is_none_or(|lists| are_lists_plausible(lists, encoding, values))
        }
        Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
            let begin = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
            let lists = usize::try_from(begin).ok().and_then(|begin| bytes.get(begin..));
            lists.is_none_or(|lists| are_lists_plausible(lists, encoding, values))
        }
    }
}

/// Which levels stand before the values of a page.
#[derive(Clone, Copy)]
struct PageLevels {
    has_repetition: bool,
    has_definition: bool,
}

impl PageLevels {
    /// The values of a page of version 1: behind levels that state their length in four bytes each.
    fn after_them(self, mut bytes: &[u8]) -> Option<&[u8]> {
        for _ in 0..u8::from(self.has_repetition) + u8::from(self.has_definition) {
            let (length, rest) = bytes.split_first_chunk::<4>()?;
            bytes = rest.get(u32::from_le_bytes(*length) as usize..)?;
        }
        Some(bytes)
    }
}

/// Lists of lengths state how many there are, and the crate reserves as many. What cannot be read
/// here cannot be read there either, and is an error there.
fn are_lists_plausible(bytes: &[u8], encoding: Encoding, values: u64) -> bool {
    let first = match encoding {
        Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY => DeltaList::read(bytes),
        _ => None,
    };
    let Some(first) = first else { return true };
    let second = match encoding {
        Encoding::DELTA_BYTE_ARRAY => {
            first.end.and_then(|end| bytes.get(end..)).and_then(DeltaList::read)
        }
        _ => None,
    };
    first.count <= values && second.is_none_or(|second| second.count <= values)
}

/// A list of numbers in Parquet's delta encoding.
#[derive(Debug, PartialEq)]
struct DeltaList {
    /// How many numbers it states.
    count: u64,
    /// Where it ends; none if it is cut.
    end: Option<usize>,
}

impl DeltaList {
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut at = 0;
        let block = read_varint(bytes, &mut at)?;
        let parts = read_varint(bytes, &mut at)?;
        let count = read_varint(bytes, &mut at)?;
        let _first = read_varint(bytes, &mut at)?;
        let of_part = block.checked_div(parts)?;
        Some(Self { count, end: blocks_end(bytes, at, count.saturating_sub(1), parts, of_part) })
    }
}

/// Where the blocks of a list end: each has its least number, the widths of its parts, and the parts.
fn blocks_end(
    bytes: &[u8],
    mut at: usize,
    mut left: u64,
    parts: u64,
    of_part: u64,
) -> Option<usize> {
    while left > 0 {
        let _least = read_varint(bytes, &mut at)?;
        let widths = bytes.get(at..at.checked_add(usize::try_from(parts).ok()?)?)?;
        at += widths.len();
        for &width in widths {
            if left == 0 {
                break;
            }
            let bits = u64::from(width).checked_mul(of_part)?;
            at = at.checked_add(usize::try_from(bits / 8).ok()?)?;
            left = left.saturating_sub(of_part.max(1));
        }
    }
    Some(at)
}

/// The uncompressed size that the head of a page states, where the head begins as every writer begins it:
/// with the fields 1, 2 and 3 in Thrift's compact form. The crate ignores the type that a field states
/// for itself, so it is ignored here too.
fn page_bytes(head: &[u8]) -> Option<u64> {
    let mut at = 0;
    let mut number = || {
        (head.get(at)? >> 4 == 1).then_some(())?;
        at += 1;
        read_varint(head, &mut at)
    };
    let (_kind, size, _compressed) = (number()?, number()?, number()?);
    // Signs alternate; a negative size is refused by the crate.
    Some(size.div_ceil(2))
}

/// Seven bits a byte, the lowest first.
fn read_varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_page_is_read_from_its_head() {
        // A data page (0) of 300 bytes, 20 when compressed.
        assert_eq!(page_bytes(&[0x15, 0x00, 0x15, 0xd8, 0x04, 0x15, 0x28]), Some(300));
        let large = [0x15, 0x00, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 0x28];
        assert_eq!(page_bytes(&large), Some(u64::from(i32::MAX.cast_unsigned())));
        assert_eq!(page_bytes(b"PAR1"), None);
    }

    #[test]
    fn a_list_states_its_count_and_ends_where_it_ends() {
        // Blocks of 128 in four parts, five numbers, the first 7, one block: least delta 0, the first
        // part two bits wide (8 bytes), the others empty.
        let list = [0x80, 0x01, 0x04, 0x05, 0x0e, 0x00, 2, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 99];
        assert_eq!(DeltaList::read(&list), Some(DeltaList { count: 5, end: Some(18) }));
        assert!(are_lists_plausible(&list, Encoding::DELTA_LENGTH_BYTE_ARRAY, 5));
        assert!(!are_lists_plausible(&list, Encoding::DELTA_LENGTH_BYTE_ARRAY, 4));
        // A second list, of 2³² numbers, behind the first.
        let second =
            [&list[..18], &[0x80, 0x01, 0x04, 0x80, 0x80, 0x80, 0x80, 0x10, 0x00]].concat();
        assert!(are_lists_plausible(&second, Encoding::DELTA_LENGTH_BYTE_ARRAY, 5));
        assert!(!are_lists_plausible(&second, Encoding::DELTA_BYTE_ARRAY, 5));
    }

    #[test]
    fn values_begin_behind_the_levels() {
        let both = PageLevels { has_repetition: true, has_definition: true };
        let page = [2, 0, 0, 0, 8, 8, 1, 0, 0, 0, 9, 42];
        assert_eq!(both.after_them(&page), Some(&[42][..]));
        assert_eq!(both.after_them(&page[..7]), None);
    }
}
