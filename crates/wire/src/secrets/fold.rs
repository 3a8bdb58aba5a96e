//! The one form in which text and secrets are compared.

use std::ops::Range;

/// Layers of escapes that are taken off: JSON in JSON in a URL has three.
const LAYERS: usize = 4;

/// A text without what a quote may change, and where each byte of it came from.
pub(super) struct FoldedText {
    pub(super) bytes: Vec<u8>,
    spans: Vec<Span>,
}

/// Bytes of the original: from, to.
type Span = (u32, u32);

impl FoldedText {
    /// The bytes of the original that these stand for.
    pub(super) fn original_range(&self, of: &Range<usize>) -> Option<Range<usize>> {
        let last = of.end.checked_sub(1)?;
        let (from, to) = (self.spans.get(of.start)?.0, self.spans.get(last)?.1);
        Some(from as usize..to as usize)
    }

    fn push(&mut self, byte: u8, span: Span) {
        self.bytes.push(byte);
        self.spans.push(span);
    }

    fn with_room(for_bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(for_bytes), spans: Vec::with_capacity(for_bytes) }
    }
}

/// Decodes escapes, and drops case, white space and what cannot be seen. The two alphabets of base64
/// become one.
pub(super) fn fold_text(text: &str) -> FoldedText {
    let mut folded = FoldedText::with_room(text.len());
    for (at, char) in text.char_indices() {
        // Longer than any text that is kept: what is beyond stands for its last byte.
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let span = (place(at), place(at + char.len_utf8()));
        for byte in char.encode_utf8(&mut [0; 4]).bytes() {
            folded.push(byte, span);
        }
    }
    for _ in 0..LAYERS {
        if memchr::memchr3(b'\\', b'%', b'&', &folded.bytes).is_none() {
            break;
        }
        let decoded = decode_escapes(&folded);
        let is_done = decoded.bytes.len() == folded.bytes.len();
        folded = decoded;
        if is_done {
            break;
        }
    }
    drop_invisible(&folded)
}

/// The same bytes for a text of plain characters alone; none for any other.
pub(super) fn fold_plain_ascii(text: &str) -> Option<Vec<u8>> {
    let is_plain = text.is_ascii() && memchr::memchr3(b'\\', b'%', b'&', text.as_bytes()).is_none();
    is_plain.then(|| text.bytes().filter(u8::is_ascii_graphic).map(fold_letter).collect())
}

/// Takes one layer of escapes off. Whatever is decoded becomes shorter.
fn decode_escapes(text: &FoldedText) -> FoldedText {
    let mut out = FoldedText::with_room(text.bytes.len());
    let mut at = 0;
    while let Some(rest) = text.bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let escape = match rest[0] {
            b'\\' => decode_backslash(rest),
            b'%' => parse_hex_byte(rest.get(1..3)).map(|byte| (Decoded::Byte(byte), 3)),
            b'&' => decode_entity(rest),
            _ => None,
        };
        let (decoded, length) = escape.unwrap_or((Decoded::Byte(rest[0]), 1));
        let last = text.spans.get(at + length - 1).or(text.spans.last());
        let span = (text.spans[at].0, last.map_or(text.spans[at].1, |span| span.1));
        match decoded {
            Decoded::Byte(byte) => out.push(byte, span),
            Decoded::Char(char) => {
                char.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| out.push(byte, span));
            }
        }
        at += length;
    }
    out
}

/// What an escape stands for.
#[derive(Clone, Copy)]
enum Decoded {
    Byte(u8),
    Char(char),
}

/// `\/`, `\n`, `\x73`, `\u0073`, `\u{73}`, `\U00000073`.
fn decode_backslash(rest: &[u8]) -> Option<(Decoded, usize)> {
    let unit = |from: usize, digits: usize| parse_number(rest.get(from..from + digits)?, 16);
    match rest.get(1)? {
        b'n' | b'r' | b't' | b'b' | b'f' | b'v' | b'0' => Some((Decoded::Byte(b' '), 2)),
        b'x' => parse_hex_byte(rest.get(2..4)).map(|byte| (Decoded::Byte(byte), 4)),
        b'u' if rest.get(2) == Some(&b'{') => {
            let length = rest.iter().take(12).position(|byte| *byte == b'}')?;
            let char = char::from_u32(parse_number(rest.get(3..length)?, 16)?)?;
            Some((Decoded::Char(char), length + 1))
        }
        // Half of a pair stands for a character of no secret.
        b'u' => Some((Decoded::Char(char::from_u32(unit(2, 4)?).unwrap_or(' ')), 6)),
        b'U' => Some((Decoded::Char(char::from_u32(unit(2, 8)?)?), 10)),
        punctuation if punctuation.is_ascii_punctuation() => Some((Decoded::Byte(*punctuation), 2)),
        _ => None,
    }
}

/// `&#47;`, `&#x2f;`, `&sol;`. A number may stand without its end, as browsers read it.
fn decode_entity(rest: &[u8]) -> Option<(Decoded, usize)> {
    if rest.get(1) == Some(&b'#') {
        let (from, radix) = match rest.get(2)? {
            b'x' | b'X' => (3, 16),
            _ => (2, 10),
        };
        let digits = rest.get(from..)?.iter().take(9);
        let length = digits.take_while(|byte| char::from(**byte).is_digit(radix)).count();
        let char = char::from_u32(parse_number(rest.get(from..from + length)?, radix)?)?;
        let end = from + length + usize::from(rest.get(from + length) == Some(&b';'));
        return Some((Decoded::Char(char), end));
    }
    let length = rest.iter().take(20).position(|byte| *byte == b';')?;
    let name = rest.get(1..length)?;
    let (_, char) = NAMED.iter().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name))?;
    Some((Decoded::Char(*char), length + 1))
}

/// Characters of keys that HTML has names for.
const NAMED: [(&str, char); 40] = [
    ("amp", '&'),
    ("apos", '\''),
    ("ast", '*'),
    ("bsol", '\\'),
    ("colon", ':'),
    ("comma", ','),
    ("commat", '@'),
    ("dollar", '$'),
    ("equals", '='),
    ("excl", '!'),
    ("grave", '`'),
    ("gt", '>'),
    ("hat", '^'),
    ("lbrace", '{'),
    ("lbrack", '['),
    ("lcub", '{'),
    ("lowbar", '_'),
    ("lpar", '('),
    ("lsqb", '['),
    ("lt", '<'),
    ("nbsp", ' '),
    ("newline", ' '),
    ("num", '#'),
    ("percnt", '%'),
    ("period", '.'),
    ("plus", '+'),
    ("quest", '?'),
    ("quot", '"'),
    ("rbrace", '}'),
    ("rbrack", ']'),
    ("rcub", '}'),
    ("rpar", ')'),
    ("rsqb", ']'),
    ("semi", ';'),
    ("shy", ' '),
    ("sol", '/'),
    ("tab", ' '),
    ("tilde", '~'),
    ("verbar", '|'),
    ("zerowidthspace", ' '),
];

/// Two digits as a byte.
fn parse_hex_byte(digits: Option<&[u8]>) -> Option<u8> {
    u8::try_from(parse_number(digits?, 16)?).ok()
}

fn parse_number(digits: &[u8], radix: u32) -> Option<u32> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u32, |sum, byte| {
        sum.checked_mul(radix)?.checked_add(char::from(*byte).to_digit(radix)?)
    })
}

/// Without case, white space and what cannot be seen.
fn drop_invisible(text: &FoldedText) -> FoldedText {
    let mut out = FoldedText::with_room(text.bytes.len());
    let mut at = 0;
    while let (Some(byte), Some(span)) = (text.bytes.get(at), text.spans.get(at)) {
        if byte.is_ascii() {
            if byte.is_ascii_graphic() {
                out.push(fold_letter(*byte), *span);
            }
            at += 1;
            continue;
        }
        let length = invisible_length(&text.bytes[at..]).unwrap_or(0);
        if length == 0 {
            out.push(*byte, *span);
        }
        at += length.max(1);
    }
    out
}

/// The byte as it is compared.
fn fold_letter(byte: u8) -> u8 {
    match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => other.to_ascii_lowercase(),
    }
}

/// The length of a character that separates without being seen, or is a blank.
fn invisible_length(bytes: &[u8]) -> Option<usize> {
    let length = match bytes.first()? {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return None,
    };
    let char = str::from_utf8(bytes.get(..length)?).ok()?.chars().next()?;
    let is_unseen = char.is_whitespace()
        || char.is_control()
        || matches!(char,
            '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}'
            | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E01EF}');
    is_unseen.then_some(length)
}

/// What these bytes become in base64 with this many others (0 to 2) before them in their group: the
/// characters that no other byte has a part in, as they are compared.
pub(super) fn encode_base64(bytes: &[u8], before: usize) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut held, mut bits) = (0u32, 0);
    let mut out = Vec::with_capacity(bytes.len() * 4 / 3 + 3);
    for byte in std::iter::repeat_n(0, before).chain(bytes.iter().copied()) {
        (held, bits) = (held << 8 | u32::from(byte), bits + 8);
        while bits >= 6 {
            bits -= 6;
            out.push(fold_letter(ALPHABET[(held >> bits) as usize & 63]));
        }
        held &= (1 << bits) - 1;
    }
    // The first characters hold bits of what stands before.
    let mixed = (before * 8).div_ceil(6);
    out.drain(..mixed.min(out.len()));
    out
}
