//! One line for each chunk of each answer.

use std::io::Write;

use goodput_model::{Chunk, RequestRecord};

use crate::converted::ConvertedRun;
use crate::error::ExchangeError;
use crate::rows;
use crate::table::{ColumnType, RowCell, RowColumn};

/// A chunk and where it belongs.
pub(crate) struct ChunkRow {
    request: u64,
    number: u64,
    chunk: Chunk,
}

macro_rules! column {
    ($name:ident: $kind:ident, $about:literal, $get:expr) => {
        RowColumn { name: stringify!($name), kind: ColumnType::$kind, about: $about, get: $get }
    };
}

/// The columns.
#[rustfmt::skip]
pub(crate) static COLUMNS: [RowColumn<ChunkRow>; 8] = [
    column!(request: Whole, "`index` of the request", |row| RowCell::Whole(row.request)),
    column!(chunk: Whole, "number of the chunk in its request, from 0", |row| RowCell::Whole(row.number)),
    column!(at_ms: Number, "arrival, since the start of the run", |row| RowCell::Number(row.chunk.at.as_ms())),
    column!(bytes: Whole, "bytes of text in it", |row| RowCell::Whole(row.chunk.bytes.into())),
    column!(tokens: Whole, "tokens in it, where the server reports them", |row| RowCell::whole_number(row.chunk.tokens)),
    column!(choice: Whole, "which of the `n` answers it belongs to", |row| RowCell::Whole(row.chunk.choice.into())),
    column!(coalesced: Flag, "arrived in the same read as another chunk: a gap of zero does not \
                              measure speed", |row| RowCell::Flag(row.chunk.coalesced)),
    column!(lag_us: Whole, "how long it waited in the kernel; empty where the system does not \
                            report it", |row| RowCell::whole_number(row.chunk.lag_us)),
];

/// As Parquet.
pub fn chunks_parquet(
    out: &mut (dyn Write + Send),
    run: &ConvertedRun<'_>,
    records: impl Iterator<Item = RequestRecord>,
) -> Result<(), ExchangeError> {
    let rows = records.flat_map(|record| {
        let request = record.index;
        let numbered = (0..).zip(record.exchange.chunks);
        numbered.map(move |(number, chunk)| ChunkRow { request, number, chunk })
    });
    rows::write_parquet(out, &COLUMNS, &run.metadata("goodput.chunks/1"), rows)
}
