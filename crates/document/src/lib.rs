//! *The vocabulary of pages*: a [`Document`] has sections of facts, tables, charts and notes, and
//! [`render`] writes it as text, Markdown, HTML, or JUnit XML.
//!
//! This crate knows no result: `report` turns results into documents, and `ui` builds its own pages.
//! Pure: the same document gives the same page. Renderers make foreign text harmless.

mod chart;
pub mod clip;
mod color;
mod document;
pub mod markup;
pub mod number;
pub mod render;
mod scale;
pub mod svg;
pub mod wrap;

pub use chart::{TextPlot, draw_text_plot};
pub use color::color_page;
pub use document::{
    Align, Answer, Block, Cell, Column, Detail, Document, Fact, FailureLog, Fault, Folded, Formats,
    Judgement, Lines, List, Note, NoteKind, Pointer, Rows, Section, SeverityMark, Standing, Suite,
    Suites, Table, TableCut, TableStyle, TestCase, Tone, void_answer,
};
