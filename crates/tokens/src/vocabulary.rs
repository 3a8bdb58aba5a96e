//! `.tiktoken` vocabularies: lines of a token in base64 and its rank.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tiktoken_rs::CoreBPE;

use crate::error::{TokenizerError, safe_excerpt};

/// Where text is cut before pairs are merged, by what the file's name contains.
const SPLITS: [(&str, &str); 5] = [
    ("o200k", tiktoken_rs::O200K_BASE_PAT_STR),
    ("cl100k", CL100K),
    ("p50k", R50K),
    ("r50k", R50K),
    ("gpt2", R50K),
];

const CL100K: &str = concat!(
    r"'(?i:[sdmt]|ll|ve|re)",
    r"|[^\r\n\p{L}\p{N}]?+\p{L}++",
    r"|\p{N}{1,3}+",
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+",
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
);

const R50K: &str = concat!(
    r"'(?:[sdmt]|ll|ve|re)",
    r"| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++",
    r"|\s++$|\s+(?!\S)|\s",
);

/// A vocabulary that is built in.
struct BuiltinVocabulary {
    name: &'static str,
    /// What `build.rs` made of it.
    packed: &'static [u8],
    unpacked: OnceLock<Option<Vocabulary>>,
}

impl BuiltinVocabulary {
    const fn new(name: &'static str, packed: &'static [u8]) -> Self {
        Self { name, packed, unpacked: OnceLock::new() }
    }
}

static BUILTIN: [BuiltinVocabulary; 2] = [
    BuiltinVocabulary::new("cl100k_base", include_bytes!(concat!(env!("OUT_DIR"), "/cl100k_base"))),
    BuiltinVocabulary::new("o200k_base", include_bytes!(concat!(env!("OUT_DIR"), "/o200k_base"))),
];

/// Tokens by their rank, and how text is cut before pairs are merged. Clones share it.
#[derive(Clone)]
pub(crate) struct Vocabulary(Arc<CoreBPE>);

impl Vocabulary {
    /// The one of this name.
    pub(crate) fn builtin(name: &str) -> Option<Self> {
        let builtin = BUILTIN.iter().find(|builtin| builtin.name == name)?;
        let unpacked = || Self::new(unpack_ranks(builtin.packed)?, split_pattern(name)?).ok();
        builtin.unpacked.get_or_init(unpacked).clone()
    }

    /// The one in these bytes.
    pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Self, TokenizerError> {
        let malformed = |line, why| TokenizerError::Malformed { path: path.to_owned(), line, why };
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase());
        let split = split_pattern(&name.unwrap_or_default())
            .ok_or_else(|| TokenizerError::UnknownSplit { path: path.to_owned() })?;
        let ranks = parse_ranks(bytes).map_err(|(line, why)| malformed(line, why))?;
        Self::new(ranks, split).map_err(|why| malformed(1, safe_excerpt(&why)))
    }

    fn new(ranks: HashMap<Vec<u8>, u32>, split: &str) -> Result<Self, String> {
        // The library needs one special token to look for; none is ever allowed.
        let unused = ranks.values().max().map_or(0, |rank| rank.saturating_add(1));
        let special = [("<|endoftext|>".to_owned(), unused)];
        CoreBPE::new(ranks.into_iter().collect(), special.into_iter().collect(), split)
            .map(|vocabulary| Self(Arc::new(vocabulary)))
            .map_err(|error| error.to_string())
    }

    /// Ids of the tokens, or why this text has none.
    pub(crate) fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        // With no special token allowed, all text is ordinary; unlike `encode_ordinary`, this
        // reports a text that is beyond the limits of the split.
        let encoded = self.0.encode(text, &HashSet::new());
        encoded.map(|(ids, _)| ids).map_err(|error| error.message)
    }
}

/// Where text is cut, by the name of the vocabulary.
fn split_pattern(name: &str) -> Option<&'static str> {
    SPLITS.iter().find(|(part, _)| name.contains(part)).map(|(_, split)| *split)
}

/// Rank by token: each token lies behind its length, in the order of ranks.
fn unpack_ranks(packed: &[u8]) -> Option<HashMap<Vec<u8>, u32>> {
    let bytes = miniz_oxide::inflate::decompress_to_vec(packed).ok()?;
    let mut rest = bytes.as_slice();
    let mut tokens = Vec::new();
    while let Some((length, after)) = rest.split_first() {
        let (token, after) = after.split_at_checked(usize::from(*length))?;
        tokens.push(token.to_owned());
        rest = after;
    }
    Some(tokens.into_iter().zip(0..).collect())
}

/// Rank by token, or the line and what is wrong with it.
fn parse_ranks(bytes: &[u8]) -> Result<HashMap<Vec<u8>, u32>, (usize, String)> {
    let mut ranks = HashMap::new();
    let mut used = HashSet::new();
    let mut lines = 0;
    for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        lines = index + 1;
        let wrong = |what: &str| {
            let shown = safe_excerpt(&String::from_utf8_lossy(&line[..line.len().min(80)]));
            (index + 1, format!("{what} in `{shown}`; expected a token in base64 and its rank"))
        };
        let (token, rank) = parse_rank_line(line).map_err(wrong)?;
        if !used.insert(rank) {
            return Err(wrong("duplicate rank"));
        }
        if ranks.insert(token, rank).is_some() {
            return Err(wrong("duplicate token"));
        }
    }
    // Every text can be spelt in bytes only if each of them is a token.
    match (0..=u8::MAX).find(|&byte| !ranks.contains_key([byte].as_slice())) {
        Some(byte) => Err((lines.max(1), format!("no token for the byte 0x{byte:02x}"))),
        None => Ok(ranks),
    }
}

fn parse_rank_line(line: &[u8]) -> Result<(Vec<u8>, u32), &'static str> {
    let text = std::str::from_utf8(line).map_err(|_| "bytes that are not valid UTF-8")?;
    let (token, rank) = text.split_once(' ').ok_or("no rank")?;
    let token = STANDARD.decode(token).map_err(|_| "invalid base64")?;
    let rank = rank.trim().parse::<u32>().map_err(|_| "no rank")?;
    // The library marks what cannot be merged by the highest rank.
    if token.is_empty() || rank == u32::MAX {
        return Err("an empty token, or a rank out of range");
    }
    Ok((token, rank))
}
