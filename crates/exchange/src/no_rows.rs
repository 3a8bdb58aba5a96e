//! A build without Parquet: writing a table is an error that says so.

use std::io::Write;

use goodput_model::{Feature, LeftOut};

use crate::error::ExchangeError;
use crate::table::RowColumn;

/// Fails.
pub(crate) fn write_parquet<R>(
    _out: &mut (dyn Write + Send),
    _columns: &[RowColumn<R>],
    _facts: &[(&str, String)],
    _rows: impl Iterator<Item = R>,
) -> Result<(), ExchangeError> {
    Err(LeftOut(Feature::Parquet).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_what_is_left_out() {
        let no_columns: &[RowColumn<()>] = &[];
        let error =
            write_parquet(&mut Vec::new(), no_columns, &[], std::iter::empty()).unwrap_err();
        let expected = "built without `parquet`: this build cannot read or write Parquet";
        assert_eq!(error.to_string(), expected);
    }
}
