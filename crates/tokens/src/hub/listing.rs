//! What the hub says a repository holds.

use serde::Deserialize;

use super::{is_commit, is_inside_name};
use crate::error::safe_excerpt;

/// The files of a repository at the commit of its main line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The commit.
    pub commit: String,
    /// Names of the files, with their folders, in the order of the hub.
    pub files: Vec<String>,
}

/// Why an answer of the hub is not a listing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a listing of the hub: {0}")]
pub struct ListingError(String);

#[derive(Deserialize)]
struct ListingReply {
    sha: String,
    #[serde(default)]
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
}

impl Listing {
    /// From the hub's answer. Names that would leave the repository's folder are an error.
    pub fn parse(answer: &[u8]) -> Result<Self, ListingError> {
        let wire: ListingReply = serde_json::from_slice(answer)
            .map_err(|error| ListingError(safe_excerpt(&error.to_string())))?;
        if !is_commit(&wire.sha) {
            return Err(ListingError(format!(
                "`sha` is `{}`, which is not a commit",
                safe_excerpt(&wire.sha)
            )));
        }
        let files: Vec<String> = wire.siblings.into_iter().map(|file| file.rfilename).collect();
        match files.iter().find(|file| !is_inside_name(file)) {
            Some(file) => Err(ListingError(format!(
                "`rfilename` is `{}`, which is not a file of the repository",
                safe_excerpt(file)
            ))),
            None => Ok(Self { commit: wire.sha, files }),
        }
    }
}
