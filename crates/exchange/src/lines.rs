//! CSV as RFC 4180 has it, with one guard: a text that a spreadsheet would take for a formula gets
//! an apostrophe in front.

use std::io::Write;

use crate::error::ExchangeError;
use crate::table::{RowCell, RowColumn};

/// What a spreadsheet takes for the beginning of a formula.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// One value of a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    /// Text; it may come from a server or a file.
    Text(String),
    /// A number; nothing if it is not finite.
    Number(f64),
    /// A whole number.
    Whole(u64),
    /// Yes or no.
    Flag(bool),
    /// Nothing.
    Empty,
}

impl From<Option<f64>> for Field {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::Empty, Self::Number)
    }
}

impl From<Option<bool>> for Field {
    fn from(flag: Option<bool>) -> Self {
        flag.map_or(Self::Empty, Self::Flag)
    }
}

impl Field {
    fn to_cell(&self) -> RowCell<'_> {
        match self {
            Self::Text(text) => RowCell::Text(text),
            Self::Number(number) => RowCell::number(Some(*number)),
            Self::Whole(number) => RowCell::Whole(*number),
            Self::Flag(flag) => RowCell::Flag(*flag),
            Self::Empty => RowCell::Empty,
        }
    }
}

/// A table with these names of columns; every line has as many fields.
pub fn write_csv(
    out: &mut dyn Write,
    names: &[&str],
    lines: impl Iterator<Item = Vec<Field>>,
) -> Result<(), ExchangeError> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(names)?;
    for line in lines {
        writer.write_record(line.iter().map(|field| cell_text(field.to_cell())))?;
    }
    Ok(writer.flush()?)
}

/// A table by its columns.
pub(crate) fn write_csv_rows<R>(
    out: &mut dyn Write,
    columns: &[RowColumn<R>],
    rows: impl Iterator<Item = R>,
) -> Result<(), ExchangeError> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(columns.iter().map(|column| column.name))?;
    for row in rows {
        writer.write_record(columns.iter().map(|column| cell_text((column.get)(&row))))?;
    }
    Ok(writer.flush()?)
}

/// The text with its control characters written out: tables are looked at in terminals too.
fn escape_control(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_control() {
            shown.extend(char.escape_default());
        } else {
            shown.push(char);
        }
    }
    shown
}

fn cell_text(cell: RowCell<'_>) -> String {
    match cell {
        RowCell::Text(text) if text.starts_with(FORMULA) => format!("'{}", escape_control(text)),
        RowCell::Text(text) => escape_control(text),
        RowCell::Whole(number) => number.to_string(),
        RowCell::Number(number) => number.to_string(),
        RowCell::Flag(flag) => flag.to_string(),
        RowCell::Empty => String::new(),
    }
}
