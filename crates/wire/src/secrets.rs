//! Keeping secrets out of everything that is written: servers quote a key that they refuse, in many
//! forms.
//!
//! Every value that an endpoint is given (key, header values, query values) is known to the whole
//! process from then on. Foreign text passes [`scrub_secrets`] once, where it leaves this crate: failure
//! messages, names of models, finish reasons, facts, pages. What is made of it later (logs, summaries,
//! pages, metrics) is then free of secrets without a look of its own. Tokens of an answer do not pass
//! here: their text is kept only where the user asks for it, and the code that writes it scrubs it.
//!
//! Text and secrets are compared in one form, [`fold`]: escapes decoded, case, white space and
//! invisible characters gone. Base64 and hexadecimal are searched as what a secret becomes in them.

mod fold;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use goodput_model::{Failure, REDACTED};

use fold::fold_text;

/// Most characters of a message that are kept.
const MESSAGE_LIMIT: usize = 200;

/// Characters of a secret that is found in every form. A shorter one is found as it stands alone.
const FUZZY: usize = 8;

/// Shorter values are words like `true`: taking them out would garble messages and hide nothing.
const SHORTEST: usize = 6;

/// As much of a secret in one piece is a quote of it, however long the secret is.
const TELLING: usize = 16;

/// Most bytes of one value that are looked for.
const LONGEST: usize = 8 << 10;

/// Bytes that begin a comparison.
const SEED: usize = 4;

/// What is known to be secret in this process.
static KNOWN: RwLock<Option<Arc<Secrets>>> = RwLock::new(None);

/// Makes these values secret from now on, for the whole process: a server may quote what another was
/// given.
pub(crate) fn remember_secrets(values: impl IntoIterator<Item = String>) {
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    let mut all = known.as_ref().map_or_else(Vec::new, |secrets| secrets.values.clone());
    let before = all.len();
    for value in values.into_iter().filter(|value| value.len() >= SHORTEST) {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    if all.len() > before {
        *known = Some(Arc::new(Secrets::new(all)));
    }
}

/// The text without secrets.
pub fn scrub_secrets(text: String) -> String {
    match known_secrets() {
        Some(secrets) => secrets.scrub(text),
        None => text,
    }
}

/// A page of lines without secrets: none of them goes on in the next line.
pub(crate) fn scrub_secret_lines(page: String) -> String {
    let Some(secrets) = known_secrets() else { return page };
    let mut clean: Option<String> = None;
    let mut from = 0;
    for line in page.split_inclusive('\n') {
        let found = secrets.find_secrets(line);
        if !found.is_empty() {
            // What stands before the first find is taken over once.
            let clean = clean.get_or_insert_with(|| page[..from].to_owned());
            clean.push_str(&cut_ranges(line, &found));
        } else if let Some(clean) = &mut clean {
            clean.push_str(line);
        }
        from += line.len();
    }
    clean.unwrap_or(page)
}

/// A failure that may be shown: without secrets, and no longer than is kept.
pub(crate) fn scrub_failure(failure: Failure) -> Failure {
    let message = scrub_secrets(failure.message).chars().take(MESSAGE_LIMIT).collect();
    Failure { message, ..failure }
}

fn known_secrets() -> Option<Arc<Secrets>> {
    KNOWN.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The values that must never leave the process except in a request.
struct Secrets {
    values: Vec<String>,
    /// Too short for anything but a look for the word itself.
    words: Vec<String>,
    needles: Vec<Needle>,
    /// Where in which needle these bytes stand. A quote that is long enough holds one of them.
    seeds: HashMap<[u8; SEED], Vec<(usize, usize)>>,
    /// Which seeds there are, so that most places of a text need no look into the map.
    filter: PrefixFilter,
}

/// A secret in one form.
struct Needle {
    bytes: Vec<u8>,
    /// This many bytes in one piece are a quote.
    least: usize,
}

impl Secrets {
    fn new(values: Vec<String>) -> Self {
        let (mut words, mut needles) = (Vec::new(), Vec::new());
        for value in &values {
            let mut end = value.len().min(LONGEST);
            while !value.is_char_boundary(end) {
                end -= 1;
            }
            let value = &value[..end];
            let folded = fold_text(value).bytes;
            if folded.len() < FUZZY {
                words.push(value.to_owned());
            } else {
                needles.extend(quoted_forms(value, folded));
            }
        }
        let mut seeds: HashMap<_, Vec<_>> = HashMap::new();
        let mut filter = PrefixFilter::default();
        for (number, needle) in needles.iter().enumerate() {
            // A piece of `least` bytes begins a seed at one of this many places.
            let step = needle.least - (SEED - 1);
            for place in (0..needle.bytes.len().saturating_sub(SEED - 1)).step_by(step) {
                let Some(seed) = seed_at(&needle.bytes, place) else { continue };
                filter.add(seed);
                seeds.entry(seed).or_default().push((number, place));
            }
        }
        Self { values, words, needles, seeds, filter }
    }

    fn scrub(&self, text: String) -> String {
        let found = self.find_secrets(&text);
        if found.is_empty() { text } else { cut_ranges(&text, &found) }
    }

    /// Where in a text secrets are quoted.
    fn find_secrets(&self, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<_> =
            self.words.iter().flat_map(|word| find_whole_words(text, word)).collect();
        if self.needles.is_empty() || text.len() < FUZZY {
            return found;
        }
        // Most texts have no escape and no secret: where bytes came from is asked only for a quote.
        if fold::fold_plain_ascii(text).is_some_and(|bytes| self.find_quotes(&bytes).is_empty()) {
            return found;
        }
        let folded = fold_text(text);
        found.extend(
            self.find_quotes(&folded.bytes).iter().filter_map(|piece| folded.original_range(piece)),
        );
        found
    }

    /// Where in a folded text secrets are quoted.
    fn find_quotes(&self, text: &[u8]) -> Vec<Range<usize>> {
        let (mut found, mut at) = (Vec::new(), 0);
        while let Some(seed) = seed_at(text, at) {
            let longest =
                self.filter.may_contain(seed).then(|| self.longest_quote(text, seed, at)).flatten();
            at = longest.as_ref().map_or(at, |piece| piece.end - 1) + 1;
            found.extend(longest);
        }
        found
    }

    /// The longest quote around this place.
    fn longest_quote(&self, text: &[u8], seed: [u8; SEED], at: usize) -> Option<Range<usize>> {
        let around = |(number, place): &(usize, usize)| {
            let needle = self.needles.get(*number)?;
            let (before, from) = (text.get(..at)?, text.get(at..)?);
            let left =
                common_prefix_length(before.iter().rev(), needle.bytes.get(..*place)?.iter().rev());
            let right = common_prefix_length(from.iter(), needle.bytes.get(*place..)?.iter());
            (left + right >= needle.least).then_some(at - left..at + right)
        };
        self.seeds.get(&seed)?.iter().filter_map(around).max_by_key(ExactSizeIterator::len)
    }
}

/// Never shows the values.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.values.len())
    }
}

/// A secret as servers may quote it: itself, in hexadecimal, in base64 at each place of a longer text.
fn quoted_forms(value: &str, folded: Vec<u8>) -> Vec<Needle> {
    let least = (folded.len() * 3 / 4).clamp(FUZZY, TELLING);
    let hex = value.bytes().flat_map(|byte| [hex_value(byte >> 4), hex_value(byte & 15)]).collect();
    let mut forms = vec![Needle { bytes: folded, least }, Needle { bytes: hex, least: 2 * least }];
    for before in 0..3 {
        let bytes = fold::encode_base64(value.as_bytes(), before);
        let least = bytes.len().min(least * 4 / 3);
        forms.push(Needle { bytes, least });
    }
    forms
}

fn hex_value(of: u8) -> u8 {
    if of < 10 { b'0' + of } else { b'a' + of - 10 }
}

fn seed_at(bytes: &[u8], place: usize) -> Option<[u8; SEED]> {
    bytes.get(place..place + SEED)?.try_into().ok()
}

/// How many bytes two texts have in common from here on.
fn common_prefix_length<'a>(
    one: impl Iterator<Item = &'a u8>,
    other: impl Iterator<Item = &'a u8>,
) -> usize {
    one.zip(other).take_while(|(a, b)| a == b).count()
}

/// Where a word stands between characters of no word.
fn find_whole_words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
    text.match_indices(word).filter_map(|(from, _)| {
        let to = from + word.len();
        let goes_on = text[..from].chars().next_back().is_some_and(char::is_alphanumeric)
            || text[to..].chars().next().is_some_and(char::is_alphanumeric);
        (!goes_on).then_some(from..to)
    })
}

/// The text with these places, in any order, taken out.
fn cut_ranges(text: &str, found: &[Range<usize>]) -> String {
    let mut found = found.to_vec();
    found.sort_by_key(|range| (range.start, range.end));
    let mut clean = String::with_capacity(text.len());
    let mut done: Option<usize> = None;
    for Range { start, end } in found {
        match done {
            Some(before) if start <= before => {}
            _ => {
                clean.push_str(&text[done.unwrap_or(0)..start]);
                clean.push_str(REDACTED);
            }
        }
        done = Some(done.unwrap_or(0).max(end));
    }
    clean.push_str(&text[done.unwrap_or(0)..]);
    clean
}

/// A set that may say yes too often, and is quick.
struct PrefixFilter(Box<[u64; 1024]>);

impl Default for PrefixFilter {
    fn default() -> Self {
        Self(Box::new([0; 1024]))
    }
}

impl PrefixFilter {
    fn bit_place(seed: [u8; SEED]) -> (usize, u64) {
        let hash = u32::from_le_bytes(seed).wrapping_mul(0x9E37_79B1) >> 16;
        ((hash >> 6) as usize & 1023, 1 << (hash & 63))
    }

    fn add(&mut self, seed: [u8; SEED]) {
        let (word, bit) = Self::bit_place(seed);
        self.0[word] |= bit;
    }

    fn may_contain(&self, seed: [u8; SEED]) -> bool {
        let (word, bit) = Self::bit_place(seed);
        self.0[word] & bit != 0
    }
}
