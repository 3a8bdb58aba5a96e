//! What a page says, before anything is known of where it is read.
//!
//! # Why
//!
//! A result is shown as text, Markdown, HTML and JUnit XML. Written once for each format, the same table
//! drifts apart: a number is rounded here and not there, a column is added to one page only. So every
//! artifact becomes a [`Document`] once, and four renderers ([`crate::render`]) write documents. A
//! renderer knows no artifact, and a document knows no format: what stands on two pages is the same by
//! construction.
//!
//! # What
//!
//! - A [`Document`] has names (for a window, a terminal, a heading), an [`Answer`], [`Section`]s in order,
//!   and [`Suite`]s of test cases.
//! - A [`Section`] has an id and a title, and [`Block`]s in order: facts, tables, charts, notes, lists, and
//!   what is to be believed.
//! - A [`Fact`] is a label and a sentence. A fact without a label goes on with the one above it.
//! - A [`Table`] has [`Column`]s and rows of [`Cell`]s. The column knows its heading, on which side its
//!   cells stand, and how much room a terminal has for it; the cell has its text, its tone (whether that
//!   is good news) and the folder that it leads to.
//! - A [`SeverityMark`] says what matters and how much, a [`Failure`] what failed with its last words, [`Lines`]
//!   keep a command or a file as it is, [`Folded`] blocks wait behind a line.
//! - A chart is data ([`crate::svg::Chart`]): series, axes, rules and a sentence. A [`TextPlot`] shows it on a terminal.
//!
//! # What differs between formats
//!
//! A terminal has 80 columns, a browser draws, Markdown goes into a comment. Three rules cover that, and
//! none of them changes a number:
//!
//! 1. A block, a fact or a column can be kept to some [`Formats`]. A column that a terminal has no room
//!    for is still a column of the one table.
//! 2. A heading or a cell can have a `short` form for a terminal: `p99` under `TTFT`, or nothing if
//!    all is well. Lines of a heading stand one above the other. Its note, such as an interval, is shown
//!    where there is more room.
//! 3. A table that is too wide for a terminal says into which tables of fewer columns it may be cut
//!    ([`Table::ways`]).
//!
//! What only a browser can do (the explorer, the forest plot) is a [`Block::Widget`], made by its own
//! module from escaped pieces; other formats leave it out.
//!
//! # Foreign text
//!
//! Any text of a document may come from a server or a file. Renderers escape all of it, each for its
//! format; only line breaks in a `short` form are obeyed, so those must not be foreign.
//!
//! # How to add an artifact
//!
//! Write `fn document(&Artifact) -> Document` in the artifact's module, and the public functions as
//! `render::text::page(&document(artifact))` and so on. Numbers become text by [`crate::number`].

use goodput_model::{Caveat, Severity, Verdict};

use crate::chart::TextPlot;
use crate::markup::Html;
use crate::svg::Chart;

/// Where something is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Formats(u8);

impl Formats {
    /// A terminal.
    pub const TEXT: Self = Self(1);
    /// A comment or a job summary.
    pub const MARKDOWN: Self = Self(2);
    /// A browser.
    pub const HTML: Self = Self(4);
    /// On every whole page.
    pub const ALL: Self = Self(7);
    /// The short page of a terminal, on which stands only what asks for it.
    pub const SHORT: Self = Self(8);
    /// Not shown.
    pub const NONE: Self = Self(0);
    /// On a page that is read from its top to its end.
    pub const FLAT: Self = Self(3);
    /// Where there is more room than on a terminal.
    pub const WIDE: Self = Self(6);
    /// Not in a comment, which should be short.
    pub const LONG: Self = Self(5);

    /// These and the short page.
    #[must_use]
    pub fn and_short(self) -> Self {
        Self(self.0 | Self::SHORT.0)
    }

    /// Whether this includes `format`.
    pub fn has(self, format: Self) -> bool {
        self.0 & format.0 != 0
    }
}

/// How much of a document a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The verdict, the answer, and the figures that are read first: blocks, facts, and tables on
    /// [`Formats::SHORT`]. Lists are cut after a few lines.
    Short,
    /// Everything.
    Full,
}

/// A result as people read it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Document {
    /// Of the window.
    pub title: String,
    /// A line below it: what, when, by which version.
    pub about: String,
    /// The same at the top of a terminal: lines, and nothing if they are not known.
    pub head: Vec<String>,
    /// What the short page says next to the verdict, in its first line.
    pub headline: String,
    /// What it is and how it went, in a few words: the heading in Markdown.
    pub heading: String,
    /// None if the sections say it all.
    pub answer: Option<Answer>,
    /// In the order of the page.
    pub sections: Vec<Section>,
    /// Whether a terminal shows lines of the head and long words whole, however wide it is.
    pub keeps_long_lines: bool,
    /// The name of the file of test cases, and the cases.
    pub suites: Suites,
}

/// The answer in a sentence, and whether to believe it.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What was found.
    pub sentence: String,
    /// Sentences that stand next to it, where several things were asked.
    pub more: Vec<String>,
    /// Whether to believe it.
    pub standing: Standing,
    /// Where doubts are explained: what to say, the id of the section, and its name in the sentence.
    pub doubt: Option<Pointer>,
}

impl Answer {
    /// An answer with nothing next to it.
    pub fn new(sentence: String, verdict: Verdict) -> Self {
        Self { sentence, more: Vec::new(), standing: Standing::Verdict(verdict), doubt: None }
    }
}

/// Whether to believe an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// It was measured, and this is how sure it is.
    Verdict(Verdict),
    /// It was not measured.
    Words(&'static str),
}

/// A sentence that leads to a section.
#[derive(Debug, Clone, PartialEq)]
pub struct Pointer {
    /// The sentence, up to the link.
    pub text: String,
    /// Of the section.
    pub id: &'static str,
    /// The text of the link.
    pub name: &'static str,
}

/// What belongs together. One in which nothing is left to show is left out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Section {
    /// For links. Without one its blocks stand below the answer.
    pub id: &'static str,
    /// In the navigation.
    pub name: &'static str,
    /// Above its blocks.
    pub title: &'static str,
    /// Each with the formats that show it.
    pub blocks: Vec<(Formats, Block)>,
}

impl Section {
    /// One whose name is its title.
    pub fn new(id: &'static str, title: &'static str) -> Self {
        Self { id, name: title, title, blocks: Vec::new() }
    }

    /// With another name in the navigation.
    pub fn named(id: &'static str, name: &'static str, title: &'static str) -> Self {
        Self { id, name, title, blocks: Vec::new() }
    }

    /// Charts, where they can be drawn.
    pub fn charts(
        id: &'static str,
        name: &'static str,
        title: &'static str,
        charts: Vec<Chart>,
    ) -> Self {
        Self::named(id, name, title).with(Block::Charts(charts))
    }

    /// Blocks that stand below the answer, or at the end of a page.
    pub fn bare() -> Self {
        Self::default()
    }

    /// Adds a block for all formats.
    #[must_use]
    pub fn with(self, block: Block) -> Self {
        self.with_on(Formats::ALL, block)
    }

    /// Adds a block for these formats.
    #[must_use]
    pub fn with_on(mut self, on: Formats, block: Block) -> Self {
        self.blocks.push((on, block));
        self
    }

    /// Adds a block if there is one.
    #[must_use]
    pub fn with_some(self, on: Formats, block: Option<Block>) -> Self {
        match block {
            Some(block) => self.with_on(on, block),
            None => self,
        }
    }
}

/// A piece of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// Labels with sentences.
    Facts(Vec<Fact>),
    /// Rows under headings.
    Table(Table),
    /// For a browser.
    Charts(Vec<Chart>),
    /// For a terminal.
    Plot(TextPlot),
    /// A sentence.
    Note(Note),
    /// Sentences under a title.
    List(List),
    /// A line in bold type.
    Strong(String),
    /// A heading inside a section.
    Heading(String),
    /// The verdict and what speaks against it.
    Judgement(Judgement),
    /// What speaks against it, the worst first, each with its code and its advice.
    Caveats(Vec<Caveat>),
    /// A failure with the end of its log.
    Failure(Failure),
    /// Text whose line breaks are kept.
    Lines(Lines),
    /// Warnings under the fact above.
    Marks(Vec<SeverityMark>),
    /// What is there for those who look for it; on a terminal like everything else.
    Folded(Folded),
    /// What only a browser can do, such as the explorer.
    Widget(Html),
    /// An empty line, where lines are all that parts a page.
    Gap,
}

impl Block {
    /// Facts from pairs of label and text.
    pub fn facts<L, T>(all: impl IntoIterator<Item = (L, T)>) -> Self
    where
        L: Into<String>,
        T: Into<String>,
    {
        Self::Facts(all.into_iter().map(|(label, text)| Fact::new(label, text)).collect())
    }

    /// A single fact.
    pub fn fact(label: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Facts(vec![Fact::new(label, text)])
    }

    /// A note that says the same as what is around it.
    pub fn note(text: impl Into<String>) -> Self {
        Self::Note(Note { text: text.into(), kind: NoteKind::Plain })
    }

    /// A note on how to read what is above.
    pub fn about(text: impl Into<String>) -> Self {
        Self::Note(Note { text: text.into(), kind: NoteKind::About })
    }

    /// A note that is worth knowing.
    pub fn remark(text: impl Into<String>) -> Self {
        Self::Note(Note { text: text.into(), kind: NoteKind::Remark })
    }

    /// The verdict with the message and advice of each caveat.
    pub fn judgement(verdict: Verdict, caveats: &[Caveat]) -> Self {
        Self::Judgement(Judgement {
            verdict,
            marks: caveats.iter().map(SeverityMark::from_caveat).collect(),
        })
    }

    /// Nothing without a line.
    pub fn lines(title: &str, text: &str, is_folded: bool) -> Option<Self> {
        let (title, text) = (title.to_owned(), text.to_owned());
        (!text.is_empty()).then_some(Self::Lines(Lines { title, text, is_folded }))
    }
}

/// A label and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Empty: it goes on with the fact above.
    pub label: String,
    /// What it says.
    pub text: String,
    /// Where it is shown.
    pub on: Formats,
}

impl Fact {
    /// Sentences under one label.
    pub fn several(label: &str, texts: impl IntoIterator<Item = String>) -> Vec<Self> {
        let label = |place| if place == 0 { label } else { "" };
        let one = |(place, text)| Self::new(label(place), text);
        texts.into_iter().enumerate().map(one).collect()
    }

    /// A fact for all formats.
    pub fn new(label: impl Into<String>, text: impl Into<String>) -> Self {
        Self { label: label.into(), text: text.into(), on: Formats::ALL }
    }

    /// The same for these formats only.
    #[must_use]
    pub fn on(self, on: Formats) -> Self {
        Self { on, ..self }
    }

    /// The same, on the short page too.
    #[must_use]
    pub fn in_short(self) -> Self {
        Self { on: self.on.and_short(), ..self }
    }
}

/// A sentence of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What it says.
    pub text: String,
    /// How a browser styles it.
    pub kind: NoteKind,
}

/// What a note is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteKind {
    /// It says the same as everything around it.
    Plain,
    /// It says how to read what is above.
    About,
    /// It says what is worth knowing.
    Remark,
}

/// Sentences of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// Above the sentences.
    pub title: String,
    /// One sentence each.
    pub items: Vec<String>,
}

/// What failed, and the last that it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Of the thing that failed.
    pub name: String,
    /// The reason, in one line.
    pub why: String,
    /// Its output, line by line.
    pub log: Vec<String>,
}

impl Failure {
    /// At most this many last lines of the log, and how many are left out.
    pub fn tail(&self, most: usize) -> (usize, &[String]) {
        let skipped = self.log.len().saturating_sub(most);
        (skipped, self.log.get(skipped..).unwrap_or_default())
    }
}

/// Text whose lines are kept, such as a command or a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    /// Above the text, and its label for screen readers.
    pub title: String,
    /// The text, with line breaks.
    pub text: String,
    /// Whether it is shown only when asked for.
    pub is_folded: bool,
}

/// Something that matters so much, under the fact above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeverityMark {
    /// The word at its left.
    pub word: &'static str,
    /// Decides the color.
    pub severity: Severity,
    /// What is wrong, and what to do.
    pub text: String,
}

impl SeverityMark {
    /// The message of a caveat, and what to do about it.
    fn from_caveat(caveat: &Caveat) -> Self {
        let Caveat { severity, message, advice, .. } = caveat;
        let advice = advice.as_ref().map_or(String::new(), |advice| format!("; {advice}"));
        let text = format!("{message}{advice}");
        Self { word: Self::word(*severity), severity: *severity, text }
    }

    /// What a terminal shows at the left.
    pub fn word(severity: Severity) -> &'static str {
        match severity {
            Severity::Info => "  note",
            Severity::Warn => "  warning",
            Severity::Void => "  void",
        }
    }
}

/// Blocks behind a line.
#[derive(Debug, Clone, PartialEq)]
pub struct Folded {
    /// The line to open it with.
    pub title: String,
    /// What it hides.
    pub blocks: Vec<Block>,
}

/// Whether to believe a result, and why not.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// How much to trust the result.
    pub verdict: Verdict,
    /// One for each caveat.
    pub marks: Vec<SeverityMark>,
}

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
    pub fn filled(self) -> Option<Block> {
        (!self.rows.is_empty()).then_some(Block::Table(self))
    }

    /// The same with only these columns, in one piece.
    #[must_use]
    pub fn cut(&self, cut: &TableCut) -> Self {
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
    pub fn shown(&self, format: Formats) -> Vec<(usize, &Column)> {
        self.columns.iter().enumerate().filter(|(_, column)| column.on.has(format)).collect()
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
    pub fn leads_to(self, folder: Option<&str>) -> Self {
        let folder = folder.filter(|folder| is_below(folder));
        Self { href: folder.map(|folder| format!("{folder}/report.html")), ..self }
    }
}

/// Whether this is a folder below this one, and nothing else to a browser.
fn is_below(folder: &str) -> bool {
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

/// Test cases, for what shows such.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Suites {
    /// Of the file.
    pub name: &'static str,
    /// One for each run or side.
    pub suites: Vec<Suite>,
}

/// What is wrong with a case, and of which kind it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It does not hold; the text names the kind.
    Failure(&'static str),
    /// It cannot be decided; the text names the kind.
    Error(&'static str),
}

/// One test case. Its texts may be foreign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestCase {
    /// What must hold.
    pub name: String,
    /// What was found.
    pub text: String,
    /// None if it holds.
    pub fault: Option<Fault>,
}

impl TestCase {
    /// A case; without a fault it passed.
    pub fn new(name: impl Into<String>, text: impl Into<String>, fault: Option<Fault>) -> Self {
        Self { name: name.into(), text: text.into(), fault }
    }
}

/// Cases that belong together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Suite {
    /// What was tested.
    pub name: String,
    /// Of its cases, after `goodput.`; any text.
    pub class: Vec<String>,
    /// How long it took.
    pub seconds: f64,
    /// When it began (RFC 3339).
    pub started: String,
    /// Names and values.
    pub properties: Vec<(&'static str, String)>,
    /// In order.
    pub cases: Vec<TestCase>,
    /// The whole in a sentence.
    pub said: String,
}

/// Why a result is void.
fn grave(caveats: &[Caveat]) -> impl Iterator<Item = &str> {
    let grave = caveats.iter().filter(|caveat| caveat.severity == Severity::Void);
    grave.map(|caveat| caveat.message.as_str())
}

/// The answer of a result that is void.
pub fn no_result(caveats: &[Caveat]) -> String {
    let why = grave(caveats).next().map_or(String::new(), |why| format!(": {why}"));
    format!("No result: these numbers are void{why}")
}

impl Suite {
    /// Of a result that is void no word is one: what it says is an error, and so is that it is void,
    /// in a case of this name.
    pub fn void(&mut self, name: impl Into<String>, caveats: &[Caveat]) {
        let why: Vec<&str> = grave(caveats).collect();
        self.cases.push(TestCase::new(name, format!("void: {}", why.join("; ")), None));
        for case in &mut self.cases {
            case.fault = Some(Fault::Error("void"));
        }
    }
}
