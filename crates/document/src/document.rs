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
//! - A [`SeverityMark`] says what matters and how much, a [`FailureLog`] what failed with its last words, [`Lines`]
//!   keep a command or a file as it is, [`Folded`] blocks wait behind a line.
//! - A chart is data ([`crate::svg::Chart`]): series, axes, rules and a sentence. A [`TextPlot`](crate::TextPlot) shows it on a terminal.
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

mod answer;
mod block;
mod formats;
mod suite;
mod table;

use crate::svg::Chart;

pub use answer::{Answer, Pointer, Standing, void_answer};
pub use block::{
    Block, Fact, FailureLog, Folded, Judgement, Lines, List, Note, NoteKind, SeverityMark,
};
pub use formats::{Detail, Formats};
pub use suite::{Fault, Suite, Suites, TestCase};
pub use table::{Align, Cell, Column, Rows, Table, TableCut, TableStyle, Tone};

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
    pub fn with_name(id: &'static str, name: &'static str, title: &'static str) -> Self {
        Self { id, name, title, blocks: Vec::new() }
    }

    /// Charts, where they can be drawn.
    pub fn charts(
        id: &'static str,
        name: &'static str,
        title: &'static str,
        charts: Vec<Chart>,
    ) -> Self {
        Self::with_name(id, name, title).with(Block::Charts(charts))
    }

    /// Blocks that stand below the answer, or at the end of a page.
    pub fn untitled() -> Self {
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
