//! Pairs of lengths: input and output of one request in each row.

use std::path::Path;

use crate::error::{DatasetError, EntryError};
use crate::object::parse_tokens;
use crate::table::{TableReader, TableRow};

const INPUTS: [&str; 9] = [
    "input",
    "isl",
    "input_tokens",
    "input_length",
    "input_len",
    "prompt_tokens",
    "prompt_len",
    "ContextTokens",
    "Request tokens",
];
const OUTPUTS: [&str; 9] = [
    "output",
    "osl",
    "output_tokens",
    "output_length",
    "output_len",
    "completion_tokens",
    "generated_tokens",
    "GeneratedTokens",
    "Response tokens",
];

/// Reads pairs of (input, output) lengths in tokens: the columns named so in the header, or the
/// first two without a header.
pub fn load_pairs(path: &Path) -> Result<Vec<(u32, u32)>, DatasetError> {
    let mut table = TableReader::open_bare(path)?;
    let first = match table.next(path)? {
        None => return Err(DatasetError::file(path, "holds no pairs")),
        Some(row) => row.fields().next().and_then(Result::ok).unwrap_or_default().trim().to_owned(),
    };
    let (input, output) = if first.parse::<f64>().is_ok() {
        table.unread_row();
        (0, 1)
    } else {
        table = TableReader::open(path)?;
        (table.required_column(path, &INPUTS)?, table.required_column(path, &OUTPUTS)?)
    };
    let mut pairs = Vec::new();
    while let Some(row) = table.next(path)? {
        let pair = parse_pair(&row, input, output);
        pairs.push(pair.map_err(|fault| DatasetError::new(path, row.place, fault))?);
    }
    if pairs.is_empty() {
        return Err(DatasetError::file(path, "holds no pairs, expected rows of `input,output`"));
    }
    Ok(pairs)
}

fn parse_pair(row: &TableRow<'_>, input: usize, output: usize) -> Result<(u32, u32), EntryError> {
    let field = |column: usize, name: &str| {
        let found = row.fields().nth(column).transpose()?;
        let text = found.ok_or_else(|| {
            EntryError::from(format!("no field `{name}`, expected `input,output` in tokens"))
        })?;
        parse_tokens(name, text)
    };
    Ok((field(input, "input")?, field(output, "output")?))
}
