//! Which requests are mirrored.

use goodput_model::Api;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// What is chosen as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum By {
    /// All requests of a conversation or none, so that a cache of prefixes sees it whole.
    #[default]
    Conversation,
    /// Each request for itself.
    Request,
}

/// Which requests may be chosen at all. Without rules all may.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    /// Only those that ask for one of these models.
    pub only_models: Vec<String>,
    /// None that asks for one of these.
    pub not_models: Vec<String>,
    /// Only those whose path begins with one of these.
    pub only_paths: Vec<String>,
    /// None whose path begins with one of these.
    pub not_paths: Vec<String>,
}

impl Rules {
    /// By the path, without a query.
    pub(super) fn allow_path(&self, path: &str) -> bool {
        let is_in = |list: &[String]| list.iter().any(|start| path.starts_with(start.as_str()));
        (self.only_paths.is_empty() || is_in(&self.only_paths)) && !is_in(&self.not_paths)
    }

    /// By the model that a body asks for.
    pub(super) fn allow_model(&self, model: &str) -> bool {
        let is_in = |list: &[String]| list.iter().any(|name| name == model);
        (self.only_models.is_empty() || is_in(&self.only_models)) && !is_in(&self.not_models)
    }
}

/// What is read of a request's body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequestFields<'a> {
    /// The model that it asks for.
    pub(super) model: Option<Cow<'a, str>>,
    /// Where that stands in the body, quotes included.
    pub(super) place: Option<Range<usize>>,
    /// A hash of how the conversation begins.
    pub(super) opening: u64,
    /// The length asked for.
    pub(super) max_tokens: Option<u32>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default, deserialize_with = "deserialize_nullable")]
    model: Option<&'a RawValue>,
    #[serde(borrow, default)]
    messages: Option<&'a RawValue>,
    #[serde(borrow, default)]
    prompt: Option<&'a RawValue>,
    #[serde(borrow, default)]
    max_tokens: Option<&'a RawValue>,
    #[serde(borrow, default)]
    max_completion_tokens: Option<&'a RawValue>,
}

/// A member that is there, be it `null`.
fn deserialize_nullable<'de, D: Deserializer<'de>>(
    raw: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(raw).map(Some)
}

/// How much of a prompt without messages tells conversations apart.
const OPENING: usize = 1024;

/// Reads a body; none if it is not of the API's shape.
pub(super) fn read_fields(api: Api, body: &[u8]) -> Option<RequestFields<'_>> {
    let text = std::str::from_utf8(body).ok()?;
    let read: Body<'_> = serde_json::from_str(text).ok()?;
    let model = read.model.map(|raw| serde_json::from_str::<Option<Name<'_>>>(raw.get()));
    let model = model.transpose().ok()?.flatten().map(|name| name.0);
    let place = read.model.map(|raw| {
        let start = raw.get().as_ptr() as usize - text.as_ptr() as usize;
        start..start + raw.get().len()
    });
    let mut hash = Hash::new();
    hash.add(model.as_deref().unwrap_or_default().as_bytes());
    match api {
        Api::Chat => {
            let messages: Opening = serde_json::from_str(read.messages?.get()).ok()?;
            hash.add(&messages.0.to_le_bytes());
        }
        Api::Completions => {
            let prompt = read.prompt?.get().as_bytes();
            hash.add(prompt.get(..OPENING).unwrap_or(prompt));
        }
    }
    let limit = read.max_completion_tokens.or(read.max_tokens);
    let max_tokens = limit.and_then(|raw| raw.get().parse().ok());
    Some(RequestFields { model, place, opening: hash.0, max_tokens })
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// A hash of the messages up to the first of the user, that one included.
struct Opening(u64);

impl<'de> Deserialize<'de> for Opening {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Messages)
    }
}

#[derive(Deserialize)]
struct MessageRole<'a> {
    #[serde(borrow, default)]
    role: Option<Cow<'a, str>>,
}

struct Messages;

impl<'de> Visitor<'de> for Messages {
    type Value = Opening;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Opening, A::Error> {
        let mut hash = Hash::new();
        while let Some(message) = list.next_element::<&RawValue>()? {
            hash.add(message.get().as_bytes());
            let read: MessageRole<'_> =
                serde_json::from_str(message.get()).map_err(serde::de::Error::custom)?;
            if read.role.is_some_and(|role| role == "user") {
                break;
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Opening(hash.0))
    }
}

/// The body with another model; none if it cannot be put in.
pub(super) fn replace_model(body: &[u8], seen: &RequestFields<'_>, model: &str) -> Option<Vec<u8>> {
    let name = serde_json::to_string(model).ok()?;
    let (before, middle, after) = if let Some(place) = &seen.place {
        (body.get(..place.start)?, name, body.get(place.end..)?)
    } else {
        // The body has other members, or it would not have been read.
        let open = body.iter().position(|byte| *byte == b'{')? + 1;
        (body.get(..open)?, format!("\"model\":{name},"), body.get(open..)?)
    };
    Some([before, middle.as_bytes(), after].concat())
}

/// Whether a key is among the share that is chosen: the same for the same seed, on every machine.
pub(super) fn is_chosen(share: f64, seed: u64, key: u64) -> bool {
    let bits = mix_bits(mix_bits(seed ^ 0x9e37_79b9_7f4a_7c15) ^ key) >> 11;
    (bits as f64) < share * (1_u64 << 53) as f64
}

/// A key that stands for itself, such as the value of a session header.
pub(super) fn hash_key(text: &[u8]) -> u64 {
    let mut hash = Hash::new();
    hash.add(text);
    hash.0
}

/// FNV-1a with lengths, so that where one part ends and the next begins counts.
struct Hash(u64);

impl Hash {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&(bytes.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// The finisher of splitmix64: every bit of the input moves every bit of the output.
fn mix_bits(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
