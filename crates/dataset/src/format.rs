//! The forms of files, by their names on the command line.

use std::path::Path;
use std::str::FromStr;

use goodput_model::{closest_name, safe_excerpt};

use crate::error::name_list;

/// Forms of datasets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatasetFormat {
    /// Conversations of `from` and `value`, in a JSON array or one on each line.
    Sharegpt,
    /// Bodies of the chat API, or lines of the batch API.
    Messages,
    /// JSON objects with a prompt.
    Prompts,
    /// A table with a header.
    Csv,
    /// One prompt on each line.
    Text,
    /// A Parquet table.
    Parquet,
}

impl DatasetFormat {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Sharegpt, Self::Messages, Self::Prompts, Self::Csv, Self::Text, Self::Parquet];

    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sharegpt => "sharegpt",
            Self::Messages => "messages",
            Self::Prompts => "prompts",
            Self::Csv => "csv",
            Self::Text => "text",
            Self::Parquet => "parquet",
        }
    }
}

/// Forms of traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceFormat {
    /// Milliseconds, lengths and `hash_ids` of 512 tokens, one object on each line.
    Mooncake,
    /// Seconds, lengths, chats and `hash_ids` of 16 tokens, one object on each line.
    Bailian,
    /// A table of `Timestamp`, `Request tokens`, `Response tokens`.
    Burstgpt,
    /// A table of `TIMESTAMP`, `ContextTokens`, `GeneratedTokens`.
    Azure,
    /// What goodput records.
    Goodput,
    /// LiteLLM's payloads of requests, or its table of spending.
    Litellm,
    /// An access log of nginx.
    Nginx,
    /// OpenTelemetry's spans with `gen_ai` attributes.
    Otel,
}

impl TraceFormat {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Mooncake,
        Self::Bailian,
        Self::Burstgpt,
        Self::Azure,
        Self::Goodput,
        Self::Litellm,
        Self::Nginx,
        Self::Otel,
    ];

    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mooncake => "mooncake",
            Self::Bailian => "bailian",
            Self::Burstgpt => "burstgpt",
            Self::Azure => "azure",
            Self::Goodput => "goodput",
            Self::Litellm => "litellm",
            Self::Nginx => "nginx",
            Self::Otel => "otel",
        }
    }

    /// Whether it is a log of what people asked, whose names and words go no further.
    pub(crate) fn is_log(self) -> bool {
        matches!(self, Self::Litellm | Self::Nginx | Self::Otel)
    }
}

/// A name that no form has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a {what}, {expected}")]
pub struct UnknownFormat {
    name: String,
    what: &'static str,
    expected: String,
}

pub(crate) fn by_name<T: Copy>(
    text: &str,
    what: &'static str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, UnknownFormat> {
    let wanted = text.trim();
    let known = || all.iter().map(|one| name(*one));
    all.iter().copied().find(|one| name(*one) == wanted).ok_or_else(|| UnknownFormat {
        name: safe_excerpt(text),
        what,
        expected: match closest_name(wanted, known()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("expected one of {}", name_list(known())),
        },
    })
}

impl FromStr for DatasetFormat {
    type Err = UnknownFormat;
    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        by_name(text, "form of dataset", &Self::ALL, Self::name)
    }
}

impl FromStr for TraceFormat {
    type Err = UnknownFormat;
    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        by_name(text, "form of trace", &Self::ALL, Self::name)
    }
}

pub(crate) fn lowercase_extension(path: &Path) -> String {
    path.extension().map(|text| text.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}
