//! From seeds to inputs: a function of seed and number, on every machine.

use goodput_model::random::{Domain, RandomStream};

/// No input is larger: what a parser does with more is the same, only later.
const MOST_BYTES: usize = 64 << 10;

/// Numbers at which counters, lengths and conversions turn.
const NUMBERS: [&str; 28] = [
    "0",
    "-0",
    "1",
    "-1",
    "127",
    "128",
    "255",
    "256",
    "32768",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "1e308",
    "-1e308",
    "1e400",
    "1e-400",
    "NaN",
    "inf",
];

/// The same for fields of bytes.
const WORDS: [u64; 12] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    i64::MAX as u64,
    u64::MAX,
];

/// Pieces that mean something in most of what is read here.
const COMMON: [&str; 20] = [
    "\n", "\r", "\r\n", "\0", "\u{feff}", "\"", "\\u0000", "\\ud800", "{", "}", "[", "]", ",", ":",
    "=", "#", "null", "é", "\u{2028}", "😀",
];

/// Where inputs come from.
pub(crate) struct InputSource<'a> {
    pub(crate) seeds: &'a [Vec<u8>],
    pub(crate) words: &'a [&'a str],
}

impl InputSource<'_> {
    /// Input number `index` of this seed.
    pub(crate) fn make_input(&self, seed: u64, index: u64) -> Vec<u8> {
        // The seeds themselves come first.
        if let Some(first) = usize::try_from(index).ok().and_then(|index| self.seeds.get(index)) {
            return first.clone();
        }
        let mut draw = RandomStream::new(seed, Domain::Text, index);
        let mut bytes = match draw.next_below(32) {
            0 => random_bytes(&mut draw, 64),
            1 => self.random_sentence(&mut draw),
            _ => self.mutate_seed(&mut draw),
        };
        let changes = 1 + draw.next_below(4) * draw.next_below(4);
        for _ in 0..changes {
            self.mutate_bytes(&mut bytes, &mut draw);
            bytes.truncate(MOST_BYTES);
        }
        bytes
    }

    fn mutate_seed(&self, draw: &mut RandomStream) -> Vec<u8> {
        pick_one(draw, self.seeds).cloned().unwrap_or_default()
    }

    /// A row of words that the reader knows.
    fn random_sentence(&self, draw: &mut RandomStream) -> Vec<u8> {
        (0..draw.next_below(24)).flat_map(|_| self.random_word(draw)).collect()
    }

    fn random_word(&self, draw: &mut RandomStream) -> Vec<u8> {
        let list = match draw.next_below(8) {
            0 => &NUMBERS[..],
            1 | 2 => &COMMON[..],
            _ if self.words.is_empty() => &COMMON[..],
            _ => self.words,
        };
        pick_one(draw, list).map(|word| word.as_bytes().to_vec()).unwrap_or_default()
    }

    fn mutate_bytes(&self, bytes: &mut Vec<u8>, draw: &mut RandomStream) {
        let at = random_place(draw, bytes.len() + 1);
        let (start, end) = random_span(draw, bytes.len());
        match draw.next_below(16) {
            0 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << draw.next_below(8);
                }
            }
            1 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = draw.next_bits() as u8;
                }
            }
            2 => insert_bytes(bytes, at, &random_bytes(draw, 8)),
            3 => drop(bytes.drain(start..end)),
            4 => bytes.truncate(at),
            5 | 6 => {
                let word = self.random_word(draw);
                insert_bytes(bytes, at, &word);
            }
            7 => {
                let word = self.random_word(draw);
                bytes.splice(start..end, word);
            }
            8 => repeat_piece(bytes, start..end, draw),
            9 => {
                let piece = bytes[start..end].to_vec();
                insert_bytes(bytes, at, &piece);
            }
            10 => {
                let piece: Vec<u8> = bytes.drain(start..end).collect();
                let at = random_place(draw, bytes.len() + 1);
                insert_bytes(bytes, at, &piece);
            }
            11 => {
                let other = self.mutate_seed(draw);
                let (start, end) = random_span(draw, other.len());
                insert_bytes(bytes, at, &other[start..end]);
            }
            12 => {
                let other = self.mutate_seed(draw);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[random_place(draw, other.len() + 1)..]);
            }
            13 | 14 => change_number(bytes, at, draw),
            _ => change_length_field(bytes, at, draw),
        }
    }
}

/// Where the bytes of an input are cut: a function of the bytes, so that a saved input says it all.
pub(crate) fn split_at_marks(bytes: &[u8]) -> Vec<&[u8]> {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut draw = RandomStream::new(hash, Domain::Text, 0);
    let mut pieces = Vec::new();
    let mut rest = bytes;
    // Of nothing there is one piece, too.
    while !rest.is_empty() || pieces.is_empty() {
        let most = if draw.next_below(2) == 0 { 4 } else { 200 };
        let (piece, after) = rest.split_at(rest.len().min(1 + draw.next_below(most) as usize));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

fn pick_one<'a, T>(draw: &mut RandomStream, list: &'a [T]) -> Option<&'a T> {
    list.get(random_place(draw, list.len()))
}

fn random_place(draw: &mut RandomStream, below: usize) -> usize {
    draw.next_below(below as u64) as usize
}

/// A short piece mostly, sometimes any.
fn random_span(draw: &mut RandomStream, length: usize) -> (usize, usize) {
    let start = random_place(draw, length + 1);
    let most = if draw.next_below(4) == 0 { length } else { 16 };
    let end = start + random_place(draw, most + 1);
    (start, end.min(length))
}

fn random_bytes(draw: &mut RandomStream, most: u64) -> Vec<u8> {
    (0..draw.next_below(most + 1)).map(|_| draw.next_bits() as u8).collect()
}

fn insert_bytes(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    bytes.splice(at..at, piece.iter().copied());
}

/// The same piece many times: long lists, deep nests.
fn repeat_piece(bytes: &mut Vec<u8>, piece: std::ops::Range<usize>, draw: &mut RandomStream) {
    let times =
        if draw.next_below(8) == 0 { 1 + draw.next_below(4096) } else { 1 + draw.next_below(16) };
    let room = MOST_BYTES.saturating_sub(bytes.len());
    let times = (room / piece.len().max(1)).min(times as usize);
    let (at, piece) = (piece.end, bytes[piece].repeat(times));
    insert_bytes(bytes, at, &piece);
}

/// Another number in place of the one that comes next.
fn change_number(bytes: &mut Vec<u8>, from: usize, draw: &mut RandomStream) {
    let Some(start) = bytes.iter().skip(from).position(u8::is_ascii_digit) else { return };
    let start = from + start;
    let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let other = pick_one(draw, &NUMBERS).map_or(&b"0"[..], |number| number.as_bytes());
    bytes.splice(start..start + length, other.iter().copied());
}

/// A number in bytes, in one of the forms that lengths have.
fn change_length_field(bytes: &mut Vec<u8>, at: usize, draw: &mut RandomStream) {
    let value = pick_one(draw, &WORDS).copied().unwrap_or_default();
    let value = if draw.next_below(4) == 0 { draw.next_below(1 << 12) } else { value };
    let piece = match draw.next_below(5) {
        0 => (value as u32).to_le_bytes().to_vec(),
        1 => value.to_le_bytes().to_vec(),
        2 => (value as u32).to_be_bytes().to_vec(),
        3 => (value as u16).to_be_bytes().to_vec(),
        _ => encode_varint(value),
    };
    let end = (at + piece.len()).min(bytes.len());
    bytes.splice(at..end, piece);
}

fn encode_varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_a_function_of_seed_and_number() {
        let seeds = [b"data: {\"n\": 12}\n\n".to_vec(), b"event: x\n".to_vec()];
        let source = InputSource { seeds: &seeds, words: &["data:", "event:"] };
        let inputs = |seed| (0..500).map(|n| source.make_input(seed, n)).collect::<Vec<_>>();
        let (one, other) = (inputs(1), inputs(2));
        assert_eq!(one, inputs(1));
        assert_eq!(one[..2], seeds);
        assert_ne!(one[2..], other[2..]);
        assert!(one.iter().all(|input| input.len() <= MOST_BYTES));
        let different: std::collections::BTreeSet<_> = one.iter().collect();
        assert!(different.len() > 400, "{}", different.len());
    }

    #[test]
    fn pieces_add_up() {
        let bytes: Vec<u8> = (0..=255).collect();
        let pieces = split_at_marks(&bytes);
        assert!(pieces.len() > 1);
        assert_eq!(pieces.concat(), bytes);
        assert_eq!(pieces, split_at_marks(&bytes));
    }

    #[test]
    fn numbers_are_written_as_protobuf_does() {
        assert_eq!(encode_varint(300), [0xac, 0x02]);
        assert_eq!(encode_varint(0), [0]);
        assert_eq!(encode_varint(u64::MAX).len(), 10);
    }
}
