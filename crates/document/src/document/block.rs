//! The pieces of a section.

use goodput_model::{Caveat, Severity, Verdict};

use super::formats::Formats;
use super::table::Table;
use crate::chart::TextPlot;
use crate::markup::Html;
use crate::svg::Chart;

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
    Failure(FailureLog),
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
    pub fn reading_note(text: impl Into<String>) -> Self {
        Self::Note(Note { text: text.into(), kind: NoteKind::About })
    }

    /// A note that is worth knowing.
    pub fn remark_note(text: impl Into<String>) -> Self {
        Self::Note(Note { text: text.into(), kind: NoteKind::Remark })
    }

    /// The verdict with the message and advice of each caveat.
    pub fn verdict_block(verdict: Verdict, caveats: &[Caveat]) -> Self {
        Self::Judgement(Judgement {
            verdict,
            marks: caveats.iter().map(SeverityMark::from_caveat).collect(),
        })
    }

    /// Nothing without a line.
    pub fn text_lines(title: &str, text: &str, is_folded: bool) -> Option<Self> {
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
    pub fn also_in_short(self) -> Self {
        Self { on: self.on.with_short(), ..self }
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
pub struct FailureLog {
    /// Of the thing that failed.
    pub name: String,
    /// The reason, in one line.
    pub why: String,
    /// Its output, line by line.
    pub log: Vec<String>,
}

impl FailureLog {
    /// At most this many last lines of the log, and how many are left out.
    pub fn last_lines(&self, most: usize) -> (usize, &[String]) {
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
        Self { word: Self::severity_word(*severity), severity: *severity, text }
    }

    /// What a terminal shows at the left.
    pub fn severity_word(severity: Severity) -> &'static str {
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
