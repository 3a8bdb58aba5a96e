//! What the engine "generates": words chosen by a hash, each exactly one token.

use std::sync::LazyLock;

use super::mix_bits;
use super::tokenizer::single_token;

const COUNT: usize = 256;

#[rustfmt::skip]
const WORDS: [&str; COUNT] = [
    " the", " of", " and", " to", " in", " a", " is", " that", " for", " it", " as", " was",
    " with", " be", " by", " on", " not", " he", " this", " are", " or", " his", " from", " at",
    " which", " but", " have", " an", " had", " they", " you", " were", " there", " one", " all",
    " we", " can", " her", " has", " their", " been", " if", " more", " when", " will", " would",
    " who", " so", " no", " she", " other", " its", " may", " these", " what", " them", " than",
    " some", " him", " time", " into", " only", " do", " such", " my", " new", " about", " out",
    " also", " two", " any", " up", " first", " could", " our", " then", " most", " see", " me",
    " should", " after", " said", " your", " very", " made", " over", " like", " many", " must",
    " well", " even", " back", " where", " much", " same", " way", " down", " work", " year",
    " world", " day", " life", " know", " great", " still", " here", " take", " place", " long",
    " own", " little", " make", " under", " while", " last", " never", " good", " state", " each",
    " people", " house", " again", " right", " part", " old", " small", " number", " think",
    " public", " water", " found", " hand", " night", " high", " three", " system", " group",
    " order", " going", " point", " left", " end", " came", " case", " use", " put", " fact",
    " given", " asked", " once", " side", " room", " course", " less", " next", " city", " often",
    " form", " light", " few", " later", " want", " seen", " young", " within", " second", " area",
    " name", " money", " power", " story", " woman", " child", " family", " school", " level",
    " value", " plan", " change", " result", " early", " open", " clear", " simple", " strong",
    " short", " large", " local", " common", " market", " office", " answer", " reason", " figure",
    " moment", " matter", " effect", " method", " model", " signal", " record", " window",
    " street", " garden", " river", " forest", " summer", " winter", " spring", " autumn",
    " letter", " paper", " music", " colour", " table", " bridge", " engine", " wheel", " metal",
    " stone", " glass", " bread", " fruit", " horse", " bird", " fish", " cloud", " storm",
    " quiet", " bright", " gentle", " heavy", " narrow", " broad", " steady", " sudden", " slow",
    " quick", " near", " above", " below", " across", " around", " during", " before", " until",
    " since", " among", " always", " almost", " travel", " learn", " speak", " build", " carry",
    " follow",
];

const TOKENS: [u32; COUNT] = {
    let mut tokens = [0; COUNT];
    let mut at = 0;
    while at < COUNT {
        // A word of more than one token fails the build.
        tokens[at] = match single_token(WORDS[at]) {
            Some(id) => id,
            None => panic!("a word is more than one token"),
        };
        at += 1;
    }
    tokens
};

/// The same words with characters of two to four bytes in them.
static ACCENTED: LazyLock<Vec<String>> = LazyLock::new(|| {
    let accent = |(at, word): (usize, &&str)| {
        let mut word = (*word).to_owned();
        let vowels = [('a', "á"), ('e', "é"), ('i', "ï"), ('o', "ö"), ('u', "ü"), ('y', "ÿ")];
        if let Some((from, to)) = vowels.iter().find(|(vowel, _)| word.contains(*vowel)) {
            word = word.replacen(*from, to, 1);
        }
        match at % 8 {
            3 => word.push('…'),
            7 => word.push('🌊'),
            _ => {}
        }
        word
    };
    WORDS.iter().enumerate().map(accent).collect()
});

/// Which word of the list comes at a place of an answer.
pub(crate) fn word_index_at(answer_seed: u64, index: u32) -> u8 {
    (mix_bits(answer_seed.wrapping_add(u64::from(index).wrapping_mul(0xd134_2543_de82_ef95))) >> 56)
        as u8
}

/// The token at a place of an answer.
pub(crate) fn token_at(answer_seed: u64, index: u32) -> u32 {
    TOKENS[usize::from(word_index_at(answer_seed, index))]
}

/// The text of the token at a place of an answer. It never needs escaping in JSON.
pub(crate) fn text_at(answer_seed: u64, index: u32) -> &'static str {
    word_at(word_index_at(answer_seed, index))
}

/// The same with accents.
pub(crate) fn accented_text_at(answer_seed: u64, index: u32) -> &'static str {
    accented_word_at(word_index_at(answer_seed, index))
}

/// A word of the list.
pub(crate) fn word_at(choice: u8) -> &'static str {
    WORDS[usize::from(choice)]
}

/// A word of the list with accents.
pub(crate) fn accented_word_at(choice: u8) -> &'static str {
    ACCENTED.get(usize::from(choice)).map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::super::tokenizer::encode_text;
    use super::*;

    #[test]
    fn words_differ_and_need_no_escaping() {
        assert_eq!(WORDS.iter().collect::<HashSet<_>>().len(), COUNT);
        assert_eq!(ACCENTED.iter().collect::<HashSet<_>>().len(), COUNT);
        for word in ACCENTED.iter().map(String::as_str).chain(WORDS) {
            assert_eq!(serde_json::to_string(word).unwrap(), format!("\"{word}\""));
            assert!(word.starts_with(' '));
        }
        assert!(ACCENTED.iter().all(|word| !word.is_ascii()));
    }

    #[test]
    fn answers_are_pinned_and_varied() {
        let text: String = (0..8).map(|index| text_at(42, index)).collect();
        assert_eq!(text, PINNED);
        let seen: HashSet<_> = (0..5000).map(|index| text_at(7, index)).collect();
        assert_eq!(seen.len(), COUNT);
    }
    const PINNED: &str = " market that system is woman came her no";

    proptest! {
        #[test]
        fn text_encodes_to_the_tokens_it_was_made_of(seed: u64, start in 0u32..1000, count in 0u32..60) {
            let text: String = (start..start + count).map(|index| text_at(seed, index)).collect();
            let expected: Vec<_> = (start..start + count).map(|index| token_at(seed, index)).collect();
            let mut ids = Vec::new();
            encode_text(&text, &mut ids);
            prop_assert_eq!(ids, expected);
        }
    }
}
