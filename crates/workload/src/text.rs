//! Natural-looking text of an exact number of tokens: sentences by templates over word classes.
//! One repeated word would flatter speculative decoding and prefix caches alike, and words in no
//! order would insult both.

use goodput_model::random::RandomStream;

use crate::lexicon::{Lexicon, SentencePart, WordUnit};

/// How a text begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// It opens a message: no space before its first word.
    Message,
    /// It goes on where another text ended.
    Continued,
}

use SentencePart::{
    Adjective as A, Adverb as V, Comma as C, Conjunction as J, Determiner as D, Intransitive as I,
    Noun as N, Preposition as P, Pronoun as O, StartAdverb as SA, StartDeterminer as SD,
    StartPronoun as SO, Stop as S, Transitive as T,
};

/// Sentences that begin with a determiner: the opener of a message can stand for it.
const BY_DETERMINER: [&[SentencePart]; 10] = [
    &[SD, A, N, T, D, N, S],
    &[SD, N, I, P, D, A, N, S],
    &[SD, N, P, D, N, T, D, A, N, S],
    &[SD, A, N, V, T, D, N, P, D, N, S],
    &[SD, N, I, V, C, J, D, N, T, D, N, S],
    &[SD, A, C, A, N, I, P, D, N, S],
    &[SD, N, T, D, N, J, D, A, N, I, S],
    &[SD, N, J, D, N, V, T, D, A, N, P, D, A, N, S],
    &[SD, N, T, D, N, P, D, N, C, J, O, I, P, D, A, N, S],
    &[SD, N, V, I, S],
];

/// The others.
const BY_OTHERS: [&[SentencePart]; 6] = [
    &[SO, T, D, A, N, J, O, I, V, S],
    &[SO, V, T, D, N, P, D, N, S],
    &[SO, I, P, D, A, N, C, J, D, N, T, D, N, S],
    &[SA, D, N, I, C, J, D, A, N, T, D, N, S],
    &[SA, O, T, D, N, P, D, A, N, S],
    &[SA, D, A, N, T, D, N, S],
];

/// Random numbers of 16 bits, four from each draw: choosing a word must be cheap.
struct Dice<'a> {
    stream: &'a mut RandomStream,
    bits: u64,
    left: u32,
}

impl Dice<'_> {
    /// In `0..limit`. The bias is below `limit / 65536`: no matter for words.
    fn roll_below(&mut self, limit: usize) -> usize {
        if self.left == 0 {
            self.bits = self.stream.next_bits();
            self.left = 4;
        }
        let chunk = (self.bits & 0xffff) as usize;
        self.bits >>= 16;
        self.left -= 1;
        (chunk * limit) >> 16
    }

    fn pick_one<'u, T>(&mut self, from: &'u [T]) -> Option<&'u T> {
        from.get(self.roll_below(from.len()))
    }
}

/// Writes one text.
struct ProseWriter<'a> {
    lexicon: &'a Lexicon,
    dice: Dice<'a>,
    text: String,
    /// Tokens still to write.
    left: u32,
    /// Writing ends when no more than this is left.
    floor: u32,
    /// Whether a mark may come next: neither at the beginning nor behind another mark.
    may_mark: bool,
}

impl ProseWriter<'_> {
    fn push_unit(&mut self, unit: WordUnit) {
        self.text.push_str(unit.text);
        self.left -= unit.cost.min(self.left);
        self.may_mark = true;
    }

    fn push_mark(&mut self, part: SentencePart) {
        let Some(unit) = self.lexicon.units_of_part(part).first().copied() else { return };
        // One token behind a mark would be a sentence of one word.
        if self.left == unit.cost + 1 {
            self.push_word(SentencePart::Adverb);
        } else if self.may_mark && unit.cost <= self.left {
            self.push_unit(unit);
            self.may_mark = false;
        }
    }

    /// A word of this part; of one token where what is left, or the part, has no room for another.
    fn push_word(&mut self, part: SentencePart) {
        let unit = self.dice.pick_one(self.lexicon.units_of_part(part)).copied();
        let fits = unit.filter(|unit| unit.cost <= self.left);
        if let Some(unit) = fits.or_else(|| self.dice.pick_one(&self.lexicon.filler).copied()) {
            self.push_unit(unit);
        }
    }

    fn push_opener(&mut self) {
        let openers = self.lexicon.units_of_part(SentencePart::Opener);
        let fits = |unit: &WordUnit| unit.cost <= self.left;
        let drawn = self.dice.pick_one(openers).copied();
        let cheapest = || openers.iter().min_by_key(|unit| unit.cost).copied();
        if let Some(unit) = drawn.filter(fits).or_else(cheapest) {
            self.push_unit(unit);
        }
    }

    /// The digits of a nonce that there is room for.
    fn push_nonce(&mut self, value: u64) {
        let digits = &self.lexicon.digits;
        let bits = digits.len().checked_ilog2().unwrap_or(0).max(1);
        let count = u64::BITS.div_ceil(bits);
        let mask = (1u64 << bits) - 1;
        for place in (0..count).rev() {
            let digit = (value >> (place * bits)) & mask;
            match digits.get(digit as usize).copied() {
                Some(unit) if unit.cost <= self.left => self.push_unit(unit),
                _ => return,
            }
        }
    }

    fn push_sentence(&mut self, pattern: &[SentencePart]) {
        for &part in pattern {
            if self.left == 1 {
                self.push_mark(SentencePart::Stop);
            }
            match part {
                _ if self.left <= self.floor => return,
                SentencePart::Stop | SentencePart::Comma => self.push_mark(part),
                _ => self.push_word(part),
            }
        }
    }

    fn push_sentences(&mut self) {
        while self.left > self.floor {
            let which = self.dice.roll_below(BY_DETERMINER.len() + BY_OTHERS.len());
            let others = which.saturating_sub(BY_DETERMINER.len());
            let pattern = BY_DETERMINER.get(which).or_else(|| BY_OTHERS.get(others));
            self.push_sentence(pattern.unwrap_or(&BY_DETERMINER[0]));
        }
    }

    /// The first sentence of a message, and those that follow.
    fn push_message(&mut self) {
        self.push_opener();
        let pattern = self.dice.pick_one(&BY_DETERMINER).copied().unwrap_or(BY_DETERMINER[0]);
        self.push_sentence(pattern.get(1..).unwrap_or_default());
        self.push_sentences();
    }
}

impl Lexicon {
    /// Natural-looking text of exactly this many tokens by this vocabulary's costs; it opens a
    /// message.
    pub fn generate_text(&self, tokens: u32, stream: &mut RandomStream) -> String {
        self.write_text(tokens, Begin::Message, None, stream)
    }

    /// Text of exactly this many tokens, with a nonce at its beginning or without one. A text too
    /// short for the whole nonce has the first words of it: its length goes before.
    pub(crate) fn write_text(
        &self,
        tokens: u32,
        begin: Begin,
        nonce: Option<u64>,
        stream: &mut RandomStream,
    ) -> String {
        if tokens == 0 {
            return String::new();
        }
        let mut writer = self.prose_writer(tokens, stream);
        match nonce {
            Some(value) => {
                if begin == Begin::Message {
                    writer.push_opener();
                }
                writer.push_nonce(value);
                writer.push_mark(SentencePart::Stop);
            }
            None if begin == Begin::Message => writer.push_message(),
            None => {}
        }
        writer.push_sentences();
        writer.text
    }

    /// The first `tokens` tokens of an endless text, to the end of the unit that they end in, and
    /// how many tokens that is. A longer beginning of the same stream begins with a shorter one.
    pub(crate) fn text_beginning(&self, tokens: u32, stream: &mut RandomStream) -> (String, u32) {
        // What is left never gets so small that the end would shape the choice of words.
        let endless = tokens.saturating_add(64);
        let mut writer = self.prose_writer(endless, stream);
        writer.floor = endless - tokens;
        if tokens > 0 {
            writer.push_message();
        }
        let written = endless - writer.left;
        (writer.text, written)
    }

    /// Tokens of a whole nonce, at most.
    pub(crate) fn nonce_tokens(&self) -> u32 {
        let bits = self.digits.len().checked_ilog2().unwrap_or(0).max(1);
        let dearest = self.digits.iter().map(|unit| unit.cost).max().unwrap_or(0);
        u64::BITS.div_ceil(bits) * dearest
    }

    fn prose_writer<'a>(&'a self, tokens: u32, stream: &'a mut RandomStream) -> ProseWriter<'a> {
        // Five letters and a space, about; a text is seldom moved then.
        let room = (tokens as usize).saturating_mul(6).min(1 << 22);
        ProseWriter {
            lexicon: self,
            dice: Dice { stream, bits: 0, left: 0 },
            text: String::with_capacity(room),
            left: tokens,
            floor: 0,
            may_mark: false,
        }
    }
}

#[cfg(test)]
mod tests;
