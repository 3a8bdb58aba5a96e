//! Columns of numbers: latencies measured by another tool.

use std::path::Path;

use goodput_model::safe_excerpt;

use crate::error::{DatasetError, EntryError};
use crate::table::{TableReader, TableRow};

/// Rows that are read: all numbers are held in memory, and a pipe may never end.
const MOST_ROWS: u64 = 50_000_000;

/// Reads these columns of a table, each by its name in the header or by its number from 1. Without
/// any name, the first. `inf` stands for a value beyond every limit.
pub fn load_numbers(path: &Path, wanted: &[&str]) -> Result<Vec<Vec<f64>>, DatasetError> {
    let mut table = TableReader::open_bare(path)?;
    let is_bare = match table.next(path)? {
        None => return Err(DatasetError::file(path, "holds no numbers")),
        Some(row) => row.fields().all(|field| field.is_ok_and(is_number)),
    };
    table.unread_row();
    if !is_bare {
        table = table.with_header(path)?;
    }
    let wanted = if wanted.is_empty() { &["1"] } else { wanted };
    let places: Result<Vec<usize>, _> =
        wanted.iter().map(|name| column_index(&table, path, name)).collect();
    let places = places?;
    let mut columns = vec![Vec::new(); places.len()];
    let mut width = table.header.len();
    let mut rows = 0;
    while let Some(row) = table.next(path)? {
        rows += 1;
        if rows > MOST_ROWS {
            let what = format!("more than {MOST_ROWS} rows");
            return Err(DatasetError::new(path, row.place, EntryError::from(what)));
        }
        let fields = row.fields().count();
        width = if width == 0 { fields } else { width };
        if fields > width {
            let what = format!("the row has {fields} fields, expected {width}");
            let hint = "write decimals with a point, not a comma";
            return Err(DatasetError::new(path, row.place, EntryError::with_hint(what, hint)));
        }
        for (column, place) in columns.iter_mut().zip(&places) {
            let value = parse_value(&row, *place);
            column.push(value.map_err(|fault| DatasetError::new(path, row.place, fault))?);
        }
    }
    if columns.iter().all(Vec::is_empty) {
        return Err(DatasetError::file(path, "holds no numbers, only a header"));
    }
    Ok(columns)
}

fn is_number(text: &str) -> bool {
    text.trim().parse::<f64>().is_ok()
}

fn column_index(table: &TableReader, path: &Path, name: &str) -> Result<usize, DatasetError> {
    match (table.column(&[name]), name.parse::<usize>()) {
        (Some(place), _) => Ok(place),
        (None, Ok(number)) if number > 0 => Ok(number - 1),
        _ => table.required_column(path, &[name]),
    }
}

fn parse_value(row: &TableRow<'_>, place: usize) -> Result<f64, EntryError> {
    let missing = || EntryError::from(format!("the row has no column {}", place + 1));
    let text = row.fields().nth(place).ok_or_else(missing)??.trim();
    let number = text.parse::<f64>().ok();
    // Nothing takes less than no time: only `inf` has a meaning.
    let number = number.filter(|number| *number > f64::NEG_INFINITY);
    number.ok_or_else(|| {
        let what = format!("`{}` in column {} is not a number", safe_excerpt(text), place + 1);
        EntryError::with_hint(what, "name a column of numbers (commas between columns, tabs in .tsv); `inf` stands for a time limit")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str, wanted: &[&str]) -> Result<Vec<Vec<f64>>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        load_numbers(&path, wanted).map_err(|error| error.to_string())
    }

    #[test]
    fn columns_by_name_and_by_number() {
        let table = "at,what,ttft\n0.5,\"a, b\",12\n1.5,c,inf\n";
        let read_table = |wanted: &[&str]| read("x.csv", table, wanted).unwrap();
        assert_eq!(read_table(&["ttft", "at"]), [vec![12.0, f64::INFINITY], vec![0.5, 1.5]]);
        assert_eq!(read_table(&["3"]), [vec![12.0, f64::INFINITY]]);
        assert_eq!(read("x.txt", "1\n2.5\n\n-3e2\n", &[]).unwrap(), [vec![1.0, 2.5, -300.0]]);
        assert_eq!(read("x.tsv", "1\t7\r\n2\t8\r\n", &["2"]).unwrap(), [vec![7.0, 8.0]]);
    }

    #[test]
    fn many_columns_take_time_by_their_number() {
        // By the square, this would be twenty billion comparisons of names.
        let columns = 200_000;
        let names: Vec<String> = (0..columns).map(|column| format!("c{column:06}")).collect();
        let text = format!("{}\n{}\n", names.join(","), vec!["7"; columns].join(","));
        let last = names.last().unwrap().as_str();
        assert_eq!(read("x.csv", &text, &[last, "1"]).unwrap(), [[7.0], [7.0]]);
    }

    #[test]
    fn what_is_no_number_is_named() {
        let fault = |text: &str, wanted: &[&str]| read("x.csv", text, wanted).unwrap_err();
        assert!(fault("a,b\n1,2\n", &["c"]).contains("no column `c`"));
        assert!(fault("a,b\n1,2\n3,four\n", &["b"]).contains("line 3: `four` in column 2"));
        assert!(fault("1\nnan\n", &[]).contains("line 2: `nan` in column 1 is not a number"));
        assert!(fault("1,2\n3\n", &["2"]).contains("line 2: the row has no column 2"));
        assert!(fault("", &[]).contains("empty"));
        assert!(fault("a\n", &[]).contains("only a header"));
        assert!(fault("a,b,a\n1,2,3\n", &["b"]).contains("two columns are named `a`"));
        assert!(fault("lat\n1,5\n", &[]).contains("line 2: the row has 2 fields, expected 1"));
    }
}
