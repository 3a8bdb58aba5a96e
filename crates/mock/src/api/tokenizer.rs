//! A tokenizer without a table: every token is computed from its letters, and back.
//!
//! A word piece is an optional space, a letter of either case and up to five lower-case letters,
//! read as a number to the base 26; a number piece is one to three digits; whatever else is in a
//! text is one token for each byte. So any text has exactly one encoding, common words cost one
//! token as they do in trained vocabularies, and nothing has to be loaded.

/// Ids of tokens that no text produces.
pub(crate) const BOS: u32 = 0;
pub(crate) const END_OF_TURN: u32 = 1;
pub(crate) const SYSTEM: u32 = 2;
pub(crate) const USER: u32 = 3;
pub(crate) const ASSISTANT: u32 = 4;
pub(crate) const TOOL: u32 = 5;
pub(crate) const TOOLS: u32 = 6;
pub(crate) const CALL: u32 = 7;

const SPECIAL: [&str; 16] = [
    "<|bos|>",
    "<|end|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|tool|>",
    "<|tools|>",
    "<|call|>",
    "<|spare1|>",
    "<|spare2|>",
    "<|spare3|>",
    "<|spare4|>",
    "<|spare5|>",
    "<|spare6|>",
    "<|spare7|>",
    "<|spare8|>",
];
const MEDIA: &str = "<|media|>";

const BYTES: u32 = SPECIAL.len() as u32;
const ONE_DIGIT: u32 = BYTES + 256;
const TWO_DIGITS: u32 = ONE_DIGIT + 10;
const THREE_DIGITS: u32 = TWO_DIGITS + 100;
const WORDS: u32 = THREE_DIGITS + 1000;
/// The longest word piece in letters.
const LETTERS: usize = 6;
/// Pieces shorter than the index, in letters only: the first rank of each length.
const SHORTER: [u32; LETTERS + 2] = {
    let mut shorter = [0; LETTERS + 2];
    let mut length = 1;
    while length <= LETTERS {
        // One letter behind each shorter piece, the empty one among them.
        shorter[length + 1] = (shorter[length] + 1) * 26;
        length += 1;
    }
    shorter
};
/// Each spelling comes with and without space, with and without capital.
const MEDIA_START: u32 = WORDS + SHORTER[LETTERS + 1] * 4;
/// One past the largest id.
pub(crate) const VOCABULARY: u32 = 1 << 31;

/// Appends the tokens of a text.
pub(crate) fn encode_text(text: &str, out: &mut Vec<u32>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let (id, length) = next_token(bytes, at);
        out.push(id);
        at += length;
    }
}

/// The token of a text that is exactly one.
pub(crate) const fn single_token(text: &str) -> Option<u32> {
    let bytes = text.as_bytes();
    if bytes.is_empty() {
        return None;
    }
    let (id, length) = next_token(bytes, 0);
    if length == bytes.len() { Some(id) } else { None }
}

/// The token that begins at byte `at`, and its length in bytes.
const fn next_token(bytes: &[u8], at: usize) -> (u32, usize) {
    let first = bytes[at];
    if first.is_ascii_alphabetic() {
        return word_token(bytes, at, false);
    }
    if first == b' ' && at + 1 < bytes.len() && bytes[at + 1].is_ascii_alphabetic() {
        return word_token(bytes, at + 1, true);
    }
    if first.is_ascii_digit() {
        return number_token(bytes, at);
    }
    (BYTES + first as u32, 1)
}

const fn word_token(bytes: &[u8], start: usize, has_space: bool) -> (u32, usize) {
    let is_capital = bytes[start].is_ascii_uppercase();
    let mut rank = (bytes[start].to_ascii_lowercase() - b'a') as u32;
    let mut letters = 1;
    while letters < LETTERS
        && start + letters < bytes.len()
        && bytes[start + letters].is_ascii_lowercase()
    {
        rank = rank * 26 + (bytes[start + letters] - b'a') as u32;
        letters += 1;
    }
    let form = (has_space as u32) << 1 | is_capital as u32;
    (WORDS + (SHORTER[letters] + rank) * 4 + form, letters + has_space as usize)
}

const fn number_token(bytes: &[u8], at: usize) -> (u32, usize) {
    let (mut value, mut digits) = (0, 0);
    while digits < 3 && at + digits < bytes.len() && bytes[at + digits].is_ascii_digit() {
        value = value * 10 + (bytes[at + digits] - b'0') as u32;
        digits += 1;
    }
    let start = match digits {
        1 => ONE_DIGIT,
        2 => TWO_DIGITS,
        _ => THREE_DIGITS,
    };
    (start + value, digits)
}

/// The token of an image, a sound or a film: equal ones share it, others do not.
pub(crate) fn media_token(data: &str) -> u32 {
    let hash = super::hash_bytes(data.as_bytes().chunks(8).map(|chunk| {
        chunk.iter().fold(chunk.len() as u64, |sum, byte| sum << 8 ^ u64::from(*byte))
    }));
    MEDIA_START + (hash % u64::from(VOCABULARY - MEDIA_START)) as u32
}

/// The bytes of one token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenBytes {
    bytes: [u8; 16],
    length: usize,
}

impl TokenBytes {
    const EMPTY: Self = Self { bytes: [0; 16], length: 0 };

    fn new(bytes: &[u8]) -> Self {
        let mut piece = Self::EMPTY;
        for byte in bytes {
            piece.push(*byte);
        }
        piece
    }

    fn push(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.length) {
            *slot = byte;
            self.length += 1;
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// What a token stands for; nothing for an id that is none.
pub(crate) fn token_bytes(id: u32) -> Option<TokenBytes> {
    if let Some(name) = SPECIAL.get(id as usize) {
        return Some(TokenBytes::new(name.as_bytes()));
    }
    let piece = match id {
        BYTES..ONE_DIGIT => TokenBytes::new(&[(id - BYTES) as u8]),
        ONE_DIGIT..TWO_DIGITS => digit_bytes(id - ONE_DIGIT, 1),
        TWO_DIGITS..THREE_DIGITS => digit_bytes(id - TWO_DIGITS, 10),
        THREE_DIGITS..WORDS => digit_bytes(id - THREE_DIGITS, 100),
        WORDS..MEDIA_START => spelled_token_bytes(id - WORDS),
        MEDIA_START..VOCABULARY => TokenBytes::new(MEDIA.as_bytes()),
        _ => return None,
    };
    Some(piece)
}

fn digit_bytes(value: u32, largest: u32) -> TokenBytes {
    let mut piece = TokenBytes::EMPTY;
    let mut place = largest;
    while place > 0 {
        piece.push(b'0' + (value / place % 10) as u8);
        place /= 10;
    }
    piece
}

fn spelled_token_bytes(id: u32) -> TokenBytes {
    let (rank, form) = (id / 4, id % 4);
    // Ranks of a length begin where those of the shorter ones end.
    let letters = (1..=LETTERS).rfind(|length| SHORTER[*length] <= rank).unwrap_or(1);
    let mut rest = rank - SHORTER[letters];
    let mut spelled = [0; LETTERS];
    for slot in spelled[..letters].iter_mut().rev() {
        *slot = b'a' + (rest % 26) as u8;
        rest /= 26;
    }
    if form & 1 == 1 {
        spelled[0] = spelled[0].to_ascii_uppercase();
    }
    let mut piece = if form & 2 == 2 { TokenBytes::new(b" ") } else { TokenBytes::EMPTY };
    for letter in &spelled[..letters] {
        piece.push(*letter);
    }
    piece
}

/// The text of a sequence of tokens; bytes that are not UTF-8 are replaced, unknown ids left out.
pub(crate) fn decode_tokens(ids: &[u32]) -> String {
    let mut bytes = Vec::with_capacity(ids.len() * 5);
    for id in ids {
        if let Some(piece) = token_bytes(*id) {
            bytes.extend_from_slice(piece.as_bytes());
        }
    }
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tokens(text: &str) -> Vec<u32> {
        let mut out = Vec::new();
        encode_text(text, &mut out);
        out
    }

    fn pieces(text: &str) -> Vec<String> {
        let bytes = |id| token_bytes(id).unwrap().as_bytes().to_vec();
        tokens(text).into_iter().map(|id| String::from_utf8_lossy(&bytes(id)).into()).collect()
    }

    #[test]
    fn texts_fall_into_the_expected_pieces() {
        assert_eq!(pieces("The load was held"), ["The", " load", " was", " held"]);
        assert_eq!(pieces("tokenization"), ["tokeni", "zation"]);
        assert_eq!(pieces("OpenAI a  b"), ["Open", "A", "I", " a", " ", " b"]);
        assert_eq!(pieces("007 12345."), ["007", " ", "123", "45", "."]);
        assert_eq!(tokens("é"), [BYTES + 0xc3, BYTES + 0xa9]);
        assert_eq!(tokens(""), [0; 0]);
    }

    #[test]
    fn ids_of_each_kind_meet_without_overlap() {
        assert_eq!(tokens("a"), [WORDS]);
        assert_eq!(tokens(" Zzzzzz"), [MEDIA_START - 1]);
        assert_eq!(MEDIA_START, 1_285_091_006);
        let seen = ["0", "00", "000", "9", "99", "999"].map(|text| tokens(text)[0]);
        let expected = [ONE_DIGIT, TWO_DIGITS, THREE_DIGITS, ONE_DIGIT + 9, TWO_DIGITS + 99];
        assert_eq!(seen[..5], expected);
        assert_eq!(seen[5], WORDS - 1);
        assert!(token_bytes(VOCABULARY - 1).is_some() && token_bytes(VOCABULARY).is_none());
    }

    #[test]
    fn equal_media_share_a_token() {
        let id = media_token("data:image/png;base64,AAAA");
        assert!((MEDIA_START..VOCABULARY).contains(&id));
        assert_eq!(id, media_token("data:image/png;base64,AAAA"));
        assert_ne!(id, media_token("data:image/png;base64,AAAB"));
        assert_ne!(media_token("a"), media_token("a\0"));
    }

    proptest! {
        #[test]
        fn every_text_comes_back(text in any::<String>(), words in "[ A-Za-z0-9.,\n]{0,80}") {
            for text in [text, words] {
                let ids = tokens(&text);
                prop_assert!(ids.iter().all(|id| (BYTES..MEDIA_START).contains(id)));
                prop_assert_eq!(decode_tokens(&ids), text);
            }
        }

        #[test]
        fn every_word_or_number_is_its_own_encoding(id in ONE_DIGIT..MEDIA_START) {
            let text = decode_tokens(&[id]);
            prop_assert_eq!(tokens(&text), [id]);
        }

        #[test]
        fn any_id_is_harmless(ids in proptest::collection::vec(any::<u32>(), 0..20)) {
            decode_tokens(&ids);
        }
    }
}
