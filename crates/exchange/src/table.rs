//! Tables by their columns: one list serves CSV, Parquet and the documentation.

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    /// UTF-8.
    Text,
    /// A whole number.
    Whole,
    /// A number with fraction.
    Number,
    /// Yes or no.
    Flag,
}

/// One value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RowCell<'a> {
    /// Text; it may come from a server or a file.
    Text(&'a str),
    /// A whole number.
    Whole(u64),
    /// A number.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// Nothing.
    Empty,
}

/// One column of a table whose rows are `R`.
pub(crate) struct RowColumn<R> {
    pub(crate) name: &'static str,
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "a type for Parquet"))]
    pub(crate) kind: ColumnType,
    /// What it means, for the documentation.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test holds the documentation to it"))]
    pub(crate) about: &'static str,
    pub(crate) get: fn(&R) -> RowCell<'_>,
}

impl<'a> RowCell<'a> {
    pub(crate) fn text(text: Option<&'a str>) -> Self {
        text.map_or(Self::Empty, Self::Text)
    }

    pub(crate) fn whole_number(number: Option<impl Into<u64>>) -> Self {
        number.map_or(Self::Empty, |number| Self::Whole(number.into()))
    }

    /// What is not finite is nothing: neither CSV nor a reader of Parquet expects it.
    pub(crate) fn number(number: Option<f64>) -> Self {
        number.filter(|number| number.is_finite()).map_or(Self::Empty, Self::Number)
    }

    pub(crate) fn flag(flag: Option<bool>) -> Self {
        flag.map_or(Self::Empty, Self::Flag)
    }
}
