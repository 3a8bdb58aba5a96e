//! Entries of one form written in another. What the other form cannot hold is counted.

mod text;
mod times;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;

use crate::format::{UnknownFormat, by_name};
use crate::{DatasetError, Loaded};

/// Forms that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConvertTarget {
    /// Bodies of the chat API, one on each line.
    Messages,
    /// Objects with `prompt`, `output_tokens` and `answer`, one on each line.
    Prompts,
    /// Mooncake's trace.
    Mooncake,
    /// Azure's table.
    Azure,
    /// BurstGPT's table.
    Burstgpt,
    /// Our own trace.
    Goodput,
}

impl ConvertTarget {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Messages, Self::Prompts, Self::Mooncake, Self::Azure, Self::Burstgpt, Self::Goodput];

    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Prompts => "prompts",
            Self::Mooncake => "mooncake",
            Self::Azure => "azure",
            Self::Burstgpt => "burstgpt",
            Self::Goodput => "goodput",
        }
    }
}

impl FromStr for ConvertTarget {
    type Err = UnknownFormat;
    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        by_name(text, "form that can be written", &Self::ALL, Self::name)
    }
}

/// What became of the entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Converted {
    /// Lines or rows written, without headers.
    pub written: u64,
    /// What the form cannot hold, by field, with the number of times.
    pub lost: BTreeMap<String, u64>,
}

impl Converted {
    /// Counts a loss, where it is one.
    fn count_loss(&mut self, what: &str, is_lost: bool) {
        if is_lost {
            *self.lost.entry(what.to_owned()).or_default() += 1;
        }
    }
}

/// Writes the entries in another form.
pub fn convert(
    loaded: &Loaded,
    to: ConvertTarget,
    out: &mut dyn Write,
) -> Result<Converted, DatasetError> {
    let mut converted = Converted::default();
    let done: io::Result<()> = match to {
        ConvertTarget::Messages => text::write_messages(loaded, out, &mut converted),
        ConvertTarget::Prompts => text::write_prompts(loaded, out, &mut converted),
        ConvertTarget::Mooncake => times::write_mooncake(loaded, out, &mut converted),
        ConvertTarget::Azure => times::write_azure(loaded, out, &mut converted),
        ConvertTarget::Burstgpt => times::write_burstgpt(loaded, out, &mut converted),
        ConvertTarget::Goodput => times::write_goodput(loaded, out, &mut converted),
    };
    done.and_then(|()| out.flush())
        .map_err(|error| DatasetError::io(Path::new("the output"), "written", &error))?;
    Ok(converted)
}
