//! Tables: columns, cells, and how a terminal may cut them.

use goodput_model::Verdict;

use super::block::Block;
use super::formats::Formats;

/// Rows under headings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// Above it where a page has no captions.
    pub title: String,
    /// Above it on a terminal; empty if the headings say it.
    pub above: String,
    /// What it shows, in a browser.
    pub caption: String,
    /// In a browser.
    pub look: TableStyle,
    /// Also decide which formats show a cell.
    pub columns: Vec<Column>,
    /// One cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// On a terminal columns are as wide as their cells, and the first gives way.
    pub is_natural: bool,
    /// Which rows a short page shows where it has no room for all; none: the first.
    pub first: Vec<usize>,
    /// Into which tables it may be cut on a terminal: the first way in which all of them fit, or the
    /// last. Without a way it is shown as it is.
    pub ways: Vec<Vec<TableCut>>,
}

/// Some columns of a table, and what stands above them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableCut {
    /// Above the part.
    pub above: String,
    /// Indices of its columns.
    pub places: Vec<usize>,
}

impl TableCut {
    /// These columns under this line.
    pub fn new(above: &str, places: &[usize]) -> Self {
        Self { above: above.to_owned(), places: places.to_vec() }
    }
}

impl Table {
    /// A table without rows.
    pub fn new(title: impl Into<String>, caption: impl Into<String>, columns: Vec<Column>) -> Self {
        let (title, caption) = (title.into(), caption.into());
        Self { title, caption, columns, ..Self::default() }
    }

    /// The same with these rows.
    #[must_use]
    pub fn with_rows(self, rows: Vec<Vec<Cell>>) -> Self {
        Self { rows, ..self }
    }

    /// A row for each of these; its columns follow, each with what stands in it.
    pub fn from_subjects<T>(
        title: impl Into<String>,
        caption: impl Into<String>,
        subjects: impl IntoIterator<Item = T>,
    ) -> Rows<T> {
        let subjects: Vec<T> = subjects.into_iter().collect();
        let rows = subjects.iter().map(|_| Vec::new()).collect();
        Rows { subjects, table: Self::new(title, caption, Vec::new()).with_rows(rows) }
    }

    /// Nothing if it has no row.
    pub fn into_block(self) -> Option<Block> {
        (!self.rows.is_empty()).then_some(Block::Table(self))
    }

    /// The same with only these columns, in one piece.
    #[must_use]
    pub fn with_columns(&self, cut: &TableCut) -> Self {
        let pick = |row: &Vec<Cell>| -> Vec<Cell> {
            cut.places.iter().filter_map(|place| row.get(*place).cloned()).collect()
        };
        let columns = cut.places.iter().filter_map(|place| self.columns.get(*place).cloned());
        let mut columns: Vec<Column> = columns.collect();
        // What ends a row begins at one place.
        if let Some(last) = columns.last_mut() {
            last.align = Align::Left;
        }
        Self {
            above: cut.above.clone(),
            columns,
            rows: self.rows.iter().map(pick).collect(),
            ways: Vec::new(),
            ..self.clone()
        }
    }

    /// Columns that a format shows, with their places.
    pub fn shown_columns(&self, format: Formats) -> Vec<(usize, &Column)> {
        self.columns.iter().enumerate().filter(|(_, column)| column.on.includes(format)).collect()
    }
}

/// A table that is filled column by column, so that a heading and its cells stand together.
pub struct Rows<T> {
    subjects: Vec<T>,
    /// What is filled so far.
    pub table: Table,
}

impl<T> Rows<T> {
    /// One more column, with this in the row of each subject.
    #[must_use]
    pub fn with<C: Into<Cell>>(mut self, column: Column, cell: impl Fn(&T) -> C) -> Self {
        for (row, subject) in self.table.rows.iter_mut().zip(&self.subjects) {
            row.push(cell(subject).into());
        }
        self.table.columns.push(column);
        self
    }

    /// A column for each of these.
    #[must_use]
    pub fn each<K, C: Into<Cell>>(
        self,
        keys: impl IntoIterator<Item = K>,
        column: impl Fn(&K) -> Column,
        cell: impl Fn(&T, &K) -> C,
    ) -> Self {
        let with = |rows: Self, key| rows.with(column(&key), |subject| cell(subject, &key));
        keys.into_iter().fold(self, with)
    }

    /// Numbers under a heading.
    #[must_use]
    pub fn right<C: Into<Cell>>(
        self,
        head: impl Into<String>,
        width: usize,
        cell: impl Fn(&T) -> C,
    ) -> Self {
        self.with(Column::right(head, width), cell)
    }

    /// Names under a heading.
    #[must_use]
    pub fn left<C: Into<Cell>>(
        self,
        head: impl Into<String>,
        width: usize,
        cell: impl Fn(&T) -> C,
    ) -> Self {
        self.with(Column::left(head, width), cell)
    }
}

/// How a table looks in a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TableStyle {
    /// Cells are short.
    #[default]
    Numbers,
    /// Cells are sentences, which are broken into lines.
    Words,
    /// Rows lead on to pages; the caption stands above, as it is as wide as the page.
    Links,
}

/// On which side of their column cells stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Names and words.
    Left,
    /// Numbers.
    Right,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub head: String,
    /// The heading on a terminal, where that differs.
    pub short: Option<String>,
    /// Of its cells and heading.
    pub align: Align,
    /// Columns of a terminal that it takes at least.
    pub width: usize,
    /// Blanks in front of it on a terminal.
    pub gap: usize,
    /// Whether its cells are broken into lines on a terminal.
    pub is_prose: bool,
    /// Where it is shown.
    pub on: Formats,
}

impl Column {
    /// Names.
    pub fn left(head: impl Into<String>, width: usize) -> Self {
        let (short, align, on) = (None, Align::Left, Formats::ALL);
        Self { head: head.into(), short, align, width, gap: 0, is_prose: false, on }
    }

    /// Words at the end of a row.
    pub fn words(head: impl Into<String>, gap: usize) -> Self {
        Self { gap, ..Self::left(head, 0) }
    }

    /// Prose at the end of a row, which goes on below itself.
    pub fn prose(head: impl Into<String>, gap: usize) -> Self {
        Self { is_prose: true, ..Self::words(head, gap) }
    }

    /// Numbers.
    pub fn right(head: impl Into<String>, width: usize) -> Self {
        Self { align: Align::Right, ..Self::left(head, width) }
    }

    /// Numbers under a heading of two lines on a terminal.
    pub fn stacked(above: &str, below: &str, width: usize) -> Self {
        Self::right(format!("{above} {below}"), width).short(format!("{above}\n{below}"))
    }

    /// With this heading on a terminal.
    #[must_use]
    pub fn short(self, short: impl Into<String>) -> Self {
        Self { short: Some(short.into()), ..self }
    }

    /// With this many blanks in front of it on a terminal.
    #[must_use]
    pub fn gap(self, gap: usize) -> Self {
        Self { gap, ..self }
    }

    /// For these formats only.
    #[must_use]
    pub fn on(self, on: Formats) -> Self {
        Self { on, ..self }
    }
}

/// Whether what a cell says is good news. The text says it as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Neither.
    #[default]
    Plain,
    /// Good news.
    Good,
    /// With care.
    Doubt,
    /// Bad news.
    Bad,
    /// The best of several.
    Best,
    /// It is a sentence.
    Words,
}

impl From<Verdict> for Tone {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Valid => Self::Good,
            Verdict::Suspect => Self::Doubt,
            Verdict::Void => Self::Bad,
        }
    }
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cell {
    /// What it says.
    pub text: String,
    /// The text on a terminal, where that differs.
    pub short: Option<String>,
    /// Its color in a browser.
    pub tone: Tone,
    /// What is to be known of it, in small; a terminal has no room for it.
    pub note: String,
    /// What is said of it to those who point at it.
    pub hint: String,
    /// The page that it leads to.
    pub href: Option<String>,
}

impl Cell {
    /// A number, or a dash where it is not known.
    pub fn number<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> Self {
        value.map_or_else(|| Self::from("–"), |value| Self::from(text(value)))
    }

    /// With this tone.
    #[must_use]
    pub fn tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// With this text on a terminal.
    #[must_use]
    pub fn short(self, short: impl Into<String>) -> Self {
        Self { short: Some(short.into()), ..self }
    }

    /// With this in small type.
    #[must_use]
    pub fn note(self, note: String) -> Self {
        Self { note, ..self }
    }

    /// With this as its tooltip.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    /// Leads to the page in this folder below its own, where there is one.
    #[must_use]
    pub fn with_link(self, folder: Option<&str>) -> Self {
        let folder = folder.filter(|folder| is_subfolder(folder));
        Self { href: folder.map(|folder| format!("{folder}/report.html")), ..self }
    }
}

/// Whether this is a folder below this one, and nothing else to a browser.
fn is_subfolder(folder: &str) -> bool {
    let is_name = |name: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '=');
        !name.is_empty() && name != "." && name != ".." && name.chars().all(is_plain)
    };
    folder.split('/').all(is_name)
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}
