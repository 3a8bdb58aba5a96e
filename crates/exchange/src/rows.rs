//! Parquet by its columns, a row group at a time.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{
    SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter,
};
use parquet::schema::types::{Type, TypePtr};

use crate::error::ExchangeError;
use crate::table::{ColumnType, RowCell, RowColumn};

/// Rows of a row group: what is held in memory, and what a reader may skip.
const GROUP: usize = 100_000;

/// A table by its columns, with facts about the run in the file's own metadata.
pub(crate) fn write_parquet<R>(
    out: &mut (dyn Write + Send),
    columns: &[RowColumn<R>],
    facts: &[(&str, String)],
    rows: impl Iterator<Item = R>,
) -> Result<(), ExchangeError> {
    let facts = facts.iter().map(|(name, value)| KeyValue::new((*name).to_owned(), value.clone()));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(format!("goodput {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(facts.collect()))
        .build();
    let mut file = SerializedFileWriter::new(out, parquet_schema(columns)?, Arc::new(properties))?;
    let mut buffers: Vec<Buffer> = columns.iter().map(|column| Buffer::new(column.kind)).collect();
    let (mut held, mut groups) = (0, 0);
    for row in rows {
        for (buffer, column) in buffers.iter_mut().zip(columns) {
            buffer.push((column.get)(&row));
        }
        held += 1;
        if held == GROUP {
            write_row_group(&mut file, &mut buffers)?;
            (held, groups) = (0, groups + 1);
        }
    }
    // A table without rows still has a group.
    if held > 0 || groups == 0 {
        write_row_group(&mut file, &mut buffers)?;
    }
    file.close()?;
    Ok(())
}

fn parquet_schema<R>(columns: &[RowColumn<R>]) -> Result<TypePtr, ExchangeError> {
    let field = |column: &RowColumn<R>| {
        let (physical, logical) = match column.kind {
            ColumnType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnType::Whole => (Physical::INT64, Some(LogicalType::integer(64, true))),
            ColumnType::Number => (Physical::DOUBLE, None),
            ColumnType::Flag => (Physical::BOOLEAN, None),
        };
        let builder = Type::primitive_type_builder(column.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        builder.build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?))
}

fn write_row_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    buffers: &mut [Buffer],
) -> Result<(), ExchangeError> {
    let mut group: SerializedRowGroupWriter<'_, W> = file.next_row_group()?;
    for buffer in buffers {
        if let Some(mut column) = group.next_column()? {
            buffer.write_column(&mut column)?;
            column.close()?;
        }
    }
    group.close()?;
    Ok(())
}

/// The values of a column in one row group.
struct Buffer {
    values: RowValues,
    /// 1 where a row has a value, 0 where it has none.
    levels: Vec<i16>,
}

enum RowValues {
    Text(Vec<ByteArray>),
    Whole(Vec<i64>),
    Number(Vec<f64>),
    Flag(Vec<bool>),
}

impl Buffer {
    fn new(kind: ColumnType) -> Self {
        let values = match kind {
            ColumnType::Text => RowValues::Text(Vec::new()),
            ColumnType::Whole => RowValues::Whole(Vec::new()),
            ColumnType::Number => RowValues::Number(Vec::new()),
            ColumnType::Flag => RowValues::Flag(Vec::new()),
        };
        Self { values, levels: Vec::new() }
    }

    /// A value of another type than the column's is none: the columns' tests say that there is none.
    fn push(&mut self, cell: RowCell<'_>) {
        let is_there = match (&mut self.values, cell) {
            (RowValues::Text(all), RowCell::Text(text)) => {
                all.push(ByteArray::from(text));
                true
            }
            (RowValues::Whole(all), RowCell::Whole(number)) => {
                all.push(i64::try_from(number).unwrap_or(i64::MAX));
                true
            }
            (RowValues::Number(all), RowCell::Number(number)) => {
                all.push(number);
                true
            }
            (RowValues::Flag(all), RowCell::Flag(flag)) => {
                all.push(flag);
                true
            }
            _ => false,
        };
        self.levels.push(i16::from(is_there));
    }

    fn write_column(
        &mut self,
        column: &mut SerializedColumnWriter<'_>,
    ) -> Result<(), ExchangeError> {
        let levels = Some(self.levels.as_slice());
        match &mut self.values {
            RowValues::Text(all) => {
                column.typed::<ByteArrayType>().write_batch(all, levels, None)?;
                all.clear();
            }
            RowValues::Whole(all) => {
                column.typed::<Int64Type>().write_batch(all, levels, None)?;
                all.clear();
            }
            RowValues::Number(all) => {
                column.typed::<DoubleType>().write_batch(all, levels, None)?;
                all.clear();
            }
            RowValues::Flag(all) => {
                column.typed::<BoolType>().write_batch(all, levels, None)?;
                all.clear();
            }
        }
        self.levels.clear();
        Ok(())
    }
}
