//! Parts of a build that can be left out.

use std::fmt;

/// A part that a build may lack, under the name of its Cargo feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Checks of answers against a JSON schema.
    JsonSchema,
    /// NVIDIA's driver, queried in this process.
    Nvml,
    /// Parquet datasets and exports.
    Parquet,
    /// Token counts by a `tokenizer.json`.
    Tokenizers,
    /// Token counts by OpenAI's vocabularies.
    Vocabularies,
}

impl Feature {
    /// All of them, by name.
    pub const ALL: [Self; 5] =
        [Self::JsonSchema, Self::Nvml, Self::Parquet, Self::Tokenizers, Self::Vocabularies];

    /// The name of the Cargo feature.
    pub const fn name(self) -> &'static str {
        match self {
            Self::JsonSchema => "json-schema",
            Self::Nvml => "nvml",
            Self::Parquet => "parquet",
            Self::Tokenizers => "tokenizers",
            Self::Vocabularies => "vocabularies",
        }
    }

    const fn task(self) -> &'static str {
        match self {
            Self::JsonSchema => "check answers against a JSON schema",
            Self::Nvml => "query the NVIDIA driver of this machine",
            Self::Parquet => "read or write Parquet",
            Self::Tokenizers => "read a tokenizer.json",
            Self::Vocabularies => "count tokens with a vocabulary",
        }
    }
}

/// The error of a build without a part that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut(pub Feature);

impl LeftOut {
    /// What to do about it.
    pub const HINT: &'static str =
        "use a published build, or build with `cargo build --release --features full`";
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "built without `{}`: this build cannot {}", self.0.name(), self.0.task())
    }
}

impl std::error::Error for LeftOut {}
