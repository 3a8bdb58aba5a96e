//! What a stream may do that clients must survive.

/// How the role of a chat answer is announced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// A chunk of its own with `"content":""`.
    #[default]
    Empty,
    /// A chunk of its own with `"content":null`.
    Null,
    /// A chunk of its own without content.
    Bare,
    /// Never.
    Absent,
    /// On the chunk of the first token.
    WithFirst,
}

/// Departures from the plain stream; the default is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Quirks {
    /// Events end with CRLF CRLF.
    pub(crate) crlf: bool,
    /// `data:` without the space.
    pub(crate) no_space: bool,
    pub(crate) role: Role,
    /// Each event carries the whole text so far.
    pub(crate) cumulative: bool,
    /// Usage is never sent, asked for or not.
    pub(crate) no_usage: bool,
    /// `completion_tokens` is doubled, plus 7.
    pub(crate) wrong_usage: bool,
    /// No `[DONE]`.
    pub(crate) no_done: bool,
    /// The event of this token ends in the middle of its JSON.
    pub(crate) truncated_json_at: Option<u32>,
    /// In place of this token comes an error, and nothing after it.
    pub(crate) error_at: Option<u32>,
    /// The answer ends with `stop` after this many tokens.
    pub(crate) early_eos_at: Option<u32>,
    /// Words contain characters of several bytes.
    pub(crate) utf8: bool,
    /// A comment before each event.
    pub(crate) pings: bool,
    /// The event of the first token is padded with text to this many bytes.
    pub(crate) huge_event: Option<u32>,
}
