//! Where a piece of a document is shown.

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
    pub fn with_short(self) -> Self {
        Self(self.0 | Self::SHORT.0)
    }

    /// Whether this includes `format`.
    pub fn includes(self, format: Self) -> bool {
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
